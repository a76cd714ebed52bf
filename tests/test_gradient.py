"""Gradients: rules and programs against finite differences and autograd, and what `profile` makes of them."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import autograd.numpy as anp
import numpy as np
import pytest
from autograd.core import make_vjp as autograd_vjp
from autograd.tracer import getval, isbox
from hypothesis import given, settings
from hypothesis import strategies as st
from test_dependence_rules import CASES, UFUNC_CASES, Case, available
from test_inplace import CONSTRUCTS, STATEMENT, N, State, copied, program, start, with_where

from scr_critplugin.analysis import profile
from scr_critplugin.analysis.adjoints import Ended, pull_back
from scr_critplugin.analysis.program import Program, leaves
from scr_critplugin.analysis.recording import recording
from scr_critplugin.analysis.replay import AT_ONCE, last_to_first
from scr_critplugin.analysis.sparse_products import sparse_matmul
from scr_critplugin.criticality import CriticalityMap, ElementState
from scr_critplugin.errors import ProfileError

STEP = 1e-6


def cotangent_like(value: Any, generator: np.random.Generator) -> Any:
    if isinstance(value, (list, tuple)):
        return [cotangent_like(member, generator) for member in value]
    drawn = generator.standard_normal(np.shape(value))
    return drawn + 1j * generator.standard_normal(np.shape(value)) if np.iscomplexobj(value) else drawn


def is_float(value: Any) -> bool:
    return np.asarray(value).dtype.kind in "fc"


def along(cotangent: Any, value: Any) -> float:
    """The real number that a result `value` gives, in autograd's convention for complex numbers."""
    return float(np.sum(np.real(cotangent * np.asarray(value))))


def pulled(
    function: Callable[..., Any], inputs: dict[str, Any]
) -> tuple[dict[str, np.ndarray[Any, Any]], list[Any], Ended]:
    """Gradients of a function of named arrays, the cotangents of its results, and where derivatives ended."""
    generator = np.random.default_rng(5)
    ended = Ended()
    copies = {name: np.copy(value) for name, value in inputs.items()}
    with recording(function, values=True) as (tape, box):
        found = [leaf for _, leaf in leaves(function(**{name: box(name, copies[name]) for name in copies}))]
        nodes = [leaf._node if isbox(leaf) and not leaf._node.constant else None for leaf in found]
        values = [getval(leaf) for leaf in found]
    cotangents = [cotangent_like(value, generator) for value in values]
    seeds = [(node, each) for node, each in zip(nodes, cotangents, strict=True) if node is not None]
    return dict(pull_back(tape, seeds, ended)), cotangents, ended


def by_differences(
    function: Callable[..., Any], inputs: dict[str, Any], cotangents: list[Any]
) -> dict[str, np.ndarray[Any, Any]]:
    """The same gradients by central differences."""
    flat = [cotangent for _, cotangent in leaves(cotangents)]

    def total(changed: dict[str, Any]) -> float:
        result = function(**{name: np.copy(value) for name, value in changed.items()})
        return sum(
            along(cotangent, leaf)
            for (_, leaf), cotangent in zip(leaves(result), flat, strict=True)
            if is_float(leaf)
        )

    found = {}
    for name, value in inputs.items():
        if not is_float(value):
            continue
        gradient_of_it = np.zeros(np.shape(value), np.result_type(value, float))
        for place in np.ndindex(np.shape(value)):
            for part, direction in ((1.0, 1.0), *(((1j, -1j),) if np.iscomplexobj(value) else ())):
                ends = []
                for sign in (1, -1):
                    changed = np.array(value)
                    changed[place] += sign * STEP * part
                    ends.append(total({**inputs, name: changed}))
                gradient_of_it[place] += direction * (ends[0] - ends[1]) / (2 * STEP)
        found[name] = gradient_of_it
    return found


# ---- every primitive ----


