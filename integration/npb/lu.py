"""The NAS LU benchmark (SSOR solver), classes S and W, in functional NumPy.

Each pseudo-time step is one symmetric successive over-relaxation of the linearised implicit scheme for the
3-D compressible Navier-Stokes equations: a block lower triangular sweep over the grid from one corner and a
block upper triangular one from the opposite corner, with 5x5 blocks. A point depends on its three neighbours
with one smaller (larger) index, so all points of a hyperplane i + j + k = const are swept at once. Method and
reference values are those of the NAS Parallel Benchmarks (Bailey et al., report RNR-94-007; verification
values of NPB 3).

The state is what the benchmark must checkpoint at the top of its step loop: the solution ``u``, the residual
``rsd``, 1 / density ``rho_i``, kinetic energy density ``qs``, and the step counter ``istep``. Arrays have the
layout of the C version with one element of padding in ``j`` and ``i`` if the grid is even (class S: ``u`` and
``rsd[12][13][13][5]``, ``rho_i`` and ``qs[12][13][13]``). As in C the sweeps take ``rho_i`` and ``qs`` from
the state, and the right-hand side at the end of the step computes them anew on the whole grid.

What is uncritical for the verified output (norms of residual and error over the interior, and a surface
integral over a box within it): the padding, and the edges of the cube in all four arrays. At class S that is
2140 of 10,140 elements of ``u`` and of ``rsd``, 428 of 2028 of ``rho_i`` and of ``qs``. An edge has no
neighbour in the interior, and every stencil runs along one axis: edge values of ``u`` reach only those of
``rho_i`` and ``qs``, which are computed anew before anything reads them; ``rsd`` is written at the edges and
never read. The faces are critical in all four: the sweeps read them. (Those of ``rsd`` hold zeros, so finite
numbers in ``rho_i`` and ``qs`` on the faces are multiplied away; what is not finite shows.) With the whole
field ``u`` as output its edges are critical too, and 1500 of its elements, the padding, are not.

Not ported is the benchmark's early stop for residual norms below 1e-8, which no class ever reaches: the norms
it looks at are those of the start until the very last step.

`step` and `output` return new arrays and never write into their arguments. They take the array namespace of
the state, so the same code runs on NumPy arrays and on arrays of ``autograd.numpy``.

May import NumPy, `kernel` and `navier_stokes`. Tests: ``integration/npb/test_lu.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from kernel import Array, State, class_named, class_of, namespace_of, repeated
from navier_stokes import (
    ARTIFICIAL_DIFFUSION,
    C1,
    C2,
    C3C4,
    C1345,
    EPSILON,
    NORMAL_VISCOSITY,
    FloatArray,
    ProblemClass,
    Verification,
    components_first,
    exact_on_grid,
    forcing,
    initial_field,
    primitives,
    relative_deviation,
    root_mean_square,
    spatial_terms,
    with_interior,
)
from numpy.typing import NDArray

IntArray = NDArray[np.intp]

OVER_RELAXATION = 1.2


@dataclass(frozen=True)
class LuClass(ProblemClass):
    """A class of LU: in addition the reference value of the surface integral."""

    surface_integral: float


@dataclass(frozen=True)
class LuVerification(Verification):
    """Outcome of LU's test: in addition the relative deviation of the surface integral."""

    surface_deviation: float


CLASSES = {
    "S": LuClass(
        name="S",
        points=12,
        dt=0.5,
        steps=50,
        residual=(
            1.6196343210976702e-02,
            2.1976745164821318e-03,
            1.5179927653399185e-03,
            1.5029584435994323e-03,
            3.4264073155896461e-02,
        ),
        error=(
            6.4223319957960924e-04,
            8.4144342047347926e-05,
            5.8588269616485186e-05,
            5.8474222595157350e-05,
            1.3103347914111294e-03,
        ),
        surface_integral=7.8418928865937083e00,
    ),
    "W": LuClass(
        name="W",
        points=33,
        dt=0.0015,
        steps=300,
        residual=(
            0.1236511638192e02,
            0.1317228477799e01,
            0.2550120713095e01,
            0.2326187750252e01,
            0.2826799444189e02,
        ),
        error=(
            0.4867877144216e00,
            0.5064652880982e-01,
            0.9281818101960e-01,
            0.8570126542733e-01,
            0.1084277417792e01,
        ),
        surface_integral=0.1161399311023e02,
    ),
}

