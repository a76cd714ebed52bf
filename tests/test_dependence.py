"""`profile` as a whole: accidental zeros, sinks, the recurrence, element states, and what is refused."""

from __future__ import annotations

import copy
import gc
import math
from collections.abc import Callable
from typing import Any

import autograd
import autograd.numpy as anp
import autograd.tracer
import numpy as np
import pytest
from autograd.extend import notrace_primitive, primitive
from hypothesis import given, settings
from hypothesis import strategies as st

from scr_critplugin.analysis import Profile, profile, pulls, rules
from scr_critplugin.criticality import CriticalityMap, ElementState
from scr_critplugin.errors import CritError, ProfileError

X = np.array([1.0, 2.0, 0.0, -3.0, 0.5, 0.0])
ALL = set(range(6))


def unchanged(state: dict[str, Any]) -> dict[str, Any]:
    return dict(state)


def profile_of(function: Callable[[Any], Any], x: Any = X, **options: Any) -> Profile:
    """Profile `output = function(x)`, with a step that does nothing."""
    return profile(unchanged, {"x": x}, lambda state: function(state["x"]), **options)


def critical(result: Profile, name: str = "x") -> set[int]:
    return {int(i) for i in np.flatnonzero(result.map[name].critical)}


def kinds(result: Profile) -> set[str]:
    return {sink.kind for sink in result.sinks}


# ---- accidental zeros: the derivative vanishes at this state, the dependence does not ----


def newton(x: Any) -> Any:
    root = x[1] + 0.0
    while abs(root * root - x[0]) > abs(x[2]) + 1e-14:
        root = 0.5 * (root + x[0] / root)
    return anp.array([root])


def underflow(x: Any) -> Any:
    for _ in range(60):
        x = x * 1e-6
    return x


TABLE = np.array([1.0, 4.0, 9.0, 16.0, 25.0, 36.0])

ACCIDENTAL_ZEROS: dict[str, tuple[Callable[[Any], Any], np.ndarray, set[int]]] = {
    "product with zero": (lambda x: anp.array([x[0] * x[2], x[1]]), X, {0, 1, 2}),
    "square at zero": (lambda x: x[2:4] ** 2, X, {2, 3}),
    "distance to itself": (lambda x: anp.sum((x - X) ** 2), X, ALL),
    "absolute value at zero": (lambda x: anp.abs(x), X, ALL),
    "tie of maxima": (lambda x: anp.max(anp.array([x[2], x[5], x[3]])), X, {2, 3, 5}),
    "relu on its dead side": (lambda x: anp.maximum(x, 0.0), X, ALL),
    "where on the other side": (lambda x: anp.where(x[:3] > 0.1, x[3:], 2.0 * x[3:]), X, ALL),
    "branch only": (lambda x: x[:1] * (2.0 if x[5] > 0.5 else 1.0), X, {0, 5}),
    "integer index": (lambda x: TABLE[int(x[4]) % 6] * x[0], X, {0, 4}),
    "loop to a tolerance": (newton, np.array([4.0, 1.0, 1e-6, 0.0, 0.0, 0.0]), {0, 1, 2}),
    "floor": (lambda x: anp.floor(x[:2] * 3.3) * x[2:4], X, {0, 1, 2, 3}),
    "sign": (lambda x: anp.sign(x[:2]) * x[2:4], X, {0, 1, 2, 3}),
    "permutation": (lambda x: x[3:][anp.argsort(x[:3])], X, ALL),
    "permuted constants": (lambda x: TABLE[anp.argsort(x[:3])] * 1.0, X, {0, 1, 2}),
    "underflow": (underflow, np.array([0.5, 0.5, 1.0, 1.0, 1.0, 1.0]), ALL),
    "saturation": (lambda x: anp.tanh(40.0 * x), np.array([1.0, 2.0, 3.0, -4.0, 5.0, 0.1]), ALL),
    "product of zeros": (lambda x: anp.prod(x), X, ALL),
    "norm at zero": (lambda x: anp.sqrt(anp.sum(x[[2, 5]] ** 2)), X, {2, 5}),
    "comparison": (lambda x: x[:2] > 0.0, X, {0, 1}),
    "round": (lambda x: anp.round(x[:3] * 0.1), X, {0, 1, 2}),
    "matrix product with zeros": (lambda x: anp.dot(x[:3], x[3:]), X, ALL),
    "clipped": (lambda x: anp.clip(x, 0.1, 0.2), X, ALL),
}