NO_DERIVATIVE = (
    "all any argmax argmin argsort argpartition count_nonzero round around fix floor ceil rint trunc sign "
    "iscomplex isreal isneginf isposinf isclose allclose array_equal array_equiv isin isfinite isinf isnan "
    "signbit greater greater_equal less less_equal equal not_equal logical_and logical_or logical_not "
    "logical_xor floor_divide frexp nextafter spacing heaviside "
)
NOT_WRITTEN_DOWN = (
    "modf divmod container_take cumprod nancumprod nanprod median nanmedian percentile quantile "
    "nanpercentile nanquantile convolve correlate cov corrcoef interp vander i0 hfft ihfft full sort_complex "
    "ldexp betainc gammainc gammaincc iv ive jv yn cumulative_prod cross searchsorted digitize bincount "
    "histogram svdvals eigvals eigvalsh matrix_norm matrix_rank cond matrix_power lstsq tensorinv "
    "tensorsolve qr eig svd "
)
FOR_SOME_ARGUMENTS = "rfft rfft2 rfftn diff einsum gradient sort partition"
ENDS = set((NO_DERIVATIVE + NOT_WRITTEN_DOWN + FOR_SOME_ARGUMENTS).split())
"""Functions whose derivatives may end. All others must be right."""


def off_the_kinks(case: Case) -> dict[str, np.ndarray[Any, Any]]:
    """The inputs, so that no function of several of them is tried where they are equal."""
    inputs = {f"x{i}": value for i, value in enumerate(case.inputs)}
    return {k: v * (1 - i / 37) if is_float(v) else v for i, (k, v) in enumerate(inputs.items())}


# There are no finite differences of single precision: see test_gradient_of_a_conversion.
TRIED = [case for case in [*CASES, *UFUNC_CASES] if case.label != "astype"]


@pytest.mark.parametrize("case", TRIED, ids=lambda case: case.label)
def test_gradient_is_right_or_its_end_is_named(case: Case) -> None:
    inputs = off_the_kinks(case)

    def function(**named: Any) -> Any:
        return case.function(*named.values())

    with np.errstate(all="ignore"):
        found, cotangents, ended = available(case, lambda _: pulled(function, inputs))
        expected = by_differences(function, inputs, cotangents)
    assert ended.names <= ENDS
    if ended.names:
        return
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=2e-6, atol=2e-6, err_msg=name)


def test_gradient_of_a_conversion() -> None:
    def function(x: Any) -> Any:
        return (x * 3.0).astype(np.float32)

    found, (cotangent,), ended = pulled(function, {"x": np.arange(4.0)})
    np.testing.assert_allclose(found["x"], 3.0 * cotangent, rtol=1e-6)
    assert not ended.names


# ---- the same cotangents, the same gradients as autograd's own ----


def flow(x: Any, y: Any) -> Any:
    gradient_of_x = (x[2:, 1:-1] - x[:-2, 1:-1]) / (1.0 + y[1:-1, 1:-1] ** 2)
    inside = anp.sin(gradient_of_x) * anp.sqrt(y[1:-1, 1:-1])
    padded = anp.concatenate([x[:1, 1:-1], inside, x[-1:, 1:-1] * y[0, 0]])
    return anp.exp(-padded) @ y[:3, :2], anp.max(padded, axis=0), anp.sum(y, axis=1)


def spectrum(x: Any, y: Any) -> Any:
    transformed = anp.fft.fftn(x + 1j * y)
    damped = transformed * anp.exp(-np.arange(5.0))[:, None]
    return anp.real(anp.fft.ifftn(damped)), anp.abs(damped), damped[1:3] * anp.conj(damped[:2])


