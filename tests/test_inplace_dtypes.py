"""`profile` of in-place programs over arrays of every dtype, order and shape; against brute force."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from brute_force import Function as Step
from brute_force import State, critical, truth

from scr_critplugin.analysis import profile
from scr_critplugin.errors import ProfileError

RNG = np.random.default_rng(5)
N = 6


def others(value: Any) -> Iterable[Any]:
    """What to put in an element's place."""
    return (value * 3 + 1, 0, 1, value * 0 + 5)


def single(s: State) -> None:
    s["x"] += s["y"] * 0.5
    s["x"][::2] *= np.float64(2.0)
    s["y"][1:] = s["x"].astype(np.float64)[:-1]


def of_complex(s: State) -> None:
    s["x"].real[1:] = s["y"].imag[1:]
    s["x"] *= 1j
    s["y"][:] = np.conj(s["x"])
    s["y"].imag[...] = 0.0


def complex_as_floats(s: State) -> None:
    parts = s["x"].view(np.float32 if s["x"].dtype == np.complex64 else np.float64)
    parts[2:6] = parts[:4]
    s["y"][:2] = parts.reshape(-1, 2)[:2, 0]


def integers(s: State) -> None:
    s["x"] //= 2
    s["x"][1:] += s["y"][:-1]
    s["y"] <<= 1
    s["y"] &= 7
    np.bitwise_xor(s["x"], 3, out=s["x"])


def integer_bits(s: State) -> None:
    bits = s["x"].view(np.uint8).reshape(N, -1)
    s["y"][:3] = bits[:3, 0]
    bits[4] = 0


def booleans(s: State) -> None:
    s["x"] |= s["y"]
    s["x"][1:] &= ~s["x"][:-1]
    np.logical_not(s["y"], out=s["y"])
    s["y"][::2] = s["x"][::2]


def float_bits(s: State) -> None:
    bits = s["x"].view(np.int64)
    bits[1:3] ^= 1
    s["y"][:2] = bits[:2]


def comparison(s: State) -> None:
    np.greater(s["x"], 1, out=s["y"].view() if s["y"].dtype == bool else s["y"])


PAIRS: list[tuple[Step, str, bool]] = [
    (single, "f4", True),
    (single, "f8", True),
    (of_complex, "c8", False),
    (of_complex, "c16", False),
    (complex_as_floats, "c8", False),
    (complex_as_floats, "c16", False),
    (integers, "i4", False),
    (integers, "u2", False),
    (integers, "i8", False),
    (integer_bits, "i4", False),
    (booleans, "?", False),
    (float_bits, "f8", True),
    (comparison, "f8", False),
    (comparison, "i2", False),
]


@pytest.mark.parametrize(
    ("step", "dtype", "exact"), PAIRS, ids=lambda value: getattr(value, "__name__", str(value))
)
def test_dtype(step: Step, dtype: str, exact: bool) -> None:
    values = RNG.integers(1, 9, (2, N))
    state = {name: row.astype(dtype) for name, row in zip("xy", values, strict=True)}
    for name in "xy":

        def output(s: State, name: str = name) -> Any:
            return s[name][1:4]

        found, expected = critical(step, state, output, steps=1), truth(step, state, output, others=others)
        assert all(expected[variable] <= found[variable] for variable in "xy"), name
        if exact:
            assert found == expected
        assert found["x"] != set(range(N)) or found["y"] != set(range(N))


def test_arrays_without_axes() -> None:
    def step(s: State) -> None:
        s["t"] += s["dt"]
        s["t"][...] = s["t"] * 2.0
        s["x"][:] = s["t"] + s["x"][0]

    state = {"t": np.array(1.0), "dt": np.array(0.5), "x": np.ones(3), "unused": np.array(2.0)}

    def output(s: State) -> Any:
        return s["x"]

    assert critical(step, state, output, steps=1) == {"t": {0}, "dt": {0}, "x": {0}, "unused": set()}


def test_arrays_without_elements() -> None:
    def step(s: State) -> None:
        s["e"] += 1.0
        s["e"][:] = 2.0
        s["e"].fill(1.0)
        np.add(s["e"], s["e"], out=s["e"])
        s["x"][:0] = s["e"][:, 0]
        s["x"][1] += s["e"].sum() + np.zeros((0, 3)).sum()

    state = {"e": np.zeros((0, 3)), "x": np.ones(3)}
    assert critical(step, state, lambda s: s["x"][1:], steps=1)["x"] == {1, 2}


