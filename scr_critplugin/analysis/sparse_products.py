"""Products with SciPy's sparse matrices: a result depends on the elements with a stored entry in its row.

Stored zeros count: the structure decides, not the number. The entries themselves are taken as constants, for
SciPy keeps them in arrays of its own, which no traced value can get into unseen.

SciPy's ``matrix @ x`` turns `x` into an ordinary array before anything could be recorded. Inside
`products_recorded` those operators hand traced arrays to `sparse_matmul` and `matmul_sparse` instead.

May import NumPy, autograd, `rules`, `calls` and, when it is used, SciPy. Tests:
``tests/test_sparse_products.py``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np
from autograd.extend import defvjp, primitive
from autograd.tracer import isbox
from numpy.typing import NDArray

from scr_critplugin.analysis.calls import Call
from scr_critplugin.analysis.masks import BoolArray
from scr_critplugin.analysis.rules import Row, add_rule


def sparse_matmul(matrix: Any, x: Any) -> Any:
    """``matrix @ x`` for a two-dimensional sparse `matrix` and an array `x` of one or two axes.

    Raises
    ------
    ValueError
        The shapes do not fit (SciPy's own error).
    """
    bounds, places, by_columns = _stored(matrix)
    return _product(matrix, bounds, places, by_columns, x)


def matmul_sparse(x: Any, matrix: Any) -> Any:
    """``x @ matrix``, as `sparse_matmul`."""
    return sparse_matmul(matrix.T, x.T).T


@primitive  # type: ignore[untyped-decorator]
def _product(
    matrix: Any, bounds: NDArray[Any], places: NDArray[Any], by_columns: bool, x: NDArray[Any]
) -> NDArray[Any]:
    result: NDArray[Any] = matrix @ x
    return result


def _gradient(
    ans: Any, matrix: Any, bounds: Any, places: Any, by_columns: bool, x: Any
) -> Callable[[Any], Any]:
    def pull(cotangent: Any) -> Any:
        gradient = sparse_matmul(matrix.T, cotangent)
        return gradient if np.iscomplexobj(x) or not np.iscomplexobj(matrix) else gradient.real

    return pull


defvjp(_product, _gradient, argnums=(4,))


def _by_stored_entries(call: Call, needed: BoolArray, argnum: int, into: BoolArray) -> None:
    bounds, places, by_columns = call.args[1:4]
    # Of a matrix with one row, some formats give a number.
    wanted, found = needed.reshape(call.args[0].shape[0], -1), into.reshape(len(into), -1)
    entries = np.diff(bounds)
    for column in range(wanted.shape[1]):
        if by_columns:
            # Compressed columns: each element of x has the rows that it reaches.
            owners = np.repeat(np.arange(len(entries)), entries)
            found[owners[wanted[places, column]], column] = True
        else:
            found[places[np.repeat(wanted[:, column], entries)], column] = True


add_rule(_product, Row(_by_stored_entries, data=range(4, 5), values=range(1, 4)))


def _stored(matrix: Any) -> tuple[NDArray[Any], NDArray[Any], bool]:
    """Bounds of each row (or column), places of its entries, and whether it is by columns."""
    if matrix.format not in ("csr", "csc"):
        if not hasattr(matrix, "data") or matrix.format in ("lil", "dok"):
            matrix = matrix.tocsr()
        # Conversions drop zeros from some formats, so every stored entry is made a one first.
        matrix = matrix.astype(bool)
        matrix.data[...] = True
        matrix = matrix.tocsr()
    return matrix.indptr, matrix.indices, bool(matrix.format == "csc")


# ---- SciPy's operators ----


@contextmanager
def products_recorded() -> Iterator[None]:
    """Inside the block, products of a sparse matrix and a traced array are recorded.

    Without `scipy.sparse` in the program there is nothing to do.
    """
    sparse = sys.modules.get("scipy.sparse")
    with ExitStack() as patches:
        if sparse is not None:
            for owner, name, product in _operators(sparse):
                patches.enter_context(patch.object(owner, name, _or_recorded(owner.__dict__[name], product)))
        yield


def _operators(sparse: Any) -> Iterator[tuple[type, str, Callable[[Any, Any], Any]]]:
    """Every class and method by which a sparse array or matrix multiplies a dense one."""
    found = {}
    for kind in ("csr", "csc", "coo", "bsr", "dia", "lil", "dok"):
        for flavour in ("array", "matrix"):
            for owner in getattr(sparse, f"{kind}_{flavour}").__mro__:
                names = ["__matmul__", "__rmatmul__", "dot"]
                if issubclass(owner, sparse.spmatrix):
                    # Of matrices, * is the matrix product.
                    names += ["__mul__", "__rmul__"]
                for name in names:
                    if name in owner.__dict__:
                        found[owner, name] = _reversed_product if name.startswith("__r") else sparse_matmul
    for (owner, name), product in found.items():
        yield owner, name, product


def _reversed_product(matrix: Any, x: Any) -> Any:
    return matmul_sparse(x, matrix)


def _or_recorded(
    original: Callable[[Any, Any], Any], product: Callable[[Any, Any], Any]
) -> Callable[[Any, Any], Any]:
    def operate(self: Any, other: Any) -> Any:
        if isbox(other) and np.ndim(other) in (1, 2) and self.ndim == 2:
            return product(self, other)
        return original(self, other)

    return operate