def picked(x: Any, y: Any) -> Any:
    rows, columns = np.array([[0, 3], [3, 3]]), np.array([1, 1])
    twice = x[rows, columns] * y[[0, 0, 2, 4]][:2, :2]
    return twice, x[x.shape[0] // 2], y[np.eye(5, dtype=bool)], anp.where(np.eye(5) > 0, x, y * x)


@pytest.mark.parametrize("function", [flow, spectrum, picked], ids=lambda function: function.__name__)
def test_gradients_of_functional_programs_are_those_of_autograd(function: Callable[..., Any]) -> None:
    inputs = {"x": np.random.default_rng(1).uniform(0.5, 2.0, (5, 5)), "y": np.linspace(0.1, 2.0, 25)}
    inputs["y"] = inputs["y"].reshape(5, 5)
    found, cotangents, ended = pulled(function, inputs)
    assert not ended.names

    def scalar(both: tuple[Any, Any]) -> Any:
        results = function(*both)
        return sum(anp.sum(anp.real(c * r)) for c, r in zip(cotangents, results, strict=True))

    vjp, _ = autograd_vjp(scalar, (inputs["x"], inputs["y"]))
    expected = vjp(1.0)
    np.testing.assert_allclose(found["x"], expected[0], rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(found["y"], expected[1], rtol=1e-12, atol=1e-13)


# ---- programs that write into arrays ----


def powers(s: State) -> None:
    s["a"] **= 3
    s["a"] *= s["a"]
    np.exp(s["b"], out=s["b"])
    s["b"][1:] /= s["b"][:-1]


def kept_before_the_write(s: State) -> None:
    product = s["a"] * s["b"]
    ratio = s["c"] / product
    s["b"][:] = 7.0
    product *= ratio
    s["c"][:] = np.sin(s["a"]) * product
    s["a"][::2] = 0.5


BUFFER = np.linspace(1.0, 2.0, N)


def constants_that_change(s: State) -> None:
    factor = BUFFER.view()
    s["a"] *= factor
    scaled = s["b"] * factor
    factor += 1.0
    s["b"][:] = scaled * factor
    factor -= 1.0


def masked(s: State) -> None:
    chosen = np.arange(N) > 2
    np.divide(1.0, s["a"] - s["a"][0], out=s["b"], where=np.arange(N) > 0)
    np.multiply(s["a"], s["c"], out=s["c"], where=chosen)
    np.copyto(s["a"], s["b"][1], where=chosen)


def scattered(s: State) -> None:
    places = np.array([[1, 1], [4, 5]])
    np.add.at(s["a"], places, (s["b"][:2] * s["b"][1:3])[None])
    np.subtract.at(s["c"], places, s["a"][2])
    s["b"][places] = s["c"][:2]
    s["a"][np.array([3, 3])] *= s["c"][:2]


def put_in_place(s: State) -> None:
    np.fill_diagonal(s["a"][:4].reshape(2, 2), 0.25)
    np.put(s["b"], [1, 4], [2.0, 3.0])
    np.putmask(s["c"], np.arange(N) % 2 == 0, np.arange(N) / 7)
    s["a"] *= s["b"] * s["c"]


def with_complex_parts(s: State) -> None:
    z = s["a"] + 1j * s["b"]
    z.real[1:3] = s["c"][:2] * s["c"][1:3]
    z.imag[[0, 4]] += s["a"][1:3]
    z *= z
    part = z.imag
    z[2] = s["b"][0]
    s["a"][:] = z.real
    s["b"][:] = part


def overlapping_windows(s: State) -> None:
    windows = np.lib.stride_tricks.sliding_window_view(np.arange(N), 3)
    s["a"][:4] = np.sum(s["b"][windows] * s["c"][windows], axis=1)


IN_PLACE = [
    *CONSTRUCTS, with_where, powers, kept_before_the_write, constants_that_change, masked, scattered,
    put_in_place, with_complex_parts, overlapping_windows,
]  # fmt: skip


def output_of(step: Callable[[State], Any]) -> Callable[..., Any]:
    def output(**state: Any) -> Any:
        changed = step(state)
        return {name: value * value for name, value in (state if changed is None else changed).items()}

    return output


@pytest.mark.parametrize("step", IN_PLACE, ids=lambda step: step.__name__)
def test_gradient_of_an_in_place_program(step: Callable[[State], None]) -> None:
    function = output_of(step)
    found, cotangents, ended = pulled(function, start())
    assert not ended.names
    expected = by_differences(function, start(), cotangents)
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-6, atol=1e-7, err_msg=name)


@settings(deadline=None, max_examples=40)
@given(st.lists(STATEMENT, min_size=1, max_size=6))
def test_gradient_of_any_in_place_program(statements: Any) -> None:
    function = output_of(program(statements))
    found, cotangents, ended = pulled(function, start())
    assert not ended.names
    expected = by_differences(function, start(), cotangents)
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-5, atol=1e-6, err_msg=name)


# ---- profile ----


def relu_and_product(s: State) -> State:
    return {"x": np.maximum(s["x"], 0.0), "y": s["y"] * 1.0, "z": s["z"] * s["y"], "k": s["k"] + 1}


def product_state() -> State:
    return {
        "x": np.array([-1.0, 2.0, 3.0]),
        "y": np.array([0.0, 1.0, 0.0]),
        "z": np.array([5.0, 0.0, 7.0]),
        "k": np.arange(3),
    }


def everything_of(state: State) -> Any:
    return [state["x"], state["z"]]