@pytest.mark.parametrize("order", "CF")
def test_memory_order(order: Any) -> None:
    def step(s: State) -> None:
        s["x"][:, 0] = s["y"][0, :2]
        s["x"].T[1] += s["y"].ravel()[2:4]
        s["x"].ravel(order="K")[0] = 3.0
        s["y"][:] = s["x"].T @ np.ones((2, 3))[:, :3] if s["x"].shape == (2, 2) else s["y"]

    x = np.asarray(RNG.random((2, 3)), order=order)
    y = np.asarray(RNG.random((2, 3)), order=order)

    def output(s: State) -> Any:
        return [s["x"], s["y"][1]]

    assert critical(step, {"x": x, "y": y}, output, steps=1) == truth(
        step, {"x": x, "y": y}, output, others=others
    )


def test_reversed_and_strided_state() -> None:
    base, other = np.arange(12.0), np.arange(12.0)

    def step(s: State) -> None:
        s["x"][1:] = s["y"][:-1]

    state = {"x": base[::-2], "y": other[1::2]}
    assert critical(step, state, lambda s: s["x"][:3], steps=1) == {"x": {0}, "y": {0, 1}}
    assert np.array_equal(base, np.arange(12.0))


RECORD = np.dtype([("position", "f8", 2), ("mass", "f4"), ("kind", "i4")])


@pytest.mark.filterwarnings("ignore::scr_critplugin.errors.ProfileWarning")
@pytest.mark.parametrize("as_records", [False, True])
def test_structured_arrays_are_critical(as_records: bool) -> None:
    def step(s: State) -> None:
        s["p"]["position"][:, 0] += s["x"][:4]
        s["p"]["mass"] = 1.0
        s["y"][:] = s["p"]["position"][:, 1]
        if as_records:
            s["p"].mass[:] = s["x"][0]

    particles = np.zeros(4, dtype=RECORD)
    state = {"p": particles.view(np.recarray) if as_records else particles, "x": np.ones(N), "y": np.ones(4)}
    found = profile(step, state, lambda s: [s["p"], s["y"]])
    assert found.map["p"].critical.all()
    assert set(range(4)) <= set(np.flatnonzero(found.map["x"].critical))
    assert not found.map["y"].critical.any()


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
@pytest.mark.filterwarnings("ignore::scr_critplugin.errors.ProfileWarning")
def test_matrix_in_the_state_stays_a_matrix() -> None:
    def step(s: State) -> None:
        s["x"][:] = np.asarray(s["m"] * s["m"])[0] * s["x"]

    state = {"m": np.matrix([[1.0, 2.0], [3.0, 4.0]]), "x": np.ones(2)}
    found = profile(step, state, lambda s: s["x"])
    assert found.map["m"].critical.all()


@pytest.mark.filterwarnings("ignore::scr_critplugin.errors.ProfileWarning")
def test_view_that_joins_elements_is_refused() -> None:
    def step(s: State) -> None:
        s["z"][:] = s["x"].view(complex)

    with pytest.raises(ProfileError, match="Copy the array before it is reinterpreted"):
        profile(step, {"x": np.ones(4), "z": np.zeros(2, complex)}, lambda s: s["z"])


def test_in_place_matrix_product() -> None:
    def step(s: State) -> None:
        s["m"] @= s["a"]

    state = {"m": RNG.random((2, 2)), "a": RNG.random((2, 2))}

    def output(s: State) -> Any:
        return s["m"][0, 1]

    assert critical(step, state, output, steps=1) == {"m": {0, 1}, "a": {1, 3}}


def test_numbers_in_the_state() -> None:
    def step(s: State) -> None:
        s["t"] += s["dt"]
        s["n"] += 1
        s["x"][1:] *= s["t"]

    state = {"t": 1.0, "dt": np.float64(0.5), "n": 3, "x": np.ones(3)}
    found = critical(step, state, lambda s: s["x"][0], steps=1)
    assert found == {"t": set(), "dt": set(), "n": {0}, "x": {0}}
