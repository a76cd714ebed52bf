"""From maps and a layout to the rows of a plan.

For every section of a file: which of its elements may go, by all maps together, and the rule that says
so. What the maps do not know stays. Imports ``criticality``, ``regions``, ``layout``, ``_plan_rules``,
``_plan_format`` and the errors. Tests: ``tests/test_plan.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

import numpy as np
from numpy.typing import NDArray

from . import regions
from ._core import lib
from ._plan_format import (
    FILE_BASE,
    MAX_FILE_BYTES,
    EntryRow,
    EvidenceRow,
    FieldRow,
    GuardRow,
    Number,
    SectionRow,
)
from ._plan_rules import (
    BoxRule,
    Mask,
    RunRule,
    as_bytes,
    fixed_rule,
    record_words,
    run_rule,
    variable_rule,
    whole_array,
)
from .criticality import CriticalityMap, ElementState, Variable
from .errors import LayoutError
from .layout import REST, Array, Bytes, Count, FileLayout, IntAt, Layout, Record


@dataclass(frozen=True)
class Knowledge:
    """What is known of one variable: its states in some maps, and what may be done with them."""

    name: str
    variables: tuple[Variable, ...]
    evidence: EvidenceRow
    allow_unused: bool

    def critical(self, variable: Variable) -> Mask:
        """Elements that must stay, as a boolean array of the variable's shape."""
        stays = [ElementState.CRITICAL] if self.allow_unused else [ElementState.CRITICAL, ElementState.UNUSED]
        return np.isin(variable.states, stays)

    def evidence_of(self, drops: bool) -> EvidenceRow:
        """Evidence for a rule: none if it drops nothing, or something only because the user named it."""
        by_name = self.allow_unused and any((v.states == ElementState.UNUSED).any() for v in self.variables)
        return self.evidence if drops and not by_name else EvidenceRow()