def test_magnitudes_are_derivatives() -> None:
    def step(s: State) -> State:
        return {"x": s["x"] * 1.0, "n": s["n"]}

    def output(s: State) -> Any:
        return np.sum(s["x"] ** 3) + 0.0 * s["n"][0]

    state = {"x": np.array([-1.0, 2.0, 0.5, 0.0]), "n": np.arange(2)}
    found = profile(step, state, output, steps=1, engine="gradient").gradient
    assert found is not None
    magnitudes = found.magnitudes["x"]
    assert magnitudes.dtype == np.float32
    np.testing.assert_allclose(magnitudes / magnitudes[0], state["x"] ** 2, rtol=1e-6)
    assert set(found.magnitudes) == {"x"}
    assert (found.draws, found.steps) == (3, 1)


def test_zeros_are_counted_and_decide_nothing() -> None:
    plain = profile(relu_and_product, product_state(), everything_of)
    found = profile(relu_and_product, product_state(), everything_of, engine="gradient")
    assert found.map.compare(plain.map).identical
    assert found.gradient is not None
    assert found.gradient.zero == {"x": 1, "y": 1, "z": 2}
    assert found.map["z"].magnitudes is not None
    assert (found.map["z"].magnitudes == 0).tolist() == [True, False, True]
    assert found.map["k"].magnitudes is None
    assert plain.gradient is None
    assert all(variable.magnitudes is None for variable in plain.map.values())


def test_zeros_shrink_the_mask_by_name_only_and_the_map_says_so() -> None:
    found = profile(
        relu_and_product, product_state(), everything_of, engine="gradient", mask="gradient", validate=None
    )
    states = {name: variable.states.tolist() for name, variable in found.map.items()}
    critical, inert = ElementState.CRITICAL, ElementState.INERT
    assert states["x"] == [inert, critical, critical]
    assert states["y"] == [critical, inert, critical]
    assert states["z"] == [inert, critical, inert]
    assert found.map.provenance["mask"] == "gradient"
    assert found.map.provenance["engine"] == "gradient"
    assert found.map.provenance["gradient"]["critical_with_zero_gradient"] == {"x": 1, "y": 1, "z": 2}
    kept = profile(relu_and_product, product_state(), everything_of, engine="gradient", validate=None)
    assert kept.map.provenance["mask"] == "structure"


def test_poison_has_the_last_word_on_a_shrunk_mask() -> None:
    try:
        found = profile(
            relu_and_product, product_state(), everything_of, engine="gradient", mask="gradient", steps=1
        )
    except ProfileError:
        return
    # NaN times zero is NaN: the zero was an accident, and the elements were widened back.
    assert found.map["z"].critical.all()


def test_integers_and_booleans_are_untouched_by_the_gradient_mask() -> None:
    def step(s: State) -> State:
        return {"n": s["n"] + 1, "flags": s["flags"], "x": s["x"] * 0.0}

    def output(s: State) -> Any:
        return [s["n"] * 1.5, s["flags"] * 2.0, s["x"]]

    state = {"n": np.arange(3), "flags": np.array([True, False]), "x": np.ones(2)}
    found = profile(step, state, output, engine="gradient", mask="gradient", steps=1, validate=None)
    assert found.map["n"].critical.all()
    assert found.map["flags"].critical.all()
    assert not found.map["x"].critical.any()
    assert found.gradient is not None
    assert found.gradient.without_rule == ()


def test_what_has_no_derivative_is_named_and_stays_critical() -> None:
    def step(s: State) -> State:
        positive = np.where(s["a"] > 0.5, s["b"], 2.0)
        return {"a": s["a"] * 0.0, "b": positive, "c": np.floor(s["c"]), "d": s["d"] * 0.0}

    def output(s: State) -> Any:
        return list(s.values())

    state = {name: np.linspace(0.1, 0.9, 4) for name in "abcd"}
    found = profile(step, state, output, engine="gradient", mask="gradient", steps=1, validate=None)
    assert found.gradient is not None
    assert found.gradient.without_rule == ("floor", "greater")
    for name in "ac":
        assert (found.gradient.magnitudes[name] == 0).all()
        assert found.gradient.unknown[name].all()
        assert found.map[name].critical.all()
    assert not found.map["d"].critical.any()
    assert found.map["b"].critical.tolist() == [False, False, True, True]
    assert found.gradient.zero == {"a": 0, "b": 2, "c": 0, "d": 4}


