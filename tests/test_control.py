"""Control flow in `profile`: sinks with what feeds them, branches that differ, unions, and `control`."""

from __future__ import annotations

import bisect
import heapq
import importlib.util
import itertools
import math
import random
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scr_critplugin.analysis import Profile, Sink, profile, sinks
from scr_critplugin.analysis.branches import BranchLog, Run
from scr_critplugin.analysis.departures import Outcomes, Place
from scr_critplugin.analysis.program import Program
from scr_critplugin.analysis.union import ObservedProgram, Point
from scr_critplugin.criticality import CriticalityMap
from scr_critplugin.errors import ProfileError

State = dict[str, Any]
X = np.array([1.5, 2.25, 0.5, -3.0, 0.75, 1.25])
TABLE = np.arange(10.0, 20.0)
ORDINARY = vars(np)
"""NumPy as a module sees it that the profiler leaves alone."""
VALUES = (0.0, -2.0, 1e3, 0.77)
"""What elements are replaced with, to see whether they matter."""


def unchanged(state: State) -> State:
    return dict(state)


def profile_of(function: Callable[[Any], Any], x: Any = X, **options: Any) -> Profile:
    """Profile `output = function(x)`, with a step that does nothing."""
    return profile(unchanged, {"x": x}, lambda state: function(state["x"]), **options)


def critical(result: Profile, name: str = "x") -> set[int]:
    return places(result.map[name].critical)


def places(mask: Any) -> set[int]:
    return {int(i) for i in np.flatnonzero(mask)}


def fed(sink: Sink) -> dict[str, set[int]]:
    return {name: places(mask) for name, mask in sink.elements.items()}


def outputs(step: Callable[[State], Any], state: State, output: Callable[[State], Any], steps: int) -> Any:
    """Bytes of the outputs after each of `steps` plain steps; the exception's type if one raises."""
    found = []
    for _ in range(steps):
        given_state = {name: np.copy(v) if isinstance(v, np.ndarray) else v for name, v in state.items()}
        try:
            result = step(given_state)
            state = given_state if result is None else result
            found.append([np.asarray(leaf).tobytes() for leaf in np.atleast_1d(output(dict(state)))])
        except Exception as error:
            return type(error)
    return found


def influential(
    step: Callable[[State], Any],
    state: State,
    output: Callable[[State], Any],
    steps: int,
    values: Iterable[float] = VALUES,
) -> dict[str, set[int]]:
    """The elements that change an output when they are replaced, found one by one."""
    expected = outputs(step, state, output, steps)
    matter: dict[str, set[int]] = {name: set() for name in state}
    for name, place in ((key, i) for key in state for i in range(np.size(state[key]))):
        for value in values:
            changed = np.array(state[name])
            changed.reshape(-1)[place] = value
            if outputs(step, {**state, name: changed}, output, steps) != expected:
                matter[name].add(place)
    return matter


# ---- every way out is a sink, at the line of the program ----

