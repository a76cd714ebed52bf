"""Maps of kernels from tiles hold those of full sweeps, and equal them where critical elements are boxes."""

from __future__ import annotations

from typing import Any

import mg_inplace
import numpy as np
import pytest
from suite import KERNELS

from scr_critplugin.analysis import profile


def profiles(name: str, step: Any = None) -> tuple[Any, Any]:
    module = KERNELS[name].module
    step = step or module.step
    state = module.initial_state("S")
    return profile(step, state, module.output, validate=None), profile(
        step, state, module.output, validate=None, tiles=4
    )


@pytest.mark.parametrize(("name", "variable", "critical"), [("BT", "u", 8640), ("CG", "x", 1400)])
def test_boxes_give_the_same_map(name: str, variable: str, critical: int) -> None:
    full, sampled = profiles(name)
    assert int(sampled.map[variable].critical.sum()) == critical
    for each in full.map:
        assert np.array_equal(sampled.map[each].critical, full.map[each].critical)


@pytest.mark.parametrize("step", [None, mg_inplace.step])
def test_levels_in_one_array_give_more_rather_than_less(step: Any) -> None:
    full, sampled = profiles("MG", step)
    assert not sampled.confidence.populations["r"].complete
    for name in ("u", "r"):
        assert not (full.map[name].critical & ~sampled.map[name].critical).any()
        assert sampled.map[name].uncritical.any()
    assert np.array_equal(sampled.map["u"].critical, full.map["u"].critical)
