"""The array that a step sees while it is traced, and the ways by which a value can leave it.

`TracedArray` is autograd's `ArrayBox` with three additions: the operators and attributes of arrays that
autograd leaves out; a record (`Tape.leave`) wherever Python or NumPy takes the bare value (``bool``, ``int``,
``float``, an index, an array conversion, an attribute unknown here); and a `Memory`, shared by all views of
the same elements, so that it can be written to (`writes`). Operators and calls of plain ``numpy`` are in
`dispatch`; `recording` switches autograd to this class.

The bare value is a read-only view of the memory, always up to date. A function that writes into it without
the knowledge of this module raises; what leaves the data flow as an array is a copy. Code that cannot be
followed but must write is lent the memory itself (`lent`).

May import autograd, `memory`, `tape` and `writes`. Tests: ``tests/test_dependence.py``,
``tests/test_inplace.py``, ``tests/test_inplace_constructs.py``.
"""

from __future__ import annotations

import copy
import math
import operator
from collections.abc import Callable, Iterator
from typing import Any

import autograd.numpy as anp
import numpy as np
from autograd.numpy.numpy_boxes import ArrayBox
from autograd.tracer import Box, getval, isbox

from scr_critplugin.analysis import writes
from scr_critplugin.analysis.memory import ACCUMULATORS, Memory, memory_of
from scr_critplugin.analysis.rules import getitem_where
from scr_critplugin.analysis.tape import DependenceNode
from scr_critplugin.errors import ProfileError

