"""Boolean masks over values: which elements of an array, or of a sequence of arrays, are meant.

A mask of an array or scalar is a boolean array of its shape. A mask of a tuple or list (functions such as
``split`` return them) is a list of masks. A value of any other kind is opaque: its mask has shape ``()`` and
stands for the whole of it.

May import NumPy only. Tests: ``tests/test_dependence_rules.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

BoolArray: TypeAlias = NDArray[np.bool_]
Mask: TypeAlias = "BoolArray | list[Mask]"
Shape: TypeAlias = "tuple[int, ...] | list[Shape]"
"""A tuple is the shape of one array; a list holds the shapes of a sequence's members."""


class Whole(Enum):
    """Stands for a mask of an array, not empty, in which every element is set."""

    WHOLE = True


WHOLE = Whole.WHOLE


def shape_of(value: Any) -> Shape:
    """Shape of `value`, as masks see it."""
    if isinstance(value, (np.ndarray, np.generic)):
        return value.shape
    if isinstance(value, (tuple, list)):
        return [shape_of(member) for member in value]
    return ()


def nothing(shape: Shape) -> Mask:
    """A mask of `shape` in which no element is set."""
    if isinstance(shape, list):
        return [nothing(member) for member in shape]
    return np.zeros(shape, dtype=bool)


def everything(shape: Shape) -> Mask:
    """A mask of `shape` in which every element is set."""
    mask = nothing(shape)
    fill(mask)
    return mask


def fill(mask: Mask) -> None:
    """Set every element of `mask`, in place."""
    if isinstance(mask, list):
        for member in mask:
            fill(member)
    else:
        mask[...] = True


def has_any(mask: Mask) -> bool:
    """True if any element of `mask` is set."""
    if isinstance(mask, list):
        return any(has_any(member) for member in mask)
    return bool(mask.any())


def is_whole(mask: Mask | Whole) -> bool:
    """True if `mask` belongs to an array that is not empty, and every element is set."""
    if mask is WHOLE:
        return True
    return isinstance(mask, np.ndarray) and 0 < mask.size == np.count_nonzero(mask)


def merge(into: Mask, other: Mask) -> None:
    """Set in `into` whatever is set in `other`, in place; both belong to the same value."""
    if isinstance(into, list) and isinstance(other, list):
        for target, member in zip(into, other, strict=True):
            merge(target, member)
    elif isinstance(into, list) or isinstance(other, list) or into.shape != other.shape:
        # One side sees parts, the other an opaque value: all or nothing is the safe reading.
        if has_any(other):
            fill(into)
    else:
        into |= other


def unite_named(into: dict[str, BoolArray], other: Mapping[str, BoolArray]) -> None:
    """Set in the masks `into`, in arrays of their own, what those of the same names in `other` set."""
    for name, mask in other.items():
        into[name] = into[name] | mask if name in into else mask


def union_of(masks: list[Mask]) -> BoolArray:
    """Element-wise union of masks of equal or broadcastable shapes, as one array."""
    arrays = [mask if not isinstance(mask, list) else union_of(mask) for mask in masks]
    return any_over(np.stack(np.broadcast_arrays(*arrays)), (0,))


def any_over(mask: BoolArray, axes: tuple[int, ...], *, keepdims: bool = False) -> BoolArray:
    """``mask.any(axis=axes)``, as an array also where NumPy would return a scalar."""
    return np.asarray(mask.any(axis=axes, keepdims=keepdims))


def unbroadcast(mask: BoolArray, shape: tuple[int, ...]) -> BoolArray:
    """Pull a mask of a broadcast result back to an operand of `shape`: any over the repeated axes."""
    if mask.shape == shape:
        return mask
    extra = mask.ndim - len(shape)
    if extra > 0:
        mask = any_over(mask, tuple(range(extra)))
    repeated = tuple(i for i, n in enumerate(shape) if n == 1 and mask.shape[i] != 1)
    return any_over(mask, repeated, keepdims=True) if repeated else mask
