"""`profile` over many steps: stationary, periodic, replayed; hidden state; what the state may consist of."""

from __future__ import annotations

import functools
import gc
import itertools
import os
import shutil
import subprocess
import sys
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from brute_force import places as critical
from hypothesis import given, settings
from hypothesis import strategies as st
from processes import children

from scr_critplugin.analysis import Profile, hidden, history, profile
from scr_critplugin.analysis.history import Window, record
from scr_critplugin.analysis.period import PeriodSearch
from scr_critplugin.analysis.program import Program
from scr_critplugin.analysis.recurrence import states_of
from scr_critplugin.analysis.tape import Tape
from scr_critplugin.criticality import ElementState
from scr_critplugin.errors import ProfileError

State = dict[str, Any]
Step = Callable[[State], State]
N = 5
X = np.linspace(0.3, 1.7, N)


def first(state: State) -> Any:
    return state["x"][:1]


def window_of(step: Step, state: State, output: Any = first, steps: int | None = None) -> Window:
    return record(Program(step, output), state, steps, validate=True)


# ---- what steps do, by the step's number ----

Moves = list[tuple[int, ...]]
"""For each step of a schedule: which element each element of the next ``x`` is copied from."""


def scheduled(pick: Callable[[int], tuple[int, ...]]) -> Step:
    """A step that moves elements as its number says."""

    def step(state: State) -> State:
        moved = [state["x"][i : i + 1] for i in pick(state["it"])]
        return {"x": np.concatenate(moved), "it": state["it"] + 1}

    return step


def needed_of(pick: Callable[[int], tuple[int, ...]], start: int, steps: int) -> set[int]:
    """Elements that the first element after each of the steps comes from: followed forward, one by one."""
    sources = list(range(N))
    needed = set()
    for number in range(start, start + steps):
        sources = [sources[i] for i in pick(number)]
        needed.add(sources[0])
    return needed


MOVE = st.tuples(*[st.integers(0, N - 1)] * N)
SCHEDULE = st.lists(MOVE, min_size=1, max_size=4)


@settings(deadline=None, max_examples=25)
@given(SCHEDULE, st.integers(1, 40))
def test_periodic_program_over_n_steps_is_exact_once_it_repeats(moves: Moves, steps: int) -> None:
    def pick(number: int) -> tuple[int, ...]:
        return moves[number % len(moves)]

    found = profile(scheduled(pick), {"x": X, "it": 0}, first, steps=steps, validate=None)
    assert critical(found) >= needed_of(pick, 0, steps)
    # Too few steps to see the period: then its steps may come in any order.
    is_in_any_order = found.kinds is not None and found.period is None
    assert is_in_any_order or critical(found) == needed_of(pick, 0, steps)
    assert not is_in_any_order or steps < 4 * len(moves)


@settings(deadline=None, max_examples=25)
@given(SCHEDULE, st.integers(0, 3))
def test_periodic_program_of_any_length_holds_after_any_step(moves: Moves, at: int) -> None:
    def pick(number: int) -> tuple[int, ...]:
        return moves[number % len(moves)]

    found = profile(scheduled(pick), {"x": X, "it": 0}, first, at=at)
    # After 4 * 5! steps no schedule of 4 moves brings anything new.
    shortest = next(p for p in range(1, 5) if moves * p == (moves * p)[p:] + (moves * p)[:p])
    assert found.period == shortest
    ever = [needed_of(pick, start, 480) for start in range(at, at + shortest)]
    assert critical(found) == set().union(*ever)


@settings(deadline=None, max_examples=25)
@given(st.lists(MOVE, min_size=40, max_size=40), st.integers(1, 40))
def test_program_without_a_period_over_n_steps_is_exact(moves: Moves, steps: int) -> None:
    found = profile(scheduled(lambda i: moves[i]), {"x": X, "it": 0}, first, steps=steps, validate=None)
    assert critical(found) == needed_of(lambda i: moves[i], 0, steps)


