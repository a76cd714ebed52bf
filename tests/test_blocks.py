"""Arrays part by part (scr_critplugin.analysis.blocks)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from scr_critplugin.analysis.blocks import blocks, largest_finite

ARRAYS = hnp.arrays(np.int64, hnp.array_shapes(min_dims=0, min_side=0, max_dims=4, max_side=7))


@given(array=ARRAYS, elements=st.integers(1, 40), reverse=st.booleans())
def test_blocks_are_small_views_that_make_up_the_array_in_c_order(array, elements, reverse):
    array = array.T if reverse else array
    found = list(blocks(array, elements))
    assert np.array_equal(np.concatenate([part.reshape(-1) for part in found]), array.reshape(-1))
    assert all(part.size <= elements and (not part.size or np.shares_memory(part, array)) for part in found)


@pytest.mark.parametrize("dtype", ["f4", "f8", "c16"])
def test_largest_finite_looks_at_every_part(dtype):
    array = np.zeros((3, 1 << 18), dtype=dtype)
    array[1, 5], array[2, -1], array[0, 0] = np.nan, -7.0, np.inf
    assert largest_finite(array) == 7.0
    assert largest_finite(np.full(3, np.nan)) == 0.0