WAYS_OUT: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "array.any": ("bool", lambda x: 1.0 if (x[:2] > 5.0).any() else 2.0),
    "numpy.any": ("bool", lambda x: 1.0 if np.any(x[:2] > 5.0) else 2.0),
    "numpy.all": ("bool", lambda x: 1.0 if np.all(x[:2] > 1.0) else 2.0),
    "not": ("bool", lambda x: not x[0]),
    "and": ("bool", lambda x: 1.0 if x[0] > 1.0 and x[1] > 1.0 else 2.0),
    "chained": ("bool", lambda x: 1.0 if 0.5 < x[0] < x[1] else 2.0),
    "least of a list": ("bool", lambda x: [x[0], x[1]].index(min([x[0], x[1]]))),
    "most of an array": ("bool", lambda x: 1.0 if max(x[:2]) is x else 2.0),
    "key of a minimum": ("bool", lambda x: min([0, 1], key=lambda i: x[i])),
    "in a list": ("bool", lambda x: 1.0 if x[0] in [1.5, 3.0] else 2.0),
    "in an array": ("bool", lambda x: 1.0 if 1.5 in x[:2] else 2.0),
    "in a set": ("hash", lambda x: 1.0 if x[0] in {1.5, 3.0} else 2.0),
    "key of a dict": ("hash", lambda x: {1.5: 2.0}.get(x[0], 3.0)),
    "sorted": ("bool", lambda x: [i for _, i in sorted([(x[0], 0), (x[1], 1)])]),
    "any of a generator": ("bool", lambda x: any(value > 2.0 for value in x[:2])),
    "filter": ("bool", lambda x: len(list(filter(lambda value: value > 0.0, x[:2])))),
    "takewhile": ("bool", lambda x: len(list(itertools.takewhile(lambda v: v > 0.0, x[:2])))),
    "heap": ("bool", lambda x: len(heapq.nsmallest(1, [x[0], x[1]]))),
    "merge in Python's library": ("bool", lambda x: len(list(heapq.merge([x[0]], [x[1]])))),
    "choice in Python's library": ("bool", lambda x: random.Random(0).choices([1, 2], [x[0], x[1]])),
    "bisect": ("bool", lambda x: bisect.bisect([0.0, 1.0, 2.0], x[0])),
    "numpy.allclose": ("bool", lambda x: 1.0 if np.allclose(x[:2], 0.0) else 2.0),
    "norm": ("bool", lambda x: 1.0 if np.linalg.norm(x[:2]) < 1e-3 else 2.0),
    "int": ("int", lambda x: int(x[0])),
    "int of one element": ("int", lambda x: int(x[:1].reshape(()))),
    "percent d": ("int", lambda x: len("%d" % x[0])),  # noqa: UP031
    "range": ("int", lambda x: sum(range(int(x[1])))),
    "trunc": ("int", lambda x: math.trunc(x[0])),
    "round": ("round", lambda x: round(x[0])),
    "round to digits": ("round", lambda x: round(x[0], 1)),
    "floor": ("round", lambda x: math.floor(x[0])),
    "ceil": ("round", lambda x: math.ceil(x[0])),
    "float": ("float", lambda x: math.isnan(x[0])),
    "percent g": ("float", lambda x: len("%g" % x[0])),  # noqa: UP031
    "list index": ("index", lambda x: [1.0, 2.0][np.argmax(x[:2])]),
    "slice": ("index", lambda x: TABLE[: np.argmax(x[:2])]),
    "f-string": ("text", lambda x: len(f"{x[0]:.3g} {x[1]}")),
    "format": ("text", lambda x: len("{:.3g}".format(x[0]))),  # noqa: UP032
    "print": ("text", lambda x: print(x[0], end="")),
    "tolist": ("attribute tolist", lambda x: x[:2].tolist()),
    "item": ("attribute item", lambda x: x[0].item()),
    "nonzero": ("argument of nonzero", lambda x: len(np.nonzero(x[:2] > 1.0)[0])),
}


@pytest.mark.parametrize("name", WAYS_OUT)
def test_way_out_is_a_sink_at_its_line(name: str) -> None:
    kind, function = WAYS_OUT[name]
    found = profile_of(function)
    assert kind in {sink.kind for sink in found.sinks}
    assert {(sink.file, sink.line) for sink in found.sinks} == {(__file__, function.__code__.co_firstlineno)}
    truth = influential(unchanged, {"x": X}, lambda state: function(state["x"]), 1)
    assert truth["x"] <= critical(found) <= {0, 1}
    assert set.union(*(fed(sink)["x"] for sink in found.sinks)) == critical(found)


def test_numbers_in_sets_and_dicts_are_found_by_value() -> None:
    def function(x: Any) -> Any:
        return [{1.5: x[4], 7.0: x[5]}[x[0]], float(len({x[0], x[1], 1.5}))]

    assert critical(profile_of(function)) == {0, 1, 4}
    with pytest.raises(TypeError, match="unhashable"):
        profile_of(lambda x: {x: 1})


def test_conversion_that_fails_by_type_is_no_sink() -> None:
    def function(x: Any) -> Any:
        try:
            return TABLE.item(x[:2])
        except TypeError:
            return x[3]

    def of_list(x: Any) -> Any:
        try:
            return [1.0, 2.0][x[0]]
        except TypeError:
            return x[3]

    assert profile_of(of_list).sinks == ()
    assert critical(profile_of(of_list)) == {3}
    assert critical(profile_of(function)) >= {3}


def test_conversion_that_fails_by_value_is_one() -> None:
    def function(x: Any) -> Any:
        try:
            return int(x[0] / 0.0)
        except OverflowError:
            return x[3]

    with np.errstate(divide="ignore"):
        found = profile_of(function)
    assert [sink.kind for sink in found.sinks] == ["int"]
    assert critical(found) == {0, 3}


HELPER = """
import numpy as np

def sign(x):
    total = np.sum(x)
    if total > 0.0:
        return 1.0
    return -1.0
"""


@pytest.fixture
def helper(tmp_path: Path) -> ModuleType:
    """A module of the program's own in another file."""
    path = tmp_path / "helper_of_control.py"
    path.write_text(HELPER)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_line_is_that_of_the_helper_module(helper: ModuleType) -> None:
    found = profile_of(lambda x: helper.sign(x[:2]))
    assert [(sink.file, sink.line, sink.kind) for sink in found.sinks] == [(helper.__file__, 6, "bool")]


def test_line_of_code_without_a_file() -> None:
    names: State = {"__name__": "made_up"}
    exec("def function(x):\n    y = x * 2.0\n    return 1.0 if y[0] > 0.0 else 2.0\n", names)
    assert [(s.file, s.line) for s in profile_of(names["function"]).sinks] == [("<string>", 3)]


