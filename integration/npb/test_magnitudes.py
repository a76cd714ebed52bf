"""Gradient magnitudes of the kernels: where value AD calls more uncritical than the structure does."""

from __future__ import annotations

from typing import Any

import bt
import cg
import ft
import mg
import mg_inplace
import numpy as np
import pytest

from scr_critplugin.analysis import Gradient, Profile, profile


def middle_of(module: Any) -> Any:
    start = module.initial_state("S")
    return module.run(start, module.problem_class("S").steps // 2)


def profiled(module: Any, **options: Any) -> tuple[Profile, Gradient]:
    found = profile(module.step, middle_of(module), module.output, engine="gradient", **options)
    assert found.gradient is not None
    assert found.gradient.without_rule == ()
    return found, found.gradient


def silent(found: Profile, name: str) -> int:
    magnitudes = found.map[name].magnitudes
    assert magnitudes is not None
    assert not np.isnan(magnitudes).any()
    assert not magnitudes[found.map[name].uncritical].any()
    return int((magnitudes == 0).sum())


def test_bt_has_640_critical_elements_that_value_ad_misses() -> None:
    found, gradient = profiled(bt)
    assert found.map["u"].uncritical.sum() == 1500
    assert silent(found, "u") == 2140
    assert gradient.zero == {"u": 640}


def test_the_gradient_mask_of_bt_does_not_survive_where_the_structural_one_does() -> None:
    found, _ = profiled(bt, mask="gradient", validate=None)
    middle = middle_of(bt)
    silent_ones = found.map["u"].uncritical
    assert silent_ones.sum() == 2140
    plain, poisoned = bt.output(bt.step(middle)), dict(middle)
    poisoned["u"] = np.where(silent_ones, 1e3, middle["u"])
    changed = bt.output(bt.step(poisoned))
    assert any(not np.array_equal(plain[name], changed[name]) for name in plain)


def test_ft_cancels_most_of_its_spectrum() -> None:
    found, gradient = profiled(ft, steps=3)
    assert found.map["y"].uncritical.sum() == 4096
    # How many exactly depends on how the transform of this NumPy rounds.
    assert 200_000 < silent(found, "y") < 220_000
    assert gradient.zero["y"] == silent(found, "y") - 4096


@pytest.mark.parametrize("module", [cg, mg], ids=lambda module: module.__name__)
def test_magnitudes_of_cg_and_mg_agree_with_the_structure(module: Any) -> None:
    found, gradient = profiled(module)
    assert set(gradient.zero.values()) == {0}
    for name in gradient.magnitudes:
        assert silent(found, name) == found.map[name].uncritical.sum()


def test_in_place_mg_has_the_gradients_of_the_functional_one() -> None:
    middle = middle_of(mg)
    functional = profile(mg.step, middle, mg.output, engine="gradient").gradient
    in_place = profile(mg_inplace.step, middle, mg_inplace.output, engine="gradient").gradient
    assert functional is not None
    assert in_place is not None
    for name, expected in functional.magnitudes.items():
        np.testing.assert_allclose(in_place.magnitudes[name], expected, rtol=1e-4, atol=1e-12)
        assert np.array_equal(in_place.magnitudes[name] == 0, expected == 0)
