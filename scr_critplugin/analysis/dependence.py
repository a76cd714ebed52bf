"""`profile`: which elements of a program's state can influence its output, by structural dependence.

One step is recorded on a tape of primitives; boolean masks are swept backward through it. An element is
critical if the output after any later step can depend on it through the structure of the computation,
whatever the values: ``derivative == 0`` is not the criterion (DESIGN section 4, rule 3; section 7 for the
recurrence). Several checkpoints and inputs are profiled one after the other and united (`union`).

May import the rest of `analysis`, the map and the errors. Tests: ``tests/test_dependence.py``,
``tests/test_control.py``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from scr_critplugin.analysis import tiles as sampling
from scr_critplugin.analysis.branches import Branch
from scr_critplugin.analysis.collection import seldom_collecting
from scr_critplugin.analysis.findings import Found, Repetition, provenance_of, together
from scr_critplugin.analysis.foresight import NEAR
from scr_critplugin.analysis.gradient import Gradient, gradient, united_gradients, with_magnitudes
from scr_critplugin.analysis.history import record
from scr_critplugin.analysis.options import Options
from scr_critplugin.analysis.perturbation import PerturbationReport, perturb
from scr_critplugin.analysis.perturbation import united as united_perturbations
from scr_critplugin.analysis.poison import PoisonReport, check_by_poison, widened
from scr_critplugin.analysis.poison import united as united_poison
from scr_critplugin.analysis.program import Output, Program, Progress, State, Step
from scr_critplugin.analysis.ranks import Alone, current, taking_part
from scr_critplugin.analysis.recurrence import states_of
from scr_critplugin.analysis.sinks import Sink, sinks_of
from scr_critplugin.analysis.tiles import Confidence
from scr_critplugin.analysis.union import (
    ObservedProgram,
    Point,
    Seen,
    checked_inputs,
    checked_steps,
    points_of,
    united,
)
from scr_critplugin.criticality import CriticalityMap, Variable


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
    confidence : Confidence or None
        What a map from a sample rests on, all points together; None if everything was swept.
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
    confidence: Confidence | None = None


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
    tiles: int | None = None,
    seed: int = 0,
    comm: Any = None,
    progress: Progress | None = None,
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
        of them; where values decide, each is recorded. None: for a run of any length of at least one step.
        The structure of the step must then be the same in two successive steps, or repeat with a period of at
        most 8 steps, or be one of at most 8 kinds that a step counter chooses from (``if it % 100 == 0``),
        each within the first 200 steps. Masks
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
        Overwrite the uncritical elements, run the steps that were swept (and near ones, where values decide),
        and compare the outputs bit for bit; at every point, with the united map. Elements whose poison shows
        become critical; `Profile.poison` tells. One state a point is kept for that.
    engine : "dependence", "gradient" or "perturbation"
        The element states are those of structural dependence. "gradient" also pulls random cotangents back
        through the steps that were swept, and reports magnitudes, in `Profile.gradient` and in the map.
        "perturbation" also changes sampled elements one at a time; those that the map would have called
        uncritical and that change an output become critical.
    mask : "structure" or "gradient"
        "gradient", with that engine, makes critical elements of magnitude zero inert. The map is then good
        for these states only, if at all: at another, the output may respond to them. Integers and booleans,
        and elements whose derivative is unknown, keep their structural state.
    tiles : int, optional
        For large arrays: sweep that many random tiles of each array, at least 1, beside those at corners and
        faces, and call critical the boxes around what they need. The map is then a claim from a sample, of
        the strength that `Profile.confidence` states, and to be checked by poison; if that refutes it,
        everything is swept. None: sweep everything.
    seed : int
        Of random cotangents, of tiles, of the elements that are sampled, and of all noise.
    comm : mpi4py communicator, optional
        Profile a program that communicates, on all ranks of `comm` at once; each gets the map of its own
        state. The program must communicate by `scr_critplugin.mpi`. Default: a serial program.
    progress : callable, optional
        Called with what is being done (str), how much of it is done, and of how much (None: not known).

    Returns
    -------
    Profile

    Raises
    ------
    ProfileError
        The state or what step or output return is not as described; several inputs do not have the same
        variables; a write cannot be followed; the step computes something else when traced, keeps something
        outside the state, or does not repeat itself; state variables share memory that is written to; its
        structure changes from step to step and `steps` is None. Exceptions of `step` and `output` themselves
        pass through unchanged.

    Notes
    -----
    The map holds for runs that take the same branches as the recorded steps; `Profile.sinks` lists where
    values decide, `Profile.branches` where they decided differently between recorded steps, points or inputs.
    What a side that none of them took would depend on is not in the map: give inputs and points that take it.
    Seen are decisions on traced values and on integers of the state; those on values that the program took
    out before (``float(x) > 0``, ``x.tolist()``) are sinks, but how they went is not compared.

    States of the elements that are not critical: *dead* if no primitive computes with it and a
    later state of the window no longer holds it; *unused* if it belongs to a variable that no primitive takes
    at all; else *inert*: it is computed with, or copied from state to state, without effect.
    """
    with taking_part(comm) as ranks:
        options = Options(at, steps, control, validate, engine, mask, tiles, seed)
        ranks.refuse_differences("the options", astuple(options))
        options.require_fit_for(ranks.size)
        return _profiled(step, state, output, options, progress)


