"""The backward recurrence: what all later outputs need of the state at the checkpoint, and element states.

A state needs what the step makes of it into what the next state needs (DESIGN section 7).

May import `history`, `masks`, `program`, `sweep` and the map. Tests: ``tests/test_dependence.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scr_critplugin.analysis import sweep
from scr_critplugin.analysis.history import Window
from scr_critplugin.analysis.masks import everything
from scr_critplugin.analysis.program import State, TracedStep, is_traceable
from scr_critplugin.analysis.tape import Tape
from scr_critplugin.criticality import ElementState, Variable

Masks = dict[str, NDArray[np.bool_]]
Sweep = Callable[[Tape, list[sweep.Seed]], sweep.RootMasks]


def states_of(start: State, window: Window) -> tuple[dict[str, Variable], int]:
    """Element states of every variable, and the number of steps swept."""
    critical, swept = _backward(window, sweep.needed)
    read, _ = _backward(window, sweep.accessed)
    kept = _kept(window)
    taken = {name for tape in window.tapes() for name in sweep.taken(tape)}
    variables = {}
    for name, value in start.items():
        array = np.asarray(value)
        states = np.full(array.shape, ElementState.CRITICAL, dtype=np.uint8)
        if is_traceable(value):
            states[kept[name]] = ElementState.INERT if name in taken else ElementState.UNUSED
            states[~kept[name]] = ElementState.DEAD
            states[read[name]] = ElementState.INERT
            states[critical[name]] = ElementState.CRITICAL
        variables[name] = _variable(name, array, states)
    return variables, swept


def _variable(name: str, array: NDArray[Any], states: NDArray[np.uint8]) -> Variable:
    fortran = array.flags.f_contiguous and not array.flags.c_contiguous
    return Variable(name, states, array.dtype, "F" if fortran else "C")


def _backward(window: Window, pull: Sweep) -> tuple[Masks, int]:
    """What all later outputs together need (or read) of the state at the checkpoint; steps swept."""
    wanted: Masks = {}
    for traced, output in zip(reversed(window.steps), reversed(window.outputs), strict=True):
        all_of_it = [(node, everything(node.shape)) for node in output.nodes]
        wanted = _united(wanted, pull(output.tape, all_of_it))
        before = pull(traced.tape, _seeds(traced, wanted))
        if window.stationary:
            return _fixed_point(traced, pull, wanted, before)
        wanted = before
    return wanted, len(window.steps)


def _fixed_point(traced: TracedStep, pull: Sweep, output: Masks, before: Masks) -> tuple[Masks, int]:
    swept = 1
    wanted = output
    while True:
        grown = _united(output, before)
        # The masks only grow, so this ends.
        if _equal(grown, wanted):
            return before, swept
        wanted = grown
        before = pull(traced.tape, _seeds(traced, wanted))
        swept += 1


def _kept(window: Window) -> Masks:
    """Elements that every later state of the window still holds, unchanged."""
    held: Masks = {}
    for traced in reversed(window.steps):
        held = sweep.carried(traced.tape, _seeds(traced, held))
    while window.stationary:
        traced = window.steps[0]
        again = sweep.carried(traced.tape, _seeds(traced, held))
        if _equal(again, held):
            break
        held = again
    return held


def _seeds(traced: TracedStep, wanted: Masks) -> list[sweep.Seed]:
    """Seeds at the end of a step; of what is not traced, and so always critical, everything."""
    return [(node, wanted.get(name, everything(node.shape))) for name, node in traced.nodes.items()]


def _united(one: Masks, other: Masks) -> Masks:
    return {name: one[name] | mask if name in one else mask for name, mask in other.items()}


def _equal(one: Masks, other: Masks) -> bool:
    return one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) for name in one)
