"""Every dependence rule against brute force.

For each primitive of the table: replace each element of each input by several other values, and watch each
element of the result. What changes must be in the mask that the rule pulls back from that element
(soundness); for the cases marked exact nothing else may be.
"""

from __future__ import annotations

import contextlib
import tracemalloc
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import autograd.builtins
import autograd.numpy as anp
import numpy as np
import pytest
from autograd.core import primitive_vjps
from autograd.numpy import numpy_wrapper
from autograd.numpy.fft import truncate_pad
from autograd.tracer import getval, isbox, trace_primitives_map
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from scr_critplugin.analysis import rules, sweep
from scr_critplugin.analysis.masks import everything, nothing
from scr_critplugin.analysis.program import leaves
from scr_critplugin.analysis.recording import recording

try:
    import autograd.scipy.integrate
    import autograd.scipy.linalg
    import autograd.scipy.signal
    import autograd.scipy.special
except ImportError:
    # autograd's SciPy part needs SciPy; so do the rules for it.
    SCIPY = None
else:
    SCIPY = autograd.scipy


@dataclass(frozen=True)
class Case:
    """A function of arrays made of primitives, and inputs to try it on."""

    label: str
    function: Callable[..., Any]
    inputs: tuple[np.ndarray, ...]
    exact: bool = True
    errors_count: bool = True
    """Whether an error that a value provokes counts as another result, and what may raise as an output."""


def floats(*shape: int, seed: int = 1) -> np.ndarray:
    """Distinct values in (0.1, 0.9), so that the inverse functions are defined."""
    return np.random.default_rng(seed).uniform(0.1, 0.9, shape)


A, B, C = floats(2, 3), floats(3, seed=2), floats(3, 2, seed=3)
V, W = floats(4, seed=4), floats(4, seed=5)
T = floats(2, 3, 4, seed=6)
Z = floats(2, 3) + 1j * floats(2, 3, seed=7)
SQUARE = floats(3, 3, seed=8)
FLAGS = np.array([True, False, True])
STACK = floats(2, 3, 3, seed=9) + 2 * np.eye(3)
SYMMETRIC = STACK + np.swapaxes(STACK, 1, 2)
STEPS = np.array([0.1, 0.3, 0.5, 0.7])
FORTRAN = np.asfortranarray(floats(2, 3, seed=10))


def case(label: str, function: Callable[..., Any], *inputs: Any, exact: bool = True) -> Case:
    return Case(label, function, tuple(np.asarray(value) for value in inputs), exact)


