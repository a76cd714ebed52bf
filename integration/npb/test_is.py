"""The IS kernel: official verification, and what a restart does not need where derivatives say nothing."""

from __future__ import annotations

from typing import Any

import is_
import numpy as np
import pytest
from kernel_proofs import FILLS, elements, ends_the_same, frozen, poisoned

from scr_critplugin.analysis import Profile, profile
from scr_critplugin.criticality import ElementState

MIDDLE = 5
STEPS = 10
ARRAYS = ("key_array", "bucket_ptrs")


def middle_of(name: str) -> dict[str, Any]:
    return is_.run(is_.initial_state(name), MIDDLE)


def profile_of(state: dict[str, Any]) -> Profile:
    # The step writes keys at the counter: its structure changes, so every step to the end is looked at.
    return profile(is_.step, state, is_.output, steps=STEPS - MIDDLE)


@pytest.fixture(scope="module")
def middle() -> dict[str, Any]:
    """State of class S in the middle of the run."""
    return middle_of("S")


@pytest.fixture(scope="module")
def profiled(middle: dict[str, Any]) -> Profile:
    """Class S, profiled in the middle of the run."""
    return profile_of(middle)


# ---- the benchmark ----


@pytest.mark.parametrize("name", is_.CLASSES)
def test_class_verifies(name: str) -> None:
    finished = is_.run(is_.initial_state(name), STEPS)
    assert is_.verify(finished) == is_.Verification(verified=True, passed=50, out_of_order=0)
    # Of the benchmark's two tests the second says "in order", not "the same keys".
    assert np.array_equal(is_.output(finished)["sorted"], np.sort(finished["key_array"]))


def test_other_results_do_not_verify(middle: dict[str, Any]) -> None:
    assert not is_.verify(middle).verified
    finished = is_.run(middle, STEPS - MIDDLE)
    assert not is_.verify({**finished, "passed_verification": 49}).verified
    assert not is_.verify({**finished, "iteration": 9}).verified
    moved = finished["bucket_ptrs"].copy()
    moved[100] += 40
    late = is_.verify({**finished, "bucket_ptrs": moved})
    assert not late.verified
    assert late.out_of_order > 0
    # A key that should be among the smallest, before an iteration tests its rank.
    keys = middle["key_array"].copy()
    keys[is_.CLASSES["S"].test_index[0]] = 1024
    assert is_.verify(is_.run({**middle, "key_array": keys}, STEPS - MIDDLE)).passed < 50


def test_step_against_a_count(middle: dict[str, Any]) -> None:
    after = is_.step(middle)
    keys = middle["key_array"].copy()
    keys[6], keys[16] = 6, 2048 - 6
    assert np.array_equal(after["key_array"], keys)
    assert after["bucket_ptrs"].tolist() == [int((keys < 4 * (b + 1)).sum()) for b in range(512)]
    assert after["passed_verification"] == 30
    assert after["key_array"].dtype == after["bucket_ptrs"].dtype == np.int32


def test_layout_and_arguments(middle: dict[str, Any]) -> None:
    start = is_.initial_state("S")
    assert start["key_array"].shape == (65536,)
    assert start["bucket_ptrs"].shape == (512,)
    assert is_.initial_state("W")["bucket_ptrs"].shape == (1024,)
    # The iteration done beforehand.
    assert (start["key_array"][1], start["key_array"][11]) == (1, 2047)
    assert start["bucket_ptrs"][-1] == 65536
    assert (start["passed_verification"], start["iteration"]) == (0, 0)
    before = frozen(middle)
    is_.step(before)
    assert all(np.array_equal(before[name], middle[name]) for name in ARRAYS)
    with pytest.raises(ValueError, match="there is no iteration 11 of 10"):
        is_.step(is_.run(middle, STEPS - MIDDLE))
    with pytest.raises(ValueError, match="unknown IS class 'C'"):
        is_.initial_state("C")
    with pytest.raises(ValueError, match=r"key_array has shape \(3,\)"):
        is_.step({**middle, "key_array": np.zeros(3, dtype=np.int32)})


# ---- what a restart does not need ----


@pytest.mark.parametrize("name", is_.CLASSES)
def test_uncritical_elements(name: str) -> None:
    found = profile_of(middle_of(name))
    # The next iteration overwrites two keys before it counts any, and all bucket ends.
    assert np.flatnonzero(found.map["key_array"].uncritical).tolist() == [6, 16]
    assert found.map["bucket_ptrs"].uncritical.all()
    for variable in ARRAYS:
        states = found.map[variable].states
        assert set(states[found.map[variable].uncritical]) == {ElementState.DEAD}, variable
    assert found.map["passed_verification"].critical.all()
    assert found.map["iteration"].critical.all()
    assert found.poison is not None
    assert found.poison.elements["bucket_ptrs"] == is_.CLASSES[name].buckets


def test_at_the_end_bucket_ends_are_critical(middle: dict[str, Any]) -> None:
    """What is dead before an iteration is read by the final sort: dependence sees it if no step follows."""
    finished = is_.run(middle, STEPS - MIDDLE)
    found = profile(lambda state: state, finished, is_.output)
    assert found.map["bucket_ptrs"].critical.all()
    assert found.map["key_array"].critical.all()


@pytest.mark.parametrize("fill", FILLS)
def test_poison_changes_no_bit(middle: dict[str, Any], profiled: Profile, fill: str) -> None:
    other = poisoned(middle, {name: profiled.map[name].uncritical for name in ARRAYS}, fill)
    assert ends_the_same(is_, middle, other, STEPS - MIDDLE)
    assert is_.verify(is_.run(other, STEPS - MIDDLE)).verified


def test_every_critical_key_matters(middle: dict[str, Any], profiled: Profile) -> None:
    for index in elements(profiled.map["key_array"].critical, 40):
        keys = middle["key_array"].copy()
        keys[index] ^= 1
        assert not ends_the_same(is_, middle, {**middle, "key_array": keys}, 1), index


def test_counters_matter(middle: dict[str, Any]) -> None:
    for name in ("passed_verification", "iteration"):
        assert not ends_the_same(is_, middle, {**middle, name: middle[name] - 1}, 1), name
