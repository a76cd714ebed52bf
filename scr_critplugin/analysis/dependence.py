"""`profile`: which elements of a program's state can influence its output, by structural dependence.

One step is recorded on a tape of primitives; boolean masks are swept backward through it. An element is
critical if the output after any later step can depend on it through the structure of the computation,
whatever the values: ``derivative == 0`` is not the criterion (DESIGN section 4, rule 3; section 7 for the
recurrence). Several checkpoints and inputs are profiled one after the other and united (`union`).

May import the rest of `analysis`, the map and the errors. Tests: ``tests/test_dependence.py``,
``tests/test_control.py``.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from scr_critplugin.analysis.branches import Branch
from scr_critplugin.analysis.collection import seldom_collecting
from scr_critplugin.analysis.gradient import Gradient, gradient, united_gradients, with_magnitudes
from scr_critplugin.analysis.history import record
from scr_critplugin.analysis.perturbation import PerturbationReport, perturb
from scr_critplugin.analysis.perturbation import united as united_perturbations
from scr_critplugin.analysis.poison import PoisonReport, check_by_poison, widened
from scr_critplugin.analysis.poison import united as united_poison
from scr_critplugin.analysis.program import Output, Program, State, Step
from scr_critplugin.analysis.recurrence import states_of
from scr_critplugin.analysis.sinks import Sink, sinks_of
from scr_critplugin.analysis.union import (
    ObservedProgram,
    Point,
    Seen,
    checked_inputs,
    checked_steps,
    points_of,
    united,
    unrecorded,
)
from scr_critplugin.criticality import CriticalityMap, Variable
from scr_critplugin.errors import ProfileError


@dataclass(frozen=True)
class Profile:
    """Result of `profile`.

    Attributes
    ----------
    map : CriticalityMap
        Element states of every state variable, united over all points and inputs.
    sinks : tuple of Sink
        Places where values left the data flow (branches, casts, indices, unknown primitives), each with the
        elements that fed it. These are critical, unless `control` was "report" and the sink only steers.
        Without any, the map does not hang on the state it was taken at.
    branches : tuple of Branch
        Places where recorded runs (steps, points, inputs) went on differently. The map holds what depends on
        the sides taken in any of them; another input may take yet another.
    stationary : bool or None
        Whether two successive steps had the same structure, at every point; None if each of the given steps
        was recorded.
    period : int or None
        Number of steps after which the structure repeats, the longest of all points; None if it does not, or
        was not looked for, or a few kinds of steps follow each other in another order.
    kinds : int or None
        Number of different structures among the steps, the largest of all points; None if each of the steps
        was recorded for itself.
    counters : tuple of str
        Untraced variables (Python integers, text) that changed from one recorded step to the next.
    steps_swept : int
        Number of steps the masks were swept through; the largest of all points.
    primitives : int
        Number of primitive calls on the tape of the first step.
    poison : PoisonReport or None
        What was overwritten to check the map, and which elements that made critical; None if that was
        switched off.
    gradient : Gradient or None
        How strongly the output responds to each element, with ``engine="gradient"``.
    perturbation : PerturbationReport or None
        What changing single elements showed, with ``engine="perturbation"``.
    warnings : tuple of str
        Functions that could not be followed, each with its place: compiled ones, conversions to ordinary
        arrays, functions without a rule. All they were given is critical; each was also given as a
        `ProfileWarning`. And what could not be checked.
    """

    map: CriticalityMap
    sinks: tuple[Sink, ...]
    branches: tuple[Branch, ...]
    stationary: bool | None
    period: int | None
    kinds: int | None
    counters: tuple[str, ...]
    steps_swept: int
    primitives: int
    poison: PoisonReport | None
    gradient: Gradient | None = None
    perturbation: PerturbationReport | None = None
    warnings: tuple[str, ...] = ()


@seldom_collecting()
def profile(
    step: Step,
    state: Mapping[str, Any] | Sequence[Mapping[str, Any]],
    output: Output,
    *,
    at: int | Sequence[int] | None = None,
    steps: int | None = None,
    control: Literal["sink", "report"] = "sink",
    validate: Literal["poison"] | None = "poison",
    engine: Literal["dependence", "gradient", "perturbation"] = "dependence",
    mask: Literal["structure", "gradient"] = "structure",
    seed: int = 0,
) -> Profile:
    """Find which elements of `state` can influence the output.

    Parameters
    ----------
    step : callable
        Takes the state, a dict of names to arrays and scalars, and returns the next one (or changes the dict
        and returns None). Ordinary NumPy: it may write to the arrays it is given and to its own, by
        views, ``out=`` and in-place operators. NumPy through ``autograd.numpy`` or plain ``numpy``.
    state : mapping of str to array or scalar, or sequence of such mappings
        The checkpoint variables. Arrays of float, complex, int or bool and float or complex scalars are
        analysed; Python integers and booleans, text, and anything else are critical. Several mappings, of the
        same names, shapes and types, are other inputs or other random seeds of the same program: each is
        profiled, and an element that is critical for one is critical.
    output : callable
        Takes a state, returns a nest of dicts, lists and tuples of arrays and scalars: what the run is for.
    at : int or sequence of int, optional
        Take the checkpoint after that many plain steps from `state`. Default: at `state` itself. Several: the
        map is for a checkpoint at any of them.
    steps : int, optional
        Number of steps, at least 1, from the checkpoint to the end of the run. The output counts after each
        of them. None: for a run of any length of at least one step. The structure of the step must then be
        the same in two successive steps, or repeat with a period of at most 8 steps, or be one of at most 8
        kinds that a step counter chooses from (``if it % 100 == 0``), each within the first 200 steps. Masks
        are swept to their fixed point; they hold for a checkpoint after any of the steps of a period, and for
        kinds of steps in any order. So they do for more than 8 steps of such kinds: the map may then keep
        more than just this many steps need.
    control : "sink" or "report"
        What becomes of values that only steer: they decide a branch or the length of a loop, are cast to a
        bare ``bool``, ``int``, ``float`` or ``complex``, are an index that is read at or another steering
        argument of a known function, or become text. "sink": they count as outputs, so what feeds them is
        critical. "report": they are listed in `Profile.sinks` and do not count. The map then holds for
        restarts that decide as the recorded run did, although elements that fed the decision are lost. A
        steering argument of a traced call stays part of the data flow: what is selected depends on it, and on
        all that may be selected. Values that leave otherwise (into functions unknown here, as arrays, as the
        index of a write) count in either case.
    validate : "poison" or None
        Overwrite the uncritical elements, run the steps that were swept, and compare the outputs bit for bit;
        at every point, with the united map. Elements whose poison shows become critical; `Profile.poison`
        tells. One state a point is kept for that.
    engine : "dependence", "gradient" or "perturbation"
        The element states are those of structural dependence. "gradient" also pulls random cotangents back
        through the steps that were swept, and reports magnitudes, in `Profile.gradient` and in the map.
        "perturbation" also changes sampled elements one at a time; those that the map would have called
        uncritical and that change an output become critical.
    mask : "structure" or "gradient"
        "gradient", with that engine, makes critical elements of magnitude zero inert. The map is then good
        for these states only, if at all: at another, the output may respond to them. Integers and booleans,
        and elements whose derivative is unknown, keep their structural state.
    seed : int
        Of random cotangents, of the elements that are sampled, and of all noise.

    Returns
    -------
    Profile

    Raises
    ------
    ProfileError
        The state or what step or output return is not as described; several inputs do not have the same
        variables; a write cannot be followed; the step
        computes something else when traced; state variables share memory that is written to;
        its structure changes from step to step and `steps` is None; it does
        not repeat itself. Exceptions of `step` and `output` themselves pass through unchanged.

    Notes
    -----
    The map holds for runs that take the same branches as the recorded steps; `Profile.sinks` lists where
    values decide, `Profile.branches` where they decided differently between recorded steps, points or inputs.
    What a side that none of them took would depend on is not in the map: give inputs and points that take it.
    Seen are decisions on traced values. Those on values that the state keeps untraced (a step counter that is
    a Python integer), or that the program took out before it decided on them (``float(x) > 0``,
    ``x.tolist()``), cannot be seen.

    States of the elements that are not critical: *dead* if no primitive computes with it and a
    later state of the window no longer holds it; *unused* if it belongs to a variable that no primitive takes
    at all; else *inert*: it is computed with, or copied from state to state, without effect.
    """
    _check_options(steps, control, validate)
    _check_engine(engine, mask)
    inputs, at_steps = checked_inputs(state), checked_steps(at)
    found: list[_Found] = []
    starts: list[State] = []
    with ObservedProgram(step, output, steering_counts=control == "sink") as program:
        for point, start in points_of(program, inputs, at_steps):
            program.start_at(point, len(inputs))
            at_point = _profile_at(program, point, start, steps, validate=validate is not None)
            if engine == "gradient":
                at_point.gradients.append(gradient(program, start, max(at_point.swept, 1), seed=seed))
            found.append(at_point)
            if validate is not None or engine == "perturbation":
                starts.append(start)
        variables, magnitudes = united([each.variables for each in found]), None
        if engine == "gradient":
            together = united_gradients([each for at_point in found for each in at_point.gradients])
            variables, magnitudes = with_magnitudes(variables, together, shrink=mask == "gradient")
        swept = max(each.swept for each in found)
        perturbation = poison = None
        if engine == "perturbation":
            variables, perturbation = _perturbed(program, starts, variables, swept, seed)
        if validate == "poison":
            variables, poison = _poisoned(program, starts, variables, swept, seed)
    sinks = sinks_of(program.observed.fed, steering_counts=program.steering_counts)
    branches = program.observed.branches.branches()
    unchecked = _unchecked(found)
    warnings = tuple(dict.fromkeys([*program.observed.warnings, *unchecked]))
    provenance = {
        **_provenance(program, found, steps, control),
        "unchecked": sorted(set(unchecked)),
        "engine": engine,
        **_gradient_provenance(magnitudes, mask),
        "sinks": [str(sink) for sink in sinks],
        "branches": [str(branch) for branch in branches],
        "warnings": list(warnings),
        "poison": None if poison is None else poison.to_json_dict(),
        "perturbation": None if perturbation is None else perturbation.to_json_dict(),
    }
    return Profile(
        CriticalityMap(list(variables.values()), provenance),
        sinks,
        branches,
        _stationary(found),
        _period(found),
        _kinds(found),
        _counters(found),
        swept,
        program.observed.primitives or 0,
        poison,
        magnitudes,
        perturbation,
        warnings,
    )


def _check_options(steps: int | None, control: str, validate: str | None) -> None:
    if steps is not None and steps < 1:
        raise ProfileError(
            f"steps is {steps}; expected at least 1, or None for a run of any length", key="steps"
        )
    if control not in ("sink", "report"):
        raise ProfileError(f"control is {control!r}; expected 'sink' or 'report'", key="control")
    if validate not in ("poison", None):
        raise ProfileError(f"validate is {validate!r}; expected 'poison' or None", key="validate")


def _check_engine(engine: str, mask: str) -> None:
    if engine not in ("dependence", "gradient", "perturbation"):
        raise ProfileError(
            f"engine is {engine!r}; expected 'dependence', 'gradient' or 'perturbation'", key="engine"
        )
    if mask not in ("structure", "gradient") or (mask == "gradient" and engine != "gradient"):
        raise ProfileError(
            f"mask is {mask!r} with engine {engine!r}; expected 'structure', or 'gradient' with the engine "
            "of that name",
            key="mask",
        )


# ---- one point ----


@dataclass(frozen=True)
class _Found:
    """What was found at one point."""

    point: Point
    variables: dict[str, Variable]
    swept: int
    stationary: bool | None
    period: int | None
    kinds: int | None
    replayed: bool
    counters: tuple[str, ...]
    unchecked: tuple[str, ...]
    seen: Seen
    gradients: list[Gradient] = field(default_factory=list)


def _profile_at(program: Program, point: Point, start: State, steps: int | None, *, validate: bool) -> _Found:
    window = record(program, start, steps, validate=validate)
    variables, swept = states_of(start, window)
    return _Found(
        point,
        variables,
        swept,
        window.stationary,
        window.period,
        window.kinds,
        window.replayed,
        window.counters,
        window.warnings,
        Seen(point, window.holds_for, window.structures, window.turn),
    )


# ---- all points ----


def _perturbed(
    program: Program, starts: Sequence[State], variables: dict[str, Variable], swept: int, seed: int
) -> tuple[dict[str, Variable], PerturbationReport]:
    """The map without the elements that single changes contradict, and what was changed."""
    uncritical = _uncritical(variables)
    reports = [perturb(program, start, swept, uncritical=uncritical, seed=seed) for start in starts]
    report = united_perturbations(reports)
    return widened(variables, report.contradictions), report


def _poisoned(
    program: Program, starts: Sequence[State], variables: dict[str, Variable], swept: int, seed: int
) -> tuple[dict[str, Variable], PoisonReport]:
    """The map without the elements whose poison shows at any of the points, and what was overwritten."""
    reports = []
    for start in starts:
        reports.append(check_by_poison(program, start, _uncritical(variables), swept, seed=seed))
        variables = widened(variables, reports[-1].guilty)
    return variables, united_poison(reports)


def _uncritical(variables: Mapping[str, Variable]) -> dict[str, NDArray[np.bool_]]:
    return {name: variable.uncritical for name, variable in variables.items()}


def _stationary(found: Sequence[_Found]) -> bool | None:
    answers = [each.stationary for each in found]
    return None if None in answers else all(answers)


def _period(found: Sequence[_Found]) -> int | None:
    periods = [each.period for each in found]
    return None if None in periods else max(period for period in periods if period is not None)


def _kinds(found: Sequence[_Found]) -> int | None:
    counts = [each.kinds for each in found]
    return None if None in counts else max(count for count in counts if count is not None)


def _unchecked(found: Sequence[_Found]) -> list[str]:
    """What could not be checked, in words."""
    return [words for each in found for words in each.unchecked] + unrecorded([each.seen for each in found])


def _counters(found: Sequence[_Found]) -> tuple[str, ...]:
    return tuple(sorted({name for each in found for name in each.counters}))


def _provenance(program: Program, found: Sequence[_Found], steps: int | None, control: str) -> dict[str, Any]:
    at = sorted({each.point.at for each in found})
    return {
        "step": _full_name(program.step),
        "outputs": _full_name(program.output),
        "at": at[0] if len(at) == 1 else at,
        "inputs": 1 + max(each.point.source for each in found),
        "points": [
            {
                "input": each.point.source,
                "at": each.point.at,
                "steps_swept": each.swept,
                "stationary": each.stationary,
            }
            for each in found
        ],
        "steps": steps,
        "steps_swept": max(each.swept for each in found),
        "stationary": _stationary(found),
        "period": _period(found),
        "kinds": _kinds(found),
        "replayed": any(each.replayed for each in found),
        "counters": list(_counters(found)),
        "control": control,
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }


def _gradient_provenance(found: Gradient | None, mask: str) -> dict[str, Any]:
    if found is None:
        return {}
    return {"engine": "gradient", "mask": mask, "gradient": found.to_json_dict()}


def _full_name(function: Any) -> str:
    name = getattr(function, "__qualname__", type(function).__qualname__)
    return f"{getattr(function, '__module__', '?')}.{name}"