# ---- what feeds a sink ----


def two_places(state: State) -> None:
    x, y = state["x"], state["y"]
    if x[0] * x[1] > 0.0:
        y[0] = 1.0
    total = 0.0
    for i in range(2, 4):
        total = total + (1.0 if x[i] > y[i] else 2.0)
    state["n"] = total
    state["z"] = x[5] + state["z"]


def by_source(found: Profile) -> dict[str, Sink]:
    """Sinks by the text of their line."""
    lines = Path(__file__).read_text().splitlines()
    return {lines[sink.line - 1].strip(): sink for sink in found.sinks}


START = {"x": X, "y": X[::-1].copy(), "z": 0.5, "n": 0.0}


def test_each_sink_has_its_own_elements() -> None:
    found = profile(two_places, START, lambda state: state["z"], steps=1)
    sink, other = by_source(found).values()
    assert fed(sink) == {"x": {0, 1}}
    assert fed(other) == {"x": {2, 3}, "y": {2, 3}}
    # The output hangs on z and x[5], which no sink does.
    assert critical(found) == {0, 1, 2, 3, 5}


def test_fed_elements_in_words() -> None:
    found = profile(two_places, START, lambda state: state["z"], steps=1)
    sink, other = found.sinks
    assert sink.described() == f"{sink}, fed by x[0:2]"
    assert other.fed_by() == ["x[2:4]", "y[2:4]"]
    assert str(other) == f"{__file__}:{other.line}: bool"
    scattered = profile_of(lambda x: bool(x[0] + x[3] > x[5])).sinks[0]
    assert scattered.described(1) == f"{scattered}, fed by x[0], and 2 more boxes (2 elements)"


def test_scalars_of_the_state_feed_sinks_too() -> None:
    found = profile(unchanged, {"t": 0.5, "x": X}, lambda state: 1.0 if state["t"] < 1.0 else 2.0)
    assert [fed(sink) for sink in found.sinks] == [{"t": {0}}]
    assert found.sinks[0].fed_by() == ["t"]


def test_elements_are_united_over_steps_and_points() -> None:
    def step(state: State) -> State:
        k = state["it"] % 6
        return {"x": state["x"], "y": 1.0 if state["x"][k] > 0.0 else 2.0, "it": state["it"] + 1}

    def output(state: State) -> Any:
        return state["y"]

    start = {"x": X, "y": 0.0, "it": 0}
    assert fed(profile(step, start, output, steps=1).sinks[0]) == {"x": {0}}
    assert fed(profile(step, start, output, steps=3).sinks[0]) == {"x": {0, 1, 2}}
    assert fed(profile(step, start, output, steps=1, at=[1, 4]).sinks[0]) == {"x": {1, 4}}


@pytest.mark.parametrize("where", ["step", "output"])
def test_elements_are_what_changes_the_value(where: str) -> None:
    """Brute force: the value that left is made the only output."""

    def value(state: State) -> Any:
        mixed = np.concatenate([state["x"][:2] * state["y"][4], np.cumsum(state["x"][3:5])])
        return mixed[1] + mixed[3]

    def decide(state: State) -> float:
        return 1.0 if value(state) > 0.0 else 2.0

    def step(state: State) -> State:
        return {**state, "n": decide(state)} if where == "step" else dict(state)

    def output(state: State) -> Any:
        return state["z"] if where == "step" else decide(state)

    found = profile(step, START, output, steps=1)
    truth = influential(unchanged, {"x": X, "y": START["y"]}, value, 1)
    assert fed(found.sinks[0]) == truth


def test_sweep_of_a_sink_stops_where_it_was_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    pulled: list[int] = []

    def counted(node: Any, *rest: Any) -> None:
        pulled.append(node.position)
        original(node, *rest)

    original = sinks.pull_to_parents
    monkeypatch.setattr(sinks, "pull_to_parents", counted)

    def output(x: Any) -> Any:
        factor = 1.0 if x[0] > 0.0 else 2.0
        for _ in range(50):
            x = x * factor
        return x

    found = profile_of(output, steps=1)
    assert found.primitives < 10
    assert 0 < len(pulled) < 10


# ---- branches that differ ----

FALLS = {"x": X, "y": X[::-1].copy()}
RISES = {"x": -X, "y": X[::-1].copy()}


def take_a_side(state: State) -> State:
    side = state["x"] if state["x"][0] > 0.0 else state["y"]
    return {"x": state["x"], "y": state["y"], "out": side[1:2] * 1.0}


def out(state: State) -> Any:
    return state["out"]


def with_out(state: State) -> State:
    return {**state, "out": np.zeros(1)}