@dataclass
class Compiler:
    """Compiles the files of a layout.

    Parameters
    ----------
    maps : sequence of CriticalityMap
        All are about the same program.
    evidence : callable
        Evidence of a variable's rule, by the variable's name.
    allow_unused, keep : collections of str
        Variables whose unused elements may go; variables that stay whole.
    """

    maps: Sequence[CriticalityMap]
    evidence: Callable[[str], EvidenceRow]
    allow_unused: Collection[str] = ()
    keep: Collection[str] = ()
    unknown: dict[str, None] = field(default_factory=dict)
    """Layout variables that no map knows, in order of appearance."""

    def entries(self, layout: Layout) -> list[EntryRow]:
        """Rows for all files of a layout.

        Raises
        ------
        LayoutError
            Layout and maps do not agree on a variable's name, type or shape.
        PlanError
            No rule can be derived.
        """
        self._require_places(layout)
        return [self._entry(file) for file in layout.files]

    def _require_places(self, layout: Layout) -> None:
        placed = layout.variables()
        homeless = {name for known in self.maps for name in known} - set(placed)
        if homeless:
            raise LayoutError(
                f"the map's variable {', '.join(map(repr, sorted(homeless)))} has no place in the layout, "
                f"which has {', '.join(map(repr, placed)) or 'no variables'}: add it, or rename one of them",
                path=layout.path,
                key=min(homeless),
            )

    def _entry(self, file: FileLayout) -> EntryRow:
        sequence = file.sequence()
        bases = {section.name: index for index, section in enumerate(sequence)}
        rows = []
        for section in sequence:
            if isinstance(section, Bytes):
                rows.append(self._bytes_row(section, bases))
            elif isinstance(section, Array):
                rows.append(self._array_row(section, bases))
            else:
                rows.append(self._record_row(section, bases))
        return EntryRow(
            pattern=file.pattern,
            sections=tuple(rows),
            guards=tuple(GuardRow(guard.offset, guard.data) for guard in file.guards),
            fields=tuple(
                FieldRow(one.start, one.start + one.length, one.places)
                for one in sorted(file.checksums, key=lambda one: one.start)
            ),
            min_bytes=file.min_size,
            max_bytes=MAX_FILE_BYTES if file.max_size is None else file.max_size,
        )

    def _known(self, name: str) -> Knowledge | None:
        """What the maps know of a variable; None if it stays whole."""
        variables = tuple(known[name] for known in self.maps if name in known)
        if not variables:
            self.unknown[name] = None
        if not variables or name in self.keep:
            return None
        return Knowledge(name, variables, self.evidence(name), name in self.allow_unused)

    # Sections --------------------------------------------------------------------------------------------

    def _bytes_row(self, section: Bytes, bases: dict[str, int]) -> SectionRow:
        count = _number(section.length, bases)
        return SectionRow(
            lib.SCR_CRIT_SECTION_KEEP, section.name, "kept whole", count, unit_bytes=1, unit_kept=1
        )

    def _array_row(self, section: Array, bases: dict[str, int]) -> SectionRow:
        known = self._known(section.variable)
        shape, repeat = section.shape, section.repeat
        rule: BoxRule | RunRule = whole_array(section.variable, len(shape))
        if known is not None:
            masks = [known.critical(variable) for variable in self._fitting(section, known)]
            blocks = _differing_blocks(section, masks)
            if blocks is not None:
                shape, repeat, masks = blocks.shape, 1, [blocks]
            else:
                masks = [_one_block(mask, len(shape)) for mask in masks]
            rule = _rule_of(replace(section, shape=shape, repeat=repeat), masks) or rule
        row = SectionRow(
            lib.SCR_CRIT_SECTION_ARRAY,
            section.name,
            rule.words,
            _number(repeat, bases),
            type_size=section.dtype.itemsize,
            fortran=section.order == "F",
        )
        drops = known is not None and rule != whole_array(section.variable, len(shape))
        if isinstance(rule, RunRule):
            row = replace(
                row,
                kind=lib.SCR_CRIT_SECTION_RAW,
                fortran=False,
                program=rule.program,
                unit_bytes=rule.length,
                unit_kept=rule.kept,
            )
            drops = rule.kept < rule.length
        else:
            lengths = tuple(_number(length, bases) for length in shape)
            row = replace(row, lengths=lengths, boxes=rule.boxes)
        return replace(row, evidence=known.evidence_of(drops) if known else EvidenceRow())

    def _record_row(self, section: Record, bases: dict[str, int]) -> SectionRow:
        declared = section.declared_mask()
        keep = np.ones(section.itemsize, np.bool_) if declared is None else declared
        levels = [] if keep.all() else [EvidenceRow()]
        for name, variable in section.fields.items():
            known = self._known(variable)
            if known is None:
                continue
            start, stop = section.field_range(name)
            keep[start:stop] = _field_bytes(section, name, known)
            if not keep[start:stop].all():
                levels.append(known.evidence_of(True))
        rule = run_rule(section.name, regions.runs(keep), keep.size)
        return SectionRow(
            lib.SCR_CRIT_SECTION_RECORD,
            section.name,
            record_words(section.name, keep),
            _number(section.count, bases),
            program=rule.program,
            unit_bytes=rule.length,
            unit_kept=rule.kept,
            evidence=min(levels, key=lambda one: one.level, default=EvidenceRow()),
        )

    def _fitting(self, section: Array, known: Knowledge) -> Iterable[Variable]:
        """The variables of the maps, each found to have the section's type and shape."""
        for variable in known.variables:
            _require_type(variable, section.dtype, f"section {section.name!r}")
            wanted = (section.repeat, *section.shape)
            if not any(_agree(counts, variable.shape) for counts in (section.shape, wanted)):
                words = ", ".join(map(_count_words, section.shape))
                raise LayoutError(
                    f"the map has {variable.name!r} with shape {variable.shape}, the layout has ({words}), "
                    f"repeated {_count_words(section.repeat)} times",
                    key=variable.name,
                )
            yield variable


# Counts -------------------------------------------------------------------------------------------------


def _is_fixed(count: Count) -> bool:
    return isinstance(count, int | np.integer)


