"""NAS LU: the official verification, the parts of the method, and what of its state is uncritical."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import autograd
import autograd.numpy as anp
import lu
import navier_stokes
import numpy as np
import pytest
from kernel_proofs import FILLS, bits_of, ends_the_same, frozen, only, poisoned

from scr_critplugin.analysis import profile

MIDDLE = 25
ARRAYS = ("u", "rsd", "rho_i", "qs")


def padding_of(problem: lu.LuClass) -> np.ndarray:
    """Mask ``[k, j, i]`` of what is not a grid point."""
    mask = np.ones(problem.shape[:3], dtype=bool)
    mask[:, : problem.points, : problem.points] = False
    return mask


def edges_of(problem: lu.LuClass) -> np.ndarray:
    """Mask ``[k, j, i]`` of the grid points on at least two faces: the edges of the cube."""
    n = problem.points
    extremes = sum((index == 0) | (index == n - 1) for index in np.indices((n, n, n)))
    mask = np.zeros(problem.shape[:3], dtype=bool)
    mask[:, :n, :n] = extremes >= 2
    return mask


def elements_at(points: np.ndarray) -> dict[str, np.ndarray]:
    """A mask of points as masks of the elements of each array."""
    of_five = np.repeat(points[..., None], 5, axis=3)
    return {"u": of_five, "rsd": of_five, "rho_i": points, "qs": points}


def output_with_field(state: dict[str, Any]) -> dict[str, Any]:
    """The verified output, and the solution on the whole grid as a run would write it to disk."""
    return {**lu.output(state), "field": state["u"][:, :12, :12]}


@pytest.fixture(scope="module")
def middle() -> dict[str, Any]:
    """Class S halfway through its run."""
    return lu.run(lu.initial_state("S"), MIDDLE)


@pytest.fixture(scope="module")
def end(middle: dict[str, Any]) -> dict[str, Any]:
    """Class S at its last step."""
    return lu.run(middle, lu.problem_class("S").steps - MIDDLE)


# ---- the official test ----


def test_class_s_verifies(end: dict[str, Any]) -> None:
    result = lu.verify(end)
    assert result.verified
    assert max(*result.residual_deviation, *result.error_deviation, result.surface_deviation) < 1e-11


@pytest.mark.slow
def test_class_w_verifies() -> None:
    problem = lu.problem_class("W")
    assert lu.verify(lu.run(lu.initial_state("W"), problem.steps)).verified


def test_other_results_do_not_verify(middle: dict[str, Any], end: dict[str, Any]) -> None:
    assert not lu.verify(middle).verified
    assert not lu.verify({**middle, "istep": end["istep"]}).verified
    assert not lu.verify({**end, "istep": end["istep"] - 1}).verified
    for name in ("u", "rsd"):
        off = end[name].copy()
        off[2, 6, 6, 4] += 1e-4
        assert not lu.verify({**end, name: off}).verified
        off[2, 6, 6, 4] = np.nan
        assert not lu.verify({**end, name: off}).verified


def test_surface_integral_alone_can_fail(end: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    other = replace(lu.CLASSES["S"], surface_integral=lu.CLASSES["S"].surface_integral * (1.0 + 1e-6))
    monkeypatch.setitem(lu.CLASSES, "S", other)
    result = lu.verify(end)
    assert not result.verified
    assert result.residual_deviation.max() < 1e-8
    assert result.error_deviation.max() < 1e-8


# ---- the parts of the method ----


def small_problem(n: int, seed: int) -> tuple[lu.LuClass, np.ndarray, np.ndarray]:
    """A problem of n points a side with a random gas, and random right-hand sides, faces included."""
    generator = np.random.default_rng(seed)
    problem = replace(lu.CLASSES["S"], points=n, dt=0.02)
    exact = np.moveaxis(navier_stokes.exact_on_grid(n), -1, 0)
    field = exact * generator.uniform(0.9, 1.1, size=exact.shape)
    rsd = generator.normal(size=(n, n, n, 5))
    return problem, field, rsd


@cache
def flux_jacobians(conserved: tuple[float, ...], direction: int) -> tuple[np.ndarray, np.ndarray]:
    """Jacobians of the convective and the viscous flux, by automatic differentiation."""

    def flux(which: int) -> Callable[[Any], Any]:
        def function(u: Any) -> Any:
            field = anp.reshape(u, (5, 1, 1, 1))
            given = (field, navier_stokes.primitives(field), direction, 1.0, anp)
            return anp.reshape(navier_stokes._flux_and_diffused(*given)[which], (5,))

        return function

    at = np.array(conserved)
    return autograd.jacobian(flux(0))(at), autograd.jacobian(flux(1))(at)


def swept_densely(problem: lu.LuClass, field: np.ndarray, rsd: np.ndarray) -> np.ndarray:
    """Both sweeps as two dense linear systems over the interior, from Jacobians by differentiation."""
    n, dt, omega = problem.points, problem.dt, lu.OVER_RELAXATION
    values = np.moveaxis(field, 0, -1)
    interior = [(k, j, i) for k in range(1, n - 1) for j in range(1, n - 1) for i in range(1, n - 1)]
    number = {point: 5 * count for count, point in enumerate(interior)}
    size = 5 * len(interior)
    diagonal = np.zeros((size, size))
    coupling = {side: np.zeros((size, size)) for side in (-1, 1)}
    from_faces = {side: np.zeros(size) for side in (-1, 1)}
    right = np.concatenate([dt * rsd[point] for point in interior])
    for point, at in number.items():
        rows = slice(at, at + 5)
        diagonal[rows, rows] = np.eye(5)
        for direction in range(3):
            _, viscous = flux_jacobians(tuple(values[point]), direction)
            diagonal[rows, rows] += 2.0 * dt * (n - 1) ** 2 * viscous
            for side in (-1, 1):
                neighbour = list(point)
                neighbour[2 - direction] += side
                there = tuple(neighbour)
                convective, viscous = flux_jacobians(tuple(values[there]), direction)
                block = omega * dt * (side * 0.5 * (n - 1) * convective - (n - 1) ** 2 * viscous)
                if there in number:
                    coupling[side][rows, number[there] : number[there] + 5] = block
                else:
                    from_faces[side][rows] += block @ rsd[there]
    first = np.linalg.solve(diagonal + coupling[-1], right - from_faces[-1])
    second = np.linalg.solve(diagonal + coupling[1], diagonal @ first - from_faces[1])
    return np.moveaxis(second.reshape(n - 2, n - 2, n - 2, 5), -1, 0)


@pytest.mark.parametrize("n", [3, 4])
def test_sweeps_against_dense_solves(n: int) -> None:
    problem, field, rsd = small_problem(n, seed=n)
    _, kinetic, inverse = navier_stokes.primitives(field)
    found = lu._relaxed(field, rsd, inverse, kinetic * field[0], problem, np)
    np.testing.assert_allclose(found, swept_densely(problem, field, rsd), rtol=1e-9, atol=1e-11)


def test_surface_integral_against_trapezoidal_rule() -> None:
    generator = np.random.default_rng(7)
    u = lu.initial_state("S")["u"]
    u *= generator.uniform(0.9, 1.1, size=u.shape)
    box = u[2:11, 1:10, 1:11]
    pressure = 0.4 * (box[..., 4] - 0.5 * np.sum(box[..., 1:4] ** 2, axis=-1) / box[..., 0])
    expected = 0.0
    for axis in range(3):
        for side in (0, -1):
            values = np.take(pressure, side, axis=axis)
            for _ in range(2):
                values = np.sum(0.5 * (values[1:] + values[:-1]), axis=0) / 11
            expected += float(values)
    assert float(lu._surface_integral(u, 12, np)) == pytest.approx(expected, rel=1e-13)


def test_initial_state_is_the_benchmarks() -> None:
    """Layout of the C benchmark; residual zero on the faces, rho_i and qs those of u on the whole grid."""
    state = lu.initial_state("S")
    assert {name: state[name].shape for name in ARRAYS} == {
        "u": (12, 13, 13, 5),
        "rsd": (12, 13, 13, 5),
        "rho_i": (12, 13, 13),
        "qs": (12, 13, 13),
    }
    assert lu.initial_state("W")["u"].shape == (33, 33, 33, 5)
    grid = (slice(None), slice(12), slice(12))
    u = state["u"][grid]
    np.testing.assert_allclose(state["rho_i"][grid], 1.0 / u[..., 0])
    np.testing.assert_allclose(state["qs"][grid], 0.5 * np.sum(u[..., 1:4] ** 2, axis=-1) / u[..., 0])
    inside = state["rsd"][1:11, 1:11, 1:11]
    assert np.count_nonzero(inside) == np.count_nonzero(state["rsd"]) > 0.99 * inside.size


def test_exact_solution_is_stationary() -> None:
    state = lu.initial_state("S")
    u = state["u"].copy()
    u[:, :12, :12] = navier_stokes.exact_on_grid(12)
    exact = {**lu._right_hand_side(u, state["rsd"], state["rho_i"], state["qs"], 12, np), "u": u, "istep": 0}
    assert np.abs(lu.step(exact)["u"] - u).max() < 1e-12
    assert np.abs(lu.step(state)["u"] - state["u"]).max() > 1e-3


def test_step_keeps_faces_of_u_all_padding_and_its_argument(middle: dict[str, Any]) -> None:
    padding = padding_of(lu.problem_class("S"))
    state = frozen(poisoned(middle, elements_at(padding), "1e34"))
    after = lu.step(state)
    assert after["istep"] == state["istep"] + 1
    for name in ARRAYS:
        assert (after[name][padding] == 1e34).all()
    changed = after["u"] != state["u"]
    interior = (slice(1, 11),) * 3
    assert changed[interior].all()
    changed[interior] = False
    assert not changed.any()


def test_bad_class_and_shape_are_named() -> None:
    with pytest.raises(ValueError, match="unknown LU class 'A': expected one of S, W"):
        lu.problem_class("A")
    with pytest.raises(ValueError, match=r"\(12, 12, 12, 5\), which is no LU class"):
        lu.step({**lu.initial_state("S"), "u": np.ones((12, 12, 12, 5))})


@pytest.mark.parametrize("name", ARRAYS)
def test_gradient_by_autograd_is_the_slope(name: str, middle: dict[str, Any]) -> None:
    def total(values: Any) -> Any:
        return sum(anp.sum(found) for found in lu.output(lu.step({**middle, name: values})).values())

    values = middle[name]
    move = 1e-7 * np.random.default_rng(5).normal(size=values.shape)
    slope = np.sum(autograd.grad(total)(values) * move)
    assert slope == pytest.approx(0.5 * (total(values + move) - total(values - move)), rel=1e-5)


# ---- what is uncritical ----


@pytest.mark.parametrize(("problem", "points"), [("S", 428), ("W", 380)])
def test_padding_and_edges_are_uncritical_for_the_verified_output(problem: str, points: int) -> None:
    state = lu.run(lu.initial_state(problem), 2)
    result = profile(lu.step, state, lu.output)
    expected = padding_of(lu.problem_class(problem)) | edges_of(lu.problem_class(problem))
    assert expected.sum() == points
    for name, mask in elements_at(expected).items():
        np.testing.assert_array_equal(result.map[name].uncritical, mask, err_msg=name)
    assert not result.map["istep"].uncritical.any()
    assert result.sinks == ()


def test_edges_of_u_are_critical_if_the_field_is_output(middle: dict[str, Any]) -> None:
    result = profile(lu.step, middle, output_with_field)
    padding, edges = padding_of(lu.problem_class("S")), edges_of(lu.problem_class("S"))
    expected = {**elements_at(padding | edges), "u": elements_at(padding)["u"]}
    assert expected["u"].sum() == 1500
    for name, mask in expected.items():
        np.testing.assert_array_equal(result.map[name].uncritical, mask, err_msg=name)


@pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")
@pytest.mark.parametrize("fill", FILLS)
def test_poisoned_padding_and_edges_change_no_bit_and_verify(
    fill: str, middle: dict[str, Any], end: dict[str, Any]
) -> None:
    """All uncritical elements of all four arrays at once: 5136 of 24,336."""
    masks = elements_at(padding_of(lu.problem_class("S")) | edges_of(lu.problem_class("S")))
    assert sum(int(mask.sum()) for mask in masks.values()) == 5136
    steps = end["istep"] - MIDDLE
    state = poisoned(middle, masks, fill)
    assert ends_the_same(lu, middle, state, steps)
    assert lu.verify(lu.run(state, steps)).verified


@pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")
@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("point", [(0, 6, 6), (6, 6, 11), (6, 6, 6)])
def test_poison_elsewhere_shows(name: str, point: tuple[int, int, int], middle: dict[str, Any]) -> None:
    """On faces and inside: one poisoned point reaches the output."""
    mask = elements_at(only(middle["qs"].shape, point))[name]
    assert not ends_the_same(lu, middle, poisoned(middle, {name: mask}, "nan"), 1)


@pytest.mark.parametrize("name", ["rho_i", "qs"])
def test_zeros_on_the_faces_of_rsd_hide_finite_poison(name: str, middle: dict[str, Any]) -> None:
    """Why structure decides: a derivative would call these faces uncritical, and NaN in them shows."""
    face = np.zeros(middle[name].shape, dtype=bool)
    face[0, 1:11, 1:11] = True
    assert ends_the_same(lu, middle, poisoned(middle, {name: face}, "1e34"), 1)
    assert not profile(lu.step, middle, lu.output).map[name].uncritical[face].any()


@pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")
def test_poisoned_edges_show_in_the_field(middle: dict[str, Any]) -> None:
    edges = elements_at(edges_of(lu.problem_class("S")))["u"]
    after = output_with_field(lu.step(poisoned(middle, {"u": edges}, "nan")))
    expected = output_with_field(lu.step(middle))
    differing = [a[0] for a, b in zip(bits_of(after), bits_of(expected), strict=True) if a != b]
    assert differing == ["field float64 (12, 12, 12, 5)"]
