"""`profile`: which elements of a program's state can influence its output, by structural dependence.

One step is recorded on a tape of primitives; boolean masks are swept backward through it. An element is
critical if the output after any later step can depend on it through the structure of the computation,
whatever the values: ``derivative == 0`` is not the criterion (DESIGN section 4, rule 3; section 7 for the
recurrence).

May import the rest of `analysis`, the map and the errors. Tests: ``tests/test_dependence.py``.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from scr_critplugin.analysis import sweep
from scr_critplugin.analysis.masks import everything
from scr_critplugin.analysis.poison import PoisonReport, check_by_poison
from scr_critplugin.analysis.program import (
    Output,
    Program,
    State,
    Step,
    TracedOutput,
    TracedStep,
    checked_state,
    is_traceable,
)
from scr_critplugin.analysis.structure import first_difference, same_ends
from scr_critplugin.analysis.tape import Sink, Tape
from scr_critplugin.criticality import CriticalityMap, ElementState, Variable
from scr_critplugin.errors import ProfileError

Masks = dict[str, NDArray[np.bool_]]
Sweep = Callable[[Tape, list[sweep.Seed]], sweep.RootMasks]


@dataclass(frozen=True)
class Profile:
    """Result of `profile`.

    Attributes
    ----------
    map : CriticalityMap
        Element states of every state variable.
    sinks : tuple of Sink
        Places where values left the data flow (branches, casts, indices, unknown primitives). What feeds them
        is critical. Without any, the map does not hang on the state it was taken at.
    stationary : bool or None
        Whether two successive steps had the same structure; None if only the given steps were recorded.
    steps_swept : int
        Number of steps the masks were swept through.
    primitives : int
        Number of primitive calls on the tape of the first step.
    poison : PoisonReport or None
        What was overwritten to check the map; None if that was switched off.
    """

    map: CriticalityMap
    sinks: tuple[Sink, ...]
    stationary: bool | None
    steps_swept: int
    primitives: int
    poison: PoisonReport | None


def profile(
    step: Step,
    state: Mapping[str, Any],
    output: Output,
    *,
    at: int | None = None,
    steps: int | None = None,
    validate: Literal["poison"] | None = "poison",
) -> Profile:
    """Find which elements of `state` can influence the output.

    Parameters
    ----------
    step : callable
        Takes the state, a dict of names to arrays and scalars, and returns the next one (or changes the dict
        and returns None). Ordinary NumPy: it may write to the arrays it is given and to its own, by
        views, ``out=`` and in-place operators. NumPy through ``autograd.numpy`` or plain ``numpy``.
    state : mapping of str to array or scalar
        The checkpoint variables. Arrays of float, complex, int or bool and float or complex scalars are
        analysed; Python integers and booleans, text, and anything else are critical.
    output : callable
        Takes a state, returns a nest of dicts, lists and tuples of arrays and scalars: what the run is for.
    at : int, optional
        Take the checkpoint after that many plain steps from `state`. Default: at `state` itself.
    steps : int, optional
        Number of steps, at least 1, from the checkpoint to the end of the run; each is recorded. The output
        counts after each of them. None: for a run of any length of at least one step. The structure of the
        step must then be the same in two successive steps, and masks are swept to their fixed point.
    validate : "poison" or None
        Overwrite the uncritical elements, run the steps that were swept, and compare the outputs bit for bit.

    Returns
    -------
    Profile

    Raises
    ------
    ProfileError
        The state or what step or output return is not as described; a write cannot be followed; the step
        computes something else when traced; state variables share memory that is written to;
        its structure changes from step to step and `steps` is None; poison
        reached the output. Exceptions of `step` and `output` themselves pass through unchanged.

    Notes
    -----
    The map holds for runs that take the same branches as the recorded steps; `Profile.sinks` lists where
    values decide. States of the elements that are not critical: *dead* if no primitive computes with it and a
    later state of the window no longer holds it; *unused* if it belongs to a variable that no primitive takes
    at all; else *inert*: it is computed with, or copied from state to state, without effect.
    """
    if steps is not None and steps < 1:
        raise ProfileError(
            f"steps is {steps}; expected at least 1, or None for a run of any length", key="steps"
        )
    if validate not in ("poison", None):
        raise ProfileError(f"validate is {validate!r}; expected 'poison' or None", key="validate")
    program = Program(step, output)
    start = checked_state(state)
    for _ in range(at or 0):
        start = program.advance(start)

    window = _record(program, start, steps, validate=validate is not None)
    criticality, swept = _states_of(start, window)
    poison = None
    if validate == "poison":
        uncritical = {name: criticality[name].uncritical for name in criticality}
        poison = check_by_poison(program, start, uncritical, max(swept, 1))
    sinks = _sinks_of(window)
    described = CriticalityMap(
        list(criticality.values()),
        _provenance(program, at, steps, window, swept, sinks, poison),
    )
    return Profile(described, sinks, window.stationary, swept, len(window.steps[0].tape.nodes), poison)


# ---- recording ----


@dataclass(frozen=True)
class _Window:
    """The recorded steps with the output after each; `stationary` if one stands for all later ones."""

    steps: list[TracedStep]
    outputs: list[TracedOutput]
    stationary: bool | None

    def tapes(self) -> list[Tape]:
        """All recordings."""
        return [traced.tape for traced in self.steps] + [traced.tape for traced in self.outputs]


def _record(program: Program, start: State, steps: int | None, *, validate: bool) -> _Window:
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
        return _Window(traced_steps, traced_outputs, None)
    _refuse_changing_structure(traced_steps, traced_outputs)
    return _Window(traced_steps[:1], traced_outputs[:1], True)


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


# ---- the backward recurrence ----


def _states_of(start: State, window: _Window) -> tuple[dict[str, Variable], int]:
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


def _backward(window: _Window, pull: Sweep) -> tuple[Masks, int]:
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


def _kept(window: _Window) -> Masks:
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


# ---- the report ----


def _sinks_of(window: _Window) -> tuple[Sink, ...]:
    return tuple(sorted({sink for tape in window.tapes() for _, sink in tape.sinks}))


def _provenance(
    program: Program,
    at: int | None,
    steps: int | None,
    window: _Window,
    swept: int,
    sinks: tuple[Sink, ...],
    poison: PoisonReport | None,
) -> dict[str, Any]:
    return {
        "engine": "dependence",
        "step": _full_name(program.step),
        "outputs": _full_name(program.output),
        "at": at or 0,
        "steps": steps,
        "steps_swept": swept,
        "stationary": window.stationary,
        "sinks": [str(sink) for sink in sinks],
        "poison": None if poison is None else {"fills": list(poison.fills), "steps": poison.steps},
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }


def _full_name(function: Any) -> str:
    name = getattr(function, "__qualname__", type(function).__qualname__)
    return f"{getattr(function, '__module__', '?')}.{name}"
