"""Several checkpoints and several inputs: the points at which a program is profiled, and their union.

What one point needs, every restart must have: critical anywhere is critical (DESIGN section 9, "unused is not
dead"). Control flow and sinks are observed while steps are recorded, so that no tape need outlive its sweep.

May import `branches`, `counters`, `program`, `sinks`, `structure`, the map and the errors.
Tests: ``tests/test_control.py``, ``tests/test_kinds.py``.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from scr_critplugin.analysis.branches import BranchLog, Run
from scr_critplugin.analysis.counters import Turn
from scr_critplugin.analysis.program import (
    Output,
    Program,
    State,
    Step,
    TracedOutput,
    TracedStep,
    checked_state,
)
from scr_critplugin.analysis.sinks import Fed, feed
from scr_critplugin.analysis.structure import Structure
from scr_critplugin.analysis.tape import Tape
from scr_critplugin.criticality import CriticalityMap, Variable
from scr_critplugin.errors import ProfileError


@dataclass(frozen=True)
class Point:
    """Where a checkpoint is taken: after `at` steps from input number `source`."""

    source: int
    at: int


@dataclass(frozen=True)
class Seen:
    """What was recorded from a `point`.

    `holds_for`: steps, counted from 0, that have one of the `structures`; the masks hold for these in any
    order. `turn`: a step for which none stands.
    """

    point: Point
    holds_for: frozenset[int]
    structures: tuple[Structure, ...]
    turn: Turn | None

    @property
    def step(self) -> int:
        """The step of the turn, counted from the start of the input."""
        return self.point.at + (0 if self.turn is None else self.turn.step)

    def covers(self, other: Seen) -> bool:
        """Whether the masks from here hold for the other's turn, and for the steps from there to here.

        From the turn on, this point has looked ahead itself.
        """
        known = {structure.digest for structure in self.structures}
        return (
            self.point.source == other.point.source
            and other.step - self.point.at in self.holds_for
            and all(structure.digest in known for structure in other.structures)
        )


# ---- which points ----


def checked_inputs(state: Any) -> list[State]:
    """The inputs that `state` is, one mapping or a sequence of them.

    Raises
    ------
    ProfileError
        One is no state, or two differ in names, types, shapes or memory order of their variables.
    """
    if not isinstance(state, Sequence) or isinstance(state, (str, bytes)):
        return [checked_state(state)]
    if not state:
        raise ProfileError("state is an empty sequence; expected a mapping, or at least one", key="state")
    inputs = []
    for number, given in enumerate(state):
        try:
            inputs.append(checked_state(given))
        except ProfileError as error:
            raise ProfileError(f"input {number}: {error.message}", key=error.key) from error
        _refuse_other_variables(inputs[0], inputs[number], number)
    return inputs


def _refuse_other_variables(first: State, other: State, number: int) -> None:
    for name in [*first, *other]:
        if name not in first or name not in other:
            raise ProfileError(
                f"input {number if name in first else 0} has no such variable, input "
                f"{0 if name in first else number} has it. All inputs need the same variables",
                key=name,
            )
        expected, found = _kind_of(first[name]), _kind_of(other[name])
        if expected != found:
            raise ProfileError(
                f"input 0 has {expected}, input {number} has {found}; a map describes one shape and type",
                key=name,
            )


def _kind_of(value: Any) -> str:
    if not isinstance(value, np.ndarray):
        return f"a scalar of type {type(value).__name__}"
    order = " in Fortran order" if value.flags.f_contiguous and not value.flags.c_contiguous else ""
    return f"an array of dtype {value.dtype} and shape {value.shape}{order}"


def checked_steps(at: Any) -> list[int]:
    """The steps of the checkpoints, ascending; `at` is an int, a sequence of them, or None for the start.

    Raises
    ------
    ProfileError
        One is no integer, or negative; or there are none.
    """
    if at is None:
        return [0]
    given = list(at) if isinstance(at, (Sequence, np.ndarray, range)) and not isinstance(at, str) else [at]
    try:
        found = sorted({operator.index(number) for number in given})
    except TypeError as error:
        raise ProfileError(f"at is {at!r}; expected a number of steps, or several", key="at") from error
    if not found or found[0] < 0:
        raise ProfileError(f"at is {at!r}; expected a number of steps, at least 0, or several", key="at")
    return found


def points_of(
    program: Program, inputs: Sequence[State], steps: Sequence[int]
) -> Iterator[tuple[Point, State]]:
    """Every point with its state. The steps between the points of an input are run once, plainly."""
    for source, start in enumerate(inputs):
        state, reached = start, 0
        for at in steps:
            while reached < at:
                state = program.advance(state)
                reached += 1
            yield Point(source, at), state


# ---- what is seen while steps are recorded ----


@dataclass
class Observed:
    """What recorded tapes showed, all points together: sinks with what feeds them, and branches."""

    fed: Fed = field(default_factory=dict)
    branches: BranchLog = field(default_factory=BranchLog)
    primitives: int | None = None
    """Number of primitives of the first step of the first point (until that is recorded, of another)."""
    warnings: dict[str, None] = field(default_factory=dict)
    """What could not be followed, each once by place and name."""


class ObservedProgram(Program):
    """A program whose recordings are looked at as they are made.

    `steering_counts`: whether values that only steer count as outputs. `start_at` says which point the
    recordings that follow belong to.
    """

    def __init__(self, step: Step, output: Output, *, steering_counts: bool, **options: Any) -> None:
        super().__init__(step, output, **options)
        self.steering_counts = steering_counts
        self.observed = Observed()
        self._recorded = 0
        self._points = 0
        self._point = ""
        self._numbers: dict[str, set[int]] = {}

    def start_at(self, point: Point, inputs: int) -> None:
        """The recordings that follow start at `point`, of one of so many `inputs`."""
        self._points += 1
        self._point = f"at={point.at}" + (f" of input {point.source}" if inputs > 1 else "")
        self._numbers = {"step": set(), "output": set()}

    def trace_step(self, state: State, number: int | None = None, *, values: bool = False) -> TracedStep:
        """Record one step: step `number` from the point, counted from 1; by default, the next one."""
        traced = super().trace_step(state, number, values=values)
        self._observe("step", traced.tape, number)
        self._recorded += 1
        self.tell("steps recorded", self._recorded, None)
        if self.observed.primitives is None or (number == 1 and self._points == 1):
            self.observed.primitives = len(traced.tape.nodes)
        return traced

    def trace_output(self, state: State, number: int | None = None, *, values: bool = False) -> TracedOutput:
        """Record the output at `state`, which step `number` led to."""
        traced = super().trace_output(state, number, values=values)
        self._observe("output", traced.tape, number)
        return traced

    def _observe(self, phase: str, tape: Tape, number: int | None) -> None:
        tape.steering_counts = self.steering_counts
        known = self._numbers.setdefault(phase, set())
        number = len(known) + 1 if number is None else number
        if number in known:
            # Recorded again, to be swept.
            return
        known.add(number)
        words = f"step {number}" if phase == "step" else f"the output after step {number}"
        run = Run(self._points, number, f"{words} from {self._point}")
        self.observed.branches.add(phase, run, tape.outcomes)
        feed(self.observed.fed, tape)
        self.observed.warnings.update(dict.fromkeys(tape.warnings))


# ---- their union ----


def unrecorded(points: Sequence[Seen]) -> list[str]:
    """The turns for which the masks of no point hold, each once, in words."""
    at = {seen.point.at for seen in points}
    found: dict[tuple[int, int], str] = {}
    for seen in points:
        if seen.turn is not None and not any(other.covers(seen) for other in points):
            found.setdefault((seen.point.source, seen.step), _missing(seen, seen.turn, at))
    return list(found.values())


def _missing(seen: Seen, turn: Turn, at: set[int]) -> str:
    # If it is among the points already, another one does not help.
    also = "" if seen.step in at else f"profile it too (at={sorted(at | {seen.step})}), or "
    return (
        f"{turn.step} steps after the checkpoint at {seen.point.at} a counter decides otherwise than in the "
        f"recorded steps, at {', '.join(turn.places)}. The map may call uncritical what that step needs: "
        f"{also}give the number of steps from the checkpoint to the output (steps=...)"
    )


def united(maps: Sequence[Mapping[str, Variable]]) -> dict[str, Variable]:
    """Variables of several points: critical in one is critical in all, else the weakest claim."""
    described = [CriticalityMap(list(variables.values()), {}) for variables in maps]
    return dict(described[0].union(*described[1:]))