def test_element_states_of_a_replay_are_those_of_recording_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def step(state: State) -> State:
        it, x, spare = state["it"], state["x"], state["spare"]
        filled = np.concatenate([spare[:it], x[it : it + 1], spare[it + 1 :]])
        return {"x": x * 2.0, "spare": filled, "gone": x[:2], "idle": state["idle"], "it": it + 1}

    state = {"x": np.ones(12), "spare": np.ones(12), "gone": np.ones(2), "idle": np.ones(3), "it": 0}

    def output(state: State) -> Any:
        return state["spare"][: state["it"]]

    replayed = profile(step, state, output, steps=11)
    monkeypatch.setattr(history, "EACH", 11)
    all_recorded = profile(step, state, output, steps=11)
    assert (replayed.stationary, all_recorded.stationary) == (False, None)
    for name, variable in all_recorded.map.items():
        assert np.array_equal(replayed.map[name].states, variable.states)
    spare, gone, idle = (replayed.map[name].states.tolist() for name in ("spare", "gone", "idle"))
    assert spare == [ElementState.DEAD] * 11 + [ElementState.INERT]
    assert gone == [ElementState.DEAD] * 2
    assert idle == [ElementState.UNUSED] * 3


# ---- stationary, periodic, neither ----


def shift(state: State) -> State:
    return {"x": np.roll(state["x"], -1)}


def alternating(state: State) -> State:
    source = 0 if state["it"] % 2 == 0 else 3
    return {"x": np.concatenate([state["x"][:4], state["x"][source : source + 1]]), "it": state["it"] + 1}


def growing(state: State) -> State:
    it = state["it"]
    return {"x": np.concatenate([state["x"][: it + 1], state["x"][it + 1 :] * 2.0]), "it": it + 1}


def last(state: State) -> Any:
    return state["x"][4:]


def test_stationary() -> None:
    found = profile(shift, {"x": X}, first)
    assert (found.stationary, found.period, found.steps_swept) == (True, 1, N)
    assert found.map.provenance["period"] == 1


def test_periodic() -> None:
    found = profile(alternating, {"x": X, "it": 0}, last)
    assert (found.stationary, found.period) == (False, 2)
    assert critical(found) == {0, 3}
    assert critical(profile(alternating, {"x": X, "it": 0}, last, steps=1)) == {0}
    assert critical(profile(alternating, {"x": X, "it": 0}, last, steps=2)) == {0, 3}
    assert found.map.provenance["counters"] == ["it"]


def test_longest_period() -> None:
    def period_of(length: int) -> Step:
        def pick(number: int) -> tuple[int, ...]:
            # By an index, which counters do not see.
            first_source = [1] + [0] * (length - 1)
            return (first_source[number % length], 1, 2, 3, 4)

        return scheduled(pick)

    assert profile(period_of(8), {"x": X, "it": 0}, first).period == 8
    with pytest.raises(ProfileError, match="does not repeat within 8 steps: primitive"):
        profile(period_of(9), {"x": X, "it": 8}, lambda s: s["x"][: 1 + s["it"] % 3 % 2])


def test_neither_says_where_and_what_to_do() -> None:
    state = {"x": np.ones(20), "it": 0}
    with pytest.raises(ProfileError) as raised:
        profile(growing, state, first)
    assert raised.value.key == "steps"
    words = str(raised.value)
    assert "structure of the step changes from one step to the next (it may hang on 'it')" in words
    assert "primitive 1 of the step is load with result shape (19,) in one and load with" in words
    assert "(steps=...)" in words
    assert "(at=...)" not in words
    assert profile(growing, state, first, steps=15).stationary is False


def test_steps_that_settle_later_say_when() -> None:
    def step(state: State) -> State:
        # A floating-point number is not followed, and so cannot be foreseen.
        it = float(state["it"])
        x = np.sin(state["x"]) * 2.0 if it < 3.0 and it % 2.0 else np.cos(state["x"])
        return {"x": x if it != 2.0 else x[::-1], "it": state["it"] + 1}

    with pytest.raises(ProfileError, match=r"take the checkpoint 3 steps later \(at="):
        profile(step, {"x": X, "it": 0}, first)
    assert profile(step, {"x": X, "it": 0}, first, at=3).stationary is True