@pytest.mark.parametrize("name", ACCIDENTAL_ZEROS)
def test_accidental_zero_is_critical(name: str) -> None:
    function, x, truth = ACCIDENTAL_ZEROS[name]
    assert critical(profile_of(function, x)) == truth


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_derivative_would_have_missed_them() -> None:
    """The catalogue is to the point: at these states the gradient is zero where dependence is not."""
    for name in (
        "product with zero",
        "relu on its dead side",
        "distance to itself",
        "product of zeros",
        "floor",
    ):
        function, x, truth = ACCIDENTAL_ZEROS[name]
        gradient = autograd.grad(lambda y, function=function: anp.sum(function(y)))(x)
        assert set(np.flatnonzero(gradient)) < truth, name


def test_exact_cancellation_only_over_approximates() -> None:
    assert critical(profile_of(lambda x: anp.array([x[0] - x[0] + x[1]]))) == {0, 1}


# ---- sinks ----

ORDINARY = vars(np)
"""NumPy as a module sees it that the profiler leaves alone."""

BY_KIND: dict[str, Callable[[Any], Any]] = {
    "bool": lambda x: 1.0 if x[0] > 0.0 else 2.0,
    "int": lambda x: int(x[0]),
    "float": lambda x: math.sqrt(x[0]),
    "complex": lambda x: complex(x[0]),
    "index": lambda x: TABLE[anp.argmax(x[:1])],
    "round": lambda x: round(x[0]),
    "text": lambda x: f"{x[0]:.2f}",
    "array": lambda x: ORDINARY["array"](x[:1]),
    "attribute tolist": lambda x: x[:1].tolist(),
    "argument of roll": lambda x: anp.roll(TABLE * 1.0, anp.argmax(x[:1])),
    "argument of __getitem__": lambda x: x[:1][x[:1] > 0],
    "argument of nonzero": lambda x: anp.nonzero(x[:1]),
    "unknown primitive unique": lambda x: anp.unique(x[:1]),
    "errors of inv": lambda x: anp.linalg.inv(anp.reshape(x[:1], (1, 1))),
    "untraced __new__": lambda x: anp.int64(x[0]),
}


@pytest.mark.parametrize("kind", BY_KIND)
def test_value_that_leaves_is_critical_and_reported(kind: str) -> None:
    function = BY_KIND[kind]
    result = profile_of(function)
    assert critical(result) == {0}
    assert kind in kinds(result)
    line = function.__code__.co_firstlineno
    assert {(sink.file, sink.line) for sink in result.sinks} == {(__file__, line)}


def test_data_flow_without_sinks_reports_none() -> None:
    result = profile_of(lambda x: anp.where(x > 0.0, x, 0.0))
    assert result.sinks == ()


def test_sink_in_the_step_counts_without_any_output() -> None:
    def step(state: dict[str, Any]) -> dict[str, Any]:
        factor = 2.0 if state["x"][4] > 0.0 else 3.0
        return {"x": state["x"], "y": state["y"] * factor}

    result = profile(step, {"x": X, "y": X}, lambda state: state["y"][:1])
    assert critical(result, "x") == {4}
    assert critical(result, "y") == {0}


def test_own_primitive_without_a_row_is_dense_and_a_sink() -> None:
    @primitive
    def blurred(x: Any) -> Any:
        return np.convolve(x, [0.25, 0.5, 0.25], "same")

    def of_second(x: Any) -> Any:
        return blurred(x[:4])[1]

    assert critical(profile_of(of_second)) == {0, 1, 2, 3}
    assert kinds(profile_of(of_second)) == {"unknown primitive blurred"}
    rules.add_rule(blurred, rules.Row(pulls.dense))
    try:
        assert kinds(profile_of(of_second)) == set()
    finally:
        del rules.RULES[blurred.fun]


