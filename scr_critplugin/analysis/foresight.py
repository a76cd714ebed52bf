"""Whether the steps that were recorded stand for all later ones: what loop counters will decide.

A step is run in a copy of the process with its counters watched (see `counters`), which does not touch
what is recorded.

May import NumPy, `counters` and `program`. Tests: ``tests/test_counters.py``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from scr_critplugin.analysis.counters import Turn, Values, Watch
from scr_critplugin.analysis.program import Program, State

AHEAD = 10_000
"""Steps that are looked ahead in a run of any length."""

LIMIT = 60.0
"""Seconds that it may take, at least."""

PATIENCE = 20.0
"""How many times as long as one step it may take."""


def foreseen_turn(
    program: Program,
    states: tuple[State, State],
    steps: int | None,
    recorded: int,
    period: int,
    *,
    with_output: bool,
    seconds: float,
) -> tuple[Turn | None, str | None]:
    """The first of the steps that may differ from the `recorded` ones, and why that cannot be told, in words.

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
        return None, None
    if program.uncalled is None:
        return None, "this process cannot be copied"
    ahead = AHEAD if steps is None else steps
    question = (turn_in, states, names, ahead, recorded, period, with_output)
    answer = program.uncalled.answer(question, max(LIMIT, PATIENCE * seconds), apart=True)
    return (answer.result, None) if answer.kind == "done" else (None, answer.words)


def turn_in(
    program: Program,
    states: tuple[State, State],
    names: list[str],
    ahead: int,
    recorded: int,
    period: int,
    with_output: bool,
) -> Turn | None:
    """The work in the copy: run the second step with its counters `names` watched."""
    first, second = ({name: int(state[name]) for name in names} for state in states)
    watch = Watch()
    watched = {name: watch.counter(name, value) for name, value in second.items()}
    after = program.advance({**states[1], **watched})
    change = {name: int(after[name]) - second[name] for name in names}
    if with_output:
        # It sees the counters after the step.
        program.outputs({**after, **{name: watched[name] + change[name] for name in names}})
    return watch.turn(_values(first, second, change, ahead), recorded, period)


def _values(first: dict[str, int], second: dict[str, int], change: dict[str, int], ahead: int) -> Values:
    """Values in the steps to come of the counters that go on evenly."""
    return {
        name: value + change[name] * np.arange(ahead)
        for name, value in first.items()
        if second[name] - value == change[name]
    }


def _is_counter(before: Any, after: Any) -> bool:
    integers = (int, np.integer)
    both = isinstance(before, integers) and isinstance(after, integers)
    return both and not isinstance(before, bool) and int(before) != int(after)
