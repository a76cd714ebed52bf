"""From masks of critical elements to rules: boxes, programs of runs, and both in words.

Knows regions and the rows of a plan, nothing of maps, layouts or checkpoint files.
Imports NumPy, the extension, ``regions``, ``_plan_format`` and the errors. Tests: ``tests/test_plan.py``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import regions
from ._core import ffi, lib
from ._core_errors import require_ok
from ._plan_format import MAX_DIMS, Axis, EntryRow, Number, SectionRow, serialise
from .errors import MapError, PlanError

Mask = NDArray[np.bool_]

# A box takes 32 bytes an axis in the plan; so few are never worth a look at the runs.
_FEW_BOXES = 8
_AXIS_BYTES = 32
_MAX_WORDS = 4


@dataclass(frozen=True)
class BoxRule:
    """The critical elements of an array are those in the boxes."""

    boxes: tuple[tuple[Axis, ...], ...]
    words: str


@dataclass(frozen=True)
class RunRule:
    """The critical bytes of a stretch of fixed length are those that a program of runs says."""

    program: bytes
    length: int
    kept: int
    words: str


# Arrays of one shape --------------------------------------------------------------------------------------


def whole_array(name: str, dims: int) -> BoxRule:
    """Every element is critical, whatever the array's size."""
    box = tuple(Axis(0, 0, stop_from_end=True) for _ in range(dims))
    return BoxRule((box,), f"{name}, whole")


def fixed_rule(name: str, critical: Mask, fortran: bool, itemsize: int) -> BoxRule | RunRule:
    """Rule for an array of one shape: boxes, or irregular runs where those are smaller or boxes do not help.

    Parameters
    ----------
    critical : bool array of the array's shape
    fortran : bool
        Whether the file holds the array with its first axis fastest.
    itemsize : int
        Bytes per element.
    """
    found = regions.boxes(critical) if critical.ndim <= MAX_DIMS else None
    if found is not None and len(found) <= _FEW_BOXES:
        rule = _fixed_boxes(name, found, critical.shape)
        if _resolves(rule, critical.shape, fortran):
            return rule
    order: regions.Order = "F" if fortran else "C"
    irregular = run_rule(name, regions.runs(critical, order) * itemsize, critical.size * itemsize)
    if found is None or len(irregular.program) < len(found) * critical.ndim * _AXIS_BYTES:
        return irregular
    rule = _fixed_boxes(name, found, critical.shape)
    return rule if _resolves(rule, critical.shape, fortran) else irregular


def _fixed_boxes(name: str, found: Sequence[regions.Box], shape: Sequence[int]) -> BoxRule:
    axes = tuple(tuple(Axis(*span) for span in box.spans) for box in found)
    return BoxRule(axes, _join([regions.format_box(name, box, shape) for box in found]))


def _resolves(rule: BoxRule, shape: Sequence[int], fortran: bool) -> bool:
    """Whether the core can make a program of the boxes at this shape: asked of the core itself."""
    row = SectionRow(
        lib.SCR_CRIT_SECTION_ARRAY,
        "",
        "",
        Number.fixed(1),
        fortran=fortran,
        lengths=tuple(map(Number.fixed, shape)),
        boxes=rule.boxes,
    )
    data = serialise([EntryRow("*", (row,))], {})
    handle = ffi.new("scr_crit_plan **")
    require_ok(lib.scr_crit_plan_open_memory(ffi.from_buffer(data), len(data), handle), reading="plan")
    try:
        info = ffi.new("scr_crit_section_info *")
        status = lib.scr_crit_plan_section(handle[0], 0, 0, info)
    finally:
        lib.scr_crit_plan_close(handle[0])
    if status not in (lib.SCR_CRIT_OK, lib.SCR_CRIT_ERR_MISFIT):
        require_ok(status, reading="plan")
    return bool(status == lib.SCR_CRIT_OK)


def run_rule(name: str, byte_runs: NDArray[np.int64], length: int) -> RunRule:
    """Rule for `length` bytes of which the runs (n, 2), in bytes, are critical."""
    starts, stops = (np.ascontiguousarray(byte_runs[:, column], dtype=np.uint64) for column in (0, 1))
    kept = int((stops - starts).sum())
    words = f"{name}: {kept} of {length} bytes, in {len(starts)} runs"
    return RunRule(_encode(starts, stops, length), length, kept, words)


def _encode(starts: NDArray[np.uint64], stops: NDArray[np.uint64], length: int) -> bytes:
    size = ffi.new("size_t *")
    runs = (ffi.from_buffer("uint64_t[]", starts), ffi.from_buffer("uint64_t[]", stops), len(starts), length)
    require_ok(lib.scr_crit_encode_runs(*runs, ffi.NULL, 0, size), reading="plan")
    program = bytearray(size[0])
    target = ffi.from_buffer("uint8_t[]", program)
    require_ok(lib.scr_crit_encode_runs(*runs, target, len(program), size), reading="plan")
    return bytes(program)