def test_python_function_as_ufunc_is_no_elementwise_rule() -> None:
    halve = primitive(np.frompyfunc(lambda value: value / 2, 1, 1))
    result = profile_of(lambda x: halve(x[:2])[0])
    assert critical(result) == {0, 1}
    assert kinds(result) == {"unknown primitive <lambda> (vectorized)"}


def test_function_hidden_from_autograd_is_not_hidden_here() -> None:
    @notrace_primitive
    def count_positive(x: Any) -> int:
        return int(np.sum(x > 0))

    result = profile_of(lambda x: TABLE[count_positive(x[:2])])
    assert critical(result) == {0, 1}
    assert kinds(result) == {"untraced count_positive"}


# ---- how programs are written ----


def test_plain_numpy_functions_are_traced() -> None:
    def function(x: Any) -> Any:
        stacked = np.stack([np.concatenate([x[:2], x[4:5]]), np.roll(x[:3], 1)])
        return np.where(np.zeros((2, 3), bool), stacked, np.sum(np.sin(x[2:4])) + np.zeros_like(stacked))

    result = profile_of(function)
    assert critical(result) == {2, 3}
    assert result.sinks == ()


def test_operators_and_attributes_of_arrays() -> None:
    def function(x: Any) -> Any:
        bits = (x > 0.0) & ~(x[::-1] > 1.0) | (x == 2.0) ^ (x != 0.0)
        whole = (anp.argsort(x) // 2) << 1
        return [
            +x[0],
            x[1] % 2.0,
            7.0 // x[1:2],
            divmod(x[3], 2.0)[0],
            bits[:0],
            whole[:0],
            x.copy()[4:5].real,
        ]

    result = profile_of(function)
    assert critical(result) == {0, 1, 3, 4}
    assert result.sinks == ()


def test_methods_of_arrays() -> None:
    def function(x: Any) -> Any:
        grid = x.reshape(2, 3)
        moved = [grid.transpose(1, 0)[0], grid.transpose((1, 0))[0], grid.transpose()[0], grid.T[0]]
        return [*moved, grid.reshape((3, 2)).flatten()[:1], grid.dot(np.ones(3))[:0], 2 ** x[:1]]

    result = profile_of(function)
    assert critical(result) == {0, 3}
    assert result.sinks == ()


def test_integer_power_that_may_raise_is_a_sink() -> None:
    result = profile_of(lambda x: 2**x, np.array([1, 2]))
    assert kinds(result) == {"unknown primitive power"}


def test_copies_of_the_state_stay_traced() -> None:
    assert critical(profile_of(lambda x: copy.deepcopy({"a": copy.copy(x)})["a"][3:])) == {3, 4, 5}


def test_in_place_operators_on_fresh_arrays_and_numbers() -> None:
    def function(x: Any) -> Any:
        total = x[:3] * 2.0
        total += x[3]
        first = x[0]
        first -= 1.0
        return total, first

    assert critical(profile_of(function)) == {0, 1, 2, 3}


def test_iteration_and_python_sum() -> None:
    assert critical(profile_of(lambda x: sum(value * value for value in x[:3]))) == {0, 1, 2}


def test_step_that_takes_gradients() -> None:
    def energy(x: Any) -> Any:
        return anp.sum((x[1:4] - x[:3]) ** 2) + anp.dot(x[:2], x[:2])

    def step(state: dict[str, Any]) -> dict[str, Any]:
        return {"x": state["x"] - 0.1 * autograd.grad(energy)(state["x"])}

    result = profile(step, {"x": X}, lambda state: state["x"][:1])
    assert {0, 1, 2, 3} <= critical(result)


def test_value_that_leaves_inside_a_gradient_is_a_sink() -> None:
    def energy(y: Any) -> Any:
        factor = ORDINARY["array"](y)[0] + TABLE[[int(y[1])]][0] + float(y[2])
        return anp.sum(y * y) * factor

    # autograd's own arrays know none of these conversions, so there is no plain run to compare with.
    result = profile_of(lambda x: autograd.grad(energy)(x)[5], X, validate=None)
    assert critical(result) == ALL
    assert {"array", "int", "float"} <= kinds(result)


def test_step_may_change_the_dict_it_is_given() -> None:
    def step(state: dict[str, Any]) -> None:
        state["x"] = state["x"] * 2.0

    given_state = {"x": X.copy()}
    assert critical(profile(step, given_state, lambda state: state["x"][:2])) == {0, 1}
    assert np.array_equal(given_state["x"], X)


def test_output_may_be_any_nest() -> None:
    def output(state: dict[str, Any]) -> Any:
        x = state["x"]
        return {"a": [x[0], (x[1], None)], "b": np.array([x[2] * 1.0, 2.0], dtype=object), "c": "text"}

    assert critical(profile(unchanged, {"x": X}, output)) == {0, 1, 2}


def test_scalars_and_other_types_of_state() -> None:
    state = {
        "time": 0.5,
        "factor": np.float32(2.0),
        "unread": 1.0,
        "phase": 1.0 + 2.0j,
        "it": 3,
        "flag": True,
        "name": "run",
        "count": np.int64(4),
        "empty": np.zeros((0, 3)),
    }

    def step(state: dict[str, Any]) -> dict[str, Any]:
        return {**state, "time": state["time"] * state["factor"], "it": state["it"] + 1}

    result = profile(step, state, lambda state: [state["time"], state["phase"]])
    states = {name: result.map[name].states.reshape(-1).tolist() for name in result.map}
    assert states == {
        "time": [ElementState.CRITICAL],
        "factor": [ElementState.CRITICAL],
        "unread": [ElementState.UNUSED],
        "phase": [ElementState.CRITICAL],
        "it": [ElementState.CRITICAL],
        "flag": [ElementState.CRITICAL],
        "name": [ElementState.CRITICAL],
        "count": [ElementState.CRITICAL],
        "empty": [],
    }


def test_integer_and_boolean_arrays_are_analysed() -> None:
    state = {"index": np.array([2, 0, 1, 7]), "mask": np.array([True, False, True]), "x": X}

    def output(state: dict[str, Any]) -> Any:
        return anp.where(state["mask"][:2], state["x"][state["index"][:2]], 0.0)

    result = profile(unchanged, state, output)
    assert critical(result, "index") == {0, 1}
    assert critical(result, "mask") == {0, 1}
    # Another index would take another element: all of x counts.
    assert critical(result, "x") == ALL
    assert kinds(result) == {"argument of __getitem__"}


def test_memory_order_is_recorded() -> None:
    state = {"f": np.asfortranarray(np.ones((2, 3))), "c": np.ones((2, 3))}
    result = profile(unchanged, state, lambda state: state["f"])
    assert (result.map["f"].order, result.map["c"].order) == ("F", "C")


def test_checkpoint_after_some_steps() -> None:
    def step(state: dict[str, Any]) -> dict[str, Any]:
        return {"x": state["x"], "it": state["it"] + 1}

    def output(state: dict[str, Any]) -> Any:
        return state["x"][state["it"] % 6]

    assert critical(profile(step, {"x": X, "it": 0}, output, steps=1)) == {1}
    assert critical(profile(step, {"x": X, "it": 0}, output, at=3, steps=1)) == {4}


# ---- the recurrence ----


def shift(state: dict[str, Any]) -> dict[str, Any]:
    return {"x": anp.concatenate([state["x"][1:], state["x"][:1]])}


def test_masks_grow_with_the_number_of_steps() -> None:
    def first(state: dict[str, Any]) -> Any:
        return state["x"][:1]

    for steps in (1, 2, 4):
        result = profile(shift, {"x": X}, first, steps=steps)
        assert critical(result) == set(range(1, steps + 1))
        assert (result.steps_swept, result.stationary) == (steps, None)
    result = profile(shift, {"x": X}, first)
    assert critical(result) == ALL
    assert (result.steps_swept, result.stationary) == (6, True)


def test_fixed_point_of_one_sweep_when_the_step_mixes_nothing() -> None:
    result = profile(unchanged, {"x": X}, lambda state: state["x"][:2])
    assert (critical(result), result.steps_swept) == ({0, 1}, 1)


def test_scratch_that_every_step_overwrites_is_not_needed() -> None:
    def step(state: dict[str, Any]) -> dict[str, Any]:
        scratch = state["x"] ** 2
        return {"x": state["x"] - 0.1 * scratch, "scratch": scratch}

    result = profile(step, {"x": X, "scratch": X}, lambda state: state["scratch"])
    assert critical(result, "scratch") == set()
    assert set(result.map["scratch"].states.tolist()) == {ElementState.DEAD}


def test_variable_needed_only_two_steps_later() -> None:
    def step(state: dict[str, Any]) -> dict[str, Any]:
        return {"a": state["b"], "b": state["c"], "c": state["c"]}

    state = {"a": X, "b": X, "c": X}
    one = profile(step, state, lambda state: state["a"], steps=1)
    assert [critical(one, name) for name in "abc"] == [set(), ALL, set()]
    ever = profile(step, state, lambda state: state["a"])
    assert [critical(ever, name) for name in "abc"] == [set(), ALL, ALL]


def test_element_states() -> None:
    def step(state: dict[str, Any]) -> dict[str, Any]:
        x = state["x"]
        # 0 and 1 reach the output, 2 is computed with, 3 is overwritten, 4 is moved, 5 stays.
        unread = x[2] * 2.0
        return {"x": anp.concatenate([x[:2] * 2.0, anp.array([0.0]) + unread * 0.0, x[4:5], x[4:]])}

    result = profile(step, {"x": X}, lambda state: state["x"][:2])
    assert result.map["x"].states.tolist() == [
        ElementState.CRITICAL,
        ElementState.CRITICAL,
        ElementState.INERT,
        ElementState.DEAD,
        ElementState.INERT,
        ElementState.INERT,
    ]


def test_variable_that_nothing_takes_is_unused() -> None:
    def step(state: dict[str, Any]) -> dict[str, Any]:
        return {**state, "x": state["x"] * 2.0}

    result = profile(step, {"x": X, "spare": X}, lambda state: state["x"])
    assert set(result.map["spare"].states.tolist()) == {ElementState.UNUSED}


def test_ghost_cells_are_dead_when_exchanged_before_use() -> None:
    """A periodic stencil with two ghost cells on either side, filled at the start of every step."""

    def step(state: dict[str, Any]) -> dict[str, Any]:
        inner = state["u"][2:-2]
        u = anp.concatenate([inner[-2:], inner, inner[:2]])
        new = u[2:-2] + 0.1 * (u[:-4] + u[4:] - 2.0 * u[2:-2])
        return {"u": anp.concatenate([u[:2], new, u[-2:]])}

    u = np.random.default_rng(0).uniform(size=14)
    result = profile(step, {"u": u}, lambda state: state["u"][2:-2])
    assert critical(result, "u") == set(range(2, 12))
    assert set(result.map["u"].states[[0, 1, 12, 13]].tolist()) == {ElementState.DEAD}


def test_numbers_that_change_from_step_to_step_are_not_structure() -> None:
    def step(state: dict[str, Any]) -> dict[str, Any]:
        return {"x": state["x"] * state["it"] + np.arange(6) * state["it"], "it": state["it"] + 1}

    assert profile(step, {"x": X, "it": 1}, lambda state: state["x"][:1]).stationary is True


def test_counter_that_steers_an_axis_is_structure() -> None:
    def step(state: dict[str, Any]) -> dict[str, Any]:
        rows = anp.concatenate([state["x"][:1], state["x"][1:]], axis=state["it"] % 2)
        return {"x": anp.reshape(rows, (2, 2)), "it": state["it"] + 1}

    result = profile(step, {"x": np.ones((2, 2)), "it": 0}, lambda state: state["x"])
    assert (result.stationary, result.period) == (False, 2)


# ---- random programs against brute force ----

UNARY: dict[str, Callable[[Any], Any]] = {
    "shift": lambda x: anp.concatenate([x[1:], x[:1]]),
    "half": lambda x: anp.concatenate([x[:2], anp.zeros(2)]),
    "masked": lambda x: anp.where(np.array([True, False, True, False]), x, 0.5),
    "relu": lambda x: anp.maximum(x, 0.2),
    "sum": lambda x: anp.cumsum(x),
    "sorted": lambda x: anp.sort(x),
    "fancy": lambda x: x[np.array([3, 3, 0, 1])],
    "first": lambda x: x[0] + anp.zeros(4),
    "branch": lambda x: x * 2.0 if x[3] > 0.4 else x,
    "picked": lambda x: x[anp.argmax(x[:2]) : anp.argmax(x[:2]) + 1] + anp.zeros(4),
    "zero": lambda x: x * 0.0,
    "gone": lambda x: anp.ones(4),
}
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "left": lambda x, y: x,
    "plus": lambda x, y: x + y,
    "times": lambda x, y: x * y,
    "joined": lambda x, y: anp.concatenate([x[:2], y[2:]]),
    "chosen": lambda x, y: anp.where(x > 0.3, x, y),
}
EXPRESSION = st.tuples(
    st.sampled_from(sorted(BINARY)), *[st.tuples(st.sampled_from(sorted(UNARY)), st.sampled_from("abc"))] * 2
)


