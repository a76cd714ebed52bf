"""Layouts of ``.npy`` and uncompressed ``.npz`` files, from a sample.

A file of the same program has the same headers as long as shapes and types stay: they become guards, so that
a file of another shape goes through whole. Zip members carry a CRC-32 twice, in front of the member and in
the central directory; both are made anew when a packed file is expanded. The zip container is described in
PKWARE's APPNOTE.TXT (sections 4.3.7, 4.3.12, 4.5.3), the ``.npy`` header in NumPy's ``numpy.lib.format``.
Imports ``layout`` and its parts. Tests: ``tests/test_layout.py``.
"""

from __future__ import annotations

import ast
import errno
import itertools
import math
import os
import struct
import tokenize
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from ._sections import Array, Bytes, Checksum, Guard, Section, within
from .errors import LayoutError, StorageError
from .layout import FileLayout

PathLike = str | os.PathLike[str]

_LOCAL = struct.Struct("<4sHHHHHIIIHH")
_LOCAL_MAGIC = b"PK\x03\x04"
_CENTRAL = struct.Struct("<4sHHHHHHIIIHHHHHII")
_CENTRAL_MAGIC = b"PK\x01\x02"
_ENCRYPTED, _DATA_DESCRIPTOR = 0x1, 0x8
_ZIP64_EXTRA = 0x0001


class _LocalHeader(NamedTuple):
    magic: bytes
    version: int
    flags: int
    method: int
    time: int
    date: int
    crc: int
    stored_size: int
    size: int
    name_size: int
    extra_size: int


class _CentralHeader(NamedTuple):
    magic: bytes
    made_by: int
    version: int
    flags: int
    method: int
    time: int
    date: int
    crc: int
    stored_size: int
    size: int
    name_size: int
    extra_size: int
    comment_size: int
    disk: int
    internal: int
    external: int
    local: int


_LOCAL_CRC_AT, _CENTRAL_CRC_AT = 14, 16
# What files of the same kind share of the two headers: not who made it, time, date, CRC, and the attributes,
# which hold the umask.
_LOCAL_STABLE = ((0, 10), (18, 30))
_CENTRAL_STABLE = ((0, 4), (6, 12), (20, 36), (42, 46))


@dataclass(frozen=True)
class _Member:
    """One zip member and where its parts lie in the file."""

    filename: str
    local_at: int
    local: _LocalHeader
    central_at: int
    central: _CentralHeader
    length: int

    @property
    def data(self) -> int:
        return self.local_at + _LOCAL.size + self.local.name_size + self.local.extra_size

    @property
    def stop(self) -> int:
        return self.data + self.length

    @property
    def central_stop(self) -> int:
        return self.central_at + _CENTRAL.size + sum(self.central[10:13])

    @property
    def crc_places(self) -> tuple[int, int]:
        return self.local_at + _LOCAL_CRC_AT, self.central_at + _CENTRAL_CRC_AT


class _ArrayHeader(NamedTuple):
    """Header of a ``.npy``: its bytes, and what they say."""

    raw: bytes
    shape: tuple[int, ...]
    is_fortran: bool
    dtype: np.dtype[Any]

    def array(self, variable: str) -> Array:
        return Array(variable, self.dtype, self.shape, "F" if self.is_fortran else "C")


def npy_layout(path: PathLike, pattern: str, variable: str) -> FileLayout:
    """Layout of ``.npy`` files like the sample; see :meth:`Layout.from_npy`."""
    with _opened(path) as file:
        header = _read_array_header(file, 0, _size(file))
    sections = (Bytes("(header)", len(header.raw)), header.array(variable))
    return FileLayout(pattern, sections, (Guard(0, header.raw),))


def npz_layout(path: PathLike, pattern: str, names: Mapping[str, str] | None) -> FileLayout:
    """Layout of ``.npz`` files like the sample; see :meth:`Layout.from_npz`."""
    with _opened(path) as file:
        members = _read_members(file)
        variables = _variables(members, names)
        guards = _container_guards(file, members)
        sections: list[Section] = []
        checksums: list[Checksum] = []
        position = 0
        for member in (each for each in members if each.filename in variables):
            header = _member_header(file, member)
            data = member.data + len(header.raw)
            sections.append(Bytes(f"({member.filename} header)", data - position))
            sections.append(header.array(variables[member.filename]))
            guards.append(Guard(member.data, header.raw))
            checksums.append(Checksum("crc32", member.data, member.length, member.crc_places))
            position = member.stop
        sections.append(Bytes("(central directory)", _size(file) - position))
    return FileLayout(pattern, tuple(sections), _joined(guards), tuple(checksums))


