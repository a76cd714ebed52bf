"""Numbers that tell where they decide (`analysis.counters`); otherwise they are what they stand for."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scr_critplugin.analysis.counters import counting, uncounted

BINARY = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod,
    operator.and_, operator.or_, operator.xor, operator.lt, operator.le, operator.eq, operator.ne,
    operator.gt, operator.ge, divmod,
]  # fmt: skip
UNARY = [
    operator.neg,
    operator.pos,
    abs,
    int,
    float,
    bool,
    str,
    repr,
    hash,
    round,
    math.floor,
    math.ceil,
    operator.invert,
]


def outcome(function: Callable[..., Any], *arguments: Any) -> Any:
    try:
        result = function(*arguments)
    except (TypeError, ZeroDivisionError) as error:
        return type(error)
    return tuple(map(uncounted, result)) if isinstance(result, tuple) else uncounted(result)


def same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and one == other


@given(st.integers(-9, 9), st.one_of(st.integers(-9, 9), st.floats(-9, 9)), st.sampled_from(BINARY))
def test_arithmetic_is_that_of_the_number(value: int, other: float, function: Callable[..., Any]) -> None:
    number = counting(value, lambda _: None)
    assert same(outcome(function, number, other), outcome(function, value, other))
    assert same(outcome(function, other, number), outcome(function, other, value))
    real = number * 0.5
    assert same(outcome(function, real, other), outcome(function, value * 0.5, other))


@given(st.integers(-9, 9), st.sampled_from(UNARY))
def test_functions_of_one_number(value: int, function: Callable[..., Any]) -> None:
    number = counting(value, lambda _: None)
    assert same(outcome(function, number), outcome(function, value))
    assert same(outcome(function, number * 0.5), outcome(function, value * 0.5))


@pytest.mark.parametrize("dtype", ["i1", "f2", "f4", "f8", "c8"])
def test_arrays_keep_their_dtype(dtype: str) -> None:
    array, number = np.ones(3, dtype), counting(3, lambda _: None)
    for function in (
        lambda a, n: a * n, lambda a, n: n * a, lambda a, n: a[0] + n, lambda a, n: np.where(a > 0, n, a),
        lambda a, n: np.maximum(a, n), lambda a, n: np.full_like(a, n),
        lambda a, n: np.add(a, n, out=a.copy()), lambda a, n: np.concatenate([a, [n]]), lambda a, n: a[: n - 1], lambda a, n: np.zeros(n),
    ):  # fmt: skip
        assert function(array, number).dtype == function(array, 3).dtype
        assert np.array_equal(function(array, number), function(array, 3))


def test_each_decision_is_noted_with_its_outcome() -> None:
    noted: list[bool] = []
    number = counting(20, noted.append)
    assert number % 10 == 0
    assert not (number // 3 > 6)
    assert not (2 * number * 0.25 < 10.0)
    assert number == np.int64(20)
    if number - 20:
        raise AssertionError
    assert {20: "key"}[number] == "key" and list(range(number))[-1] == 19 and f"{number:03d}" == "020"
    assert noted[:5] == [True, False, False, True, False]


def test_other_things_are_left_alone() -> None:
    for value in (True, "text", None, np.int64(3), np.ones(2)):
        assert counting(value, lambda _: None) is value
        assert uncounted(value) is value