def test_output_that_changes_its_structure_counts() -> None:
    def output(state: State) -> Any:
        return state["x"][state["it"] % 3]

    def step(state: State) -> State:
        return {"x": state["x"] + 0.0, "it": state["it"] + 1}

    found = profile(step, {"x": X, "it": 0}, output)
    assert (found.period, critical(found)) == (3, {0, 1, 2})


def test_state_that_ends_in_other_nodes_counts() -> None:
    def step(state: State) -> State:
        one, other = state["x"] + 1.0, state["y"] + 2.0
        if state["it"] % 2:
            one, other = other, one
        return {"x": other, "y": one, "it": state["it"] + 1}

    found = profile(step, {"x": X, "y": X, "it": 0}, first)
    assert found.period == 2
    assert critical(found, "y") == {0}


def test_value_that_leaves_in_some_steps_only_counts() -> None:
    def step(state: State) -> State:
        limit = float(state["dt"]) if state["it"] % 2 else 1.0
        return {"x": state["x"] * limit, "dt": state["dt"], "it": state["it"] + 1}

    found = profile(step, {"x": X, "dt": 0.5, "it": 0}, first)
    assert found.period == 2
    assert found.map["dt"].critical.all()


def test_other_numbers_are_the_same_structure() -> None:
    def step(state: State) -> State:
        it = state["it"]
        part = state["x"][np.int64(1) if it % 2 else 1 :]
        return {"x": np.concatenate([part * it, part[:1] + np.arange(1) * it]), "it": it + 1}

    assert profile(step, {"x": X, "it": 1}, first).stationary is True


def test_counters_are_named() -> None:
    state = {"x": X, "it": 0, "count": np.int64(3), "fixed": 7, "log": "a", "rows": np.array(2)}

    def step(state: State) -> State:
        moved = {"x": state["x"] * 2.0, "it": state["it"] + 1, "log": state["log"] + "b"}
        return {**state, **moved, "count": state["count"] + 1, "rows": state["rows"] + 1}

    assert window_of(step, state).counters == ("count", "it", "log", "rows")


# ---- cost ----


def calls_of(step: Step, state: State, **options: Any) -> tuple[int, Profile]:
    """How often a profile without poison runs the step in this process."""
    calls = itertools.count()

    def counted(state: State) -> State:
        next(calls)
        return step(state)

    found = profile(counted, state, first, validate=None, **options)
    return next(calls), found


def test_cost_does_not_grow_with_the_number_of_steps() -> None:
    few = calls_of(shift, {"x": X}, steps=1000)
    many = calls_of(shift, {"x": X}, steps=10**9)
    assert few[0] == many[0] == 4
    assert few[1].steps_swept == many[1].steps_swept == N
    assert calls_of(alternating, {"x": X, "it": 0}, steps=10**9)[0] == 8
    # Each step once plainly forward (the last stretch twice needed), once more to trace it.
    assert calls_of(growing, {"x": np.ones(99), "it": 0}, steps=8)[0] == 16


@pytest.fixture
def alive(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], int]]:
    """Number of tapes with contents, without help of the collector."""
    tapes: weakref.WeakSet[Tape] = weakref.WeakSet()
    plain = Tape.__init__

    def counted(self: Tape, **options: Any) -> None:
        plain(self, **options)
        tapes.add(self)

    monkeypatch.setattr(Tape, "__init__", counted)
    gc.disable()
    yield lambda: sum(bool(tape.nodes) for tape in tapes)
    gc.enable()


class CountedArray(np.ndarray):
    """An array that can be counted."""


