"""The array that a step sees while it is traced, and the ways by which a value can leave it.

`TracedArray` is autograd's `ArrayBox` with three additions: the operators and attributes of arrays that
autograd leaves out; a record (`Tape.leave`) wherever Python or NumPy takes the bare value (``bool``, ``int``,
``float``, an index, an array conversion, an attribute unknown here); and a `Memory`, shared by all views of
the same elements, so that it can be written to (`writes`). With ``__array_function__`` it also takes part in
calls of plain ``numpy``.

The bare value is a read-only view of the memory, always up to date. A function that writes into it without
the knowledge of this module raises; what leaves the data flow as an array is a copy.

`recording` switches autograd to this class, and only inside its block.

May import autograd, `memory`, `namespaces`, `tape` and `writes`. Tests: ``tests/test_dependence.py``,
``tests/test_inplace.py``.
"""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import autograd.numpy as anp
import autograd.tracer
import numpy as np
from autograd.numpy import numpy_wrapper
from autograd.numpy.numpy_boxes import ArrayBox
from autograd.tracer import Box, getval, isbox, new_box, trace_primitives_map, trace_stack

from scr_critplugin.analysis import writes
from scr_critplugin.analysis.memory import ACCUMULATORS, Memory, memory_of
from scr_critplugin.analysis.namespaces import plain_numpy_of
from scr_critplugin.analysis.rules import getitem_where
from scr_critplugin.analysis.tape import DependenceNode, Tape
from scr_critplugin.errors import ProfileError

_METADATA = {"nbytes", "itemsize", "strides", "flags"}
_OF_LISTS = {
    np.concatenate: anp.concatenate,
    np.stack: anp.stack,
    np.vstack: anp.vstack,
    np.hstack: anp.hstack,
    np.column_stack: anp.column_stack,
}
"""Functions that take a list of arrays: autograd looks for traced arguments at top level only."""


