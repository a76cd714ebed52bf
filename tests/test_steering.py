"""`profile` where values of the state decide which elements are read or written, and how many.

A mask must hold for states to come, not only for the one it was made at: brute force looks at others too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from scr_critplugin.analysis import profile

State = dict[str, Any]
Step = Callable[[State], None]
N = 5


def start(seed: int = 0) -> State:
    rng = np.random.default_rng(seed)
    return {
        "table": rng.random((N, N)),
        "x": rng.random(N) - 0.3,
        "y": rng.random(N),
        "i": rng.integers(0, N, N),
        "k": np.array([seed % N]),
        "n": np.arange(N) % 2 == seed % 2,
    }


def outputs(step: Step, state: State, steps: int = 2) -> list[bytes]:
    state = {name: value.copy() for name, value in state.items()}
    found = []
    for _ in range(steps):
        step(state)
        found.append(np.asarray(state["y"]).tobytes())
    return found


def matter(step: Step, state: State) -> dict[str, set[int]]:
    """The elements that change the output from `state` on, found one by one."""
    expected = outputs(step, state)
    changing: dict[str, set[int]] = {name: set() for name in state}
    for name, value in state.items():
        for place in range(value.size):
            for other in {"f": (2.5, -1.0), "i": (0, 1, 4), "b": (True, False)}[value.dtype.kind]:
                changed = {**state, name: value.copy()}
                changed[name].reshape(-1)[place] = other
                if outputs(step, changed) != expected:
                    changing[name].add(place)
    return changing


def element(s: State) -> None:
    s["y"][:] = s["table"][s["k"][0]]


def row_by_tuple(s: State) -> None:
    s["y"][:] = s["table"][s["k"][0], :]


def slice_bound(s: State) -> None:
    s["y"][:2] = s["x"][s["k"][0] % 3 : s["k"][0] % 3 + 2]


def pairs(s: State) -> None:
    s["y"][:] = s["table"][s["i"], s["i"][::-1]]


def with_fixed_axis(s: State) -> None:
    s["y"][:3] = s["table"][1:4, s["k"][0]]


def write_by_tuple(s: State) -> None:
    s["table"][s["k"][0], 1:] = s["x"][1:]
    s["y"][:] = s["table"][2]


def taken(s: State) -> None:
    s["y"][:] = np.take(s["table"], s["k"][0], axis=0)


def selected_sum(s: State) -> None:
    s["y"][0] = s["x"][s["n"]].sum()


def selected_sum_moves_on(s: State) -> None:
    s["y"][1] = (2.0 * s["table"][s["x"] > 0.2, 1:3]).sum()
    s["x"] -= 0.1


def selection_before_fixed(s: State) -> None:
    s["y"][:3] = np.concatenate([s["x"][s["n"]], s["table"][0]])[:3]
    s["n"][:] = np.roll(s["n"], 1) | s["n"]


def nonzero_places(s: State) -> None:
    places = np.flatnonzero(s["x"] > 0.1)
    s["y"][places] = s["table"][0][places]


def masked_write(s: State) -> None:
    s["y"][s["n"]] = s["table"][1][s["n"]]
    s["n"][:] = ~s["n"]


def unique_values(s: State) -> None:
    s["y"][0] = np.unique(s["i"]).sum()
    s["i"] //= 2


def counted(s: State) -> None:
    s["y"][:] = np.bincount(s["i"], weights=s["x"], minlength=N)[:N]


def repeated(s: State) -> None:
    s["y"][:2] = np.repeat(s["x"], s["i"] + 1)[:2]


STEPS = [
    element, row_by_tuple, slice_bound, pairs, with_fixed_axis, write_by_tuple, taken, selected_sum,
    selected_sum_moves_on, selection_before_fixed, nonzero_places, masked_write, unique_values, counted,
    repeated,
]  # fmt: skip


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
def test_mask_holds_at_other_states(step: Step) -> None:
    found = profile(step, start(), lambda s: s["y"])
    assert found.stationary
    for seed in range(6):
        for name, places in matter(step, start(seed)).items():
            assert places <= set(np.flatnonzero(found.map[name].critical)), (seed, name)


def test_selection_that_is_empty_now_may_not_be_later() -> None:
    def step(s: State) -> None:
        s["y"][0] = np.sum(s["x"][s["x"] > 10.0])

    found = profile(step, start(), lambda s: s["y"][:1])
    assert found.map["x"].critical.all()
    assert not found.map["table"].critical.any()


def test_what_a_selection_is_stored_beside_stays_sharp() -> None:
    def step(s: State) -> None:
        s["y"][0] = s["x"][s["n"]].sum()
        s["y"][1:3] = s["table"][0, 1:3]

    found = profile(step, start(), lambda s: s["y"][:3])
    assert {int(i) for i in np.flatnonzero(found.map["table"].critical)} == {1, 2}
    assert not found.map["y"].critical.any()


def test_sizes_may_change_from_step_to_step() -> None:
    """A relaxing lattice: other sites are picked in every step, and one step stands for all."""

    def step(s: State) -> None:
        picked = s["x"] + s["y"] > 0.5
        s["x"][picked] *= 0.5
        s["ghost"][:] = s["x"]

    found = profile(step, {**start(), "ghost": np.zeros(N)}, lambda s: s["x"])
    assert found.stationary
    assert not found.map["ghost"].critical.any()
    assert found.map["x"].critical.all() and found.map["y"].critical.all()
