"""The NAS EP benchmark (embarrassingly parallel), classes S and W, in functional NumPy.

Pairs of uniform random numbers are turned into Gaussian deviates by rejection; the deviates are added up,
and counted by square annulus. Method and reference values are those of the NAS Parallel Benchmarks (Bailey et
al., report RNR-94-007; verification values of NPB 3).

The state is what the benchmark must checkpoint: the sums ``sx`` and ``sy``, the ten counts ``q`` and the
number ``k`` of finished batches. A batch is 2^16 pairs in every class, and its random numbers follow from
``k``. The state does not tell its class: classes differ in the number of batches only.

`step` and `output` return new arrays and never write into their arguments. May import NumPy, `kernel` and
`randlc`. Tests: ``integration/npb/test_ep.py``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from kernel import Array, State, class_named, repeated
from numpy.typing import NDArray
from randlc import skipped, uniform

EPSILON = 1e-8
"""Largest relative deviation from the reference sums that the benchmark accepts."""

SEED = 271828183
PAIRS_LOG2 = 16
"""log2 of the number of pairs in a batch."""
ANNULI = 10


@dataclass(frozen=True)
class ProblemClass:
    """log2 of the number of pairs, and the reference sums, of one benchmark class."""

    name: str
    pairs_log2: int
    sx: float
    sy: float

    @property
    def steps(self) -> int:
        """Number of batches of a whole run."""
        return 1 << (self.pairs_log2 - PAIRS_LOG2)


CLASSES = {
    "S": ProblemClass("S", pairs_log2=24, sx=-3.247834652034740e3, sy=-6.958407078382297e3),
    "W": ProblemClass("W", pairs_log2=25, sx=-2.863319731645753e3, sy=-6.320053679109499e3),
}


@dataclass(frozen=True)
class Verification:
    """Outcome of the official test: `verified`, and the relative deviations of the two sums."""

    verified: bool
    sx_deviation: float
    sy_deviation: float


def problem_class(name: str) -> ProblemClass:
    """The benchmark class called `name` ("S" or "W"); ValueError for any other."""
    return class_named(CLASSES, name, "EP")


def initial_state(name: str) -> State:
    """The state before the first step, all zero; the same for every class, whose `name` is only checked."""
    problem_class(name)
    return {"sx": 0.0, "sy": 0.0, "q": np.zeros(ANNULI), "k": 0}


def step(state: Mapping[str, Any]) -> State:
    """One batch. Takes and returns a dict with ``sx``, ``sy`` (float), ``q`` (float64, ten), ``k`` (int)."""
    x, y = _gaussian_pairs(state["k"])
    annulus = np.maximum(np.abs(x), np.abs(y)).astype(np.intp)
    return {
        "sx": state["sx"] + float(x.sum()),
        "sy": state["sy"] + float(y.sum()),
        "q": state["q"] + np.bincount(annulus, minlength=ANNULI),
        "k": state["k"] + 1,
    }


def run(state: Mapping[str, Any], steps: int) -> State:
    """`steps` batches from `state`."""
    return repeated(step, state, steps)


def output(state: Mapping[str, Any]) -> dict[str, Array]:
    """What the benchmark reports: the verified sums ``sx`` and ``sy``, and the counts ``q``."""
    return {"sx": state["sx"], "sy": state["sy"], "q": state["q"]}


def verify(state: Mapping[str, Any]) -> Verification:
    """Compare the sums of a finished run with the reference values of the class that ends at its batch.

    A state at another batch never verifies; its deviations are NaN.
    """
    for problem in CLASSES.values():
        if state["k"] == problem.steps:
            deviations = [
                abs((float(state[name]) - reference) / reference)
                for name, reference in (("sx", problem.sx), ("sy", problem.sy))
            ]
            return Verification(max(deviations) <= EPSILON, *deviations)
    return Verification(False, math.nan, math.nan)


def _gaussian_pairs(batch: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The deviates of batch number `batch` from 0 (Marsaglia's polar method)."""
    numbers = 2 << PAIRS_LOG2
    points = 2.0 * uniform(skipped(SEED, numbers * batch), numbers) - 1.0
    x, y = points.reshape(-1, 2).T
    radius = x * x + y * y
    inside = radius <= 1.0
    x, y, radius = x[inside], y[inside], radius[inside]
    factor = np.sqrt(-2.0 * np.log(radius) / radius)
    return x * factor, y * factor
