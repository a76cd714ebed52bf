"""The NAS SP benchmark (scalar pentadiagonal solver), classes S and W, in functional NumPy.

Each time step factors an implicit scheme for the 3-D compressible Navier-Stokes equations into three sweeps
and diagonalises each, so that every line of the grid has five scalar pentadiagonal systems: three with the
velocity u along the line as eigenvalue, one with u + c and one with u - c, where c is the speed of sound.
Between the sweeps the update changes from the eigenvectors of one direction to those of the next, which takes
a constant matrix. Method and reference values are those of the NAS Parallel Benchmarks (Bailey et al., report
RNR-94-007; verification values of NPB 3).

The state is what the benchmark must checkpoint: the solution ``u`` and the step counter. ``u`` has the
layout of the C version, ``u[k][j][i][m]`` with one element of padding in ``j`` and ``i`` if the grid is even
(class S: ``u[12][13][13][5]``). The padding is all that is uncritical: 1500 of 10,140 elements at class S.
Every grid point counts, edges of the cube included, since the verified error norm takes in the whole grid.

`step` and `output` return new arrays and never write into their arguments. They take the array namespace of
``u``, so the same code runs on NumPy arrays and on arrays of ``autograd.numpy``.

May import NumPy, `kernel` and `navier_stokes`. Tests: ``integration/npb/test_sp.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from kernel import Array, State, class_named, class_of, namespace_of, repeated
from navier_stokes import (
    ARTIFICIAL_DIFFUSION,
    AXIS_OF_DIRECTION,
    C1,
    C1C5,
    C2,
    C3C4,
    DISSIPATION,
    FloatArray,
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
        dt=0.015,
        steps=100,
        residual=(
            2.7470315451339479e-02,
            1.0360746705285417e-02,
            1.6235745065095532e-02,
            1.5840557224455615e-02,
            3.4849040609362460e-02,
        ),
        error=(
            2.7289258557377227e-05,
            1.0364446640837285e-05,
            1.6154798287166471e-05,
            1.5750704994480102e-05,
            3.4177666183390531e-05,
        ),
    ),
    "W": ProblemClass(
        name="W",
        points=36,
        dt=0.0015,
        steps=400,
        residual=(
            0.1893253733584e-02,
            0.1717075447775e-03,
            0.2778153350936e-03,
            0.2887475409984e-03,
            0.3143611161242e-02,
        ),
        error=(
            0.7542088599534e-04,
            0.6512852253086e-05,
            0.1049092285688e-04,
            0.1128838671535e-04,
            0.1212845639773e-03,
        ),
    ),
}

SOUND_SIGN: FloatArray = np.array([0.0, 0.0, 0.0, 1.0, -1.0])
"""Multiple of the speed of sound in the eigenvalue of each of the five systems."""

_HALF_ROOT = np.sqrt(0.5)

# From the eigenvectors of the x-direction to those of y, and from y to z.
X_TO_Y: FloatArray = np.array(
    [
        [0.0, -1.0, 0.0, 0.0, 0.0],
        [1.0, 0.0, 0.0, 0.0, 0.0],
        [0.0, 0.0, 0.0, _HALF_ROOT, -_HALF_ROOT],
        [0.0, 0.0, -_HALF_ROOT, 0.5, 0.5],
        [0.0, 0.0, _HALF_ROOT, 0.5, 0.5],
    ]
)
Y_TO_Z: FloatArray = np.array(
    [
        [0.0, 0.0, 0.0, _HALF_ROOT, -_HALF_ROOT],
        [0.0, 0.0, -1.0, 0.0, 0.0],
        [0.0, 1.0, 0.0, 0.0, 0.0],
        [-_HALF_ROOT, 0.0, 0.0, 0.5, 0.5],
        [_HALF_ROOT, 0.0, 0.0, 0.5, 0.5],
    ]
)


# ---- the benchmark's public operations ----


def problem_class(name: str) -> ProblemClass:
    """The benchmark class called `name` ("S" or "W"); ValueError for any other."""
    return class_named(CLASSES, name, "SP")


def problem_of(u: Array) -> ProblemClass:
    """The class whose padded layout `u` has; ValueError if there is none."""
    return class_of(CLASSES, "u", u, "SP")


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
    quantities = primitives(field)
    velocity, kinetic, inverse = quantities
    sound = xp.sqrt(C1 * C2 * (field[4] * inverse - kinetic))

    update = problem.dt * (forcing(n) + spatial_terms(field, quantities, xp))
    gas = _Gas(*(values[..., 1:-1, 1:-1, 1:-1] for values in (velocity, kinetic, inverse, sound)))
    update = _into_eigenvectors_of_x(update, gas, xp)
    for direction, change_of_basis in ((0, X_TO_Y), (1, Y_TO_Z), (2, None)):
        update = _solve_lines(velocity[direction], sound, inverse, update, direction, problem, xp)
        if change_of_basis is not None:
            update = xp.tensordot(change_of_basis, update, axes=1)
    update = _out_of_eigenvectors_of_z(update, gas, xp)
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


# ---- eigenvectors ----


class _Gas(NamedTuple):
    """State of the gas: velocity ``[3, ...]``, kinetic energy per mass, 1 / density, speed of sound."""

    velocity: Array
    kinetic: Array
    inverse: Array
    sound: Array


def _into_eigenvectors_of_x(update: Array, gas: _Gas, xp: Any) -> Array:
    """Coordinates of the update ``[5, ...]`` in the eigenvectors of the x-direction's flux Jacobian."""
    velocity, kinetic, inverse, sound = gas
    density, momentum, energy = update[0], update[1:4], update[4]
    scaled = inverse * (velocity * density - momentum)
    work = kinetic * density - xp.sum(velocity * momentum, axis=0) + energy
    pressure = C2 * work / (sound * sound)
    across = _HALF_ROOT * scaled[0]
    along_sound = _HALF_ROOT * inverse * sound * pressure
    return xp.stack([density - pressure, -scaled[2], scaled[1], along_sound - across, along_sound + across])


