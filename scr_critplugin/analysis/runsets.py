"""Sets of an array's elements as runs of its flattened order, and maps that carry such sets between arrays.

A run list takes memory in proportion to a set's rows, not to the array, so a tile of a huge array, or all of
its interior, costs little. A change of a set costs time in proportion to the rows in the span that changes:
the rows before and after are kept as they are, as pieces (programs that write plane by plane change a set
once for each plane).

An `IndexMap` says which elements of one array belong to which of another, as strides on both sides: NumPy's
views, broadcasting, reductions and transposes are all of that kind, each way round.

May import NumPy only. Tests: ``tests/test_runsets.py``.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Places: TypeAlias = NDArray[np.int64]

DENSER_THAN = 16
"""Above one run for so many elements, a boolean array takes less memory than the runs (of 16 bytes)."""

_ALWAYS_SPARSE = 4096

_MOST_PIECES = 64
"""More are made one: then a change costs a part of a copy of all rows, and a few list entries."""

_LONG_ENOUGH = 256
"""Mean elements for each run from which slices set one by one take less time than a pass over the array."""

_Piece: TypeAlias = tuple[Places, Places]


class NotSparseError(Exception):
    """The set, or the map, has no short form as runs. Never leaves `analysis`."""


class Runs:
    """Elements ``start[i] <= e < stop[i]``: int64 arrays, ascending, disjoint and not adjacent.

    A set does not change. Its arrays may lie in pieces, and are made one where they are asked for.
    """

    __slots__ = ("_pieces",)

    def __init__(self, start: Places, stop: Places) -> None:
        # Only the single piece of an empty set is empty.
        self._pieces: list[_Piece] = [(start, stop)]

    @classmethod
    def none(cls) -> Runs:
        """The empty set."""
        return cls(np.zeros(0, np.int64), np.zeros(0, np.int64))

    @classmethod
    def all(cls, size: int) -> Runs:
        """Every element of an array of `size` elements."""
        return cls(np.array([0]), np.array([size])) if size else cls.none()

    @classmethod
    def of(cls, start: Places, stop: Places) -> Runs:
        """The union of intervals in any order, which may overlap or be empty."""
        full = start < stop
        if not full.all():
            start, stop = start[full], stop[full]
        if not start.size:
            return cls.none()
        if (start[1:] < start[:-1]).any():
            order = np.argsort(start, kind="stable")
            start, stop = start[order], stop[order]
        stop = np.maximum.accumulate(stop)
        is_new = start[1:] > stop[:-1]
        if is_new.all():
            return cls(start, stop)
        return cls(start[np.append(True, is_new)], stop[np.append(is_new, True)])

    @classmethod
    def from_mask(cls, mask: NDArray[np.bool_]) -> Runs:
        """The set elements of a boolean array, in C order."""
        flat = mask.reshape(-1)
        edges = np.flatnonzero(flat[1:] != flat[:-1]) + 1
        if flat.size and flat[0]:
            edges = np.append(0, edges)
        if flat.size and flat[-1]:
            edges = np.append(edges, flat.size)
        return cls(edges[::2].astype(np.int64), edges[1::2].astype(np.int64))

    @classmethod
    def from_places(cls, places: Places) -> Runs:
        """The elements at `places`, in any order."""
        flat = places.reshape(-1)
        return cls.of(flat, flat + 1)

    @property
    def start(self) -> Places:
        """First element of each run."""
        return self._joined()[0]

    @property
    def stop(self) -> Places:
        """Last element of each run, plus 1."""
        return self._joined()[1]

    def _joined(self) -> _Piece:
        if len(self._pieces) > 1:
            starts, stops = zip(*self._pieces, strict=True)
            self._pieces = [(np.concatenate(starts), np.concatenate(stops))]
        return self._pieces[0]

    @property
    def rows(self) -> int:
        """Number of runs."""
        return sum(len(start) for start, _ in self._pieces)

    @property
    def span(self) -> tuple[int, int]:
        """First element, and last element + 1; of a set that is not empty."""
        return int(self._pieces[0][0][0]), int(self._pieces[-1][1][-1])

    def holds(self, begin: int, end: int) -> bool:
        """True if a single run holds the elements from `begin` to `end` - 1."""
        near = self.near(begin, end)
        return near.rows == 1 and near.span[0] <= begin and end <= near.span[1]

    def __bool__(self) -> bool:
        return bool(self._pieces[0][0].size)

    def equals(self, other: Runs) -> bool:
        """True if both are the same set."""
        return np.array_equal(self.start, other.start) and np.array_equal(self.stop, other.stop)

    @property
    def count(self) -> int:
        """Number of elements."""
        return int((self.stop - self.start).sum())

    def on(self, shape: tuple[int, ...]) -> NDArray[np.bool_]:
        """The boolean array of `shape`."""
        flat = np.zeros(math.prod(shape), bool)
        if self.rows > max(_ALWAYS_SPARSE, flat.size // _LONG_ENOUGH):
            edges = np.zeros(flat.size + 1, np.int8)
            edges[self.start] = 1
            edges[self.stop] = -1
            np.not_equal(np.cumsum(edges[:-1], dtype=np.int8), 0, out=flat)
        else:
            self._set_one_by_one(flat, True)
        return flat.reshape(shape)

    def mark(self, array: NDArray[Any], value: object) -> None:
        """Set these elements of a C-contiguous array."""
        if self.rows > max(_ALWAYS_SPARSE, array.size // _LONG_ENOUGH):
            array[self.on(array.shape)] = value
        else:
            self._set_one_by_one(array.reshape(-1), value)

    def _set_one_by_one(self, flat: NDArray[Any], value: object) -> None:
        for start, stop in zip(self.start.tolist(), self.stop.tolist(), strict=True):
            flat[start:stop] = value

    def places(self, limit: int) -> Places:
        """Every element; NotSparseError if there are more than `limit`."""
        if self.count > limit:
            raise NotSparseError
        return counted(self.start, self.stop - self.start)[1]

    def minus(self, other: Runs) -> Runs:
        """The elements that `other` does not hold."""
        if not self or not other:
            return self
        before, near, after = self._parted(*other.span)
        left = _where_covered(near, other.near(*self.span), inside=False)
        return _in_pieces([*before, *left._pieces, *after])

    def within(self, other: Runs) -> Runs:
        """The elements that `other` holds too."""
        if not self or not other:
            return Runs.none()
        return _where_covered(self.near(*other.span), other.near(*self.span), inside=True)

    def near(self, begin: int, end: int) -> Runs:
        """The runs, uncut, that overlap or adjoin the elements from `begin` to `end` - 1."""
        return self._parted(begin, end)[1]

    def _parted(self, begin: int, end: int) -> tuple[list[_Piece], Runs, list[_Piece]]:
        """Pieces before, the runs `near` these elements, and pieces after; views, not copies."""
        pieces = self._pieces
        if not self or begin > end:
            return pieces, Runs.none(), []
        first = bisect_left(pieces, begin, key=lambda piece: int(piece[1][-1]))
        last = bisect_right(pieces, end, key=lambda piece: int(piece[0][0]))
        before, near, after = pieces[:first], pieces[first:last], pieces[last:]
        if near:
            start, stop = near[0]
            cut = int(np.searchsorted(stop, begin))
            before.append((start[:cut], stop[:cut]))
            near[0] = start[cut:], stop[cut:]
            start, stop = near[-1]
            cut = int(np.searchsorted(start, end, side="right"))
            after.insert(0, (start[cut:], stop[cut:]))
            near[-1] = start[:cut], stop[:cut]
        return before, _in_pieces(near), after


def _in_pieces(pieces: list[_Piece]) -> Runs:
    """The set of all pieces, which follow each other without being adjacent; some may be empty."""
    runs = Runs.none()
    full = [piece for piece in pieces if piece[0].size]
    if full:
        runs._pieces = full
        if len(full) > _MOST_PIECES:
            runs._joined()
    return runs


def united(sets: Iterable[Runs]) -> Runs:
    """Union of sets of one array."""
    given = [each for each in sets if each]
    if len(given) < 2:
        return given[0] if given else Runs.none()
    if len(given) == 2:
        return _both(*given)
    return _of_all(given)


def _both(one: Runs, other: Runs) -> Runs:
    """The union: only in the narrower span of the two there is anything to do."""
    (first, last), (begin, end) = one.span, other.span
    if last - first < end - begin:
        one, other, begin, end = other, one, first, last
    before, near, after = one._parted(begin, end)
    return _in_pieces([*before, *_of_all([near, other])._pieces, *after])


def _of_all(sets: list[Runs]) -> Runs:
    return Runs.of(
        np.concatenate([each.start for each in sets]), np.concatenate([each.stop for each in sets])
    )


def too_many_runs(runs: int, size: int) -> bool:
    """True if a boolean array of `size` elements takes less memory than so many `runs`."""
    return runs > max(_ALWAYS_SPARSE, size // DENSER_THAN)


def _where_covered(one: Runs, other: Runs, *, inside: bool) -> Runs:
    if not one or not other:
        return Runs.none() if inside or not one else one
    if one.equals(other):
        # A write to all of what is needed there: frequent, and the edges need no sorting.
        return one if inside else Runs.none()
    if one.rows == 1 and one.holds(*other.span):
        return other if inside else _gaps(*one.span, other)
    # Every edge with what it opens or closes; between two edges both sets are constant.
    edges = np.concatenate([one.start, one.stop, other.start, other.stop])
    change_one = np.repeat([1, -1, 0, 0], [len(one.start)] * 2 + [len(other.start)] * 2)
    change_other = np.repeat([0, 0, 1, -1], [len(one.start)] * 2 + [len(other.start)] * 2)
    order = np.argsort(edges, kind="stable")
    edges = edges[order]
    in_one = np.cumsum(change_one[order])[:-1] > 0
    in_other = np.cumsum(change_other[order])[:-1] > 0
    chosen = in_one & (in_other == inside)
    return Runs.of(edges[:-1][chosen], edges[1:][chosen])


def _gaps(begin: int, end: int, inner: Runs) -> Runs:
    """The elements from `begin` to `end` - 1, of which `inner` holds some, that it does not hold."""
    start, stop = np.append(begin, inner.stop), np.append(inner.start, end)
    full = start < stop
    return Runs(start[full], stop[full])


def counted(first: Places, count: Places) -> tuple[NDArray[np.intp], Places]:
    """Numbers ``first[i], first[i] + 1, ...``, `count` of each, one after the other; and their i."""
    owner = np.repeat(np.arange(len(first)), count)
    before = np.cumsum(count) - count
    return owner, first[owner] + (np.arange(len(owner)) - before[owner])


# ---- maps ----


def c_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Strides of a C-contiguous array, in elements."""
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


