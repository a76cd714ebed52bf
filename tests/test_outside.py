"""Scratch arrays outside the state: traced where they are scratch, refused where they keep values."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from scr_critplugin.analysis import profile
from scr_critplugin.errors import ProfileError

State = dict[str, Any]
N = 6
WORK = np.zeros(N + 2)
INNER = WORK[1:-1]
FORTRAN = np.zeros((3, 2), order="F")
KEPT = np.zeros(N)
MASK = np.zeros(N, dtype=bool)


class Solver:
    """A program that keeps its work arrays."""

    def __init__(self) -> None:
        self.work = np.zeros(N)
        self.parts = {"left": np.zeros(N), "right": [np.zeros(N)]}

    def step(self, s: State) -> None:
        self.work[1:] = s["b"][:-1]
        self.parts["left"][:] = self.work * 2.0
        self.parts["right"][0][:] = self.parts["left"]
        s["a"][1:] = self.parts["right"][0][1:]

    def rebinding(self, s: State) -> None:
        self.work[:] = s["b"]
        self.work = self.work * 2.0
        s["a"][:] = self.work


def start() -> State:
    return {name: np.linspace(0.3, 1.7, N) + 0.1 * i for i, name in enumerate("ab")}


def padded(s: State) -> None:
    WORK[1:-1] = s["b"]
    s["a"][:] = WORK[:-2] + WORK[2:]


def through_a_view(s: State) -> None:
    INNER[:] = s["b"]
    s["a"][1:] = WORK[1:-2]


def into(s: State) -> None:
    np.multiply(s["b"], 2.0, out=INNER)
    np.add(INNER, 1.0, out=s["a"])


def in_memory_order(s: State) -> None:
    FORTRAN[:, 0] = s["b"][:3]
    FORTRAN[1:, 1] = s["b"][3:5]
    s["a"][:3] = FORTRAN[:, 0]


def default(s: State, scratch: Any = np.zeros(N)) -> None:  # noqa: B008
    scratch[2:] = s["b"][:4]
    s["a"][2:4] = scratch[2:4]


def closure() -> Callable[[State], None]:
    scratch = np.zeros(N)

    def step(s: State) -> None:
        scratch[:] = s["b"]
        s["a"][3:] = scratch[:3]

    return step


def taking(scratch: Any, s: State) -> None:
    scratch[:] = s["b"]
    s["a"][:2] = scratch[4:]


def flags(s: State) -> None:
    MASK[:] = s["b"] > 1.0
    s["a"][1] = MASK[2]


STEPS: dict[str, tuple[Callable[[State], None], dict[str, set[int]]]] = {
    "padded": (padded, {"a": set(), "b": {0, 1, 2, 3, 4, 5}}),
    "through a view": (through_a_view, {"a": set(), "b": {0, 1, 2, 3}}),
    "into": (into, {"a": set(), "b": {1, 2, 3, 4}}),
    "in memory order": (in_memory_order, {"a": {3, 4}, "b": {1, 2}}),
    "default": (default, {"a": {1, 4}, "b": {0, 1}}),
    "closure": (closure(), {"a": {1, 2}, "b": {0, 1}}),
    "partial": (functools.partial(taking, np.zeros(N)), {"a": {2, 3, 4}, "b": {5}}),
    "method": (Solver().step, {"a": set(), "b": {0, 1, 2, 3}}),
    "rebinding": (Solver().rebinding, {"a": set(), "b": {1, 2, 3, 4}}),
    "flags": (flags, {"a": {2, 3, 4}, "b": {2}}),
}


@pytest.mark.parametrize("name", STEPS)
def test_scratch_takes_traced_values(name: str) -> None:
    step, expected = STEPS[name]
    found = profile(step, start(), lambda s: s["a"][1:5], steps=1)
    assert {key: set(np.flatnonzero(found.map[key].critical).tolist()) for key in "ab"} == expected
    assert found.sinks == ()


def test_arrays_are_put_back_as_the_plain_step_leaves_them() -> None:
    work, solver = WORK, Solver()
    profile(padded, start(), lambda s: s["a"])
    profile(solver.step, start(), lambda s: s["a"])
    assert WORK is work and type(solver.work) is np.ndarray
    assert np.array_equal(WORK[1:-1], start()["b"])
    assert type(solver.parts["right"][0]) is np.ndarray


def remembers(s: State) -> None:
    s["a"] += KEPT
    KEPT[:] = s["b"]


def for_the_output(s: State) -> None:
    KEPT[:] = s["b"]
    s["a"] *= 0.5


@pytest.mark.filterwarnings("ignore::scr_critplugin.errors.ProfileWarning")
@pytest.mark.parametrize("step", [remembers, for_the_output])
def test_values_kept_outside_the_state_are_refused(step: Callable[[State], None]) -> None:
    KEPT[:] = start()["b"]
    with pytest.raises(ProfileError, match=r"outside the state.*Put it into the state"):
        profile(step, start(), lambda s: [s["a"], KEPT.copy()] if step is for_the_output else s["a"])