def test_replay_keeps_one_tape_and_few_states(alive: Callable[[], int]) -> None:
    steps, most_tapes, most_states = 100, 0, 0
    states: weakref.WeakSet[Any] = weakref.WeakSet()

    class Marker:
        """Lives as long as the state that holds it."""

    def step(state: State) -> State:
        nonlocal most_tapes, most_states
        most_tapes = max(most_tapes, alive())
        most_states = max(most_states, sum(1 for _ in states))
        moved = growing(state)
        name = MarkedName("x")
        states.add(name)
        return {name: moved["x"], "it": moved["it"]}

    window = window_of(step, {"x": np.ones(150), "it": 0}, first, steps)
    variables, swept = states_of({"x": np.ones(150), "it": 0}, window)
    assert (window.replayed, swept) == (True, steps)
    assert set(np.flatnonzero(variables["x"].states == ElementState.CRITICAL)) == {0}
    # The step's own tape is open when it is called: no other but that of the step under way.
    assert most_tapes <= 1
    assert most_states <= 3 * 10 + 3


class MarkedName(str):
    """A variable's name that can be counted: it is let go of with its state."""


def test_search_keeps_no_tapes_of_steps_that_are_all_different(alive: Callable[[], int]) -> None:
    most = 0

    def step(state: State) -> State:
        nonlocal most
        most = max(most, alive())
        return growing(state)

    with pytest.raises(ProfileError, match="does not repeat"):
        profile(step, {"x": np.ones(30), "it": 0}, first, validate=None)
    assert most <= 1


def test_processes_decide_together() -> None:
    """Another process may see no period where this one does: then this one must not either."""
    decisions: list[bool] = []

    def never(decision: bool) -> bool:
        decisions.append(decision)
        return False

    with pytest.raises(ProfileError, match="does not repeat"):
        record(Program(shift, first, never), {"x": X}, None, validate=True)
    assert any(decisions)
    # One decision on the structure, then three for each step swept: others take two steps more.
    others = itertools.chain([True], [False] * 3 * (N + 2), itertools.repeat(True))
    program = Program(shift, first, lambda decision: next(others) and decision)
    window = record(program, {"x": X}, None, validate=True)
    alone = states_of({"x": X}, window_of(shift, {"x": X}))
    together = states_of({"x": X}, window)
    assert (alone[1], together[1]) == (N, N + 2)
    assert np.array_equal(alone[0]["x"].states, together[0]["x"].states)


# ---- hidden state ----

KEPT: list[Any] = []
BY_NAME: dict[str, Any] = {}


def kept_in_a_list(state: State) -> State:
    KEPT.append(np.array(state["y"]) * 1.0)
    return {**state, "x": state["x"] + KEPT[0]}


def kept_counter(state: State) -> State:
    started = BY_NAME.setdefault("it", state["it"])
    return {**state, "x": state["x"] * (2.0 if state["it"] - started < 5 else 3.0) + (state["it"] - started)}


def kept_on_the_function(state: State) -> State:
    if not hasattr(kept_on_the_function, "first"):
        kept_on_the_function.first = np.array(state["y"])  # type: ignore[attr-defined]
    return {**state, "x": state["x"] * kept_on_the_function.first}  # type: ignore[attr-defined]


def kept_in_a_cache() -> Step:
    current: State = {}

    @functools.cache
    def table() -> Any:
        return np.array(current["y"]) + 1.0

    def step(state: State) -> State:
        current.update(state)
        return {**state, "x": state["x"] * table()}

    return step


def kept_in_a_closure() -> Step:
    table = None

    def step(state: State) -> State:
        nonlocal table
        if table is None:
            table = np.cumsum(np.array(state["y"]))
        return {**state, "x": state["x"] + table}

    return step


def kept_integers() -> Step:
    order: list[Any] = []

    def step(state: State) -> State:
        if not order:
            order.append(np.array(state["index"]))
        return {**state, "x": state["x"][order[0]]}

    return step


class Kept:
    """A step with an attribute."""

    def __init__(self) -> None:
        self.total = 0.0

    def __call__(self, state: State) -> State:
        self.total += 1.0
        return {**state, "x": state["x"] + self.total}


