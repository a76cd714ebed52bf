"""Plans: rules that say which bytes of which checkpoint file are critical.

:func:`compile_plan` makes one from criticality maps and a layout; the C core validates and executes it.
The format is docs/format.md, section 3. Imports ``_plan_compile``, ``_plan_format``, ``_storage``, the
extension and the errors. Tests: ``tests/test_plan.py``.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from . import _plan_format
from ._core import ffi, lib
from ._core_errors import PathLike, require_ok
from ._plan_compile import Compiler
from ._plan_format import HEADER_SIZE, MAX_FILE_BYTES, EvidenceRow
from ._storage import read_file, replace_file
from .criticality import CriticalityMap
from .errors import ChecksumError, PlanError
from .layout import Layout

_LEVELS: dict[str, int] = {
    "none": lib.SCR_CRIT_EVIDENCE_NONE,
    "single": lib.SCR_CRIT_EVIDENCE_SINGLE,
    "observed": lib.SCR_CRIT_EVIDENCE_OBSERVED,
    "proven": lib.SCR_CRIT_EVIDENCE_PROVEN,
}
_LEVEL_NAMES = {number: name for name, number in _LEVELS.items()}
_KINDS = {
    lib.SCR_CRIT_SECTION_KEEP: "keep",
    lib.SCR_CRIT_SECTION_ARRAY: "array",
    lib.SCR_CRIT_SECTION_RECORD: "record",
    lib.SCR_CRIT_SECTION_RAW: "raw",
}
# Longer provenance stays in the map: a plan is read by every rank of every job.
_LONGEST_FACT = 100


class PlanWarning(UserWarning):
    """A plan keeps more than it might."""


@dataclass(frozen=True)
class Evidence:
    """How far a rule was shown to hold.

    Parameters
    ----------
    level : {"none", "single", "observed", "proven"}
        Nothing dropped or dropped because the user named it; seen in one checkpoint; seen in several
        checkpoints and phases; follows from the program's structure.
    checkpoints, phases : int
        How many were seen, both at least 1 at level "observed"; else 0.

    Raises
    ------
    PlanError
        An unknown level, or numbers that do not go with it.
    """

    level: str = "single"
    checkpoints: int = 0
    phases: int = 0

    def __post_init__(self) -> None:
        if self.level not in _LEVELS:
            raise PlanError(f"evidence {self.level!r}: expected one of {', '.join(_LEVELS)}", key="level")
        numbers = (self.checkpoints, self.phases)
        if (min(numbers) < 1) if self.level == "observed" else numbers != (0, 0):
            raise PlanError(
                f"evidence {self.level!r} with {self.checkpoints} checkpoints and {self.phases} phases: "
                "expected both at least 1 for 'observed', 0 for the others",
                key="checkpoints",
            )


@dataclass(frozen=True)
class SectionInfo:
    """A section of a plan's entry.

    `unit_bytes` and `unit_kept` are the length and the critical bytes of one repetition, None where the file
    decides.
    """

    name: str
    kind: str
    rule: str
    evidence: str
    checkpoints: int
    phases: int
    type_size: int
    dims: int
    boxes: int
    unit_bytes: int | None
    unit_kept: int | None


@dataclass(frozen=True)
class EntryInfo:
    """One kind of checkpoint file.

    `guards` and `checksums` say how many there are; `max_bytes` is None without a bound.
    """

    pattern: str
    min_bytes: int
    max_bytes: int | None
    guards: int
    checksums: int
    sections: tuple[SectionInfo, ...]


@dataclass(frozen=True)
class Match:
    """The entry for a file; `tied`: the pattern names the rank, so that no other rank has this file."""

    index: int
    tied: bool
    entry: EntryInfo


class Plan:
    """An immutable plan, validated by the C core.

    Made by :func:`compile_plan`, :meth:`load`, or :meth:`from_bytes`.
    """

    def __init__(self, data: bytes, path: str | None = None) -> None:
        named = () if path is None else (path,)
        handle = ffi.new("scr_crit_plan **")
        require_ok(
            lib.scr_crit_plan_open_memory(ffi.from_buffer(data), len(data), handle), *named, reading="plan"
        )
        self._handle = ffi.gc(handle[0], lib.scr_crit_plan_close)
        self._data = data
        self.path = path
        info = ffi.new("scr_crit_plan_info *")
        require_ok(lib.scr_crit_plan_describe(self._handle, info), *named, reading="plan")
        self.format: int = info.format
        self.digest: str = bytes(info.digest).hex()
        self._verify_digest()
        self.facts = dict(self._fact(index) for index in range(info.facts))
        self.entries = tuple(self._entry(index) for index in range(info.entries))

    @classmethod
    def from_bytes(cls, data: bytes, *, path: PathLike | None = None) -> Plan:
        """Plan from a plan file's content; `path` is named in errors.

        Raises
        ------
        PlanError
            Malformed; ``offset`` says where.
        ChecksumError
            A checksum or the digest does not match the content.
        """
        return cls(bytes(data), None if path is None else os.fspath(path))

    @classmethod
    def load(cls, path: PathLike) -> Plan:
        """Read a plan file; raises as :meth:`from_bytes`, and StorageError when it cannot be read."""
        return cls.from_bytes(read_file(path), path=path)

    def save(self, path: PathLike) -> None:
        """Write the plan file: complete and synced under its name, or not at all.

        Jobs that have the plan open go on with the old one.

        Raises
        ------
        StorageError
            The operating system refused.
        """
        replace_file(path, [self._data])
        self.path = os.fspath(path)

    def match(self, path: PathLike, rank: int = -1, dataset: str | None = None) -> Match:
        """Find the entry for a checkpoint file: the first whose pattern matches.

        Parameters
        ----------
        path : path relative to the prefix
        rank : int
            The writing rank; -1 accepts any number where the pattern has ``{rank}``.
        dataset : str, optional
            Dataset name; None accepts any text without '/' where the pattern has ``{dataset}``.

        Raises
        ------
        NoMatchError
            No pattern matches.
        CritError
            A rank below -1.
        """
        name = os.fsencode(path)
        named = ffi.NULL if dataset is None else os.fsencode(dataset)
        entry, tied = ffi.new("uint32_t *"), ffi.new("int *")
        status = lib.scr_crit_plan_match(self._handle, name, rank, named, entry, tied)
        require_ok(status, os.fsdecode(name), reading="plan")
        return Match(entry[0], bool(tied[0]), self.entries[entry[0]])

    def to_json_dict(self) -> dict[str, Any]:
        """The plan's content as JSON values: format, digest, bytes, facts, entries with their sections."""
        return {
            "format": self.format,
            "digest": self.digest,
            "bytes": len(self),
            "facts": dict(self.facts),
            "entries": [
                {**asdict(entry), "sections": [asdict(section) for section in entry.sections]}
                for entry in self.entries
            ],
        }

    def __bytes__(self) -> bytes:
        return self._data

    def __len__(self) -> int:
        return len(self._data)

    def __eq__(self, other: object) -> bool:
        return self._data == other._data if isinstance(other, Plan) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._data)

    def __reduce__(self) -> tuple[Any, ...]:
        return (Plan, (self._data, self.path))

    def __repr__(self) -> str:
        return f"<Plan {self.digest}: {len(self.entries)} kinds of file, {len(self)} bytes>"

    @property
    def handle(self) -> Any:
        """The core's ``scr_crit_plan *``, for ``packed``; valid as long as this object lives."""
        return self._handle

    def _verify_digest(self) -> None:
        found = _plan_format.digest(memoryview(self._data)[HEADER_SIZE:]).hex()
        if found != self.digest:
            raise ChecksumError(
                f"the plan's digest is {self.digest}, its content gives {found}",
                path=self.path,
                offset=_plan_format.DIGEST.start,
            )

    def _fact(self, index: int) -> tuple[str, str]:
        key, value = ffi.new("char const **"), ffi.new("char const **")
        require_ok(lib.scr_crit_plan_fact(self._handle, index, key, value), reading="plan")
        return _text(key[0]), _text(value[0])

    def _entry(self, index: int) -> EntryInfo:
        info = ffi.new("scr_crit_entry_info *")
        require_ok(lib.scr_crit_plan_entry(self._handle, index, info), reading="plan")
        return EntryInfo(
            pattern=_text(info.pattern),
            min_bytes=info.min_bytes,
            max_bytes=None if info.max_bytes == MAX_FILE_BYTES else info.max_bytes,
            guards=info.guards,
            checksums=info.checksums,
            sections=tuple(self._section(index, section) for section in range(info.sections)),
        )

    def _section(self, entry: int, index: int) -> SectionInfo:
        info = ffi.new("scr_crit_section_info *")
        require_ok(lib.scr_crit_plan_section(self._handle, entry, index, info), reading="plan")
        return SectionInfo(
            name=_text(info.name),
            kind=_KINDS[info.kind],
            rule=_text(info.rule),
            evidence=_LEVEL_NAMES[info.evidence],
            checkpoints=info.checkpoints,
            phases=info.phases,
            type_size=info.type_size,
            dims=info.dims,
            boxes=info.boxes,
            unit_bytes=info.unit_bytes or None,
            unit_kept=info.unit_kept if info.unit_bytes else None,
        )