_METADATA = {"nbytes", "itemsize", "strides", "flags"}
_WITH_OUT = (
    *("all", "any", "argmax", "argmin", "clip", "cumprod", "cumsum", "max", "mean", "min"),
    *("prod", "ptp", "round", "std", "sum", "take", "trace", "var"),
)
"""Methods with a parameter `out`, which NumPy has as functions too."""


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

    def shown_as(self, part: Any) -> Any:
        """`part`, a view that NumPy made of the bare value, as a traced array; a bare copy without memory."""
        if self._memory is not None:
            return self._view(part)
        self._leave("array")
        return part.copy()

    def is_steered_view(self) -> bool:
        """True if NumPy would have made a view, at a place that the state decides; this is a copy."""
        node = self._node
        if self._memory is not None or not isinstance(node, DependenceNode) or not node.steered:
            return False
        return node.call is not None and node.call.function in (getitem_where.fun, ArrayBox.__getitem__.fun)

    def give_back(self) -> None:
        """Nothing that cannot be followed holds the memory any longer."""
        if self._memory is not None:
            self._memory.lent -= 1

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
            return self._taken(kind, snapshot)
        return snapshot(self._leave(kind))

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
        index, steered = written_index(index, "argument of __setitem__")
        if isinstance(value, TracedArray) and isinstance(value._node, DependenceNode):
            value._node.tape.finish(value)
        writes.assign(self, index, value, steered=steered)

    def fill(self, value: Any) -> None:
        """Set every element."""
        self[...] = value

    def sort(self, axis: int = -1, kind: Any = None) -> None:
        """Sort in place."""
        self[...] = anp.sort(self, axis, kind)

    def partition(self, kth: Any, axis: int = -1, kind: str = "introselect") -> None:
        """Sort partially, in place."""
        self[...] = anp.partition(self, kth, axis, kind)

    def put(self, indices: Any, values: Any, mode: Any = "raise") -> None:
        """Set elements of the flattened array."""
        np.put(self, indices, values, mode=mode)  # type: ignore[arg-type]

    @property
    def flat(self) -> Flat:
        """The elements in C order, to be read and written by index."""
        return Flat(self)

    @flat.setter
    def flat(self, value: Any) -> None:
        Flat(self)[...] = value

    @property
    def ctypes(self) -> Any:
        """NumPy's `ctypes` attribute: whoever uses it may read and write the memory (see `lent`)."""
        return lent(self, "call of a function through ctypes").ctypes

    @property
    def data(self) -> Any:
        """The buffer: whoever uses it may read and write the memory (see `lent`)."""
        return lent(self, "call of a function through a buffer").data

    def __copy__(self) -> Any:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return self.copy()

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise ProfileError(
            "a traced value is pickled, so what becomes of it cannot be followed. To send it to another "
            "rank, communicate through scr_critplugin.mpi.Comm"
        )

    # ---- what autograd's ArrayBox lacks ----

    @property
    def shape(self) -> tuple[int, ...]:
        """Length of each axis; may be set, as in NumPy, where no copy is needed for that."""
        return np.shape(getval(self._value))

    @shape.setter
    def shape(self, shape: Any) -> None:
        part = self._value.view()
        part.shape = shape
        if self._memory is None:
            self._recorded = anp.reshape(self, shape)._node
        self._value, self._seen = part, -1  # type: ignore[misc]

    def __contains__(self, item: Any) -> bool:
        return bool(anp.any(anp.equal(self, item)))

    def __getitem__(self, index: Any) -> Any:
        memory = self._memory
        if not _is_plain(index):
            deciding = [] if isinstance(index, TracedArray) else list(_varying(index))
            if deciding:
                # They go along as arguments, which is recorded.
                return getitem_where(self, _bare_index(index, getval), *deciding)
            index = _bare_index(index)
        if memory is None or not writes.is_basic(index):
            return _getitem(self, index)
        part = self._value[index]
        if type(part) is not np.ndarray:
            # A single element is a copy of what is there now.
            return boxed(part, self._trace, memory.load(self._value[writes.whole_index(index)]))
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

    def view(self, dtype: Any = None, type: Any = None) -> Any:
        """Another view of the same memory, perhaps with its elements cut in parts."""
        if self._memory is None or type is not None:
            return bare(self).view(dtype, *(() if type is None else (type,)))
        return self._view(self._value if dtype is None else self._value.view(dtype))

    def __matmul__(self, other: Any) -> Any:
        reflected = getattr(other, "__rmatmul__", None)
        if reflected is not None and not isinstance(other, (ArrayBox, np.ndarray)):
            return reflected(self)
        return anp.matmul(self, other)

    def compress(self, condition: Any, axis: Any = None, out: Any = None) -> Any:
        """The elements for which the condition holds; the function has it first."""
        return np.compress(condition, self, axis=axis, **({} if out is None else {"out": out}))

    def dot(self, other: Any, out: Any = None) -> Any:
        """Dot product."""
        return anp.dot(self, other) if out is None else np.dot(self, other, out=out)


_getitem = ArrayBox.__getitem__


def _with_out(name: str) -> Callable[..., Any]:
    without, function = getattr(ArrayBox, name, None), getattr(np, name)

    def method(self: TracedArray, *args: Any, **kwargs: Any) -> Any:
        if without is not None and kwargs.get("out") is None:
            return without(self, *args, **kwargs)
        return function(self, *args, **kwargs)

    return method


for _name in _WITH_OUT:
    setattr(TracedArray, _name, _with_out(_name))

Box.types.add(TracedArray)


class Flat:
    """Stands for ``ndarray.flat`` of a traced array."""

    def __init__(self, array: TracedArray) -> None:
        self._array = array

    def __getitem__(self, index: Any) -> Any:
        found = anp.ravel(self._array)[index]
        return anp.copy(found) if np.ndim(getval(found)) else found

    def __setitem__(self, index: Any, value: Any) -> None:
        index, steered = written_index(index, "argument of __setitem__")
        writes.change(writes.set_flat, self._array, (index, value), {}, steered=steered)

    def __iter__(self) -> Iterator[Any]:
        return iter(anp.ravel(self._array))

    def __len__(self) -> int:
        return int(np.size(getval(self._array)))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return anp.ravel(self._array).__array__(dtype, copy)


_PLAIN = frozenset((int, type(None), type(Ellipsis)))


