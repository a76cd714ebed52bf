"""Plan, version 1, as bytes: rows as Python objects, and how they are laid out in the file.

The format is docs/format.md, section 3. This module only writes; reading is the C core's, which validates
every plan before it is used. Imports the extension (for CRC-32C) only. Tests: ``tests/test_plan.py``.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ._core import ffi, lib

MARK = b"\x89SCRL\r\n\x1a"
VERSION = 1
HEADER = struct.Struct("<8sIIQ7II16sI48x")
HEADER_SIZE = 128
DIGEST = slice(56, 72)

FILE_BASE = 0xFFFFFFFF
MAX_FILE_BYTES = 2**63 - 1
MAX_BOXES = 4096
MAX_DIMS = 32

_ENTRY = struct.Struct("<IIIIIIIIIIQQ8x")
_SECTION = struct.Struct("<IIIIIIIIIIIIIIIIQQ16x")
_NUMBER = struct.Struct("<BBBBIqqQ")
_AXIS = struct.Struct("<qqQII")
_GUARD = struct.Struct("<IIIIQ")
_FIELD = struct.Struct("<IIIIIIQQQQ8x")
_FACT = struct.Struct("<IIII")

_FIXED, _SIZE, _INT = range(3)
_START_FROM_END, _STOP_FROM_END = 1, 2
_CRC32_FIELD = 1


@dataclass(frozen=True)
class Number:
    """A count or the length of an axis; make it with one of the class methods."""

    source: int
    width: int = 0
    signed: bool = False
    big_endian: bool = False
    base: int = 0
    value: int = 0
    add: int = 0
    offset: int = 0

    @classmethod
    def fixed(cls, value: int) -> Number:
        """The same in every file."""
        return cls(_FIXED, value=value)

    @classmethod
    def solved(cls) -> Number:
        """What makes the sections cover the file."""
        return cls(_SIZE)

    @classmethod
    def integer(
        cls, *, width: int, signed: bool, big_endian: bool, base: int, offset: int, factor: int, add: int
    ) -> Number:
        """Read from the file, times `factor`, plus `add`."""
        return cls(_INT, width, signed, big_endian, base, factor, add, offset)

    @property
    def is_fixed(self) -> bool:
        """Whether it is the same in every file."""
        return self.source == _FIXED

    def pack(self) -> bytes:
        """The row."""
        return _NUMBER.pack(
            self.source,
            self.width,
            self.signed,
            self.big_endian,
            self.base,
            self.value,
            self.add,
            self.offset,
        )


@dataclass(frozen=True)
class Axis:
    """One axis of one critical box: start, start + step, ... below stop; bounds may count from the end."""

    start: int
    stop: int
    step: int = 1
    start_from_end: bool = False
    stop_from_end: bool = False

    def pack(self) -> bytes:
        """The row."""
        flags = _START_FROM_END * self.start_from_end | _STOP_FROM_END * self.stop_from_end
        return _AXIS.pack(self.start, self.stop, self.step, flags, 0)


@dataclass(frozen=True)
class EvidenceRow:
    """Evidence as numbers: ``scr_crit_evidence``, and what was seen."""

    level: int = 0
    checkpoints: int = 0
    phases: int = 0


@dataclass(frozen=True)
class SectionRow:
    """A section, with its numbers, boxes and program."""

    kind: int
    name: str
    rule: str
    count: Number
    evidence: EvidenceRow = EvidenceRow()
    type_size: int = 1
    fortran: bool = False
    lengths: tuple[Number, ...] = ()
    boxes: tuple[tuple[Axis, ...], ...] = ()
    program: bytes = b""
    unit_bytes: int = 0
    unit_kept: int = 0


@dataclass(frozen=True)
class GuardRow:
    """Constant bytes at an offset from the start of the file."""

    offset: int
    data: bytes


@dataclass(frozen=True)
class FieldRow:
    """A CRC-32 field of the file's own format; offsets from the start of the file."""

    start: int
    stop: int
    places: tuple[int, ...]


@dataclass(frozen=True)
class EntryRow:
    """One kind of file."""

    pattern: str
    sections: tuple[SectionRow, ...]
    guards: tuple[GuardRow, ...] = ()
    fields: tuple[FieldRow, ...] = ()
    min_bytes: int = 0
    max_bytes: int = MAX_FILE_BYTES


