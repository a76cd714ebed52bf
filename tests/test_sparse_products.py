"""Products with SciPy's sparse matrices: masks whatever the format, by operator or function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from autograd import grad
from hypothesis import given, settings
from hypothesis import strategies as st

from scr_critplugin.analysis import sparse_products, sweep
from scr_critplugin.analysis.boxes import TracedArray
from scr_critplugin.analysis.masks import nothing
from scr_critplugin.analysis.recording import recording

sparse = pytest.importorskip("scipy.sparse", reason="needs SciPy, which the extra 'test' installs")

KINDS = [
    f"{kind}_{of}" for kind in ("csr", "csc", "coo", "bsr", "dia", "lil", "dok") for of in ("array", "matrix")
]


def banded(kind: str) -> tuple[Any, np.ndarray]:
    """A 4 by 5 matrix and where its entries are stored; one of them holds a zero (lil and dok keep none)."""
    dense = np.array([[2.0, 0, 0, 1, 0], [0, 3, 0, 0, 1], [0, 0, 4, 0, 0], [0, 0, 0, 5, 0]])
    stored = dense != 0
    if kind.startswith(("lil", "dok")):
        return getattr(sparse, kind)(dense), stored
    if kind.startswith("dia"):
        diagonals = np.zeros((2, 5))
        diagonals[0, 1:4], diagonals[1, 3:] = (3, 4, 5), 1
        stored[0, 0] = True
        return getattr(sparse, kind)((diagonals, [0, 3]), shape=(4, 5)), stored
    rows, columns = np.nonzero(stored)
    values = dense[rows, columns]
    values[0] = 0.0
    matrix = getattr(sparse, kind)(sparse.coo_array((values, (rows, columns)), shape=(4, 5)))
    if kind.startswith("bsr"):
        matrix = getattr(sparse, kind)(matrix, blocksize=(1, 1))
    return matrix, stored


def needed_of(function: Callable[[Any], Any], x: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """By result element, the elements of `x` that the mask names; and the sinks."""
    with recording() as (tape, box):
        result = function(box("x", x))
        node = result._node
    assert isinstance(result, TracedArray)
    assert np.allclose(result._value, function(x))
    found = []
    for place in range(result._value.size):
        mask = nothing(node.shape)
        mask.reshape(-1)[place] = True
        found.append(sweep.needed(tape, [(node, mask)])["x"].reshape(-1))
    return np.array(found), [sink.kind for _, sink in tape.sinks]


@pytest.mark.parametrize("kind", KINDS)
def test_stored_entries_decide(kind: str) -> None:
    matrix, stored = banded(kind)
    forms: list[Callable[[Any], Any]] = [lambda x: matrix @ x, lambda x: matrix.dot(x)]
    forms.append(lambda x: sparse_products.sparse_matmul(matrix, x))
    if kind.endswith("matrix"):
        forms.append(lambda x: matrix * x)
    for form in forms:
        found, sinks = needed_of(form, np.arange(1.0, 6.0))
        assert sinks == []
        assert np.array_equal(found, stored)


@pytest.mark.parametrize("kind", KINDS)
def test_from_the_right(kind: str) -> None:
    matrix, stored = banded(kind)
    found, _ = needed_of(lambda x: sparse_products.matmul_sparse(x, matrix), np.arange(1.0, 5.0))
    assert np.array_equal(found, stored.T)


@pytest.mark.parametrize("kind", KINDS)
def test_several_columns(kind: str) -> None:
    matrix, stored = banded(kind)
    found, sinks = needed_of(lambda x: matrix @ x, np.arange(10.0).reshape(5, 2))
    assert sinks == []
    # Result (i, k) needs (j, k) where (i, j) is stored.
    assert np.array_equal(found, np.kron(stored, np.eye(2, dtype=bool)))


@settings(deadline=None, max_examples=40)
@given(st.data())
def test_any_matrix(data: st.DataObject) -> None:
    rows, columns = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 5))
    entry = st.tuples(st.integers(0, rows - 1), st.integers(0, columns - 1))
    entries = data.draw(st.lists(entry, max_size=8))
    kind = data.draw(st.sampled_from(["csr_array", "csc_array", "coo_array"]))
    where = tuple(np.array(entries, dtype=int).reshape(-1, 2).T)
    matrix = sparse.coo_array((np.ones(len(entries)), where), shape=(rows, columns))
    stored = matrix.toarray() != 0
    found, _ = needed_of(lambda x: getattr(sparse, kind)(matrix) @ x, np.ones(columns))
    assert np.array_equal(found, stored)


def test_operators_are_put_back() -> None:
    before = [owner.__dict__[name] for owner, name, _ in sparse_products._operators(sparse)]
    with pytest.raises(RuntimeError), sparse_products.products_recorded():
        raise RuntimeError
    assert [owner.__dict__[name] for owner, name, _ in sparse_products._operators(sparse)] == before


def test_a_matrix_with_the_wrong_shape_raises_what_scipy_raises() -> None:
    matrix, _ = banded("csr_array")
    with pytest.raises(ValueError, match="mismatch"):
        needed_of(lambda x: matrix @ x, np.ones(4))


def test_gradient() -> None:
    matrix, _ = banded("csc_array")
    x = np.arange(1.0, 6.0)
    slope = grad(lambda v: (sparse_products.sparse_matmul(matrix, v) ** 2).sum())(x)
    assert np.allclose(slope, 2 * matrix.T @ (matrix @ x))