def evaluate(expression: Any, state: dict[str, Any]) -> Any:
    binary, (left, first), (right, second) = expression
    return BINARY[binary](UNARY[left](state[first]), UNARY[right](state[second]))


@settings(deadline=None, max_examples=30)
@given(st.tuples(EXPRESSION, EXPRESSION, EXPRESSION), EXPRESSION, st.sampled_from([None, 1, 3]))
def test_no_uncritical_element_changes_the_output(updates: Any, result: Any, steps: int | None) -> None:
    """Any program made of these parts, run on with each uncritical element replaced."""

    def step(state: dict[str, Any]) -> dict[str, Any]:
        return {name: evaluate(update, state) for name, update in zip("abc", updates, strict=True)}

    def output(state: dict[str, Any]) -> Any:
        return evaluate(result, state)[1:3]

    def run(state: dict[str, Any]) -> list[bytes]:
        outputs = []
        for _ in range(5 if steps is None else steps):
            state = step(state)
            outputs.append(np.asarray(output(state)).tobytes())
        return outputs

    start = {name: np.array([0.3, 0.7, 0.1, 0.5]) + 0.01 * i for i, name in enumerate("abc")}
    try:
        found = profile(step, start, output, steps=steps)
    except ProfileError as error:
        # A branch or index came out differently in the second step: rightly refused.
        assert "changes from one step to the next" in str(error)
        return
    expected = run(start)
    for name in "abc":
        for place in np.flatnonzero(found.map[name].uncritical):
            for value in (0.0, -2.0, 1e3):
                changed = start[name].copy()
                changed[place] = value
                assert run({**start, name: changed}) == expected