# Arrays whose shape varies --------------------------------------------------------------------------------


def variable_rule(
    name: str, samples: Mapping[tuple[int, ...], Mask], varies: Sequence[bool], fortran: bool
) -> BoxRule:
    """Rule for an array of any size, from masks at some sizes.

    Parameters
    ----------
    samples : mapping from shape to bool array
        Critical elements, none of the arrays empty.
    varies : sequence of bool
        Whether the length of each axis varies from file to file.
    fortran : bool
        Whether the file holds the array with its first axis fastest.

    Raises
    ------
    PlanError
        The masks have no structure; or they do not show how a bound follows its axis' length.
    """
    boxes_at = {shape: regions.boxes(mask) for shape, mask in samples.items()}
    for shape, found in boxes_at.items():
        if found is None:
            raise _too_irregular(name, shape)
    sampled = [(shape, found) for shape, found in boxes_at.items() if found is not None]
    if len(sampled) == 1:
        rules = regions.constant_bounds(sampled[0][1], sampled[0][0])
    else:
        try:
            rules = regions.infer_bounds(sampled, name)
        except MapError as error:
            raise PlanError(
                f"no rule gives the critical elements at all of the sizes {[shape for shape, _ in sampled]}: "
                f"{error.message}; give maps of further sizes, or keep it whole: keep=[{name!r}]",
                key=name,
            ) from error
    axes = tuple(
        tuple(_axis(name, at, rule, varies[at]) for at, rule in enumerate(box.axes)) for box in rules
    )
    found_rule = BoxRule(axes, _join([_box_words(name, box) for box in axes]))
    for shape in samples:
        if not _resolves(found_rule, shape, fortran):
            raise _too_irregular(name, shape)
    return found_rule


def _too_irregular(name: str, shape: Sequence[int]) -> PlanError:
    return PlanError(
        f"the critical elements at shape {tuple(shape)} are too irregular for a rule that holds at every "
        f"size; keep it whole: keep=[{name!r}]",
        key=name,
    )


def _axis(name: str, at: int, rule: regions.AxisRule, varies: bool) -> Axis:
    axis = Axis(rule.start.value, rule.stop.value, rule.step, rule.start.from_end, rule.stop.from_end)
    if not varies or rule.size is None:
        return axis
    if (rule.start.at(rule.size), rule.stop.at(rule.size), rule.step) == (0, rule.size, 1):
        return Axis(0, 0, stop_from_end=True)
    raise PlanError(
        f"axis {at} varies from file to file, but has length {rule.size} in every map, where only a part of "
        f"it is critical; whether that part follows the length cannot be told: give maps of two sizes (two "
        f"lengths of axis {at}), or keep it whole: keep=[{name!r}]",
        key=name,
    )


# Words ----------------------------------------------------------------------------------------------------


def _join(boxes: list[str]) -> str:
    if not boxes:
        return "nothing"
    more = len(boxes) - _MAX_WORDS
    return " + ".join(boxes[:_MAX_WORDS]) + (f" + {more} more boxes" if more > 0 else "")


def _box_words(name: str, box: tuple[Axis, ...]) -> str:
    return f"{name}[{', '.join(map(_axis_words, box))}]" if box else name


def _axis_words(axis: Axis) -> str:
    if axis.stop == axis.start + 1 and axis.start_from_end == axis.stop_from_end and axis.stop != 0:
        return str(axis.start)
    start = "" if axis.start == 0 and not axis.start_from_end else str(axis.start)
    stop = "" if axis.stop == 0 and axis.stop_from_end else str(axis.stop)
    return f"{start}:{stop}" + (f":{axis.step}" if axis.step > 1 else "")


def record_words(name: str, keep: NDArray[np.bool_]) -> str:
    """A record's critical bytes in words."""
    pairs: list[list[int]] = regions.runs(keep).tolist()
    if len(pairs) == 1 and pairs[0] == [0, keep.size]:
        return f"{name}, whole records"
    if not pairs:
        return "nothing"
    shown = ", ".join(f"{start}:{stop}" for start, stop in pairs[: 2 * _MAX_WORDS])
    more = len(pairs) - 2 * _MAX_WORDS
    return f"{name}: bytes {shown}{f' and {more} more runs' if more > 0 else ''} of {keep.size}"


def as_bytes(critical: NDArray[Any], itemsize: int) -> Mask:
    """A mask of elements, in C order, as a mask of their bytes."""
    return np.repeat(np.ascontiguousarray(critical, np.bool_).reshape(-1), itemsize)