@contextmanager
def _opened(path: PathLike) -> Iterator[BinaryIO]:
    """The sample; every error inside gets its path."""
    with ExitStack() as opened, within("", os.fspath(path)):
        try:
            yield opened.enter_context(Path(path).open("rb"))
        except OSError as error:
            if error.errno in (None, errno.EINVAL):  # an offset of the zip that leads to before its start
                raise LayoutError(f"found damage: {error}") from error
            raise StorageError(
                f"cannot read the sample: {error.strerror}", errno=error.errno, path=path
            ) from error


def _size(file: BinaryIO) -> int:
    return os.fstat(file.fileno()).st_size


def _read_at(file: BinaryIO, offset: int, length: int) -> bytes:
    file.seek(offset)
    return file.read(length)


# .npy -------------------------------------------------------------------------------------------------------


def _read_array_header(file: BinaryIO, start: int, length: int) -> _ArrayHeader:
    """Header of the ``.npy`` in `length` bytes from `start`, which must be exactly as long as it says."""
    file.seek(start)
    try:
        shape, is_fortran, dtype = _parse_array_header(file)
    except (ValueError, TypeError, KeyError, SyntaxError, tokenize.TokenError, struct.error) as error:
        raise LayoutError(f"found no .npy: {error}", offset=start) from error
    size = file.tell() - start
    if dtype.hasobject:
        raise LayoutError(
            f"found {dtype}: Python objects are stored as a pickle, which has no elements to drop; "
            "store numbers, or leave the array out of the layout",
            offset=start,
        )
    expected = size + math.prod(shape) * dtype.itemsize
    if expected != length:
        raise LayoutError(f"found {length} bytes, expected {expected} by the .npy header", offset=start)
    return _ArrayHeader(_read_at(file, start, size), shape, is_fortran, dtype)


def _parse_array_header(file: BinaryIO) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = np.lib.format.read_magic(file)
    if version == (1, 0):
        return np.lib.format.read_array_header_1_0(file)
    if version == (2, 0):
        return np.lib.format.read_array_header_2_0(file)
    if version != (3, 0):
        raise ValueError(f"format version {version} is not known")
    # NumPy has no public reader for 3.0, which is 2.0 in UTF-8, for field names beyond Latin-1.
    (length,) = struct.unpack("<I", file.read(4))
    header = ast.literal_eval(file.read(length).decode("utf-8"))
    dtype = np.lib.format.descr_to_dtype(header["descr"])
    return tuple(header["shape"]), bool(header["fortran_order"]), dtype


# .npz -------------------------------------------------------------------------------------------------------


def _read_members(file: BinaryIO) -> list[_Member]:
    """The members in file order."""
    try:
        with zipfile.ZipFile(file) as archive:
            entries, central_at = archive.infolist(), archive.start_dir
    except (zipfile.BadZipFile, NotImplementedError, struct.error, ValueError, OverflowError) as error:
        raise LayoutError(f"found no .npz: {error}") from error
    members: list[_Member] = []
    for entry in entries:
        members.append(_read_member(file, entry, central_at))
        central_at = members[-1].central_stop
    members.sort(key=lambda member: member.local_at)
    for member, following in itertools.pairwise(members):
        if member.stop > following.local_at:
            raise LayoutError("found members that overlap; the sample is damaged", key=following.filename)
    filenames = [member.filename for member in members]
    for filename in filenames:
        if filenames.count(filename) > 1:
            raise LayoutError("found two members of this name, expected one", key=filename)
    return members