def _profiled(step: Step, state: Any, output: Output, options: Options, progress: Progress | None) -> Profile:
    inputs, at_steps = checked_inputs(state), checked_steps(options.at)
    found: list[Found] = []
    starts: list[State] = []
    with ObservedProgram(
        step,
        output,
        steering_counts=options.control == "sink",
        agree=current().all,
        tell=progress,
    ) as program:
        for point, start in points_of(program, inputs, at_steps):
            program.start_at(point, len(inputs))
            found.append(_profile_at(program, point, start, options))
            if options.validates or options.engine == "perturbation":
                starts.append(start)
        checked = _checked(program, starts, found, options)
    confidence = sampling.weakest([each.confidence for each in found if each.confidence is not None])
    poison = checked.poison
    if confidence is not None and poison is not None and poison.difference is not None:
        # A sample can miss something; a full sweep cannot.
        full = _profiled(step, state, output, replace(options, tiles=None), progress)
        return _refuted(full, replace(confidence, refuted=poison.difference))
    return _described(program, found, checked, confidence, options)


# ---- one point ----


def _profile_at(program: Program, point: Point, start: State, options: Options) -> Found:
    window = record(program, start, options.steps, validate=options.validates)
    confidence = magnitudes = None
    if options.tiles is None or window.any_order:
        # Tiles are pulled through a cycle of steps, not through kinds in any order.
        variables, swept = states_of(start, window)
    else:
        variables, swept, confidence = sampling.states_of(start, window, options.tiles, options.seed)
    if options.engine == "gradient":
        magnitudes = gradient(program, start, swept, seed=options.seed)
    seen = Seen(point, window.holds_for, window.structures, window.turn)
    return Found(point, variables, swept, Repetition.of(window), seen, confidence, magnitudes)


# ---- all points ----


@dataclass(frozen=True)
class _Checked:
    """The united map after the checks, and what they found."""

    variables: dict[str, Variable]
    poison: PoisonReport | None
    gradient: Gradient | None
    perturbation: PerturbationReport | None