def _number(count: Count, bases: dict[str, int]) -> Number:
    if _is_fixed(count):
        return Number.fixed(int(cast(int, count)))
    if isinstance(count, IntAt):
        return Number.integer(
            width=count.dtype.itemsize,
            signed=count.dtype.kind == "i",
            big_endian=count.dtype.str[0] == ">",
            base=FILE_BASE if count.section is None else bases[count.section],
            offset=count.offset,
            factor=count.mul,
            add=count.add,
        )
    return Number.solved()


def _count_words(count: Count) -> str:
    if _is_fixed(count):
        return str(count)
    return "the rest" if count is REST else "as read from the file"


def _agrees(count: Count, length: int) -> bool:
    return not _is_fixed(count) or count == length


def _agree(counts: Sequence[Count], shape: Sequence[int]) -> bool:
    return len(counts) == len(shape) and all(map(_agrees, counts, shape))


def _require_type(variable: Variable, dtype: np.dtype[np.generic], place: str) -> None:
    # Byte order is the file's affair: the map tells of the values.
    if variable.dtype.newbyteorder("=") != dtype.newbyteorder("="):
        raise LayoutError(
            f"the map has {variable.name!r} as {variable.dtype}, the layout's {place} has {dtype}",
            key=variable.name,
        )


# Masks of a record's field ------------------------------------------------------------------------------


def _field_bytes(section: Record, name: str, known: Knowledge) -> Mask:
    """Bytes of a record's field that stay: those critical in any record of any map."""
    dtype = section.field_dtype(name)
    place = f"field {name!r} of record {section.name!r}"
    masks = []
    for variable in known.variables:
        _require_type(variable, dtype.base, place)
        critical = known.critical(variable)
        if critical.shape == dtype.shape:
            masks.append(critical)
        elif critical.shape[1:] == dtype.shape and critical.ndim and _agrees(section.count, len(critical)):
            if len(critical):  # without a record nothing is known
                masks.append(np.asarray(critical.any(axis=0)))
        else:
            raise LayoutError(
                f"the map has {variable.name!r} with shape {variable.shape}, the layout's {place} has "
                f"{dtype.shape} in each of {_count_words(section.count)} records",
                key=variable.name,
            )
    keep = np.logical_or.reduce(masks) if masks else np.ones(dtype.shape, np.bool_)
    return as_bytes(keep, dtype.base.itemsize)


# Masks of an array --------------------------------------------------------------------------------------


def _differing_blocks(section: Array, masks: Sequence[Mask]) -> Mask | None:
    """Critical elements of all blocks as one array, where that is a better rule than one for every block.

    That is so only if everything about the section is fixed and its blocks differ. The blocks' axis is the
    slowest: the first in C order, the last in Fortran order.
    """
    if not all(map(_is_fixed, (section.repeat, *section.shape))):
        return None
    stacked = [mask for mask in masks if mask.ndim > len(section.shape)]
    if not stacked or section.repeat == 0:
        return None
    united: Mask = np.logical_or.reduce([np.broadcast_to(mask, stacked[0].shape) for mask in masks])
    if (united == united[0]).all():
        return None
    return united if section.order == "C" else np.moveaxis(united, 0, -1)


def _one_block(mask: Mask, dims: int) -> Mask:
    """Elements critical in any block. Without a block nothing is known: an empty array says so."""
    if mask.ndim == dims:
        return mask
    return np.asarray(mask.any(axis=0)) if len(mask) else np.zeros((0,) * max(dims, 1), np.bool_)


def _rule_of(section: Array, masks: Iterable[Mask]) -> BoxRule | RunRule | None:
    """The rule that the masks of one block give, None if they tell nothing."""
    samples: dict[tuple[int, ...], NDArray[np.bool_]] = {}
    for mask in masks:
        if mask.size:
            seen = samples.get(mask.shape)
            samples[mask.shape] = mask if seen is None else seen | mask
    if not samples:
        return None
    varies = [not _is_fixed(count) for count in section.shape]
    if any(varies):
        if all(mask.all() for mask in samples.values()):
            return None
        return variable_rule(section.variable, samples, varies, section.order == "F")
    (critical,) = samples.values()
    if critical.all():
        return None
    return fixed_rule(section.variable, critical, section.order == "F", section.dtype.itemsize)
