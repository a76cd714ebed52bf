"""What the NAS kernels SP, LU and BT share: one discrete Navier-Stokes problem, solved in three ways.

The compressible Navier-Stokes equations on a cube of n points a side, with a forcing term that makes a
polynomial the exact steady solution. The kernels differ in how they step towards it; problem, spatial
operator, initial field and verified norms are these (Bailey et al., report RNR-94-007). The operator is
written once for a general direction instead of once for each axis.

Fields are component first, ``[m, k, j, i]``, without padding. Functions that take an array namespace `xp` run
on NumPy arrays and on arrays of ``autograd.numpy``, return new arrays and never write into their arguments.

May import NumPy and `kernel`. Tests: ``integration/npb/test_sp.py``, ``test_lu.py``, ``test_bt.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from kernel import Array
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

EPSILON = 1e-8
"""Largest relative deviation from the reference norms that the benchmarks accept."""

# Gas constants and viscosity of the benchmark: C1 is the ratio of specific heats.
C1, C2, C3, C4 = 1.4, 0.4, 0.1, 1.0
C3C4 = C3 * C4
C1C5 = C1 * 1.4
C1345 = C1C5 * C3C4
NORMAL_VISCOSITY = 4.0 / 3.0
ARTIFICIAL_DIFFUSION = (0.75, 0.75, 1.0)
DISSIPATION = 0.25 * max(ARTIFICIAL_DIFFUSION)

# Coefficients of the exact solution: rows are the constant, then for each power 1 to 4 the terms in xi, eta
# and zeta; columns are the five components.
EXACT_COEFFICIENTS: FloatArray = np.array(
    [
        [2.0, 1.0, 2.0, 2.0, 5.0],
        [0.0, 0.0, 2.0, 2.0, 4.0],
        [0.0, 0.0, 0.0, 0.0, 3.0],
        [4.0, 0.0, 0.0, 0.0, 2.0],
        [5.0, 1.0, 0.0, 0.0, 0.1],
        [3.0, 2.0, 2.0, 2.0, 0.4],
        [0.5, 3.0, 3.0, 3.0, 0.3],
        [0.02, 0.01, 0.04, 0.03, 0.05],
        [0.01, 0.03, 0.03, 0.05, 0.04],
        [0.03, 0.02, 0.05, 0.04, 0.03],
        [0.5, 0.4, 0.3, 0.2, 0.1],
        [0.4, 0.3, 0.5, 0.1, 0.3],
        [0.3, 0.5, 0.4, 0.3, 0.2],
    ]
)

AXIS_OF_DIRECTION = (3, 2, 1)
"""Axis of a field along which direction x, y, z runs."""


# ---- problem classes ----


@dataclass(frozen=True)
class ProblemClass:
    """Size, time step, number of steps and reference norms of one benchmark class."""

    name: str
    points: int
    dt: float
    steps: int
    residual: tuple[float, ...]
    error: tuple[float, ...]

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Shape of ``u`` in the C benchmark: odd extents in the two inner grid dimensions."""
        padded = self.points // 2 * 2 + 1
        return (self.points, padded, padded, 5)


@dataclass(frozen=True)
class Verification:
    """Outcome of the official test: `verified`, and the relative deviations of the five norms each."""

    verified: bool
    residual_deviation: FloatArray
    error_deviation: FloatArray


def relative_deviation(found: Any, reference: Any) -> FloatArray:
    """``|found - reference| / |reference|``."""
    expected = np.asarray(reference, dtype=np.float64)
    return np.asarray(np.abs((np.asarray(found) - expected) / expected))


# ---- exact solution, initial field and forcing (plain NumPy) ----


def exact_solution(xi: FloatArray, eta: FloatArray, zeta: FloatArray) -> FloatArray:
    """Exact solution at broadcast coordinates in [0, 1]; shape of the broadcast plus ``(5,)``."""
    point = np.stack(np.broadcast_arrays(xi, eta, zeta), axis=-1)[..., None]
    powers = EXACT_COEFFICIENTS[1:].reshape(4, 3, 5)
    terms = point * (powers[0] + point * (powers[1] + point * (powers[2] + point * powers[3])))
    values: FloatArray = EXACT_COEFFICIENTS[0] + terms.sum(axis=-2)
    return values


