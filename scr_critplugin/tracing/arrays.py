"""A section's bytes as an array of elements: their states, its shape, and whether a rule describes them.

Only structure may be dropped: masks that are a few boxes in some shape. Imports NumPy, ``regions``,
``criticality``, and beside it ``sections``, ``uniting``, ``shapes``.
Tests: ``tests/test_tracing_planning.py``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .. import regions
from ..criticality import ElementState
from .sections import LEAST_BYTES, Section
from .shapes import infer_shape
from .uniting import ByteStates

FEW_BOXES, FEW_GUESSED, FEW_RUNS = 32, 8, 4
"""A rule has at most as many boxes: in a shape that is known, in one that was found to suit the mask, and of
one axis, where any mask is a list of runs."""
MOST_PIECES = 256
"""Sections in more pieces are kept whole: a plan lists every piece."""
_SMALL = f"fewer than {LEAST_BYTES} bytes"


@dataclass(frozen=True)
class Part:
    """Elements of an array of one axis, from `start` on, that are an array of `shape` (C order)."""

    start: int
    shape: tuple[int, ...]

    @property
    def stop(self) -> int:
        """Index behind its last element."""
        return self.start + math.prod(self.shape)


@dataclass(frozen=True)
class ArrayStates:
    """A section as an array.

    Parameters
    ----------
    section : Section
    shape, order : its shape, as far as it is known, else one axis
    states : uint8 array of that shape
        An ElementState an element.
    drop : bool array of that shape
        Elements that a plan may drop.
    unexplained : int
        Bytes that could be dropped, but no rule describes them.
    why : str
        Why they are not dropped, or "".
    parts : tuple of Part
        If not empty: the array is one behind the other of these, and each has a rule of its own.
    """

    section: Section
    shape: tuple[int, ...]
    order: regions.Order
    states: NDArray[np.uint8]
    drop: NDArray[np.bool_]
    unexplained: int
    why: str
    parts: tuple[Part, ...] = ()


def array_states(section: Section, known: ByteStates, shape: tuple[int, ...] | None) -> ArrayStates:
    """States of a section's elements; `shape` is the user's, or None."""
    states = _weakest(_elements(section, known.states))
    droppable = np.asarray(_elements(section, known.droppable).all(axis=1))
    moved = bool(_elements(section, known.moved).any())
    found, order = _shape(section, shape, droppable)
    parts = _parts(droppable) if found == (section.size,) and len(section.pieces) == 1 else ()
    why = _objection(section, droppable.reshape(found, order=order), moved, parts)
    unexplained = int(droppable.sum()) * section.dtype.itemsize if why and why != _SMALL else 0
    drop = np.zeros_like(droppable) if why else droppable
    return ArrayStates(
        section,
        found,
        order,
        states.reshape(found, order=order),
        drop.reshape(found, order=order),
        unexplained,
        why,
        () if why else parts,
    )


def _elements(section: Section, of_bytes: NDArray[np.generic]) -> NDArray[np.generic]:
    """The section's part of an array with an item a byte; shape (elements, bytes an element)."""
    parts = [of_bytes[piece.offset : piece.stop] for piece in section.pieces]
    return np.concatenate(parts).reshape(-1, section.dtype.itemsize)


def _weakest(states: NDArray[np.generic]) -> NDArray[np.uint8]:
    """An element's state from its bytes': critical if one is, then unused, then dead."""
    found = np.full(len(states), ElementState.DEAD, np.uint8)
    found[(states == ElementState.UNUSED).any(axis=1)] = ElementState.UNUSED
    found[(states == ElementState.CRITICAL).any(axis=1)] = ElementState.CRITICAL
    return found


def _shape(
    section: Section, given: tuple[int, ...] | None, droppable: NDArray[np.bool_]
) -> tuple[tuple[int, ...], regions.Order]:
    """The user's shape if it fits, the program's, or one in which the mask has structure."""
    if given is not None and math.prod(given) == section.size:
        return given, section.order if section.shape is not None else "C"
    known = section.shape
    if known is not None and (len(known) > 1 or _is_few_boxes(droppable.reshape(known))):
        return known, section.order
    if droppable.any() and not droppable.all() and not _is_few_boxes(droppable):
        inferred = infer_shape(~droppable)
        if (
            inferred is not None
            and math.prod(inferred) == section.size
            and _is_few_boxes(droppable.reshape(inferred), FEW_GUESSED)
        ):
            return inferred, "C"
    return known if known is not None else (section.size,), section.order


def _parts(droppable: NDArray[np.bool_]) -> tuple[Part, ...]:
    """Structure with a stretch of one kind before or behind it, as in grids of several levels."""
    if _is_few_boxes(droppable):
        return ()
    changes = np.flatnonzero(droppable[1:] != droppable[:-1]) + 1
    first, last = int(changes[0]), int(changes[-1])
    for start, stop in ((0, last), (first, droppable.size)):
        shape = infer_shape(~droppable[start:stop])
        if shape is not None and _is_few_boxes(droppable[start:stop].reshape(shape), FEW_GUESSED):
            ends = [Part(0, (start,))] if start else []
            ends += [Part(stop, (droppable.size - stop,))] if stop < droppable.size else []
            return tuple(sorted([Part(start, shape), *ends], key=lambda part: part.start))
    return ()


def _objection(section: Section, droppable: NDArray[np.bool_], moved: bool, parts: tuple[Part, ...]) -> str:
    if not droppable.any():
        return ""
    if section.nbytes < LEAST_BYTES:
        return _SMALL
    if len(section.pieces) > MOST_PIECES:
        return f"in {len(section.pieces)} pieces"
    if moved:
        return "what is dead changes from checkpoint to checkpoint"
    if not parts and not _is_few_boxes(droppable):
        return "no simple rule describes them"
    return ""


def _is_few_boxes(mask: NDArray[np.bool_], most: int = FEW_BOXES) -> bool:
    """Whether the mask, or what it leaves, is a few boxes; scattered runs are state, not structure."""
    few = most if sum(length > 1 for length in mask.shape) > 1 else FEW_RUNS
    return any(regions.boxes(one, few) is not None for one in (~mask, mask))