def test_reads_and_writes_at_places_that_the_state_tells() -> None:
    def step(s: State) -> State:
        at = s["k"]
        work = s["a"] * 1.0
        work[at] = s["b"][:2]
        np.add.at(work, at + 1, s["b"][2:])
        taken = s["a"][(at,)] * s["a"][at]
        return {"a": work, "b": np.concatenate([taken, s["b"][s["b"] > 0.25][:2]]), "k": at}

    state = {"a": np.linspace(0.3, 1.9, 6), "b": np.linspace(0.2, 0.7, 4), "k": np.array([3, 0])}

    def function(a: Any, b: Any) -> Any:
        return list(step({"a": a, "b": b, "k": state["k"]}).values())[:2]

    found = profile(step, state, lambda s: [s["a"], s["b"]], steps=1, engine="gradient").gradient
    assert found is not None
    assert "__getitem__" not in found.without_rule
    floats = {name: state[name] for name in "ab"}
    _, cotangents, _ = pulled(function, floats)
    expected = by_differences(function, floats, cotangents)
    for name in floats:
        assert np.array_equal(found.magnitudes[name] != 0, expected[name] != 0)


def test_what_steers_stays_critical_under_the_gradient_mask() -> None:
    def step(s: State) -> State:
        return {"x": s["x"] * (2.0 if s["limit"][0] > 1.0 else 3.0), "limit": s["limit"] * 1.0}

    def output(s: State) -> Any:
        return s["x"]

    state = {"x": np.ones(2), "limit": np.array([0.5, 0.7])}
    found = profile(step, state, output, engine="gradient", mask="gradient", steps=1, validate=None)
    assert found.gradient is not None
    assert (found.gradient.magnitudes["limit"] == 0).all()
    assert found.map["limit"].critical.tolist() == [True, False]


def test_something_without_a_rule_that_is_not_needed_hides_nothing() -> None:
    def step(s: State) -> State:
        return {"x": s["x"] * 0.0, "log": np.floor(s["x"])}

    def output(s: State) -> Any:
        return s["x"]

    found = profile(
        step,
        {"x": np.ones(2), "log": np.ones(2)},
        output,
        engine="gradient",
        mask="gradient",
        steps=1,
        validate=None,
    )
    assert found.gradient is not None
    assert not found.gradient.unknown["x"].any()
    assert not found.map["x"].critical.any()


@pytest.mark.parametrize("steps", [1, 2, 3, 5])
def test_all_steps_to_the_output_count(steps: int) -> None:
    def step(s: State) -> None:
        s["belt"][:-1] = 2.0 * s["belt"][1:]
        s["belt"][-1] = 0.0

    def output(s: State) -> Any:
        return s["belt"][0]

    found = profile(step, {"belt": np.ones(8)}, output, steps=steps, engine="gradient").gradient
    assert found is not None
    assert found.steps == steps
    assert np.flatnonzero(found.magnitudes["belt"]).tolist() == list(range(1, steps + 1))


def test_a_run_of_any_length_is_looked_at_until_the_masks_stand() -> None:
    def step(s: State) -> State:
        return {"belt": np.concatenate([2.0 * s["belt"][1:], np.zeros(1)])}

    def output(s: State) -> Any:
        return s["belt"][0]

    found = profile(step, {"belt": np.ones(8)}, output, engine="gradient")
    assert found.gradient is not None
    assert found.gradient.steps == found.steps_swept
    assert np.array_equal(found.gradient.magnitudes["belt"] != 0, found.map["belt"].critical)


@given(st.integers(1, 120))
def test_states_come_backwards_and_few_are_held(steps: int) -> None:
    made: list[weakref.ref[Any]] = []

    def step(s: State) -> State:
        after = s["x"] + 1.0
        made.append(weakref.ref(after))
        return {"x": after}

    program = Program(step, step)
    start = {"x": np.zeros(1)}
    found = []
    for number, before, after in last_to_first(program, (start, program.advance(start)), steps):
        found.append((number, float(before["x"][0]), float(after["x"][0])))
        assert sum(array() is not None for array in made) <= max(2 * math.isqrt(steps) + 4, AT_ONCE + 1)
    assert found == [(n + 1, float(n), float(n + 1)) for n in reversed(range(steps))]
    assert len(made) <= 2 * steps


def test_complex_and_single_precision_variables() -> None:
    def step(s: State) -> State:
        return {"z": s["z"] * (3.0 + 4.0j), "f": np.float32(2.0) * s["f"]}

    def output(s: State) -> Any:
        return [np.sum(s["z"]), np.sum(s["f"])]

    state = {"z": np.array([1.0 + 1.0j, 0.0, -2.0j]), "f": np.ones(3, np.float32)}
    found = profile(step, state, output, steps=1, engine="gradient").gradient
    assert found is not None
    for name in ("z", "f"):
        assert found.magnitudes[name].dtype == np.float32
        np.testing.assert_allclose(found.magnitudes[name], found.magnitudes[name][0])
        assert found.magnitudes[name][0] > 0