# The four tables below have a row for each direction x, y, z and a column for each velocity component.
_ALONG: FloatArray = np.eye(3)
_VISCOSITY: FloatArray = C3C4 * np.where(_ALONG == 1.0, NORMAL_VISCOSITY, 1.0)
_HEATING: FloatArray = _VISCOSITY - C1345
_DIFFUSION: FloatArray = np.array(ARTIFICIAL_DIFFUSION)
_SIDE: FloatArray = np.array([-1.0, 1.0])
"""Sign of the neighbours that the lower (first) and the upper sweep read."""


# ---- the benchmark's public operations ----


def problem_class(name: str) -> LuClass:
    """The benchmark class called `name` ("S" or "W"); ValueError for any other."""
    return class_named(CLASSES, name, "LU")


def problem_of(u: Array) -> LuClass:
    """The class whose padded layout `u` has; ValueError if there is none."""
    return class_of(CLASSES, "u", u, "LU")


def initial_state(name: str) -> State:
    """The state before the first step, ``istep`` = 0, padding zero: float64 arrays in the padded layout.

    ``rsd``, ``rho_i`` and ``qs`` are those of the initial ``u``, as the benchmark computes them before its
    step loop.
    """
    problem = problem_class(name)
    n = problem.points
    u = np.zeros(problem.shape)
    u[:, :n, :n, :] = initial_field(n)
    empty = np.zeros(problem.shape[:3])
    return {"u": u, **_right_hand_side(u, np.zeros(problem.shape), empty, empty, n, np), "istep": 0}


def step(state: Mapping[str, Any]) -> State:
    """One pseudo-time step.

    Takes and returns a dict with ``u``, ``rsd``, ``rho_i``, ``qs`` (float64, padded) and ``istep`` (int).
    """
    u, rsd, rho_i, qs = (state[name] for name in ("u", "rsd", "rho_i", "qs"))
    xp = _namespace_of_any(u, rsd, rho_i, qs)
    problem = problem_of(u)
    n = problem.points
    field = components_first(u, n, xp)
    correction = _relaxed(field, rsd, rho_i, qs, problem, xp)
    factor = 1.0 / (OVER_RELAXATION * (2.0 - OVER_RELAXATION))
    new = with_interior(u, field, factor * correction, n, xp)
    return {"u": new, **_right_hand_side(new, rsd, rho_i, qs, n, xp), "istep": state["istep"] + 1}


def run(state: Mapping[str, Any], steps: int) -> State:
    """`steps` pseudo-time steps from `state`."""
    return repeated(step, state, steps)


def output(state: Mapping[str, Any]) -> dict[str, Array]:
    """What is verified: ``residual`` and ``error``, five norms each, and the ``surface_integral``.

    Both norms are over the interior. The residual is the state's ``rsd``, not computed anew.
    """
    u, rsd = state["u"], state["rsd"]
    xp = _namespace_of_any(u, rsd)
    n = problem_of(u).points
    interior = (slice(None), *(slice(1, -1),) * 3)
    residual = components_first(rsd, n, xp)[interior]
    field = components_first(u, n, xp)[interior]
    error = field - np.moveaxis(exact_on_grid(n), -1, 0)[interior]
    return {
        "residual": root_mean_square(residual, n, xp),
        "error": root_mean_square(error, n, xp),
        "surface_integral": _surface_integral(u, n, xp),
    }


def verify(state: Mapping[str, Any]) -> LuVerification:
    """Compare the output of a finished run with the reference values of its class.

    A state that is not at its class's last step never verifies: the reference belongs to that step.
    """
    problem = problem_of(state["u"])
    found = output(state)
    residual = relative_deviation(found["residual"], problem.residual)
    error = relative_deviation(found["error"], problem.error)
    surface = float(relative_deviation(found["surface_integral"], problem.surface_integral))
    close = bool((residual <= EPSILON).all() and (error <= EPSILON).all() and surface <= EPSILON)
    return LuVerification(close and state["istep"] == problem.steps, residual, error, surface)


