"""The array that a step sees while it is traced, and the ways by which a value can leave it.

`TracedArray` is autograd's `ArrayBox` with three additions: the operators and attributes of arrays that
autograd leaves out; a record (`Tape.leave`) wherever Python or NumPy takes the bare value (``bool``, ``int``,
``float``, an index, an array conversion, an attribute unknown here); and refusal of writes. With
``__array_function__`` it also takes part in calls of plain ``numpy``.

`recording` switches autograd to this class, and only inside its block.

May import autograd and `tape`. Tests: ``tests/test_dependence.py``.
"""

from __future__ import annotations

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

    __slots__ = ()

    # ---- leaving the data flow ----

    def _leave(self, kind: str) -> Any:
        """The bare value, with a record that it left (unless this box belongs to autograd's own tracing)."""
        if isinstance(self._node, DependenceNode):
            self._node.tape.leave(self._node, kind)
        return self._value

    def _frozen(self, kind: str) -> Any:
        value = self._leave(kind)
        if isinstance(value, np.ndarray):
            value = value.view()
            value.flags.writeable = False
        return value

    def __bool__(self) -> bool:
        return bool(self._leave("bool"))

    def __int__(self) -> int:
        return int(self._leave("int"))

    def __float__(self) -> float:
        return float(self._leave("float"))

    def __complex__(self) -> complex:
        return complex(self._leave("complex"))

    def __index__(self) -> int:
        return operator.index(self._leave("index"))

    def __round__(self, digits: int | None = None) -> Any:
        return round(self._leave("round"), digits)

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

    # ---- writes are refused: the array behind is shared with the tape ----

    def __setitem__(self, index: Any, value: Any) -> None:
        raise ProfileError(
            "assignment into an array of the traced state. Write the step in functional form: build a new "
            "array (np.concatenate, np.where) and return it"
        )

    def _refuse_aliased(self, operation: str) -> None:
        """Raise if an in-place operator would, in NumPy, also change the array that this is a view of.

        Here it makes a new array. For a freshly computed array or a number that comes to the same.
        """
        node = self._node
        if not isinstance(node, DependenceNode) or not isinstance(self._value, np.ndarray):
            return
        if node.call is None or (node.row is not None and node.row.moves(node.call)):
            raise ProfileError(
                f"in-place {operation} on an array of the state or a view of an array. Write the step in "
                "functional form: x = x + y instead of x += y"
            )

    def __copy__(self) -> TracedArray:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> TracedArray:
        return self

    # ---- what autograd's ArrayBox lacks ----

    def __getitem__(self, index: Any) -> Any:
        return _getitem(self, _bare_index(index))

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __hash__(self) -> int:
        return id(self)

    real = property(lambda self: anp.real(self))
    imag = property(lambda self: anp.imag(self))

    def conj(self) -> Any:
        """Complex conjugate."""
        return anp.conj(self)

    conjugate = conj

    def copy(self, order: str = "C") -> Any:
        """A copy, traced."""
        return anp.copy(self)

    def transpose(self, *axes: Any) -> Any:
        """Axes reversed, or in the given order, as a tuple or one by one."""
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
        if function in _OF_LISTS:
            return _OF_LISTS[function](*args, **kwargs)
        if function in numpy_wrapper.notrace_functions:
            return function(*map(getval, args), **kwargs)
        wrapped = trace_primitives_map.get(function)
        if wrapped is not None and any(isbox(arg) for arg in args):
            return wrapped(*args, **kwargs)
        return function(*_bare(args), **_bare(kwargs))

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if kwargs.get("out") is not None:
            raise ProfileError(
                f"{ufunc.__name__} writes a traced value into an existing array. Write the step in "
                "functional form: build a new array and return it"
            )
        if method == "__call__" and ufunc in trace_primitives_map:
            return super().__array_ufunc__(ufunc, method, *inputs, **kwargs)
        return getattr(ufunc, method)(*_bare(inputs), **_bare(kwargs))


_getitem = ArrayBox.__getitem__


def _binary(function: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    return lambda self, other: function(self, other)


def _reflected(function: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    return lambda self, other: function(other, self)


def _in_place(name: str, function: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    def operate(self: TracedArray, other: Any) -> Any:
        self._refuse_aliased(name)
        return function(self, other)

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


def _bare_index(index: Any) -> Any:
    """`index` without traced values inside a tuple, list or slice: autograd unboxes only a bare one."""
    if isinstance(index, (tuple, list)):
        return type(index)(_bare_part(part) for part in index)
    return _bare_part(index) if isinstance(index, slice) else index


def _bare_part(part: Any) -> Any:
    if isinstance(part, TracedArray):
        return _bare_part(part._leave("index"))
    if isinstance(part, slice):
        return slice(*(_bare_part(bound) for bound in (part.start, part.stop, part.step)))
    return part


def _bare(value: Any) -> Any:
    """`value` with every traced array in it replaced by its bare value, each recorded as leaving."""
    if isinstance(value, TracedArray):
        return _bare(value._leave("array"))
    if isinstance(value, (tuple, list)):
        return type(value)(_bare(member) for member in value)
    if isinstance(value, dict):
        return {key: _bare(member) for key, member in value.items()}
    return value


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
def recording() -> Iterator[tuple[Tape, Callable[[str, Any], Any]]]:
    """Trace inside the block: yields the tape, and a function that boxes a state variable given its name."""
    tape = Tape()
    mappings, top, getval_of_tracer = dict(Box.type_mappings), trace_stack.top, autograd.tracer.getval
    # Not autograd's own new_trace: that does not unwind when the block raises.
    trace_stack.top = trace = top + 1
    try:
        _switch_to_traced_arrays()
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
        Box.type_mappings[value_type] = TracedArray
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
    return value
