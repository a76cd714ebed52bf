"""The BT kernel: the official verification, and the elements of u that a restart does not need."""

from __future__ import annotations

from typing import Any

import autograd
import autograd.numpy as anp
import bt
import navier_stokes
import numpy as np
import pytest

from scr_critplugin.analysis import Profile, profile
from scr_critplugin.criticality import ElementState

CHECKPOINT_STEP = 30


@pytest.fixture(scope="module")
def middle() -> dict[str, Any]:
    """State of class S in the middle of the run."""
    return bt.run(bt.initial_state("S"), CHECKPOINT_STEP)


@pytest.fixture(scope="module")
def finished(middle: dict[str, Any]) -> dict[str, Any]:
    """State of class S after its last step."""
    return bt.run(middle, bt.CLASSES["S"].steps - CHECKPOINT_STEP)


@pytest.fixture(scope="module")
def profiled(middle: dict[str, Any]) -> Profile:
    """Class S, profiled in the middle of the run."""
    return profile(bt.step, middle, bt.output)


def padding(shape: tuple[int, ...]) -> np.ndarray:
    """The elements that the C layout adds to the grid."""
    mask = np.zeros(shape, dtype=bool)
    mask[:, -1, :, :] = True
    mask[:, :, -1, :] = True
    return mask


def test_class_s_verifies(finished: dict[str, Any]) -> None:
    verification = bt.verify(finished)
    assert verification.verified
    # Rounding alone: far closer to the reference than the benchmark asks for.
    assert verification.residual_deviation.max() < 1e-10
    assert verification.error_deviation.max() < 1e-10


def test_class_w_verifies() -> None:
    """About 20 seconds."""
    assert bt.verify(bt.run(bt.initial_state("W"), bt.CLASSES["W"].steps)).verified


def test_other_results_do_not_verify(middle: dict[str, Any], finished: dict[str, Any]) -> None:
    assert not bt.verify(middle).verified
    one_step_short = bt.run(middle, bt.CLASSES["S"].steps - CHECKPOINT_STEP - 1)
    assert not bt.verify({**one_step_short, "step": 60}).verified
    u = finished["u"].copy()
    u[5, 5, 5, 4] *= 1.0 + 1e-6
    assert not bt.verify({**finished, "u": u}).verified


def test_layout_is_that_of_the_c_benchmark() -> None:
    assert bt.initial_state("S")["u"].shape == (12, 13, 13, 5)
    assert bt.initial_state("W")["u"].shape == (24, 25, 25, 5)


def test_exact_solution_is_stationary() -> None:
    """The forcing is made for it: from the exact solution, a step goes nowhere."""
    line = np.linspace(0.0, 1.0, 12)
    u = np.zeros((12, 13, 13, 5))
    u[:, :12, :12] = navier_stokes.exact_solution(
        line[None, None, :], line[None, :, None], line[:, None, None]
    )
    after = bt.step({"u": u, "step": 0})["u"]
    assert np.abs(after - u).max() < 1e-12


def test_step_leaves_its_argument_alone(middle: dict[str, Any]) -> None:
    before = middle["u"].copy()
    bt.step(middle)
    assert middle["u"].tobytes() == before.tobytes()


def test_wrong_class_and_shape_are_named() -> None:
    with pytest.raises(ValueError, match="unknown BT class 'Q'"):
        bt.initial_state("Q")
    with pytest.raises(ValueError, match=r"shape \(2, 2\), which is no BT class"):
        bt.step({"u": np.ones((2, 2)), "step": 0})


# ---- dependence ----


def test_exactly_the_padding_is_uncritical(profiled: Profile) -> None:
    u = profiled.map["u"]
    assert (u.size, int(u.uncritical.sum())) == (10140, 1500)
    assert np.array_equal(u.uncritical, padding(u.shape))
    # It is copied from state to state with the rest of the array, to no effect.
    assert set(u.states[u.uncritical].tolist()) == {ElementState.INERT}
    assert profiled.map["step"].critical.all()


def test_one_sweep_suffices_and_nothing_leaves_the_data_flow(profiled: Profile) -> None:
    assert (profiled.stationary, profiled.steps_swept, profiled.sinks) == (True, 1, ())


@pytest.mark.parametrize("fill", [np.nan, 1e34, -0.0])
def test_overwriting_the_uncritical_elements_changes_no_bit(
    fill: float, profiled: Profile, middle: dict[str, Any], finished: dict[str, Any]
) -> None:
    u = middle["u"].copy()
    u[profiled.map["u"].uncritical] = fill
    restarted = bt.run({**middle, "u": u}, bt.CLASSES["S"].steps - CHECKPOINT_STEP)
    for name, norms in bt.output(finished).items():
        assert bt.output(restarted)[name].tobytes() == norms.tobytes(), name
    assert bt.verify(restarted).verified


def test_derivative_misses_what_dependence_finds(middle: dict[str, Any], profiled: Profile) -> None:
    """On the grid's edges u is exact: the derivative is zero there, the dependence is not."""

    def total(u: Any) -> Any:
        norms = bt.output(bt.step({"u": u, "step": 0}))
        return anp.sum(norms["residual"]) + anp.sum(norms["error"])

    gradient = autograd.grad(total)(middle["u"])
    missed = (gradient == 0.0) & profiled.map["u"].critical
    assert missed.sum() == 640
    place = tuple(np.argwhere(missed)[0])
    u = middle["u"].copy()
    u[place] = 1e3
    disturbed = bt.output(bt.step({**middle, "u": u}))
    undisturbed = bt.output(bt.step(middle))
    assert disturbed["error"].tobytes() != undisturbed["error"].tobytes()


def test_class_w_has_its_padding_uncritical() -> None:
    found = profile(bt.step, bt.initial_state("W"), bt.output).map["u"]
    assert np.array_equal(found.uncritical, padding(found.shape))
    assert int(found.uncritical.sum()) == 5 * 24 * (25 * 25 - 24 * 24)
