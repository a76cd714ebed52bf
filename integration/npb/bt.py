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

May import NumPy, `kernel` and `navier_stokes`. Tests: ``integration/npb/test_bt.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from kernel import Array, State, class_named, class_of, namespace_of, repeated
from navier_stokes import (
    ARTIFICIAL_DIFFUSION,
    AXIS_OF_DIRECTION,
    C1,
    C2,
    C3C4,
    C1345,
    NORMAL_VISCOSITY,
    ProblemClass,
    Verification,
    along,
    components_first,
    forcing,
    initial_field,
    primitives,
    solution_norms,
    spatial_terms,
    verify_norms,
    with_interior,
)

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


# ---- the benchmark's public operations ----


def problem_class(name: str) -> ProblemClass:
    """The benchmark class called `name` ("S" or "W"); ValueError for any other."""
    return class_named(CLASSES, name, "BT")


def problem_of(u: Array) -> ProblemClass:
    """The class whose padded layout `u` has; ValueError if there is none."""
    return class_of(CLASSES, "u", u, "BT")


def initial_state(name: str) -> State:
    """The state before the first step: ``u`` (float64, padded layout, zero padding) and ``step`` = 0."""
    problem = problem_class(name)
    n = problem.points
    u = np.zeros(problem.shape)
    u[:, :n, :n, :] = initial_field(n)
    return {"u": u, "step": 0}


def step(state: Mapping[str, Any]) -> State:
    """One time step. Takes and returns a dict with ``u`` (float64, padded) and ``step`` (int)."""
    u = state["u"]
    xp = namespace_of(u)
    problem = problem_of(u)
    n = problem.points
    field = components_first(u, n, xp)
    update = problem.dt * (forcing(n) + spatial_terms(field, primitives(field), xp))
    for direction in range(3):
        update = _solve_lines(field, update, direction, problem, xp)
    return {"u": with_interior(u, field, update, n, xp), "step": state["step"] + 1}


def run(state: Mapping[str, Any], steps: int) -> State:
    """`steps` time steps from `state`."""
    return repeated(step, state, steps)


def output(state: Mapping[str, Any]) -> dict[str, Array]:
    """The verified norms, five values each: ``residual`` (right-hand side) and ``error`` (solution).

    The residual is taken over the interior, the error over the whole grid.
    """
    return solution_norms(state["u"], problem_of(state["u"]).points, namespace_of(state["u"]))


def verify(state: Mapping[str, Any]) -> Verification:
    """Compare the norms of a finished run with the reference values of its class.

    A state that is not at its class's last step never verifies: the reference belongs to that step.
    """
    problem = problem_of(state["u"])
    return verify_norms(output(state), problem, state["step"] == problem.steps)


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
    line_field = xp.reshape(xp.transpose(field[along(axis, 0, None)], order), (n, 5, -1))
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
