"""Pulls of functions with a structure of their own: tables, polynomials, stacks of matrices, bands.

As in `pulls`, a pull may set too much, never too little, whatever the values are.

May import NumPy, `calls`, `masks` and `pulls`. Tests: ``tests/test_dependence_rules.py``.
"""

from __future__ import annotations

import numpy as np

from scr_critplugin.analysis.calls import Call, Shaped
from scr_critplugin.analysis.masks import BoolArray, Mask, any_over, has_any, unbroadcast
from scr_critplugin.analysis.pulls import dense

# ---- tables ----


def looked_up(call: Call, needed: BoolArray, argnum: int, into: BoolArray) -> None:
    """``searchsorted(table, x)``: a result depends on the whole table and on its own element of `x`."""
    if argnum == 0:
        dense(call, needed, argnum, into)
    else:
        into |= needed


def membership(call: Call, needed: BoolArray, argnum: int, into: BoolArray) -> None:
    """``isin(x, table)``."""
    if argnum == 0:
        into |= needed
    else:
        dense(call, needed, argnum, into)


def binned_weights(call: Call, needed: BoolArray, argnum: int, into: BoolArray) -> None:
    """``bincount(x, weights)`` with untraced `x`: a sum depends on the weights in its bin."""
    into |= needed[np.asarray(call.args[0])]


def counted(call: Call, needed: Mask, argnum: int, into: BoolArray) -> None:
    """``histogram`` between given bounds: a count depends on all elements, an edge on none."""
    if has_any(needed[0] if isinstance(needed, list) else needed):
        into[...] = True


def interpolated(call: Call, needed: BoolArray, argnum: int, into: BoolArray) -> None:
    """``interp(x, xp, fp)``: from the table two neighbours, if it is known which, else all of it."""
    x, points, period = call.args[0], call.args[1], call.parameter("period")
    if argnum == 0:
        into |= needed
    elif argnum == 2 and period is None and not isinstance(x, Shaped) and not isinstance(points, Shaped):
        above = np.searchsorted(points, np.asarray(x)[needed], side="right")
        last = len(into) - 1
        into[np.clip(above - 1, 0, last)] = True
        into[above[(above > 0) & (above <= last)]] = True
    else:
        dense(call, needed, argnum, into)


# ---- polynomials ----


def polynomial(call: Call, needed: BoolArray, argnum: int, into: BoolArray) -> None:
    """``polyval(p, x)``: all coefficients, and the element of `x` at the place."""
    if argnum == 0:
        dense(call, needed, argnum, into)
    else:
        into |= needed


def powers(call: Call, needed: BoolArray, argnum: int, into: BoolArray) -> None:
    """``vander``: a row holds the powers of one element, of which the zeroth does not depend on it."""
    dependent = needed[:, 1:] if call.parameter("increasing") else needed[:, :-1]
    into |= any_over(dependent, (1,))


def covariances(call: Call, needed: BoolArray, argnum: int, into: BoolArray) -> None:
    """``cov`` and ``corrcoef`` of the rows (or columns) of one array: a result depends on two of them."""
    if call.parameter("y") is not None or into.ndim != 2 or needed.ndim != 2:
        return dense(call, needed, argnum, into)
    variables = any_over(needed, (0,)) | any_over(needed, (1,))
    by_rows = call.parameter("rowvar")
    if variables.size == into.shape[0 if by_rows else 1]:
        into |= variables[:, None] if by_rows else variables
    else:
        # One row counts as one variable, whatever `rowvar` says, in some versions of NumPy.
        dense(call, needed, argnum, into)


# ---- stacks of matrices ----


def per_matrix(call: Call, needed: Mask, argnum: int, into: BoolArray) -> None:
    """Functions of stacks of matrices: a result depends on all of its own matrix.

    Every result has the axes of the stack first.
    """
    batch = into.ndim - 2
    for mask in needed if isinstance(needed, list) else [needed]:
        array = np.asarray(mask)
        into |= any_over(array, tuple(range(batch, array.ndim))).reshape(*into.shape[:-2], 1, 1)