def made_in_the_first_step() -> Step:
    made: State = {}

    def step(state: State) -> State:
        if state["it"] == 0:
            made["table"] = np.arange(N) * 1.0
        return {**state, "x": state["x"] * made["table"], "it": state["it"] + 1}

    return step


def full_state() -> State:
    return {"x": X, "y": X + 1.0, "index": np.arange(N)[::-1].copy(), "it": 0}


HIDDEN: dict[str, Callable[[], Step]] = {
    "list": lambda: kept_in_a_list,
    "counter": lambda: lambda state: {**kept_counter(state), "it": state["it"] + 1},
    "function": lambda: kept_on_the_function,
    "cache": kept_in_a_cache,
    "closure": kept_in_a_closure,
    "integers": kept_integers,
    "attribute": Kept,
    "first step": made_in_the_first_step,
    "random": lambda: lambda state: {**state, "x": state["x"] + np.random.random()},
}


@pytest.fixture
def nothing_kept() -> Iterator[None]:
    KEPT.clear()
    BY_NAME.clear()
    vars(kept_on_the_function).pop("first", None)
    yield
    vars(kept_on_the_function).pop("first", None)


@pytest.mark.usefixtures("nothing_kept")
@pytest.mark.parametrize("at", [None, 2])
@pytest.mark.parametrize("name", HIDDEN)
def test_hidden_state_is_refused(name: str, at: int | None) -> None:
    with pytest.raises(ProfileError, match="kept outside the state"):
        profile(HIDDEN[name](), full_state(), first, at=at)


def test_state_hidden_by_the_output_is_refused() -> None:
    reference: list[Any] = []

    def output(state: State) -> Any:
        if not reference:
            reference.append(np.array(state["x"]))
        return state["x"] - reference[0]

    with pytest.raises(ProfileError, match="kept outside the state") as raised:
        profile(shift, {"x": X}, output)
    assert raised.value.key == "output 0"


@functools.cache
def twiddles(size: int) -> Any:
    return np.exp(-2j * np.pi * np.arange(size) / size)


def tables(state: State) -> State:
    if not KEPT:
        KEPT.append(np.arange(N) + 1.0)
    return {**state, "x": state["x"] * KEPT[0] * np.abs(twiddles(N))}


def scratch() -> Step:
    work = np.empty(N)

    def step(state: State) -> State:
        work[:] = state["x"]
        return {**state, "x": work * 2.0}

    return step


def counted_calls() -> Step:
    calls = itertools.count()

    def step(state: State) -> State:
        print("step", next(calls))
        return {**state, "x": state["x"] * 2.0}

    return step


@pytest.mark.usefixtures("nothing_kept")
@pytest.mark.parametrize(
    "make", [lambda: tables, scratch, counted_calls], ids=["tables", "scratch", "counted"]
)
def test_what_does_not_hang_on_the_state_may_be_kept(make: Callable[[], Step]) -> None:
    found = profile(make(), full_state(), first)
    assert critical(found) in ({0}, set(range(N)))
    assert found.map.provenance["unchecked"] == []


def test_step_that_cannot_go_on_from_changed_values_is_still_profiled(
    capfd: pytest.CaptureFixture[str],
) -> None:
    def step(state: State) -> State:
        if float(state["x"][0]) != X[0]:
            print("from the copy")
            raise ValueError("not from here")
        return {"x": state["x"] + 0.0}

    found = profile(step, {"x": X}, first, validate=None)
    assert critical(found) == {0}
    (words,) = found.map.provenance["unchecked"]
    assert "could not be checked: ValueError: not from here" in words
    assert "from the copy" not in capfd.readouterr().out


@pytest.mark.parametrize(
    "end", [lambda: os._exit(3), lambda: os.abort(), lambda: [None for _ in itertools.count()]]
)
def test_copy_that_does_not_come_back(end: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hidden, "LIMIT", 0.5)
    monkeypatch.setattr(hidden, "PATIENCE", 0.0)

    def step(state: State) -> State:
        if float(state["x"][0]) != X[0]:
            end()
        return {"x": state["x"] + 0.0}

    found = profile(step, {"x": X}, first, validate=None)
    assert "could not be checked" in found.map.provenance["unchecked"][0]