def _read_member(file: BinaryIO, entry: zipfile.ZipInfo, central_at: int) -> _Member:
    """Both headers of a member: zipfile does not tell where their fields are."""
    central = _CentralHeader(*_unpack_at(file, central_at, _CENTRAL, _CENTRAL_MAGIC, entry.filename))
    local = _LocalHeader(*_unpack_at(file, entry.header_offset, _LOCAL, _LOCAL_MAGIC, entry.filename))
    member = _Member(entry.filename, entry.header_offset, local, central_at, central, entry.compress_size)
    names = [
        _read_at(file, member.local_at + _LOCAL.size, local.name_size),
        _read_at(file, central_at + _CENTRAL.size, central.name_size),
    ]
    if names[0] != names[1] or member.stop > central_at or member.central_stop > _size(file):
        raise LayoutError(
            "found headers that do not fit each other or the file; the sample is damaged", key=entry.filename
        )
    if central.crc != entry.CRC or (local.crc != entry.CRC and not local.flags & _DATA_DESCRIPTOR):
        raise LayoutError(
            "found different CRC-32 in the member's headers; the sample is damaged", key=entry.filename
        )
    return member


def _unpack_at(file: BinaryIO, offset: int, form: struct.Struct, magic: bytes, key: str) -> tuple[Any, ...]:
    raw = _read_at(file, offset, form.size)
    if len(raw) < form.size or raw[:4] != magic:
        raise LayoutError(f"found {raw[:4]!r}, expected a zip header {magic!r}", key=key, offset=offset)
    return form.unpack(raw)


def _variables(members: Sequence[_Member], names: Mapping[str, str] | None) -> dict[str, str]:
    """Variable of each member that holds one, by the member's file name."""
    arrays = {each.filename: each.filename.removesuffix(".npy") for each in members}
    if names is None:
        found = {filename: name for filename, name in arrays.items() if filename.endswith(".npy")}
    else:
        found = {}
        for given, variable in names.items():
            filename = given if given in arrays else f"{given}.npy"
            if filename not in arrays:
                raise LayoutError(
                    f"found no such member; there are: {', '.join(arrays) or 'none'}", key=given
                )
            if filename in found:
                raise LayoutError(f"found two names for member {filename}", key=given)
            found[filename] = variable
    if not found:
        raise LayoutError("found no array, expected at least one")
    return found


def _member_header(file: BinaryIO, member: _Member) -> _ArrayHeader:
    flags = member.local.flags | member.central.flags
    if member.central.method != zipfile.ZIP_STORED:
        raise LayoutError(
            "found a compressed member, whose elements have no bytes of their own; write it with numpy.savez "
            "instead of savez_compressed (SCR_CRIT_CODEC compresses what is kept), or leave it out of names",
            key=member.filename,
        )
    if flags & (_ENCRYPTED | _DATA_DESCRIPTOR):
        what = "an encrypted member" if flags & _ENCRYPTED else "a member with a data descriptor"
        raise LayoutError(
            f"found {what}; write the file with numpy.savez to a path, not to a stream", key=member.filename
        )
    with within(member.filename):
        return _read_array_header(file, member.data, member.length)


def _container_guards(file: BinaryIO, members: Sequence[_Member]) -> list[Guard]:
    """What the zip container of a file of the same kind has in common with the sample's."""
    spans: list[tuple[int, int]] = []
    for member in members:
        spans += [(member.local_at + start, member.local_at + stop) for start, stop in _LOCAL_STABLE]
        spans += _name_and_zip64(file, member.local_at + _LOCAL.size, member.local)
        spans += [(member.central_at + start, member.central_at + stop) for start, stop in _CENTRAL_STABLE]
        spans += _name_and_zip64(file, member.central_at + _CENTRAL.size, member.central)
    spans.append((max(member.central_stop for member in members), _size(file)))
    return [Guard(start, _read_at(file, start, stop - start)) for start, stop in spans if stop > start]


def _name_and_zip64(
    file: BinaryIO, at: int, header: _LocalHeader | _CentralHeader
) -> Iterator[tuple[int, int]]:
    """Spans of a member's name and of its 64-bit sizes; other extra fields hold times and owners."""
    yield at, at + header.name_size
    at += header.name_size
    end = at + header.extra_size
    while at + 4 <= end:
        kind, size = struct.unpack("<HH", _read_at(file, at, 4))
        if kind == _ZIP64_EXTRA and at + 4 + size <= end:
            yield at, at + 4 + size
        at += 4 + size


def _joined(guards: Iterable[Guard]) -> tuple[Guard, ...]:
    """Guards in file order, neighbours made one."""
    found: list[Guard] = []
    for guard in sorted(guards, key=lambda each: each.offset):
        if found and found[-1].stop == guard.offset:
            guard = Guard(found[-1].offset, found.pop().data + guard.data)
        found.append(guard)
    return tuple(found)
