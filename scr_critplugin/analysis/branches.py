"""Branches whose outcome differs between recorded runs.

Of every place two runs are kept: the earliest, and the earliest that differs from it. Runs may come in any
order, for steps are recorded from the last to the first where their structure does not repeat.

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


@dataclass(frozen=True, order=True)
class Run:
    """A recorded step or output, in the order of the points and of the steps from each; and in words."""

    point: int
    number: int
    words: str = field(compare=False)


@dataclass
class BranchLog:
    """Compares runs of the step with each other, and runs of the output."""

    _first: dict[str, Run] = field(default_factory=dict)
    _seen: dict[tuple[str, Place], _Seen] = field(default_factory=dict)

    def add(self, phase: str, run: Run, outcomes: Mapping[Place, Outcomes]) -> None:
        """One more run of a `phase` ("step" or "output")."""
        first = self._first.get(phase)
        for place, found in outcomes.items():
            if (phase, place) not in self._seen:
                # No run before this one came to it.
                self._seen[phase, place] = _Seen(run, found) if first is None else _Seen(first, Outcomes())
        for (of_phase, place), seen in self._seen.items():
            if of_phase == phase:
                seen.add(run, outcomes.get(place, Outcomes()))
        self._first[phase] = run if first is None else min(first, run)

    def branches(self) -> tuple[Branch, ...]:
        """The places that differ, each with the two earliest runs that differ there."""
        found = [seen.branch(place) for (_, place), seen in self._seen.items()]
        return tuple(sorted(branch for branch in found if branch is not None))


class _Seen:
    """The outcomes at a place in the earliest run, and in the earliest that differs from it."""

    def __init__(self, run: Run, outcomes: Outcomes) -> None:
        self._first = (run, outcomes)
        self._other: tuple[Run, Outcomes] | None = None

    def add(self, run: Run, outcomes: Outcomes) -> None:
        first, expected = self._first
        if run < first:
            if outcomes != expected:
                self._other = self._first
            self._first = (run, outcomes)
        elif outcomes != expected and (self._other is None or run < self._other[0]):
            self._other = (run, outcomes)

    def branch(self, place: Place) -> Branch | None:
        if self._other is None:
            return None
        (first, one), (second, other) = self._first, self._other
        return _difference(place, (first.words, second.words), one, other)


def _difference(place: Place, runs: tuple[str, str], one: Outcomes, other: Outcomes) -> Branch:
    visit = one.first_difference(other)
    if visit is None:
        words, number = ("one value", "another"), None
    else:
        words, number = (one.at(visit), other.at(visit)), visit + 1
    return Branch(place.file, place.line, place.kind, runs, words, number, (one.count, other.count))