def _checked(
    program: ObservedProgram, starts: Sequence[State], found: Sequence[Found], options: Options
) -> _Checked:
    """Unite what was found at the points, and take out of the map what a check contradicts at any of them."""
    variables = united([each.variables for each in found])
    swept = max(each.swept for each in found)
    magnitudes = perturbation = poison = None
    doubtful: dict[str, NDArray[np.bool_]] = {}
    if options.engine == "gradient":
        structural = _uncritical(variables)
        magnitudes = united_gradients([each.gradient for each in found if each.gradient is not None])
        variables, magnitudes = with_magnitudes(variables, magnitudes, shrink=options.mask == "gradient")
        doubtful = {name: mask & ~structural[name] for name, mask in _uncritical(variables).items()}
    if options.engine == "perturbation":
        uncritical = _uncritical(variables)
        reports = [
            perturb(program, start, swept, uncritical=uncritical, seed=options.seed, comm=_others())
            for start in starts
        ]
        perturbation = united_perturbations(reports)
        variables = widened(variables, perturbation.contradictions)
    if options.validates:
        if options.steps is None and any(place.decides for place in program.observed.fed):
            # Steps that were not recorded may decide otherwise: near ones are at least run.
            swept = max(swept, NEAR)
        variables, poison = _poisoned(program, starts, variables, swept, doubtful, options.seed)
    return _Checked(variables, poison, magnitudes, perturbation)


def _poisoned(
    program: Program,
    starts: Sequence[State],
    variables: dict[str, Variable],
    swept: int,
    doubtful: Mapping[str, NDArray[np.bool_]],
    seed: int,
) -> tuple[dict[str, Variable], PoisonReport]:
    """The map without the elements whose poison shows at any of the points, and what was overwritten."""
    reports = []
    for start in starts:
        reports.append(
            check_by_poison(
                program, start, _uncritical(variables), swept, doubtful=doubtful, seed=seed, comm=_others()
            )
        )
        variables = widened(variables, reports[-1].guilty)
    return variables, united_poison(reports)


def _others() -> Alone | None:
    """The ranks that run the program together, if they are several."""
    return current() if current().size > 1 else None


def _uncritical(variables: Mapping[str, Variable]) -> dict[str, NDArray[np.bool_]]:
    return {name: variable.uncritical for name, variable in variables.items()}


# ---- the result ----


def _described(
    program: ObservedProgram,
    found: Sequence[Found],
    checked: _Checked,
    confidence: Confidence | None,
    options: Options,
) -> Profile:
    repetition = together(found)
    sinks = sinks_of(program.observed.fed, steering_counts=program.steering_counts)
    branches = program.observed.branches.branches()
    warnings = tuple(dict.fromkeys([*program.observed.warnings, *repetition.unchecked]))
    ranks = current()
    provenance = {
        **provenance_of(program, found, options),
        **({"rank": ranks.rank, "ranks": ranks.size} if ranks.size > 1 else {}),
        **_sample_provenance(options.engine, confidence),
        "sinks": [str(sink) for sink in sinks],
        "branches": [str(branch) for branch in branches],
        "warnings": list(warnings),
        "poison": None if checked.poison is None else checked.poison.to_json_dict(),
    }
    if checked.gradient is not None:
        provenance |= {"mask": options.mask, "gradient": checked.gradient.to_json_dict()}
    if checked.perturbation is not None:
        provenance["perturbation"] = checked.perturbation.to_json_dict()
    return Profile(
        map=CriticalityMap(list(checked.variables.values()), provenance),
        sinks=sinks,
        branches=branches,
        stationary=repetition.stationary,
        period=repetition.period,
        kinds=repetition.kinds,
        counters=repetition.counters,
        steps_swept=max(each.swept for each in found),
        primitives=program.observed.primitives or 0,
        poison=checked.poison,
        gradient=checked.gradient,
        perturbation=checked.perturbation,
        warnings=warnings,
        confidence=confidence,
    )


def _refuted(full: Profile, confidence: Confidence) -> Profile:
    """The profile by a full sweep, with what became of the sample."""
    engine = full.map.provenance["engine"]
    provenance = full.map.provenance | _sample_provenance(engine, confidence)
    return replace(full, map=CriticalityMap(list(full.map.values()), provenance), confidence=confidence)


def _sample_provenance(engine: str, confidence: Confidence | None) -> dict[str, Any]:
    if confidence is None:
        return {}
    return {"engine": f"{engine}, sampled", "confidence": confidence.as_provenance()}
