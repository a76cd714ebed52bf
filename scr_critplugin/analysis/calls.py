"""What is remembered of one call of a primitive: enough to pull masks through it, and none of its values.

Arrays are kept as `Shaped` (shape and dtype), so a tape costs little memory. Only where structure hangs on
the value of an untraced argument (an index, a constant condition) is a copy of that argument kept.

May import NumPy, autograd's tracer and `masks`. Tests: ``tests/test_dependence_rules.py``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np
from autograd.tracer import getval, isbox
from numpy.typing import NDArray

from scr_critplugin.analysis.masks import Shape, shape_of


@dataclass(frozen=True, slots=True)
class Shaped:
    """Stands for an array of which only shape and dtype matter."""

    shape: Shape
    dtype: np.dtype[Any] | None


@dataclass(slots=True, eq=False)
class Call:
    """One call: the raw function, its arguments, which of them were traced, and the result's shape.

    `args` and `kwargs` hold `Shaped` for traced arguments and for arrays whose values do not matter.
    """

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    argnums: tuple[int, ...]
    shape: Shape

    def parameter(self, name: str) -> Any:
        """Value of the function's parameter `name`, its default if it was not passed."""
        position, default = _parameters(self.function)[name]
        if name in self.kwargs:
            return self.kwargs[name]
        return self.args[position] if position < len(self.args) else default

    def has_parameter(self, name: str) -> bool:
        """True if the function has a parameter called `name`."""
        return name in _parameters(self.function)

    def shape_at(self, argnum: int) -> tuple[int, ...]:
        """Shape of a positional argument that is an array or a scalar."""
        argument = self.args[argnum]
        shape = argument.shape if isinstance(argument, Shaped) else np.shape(argument)
        return shape if isinstance(shape, tuple) else ()


class Copies:
    """Copies of arrays, one for all calls that take the same array with the same contents.

    An index that a program makes once and uses in every iteration is copied once, not in every call.
    """

    def __init__(self) -> None:
        self._made: dict[int, tuple[NDArray[Any], NDArray[Any]]] = {}

    def of(self, array: NDArray[Any]) -> NDArray[Any]:
        """A read-only copy of `array` as it is now."""
        if array.size <= _TOO_SMALL_TO_SHARE:
            return array.copy()
        original, copy = self._made.get(id(array), (None, None))
        # The original is kept too, so that its identity is not given to another array.
        if original is not array or copy is None or not np.array_equal(array, copy):
            copy = array.copy()
            copy.flags.writeable = False
            self._made[id(array)] = (array, copy)
        return copy


_TOO_SMALL_TO_SHARE = 64


def shaped(value: Any) -> Shaped:
    """The `Shaped` that stands for `value`."""
    if type(value) is np.ndarray:
        return _shaped(value.shape, value.dtype)
    return Shaped(shape_of(value), getattr(value, "dtype", None))


@lru_cache(maxsize=1024)
def _shaped(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Shaped:
    return Shaped(shape, dtype)


def remember(value: Any, copies: Copies | None) -> Any:
    """What to keep of an untraced argument: a copy if `copies` are given, else the shape of its arrays.

    Traced values inside it are kept bare: whatever the function did with them was recorded when it took them.
    """
    if type(value) in _IMMUTABLE:
        return value
    if isbox(value):
        value = getval(value)
    if isinstance(value, np.ndarray):
        return shaped(value) if copies is None else copies.of(value)
    if isinstance(value, (tuple, list)):
        return type(value)([remember(member, copies) for member in value]) if _plain(value) else shaped(value)
    return value


_IMMUTABLE = frozenset((int, float, complex, bool, str, slice, type(None), type(Ellipsis)))


def _plain(value: Any) -> bool:
    return type(value) in (tuple, list)


@cache
def _parameters(function: Callable[..., Any]) -> dict[str, tuple[int, Any]]:
    """Position and default of each parameter of `function`; empty if it has no readable signature."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return {}
    return {name: (i, p.default) for i, (name, p) in enumerate(signature.parameters.items())}
