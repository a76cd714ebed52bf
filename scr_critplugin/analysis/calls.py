"""What is remembered of one call of a primitive: enough to pull masks through it, and none of its values.

Arrays are kept as `Shaped` (shape and dtype), so a tape costs little memory. Only where structure hangs on
the value of an untraced argument (an index, a constant condition) is a copy of that argument kept.

May import NumPy, autograd's tracer and `masks`. Tests: ``tests/test_dependence_rules.py``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from autograd.tracer import getval, isbox

from scr_critplugin.analysis.masks import Shape, shape_of


@dataclass(frozen=True, slots=True)
class Shaped:
    """Stands for an array of which only shape and dtype matter."""

    shape: Shape
    dtype: np.dtype[Any] | None


@dataclass(frozen=True, slots=True)
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


def shaped(value: Any) -> Shaped:
    """The `Shaped` that stands for `value`."""
    return Shaped(shape_of(value), getattr(value, "dtype", None))


def remember(value: Any, *, values: bool) -> Any:
    """What to keep of an untraced argument: a copy if its `values` matter, else the shape of its arrays.

    Traced values inside it are kept bare: whatever the function did with them was recorded when it took them.
    """
    if isbox(value):
        value = getval(value)
    if isinstance(value, np.ndarray):
        return value.copy() if values else shaped(value)
    if isinstance(value, (tuple, list)):
        return (
            type(value)(remember(member, values=values) for member in value)
            if _plain(value)
            else shaped(value)
        )
    return value


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
