"""The NAS FT benchmark (3-D fast Fourier transform), classes S and W, in functional NumPy.

A diffusion equation is solved in Fourier space: each iteration multiplies the spectrum by a Gaussian factor,
transforms it back and sums 1024 elements of the result as a checksum. Method and reference values are those
of the NAS Parallel Benchmarks (Bailey et al., report RNR-94-007; verification values of NPB 3).

The state is what the benchmark must checkpoint: the spectrum ``y``, the checksums ``sums`` and the number
``kt`` of finished iterations. ``y`` has the layout of the C version with padding, ``y[k][j][i]`` with one
element of padding in ``i`` (class S: ``y[64][64][65]``); ``sums[0]`` is not used.

An iteration writes ``sums[kt]``, so the structure of `step` depends on the counter.

`step` and `output` return new arrays and never write into their arguments. They take the array namespace of
``y``. May import NumPy, `kernel` and `randlc`. Tests: ``integration/npb/test_ft.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from kernel import Array, State, class_named, class_of, namespace_of, repeated
from numpy.typing import NDArray
from randlc import uniform

EPSILON = 1e-12
"""Largest relative deviation from a reference checksum that the benchmark accepts."""

SEED = 314159265
DIFFUSIVITY = 1e-6
CHECKSUM_TERMS = 1024


@dataclass(frozen=True)
class ProblemClass:
    """Grid (points along k, j, i) and reference checksums, one an iteration, of one benchmark class."""

    name: str
    points: tuple[int, int, int]
    checksums: tuple[complex, ...]

    @property
    def shape(self) -> tuple[int, int, int]:
        """Shape of ``y`` in the C benchmark: one element of padding in the innermost dimension."""
        k, j, i = self.points
        return (k, j, i + 1)

    @property
    def steps(self) -> int:
        """Number of iterations of a whole run."""
        return len(self.checksums)


CLASSES = {
    "S": ProblemClass(
        name="S",
        points=(64, 64, 64),
        checksums=(
            5.546087004964e02 + 4.845363331978e02j,
            5.546385409189e02 + 4.865304269511e02j,
            5.546148406171e02 + 4.883910722336e02j,
            5.545423607415e02 + 4.901273169046e02j,
            5.544255039624e02 + 4.917475857993e02j,
            5.542683411902e02 + 4.932597244941e02j,
        ),
    ),
    "W": ProblemClass(
        name="W",
        points=(32, 128, 128),
        checksums=(
            5.673612178944e02 + 5.293246849175e02j,
            5.631436885271e02 + 5.282149986629e02j,
            5.594024089970e02 + 5.270996558037e02j,
            5.560698047020e02 + 5.260027904925e02j,
            5.530898991250e02 + 5.249400845633e02j,
            5.504159734538e02 + 5.239212247086e02j,
        ),
    ),
}


@dataclass(frozen=True)
class Verification:
    """Outcome of the official test: `verified`, and the relative deviation of each checksum."""

    verified: bool
    checksum_deviation: NDArray[np.float64]


# ---- problem set-up (plain NumPy) ----


def problem_class(name: str) -> ProblemClass:
    """The benchmark class called `name` ("S" or "W"); ValueError for any other."""
    return class_named(CLASSES, name, "FT")


def problem_of(y: Array) -> ProblemClass:
    """The class whose padded layout `y` has; ValueError if there is none."""
    return class_of(CLASSES, "y", y, "FT")


def initial_state(name: str) -> State:
    """The state before the first step: ``y`` and ``sums`` (complex128, padding and sums zero), ``kt`` = 0.

    ``y`` is the transform of random data; the benchmark's forward transform has a positive exponent.
    """
    problem = problem_class(name)
    size = int(np.prod(problem.points))
    data = uniform(SEED, 2 * size).view(np.complex128).reshape(problem.points)
    y = np.zeros(problem.shape, dtype=np.complex128)
    y[..., : problem.points[2]] = np.fft.ifftn(data, norm="forward")
    return {"y": y, "sums": np.zeros(problem.steps + 1, dtype=np.complex128), "kt": 0}


@cache
def _decay(points: tuple[int, int, int]) -> NDArray[np.float64]:
    """The factor of every mode for one iteration."""
    k, j, i = (np.fft.fftfreq(n, 1.0 / n) for n in points)
    squared = k[:, None, None] ** 2 + j[:, None] ** 2 + i**2
    factor: NDArray[np.float64] = np.exp(-4.0 * DIFFUSIVITY * np.pi**2 * squared)
    factor.setflags(write=False)
    return factor


@cache
def _sampled(points: tuple[int, int, int]) -> tuple[NDArray[np.intp], ...]:
    """Indices in k, j and i of the elements that the checksum adds up."""
    term = np.arange(1, CHECKSUM_TERMS + 1)
    return tuple(factor * term % n for factor, n in zip((5, 3, 1), points, strict=True))


# ---- the benchmark's public operations ----


def step(state: Mapping[str, Any]) -> State:
    """One iteration. Takes and returns a dict with ``y``, ``sums`` (complex128) and ``kt`` (int).

    Raises ValueError if the run is over: ``sums`` has no place for another checksum.
    """
    y, sums, kt = state["y"], state["sums"], state["kt"] + 1
    xp = namespace_of(y)
    points = problem_of(y).points
    if not 0 < kt < np.shape(sums)[0]:
        raise ValueError(f"kt is {state['kt']}: there is no iteration {kt} of {np.shape(sums)[0] - 1}")
    spectrum = y[..., : points[2]] * _decay(points)
    checksum = _checksum(xp.fft.fftn(spectrum), points, xp)
    return {
        "y": xp.concatenate([spectrum, y[..., points[2] :]], axis=2),
        "sums": xp.concatenate([sums[:kt], xp.reshape(checksum, (1,)), sums[kt + 1 :]]),
        "kt": kt,
    }


def run(state: Mapping[str, Any], steps: int) -> State:
    """`steps` iterations from `state`."""
    return repeated(step, state, steps)


def output(state: Mapping[str, Any]) -> dict[str, Array]:
    """The verified ``checksums`` of the iterations so far."""
    return {"checksums": state["sums"][1 : state["kt"] + 1]}


def verify(state: Mapping[str, Any]) -> Verification:
    """Compare the checksums of a finished run with the reference values of its class.

    A state that is not at its class's last step never verifies: it lacks checksums.
    """
    problem = problem_of(state["y"])
    found, reference = np.asarray(output(state)["checksums"]), np.array(problem.checksums)
    reference = reference[: len(found)]
    deviation = np.abs((found - reference) / reference)
    close = bool((deviation <= EPSILON).all())
    return Verification(close and state["kt"] == problem.steps, deviation)


def _checksum(field: Array, points: tuple[int, int, int], xp: Any) -> Array:
    return xp.sum(field[_sampled(points)]) / float(np.prod(points))
