"""The in-place MG kernel: the results and the masks of the functional one."""

from __future__ import annotations

from typing import Any

import mg
import mg_inplace
import numpy as np
import pytest

from scr_critplugin.analysis import profile


def run(state: dict[str, Any], steps: int) -> dict[str, Any]:
    state = {name: np.copy(v) if isinstance(v, np.ndarray) else v for name, v in state.items()}
    for _ in range(steps):
        mg_inplace.step(state)
    return state


def test_results_are_those_of_the_functional_kernel() -> None:
    start = mg.initial_state("S")
    found, expected = run(start, 4), mg.run(start, 4)
    assert mg.verify(found).verified
    for name in ("u", "r"):
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-11, atol=1e-15)


@pytest.mark.parametrize("name", mg.CLASSES)
def test_masks_are_those_of_the_functional_kernel(name: str) -> None:
    middle = mg.run(mg.initial_state(name), 2)
    before = {key: np.copy(middle[key]) for key in ("u", "r")}
    found = profile(mg_inplace.step, middle, mg_inplace.output)
    expected = profile(mg.step, middle, mg.output)
    for key in ("u", "r"):
        assert np.array_equal(found.map[key].uncritical, expected.map[key].uncritical), key
        assert np.array_equal(middle[key], before[key])
    assert found.sinks == ()
    assert found.stationary
    assert mg_inplace.np is np
