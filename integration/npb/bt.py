"""The NAS BT benchmark (block tridiagonal solver), classes S and W, in functional NumPy.

Each time step approximately factors an implicit scheme for the 3-D compressible Navier-Stokes equations
into three sweeps of block-tridiagonal line solves with 5x5 blocks. Method and reference values are those of
the NAS Parallel Benchmarks (Bailey et al., report RNR-94-007; verification values of NPB 3). The flux and
its Jacobians are written once for a general direction instead of once for each axis.

The state is what the benchmark must checkpoint: the solution ``u`` and the step counter. ``u`` has the
layout of the C version, ``u[k][j][i][m]`` with one element of padding in ``j`` and ``i`` (class S:
``u[12][13][13][5]``).

`step` and `output` return new arrays and never write into their arguments. They take the array namespace of
``u``, so the same code runs on NumPy arrays and on arrays of ``autograd.numpy``.

May import NumPy and the standard library. Tests: ``integration/npb/test_bt.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = Any
"""A NumPy array, or an array of `autograd.numpy` that stands for one."""

FloatArray = NDArray[np.float64]

EPSILON = 1e-8
"""Largest relative deviation from the reference norms that the benchmark accepts."""

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
"""Axis of the component-first array ``[m, k, j, i]`` along which direction x, y, z runs."""


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


CLASSES = {
    "S": ProblemClass(
        name="S",
        points=12,
        dt=0.010,
        steps=60,
        residual=(
            1.7034283709541311e-01,
            1.2975252070034097e-02,
            3.2527926989486055e-02,
            2.6436421275166801e-02,
            1.9211784131744430e-01,
        ),
        error=(
            4.9976913345811579e-04,
            4.5195666782961927e-05,
            7.3973765172921357e-05,
            7.3821238632439731e-05,
            8.9269630987491446e-04,
        ),
    ),
    "W": ProblemClass(
        name="W",
        points=24,
        dt=0.0008,
        steps=200,
        residual=(
            0.1125590409344e03,
            0.1180007595731e02,
            0.2710329767846e02,
            0.2469174937669e02,
            0.2638427874317e03,
        ),
        error=(
            0.4419655736008e01,
            0.4638531260002e00,
            0.1011551749967e01,
            0.9235878729944e00,
            0.1018045837718e02,
        ),
    ),
}


@dataclass(frozen=True)
class Verification:
    """Outcome of the official test: `verified`, and the relative deviations of the five norms each."""

    verified: bool
    residual_deviation: FloatArray
    error_deviation: FloatArray


# ---- problem set-up (plain NumPy) ----


def problem_class(name: str) -> ProblemClass:
    """The benchmark class called `name` ("S" or "W"); ValueError for any other."""
    try:
        return CLASSES[name]
    except KeyError:
        raise ValueError(f"unknown BT class {name!r}: expected one of {', '.join(CLASSES)}") from None


def initial_state(name: str) -> dict[str, Any]:
    """The state before the first step: ``u`` (float64, padded layout, zero padding) and ``step`` = 0."""
    problem = problem_class(name)
    u = np.zeros(problem.shape)
    n = problem.points
    u[:, :n, :n, :] = _interpolated_from_faces(n)
    return {"u": u, "step": 0}


def exact_solution(xi: FloatArray, eta: FloatArray, zeta: FloatArray) -> FloatArray:
    """Exact solution at broadcast coordinates in [0, 1]; shape of the broadcast plus ``(5,)``."""
    point = np.stack(np.broadcast_arrays(xi, eta, zeta), axis=-1)[..., None]
    powers = EXACT_COEFFICIENTS[1:].reshape(4, 3, 5)
    terms = point * (powers[0] + point * (powers[1] + point * (powers[2] + point * powers[3])))
    solution: FloatArray = EXACT_COEFFICIENTS[0] + terms.sum(axis=-2)
    return solution


def _grid(n: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Coordinates xi, eta, zeta on the grid ``[k, j, i]``, as broadcastable arrays."""
    line = np.arange(n) / (n - 1)
    return line[None, None, :], line[None, :, None], line[:, None, None]


@cache
def _exact_on_grid(n: int) -> FloatArray:
    solution = exact_solution(*_grid(n))
    solution.setflags(write=False)
    return solution


