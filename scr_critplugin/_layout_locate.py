"""Where the sections of a layout lie in one given file.

The C core does the same when it packs; this is for looking at a file before there is a plan, and the oracle
that tests hold the core against. Imports ``_sections`` and the errors. Tests: ``tests/test_layout.py``.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

import numpy as np

from ._sections import Count, IntAt, Rest, Section
from .errors import LayoutError, StorageError

if TYPE_CHECKING:
    from .layout import FileLayout


@dataclass(frozen=True)
class Place:
    """Where a section lies in one given file.

    `shape` is an array's (of one block) and () for other sections; `count` is the number of blocks, records,
    or bytes.
    """

    section: Section
    offset: int
    length: int
    shape: tuple[int, ...]
    count: int


def locate(layout: FileLayout, path: str | os.PathLike[str]) -> list[Place]:
    """Places of the sections (of ``layout.sequence()``) in a file; see :meth:`FileLayout.locate`."""
    try:
        with Path(path).open("rb") as file:
            return _Locator(layout, path, file, os.fstat(file.fileno()).st_size).locate()
    except OSError as error:
        raise StorageError(f"cannot read: {error.strerror}", errno=error.errno, path=path) from error


class _Locator:
    """Finds the sections of one file; each method raises LayoutError with the file's path."""

    def __init__(self, layout: FileLayout, path: str | os.PathLike[str], file: BinaryIO, size: int) -> None:
        self.layout = layout
        self.path = path
        self.file = file
        self.size = size

    def locate(self) -> list[Place]:
        self.check_bounds()
        sections = self.layout.sequence()
        counts: list[dict[str, int | None]] = []
        starts: dict[str, int | None] = {}
        position: int | None = 0
        for section in sections:
            starts[section.name] = position
            counts.append(
                {key: self.count(section, key, count, starts) for key, count in section.counts().items()}
            )
            length = _length(section, counts[-1])
            position = None if position is None or length is None else position + length
        self.solve_rest(sections, counts)
        return self.places(sections, cast("list[dict[str, int]]", counts))

    def check_bounds(self) -> None:
        if self.size < self.layout.min_size:
            raise self.misfit(f"found {self.size} bytes, expected at least {self.layout.min_size}")
        if self.layout.max_size is not None and self.size > self.layout.max_size:
            raise self.misfit(f"found {self.size} bytes, expected at most {self.layout.max_size}")
        for index, guard in enumerate(self.layout.guards):
            found = self.read(guard.offset, len(guard.data))
            if found != guard.data:
                raise self.misfit(
                    f"found {found.hex(' ')}, expected {guard.data.hex(' ')}", f"guard[{index}]", guard.offset
                )

    def count(self, section: Section, key: str, count: Count, starts: Mapping[str, int | None]) -> int | None:
        if not isinstance(count, IntAt):
            return None if isinstance(count, Rest) else count
        base = 0 if count.section is None else starts[count.section]
        offset = cast(int, base) + count.offset  # never behind a rest, FileLayout saw to it
        found = self.read(offset, count.dtype.itemsize)
        if len(found) < count.dtype.itemsize:
            raise self.misfit("the file ends before the integer of a count", f"{section.name}.{key}", offset)
        value = int(np.frombuffer(found, count.dtype)[0]) * count.mul + count.add
        if value < 0:
            raise self.misfit(
                f"found a count of {value}, expected at least 0", f"{section.name}.{key}", offset
            )
        return value

    def solve_rest(self, sections: Sequence[Section], counts: list[dict[str, int | None]]) -> None:
        taken = [_length(section, known) for section, known in zip(sections, counts, strict=True)]
        if None not in taken:
            return
        index = taken.index(None)
        section, known = sections[index], counts[index]
        left = self.size - sum(length for length in taken if length is not None)
        unit = section.unit * math.prod(count for count in known.values() if count is not None)
        if left < 0 or unit == 0 or left % unit:
            raise self.misfit(
                f"found {left} bytes left for the rest, expected a multiple of {unit}", section.name
            )
        for key, count in known.items():
            if count is None:
                known[key] = left // unit

    def places(self, sections: Sequence[Section], counts: list[dict[str, int]]) -> list[Place]:
        position = 0
        found = []
        for section, known in zip(sections, counts, strict=True):
            length = cast(int, _length(section, known))
            *shape, count = known.values()
            found.append(Place(section, position, length, tuple(shape), count))
            position += length
        if position != self.size:
            raise self.misfit(f"found {self.size} bytes, expected {position} by the sections")
        return found

    def read(self, offset: int, length: int) -> bytes:
        self.file.seek(offset)
        return self.file.read(length)

    def misfit(self, message: str, key: str | None = None, offset: int | None = None) -> LayoutError:
        return LayoutError(message, path=self.path, key=key, offset=offset)


def _length(section: Section, counts: Mapping[str, int | None]) -> int | None:
    length = section.unit
    for count in counts.values():
        if count is None:
            return None
        length *= count
    return length