def _is_plain(index: Any) -> bool:
    """True if there are only Python's integers in `index`, and slices: by far the most frequent case."""
    for part in index if type(index) is tuple else (index,):
        if type(part) is slice:
            if not (type(part.start) in _PLAIN and type(part.stop) in _PLAIN and type(part.step) in _PLAIN):
                return False
        elif type(part) not in _PLAIN:
            return False
    return True


def _taken_as_index(part: TracedArray) -> Any:
    return part._taken("index", snapshot)


def _bare_index(index: Any, take: Callable[[TracedArray], Any] = _taken_as_index) -> Any:
    """`index` without traced values inside a tuple, list or slice: autograd unboxes only a bare one."""
    if isinstance(index, (tuple, list)):
        return type(index)(_bare_part(part, take) for part in index)
    return _bare_part(index, take) if isinstance(index, slice) or is_constant(index) else index


def _bare_part(part: Any, take: Callable[[TracedArray], Any]) -> Any:
    if isinstance(part, TracedArray):
        return _bare_part(take(part), take)
    if isinstance(part, slice):
        return slice(*(_bare_part(bound, take) for bound in (part.start, part.stop, part.step)))
    if isinstance(part, list):
        return [_bare_part(member, take) for member in part]
    return part


def written_index(index: Any, kind: str) -> tuple[Any, bool]:
    """The bare index of a write, and whether the state decides where it goes."""
    steered = varies(index)
    if isinstance(index, TracedArray):
        return snapshot(index._leave(kind)), steered
    return _bare_index(index, lambda part: part._leave(kind)), steered


def varies(index: Any) -> bool:
    return any(True for _ in _varying(index))


def _varying(index: Any) -> Iterator[TracedArray]:
    """The traced values in an index that depend on the state."""
    if isinstance(index, slice):
        index = (index.start, index.stop, index.step)
    if isinstance(index, (tuple, list)):
        for part in index:
            yield from _varying(part)
    elif isinstance(index, TracedArray) and not is_constant(index):
        yield index


def is_constant(value: Any) -> bool:
    return isinstance(value, TracedArray) and getattr(value._node, "constant", False)


def _hash_of_number(value: Any) -> int:
    return hash(value[()] if isinstance(value, np.ndarray) else value)


def bare(value: Any, kind: str = "array") -> Any:
    """`value` with every traced array in it replaced by its bare value, each recorded as leaving."""
    if isinstance(value, TracedArray):
        return bare(snapshot(value._leave(kind)), kind)
    return mapped(value, lambda member: bare(member, kind))


def lent(value: Any, kind: str) -> Any:
    """`value` with every traced array in it replaced by its memory, writable, each recorded as leaving.

    What has no memory that may be written to is a copy that is read-only.
    """
    if isinstance(value, TracedArray):
        memory = value._memory
        if memory is None:
            return bare(value, kind)
        value._leave(kind)
        return memory.lend(value._value)
    return mapped(value, lambda member: lent(member, kind))


def mapped(value: Any, function: Callable[[Any], Any]) -> Any:
    """A tuple, list or dict with `function` applied to each member; anything else as it is."""
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(function, value))
    if type(value) in (tuple, list):
        return type(value)(map(function, value))
    if isinstance(value, dict):
        changed = copy.copy(value)
        changed.update({key: function(member) for key, member in value.items()})
        return changed
    return value


def snapshot(value: Any) -> Any:
    """A read-only copy of an array: later writes must not show in what has left the data flow."""
    return _read_only(value.copy()) if isinstance(value, np.ndarray) else value


def _read_only(value: Any) -> Any:
    view = value.view()
    view.flags.writeable = False
    return view


def boxed(value: Any, trace: int, node: Any) -> Any:
    """What autograd puts around a result; numbers that do not depend on the state stay bare."""
    if isinstance(node, DependenceNode):
        if isinstance(value, TracedArray) and is_constant(value):
            # Made inside a primitive of the program's own.
            value = np.array(value._value)
        if node.constant and not isinstance(value, (np.ndarray, TracedArray)):
            return value
    return TracedArray(value, trace, node)
