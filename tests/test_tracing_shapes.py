"""Shapes found in masks: boxes of known shapes, and nothing in noise."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from scr_critplugin.regions import boxes, runs
from scr_critplugin.tracing.shapes import infer_shape

ALL = slice(None)


def inside(*widths: int) -> tuple[slice, ...]:
    return tuple(slice(width, -width) if width else ALL for width in widths)


def mask_of(shape: tuple[int, ...], *parts: tuple[slice | int | list[int], ...]) -> NDArray[np.bool_]:
    mask = np.zeros(shape, np.bool_)
    for part in parts:
        mask[part] = True
    return mask


def count_boxes(mask: NDArray[np.bool_], shape: tuple[int, ...]) -> int:
    found = boxes(mask.reshape(shape))
    assert found is not None
    return len(found)


@pytest.mark.parametrize(
    ("mask", "shape"),
    [
        pytest.param(mask_of((34, 66), inside(1, 1)), (34, 66), id="2-D"),
        pytest.param(mask_of((13, 17), inside(1, 2)), (13, 17), id="prime extents"),
        pytest.param(mask_of((20, 24, 28), inside(2, 2, 2)), (20, 24, 28), id="3-D"),
        pytest.param(mask_of((8, 20, 20, 20), inside(0, 2, 2, 2)), (8, 20, 20, 20), id="blocks"),
        pytest.param(mask_of((6, 8, 10, 12), inside(1, 1, 1, 1)), (6, 8, 10, 12), id="4-D"),
        pytest.param(
            mask_of((5, 12, 14, 16), ([0, 1, 3], *inside(2, 2, 2))), (5, 12, 14, 16), id="component outermost"
        ),
        pytest.param(
            mask_of((12, 14, 16, 5), (*inside(2, 2, 2), [0, 1, 3])), (12, 14, 16, 5), id="component innermost"
        ),
        pytest.param(mask_of((100, 14), (ALL, [0, 1, 2, 3, 7, 8])), (100, 14), id="records with dead fields"),
        # A component that is like its neighbours cannot be seen: the innermost axes are one.
        pytest.param(
            mask_of((12, 13, 13, 5), (slice(12), slice(12), slice(12))), (12, 13, 65), id="BT class S"
        ),
    ],
)
def test_blocks_with_ghosts_show_their_shape(mask: NDArray[np.bool_], shape: tuple[int, ...]) -> None:
    assert infer_shape(mask.ravel()) == shape


def test_faces_without_corners_are_few_boxes() -> None:
    faces = [(0, *inside(1, 2, 2)), (1, *inside(2, 1, 2)), (2, *inside(2, 2, 1))]
    mask = mask_of((16, 20, 20, 20), *((ALL, *part[1:]) for part in faces))
    assert infer_shape(mask.ravel()) == (16, 20, 20, 20)
    assert count_boxes(mask.ravel(), (16, 20, 20, 20)) == 5


def test_blocks_in_use_among_free_ones() -> None:
    mask = np.zeros((40, 8, 12, 14), np.bool_)
    for block in (0, 1, 2, 5, 9, 17, 18, 30):
        mask[(block, *inside(2, 2, 2))] = True
    assert infer_shape(mask.ravel()) == (40, 8, 12, 14)


@pytest.mark.parametrize(
    "mask",
    [
        pytest.param(np.zeros(0, np.bool_), id="empty"),
        pytest.param(np.zeros(1, np.bool_), id="one"),
        pytest.param(np.ones(1000, np.bool_), id="whole"),
        pytest.param(np.arange(1000) < 500, id="front"),
        pytest.param(np.arange(1402) != 1, id="all but one"),
        pytest.param(np.arange(1000) % 2 == 0, id="a stride is one box already"),
    ],
)
def test_what_is_simple_in_one_dimension_needs_no_shape(mask: NDArray[np.bool_]) -> None:
    assert infer_shape(mask) is None


@st.composite
def blocks_with_ghosts(draw: st.DrawFn) -> NDArray[np.bool_]:
    """Interiors of blocks of 2 to 4 axes, with components innermost, outermost or none."""
    axes = draw(st.integers(2, 3))
    ghosts = [draw(st.integers(1, 3)) for _ in range(axes)]
    inner = [draw(st.integers(4, 9)) for _ in range(axes)]
    shape = tuple(size + 2 * ghost for size, ghost in zip(inner, ghosts, strict=True))
    index: tuple[slice, ...] = inside(*ghosts)
    outermost = draw(st.integers(1, 6))
    innermost = draw(st.integers(1, 5))
    shape, index = (outermost, *shape, innermost), (ALL, *index, ALL)
    return mask_of(shape, index)


@settings(max_examples=40)
@given(blocks_with_ghosts())
def test_interiors_of_any_block_are_one_box(mask: NDArray[np.bool_]) -> None:
    # Of smaller ones, and where the runs are very few, a shape takes as long to state as the runs.
    assume(mask.size >= 300 and len(runs(mask)) >= 8)
    found = infer_shape(mask.ravel())
    assert found is not None
    assert math.prod(found) == mask.size
    assert count_boxes(mask, found) == count_boxes(mask, mask.shape) == 1


@settings(max_examples=40)
@given(blocks_with_ghosts(), st.data())
def test_dead_components_cost_no_more_boxes_than_the_true_shape(
    mask: NDArray[np.bool_], data: st.DataObject
) -> None:
    assume(mask.size >= 2000)
    mask = mask.copy()
    axis = data.draw(st.sampled_from([0, mask.ndim - 1]))
    assume(mask.shape[axis] > 1)
    dead = data.draw(st.integers(0, mask.shape[axis] - 1))
    np.moveaxis(mask, axis, 0)[dead] = False
    found = infer_shape(mask.ravel())
    assert found is not None
    assert count_boxes(mask, found) <= count_boxes(mask, mask.shape)


@settings(max_examples=60)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([12, 36, 60, 100, 144, 360, 720, 1000, 5040]),
    st.sampled_from([0.01, 0.05, 0.2, 0.5, 0.8, 0.95]),
)
def test_noise_has_no_shape(seed: int, size: int, density: float) -> None:
    # Each example passes by chance once in 4096 (the margin of the description length).
    masks = np.random.default_rng(seed).random((3, size)) < density
    assert sum(infer_shape(mask) is not None for mask in masks) <= 1


@pytest.mark.parametrize("unit", [1, 8])
def test_much_noise_has_no_shape(unit: int) -> None:
    mask = np.repeat(np.random.default_rng(5).random(200_000) < 0.5, unit)
    assert infer_shape(mask) is None


def test_noise_on_a_block_is_refused_or_described_exactly() -> None:
    mask = mask_of((20, 20, 20), inside(2, 2, 2))
    flips = np.random.default_rng(3).integers(0, 20, (40, 3))
    mask[tuple(flips.T)] ^= True
    found = infer_shape(mask.ravel())
    assert found is None or count_boxes(mask, found) <= count_boxes(mask, mask.shape)


def test_one_element_off_is_never_hidden() -> None:
    mask = mask_of((20, 20, 20), inside(2, 2, 2))
    mask[7, 8, 9] = False
    found = infer_shape(mask.ravel())
    assert found == (20, 20, 20)
    assert count_boxes(mask, found) > 1
