"""Recorded steps of a program, checked: the traced run is the plain one, and how its structure goes on.

May import `program`, `structure`, `tape` and the errors. Tests: ``tests/test_dependence.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from scr_critplugin.analysis.program import Program, State, TracedOutput, TracedStep
from scr_critplugin.analysis.structure import first_difference, same_ends
from scr_critplugin.analysis.tape import Tape
from scr_critplugin.errors import ProfileError


@dataclass(frozen=True)
class Window:
    """The recorded steps with the output after each; `stationary` if one stands for all later ones."""

    steps: list[TracedStep]
    outputs: list[TracedOutput]
    stationary: bool | None

    def tapes(self) -> list[Tape]:
        """All recordings."""
        return [traced.tape for traced in self.steps] + [traced.tape for traced in self.outputs]


def record(program: Program, start: State, steps: int | None, *, validate: bool) -> Window:
    traced_steps: list[TracedStep] = []
    traced_outputs: list[TracedOutput] = []
    state = start
    for _ in range(2 if steps is None else steps):
        # The plain run first: what the program computes once and keeps must be ordinary arrays.
        plain = program.advance(state)
        if validate:
            program.outputs(plain)
        traced = program.trace_step(state)
        _refuse_other_results(plain, traced)
        state = traced.values
        traced_steps.append(traced)
        traced_outputs.append(program.trace_output(state))
    _refuse_shared_memory(start, traced_steps)
    if steps is not None:
        return Window(traced_steps, traced_outputs, None)
    _refuse_changing_structure(traced_steps, traced_outputs)
    return Window(traced_steps[:1], traced_outputs[:1], True)


def _refuse_other_results(plain: State, traced: TracedStep) -> None:
    """Raise if the traced step computed something else than the `plain` one."""
    for name, value in plain.items():
        if not _close(value, traced.values[name]):
            raise ProfileError(
                "the step computes something else when it is traced. It keeps something outside the state, "
                "or draws random numbers from outside the state",
                key=name,
            )


def _refuse_shared_memory(start: State, steps: list[TracedStep]) -> None:
    """Raise if a write to one state variable would, in the run, change another.

    A restart gives each variable memory of its own, so a program that relies on it cannot be restarted.
    """
    written = set().union(*(traced.written for traced in steps))
    for values in (start, *(traced.values for traced in steps)):
        for one, other in combinations(values, 2):
            both = isinstance(values[one], np.ndarray) and isinstance(values[other], np.ndarray)
            if both and {one, other} & written and np.may_share_memory(values[one], values[other]):
                raise ProfileError(
                    f"{one!r} and {other!r} share memory, and the step writes to it in place: after a "
                    "restart they would not. Let the step copy one of them",
                    key=one,
                )


def _close(one: Any, other: Any) -> bool:
    left, right = np.asarray(one), np.asarray(other)
    if left.dtype.kind in "fc" and right.dtype.kind in "fc":
        # Python's arithmetic on numbers and NumPy's may round differently.
        largest = np.max(np.abs(left), initial=0.0, where=np.isfinite(left))
        return bool(np.allclose(left, right, rtol=1e-9, atol=1e-12 * largest, equal_nan=True))
    return bool(np.array_equal(left, right))


def _refuse_changing_structure(steps: list[TracedStep], outputs: list[TracedOutput]) -> None:
    pairs: list[tuple[str, Tape, Tape]] = [
        ("step", steps[0].tape, steps[1].tape),
        ("output", outputs[0].tape, outputs[1].tape),
    ]
    for what, one, other in pairs:
        difference = first_difference(one, other)
        if difference is not None:
            raise ProfileError(
                f"the structure of the {what} changes from one step to the next: {difference}. Give the "
                "number of steps from the checkpoint to the output (steps=...), so that each is analysed",
                key="steps",
            )
    if not same_ends(steps[0].nodes.values(), steps[1].nodes.values()):
        raise ProfileError(
            "the step puts other results into its state from one step to the next. Give the number of steps "
            "from the checkpoint to the output (steps=...), so that each is analysed",
            key="steps",
        )
