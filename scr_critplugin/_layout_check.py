"""Checks of a kind of file as a whole: what involves more than one of its sections.

Imports ``_sections`` and the errors; ``layout`` calls :func:`check_file`. Tests: ``tests/test_layout.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._sections import (
    REST,
    Bytes,
    Checksum,
    Count,
    IntAt,
    Section,
    fixed_length,
    require_int,
    variables_of,
    within,
)
from .errors import LayoutError

if TYPE_CHECKING:
    from .layout import FileLayout


def check_file(file: FileLayout) -> None:
    """Refuse a FileLayout whose parts do not go together; LayoutError names the part."""
    _check_bounds(file)
    _check_names(file)
    _Walk(file).run()


def _check_bounds(file: FileLayout) -> None:
    require_int("min_size", file.min_size, 0)
    if file.max_size is not None:
        require_int("max_size", file.max_size, 0)
        if file.max_size < file.min_size:
            raise LayoutError(
                f"found {file.max_size}, expected at least min_size {file.min_size}", key="max_size"
            )
    if not file.sections:
        raise LayoutError("found no section, expected at least one", key="section")


def _check_names(file: FileLayout) -> None:
    owners: dict[str, int] = {}
    holders: dict[str, int] = {}
    for index, section in enumerate(file.sections):
        if section.name in owners:
            raise LayoutError(
                f"found {section.name!r}, which is the name of section[{owners[section.name]}] already",
                key=f"section[{index}].name",
            )
        owners[section.name] = index
        for variable in variables_of(section):
            if variable in holders:
                raise LayoutError(
                    f"found variable {variable!r}, which section[{holders[variable]}] holds already",
                    key=f"section[{index}]",
                )
            holders[variable] = index


class _Walk:
    """Walks the sections from left to right and checks what involves more than one of them."""

    def __init__(self, file: FileLayout) -> None:
        self.file = file
        self.position: int | None = 0
        self.rest: str | None = None
        self.kept: list[
            tuple[int, int]
        ] = []  # spans of fixed position that are kept whole, ascending, joined
        self.bases: dict[str, int] = {}  # sections an integer may be read from, with their length
        self.names: set[str] = set()

    def run(self) -> None:
        for index, section in enumerate(self.file.sections):
            with within(f"section[{index}]"):
                self.place(section)
                for key, count in section.counts().items():
                    self.check_count(section, key, f"section[{index}]", count)
                self.advance(section)
        for index, guard in enumerate(self.file.guards):
            with within(f"guard[{index}]"):
                self.require_kept("offset", guard.offset, guard.stop)
        self.check_checksums()
        self.check_size()

    def place(self, section: Section) -> None:
        if section.offset is None:
            return
        if self.position is None:
            raise LayoutError(
                f"found offset {section.offset} behind a section without fixed length; leave it out, "
                "the section follows the one before",
                key="offset",
            )
        if section.offset < self.position:
            raise LayoutError(
                f"found offset {section.offset}, but the section before ends at {self.position}",
                key="offset",
            )
        self.keep(self.position, section.offset)
        self.position = section.offset

    def advance(self, section: Section) -> None:
        length = fixed_length(section)
        self.names.add(section.name)
        if isinstance(section, Bytes) and length is not None:
            if self.rest is None:
                self.bases[section.name] = length
            if self.position is not None:
                self.keep(self.position, self.position + length)
        self.position = None if self.position is None or length is None else self.position + length

    def keep(self, start: int, stop: int) -> None:
        if self.kept and self.kept[-1][1] == start:
            start = self.kept.pop()[0]
        if stop > start:
            self.kept.append((start, stop))

    def check_count(self, section: Section, key: str, where: str, count: Count) -> None:
        if count is REST:
            if self.rest is not None:
                raise LayoutError(
                    f"found a second rest, the first is {self.rest}; expected one in a file", key=key
                )
            self.rest = f"{where}.{key}"
            others = (other for at, other in section.counts().items() if at != key)
            if any(other == 0 for other in others if isinstance(other, int)):
                raise LayoutError("found a rest beside a count of 0, which has no solution", key=key)
        elif isinstance(count, IntAt):
            with within(key):
                self.check_place(count)

    def check_place(self, place: IntAt) -> None:
        if place.section is None:
            self.require_kept("offset", place.offset, place.stop)
        elif place.section in self.bases:
            length = self.bases[place.section]
            if place.stop > length:
                raise LayoutError(
                    f"found offset {place.offset} of {place.dtype.itemsize} bytes, expected them within the "
                    f"{length} bytes of {place.section!r}",
                    key="offset",
                )
        elif place.section in self.names:
            raise LayoutError(
                f"found {place.section!r}, expected kind bytes, a fixed length, and no rest before it",
                key="section",
            )
        else:
            known = ", ".join(self.bases) or "none"
            raise LayoutError(
                f"found {place.section!r}, expected an earlier section of kind bytes; there is: {known}",
                key="section",
            )

    def require_kept(self, key: str, start: int, stop: int) -> None:
        if not any(first <= start and stop <= last for first, last in self.kept):
            spans = ", ".join(f"{first}:{last}" for first, last in self.kept) or "none"
            raise LayoutError(
                f"found bytes {start}:{stop}, expected a fixed place that is kept whole (so far {spans}); "
                "give it a section of kind bytes",
                key=key,
            )

    def check_checksums(self) -> None:
        size = self.file.fixed_size()
        reached = 0
        for index, checksum in enumerate(self.file.checksums):
            with within(f"checksum[{index}]"):
                if size is None:
                    raise LayoutError(
                        "found a checksum in a file whose counts are read or solved, expected fixed ones"
                    )
                if checksum.stop > size:
                    raise LayoutError(
                        f"found bytes to {checksum.stop}, expected within {size} bytes", key="length"
                    )
                if checksum.start < reached:
                    raise LayoutError(
                        f"found start {checksum.start}, expected at least {reached}: ascending and disjoint",
                        key="start",
                    )
                reached = checksum.stop
                for number, place in enumerate(checksum.places):
                    self.check_checksum_place(f"places[{number}]", place)

    def check_checksum_place(self, key: str, place: int) -> None:
        stop = place + Checksum.SIZE
        self.require_kept(key, place, stop)
        for other in self.file.checksums:
            if place < other.stop and stop > other.start:
                raise LayoutError(
                    f"found bytes {place}:{stop}, but a checksum covers {other.start}:{other.stop}",
                    key=key,
                )

    def check_size(self) -> None:
        size = self.file.fixed_size()
        if size is None:
            return
        if size < self.file.min_size or (self.file.max_size is not None and size > self.file.max_size):
            raise LayoutError(
                f"found sections of {size} bytes, expected {self.file.min_size} to {self.file.max_size} "
                "(min_size, max_size): no file would fit",
                key="section",
            )
        require_int("section", size, 0)
