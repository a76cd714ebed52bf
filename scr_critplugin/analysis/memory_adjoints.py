"""Adjoints of reads and writes of memory (`memory`), for programs that write into arrays.

A cotangent of a memory lies as the memory does, so a window of the one is a window of the other. A write to a
region gives the region's cotangent to what was written, and none to what stood there before.

May import NumPy, `adjoints`, `cotangents`, `memory`, `values`, `windows` and `writes`.
Tests: ``tests/test_gradient.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from scr_critplugin.analysis.adjoints import Adjoint, PullBack, changes_cotangent
from scr_critplugin.analysis.cotangents import NoRuleError, add_at, unbroadcast, value_shape
from scr_critplugin.analysis.memory import load, mix, spread, store
from scr_critplugin.analysis.values import needs_no_values
from scr_critplugin.analysis.windows import Places, Region, Window
from scr_critplugin.analysis.writes import one_of_several


def _region(step: PullBack) -> Region:
    # A write at places that the state decides has none for the structure; here it counts where it went.
    found: Region = step.saved.args[1] or (step.saved.kwargs or {})["region"]
    return found


def _part(memory: NDArray[Any], window: Window) -> NDArray[Any]:
    """What the window shows of a memory's cotangent, which lies as the memory does."""
    dtype = memory.dtype if window.whole else memory.real.dtype
    offset = window.offset * memory.itemsize + (dtype.itemsize if window.inside else 0)
    strides = tuple(stride * memory.itemsize for stride in window.strides)
    return np.ndarray(window.shape, dtype, memory.reshape(-1), offset, strides)


def _at(memory: NDArray[Any], region: Region) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """A flat view of a memory's cotangent (its part, if the region is one), and the region's places in it."""
    flat = memory.reshape(-1)
    if not region.whole:
        flat = flat.imag if region.inside else flat.real
    return flat, region.at if isinstance(region, Places) else region.places()


def _sign(region: Region) -> int:
    # A cotangent of z = x + iy is that of x minus i times that of y.
    return -1 if region.inside else 1


def _loaded(step: PullBack, cotangent: Any) -> None:
    """A read of a region."""
    region = _region(step)
    for _, parent in step.parents():
        into = step.cotangents.into(parent)
        if into is None:
            continue
        signed = _sign(region) * np.asarray(cotangent)
        if isinstance(region, Window) and region.distinct:
            part = _part(into, region)
            part += signed if part.dtype.kind == "c" else signed.real
        else:
            add_at(*_at(into, region), signed)


def _taken(cotangent: NDArray[Any], region: Region) -> NDArray[Any]:
    """A copy of what a write to the region gets of the memory's `cotangent`, of the region's shape."""
    if isinstance(region, Window):
        return np.asarray(_sign(region) * _part(cotangent, region))
    flat, places = _at(cotangent, region)
    return np.asarray(_sign(region) * flat[places])


def _cleared(cotangent: NDArray[Any], region: Region) -> None:
    if isinstance(region, Window):
        _part(cotangent, region)[...] = 0
    else:
        flat, places = _at(cotangent, region)
        flat[places] = 0


def _last_writes(region: Region) -> NDArray[np.bool_] | None:
    """Of a region that names elements twice, the writes that lasted; None if it names none twice."""
    if isinstance(region, Window):
        if region.distinct:
            return None
        places = region.places()
    else:
        places = region.at
    flat = places.reshape(-1)
    order = np.arange(flat.size)
    last = np.zeros(flat.max(initial=0) + 1, np.intp)
    np.maximum.at(last, flat, order)
    return np.asarray((last[flat] == order).reshape(places.shape))


def _stored(step: PullBack, cotangent: Any) -> None:
    """A write to a region: the source gets its cotangent, what it held before gets none."""
    region = _region(step)
    for argnum, parent in step.parents():
        if argnum == 0:
            continue
        taken = _taken(cotangent, region)
        lasting = _last_writes(region)
        if lasting is not None:
            taken = np.where(lasting, taken, 0)
        step.cotangents.add(parent, unbroadcast(taken, value_shape(parent)), own=True)
    _pass_on(step, cotangent, lambda: _cleared(cotangent, region))


def _pass_on(step: PullBack, cotangent: Any, change: Callable[[], None]) -> None:
    """Hand the memory's cotangent on to its contents before the write, after the `change`."""
    if 0 in step.call.argnums:
        change()
        step.cotangents.add(step.node.parents[step.call.argnums.index(0)], cotangent, own=True)


def _mixed(step: PullBack, cotangent: Any) -> None:
    """A write that may leave what it found: where a mask says so, at places, or by a ufunc's ``at``."""
    how = (step.saved.kwargs or {}).get("how")
    if how == "assign":
        _stored(step, cotangent)
    elif how == "where":
        _where_written(step, cotangent)
    elif how in (np.add, np.subtract):
        _accumulated(step, cotangent, 1 if how is np.add else -1)
    else:
        _pass_on(step, cotangent, lambda: _cleared(cotangent, _region(step)))
        raise NoRuleError


def _where_written(step: PullBack, cotangent: Any) -> None:
    _, args, _ = step.saved.arguments()
    region = cast(Window, _region(step))
    mask = np.broadcast_to(np.asarray(args[-1], bool), region.shape)
    for argnum, parent in step.parents():
        if 0 < argnum < len(args) - 1:
            taken = np.where(mask, _taken(cotangent, region), 0)
            step.cotangents.add(parent, unbroadcast(taken, value_shape(parent)), own=True)
    _pass_on(step, cotangent, lambda: np.copyto(_part(cotangent, region), 0, where=mask))


def _accumulated(step: PullBack, cotangent: Any, sign: int) -> None:
    """``np.add.at`` and ``np.subtract.at``."""
    region = _region(step)
    for argnum, parent in step.parents():
        if argnum > 0:
            step.cotangents.add(parent, unbroadcast(sign * _taken(cotangent, region), value_shape(parent)))
    _pass_on(step, cotangent, lambda: None)


def _several_results(step: PullBack, cotangent: Any) -> None:
    raise NoRuleError


OF_MEMORY: dict[Callable[..., Any], Adjoint] = {
    load: _loaded,
    store: _stored,
    mix: _mixed,
    spread: _mixed,
    one_of_several: _several_results,
}
needs_no_values(load, store, mix, spread)
changes_cotangent(store, mix, spread)
