"""`profile`: which elements of a program's state can influence its output, by structural dependence.

One step is recorded on a tape of primitives; boolean masks are swept backward through it. An element is
critical if the output after any later step can depend on it through the structure of the computation,
whatever the values: ``derivative == 0`` is not the criterion (DESIGN section 4, rule 3; section 7 for the
recurrence).

May import the rest of `analysis`, the map and the errors. Tests: ``tests/test_dependence.py``.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from scr_critplugin.analysis.gradient import Gradient, gradient, with_magnitudes
from scr_critplugin.analysis.history import Window, record
from scr_critplugin.analysis.poison import PoisonReport, check_by_poison
from scr_critplugin.analysis.program import Output, Program, Step, checked_state
from scr_critplugin.analysis.recurrence import states_of
from scr_critplugin.analysis.tape import Sink
from scr_critplugin.criticality import CriticalityMap
from scr_critplugin.errors import ProfileError


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
    gradient : Gradient or None
        How strongly the output responds to each element, with ``engine="gradient"``.
    """

    map: CriticalityMap
    sinks: tuple[Sink, ...]
    stationary: bool | None
    steps_swept: int
    primitives: int
    poison: PoisonReport | None
    gradient: Gradient | None = None


def profile(
    step: Step,
    state: Mapping[str, Any],
    output: Output,
    *,
    at: int | None = None,
    steps: int | None = None,
    validate: Literal["poison"] | None = "poison",
    engine: Literal["dependence", "gradient"] = "dependence",
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
    engine : "dependence" or "gradient"
        The element states are those of structural dependence. "gradient" also pulls random cotangents back
        through the steps that were swept, and reports magnitudes, in `Profile.gradient` and in the map.
    mask : "structure" or "gradient"
        "gradient", with that engine, makes critical elements of magnitude zero inert. The map is then good
        for this state only, if at all: at another, the output may respond to them. Integers and booleans,
        and elements whose derivative is unknown, keep their structural state.
    seed : int
        Start of the random generator.

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
    if engine not in ("dependence", "gradient"):
        raise ProfileError(f"engine is {engine!r}; expected 'dependence' or 'gradient'", key="engine")
    if mask not in ("structure", "gradient") or (mask == "gradient" and engine != "gradient"):
        raise ProfileError(
            f"mask is {mask!r} with engine {engine!r}; expected 'structure', or 'gradient' with the engine "
            "of that name",
            key="mask",
        )
    program = Program(step, output)
    start = checked_state(state)
    for _ in range(at or 0):
        start = program.advance(start)

    window = record(program, start, steps, validate=validate is not None)
    criticality, swept = states_of(start, window)
    magnitudes = None
    if engine == "gradient":
        found = gradient(program, start, max(swept, 1), seed=seed)
        criticality, magnitudes = with_magnitudes(criticality, found, shrink=mask == "gradient")
    poison = None
    if validate == "poison":
        uncritical = {name: criticality[name].uncritical for name in criticality}
        poison = check_by_poison(program, start, uncritical, max(swept, 1))
    sinks = _sinks_of(window)
    described = CriticalityMap(
        list(criticality.values()),
        {
            **_provenance(program, at, steps, window, swept, sinks, poison),
            **_gradient_provenance(magnitudes, mask),
        },
    )
    return Profile(
        described, sinks, window.stationary, swept, len(window.steps[0].tape.nodes), poison, magnitudes
    )


# ---- the report ----


def _sinks_of(window: Window) -> tuple[Sink, ...]:
    return tuple(sorted({sink for tape in window.tapes() for _, sink in tape.sinks}))


def _provenance(
    program: Program,
    at: int | None,
    steps: int | None,
    window: Window,
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


def _gradient_provenance(found: Gradient | None, mask: str) -> dict[str, Any]:
    if found is None:
        return {}
    return {"engine": "gradient", "mask": mask, "gradient": found.to_json_dict()}


def _full_name(function: Any) -> str:
    name = getattr(function, "__qualname__", type(function).__qualname__)
    return f"{getattr(function, '__module__', '?')}.{name}"
