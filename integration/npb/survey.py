"""One kernel surveyed: run, profiled at its middle, and run on from there with poison in what is uncritical.

May import `suite`, `kernel_proofs` and the package's analysis. Tests: ``integration/npb/test_survey.py``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from kernel import State
from kernel_proofs import FILLS, Masks, bits_of, poisoned
from suite import Kernel

from scr_critplugin.analysis import profile
from scr_critplugin.criticality import ElementState, Variable
from scr_critplugin.errors import ProfileError
from scr_critplugin.regions import describe

IDENTICAL = "identical"
REGIONS = 4
"""Places of one state that are named one by one."""

Result = TypeVar("Result")


@dataclass(frozen=True)
class Count:
    """How many elements a variable has, and how many of them a restart does not need."""

    elements: int
    uncritical: int

    @property
    def percent(self) -> float:
        """Share of the uncritical ones."""
        return 100.0 * self.uncritical / self.elements


@dataclass(frozen=True)
class Survey:
    """What was found of one kernel.

    Attributes
    ----------
    verified : bool
        The official test accepts the plain run and every run that went on from poison.
    poison : str
        "identical" if no fill in the uncritical elements at step `at` changed a bit of the output, neither in
        the profile nor at the end of the run; else what happened. `variables` then tell of the map that the
        profile's own check had widened.
    variables : dict of str to Count
        Every variable of the state, in its order; empty if the profile was refused.
    where : dict of str to tuple of str
        Where the uncritical elements of a variable lie, and in which state they are: at most `REGIONS` places
        of a state.
    at, steps : int
        Step of the checkpoint, and steps of the whole run.
    profile_seconds, run_seconds : float
        Wall clock: the profile with its own poison check, and all steps of the plain run without set-up.
    """

    verified: bool
    poison: str
    variables: dict[str, Count]
    where: dict[str, tuple[str, ...]]
    at: int
    steps: int
    profile_seconds: float
    run_seconds: float

    @property
    def passed(self) -> bool:
        """True if the run verifies and poison does not show."""
        return self.verified and self.poison == IDENTICAL

    @property
    def profile_over_run(self) -> float:
        """Time of the profile over that of the run."""
        return self.profile_seconds / self.run_seconds

    def to_json_dict(self) -> dict[str, Any]:
        """As ``python -m integration.npb --json`` prints it."""
        return {
            "verified": self.verified,
            "poison": self.poison,
            "variables": {
                name: {"elements": count.elements, "uncritical": count.uncritical}
                for name, count in self.variables.items()
            },
            "at": self.at,
            "steps": self.steps,
            "profile_seconds": self.profile_seconds,
            "run_seconds": self.run_seconds,
            "profile_over_run": self.profile_over_run,
        }


def survey(kernel: Kernel, class_name: str) -> Survey:
    """Survey one class of `kernel` at the middle of its run."""
    module = kernel.module
    steps = kernel.problem(class_name).steps
    at = steps // 2
    start = module.initial_state(class_name)
    # Matrices and forcing terms are made once and kept: that is set-up, and belongs to neither time.
    module.output(module.step(start))
    middle, before = _timed(lambda: module.run(start, at))
    end, after = _timed(lambda: module.run(middle, steps - at))
    verified = bool(module.verify(end).verified)

    window = steps - at if kernel.counts_steps else None
    clock = time.perf_counter()
    try:
        found = profile(module.step, middle, module.output, steps=window)
    except ProfileError as refused:
        return Survey(verified, str(refused), {}, {}, at, steps, time.perf_counter() - clock, before + after)
    seconds = time.perf_counter() - clock

    masks = {name: variable.uncritical for name, variable in found.map.items()}
    poison, still_verified = _poison(kernel, middle, masks, end, steps - at)
    counts = {name: Count(mask.size, int(mask.sum())) for name, mask in masks.items()}
    where = {name: tuple(_regions(variable)) for name, variable in found.map.items()}
    if found.poison is not None and found.poison.outcome != IDENTICAL:
        poison = str(found.poison)
    return Survey(verified and still_verified, poison, counts, where, at, steps, seconds, before + after)


def _regions(variable: Variable) -> Iterator[str]:
    for state in (ElementState.DEAD, ElementState.INERT, ElementState.UNUSED):
        for region in describe(variable.name, variable.states == state, max_lines=REGIONS):
            yield f"{state.name.lower()} {region}"


def _timed(work: Callable[[], Result]) -> tuple[Result, float]:
    clock = time.perf_counter()
    result = work()
    return result, time.perf_counter() - clock


def _poison(kernel: Kernel, middle: State, masks: Masks, end: State, steps: int) -> tuple[str, bool]:
    """The verdict on runs from `middle` with each fill, and whether all of them pass the official test."""
    module = kernel.module
    expected = list(bits_of(module.output(end)))
    differing, verified = [], True
    with np.errstate(all="ignore"):
        for fill in FILLS:
            try:
                other = module.run(poisoned(middle, masks, fill), steps)
                same = list(bits_of(module.output(other))) == expected
                accepted = bool(module.verify(other).verified)
            except (ArithmeticError, LookupError, ValueError) as error:  # LinAlgError is a ValueError
                return f"{fill} ended the run: {type(error).__name__}: {error}", False
            verified = verified and accepted
            differing += [] if same else [fill]
    return (f"{', '.join(differing)} changed the output" if differing else IDENTICAL), verified
