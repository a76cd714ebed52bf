"""Masks as runs and as strided boxes, and rules for boxes whose bounds follow the shape.

A boolean mask is the same thing as a list of runs in the flattened array and, where it has structure, as a
few strided boxes (``u[0:12, 12, ::2, :]``). Both ways are exact. From the boxes of one variable at two or
more sizes :func:`infer_bounds` states which bounds are fixed and which count from the end of their axis.
Knows nothing of variables, files or plans; imports NumPy and the errors only.
Tests: ``tests/test_regions.py``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
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
    flat = _as_mask(mask).ravel(order=order)
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
    given = _as_mask(mask)
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
        _require_inside(box, mask.shape)
        mask[box.slices] = True
    return mask


def _as_mask(mask: ArrayLike) -> Mask:
    given = np.asarray(mask)
    if given.dtype != np.bool_:
        raise MapError(f"mask: found dtype {given.dtype}, expected bool")
    return given


def _require_inside(box: Box, shape: Sequence[int]) -> None:
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


def _unite(cells: Mask, axis: int, classify: Any) -> tuple[Mask, NDArray[np.intp]]:
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


# In words ---------------------------------------------------------------------------------------------------


def format_box(name: str, box: Box, shape: Sequence[int]) -> str:
    """The box as NumPy would select it: ``u[0:12, 12, ::2, :]``; a scalar's box is its name alone.

    Raises
    ------
    MapError
        The box does not lie within `shape`.
    """
    _require_inside(box, shape)
    parts = [_format_span(span, int(extent)) for span, extent in zip(box.spans, shape, strict=True)]
    return f"{name}[{', '.join(parts)}]" if parts else name


def _format_span(span: Span, extent: int) -> str:
    reaches_end = span.stop - 1 + span.step >= extent
    if span.start < span.step and reaches_end and span.step == 1:
        return ":"
    if span.indices == 1:
        return str(span.start)
    if span.step == 1:
        return f"{span.start}:{span.stop}"
    start = "" if span.start == 0 else str(span.start)
    stop = "" if reaches_end else str(span.stop)
    return f"{start}:{stop}:{span.step}"


def describe(name: str, mask: ArrayLike, max_lines: int = 16) -> list[str]:
    """The True elements in slice notation, one line a box.

    Where boxes do not help, runs of the flattened array (C order): ``u.flat[3:17]``. Beyond `max_lines` a
    last line says how much was left out.
    """
    given = _as_mask(mask)
    if not given.any():
        return []
    found = boxes(given)
    if found is not None:
        lines = [format_box(name, box, given.shape) for box in found[:max_lines]]
        left_out = sum(box.size for box in found[max_lines:])
        return lines + _left_out(len(found) - max_lines, "box", "boxes", left_out)
    pairs = runs(given)
    lines = [
        f"{name}.flat[{start}]" if stop - start == 1 else f"{name}.flat[{start}:{stop}]"
        for start, stop in pairs[:max_lines].tolist()
    ]
    left_out = int((pairs[max_lines:, 1] - pairs[max_lines:, 0]).sum())
    return lines + _left_out(len(pairs) - max_lines, "run", "runs", left_out)


def _left_out(count: int, one: str, many: str, elements: int) -> list[str]:
    return [f"and {count} more {one if count == 1 else many} ({elements} elements)"] if count > 0 else []


# Rules: bounds that follow the shape ------------------------------------------------------------------------


class Bound(NamedTuple):
    """A bound of a slice: an index, or one counted from the axis' end (then `value` <= 0)."""

    value: int
    from_end: bool

    def at(self, extent: int) -> int:
        """Index on an axis of that extent."""
        return extent + self.value if self.from_end else self.value


@dataclass(frozen=True)
class AxisRule:
    """Indices ``start, start + step, ... < stop`` on one axis of any extent.

    `size` is the extent of the axis where it was the same in all samples: the rule then says nothing of
    others.
    """

    start: Bound
    stop: Bound
    step: int
    size: int | None


@dataclass(frozen=True)
class RuleBox:
    """A strided box whose bounds follow the shape."""

    axes: tuple[AxisRule, ...]


def infer_bounds(
    samples: Sequence[tuple[Sequence[int], Sequence[Box]]], variable: str = "variable"
) -> list[RuleBox]:
    """Rules that give exactly the sampled boxes at the sampled shapes.

    Parameters
    ----------
    samples : sequence of (shape, boxes)
        The boxes of one variable at two shapes or more, as :func:`boxes` makes them.
    variable : str
        Name to use in errors.

    Returns
    -------
    list of RuleBox
        In the order of the sorted boxes. An axis of one extent in all samples has constant bounds and that
        extent as its `size`.

    Raises
    ------
    MapError
        Fewer than two samples; another number of axes or boxes in one of them; a bound that is neither
        constant nor at a constant distance from the end; or a stride whose stop both would explain.
    """
    if len(samples) < 2:
        raise MapError(f"found boxes at {len(samples)} size, expected at least two", key=variable)
    shapes = [tuple(map(int, shape)) for shape, _ in samples]
    columns = [sorted(found) for _, found in samples]
    for shape, found in zip(shapes, columns, strict=True):
        if len(shape) != len(shapes[0]):
            raise MapError(f"found shapes {shapes[0]} and {shape}, expected equal dimensions", key=variable)
        if len(found) != len(columns[0]):
            raise MapError(
                f"found {len(columns[0])} boxes at shape {shapes[0]} and {len(found)} at {shape}, "
                "expected as many",
                key=variable,
            )
        for box in found:
            _require_inside(box, shape)
    rules = [
        RuleBox(
            tuple(
                _infer_axis(
                    [(shape[axis], box.spans[axis]) for shape, box in zip(shapes, alike, strict=True)],
                    f"{variable}, axis {axis}",
                )
                for axis in range(len(shapes[0]))
            )
        )
        for alike in zip(*columns, strict=True)
    ]
    for shape, found in zip(shapes, columns, strict=True):
        if evaluate(rules, shape, variable) != found:
            raise MapError(f"the rules do not give the boxes of shape {shape}", key=variable)
    return rules


