"""`profile` of programs that write into arrays: views, ``out=``, aliases, buffers; against brute force."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from brute_force import State, copied, critical, truth
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy import empty as imported_by_name

from scr_critplugin.analysis import profile
from scr_critplugin.errors import ProfileError

N = 6


def start() -> State:
    return {name: np.linspace(0.3, 1.7, N) + 0.1 * i for i, name in enumerate("abc")}


# ---- one construct each: the mask is exactly what brute force finds ----


def plain_slices(s: State) -> None:
    s["a"][1:4] = s["b"][:3]
    s["a"][4:] += s["c"][0]


def overlap(s: State) -> None:
    s["a"][1:] = s["a"][:-1]


def backwards(s: State) -> None:
    s["a"][:-1] = s["a"][1:]
    s["b"][::-1] = s["a"]


def through_a_view(s: State) -> None:
    part = s["a"][2:5]
    grid = s["b"].reshape(2, 3)
    part += grid[1]
    grid.T[0] = part[:2]
    s["c"][:2] = s["b"][2:4]


def view_of_a_view(s: State) -> None:
    whole = s["a"]
    odd = whole[1::2]
    last = odd[1:]
    whole[:] = s["b"]
    last *= s["c"][3:5]
    s["b"][0] = odd[2]


def second_name(s: State) -> None:
    same = s["a"]
    same += s["b"]
    s["c"] = same * 1.0


def swap(s: State) -> None:
    a, b = s["a"], s["b"]
    a[0] = s["c"][1]
    s["a"], s["b"] = b, a


def with_out(s: State) -> None:
    np.multiply(s["a"][:3], s["b"][3:], out=s["c"][1:4])
    np.add(s["c"], 1.0, s["b"])
    np.sum(s["a"].reshape(3, 2), axis=1, out=s["a"][:3])


def with_where(s: State) -> None:
    np.add(s["a"], s["b"], out=s["c"], where=np.arange(N) > 3)
    np.copyto(s["a"], s["b"], where=np.arange(N) < 2)


def buffer(s: State) -> None:
    work = np.zeros(N + 2)
    work[1:-1] = s["a"]
    work[0], work[-1] = work[-2], work[1]
    other = imported_by_name(N)
    other[:] = 0.5 * (work[:-2] + work[2:])
    s["a"][:] = other


def fancy(s: State) -> None:
    where = np.array([4, 0, 2])
    s["a"][where] = s["b"][:3]
    s["c"][np.array([True, False] * 3)] *= 2.0
    s["b"][where] += s["c"][where]


def repeated(s: State) -> None:
    np.add.at(s["a"], np.array([1, 1, 4]), s["b"][:3])


def functions(s: State) -> None:
    s["a"].reshape(2, 3)[:] = np.einsum("ij,jk->ik", s["b"][:4].reshape(2, 2), s["c"].reshape(2, 3))
    s["b"][:] = np.where(np.arange(N) < 3, s["b"], s["a"])


def scalars(s: State) -> None:
    a = s["a"]
    for i in range(1, N):
        a[i] = a[i - 1] * 0.5
    s["b"][1] -= a[2]


def columns(s: State) -> None:
    grid = np.zeros((3, 2), order="F")
    grid[:, 0] = s["a"][::2]
    grid[1:, 1] = s["b"][:2]
    s["c"][:4] = grid.T.ravel()[:4]


def flattened(s: State) -> None:
    flat = s["a"].reshape(2, 3).flatten()
    flat[:] = 0.0
    s["a"].reshape(2, 3).ravel()[1] = s["b"][5]


def built(s: State) -> None:
    rows = np.array([s["a"][:3], s["b"][:3]])
    rows[0, 1] = s["c"][5]
    assert isinstance(rows, np.ndarray)
    s["c"][:3] = rows[0]


def split_in_parts(s: State) -> None:
    left, right = np.split(s["a"], 2)
    s["a"][0] = s["b"][3]
    right[:] = left


CONSTRUCTS = [
    plain_slices, overlap, backwards, through_a_view, view_of_a_view, second_name, swap, with_out,
    buffer, fancy, repeated, functions, scalars, columns, flattened, built, split_in_parts,
]  # fmt: skip


@pytest.mark.parametrize("name", "abc")
@pytest.mark.parametrize("step", CONSTRUCTS, ids=lambda step: step.__name__)
def test_mask_is_what_brute_force_finds(step: Callable[[State], None], name: str) -> None:
    def output(state: State) -> Any:
        return state[name][1:5]

    expected = truth(step, start(), output, 1)
    assert critical(step, start(), output, steps=1) == expected
    found = profile(step, start(), output)
    assert found.sinks == ()


@pytest.mark.parametrize("name", "abc")
def test_masked_write_may_keep_too_much_never_too_little(name: str) -> None:
    def output(state: State) -> Any:
        return state[name][1:5]

    found, expected = critical(with_where, start(), output, steps=1), truth(with_where, start(), output, 1)
    for variable in "abc":
        assert expected[variable] <= found[variable] <= {1, 2, 3, 4}


def test_functional_version_has_the_same_mask() -> None:
    def functional(state: State) -> State:
        a = np.concatenate([state["a"][:1], state["b"][:3], state["a"][4:] + state["c"][0]])
        return {**state, "a": a}

    def output(state: State) -> Any:
        return state["a"][:5]

    assert critical(plain_slices, start(), output) == critical(functional, start(), output)


def test_complex_parts_are_views() -> None:
    def step(state: State) -> None:
        state["z"].real[1:] = state["x"][1:]
        state["z"].imag = 0.0

    def output(state: State) -> Any:
        return state["z"].real[:2]

    state = {"z": np.arange(3) + 1j, "x": np.ones(3)}
    found = critical(step, state, output, steps=1)
    assert found["x"] == {1}
    assert {0} <= found["z"] <= {0, 1}


def test_state_that_steers_a_write_keeps_everything() -> None:
    def step(state: State) -> None:
        state["a"][state["k"]] = state["b"][:2]

    state = {**start(), "k": np.array([4, 1])}
    found = critical(step, state, lambda state: state["a"], steps=1)
    assert found["k"] == {0, 1}
    assert found["a"] == set(range(N))
    assert found["b"] == {0, 1}


def test_caller_keeps_arrays_and_names() -> None:
    state = start()
    before = copied(state)
    profile(buffer, state, lambda state: state["a"])
    assert all(np.array_equal(state[name], before[name]) for name in state)
    assert buffer.__globals__["np"] is np
    assert buffer.__globals__["imported_by_name"] is np.empty


def test_names_are_put_back_after_an_error() -> None:
    def step(state: State) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        profile(step, start(), lambda state: state["a"], validate=None)
    assert globals()["np"] is np


@functools.cache
def table() -> Any:
    return np.arange(1.0, N + 1)


def test_arrays_computed_once_stay_ordinary() -> None:
    def step(state: State) -> None:
        state["a"] *= table()

    assert critical(step, start(), lambda state: state["a"][:2])["a"] == {0, 1}
    assert type(table()) is np.ndarray


@pytest.mark.filterwarnings("ignore::scr_critplugin.errors.ProfileWarning")
def test_write_into_an_array_out_of_reach_is_a_sink() -> None:
    def step(state: State) -> None:
        out_of_reach = table()
        out_of_reach[:] = state["b"]
        state["a"][:] = out_of_reach

    found = profile(step, start(), lambda state: state["a"][:1])
    assert found.map["b"].critical.all()
    assert {sink.kind for sink in found.sinks} == {"array"}


@pytest.mark.filterwarnings("ignore::scr_critplugin.errors.ProfileWarning")
def test_array_that_left_does_not_follow_later_writes() -> None:
    def step(state: State) -> None:
        left = np.ma.getdata(state["a"])
        state["a"][:] = state["b"]
        state["c"][:] = left

    # NumPy's own view would follow the write: the traced run must not go on with something else.
    with pytest.raises(ProfileError, match="computes something else"):
        profile(step, start(), lambda state: state["c"])


def test_shared_memory_that_is_written_is_refused() -> None:
    def step(state: State) -> None:
        state["b"] = state["a"]
        state["a"] += 1.0

    with pytest.raises(ProfileError, match="share memory"):
        profile(step, start(), lambda state: state["b"])


# ---- random programs ----

SLICES = ["[:]", "[1:]", "[:-1]", "[::2]", "[::-1]", "[2:4]", "[4]"]
VIEWS = [".reshape(2, 3)[1]", ".reshape(2, 3).T[1]", ".reshape(3, 2)[:, 0]"]
COPIES = ["[[3, 0, 5]]", "[np.arange(6) % 3 == 1]"]
REGION = st.sampled_from(SLICES + VIEWS + COPIES)
NAME = st.sampled_from(["a", "b", "c", "v", "w", "t"])
STATEMENT = st.one_of(
    st.tuples(st.just("assign"), NAME, REGION, NAME, REGION),
    st.tuples(st.just("add"), NAME, REGION, NAME, REGION),
    st.tuples(st.just("out"), NAME, REGION, NAME, REGION),
    st.tuples(st.just("view"), st.sampled_from("vw"), REGION, NAME, REGION),
    st.tuples(st.just("swap"), NAME, REGION, NAME, REGION),
    st.tuples(st.just("fresh"), NAME, REGION, NAME, REGION),
)


def written(kind: str, target: str, here: str, source: str, there: str) -> list[str]:
    """Source of a statement; what is assigned is cut to the shape of the target."""
    value = f"fitted({source}{there}, np.shape({target}{here}))"
    if kind == "assign":
        return [f"{target}{here} = {value}"]
    if kind == "add":
        return [f"{target}{here} += {value}"]
    if kind == "out":
        return [f"np.multiply({target}[1:4], {source}[2:5], out={target}[:3])"]
    if kind == "view":
        return [f"{target} = {source}[::-1] if {len(there)} % 2 else {source}.reshape(2, 3).T.reshape(-1)"]
    if kind == "swap":
        return [f"{target}, {source} = {source}, {target}"]
    return [f"{target} = np.zeros(6)", f"{target}[1:5] = {source}[2:]"]


def fitted(value: Any, shape: tuple[int, ...]) -> Any:
    """Elements of `value`, over and over, in `shape`."""
    return np.resize(value, shape) if shape else np.ravel(value)[0]


def program(statements: list[tuple[str, ...]]) -> Callable[[State], None]:
    lines = [line for statement in statements for line in written(*statement)]
    body = "\n    ".join(lines)
    source = (
        "def step(s):\n    a, b, c = s['a'], s['b'], s['c']\n    v, w, t = a, b[::-1], np.empty(6)\n"
        f"    t[:] = 0.0\n    {body}\n    s['a'], s['b'], s['c'] = a + 0.0, b * 1.0, c.copy()\n"
    )
    names: dict[str, Any] = {"np": np, "fitted": fitted, "__name__": "random_program"}
    exec(source, names)
    step: Callable[[State], None] = names["step"]
    return step


@settings(deadline=None, max_examples=40)
@given(st.lists(STATEMENT, min_size=1, max_size=6), st.sampled_from("abc"), st.sampled_from([1, 2]))
def test_no_uncritical_element_changes_the_output(statements: Any, name: str, steps: int) -> None:
    step = program(statements)

    def output(state: State) -> Any:
        return state[name][1:4]

    with np.errstate(all="ignore"):
        found = critical(step, start(), output, steps=steps)
        expected = truth(step, start(), output, steps)
    for variable in "abc":
        assert expected[variable] <= found[variable]