# ---- what is refused ----


KEPT: list[Any] = []


def keep_outside(state: dict[str, Any]) -> dict[str, Any]:
    previous = KEPT[-1] if KEPT else 0.0
    KEPT.append(state["x"])
    return {"x": state["x"] + 0.0 * previous}


def draw(state: dict[str, Any]) -> dict[str, Any]:
    return {"x": state["x"] + np.random.random()}


REFUSED_STEPS: dict[Callable[[Any], Any], str] = {
    keep_outside: "kept outside the state",
    draw: "random numbers from outside the state",
    lambda state: {}: r"lacks \['x'\]",
    lambda state: {**state, "y": 1}: r"in addition \['y'\]",
    lambda state: [1]: "expected the next state as a dict",
    lambda state: {"x": state["x"][:3]}: r"changed the shape from \(6,\) to \(3,\)",
    lambda state: {"x": object()}: "expected an array or scalar, found a builtins.object",
}


@pytest.mark.parametrize("step", REFUSED_STEPS, ids=lambda step: step.__name__)
def test_refused_step(step: Callable[[Any], Any]) -> None:
    KEPT.clear()
    with pytest.raises(ProfileError, match=REFUSED_STEPS[step]):
        profile(step, {"x": X.copy()}, lambda state: state["x"])