def test_branch_that_differs_between_inputs() -> None:
    found = profile(take_a_side, [with_out(FALLS), with_out(RISES)], out)
    (branch,) = found.branches
    assert (branch.file, branch.line, branch.kind) == (
        __file__,
        take_a_side.__code__.co_firstlineno + 1,
        "bool",
    )
    assert branch.runs == ("step 1 from at=0 of input 0", "step 1 from at=0 of input 1")
    assert (branch.outcomes, branch.visit, branch.visits) == (("True", "False"), 1, (1, 1))
    assert str(branch) == (
        f"{__file__}:{branch.line}: bool differs at visit 1: True in step 1 from at=0 of input 0, "
        "False in step 1 from at=0 of input 1"
    )


def test_union_of_inputs_has_the_untaken_side() -> None:
    alone = [profile(take_a_side, with_out(start), out) for start in (FALLS, RISES)]
    assert [(critical(each), critical(each, "y")) for each in alone] == [({0, 1}, set()), ({0}, {1})]
    assert [each.branches for each in alone] == [(), ()]
    both = profile(take_a_side, [with_out(FALLS), with_out(RISES)], out)
    assert (critical(both), critical(both, "y")) == ({0, 1}, {1})
    for start in (FALLS, RISES):
        truth = influential(take_a_side, with_out(start), out, 2)
        assert truth["x"] <= critical(both)
        assert truth["y"] <= critical(both, "y")
    # Either map alone would have let go of what the other input needs.
    assert not influential(take_a_side, with_out(RISES), out, 2)["y"] <= critical(alone[0], "y")


def grows(state: State) -> State:
    """A counter in the data flow that turns over after the third step."""
    kept = state["x"][:3] if state["t"] < 2.5 else state["x"][3:]
    return {"x": state["x"], "t": state["t"] + 1.0, "out": kept[:1] * 1.0}


GROWS = {"x": X, "t": 0.0, "out": np.zeros(1)}


def test_union_of_points() -> None:
    for at, expected in ((0, {0}), (5, {3}), ([0, 5], {0, 3}), ((5, 0, 5), {0, 3})):
        assert critical(profile(grows, GROWS, out, at=at, steps=2)) == expected
    (branch,) = profile(grows, GROWS, out, at=[0, 5], steps=2).branches
    assert branch.runs == ("step 1 from at=0", "step 1 from at=5")


def test_branch_that_differs_between_the_steps_of_a_window() -> None:
    found = profile(grows, GROWS, out, at=1, steps=3)
    (branch,) = found.branches
    assert branch.runs == ("step 1 from at=1", "step 3 from at=1")
    assert critical(found) == {0, 3}
    assert profile(grows, GROWS, out, steps=3).branches == ()


def test_branch_that_differs_between_two_steps_of_the_same_structure() -> None:
    def step(state: State) -> State:
        factor = 2.0 if state["t"] < 0.5 else 3.0
        return {"x": state["x"] * factor, "t": state["t"] + 1.0}

    found = profile(step, {"x": X, "t": 0.0}, lambda state: state["x"])
    assert found.stationary
    assert [branch.outcomes for branch in found.branches] == [("True", "False")]


def test_branch_of_the_output() -> None:
    def output(state: State) -> Any:
        return state["x"][0] if state["t"] < 1.5 else state["x"][1]

    found = profile(grows, GROWS, output, steps=2)
    assert [branch.runs for branch in found.branches] == [
        ("the output after step 1 from at=0", "the output after step 2 from at=0")
    ]


def test_loop_of_another_length_differs() -> None:
    def step(state: State) -> State:
        x = state["x"]
        while x[0] > 1.0:
            x = x * 0.5
        return {"x": x, "n": state["n"]}

    starts = [{"x": np.array([start, 1.0]), "n": 0.0} for start in (3.0, 9.0)]
    (branch,) = profile(step, starts, lambda state: state["n"], steps=1).branches
    assert (branch.outcomes, branch.visit, branch.visits) == (("False", "True"), 3, (3, 5))
    assert str(branch).endswith("(visits: 3 and 5)")


def test_line_that_only_one_run_comes_to() -> None:
    def step(state: State) -> State:
        x = state["x"]
        if x[0] > 0.0:
            x = x * (1.0 if x[1] > 0.0 else 2.0)
        return {"x": x}

    found = profile(step, [{"x": X}, {"x": -X}], lambda state: state["x"], steps=1)
    assert [branch.outcomes for branch in found.branches] == [("True", "False"), ("True", "not reached")]
    assert found.branches[1].visits == (1, 0)


OTHER_NUMBERS: dict[str, Callable[[Any], Any]] = {
    "int": lambda x: TABLE[int(x[0] * 2.0) + 4],
    "round": lambda x: TABLE[round(x[0]) + 4],
    "index": lambda x: TABLE[np.argmax(x)],
    "bool": lambda x: x[0] > 0.0 and 3.0,
    "attribute item": lambda x: 1.0 if (x[0] > 0.0).item() else 2.0,
    "hash": lambda x: 1.0 if x[0] in {1.5} else 2.0,
}