def _namespace_of_any(*arrays: Array) -> Any:
    """Autograd's NumPy if one of the arrays is its, else NumPy."""
    return next((xp for xp in map(namespace_of, arrays) if xp is not np), np)


# ---- right-hand side and surface integral ----


def _right_hand_side(u: Array, rsd: Array, rho_i: Array, qs: Array, n: int, xp: Any) -> State:
    """``rsd``, ``rho_i`` and ``qs`` of `u`; of the given ones only the padding is kept."""
    field = components_first(u, n, xp)
    quantities = primitives(field)
    _, kinetic, inverse = quantities
    residual = forcing(n) + spatial_terms(field, quantities, xp)
    on_faces = xp.pad(xp.moveaxis(residual, 0, -1), ((1, 1), (1, 1), (1, 1), (0, 0)), mode="constant")
    return {
        "rsd": _with_padding_of(rsd, on_faces, n, xp),
        "rho_i": _with_padding_of(rho_i, inverse, n, xp),
        "qs": _with_padding_of(qs, kinetic * field[0], n, xp),
    }


def _with_padding_of(old: Array, grid: Array, n: int, xp: Any) -> Array:
    """`grid`, ``[k, j, i, ...]`` without padding, put into the padded layout of `old`."""
    rows = xp.concatenate([grid, old[:, :n, n:]], axis=2)
    return xp.concatenate([rows, old[:, n:]], axis=1)


def _surface_integral(u: Array, n: int, xp: Any) -> Array:
    """Pressure integrated by the trapezoidal rule over the six sides of a box within the grid."""
    # The box of the benchmark: points 1 to n-2 in i, 1 to n-3 in j, 2 to n-2 in k.
    box = xp.moveaxis(u[2 : n - 1, 1 : n - 2, 1 : n - 1, :], -1, 0)
    momentum = box[1:4]
    pressure = C2 * (box[4] - 0.5 * xp.sum(momentum * momentum, axis=0) / box[0])
    total = 0.0
    for axis in range(3):
        before = (slice(None),) * axis
        side = pressure[(*before, 0)] + pressure[(*before, -1)]
        cells = side[:-1, :-1] + side[:-1, 1:] + side[1:, :-1] + side[1:, 1:]
        total = total + xp.sum(cells)
    return 0.25 * total / (n - 1) ** 2


# ---- points in the order of the sweeps ----


@dataclass(frozen=True)
class _Plane:
    """One hyperplane of a sweep: which `points` it has, and where their three neighbours' values are.

    The neighbours lie in the plane swept before, or on faces of the cube: `sources`, ``[3, points]``, counts
    through the points of that plane and then through `faces`.
    """

    points: slice
    faces: slice
    sources: IntArray


@dataclass(frozen=True)
class _Sweep:
    """The planes of one sweep in its order.

    `neighbours`, ``[3, points]``, and `faces` are flat indices into the grid. Points are numbered by rising
    hyperplane in both sweeps.
    """

    planes: tuple[_Plane, ...]
    neighbours: IntArray
    faces: IntArray


@dataclass(frozen=True)
class _Ordering:
    """Interior points by rising hyperplane: flat grid indices, the way back, and the two sweeps."""

    points: IntArray
    to_interior: IntArray
    lower: _Sweep
    upper: _Sweep


@cache
def _ordering(n: int) -> _Ordering:
    index, level = _indices_and_levels(n)
    inside = ((index > 0) & (index < n - 1)).all(axis=0)
    points = np.flatnonzero(inside)
    by_level = np.argsort(level[points], kind="stable")
    points = points[by_level]
    return _Ordering(points, np.argsort(by_level), _sweep(n, points, -1), _sweep(n, points, 1))


def _sweep(n: int, points: IntArray, side: int) -> _Sweep:
    """The sweep in which a point reads its neighbours at `side` (-1 or 1) along each direction."""
    index, level = _indices_and_levels(n)
    strides = np.array([1, n, n * n])
    neighbours = points + side * strides[:, None]
    within_face = ((index > 0) & (index < n - 1)).sum(axis=0) == 2
    faces = np.flatnonzero(within_face & (index == (0 if side < 0 else n - 1)).any(axis=0))
    faces = faces[np.argsort(level[faces], kind="stable")]

    planes = []
    position = np.zeros(n**3, dtype=np.intp)
    rising = np.unique(level[points])
    for plane in rising if side < 0 else rising[::-1]:
        here = _range_of(plane, level[points])
        beside = _range_of(plane + side, level[faces])
        before = points[_range_of(plane + side, level[points])]
        position[before] = np.arange(before.size)
        position[faces[beside]] = before.size + np.arange(faces[beside].size)
        planes.append(_Plane(here, beside, position[neighbours[:, here]]))
    return _Sweep(tuple(planes), neighbours, faces)