@pytest.mark.parametrize(
    ("state", "words", "key"),
    [
        ([X], "must be a mapping", None),
        ({1: X}, "keys must be strings", "1"),
        ({"x": np.array([None])}, "array of dtype object", "x"),
        ({"rng": np.random.default_rng()}, "found a numpy.random", "rng"),
        ({"x": {"y": X}}, "found a builtins.dict", "x"),
    ],
)
def test_refused_state(state: Any, words: str, key: str | None) -> None:
    with pytest.raises(ProfileError, match=words) as raised:
        profile(unchanged, state, lambda state: 0.0)
    assert raised.value.key == key
    assert isinstance(raised.value, CritError)


def test_refused_output() -> None:
    class Holder:
        def __init__(self, x: Any) -> None:
            self.x = x

    with pytest.raises(ProfileError, match=r"output\['h'\] is a .*Holder"):
        profile_of(lambda x: {"h": Holder(x)})


@pytest.mark.parametrize(
    ("options", "key"),
    [({"steps": 0}, "steps"), ({"validate": "prayer"}, "validate"), ({"engine": "steam"}, "engine")],
)
def test_refused_options(options: dict[str, Any], key: str) -> None:
    with pytest.raises(ProfileError) as raised:
        profile_of(lambda x: x, **options)
    assert raised.value.key == key