@pytest.mark.parametrize("kind", OTHER_NUMBERS)
def test_number_that_steers_differs(kind: str) -> None:
    function = OTHER_NUMBERS[kind]

    def output(state: State) -> Any:
        return function(state["x"])

    found = profile(unchanged, [{"x": X}, {"x": -X}], output)
    assert kind in {branch.kind for branch in found.branches}
    near = X * np.array([1.0, 1.0001, 1.0001, 1.0001, 1.0001, 1.0001])
    assert profile(unchanged, [{"x": X}, {"x": near}], output).branches == ()


def test_index_inside_a_tuple() -> None:
    """Either the read is followed to all that it may take, or the other index is told of."""

    def output(state: State) -> Any:
        i = np.argmax(state["x"])
        return np.concatenate([state["grid"][i : i + 1, 0], state["grid"][i, 1:]])

    grid = np.arange(12.0).reshape(6, 2)
    starts = [{"x": X, "grid": grid}, {"x": -X, "grid": grid}]
    found = profile(unchanged, starts, output)
    truth = [influential(unchanged, start, output, 1)["grid"] for start in starts]
    assert truth[0] | truth[1] <= critical(found, "grid")
    alone = profile(unchanged, starts[0], output)
    if not truth[1] <= critical(alone, "grid"):
        assert [branch.outcomes for branch in found.branches] == [("1", "3")]


# ---- outcomes ----

SEQUENCES = st.lists(st.one_of(st.booleans(), st.integers(0, 3)), max_size=12)


def naive_difference(one: list[Any], other: list[Any]) -> int | None:
    for visit, (left, right) in enumerate(itertools.zip_longest(one, other)):
        if left != right:
            return visit
    return None


def outcomes_of(values: list[Any]) -> Outcomes:
    outcomes = Outcomes()
    for value in values:
        outcomes.add(value)
    return outcomes


@given(SEQUENCES, SEQUENCES)
def test_outcomes_compare_as_lists_do(one: list[Any], other: list[Any]) -> None:
    left, right = outcomes_of(one), outcomes_of(other)
    assert (left == right) == (one == other)
    visit = left.first_difference(right)
    if one != other:
        assert visit == naive_difference(one, other)
        assert [left.at(visit) == "not reached", right.at(visit) == "not reached"] == [
            visit >= len(one),
            visit >= len(other),
        ]


@given(SEQUENCES, SEQUENCES)
def test_of_long_sequences_the_beginning_is_kept(one: list[Any], other: list[Any]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Outcomes, "LONGEST", 2)
        left, right = outcomes_of(one), outcomes_of(other)
        assert (left == right) == (one == other)
        visit = left.first_difference(right)
    if one != other:
        assert visit in (None, naive_difference(one, other))
        few_runs = all(len(list(itertools.groupby(values))) <= 2 for values in (one, other))
        assert visit is not None or not few_runs


def test_long_loop_costs_little() -> None:
    outcomes = outcomes_of([True] * 100_000 + [False])
    assert len(outcomes._runs) == 2
    assert outcomes.first_difference(outcomes_of([True] * 99_999 + [False])) == 99_999


RUN_OUTCOMES = st.lists(st.lists(st.booleans(), max_size=3), min_size=1, max_size=5)


