"""Watched loop counters, and what `profile` makes of steps that they will send another way."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scr_critplugin.analysis import Profile, profile
from scr_critplugin.analysis.counters import Turn, Watch, WatchedCounter

State = dict[str, Any]
X = np.linspace(0.3, 1.7, 5)

BINARY = [
    operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod,
    operator.and_, operator.or_, operator.xor,
]  # fmt: skip
COMPARISONS = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]


def counter(value: int, watch: Watch | None = None) -> WatchedCounter:
    return (watch or Watch()).counter("it", value)


def turn_of(decide: Callable[[Any], Any], ahead: int = 40, recorded: int = 2, period: int = 1) -> int | None:
    """First step that `decide` sends another way, of a counter that runs from 0."""
    watch = Watch()
    bool(decide(counter(1, watch)))
    turn = watch.turn(lambda numbers: {"it": numbers}, ahead, recorded, period)
    return None if turn is None else turn.step


# ---- the integer ----


@given(st.sampled_from(BINARY), st.integers(0, 50), st.integers(1, 50), st.booleans())
def test_computes_as_integers_do(operate: Any, value: int, other: int, reflected: bool) -> None:
    left, right = (other, counter(value + 1)) if reflected else (counter(value), other)
    result = operate(left, right)
    assert result == operate(int(left), int(right))
    assert isinstance(result, WatchedCounter)
    assert result.expression({"it": int(left if not reflected else right)}) == int(result)


@pytest.mark.parametrize("compare", COMPARISONS)
def test_compares_as_integers_do(compare: Any) -> None:
    for other in (2, 3, 4, 2.5, counter(3), "text", None):
        if isinstance(other, str | type(None)) and compare not in (operator.eq, operator.ne):
            continue
        assert compare(counter(3), other) is compare(3, int(other) if isinstance(other, int) else other)


def test_is_an_integer_elsewhere() -> None:
    it = counter(3)
    assert [0] * it == [0, 0, 0]
    assert list(range(it)) == [0, 1, 2]
    assert {3: "three"}[it] == "three"
    assert (it * 0.5, it / 2, f"{it}") == (1.5, 1.5, "3")
    for array in (np.ones(2, np.float32), np.ones(2, np.uint8)):
        assert (array * it).dtype == (array * 3).dtype
        assert (it + array).dtype == (3 + array).dtype
    assert np.arange(9)[it] == 3


def test_long_computations_are_let_go() -> None:
    total = counter(0)
    for _ in range(5000):
        total = total + 1
    assert total == 5000
    assert type(total) is int


# ---- turns ----

TURNS: dict[str, tuple[Callable[[Any], Any], int | None]] = {
    "at a step": (lambda it: it == 7, 7),
    "from a step on": (lambda it: it >= 12, 12),
    "every tenth": (lambda it: it % 10 == 9, 9),
    "tested": (lambda it: it // 6, None),
    "remainder tested": (lambda it: not (it + 1) % 9, 8),
    "small remainder": (lambda it: it % 4 >= 0, 2),
    "never": (lambda it: it < 0, None),
    "beyond the end": (lambda it: it == 40, None),
    "already in the first": (lambda it: it == 0, None),
    "seen both": (lambda it: it % 2 == 0, None),
    "chained": (lambda it: 3 * it + 1 in (1, 22), 7),
    "negative": (lambda it: -it == -7, 7),
    "moved back": (lambda it: it + -1 == 8, 9),
    "distance": (lambda it: abs(it - 20) < 3, 18),
    "inverted": (lambda it: ~it + 10 == 0, 9),
    "with a float": (lambda it: it > 4.5, 5),
    "unwatched": (lambda it: float(it) > 4.5, None),
}


@pytest.mark.parametrize("name", TURNS)
def test_turn(name: str) -> None:
    decide, expected = TURNS[name]
    assert turn_of(decide) == (6 if name == "tested" else expected)


def test_turn_within_a_period() -> None:
    assert turn_of(lambda it: it % 3 == 0, recorded=6, period=3) is None
    assert turn_of(lambda it: it % 4 == 0, recorded=6, period=3) == 6
    # Two decisions that are each seen both ways, but not together.
    assert turn_of(lambda it: (it % 2 == 0) & (it % 3 == 0), recorded=2, period=1) == 2


def test_far_turns() -> None:
    assert turn_of(lambda it: it == 123_456, ahead=200_000) == 123_456
    assert turn_of(lambda it: it == 123_456, ahead=123_456) is None


def test_turn_names_the_line() -> None:
    watch = Watch()
    it = counter(1, watch)
    line = test_turn_names_the_line.__code__.co_firstlineno + 5
    assert it < 100
    if it == 6:
        raise AssertionError
    assert watch.turn(lambda numbers: {"it": numbers}, 10, 2, 1) == Turn(6, (f"{__file__}:{line}",))


def test_counter_that_cannot_be_foreseen() -> None:
    watch = Watch()
    assert counter(1, watch) > 0
    turn = watch.turn(lambda numbers: {}, 10, 2, 1)
    assert turn is not None and turn.step == 2
    assert Watch().turn(lambda numbers: {}, 10, 2, 1) is None


# ---- profile ----


def diagnostics(state: State) -> State:
    """Every twentieth step mixes in another element."""
    x, it = state["x"], state["it"]
    if it % 20 == 19:
        x = np.concatenate([x[:1] + x[3:4], x[1:]])
    return {"x": x * 1.5, "it": it + 1}


def first(state: State) -> Any:
    return state["x"][:1]


def critical(found: Profile) -> set[int]:
    return {int(i) for i in np.flatnonzero(found.map["x"].critical)}


def test_steps_that_a_counter_turns_are_seen() -> None:
    state = {"x": X, "it": 0}
    assert critical(profile(diagnostics, state, first, steps=19)) == {0}
    found = profile(diagnostics, state, first, steps=20)
    assert critical(found) == {0, 3}
    assert (found.stationary, found.kinds, found.map.provenance["replayed"]) == (False, 2, False)
    assert found.map.provenance["kinds"] == 2


def seldom(state: State) -> State:
    """Every thousandth step mixes in another element."""
    x, it = state["x"], state["it"]
    if it % 1000 == 999:
        x = np.concatenate([x[:1] + x[3:4], x[1:]])
    return {"x": x * 1.5, "it": it + 1}


def test_any_number_of_steps_warns_where_a_counter_turns_far_away() -> None:
    line = seldom.__code__.co_firstlineno + 3
    found = profile(seldom, {"x": X, "it": 0}, first)
    assert found.stationary is True
    (words,) = found.map.provenance["unchecked"]
    assert "999 steps after the checkpoint at 0 a counter decides otherwise" in words
    assert f"{__file__}:{line}" in words
    assert "at=[0, 999]" in words
    assert critical(profile(seldom, {"x": X, "it": 0}, first, at=999, steps=1)) == {0, 3}


@pytest.mark.parametrize("at", range(8))
def test_near_turns_are_recorded(at: int) -> None:
    """Two equal steps first, then another one: seen although an index hides the decision."""

    def step(state: State) -> State:
        source = (1, 1, 4)[state["it"] % 3]
        return {"x": np.concatenate([state["x"][source : source + 1], state["x"][1:]]), "it": state["it"] + 1}

    found = profile(step, {"x": X, "it": 0}, first, at=at)
    assert (found.period, critical(found)) == (3, {1, 4})

    def once(state: State) -> State:
        return {"x": state["x"] * 2.0 if state["it"] == 9 else state["x"] + 0.0, "it": state["it"] + 1}

    found = profile(once, {"x": X, "it": at}, first)
    assert (found.period, found.kinds, critical(found)) == (None, 2, {0})


def test_near_decisions_without_effect_on_the_structure_cost_steps_only() -> None:
    calls = itertools.count()

    def step(state: State) -> State:
        next(calls)
        return {"x": state["x"] * (2.0 if state["it"] == 9 else 3.0), "it": state["it"] + 1}

    found = profile(step, {"x": X, "it": 0}, first, validate=None)
    assert (found.stationary, found.map.provenance["unchecked"]) == (True, [])
    assert next(calls) == 20


def test_output_that_a_counter_turns() -> None:
    def step(state: State) -> State:
        return {"x": state["x"] * 1.5, "it": state["it"] + 1}

    def output(state: State) -> Any:
        return state["x"][3:] if state["it"] >= 30 else state["x"][:1]

    state = {"x": X, "it": 0}
    assert critical(profile(step, state, output, steps=29)) == {0}
    assert critical(profile(step, state, output, steps=30)) == {0, 3, 4}
    assert critical(profile(step, state, output)) == {0, 3, 4}


@pytest.mark.parametrize("kind", [int, np.int64])
def test_counter_that_decides_nothing_new_is_no_matter(kind: type) -> None:
    def step(state: State) -> State:
        it = state["it"] + 1
        if it < 0:
            raise ValueError("not yet")
        return {"x": state["x"] * it, "it": it}

    found = profile(step, {"x": X, "it": kind(1)}, first, steps=1000)
    assert found.stationary is True
    assert found.steps_swept == 1
    assert found.map.provenance["unchecked"] == []


def test_counter_that_jumps_cannot_be_foreseen() -> None:
    def step(state: State) -> State:
        seed = state["seed"] * 16807 % 2147483647
        scale = 1.5 if seed > 5 else 2.0
        return {"x": state["x"] * scale, "seed": seed}

    found = profile(step, {"x": X, "seed": 77}, first)
    assert "16 steps after the checkpoint" in found.map.provenance["unchecked"][0]


@settings(deadline=None, max_examples=40)
@given(st.integers(2, 9), st.integers(0, 8), st.integers(9, 30))
def test_turns_are_found_in_random_programs(every: int, offset: int, steps: int) -> None:
    def step(state: State) -> State:
        x, it = state["x"], state["it"]
        return {"x": np.roll(x, 1) if it % every == offset else x + 0.0, "it": it + 1}

    found = profile(step, {"x": X, "it": 0}, first, steps=steps, validate=None)
    shifts = [sum(number % every == offset for number in range(last)) for last in range(1, steps + 1)]
    exact = {-shift % 5 for shift in shifts}
    # Of kinds of steps in any order, the one that moves may come any number of times.
    assert critical(found) == (exact if found.period is not None else set(range(5)))
