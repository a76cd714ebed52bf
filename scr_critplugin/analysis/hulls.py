"""Strided boxes inferred from a sample of an array's elements, always holding all of the sample.

Each axis is divided into its first indices, its last ones, and what lies between: ghosts and boundary layers
are there, and differ. In each product of such parts the elements seen are widened to the smallest box around
them; a stride between them is believed only if enough indices speak for it. Seen again and again to be too
small, a box takes all of its part, and at last all of the array, so that growth ends.

May import `runsets` and the regions. Tests: ``tests/test_tiles.py``.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from scr_critplugin.analysis.runsets import IndexMap, Runs, c_strides, counted, united
from scr_critplugin.regions import Box

LAYERS = 4
"""Indices at each end of an axis that are looked at one by one."""

_INDICES_FOR_A_STRIDE = 8
_GROWTHS_BEFORE_PARTS_FILL = 8
_GROWTHS_BEFORE_ALL = 16

Cell = tuple[int, ...]


class _Line(NamedTuple):
    """Indices seen on one axis: first, last, their common distance (0 for one), and how many at once."""

    first: int
    last: int
    step: int
    seen: int

    def with_(self, other: _Line) -> _Line:
        return _Line(
            min(self.first, other.first),
            max(self.last, other.last),
            math.gcd(self.step, other.step, self.first - other.first),
            max(self.seen, other.seen),
        )

    def believed(self) -> _Line:
        """With a stride of 1, unless there is evidence for another; comparable."""
        doubtful = self.step > 1 and self.seen < _INDICES_FOR_A_STRIDE
        return _Line(self.first, self.last, 1 if doubtful else self.step, 0)


_Lines = tuple[_Line, ...]


class Hulls:
    """Boxes around the elements of an array of `shape` that `add` was given."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self._cells: dict[Cell, _Lines] = {}
        self._growths = 0

    def with_(self, other: Hulls) -> Hulls:
        """Boxes around the elements of both."""
        joined = Hulls(self.shape)
        joined._cells = dict(self._cells)
        for cell, lines in other._cells.items():
            joined._join(cell, lines)
        return joined

    def add(self, runs: Runs) -> bool:
        """Take elements in; whether the boxes changed."""
        changed = False
        for cell, lines in self._lines_by_cell(runs):
            changed |= self._join(cell, lines)
        if changed:
            self._growths += 1
            self._widen()
        return changed

    @property
    def boxes(self) -> list[Box]:
        """Disjoint boxes, neighbours joined."""
        lines = [tuple(line.believed() for line in each) for each in self._cells.values()]
        return [_box(each) for each in _joined(lines, len(self.shape))]

    def _join(self, cell: Cell, lines: _Lines) -> bool:
        known = self._cells.get(cell)
        if known is None:
            self._cells[cell] = lines
            return True
        joined = tuple(map(_Line.with_, known, lines))
        if joined == known:
            return False
        self._cells[cell] = joined
        return any(one.believed() != other.believed() for one, other in zip(known, joined, strict=True))

    def runs(self) -> Runs:
        """The elements of all boxes."""
        return united(runs_of_box(box, self.shape) for box in self.boxes)

    def _widen(self) -> None:
        if self._growths > _GROWTHS_BEFORE_ALL:
            parts = [range(_parts(extent)) for extent in self.shape]
            self._cells = {cell: self._filled(cell) for cell in itertools.product(*parts)}
        elif self._growths > _GROWTHS_BEFORE_PARTS_FILL:
            self._cells = {cell: self._filled(cell) for cell in self._cells}

    def _filled(self, cell: Cell) -> _Lines:
        bounds = [_bounds(part, extent) for part, extent in zip(cell, self.shape, strict=True)]
        return tuple(_Line(start, stop - 1, min(stop - start - 1, 1), 0) for start, stop in bounds)

    def _lines_by_cell(self, runs: Runs) -> Iterator[tuple[Cell, _Lines]]:
        if not self.shape:
            if runs:
                yield (), ()
            return
        rows, start, stop = _rows(runs, self.shape[-1])
        outer = np.unravel_index(rows, self.shape[:-1]) if len(self.shape) > 1 else ()
        parts = [_part_of(index, extent) for index, extent in zip(outer, self.shape[:-1], strict=True)]
        counts = tuple(map(_parts, self.shape[:-1]))
        group = np.ravel_multi_index(tuple(parts), counts) if parts else np.zeros(len(rows), np.int64)
        for last in range(_parts(self.shape[-1])):
            begin, end = _bounds(last, self.shape[-1])
            low, high = np.maximum(start, begin), np.minimum(stop, end)
            hit = np.flatnonzero(low < high)
            if not hit.size:
                continue
            hit = hit[np.argsort(group[hit], kind="stable")]
            edges = np.flatnonzero(np.diff(group[hit], prepend=-1))
            columns = [_lines(index[hit], index[hit], edges) for index in outer]
            columns.append(_lines(low[hit], high[hit] - 1, edges))
            for number, lines in zip(group[hit][edges].tolist(), zip(*columns, strict=True), strict=True):
                cell = tuple(map(int, np.unravel_index(number, counts))) if counts else ()
                yield (*cell, last), lines


