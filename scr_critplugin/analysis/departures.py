"""Places where traced values leave the data flow, and what they were there.

The values that Python takes at a place, one visit after the other, are its outcomes. They are kept as runs of
equal values, so that a loop of a million turns costs a few numbers; of long irregular sequences only the
beginning is kept, and a digest tells whether two of them are equal.

May import NumPy only. Tests: ``tests/test_control.py``.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np

_STEERING = frozenset(["bool", "int", "float", "complex", "index", "round", "text", "hash"])
_AS_NUMBERS = frozenset(["attribute item", "attribute tolist"])
_ARGUMENT = "argument of "
_OF_WRITES = ("__setitem__", ".at")


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Where a traced value left: the innermost line of the program, and what took it.

    `kind` is "bool", "int", "float", "index", "array", "argument of roll", "unknown primitive inv", ...
    """

    file: str
    line: int
    kind: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.kind}"

    @property
    def steers(self) -> bool:
        """True if the value only decides what is done: a branch, a loop, a cast, an index that is read at.

        The index of a write does not count as such: its dependence is not recorded with the write.
        """
        if self.kind.startswith(_ARGUMENT):
            return not self.kind.endswith(_OF_WRITES)
        return self.kind in _STEERING

    @property
    def decides(self) -> bool:
        """True if the program holds the value itself, and may go on otherwise in a step with another one."""
        return self.kind in _STEERING or self.kind in _AS_NUMBERS


class Outcomes:
    """The values that were taken at one place, in order."""

    __slots__ = ("_digest", "_kept", "_runs", "count")

    LONGEST = 1024
    """Number of runs of equal values that are kept."""

    def __init__(self) -> None:
        self.count = 0
        self._runs: list[tuple[Any, int]] = []
        self._kept = 0
        self._digest = 0

    def add(self, outcome: Any) -> None:
        """Append the value of one more visit."""
        value = _comparable(outcome)
        self._digest = hash((self._digest, value))
        if self._kept == self.count:
            if self._runs and self._runs[-1][0] == value:
                self._runs[-1] = (value, self._runs[-1][1] + 1)
                self._kept += 1
            elif len(self._runs) < self.LONGEST:
                self._runs.append((value, 1))
                self._kept += 1
        self.count += 1

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Outcomes):
            return NotImplemented
        return (self.count, self._digest) == (other.count, other._digest)

    __hash__ = None  # type: ignore[assignment]

    def first_difference(self, other: Outcomes) -> int | None:
        """The first visit, counted from 0, at which they differ; None if it is not among those kept."""
        visit = 0
        mine, theirs = iter(self._runs), iter(other._runs)
        left, right = next(mine, None), next(theirs, None)
        while left is not None and right is not None and left[0] == right[0]:
            common = min(left[1], right[1])
            visit += common
            left = (left[0], left[1] - common) if left[1] > common else next(mine, None)
            right = (right[0], right[1] - common) if right[1] > common else next(theirs, None)
        ends_known = visit < min(self._kept, other._kept) or visit in (self.count, other.count)
        return visit if ends_known else None

    def at(self, visit: int) -> str:
        """The value at a `visit`, in words; that there was none, if there were fewer."""
        if visit >= self.count:
            return "not reached"
        for value, count in self._runs:
            if visit < count:
                return str(value)
            visit -= count
        return "another value"


def _comparable(outcome: Any) -> bool | int | str:
    """A small stand-in that is equal if and only if the value is, bit for bit."""
    if isinstance(outcome, (bool, np.bool_)):
        return bool(outcome)
    if isinstance(outcome, (int, np.integer)):
        return int(outcome)
    if isinstance(outcome, (float, np.floating)):
        return repr(float(outcome))
    array = np.asarray(outcome)
    digest = hashlib.blake2b(array.tobytes(), digest_size=6).hexdigest()
    return f"{array.dtype}{list(array.shape)} {digest}"
