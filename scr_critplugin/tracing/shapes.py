"""Finds the shape of an array from its mask alone: for memory whose type is not known.

A block with ghost layers, flattened, is a pattern that repeats within a pattern that repeats. The mask is
read as a sequence of symbols; a period that leaves few different rows makes each row a symbol of a shorter
sequence, and so on. What repeats by chance is told from structure by description length (Rissanen,
"Modeling by shortest data description", 1978): a shape is accepted only where stating its boxes takes fewer
bits than stating the runs. Imports NumPy and ``regions``. Tests: ``tests/test_tracing_shapes.py``.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..regions import Box, boxes

__all__ = ["Shape", "infer_shape"]

Shape = tuple[int, ...]
"""Extents of an array."""

_MAX_AXES = 6
_MAX_BOXES = 64
_MAX_LAG = 12  # runs a period
_PERIODS_EACH_LAG = 2
_MAX_LANDMARKS = 4  # symbols whose runs are looked at
_MAX_PERIODS = 16  # tried at one level
_MAX_LEVELS = 48  # row lengths looked at
_MAX_ROWS = 64  # different rows of a period
_WINDOW = 8192  # runs that must show a period before all are looked at
_LEAST_GAIN = 0.05
_WAYS = 3  # to split rows of one length
_FEWEST_CHECKS, _MOST_CHECKS = 4, 16  # shapes whose boxes are counted
_CHECKED_ELEMENTS = 1 << 25
_MARGIN_BITS = 12  # a random mask passes once in 2**12
_SEED = 20


def infer_shape(critical: NDArray[np.bool_]) -> Shape | None:
    """Shape (C order) in which the mask is a few boxes, although it is none in one dimension.

    Parameters
    ----------
    critical : bool array of shape (n,)

    Returns
    -------
    tuple of int or None
        Two axes or more, whose product is `n`: of the shapes found the one with the fewest boxes, and of
        those the one that takes the shortest description, so axes that make no difference are left out. None
        if nothing simple fits.
    """
    mask = np.ascontiguousarray(critical, np.bool_).reshape(-1)
    starts = np.flatnonzero(np.diff(mask, prepend=not mask[0])) if mask.size else np.zeros(0, np.int64)
    if starts.size < 4:
        return None
    limit = _bits_as_runs(mask, starts) - _MARGIN_BITS
    sequence = _Sequence(mask.size, starts.astype(np.int64), mask[starts].astype(np.int64), 2)
    found: tuple[int, float, Shape] | None = None
    seen: set[Shape] = set()
    checks = min(max(_CHECKED_ELEMENTS // mask.size, _FEWEST_CHECKS), _MOST_CHECKS)
    for chain in _chains(sequence)[:checks]:
        for shape in _with_fewer_axes(chain, seen):
            regions = boxes(mask.reshape(shape), _MAX_BOXES)
            if not regions or (found is not None and len(regions) > found[0]):
                continue
            bits = _bits_as_boxes(regions, shape)
            if bits < limit and (found is None or (len(regions), bits, shape) < found):
                found = (len(regions), bits, shape)
        if found is not None and found[0] == 1:
            break
    return None if found is None else found[2]


# Repetition -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Sequence:
    """A sequence of symbols as runs: where each run starts, and its symbol (less than `kinds`)."""

    size: int
    starts: NDArray[np.int64]
    symbols: NDArray[np.int64]
    kinds: int

    @property
    def bits(self) -> float:
        """Bits to state the sequence by its runs."""
        return _bits_of_sequence(self.size, self.starts.size, self.kinds)


@dataclass
class _Level:
    """The mask as a sequence of rows of one length, and the best ways to split such a row into axes."""

    sequence: _Sequence
    rows: dict[Shape, float] = field(default_factory=dict)
    """Axes of a row, and the bits to state the different rows by them."""

    def add(self, rows: Mapping[Shape, float]) -> None:
        """Take in more ways, and keep the best."""
        best = sorted({**self.rows, **rows}.items(), key=lambda row: (row[1], row[0]))
        self.rows = dict(best[:_WAYS])


def _chains(sequence: _Sequence) -> list[Shape]:
    """Shapes that come from dividing the sequence by its periods, again and again; the best first.

    How the rows of one length follow each other does not depend on how a row is split: so each length is
    looked at once, the shorter before the longer.
    """
    levels = {1: _Level(sequence, {(): 0.0})}
    waiting = [1]
    for _ in range(_MAX_LEVELS):
        if not waiting:
            break
        length = heapq.heappop(waiting)
        level = levels[length]
        splits = {row: bits for row, bits in level.rows.items() if len(row) < _MAX_AXES - 1}
        for period in _periods(level.sequence) if splits else ():
            divided = _divided(level.sequence, period)
            if divided is None:
                continue
            longer, definition = divided
            if length * period not in levels:
                levels[length * period] = _Level(longer)
                heapq.heappush(waiting, length * period)
            levels[length * period].add({(period, *row): bits + definition for row, bits in splits.items()})
    found = [
        (bits + level.sequence.bits, (level.sequence.size, *row))
        for level in levels.values()
        for row, bits in level.rows.items()
        if row
    ]
    return [shape for _, shape in sorted(found)]


def _divided(sequence: _Sequence, period: int) -> tuple[_Sequence, float] | None:
    """What :func:`_rows` gives; of a long sequence a part is tried first, since most periods are chance."""
    window = _window(sequence, period)
    if window is not None and _rows(window, period) is None:
        return None
    return _rows(sequence, period)


def _periods(sequence: _Sequence) -> list[int]:
    """Divisors of the size at which runs recur, those seen most often first."""
    found: dict[int, int] = {}
    for places in _landmarks(sequence):
        for lag in range(1, min(_MAX_LAG, places.size - 1) + 1):
            distances, counts = np.unique(places[lag:] - places[:-lag], return_counts=True)
            for at in np.argsort(-counts, kind="stable")[:_PERIODS_EACH_LAG]:
                period = int(distances[at])
                if 1 < period < sequence.size and sequence.size % period == 0:
                    found[period] = max(found.get(period, 0), int(counts[at]))
    return sorted(found, key=lambda period: -found[period])[:_MAX_PERIODS]


def _landmarks(sequence: _Sequence) -> Iterator[NDArray[np.int64]]:
    """Places between which periods may lie: runs of each symbol, and where their distance changes."""
    middle = sequence.starts.size // 2
    near = slice(max(middle - _WINDOW // 2, 0), middle + _WINDOW // 2)
    starts, symbols = sequence.starts[near], sequence.symbols[near]
    for symbol in np.unique(symbols)[:_MAX_LANDMARKS]:
        places = starts[symbols == symbol]
        yield places
        distances = np.diff(places)
        yield places[1:-1][distances[1:] != distances[:-1]]


def _window(sequence: _Sequence, period: int) -> _Sequence | None:
    """Whole rows around the middle run of a long sequence; None if it is not long, or the rows are."""
    if sequence.starts.size <= 2 * _WINDOW:
        return None
    middle = sequence.starts.size // 2
    begin = int(sequence.starts[middle - _WINDOW // 2]) // period * period
    end = int(sequence.starts[middle + _WINDOW // 2]) // period * period
    if end - begin < 16 * period:
        return None
    first = int(np.searchsorted(sequence.starts, begin, side="right")) - 1
    last = int(np.searchsorted(sequence.starts, end))
    starts = np.maximum(sequence.starts[first:last] - begin, 0)
    return _Sequence(end - begin, starts, sequence.symbols[first:last], sequence.kinds)


def _rows(sequence: _Sequence, period: int) -> tuple[_Sequence, float] | None:
    """The sequence of rows of that length, each different row a symbol, and the bits to state those rows.

    None if that is no shorter. Rows are compared by a random sum of 64 bits over their runs: time goes with
    the number of runs and rows, not with the size.
    """
    count = sequence.size // period
    cuts = np.arange(count, dtype=np.int64) * period
    starts = np.union1d(sequence.starts, cuts)
    owner = np.searchsorted(sequence.starts, starts, side="right") - 1
    symbols = sequence.symbols[owner]
    ends = np.append(starts[1:], sequence.size)
    row = starts // period
    random = np.random.default_rng(_SEED)
    weight = np.zeros(period + 1, np.uint64)
    np.cumsum(random.integers(0, 1 << 63, period, np.uint64), out=weight[1:])
    value = random.integers(0, 1 << 63, sequence.kinds, np.uint64) | np.uint64(1)
    sums = value[symbols] * (weight[ends - row * period] - weight[starts - row * period])
    first_of_row = np.searchsorted(starts, cuts)
    keys = np.add.reduceat(sums, first_of_row)
    distinct, first, label = np.unique(keys, return_index=True, return_inverse=True)
    if distinct.size > _MAX_ROWS:
        return None
    label = label.reshape(-1).astype(np.int64)
    changes = np.flatnonzero(np.diff(label, prepend=label[0] - 1)).astype(np.int64)
    runs_of_row = np.diff(np.append(first_of_row, starts.size))[first]
    definition = sum(_bits_of_sequence(period, runs, sequence.kinds) for runs in runs_of_row.tolist())
    shorter = _Sequence(count, changes, label[changes], int(distinct.size))
    if definition + shorter.bits > (1 - _LEAST_GAIN) * sequence.bits:
        return None
    return shorter, definition


def _with_fewer_axes(shape: Shape, seen: set[Shape]) -> Iterator[Shape]:
    """The shape, and those with neighbouring axes made one; none that was seen before."""
    waiting = [shape] if shape not in seen else []
    seen.add(shape)
    while waiting:
        one = waiting.pop()
        yield one
        for at in range(len(one) - 1 if len(one) > 2 else 0):
            merged = (*one[:at], one[at] * one[at + 1], *one[at + 2 :])
            if merged not in seen:
                seen.add(merged)
                waiting.append(merged)


# Description lengths, in bits -------------------------------------------------------------------------------


def _bits_of_sequence(size: int, runs: int, kinds: int) -> float:
    """Bits to state where runs start and, but for two symbols that take turns, which they are of."""
    return _log_choose(size, runs) + runs * math.log2(max(kinds - 1, 1))


def _bits_as_runs(mask: NDArray[np.bool_], starts: NDArray[np.int64]) -> float:
    """Least of some ways to state a mask without a shape."""
    size, ones = mask.size, int(np.count_nonzero(mask))
    bounds = np.append(starts, size)
    lengths = np.diff(bounds)
    first = 0 if mask[0] else 1
    kept, dropped = lengths[first::2], lengths[1 - first :: 2]
    return min(
        _log_choose(size, ones),
        _log_choose(size, starts.size),
        _log_choose(size, kept.size) + _bits_of_values(kept, size),
        _log_choose(size, dropped.size) + _bits_of_values(dropped, size),
    )


def _bits_of_values(values: NDArray[np.int64], largest: int) -> float:
    """Bits to state the values one by one, after a table of how often each occurs."""
    _, counts = np.unique(values, return_counts=True)
    return float(-(counts * np.log2(counts / values.size)).sum()) + counts.size * math.log2(largest)


def _log_choose(size: int, count: int) -> float:
    return (math.lgamma(size + 1) - math.lgamma(count + 1) - math.lgamma(size - count + 1)) / math.log(2)


def _bits_as_boxes(found: Sequence[Box], shape: Shape) -> float:
    """Bits to state the shape and its boxes."""
    # Each extent is a divisor; one of them follows from the others.
    stated = (len(shape) - 1) * math.log2(_divisors(math.prod(shape)))
    return stated + sum(_bits_of_box(box, shape) for box in found)


def _divisors(number: int) -> int:
    """How many divisors a positive number has."""
    found, factor = 1, 2
    while factor * factor <= number:
        exponent = 0
        while number % factor == 0:
            number //= factor
            exponent += 1
        found *= exponent + 1
        factor += 1
    return found * (2 if number > 1 else 1)


def _bits_of_box(box: Box, shape: Shape) -> float:
    bits = 0.0
    for span, extent in zip(box.spans, shape, strict=True):
        # One bit tells a whole axis from a part of it, one a stride from none.
        if span.start == 0 and span.stop == extent and span.step == 1:
            bits += 1
        else:
            bits += 2 + 2 * math.log2(extent) + (math.log2(extent) if span.step > 1 else 0)
    return bits