def _out_of_eigenvectors_of_z(update: Array, gas: _Gas, xp: Any) -> Array:
    """Conserved variables of an update ``[5, ...]`` given in the eigenvectors of the z-direction."""
    velocity, kinetic, inverse, sound = gas
    forward, backward = update[3], update[4]
    weight = _HALF_ROOT / inverse
    pressure = weight * (forward + backward) / sound
    density = update[2] + pressure
    normal = weight * (forward - backward)
    shear = update[:2] / inverse
    momentum_x = velocity[0] * density - shear[1]
    momentum_y = velocity[1] * density + shear[0]
    momentum_z = velocity[2] * density + normal
    energy = (
        velocity[1] * shear[0]
        - velocity[0] * shear[1]
        + velocity[2] * normal
        + kinetic * density
        + sound * sound * pressure / C2
    )
    return xp.stack([density, momentum_x, momentum_y, momentum_z, energy])


# ---- implicit sweeps ----


def _solve_lines(
    normal: Array,
    sound: Array,
    inverse: Array,
    update: Array,
    direction: int,
    problem: ProblemClass,
    xp: Any,
) -> Array:
    """Solve the five pentadiagonal systems of all lines of one direction.

    `normal` is the velocity in that direction, on the whole grid like `sound` and `inverse`. The update
    vanishes on the faces, so the systems reduce to the interior points of each line. Points along the line
    are the first axis here and lines the last, and all lines are solved at once.
    """
    axis = AXIS_OF_DIRECTION[direction]
    order = (axis, 0, *(a for a in (1, 2, 3) if a != axis))
    n = problem.points
    across = xp.stack([normal, sound, inverse])[along(axis, 0, None)]
    line = xp.reshape(xp.transpose(across, order), (n, 3, -1))
    right = xp.reshape(xp.transpose(update, order), (n - 2, 5, -1))
    solution = xp.stack(_pentadiagonal_thomas(*_bands(line, direction, problem), right))
    shaped = xp.reshape(solution, (n - 2, 5, n - 2, n - 2))
    return xp.transpose(shaped, np.argsort(order))


def _bands(line: Array, direction: int, problem: ProblemClass) -> tuple[Array, Array, Array, float]:
    """Bands of the matrices of the interior points: first lower, diagonal, first upper, outermost.

    `line` holds normal velocity, sound speed and 1 / density along whole lines, ``[n, 3, lines]``. The
    outermost bands have one constant value, since only the artificial dissipation reaches that far.
    """
    n = problem.points
    normal, sound, inverse = line[:, :1], line[:, 1:2], line[:, 2:]
    # The benchmark takes the largest of four radii; with its coefficients and a positive density it is this.
    radius = ARTIFICIAL_DIFFUSION[direction] + C1C5 * C3C4 * inverse
    viscous = (problem.dt * (n - 1) ** 2) * radius
    convective = (problem.dt * 0.5 * (n - 1)) * (normal + SOUND_SIGN[:, None] * sound)
    outermost = problem.dt * DISSIPATION
    # Fourth difference (1, -4, 6, -4, 1); beside a face the diagonal is 5.
    central = np.full((n - 2, 1, 1), 1.0 + 6.0 * outermost)
    central[[0, -1]] -= outermost
    lower = -convective[:-2] - (viscous[:-2] + 4.0 * outermost)
    upper = convective[2:] - (viscous[2:] + 4.0 * outermost)
    return lower, 2.0 * viscous[1:-1] + central, upper, outermost


def _pentadiagonal_thomas(
    lower: Array, diagonal: Array, upper: Array, outermost: float, right: Array
) -> list[Array]:
    """Pentadiagonal elimination without pivoting over the first axis: solutions ``[5, lines]`` by row.

    `lower`, `upper` and `right` are ``[rows, 5, lines]``, `diagonal` is broadcastable to that; `lower` of the
    first row and `upper` of the last are not used. The second off-diagonals are `outermost` everywhere.
    """
    rows = right.shape[0]
    near: list[Array] = []  # first upper band, scaled to a diagonal of 1
    far: list[Array] = []  # second upper band, likewise
    reduced: list[Array] = []
    for i in range(rows):
        pivot, value = diagonal[i], right[i]
        off = upper[i] if i < rows - 1 else None
        below = lower[i] if i > 0 else None
        if i > 1:
            below = below - outermost * near[i - 2]
            pivot = pivot - outermost * far[i - 2]
            value = value - outermost * reduced[i - 2]
        if below is not None:
            pivot = pivot - below * near[i - 1]
            value = value - below * reduced[i - 1]
            off = None if off is None else off - below * far[i - 1]
        inverse = 1.0 / pivot
        reduced.append(value * inverse)
        near.append(None if off is None else off * inverse)
        far.append(outermost * inverse)
    return _substituted_backward(near, far, reduced)


def _substituted_backward(near: list[Array], far: list[Array], reduced: list[Array]) -> list[Array]:
    rows = len(reduced)
    solution = [reduced[-1], reduced[-2] - near[-2] * reduced[-1]]
    for i in reversed(range(rows - 2)):
        solution.append(reduced[i] - near[i] * solution[-1] - far[i] * solution[-2])
    return solution[::-1]