def test_error_in_the_program_keeps_its_own_traceback_and_restores_autograd() -> None:
    mappings, top = dict(autograd.tracer.Box.type_mappings), autograd.tracer.trace_stack.top
    getval = autograd.tracer.getval

    def step(state: dict[str, Any]) -> dict[str, Any]:
        raise ZeroDivisionError("in the program")

    with pytest.raises(ZeroDivisionError, match="in the program") as raised:
        profile(step, {"x": X}, lambda state: state["x"])
    assert raised.traceback[-1].name == "step"
    assert autograd.tracer.Box.type_mappings == mappings
    assert autograd.tracer.trace_stack.top == top
    assert autograd.tracer.getval is getval
    assert autograd.grad(lambda x: anp.sum(x * x))(X).tolist() == (2 * X).tolist()


# ---- the map ----


def test_map_is_stored_with_provenance(tmp_path: Any) -> None:
    result = profile(shift, {"x": X}, lambda state: state["x"][:1], steps=2)
    result.map.save(tmp_path / "map.npz")
    stored = CriticalityMap.load(tmp_path / "map.npz")
    assert stored["x"].critical.tolist() == result.map["x"].critical.tolist()
    assert stored.provenance["engine"] == "dependence"
    assert stored.provenance["step"] == f"{__name__}.shift"
    assert (stored.provenance["steps"], stored.provenance["steps_swept"]) == (2, 2)


def test_garbage_is_collected_less_often_and_the_setting_is_put_back() -> None:
    before, seen = gc.get_threshold(), []

    def step(state: dict[str, Any]) -> dict[str, Any]:
        seen.append(gc.get_threshold()[0])
        return {"x": state["x"] * 2.0}

    profile(step, {"x": np.ones(3)}, lambda state: state["x"])
    assert min(seen) > before[0]
    assert gc.get_threshold() == before
    with pytest.raises(ProfileError):
        profile(step, {"x": np.ones(3)}, lambda state: object())
    assert gc.get_threshold() == before
