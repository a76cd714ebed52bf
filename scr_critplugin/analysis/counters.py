"""Loop counters that watch what is decided by them, and from which step on it is decided otherwise.

A counter is an integer of the state that is not traced. If a step compares it (``if it % 10 == 0``), the
steps that were recorded may not stand for all later ones. A `WatchedCounter` is an integer that remembers how
it was computed, so that every comparison can be decided again for the counter's later values.

Small remainders count as comparisons, because what they are used for (an index into a list) is not seen.
Not seen either: counters made floating-point numbers or arrays before they are compared, and keys of dicts.
What is indexed by a counter, or called as often as it says, shows in the structure of the steps themselves.

Imports NumPy only. Tests: ``tests/test_counters.py``.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Values: TypeAlias = Mapping[str, Any]
"""Counters by name; arrays of their values in successive steps."""

Expression: TypeAlias = Callable[[Values], Any]

DEEPEST = 64
"""Operations that a counter is followed through."""

SMALL = 8
"""Largest divisor whose remainders count as comparisons."""

MOST = 1000
"""Comparisons that are remembered."""


@dataclass(frozen=True)
class Turn:
    """`step`: the first one (from 0) that counters may send another way than those that were recorded.

    `places`: where they decide so, as ``file:line``.
    """

    step: int
    places: tuple[str, ...]


class Watch:
    """The comparisons that counters took part in."""

    def __init__(self) -> None:
        self._comparisons: list[tuple[str, Expression]] = []

    def counter(self, name: str, value: int) -> WatchedCounter:
        """A watched integer for the counter `name`."""
        return WatchedCounter(value, lambda values: values[name], 0, self)

    def note(self, outcome: Expression) -> None:
        """Remember a comparison of the innermost caller outside of this module."""
        frame = sys._getframe(1)
        while frame.f_back is not None and frame.f_globals.get("__name__") == __name__:
            frame = frame.f_back
        if len(self._comparisons) < MOST:
            self._comparisons.append((f"{frame.f_code.co_filename}:{frame.f_lineno}", outcome))

    def turn(self, values: Values, recorded: int, period: int) -> Turn | None:
        """The first step that is decided otherwise than each of the `recorded` ones it is to be like.

        Parameters
        ----------
        values : mapping of str to array of int
            Values of each counter step by step. A counter without values cannot be foreseen.
        recorded, period : int
            Number of steps recorded, and after how many they were found to repeat.
        """
        places: list[str] = []
        outcomes: list[NDArray[Any]] = []
        for place, outcome in self._comparisons:
            decided = _outcomes(outcome, values)
            if decided is None:
                return Turn(recorded, (place,))
            if decided.ndim == 1:
                places.append(place)
                outcomes.append(decided)
        if not outcomes:
            return None
        table = np.stack(outcomes)
        number = np.arange(table.shape[1])
        is_like = np.zeros(table.shape[1], dtype=bool)
        for seen in range(recorded):
            is_like |= ((number - seen) % period == 0) & (table == table[:, [seen]]).all(axis=0)
        if is_like.all():
            return None
        step = int(np.argmin(is_like))
        like = table[:, step % period]
        return Turn(
            step,
            tuple(dict.fromkeys(p for p, row, w in zip(places, table, like, strict=True) if row[step] != w)),
        )


def _outcomes(outcome: Expression, values: Values) -> NDArray[Any] | None:
    """Outcomes step by step; None if they cannot be foreseen."""
    try:
        with np.errstate(all="ignore"):
            return np.asarray(outcome(values))
    except (KeyError, ArithmeticError, ValueError, TypeError):
        return None


class WatchedCounter(int):
    """An integer that tells its `watch` when it is compared or tested."""

    expression: Expression
    depth: int
    watch: Watch

    def __new__(cls, value: int, expression: Expression, depth: int, watch: Watch) -> WatchedCounter:
        """An integer of this `value`, which is `expression` of the counters."""
        self = super().__new__(cls, value)
        self.expression, self.depth, self.watch = expression, depth, watch
        return self

    def __bool__(self) -> bool:
        self.watch.note(lambda values: self.expression(values) != 0)
        return int.__bool__(self)

    __hash__ = int.__hash__

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        """In an array it is an ordinary integer."""
        return getattr(ufunc, method)(*(_bare(value) for value in inputs), **options)


def _bare(value: Any) -> Any:
    return int(value) if isinstance(value, WatchedCounter) else value


def _expression_of(value: Any) -> Expression:
    return value.expression if isinstance(value, WatchedCounter) else lambda values: value


def _computed(function: Callable[[Any, Any], Any], left: Any, right: Any, watch: Watch) -> Any:
    """``function(left, right)``, watched if it is an integer."""
    result = function(_bare(left), _bare(right))
    depth = 1 + max(getattr(left, "depth", 0), getattr(right, "depth", 0))
    if type(result) is not int or depth > DEEPEST:
        return result
    one, other = _expression_of(left), _expression_of(right)

    def expression(values: Values) -> Any:
        return function(one(values), other(values))

    if _bare(right) <= _SMALL_REMAINDERS.get(function, 0):
        watch.note(expression)
    return WatchedCounter(result, expression, depth, watch)


_SMALL_REMAINDERS = {operator.mod: SMALL, operator.and_: SMALL - 1}
"""Functions that give remainders, and the largest second argument by which they are small."""


def _arithmetic(
    function: Callable[[Any, Any], Any],
) -> tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]:
    def forward(self: WatchedCounter, other: Any) -> Any:
        return _computed(function, self, other, self.watch) if isinstance(other, int) else NotImplemented

    def reflected(self: WatchedCounter, other: Any) -> Any:
        return _computed(function, other, self, self.watch) if isinstance(other, int) else NotImplemented

    return forward, reflected


def _comparison(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def compare(self: WatchedCounter, other: Any) -> Any:
        if not isinstance(other, (int, float)):
            return NotImplemented
        expression = _expression_of(other)
        self.watch.note(lambda values: function(self.expression(values), expression(values)))
        return function(int(self), _bare(other))

    return compare


for _name in ("add", "sub", "mul", "floordiv", "mod", "and_", "or_", "xor", "lshift", "rshift"):
    _forward, _reflected = _arithmetic(getattr(operator, _name))
    setattr(WatchedCounter, f"__{_name.strip('_')}__", _forward)
    setattr(WatchedCounter, f"__r{_name.strip('_')}__", _reflected)
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(WatchedCounter, f"__{_name}__", _comparison(getattr(operator, _name)))
