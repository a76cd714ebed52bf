"""The table of dependence rules: one row a primitive.

A row says how masks are pulled back (`pulls`), which arguments are data, and of which untraced arguments the
values decide the structure. A traced value in any other argument steers the call (an index, an axis, a
count): it counts as an output, and the call as dense, since another value would connect other elements.

A primitive without a row is `UNKNOWN`: dense, and its arguments count as outputs too, because it may raise,
or return another shape, depending on their values. Where the structure is known, but an error on some values
is not out of the question (linear algebra raises `LinAlgError`), the row says so by `may_raise`: the
arguments then count as outputs as values do that steer a branch.

May import NumPy, autograd (SciPy's parts of it if SciPy is there), `pulls`, `moves` and `structured`.
`add_rule` adds rows for primitives of other packages. Tests: ``tests/test_dependence_rules.py``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, TypeAlias

import autograd.builtins
import autograd.core
import autograd.numpy as anp
import autograd.numpy.fft as afft
import autograd.numpy.numpy_vjps as vjps
import autograd.numpy.numpy_wrapper as wrapper
import numpy as np
from autograd.numpy.numpy_boxes import ArrayBox
from autograd.tracer import Box, getval, primitive

from scr_critplugin.analysis import moves, pulls, structured
from scr_critplugin.analysis.calls import Call, Shaped
from scr_critplugin.analysis.masks import Mask
from scr_critplugin.analysis.pulls import Pull

ALL: Container[int] = range(sys.maxsize)
FIRST: Container[int] = range(1)
NONE: Container[int] = range(0)


def _for_any_arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    return True


def never(call: Call) -> bool:
    """`Row.moves` of a primitive that computes."""
    return False


def always(call: Call) -> bool:
    """`Row.moves` of a primitive that copies elements."""
    return True


Across: TypeAlias = "Callable[[Call, Mask | None], list[Mask]]"
"""Takes the mask of the result, None if nothing of it is needed here, and exchanges masks with the other
ranks: every rank of the communication calls it, once in a sweep. Returns a mask for each traced argument, in
order."""


@dataclass(frozen=True)
class Row:
    """One rule.

    `data`: positions of the arguments that `pull` handles. `values`: positions of untraced arguments whose
    values `pull` looks at. `moves`: whether results are copies of elements, nothing computed. `many_results`
    and `sequence_argument`: `pull` takes lists of masks there. `applies`: whether the row holds for these
    arguments. `into_memory`: the result is the first argument, written to. `whole`: the pull of a whole
    result, if it is not empty, is the whole of each data argument. `may_raise`: whether the call raises an
    error on some values. `across`: in place of `pull`, for calls that communicate; see `Across`.
    """

    pull: Pull
    data: Container[int] = ALL
    values: Container[int] = NONE
    moves: Callable[[Call], bool] = never
    many_results: bool = False
    sequence_argument: bool = False
    applies: Callable[[tuple[Any, ...], dict[str, Any]], bool] = _for_any_arguments
    known: bool = True
    into_memory: bool = False
    whole: bool = False
    may_raise: bool = False
    across: Across | None = None


UNKNOWN = Row(pulls.dense, known=False, whole=True)

RULES: dict[Callable[..., Any], Row] = {}
"""Rows by raw function (`primitive.fun` of an autograd primitive)."""


def row_of(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Row:
    """The row for a call of the raw `function`; `UNKNOWN` if there is none that applies."""
    row = RULES.get(function)
    if row is None and isinstance(function, np.ufunc):
        row = _row_of_ufunc(function)
    if row is None or not (row.applies is _for_any_arguments or row.applies(args, kwargs)):
        return UNKNOWN
    return row


@cache
def _row_of_ufunc(ufunc: np.ufunc) -> Row | None:
    if not is_elementwise(ufunc):
        return None
    return _MULTIPLE if ufunc.nout > 1 else _ELEMENTWISE


def _named(names: str) -> set[Callable[..., Any]]:
    return {getattr(np, name) for name in names.split() if hasattr(np, name)}


_SHAPED_BY_VALUES = _named(
    "nonzero flatnonzero argwhere trim_zeros unique unique_all unique_counts unique_inverse "
    "unique_values union1d intersect1d setdiff1d setxor1d"
)
_SHAPED_BY_ARGUMENTS = _named("compress extract repeat delete insert bincount")
"""By traced counts, places or conditions, not by what they move."""


def is_shaped_by_values(function: Callable[..., Any], args: tuple[Any, ...], *, steered: bool) -> bool:
    """True if other values of the traced arguments can give the result of a call another shape."""
    if function in _SHAPED_BY_VALUES or (function is np.where and len(args) == 1):
        return True
    return steered and (
        function in _SHAPED_BY_ARGUMENTS or (function in _GETITEMS and _holds_booleans(args[1]))
    )


def _holds_booleans(index: Any) -> bool:
    if isinstance(index, (tuple, list)):
        return any(_holds_booleans(part) for part in index)
    return np.result_type(getval(index)) == np.bool_ if isinstance(index, (bool, np.ndarray, Box)) else False


def is_elementwise(ufunc: np.ufunc) -> bool:
    """True if each result of `ufunc` depends on the elements at its place only.

    Python functions in a ufunc's clothes (``np.frompyfunc``) work on objects only, and may do anything.
    """
    return ufunc.signature is None and any("O" not in types for types in ufunc.types)


def add_rule(primitive: Callable[..., Any], row: Row) -> None:
    """Add or replace the row of `primitive`, an autograd primitive or the raw function under one."""
    RULES[getattr(primitive, "fun", primitive)] = row


def _add(row: Row, namespace: Any, names: str) -> None:
    # Names that this NumPy does not have are skipped: the table spans several versions.
    for name in names.split():
        if hasattr(namespace, name):
            add_rule(getattr(namespace, name), row)


_ELEMENTWISE = Row(pulls.elementwise, whole=True)
_MULTIPLE = Row(pulls.elementwise, many_results=True)
_DENSE = Row(pulls.dense, whole=True)


# ---- element by element ----


def _power_cannot_raise(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    # NumPy raises ValueError for an integer to a negative integer power.
    base, exponent = args[:2]
    of_integers = np.result_type(base).kind in "iu" and np.result_type(exponent).kind in "iu"
    return not of_integers or isinstance(exponent, int)


add_rule(np.power, Row(pulls.elementwise, applies=_power_cannot_raise, whole=True))
_add(_ELEMENTWISE, np, "real imag angle round around fix nan_to_num isclose sinc i0 clip")
_add(_ELEMENTWISE, np, "iscomplex isreal isneginf isposinf")
_add(
    Row(pulls.elementwise, moves=always, data=FIRST, whole=True),
    np,
    "copy asarray asanyarray ascontiguousarray asfortranarray",
)
add_rule(wrapper._astype, _ELEMENTWISE)
add_rule(wrapper._array_from_scalar_or_array, Row(pulls.elementwise, data=range(2, 3), whole=True))
add_rule(wrapper.array_from_args, Row(pulls.stacked, data=range(2, sys.maxsize), moves=always, whole=True))
_add(Row(pulls.fill_value, data=range(1, 2)), np, "full")
_add(Row(pulls.fill_value, data=range(2)), np, "full_like")


def _three_arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    return len(args) == 3


def _condition_is_constant(call: Call) -> bool:
    return not isinstance(call.args[0], Shaped)


_add(Row(pulls.select, values=FIRST, moves=_condition_is_constant, applies=_three_arguments), np, "where")


# ---- along axes ----


def _norm_without_svd(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    # The matrix 2-norms and the nuclear norm go through an SVD, which raises on NaN.
    order = kwargs.get("ord", args[1] if len(args) > 1 else None)
    axis = kwargs.get("axis", args[2] if len(args) > 2 else None)
    of_vectors = np.ndim(args[0]) == 1 or isinstance(axis, int)
    return of_vectors or order not in (2, -2, "nuc")


_add(
    Row(pulls.reduction, data=FIRST, whole=True),
    np,
    "sum prod mean max min amax amin all any std var ptp median average",
)
_add(
    Row(pulls.reduction, data=FIRST, whole=True),
    np,
    "nansum nanprod nanmean nanmax nanmin nanstd nanvar nanmedian",
)
_add(Row(pulls.reduction, data=FIRST, whole=True), np, "argmax argmin count_nonzero trapezoid")
_add(Row(pulls.quantiles, data=FIRST, whole=True), np, "percentile quantile nanpercentile nanquantile")
_add(Row(pulls.reduction, data=FIRST, whole=True, applies=_norm_without_svd), np.linalg, "norm")
_add(Row(pulls.reduction, data=FIRST, whole=True), np.linalg, "vector_norm")
_add(Row(pulls.mixed, data=FIRST, whole=True), np, "sort argsort unwrap")
_add(Row(pulls.mixed, data=FIRST, whole=True), np, "partition argpartition")
_add(
    Row(pulls.mixed, data=FIRST, whole=True), np.fft, "fft ifft rfft irfft hfft ihfft fft2 ifft2 rfft2 irfft2"
)
_add(Row(pulls.mixed, data=FIRST, whole=True), np.fft, "fftn ifftn rfftn irfftn")
_add(Row(pulls.prefix, data=FIRST, whole=True), np, "cumsum cumprod nancumsum nancumprod")
_add(Row(pulls.prefix, data=FIRST, whole=True), np, "cumulative_sum cumulative_prod")
_add(Row(pulls.difference, data=FIRST), np, "diff")
_add(Row(pulls.gradients, data=FIRST, many_results=True), np, "gradient")
_add(Row(pulls.diagonal_sum, data=FIRST), np, "trace")


# ---- moving elements ----


def _mover(data: Container[int], values: Container[int] = ALL) -> Row:
    return Row(pulls.moved(data), data=data, values=values, moves=always, many_results=True)


_PAD_MODES = {"constant", "edge", "reflect", "symmetric", "wrap"}


def _pad_repeats(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    mode = kwargs.get("mode", args[2] if len(args) > 2 else "constant")
    return mode in _PAD_MODES and kwargs.get("reflect_type", "even") == "even"


add_rule(ArrayBox.__getitem__, Row(pulls.getitem, data=FIRST, values=range(1, 2), moves=always))


@primitive  # type: ignore[untyped-decorator]
def getitem_where(array: Any, index: Any, *deciding: Any) -> Any:
    """``array[index]``; the index is bare, and the traced values in it follow: they steer the call."""
    return array[index]


getitem_where.fun.__name__ = "__getitem__"
add_rule(getitem_where, Row(pulls.dense, data=FIRST))
_GETITEMS = {ArrayBox.__getitem__.fun, getitem_where.fun}
_REARRANGED = Row(moves.viewed, data=FIRST, values=ALL, moves=always, whole=True)
_PART = Row(moves.viewed, data=FIRST, values=ALL, moves=always, many_results=True)

_add(Row(moves.raveled, data=FIRST, values=range(1, 3), moves=always, whole=True), np, "reshape ravel")
_add(Row(pulls.transposed, data=FIRST, values=range(1, 2), moves=always, whole=True), np, "transpose")
_add(Row(pulls.axis_moved, data=FIRST, values=range(1, 3), moves=always, whole=True), np, "moveaxis")
add_rule(
    wrapper.concatenate_args,
    Row(pulls.concatenated, data=range(1, sys.maxsize), moves=always, whole=True),
)
_add(Row(pulls.padded, data=FIRST, values=range(1, 3), moves=always, applies=_pad_repeats), np, "pad")
_add(_REARRANGED, np, "swapaxes rollaxis matrix_transpose squeeze expand_dims flip fliplr flipud rot90")
_add(_REARRANGED, np.linalg, "matrix_transpose")
_add(_PART, np, "diagonal split array_split hsplit vsplit dsplit unstack")
_add(_PART, np.linalg, "diagonal")
_add(
    Row(moves.viewed_each, moves=always, many_results=True, whole=True),
    np,
    "atleast_1d atleast_2d atleast_3d",
)
_add(Row(moves.broadcast, data=FIRST, values=ALL, moves=always, whole=True), np, "broadcast_to")
_add(Row(moves.broadcast_each, moves=always, many_results=True), np, "broadcast_arrays")
_add(Row(moves.rolled, data=FIRST, values=ALL, moves=always, whole=True), np, "roll")
_add(Row(moves.shifted_back, data=FIRST, values=ALL, moves=always, whole=True), np.fft, "fftshift ifftshift")
_add(Row(moves.tiled, data=FIRST, values=ALL, moves=always, whole=True), np, "tile")
_add(Row(moves.repeated, data=FIRST, values=ALL, moves=always), np, "repeat")
_add(Row(moves.taken, data=FIRST, values=ALL, moves=always), np, "take")
_add(_mover(FIRST), np, "resize diag diagflat tril triu take_along_axis delete")
_add(_mover(range(1, 2)), np, "compress extract")
_add(_mover({0, 2}), np, "insert")
_add(_mover(range(2)), np, "append")
_add(_mover(ALL), np, "meshgrid")
add_rule(wrapper.make_diagonal, _mover(FIRST))
add_rule(afft.truncate_pad, _mover(FIRST))


# ---- sums of products ----

_PAIR = range(2)

_add(Row(pulls.gufunc_product, data=_PAIR, whole=True), np, "matmul matvec vecmat vecdot")
_add(Row(pulls.dot_product, data=_PAIR, whole=True), np, "dot")
_add(Row(pulls.inner_product, data=_PAIR, whole=True), np, "inner")
_add(Row(pulls.outer_product, data=_PAIR, whole=True), np, "outer")
_add(Row(pulls.tensordot_product, data=_PAIR, values=range(2, 3), whole=True), np, "tensordot")
_add(Row(pulls.einsum_product), np, "einsum")
_add(Row(pulls.dense, whole=True, data=_PAIR), np, "vdot")
_add(Row(structured.kronecker, data=_PAIR, whole=True), np, "kron")
_add(Row(structured.cross_product, data=_PAIR, values=range(2, 6)), np, "cross")
_add(Row(structured.cross_product, data=_PAIR, values=range(2, 6)), np.linalg, "cross")
_add(Row(structured.convolved, data=_PAIR, values=range(2, 3), whole=True), np, "convolve correlate")


# ---- matrices ----


def _of_matrices(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    return np.ndim(args[0]) >= 2


_PER_MATRIX = Row(structured.per_matrix, data=FIRST, many_results=True, whole=True)

_add(_PER_MATRIX, np.linalg, "det slogdet")
_add(
    replace(_PER_MATRIX, may_raise=True, applies=_of_matrices),
    np.linalg,
    "inv pinv cholesky qr svd svdvals eig eigh eigvals eigvalsh matrix_power matrix_norm matrix_rank cond",
)
_add(Row(structured.solved, data=_PAIR, whole=True, may_raise=True), np.linalg, "solve")
_add(
    Row(pulls.dense, data=_PAIR, many_results=True, whole=True, may_raise=True),
    np.linalg,
    "lstsq tensorsolve tensorinv",
)


# ---- tables and polynomials ----


def _between_given_bounds(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    bins = kwargs.get("bins", args[1] if len(args) > 1 else 10)
    bounds = kwargs.get("range", args[2] if len(args) > 2 else None)
    return np.ndim(bins) == 1 or (np.ndim(bins) == 0 and not isinstance(bins, str) and bounds is not None)


_add(Row(structured.looked_up, data=_PAIR, whole=True), np, "searchsorted")
# Bins that are no steps up or down raise, so traced ones steer.
_add(Row(pulls.elementwise, data=FIRST, whole=True), np, "digitize")
# How many places there are hangs on the values, so these steer.
_add(Row(pulls.dense, data=NONE, many_results=True, whole=True), np, "nonzero flatnonzero argwhere")
_add(Row(structured.membership, data=_PAIR, whole=True), np, "isin")
_add(Row(structured.binned_weights, data=range(1, 2), values=FIRST), np, "bincount")
_add(
    Row(structured.counted, data={0, 4}, many_results=True, applies=_between_given_bounds),
    np,
    "histogram",
)
_add(Row(structured.interpolated, data=range(5), values=range(6)), np, "interp")
_add(Row(structured.polynomial, data=_PAIR, whole=True), np, "polyval")
_add(Row(structured.powers, data=FIRST, values=range(1, 3)), np, "vander")
_add(Row(structured.covariances, data=_PAIR, values=range(2, 3)), np, "cov corrcoef")


# ---- known to be dense, and never to raise on a value ----

_add(Row(pulls.dense, whole=True, data=_PAIR), np, "array_equal array_equiv linspace")
_add(Row(pulls.dense, whole=True, data=range(4)), np, "allclose")
_add(Row(pulls.dense, whole=True, data=FIRST), np, "sort_complex msort")
_add(Row(pulls.dense, whole=True, data=FIRST), np.linalg, "trace")
_add(Row(pulls.dense, whole=True, data=_PAIR), np.linalg, "outer tensordot matmul vecdot")


# ---- what autograd itself puts on the tape when a step takes gradients ----

for _member in (autograd.core.VSpace.add, autograd.core.VSpace.mut_add, autograd.core.VSpace.covector):
    add_rule(_member, Row(pulls.elementwise, data=range(1, 3), whole=True))
_add(Row(pulls.dense, whole=True, data=range(1, 3)), autograd.core.VSpace, "scalar_mul inner_prod")
_add(Row(pulls.dense, whole=True, data=range(1, 3)), autograd.core, "sparse_add")
_add(
    Row(pulls.dense, whole=True, data=_PAIR),
    vjps,
    "dot_adjoint_0 dot_adjoint_1 tensordot_adjoint_0 tensordot_adjoint_1",
)
_add(Row(pulls.dense, whole=True, data=FIRST), vjps, "untake")
_add(Row(pulls.dense, whole=True, data=FIRST), autograd.builtins, "container_untake")
_add(_DENSE, autograd.builtins, "sequence_extend_left sequence_extend_right _make_dict")
ITEM_OF_SEQUENCE = Row(
    pulls.container_item,
    data=FIRST,
    values=range(1, 2),
    moves=always,
    many_results=True,
    sequence_argument=True,
)
add_rule(autograd.builtins.container_take, ITEM_OF_SEQUENCE)
add_rule(
    autograd.builtins.make_sequence,
    Row(
        pulls.container_made,
        data=range(1, sys.maxsize),
        moves=always,
        many_results=True,
        sequence_argument=True,
    ),
)

IN_PLACE_BY_DESIGN: frozenset[Callable[..., Any]] = frozenset(
    (autograd.core.VSpace.mut_add.fun, autograd.core.sparse_add.fun)
)
"""autograd's own accumulators: they write into arrays that nothing else holds."""


# ---- optional parts of autograd ----

try:
    import autograd.scipy.signal
    import autograd.scipy.special
except ImportError:
    pass
else:
    _add(Row(pulls.reduction, data=FIRST, whole=True), autograd.scipy.special, "logsumexp")
    _add(_ELEMENTWISE, autograd.scipy.special, "polygamma")
    _add(Row(pulls.dense, whole=True, data=_PAIR), autograd.scipy.signal, "convolve")


_UNTRACED = (
    "size zeros_like ones_like empty_like isrealobj isscalar typename can_cast common_type mintypecode "
    "broadcast_shapes iterable may_share_memory shares_memory tril_indices_from triu_indices_from "
    "diag_indices_from isfortran"
)


def untraced_primitives() -> Iterable[Callable[..., Any]]:
    """The primitives of autograd whose results depend on shapes and dtypes only."""
    return [getattr(anp, name) for name in _UNTRACED.split() if hasattr(anp, name)]