def broadcast_strides(shape: tuple[int, ...], to: tuple[int, ...]) -> tuple[int, ...]:
    """Strides, in elements of a C-contiguous array of `shape`, of its broadcast to the shape `to`."""
    own = [0 if extent == 1 else stride for extent, stride in zip(shape, c_strides(shape), strict=True)]
    # NumPy lets a value have leading axes of one element more than what it is assigned to.
    own = own[max(len(own) - len(to), 0) :]
    return (0,) * (len(to) - len(own)) + tuple(own)


@dataclass(frozen=True, slots=True)
class _Axis:
    extent: int
    source: int
    target: int


class IndexMap:
    """Carries sets from a source array to a target array.

    For every index i of a grid of `shape`, the element ``source_offset + i . source`` belongs to the element
    ``target_offset + i . target``. A source stride of 0 means that every index of that axis belongs to the
    same source element; a target stride of 0 that they all belong to the same target element.

    Raises
    ------
    NotSparseError
        Two grid indices share a source element in another way than by a stride of 0.
    """

    def __init__(
        self,
        shape: Sequence[int],
        source: Sequence[int],
        target: Sequence[int],
        source_offset: int = 0,
        target_offset: int = 0,
    ) -> None:
        self.is_empty = 0 in shape
        axes, spread = [], []
        for extent, one, other in zip(shape, source, target, strict=True):
            if extent == 1:
                continue
            if one == 0:
                if other:
                    target_offset += min(other, 0) * (extent - 1)
                    spread.append(_Axis(extent, 0, abs(other)))
                continue
            if one < 0:
                source_offset += one * (extent - 1)
                target_offset += other * (extent - 1)
                one, other = -one, -other
            axes.append(_Axis(extent, one, other))
        self._source_offset, self._target_offset = source_offset, target_offset
        self._axes = _joined(sorted(axes, key=lambda axis: -axis.source))
        self._spread = sorted(spread, key=lambda axis: axis.target)
        self._reach = [
            sum(axis.source * (axis.extent - 1) for axis in self._axes[i + 1 :])
            for i in range(len(self._axes))
        ]
        if not self.is_empty and any(
            axis.source <= reach for axis, reach in zip(self._axes, self._reach, strict=True)
        ):
            raise NotSparseError

    def apply(self, runs: Runs, size: int) -> Runs:
        """The target elements that belong to the source elements `runs`.

        Raises
        ------
        NotSparseError
            There are so many runs that boolean arrays would be shorter; the larger one has `size` elements.
        """
        if self.is_empty or not runs:
            return Runs.none()
        given, runs = runs.rows, runs.near(*self._source_span)
        if not runs:
            return runs
        found = self._of_everything(size, given) if self._covered(runs) else self._of(runs, size, given)
        for axis in self._spread:
            found = _repeated(axis, found, size)
        return found

    def _covered(self, runs: Runs) -> bool:
        """True if `runs` are seen to hold every source element: as one run, or as the map's own rows."""
        if runs.holds(*self._source_span):
            return True
        outer, rows = self._axes[:-1], math.prod(axis.extent for axis in self._axes[:-1])
        if not self._axes or self._axes[-1].source != 1 or runs.rows != rows:
            return False
        start = _grid(self._source_offset, [(axis.extent, axis.source) for axis in outer])
        return bool((runs.start <= start).all() and (start + self._axes[-1].extent <= runs.stop).all())

    def _of_everything(self, size: int, given: int) -> Runs:
        """The target elements of all source elements, but for the axes that `_repeated` adds."""
        # Rows along an axis of stride 1, wherever it is; of a map that turns axes around, single elements.
        last = [axis for axis in self._axes if abs(axis.target) == 1][-1:]
        outer = [axis for axis in self._axes if axis.target and axis not in last]
        rows = math.prod(axis.extent for axis in outer)
        if rows > 2 * given and too_many_runs(rows, size):
            raise NotSparseError
        start = _grid(self._target_offset, [(axis.extent, axis.target) for axis in outer])
        if not last:
            return Runs.of(start, start + 1)
        if last[0].target < 0:
            start = start - (last[0].extent - 1)
        return Runs.of(start, start + last[0].extent)

    def _of(self, runs: Runs, size: int, given: int) -> Runs:
        start, stop = runs.start - self._source_offset, runs.stop - self._source_offset
        base = np.full(len(start), self._target_offset, np.int64)
        for axis, reach in zip(self._axes[:-1], self._reach[:-1], strict=True):
            start, stop, base = _split(axis, reach, start, stop, base, size, given)
        if self._axes:
            start, stop = self._of_last_axis(start, stop, base, size, given)
        else:
            hit = (start <= 0) & (stop > 0)
            start, stop = base[hit], base[hit] + 1
        return Runs.of(start, stop)

    @property
    def _source_span(self) -> tuple[int, int]:
        extent = sum(axis.source * (axis.extent - 1) for axis in self._axes) + 1
        return self._source_offset, self._source_offset + extent

    def _of_last_axis(
        self, start: Places, stop: Places, base: Places, size: int, given: int
    ) -> tuple[Places, Places]:
        axis = self._axes[-1]
        if axis.source == 1 and abs(axis.target) <= 1:
            start, stop = np.maximum(start, 0), np.minimum(stop, axis.extent)
            full = start < stop
            start, stop, base = start[full], stop[full], base[full]
            if axis.target == 0:
                return base, base + 1
            return (base + start, base + stop) if axis.target == 1 else (base - stop + 1, base - start + 1)
        _, _, places = _split(axis, 0, start, stop, base, size, given)
        return places, places + 1