def unpacked(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """`function` of arrays; several results, which it may give as a named tuple, become a list."""

    def call(*arrays: Any) -> Any:
        result = function(*arrays, **options)
        return list(result) if isinstance(getval(result), tuple) else result

    return call


def of_matrices(names: str, *inputs: np.ndarray, exact: bool = True, **options: Any) -> list[Case]:
    """Linear algebra on stacks, apart from the errors that it raises."""
    found = [name for name in names.split() if hasattr(anp.linalg, name)]
    return [
        Case(name, unpacked(getattr(anp.linalg, name), **options), inputs, exact, errors_count=False)
        for name in found
    ]


def extended(one: Any, other: Any) -> Any:
    """Concatenation by ``+``, of which one side is a container of autograd."""
    return one + other


def applied(function: Callable[..., Any], *arguments: Any, **options: Any) -> Callable[..., Any]:
    """`function` of arrays, with further arguments that stay the same."""
    return lambda *arrays: function(*arrays, *arguments, **options)


def each(names: str, *inputs: np.ndarray, of: Any = anp, **options: Any) -> list[Case]:
    """A case for each of the functions in `names`, as far as this NumPy has them; soundness only."""
    found = [name for name in names.split() if hasattr(of, name)]
    return [case(name, applied(getattr(of, name), **options), *inputs, exact=False) for name in found]


def along(names: str, exact: bool = True, **options: Any) -> list[Case]:
    """Functions of one array, for each axis and for none."""
    return [
        case(name, applied(getattr(anp, name), axis=axis, **options), T, exact=exact)
        for name in names.split()
        for axis in (0, 1, -1, None)
    ]


def reducing(names: str, *several: tuple[int, ...]) -> list[Case]:
    """Reductions along an axis, along `several` axes and along all, with and without kept dimensions."""
    return [
        case(name, applied(getattr(anp, name), axis=axis, keepdims=keep), T, exact=False)
        for name in names.split()
        for axis in (0, -1, None, *several)
        for keep in (False, True)
    ]


def quantiles(names: str, what: Any, *axes: int | None) -> list[Case]:
    return [
        case(name, applied(getattr(anp, name), what, axis), SQUARE, exact=False)
        for name in names.split()
        for axis in axes
    ]


CASES = [
    *reducing("sum prod mean max min amax amin all any std var median count_nonzero", (0, 2), (-1, 1)),
    *reducing("nansum nanprod nanmean nanmax nanmin nanstd nanvar nanmedian", (0, 2), (-1, 1)),
    *reducing("argmax argmin"),
    *along("cumsum cumprod nancumsum nancumprod"),
    *along("sort argsort", exact=False),
    *(
        case(
            f"{name} {initial}", lambda x, n=name, i=initial: getattr(anp, n)(x, axis=1, include_initial=i), T
        )
        for name in ("cumulative_sum", "cumulative_prod")
        for initial in (False, True)
    ),
    *along("partition argpartition", exact=False, kth=1),
    *quantiles("percentile nanpercentile", 30.0, 0, 1, None),
    *quantiles("quantile nanquantile", [0.2, 0.5, 0.7], 0, 1, None),
    case("ptp", lambda x: anp.ptp(x, 1), T, exact=False),
    case("average", lambda x: anp.average(x, 1), T, exact=False),
    case("trapezoid", lambda x: anp.trapezoid(x, axis=0), T),
    case("unwrap", lambda x: anp.unwrap(9 * x, axis=0), T, exact=False),
    case("norm", lambda x: anp.linalg.norm(x), T, exact=False),
    case("norm axis", lambda x: anp.linalg.norm(x, axis=1), A, exact=False),
    case("norm of a vector", lambda x: anp.linalg.norm(x, 2), V, exact=False),
    case("vector_norm", lambda x: anp.linalg.vector_norm(x, axis=1), A, exact=False),
    case("diff", lambda x: anp.diff(x), T),
    case("diff twice", lambda x: anp.diff(x, 2, axis=1), T),
    case("diff prepended", lambda x: anp.diff(x, prepend=0.0), V, exact=False),
    case("gradient", lambda x: anp.gradient(x), V, exact=False),
    case("gradient of two axes", lambda x: anp.gradient(x)[1], SQUARE, exact=False),
    case("gradient along one axis", lambda x: anp.gradient(x, axis=0), SQUARE, exact=False),
    case("trace", lambda x: anp.trace(x), SQUARE),
    case("trace of a stack", lambda x: anp.trace(x, 1, 1, 2), T),
    *each("fft ifft rfft irfft hfft ihfft fft2 ifft2 rfft2 irfft2 fftn ifftn rfftn irfftn", A, of=anp.fft),
    case("fft axis and length", lambda x: anp.fft.fft(x, 2, axis=0), T, exact=False),
    case("fftn axes", lambda x: anp.fft.fftn(x, axes=(0, 1)), T, exact=False),
    # element by element
    *each("real imag angle nan_to_num iscomplex isreal copy asarray asanyarray", Z),
    *each(
        "round around fix sinc i0 isneginf isposinf ascontiguousarray asfortranarray sort_complex msort", A
    ),
    case("isclose", lambda x, y: anp.isclose(x, y), A, A, exact=False),
    case("any of flags", lambda x: anp.any(x, axis=1), np.zeros((2, 3), bool)),
    case("either of flags", lambda x, y: anp.logical_or(x, y), np.zeros((2, 3), bool), np.zeros(3, bool)),
    case("clip", lambda x: anp.clip(x, 0.3, 0.6), A),
    case("clip between arrays", lambda x, y: anp.clip(x, y, 0.9), A, B, exact=False),
    case("astype", lambda x: x.astype(np.float32), A),
    case("array with more dimensions", lambda x: anp.array(x, ndmin=3), V),
    case("array of scalars", lambda x: anp.array([x[0], 2.0, x[2] * x[1]]), V),
    case("array of rows", lambda x, y: anp.array([x, y], ndmin=3), V, W),
    case("full", lambda x: anp.full((2, 3), x), B),
    case("full_like", lambda x, y: anp.full_like(x, y), A, B),
    case("where", lambda c, x, y: anp.where(c > 0.5, x, y), A, B, floats(1), exact=False),
    case("where constant", lambda x, y: anp.where(FLAGS, x, y), A, B),
    case("power", lambda x, y: x**y, A, B),
    case("power of integers", lambda x: x**2, [1, 2, 3]),
    case("complex product", lambda x, y: x * y, Z, B),
    # moving
    case("basic index", lambda x: x[1, ::-2, None, 1:3], T),
    case("ellipsis", lambda x: x[..., -1], T),
    case("one element", lambda x: x[1, 2, 3], T),
    case("repeated index", lambda x: x[[0, 2, 2, 0]], V),
    case("index arrays", lambda x: x[np.array([[0, 1], [1, 1]]), 1:, np.array([3, 0])], T),
    case("boolean index", lambda x: x[:, FLAGS], A),
    case("reshape", lambda x: anp.reshape(x, (3, -1)), A),
    case("reshape in Fortran order", lambda x: anp.reshape(x, (3, 2), order="F"), A),
    case("ravel", lambda x: anp.ravel(x, "F"), A),
    case("ravel as it lies", lambda x: anp.ravel(x, "K"), FORTRAN, exact=False),
    case("reshape as it lies", lambda x: anp.reshape(x, (3, 2), order="A"), FORTRAN, exact=False),
    case("transpose", lambda x: x.T, T),
    case("transpose axes", lambda x: anp.transpose(x, (2, 0, 1)), T),
    case("transpose negative axes", lambda x: anp.transpose(x, (-1, 0, -2)), T),
    case("moveaxis", lambda x: anp.moveaxis(x, 0, -1), T),
    case("moveaxis several", lambda x: anp.moveaxis(x, (0, 2), (1, 0)), T),
    case("swapaxes", lambda x: anp.swapaxes(x, 0, 2), T),
    case("rollaxis", lambda x: anp.rollaxis(x, 2), T),
    case("matrix_transpose", lambda x: anp.matrix_transpose(x), T),
    case("linalg.matrix_transpose", lambda x: anp.linalg.matrix_transpose(x), T),
    case("squeeze", lambda x: anp.squeeze(x), floats(2, 1, 3)),
    case("expand_dims", lambda x: anp.expand_dims(x, (0, 2)), A),
    case("broadcast_to", lambda x: anp.broadcast_to(x, (2, 2, 3)), A),
    case("broadcast_arrays", lambda x, y: anp.broadcast_arrays(x, y)[1], A, B),
    case("meshgrid", lambda x, y: anp.meshgrid(x, y, indexing="ij")[0], V, B),
    case("flip", lambda x: anp.flip(x, 1), T),
    case("fliplr", lambda x: anp.fliplr(x), T),
    case("flipud", lambda x: anp.flipud(x), T),
    case("rot90", lambda x: anp.rot90(x), A),
    case("roll", lambda x: anp.roll(x, 2, axis=1), T),
    case("roll flat", lambda x: anp.roll(x, 1), A),
    case("flip both axes", lambda x: anp.flip(x), A),
    case("flip axes", lambda x: anp.flip(x, (0, -1)), T),
    case("rot90 back in other axes", lambda x: anp.rot90(x, -1, (2, 0)), T),
    case("roll two axes", lambda x: anp.roll(x, (1, -2), (0, 2)), T),
    case("roll one axis by all", lambda x: anp.roll(x, 1, axis=(0, 1)), A),
    case("tile", lambda x: anp.tile(x, (2, 2)), A),
    case("tile once", lambda x: anp.tile(x, 2), A),
    case("tile into more axes", lambda x: anp.tile(x, (2, 1, 3)), A),
    case("tile never", lambda x: anp.sum(anp.tile(x, (0, 1)), axis=0), A),
    case("repeat", lambda x: anp.repeat(x, [2, 0, 1], axis=1), A),
    case("repeat flat", lambda x: anp.repeat(x, 2), A),
    case("repeat flat by counts", lambda x: anp.repeat(x, [0, 1, 2, 0, 0, 1]), A),
    case("repeat along the first axis", lambda x: anp.repeat(x, 3, axis=-3), T),
    case("repeat nothing", lambda x: anp.sum(anp.repeat(x, [0, 0], axis=0)), A),
    case("take flat", lambda x: anp.take(x, [[5, -1], [0, 5]]), A),
    case("take one", lambda x: anp.take(x, 1, axis=-1), T),
    case("take a matrix of places", lambda x: anp.take(x, [[0, 2], [2, 1]], axis=1), T),
    case("take round the end", lambda x: anp.take(x, [4, -1], axis=0, mode="wrap"), A),
    case("take up to the end", lambda x: anp.take(x, [9, -3], axis=1, mode="clip"), A),
    case("squeeze an axis", lambda x: anp.squeeze(x, axis=1), floats(2, 1, 1)),
    case("broadcast_to a matrix of numbers", lambda x: anp.broadcast_to(x, (2, 3)), 0.5),
    case("atleast_1d of several", unpacked(anp.atleast_1d), 0.5, V),
    case("atleast_3d of several", unpacked(anp.atleast_3d), A, V),
    case("linalg.diagonal below", lambda x: anp.linalg.diagonal(x, offset=-1), STACK),
    case("resize", lambda x: anp.resize(x, (2, 5)), A),
    case("diagonal", lambda x: anp.diagonal(x, 1, 1, 2), T),
    case("linalg.diagonal", lambda x: anp.linalg.diagonal(x), T),
    case("diag of a vector", lambda x: anp.diag(x, 1), V),
    case("diag of a matrix", lambda x: anp.diag(x), SQUARE),
    case("diagflat", lambda x: anp.diagflat(x), A),
    case("make_diagonal", lambda x: numpy_wrapper.make_diagonal(x, 0, -1, -2), A),
    case("tril", lambda x: anp.tril(x), SQUARE),
    case("triu", lambda x: anp.triu(x, 1), SQUARE),
    case("take", lambda x: anp.take(x, [2, 0, 2], axis=1), T),
    case("take_along_axis", lambda x: anp.take_along_axis(x, np.array([[2, 2], [0, 1]]), 1), A),
    case("delete", lambda x: anp.delete(x, 1, axis=1), A),
    case("insert", lambda x, y: anp.insert(x, 1, y, axis=0), A, B),
    case("insert constant", lambda x: anp.insert(x, 1, 7.0), V),
    case("append", lambda x, y: np.append(x, y), A, B),
    case("split", lambda x: anp.split(x, [1], axis=1)[1], A),
    case("array_split", lambda x: anp.array_split(x, 2)[0], B),
    case("hsplit", lambda x: anp.hsplit(x, 3)[2], A),
    case("vsplit", lambda x: anp.vsplit(x, 2)[1], A),
    case("dsplit", lambda x: anp.dsplit(x, 2)[1], T),
    case("unstack", lambda x: anp.unstack(x, axis=1)[2], A),
    case("compress", lambda x: anp.compress([True, False, True], x, axis=1), A),
    case("extract", lambda x: anp.extract(np.array([[True, False, True]] * 2), x), A),
    case("concatenate", lambda x, y: anp.concatenate([x, np.ones((1, 3)), y], axis=0), A, A + 1),
    case("concatenate last axis", lambda x, y: anp.concatenate([x, y], axis=-1), A, A + 1),
    case("concatenate flat", lambda x, y: anp.concatenate([x, y], axis=None), A, B),
    case("stack", lambda x, y: anp.stack([x, y], axis=1), V, W),
    case("atleast_1d", lambda x: anp.atleast_1d(x), 0.5),
    case("atleast_2d", lambda x: anp.atleast_2d(x), V),
    case("atleast_3d", lambda x: anp.atleast_3d(x), V),
    case("fftshift", lambda x: anp.fft.fftshift(x), A),
    case("ifftshift", lambda x: anp.fft.ifftshift(x), A),
    case("truncate_pad", lambda x: truncate_pad(x, (3, 2)), A),
    *(
        case(f"pad {mode}", lambda x, mode=mode: anp.pad(x, ((1, 0), (2, 1)), mode), A)
        for mode in ("constant", "edge", "reflect", "symmetric", "wrap")
    ),
    case("pad with a constant", lambda x: anp.pad(x, 2, "constant", constant_values=3.0), V),
    # sums of products
    case("matmul", lambda x, y: x @ y, A, C),
    case("matmul of a vector", lambda x, y: x @ y, A, B),
    case("matmul vectors", lambda x, y: x @ y, V, W),
    case("matmul batches", lambda x, y: x @ y, T, floats(4, 2)),
    case("matmul broadcast batches", lambda x, y: x @ y, floats(1, 2, 3), floats(4, 3, 2)),
    case("matvec", lambda x, y: anp.matvec(x, y), T, V),
    case("vecmat", lambda x, y: anp.vecmat(x, y), B, T),
    case("vecdot", lambda x, y: anp.vecdot(x, y), T, V),
    case("dot", lambda x, y: anp.dot(x, y), A, C),
    case("dot with a vector", lambda x, y: anp.dot(x, y), T, V),
    case("dot of many axes", lambda x, y: anp.dot(x, y), A, floats(2, 3, 2)),
    case("dot with a scalar", lambda x, y: anp.dot(x, y), A, 2.0),
    case("inner", lambda x, y: anp.inner(x, y), A, floats(4, 3)),
    case("inner with a scalar", lambda x, y: anp.inner(x, y), A, 2.0),
    case("outer", lambda x, y: anp.outer(x, y), A, V),
    case("tensordot", lambda x, y: anp.tensordot(x, y, 1), A, C),
    case("tensordot axes", lambda x, y: anp.tensordot(x, y, ([0, 1], [1, 2])), A, floats(4, 2, 3)),
    case("tensordot default", lambda x, y: anp.tensordot(x, y), T, floats(3, 4, 2)),
    case("einsum", lambda x, y: anp.einsum("ij,jk->ik", x, y), A, C),
    case("einsum implicit", lambda x, y: anp.einsum("ij,jk", x, y), A, C),
    case("einsum ellipsis", lambda x, y: anp.einsum("...j,jk->...k", x, y), A, C),
    case("einsum diagonal", lambda x: anp.einsum("ii->i", x), SQUARE),
    case("einsum trace", lambda x: anp.einsum("ii", x), SQUARE),
    case("einsum diagonal of a stack", lambda x, y: anp.einsum("ijj,jk->ik", x, y), STACK, SQUARE),
    case("einsum diagonal and ellipsis", lambda x: anp.einsum("...ii->...i", x), STACK),
    case("einsum of repeated list labels", lambda x: anp.einsum(x, [0, 0], [0]), SQUARE),
    case("einsum of lists, implicit", lambda x, y: anp.einsum(x, [0, 1], y, [1, 2]), A, C),
    case("einsum transposing implicitly", lambda x: anp.einsum("ba", x), A),
    case("einsum of lists and ellipsis", lambda x: anp.einsum(x, [..., 0, 1], [..., 1, 0]), T),
    case("einsum of three", lambda x, y, z: anp.einsum("ij,jk,k->i", x, y, z), A, C, floats(2)),
    case("einsum broadcast", lambda x, y: anp.einsum("ij,ij->i", x, y), A, floats(1, 3)),
    case("einsum of lists", lambda x, y: anp.einsum(x, [0, 1], y, [1, 2], [2, 0]), A, C),
    case("vdot", lambda x, y: anp.vdot(x, y), V, W),
    case("kron", lambda x, y: anp.kron(x, y), A, B),
    case("kron of matrices", lambda x, y: anp.kron(x, y), A, C),
    case("kron of more axes", lambda x, y: anp.kron(x, y), floats(2), floats(1, 2, 2)),
    case("cross", lambda x, y: anp.cross(x, y), A, B),
    case("cross of axes", lambda x, y: anp.cross(x, y, axisa=0, axisb=1, axisc=0), floats(3, 2), A),
    case("cross along an axis", lambda x, y: anp.cross(x, y, axis=0), floats(3, 2), floats(3, 2, seed=2)),
    case("cross with a vector in the plane", lambda x, y: anp.cross(x, y), floats(2), B, exact=False),
    case("cross in the plane", lambda x, y: anp.cross(x, y), floats(2), floats(4, 2)),
    case("linalg.cross", lambda x, y: anp.linalg.cross(x, y, axis=0), floats(3, 2), floats(3, 2, seed=2)),
    *(
        case(f"{name} {mode} of {n} and {m}", applied(getattr(anp, name), mode), floats(n), floats(m, seed=2))
        for name in ("convolve", "correlate")
        for mode in ("full", "same", "valid")
        for n, m in ((5, 3), (3, 5), (4, 2), (2, 4), (6, 4), (4, 6), (1, 1))
    ),
    *each("vecdot", A, A + 1, of=anp.linalg),
    *each("outer", V, W, of=anp.linalg),
    *each("matmul", A, C, of=anp.linalg),
    *each("tensordot", T, floats(3, 4, 2), of=anp.linalg),
    # dense
    case("allclose", lambda x, y: anp.allclose(x, y), V, V, exact=False),
    case("array_equal", lambda x, y: anp.array_equal(x, y), V, V, exact=False),
    case("array_equiv", lambda x, y: anp.array_equiv(x, y), V, V, exact=False),
    case("linspace", lambda x, y: anp.linspace(x, y, 4), 0.1, 0.7, exact=False),
    # tables and polynomials
    case("isin", lambda x, y: anp.isin(x, y), V, V, exact=False),
    case("searchsorted", lambda x, y: anp.searchsorted(x, y), STEPS, A, exact=False),
    case("digitize", lambda x: anp.digitize(x, STEPS), A),
    case("digitize between traced bins", lambda x, y: anp.digitize(x, y), A, STEPS, exact=False),
    case("bincount of weights", lambda x: anp.bincount([1, 0, 1, 3], x), V),
    case("histogram", unpacked(lambda x: anp.histogram(x, 3, (0.0, 1.0))), V, exact=False),
    case(
        "histogram of weights",
        unpacked(lambda x, y: anp.histogram(x, STEPS, None, None, y)),
        V,
        W,
        exact=False,
    ),
    case("histogram of unknown range", unpacked(lambda x: anp.histogram(x, 3)), V, exact=False),
    case("interp", lambda x, y: anp.interp(x, STEPS, y), B, V, exact=False),
    case("interp in a traced table", lambda x, p, y: anp.interp(x, p, y), B, STEPS, V, exact=False),
    case("interp at known places", lambda y: anp.interp([0.0, 0.2, 0.65, 0.7, 2.0], STEPS, y), V),
    case(
        "interp with ends",
        lambda y, a, b: anp.interp([0.0, 0.4, 0.9], STEPS, y, a, b),
        V,
        0.3,
        0.4,
        exact=False,
    ),
    case("interp at a point", lambda y: anp.interp([0.3], STEPS, y), V, exact=False),
    case("interp of period", lambda y: anp.interp([0.0, 0.4], STEPS, y, period=1.0), V, exact=False),
    case("polyval", lambda x, y: anp.polyval(x, y), V, A),
    case("vander", lambda x: anp.vander(x, 3), V),
    case("vander increasing", lambda x: anp.vander(x, 3, True), V),
    case("cov", lambda x: anp.cov(x), A),
    case("cov of columns", lambda x: anp.cov(x, rowvar=False), A),
    case("cov of two", lambda x, y: anp.cov(x, y), A, A + B, exact=False),
    case("cov of a vector", lambda x: anp.cov(x), V),
    case("cov of one row", lambda x: anp.cov(x), floats(1, 4), exact=False),
    case("corrcoef", lambda x: anp.corrcoef(x), T[0], exact=False),
    # matrices
    *of_matrices("det slogdet", STACK, exact=False),
    *of_matrices("inv pinv cholesky svd svdvals eig eigh eigvals eigvalsh", SYMMETRIC, exact=False),
    *of_matrices("matrix_norm matrix_rank cond qr", STACK, exact=False),
    *of_matrices("matrix_power", STACK, exact=False, n=3),
    *of_matrices("matrix_power", STACK, exact=False, n=-1),
    *of_matrices("solve", SYMMETRIC, floats(2, 3, 2)),
    *of_matrices("solve", SYMMETRIC[0], floats(3)),
    *of_matrices("solve", SYMMETRIC, floats(3)),
    *of_matrices("solve", SYMMETRIC, floats(1, 3, 2)),
    *of_matrices("solve", SYMMETRIC[0], floats(2, 3, 2)),
    *of_matrices("lstsq", C, floats(3), exact=False),
    *of_matrices("tensorinv", floats(2, 3, 6), exact=False),
    *of_matrices("tensorsolve", floats(2, 3, 6), A, exact=False),
    case("linalg.trace", lambda x: anp.linalg.trace(x), SQUARE, exact=False),
    # several results, containers
    case("divmod", lambda x, y: anp.divmod(x, y)[1], A, B),
    case("modf", lambda x: anp.modf(3 * x)[0], A),
    case("frexp", lambda x: anp.frexp(9 * x)[1], A, exact=False),
    case("container", lambda x, y: autograd.builtins.tuple((x, y))[1], A, B),
    case("container slice", lambda x, y: autograd.builtins.list((x, y, x))[1:][0], A, B),
    case(
        "extended container", lambda x, y: extended(autograd.builtins.tuple((x,)), (y,))[1], A, B, exact=False
    ),
    case(
        "container extended left",
        lambda x, y: extended((y,), autograd.builtins.tuple((x,)))[1],
        A,
        B,
        exact=False,
    ),
]


if SCIPY is not None:
    CASES += [
        case("scipy convolve", lambda x, y: SCIPY.signal.convolve(x, y), V, B, exact=False),
        case("logsumexp", lambda x: SCIPY.special.logsumexp(x, axis=1), A, exact=False),
        case("polygamma", lambda x: SCIPY.special.polygamma(1, x), A),
    ]


def is_elementwise(raw: Any) -> bool:
    return (
        isinstance(raw, np.ufunc) and raw.signature is None and any("O" not in types for types in raw.types)
    )


def ufunc_cases() -> list[Case]:
    """One case for each element-wise ufunc that autograd wraps, with broadcasting if it has two inputs."""
    made = []
    for raw, wrapped in trace_primitives_map.items():
        if not is_elementwise(raw):
            continue
        inputs = ufunc_inputs(raw)
        if inputs is not None:
            function = (lambda *x, f=wrapped: list(f(*x))) if raw.nout > 1 else wrapped
            made.append(case(f"ufunc {raw.__name__}", function, *inputs, exact=False))
    return made


def ufunc_inputs(ufunc: np.ufunc) -> tuple[np.ndarray, ...] | None:
    real, whole = (floats(2, 3), floats(3)), (np.array([[5, 3, 9], [2, 8, 4]]), np.array([2, 1, 3]))
    for kinds in (
        real,
        whole,
        (real[0], whole[1]),
        (whole[0], real[1]),
        (*real, floats(1)),
        (*real, real[0], real[1]),
    ):
        inputs = kinds[: ufunc.nin]
        if len(inputs) < ufunc.nin:
            continue
        try:
            with warnings.catch_warnings(action="ignore"):
                ufunc(*inputs)
        except TypeError:
            continue
        return inputs
    return None


UFUNC_CASES = ufunc_cases()


# ---- the comparison ----


def traced(case: Case) -> tuple[Any, list[Any]]:
    """The tape, and the results in their boxes."""
    with recording() as (tape, box):
        boxes = [box(str(i), value) for i, value in enumerate(case.inputs)]
        found = [leaf for _, leaf in leaves(case.function(*boxes))]
        recorded(found)
    if not case.errors_count:
        tape.sinks = {sink: None for sink in tape.sinks if not sink[1].kind.startswith("errors of ")}
    return tape, found


def calls_of(case: Case) -> list[Any]:
    """Nodes of the calls on the tape."""
    return [node for node in available(case, traced)[0].nodes if node.call is not None]


def masks_by_result(case: Case) -> tuple[list[np.ndarray], list[tuple[int, int, list[np.ndarray]]]]:
    """Plain results; per result element the masks pulled back from it alone."""
    tape, found = traced(case)
    results = [np.asarray(getval(leaf)) for leaf in found]
    pulled = []
    for which, leaf in enumerate(found):
        for position in range(results[which].size):
            pulled.append((which, position, pulled_from(tape, leaf, position, case)))
    return results, pulled


def recorded(found: list[Any]) -> None:
    """Views are recorded when they are used: use them while there is a tape."""
    for leaf in found:
        if isbox(leaf):
            assert leaf._node is not None


def available(case: Case, look: Callable[[Case], Any]) -> Any:
    """``look(case)``; skips if this NumPy lacks the function."""
    try:
        return look(case)
    except AttributeError as error:
        if "module 'autograd.numpy" not in str(error):
            raise
        pytest.skip(f"{error} with NumPy {np.__version__}: NumPy 2 has it")


def pulled_from(tape: Any, leaf: Any, position: int, case: Case) -> list[np.ndarray]:
    if not hasattr(leaf, "_node"):
        masks = sweep.needed(tape, [])
    else:
        mask = nothing(leaf._node.shape)
        mask.reshape(-1)[position] = True
        masks = sweep.needed(tape, [(leaf._node, mask)])
    return [masks[str(i)] for i in range(len(case.inputs))]


def replacements(value: Any) -> list[Any]:
    """Values to put in an element's place."""
    kind = np.asarray(value).dtype.kind
    if kind == "b":
        return [not value]
    if kind in "iu":
        return [value + 1, value + 7, 1, 0]
    extra = [value * 1j + 0.3] if kind == "c" else []
    return [value * 1.37 + 0.01, 0.0, -value, 0.5 * value, 1e3, np.nan, np.inf, -np.inf, *extra]


def changes(case: Case, results: list[np.ndarray]) -> dict[tuple[int, int], set[tuple[int, int]]]:
    """(result, element) -> the (input, element) pairs that change it."""
    found: dict[tuple[int, int], set[tuple[int, int]]] = {}
    for i, original in enumerate(case.inputs):
        for place in range(original.size):
            for value in replacements(original.reshape(-1)[place]):
                if not case.errors_count and not np.isfinite(value):
                    # Some builds of LAPACK never come back from an SVD of infinities.
                    continue
                changed = original.copy()
                changed.reshape(-1)[place] = value
                inputs = [changed if j == i else other for j, other in enumerate(case.inputs)]
                for key in differing(case, inputs, results):
                    found.setdefault(key, set()).add((i, place))
    return found


def differing(case: Case, inputs: list[np.ndarray], results: list[np.ndarray]) -> list[tuple[int, int]]:
    """The result elements that come out differently; all of them if the function raises and that counts."""
    try:
        outcome = [np.asarray(leaf) for _, leaf in leaves(case.function(*inputs))]
    except (ValueError, ArithmeticError, np.linalg.LinAlgError):
        if not case.errors_count:
            return []
        return [(which, place) for which, old in enumerate(results) for place in range(old.size)]
    keys = []
    for which, (new, old) in enumerate(zip(outcome, results, strict=True)):
        assert new.shape == old.shape
        unequal = ~((new == old) | ((new != new) & (old != old)))
        keys += [(which, int(place)) for place in np.flatnonzero(unequal)]
    return keys


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", [*CASES, *UFUNC_CASES], ids=lambda case: case.label)
def test_rule_against_brute_force(case: Case) -> None:
    results, pulled = available(case, masks_by_result)
    truth = changes(case, results)
    for which, position, masks in pulled:
        said = {(i, int(place)) for i, mask in enumerate(masks) for place in np.flatnonzero(mask)}
        does = truth.get((which, position), set())
        assert does <= said, (
            f"result {which}[{position}] changes with {does - said}, which the rule leaves out"
        )
        if case.exact:
            assert said == does, f"result {which}[{position}] does not depend on {said - does}"


def test_every_row_is_tried() -> None:
    """A row without a case here would be a claim nobody checks."""
    tried: set[Any] = set()
    for one in CASES:
        with contextlib.suppress(pytest.skip.Exception):
            tried |= {node.call.function for node in calls_of(one)}
    missing = {
        getattr(f, "__name__", f)
        for f in rules.RULES.keys() - tried
        if f.__module__.rpartition(".")[2] not in ("sparse_products", "ufunc_methods")
    }
    # What autograd's own backward pass puts on the tape is tried by test_step_that_takes_gradients; writes
    # are by test_inplace.py, sparse products by test_sparse_products.py, methods of ufuncs by
    # test_inplace_constructs.py.
    assert missing == {
        # Communication is by test_mpi_profile.py.
        "sent",
        "received",
        "reduced",
        "leaf_of",
        "store",
        "mix",
        "spread",
        "one_of_several",
        # Tried by test_steering.py.
        "__getitem__",
        "argwhere",
        "flatnonzero",
        "nonzero",
        "add",
        "mut_add",
        "covector",
        "scalar_mul",
        "inner_prod",
        "sparse_add",
        "untake",
        "container_untake",
        "dot_adjoint_0",
        "dot_adjoint_1",
        "tensordot_adjoint_0",
        "tensordot_adjoint_1",
        "_make_dict",
    }


def test_every_elementwise_ufunc_is_tried() -> None:
    tried = {one.label.removeprefix("ufunc ") for one in UFUNC_CASES}
    elementwise = {raw.__name__ for raw in trace_primitives_map if is_elementwise(raw)}
    assert elementwise - tried == {"isnat"}


def test_primitives_that_fall_back_to_dense() -> None:
    """The primitives with a derivative but without a row: they raise on some values, or change the dtype."""
    raws = (getattr(primitive, "fun", primitive) for primitive in primitive_vjps)
    fallen = {raw for raw in raws if raw not in rules.RULES and not is_elementwise(raw)}
    assert {raw.__name__ for raw in fallen if raw.__module__.startswith("numpy")} == {"real_if_close"}
    if SCIPY is not None:
        of_scipy = [
            raw for raw in fallen if "stats" not in raw.__module__ and raw.__module__.startswith("scipy")
        ]
        assert {raw.__name__ for raw in of_scipy} == {
            "odeint",
            "solve_banded",
            "solve_sylvester",
            "solve_triangular",
            "sqrtm",
        }


@pytest.mark.parametrize("case", [*CASES, *UFUNC_CASES], ids=lambda case: case.label)
def test_whole_results_need_whole_arguments(case: Case) -> None:
    """What `Row.whole` claims, and the sweep takes for granted, is what the pull does."""
    for node in calls_of(case):
        if node.row.whole and not node.steered and isinstance(node.shape, tuple) and 0 not in node.shape:
            for argnum, parent in zip(node.call.argnums, node.parents, strict=True):
                if argnum in node.row.data and isinstance(parent.shape, tuple):
                    into = nothing(parent.shape)
                    node.row.pull(node.call, everything(node.shape), argnum, into)
                    assert np.all(into), f"{node.call.function} argument {argnum}"


def test_what_may_raise_counts_as_an_output() -> None:
    one = case("inv", lambda x: anp.linalg.inv(x)[0], STACK)
    for _, _, (mask,) in masks_by_result(one)[1]:
        assert mask.all()


# ---- what is kept, and how much ----


def test_an_index_that_many_calls_take_is_copied_once() -> None:
    index = np.arange(1000)[::-1].copy()
    with recording() as (tape, box):
        x = box("x", np.ones(1000))
        x = x[index] + x[index]
        index[0] = 3
        x = x[index]
        recorded([x])
    kept = [
        node.call.args[1] for node in tape.nodes if node.call and isinstance(node.call.args[1], np.ndarray)
    ]
    assert kept[0] is kept[1]
    assert kept[0] is not index
    # What the program does to the array later does not reach the tape.
    assert kept[0][0] == 999
    assert kept[2][0] == 3


MOVES: dict[str, Callable[[Any], Any]] = {
    "roll": lambda x: anp.roll(x, 3, axis=1),
    "flip": lambda x: anp.flip(x, 0),
    "rot90": lambda x: anp.rot90(x),
    "tile": lambda x: anp.tile(x, (2, 1)),
    "repeat": lambda x: anp.repeat(x, 2, axis=0),
    "repeat by counts": lambda x: anp.repeat(x, np.arange(1000) % 3, axis=1),
    "take": lambda x: anp.take(x, np.arange(0, 1000, 2), axis=1),
    "broadcast_to": lambda x: anp.broadcast_to(x, (2, 1000, 1000)),
    "squeeze": lambda x: anp.squeeze(anp.expand_dims(x, 1)),
    "swapaxes": lambda x: anp.swapaxes(x, 0, 1),
    "rollaxis": lambda x: anp.rollaxis(x, 1),
    "ravel": lambda x: anp.ravel(x),
    "ravel in Fortran order": lambda x: anp.ravel(x, "F"),
    "reshape in Fortran order": lambda x: anp.reshape(x, (500, 2000), order="F"),
    "fftshift": lambda x: anp.fft.fftshift(x),
    "split": lambda x: anp.split(x, 2)[1],
}


@pytest.mark.parametrize("name", MOVES)
def test_moves_take_no_number_for_each_element(name: str) -> None:
    with recording() as (tape, box):
        result = MOVES[name](box("x", np.ones((1000, 1000))))
        recorded([result])
    mask = nothing(result._node.shape)
    mask.reshape(-1)[::7] = True
    tracemalloc.start()
    try:
        sweep.needed(tape, [(result._node, mask)])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # A few masks of one byte an element of the array or of the result; a number takes eight, or four.
    assert peak < 3.5 * max(1_000_000, mask.size)


# ---- random shapes, indices and axes ----


def check(function: Callable[..., Any], *inputs: np.ndarray) -> None:
    """The mask of each result element must be exactly what brute force finds."""
    one = case("random", function, *inputs)
    results, pulled = masks_by_result(one)
    truth = changes(one, results)
    for which, position, masks in pulled:
        said = {(i, int(place)) for i, mask in enumerate(masks) for place in np.flatnonzero(mask)}
        assert said == truth.get((which, position), set())


SHAPES = hnp.array_shapes(min_dims=1, max_dims=3, max_side=4)


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_any_basic_index(data: st.DataObject) -> None:
    shape = data.draw(SHAPES)
    index = data.draw(hnp.basic_indices(shape, allow_newaxis=True, allow_ellipsis=True))
    check(lambda x: x[index], floats(*shape))


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_any_integer_index_arrays(data: st.DataObject) -> None:
    shape = data.draw(SHAPES)
    index = data.draw(hnp.integer_array_indices(shape, result_shape=hnp.array_shapes(max_dims=2, max_side=3)))
    check(lambda x: x[index], floats(*shape))


@settings(deadline=None, max_examples=60)
@given(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=3, max_side=3))
def test_any_broadcast(shapes: hnp.BroadcastableShapes) -> None:
    first, second = shapes.input_shapes
    check(lambda x, y: x * 2.0 + y, floats(*first), floats(*second, seed=2))


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_any_reduced_axes(data: st.DataObject) -> None:
    shape = data.draw(SHAPES)
    axes = data.draw(hnp.valid_tuple_axes(len(shape), min_size=1))
    keep = data.draw(st.booleans())
    check(lambda x: anp.sum(x, axis=axes, keepdims=keep), floats(*shape))


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_any_einsum(data: st.DataObject) -> None:
    sizes = {"a": 2, "b": 3, "c": 2, "d": 1}
    labels = st.lists(st.sampled_from("abcd"), unique=True, max_size=3)
    left, right = data.draw(labels), data.draw(labels)
    result = (
        data.draw(st.lists(st.sampled_from(sorted({*left, *right})), unique=True)) if left or right else []
    )
    subscripts = f"{''.join(left)},{''.join(right)}->{''.join(result)}"
    operands = (floats(*(sizes[label] for label in part), seed=i) for i, part in enumerate((left, right)))
    check(lambda x, y: anp.einsum(subscripts, x, y), *operands)


@settings(deadline=None, max_examples=60)
@given(hnp.mutually_broadcastable_shapes(signature="(n?,k),(k,m?)->(n?,m?)", max_dims=2, max_side=3))
def test_any_matmul(shapes: hnp.BroadcastableShapes) -> None:
    first, second = shapes.input_shapes
    check(lambda x, y: anp.matmul(x, y), floats(*first), floats(*second, seed=2))
