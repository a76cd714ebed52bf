"""Regions of an array: masks as runs and as strided boxes, in words, and as rules that follow the shape.

A boolean mask is the same thing as a list of runs in the flattened array and, where it has structure, as a
few strided boxes (``u[0:12, 12, ::2, :]``). Both ways are exact. From the boxes of one variable at two or
more sizes :func:`infer_bounds` states which bounds are fixed and which count from the end of their axis.
Knows nothing of variables, files or plans; imports ``_boxes``, ``_box_rules`` and NumPy.
Tests: ``tests/test_regions.py``.
"""

from __future__ import annotations

from collections.abc import Sequence

from numpy.typing import ArrayLike

from ._box_rules import AxisRule, Bound, RuleBox, constant_bounds, evaluate, infer_bounds
from ._boxes import (
    Box,
    Order,
    Span,
    as_mask,
    boxes,
    mask_from_boxes,
    mask_from_runs,
    require_inside,
    runs,
)

__all__ = [
    "AxisRule",
    "Bound",
    "Box",
    "Order",
    "RuleBox",
    "Span",
    "boxes",
    "constant_bounds",
    "describe",
    "evaluate",
    "format_box",
    "infer_bounds",
    "mask_from_boxes",
    "mask_from_runs",
    "runs",
]


def format_box(name: str, box: Box, shape: Sequence[int]) -> str:
    """The box as NumPy would select it: ``u[0:12, 12, ::2, :]``; a scalar's box is its name alone.

    Raises
    ------
    MapError
        The box does not lie within `shape`.
    """
    require_inside(box, shape)
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
    given = as_mask(mask)
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