def runs_of_box(box: Box, shape: tuple[int, ...]) -> Runs:
    """The elements of a box in an array of `shape`."""
    strides = [step * stride for step, stride in zip(box.step, c_strides(shape), strict=True)]
    offset = sum(first * stride for first, stride in zip(box.start, c_strides(shape), strict=True))
    placed = IndexMap(box.counts, c_strides(box.counts), strides, 0, offset)
    return placed.apply(Runs.all(box.size), sys.maxsize)


# ---- parts of an axis ----


def _parts(extent: int) -> int:
    return min(extent, 2 * LAYERS + 1)


def _part_of(index: NDArray[np.intp], extent: int) -> NDArray[np.intp]:
    if extent <= 2 * LAYERS + 1:
        return index
    return np.where(index < LAYERS, index, np.maximum(index - extent + 2 * LAYERS + 1, LAYERS))


def _bounds(part: int, extent: int) -> tuple[int, int]:
    if extent <= 2 * LAYERS + 1 or part < LAYERS:
        return part, part + 1
    if part == LAYERS:
        return LAYERS, extent - LAYERS
    start = extent - 2 * LAYERS - 1 + part
    return start, start + 1


def _rows(runs: Runs, extent: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The runs cut into rows: row numbers, first index and last index + 1 of each piece."""
    first = runs.start // extent
    owner, row = counted(first, (runs.stop - 1) // extent - first + 1)
    start = np.maximum(runs.start[owner] - row * extent, 0)
    stop = np.minimum(runs.stop[owner] - row * extent, extent)
    return row, start, stop


def _lines(low: NDArray[np.intp], high: NDArray[np.intp], edges: NDArray[np.intp]) -> list[_Line]:
    """For each group of pieces, which begin at `edges`: what they hold of one axis."""
    first, last = np.minimum.reduceat(low, edges), np.maximum.reduceat(high, edges)
    sizes = np.diff(edges, append=len(low))
    owner = np.repeat(np.arange(len(edges)), sizes)
    # Pieces of several indices have a stride of 1, and their first index tells the rest.
    steps = np.where(high > low, 1, np.abs(low - first[owner]))
    step = np.gcd.reduceat(steps, edges)
    order = np.lexsort((low, owner))
    is_new = np.diff(low[order], prepend=-1) != 0
    is_new[edges] = True
    seen = np.add.reduceat(is_new.astype(np.intp), edges)
    return [
        _Line(*each) for each in zip(first.tolist(), last.tolist(), step.tolist(), seen.tolist(), strict=True)
    ]


# ---- boxes ----


def _joined(boxes: list[_Lines], ndim: int) -> list[_Lines]:
    """Boxes that continue each other along an axis, made one."""
    before = -1
    while len(boxes) != before:
        before = len(boxes)
        for axis in range(ndim):
            alike: dict[_Lines, list[_Line]] = {}
            for box in boxes:
                alike.setdefault(box[:axis] + box[axis + 1 :], []).append(box[axis])
            boxes = [
                (*rest[:axis], line, *rest[axis:])
                for rest, lines in alike.items()
                for line in _chained(sorted(lines, key=lambda line: line.first))
            ]
    return boxes


def _chained(lines: list[_Line]) -> list[_Line]:
    chained = lines[:1]
    for line in lines[1:]:
        last = chained[-1]
        gap = line.first - last.last
        steps = {last.step, line.step} - {0}
        if steps <= {gap} and (steps or gap == 1):
            chained[-1] = _Line(last.first, line.last, gap, 0)
        else:
            chained.append(line)
    return chained


def _box(lines: _Lines) -> Box:
    return Box(
        tuple(line.first for line in lines),
        tuple(line.last + 1 for line in lines),
        tuple(max(line.step, 1) for line in lines),
    )