class TracedArray(ArrayBox):  # type: ignore[misc]
    """An array or scalar of the traced state, or computed from it."""

    __slots__ = ("_memory", "_recorded", "_seen")

    _memory: Memory | None

    def __init__(self, value: Any, trace: int, node: Any) -> None:
        self._trace = trace  # type: ignore[misc]
        self._recorded = node
        self._memory = None
        self._seen = 0
        if type(value) is np.ndarray and isinstance(node, DependenceNode):
            value, self._memory = memory_of(value, node)
            if self._memory is not None and self._memory.version > 0:
                # The node may be older than the last write: the memory knows better.
                self._seen = -1
            if node.call is None or node.call.function not in ACCUMULATORS:
                value = _read_only(value)
        self._value = value  # type: ignore[misc]

    @property
    def _node(self) -> Any:
        """Node of the present contents."""
        memory = self._memory
        if memory is not None and self._seen != memory.version:
            self._recorded = memory.load(self._value)
            self._seen = memory.version
        return self._recorded

    def _view(self, part: Any) -> TracedArray:
        """Another view of the same memory. It is recorded when it is used."""
        view: TracedArray = TracedArray.__new__(TracedArray)
        view._value = part  # type: ignore[misc]
        view._trace = self._trace  # type: ignore[misc]
        view._recorded = None
        view._memory, view._seen = self._memory, -1
        return view

    # ---- leaving the data flow ----

    def _leave(self, kind: str) -> Any:
        """The bare value, with a record that it left (unless this box belongs to autograd's own tracing)."""
        if isinstance(self._node, DependenceNode):
            self._node.tape.leave(self._node, kind)
        return self._value

    def _taken(self, kind: str, convert: Callable[[Any], Any]) -> Any:
        """What `convert` makes of the bare value; recorded as leaving, with this outcome."""
        node = self._node
        if not isinstance(node, DependenceNode):
            return convert(self._value)
        try:
            outcome = convert(self._value)
        except TypeError:
            # Shape and dtype decide that, not the value.
            raise
        except Exception:
            node.tape.leave(node, kind)
            raise
        place = node.tape.leave(node, kind)
        if place is not None:
            node.tape.note(place, outcome)
        return outcome

    def _frozen(self, kind: str) -> Any:
        """The bare value as it is now. A single integer or truth value is noted: programs decide on these."""
        if np.ndim(getval(self._value)) == 0 and np.result_type(getval(self._value)).kind in "biu":
            return self._taken(kind, _snapshot)
        return _snapshot(self._leave(kind))

    def __bool__(self) -> bool:
        return bool(self._taken("bool", bool))

    def __int__(self) -> int:
        return int(self._taken("int", int))

    def __float__(self) -> float:
        return float(self._leave("float"))

    def __complex__(self) -> complex:
        return complex(self._leave("complex"))

    def __index__(self) -> int:
        return operator.index(self._taken("index", operator.index))

    def __round__(self, digits: int | None = None) -> Any:
        return self._taken("round", lambda value: round(value, digits))

    def __trunc__(self) -> int:
        return int(self._taken("int", math.trunc))

    def __floor__(self) -> int:
        return int(self._taken("round", math.floor))

    def __ceil__(self) -> int:
        return int(self._taken("round", math.ceil))

    def __str__(self) -> str:
        return str(self._leave("text"))

    def __repr__(self) -> str:
        return repr(self._leave("text"))

    def __format__(self, specification: str) -> str:
        return format(self._leave("text"), specification)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        value = self._frozen("array")
        if isbox(value):
            return value.__array__(dtype, copy)
        array = np.asarray(value, dtype=dtype)
        return array.copy() if copy else array

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name in _METADATA:
            return getattr(np.asarray(getval(self._value)), name)
        if not hasattr(self._value, name):
            raise AttributeError(f"{type(self._value).__name__!r} object has no attribute {name!r}")
        return getattr(self._frozen(f"attribute {name}"), name)

    # ---- writing ----

    def __setitem__(self, index: Any, value: Any) -> None:
        index, steered = _written_index(index, "argument of __setitem__")
        writes.assign(self, index, value, steered=steered)

    def fill(self, value: Any) -> None:
        """Set every element."""
        self[...] = value

    def sort(self, axis: int = -1, kind: Any = None) -> None:
        """Sort in place."""
        self[...] = anp.sort(self, axis, kind)

    def __copy__(self) -> Any:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return self.copy()

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise ProfileError(
            "a traced value is pickled, so what becomes of it cannot be followed. To send it to another "
            "rank, "
            "communicate through scr_critplugin.mpi.Comm"
        )

    # ---- what autograd's ArrayBox lacks ----

    def __getitem__(self, index: Any) -> Any:
        deciding = [] if isinstance(index, TracedArray) else list(_varying(index))
        if deciding:
            # They go along as arguments, which is recorded.
            return getitem_where(self, _bare_index(index, getval), *deciding)
        index = _bare_index(index)
        memory = self._memory
        if memory is None or not writes.is_basic(index):
            return _getitem(self, index)
        part = self._value[index]
        if type(part) is not np.ndarray:
            # A single element is a copy of what is there now.
            return _boxed(part, self._trace, memory.load(self._value[writes.whole_index(index)]))
        return self._view(part) if part.size else _getitem(self, index)

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __hash__(self) -> int:
        # Sets and dicts find numbers by value; then they compare, which is recorded too.
        if np.ndim(getval(self._value)):
            raise TypeError("unhashable type: 'numpy.ndarray'")
        return int(self._taken("hash", _hash_of_number))

    @property
    def real(self) -> Any:
        """Real part; a view of a complex array, as in NumPy."""
        return anp.real(self)

    @real.setter
    def real(self, value: Any) -> None:
        anp.real(self)[...] = value

    @property
    def imag(self) -> Any:
        """Imaginary part; a view of a complex array, as in NumPy."""
        return anp.imag(self)

    @imag.setter
    def imag(self, value: Any) -> None:
        anp.imag(self)[...] = value

    @property
    def T(self) -> Any:  # noqa: N802
        """Axes reversed."""
        return self.transpose()

    def conj(self) -> Any:
        """Complex conjugate."""
        return anp.conj(self)

    conjugate = conj

    def copy(self, order: str = "C") -> Any:
        """A copy, traced."""
        return anp.copy(self) if np.ndim(getval(self)) else self

    def flatten(self, order: str = "C") -> Any:
        """A copy with one axis."""
        return anp.copy(anp.ravel(self, order))

    def transpose(self, *axes: Any) -> Any:
        """Axes reversed, or in the given order, as a tuple or one by one."""
        if self._memory is not None:
            return self._view(self._value.transpose(*axes))
        return anp.transpose(self, axes[0] if len(axes) == 1 else axes or None)

    def dot(self, other: Any) -> Any:
        """Dot product."""
        return anp.dot(self, other)

    # ---- NumPy's dispatch ----

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        return anp

    def __array_function__(
        self, function: Callable[..., Any], types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        if function in writes.CHANGING or function is np.copyto:
            return _call_that_writes(function, args, kwargs)
        if kwargs.get("out") is not None:
            return _call_into(function, args, kwargs)
        if function in _OF_LISTS:
            return _OF_LISTS[function](*args, **kwargs)
        if function in numpy_wrapper.notrace_functions:
            return function(*map(getval, args), **kwargs)
        wrapped = trace_primitives_map.get(function)
        if wrapped is not None and any(isbox(arg) for arg in args):
            return wrapped(*args, **kwargs)
        return function(*_bare(args), **_bare(kwargs))

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        outs = kwargs.pop("out", None)
        if method == "at":
            target, index, *values = inputs
            index, steered = _written_index(index, f"argument of {ufunc.__name__}.at")
            if isinstance(target, TracedArray):
                return writes.ufunc_at(ufunc, target, index, values, steered=steered)
            return ufunc.at(target, index, *_bare(values))
        if outs is not None and method == "__call__":
            return writes.ufunc_into(ufunc, inputs, outs, kwargs, _bare)
        if outs is not None and any(isbox(out) for out in outs):
            raise ProfileError(
                f"{ufunc.__name__}.{method} writes into a traced array, which is not supported. Assign its "
                "result instead"
            )
        if method == "__call__" and ufunc in trace_primitives_map:
            return super().__array_ufunc__(ufunc, method, *inputs, **kwargs)
        reduction = _REDUCTIONS.get((ufunc, method))
        if reduction is not None and kwargs.keys() <= {"axis", "keepdims"}:
            return reduction(*inputs, **{"axis": 0, **kwargs})
        into = {} if outs is None else {"out": outs}
        return getattr(ufunc, method)(*_bare(inputs), **_bare(kwargs), **into)


_REDUCTIONS: dict[tuple[Any, str], Callable[..., Any]] = {
    (np.add, "reduce"): anp.sum,
    (np.multiply, "reduce"): anp.prod,
    (np.maximum, "reduce"): anp.max,
    (np.minimum, "reduce"): anp.min,
    (np.add, "accumulate"): anp.cumsum,
    (np.multiply, "accumulate"): anp.cumprod,
}


def _call_that_writes(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    target, *rest = args
    if not isinstance(target, TracedArray):
        return function(target, *_bare(rest), **_bare(kwargs))
    if function is np.copyto:
        return writes.copy_to(target, *rest, **kwargs)
    return writes.change(function, target, _bare(rest), _bare(kwargs))


def _call_into(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call with ``out=``: the result, then a copy of it."""
    options = {name: value for name, value in kwargs.items() if name != "out"}
    out, result = kwargs["out"], function(*args, **options)
    if isinstance(out, TracedArray):
        writes.copy_to(out, result)
    else:
        np.copyto(out, _bare(result), casting="same_kind")
    return out


_getitem = ArrayBox.__getitem__


def _binary(function: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    return lambda self, other: function(self, other)


def _reflected(function: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    return lambda self, other: function(other, self)


def _in_place(name: str, function: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    def operate(self: TracedArray, other: Any) -> Any:
        if not isinstance(self._value, np.ndarray) or not self._value.size:
            # Numbers do not change, and there is nothing to change in an empty array.
            return function(self, other)
        return getattr(np, name)(self, other, out=self)

    return operate


for _name, _function in {
    "add": anp.add,
    "sub": anp.subtract,
    "mul": anp.multiply,
    "truediv": anp.true_divide,
    "floordiv": anp.floor_divide,
    "mod": anp.mod,
    "pow": anp.power,
    "matmul": anp.matmul,
    "and": anp.bitwise_and,
    "or": anp.bitwise_or,
    "xor": anp.bitwise_xor,
    "lshift": anp.left_shift,
    "rshift": anp.right_shift,
}.items():
    setattr(TracedArray, f"__i{_name}__", _in_place(_function.__name__, _function))
for _name, _function in {
    "floordiv": anp.floor_divide,
    "divmod": anp.divmod,
    "and": anp.bitwise_and,
    "or": anp.bitwise_or,
    "xor": anp.bitwise_xor,
    "lshift": anp.left_shift,
    "rshift": anp.right_shift,
}.items():
    setattr(TracedArray, f"__{_name}__", _binary(_function))
    setattr(TracedArray, f"__r{_name}__", _reflected(_function))
TracedArray.__rmod__ = _reflected(anp.mod)
TracedArray.__invert__ = lambda self: anp.invert(self)
TracedArray.__pos__ = lambda self: anp.positive(self)

Box.types.add(TracedArray)


def _taken_as_index(part: TracedArray) -> Any:
    return part._taken("index", _snapshot)


def _bare_index(index: Any, take: Callable[[TracedArray], Any] = _taken_as_index) -> Any:
    """`index` without traced values inside a tuple, list or slice: autograd unboxes only a bare one."""
    if isinstance(index, (tuple, list)):
        return type(index)(_bare_part(part, take) for part in index)
    return _bare_part(index, take) if isinstance(index, slice) or _is_constant(index) else index


def _bare_part(part: Any, take: Callable[[TracedArray], Any]) -> Any:
    if isinstance(part, TracedArray):
        return _bare_part(take(part), take)
    if isinstance(part, slice):
        return slice(*(_bare_part(bound, take) for bound in (part.start, part.stop, part.step)))
    if isinstance(part, list):
        return [_bare_part(member, take) for member in part]
    return part


def _written_index(index: Any, kind: str) -> tuple[Any, bool]:
    """The bare index of a write, and whether the state decides where it goes."""
    steered = _varies(index)
    if isinstance(index, TracedArray):
        return _snapshot(index._leave(kind)), steered
    return _bare_index(index, lambda part: part._leave(kind)), steered


def _varies(index: Any) -> bool:
    return any(True for _ in _varying(index))


def _varying(index: Any) -> Iterator[TracedArray]:
    """The traced values in an index that depend on the state."""
    if isinstance(index, slice):
        index = (index.start, index.stop, index.step)
    if isinstance(index, (tuple, list)):
        for part in index:
            yield from _varying(part)
    elif isinstance(index, TracedArray) and not _is_constant(index):
        yield index


def _is_constant(value: Any) -> bool:
    return isinstance(value, TracedArray) and getattr(value._node, "constant", False)


def _hash_of_number(value: Any) -> int:
    return hash(value[()] if isinstance(value, np.ndarray) else value)


def _bare(value: Any) -> Any:
    """`value` with every traced array in it replaced by its bare value, each recorded as leaving."""
    if isinstance(value, TracedArray):
        return _bare(_snapshot(value._leave("array")))
    if isinstance(value, (tuple, list)):
        return type(value)(_bare(member) for member in value)
    if isinstance(value, dict):
        return {key: _bare(member) for key, member in value.items()}
    return value


def _snapshot(value: Any) -> Any:
    """A read-only copy of an array: later writes must not show in what has left the data flow."""
    return _read_only(value.copy()) if isinstance(value, np.ndarray) else value


def _read_only(value: Any) -> Any:
    view = value.view()
    view.flags.writeable = False
    return view


def _boxed(value: Any, trace: int, node: Any) -> Any:
    """What autograd puts around a result; numbers that do not depend on the state stay bare."""
    if isinstance(node, DependenceNode):
        if isinstance(value, TracedArray) and _is_constant(value):
            # Made inside a primitive of the program's own.
            value = np.array(value._value)
        if node.constant and not isinstance(value, (np.ndarray, TracedArray)):
            return value
    return TracedArray(value, trace, node)


# ---- switching autograd over ----

_SCALAR_TYPES = {bool, int, np.bool_, *(t for t in np.sctypeDict.values() if issubclass(t, np.number))}
_OF_SHAPE = {
    "shape",
    "ndim",
    "iscomplexobj",
    "result_type",
    "metadata",
    "parse_einsum_input",
    "isinstance",
    "type",
}


@contextmanager
def recording(*users: Any) -> Iterator[tuple[Tape, Callable[[str, Any], Any]]]:
    """Trace inside the block: yields the tape, and a function that boxes a state variable given its name.

    In the modules of the functions `users`, and those they use, arrays that NumPy makes can be written to.
    """
    tape = Tape()
    mappings, top, getval_of_tracer = dict(Box.type_mappings), trace_stack.top, autograd.tracer.getval
    # Not autograd's own new_trace: that does not unwind when the block raises.
    trace_stack.top = trace = top + 1
    try:
        _switch_to_traced_arrays()
        tape.box = lambda value, node: new_box(value, trace, node)
        with plain_numpy_of(users, lambda value: new_box(value, trace, tape.constant(value))):
            yield tape, lambda name, value: new_box(value, trace, tape.root(name, value))
    finally:
        tape.closed = True
        trace_stack.top = top
        Box.type_mappings.clear()
        Box.type_mappings.update(mappings)
        autograd.tracer.getval = getval_of_tracer


def _switch_to_traced_arrays() -> None:
    array_types = {value_type for value_type, box in Box.type_mappings.items() if box is ArrayBox}
    # Comparisons, argsort and the like are traced too, so booleans and integers need boxes.
    for value_type in array_types | _SCALAR_TYPES | {TracedArray}:
        Box.type_mappings[value_type] = _boxed
    autograd.tracer.getval = _getval_of_untraced_call


def _getval_of_untraced_call(value: Any) -> Any:
    """Stands in for the `getval` by which autograd's `notrace_primitive` takes values out of boxes.

    autograd means functions without a derivative by it; they can depend on the value all the same.
    """
    function = sys._getframe(1).f_locals.get("f_raw")
    name = getattr(function, "__name__", "function")
    while isbox(value):
        if isinstance(value, TracedArray) and name not in _OF_SHAPE:
            value = value._leave(f"untraced {name}")
        else:
            value = value._value
    return value if name in _OF_SHAPE else _snapshot(value)
