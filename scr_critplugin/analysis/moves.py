"""Pulls of functions that move or repeat elements, without a number for each element.

`pulls.moved` finds out where any such function puts elements by moving their numbers, which takes eight bytes
an element. Those here work on the boolean masks themselves, so that a sweep over a large array stays small.

May import NumPy, `calls`, `masks` and `pulls`. Tests: ``tests/test_dependence_rules.py``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from scr_critplugin.analysis.calls import Call
from scr_critplugin.analysis.masks import BoolArray, Mask, any_over, unbroadcast
from scr_critplugin.analysis.pulls import dense


def viewed(call: Call, needed: Mask, argnum: int, into: BoolArray) -> None:
    """Functions whose result is a view of their first argument, or a sequence of views."""
    _merge_into_views(call.function(into, *call.args[1:], **call.kwargs), needed)


def viewed_each(call: Call, needed: Mask, argnum: int, into: BoolArray) -> None:
    """``atleast_nd``: of each argument a view; the result is a sequence if there are several."""
    if isinstance(needed, list) and len(call.args) > 1:
        needed = needed[argnum]
    _merge_into_views(call.function(into), needed)


def _merge_into_views(views: Any, needed: Mask) -> None:
    if isinstance(needed, list):
        for view, mask in zip(views, needed, strict=True):
            _merge_into_views(view, mask)
        return
    # NumPy marks the views of some functions (diagonal) as read-only; here the array under them is ours.
    views.flags.writeable = True
    views |= needed


def raveled(call: Call, needed: BoolArray, argnum: int, into: BoolArray) -> None:
    """``ravel`` and ``reshape``. In the orders A and K the layout of the array in memory decides: dense."""
    order = call.parameter("order")
    if order == "C":
        into |= needed.reshape(into.shape)
    elif order == "F":
        into |= needed.reshape(into.shape, order="F")
    else:
        dense(call, needed, argnum, into)


def rolled(call: Call, needed: BoolArray, argnum: int, into: BoolArray) -> None:
    """``roll``."""
    into |= np.roll(needed, np.negative(call.parameter("shift")), call.parameter("axis"))


def shifted_back(call: Call, needed: BoolArray, argnum: int, into: BoolArray) -> None:
    """``fftshift`` and ``ifftshift``: each undoes the other."""
    inverse = np.fft.ifftshift if call.function is np.fft.fftshift else np.fft.fftshift
    into |= inverse(needed, call.parameter("axes"))


def broadcast(call: Call, needed: BoolArray, argnum: int, into: BoolArray) -> None:
    """``broadcast_to``."""
    into |= unbroadcast(needed, into.shape)


def broadcast_each(call: Call, needed: Mask, argnum: int, into: BoolArray) -> None:
    """``broadcast_arrays``: one result for each argument."""
    into |= unbroadcast(np.asarray(needed[argnum]), into.shape)


def tiled(call: Call, needed: BoolArray, argnum: int, into: BoolArray) -> None:
    """``tile``: in each axis the copies lie behind each other."""
    times = tuple(int(count) for count in np.atleast_1d(call.parameter("reps")))
    ndim = needed.ndim
    shape, times = _filled_up(into.shape, ndim), _filled_up(times, ndim)
    copies = needed.reshape([n for pair in zip(times, shape, strict=True) for n in pair])
    into |= any_over(copies, tuple(range(0, 2 * ndim, 2))).reshape(into.shape)


def repeated(call: Call, needed: BoolArray, argnum: int, into: BoolArray) -> None:
    """``repeat``: each element along the axis one after the other, as often as its count says."""
    axis, counts = call.parameter("axis"), np.atleast_1d(call.parameter("repeats"))
    lines, result = (into.reshape(-1), needed) if axis is None else (into, needed)
    axis = 0 if axis is None else axis % into.ndim
    before, after = lines.shape[:axis], lines.shape[axis + 1 :]
    if counts.size == 1:
        groups = result.reshape((*before, lines.shape[axis], int(counts[0]), *after))
        lines |= any_over(groups, (axis + 1,))
        return
    kept = counts > 0
    if kept.any():
        starts = (np.cumsum(counts) - counts)[kept]
        lines[(slice(None),) * axis + (kept,)] |= np.logical_or.reduceat(result, starts, axis=axis)


def taken(call: Call, needed: BoolArray, argnum: int, into: BoolArray) -> None:
    """``take``: whole cross-sections along one axis."""
    axis, mode = call.parameter("axis"), call.parameter("mode")
    lines = into.reshape(-1) if axis is None else np.moveaxis(into, axis, 0)
    # What the function does with an index (its sign, its mode), it does to the numbers along the axis.
    places = np.take(np.arange(len(lines)), call.parameter("indices"), mode=mode)
    first = 0 if axis is None else axis % into.ndim
    wanted = np.moveaxis(needed, tuple(range(first, first + places.ndim)), tuple(range(places.ndim)))
    if lines.ndim == 1:
        lines[places[wanted]] = True
        return
    for place, mask in zip(places.reshape(-1), wanted.reshape(-1, *lines.shape[1:]), strict=True):
        lines[place] |= mask


def _filled_up(numbers: tuple[int, ...], ndim: int) -> tuple[int, ...]:
    return (1,) * (ndim - len(numbers)) + numbers
