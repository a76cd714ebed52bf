"""NAS SP: the official verification, the parts of the method, and what of its state is uncritical."""

from __future__ import annotations

from typing import Any

import autograd
import autograd.numpy as anp
import navier_stokes
import numpy as np
import pytest
import sp
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_proofs import FILLS, ends_the_same, frozen, only, poisoned

from scr_critplugin.analysis import profile

MIDDLE = 50


def padding_of(problem: navier_stokes.ProblemClass) -> np.ndarray:
    """Mask of the elements of ``u`` that are not grid points."""
    mask = np.ones(problem.shape, dtype=bool)
    mask[:, : problem.points, : problem.points] = False
    return mask


@pytest.fixture(scope="module")
def middle() -> dict[str, Any]:
    """Class S halfway through its run."""
    return sp.run(sp.initial_state("S"), MIDDLE)


@pytest.fixture(scope="module")
def end(middle: dict[str, Any]) -> dict[str, Any]:
    """Class S at its last step."""
    return sp.run(middle, sp.problem_class("S").steps - MIDDLE)


# ---- the official test ----


def test_class_s_verifies(end: dict[str, Any]) -> None:
    result = sp.verify(end)
    assert result.verified
    assert max(result.residual_deviation.max(), result.error_deviation.max()) < 1e-10


@pytest.mark.slow
def test_class_w_verifies() -> None:
    problem = sp.problem_class("W")
    assert sp.verify(sp.run(sp.initial_state("W"), problem.steps)).verified


def test_other_results_do_not_verify(middle: dict[str, Any], end: dict[str, Any]) -> None:
    assert not sp.verify(middle).verified
    assert not sp.verify({**middle, "step": end["step"]}).verified
    assert not sp.verify({**end, "step": end["step"] - 1}).verified
    off = end["u"].copy()
    off[6, 6, 6, 4] += 1e-6
    assert not sp.verify({**end, "u": off}).verified
    off[6, 6, 6, 4] = np.nan
    assert not sp.verify({**end, "u": off}).verified


# ---- the parts of the method ----


