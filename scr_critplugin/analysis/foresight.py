"""Whether the steps that were recorded stand for all later ones: what loop counters will decide.

A step is run in a copy of the process with its counters watched (see `counters`), which does not touch
what is recorded.

May import NumPy, `counters`, `paths`, `period` and `program`. Tests: ``tests/test_counters.py``.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scr_critplugin.analysis.counters import MOST, Turn, Values, Watch
from scr_critplugin.analysis.paths import Paths, paths_ahead
from scr_critplugin.analysis.period import LONGEST_PERIOD
from scr_critplugin.analysis.program import Program, State

NEAR = 2 * LONGEST_PERIOD
"""Steps that are recorded if a counter decides otherwise in them."""

AHEAD = 10_000
"""Steps that are looked ahead in a run of any length."""

FARTHEST = 1_000_000
"""The same at most, in a run of known length."""

LIMIT = 60.0
"""Seconds that it may take, at least."""

PATIENCE = 20.0
"""How many times as long as one step it may take."""


@dataclass(frozen=True)
class Foresight:
    """What is known of the steps after the recorded ones.

    Attributes
    ----------
    enough : int
        Number of steps to record so that each of the first `NEAR` is like one of them.
    turn : Turn or None
        The first step, at `NEAR` or later, that may differ from all of those.
    unknown : str or None
        Why nothing is known, in words.
    paths : Paths or None
        The paths that steps will take, if that can be foreseen.
    """

    enough: int
    turn: Turn | None = None
    unknown: str | None = None
    paths: Paths | None = None

    @property
    def next_turn(self) -> Turn | None:
        """The first step that may differ from the recorded ones, if not all go on like those."""
        if self.turn is not None or self.paths is None:
            return self.turn
        later = [Turn(path.step, path.places) for path in self.paths.taken if path.step >= self.enough]
        if later:
            return later[0]
        return self.paths.turn or Turn(self.enough, self.paths.taken[-1].places)

    def goes_on(self, digests: Sequence[bytes]) -> bool:
        """Whether later steps go on with the period, as far as is known.

        `digests`: of the structures of the recorded steps, which repeat.
        """
        if self.turn is not None:
            return False
        if self.paths is None:
            return True
        return self.paths.turn is None and all(
            path.step < len(digests) and len({digests[phase] for phase in path.phases}) == 1
            for path in self.paths.taken
        )


def foresee(
    program: Program,
    states: tuple[State, State],
    steps: int | None,
    recorded: int,
    period: int | None,
    *,
    with_output: bool,
    seconds: float,
) -> Foresight:
    """Whether the recorded steps stand for all later ones, as far as counters decide.

    Parameters
    ----------
    states : tuple
        The first state and the second.
    steps : int or None
        How many steps there are; None: any number.
    recorded : int
        Number of steps that were recorded.
    period : int or None
        After how many they were found to repeat, if they were. Without, only paths are foreseen.
    with_output : bool
        Whether the output can be run plainly.
    seconds : float
        Time that a step takes.
    """
    names = [name for name in states[0] if _is_counter(states[0][name], states[1][name])]
    if not names:
        return Foresight(recorded)
    if program.uncalled is None:
        return Foresight(recorded, unknown="this process cannot be copied")
    ahead = AHEAD if steps is None else min(steps, FARTHEST)
    limit = max(LIMIT, PATIENCE * seconds)
    question = (foreseen, states, names, ahead, recorded, period, with_output, limit / 2)
    answer = program.uncalled.answer(question, limit, apart=True)
    if answer.kind != "done":
        return Foresight(recorded, unknown=answer.words)
    found: Foresight = answer.result
    return found


def foreseen(
    program: Program,
    states: tuple[State, State],
    names: list[str],
    ahead: int,
    recorded: int,
    period: int | None,
    with_output: bool,
    limit: float,
) -> Foresight:
    """The work in the copy: run steps with the counters `names` watched, at first the second step.

    After `limit` seconds no further path is followed.
    """
    clock = time.perf_counter()
    first, second = ({name: int(state[name]) for name in names} for state in states)

    def watched_run(values: dict[str, int]) -> tuple[Watch, State]:
        watch = Watch()
        watched = {name: watch.counter(name, value) for name, value in values.items()}
        after = program.advance({**states[1], **watched})
        if with_output:
            # It sees the counters after the step.
            gone_on = {name: watched[name] + (int(after[name]) - values[name]) for name in names}
            program.outputs({**after, **gone_on})
        return watch, after

    watch, after = watched_run(second)
    if not watch.complete:
        return Foresight(recorded, unknown=f"a step compares counters more than {MOST} times")
    change = {name: int(after[name]) - second[name] for name in names}
    # Counters that go on evenly.
    even = [name for name in names if second[name] - first[name] == change[name]]

    def values(numbers: NDArray[np.int64]) -> Values:
        return {name: first[name] + change[name] * numbers for name in even}

    def watch_of(number: int) -> Watch:
        moved = {name: first[name] + change[name] * number for name in even}
        return watched_run({**second, **moved})[0]

    enough, turn = recorded, None
    if period is not None:
        turn = watch.turn(values, ahead, enough, period)
        while turn is not None and turn.step < NEAR:
            enough = turn.step + 1
            turn = watch.turn(values, ahead, enough, period)
    evenly = {name: change[name] for name in even}
    paths = paths_ahead(
        watch,
        watch_of,
        values,
        ahead,
        recorded,
        period or 1,
        evenly,
        lambda: time.perf_counter() - clock > limit,
    )
    return Foresight(enough, turn, paths=paths)


def _is_counter(before: Any, after: Any) -> bool:
    return _is_integer(before) and _is_integer(after) and int(before) != int(after)


def _is_integer(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return value.ndim == 0 and value.dtype.kind in "iu"
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)
