"""The NAS MG benchmark (multigrid), classes S and W, in functional NumPy.

Each iteration is one V-cycle for a 3-D Poisson equation with periodic boundaries, on grids of 2^k points a
side. Method and reference values are those of the NAS Parallel Benchmarks (Bailey et al., report RNR-94-007;
verification values of NPB 3).

The state is what the benchmark must checkpoint: the solution ``u``, the residual ``r`` and the number ``it``
of finished iterations. ``u`` and ``r`` have the layout of the C version: flat, all levels one after the other
from the finest to the coarsest, each a cube with one ghost layer on every side, then unused elements at the
end (class S: 46480 elements for cubes of 34, 18, 10, 6 and 4).

An iteration starts anew on the coarse levels: their residuals are projected from the finest one, their
corrections start from zero. What they hold between iterations is stale; `step` leaves there what the
benchmark does.

`step` and `output` return new arrays and never write into their arguments. They take the array namespace of
``u``. May import NumPy, `kernel` and `randlc`. Tests: ``integration/npb/test_mg.py``.
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

FloatArray = NDArray[np.float64]

EPSILON = 1e-8
"""Largest relative deviation from the reference norm that the benchmark accepts."""

SEED = 314159265
CHARGES = 10
"""Number of points of the right-hand side with the value +1, and with -1."""

# Stencil weights of the operator A and of the smoother of classes S and W, by distance: centre, edge, corner
# of the 27-point cube for A (faces have weight 0); centre, face, edge for the smoother (corners: 0).
OPERATOR_CENTRE, OPERATOR_EDGE, OPERATOR_CORNER = -8.0 / 3.0, 1.0 / 6.0, 1.0 / 12.0
SMOOTHER_CENTRE, SMOOTHER_FACE, SMOOTHER_EDGE = -3.0 / 8.0, 1.0 / 32.0, -1.0 / 64.0

INSIDE = (slice(1, -1),) * 3


@dataclass(frozen=True)
class ProblemClass:
    """Levels (the finest has ``2^levels`` points a side), iterations and reference norm of one class."""

    name: str
    levels: int
    steps: int
    norm: float

    @property
    def points(self) -> int:
        """Points of the finest grid along a side, without ghosts."""
        return 1 << self.levels

    @property
    def extents(self) -> tuple[int, ...]:
        """Extents of the levels with ghosts, from the finest to the coarsest."""
        return tuple(2 + (1 << level) for level in range(self.levels, 0, -1))

    @property
    def shape(self) -> tuple[int]:
        """Shape of ``u`` and ``r`` in the C benchmark, which estimates the sum of the levels from above."""
        extent = self.points + 2
        return ((extent**3 + extent**2 + 5 * extent + 7 * self.levels + 6) // 7 * 8,)


CLASSES = {
    "S": ProblemClass("S", levels=5, steps=4, norm=0.5307707005734e-04),
    "W": ProblemClass("W", levels=7, steps=4, norm=0.6467329375339e-05),
}


@dataclass(frozen=True)
class Verification:
    """Outcome of the official test: `verified`, and the relative deviation of the residual's norm."""

    verified: bool
    norm_deviation: float


# ---- problem set-up (plain NumPy) ----


def problem_class(name: str) -> ProblemClass:
    """The benchmark class called `name` ("S" or "W"); ValueError for any other."""
    return class_named(CLASSES, name, "MG")


def problem_of(u: Array) -> ProblemClass:
    """The class whose layout `u` has; ValueError if there is none."""
    return class_of(CLASSES, "u", u, "MG")


def initial_state(name: str) -> State:
    """The state before the first step: ``u``, ``r`` (float64) and ``it`` = 0.

    The benchmark does one iteration beforehand and resets the finest level only, so the coarse levels hold
    what that iteration left.
    """
    problem = problem_class(name)
    zero = np.zeros(problem.shape)
    # With u = 0 the residual is the right-hand side itself.
    fine = _right_hand_side(name).ravel()
    r = np.concatenate([fine, zero[fine.size :]])
    warm = step({"u": zero, "r": r, "it": 0})
    return {
        "u": np.concatenate([zero[: fine.size], warm["u"][fine.size :]]),
        "r": np.concatenate([fine, warm["r"][fine.size :]]),
        "it": 0,
    }


@cache
def _right_hand_side(name: str) -> FloatArray:
    """The finest grid's right-hand side, with ghosts.

    +1 at the ten largest of the random numbers, -1 at the ten smallest, and 0 elsewhere.
    """
    n = problem_class(name).points
    order = np.argsort(uniform(SEED, n**3))
    charges = np.zeros(n**3)
    charges[order[:CHARGES]] = -1.0
    charges[order[-CHARGES:]] = 1.0
    field: FloatArray = _with_ghosts(charges.reshape(n, n, n), np)
    field.setflags(write=False)
    return field


# ---- the benchmark's public operations ----


def step(state: Mapping[str, Any]) -> State:
    """One V-cycle and the residual after it.

    Takes and returns a dict with ``u``, ``r`` (float64, flat) and ``it`` (int).
    """
    xp = namespace_of(state["u"])
    problem = problem_of(state["u"])
    fine_u, end = _finest(state["u"], problem)
    fine_r, _ = _finest(state["r"], problem)
    residuals = _projected(fine_r, problem, xp)
    corrections, residuals = _corrected(residuals, xp)

    source = _right_hand_side(problem.name)
    fine_u = fine_u + _interpolated(corrections[0], xp)
    fine_u = _smoothed(fine_u, _residual(fine_u, source, xp), xp)
    fine_r = _residual(fine_u, source, xp)
    return {
        "u": _flat([fine_u, *corrections], state["u"][end:], xp),
        "r": _flat([fine_r, *residuals], state["r"][end:], xp),
        "it": state["it"] + 1,
    }