def _indices_and_levels(n: int) -> tuple[IntArray, IntArray]:
    """Indices k, j, i of all points of the grid in C order, ``[3, points]``, and their sum."""
    index = np.indices((n, n, n)).reshape(3, -1)
    return index, index.sum(axis=0)


def _range_of(value: int, rising: IntArray) -> slice:
    """Where `value` stands in a sorted array."""
    return slice(int(np.searchsorted(rising, value)), int(np.searchsorted(rising, value, side="right")))


# ---- symmetric successive over-relaxation ----


def _relaxed(field: Array, rsd: Array, rho_i: Array, qs: Array, problem: LuClass, xp: Any) -> Array:
    """The correction after both sweeps, ``[5, k, j, i]`` on the interior, before the final factor."""
    n = problem.points
    order = _ordering(n)
    values = _values_on_grid(field, rho_i[:, :n, :n], qs[:, :n, :n], xp)
    blocks = _neighbour_blocks(values, order, problem, xp)
    inverse = _inverse_diagonal(values[:, order.points], problem, xp)
    residual = xp.reshape(components_first(rsd, n, xp), (5, -1))
    lower = _swept_lower(
        blocks[:, :, 0],
        inverse,
        problem.dt * residual[:, order.points],
        residual[:, order.lower.faces],
        order.lower,
        xp,
    )
    upper = _swept_upper(blocks[:, :, 1], inverse, lower, residual[:, order.upper.faces], order.upper, xp)
    by_plane = xp.concatenate(upper, axis=1)
    return xp.reshape(by_plane[:, order.to_interior], (5, n - 2, n - 2, n - 2))


def _swept_lower(
    blocks: Array, inverse: Array, right: Array, on_faces: Array, sweep: _Sweep, xp: Any
) -> list[Array]:
    """Solve the block lower triangular system; the solutions of each plane, by rising plane."""
    solved: list[Array] = []
    for plane in sweep.planes:
        coupled = _coupled(blocks, plane, solved[-1] if solved else None, on_faces, xp)
        remaining = right[:, plane.points] - coupled
        solved.append(xp.einsum("abl,bl->al", inverse[:, :, plane.points], remaining))
    return solved


def _swept_upper(
    blocks: Array, inverse: Array, start: list[Array], on_faces: Array, sweep: _Sweep, xp: Any
) -> list[Array]:
    """Solve the block upper triangular system from the lower one's solution; planes rise again."""
    solved: list[Array] = []
    for plane, before in zip(sweep.planes, reversed(start), strict=True):
        coupled = _coupled(blocks, plane, solved[-1] if solved else None, on_faces, xp)
        solved.append(before - xp.einsum("abl,bl->al", inverse[:, :, plane.points], coupled))
    return solved[::-1]


def _coupled(blocks: Array, plane: _Plane, previous: Array | None, on_faces: Array, xp: Any) -> Array:
    """Off-diagonal blocks of the points of `plane` times the values of their neighbours, ``[5, points]``."""
    members = [] if previous is None else [previous]
    if plane.faces.start < plane.faces.stop:
        members.append(on_faces[:, plane.faces])
    swept_before = members[0] if len(members) == 1 else xp.concatenate(members, axis=1)
    return xp.einsum("abdl,bdl->al", blocks[..., plane.points], swept_before[:, plane.sources])


# ---- Jacobian blocks ----


def _values_on_grid(field: Array, rho_i: Array, qs: Array, xp: Any) -> Array:
    """What the Jacobians are made of: velocity (3), energy, kinetic energy, each per mass, and 1 / density.

    ``[6, points]`` on the flattened grid.
    """
    specific = field[1:] * rho_i
    kinetic = qs * rho_i
    stacked = xp.concatenate([specific, kinetic[None], rho_i[None]], axis=0)
    return xp.reshape(stacked, (6, -1))