def constant_bounds(boxes: Iterable[Box], shape: Sequence[int]) -> list[RuleBox]:
    """Rules for the boxes of one shape alone: every bound constant, every axis of fixed size."""
    rules = []
    for box in boxes:
        _require_inside(box, shape)
        rules.append(
            RuleBox(
                tuple(
                    AxisRule(Bound(span.start, False), Bound(span.stop, False), span.step, int(extent))
                    for span, extent in zip(box.spans, shape, strict=True)
                )
            )
        )
    return rules


def evaluate(rules: Iterable[RuleBox], shape: Sequence[int], variable: str = "variable") -> list[Box]:
    """Boxes that the rules give at a shape, sorted; a box that is empty there is left out.

    Raises
    ------
    MapError
        The rules say nothing of this shape: another number of axes, a fixed axis of another size, a bound
        outside its axis, a stop before its start, or boxes that overlap.
    """
    extents = tuple(map(int, shape))
    found = []
    for rule in rules:
        if len(rule.axes) != len(extents):
            raise MapError(f"found shape {extents}, expected {len(rule.axes)} axes", key=variable)
        spans = [
            _evaluate_axis(axis_rule, extent, f"{variable}, axis {axis}")
            for axis, (axis_rule, extent) in enumerate(zip(rule.axes, extents, strict=True))
        ]
        filled = [span for span in spans if span is not None]
        if len(filled) == len(spans):
            found.append(Box.of(filled))
    found.sort()
    for one, other in itertools.combinations(found, 2):
        if all(map(_spans_meet, one.spans, other.spans)):
            raise MapError(f"found overlapping boxes at shape {extents}: {one} and {other}", key=variable)
    return found


def _infer_axis(samples: Sequence[tuple[int, Span]], key: str) -> AxisRule:
    extents = [extent for extent, _ in samples]
    steps = {span.step for _, span in samples if span.indices > 1} or {1}
    if len(steps) > 1:
        raise MapError(f"found strides {sorted(steps)}, expected one for all sizes", key=key)
    (step,) = steps
    # Below the next index that would be hit, and within the axis, any stop selects the same indices.
    stops = [(span.stop, min(span.stop - 1 + step, extent)) for extent, span in samples]
    return AxisRule(
        start=_infer_bound([(span.start, span.start) for _, span in samples], extents, "start", key),
        stop=_infer_bound(stops, extents, "stop", key),
        step=step,
        size=extents[0] if len(set(extents)) == 1 else None,
    )


def _infer_bound(allowed: Sequence[tuple[int, int]], extents: Sequence[int], which: str, key: str) -> Bound:
    """The bound that lies between least and most in every sample, as an index or from the end."""
    index = (max(least for least, _ in allowed), min(most for _, most in allowed))
    from_end = (
        max(least - extent for (least, _), extent in zip(allowed, extents, strict=True)),
        min(most - extent for (_, most), extent in zip(allowed, extents, strict=True)),
    )
    constant, relative = index[0] <= index[1], from_end[0] <= from_end[1]
    if constant and len(set(extents)) == 1:
        return Bound(index[0], False)
    if constant and relative:
        raise MapError(
            f"{which} may be the index {index[0]} or {from_end[1]} from the end "
            f"at the extents {list(extents)}; add a sample of another size",
            key=key,
        )
    if constant:
        return Bound(index[0], False)
    if relative:
        return Bound(from_end[1], True)
    raise MapError(
        f"{which} is {[least for least, _ in allowed]} at the extents {list(extents)}, "
        "expected a constant index or a constant distance from the end",
        key=key,
    )


def _evaluate_axis(rule: AxisRule, extent: int, key: str) -> Span | None:
    if rule.size is not None and extent != rule.size:
        raise MapError(
            f"found extent {extent}, expected {rule.size}: no rule for other sizes is known", key=key
        )
    start, stop = rule.start.at(extent), rule.stop.at(extent)
    if not 0 <= start <= stop <= extent:
        raise MapError(
            f"found bounds {start}:{stop}, expected them ascending within extent {extent}", key=key
        )
    if start == stop:
        return None
    last = start + (stop - 1 - start) // rule.step * rule.step
    return Span(start, last + 1, rule.step if last > start else 1)


def _spans_meet(one: Span, other: Span) -> bool:
    """Whether two spans share an index: the first common one by the Chinese remainder theorem."""
    low, high = max(one.start, other.start), min(one.stop, other.stop)
    divisor = math.gcd(one.step, other.step)
    gap = other.start - one.start
    if gap % divisor:
        return False
    modulus = other.step // divisor
    turns = gap // divisor * pow(one.step // divisor, -1, modulus) % modulus if modulus > 1 else 0
    common, period = one.start + one.step * turns, one.step * modulus
    common += max(0, -(-(low - common) // period)) * period
    return common < high
