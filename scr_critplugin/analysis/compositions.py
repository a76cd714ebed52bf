"""Adjoints where autograd has no rule, or none for the arguments: by writing functions in terms of others.

An expression takes the function's own arguments, and autograd differentiates it. One that does not hold for
some arguments raises ValueError or TypeError, which ends the derivative there.

May import autograd, `adjoints` and `cotangents`. Tests: ``tests/test_gradient.py``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import autograd.numpy as anp
import numpy as np
from autograd.core import make_vjp

from scr_critplugin.analysis.adjoints import Adjoint, PullBack
from scr_critplugin.analysis.cotangents import NoRuleError


def composed(expression: Callable[..., Any]) -> Adjoint:
    """The adjoint of a function that `expression` computes, by functions with rules of autograd."""

    def adjoint(step: PullBack, cotangent: Any) -> None:
        _, args, kwargs = step.saved.arguments()
        parts = []
        for argnum, parent in step.parents():

            def of_one(value: Any, argnum: int = argnum) -> Any:
                return expression(*args[:argnum], value, *args[argnum + 1 :], **kwargs)

            try:
                with warnings.catch_warnings():
                    # autograd warns of results that do not depend on the argument: their part is zero.
                    warnings.simplefilter("ignore")
                    parts.append((parent, make_vjp(of_one, args[argnum])[0](cotangent)))
            except (TypeError, ValueError, LookupError, NotImplementedError, AssertionError) as missing:
                raise NoRuleError from missing
        for parent, part in parts:
            step.cotangents.add(parent, part)

    return adjoint


def _average(a: Any, axis: Any = None, weights: Any = None) -> Any:
    if weights is None:
        return anp.mean(a, axis=axis)
    if np.shape(weights) != np.shape(a):
        raise ValueError("weights of one axis")
    return anp.sum(a * weights, axis=axis) / anp.sum(weights, axis=axis)


def _without_nan(a: Any) -> tuple[Any, Any]:
    counted = ~np.isnan(np.asarray(getattr(a, "_value", a)))
    return anp.where(counted, a, 0.0), counted


def _nansum(a: Any, axis: Any = None, *, keepdims: Any = False) -> Any:
    return anp.sum(_without_nan(a)[0], axis=axis, keepdims=keepdims)


def _nanmean(a: Any, axis: Any = None, *, keepdims: Any = False) -> Any:
    values, counted = _without_nan(a)
    return anp.sum(values, axis=axis, keepdims=keepdims) / np.sum(counted, axis=axis, keepdims=keepdims)


def _nanvar(a: Any, axis: Any = None, *, ddof: int = 0, keepdims: Any = False) -> Any:
    _, counted = _without_nan(a)
    deviation = anp.where(counted, a - _nanmean(a, axis, keepdims=True), 0.0)
    number = np.sum(counted, axis=axis, keepdims=keepdims) - ddof
    return anp.sum(anp.abs(deviation) ** 2, axis=axis, keepdims=keepdims) / number


def _nanstd(a: Any, axis: Any = None, *, ddof: int = 0, keepdims: Any = False) -> Any:
    return anp.sqrt(_nanvar(a, axis, ddof=ddof, keepdims=keepdims))


def _nanmax(a: Any, axis: Any = None, *, keepdims: Any = False) -> Any:
    return anp.max(anp.where(_without_nan(a)[1], a, -np.inf), axis=axis, keepdims=keepdims)


def _nanmin(a: Any, axis: Any = None, *, keepdims: Any = False) -> Any:
    return anp.min(anp.where(_without_nan(a)[1], a, np.inf), axis=axis, keepdims=keepdims)


def _nancumsum(a: Any, axis: Any = None) -> Any:
    return anp.cumsum(_without_nan(a)[0], axis=axis)


def _ptp(a: Any, axis: Any = None, *, keepdims: Any = False) -> Any:
    return anp.max(a, axis=axis, keepdims=keepdims) - anp.min(a, axis=axis, keepdims=keepdims)


def _trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    if x is not None:
        if np.ndim(x) > 1:
            raise ValueError("points of many axes")
        dx = anp.diff(x)
    last = anp.moveaxis(y, axis, -1)
    return anp.sum(dx * (last[..., 1:] + last[..., :-1]) / 2.0, axis=-1)


def _vdot(a: Any, b: Any) -> Any:
    return anp.sum(anp.conj(anp.ravel(a)) * anp.ravel(b))


def _vecdot(a: Any, b: Any, *, axis: int = -1) -> Any:
    return anp.sum(anp.conj(a) * b, axis=axis)


def _matvec(a: Any, b: Any) -> Any:
    return anp.sum(a * b[..., None, :], axis=-1)


def _vecmat(a: Any, b: Any) -> Any:
    return anp.sum(anp.conj(a)[..., :, None] * b, axis=-2)


def _outer(a: Any, b: Any) -> Any:
    return anp.ravel(a)[:, None] * anp.ravel(b)[None, :]


def _kron(a: Any, b: Any) -> Any:
    ndim = max(np.ndim(a), np.ndim(b))
    first = (1,) * (ndim - np.ndim(a)) + np.shape(a)
    second = (1,) * (ndim - np.ndim(b)) + np.shape(b)
    left = anp.reshape(a, [n for extent in first for n in (extent, 1)])
    right = anp.reshape(b, [n for extent in second for n in (1, extent)])
    return anp.reshape(left * right, [m * n for m, n in zip(first, second, strict=True)])


def _cumulative_sum(x: Any, /, *, axis: Any = None, include_initial: bool = False) -> Any:
    summed = anp.cumsum(x, axis=axis)
    if not include_initial:
        return summed
    zero = np.zeros(np.shape(anp.sum(summed, axis=axis or 0, keepdims=True)))
    return anp.concatenate([zero, summed], axis=axis or 0)


def _solve(a: Any, b: Any) -> Any:
    return anp.matmul(anp.linalg.inv(a), b)


def _cross(a: Any, b: Any) -> Any:
    if np.shape(a)[-1] != 3 or np.shape(b)[-1] != 3:
        raise ValueError("vectors of two components")
    parts = [a[..., i - 2] * b[..., i - 1] - a[..., i - 1] * b[..., i - 2] for i in range(3)]
    return anp.stack(parts, axis=-1)


def _trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    moved = anp.moveaxis(a, (axis1, axis2), (-2, -1))
    rows, columns = np.shape(moved)[-2:]
    chosen = np.eye(rows, columns, offset)
    return anp.sum(moved * chosen, axis=(-2, -1))


def _linalg_trace(x: Any, /, *, offset: int = 0) -> Any:
    return _trace(x, offset, -2, -1)


def _vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    if ord != 2:
        raise ValueError("another norm")
    return anp.sqrt(anp.sum(anp.abs(x) ** 2, axis=axis, keepdims=keepdims))


def _polyval(p: Any, x: Any) -> Any:
    value = 0.0 * x
    for i in range(len(p)):
        value = value * x + p[i]
    return value


def _clip(a: Any, a_min: Any = None, a_max: Any = None) -> Any:
    above = a if a_min is None else anp.maximum(a, a_min)
    return above if a_max is None else anp.minimum(above, a_max)


def _cbrt(x: Any) -> Any:
    return anp.sign(x) * anp.abs(x) ** (1.0 / 3.0)


def _fmod(x: Any, y: Any) -> Any:
    return x - y * anp.trunc(x / y)


def _copysign(x: Any, y: Any) -> Any:
    return anp.abs(x) * anp.where(np.signbit(np.asarray(getattr(y, "_value", y))), -1.0, 1.0)


def _full_like(a: Any, fill_value: Any) -> Any:
    return anp.zeros(np.shape(a)) + fill_value


_OF_NUMPY = {
    "average": _average,
    "nansum": _nansum,
    "nanmean": _nanmean,
    "nanvar": _nanvar,
    "nanstd": _nanstd,
    "nanmax": _nanmax,
    "nanmin": _nanmin,
    "nancumsum": _nancumsum,
    "ptp": _ptp,
    "trapezoid": _trapezoid,
    "vdot": _vdot,
    "vecdot": _vecdot,
    "matvec": _matvec,
    "vecmat": _vecmat,
    "outer": _outer,
    "cumulative_sum": _cumulative_sum,
    "cross": _cross,
    "trace": _trace,
    "polyval": _polyval,
    "clip": _clip,
    "cbrt": _cbrt,
    "float_power": anp.power,
    "fmod": _fmod,
    "copysign": _copysign,
    "full_like": _full_like,
}
_OF_LINALG = {
    "matmul": anp.matmul,
    "tensordot": anp.tensordot,
    "solve": _solve,
    "outer": _outer,
    "vecdot": _vecdot,
    "trace": _linalg_trace,
    "vector_norm": _vector_norm,
    "cross": _cross,
}

COMPOSED: dict[Callable[..., Any], Adjoint] = {
    getattr(namespace, name): composed(expression)
    for namespace, expressions in ((np, _OF_NUMPY), (np.linalg, _OF_LINALG))
    for name, expression in expressions.items()
    # The table spans several versions of NumPy.
    if hasattr(namespace, name)
}

INSTEAD: dict[Callable[..., Any], Adjoint] = {np.kron: composed(_kron)}
"""Where autograd's own rule is wrong (for arrays of more than two axes)."""
