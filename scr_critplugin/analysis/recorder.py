"""One recorded step of a program, checked: the traced run is the plain one, and nothing is shared.

May import `blocks`, `program`, `structure`, `tape` and the errors. Tests: ``tests/test_recurrence.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from scr_critplugin.analysis.blocks import blocks, largest_finite
from scr_critplugin.analysis.program import Program, State, TracedOutput, TracedStep, is_traceable
from scr_critplugin.analysis.structure import Structure, structure_of
from scr_critplugin.analysis.tape import Tape
from scr_critplugin.errors import ProfileError


@dataclass(frozen=True)
class Recorded:
    """A recorded step, and the output after it."""

    step: TracedStep
    output: TracedOutput

    def tapes(self) -> tuple[Tape, Tape]:
        """Both recordings."""
        return self.step.tape, self.output.tape

    def structure(self) -> Structure:
        """What it has in common with other steps, or not."""
        return structure_of(self.step.tape, self.step.nodes, self.output.tape, self.output.nodes)

    def forget(self) -> None:
        """Let go of the tapes' contents: they refer to themselves, and would wait for the collector."""
        for tape in self.tapes():
            tape.nodes.clear()
            tape.roots.clear()
            tape.kept.clear()


class Recorder:
    """Records steps of a program and checks them; what it saw is in its attributes.

    Attributes
    ----------
    sinks : set
        Places where values left the data flow.
    counters : set of str
        Variables that are not traced and change from one step to the next.
    """

    def __init__(self, program: Program, start: State, *, with_plain_output: bool) -> None:
        self._program = program
        self._with_plain_output = with_plain_output
        self.sinks: set[Any] = set()
        self.counters: set[str] = set()
        self._written: set[str] = set()
        self._sharing = set(_sharing(start))

    def record(self, number: int, before: State, after: State) -> Recorded:
        """Record step `number`, from `before` to `after` by the plain run, and the output after it."""
        if self._with_plain_output and number > 1:
            # What the program computes once and keeps must be ordinary arrays. (Of step 1 it has been run.)
            self._program.outputs(after)
        traced = self._program.trace_step(before, number=number)
        _refuse_other_results(after, traced)
        self.counters |= _counters(before, after)
        self._refuse_shared_memory(traced)
        traced.let_go()
        output = self._program.trace_output(after, number=number)
        output.let_go()
        recorded = Recorded(traced, output)
        self.sinks |= {sink for tape in recorded.tapes() for _, sink in tape.sinks}
        return recorded

    def _refuse_shared_memory(self, traced: TracedStep) -> None:
        """Raise if a write to one state variable would, in the run, change another.

        A restart gives each variable memory of its own, so a program that relies on it cannot be restarted.
        """
        self._written |= traced.written
        self._sharing |= set(_sharing(traced.values))
        for one, other in sorted(self._sharing):
            if {one, other} & self._written:
                raise ProfileError(
                    f"{one!r} and {other!r} share memory, and the step writes to it in place: after a "
                    "restart they would not. Let the step copy one of them",
                    key=one,
                )


# ---- checks of one step ----


def _refuse_other_results(plain: State, traced: TracedStep) -> None:
    """Raise if the traced step computed something else than the `plain` one."""
    for name, value in plain.items():
        if not _close(value, traced.values[name]):
            raise ProfileError(
                "the step computes something else when it is traced. It keeps something outside the state, "
                "or draws random numbers from outside the state",
                key=name,
            )


def _close(one: Any, other: Any) -> bool:
    left, right = np.asarray(one), np.asarray(other)
    if left.dtype.kind not in "fc" or right.dtype.kind not in "fc":
        return bool(np.array_equal(left, right))
    if left.shape != right.shape:
        return False
    if all(map(np.array_equal, blocks(left), blocks(right))):
        return True
    # Python's arithmetic on numbers and NumPy's may round differently.
    allowed = {"rtol": 1e-9, "atol": 1e-12 * largest_finite(left)}
    parts = zip(blocks(left), blocks(right), strict=True)
    return all(np.allclose(one, other, **allowed, equal_nan=True) for one, other in parts)


def _sharing(values: State) -> Iterator[tuple[str, str]]:
    """Pairs of variables whose arrays share memory."""
    arrays = {name: value for name, value in values.items() if isinstance(value, np.ndarray)}
    for one, other in combinations(arrays, 2):
        if np.may_share_memory(arrays[one], arrays[other]):
            yield one, other


def _counters(before: State, after: State) -> set[str]:
    """Variables that are not traced and that the step changed."""
    return {
        name
        for name, value in before.items()
        if not is_traceable(value) and not np.array_equal(np.asarray(value), np.asarray(after[name]))
    }