def solved(call: Call, needed: BoolArray, argnum: int, into: BoolArray) -> None:
    """``solve(a, b)``: a solution depends on its matrix and on its right-hand side."""
    matrices, right = (len(call.shape_at(i)) for i in range(2))
    if right == matrices - 1 and right > 1:
        # Matrices to NumPy 2, vectors to NumPy 1.
        return dense(call, needed, argnum, into)
    if right == 1:
        needed = needed[..., None]
    if argnum == 0:
        into |= unbroadcast(any_over(needed, (-2, -1), keepdims=True), (*into.shape[:-2], 1, 1))
        return
    lines = any_over(needed, (-2,), keepdims=True)
    if right == 1:
        return dense(call, lines, argnum, into)
    into |= unbroadcast(lines, (*into.shape[:-2], 1, into.shape[-1]))


# ---- products ----


def cross_product(call: Call, needed: BoolArray, argnum: int, into: BoolArray) -> None:
    """``cross``: a component depends on the other components of both vectors."""
    axes = _axes_of_cross(call)
    vectors = np.moveaxis(into, axes[argnum], -1)
    if needed.ndim < max(len(call.shape_at(i)) for i in range(2)):
        # Two vectors in the plane: the result is a number.
        vectors |= unbroadcast(needed[..., None], (*vectors.shape[:-1], 1))
        return
    result = np.moveaxis(needed, axes[2], -1)
    for component in range(vectors.shape[-1]):
        others = any_over(np.delete(result, component, axis=-1), (-1,))
        vectors[..., component] |= unbroadcast(others, vectors.shape[:-1])


def _axes_of_cross(call: Call) -> tuple[int, int, int]:
    axis = call.parameter("axis")
    if axis is not None:
        return axis, axis, axis
    return call.parameter("axisa"), call.parameter("axisb"), call.parameter("axisc")


def kronecker(call: Call, needed: BoolArray, argnum: int, into: BoolArray) -> None:
    """``kron``: in each axis, blocks of the second argument's length, one for each element of the first."""
    ndim = needed.ndim
    shapes = [(1,) * (ndim - len(call.shape_at(i))) + call.shape_at(i) for i in range(2)]
    blocks = needed.reshape([n for pair in zip(*shapes, strict=True) for n in pair])
    into |= any_over(blocks, tuple(range(1 - argnum, 2 * ndim, 2))).reshape(into.shape)


def convolved(call: Call, needed: BoolArray, argnum: int, into: BoolArray) -> None:
    """``convolve`` and ``correlate``: a band, in all three modes."""
    lengths = tuple(int(np.prod(call.shape_at(i))) for i in range(2))
    full = np.zeros(sum(lengths) - 1, dtype=bool)
    full[_part_of_full(call, lengths, needed.size)] = needed
    found = _any_within(full, lengths[1 - argnum])
    if argnum == 1 and call.function is np.correlate:
        found = found[::-1]
    into |= found.reshape(into.shape)


def _part_of_full(call: Call, lengths: tuple[int, ...], size: int) -> slice:
    """Where the results of the call's mode lie among those of mode "full"."""
    mode, shorter = call.parameter("mode"), min(lengths)
    start = {"full": 0, "same": (shorter - 1) // 2, "valid": shorter - 1}[mode]
    if call.function is np.correlate and lengths[1] > lengths[0]:
        # NumPy takes the longer one first, and turns the result round.
        start = sum(lengths) - 1 - start - size
    return slice(start, start + size)


def _any_within(mask: BoolArray, length: int) -> BoolArray:
    """Whether any of the `length` elements from each place on is set."""
    counts = np.concatenate([[0], np.cumsum(mask)])
    return np.asarray(counts[length:] > counts[:-length])