@given(RUN_OUTCOMES, st.randoms(use_true_random=False))
def test_runs_may_be_seen_in_any_order(sequences: list[list[bool]], shuffler: random.Random) -> None:
    """As where steps are recorded backward: the earliest run, and the earliest that differs from it."""
    place = Place("program.py", 3, "bool")
    runs = [Run(1 + i // 2, i % 2, str(i)) for i in range(len(sequences))]
    order = list(range(len(runs)))
    for seen in (order, order[::-1]):
        log = BranchLog()
        for i in seen:
            log.add("step", runs[i], {place: outcomes_of(sequences[i])} if sequences[i] else {})
        differing = [i for i in order if sequences[i] != sequences[0]]
        expected = [("0", str(differing[0]))] if differing else []
        assert [branch.runs for branch in log.branches()] == expected
    shuffler.shuffle(order)
    log = BranchLog()
    for i in order:
        log.add("step", runs[i], {place: outcomes_of(sequences[i])} if sequences[i] else {})
    assert bool(log.branches()) == any(other != sequences[0] for other in sequences)


def test_step_recorded_again_is_not_seen_twice() -> None:
    program = ObservedProgram(grows, out, steering_counts=True)
    program.start_at(Point(0, 0), 1)
    for number, t in ((3, 2.0), (2, 1.0), (1, 0.0), (3, 9.0)):
        program.trace_step({**GROWS, "t": t}, number=number)
    assert program.observed.branches.branches() == ()
    program.trace_step({**GROWS, "t": 3.0}, number=4)
    assert [b.runs for b in program.observed.branches.branches()] == [
        ("step 1 from at=0", "step 4 from at=0")
    ]


# ---- random programs with branches ----

NAMES = st.sampled_from("abc")
PLACE = st.integers(0, 3)
CONDITION = st.tuples(NAMES, PLACE, st.sampled_from([0.2, 0.6]))
STATEMENT = st.tuples(CONDITION, st.tuples(NAMES, PLACE, NAMES, PLACE), st.tuples(NAMES, PLACE, NAMES, PLACE))
DECISIONS: list[bool] = []


def decided(value: Any) -> bool:
    outcome = bool(value)
    DECISIONS.append(outcome)
    return outcome


def run_statements(statements: Any, state: State) -> None:
    for (name, place, bound), one, other in statements:
        target, here, source, there = one if decided(state[name][place] > bound) else other
        state[target][here] = state[source][there] * 0.5 + 0.1


@st.composite
def starts(draw: st.DrawFn) -> State:
    seed = draw(st.integers(0, 1000))
    return {name: np.random.default_rng([seed, i]).uniform(size=4) for i, name in enumerate("abc")}


@settings(deadline=None, max_examples=30)
@given(st.lists(STATEMENT, min_size=1, max_size=5), st.lists(starts(), min_size=2, max_size=3), NAMES)
def test_union_of_random_programs(statements: Any, inputs: list[State], name: str) -> None:
    """No uncritical element matters for any input, and branches are reported just when they differ."""

    def step(state: State) -> None:
        run_statements(statements, state)

    def output(state: State) -> Any:
        return state[name][1:3]

    found = profile(step, inputs, output, steps=1)
    alone = [profile(step, start, output, steps=1) for start in inputs]
    taken = []
    for start in inputs:
        truth = influential(step, start, output, 1)
        for variable in "abc":
            assert truth[variable] <= critical(found, variable)
        DECISIONS.clear()
        outputs(step, start, output, 1)
        taken.append(list(DECISIONS))
    for variable in "abc":
        assert critical(found, variable) == set.union(*(critical(each, variable) for each in alone))
    differ = [(i, n) for i, other in enumerate(taken) if (n := naive_difference(taken[0], other)) is not None]
    seen = [(branch.runs[1], branch.visit) for branch in found.branches]
    assert seen == [(f"step 1 from at=0 of input {i}", visit + 1) for i, visit in differ[:1]]


@settings(deadline=None, max_examples=15)
@given(
    st.lists(STATEMENT, min_size=1, max_size=4), starts(), st.sets(st.integers(0, 4), min_size=1, max_size=3)
)
def test_points_of_random_programs(statements: Any, start: State, at: set[int]) -> None:
    def step(state: State) -> None:
        run_statements(statements, state)

    def output(state: State) -> Any:
        return state["a"][1:3]

    found = profile(step, start, output, steps=2, at=sorted(at))
    alone = [profile(step, start, output, steps=2, at=each) for each in sorted(at)]
    for variable in "abc":
        assert critical(found, variable) == set.union(*(critical(each, variable) for each in alone))


# ---- points and inputs ----


def test_steps_between_points_are_run_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[float] = []
    plain = Program.advance

    def counted(self: Program, state: State) -> State:
        made.append(state["t"])
        return plain(self, state)

    monkeypatch.setattr(Program, "advance", counted)
    state = {"x": X, "t": 0.0, "out": np.zeros(1)}
    profile(grows, state, out, at=[7, 4], steps=1, validate=None)
    # At the points themselves plain steps are also what the recording is checked against.
    assert [made.count(step) for step in (0.0, 1.0, 2.0, 3.0, 5.0, 6.0)] == [1] * 6


def test_poison_is_that_of_the_united_map() -> None:
    found = profile(grows, GROWS, out, at=[0, 5], steps=1)
    assert found.poison is not None
    assert found.poison.elements["x"] == 4
    assert found.map["x"].uncritical.sum() == 4


def test_weakest_claim_wins_among_uncritical_states() -> None:
    def step(state: State) -> State:
        copy = {**state, "t": state["t"] + 1.0}
        return {**copy, "x": np.zeros(6)} if state["t"] < 2.5 else copy

    start = {"x": X, "t": 0.0}
    alone = [profile(step, start, lambda state: state["t"], at=at).map["x"].states for at in (0, 4)]
    both = profile(step, start, lambda state: state["t"], at=[0, 4]).map["x"].states
    assert len({int(states[0]) for states in alone}) == 2
    assert both.tolist() == alone[1].tolist()


def test_provenance_lists_all_points(tmp_path: Path) -> None:
    found = profile(take_a_side, [with_out(FALLS), with_out(RISES)], out, at=[0, 2])
    found.map.save(tmp_path / "map.npz")
    stored = CriticalityMap.load(tmp_path / "map.npz").provenance
    assert [(point["input"], point["at"]) for point in stored["points"]] == [(0, 0), (0, 2), (1, 0), (1, 2)]
    assert (stored["at"], stored["inputs"], stored["control"]) == ([0, 2], 2, "sink")
    assert stored["branches"] == [str(branch) for branch in found.branches]
    alone = profile(take_a_side, with_out(FALLS), out, at=2).map.provenance
    assert (alone["at"], alone["inputs"]) == (2, 1)


def test_inputs_may_differ_in_untraced_values() -> None:
    def output(state: State) -> Any:
        return state["x"][state["k"]]

    found = profile(unchanged, [{"x": X, "k": 1}, {"x": X, "k": 4}], output)
    assert critical(found) == {1, 4}


OTHER_INPUTS: dict[str, tuple[State, str, str]] = {
    "name missing": ({}, "x", "input 1 has no such variable, input 0 has it"),
    "name more": ({"x": X, "y": X}, "y", "input 0 has no such variable, input 1 has it"),
    "shape": ({"x": X[:3]}, "x", r"shape \(6,\), input 1 has an array of dtype float64 and shape \(3,\)"),
    "dtype": ({"x": X.astype("f4")}, "x", "float64 and shape .*input 1 has an array of dtype float32"),
    "kind": ({"x": 0.5}, "x", "input 1 has a scalar of type float"),
}


@pytest.mark.parametrize("name", OTHER_INPUTS)
def test_inputs_of_other_variables_are_refused(name: str) -> None:
    other, key, words = OTHER_INPUTS[name]
    with pytest.raises(ProfileError, match=words) as raised:
        profile(unchanged, [{"x": X}, other], lambda state: 0.0)
    assert raised.value.key == key


def test_inputs_in_another_memory_order_are_refused() -> None:
    one, other = {"x": np.ones((2, 3))}, {"x": np.asfortranarray(np.ones((2, 3)))}
    with pytest.raises(ProfileError, match=r"input 1 has .* in Fortran order"):
        profile(unchanged, [one, other], lambda state: state["x"])


def test_input_that_is_no_state_is_named() -> None:
    with pytest.raises(ProfileError, match="input 1: expected an array or scalar") as raised:
        profile(unchanged, [{"x": X}, {"x": object()}], lambda state: 0.0)
    assert raised.value.key == "x"
    with pytest.raises(ProfileError, match="empty sequence"):
        profile(unchanged, [], lambda state: 0.0)


@pytest.mark.parametrize("at", [-1, [3, -1], [], "3", 1.5, [1, None]])
def test_refused_points(at: Any) -> None:
    with pytest.raises(ProfileError, match="at is") as raised:
        profile(unchanged, {"x": X}, lambda state: 0.0, at=at)
    assert raised.value.key == "at"


# ---- control="report" ----

STEERS: dict[str, Callable[[Any], Any]] = {
    "bool": lambda x: 0.0 * x[3] if x[0] > 5.0 else x[3],
    "int": lambda x: x[3] + 0.0 * int(x[0] > 5.0),
    "float": lambda x: x[3] if math.floor(float(x[0]) * 0.0 + 1.0) else x[4],
    "round": lambda x: x[3] if round(x[0]) != 50 else x[4],
    "index": lambda x: [x[3], x[4]][np.argmin(np.zeros(2) * x[0])],
    "text": lambda x: x[3] if len(f"{x[0]}") else x[4],
}


@pytest.mark.parametrize("kind", STEERS)
def test_value_that_only_steers_is_listed_and_not_critical(kind: str) -> None:
    function = STEERS[kind]
    counted = profile_of(function)
    assert critical(counted) >= {0, 3}
    assert all(sink.counts for sink in counted.sinks)
    found = profile_of(function, control="report", validate=None)
    assert critical(found) == {3}
    assert [(str(sink), fed(sink)) for sink in found.sinks] == [
        (str(sink), fed(sink)) for sink in counted.sinks
    ]
    assert not any(sink.counts for sink in found.sinks)
    assert found.sinks[0].described().endswith("fed by x[0] (listed, not counted as an output)")
    assert found.map.provenance["control"] == "report"
    # Read, if only to decide: neither dead nor unused.
    assert found.map["x"].states[0] == 1


def written_at(x: Any, place: Any) -> Any:
    y = np.zeros((2, 2))
    y[place] = 1.0
    return y[1, 1]


COUNTS_ANYWAY: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "array": ("array", lambda x: ORDINARY["array"](x[:1])[0]),
    "item": ("attribute item", lambda x: x[0].item()),
    "inverse": ("errors of inv", lambda x: np.linalg.inv(x[:1].reshape(1, 1))),
    "written index": ("argument of __setitem__", lambda x: written_at(x, np.argmax(x[:1]))),
    "in a tuple": ("argument of __setitem__", lambda x: written_at(x, (np.argmax(x[:1]), 1))),
    "in a slice": ("argument of __setitem__", lambda x: written_at(x, (1, slice(np.argmax(x[:1]), 1)))),
}


@pytest.mark.parametrize("name", COUNTS_ANYWAY)
def test_value_that_leaves_into_the_unknown_counts_anyway(name: str) -> None:
    kind, function = COUNTS_ANYWAY[name]
    found = profile_of(function, control="report", validate=None)
    assert kind in {sink.kind for sink in found.sinks}
    assert critical(found) == {0}


@pytest.mark.parametrize("control", ["sink", "report"])
def test_index_that_is_read_at(control: Any) -> None:
    """What is selected depends on the index, and on all that it may select; the index alone is no output."""

    def output(state: State) -> Any:
        unread = state["x"][state["j"]]
        return state["y"][state["i"]] + 0.0 * unread.size

    state = {"x": X, "y": X * 2.0, "i": np.array([4, 1]), "j": np.array([2])}
    # A restart would raise IndexError for noise in j: values that steer may do so.
    found = profile(unchanged, state, output, control=control, validate=None)
    assert critical(found, "y") == set(range(6))
    assert critical(found, "i") == {0, 1}
    assert critical(found, "x") == set()
    assert critical(found, "j") == ({0} if control == "sink" else set())


@settings(deadline=None, max_examples=30)
@given(st.lists(STATEMENT, min_size=1, max_size=5), starts(), NAMES, st.sampled_from([1, 2]))
def test_reported_map_holds_where_decisions_stay(
    statements: Any, start: State, name: str, steps: int
) -> None:
    """What is let go of changes no output unless it turns a decision."""

    def step(state: State) -> None:
        run_statements(statements, state)

    def output(state: State) -> Any:
        return state[name][1:3]

    def run(state: State) -> tuple[list[bool], Any]:
        DECISIONS.clear()
        found = outputs(step, state, output, steps)
        return list(DECISIONS), found

    options: State = {"steps": steps, "validate": None}
    released = profile(step, start, output, control="report", **options)
    kept = profile(step, start, output, **options)
    expected = run(start)
    for variable, place, value in itertools.product("abc", range(4), VALUES):
        assert released.map[variable].critical[place] <= kept.map[variable].critical[place]
        if not released.map[variable].critical[place]:
            changed = start[variable].copy()
            changed[place] = value
            decisions, found = run({**start, variable: changed})
            assert decisions != expected[0] or found == expected[1]
    fed_places = {(name, place) for sink in released.sinks for name in fed(sink) for place in fed(sink)[name]}
    if steps == 1:
        # In the only step, what is kept beside the data flow is what feeds the sinks.
        assert fed_places | placed(released) == placed(kept)


def placed(found: Profile) -> set[tuple[str, int]]:
    """Critical elements, with their variables."""
    return {(name, place) for name in found.map for place in critical(found, name)}


def test_poison_checks_the_reported_map() -> None:
    """A decision that elements which are let go of would turn: poison tells."""

    def output(x: Any) -> Any:
        return 1.0 if x[0] > 0.0 else 2.0

    found = profile_of(output, -X, control="report")
    assert critical(found) == {0}
    assert found.poison is not None
    assert found.poison.outcome == "widened"


def test_convergence_test_that_does_not_matter() -> None:
    """A residual that only ends a loop early: kept by default, let go of on request, and poison agrees."""

    def step(state: State) -> None:
        for _ in range(3):
            if np.linalg.norm(state["residual"]) < 1e-30:
                break
            state["x"][:] = 0.5 * state["x"]
        state["residual"][:] = state["x"] * 0.1

    start = {"x": X, "residual": X * 0.1}
    kept = profile(step, start, lambda state: state["x"], steps=2)
    assert critical(kept, "residual") == set(range(6))
    released = profile(step, start, lambda state: state["x"], steps=2, control="report")
    assert critical(released, "residual") == set()
    assert critical(released) == set(range(6))
    assert released.poison is not None
    assert released.poison.elements["residual"] == 6


@pytest.mark.parametrize(
    ("kind", "steers"),
    [
        ("bool", True),
        ("text", True),
        ("argument of roll", True),
        ("argument of __getitem__", True),
        ("argument of __setitem__", False),
        ("argument of add.at", False),
        ("array", False),
        ("attribute tolist", False),
        ("untraced f", False),
        ("unknown primitive inv", False),
    ],
)
def test_which_places_only_steer(kind: str, steers: bool) -> None:
    assert Place("program.py", 1, kind).steers is steers


def test_refused_control() -> None:
    with pytest.raises(ProfileError, match="expected 'sink' or 'report'") as raised:
        profile_of(lambda x: x, control="ignore")  # type: ignore[arg-type]
    assert raised.value.key == "control"
