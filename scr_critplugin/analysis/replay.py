"""The plain states of a run from the last step to the first, a few of them held at a time.

May import `program`. Tests: ``tests/test_recurrence.py``, ``tests/test_gradient.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isqrt

from scr_critplugin.analysis.program import Program, State

AT_ONCE = 8
"""Of so few steps all states are held."""


def last_to_first(
    program: Program, states: tuple[State, State], steps: int
) -> Iterator[tuple[int, State, State]]:
    """Of the last of `steps` steps to the first: its number (from 1), and the states before and after it.

    `states`: the first two. Of those in between, about ``2 * sqrt(steps)`` are held: those at the start of
    each stretch, and those of the present stretch. Each step is run at most twice.
    """
    stride = steps if steps <= AT_ONCE else isqrt(steps - 1) + 1
    first_of = {0: states[0]}
    state, last = states[1], (steps - 1) // stride * stride
    for number in range(1, last + 1):
        if number % stride == 0:
            first_of[number] = state
        if number < last:
            state = program.advance(state)
    following: list[State] = []
    for first in reversed(range(0, steps, stride)):
        stretch = [first_of.pop(first)] if first else list(states)
        until = min(first + stride, steps) - len(following)
        while first + len(stretch) <= until:
            stretch.append(program.advance(stretch[-1]))
        stretch += following
        following = stretch[:1]
        while len(stretch) > 1:
            after = stretch.pop()
            yield first + len(stretch), stretch[-1], after
