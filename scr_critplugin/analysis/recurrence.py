"""The backward recurrence: what all later outputs need of the state at the checkpoint, and element states.

A state needs what the step makes of it into what the next state needs (DESIGN section 7). All sweeps of a
step are done while its tape is alive: the steps come one by one, from the last to the first.

May import `history`, `masks`, `program`, `recorder`, `sweep` and the map.
Tests: ``tests/test_dependence.py``, ``tests/test_kinds.py``, ``tests/test_recurrence.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scr_critplugin.analysis import sweep
from scr_critplugin.analysis.history import Window
from scr_critplugin.analysis.masks import everything
from scr_critplugin.analysis.program import State, TracedStep, is_traceable
from scr_critplugin.analysis.recorder import Recorded
from scr_critplugin.analysis.tape import Tape
from scr_critplugin.criticality import ElementState, Variable

Masks = dict[str, NDArray[np.bool_]]
Sweep = Callable[[Tape, list[sweep.Seed]], sweep.RootMasks]


def states_of(start: State, window: Window) -> tuple[dict[str, Variable], int]:
    """Element states of every variable, and the number of steps swept.

    For any number of steps, and for kinds of steps in any order, they hold at each step; else at the first
    step of the window.
    """
    critical: _Fold | _Closure
    read: _Fold | _Closure
    kept: _Fold | _Closure
    if window.any_order:
        critical = _Closure(window, sweep.needed)
        read, kept = _Closure(window, sweep.accessed), _Closure(window, sweep.carried, is_kept=True)
    else:
        critical = _Fold(window, sweep.needed, with_output=True)
        read = _Fold(window, sweep.accessed, with_output=True)
        kept = _Fold(window, sweep.carried, with_output=False)
    folds = (critical, read, kept)
    taken: dict[int, set[str]] = {}
    for phase, recorded in window.last_to_first():
        for fold in folds:
            fold.through(phase, recorded)
        if window.one_by_one or phase not in taken:
            names = {name for tape in recorded.tapes() for name in sweep.taken(tape)}
            taken[phase] = taken.get(phase, set()) | names
        if window.one_by_one:
            recorded.forget()
        # The next step is recorded while this name still stands for the last one.
        del recorded
        if all(fold.settled for fold in folds):
            break
    states = _ElementStates(critical.masks(), read.masks(), kept.masks(), set().union(*taken.values()))
    # There may be fewer steps than sweeps through kinds of steps.
    swept = critical.swept if window.steps is None else min(critical.swept, window.steps)
    return {name: _variable(name, value, states) for name, value in start.items()}, swept


class _Fold:
    """One sweep, carried backward from step to step.

    Attributes
    ----------
    settled : bool
        Whether the masks repeat with the period, so that further steps change nothing.
    swept : int
        Number of steps swept.
    """

    def __init__(self, window: Window, pull: Sweep, *, with_output: bool) -> None:
        self.settled = False
        self.swept = 0
        self._agree = window.program.agree
        self._is_periodic = window.period is not None
        self._is_endless = window.steps is None
        self._pull = pull
        self._with_output = with_output
        self._before: Masks = {}
        self._before_phase: dict[int, Masks] = {}
        self._after_phase: dict[int, Masks] = {}
        self._outputs: dict[int, Masks] = {}

    def through(self, phase: int, recorded: Recorded) -> None:
        """Carry the masks from the end of a step to its beginning."""
        if self.settled:
            return
        wanted = self._before
        if self._with_output:
            wanted = _united(wanted, self._of_output(phase, recorded))
        if self._is_periodic:
            # What follows from masks is the same if they are: then it has been seen already.
            self.settled = self._agree(
                phase in self._after_phase and _equal(wanted, self._after_phase[phase])
            )
            if self.settled:
                return
            self._after_phase[phase] = wanted
        self._before = self._pull(recorded.step.tape, _seeds(recorded.step, wanted))
        self._before_phase[phase] = self._before
        self.swept += 1

    def masks(self) -> Masks:
        """What was found: at the first step, or at any step of the period if their number is not fixed."""
        if self._is_endless:
            return reduce(_united, self._before_phase.values())
        return self._before_phase[0]

    def _of_output(self, phase: int, recorded: Recorded) -> Masks:
        if self._is_periodic and phase in self._outputs:
            return self._outputs[phase]
        all_of_it = [(node, everything(node.shape)) for node in recorded.output.nodes]
        found = self._outputs[phase] = self._pull(recorded.output.tape, all_of_it)
        return found


class _Closure:
    """One sweep, carried backward through steps of which each may be of any kind.

    What any kind of step needs of the state is needed; what each of them carries is kept (`is_kept`).
    Masks only grow, or only shrink, until no kind changes them any more.

    Attributes
    ----------
    settled, swept
        As in `_Fold`.
    """

    def __init__(self, window: Window, pull: Sweep, *, is_kept: bool = False) -> None:
        self.settled = False
        self.swept = 0
        self._kinds = window.kinds
        self._agree = window.program.agree
        self._pull = pull
        self._is_kept = is_kept
        self._found: Masks = {}
        self._outputs: dict[int, Masks] = {}
        self._unchanged: set[int] = set()

    def through(self, kind: int, recorded: Recorded) -> None:
        """Add what a step of this kind makes of the masks."""
        if self.settled:
            return
        pulled = self._pull(recorded.step.tape, _seeds(recorded.step, self._wanted(kind, recorded)))
        together = _common(self._found, pulled) if self._is_kept else _united(self._found, pulled)
        if _equal(together, self._found):
            self._unchanged.add(kind)
        else:
            self._unchanged = set()
        self._found = together
        self.swept += 1
        self.settled = self._agree(len(self._unchanged) == self._kinds)

    def masks(self) -> Masks:
        """What was found: at any step."""
        return self._found

    def _wanted(self, kind: int, recorded: Recorded) -> Masks:
        """What counts after a step of this kind: what any further step needs, and the output."""
        if self._is_kept:
            return self._found
        if kind not in self._outputs:
            all_of_it = [(node, everything(node.shape)) for node in recorded.output.nodes]
            self._outputs[kind] = self._pull(recorded.output.tape, all_of_it)
        return _united(self._found, self._outputs[kind])


def _seeds(traced: TracedStep, wanted: Masks) -> list[sweep.Seed]:
    """Seeds at the end of a step; of what is not traced, and so always critical, everything."""
    return [(node, wanted.get(name, everything(node.shape))) for name, node in traced.nodes.items()]


def _united(one: Masks, other: Masks) -> Masks:
    return {name: one[name] | mask if name in one else mask for name, mask in other.items()}


def _common(one: Masks, other: Masks) -> Masks:
    return {name: one[name] & mask if name in one else mask for name, mask in other.items()}


def _equal(one: Masks, other: Masks) -> bool:
    return one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) for name in one)


# ---- element states ----


@dataclass(frozen=True)
class _ElementStates:
    """Masks of what is `critical`, `read`, and `kept` to the end; and the variables `taken` at all."""

    critical: Masks
    read: Masks
    kept: Masks
    taken: set[str]


def _variable(name: str, value: Any, found: _ElementStates) -> Variable:
    array = np.asarray(value)
    states = np.full(array.shape, ElementState.CRITICAL, dtype=np.uint8)
    if is_traceable(value):
        states[found.kept[name]] = ElementState.INERT if name in found.taken else ElementState.UNUSED
        states[~found.kept[name]] = ElementState.DEAD
        states[found.read[name]] = ElementState.INERT
        states[found.critical[name]] = ElementState.CRITICAL
    return variable_of(name, array, states)


def variable_of(name: str, array: NDArray[Any], states: NDArray[np.uint8]) -> Variable:
    """The variable of a state's `array`, with its element states."""
    fortran = array.flags.f_contiguous and not array.flags.c_contiguous
    return Variable(name, states, array.dtype, "F" if fortran else "C")
