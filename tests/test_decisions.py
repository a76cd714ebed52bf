"""`profile` of programs whose later steps decide otherwise than the first ones, on values of the state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from scr_critplugin.analysis import profile

State = dict[str, Any]
STEPS = 12


def start(name: str, value: Any) -> State:
    return {"a": np.linspace(0.3, 1.7, 4), "b": np.linspace(0.5, 2.5, 4), name: value}


def by_time(state: State) -> None:
    state["t"] += 0.1
    if state["t"] > 0.85:
        state["a"][:] = state["b"]


def by_element(state: State) -> None:
    state["n"][0] += 1
    if state["n"][0] == 11:
        state["a"][:] = state["b"]


def by_item(state: State) -> None:
    state["n"][0] += 1
    if state["n"].item(0) == 11:
        state["a"][:] = state["b"]


def by_array_without_axes(state: State) -> None:
    state["n"] += 1
    if state["n"] == 11:
        state["a"][:] = state["b"]


PROGRAMS: list[tuple[Callable[[State], None], str, Any]] = [
    (by_time, "t", 0.0),
    (by_element, "n", np.zeros(1, dtype=int)),
    (by_item, "n", np.zeros(1, dtype=int)),
    (by_array_without_axes, "n", np.array(0)),
]


@pytest.mark.parametrize(("step", "name", "value"), PROGRAMS, ids=[each[0].__name__ for each in PROGRAMS])
def test_given_steps_are_followed_where_they_decide_otherwise(step: Any, name: str, value: Any) -> None:
    found = profile(step, start(name, value), lambda state: state["a"][:2], steps=STEPS, validate=None)
    assert found.map["b"].critical.tolist() == [True, True, False, False]


@pytest.mark.parametrize(("step", "name", "value"), PROGRAMS, ids=[each[0].__name__ for each in PROGRAMS])
def test_decision_in_a_near_step_shows_in_a_run_of_any_length(step: Any, name: str, value: Any) -> None:
    found = profile(step, start(name, value), lambda state: state["a"][:2])
    assert found.map["b"].critical[:2].all()
