"""The methods of ufuncs (``reduce``, ``accumulate``, ``reduceat``, ``outer``) as primitives with rules.

May import autograd, `pulls` and `rules`. Tests: ``tests/test_inplace_constructs.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import autograd.numpy as anp
import numpy as np
from autograd.extend import primitive
from autograd.tracer import getval, isbox

from scr_critplugin.analysis import pulls
from scr_critplugin.analysis.calls import Call
from scr_critplugin.analysis.masks import BoolArray
from scr_critplugin.analysis.rules import FIRST, Row, add_rule, row_of


@primitive  # type: ignore[untyped-decorator]
def reduced(array: Any, ufunc: np.ufunc, axis: Any, keepdims: bool) -> Any:
    """``ufunc.reduce``."""
    return ufunc.reduce(array, axis=axis, keepdims=keepdims)


@primitive  # type: ignore[untyped-decorator]
def accumulated(array: Any, ufunc: np.ufunc, axis: int) -> Any:
    """``ufunc.accumulate``."""
    return ufunc.accumulate(array, axis)


@primitive  # type: ignore[untyped-decorator]
def reduced_at(array: Any, ufunc: np.ufunc, indices: Any, axis: int) -> Any:
    """``ufunc.reduceat``."""
    return ufunc.reduceat(array, indices, axis)


def segments(call: Call, needed: BoolArray, argnum: int, into: BoolArray) -> None:
    """``reduceat``: a result depends on the elements from its index to the next."""
    axis, starts = call.args[3], np.asarray(call.args[2])
    results, elements = np.moveaxis(needed, axis, 0), np.moveaxis(into, axis, 0)
    ends = np.append(starts[1:], len(elements))
    for result, start, end in zip(results, starts, ends, strict=True):
        elements[start : max(end, start + 1)] |= result


add_rule(reduced, Row(pulls.reduction, data=FIRST))
add_rule(accumulated, Row(pulls.prefix, data=FIRST))
add_rule(reduced_at, Row(segments, data=FIRST, values=range(2, 3)))


def _reduce(ufunc: np.ufunc, array: Any, axis: Any = 0, keepdims: bool = False) -> Any:
    return reduced(array, ufunc, axis, keepdims)


def _accumulate(ufunc: np.ufunc, array: Any, axis: int = 0) -> Any:
    return accumulated(array, ufunc, axis)


def _reduceat(ufunc: np.ufunc, array: Any, indices: Any, axis: int = 0) -> Any:
    return reduced_at(array, ufunc, np.asarray(indices), axis)


def _outer(ufunc: np.ufunc, one: Any, other: Any) -> Any:
    shape = np.shape(getval(one)) + (1,) * np.ndim(getval(other))
    return ufunc(anp.reshape(one, shape), other)


FOLLOWED: dict[str, Callable[..., Any]] = {
    "reduce": _reduce,
    "accumulate": _accumulate,
    "reduceat": _reduceat,
    "outer": _outer,
}
"""By method: functions of a ufunc and the method's arguments."""

_OPTIONS = {"reduce": {"axis", "keepdims"}, "accumulate": {"axis"}, "reduceat": {"axis"}, "outer": set[str]()}


def is_followed(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """True if the call can be recorded by `FOLLOWED`."""
    if method not in FOLLOWED or not kwargs.keys() <= _OPTIONS[method]:
        return False
    if method != "outer" and (not isbox(inputs[0]) or any(isbox(part) for part in inputs[1:])):
        return False
    bare = tuple(map(getval, inputs if method == "outer" else (inputs[0], inputs[0])))
    return row_of(ufunc, bare, {}).known
