"""Masks as runs and as strided boxes, both ways exact; the search for few boxes.

Imports NumPy and the errors only; ``regions`` is the public entrance. Tests: ``tests/test_regions.py``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import MapError

Order = Literal["C", "F"]
Mask = NDArray[np.bool_]

# Enough for every axis order of a 5-dimensional array; more axes than that get the first of them.
_MAX_AXIS_ORDERS = 120
# A strided stretch shorter than this is named index by index: two indices always have "a stride", and it
# would be another one at the next size.
_SHORTEST_STRIDE = 3
_PERIOD_SAMPLE = 4096


class Span(NamedTuple):
    """Indices ``start, start + step, ...`` below `stop` on one axis; `stop` is the last one + 1."""

    start: int
    stop: int
    step: int

    @property
    def indices(self) -> int:
        """Number of indices."""
        return (self.stop - self.start - 1) // self.step + 1


@dataclass(frozen=True, order=True)
class Box:
    """A strided box: on each axis the indices ``start, start + step, ... < stop``.

    In canonical form, so that equal sets of elements are equal boxes: `stop` is the last index + 1, and
    `step` is 1 where there is a single index. The box of a scalar has no axes.

    Raises
    ------
    MapError
        Unequal numbers of axes, an empty axis, a negative start, or not canonical.
    """

    start: tuple[int, ...]
    stop: tuple[int, ...]
    step: tuple[int, ...]

    def __post_init__(self) -> None:
        if not len(self.start) == len(self.stop) == len(self.step):
            raise MapError(f"found {self}, expected start, stop and step for each axis")
        for axis, span in enumerate(self.spans):
            if not (0 <= span.start < span.stop and span.step >= 1):
                raise MapError(f"found {self}, expected 0 <= start < stop and step >= 1 on axis {axis}")
            last = span.stop - 1 - span.start
            if last % span.step or (last == 0 and span.step != 1):
                raise MapError(
                    f"found {self}, expected stop = last index + 1 (and step 1 for one index) on axis {axis}"
                )

    @classmethod
    def of(cls, spans: Iterable[Span]) -> Box:
        """Box of one span an axis."""
        given = tuple(spans)
        return cls(
            tuple(span.start for span in given),
            tuple(span.stop for span in given),
            tuple(span.step for span in given),
        )

    @property
    def spans(self) -> tuple[Span, ...]:
        """One span an axis."""
        return tuple(map(Span, self.start, self.stop, self.step))

    @property
    def slices(self) -> tuple[slice, ...]:
        """Index that selects the box from an array."""
        return tuple(slice(span.start, span.stop, span.step) for span in self.spans)

    @property
    def counts(self) -> tuple[int, ...]:
        """Number of indices on each axis."""
        return tuple(span.indices for span in self.spans)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.counts)


# Masks and runs ---------------------------------------------------------------------------------------------


def runs(mask: ArrayLike, order: Order = "C") -> NDArray[np.int64]:
    """Maximal runs of True in the flattened mask.

    Parameters
    ----------
    mask : bool array of any shape
    order : {"C", "F"}
        How the mask is flattened.

    Returns
    -------
    int64 array of shape (n, 2)
        First index and last index + 1 of each run, ascending.
    """
    flat = as_mask(mask).ravel(order=order)
    edges = np.flatnonzero(flat[1:] != flat[:-1]) + 1
    if flat.size and flat[0]:
        edges = np.concatenate(([0], edges))
    if flat.size and flat[-1]:
        edges = np.concatenate((edges, [flat.size]))
    return edges.astype(np.int64).reshape(-1, 2)


def mask_from_runs(runs: ArrayLike, shape: Sequence[int], order: Order = "C") -> Mask:
    """Mask of `shape` that is True in the runs; inverse of :func:`runs`.

    Raises
    ------
    MapError
        The runs are not pairs of integers, not ascending, overlap, are empty, or leave the array.
    """
    pairs = np.asarray(runs)
    if pairs.size == 0:
        pairs = np.zeros((0, 2), np.int64)
    size = math.prod(shape)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        raise MapError(f"runs: found {pairs.dtype} of shape {pairs.shape}, expected integers of shape (n, 2)")
    bounds = pairs.astype(np.int64).ravel()
    steps = np.diff(bounds, prepend=0, append=size)
    if (steps < 0).any() or (steps[1:-1:2] == 0).any():
        raise MapError(f"runs: expected ascending, disjoint, not empty, and within {size} elements")
    flat = np.repeat(np.arange(steps.size) % 2 == 1, steps)
    return flat.reshape(tuple(shape), order=order)


# Masks and boxes --------------------------------------------------------------------------------------------


def boxes(mask: ArrayLike, max_boxes: int = 256) -> list[Box] | None:
    """Few disjoint strided boxes that together are exactly the mask.

    Slices that are equal along an axis are put in one class, which leaves a small mask of classes; that is
    split axis by axis, in every order of the axes, and the order that gives the fewest boxes wins. Blocks'
    interiors and ghost layers, planes, whole arrays and regular strides come out minimal; in general the
    number is small, not proven minimal.

    Parameters
    ----------
    mask : bool array of any shape
    max_boxes : int
        More boxes than this are no help.

    Returns
    -------
    list of Box, sorted, or None
        Empty if nothing is True. None if boxes do not help: more than `max_boxes`, or more than the mask has
        runs; use :func:`runs` then.
    """
    given = as_mask(mask)
    if not given.any():
        return []
    run_count = np.count_nonzero(np.diff(given.ravel(), prepend=False) & given.ravel())
    limit = min(max_boxes, int(run_count))
    cells, labels = _reduce(given)
    splitter = _Splitter(cells, labels)
    best: list[tuple[Span, ...]] | None = None
    for order in _axis_orders(cells.shape):
        found = splitter.split(order, limit)
        if found is not None:
            best, limit = found, len(found) - 1
    return None if best is None else sorted(map(Box.of, best))


def mask_from_boxes(boxes: Iterable[Box], shape: Sequence[int]) -> Mask:
    """Mask of `shape` that is True in the boxes; inverse of :func:`boxes`.

    Raises
    ------
    MapError
        A box has another number of axes or leaves the shape.
    """
    mask = np.zeros(tuple(shape), np.bool_)
    for box in boxes:
        require_inside(box, mask.shape)
        mask[box.slices] = True
    return mask


def as_mask(mask: ArrayLike) -> Mask:
    """Boolean array of the mask; MapError for any other type."""
    given = np.asarray(mask)
    if given.dtype != np.bool_:
        raise MapError(f"mask: found dtype {given.dtype}, expected bool")
    return given


def require_inside(box: Box, shape: Sequence[int]) -> None:
    """MapError if the box has another number of axes or leaves the shape."""
    if len(box.stop) != len(shape) or any(map(int.__gt__, box.stop, map(int, shape))):
        raise MapError(f"found {box}, expected a box within shape {tuple(shape)}")


def _reduce(mask: Mask) -> tuple[Mask, list[NDArray[np.intp]]]:
    """The mask with equal slices of every axis united, and for each axis the class of every index."""
    cells = mask
    labels: list[NDArray[np.intp]] = []
    for axis in range(mask.ndim):
        # Neighbours first: one cheap pass makes most structured masks tiny before anything is sorted.
        cells, label = _unite(cells, axis, _neighbour_classes)
        labels.append(label)
    for axis in range(mask.ndim):
        cells, label = _unite(cells, axis, _equal_classes)
        labels[axis] = label[labels[axis]]
    return cells, labels


def _unite(
    cells: Mask, axis: int, classify: Callable[[Mask], tuple[NDArray[np.intp], NDArray[np.intp]]]
) -> tuple[Mask, NDArray[np.intp]]:
    rows = np.moveaxis(cells, axis, 0).reshape(cells.shape[axis], -1)
    first, label = classify(rows)
    return np.take(cells, first, axis), label


def _neighbour_classes(rows: Mask) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """First row and class of each row, where only equal neighbours share a class."""
    is_new = np.ones(len(rows), np.bool_)
    is_new[1:] = (rows[1:] != rows[:-1]).any(axis=1)
    return np.flatnonzero(is_new), np.cumsum(is_new) - 1


def _equal_classes(rows: Mask) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """First row and class of each row, where all equal rows share a class; classes by first appearance."""
    _, first, label = np.unique(_row_keys(rows), return_index=True, return_inverse=True)
    by_appearance = np.argsort(first)
    rank = np.empty_like(by_appearance)
    rank[by_appearance] = np.arange(rank.size)
    return first[by_appearance], rank[label.reshape(-1)]


def _row_keys(rows: Mask) -> NDArray[Any]:
    """One value a row, equal exactly where the rows are."""
    packed = np.packbits(rows, axis=1)
    width = packed.shape[1]
    if width > 8:
        return np.ascontiguousarray(packed).view(np.dtype((np.void, width))).reshape(-1)
    whole = 1 << (width - 1).bit_length()  # 1, 2, 4 or 8 bytes: integers sort far faster than byte strings
    padded = np.zeros((len(rows), whole), np.uint8)
    padded[:, :width] = packed
    return padded.view(np.dtype(f"u{whole}")).reshape(-1)


def _axis_orders(shape: tuple[int, ...]) -> Iterable[tuple[int, ...]]:
    """Orders in which to split the axes; an axis of one class makes no difference and goes last."""
    several = [axis for axis, classes in enumerate(shape) if classes > 1]
    single = tuple(axis for axis, classes in enumerate(shape) if classes == 1)
    return (order + single for order in itertools.islice(itertools.permutations(several), _MAX_AXIS_ORDERS))


class _TooManyError(Exception):
    """More boxes than allowed; never leaves this module."""


class _Splitter:
    """Splits a mask of classes into boxes, one axis after the other."""

    def __init__(self, cells: Mask, labels: Sequence[NDArray[np.intp]]) -> None:
        self.cells = cells
        self.labels = labels
        self.spans_of: dict[tuple[int, bytes], list[Span]] = {}

    def split(self, order: tuple[int, ...], limit: int) -> list[tuple[Span, ...]] | None:
        """Boxes as one span an axis, or None if there are more than `limit`."""
        if not order:
            return [()] if self.cells else []
        try:
            found = self._split(np.transpose(self.cells, order), order, limit, {})
        except _TooManyError:
            return None
        place = [order.index(axis) for axis in range(len(order))]
        return [tuple(box[at] for at in place) for box in found]

    def _split(
        self,
        cells: Mask,
        order: tuple[int, ...],
        limit: int,
        done: dict[tuple[int, bytes], list[tuple[Span, ...]]],
    ) -> list[tuple[Span, ...]]:
        if len(order) == 1:
            return [(span,) for span in self._spans(order[0], cells, limit)]
        key = (len(order), cells.tobytes())
        if key in done:
            return done[key]
        # The classes that share a box on the remaining axes take it together.
        owners: dict[tuple[Span, ...], Mask] = {}
        for number, slice_ in enumerate(cells):
            for rest in self._split(slice_, order[1:], limit, done):
                owners.setdefault(rest, np.zeros(len(cells), np.bool_))[number] = True
            if len(owners) > limit:
                raise _TooManyError
        found = []
        for rest, classes in owners.items():
            found += [(span, *rest) for span in self._spans(order[0], classes, limit)]
            if len(found) > limit:
                raise _TooManyError
        done[key] = found
        return found

    def _spans(self, axis: int, classes: Mask, limit: int) -> list[Span]:
        key = (axis, classes.tobytes())
        if key not in self.spans_of:
            self.spans_of[key] = _spans(classes[self.labels[axis]], limit)
        return self.spans_of[key]


# Sets of indices on one axis --------------------------------------------------------------------------------


def _spans(wanted: Mask, limit: int) -> list[Span]:
    """Few spans that are exactly the True indices: as runs, as stretches of a stride, or by a period."""
    run_pairs = runs(wanted)
    best = [Span(int(start), int(stop), 1) for start, stop in run_pairs[: limit + 1]]
    if len(run_pairs) >= _SHORTEST_STRIDE:
        alternatives = [_stretches(np.flatnonzero(wanted), limit)]
        alternatives += [_folded(wanted, period, limit) for period in _likely_periods(run_pairs[:, 0])]
        best = min([best, *alternatives], key=len)  # the first of equals: plain runs read best
    if len(best) > limit:
        raise _TooManyError
    return best


def _stretches(indices: NDArray[np.intp], limit: int) -> list[Span]:
    """Consecutive indices of equal distance, taken from the left; stops after `limit` + 1 spans."""
    distance = np.diff(indices)
    changes = np.flatnonzero(distance[1:] != distance[:-1]) + 1
    found: list[Span] = []
    at = 0
    while at < indices.size and len(found) <= limit:
        if at == distance.size:
            last = at
        else:
            following = np.searchsorted(changes, at, side="right")
            last = int(changes[following]) if following < changes.size else distance.size
        step = int(distance[at]) if last > at else 1
        if step > 1 and last - at + 1 < _SHORTEST_STRIDE:
            last, step = at, 1
        found.append(Span(int(indices[at]), int(indices[last]) + 1, step))
        at = last + 1
    return found


def _likely_periods(starts: NDArray[np.int64]) -> list[int]:
    """Distances at which runs recur, counting one to four runs a period."""
    sample = starts[:_PERIOD_SAMPLE]
    periods: list[int] = []
    for runs_each in range(1, min(5, sample.size)):
        distances, counts = np.unique(sample[runs_each:] - sample[:-runs_each], return_counts=True)
        periods.append(int(distances[np.argmax(counts)]))
    return list(dict.fromkeys(period for period in periods if period > 1))


def _folded(wanted: Mask, period: int, limit: int) -> list[Span]:
    """Spans of stride `period`, and runs for what recurs too seldom; stops after `limit` + 1 spans."""
    rows = -(-wanted.size // period)
    table = np.zeros((period, rows), np.bool_)  # one row for each remainder, so that a recurrence is a run
    padded = np.zeros(rows * period, np.bool_)
    padded[: wanted.size] = wanted
    table[:] = padded.reshape(rows, period).T
    recurrences = [
        (remainder, pairs[pairs[:, 1] - pairs[:, 0] >= _SHORTEST_STRIDE])
        for remainder, pairs in _row_runs(table)
    ]
    found: list[Span] = []
    rest = padded
    for remainder, pairs in recurrences:
        for first, end in pairs.tolist():
            start, last = first * period + remainder, (end - 1) * period + remainder
            rest[start : last + 1 : period] = False
            found.append(Span(start, last + 1, period))
            if len(found) > limit:
                return found
    found += [Span(int(start), int(stop), 1) for start, stop in runs(rest)[: limit + 1]]
    return sorted(found)


def _row_runs(table: Mask) -> Iterable[tuple[int, NDArray[np.int64]]]:
    return ((number, runs(row)) for number, row in enumerate(table) if row.any())
