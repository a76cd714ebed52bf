"""Branches whose outcome differs between recorded runs.

The first recorded step is what the others are compared with, place by place; so is the first output. Nothing
but these two and the differences found is kept.

May import `departures`. Tests: ``tests/test_control.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from scr_critplugin.analysis.departures import Outcomes, Place


@dataclass(frozen=True, order=True)
class Branch:
    """A place where two recorded runs went on differently.

    The map holds what depends on the sides that were taken in the recorded runs, not what any other side
    would depend on.

    Attributes
    ----------
    file, line : str, int
        Innermost line of the program's own code.
    kind : str
        What took the value: "bool", "int", "round", "index" (inside a tuple or slice, too), "hash", or
        "attribute item" of an integer or truth value.
    runs : tuple of two str
        The two runs, in words: the step or output, the step of the checkpoint, and the input.
    outcomes : tuple of two str
        What the value was in either, at the first visit of the line at which it differs.
    visit : int or None
        That visit, counted from 1; None if it comes after those that are kept.
    visits : tuple of two int
        How often either run came to the line.
    """

    file: str
    line: int
    kind: str
    runs: tuple[str, str]
    outcomes: tuple[str, str]
    visit: int | None
    visits: tuple[int, int]

    def __str__(self) -> str:
        one, other = (f"{outcome} in {run}" for outcome, run in zip(self.outcomes, self.runs, strict=True))
        when = "late" if self.visit is None else f"at visit {self.visit}"
        counts = (
            "" if self.visits[0] == self.visits[1] else f" (visits: {self.visits[0]} and {self.visits[1]})"
        )
        return f"{self.file}:{self.line}: {self.kind} differs {when}: {one}, {other}{counts}"


@dataclass
class BranchLog:
    """Compares runs as they are recorded."""

    _first: dict[str, tuple[str, Mapping[Place, Outcomes]]] = field(default_factory=dict)
    _found: dict[Place, Branch] = field(default_factory=dict)

    def add(self, phase: str, run: str, outcomes: Mapping[Place, Outcomes]) -> None:
        """One more run of a `phase` ("step" or "output"), called `run` in words."""
        if phase not in self._first:
            self._first[phase] = (run, outcomes)
            return
        reference, expected = self._first[phase]
        for place in {**expected, **outcomes}:
            one, other = expected.get(place, Outcomes()), outcomes.get(place, Outcomes())
            if place not in self._found and one != other:
                self._found[place] = _difference(place, (reference, run), one, other)

    def branches(self) -> tuple[Branch, ...]:
        """The places that differ, each with the first two runs in which it did."""
        return tuple(self._found[place] for place in sorted(self._found))


def _difference(place: Place, runs: tuple[str, str], one: Outcomes, other: Outcomes) -> Branch:
    visit = one.first_difference(other)
    if visit is None:
        words, number = ("one value", "another"), None
    else:
        words, number = (one.at(visit), other.at(visit)), visit + 1
    return Branch(place.file, place.line, place.kind, runs, words, number, (one.count, other.count))