class _Blob:
    """The blob as it grows; pieces must be added in the format's order."""

    def __init__(self) -> None:
        self.data = bytearray()

    def add(self, piece: bytes) -> tuple[int, int]:
        """Add bytes; returns a reference to them."""
        reference = len(self.data), len(piece)
        self.data += piece
        return reference

    def add_string(self, text: str) -> tuple[int, int]:
        """Add a string with its terminator; returns a reference to it."""
        reference = self.add(text.encode())
        self.data += b"\0"
        return reference


def serialise(entries: Sequence[EntryRow], facts: Mapping[str, str]) -> bytes:
    """Bytes of a plan file.

    Raises
    ------
    struct.error
        A number exceeds its field.
    """
    sections = [section for entry in entries for section in entry.sections]
    guards = [guard for entry in entries for guard in entry.guards]
    fields = [field for entry in entries for field in entry.fields]
    numbers = [number for section in sections for number in (section.count, *section.lengths)]
    axes = [axis for section in sections for box in section.boxes for axis in box]
    blob = _Blob()
    tables = (
        _entry_rows(entries, blob),
        _section_rows(sections, blob),
        [number.pack() for number in numbers],
        [axis.pack() for axis in axes],
        [_GUARD.pack(*blob.add(guard.data), FILE_BASE, 0, guard.offset) for guard in guards],
        list(map(_field_row, fields)),
        [_FACT.pack(*blob.add_string(key), *blob.add_string(value)) for key, value in facts.items()],
    )
    body = b"".join(row for table in tables for row in table) + bytes(blob.data)
    return _header([len(table) for table in tables], len(blob.data), body) + body


def _entry_rows(entries: Iterable[EntryRow], blob: _Blob) -> list[bytes]:
    rows = []
    section = guard = field = 0
    for entry in entries:
        rows.append(
            _ENTRY.pack(
                *blob.add_string(entry.pattern),
                0,
                0,
                section,
                len(entry.sections),
                guard,
                len(entry.guards),
                field,
                len(entry.fields),
                entry.min_bytes,
                entry.max_bytes,
            )
        )
        section += len(entry.sections)
        guard += len(entry.guards)
        field += len(entry.fields)
    return rows


def _section_rows(sections: Iterable[SectionRow], blob: _Blob) -> list[bytes]:
    rows = []
    number = axis = 0
    for section in sections:
        evidence = section.evidence
        rows.append(
            _SECTION.pack(
                section.kind,
                evidence.level,
                evidence.checkpoints,
                evidence.phases,
                section.type_size,
                section.fortran,
                len(section.lengths),
                len(section.boxes),
                number,
                axis,
                *blob.add_string(section.name),
                *blob.add_string(section.rule),
                *blob.add(section.program),
                section.unit_bytes,
                section.unit_kept,
            )
        )
        number += 1 + len(section.lengths)
        axis += len(section.boxes) * len(section.lengths)
    return rows


def _field_row(field: FieldRow) -> bytes:
    second = field.places[1] if len(field.places) == 2 else 0
    second_base = FILE_BASE if len(field.places) == 2 else 0
    return _FIELD.pack(
        _CRC32_FIELD,
        len(field.places),
        FILE_BASE,
        FILE_BASE,
        FILE_BASE,
        second_base,
        field.start,
        field.stop,
        field.places[0],
        second,
    )


def _header(rows: list[int], blob_size: int, body: bytes) -> bytes:
    head = HEADER.pack(
        MARK, VERSION, HEADER_SIZE, HEADER_SIZE + len(body), *rows, blob_size, digest(body), crc32c(body)
    )
    return head + struct.pack("<I", crc32c(head))


def digest(body: bytes | memoryview) -> bytes:
    """Digest of everything after the header, 16 bytes."""
    return hashlib.blake2b(body, digest_size=16).digest()


def crc32c(data: bytes) -> int:
    """CRC-32C (Castagnoli), the checksum of both formats."""
    return int(lib.scr_crit_crc32c(0, ffi.from_buffer(data), len(data)))
