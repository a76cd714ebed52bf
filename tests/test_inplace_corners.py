"""`profile` of in-place NumPy at its corners: what raises for some values only, and views of no memory.

Each program was found by random search against brute force, or reads like one that was.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from scr_critplugin.analysis import profile
from scr_critplugin.errors import ProfileError

State = dict[str, Any]
Step = Callable[[State], None]
N = 6
REPLACEMENTS = {"f": (0.0, -2.0, 1e3, 0.77, np.nan, np.inf), "i": (0, 1, 2, -1), "b": (False, True)}


def start() -> State:
    state: State = {name: np.linspace(0.3, 1.7, N) + 0.1 * i for i, name in enumerate("abc")}
    return {**state, "k": np.array([2, 1, 0]), "m": np.arange(N) % 2 == 0}


def outcome(step: Step, state: State) -> bytes:
    with np.errstate(all="ignore"):
        try:
            step(state)
            return bytes(state["a"][1:5].tobytes())
        except (ValueError, OverflowError, IndexError):
            return b"raises"


def influential(step: Step) -> dict[str, set[int]]:
    """The elements that change the output, or whether there is one, when they are replaced one by one."""
    expected = outcome(step, start())
    found: dict[str, set[int]] = {name: set() for name in start()}
    for name, array in start().items():
        for place in range(array.size):
            for value in REPLACEMENTS[array.dtype.kind]:
                changed = copy.deepcopy(start())
                changed[name][place] = value
                if outcome(step, changed) != expected:
                    found[name].add(place)
    return found


def number_as_integer(s: State) -> None:
    numbers = np.zeros(N, dtype=int)
    numbers[1:4] = s["b"][3]
    numbers[5] = s["c"][0]
    s["a"][:3] = 0.5


def numbers_as_integers(s: State) -> None:
    numbers = np.zeros(N, dtype=np.int32)
    numbers.flat[0] = s["c"][1]
    numbers[4:] = [s["c"][4], s["c"][5]]
    numbers.fill(s["c"][3])
    numbers[:2] = np.array([s["b"][2], 1.0], dtype=int)
    s["a"][:3] = 0.5


def compressed(s: State) -> None:
    s["a"][2] = s["c"].compress(s["m"])[-1]
    s["a"].reshape(2, 3).compress([True, False, True], axis=1, out=s["b"].reshape(3, 2)[:2])
    s["a"][:4] = s["b"][:4]


def replaced_in_place(s: State) -> None:
    np.nan_to_num(s["a"], copy=False)
    np.nan_to_num(s["b"][1:3], False, nan=1.0)
    s["a"][:4] = s["b"][:4]


def shape_set(s: State) -> None:
    copied = s["a"].copy()
    copied.shape = (2, 3)
    copied[0] = s["b"][:3]
    view = s["a"][:]
    view.shape = 3, -1
    view[1] = copied.T[0]


def found_places(s: State) -> None:
    (where,) = np.where(s["m"])
    s["a"][where] = s["b"][where]
    s["a"][1] = np.flatnonzero(s["m"]).size
    for place in np.argwhere(s["m"]):
        s["c"][place[0]] = 1.0


def steered_slices(s: State) -> None:
    first, rows = s["k"][1], s["a"].reshape(2, 3)
    s["a"][first : first + 2] += s["b"][:2]
    s["a"][first : first + 2] *= 2.0
    rows[:, first] += s["b"][3:5]
    rows[first] -= 1.0
    rows[first, 1:] *= s["c"][0]


def part_of_a_steered_view(s: State) -> None:
    row = s["a"].reshape(2, 3)[s["k"][1]][::-1]
    s["b"][:3] = row
    changed = row + 1.0
    changed[1:] *= 2.0
    s["a"][:3] = changed


PROGRAMS = [
    number_as_integer, numbers_as_integers, compressed, replaced_in_place, shape_set, found_places,
    steered_slices, part_of_a_steered_view,
]  # fmt: skip


@pytest.mark.parametrize("step", PROGRAMS, ids=lambda step: step.__name__)
def test_mask_is_sound_and_nothing_is_unknown(step: Step) -> None:
    found, expected = (
        profile(step, start(), lambda state: state["a"][1:5], steps=1, validate=None),
        influential(step),
    )
    assert found.warnings == ()
    for name, places in expected.items():
        assert places <= {int(place) for place in np.flatnonzero(found.map[name].critical)}, name


def test_elements_of_arrays_are_cast_without_a_sink() -> None:
    def step(state: State) -> None:
        numbers = np.zeros(N, dtype=int)
        numbers[:] = state["b"] * 10.0
        state["a"][:] = numbers

    found = profile(step, start(), lambda state: state["a"][1:5], steps=1)
    assert found.sinks == ()
    assert found.map["b"].critical.tolist() == [False, True, True, True, True, False]


def steered_view(s: State) -> None:
    first = s["k"][1]
    view = s["a"][first : first + 2]
    view *= s["b"][:2]


def steered_view_used_later(s: State) -> None:
    first = s["k"][1]
    view = s["a"][first : first + 2]
    view *= 1.0
    s["c"][:2] = s["a"][:2]


def view_of_a_steered_view(s: State) -> None:
    view = s["a"].reshape(2, 3)[s["k"][1]][1:3]
    view *= 1.0


@pytest.mark.parametrize(
    "step", [steered_view, steered_view_used_later, view_of_a_steered_view], ids=lambda step: step.__name__
)
def test_write_through_a_steered_view_is_refused(step: Step) -> None:
    with pytest.raises(ProfileError, match="a view at a place that the state decides"):
        profile(step, start(), lambda state: state["a"], steps=1)
