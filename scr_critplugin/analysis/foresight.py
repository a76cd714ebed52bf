"""Whether the steps that were recorded stand for all later ones: what loop counters will decide.

A step is run in a copy of the process with its counters watched (see `counters`), which does not touch
what is recorded.

May import NumPy, `counters`, `period` and `program`. Tests: ``tests/test_counters.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scr_critplugin.analysis.counters import Turn, Values, Watch
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
    """

    enough: int
    turn: Turn | None = None
    unknown: str | None = None


def foresee(
    program: Program,
    states: tuple[State, State],
    steps: int | None,
    recorded: int,
    period: int,
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
    recorded, period : int
        Number of steps that were recorded, and after how many they were found to repeat.
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
    question = (foreseen, states, names, ahead, recorded, period, with_output)
    answer = program.uncalled.answer(question, max(LIMIT, PATIENCE * seconds), apart=True)
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
    period: int,
    with_output: bool,
) -> Foresight:
    """The work in the copy: run the second step with its counters `names` watched."""
    first, second = ({name: int(state[name]) for name in names} for state in states)
    watch = Watch()
    watched = {name: watch.counter(name, value) for name, value in second.items()}
    after = program.advance({**states[1], **watched})
    change = {name: int(after[name]) - second[name] for name in names}
    if with_output:
        # It sees the counters after the step.
        program.outputs({**after, **{name: watched[name] + change[name] for name in names}})
    # Counters that go on evenly.
    even = [name for name in names if second[name] - first[name] == change[name]]

    def values(numbers: NDArray[np.int64]) -> Values:
        return {name: first[name] + change[name] * numbers for name in even}

    enough = recorded
    turn = watch.turn(values, ahead, enough, period)
    while turn is not None and turn.step < NEAR:
        enough = turn.step + 1
        turn = watch.turn(values, ahead, enough, period)
    return Foresight(enough, turn)


def _is_counter(before: Any, after: Any) -> bool:
    integers = (int, np.integer)
    both = isinstance(before, integers) and isinstance(after, integers)
    return both and not isinstance(before, bool) and int(before) != int(after)