def run(state: Mapping[str, Any], steps: int) -> State:
    """`steps` iterations from `state`."""
    return repeated(step, state, steps)


def output(state: Mapping[str, Any]) -> dict[str, Array]:
    """The verified ``norm``: root mean square of the residual on the finest grid."""
    xp = namespace_of(state["r"])
    problem = problem_of(state["r"])
    inside = _finest(state["r"], problem)[0][INSIDE]
    return {"norm": xp.sqrt(xp.sum(inside * inside) / problem.points**3)}


def verify(state: Mapping[str, Any]) -> Verification:
    """Compare the norm of a finished run with the reference value of its class.

    A state that is not at its class's last step never verifies: the reference belongs to that step.
    """
    problem = problem_of(state["r"])
    deviation = abs(float(output(state)["norm"]) - problem.norm) / problem.norm
    return Verification(deviation <= EPSILON and state["it"] == problem.steps, deviation)


# ---- layout ----


def _finest(flat: Array, problem: ProblemClass) -> tuple[Array, int]:
    """The finest level as a cube, and the number of elements in all levels."""
    extent = problem.extents[0]
    return flat[: extent**3].reshape((extent,) * 3), sum(e**3 for e in problem.extents)


def _flat(levels: list[Array], unused: Array, xp: Any) -> Array:
    """All levels and the unused elements in the flat layout."""
    return xp.concatenate([*(xp.reshape(level, (-1,)) for level in levels), unused])


def _with_ghosts(inside: Array, xp: Any) -> Array:
    """The cube with a ghost layer around it, periodic in all three directions."""
    for axis in (2, 1, 0):
        before = (slice(None),) * axis
        last, first = inside[(*before, slice(-1, None))], inside[(*before, slice(0, 1))]
        inside = xp.concatenate([last, inside, first], axis=axis)
    return inside


# ---- the V-cycle ----


def _projected(residual: Array, problem: ProblemClass, xp: Any) -> list[Array]:
    """Residuals of the coarse levels, from fine to coarse."""
    found = []
    for _ in problem.extents[1:]:
        residual = _restricted(residual, xp)
        found.append(residual)
    return found


def _corrected(residuals: list[Array], xp: Any) -> tuple[list[Array], list[Array]]:
    """Corrections of the coarse levels and the residuals they leave, both from fine to coarse."""
    coarsest = residuals[-1]
    corrections = [_smoothed(np.zeros(np.shape(coarsest)), coarsest, xp)]
    left = [coarsest]
    for residual in reversed(residuals[:-1]):
        # The correction of this level starts from zero.
        correction = _interpolated(corrections[-1], xp)
        remaining = _residual(correction, residual, xp)
        corrections.append(_smoothed(correction, remaining, xp))
        left.append(remaining)
    return corrections[::-1], left[::-1]


def _restricted(fine: Array, xp: Any) -> Array:
    """The residual projected to the next coarser grid (full weighting); ghosts filled.

    Coarse point j lies at fine point 2j, so the lower ghosts are never looked at.
    """
    points = np.shape(fine)[0] - 2
    fine = fine[1:, 1:, 1:]
    for axis in range(3):
        before = (slice(None),) * axis
        low, middle, high = (fine[(*before, slice(i, points + i, 2))] for i in range(3))
        fine = middle + 0.5 * (low + high)
    return _with_ghosts(0.5 * fine, xp)


def _interpolated(coarse: Array, xp: Any) -> Array:
    """Trilinear interpolation to the next finer grid, ghosts included."""
    for axis in range(3):
        before = (slice(None),) * axis
        low, high = coarse[(*before, slice(None, -1))], coarse[(*before, slice(1, None))]
        pairs = xp.stack([low, 0.5 * (low + high)], axis=axis + 1)
        shape = list(np.shape(coarse))
        shape[axis] = 2 * (shape[axis] - 1)
        coarse = xp.reshape(pairs, shape)
    return coarse


def _residual(u: Array, source: Array, xp: Any) -> Array:
    """``source - A u``; ghosts filled."""
    edges, corners = _ring(u)
    return _with_ghosts(
        source[INSIDE]
        - OPERATOR_CENTRE * u[INSIDE]
        - OPERATOR_EDGE * (corners[:, :, 1:-1] + edges[:, :, :-2] + edges[:, :, 2:])
        - OPERATOR_CORNER * (corners[:, :, :-2] + corners[:, :, 2:]),
        xp,
    )


def _smoothed(u: Array, residual: Array, xp: Any) -> Array:
    """``u`` plus the smoother applied to the residual; ghosts filled."""
    faces, edges = _ring(residual)
    middle = residual[1:-1, 1:-1]
    return _with_ghosts(
        u[INSIDE]
        + SMOOTHER_CENTRE * residual[INSIDE]
        + SMOOTHER_FACE * (middle[:, :, :-2] + middle[:, :, 2:] + faces[:, :, 1:-1])
        + SMOOTHER_EDGE * (edges[:, :, 1:-1] + faces[:, :, :-2] + faces[:, :, 2:]),
        xp,
    )


def _ring(cube: Array) -> tuple[Array, Array]:
    """Sums over the four nearest and the four diagonal neighbours in the planes across the last axis."""
    nearest = cube[1:-1, :-2] + cube[1:-1, 2:] + cube[:-2, 1:-1] + cube[2:, 1:-1]
    diagonal = cube[:-2, :-2] + cube[:-2, 2:] + cube[2:, :-2] + cube[2:, 2:]
    return nearest, diagonal
