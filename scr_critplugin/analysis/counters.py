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

Forecast: TypeAlias = "Callable[[NDArray[np.int64]], Values]"

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
    """The comparisons that counters took part in; if not `complete`, there were more than are remembered."""

    def __init__(self) -> None:
        self._comparisons: list[tuple[str, Expression]] = []
        self.complete = True

    def counter(self, name: str, value: int) -> WatchedCounter:
        """A watched integer for the counter `name`."""
        return WatchedCounter(value, lambda values: values[name], 0, self)

    def note(self, outcome: Expression) -> None:
        """Remember a comparison of the innermost caller outside of this module."""
        if len(self._comparisons) == MOST:
            self.complete = False
            return
        frame = sys._getframe(1)
        while frame.f_back is not None and frame.f_globals.get("__name__") == __name__:
            frame = frame.f_back
        self._comparisons.append((f"{frame.f_code.co_filename}:{frame.f_lineno}", outcome))

    def turn(self, values: Forecast, ahead: int, recorded: int, period: int) -> Turn | None:
        """The first step that is decided otherwise than each of the `recorded` ones it is to be like.

        Parameters
        ----------
        values : callable
            Given the numbers of steps, returns the values of each counter in them. A counter without values
            cannot be foreseen.
        ahead : int
            Number of steps to look at.
        recorded, period : int
            Number of steps recorded, and after how many they were found to repeat.
        """
        seen = self._decisions(values, np.arange(recorded))
        if isinstance(seen, str):
            return Turn(recorded, (seen,))
        for start in range(0, ahead, _AT_ONCE):
            numbers = np.arange(start, min(ahead, start + _AT_ONCE))
            decisions = self._decisions(values, numbers)
            if isinstance(decisions, str):
                return Turn(max(start, recorded), (decisions,))
            is_like = np.zeros(len(numbers), dtype=bool)
            for number in range(recorded):
                equal = (decisions == seen[:, [number]]).all(axis=0)
                is_like |= equal & ((numbers - number) % period == 0)
            if not is_like.all():
                place = int(np.argmin(is_like))
                step = int(numbers[place])
                return Turn(step, self._places(decisions[:, place] != seen[:, step % period]))
        return None

    def alike(self, values: Forecast, step: int, numbers: NDArray[np.int64]) -> NDArray[np.bool_] | str:
        """Which of the steps `numbers` every comparison decides as in `step`; a place, if one is not known.

        In a watch of `step` itself these are the steps that take the same path.
        """
        expected = self._decisions(values, np.array([step]))
        found = self._decisions(values, numbers)
        if isinstance(expected, str) or isinstance(found, str):
            return expected if isinstance(expected, str) else str(found)
        is_alike: NDArray[np.bool_] = (found == expected).all(axis=0)
        return is_alike

    def places_of(self, values: Forecast, step: int, other: int) -> tuple[str, ...]:
        """Where two steps are decided differently."""
        decisions = self._decisions(values, np.array([step, other]))
        if isinstance(decisions, str):
            return (decisions,)
        return self._places(decisions[:, 0] != decisions[:, 1])

    def _decisions(self, values: Forecast, numbers: NDArray[np.int64]) -> NDArray[Any] | str:
        """Outcomes, a row for each comparison and a column for each step; or where one is not known."""
        known, rows = values(numbers), []
        for place, outcome in self._comparisons:
            try:
                with np.errstate(all="ignore"):
                    rows.append(np.broadcast_to(outcome(known), numbers.shape))
            except (KeyError, ArithmeticError, ValueError, TypeError):
                return place
        return np.array(rows).reshape(len(rows), len(numbers))

    def _places(self, chosen: NDArray[np.bool_]) -> tuple[str, ...]:
        """Places of the comparisons that are `chosen`, each once."""
        places = (place for (place, _), is_chosen in zip(self._comparisons, chosen, strict=True) if is_chosen)
        return tuple(dict.fromkeys(places))


_AT_ONCE = 10_000
"""Steps whose decisions are worked out together."""


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

    if function in _SMALL_REMAINDERS and _bare(right) <= _SMALL_REMAINDERS[function]:
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


def _unary(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def compute(self: WatchedCounter) -> Any:
        return _computed(lambda value, _: function(value), self, 0, self.watch)

    return compute


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
for _name in ("neg", "pos", "abs", "invert"):
    setattr(WatchedCounter, f"__{_name}__", _unary(getattr(operator, _name)))
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(WatchedCounter, f"__{_name}__", _comparison(getattr(operator, _name)))