def _text(pointer: Any) -> str:
    return bytes(ffi.string(pointer)).decode()  # the core has checked that it is UTF-8


def glob(pattern: str, path: PathLike, rank: int = -1, dataset: str | None = None) -> bool:
    """Whether a plan's pattern matches a path relative to the prefix; see docs/format.md, "Patterns".

    Raises
    ------
    PlanError
        The pattern is malformed, or the rank below -1.
    """
    named = ffi.NULL if dataset is None else os.fsencode(dataset)
    matched = lib.scr_crit_glob(pattern.encode(), os.fsencode(path), rank, named)
    if matched < 0:
        raise PlanError(
            f"pattern {pattern!r} at rank {rank}: expected well-formed, rank >= -1", key="pattern"
        )
    return bool(matched)


# Compiling ------------------------------------------------------------------------------------------------


def compile_plan(
    maps: CriticalityMap | Sequence[CriticalityMap],
    layout: Layout,
    *,
    evidence: Evidence | str | Mapping[str, Evidence | str] = "single",
    allow_unused: Collection[str] = (),
    keep: Collection[str] = (),
    facts: Mapping[str, str] | None = None,
) -> Plan:
    """Compile criticality maps and a layout into a plan.

    Inert and dead elements are dropped. Unused ones are kept, for nobody knows whether they are needed later,
    unless `allow_unused` names their variable (evidence is then "none": the user said so). Where a layout's
    counts are fixed, a variable's critical elements become boxes, or runs where boxes do not help. Where they
    vary, maps at two sizes or more must show how the boxes follow the size. A record's byte is dropped only
    if it is uncritical in every record.

    Parameters
    ----------
    maps : CriticalityMap or sequence of them
        Several are united where shapes are equal: critical in one is critical. A variable that no map knows
        stays whole, with a :class:`PlanWarning`.
    layout : Layout
    evidence : Evidence, its level, or a mapping from variable to either
        How far the maps were shown to hold; variables that a mapping lacks are "single".
    allow_unused : collection of str
        Variables whose unused elements may be dropped.
    keep : collection of str
        Variables to keep whole, whatever the maps say.
    facts : mapping of str to str, optional
        What to record in the plan besides the maps' provenance.

    Returns
    -------
    Plan
        Opened and validated by the C core.

    Raises
    ------
    LayoutError
        A map's variable has no place in the layout, or type or shape differ.
    PlanError
        No rule can be derived; a name in `allow_unused`, `keep` or `evidence` that the layout does not have.
    """
    given = [maps] if isinstance(maps, CriticalityMap) else list(maps)
    named = [*allow_unused, *keep, *(evidence if isinstance(evidence, Mapping) else ())]
    _require_known(named, layout)
    compiler = Compiler(given, _evidence_by_name(evidence), frozenset(allow_unused), frozenset(keep))
    entries = compiler.entries(layout)
    recorded = _provenance(given)
    if compiler.unknown:
        names = ", ".join(compiler.unknown)
        recorded["warnings"] = f"kept whole, for no map knows them: {names}"
        warnings.warn(f"no map knows {names}: kept whole (unknown means critical)", PlanWarning, stacklevel=2)
    recorded.update(facts or {})
    return Plan(_plan_format.serialise(entries, _checked_facts(recorded)))


