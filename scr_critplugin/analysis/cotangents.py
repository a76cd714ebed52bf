"""Cotangents on their way back: sums by node of a tape, in double precision at least.

They follow autograd's convention for complex numbers, in which a holomorphic function's cotangent is
multiplied by the derivative and not by its conjugate.

May import NumPy, autograd, `tape` and `values`. Tests: ``tests/test_gradient.py``.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from autograd.core import SparseObject
from numpy.typing import NDArray

from scr_critplugin.analysis.tape import DependenceNode
from scr_critplugin.analysis.values import Saved


class NoRuleError(Exception):
    """Raised by an adjoint that cannot tell; the derivative ends there."""


class Cotangents:
    """Sums of cotangents by node. What it holds as its own, and only that, is added to in place."""

    def __init__(self, length: int) -> None:
        self._sums: list[Any] = [None] * length
        self._own = [False] * length

    def add(self, node: DependenceNode, cotangent: Any, *, own: bool = False) -> None:
        """Add to that of `node`; `own`: nobody else will look at this array any more."""
        if not carries(node):
            return
        position = node.position
        cotangent = _fitting(node, cotangent)
        present = self._sums[position]
        if present is None:
            self._sums[position], self._own[position] = cotangent, own and _is_plain(cotangent)
        elif self._own[position] and isinstance(present, np.ndarray):
            present += cotangent
        else:
            total = added(present, cotangent)
            self._sums[position], self._own[position] = total, _is_plain(total)

    def into(self, node: DependenceNode) -> NDArray[Any] | None:
        """That of `node`, or zeros, to be added to in place; None if it can have no derivative."""
        if not carries(node):
            return None
        if cast(Saved, node.saved).dtype is None:
            raise NoRuleError
        position, present = node.position, self._sums[node.position]
        if not self._own[position]:
            dtype = working_dtype(cast(np.dtype[Any], cast(Saved, node.saved).dtype))
            fresh = (
                np.zeros(value_shape(node), dtype) if present is None else np.array(present, dtype, order="C")
            )
            self._sums[position], self._own[position] = fresh, True
        return cast("NDArray[Any]", self._sums[position])

    def take(self, node: DependenceNode, *, own: bool) -> Any:
        """That of `node`, which is forgotten; None if there is none. `own`: as an array to be changed."""
        if own and self._sums[node.position] is not None:
            self.into(node)
        taken, self._sums[node.position] = self._sums[node.position], None
        self._own[node.position] = False
        return taken


def carries(node: DependenceNode) -> bool:
    """True if the node's value can have a derivative: floating-point numbers, or a sequence."""
    dtype = cast(Saved, node.saved).dtype
    return dtype is None or dtype.kind in "fc"


def value_shape(node: DependenceNode) -> tuple[int, ...]:
    """Shape of the node's value, also where other values would have another."""
    return cast("tuple[int, ...]", cast(Saved, node.saved).shape)


def working_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """What cotangents of that dtype are added up in."""
    return np.result_type(dtype.newbyteorder("="), np.float64)


def _is_plain(cotangent: Any) -> bool:
    return isinstance(cotangent, np.ndarray) and cotangent.flags.writeable and cotangent.flags.c_contiguous


def added(one: Any, other: Any) -> Any:
    """Sum of two cotangents; None in a sequence stands for none."""
    if one is None or other is None:
        return other if one is None else one
    if isinstance(one, (list, tuple)):
        return [added(mine, theirs) for mine, theirs in zip(one, other, strict=True)]
    return np.asarray(np.add(one, other))


def _fitting(node: DependenceNode, cotangent: Any) -> Any:
    """`cotangent` in the working dtype of the node."""
    dtype = cast(Saved, node.saved).dtype
    if isinstance(cotangent, SparseObject):
        # What autograd makes of an item of a sequence.
        cotangent = cotangent.mut_add(cotangent.vs.zeros())
    if dtype is None:
        return list(cotangent)
    array = np.asarray(cotangent)
    if dtype.kind == "f" and array.dtype.kind == "c":
        array = array.real
    return np.asarray(array, working_dtype(dtype))


# ---- arithmetic ----


def unbroadcast(cotangent: NDArray[Any], shape: Any) -> NDArray[Any]:
    """Sum over the axes along which an array of that `shape` was repeated."""
    extra = cotangent.ndim - len(shape)
    if extra > 0:
        cotangent = cotangent.sum(axis=tuple(range(extra)))
    elif extra < 0:
        # NumPy lets a value have leading axes of one element more than what it is assigned to.
        cotangent = cotangent.reshape((1,) * -extra + cotangent.shape)
    repeated = tuple(axis for axis, n in enumerate(shape) if n == 1 and cotangent.shape[axis] != 1)
    return np.asarray(cotangent.sum(axis=repeated, keepdims=True) if repeated else cotangent)


def add_at(flat: NDArray[Any], places: NDArray[np.intp], cotangent: Any) -> None:
    # NumPy is several times faster with one axis than with more.
    np.add.at(flat, places.reshape(-1), np.asarray(cotangent).reshape(-1))