def _grid(offset: int, axes: list[tuple[int, int]]) -> Places:
    """``offset + i . strides`` for every index of the axes, each an extent and a stride."""
    places = np.array([offset], np.int64)
    for extent, stride in axes:
        places = np.add.outer(places, np.arange(extent) * stride).reshape(-1)
    return places


def _joined(axes: list[_Axis]) -> list[_Axis]:
    """The axes, from large source strides to small ones, with those made one that run on into each other."""
    joined: list[_Axis] = []
    for axis in axes:
        if joined:
            outer = joined[-1]
            runs_on = outer.source == axis.extent * axis.source and outer.target == axis.extent * axis.target
            if runs_on:
                joined[-1] = _Axis(outer.extent * axis.extent, axis.source, axis.target)
                continue
        joined.append(axis)
    return joined


def _split(
    axis: _Axis, reach: int, start: Places, stop: Places, base: Places, size: int, given: int
) -> tuple[Places, Places, Places]:
    """Cut intervals at the multiples of the axis' source stride; what is left of each within its block.

    The intervals are from a set of `given` runs.
    """
    first = np.maximum(start // axis.source, 0)
    last = np.minimum((stop - 1) // axis.source, axis.extent - 1)
    count = np.maximum(last - first + 1, 0)
    # Cutting up to twice what is there is no growth, however small the target.
    if int(count.sum()) > 2 * max(len(start), given) and too_many_runs(int(count.sum()), size):
        raise NotSparseError
    owner, index = counted(first, count)
    start = np.maximum(start[owner] - index * axis.source, 0)
    stop = np.minimum(stop[owner] - index * axis.source, reach + 1)
    full = start < stop
    return start[full], stop[full], (base[owner] + index * axis.target)[full]


def _repeated(axis: _Axis, runs: Runs, size: int) -> Runs:
    """The runs, repeated along an axis of the target that the source does not have."""
    length = runs.stop - runs.start
    if (length >= axis.target).all():
        return Runs.of(runs.start, runs.stop + axis.target * (axis.extent - 1))
    if too_many_runs(len(length) * axis.extent, size):
        raise NotSparseError
    shift = np.arange(axis.extent) * axis.target
    start = (runs.start[:, None] + shift).reshape(-1)
    return Runs.of(start, start + np.repeat(length, axis.extent))