def _neighbour_blocks(values: Array, order: _Ordering, problem: LuClass, xp: Any) -> Array:
    """Over-relaxed off-diagonal blocks, ``[5, 5, side, direction, points]``.

    The block of a neighbour is dt times the Jacobian of its convective flux over twice the spacing, negative
    at the lower side, minus dt times that of its viscous flux over the squared spacing.
    """
    n = problem.points
    neighbours = np.stack([order.lower.neighbours, order.upper.neighbours])
    at_neighbours = values[:, neighbours]
    velocity, energy, kinetic, inverse = (
        at_neighbours[:3],
        at_neighbours[3],
        at_neighbours[4],
        at_neighbours[5],
    )
    normal = values[np.arange(3)[:, None], neighbours]

    convective = OVER_RELAXATION * problem.dt * 0.5 * (n - 1) * _SIDE[:, None, None]
    viscous = OVER_RELAXATION * problem.dt * (n - 1) ** 2
    diffusion = viscous * _DIFFUSION[:, None]
    row = _ALONG.T[:, None, :, None]  # the unit vector of the direction, [component, side, direction, point]
    drag = viscous * _VISCOSITY.T[:, None, :, None] * inverse
    heating = viscous * _HEATING.T[:, None, :, None]
    carried = convective * normal
    convected = convective * velocity

    mass = np.zeros((1, 5, *np.shape(inverse)))
    mass[0, 0] = -diffusion
    mass[0, 1:4] = convective * row

    from_mass = row * (convective * C2 * kinetic) + velocity * (drag - carried)
    from_momentum = (
        convected[:, None] * row[None]
        - C2 * row[:, None] * convected[None]
        + np.eye(3)[:, :, None, None, None] * (carried - drag - diffusion)[:, None]
    )
    from_energy = np.broadcast_to(C2 * convective * row, np.shape(velocity))
    momentum = xp.concatenate([from_mass[:, None], from_momentum, from_energy[:, None]], axis=1)

    heat = xp.sum(heating * (velocity * velocity), axis=0) + viscous * C1345 * energy
    energy_row = xp.concatenate(
        [
            (carried * (2.0 * C2 * kinetic - C1 * energy) + inverse * heat)[None],
            row * (convective * (C1 * energy - C2 * kinetic)) - velocity * (C2 * carried + heating * inverse),
            (C1 * carried - viscous * C1345 * inverse - diffusion)[None],
        ],
        axis=0,
    )
    return xp.concatenate([mass, momentum, energy_row[None]], axis=0)


def _inverse_diagonal(values: Array, problem: LuClass, xp: Any) -> Array:
    """Inverses of the diagonal blocks, ``[5, 5, points]``, from the `values` at the points.

    The viscous Jacobians, of which the diagonal blocks consist, have nothing but a first column, a diagonal
    and a last row: lower triangular matrices, inverted here by hand.
    """
    velocity, energy, inverse = values[:3], values[3], values[5]
    viscous = 2.0 * problem.dt * (problem.points - 1) ** 2
    base = 1.0 + viscous * _DIFFUSION.sum()
    drag = viscous * _VISCOSITY.sum(axis=0)[:, None] * inverse
    heating = viscous * _HEATING.sum(axis=0)[:, None] * inverse
    conduction = viscous * 3.0 * C1345 * inverse

    momentum_pivot = 1.0 / (base + drag)
    energy_pivot = 1.0 / (base + conduction)
    from_mass = drag * velocity * momentum_pivot / base
    from_momentum = -heating * velocity * momentum_pivot * energy_pivot
    heat = xp.sum(heating * velocity * (velocity / base - from_mass), axis=0)
    to_energy = energy_pivot * (heat + conduction * energy / base)

    points = np.shape(inverse)[0]
    mass = np.zeros((1, 5, points))
    mass[0, 0] = 1.0 / base
    momentum = xp.concatenate(
        [from_mass[:, None], np.eye(3)[:, :, None] * momentum_pivot[:, None], np.zeros((3, 1, points))],
        axis=1,
    )
    energy_row = xp.concatenate([to_energy[None], from_momentum, energy_pivot[None]], axis=0)
    return xp.concatenate([mass, momentum, energy_row[None]], axis=0)