RANKS = """
import numpy as np
from mpi4py import MPI
from scr_critplugin.analysis import profile
found = profile(lambda state: {"x": state["x"] * 2.0}, {"x": np.ones(3)}, lambda state: state["x"][:1])
print(MPI.COMM_WORLD.Get_size(), found.map["x"].critical.tolist(), found.map.provenance["unchecked"])
"""


@pytest.mark.parametrize("ranks", [1, 2])
def test_processes_of_an_mpi_program_are_not_copied(ranks: int) -> None:
    pytest.importorskip("mpi4py", reason="needs mpi4py")
    mpiexec = shutil.which(
        "mpiexec", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    )
    if mpiexec is None:
        pytest.skip("needs mpiexec: install an MPI, or the mpich wheel")
    root = str(Path(__file__).resolve().parents[1])
    ran = subprocess.run(
        [mpiexec, "-n", str(ranks), sys.executable, "-c", RANKS],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
        cwd=root,
        env={**os.environ, "PYTHONPATH": root},
    )
    lines = ran.stdout.splitlines()
    assert len(lines) == ranks
    for line in lines:
        assert line.startswith(f"{ranks} [True, False, False]")
        assert ("was not checked: this process cannot be copied" in line) == (ranks > 1)


def test_no_process_is_left() -> None:
    before = children()
    profile(shift, {"x": X}, first)
    with pytest.raises(ZeroDivisionError):
        profile(lambda state: 1 / 0, {"x": X}, first)
    assert children() == before


# ---- kinds of state ----


def test_single_integers_and_booleans_are_critical() -> None:
    state = {"x": X, "n": np.int64(2), "flag": np.bool_(True), "zero": np.array(2), "small": np.uint8(1)}

    def step(state: State) -> State:
        x = state["x"] * {2: 1.0, 3: 2.0}[state["n"]] if state["flag"] else state["x"]
        return {**state, "x": x[: int(state["n"]) + 3], "zero": state["zero"] + 0}

    found = profile(step, state, first)
    assert critical(found) == {0}
    for name in ("n", "flag", "zero", "small"):
        assert found.map[name].critical.all(), name
        assert found.map[name].dtype == np.asarray(state[name]).dtype


def test_single_floats_and_arrays_without_axes_are_analysed() -> None:
    state = {"x": X, "t": np.array(0.5), "dt": np.float32(0.1), "spare": np.array(3.0), "z": np.array(1j)}

    def step(state: State) -> State:
        state["t"] += state["dt"]
        return {**state, "x": state["x"] + state["t"], "z": state["z"] * 2.0}

    found = profile(step, state, first)
    assert {name for name in state if found.map[name].critical.any()} == {"x", "t", "dt"}
    assert found.map["spare"].states[()] == ElementState.UNUSED
    assert state["t"] == 0.5


def test_count_of_traced_values_in_an_integer() -> None:
    state = {"x": X, "count": 0, "y": X}

    def step(state: State) -> State:
        return {**state, "count": np.sum(state["x"][:2] > 1.0) + state["count"]}

    found = profile(step, state, lambda state: state["count"])
    assert critical(found) == {0, 1}
    assert found.map["count"].critical.all()
    assert critical(found, "y") == set()


def monte_carlo(state: State) -> State:
    words = [int(word) for word in state["words"]]
    generator = np.random.Generator(np.random.PCG64())
    generator.bit_generator.state = {
        "bit_generator": "PCG64",
        "state": {"state": words[0] << 64 | words[1], "inc": words[2] << 64 | words[3]},
        "has_uint32": words[4],
        "uinteger": words[5],
    }
    walk = state["x"] + generator.standard_normal(N)
    after = generator.bit_generator.state
    numbers = [after["state"]["state"], after["state"]["inc"]]
    halves = [half for number in numbers for half in (number >> 64, number & (2**64 - 1))]
    new = np.array([*halves, after["has_uint32"], after["uinteger"]], dtype=np.uint64)
    return {"x": walk, "words": new, "spare": state["spare"]}


