"""The CG kernel: matrix, official verification, and the elements of x that a restart does not need."""

from __future__ import annotations

from typing import Any

import autograd
import cg
import numpy as np
import pytest
from kernel_proofs import FILLS, elements, ends_the_same, frozen, only, poisoned

from scr_critplugin.analysis import Profile, profile
from scr_critplugin.criticality import ElementState

MIDDLE = 7


@pytest.fixture(scope="module")
def middle() -> dict[str, Any]:
    """State of class S in the middle of the run."""
    return cg.run(cg.initial_state("S"), MIDDLE)


@pytest.fixture(scope="module")
def profiled(middle: dict[str, Any]) -> Profile:
    """Class S, profiled in the middle of the run."""
    return profile(cg.step, middle, cg.output)


def dense(matrix: cg.RowPadded) -> np.ndarray:
    """The matrix without gaps."""
    n = len(matrix.values)
    full = np.zeros((n, n))
    np.add.at(full, (np.arange(n)[:, None], matrix.columns), matrix.values)
    return full


# ---- the benchmark ----


@pytest.mark.parametrize("name", cg.CLASSES)
def test_class_verifies(name: str) -> None:
    verification = cg.verify(cg.run(cg.initial_state(name), cg.CLASSES[name].steps))
    assert verification.verified
    # Rounding alone: far closer to the reference than the benchmark asks for.
    assert verification.zeta_deviation < 1e-13


def test_other_results_do_not_verify(middle: dict[str, Any]) -> None:
    assert not cg.verify(middle).verified
    left = cg.CLASSES["S"].steps - MIDDLE
    # Converged to the reference's digits, but not at the step that the reference belongs to.
    early = cg.verify(cg.run(middle, left - 1))
    assert not early.verified
    late_change = cg.run(middle, left)
    late_change["x"][17] *= 1.01
    assert not cg.verify(late_change).verified
    assert cg.verify(late_change).zeta_deviation > cg.EPSILON


def test_matrix_is_what_the_report_describes() -> None:
    full = dense(cg.matrix_of("S"))
    assert np.count_nonzero(full) == 78148
    # The order of the additions differs between (i, j) and (j, i).
    np.testing.assert_allclose(full, full.T, rtol=1e-12, atol=0.0)
    # The first square has the weight 1 and 0.5 in its own column, the last a tenth of that weight.
    own = np.diag(full) + 10.0 - 0.1
    assert own[0] >= 0.25
    assert own[-1] >= 0.025
    # All squares together are positive, and zeta is the shift plus the eigenvalue closest to zero.
    eigenvalues = np.linalg.eigvalsh(full)
    assert eigenvalues[0] > 0.1 - 10.0
    closest = eigenvalues[np.argmin(np.abs(eigenvalues))]
    assert 10.0 + closest == pytest.approx(cg.CLASSES["S"].zeta, rel=1e-9)


def test_product_is_the_dense_product() -> None:
    matrix = cg.matrix_of("S")
    vector = np.random.default_rng(1).standard_normal(1400)
    np.testing.assert_allclose(matrix.times(vector, np), dense(matrix) @ vector, rtol=1e-12, atol=1e-12)


def test_output_is_that_of_the_next_iteration(middle: dict[str, Any]) -> None:
    x = middle["x"][:1400]
    z = np.linalg.solve(dense(cg.matrix_of("S")), x)
    found = cg.output(middle)
    # 25 steps of conjugate gradients solve the system to rounding.
    assert found["zeta"] == pytest.approx(10.0 + 1.0 / (x @ z), rel=1e-12)
    assert found["residual"] < 1e-12
    np.testing.assert_allclose(cg.step(middle)["x"][:1400], z / np.linalg.norm(z), rtol=1e-9, atol=1e-13)


def test_layout_and_arguments(middle: dict[str, Any]) -> None:
    assert middle["x"].shape == (1402,)
    assert cg.initial_state("W")["x"].shape == (7002,)
    # As in C: ones in all but the last element, which nothing ever sets.
    assert cg.initial_state("S")["x"].sum() == 1401.0
    before = frozen(middle)
    after = cg.step(before)
    assert np.array_equal(before["x"], middle["x"])
    assert np.array_equal(after["x"][1400:], before["x"][1400:])
    with pytest.raises(ValueError, match="unknown CG class 'A'"):
        cg.initial_state("A")
    with pytest.raises(ValueError, match=r"x has shape \(1400,\)"):
        cg.step({"x": np.ones(1400), "it": 0})


# ---- what a restart does not need ----


def test_two_elements_are_uncritical(profiled: Profile) -> None:
    uncritical = profiled.map["x"].uncritical
    # x[NA] is copied into work arrays and never looked at there, x[NA + 1] is not even copied.
    assert np.flatnonzero(uncritical).tolist() == [1400, 1401]
    assert set(profiled.map["x"].states[1400:]) <= {ElementState.INERT, ElementState.UNUSED}
    assert profiled.map["it"].critical.all()
    assert not profiled.sinks
    assert profiled.stationary
    assert profiled.steps_swept == 1
    assert profiled.poison is not None
    assert profiled.poison.elements == {"x": 2, "it": 0}


def test_class_w() -> None:
    state = cg.run(cg.initial_state("W"), MIDDLE)
    found = profile(cg.step, state, cg.output)
    assert np.flatnonzero(found.map["x"].uncritical).tolist() == [7000, 7001]
    other = poisoned(state, {"x": found.map["x"].uncritical}, "nan")
    assert ends_the_same(cg, state, other, 1)
    assert cg.verify(cg.run(other, cg.CLASSES["W"].steps - MIDDLE)).verified


@pytest.mark.parametrize("fill", FILLS)
def test_poison_changes_no_bit(middle: dict[str, Any], profiled: Profile, fill: str) -> None:
    other = poisoned(middle, {"x": profiled.map["x"].uncritical}, fill)
    left = cg.CLASSES["S"].steps - MIDDLE
    assert ends_the_same(cg, middle, other, left)
    assert cg.verify(cg.run(other, left)).verified


def test_every_critical_element_matters(middle: dict[str, Any], profiled: Profile) -> None:
    for index in elements(profiled.map["x"].critical, 30):
        other = poisoned(middle, {"x": only((1402,), index)}, "nan")
        assert not ends_the_same(cg, middle, other, 1), index


def test_derivative_agrees(middle: dict[str, Any], profiled: Profile) -> None:
    def zeta(x: Any) -> Any:
        return cg.output(cg.step({"x": x, "it": 0}))["zeta"]

    gradient = autograd.grad(zeta)(middle["x"])
    assert np.array_equal(gradient != 0.0, profiled.map["x"].critical)
