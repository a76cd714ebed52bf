"""Rules for boxes whose bounds follow the shape: inferred from two sizes or more, evaluated at another.

Imports ``_boxes`` and the errors; ``regions`` is the public entrance. Tests: ``tests/test_regions.py``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ._boxes import Box, Span, require_inside
from .errors import MapError


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
            require_inside(box, shape)
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
        require_inside(box, shape)
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