def test_generator_state_in_an_array() -> None:
    words = np.array([1, 2, 3, 5, 0, 0], dtype=np.uint64)
    state = {"x": X, "words": words, "spare": words.copy()}
    found = profile(monte_carlo, state, first)
    assert found.map["words"].critical.all()
    assert found.map["words"].dtype == np.uint64
    assert critical(found) == {0}
    assert found.map["spare"].uncritical.all()
    assert found.stationary is True


def test_mersenne_twister_in_an_array() -> None:
    def step(state: State) -> State:
        bits = np.random.MT19937()
        bits.state = {"bit_generator": "MT19937", "state": {"key": state["key"], "pos": int(state["pos"])}}
        drawn = np.random.Generator(bits).random(N)
        after = bits.state["state"]
        return {"x": state["x"] + drawn, "key": after["key"], "pos": after["pos"]}

    start = np.random.MT19937(7).state["state"]
    found = profile(step, {"x": X, "key": start["key"], "pos": start["pos"]}, first)
    assert found.map["key"].critical.all()
    assert critical(found) == {0}


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (np.random.default_rng(1), r"numpy.random.*Generator.*bit_generator\.state.*np\.uint64"),
        (np.random.RandomState(1), "RandomState.*np.uint32"),
        (np.random.PCG64(1), "PCG64.*np.uint64"),
        (None, "NoneType.*leave it out"),
        ([1.0, 2.0], r"builtins\.list.*np\.array"),
    ],
)
def test_refused_values_say_what_to_do(value: Any, words: str) -> None:
    with pytest.raises(ProfileError, match=words) as raised:
        profile(shift, {"x": X, "odd": value}, first)
    assert raised.value.key == "odd"


def test_arrays_of_other_kinds_are_critical_and_stay_as_they_are() -> None:
    record_type = np.dtype([("a", float), ("b", int)])
    state = {
        "x": X,
        "names": np.array(["one", "two"]),
        "records": np.zeros(3, dtype=record_type),
        "dates": np.array(["2001-01-01"], dtype="M8[D]"),
        "masked": np.ma.masked_less(np.arange(3.0), 1.0),
    }

    def step(state: State) -> State:
        state["records"]["a"] += 1.0
        state["names"][0] = "three"
        assert isinstance(state["masked"], np.ma.MaskedArray)
        assert state["masked"].mask[0]
        return {**state, "x": state["x"] * 2.0}

    found = profile(step, state, first)
    for name in ("names", "records", "dates", "masked"):
        assert found.map[name].critical.all()
    assert state["records"]["a"].tolist() == [0.0, 0.0, 0.0]
    assert state["names"].tolist() == ["one", "two"]


def test_mapped_file_is_analysed(tmp_path: Any) -> None:
    mapped = np.memmap(tmp_path / "x", dtype=float, mode="w+", shape=(N,))
    mapped[:] = X
    assert critical(profile(lambda state: {"x": state["x"] * 2.0}, {"x": mapped}, first)) == {0}
    assert mapped.tolist() == X.tolist()


# ---- the search by itself ----


def test_smallest_period_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    for kinds, period in (("aa", 1), ("abab", 2), ("abaaba", 3), ("abcabc", 3), ("abcdefgh" * 2, 8)):
        search: PeriodSearch[Any] = PeriodSearch(8, bool)
        for number, kind in enumerate(kinds, start=1):
            assert not search.is_over
            search.add(Forgotten(kind), structure_called(kind))
            assert (search.period is not None) == (number == len(kinds))
        assert search.period == period
        assert "".join(recording.kind for recording in search.cycle()) == kinds[:period]


class Forgotten:
    """A recording by name."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def forget(self) -> None:
        self.kind = ""


def structure_called(kind: str) -> Any:
    from scr_critplugin.analysis.structure import Structure

    return Structure(kind.encode(), (), (), (), ())