@settings(max_examples=30, deadline=None)
@given(rows=st.integers(3, 12), seed=st.integers(0, 2**32 - 1))
def test_pentadiagonal_solver_against_dense_solves(rows: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    lower, upper, right = generator.normal(size=(3, rows, 5, 4))
    diagonal = 12.0 + generator.uniform(size=(rows, 5, 4))
    outermost = float(generator.normal())
    solution = np.stack(sp._pentadiagonal_thomas(lower, diagonal, upper, outermost, right))
    for system in range(5):
        for line in range(4):
            at = (slice(None), system, line)
            matrix = np.diag(diagonal[at]) + np.diag(lower[at][1:], -1) + np.diag(upper[at][:-1], 1)
            matrix += outermost * (np.eye(rows, k=2) + np.eye(rows, k=-2))
            expected = np.linalg.solve(matrix, right[at])
            np.testing.assert_allclose(solution[at], expected, rtol=1e-9, atol=1e-12)


def test_changes_of_basis_come_back_to_where_they_began() -> None:
    """Into x, x to y, y to z, out of z: together the identity, at any state of the gas."""
    generator = np.random.default_rng(3)
    update = generator.normal(size=(5, 2, 3, 4))
    velocity = generator.normal(size=(3, 2, 3, 4))
    kinetic = 0.5 * np.sum(velocity * velocity, axis=0)
    inverse, sound = generator.uniform(0.5, 2.0, size=(2, 2, 3, 4))
    gas = sp._Gas(velocity, kinetic, inverse, sound)
    changed = sp._into_eigenvectors_of_x(update, gas, np)
    changed = np.tensordot(sp.Y_TO_Z @ sp.X_TO_Y, changed, axes=1)
    back = sp._out_of_eigenvectors_of_z(changed, gas, np)
    np.testing.assert_allclose(back, update, rtol=1e-12, atol=1e-12)


def test_eigenvectors_diagonalise_the_flux_jacobian() -> None:
    """In its eigenvectors the convective Jacobian along x has the eigenvalues that the sweep solves with."""
    conserved = np.array([1.3, 0.4, -0.7, 0.9, 6.0])

    def flux(u: Any) -> Any:
        field = anp.reshape(u, (5, 1, 1, 1))
        found, _ = navier_stokes._flux_and_diffused(field, navier_stokes.primitives(field), 0, 1.0, anp)
        return anp.reshape(found, (5,))

    velocity, kinetic, inverse = navier_stokes.primitives(conserved[:, None, None, None])
    sound = np.sqrt(1.4 * 0.4 * (conserved[4] * inverse - kinetic))
    gas = sp._Gas(velocity, kinetic, inverse, sound)
    into = sp._into_eigenvectors_of_x(np.eye(5)[:, :, None, None], gas, np).reshape(5, 5)
    diagonal = into @ autograd.jacobian(flux)(conserved) @ np.linalg.inv(into)
    eigenvalues = velocity[0].item() + sp.SOUND_SIGN * sound.item()
    np.testing.assert_allclose(diagonal, np.diag(eigenvalues), atol=1e-12)


def test_exact_solution_is_stationary() -> None:
    """A step from the exact solution stays there, up to rounding: forcing and operator belong together."""
    state = sp.initial_state("S")
    state["u"][:, :12, :12] = navier_stokes.exact_on_grid(12)
    after = sp.step(state)["u"]
    assert np.abs(after - state["u"]).max() < 1e-13
    assert np.abs(sp.step(sp.initial_state("S"))["u"] - sp.initial_state("S")["u"]).max() > 1e-3


def test_step_keeps_faces_and_padding_and_its_argument(middle: dict[str, Any]) -> None:
    state = frozen(poisoned(middle, {"u": padding_of(sp.problem_class("S"))}, "1e34"))
    after = sp.step(state)
    assert after["step"] == state["step"] + 1
    changed = after["u"] != state["u"]
    interior = (slice(1, 11),) * 3
    assert changed[interior].all()
    changed[interior] = False
    assert not changed.any()


def test_layout_is_that_of_the_c_benchmark() -> None:
    assert sp.initial_state("S")["u"].shape == (12, 13, 13, 5)
    assert sp.initial_state("W")["u"].shape == (36, 37, 37, 5)


def test_bad_class_and_shape_are_named() -> None:
    with pytest.raises(ValueError, match="unknown SP class 'A': expected one of S, W"):
        sp.problem_class("A")
    with pytest.raises(ValueError, match=r"\(12, 12, 12, 5\), which is no SP class"):
        sp.step({"u": np.ones((12, 12, 12, 5)), "step": 0})


def test_gradient_by_autograd_is_the_slope(middle: dict[str, Any]) -> None:
    def total(u: Any) -> Any:
        norms = sp.output(sp.step({**middle, "u": u}))
        return anp.sum(norms["residual"]) + anp.sum(norms["error"])

    move = 1e-7 * np.random.default_rng(5).normal(size=middle["u"].shape)
    slope = np.sum(autograd.grad(total)(middle["u"]) * move)
    assert slope == pytest.approx(0.5 * (total(middle["u"] + move) - total(middle["u"] - move)), rel=1e-5)


# ---- what is uncritical ----


def test_class_s_has_only_its_padding_uncritical(middle: dict[str, Any]) -> None:
    result = profile(sp.step, middle, sp.output)
    uncritical = result.map["u"].uncritical
    assert uncritical.sum() == 1500
    np.testing.assert_array_equal(uncritical, padding_of(sp.problem_class("S")))
    assert not result.map["step"].uncritical.any()
    assert result.sinks == ()


def test_class_w_has_only_its_padding_uncritical() -> None:
    result = profile(sp.step, sp.initial_state("W"), sp.output)
    uncritical = result.map["u"].uncritical
    assert uncritical.sum() == 13_140
    np.testing.assert_array_equal(uncritical, padding_of(sp.problem_class("W")))


@pytest.mark.parametrize("fill", FILLS)
def test_poisoned_padding_changes_no_bit_and_verifies(
    fill: str, middle: dict[str, Any], end: dict[str, Any]
) -> None:
    steps = end["step"] - MIDDLE
    state = poisoned(middle, {"u": padding_of(sp.problem_class("S"))}, fill)
    assert ends_the_same(sp, middle, state, steps)
    assert sp.verify(sp.run(state, steps)).verified


@pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")
@pytest.mark.parametrize("point", [(0, 0, 5), (11, 11, 11), (0, 6, 6), (6, 6, 6)])
def test_poison_elsewhere_shows(point: tuple[int, int, int], middle: dict[str, Any]) -> None:
    """On an edge, in a corner, on a face, inside: one poisoned component reaches the output."""
    state = poisoned(middle, {"u": only(middle["u"].shape, (*point, 2))}, "1e34")
    assert not ends_the_same(sp, middle, state, 1)
