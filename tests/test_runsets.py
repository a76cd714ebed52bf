"""Run lists and index maps against boolean arrays and NumPy's own views."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from scr_critplugin.analysis import runsets
from scr_critplugin.analysis.runsets import (
    IndexMap,
    NotSparseError,
    Runs,
    broadcast_strides,
    c_strides,
    united,
)
from scr_critplugin.analysis.windows import window_of

MASKS = hnp.arrays(bool, st.integers(0, 40))
SHAPES = hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=5)


def is_canonical(runs: Runs) -> bool:
    return bool((runs.start < runs.stop).all() and (runs.start[1:] > runs.stop[:-1]).all())


@given(MASKS)
def test_runs_are_the_mask(mask: Any) -> None:
    runs = Runs.from_mask(mask)
    assert is_canonical(runs)
    assert np.array_equal(runs.on(mask.shape), mask)
    assert np.array_equal(runs.places(100), np.flatnonzero(mask))
    assert runs.count == mask.sum()
    assert bool(runs) == mask.any()


def test_many_runs_are_the_mask() -> None:
    mask = np.random.default_rng(3).random(100_000) < 0.5
    assert np.array_equal(Runs.from_mask(mask).on(mask.shape), mask)


def test_places_are_limited() -> None:
    with pytest.raises(NotSparseError):
        Runs.all(10).places(9)


@given(st.data(), st.integers(0, 30))
def test_set_algebra(data: Any, size: int) -> None:
    masks = data.draw(st.lists(hnp.arrays(bool, size), min_size=2, max_size=2))
    one, other = map(Runs.from_mask, masks)
    for found, expected in (
        (united([one, other]), masks[0] | masks[1]),
        (one.minus(other), masks[0] & ~masks[1]),
        (one.within(other), masks[0] & masks[1]),
    ):
        assert is_canonical(found)
        assert np.array_equal(found.on((size,)), expected)


CHANGES = st.lists(
    st.tuples(st.sampled_from(["add", "take", "keep"]), st.integers(0, 60), hnp.arrays(bool, 12)), max_size=12
)


@given(hnp.arrays(bool, 72), CHANGES, st.sampled_from([1, 2, 64]))
def test_changes_one_after_the_other(mask: Any, changes: Any, most_pieces: int) -> None:
    """Changes of small spans leave sets in pieces, of which any number may be made one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runsets, "_MOST_PIECES", most_pieces)
        runs = Runs.from_mask(mask)
        for kind, at, part in changes:
            changed = np.full(72, kind == "keep")
            changed[at : at + 12] = part
            other = Runs.from_mask(changed)
            if kind == "add":
                runs, mask = united([runs, other]), mask | changed
            elif kind == "take":
                runs, mask = runs.minus(other), mask & ~changed
            else:
                runs, mask = runs.within(other), mask & changed
            assert runs.rows == len(Runs.from_mask(mask).start)
            assert bool(runs) == mask.any()
            assert not runs or runs.span == (mask.argmax(), 72 - mask[::-1].argmax())
        assert runs.equals(Runs.from_mask(mask))


@given(hnp.arrays(bool, 40), st.integers(0, 40), st.integers(0, 40))
def test_near_are_the_runs_that_overlap_or_adjoin(mask: Any, begin: int, end: int) -> None:
    runs = Runs.from_mask(mask)
    expected = (runs.stop >= begin) & (runs.start <= end) & (begin <= end)
    near = runs.near(begin, end)
    assert np.array_equal(near.start, runs.start[expected])
    assert np.array_equal(near.stop, runs.stop[expected])
    covered = begin < end and bool(mask[begin:end].all())
    assert begin >= end or runs.holds(begin, end) == covered


def test_a_change_leaves_the_rows_outside_its_span_alone() -> None:
    """What makes a program that writes plane by plane cheap: no copy of the other planes' rows."""
    planes = Runs.from_mask(np.tile([True, True, False], 300))
    taken = planes.minus(Runs(np.array([300]), np.array([329])))
    united_again = united([taken, Runs(np.array([310]), np.array([320]))])
    for changed in (taken, united_again):
        ends = [changed._pieces[0][0], changed._pieces[-1][0]]
        assert all(np.shares_memory(end, planes.start) for end in ends)
        assert sum(map(len, ends)) == 290


