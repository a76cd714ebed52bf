"""Layouts: which bytes of which checkpoint file hold which elements of which variable.

A layout describes kinds of files, each a sequence of sections (``_sections``): bytes kept whole, arrays,
records. Counts may be numbers, stand in the file itself, or follow from its size. Written by hand as TOML
(``docs/layout.md``), or built by calls; ``_layout_toml`` reads and writes the text, ``_layout_samples`` looks
at sample files. Knows nothing of maps or plans. Tests: ``tests/test_layout.py``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import DTypeLike

from ._layout_check import check_file
from ._layout_locate import Place, locate
from ._patterns import check_pattern
from ._sections import (
    REST,
    Array,
    Bytes,
    Checksum,
    Count,
    Guard,
    IntAt,
    Order,
    Record,
    Rest,
    Section,
    fixed_length,
    variables_of,
    within,
)
from .errors import LayoutError

__all__ = [
    "REST",
    "Array",
    "Bytes",
    "Checksum",
    "Count",
    "FileLayout",
    "Guard",
    "IntAt",
    "Layout",
    "Place",
    "Record",
    "Rest",
    "Section",
    "fixed_length",
]

PathLike = str | os.PathLike[str]


@dataclass(frozen=True)
class FileLayout:
    """One kind of checkpoint file.

    Parameters
    ----------
    pattern : str
        Which files: a glob on the path relative to the prefix, see ``docs/format.md``, "Patterns".
    sections : sequence of Section
        In file order. Gaps before a section with an offset are kept; behind the last one the file ends.
    guards : sequence of Guard
    checksums : sequence of Checksum
        Only where every position is fixed.
    min_size, max_size : int
        Bounds of the file's size in bytes.

    Raises
    ------
    LayoutError
        ``key`` names the place, as in ``section[2].shape[0]``. What holds once a FileLayout exists: names of
        sections and variables are unique; at most one count is REST; sections do not overlap; integers that
        counts are read from, guards and checksums stand in bytes that are kept whole.
    """

    pattern: str
    sections: tuple[Section, ...]
    guards: tuple[Guard, ...] = ()
    checksums: tuple[Checksum, ...] = ()
    min_size: int = 0
    max_size: int | None = None

    def __post_init__(self) -> None:
        for attribute in ("sections", "guards", "checksums"):
            object.__setattr__(self, attribute, tuple(getattr(self, attribute)))
        check_pattern(self.pattern)
        check_file(self)

    def sequence(self) -> tuple[Section, ...]:
        """The sections with every gap made a :class:`Bytes` section.

        Each begins where the last ended, the first at byte 0; none has an offset.
        """
        position: int | None = 0
        found: list[Section] = []
        for section in self.sections:
            if section.offset is not None and position is not None and section.offset > position:
                found.append(Bytes(f"(gap {position}:{section.offset})", section.offset - position))
                position = section.offset
            found.append(_without_offset(section))
            length = fixed_length(section)
            position = None if position is None or length is None else position + length
        return tuple(found)

    def variables(self) -> tuple[str, ...]:
        """Names of the variables in this kind of file."""
        return tuple(name for section in self.sections for name in variables_of(section))

    def fixed_size(self) -> int | None:
        """Size of the file in bytes, or None if counts are read or solved."""
        lengths = [fixed_length(section) for section in self.sequence()]
        return None if None in lengths else sum(cast("list[int]", lengths))

    def is_fixed(self) -> bool:
        """Whether every position is the same in all files of this kind."""
        return self.fixed_size() is not None

    def locate(self, path: PathLike) -> list[Place]:
        """Where the sections (of :meth:`sequence`) lie in a file.

        Raises
        ------
        LayoutError
            The file is not of this kind: its size, a guard, or a count does not fit.
        StorageError
            The file cannot be read.
        """
        return locate(self, path)


@dataclass(frozen=True)
class Layout:
    """The kinds of files of a checkpoint. The first whose pattern matches a file is the file's.

    Parameters
    ----------
    files : sequence of FileLayout
    path : str, optional
        The TOML file it was read from.
    """

    files: tuple[FileLayout, ...]
    path: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "files", tuple(self.files))
        if not self.files:
            raise LayoutError("found no file, expected at least one", path=self.path, key="file")
        seen: dict[str, int] = {}
        for index, file in enumerate(self.files):
            if file.pattern in seen:
                raise LayoutError(
                    f"found the pattern of file[{seen[file.pattern]}] again; no file would reach this one",
                    path=self.path,
                    key=f"file[{index}].pattern",
                )
            seen[file.pattern] = index

    @classmethod
    def from_toml(cls, path: PathLike) -> Layout:
        """Read a layout as ``docs/layout.md`` describes it; samples are found relative to the file.

        Raises
        ------
        LayoutError
            ``path`` and ``key`` (``file[0].section[2].dtype``) name the place.
        StorageError
            The file cannot be read.
        """
        from ._layout_toml import read_layout

        return read_layout(path)

    @classmethod
    def loads(cls, text: str, *, path: PathLike | None = None, base: PathLike = ".") -> Layout:
        """Layout from TOML text; `path` is named in errors, samples are relative to `base`."""
        from ._layout_toml import parse_layout

        return parse_layout(text, None if path is None else os.fspath(path), Path(base))

    def to_toml(self) -> str:
        """The layout as TOML; :meth:`loads` gives an equal one."""
        from ._layout_toml import format_layout

        return format_layout(self)

    @classmethod
    def raw(
        cls,
        pattern: str,
        arrays: Mapping[
            str, tuple[int, DTypeLike, Sequence[Count]] | tuple[int, DTypeLike, Sequence[Count], Order]
        ],
        *,
        size: int | Rest | None = None,
    ) -> Layout:
        """Layout of a raw dump.

        Parameters
        ----------
        pattern : str
        arrays : mapping of variable to (offset, dtype, shape) or (offset, dtype, shape, order)
            In any order; whatever lies between them is kept.
        size : int or REST, optional
            Size of the file; REST: whatever follows the last array is kept. Default: the file ends with it.
        """
        sections: list[Section] = [
            _raw_array(variable, *arguments)
            for variable, arguments in sorted(arrays.items(), key=lambda item: item[1][0])
        ]
        if size is not None:
            end = FileLayout(pattern, tuple(sections)).fixed_size() if sections else 0
            if size is REST:
                sections.append(Bytes("(tail)", REST))
            elif end is None or not isinstance(size, int) or size < end:
                raise LayoutError(f"found {size!r}, expected at least the arrays' {end} bytes", key="size")
            elif size > end:
                sections.append(Bytes("(tail)", size - end))
        return cls((FileLayout(pattern, tuple(sections)),))

    @classmethod
    def from_npy(cls, path: PathLike, *, pattern: str, variable: str) -> Layout:
        """Layout of ``.npy`` files with the header of a sample; others go through whole.

        Raises
        ------
        LayoutError
            The sample is no ``.npy``, is cut short, or holds Python objects.
        StorageError
            It cannot be read.
        """
        from ._layout_samples import npy_layout

        return cls((npy_layout(path, pattern, variable),))

    @classmethod
    def from_npz(cls, path: PathLike, *, pattern: str, names: Mapping[str, str] | None = None) -> Layout:
        """Layout of uncompressed ``.npz`` files with the members of a sample; others go through whole.

        Parameters
        ----------
        path : path of the sample
        pattern : str
        names : mapping of member to variable, optional
            Default: every array, under its own name. With it, other members are kept whole.

        Raises
        ------
        LayoutError
            The sample is no zip, is damaged, has compressed members or data descriptors, or arrays of Python
            objects, or lacks a member of `names`.
        StorageError
            It cannot be read.
        """
        from ._layout_samples import npz_layout

        return cls((npz_layout(path, pattern, names),))

    def variables(self) -> tuple[str, ...]:
        """Names of the variables of all files, each once."""
        return tuple(dict.fromkeys(name for file in self.files for name in file.variables()))


def _without_offset(section: Section) -> Section:
    return section if section.offset is None else replace(section, offset=None)


def _raw_array(
    variable: str, offset: int, dtype: DTypeLike, shape: Sequence[Count], order: Order = "C"
) -> Array:
    with within(variable):
        return Array(variable, cast("np.dtype[Any]", dtype), tuple(shape), order, offset=offset)