def test_the_seed_decides_the_numbers_and_nothing_else_changes() -> None:
    state = product_state()
    before = copied(state)

    def magnitudes(seed: int) -> Any:
        found = profile(relu_and_product, state, everything_of, engine="gradient", seed=seed)
        assert found.gradient is not None
        assert found.gradient.seed == seed
        return found.gradient.magnitudes

    one, again, other = magnitudes(1), magnitudes(1), magnitudes(2)
    assert all(np.array_equal(one[name], again[name]) for name in one)
    assert not np.array_equal(one["x"], other["x"])
    assert all(np.array_equal(one[name] == 0, other[name] == 0) for name in one)
    assert all(np.array_equal(state[name], before[name]) for name in state)


def test_an_undefined_derivative_is_no_zero() -> None:
    def step(s: State) -> State:
        return {"x": np.sqrt(np.abs(s["x"]))}

    def output(s: State) -> Any:
        return s["x"]

    with np.errstate(all="ignore"):
        found = profile(
            step, {"x": np.array([0.0, 4.0])}, output, engine="gradient", mask="gradient", steps=1
        )
    assert found.map["x"].critical.all()
    assert found.map["x"].magnitudes is not None
    assert not (found.map["x"].magnitudes == 0).any()


def test_several_inputs_and_points_have_the_largest_magnitudes() -> None:
    first, second = product_state(), product_state()
    second["y"][0] = 4.0
    singles = [
        profile(relu_and_product, state, everything_of, engine="gradient") for state in (first, second)
    ]
    found = profile(relu_and_product, [first, second], everything_of, engine="gradient")
    assert found.gradient is not None
    gradients = [each.gradient for each in singles if each.gradient is not None]
    for name in "xyz":
        expected = np.maximum(gradients[0].magnitudes[name], gradients[1].magnitudes[name])
        assert np.array_equal(found.gradient.magnitudes[name], expected)
        assert np.array_equal(found.map[name].magnitudes, expected)
    assert found.gradient.zero == {"x": 1, "y": 1, "z": 1}
    shrunk = profile(
        relu_and_product,
        [first, second],
        everything_of,
        at=[0, 1],
        engine="gradient",
        mask="gradient",
        validate=None,
    )
    assert shrunk.map["z"].critical.tolist() == [True, True, False]


def test_outputs_that_are_sequences_and_sparse_products() -> None:
    sparse = pytest.importorskip("scipy.sparse", reason="products need SciPy: pip install scipy")
    matrix = sparse.csr_matrix(np.array([[2.0, 0.0, 0.0], [0.0, 0.0, 3.0]]))

    def step(s: State) -> State:
        return {"x": s["x"] * 1.0, "a": s["a"] + 0.0}

    def output(s: State) -> Any:
        return [sparse_matmul(matrix, s["x"]), np.linalg.eigh(s["a"])]

    state = {"x": np.ones(3), "a": np.array([[2.0, 9.0], [0.5, 1.0]])}
    found = profile(step, state, output, steps=1, engine="gradient").gradient
    assert found is not None
    assert (found.magnitudes["x"] != 0).tolist() == [True, False, True]
    assert (found.magnitudes["a"] != 0).tolist() == [[True, False], [True, True]]


def test_a_map_with_magnitudes_is_saved(tmp_path: Path) -> None:
    found = profile(relu_and_product, product_state(), everything_of, engine="gradient")
    found.map.save(tmp_path / "m")
    loaded = CriticalityMap.load(tmp_path / "m")
    assert loaded == found.map
    assert loaded["z"].magnitudes is not None


def test_no_values_are_kept_without_need() -> None:
    with recording(relu_and_product) as (tape, box):
        relu_and_product({name: box(name, value) for name, value in product_state().items()})
    assert all(node.saved is None for node in tape.nodes)


@pytest.mark.parametrize(
    ("options", "key"),
    [
        ({"engine": "magic"}, "engine"),
        ({"engine": "gradient", "mask": "magic"}, "mask"),
        ({"mask": "gradient"}, "mask"),
    ],
)
def test_unknown_engines_and_masks_are_refused(options: dict[str, Any], key: str) -> None:
    with pytest.raises(ProfileError) as caught:
        profile(relu_and_product, product_state(), everything_of, **options)
    assert caught.value.key == key
