"""Python integers of the state, as a step sees them while it is traced: numbers that tell where they decide.

Loops, keys and text need plain integers, so these are not traced as arrays are; they are always critical. But
a branch on one (``if it % 10 == 0``) goes one way in the recorded steps and may go another way later, where
the map would no longer hold. Comparisons and truth values of such numbers are therefore reported, with their
outcome. What NumPy or C takes from them (an index, a shape, a bound of ``range``) is not seen here; it shows
in the structure of the step if it changes.

May import NumPy only. Tests: ``tests/test_counters.py``.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

Note: TypeAlias = Callable[[bool], None]
"""Called with the outcome of each decision."""


class _Counting:
    """What the integers and the real numbers made of them share."""

    _note: Note

    def __bool__(self) -> bool:
        return _decided(self._note, bool(_plain(self)))

    # NumPy gives numbers of Python's own types, and only these, the dtype of the arrays they meet.

    def __array_ufunc__(self, ufunc: Callable[..., Any], method: str, *inputs: Any, **options: Any) -> Any:
        result = getattr(ufunc, method)(*map(uncounted, inputs), **options)
        if isinstance(result, np.bool_):
            self._note(bool(result))
        return result

    def __array_function__(
        self, function: Callable[..., Any], types: Any, args: tuple[Any, ...], options: dict[str, Any]
    ) -> Any:
        return function(*map(_uncounted_nest, args), **{k: _uncounted_nest(v) for k, v in options.items()})


class CountingInt(_Counting, int):
    """An integer of the state, or computed from one."""


class CountingFloat(_Counting, float):
    """A real number computed from an integer of the state."""


def counting(value: int | float, note: Note) -> Any:
    """`value` as a number that calls `note` when it decides something; other things as they are."""
    kind = {int: CountingInt, float: CountingFloat}.get(type(value))
    if kind is None:
        return value
    number = kind(value)
    number._note = note
    return number


def uncounted(value: Any) -> Any:
    """`value` as an ordinary number, if it is one of these."""
    return _plain(value) if isinstance(value, _Counting) else value


def _uncounted_nest(value: Any) -> Any:
    if type(value) in (list, tuple):
        return type(value)(map(_uncounted_nest, value))
    return uncounted(value)


def _plain(value: Any) -> Any:
    if isinstance(value, CountingInt):
        return int.__int__(value)
    return float.__float__(value) if isinstance(value, CountingFloat) else value


def _decided(note: Note, outcome: bool) -> bool:
    note(outcome)
    return outcome


def _computing(function: Callable[..., Any], *, reflected: bool = False) -> Callable[..., Any]:
    def compute(self: Any, *others: Any) -> Any:
        if any(not isinstance(other, (int, float)) for other in others):
            return NotImplemented
        plain = [_plain(self), *map(_plain, others)]
        result = function(*(reversed(plain) if reflected else plain))
        if isinstance(result, tuple):
            return tuple(counting(part, self._note) for part in result)
        return counting(result, self._note)

    return compute


def _comparing(function: Callable[[Any, Any], bool]) -> Callable[[Any, Any], Any]:
    def compare(self: Any, other: Any) -> Any:
        if not isinstance(other, (int, float)):
            return NotImplemented
        return _decided(self._note, function(_plain(self), _plain(other)))

    return compare


def _complete(kind: type) -> None:
    """Give `kind` the operators of the numbers that it extends."""
    for name in _BINARY.split():
        if hasattr(kind, f"__{name}__"):
            function = divmod if name == "divmod" else getattr(operator, f"__{name}__")
            setattr(kind, f"__{name}__", _computing(function))
            setattr(kind, f"__r{name}__", _computing(function, reflected=True))
    for name in _UNARY.split():
        if hasattr(kind, f"__{name}__") and not (kind is CountingInt and name in _ROUNDING.split()):
            setattr(kind, f"__{name}__", _computing(getattr(kind.__mro__[2], f"__{name}__")))
    for name in _COMPARING.split():
        setattr(kind, f"__{name}__", _comparing(getattr(operator, f"__{name}__")))
    # Defining __eq__ takes away the hash, and these are used as keys.
    setattr(kind, "__hash__", kind.__mro__[2].__hash__)  # noqa: B010


_BINARY = "add sub mul truediv floordiv mod divmod pow lshift rshift and or xor"
_ROUNDING = "round floor ceil"
_UNARY = f"neg pos abs invert {_ROUNDING}"
_COMPARING = "lt le eq ne gt ge"
_complete(CountingInt)
_complete(CountingFloat)
