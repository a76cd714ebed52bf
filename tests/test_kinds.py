"""Steps that a counter sends another way now and then: recorded once each, and followed in any order."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from brute_force import places as critical
from hypothesis import given, settings
from hypothesis import strategies as st

from scr_critplugin.analysis import profile
from scr_critplugin.analysis.counters import Turn, Watch
from scr_critplugin.analysis.paths import MOST_PATHS, Paths, paths_ahead
from scr_critplugin.criticality import ElementState
from scr_critplugin.errors import ProfileError

State = dict[str, Any]
N = 5
X = np.linspace(0.3, 1.7, N)


def first(state: State) -> Any:
    return state["x"][:1]


# ---- the common case: something is done every so many steps ----


def every(count: int) -> Callable[[State], State]:
    """A step that uses ``w`` at the end of every `count` steps."""

    def step(state: State) -> State:
        x, it = state["x"] * 1.5, state["it"]
        if it % count == count - 1:
            x = x + state["w"]
        return {"x": x, "w": state["w"], "it": it + 1}

    return step


def start() -> State:
    return {"x": X, "w": X * 2.0, "it": 0}


@pytest.mark.parametrize("steps", [None, 20, 250])
@pytest.mark.parametrize("count", [3, 10, 100, 150, 1000])
def test_what_is_used_now_and_then_is_critical(count: int, steps: int | None) -> None:
    found = profile(every(count), start(), first, steps=steps, validate=None)
    is_used = count <= (200 if steps is None else steps)
    assert critical(found, "w") == ({0} if is_used else set())
    assert critical(found) == {0}
    assert found.map.provenance["replayed"] is False
    assert bool(found.warnings) == (count == 1000 and steps is None)
    assert (found.kinds, found.stationary) == (2 if is_used else 1, not is_used)
    assert found.period == (3 if count == 3 else None if is_used else 1)


def test_known_number_of_steps_beyond_the_budget_is_replayed() -> None:
    found = profile(every(210), start(), first, steps=215, validate=None)
    assert (critical(found, "w"), found.kinds, found.map.provenance["replayed"]) == ({0}, None, True)
    assert found.warnings == ()


@pytest.mark.parametrize("at", [[0, 999], [0, 990], [999], [500, 999]])
def test_points_that_record_the_far_step_make_up_for_it(at: list[int]) -> None:
    found = profile(every(1000), start(), first, at=at)
    assert critical(found, "w") == {0}
    assert found.warnings == ()
    assert found.map.provenance["unchecked"] == []


def test_points_that_do_not_record_it_warn_once_for_each_input() -> None:
    (words,) = profile(every(1000), start(), first, at=[0, 500]).warnings
    assert "999 steps after the checkpoint at 0" in words
    assert "(at=[0, 500, 999])" in words
    # The other input's counter comes to its end elsewhere.
    late = {**start(), "it": 5}
    both = profile(every(1000), [start(), late], first, at=[0, 999]).warnings
    assert [each[:40] for each in both] == [
        "994 steps after the checkpoint at 0 a co",
        "995 steps after the checkpoint at 999 a ",
    ]


def test_point_that_does_not_know_the_steps_before_does_not_make_up_for_them() -> None:
    """Step 57 alone makes ``z`` of ``w``, and step 999 alone uses it."""

    def step(state: State) -> State:
        x, z, it = state["x"] * 1.5, state["z"] + 0.0, state["it"]
        if it == 57:
            z = state["w"] * 2.0
        if it == 999:
            x = x + z
        return {"x": x, "w": state["w"], "z": z, "it": it + 1}

    state = {**start(), "z": X}
    found = profile(step, state, first, at=[0, 999], validate=None)
    assert (critical(found, "z"), critical(found, "w")) == ({0}, set())
    (words,) = found.warnings
    assert "999 steps after the checkpoint at 0" in words
    assert "at=[" not in words
    assert critical(profile(step, state, first, steps=1000, validate=None), "w") == {0}


# ---- against following elements, whatever steps do ----

MOVE = st.tuples(*[st.integers(0, N - 1)] * N)
EVERY = st.tuples(st.integers(9, 40), st.integers(0, 8))


def in_any_order(moves: set[tuple[int, ...]]) -> set[int]:
    """Elements that the first one can come from, after moves that follow each other in any order."""
    wanted: set[int] = set()
    while True:
        before = {move[i] for move in moves for i in wanted | {0}}
        if before <= wanted:
            return wanted
        wanted |= before


def needed_of(pick: Callable[[int], tuple[int, ...]], begin: int, steps: int) -> set[int]:
    """Elements that the first element after each of the steps comes from: followed forward, one by one."""
    sources, needed = list(range(N)), set()
    for number in range(begin, begin + steps):
        sources = [sources[i] for i in pick(number)]
        needed.add(sources[0])
    return needed


@settings(deadline=None, max_examples=30)
@given(
    st.lists(MOVE, min_size=3, max_size=3),
    EVERY,
    EVERY,
    st.booleans(),
    st.integers(0, 12),
    st.one_of(st.none(), st.integers(1, 150)),
)
def test_occasional_moves(
    moves: list[tuple[int, ...]],
    one: tuple[int, int],
    other: tuple[int, int],
    nested: bool,
    at: int,
    steps: int | None,
) -> None:
    def pick(number: int) -> tuple[int, ...]:
        if number % one[0] == one[1]:
            if not nested or number // one[0] % other[0] == other[1] % 3:
                return moves[0]
            return moves[2]
        if number % other[0] == other[1]:
            return moves[1]
        return moves[2]

    def step(state: State) -> State:
        moved = [state["x"][i : i + 1] for i in pick(state["it"])]
        return {"x": np.concatenate(moved), "it": state["it"] + 1}

    found = profile(step, {"x": X, "it": 0}, first, at=at, steps=steps, validate=None)
    known = critical(found)
    assert known >= needed_of(pick, at, 400 if steps is None else steps) or found.warnings
    used = {pick(number) for number in range(at, at + (10_000 if steps is None else steps))}
    assert known <= in_any_order(used)
    if found.kinds is not None and found.period is None and not found.warnings:
        assert known == in_any_order(used)
        assert found.kinds == len(used)


# ---- decisions of other sorts ----


def test_decisions_that_change_no_structure_cost_no_replay() -> None:
    calls, lines = itertools.count(), []

    def step(state: State) -> State:
        next(calls)
        if state["it"] % 100 == 0:
            lines.append(state["it"])
        if state["it"] % 40 == 7:
            lines.append(-1)
        return {"x": state["x"] * 2.0, "it": state["it"] + 1}

    for steps in (None, 100_000):
        found = profile(step, {"x": X, "it": 1}, first, steps=steps, validate=None)
        assert (found.stationary, found.period, found.kinds, found.warnings) == (True, 1, 1, ())
    assert next(calls) < 400


def test_decision_inside_of_a_branch_that_changes_nothing_else() -> None:
    lines = []

    def step(state: State) -> State:
        x, it = state["x"] * 1.5, state["it"]
        if it % 10 == 9:
            lines.append(it)
            if it % 50 == 49:
                x = x + state["w"]
        return {"x": x, "w": state["w"], "it": it + 1}

    for steps in (None, 60):
        found = profile(step, start(), first, steps=steps)
        assert (critical(found, "w"), found.kinds, found.warnings) == ({0}, 2, ())
    assert critical(profile(step, start(), first, steps=49), "w") == set()


def test_two_counters() -> None:
    def step(state: State) -> State:
        x = state["x"] * 1.5
        if state["it"] % 30 == 29:
            x = x + state["w"]
        if state["left"] == 0 or state["left"] % 45 == 0:
            x = x + state["v"][::-1]
        return {**state, "x": x, "it": state["it"] + 1, "left": state["left"] - 3}

    state = {**start(), "v": X, "left": 1000 * 3 + 1 - 46}
    found = profile(step, state, first)
    counts = [(it, left) for it, left in zip(range(10_000), range(state["left"], -30_000, -3), strict=False)]
    kinds = {(it % 30 == 29, left % 45 == 0) for it, left in counts}
    assert found.kinds == len(kinds) >= 2
    assert critical(found, "w") == {0}
    assert critical(found, "v") == ({4} if any(is_hit for _, is_hit in kinds) else set())


def test_output_alone_decides() -> None:
    def step(state: State) -> State:
        return {"x": state["x"] * 1.5, "w": state["w"], "it": state["it"] + 1}

    def output(state: State) -> Any:
        return [state["x"][:1], state["w"][2:3]] if state["it"] % 60 == 0 else state["x"][:1]

    for steps, wanted in ((None, {2}), (59, set()), (60, {2}), (1000, {2})):
        assert critical(profile(step, start(), output, steps=steps), "w") == wanted


def test_structure_that_hangs_on_the_counter_itself_is_replayed() -> None:
    def step(state: State) -> State:
        x, it = state["x"] * 1.5, state["it"]
        if it % 20 == 19:
            x = x + state["w"][it // 20]
        return {"x": x, "w": state["w"], "it": it + 1}

    found = profile(step, start(), first, steps=70)
    assert (critical(found, "w"), found.map.provenance["replayed"]) == ({0, 1, 2}, True)
    small = {**start(), "w": np.ones(600)}
    (words,) = profile(step, small, first, validate=None).warnings
    assert "step 20 after the checkpoint and step 40 are decided alike, but differ in structure" in words
    assert "(steps=...)" in words


def test_many_kinds_are_refused_or_replayed() -> None:
    def step(state: State) -> State:
        x, it = state["x"] * 1.5, state["it"]
        for number in range(10):
            if it % 40 == 20 + number:
                x = x + state["w"][number]
        return {"x": x, "w": state["w"], "it": it + 1}

    state = {**start(), "w": np.ones(11)}
    found = profile(step, state, first, steps=45)
    assert (critical(found, "w"), found.map.provenance["replayed"]) == (set(range(10)), True)
    assert profile(step, state, first, validate=None).warnings


def test_element_states_in_any_order() -> None:
    def step(state: State) -> State:
        it, lost, moved = state["it"], state["lost"], state["moved"]
        if it % 20 == 19:
            lost = np.zeros(N)
            moved = np.concatenate([moved[1:], np.zeros(1)])
        held = np.concatenate([state["held"][:2] * 2.0, state["held"][2:]])
        return {"x": state["x"] * 2.0, "lost": lost, "moved": moved, "held": held, "it": it + 1}

    state = {"x": X, "lost": X, "moved": X, "held": X, "it": 0}
    found = profile(step, state, first)
    assert found.kinds == 2
    names = {name: found.map[name].states.tolist() for name in ("lost", "moved", "held")}
    assert names["lost"] == [ElementState.DEAD] * N
    assert names["moved"] == [ElementState.DEAD] * N
    assert names["held"] == [ElementState.INERT] * N


def test_a_repeating_pattern_has_its_number_of_kinds() -> None:
    def step(state: State) -> State:
        x = state["x"] + state["w"] if state["it"] % 3 == 1 else state["x"] * 2.0
        return {"x": x, "w": state["w"], "it": state["it"] + 1}

    found = profile(step, start(), first)
    assert (found.period, found.kinds, found.stationary) == (3, 2, False)
    assert profile(step, start(), first, steps=4).kinds is None


def test_refusal_says_where_steps_differ() -> None:
    def step(state: State) -> State:
        x, it = state["x"] * 1.5, state["it"]
        if it % 3 == 2:
            x = x + state["w"][it]
        return {"x": x, "w": state["w"], "it": it + 1}

    with pytest.raises(ProfileError) as raised:
        profile(step, {**start(), "w": np.ones(40)}, first)
    assert "None" not in str(raised.value)
    assert re.search(r"primitive \d of the step is absent in one and .* in the next", str(raised.value))


# ---- the paths by themselves ----


def paths_of(decide: Callable[[Any], Any], ahead: int = 1000, near: int = 4) -> Paths | None:
    """Paths of a program that only decides, by a counter that runs from 0."""

    def watch_of(number: int) -> Watch:
        watch = Watch()
        bool(decide(watch.counter("it", number)))
        return watch

    return paths_ahead(watch_of(1), watch_of, lambda numbers: {"it": numbers}, ahead, near, 1, {"it": 1})


def steps_of(paths: Paths | None) -> list[tuple[int, int | None]]:
    assert paths is not None
    return [(path.step, path.again) for path in paths.taken]


def test_paths() -> None:
    assert steps_of(paths_of(lambda it: it < 0)) == [(0, 1)]
    assert steps_of(paths_of(lambda it: it == 0)) == [(0, None), (1, 2)]
    assert steps_of(paths_of(lambda it: it % 100 == 99)) == [(0, 1), (99, 199)]
    assert steps_of(paths_of(lambda it: it % 10 == 9 and it % 50 == 49)) == [(0, 1), (9, 19), (49, 99)]
    near = paths_of(lambda it: it == 2)
    assert near is not None
    assert near.near == (0, 0, 1, 0)


def test_paths_too_far_away_or_too_many() -> None:
    far = paths_of(lambda it: it == 201)
    assert far is not None and isinstance(far.turn, Turn)
    assert (steps_of(far), far.turn.step) == ([(0, 1)], 201)
    many = paths_of(lambda it: [it == number for number in range(100)])
    assert many is not None and many.turn is not None
    assert (len(many.taken), many.turn.step) == (MOST_PATHS, MOST_PATHS)


def test_paths_that_cannot_be_foreseen() -> None:
    watch = Watch()
    assert watch.counter("it", 1) > 0
    assert paths_ahead(watch, lambda number: watch, lambda numbers: {}, 10, 2, 1, {}) is None


def test_step_that_does_not_like_the_counters_is_a_turn() -> None:
    def decide(it: Any) -> bool:
        if it == 7 and int(it) == 7:
            raise RuntimeError("the state is not of this step")
        return False

    paths = paths_of(decide)
    assert paths is not None and paths.turn is not None
    assert (steps_of(paths), paths.turn.step) == ([(0, 1)], 7)


def test_too_many_comparisons_are_not_taken_for_all_of_them() -> None:
    def step(state: State) -> State:
        x, it = state["x"] * 1.5, state["it"]
        for number in range(1001):
            if number + it < 0:
                raise AssertionError
        if it % 100 == 99:
            x = x + state["w"]
        return {"x": x, "w": state["w"], "it": it + 1}

    (words,) = profile(step, {**start(), "it": 1}, first, validate=None).warnings
    assert "a step compares counters more than 1000 times" in words