@pytest.mark.parametrize("rows", [10, 5000])
@pytest.mark.parametrize("length", [3, 600])
def test_marking_an_array(rows: int, length: int) -> None:
    start = np.arange(rows, dtype=np.int64) * (length + 2) + 1
    array = np.zeros((rows, length + 2), np.uint8)
    Runs(start, start + length).mark(array, 7)
    assert (array[:, 1:-1] == 7).all() and not array[:, [0, -1]].any()
    assert np.array_equal(Runs(start, start + length).on(array.shape), array == 7)


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30))))
def test_intervals_in_any_order(pairs: list[tuple[int, int]]) -> None:
    array = np.array(pairs, np.int64).reshape(-1, 2)
    expected = {place for start, stop in pairs for place in range(start, stop)}
    found = Runs.of(array[:, 0], array[:, 1])
    assert is_canonical(found)
    assert set(found.places(1000).tolist()) == expected


@st.composite
def views(draw: Any) -> tuple[np.ndarray, np.ndarray]:
    """An array of its elements' numbers, and a view of it."""
    shape = draw(SHAPES)
    numbers = np.arange(math.prod(shape)).reshape(shape)
    view = numbers[draw(hnp.basic_indices(shape, allow_ellipsis=False, allow_newaxis=True))]
    if isinstance(view, np.ndarray):
        view = view.transpose(draw(st.permutations(range(view.ndim))))
    return numbers, np.asarray(view) if isinstance(view, np.ndarray) else numbers[...]


@given(views(), st.data())
def test_views_both_ways(pair: tuple[np.ndarray, np.ndarray], data: Any) -> None:
    numbers, view = pair
    window = window_of(view, numbers.reshape(-1))
    shown = data.draw(hnp.arrays(bool, view.shape))
    to_memory = IndexMap(view.shape, c_strides(view.shape), window.strides, 0, window.offset)
    assert set(to_memory.apply(Runs.from_mask(shown), numbers.size).places(10**6).tolist()) == set(
        view[shown].tolist()
    )
    held = data.draw(hnp.arrays(bool, numbers.shape))
    to_view = IndexMap(view.shape, window.strides, c_strides(view.shape), window.offset)
    assert np.array_equal(
        to_view.apply(Runs.from_mask(held), view.size).on(view.shape), held.reshape(-1)[view]
    )


@given(views(), st.data(), st.booleans())
def test_views_of_sets_that_cover_them(pair: tuple[np.ndarray, np.ndarray], data: Any, is_all: bool) -> None:
    """Sets of all, or of a view's own elements, as they are or but for one."""
    numbers, view = pair
    window = window_of(view, numbers.reshape(-1))
    held = np.full(numbers.size, is_all)
    held[view] = True
    if data.draw(st.booleans()):
        held[data.draw(st.integers(0, numbers.size - 1))] ^= True
    to_view = IndexMap(view.shape, window.strides, c_strides(view.shape), window.offset)
    to_itself = IndexMap(view.shape, window.strides, window.strides, window.offset, window.offset)
    runs = Runs.from_mask(held)
    assert np.array_equal(to_view.apply(runs, view.size).on(view.shape), held[view])
    inside = np.zeros(numbers.size, bool)
    inside[view] = held[view]
    found = to_itself.apply(runs, numbers.size)
    assert is_canonical(found)
    assert np.array_equal(found.on(held.shape), inside)


@given(SHAPES, st.data())
def test_broadcasting_both_ways(shape: tuple[int, ...], data: Any) -> None:
    own = tuple(data.draw(st.sampled_from([1, extent])) for extent in shape)
    own = own[data.draw(st.integers(0, len(own))) :]
    numbers = np.broadcast_to(np.arange(math.prod(own)).reshape(own), shape)
    needed = data.draw(hnp.arrays(bool, shape))
    down = IndexMap(shape, c_strides(shape), broadcast_strides(own, shape))
    assert set(down.apply(Runs.from_mask(needed), math.prod(own)).places(10**6).tolist()) == set(
        numbers[needed].tolist()
    )
    held = data.draw(hnp.arrays(bool, math.prod(own)))
    up = IndexMap(shape, broadcast_strides(own, shape), c_strides(shape))
    assert np.array_equal(up.apply(Runs.from_mask(held), math.prod(shape)).on(shape), held[numbers])


def test_windows_that_slide_are_refused() -> None:
    with pytest.raises(NotSparseError):
        IndexMap((3, 3), (1, 1), (3, 1))


def test_cost_follows_the_rows_not_the_elements() -> None:
    """The interior of an array of 10^15 elements, pulled through a shift."""
    n = 100_000
    shape = (3, n, n * n // 2)
    inside = (1, n - 2, n * n // 2 - 2)
    strides = c_strides(shape)
    shift = IndexMap(inside, strides, strides, sum(strides), sum(strides) + 1)
    found = shift.apply(Runs.all(math.prod(shape)), math.prod(shape))
    assert found.count == math.prod(inside)
    assert len(found.start) == n - 2