@cache
def exact_on_grid(n: int) -> FloatArray:
    """Exact solution on the grid of `n` points a side, ``[k, j, i, m]``, read-only."""
    solution = exact_solution(*_coordinates(n))
    solution.setflags(write=False)
    return solution


def initial_field(n: int) -> FloatArray:
    """``[k, j, i, m]``: exact on the faces, within them the transfinite interpolation of the faces."""
    xi, eta, zeta = _coordinates(n)
    exact = exact_on_grid(n)

    def between(coordinate: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
        weight = coordinate[..., None]
        return weight * high + (1.0 - weight) * low

    along_x = between(xi, exact[:, :, :1], exact[:, :, -1:])
    along_y = between(eta, exact[:, :1, :], exact[:, -1:, :])
    along_z = between(zeta, exact[:1, :, :], exact[-1:, :, :])
    interpolated = 1.0 - (1.0 - along_x) * (1.0 - along_y) * (1.0 - along_z)
    interior = (slice(1, -1),) * 3
    field = exact.copy()
    field[interior] = interpolated[interior]
    return field


@cache
def forcing(n: int) -> FloatArray:
    """Forcing on the interior, ``[m, k, j, i]``, read-only: it makes the exact solution stationary."""
    exact = np.moveaxis(exact_on_grid(n), -1, 0)
    term: FloatArray = -spatial_terms(exact, primitives(exact), np)
    term.setflags(write=False)
    return term


def _coordinates(n: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Coordinates xi, eta, zeta on the grid ``[k, j, i]``, as broadcastable arrays."""
    line = np.arange(n) / (n - 1)
    return line[None, None, :], line[None, :, None], line[:, None, None]


# ---- layout ----


def components_first(u: Array, n: int, xp: Any) -> Array:
    """The grid without padding as ``[m, k, j, i]``."""
    return xp.moveaxis(u[:, :n, :n, :], -1, 0)


def with_interior(u: Array, field: Array, update: Array, n: int, xp: Any) -> Array:
    """``u`` with the update added to the interior; faces and padding are copied, not computed."""
    core = xp.moveaxis(field[:, 1:-1, 1:-1, 1:-1] + update, 0, -1)
    last = n - 1
    rows = xp.concatenate([u[1:last, 1:last, :1], core, u[1:last, 1:last, last:]], axis=2)
    planes = xp.concatenate([u[1:last, :1], rows, u[1:last, last:]], axis=1)
    return xp.concatenate([u[:1], planes, u[last:]], axis=0)


def along(axis: int, start: int, stop: int | None) -> tuple[slice, ...]:
    """Index of a field: the given range on `axis`, the interior on the other grid axes."""
    index = [slice(None)] + [slice(1, -1)] * 3
    index[axis] = slice(start, stop)
    return tuple(index)


# ---- spatial operator ----


def primitives(field: Array) -> tuple[Array, Array, Array]:
    """Velocities ``[3, ...]``, specific kinetic energy and 1 / density of a field ``[5, ...]``."""
    inverse = 1.0 / field[0]
    velocity = field[1:4] * inverse
    kinetic = 0.5 * (velocity[0] * velocity[0] + velocity[1] * velocity[1] + velocity[2] * velocity[2])
    return velocity, kinetic, inverse


def spatial_terms(field: Array, quantities: tuple[Array, Array, Array], xp: Any) -> Array:
    """Flux differences, viscous terms and dissipation on the interior, ``[5, n-2, n-2, n-2]``.

    `quantities` are the `primitives` of `field`.
    """
    total = _direction_terms(field, quantities, 0, xp)
    for direction in (1, 2):
        total = total + _direction_terms(field, quantities, direction, xp)
    return total


def _direction_terms(field: Array, quantities: tuple[Array, Array, Array], direction: int, xp: Any) -> Array:
    axis = AXIS_OF_DIRECTION[direction]
    inverse_spacing = np.shape(field)[axis] - 1
    flux, diffused = _flux_and_diffused(field, quantities, direction, inverse_spacing**2, xp)
    convection = -0.5 * inverse_spacing * (flux[along(axis, 2, None)] - flux[along(axis, 0, -2)])
    diffusion = (
        diffused[along(axis, 2, None)] - 2.0 * diffused[along(axis, 1, -1)] + diffused[along(axis, 0, -2)]
    )
    interior = field[along(axis, 1, -1)]
    smoothing = _second_difference(_second_difference(interior, axis, xp), axis, xp)
    return convection + diffusion - DISSIPATION * smoothing


def _flux_and_diffused(
    field: Array, quantities: tuple[Array, Array, Array], direction: int, scale: float, xp: Any
) -> tuple[Array, Array]:
    """Convective flux, and the quantities whose second difference is the diffusion, both ``[5, ...]``."""
    velocity, kinetic, inverse = quantities
    density, energy = field[0], field[4]
    normal = velocity[direction]
    pressure = C2 * (energy - density * kinetic)
    flux = [field[m] * normal for m in range(4)] + [(energy + pressure) * normal]
    flux[1 + direction] = flux[1 + direction] + pressure

    viscosity = C3C4 * scale
    artificial = ARTIFICIAL_DIFFUSION[direction] * scale
    heat = viscosity * ((1.0 - C1C5) * kinetic + normal * normal / 6.0 + C1C5 * (energy * inverse))
    diffused = [artificial * density]
    for i in range(3):
        factor = NORMAL_VISCOSITY if i == direction else 1.0
        diffused.append(artificial * field[1 + i] + viscosity * factor * velocity[i])
    diffused.append(artificial * energy + heat)
    return xp.stack(flux), xp.stack(diffused)


def _second_difference(interior: Array, axis: int, xp: Any) -> Array:
    """Second difference with zeros beyond both ends.

    Applied twice to the interior it gives the benchmark's fourth-order dissipation together with the
    one-sided stencils (5, -4, 1) and (-4, 6, -4, 1) that it prescribes beside a face.
    """
    length = np.shape(interior)[axis]
    before = (slice(None),) * axis
    zero_shape = list(np.shape(interior))
    zero_shape[axis] = 1
    zeros = np.zeros(zero_shape)
    padded = xp.concatenate([zeros, interior, zeros], axis=axis)
    above = padded[(*before, slice(2, length + 2))]
    below = padded[(*before, slice(0, length))]
    return above - 2.0 * interior + below


# ---- verified norms ----


def root_mean_square(values: Array, n: int, xp: Any) -> Array:
    """Norm of each component of values ``[m, k, j, i]``, per interior point of the grid of `n`."""
    return xp.sqrt(xp.sum(values * values, axis=(1, 2, 3)) / (n - 2) ** 3)


def solution_norms(u: Array, n: int, xp: Any) -> dict[str, Array]:
    """Norms of the right-hand side over the interior and of the error over the whole grid, ``(5,)`` each."""
    field = components_first(u, n, xp)
    residual = forcing(n) + spatial_terms(field, primitives(field), xp)
    error = field - np.moveaxis(exact_on_grid(n), -1, 0)
    return {"residual": root_mean_square(residual, n, xp), "error": root_mean_square(error, n, xp)}


def verify_norms(norms: Mapping[str, Array], problem: ProblemClass, at_last_step: bool) -> Verification:
    """Compare the norms with the reference values of the class, which belong to its last step."""
    residual = relative_deviation(norms["residual"], problem.residual)
    error = relative_deviation(norms["error"], problem.error)
    close = bool((residual <= EPSILON).all() and (error <= EPSILON).all())
    return Verification(close and at_last_step, residual, error)
