"""Gradients: every rule against finite differences, in-place programs too; and what `profile` makes of them."""

from __future__ import annotations

from collections.abc import Callable
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
from scr_critplugin.analysis.boxes import recording
from scr_critplugin.analysis.gradient import gradient
from scr_critplugin.analysis.program import Program, leaves
from scr_critplugin.criticality import CriticalityMap, ElementState
from scr_critplugin.errors import ProfileError

STEP = 1e-6


def cotangent_like(value: Any, generator: np.random.Generator) -> np.ndarray[Any, Any]:
    drawn = generator.standard_normal(np.shape(value))
    return drawn + 1j * generator.standard_normal(np.shape(value)) if np.iscomplexobj(value) else drawn


def is_float(value: Any) -> bool:
    return np.asarray(value).dtype.kind in "fc"


def along(cotangent: Any, value: Any) -> float:
    """The real number that `value` moves: real parts times real parts, imaginary ones with autograd's sign."""
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

    def total(changed: dict[str, Any]) -> float:
        result = function(**{name: np.copy(value) for name, value in changed.items()})
        return sum(
            along(cotangent, leaf)
            for (_, leaf), cotangent in zip(leaves(result), cotangents, strict=True)
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


@pytest.mark.parametrize("case", [*CASES, *UFUNC_CASES], ids=lambda case: case.label)
def test_gradient_is_right_or_its_end_is_named(case: Case) -> None:
    available(case)
    inputs = {f"x{i}": value for i, value in enumerate(case.inputs)}

    def function(**named: Any) -> Any:
        return case.function(*named.values())

    with np.errstate(all="ignore"):
        found, cotangents, ended = pulled(function, inputs)
        expected = by_differences(function, inputs, cotangents)
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


@settings(deadline=None, max_examples=80)
@given(st.lists(STATEMENT, min_size=1, max_size=6))
def test_gradient_of_any_in_place_program(statements: Any) -> None:
    function = output_of(program(statements))
    found, cotangents, ended = pulled(function, start())
    assert not ended.names
    expected = by_differences(function, start(), cotangents)
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-5, atol=1e-6, err_msg=name)
