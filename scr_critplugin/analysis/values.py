"""The values that recorded calls took and gave, kept for the adjoints; the dependence sweep needs none.

Programs write into arrays, so a kept array may change before the backward pass comes to it. Memory of traced
arrays tells when it is about to be written to (`Values.before_write`), and only then is what was kept of it
copied. Arrays that nobody traces can change at any time: they are copied when they are kept, once a content.

Where an adjoint looks at no value (`needs_no_values`), shape and dtype are kept as an array of one NaN.

May import NumPy, autograd's tracer and `masks`. Tests: ``tests/test_gradient.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from autograd.tracer import getval, isbox
from numpy.typing import NDArray

from scr_critplugin.analysis.masks import shape_of

_VALUE_FREE: set[Callable[..., Any]] = set()
_RESULT_FREE: set[Callable[..., Any]] = set()
_LINEAR_IN: dict[Callable[..., Any], Container[int]] = {}


def needs_no_values(*functions: Callable[..., Any]) -> None:
    """Declare that the adjoints of these look at no floating-point value, only at shapes and dtypes."""
    _VALUE_FREE.update(map(_raw, functions))
    _RESULT_FREE.update(map(_raw, functions))


def needs_no_result(*functions: Callable[..., Any]) -> None:
    """Declare that the adjoints of these do not look at the result."""
    _RESULT_FREE.update(map(_raw, functions))


def is_linear_in(positions: Container[int], *functions: Callable[..., Any]) -> None:
    """Declare that the adjoint for one of the `positions` looks at the other arguments only."""
    needs_no_result(*functions)
    _LINEAR_IN.update(dict.fromkeys(map(_raw, functions), positions))


def _raw(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function under an autograd primitive."""
    raw: Callable[..., Any] = getattr(function, "fun", function)
    return raw


class Cell:
    """A kept array; it is replaced by a copy before its memory changes."""

    __slots__ = ("array",)

    def __init__(self, array: NDArray[Any]) -> None:
        self.array = array


@dataclass(slots=True)
class Saved:
    """One call as its adjoint needs it: what was called with what, and what came of it.

    `arguments` opens it; its arrays must not be changed. `dtype` and `shape` are those of the result; the
    dtype is None for a sequence.
    """

    function: Callable[..., Any] | None
    dtype: np.dtype[Any] | None
    shape: Any
    value: Any = None
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] | None = None

    def arguments(self) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
        """Result, positional and named arguments."""
        return _opened(self.value), _opened(self.args), _opened(self.kwargs or {})


class Values:
    """Keeps the values of one recording. `memories`: those of its traced arrays, by identity of the owner."""

    def __init__(self, memories: Mapping[int, Any]) -> None:
        self._memories = memories
        self._cells: dict[int, dict[tuple[Any, ...], Cell]] = {}
        self._constants: dict[tuple[Any, ...], tuple[NDArray[Any], NDArray[Any]]] = {}
        self._own: dict[int, NDArray[Any]] = {}

    def of_root(self, value: Any) -> Saved:
        """What to keep of a state variable."""
        return Saved(None, _dtype_of(value), shape_of(value))

    def of_call(
        self,
        function: Callable[..., Any],
        value: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        argnums: tuple[int, ...],
    ) -> Saved:
        """What to keep of a call of the raw `function`, whose arguments `argnums` depend on the state."""
        free: Container[int] = range(len(args)) if function in _VALUE_FREE else ()
        if len(argnums) == 1 and argnums[0] in _LINEAR_IN.get(function, ()):
            free = argnums
        return Saved(
            function,
            _dtype_of(value),
            shape_of(getval(value)),
            _stand_in(value) if function in _RESULT_FREE else self._keep(value, is_result=True),
            tuple(
                _stand_in(arg) if i in free and _is_float(arg) else self._keep(arg)
                for i, arg in enumerate(args)
            ),
            {name: self._keep(option) for name, option in kwargs.items()},
        )

    def copies_of_shared(self, sources: Any, targets: list[NDArray[Any]]) -> list[Any]:
        """`sources`, pairs that begin with a value, with copies of arrays that lie in `targets`."""
        return [
            (self._copied(value), *rest) if _overlaps(value, targets) else (value, *rest)
            for value, *rest in sources
        ]

    def before_write(self, owner: NDArray[Any], view: NDArray[Any]) -> None:
        """Copy what was kept of `view`, a part of the array `owner` that is about to be written to."""
        cells = self._cells.get(id(owner))
        if not cells:
            return
        for key, cell in list(cells.items()):
            if np.may_share_memory(cell.array, view):
                del cells[key]
                cell.array = cell.array.copy(order="K")

    def _copied(self, array: NDArray[Any]) -> NDArray[Any]:
        copy = array.copy(order="K")
        self._own[id(copy)] = copy
        return copy

    def _keep(self, value: Any, *, is_result: bool = False) -> Any:
        if isbox(value):
            value = getval(value)
        if isinstance(value, np.ndarray):
            return self._kept_array(value, is_result)
        if isinstance(value, (list, tuple)):
            members = [self._keep(member, is_result=is_result) for member in value]
            # Of a named tuple the rules use no names.
            return members if isinstance(value, list) else tuple(members)
        if type(value) is dict:
            return {key: self._keep(member) for key, member in value.items()}
        return value

    def _kept_array(self, array: NDArray[Any], is_result: bool) -> Cell:
        if self._own.get(id(array)) is array:
            return Cell(array)
        owner = owner_of(array)
        if id(owner) not in self._memories and not (is_result and owner is array):
            return Cell(self._constant(array))
        # A new result gets its memory right after this.
        cells = self._cells.setdefault(id(owner), {})
        key = _place(array)
        cell = cells.get(key)
        if cell is None:
            cell = cells[key] = Cell(array)
        return cell

    def _constant(self, array: NDArray[Any]) -> NDArray[Any]:
        if not owner_of(array).flags.writeable:
            return array
        key = _place(array)
        known = self._constants.get(key)
        if known is None or not np.array_equal(known[1], array):
            # The original is held too, so that no other array comes to lie at its place.
            known = self._constants[key] = (array, array.copy(order="K"))
        return known[1]


def _opened(value: Any) -> Any:
    if isinstance(value, Cell):
        return value.array
    if type(value) in (list, tuple):
        return type(value)(_opened(member) for member in value)
    if isinstance(value, dict):
        return {key: _opened(member) for key, member in value.items()}
    return value


def _stand_in(value: Any) -> Any:
    if isbox(value):
        value = getval(value)
    if not isinstance(value, np.ndarray) or not _is_float(value):
        return value
    # An adjoint that looks at it after all says so by NaN, instead of being wrong unseen.
    return np.broadcast_to(np.full((), np.nan, value.dtype), value.shape)


def _dtype_of(value: Any) -> np.dtype[Any] | None:
    if isbox(value):
        value = getval(value)
    return None if isinstance(value, (list, tuple, dict)) or value is None else np.asarray(value).dtype


def _is_float(value: Any) -> bool:
    value = getval(value)
    return isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "fc"


def _overlaps(value: Any, targets: list[NDArray[Any]]) -> bool:
    return isinstance(value, np.ndarray) and any(np.may_share_memory(value, target) for target in targets)


def owner_of(array: NDArray[Any]) -> NDArray[Any]:
    """The array at the end of the chain of views that `array` is."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def _place(array: NDArray[Any]) -> tuple[Any, ...]:
    return (array.__array_interface__["data"][0], array.shape, array.strides, array.dtype.str)