def _interpolated_from_faces(n: int) -> FloatArray:
    """Transfinite interpolation of the exact values on the six faces, exact on the faces themselves."""
    xi, eta, zeta = _grid(n)
    exact = _exact_on_grid(n)

    def between(coordinate: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
        weight = coordinate[..., None]
        return weight * high + (1.0 - weight) * low

    along_x = between(xi, exact[:, :, :1], exact[:, :, -1:])
    along_y = between(eta, exact[:, :1, :], exact[:, -1:, :])
    along_z = between(zeta, exact[:1, :, :], exact[-1:, :, :])
    u = 1.0 - (1.0 - along_x) * (1.0 - along_y) * (1.0 - along_z)
    interior = (slice(1, -1),) * 3
    field = exact.copy()
    field[interior] = u[interior]
    return field


@cache
def _forcing(n: int) -> FloatArray:
    """Forcing on the interior, ``[m, k, j, i]``: it makes the exact solution stationary."""
    forcing: FloatArray = -_spatial_terms(np.moveaxis(_exact_on_grid(n), -1, 0), np)
    forcing.setflags(write=False)
    return forcing


def problem_of(u: Array) -> ProblemClass:
    """The class whose padded layout `u` has; ValueError if there is none."""
    for problem in CLASSES.values():
        if np.shape(u) == problem.shape:
            return problem
    known = ", ".join(f"{p.name} {p.shape}" for p in CLASSES.values())
    raise ValueError(f"u has shape {np.shape(u)}, which is no BT class; expected one of: {known}")


def _namespace(u: Array) -> Any:
    """Array namespace of `u`: NumPy, or autograd's NumPy for its arrays."""
    namespace = getattr(u, "__array_namespace__", None)
    return np if namespace is None else namespace()


# ---- the benchmark's public operations ----


def step(state: Mapping[str, Any]) -> dict[str, Any]:
    """One time step. Takes and returns a dict with ``u`` (float64, padded) and ``step`` (int)."""
    u = state["u"]
    xp = _namespace(u)
    problem = problem_of(u)
    field = _components_first(u, problem.points, xp)
    update = problem.dt * (_forcing(problem.points) + _spatial_terms(field, xp))
    for direction in range(3):
        update = _solve_lines(field, update, direction, problem, xp)
    return {"u": _with_interior(u, field, update, problem.points, xp), "step": state["step"] + 1}


def run(state: Mapping[str, Any], steps: int) -> dict[str, Any]:
    """`steps` time steps from `state`."""
    current = dict(state)
    for _ in range(steps):
        current = step(current)
    return current


def output(state: Mapping[str, Any]) -> dict[str, Array]:
    """The verified norms, five values each: ``residual`` (right-hand side) and ``error`` (solution)."""
    u = state["u"]
    xp = _namespace(u)
    n = problem_of(u).points
    residual = _forcing(n) + _spatial_terms(_components_first(u, n, xp), xp)
    error = u[:, :n, :n, :] - _exact_on_grid(n)
    cells = (n - 2) ** 3
    return {
        "residual": xp.sqrt(xp.sum(residual * residual, axis=(1, 2, 3)) / cells),
        "error": xp.sqrt(xp.sum(error * error, axis=(0, 1, 2)) / cells),
    }


def verify(state: Mapping[str, Any]) -> Verification:
    """Compare the norms of a finished run with the reference values of its class.

    A state that is not at its class's last step never verifies: the reference belongs to that step.
    """
    problem = problem_of(state["u"])
    norms = output(state)
    residual = np.abs(norms["residual"] - np.array(problem.residual)) / np.array(problem.residual)
    error = np.abs(norms["error"] - np.array(problem.error)) / np.array(problem.error)
    close = bool((residual <= EPSILON).all() and (error <= EPSILON).all())
    return Verification(close and state["step"] == problem.steps, residual, error)


# ---- layout ----


def _components_first(u: Array, n: int, xp: Any) -> Array:
    """The grid without padding as ``[m, k, j, i]``."""
    return xp.moveaxis(u[:, :n, :n, :], -1, 0)


def _with_interior(u: Array, field: Array, update: Array, n: int, xp: Any) -> Array:
    """``u`` with the update added to the interior; faces and padding are copied, not computed."""
    core = xp.moveaxis(field[:, 1:-1, 1:-1, 1:-1] + update, 0, -1)
    last = n - 1
    rows = xp.concatenate([u[1:last, 1:last, :1], core, u[1:last, 1:last, last:]], axis=2)
    planes = xp.concatenate([u[1:last, :1], rows, u[1:last, last:]], axis=1)
    return xp.concatenate([u[:1], planes, u[last:]], axis=0)


def _along(axis: int, start: int, stop: int | None) -> tuple[slice, ...]:
    """Index of a component-first array: the given range on `axis`, the interior on the other grid axes."""
    index = [slice(None)] + [slice(1, -1)] * 3
    index[axis] = slice(start, stop)
    return tuple(index)


# ---- right-hand side ----


def _primitives(field: Array) -> tuple[Array, Array, Array]:
    """Velocities ``[3, ...]``, specific kinetic energy and 1 / density of a field ``[5, ...]``."""
    inverse = 1.0 / field[0]
    velocity = field[1:4] * inverse
    kinetic = 0.5 * (velocity[0] * velocity[0] + velocity[1] * velocity[1] + velocity[2] * velocity[2])
    return velocity, kinetic, inverse


def _spatial_terms(field: Array, xp: Any) -> Array:
    """Flux differences, viscous terms and dissipation on the interior, ``[5, n-2, n-2, n-2]``."""
    total = None
    quantities = _primitives(field)
    for direction in range(3):
        term = _direction_terms(field, quantities, direction, xp)
        total = term if total is None else total + term
    return total


def _direction_terms(field: Array, quantities: tuple[Array, Array, Array], direction: int, xp: Any) -> Array:
    axis = AXIS_OF_DIRECTION[direction]
    inverse_spacing = np.shape(field)[axis] - 1
    flux, diffused = _flux_and_diffused(field, quantities, direction, inverse_spacing**2, xp)
    convection = -0.5 * inverse_spacing * (flux[_along(axis, 2, None)] - flux[_along(axis, 0, -2)])
    diffusion = (
        diffused[_along(axis, 2, None)] - 2.0 * diffused[_along(axis, 1, -1)] + diffused[_along(axis, 0, -2)]
    )
    interior = field[_along(axis, 1, -1)]
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


# ---- implicit sweeps ----


def _solve_lines(field: Array, update: Array, direction: int, problem: ProblemClass, xp: Any) -> Array:
    """Solve the block-tridiagonal systems of all lines of one direction.

    The update vanishes on the faces, so the systems reduce to the interior points of each line. Lines are the
    last axis of every array here, and all are solved at once.
    """
    axis = AXIS_OF_DIRECTION[direction]
    others = [a for a in (1, 2, 3) if a != axis]
    order = (axis, 0, *others)
    n = problem.points
    line_field = xp.reshape(xp.transpose(field[_along(axis, 0, None)], order), (n, 5, -1))
    right = xp.reshape(xp.transpose(update, order), (n - 2, 5, -1))
    blocks = _line_blocks(line_field, direction, problem, xp)
    solution = xp.stack(_block_thomas(*blocks, right, xp))
    shaped = xp.reshape(solution, (n - 2, 5, n - 2, n - 2))
    return xp.transpose(shaped, np.argsort(order))


def _line_blocks(line: Array, direction: int, problem: ProblemClass, xp: Any) -> tuple[Array, Array, Array]:
    """Negated sub-diagonal, diagonal, super-diagonal blocks of interior points, ``[n-2, 5, 5, lines]``.

    `line` holds the conserved variables of whole lines, ``[n, 5, lines]``.
    """
    n = problem.points
    convective = (problem.dt * 0.5 * (n - 1)) * _convective_jacobian(line, direction, xp)
    viscous = (problem.dt * (n - 1) ** 2) * _viscous_jacobian(line, direction, xp)
    negated_lower = convective[:-2] + viscous[:-2]
    diagonal = 2.0 * viscous[1:-1] + np.eye(5)[None, :, :, None]
    upper = convective[2:] - viscous[2:]
    return negated_lower, diagonal, upper


def _convective_jacobian(line: Array, direction: int, xp: Any) -> Array:
    """Jacobian of the convective flux, ``[n, 5, 5, lines]``, of conserved variables ``[n, 5, lines]``."""
    inverse = 1.0 / line[:, :1]
    velocity = line[:, 1:4] * inverse
    energy = line[:, 4:5] * inverse
    normal = velocity[:, direction : direction + 1]
    kinetic = 0.5 * xp.sum(velocity * velocity, axis=1, keepdims=True)
    unit = np.eye(3)[direction]
    column, row = unit[None, :, None, None], unit[None, None, :, None]
    blank = np.zeros((line.shape[0], 1, 1, line.shape[2]))

    mass = xp.concatenate([blank, blank + row, blank], axis=2)
    momentum_block = (
        velocity[:, :, None] * row
        + normal[:, :, None] * np.eye(3)[None, :, :, None]
        - C2 * column * velocity[:, None, :]
    )
    momentum = xp.concatenate(
        [
            C2 * kinetic[:, :, None] * column - (velocity * normal)[:, :, None],
            momentum_block,
            blank + C2 * column,
        ],
        axis=2,
    )
    energy_row = xp.concatenate(
        [
            ((2.0 * C2 * kinetic - C1 * energy) * normal)[:, :, None],
            (C1 * energy - C2 * kinetic)[:, :, None] * row - C2 * (velocity * normal)[:, None, :],
            C1 * normal[:, :, None],
        ],
        axis=2,
    )
    return xp.concatenate([mass, momentum, energy_row], axis=1)


def _viscous_jacobian(line: Array, direction: int, xp: Any) -> Array:
    """Jacobian of the viscous flux and the artificial diffusion, ``[n, 5, 5, lines]``."""
    inverse = 1.0 / line[:, :1]
    velocity = line[:, 1:4] * inverse
    energy = line[:, 4:5] * inverse
    factors = np.where(np.arange(3) == direction, NORMAL_VISCOSITY, 1.0) * C3C4
    weights = (factors - C1345)[None, :, None]
    artificial = ARTIFICIAL_DIFFUSION[direction]
    points, _, lines = line.shape
    stress = factors[None, :, None, None] * np.eye(3)[None, :, :, None]

    mass = np.broadcast_to(artificial * np.eye(5)[None, :1, :, None], (points, 1, 5, lines))
    momentum = xp.concatenate(
        [
            -factors[None, :, None, None] * (velocity * inverse)[:, :, None],
            stress * inverse[:, :, None] + artificial * np.eye(3)[None, :, :, None],
            np.zeros((points, 3, 1, lines)),
        ],
        axis=2,
    )
    dissipated = xp.sum(weights * velocity * velocity, axis=1, keepdims=True)
    energy_row = xp.concatenate(
        [
            (-(dissipated + C1345 * energy) * inverse)[:, :, None],
            (weights * velocity * inverse)[:, None, :],
            C1345 * inverse[:, :, None] + artificial,
        ],
        axis=2,
    )
    return xp.concatenate([mass, momentum, energy_row], axis=1)


def _block_thomas(negated_lower: Array, diagonal: Array, upper: Array, right: Array, xp: Any) -> list[Array]:
    """Block tridiagonal elimination over the first axis: a list of solutions ``[5, lines]``, one a point."""
    points = diagonal.shape[0]
    # Carrying [C' | r'] as one 5x6 block halves the number of array operations.
    reduced = [_solve_blocks(diagonal[0], xp.concatenate([upper[0], right[0][:, None]], axis=1))]
    for i in range(1, points):
        above = xp.einsum("abl,bcl->acl", negated_lower[i], reduced[i - 1])
        updated = right[i][:, None] + above[:, 5:]
        side = xp.concatenate([upper[i], updated], axis=1) if i < points - 1 else updated
        reduced.append(_solve_blocks(diagonal[i] + above[:, :5], side))
    solution = [reduced[-1][:, 0]]
    for i in reversed(range(points - 1)):
        solution.append(reduced[i][:, 5] - xp.einsum("abl,bl->al", reduced[i][:, :5], solution[-1]))
    return solution[::-1]


def _solve_blocks(block: Array, side: Array) -> Array:
    """Gauss-Jordan elimination without pivoting, as the benchmark does it, of ``block x = side``.

    `block` is ``[5, 5, lines]``, `side` and the result ``[5, columns, lines]``.
    """
    unit = np.eye(5)
    for p in range(5):
        # Subtracting e_p from the column makes the same update scale the pivot row and clear the others.
        column = block[:, p : p + 1] - unit[:, p][:, None, None]
        inverse = 1.0 / block[p : p + 1, p : p + 1]
        side = side - column * (side[p : p + 1] * inverse)
        if p < 4:
            block = block - column * (block[p : p + 1] * inverse)
    return side
