"""The FT kernel: official verification, and what a restart does not need of y and sums."""

from __future__ import annotations

from typing import Any

import autograd
import autograd.numpy as anp
import ft
import numpy as np
import pytest
from kernel_proofs import FILLS, elements, ends_the_same, frozen, only, poisoned
from randlc import uniform

from scr_critplugin.analysis import Profile, profile
from scr_critplugin.criticality import ElementState

MIDDLE = 3
STEPS = 6
PADDING = {"S": 64 * 64, "W": 32 * 128}


def middle_of(name: str) -> dict[str, Any]:
    return ft.run(ft.initial_state(name), MIDDLE)


@pytest.fixture(scope="module")
def middle() -> dict[str, Any]:
    """State of class S in the middle of the run."""
    return middle_of("S")


def profile_of(state: dict[str, Any]) -> Profile:
    # The step writes sums[kt]: its structure changes with the counter, so every step to the end is looked at.
    return profile(ft.step, state, ft.output, steps=STEPS - MIDDLE)


@pytest.fixture(scope="module")
def profiled(middle: dict[str, Any]) -> Profile:
    """Class S, profiled in the middle of the run."""
    return profile_of(middle)


# ---- the benchmark ----


@pytest.mark.parametrize("name", ft.CLASSES)
def test_class_verifies(name: str) -> None:
    verification = ft.verify(ft.run(ft.initial_state(name), STEPS))
    assert verification.verified
    assert verification.checksum_deviation.shape == (STEPS,)
    # The references have 13 digits.
    assert verification.checksum_deviation.max() < 5e-13


def test_other_results_do_not_verify(middle: dict[str, Any]) -> None:
    assert not ft.verify(middle).verified
    finished = ft.run(middle, STEPS - MIDDLE)
    assert ft.verify(finished).verified
    for number in range(1, STEPS + 1):
        other = dict(finished, sums=finished["sums"].copy())
        other["sums"][number] *= 1.0 + 3e-12
        assert not ft.verify(other).verified, number
    assert not ft.verify({**finished, "kt": 5}).verified


def test_initial_spectrum() -> None:
    """Against the definition of the transform, with its positive exponent, at a few modes."""
    data = uniform(ft.SEED, 2 * 64**3).reshape(64, 64, 64, 2)
    field = data[..., 0] + 1j * data[..., 1]
    y = ft.initial_state("S")["y"]
    wave = np.exp(2j * np.pi * np.outer(np.arange(64), np.arange(64)) / 64)
    for k, j, i in ((0, 0, 0), (1, 2, 3), (63, 32, 17)):
        mode = np.einsum("kji,k,j,i->", field, wave[k], wave[j], wave[i])
        assert y[k, j, i] == pytest.approx(mode, rel=1e-10)


def test_step_against_the_definition(middle: dict[str, Any]) -> None:
    """Factor by loop over distances, checksum as a sum over waves at one sampled element at a time."""
    points = (64, 64, 64)
    after = ft.step(middle)
    signed = [n if n < 32 else n - 64 for n in range(64)]
    for k, j, i in ((0, 0, 0), (5, 40, 63), (32, 31, 33)):
        squared = signed[k] ** 2 + signed[j] ** 2 + signed[i] ** 2
        factor = np.exp(-4e-6 * np.pi**2 * squared)
        assert after["y"][k, j, i] == pytest.approx(middle["y"][k, j, i] * factor, rel=1e-14)
    field = np.fft.fftn(after["y"][..., :64])
    total = sum(field[5 * j % 64, 3 * j % 64, j % 64] for j in range(1, 1025))
    assert after["sums"][4] == pytest.approx(total / 64**3, rel=1e-13)
    indices = np.stack(ft._sampled(points))
    assert indices.shape == (3, 1024)


def test_layout_and_arguments(middle: dict[str, Any]) -> None:
    assert ft.initial_state("S")["y"].shape == (64, 64, 65)
    assert ft.initial_state("W")["y"].shape == (32, 128, 129)
    assert not ft.initial_state("S")["y"][..., 64].any()
    before = frozen(middle)
    after = ft.step(before)
    assert all(np.array_equal(before[name], middle[name]) for name in ("y", "sums"))
    changed = after["sums"] != before["sums"]
    assert np.flatnonzero(changed).tolist() == [MIDDLE + 1]
    finished = ft.run(middle, STEPS - MIDDLE)
    with pytest.raises(ValueError, match="there is no iteration 7 of 6"):
        ft.step(finished)
    with pytest.raises(ValueError, match="unknown FT class 'X'"):
        ft.initial_state("X")
    with pytest.raises(ValueError, match=r"y has shape \(64, 64, 64\)"):
        ft.step({**middle, "y": middle["y"][..., :64]})


# ---- what a restart does not need ----


@pytest.mark.parametrize("name", ft.CLASSES)
def test_uncritical_elements(name: str) -> None:
    state = middle_of(name)
    found = profile_of(state)
    padding = np.zeros(state["y"].shape, dtype=bool)
    padding[..., -1] = True
    assert padding.sum() == PADDING[name]
    assert np.array_equal(found.map["y"].uncritical, padding)
    assert set(found.map["y"].states[padding]) <= {ElementState.INERT, ElementState.UNUSED}
    # sums[0] belongs to no iteration; the sums to come are overwritten.
    assert np.flatnonzero(found.map["sums"].uncritical).tolist() == [0, 4, 5, 6]
    assert set(found.map["sums"].states[4:]) == {ElementState.DEAD}
    assert found.map["kt"].critical.all()
    assert not found.sinks
    assert found.poison is not None
    assert found.poison.elements == {"y": PADDING[name], "sums": 4, "kt": 0}


@pytest.mark.parametrize("fill", FILLS)
def test_poison_changes_no_bit(middle: dict[str, Any], profiled: Profile, fill: str) -> None:
    other = poisoned(middle, {name: profiled.map[name].uncritical for name in ("y", "sums")}, fill)
    assert ends_the_same(ft, middle, other, STEPS - MIDDLE)
    assert ft.verify(ft.run(other, STEPS - MIDDLE)).verified


def test_every_critical_element_matters(middle: dict[str, Any], profiled: Profile) -> None:
    for name, count in (("y", 15), ("sums", 3)):
        critical = profiled.map[name].critical
        for index in elements(critical, count):
            other = poisoned(middle, {name: only(critical.shape, index)}, "nan")
            assert not ends_the_same(ft, middle, other, 1), (name, index)


def test_derivative_agrees(middle: dict[str, Any], profiled: Profile) -> None:
    def last_checksum(y: Any) -> Any:
        state = {"y": y, "sums": middle["sums"], "kt": MIDDLE}
        return anp.real(ft.output(ft.step(state))["checksums"][-1])

    gradient = autograd.grad(last_checksum)(middle["y"])
    # The derivative may vanish where the dependence does not, never the other way round.
    assert not (np.abs(gradient) > 0.0)[profiled.map["y"].uncritical].any()
    assert np.count_nonzero(gradient) > 0
