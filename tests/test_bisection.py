"""Guilty suspects against what is known of them: alone, several, together, and with few runs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scr_critplugin.analysis.bisection import Spans, culprits, halves, joined, size, without


def members(spans: Spans) -> set[int]:
    return {i for start, stop in spans for i in range(start, stop)}


def spans_of(numbers: set[int]) -> Spans:
    return joined(*(((i, i + 1),) for i in numbers))


NUMBERS = st.sets(st.integers(0, 40))


@given(NUMBERS, NUMBERS)
def test_sets_of_spans(one: set[int], other: set[int]) -> None:
    assert members(spans_of(one)) == one
    assert size(spans_of(one)) == len(one)
    assert members(joined(spans_of(one), spans_of(other))) == one | other
    assert joined(spans_of(one), spans_of(other)) == spans_of(one | other)
    assert without(spans_of(one), spans_of(other)) == spans_of(one - other)
    if len(one) >= 2:
        lower, upper = halves(spans_of(one))
        assert (lower, upper) == (spans_of(members(lower)), spans_of(members(upper)))
        assert members(lower) | members(upper) == one
        assert max(members(lower)) < min(members(upper))
        assert abs(size(lower) - size(upper)) <= 1


class Runs:
    """Fails with any of the groups complete among those given; counts how often it was asked."""

    def __init__(self, *groups: set[int]) -> None:
        self.groups = groups
        self.count = 0

    def __call__(self, spans: Spans) -> bool:
        self.count += 1
        return any(group <= members(spans) for group in self.groups)


@pytest.mark.parametrize(
    ("groups", "most_runs"),
    [
        ([{700}], 20),
        ([{0}, {1}, {999}], 60),
        ([{3, 4}], 45),
        ([{3, 900}], 45),
        ([{3, 500, 900, 901}], 90),
    ],
)
def test_guilty_of_a_thousand(groups: list[set[int]], most_runs: int) -> None:
    runs = Runs(*groups)
    verdict = culprits(runs, ((0, 1000),), 1000)
    assert members(verdict.guilty) == set.union(*groups)
    assert verdict.complete
    assert runs.count <= most_runs


def test_one_that_acts_alone_hides_those_that_act_together_until_it_is_gone() -> None:
    runs = Runs({1}, {40, 70})
    assert members(culprits(runs, ((0, 100),), 100).guilty) == {1}
    rest = without(((0, 100),), ((1, 2),))
    assert members(culprits(runs, rest, 100).guilty) == {40, 70}


@given(st.lists(st.sets(st.integers(0, 59), min_size=1, max_size=3), min_size=1, max_size=5))
def test_asked_again_until_it_survives(groups: list[set[int]]) -> None:
    runs, left, guilty = Runs(*groups), spans_of(set(range(60))), set()
    while runs(left):
        verdict = culprits(runs, left, 10_000)
        found = members(verdict.guilty)
        assert found and verdict.complete
        guilty |= found
        left = without(left, verdict.guilty)
    assert all(group & guilty for group in groups)
    assert guilty <= set.union(*groups)
    assert {i for group in groups if len(group) == 1 for i in group} <= guilty


@pytest.mark.parametrize("most", range(12))
def test_used_up_runs_leave_what_was_suspect_guilty(most: int) -> None:
    runs = Runs({5}, {200, 800})
    verdict = culprits(runs, ((0, 1000),), most)
    assert runs.count <= most
    assert not verdict.complete
    assert 5 in members(verdict.guilty)
    if most < 2:
        assert verdict.guilty == ((0, 1000),)
    else:
        assert size(verdict.guilty) < 1000


def test_runs_are_spread_over_what_fails() -> None:
    """Two far apart: both are narrowed down before either is found."""
    verdict = culprits(Runs({10}, {900}), ((0, 1024),), 10)
    low, high = [{i for i in members(verdict.guilty) if (i < 512) is first} for first in (True, False)]
    assert (10 in low, 900 in high) == (True, True)
    assert max(len(low), len(high)) <= 2 * min(len(low), len(high))


@given(st.randoms(use_true_random=False), st.integers(1, 50))
def test_an_inconsistent_run_still_ends(random: object, count: int) -> None:
    verdict = culprits(lambda spans: bool(random.getrandbits(1)), ((0, count),), 500)  # type: ignore[attr-defined]
    assert verdict.guilty
    assert members(verdict.guilty) <= set(range(count))
