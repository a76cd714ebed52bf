"""Which elements of an array's memory a view shows: strided windows, and lists of places for other indices.

Masks of a memory are C-contiguous and lie in memory order, so a view's strides count in them as they do in
the memory itself. NumPy made the view; nothing about slices, reshapes or transposes is worked out again here.

`loaded`, `stored`, `mixed_in` and `spread_over` are the pulls of reads and writes (see `memory`).

May import NumPy, `calls` and `masks`. Tests: ``tests/test_inplace.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from scr_critplugin.analysis.calls import Call
from scr_critplugin.analysis.masks import BoolArray, unbroadcast
from scr_critplugin.errors import ProfileError


@dataclass(frozen=True, slots=True)
class Window:
    """Elements `offset + index . strides` of a memory, all counted in its elements.

    `whole`: the view covers its elements entirely (the real part of a complex array does not). `distinct`: it
    shows no element twice. `inside`: it shows the second part of its elements (the imaginary part).
    """

    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    whole: bool
    distinct: bool
    inside: bool = False

    def on(self, mask: BoolArray) -> BoolArray:
        """The view of a memory's `mask` that corresponds to this window."""
        return np.ndarray(self.shape, bool, mask.reshape(-1), self.offset, self.strides)

    def places(self) -> NDArray[np.intp]:
        """Place in the memory of each element."""
        total = np.full(self.shape, self.offset, dtype=np.intp)
        for axis, (extent, stride) in enumerate(zip(self.shape, self.strides, strict=True)):
            total += (np.arange(extent) * stride).reshape((-1,) + (1,) * (len(self.shape) - axis - 1))
        return total

    def add(self, needed: BoolArray, into: BoolArray) -> None:
        """Set in the memory's mask `into` what `needed` sets in the window."""
        if self.distinct:
            part = self.on(into)
            part |= needed
        else:
            into.reshape(-1)[self.places()[needed]] = True

    def take(self, mask: BoolArray) -> BoolArray:
        """A copy of what the memory's `mask` sets in the window."""
        return self.on(mask).copy()

    def clear(self, mask: BoolArray) -> None:
        """Unset in the memory's `mask` the elements that a write to the window overwrites."""
        if self.whole:
            self.on(mask)[...] = False

    def mark(self, mask: BoolArray) -> None:
        """Set in the memory's `mask` every element of the window."""
        self.on(mask)[...] = True

    def token(self) -> tuple[Any, ...]:
        """What to compare."""
        return ("window", self.offset, self.shape, self.strides)


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """Elements of a memory at the given `at`, in any order, some perhaps more than once; else as `Window`."""

    at: NDArray[np.intp]
    whole: bool
    inside: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the index."""
        return self.at.shape

    def add(self, needed: BoolArray, into: BoolArray) -> None:
        """Set in the memory's mask `into` what `needed` sets at the places."""
        into.reshape(-1)[self.at[needed]] = True

    def take(self, mask: BoolArray) -> BoolArray:
        """A copy of what the memory's `mask` sets at the places."""
        return np.asarray(mask.reshape(-1)[self.at])

    def clear(self, mask: BoolArray) -> None:
        """Unset in the memory's `mask` the elements that a write to the places overwrites."""
        if self.whole:
            mask.reshape(-1)[self.at] = False

    def mark(self, mask: BoolArray) -> None:
        """Set in the memory's `mask` every element at the places."""
        mask.reshape(-1)[self.at] = True

    def places(self) -> NDArray[np.intp]:
        """Place in the memory of each element."""
        return self.at

    def token(self) -> tuple[Any, ...]:
        """What to compare."""
        return ("places", self.at.shape, self.at.tobytes())


Region: TypeAlias = Window | Places


def window_of(view: NDArray[Any], flat: NDArray[Any]) -> Region:
    """The window that `view` is of the memory `flat`; its places if it cuts elements into smaller ones.

    Raises
    ------
    ProfileError
        `view` joins elements of the memory to larger ones.
    """
    item = flat.itemsize
    distance = view.__array_interface__["data"][0] - flat.__array_interface__["data"][0]
    if view.itemsize == item:
        window = _window(distance, view.shape, view.strides, item)
        if window is not None:
            return window
    inside = distance % item
    strides = _used(view.shape, view.strides)
    if view.itemsize > item or item % view.itemsize or inside % view.itemsize:
        raise ProfileError(
            f"a view of dtype {view.dtype} into an array of dtype {flat.dtype} cannot be traced. Copy the "
            "array before it is reinterpreted"
        )
    if inside + view.itemsize > item or any(stride % item for stride in strides):
        inner = Window(distance, view.shape, strides, True, False).places()
        return Places(inner // item, False)
    steps = tuple(stride // item for stride in strides)
    return Window(distance // item, view.shape, steps, False, _distinct(view.shape, steps), inside > 0)


@lru_cache(maxsize=4096)
def _window(distance: int, shape: tuple[int, ...], strides: tuple[int, ...], item: int) -> Window | None:
    """The window of whole elements, of `item` bytes each, if it is one. The same in every step."""
    strides = _used(shape, strides)
    if distance % item or any(stride % item for stride in strides):
        return None
    steps = tuple(stride // item for stride in strides)
    return Window(distance // item, shape, steps, True, _distinct(shape, steps))


def _used(shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(stride if extent > 1 else 0 for extent, stride in zip(shape, strides, strict=True))


def _distinct(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    reach = 0
    for stride, extent in sorted((abs(s), n) for n, s in zip(shape, strides, strict=True) if n > 1):
        if stride <= reach:
            return False
        reach += stride * (extent - 1)
    return True


# ---- pulls; the calls are (memory, region, *sources) ----


def loaded(call: Call, needed: BoolArray, argnum: int, into: BoolArray) -> None:
    """A read of the region."""
    call.args[1].add(needed, into)


def stored(call: Call, needed: BoolArray, argnum: int, into: BoolArray) -> None:
    """A write to the region: what it held before is lost."""
    if argnum == 0:
        kept = needed.copy()
        call.args[1].clear(kept)
        into |= kept
    else:
        _from_region(call.args[1].take(needed), into)


def mixed_in(call: Call, needed: BoolArray, argnum: int, into: BoolArray) -> None:
    """A write to the region that may leave what it held, element by element."""
    if argnum == 0:
        into |= needed
    else:
        _from_region(call.args[1].take(needed), into)


def spread_over(call: Call, needed: BoolArray, argnum: int, into: BoolArray) -> None:
    """A write of which nothing is known: everywhere, from everywhere, and all may stay as it was."""
    if argnum == 0:
        into |= needed
    elif needed.any():
        into[...] = True


def _from_region(needed: BoolArray, into: BoolArray) -> None:
    # NumPy lets a value have leading axes of one element more than what it is assigned to.
    target = into.reshape(into.shape[max(into.ndim - needed.ndim, 0) :])
    target |= unbroadcast(needed, target.shape)