def _require_known(names: Sequence[str], layout: Layout) -> None:
    placed = layout.variables()
    for name in names:
        if name not in placed:
            raise PlanError(
                f"variable {name!r} is named, the layout has {', '.join(map(repr, placed)) or 'none'}",
                key=name,
            )


def _evidence_by_name(
    evidence: Evidence | str | Mapping[str, Evidence | str],
) -> Callable[[str], EvidenceRow]:
    def row(given: Evidence | str) -> EvidenceRow:
        one = Evidence(given) if isinstance(given, str) else given
        return EvidenceRow(_LEVELS[one.level], one.checkpoints, one.phases)

    if isinstance(evidence, Mapping):
        by_name = {name: row(given) for name, given in evidence.items()}
        return lambda name: by_name.get(name, row("single"))
    everywhere = row(evidence)
    return lambda name: everywhere


def _provenance(maps: Sequence[CriticalityMap]) -> dict[str, str]:
    """What the maps agree on about their origin, as far as it is short."""
    facts = {"writer": f"scr_critplugin {_text(lib.scr_crit_version())}"}
    first = maps[0].provenance if maps else {}
    for key, value in first.items():
        text = value if isinstance(value, str) else json.dumps(value)
        shared = all(key in one.provenance and one.provenance[key] == value for one in maps)
        if shared and len(text) <= _LONGEST_FACT:
            facts[f"map.{key}"] = text
    return facts


def _checked_facts(facts: Mapping[str, str]) -> Mapping[str, str]:
    for key, value in facts.items():
        if not isinstance(key, str) or not isinstance(value, str) or not key or "\0" in key + value:
            raise PlanError(f"fact {key!r}: {value!r}: expected text without zero bytes", key=str(key))
    return facts


def load_plan(plan: Plan | PathLike) -> Plan:
    """The plan itself, or the one in a file."""
    return plan if isinstance(plan, Plan) else Plan.load(Path(plan))
