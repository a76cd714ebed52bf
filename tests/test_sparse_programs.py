"""Programs with products of sparse matrices: masks by the stored entries, no sinks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from scr_critplugin.analysis import profile

sparse = pytest.importorskip("scipy.sparse", reason="needs SciPy; pip install scipy")

N = 6
DENSE = np.zeros((N, N))
DENSE[[0, 1, 2, 4, 5], [1, 0, 2, 5, 4]] = [2.0, 3.0, -1.0, 0.5, 1.5]
DENSE[2, 5] = 4.0
FORMATS = ["csr", "csc", "coo", "dia", "bsr", "lil", "dok"]


def critical(step: Any, state: dict[str, Any], needed: Any = slice(0, 3)) -> dict[str, set[int]]:
    found = profile(step, state, lambda s: s["y"][needed], steps=1)
    assert found.sinks == ()
    return {name: {int(i) for i in np.flatnonzero(found.map[name].critical)} for name in found.map}


def state() -> dict[str, Any]:
    return {"x": np.linspace(1.0, 2.0, N), "y": np.zeros(N), "m": np.ones((N, 2))}


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("make", ["matrix", "array"])
def test_product_follows_the_pattern(form: str, make: str) -> None:
    matrix = getattr(sparse, f"{form}_{make}")(DENSE)

    def step(s: dict[str, Any]) -> None:
        s["y"][:] = matrix @ s["x"]

    expected = set(np.flatnonzero(DENSE[:3].any(axis=0)).tolist())
    found = critical(step, state())["x"]
    # Whole diagonals are stored, and zeros in them are factors too.
    assert found == expected or (form == "dia" and found >= expected)


def test_transposed_product() -> None:
    matrix = sparse.csr_matrix(DENSE)

    def step(s: dict[str, Any]) -> None:
        s["y"][:] = matrix.T @ s["x"]

    assert critical(step, state())["x"] == set(np.flatnonzero(DENSE[:, :3].any(axis=1)).tolist())


def test_product_from_the_left() -> None:
    matrix = sparse.csc_array(DENSE)

    def step(s: dict[str, Any]) -> None:
        s["y"][:] = s["x"] @ matrix

    assert critical(step, state())["x"] == set(np.flatnonzero(DENSE[:, :3].any(axis=1)).tolist())


def test_dot_and_multiplication_of_matrices() -> None:
    matrix = sparse.csr_matrix(DENSE)

    def step(s: dict[str, Any]) -> None:
        s["y"] += matrix.dot(s["x"])
        s["y"] += matrix * s["x"]

    expected = set(np.flatnonzero(DENSE[:3].any(axis=0)).tolist())
    assert critical(step, state()) == {"x": expected, "y": {0, 1, 2}, "m": set()}


def test_product_with_several_columns() -> None:
    matrix = sparse.csr_array(DENSE)

    def step(s: dict[str, Any]) -> None:
        s["m"][:] = matrix @ s["m"]
        s["y"][:] = s["m"][:, 1]

    rows = np.flatnonzero(DENSE[:3].any(axis=0))
    assert critical(step, state())["m"] == {2 * int(row) + 1 for row in rows}


def test_stored_zeros_count() -> None:
    matrix = sparse.csr_matrix(([0.0, 1.0], ([0, 1], [5, 1])), (N, N))

    def step(s: dict[str, Any]) -> None:
        s["y"][:] = matrix @ s["x"]

    assert critical(step, state())["x"] == {1, 5}


def test_classes_are_put_back() -> None:
    before = {name: getattr(sparse.csr_matrix, name) for name in ("__matmul__", "__mul__")}
    test_transposed_product()
    assert before == {name: getattr(sparse.csr_matrix, name) for name in before}


def test_matrix_with_traced_elements_keeps_all_of_them() -> None:
    matrix = sparse.csr_matrix(DENSE)

    def step(s: dict[str, Any]) -> None:
        own = matrix.copy()
        own.data[:] = s["x"]
        s["y"][:] = own @ s["y"]

    with pytest.warns(UserWarning, match="conversion to an ordinary array"):
        found = profile(step, state(), lambda s: s["y"][:3], steps=1)
    assert found.map["x"].critical.all()
