"""A standard uncompressed ``.npz`` that exists only as pieces in memory, and reading one from memory.

The archive is made by ``zipfile`` and NumPy's own header writer, into a recorder that keeps references
instead of copies: the pieces are small headers and the arrays' own memory. Knows nothing of packing.
Imports NumPy, ``layout`` and the errors. Tests: ``tests/test_packed.py``.
"""

from __future__ import annotations

import io
import os
import struct
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import CritError, PackedError
from .layout import Array, Bytes, Checksum, FileLayout, Layout

# Offsets in zip structures (APPNOTE 4.3.7 and 4.3.12).
_LOCAL_CRC = 14
_CENTRAL_CRC = 16
_CENTRAL = struct.Struct("<4s24xHHH12x")  # mark, then the lengths of name, extra field and comment
_CENTRAL_MARK = b"PK\x01\x02"
_SUFFIX = ".npy"


@dataclass(frozen=True)
class VirtualNpz:
    """The archive's pieces in file order, and which of its bytes hold which array."""

    pieces: tuple[memoryview, ...]
    layout: Layout


class _Recorder(io.RawIOBase):
    """A seekable file that remembers what was written, by reference."""

    def __init__(self) -> None:
        super().__init__()
        self.pieces: dict[int, memoryview] = {}
        self.position = 0

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        if whence != os.SEEK_SET:
            raise io.UnsupportedOperation("the recorder seeks from its start only")
        self.position = offset
        return offset

    def write(self, data: Any) -> int:
        piece = memoryview(data).cast("B")
        # zipfile writes a member's header again, in the same length, once it knows the checksum.
        if piece.nbytes:
            self.pieces[self.position] = piece
        self.position += piece.nbytes
        return piece.nbytes

    def read_from(self, offset: int) -> bytes:
        """Everything from `offset` on, where a piece must begin."""
        return b"".join(self.pieces[at] for at in sorted(self.pieces) if at >= offset)


def virtual_npz(arrays: Mapping[str, ArrayLike]) -> VirtualNpz:
    """Lay out arrays as ``numpy.savez`` would, without copying them.

    An array that is contiguous in neither order is copied. The pieces refer to the arrays' memory: the
    arrays must not change while they are used.

    Raises
    ------
    CritError
        An array of Python objects; no arrays; a name that is empty or no text.
    """
    if not arrays:
        raise CritError("found no arrays, expected at least one")
    recorder = _Recorder()
    sections: list[Array] = []
    starts: list[int] = []  # of the members, behind their headers
    with zipfile.ZipFile(recorder, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        for name, given in arrays.items():
            array = _checked(name, given)
            fortran = array.flags.f_contiguous and not array.flags.c_contiguous
            if not fortran:
                array = np.ascontiguousarray(array).reshape(array.shape)  # it makes scalars 1-dimensional
            info = zipfile.ZipInfo(name + _SUFFIX)  # its default date: equal arrays give equal files
            with archive.open(info, "w", force_zip64=True) as member:
                starts.append(recorder.tell())
                member.write(_npy_header(array, fortran))
                offset = recorder.tell()
                member.write(_memory(array, fortran))
            sections.append(Array(name, array.dtype, array.shape, "F" if fortran else "C", offset=offset))
    directory = archive.start_dir
    tail = Bytes("(directory)", recorder.position - directory)
    checksums = _checksums(archive, starts, recorder.read_from(directory))
    layout = FileLayout("**", (*sections, tail), checksums=checksums)
    pieces = tuple(recorder.pieces[at] for at in sorted(recorder.pieces))
    return VirtualNpz(pieces, Layout((layout,)))


def _checked(name: object, given: ArrayLike) -> NDArray[Any]:
    if not isinstance(name, str) or not name or name != name.strip("/"):
        raise CritError(f"array name {name!r}: expected text that can be a file's name", key=str(name))
    array = np.asanyarray(given)
    if isinstance(array, np.ma.MaskedArray):
        raise CritError("found a masked array, expected a plain one: save its data and mask", key=name)
    if array.dtype.hasobject or array.dtype.itemsize == 0:
        raise CritError(
            f"found dtype {array.dtype}, expected elements of at least a byte, no objects", key=name
        )
    return np.asarray(array)


def _npy_header(array: NDArray[Any], fortran: bool) -> bytes:
    header = io.BytesIO()
    described = {
        "descr": np.lib.format.dtype_to_descr(array.dtype),
        "fortran_order": fortran,
        "shape": array.shape,
    }
    try:
        np.lib.format.write_array_header_1_0(header, described)
    except ValueError:  # a structured type whose description exceeds 64 KiB
        header = io.BytesIO()
        np.lib.format.write_array_header_2_0(header, described)
    return header.getvalue()


def _memory(array: NDArray[Any], fortran: bool) -> memoryview:
    flat = (array.T if fortran else array).reshape(-1)
    return flat.view(np.uint8).data if flat.size else memoryview(b"")


def _checksums(archive: zipfile.ZipFile, starts: list[int], central: bytes) -> tuple[Checksum, ...]:
    """The members' CRC-32 fields: each stands in its local header and in the central directory."""
    found = []
    at = 0
    for info, start in zip(archive.infolist(), starts, strict=True):
        mark, name, extra, comment = _CENTRAL.unpack_from(central, at)
        if mark != _CENTRAL_MARK:
            raise CritError(f"zipfile wrote {mark!r} where an entry of its directory was expected")
        places = (info.header_offset + _LOCAL_CRC, archive.start_dir + at + _CENTRAL_CRC)
        found.append(Checksum("crc32", start, info.file_size, places))
        at += _CENTRAL.size + name + extra + comment
    return tuple(found)


# Reading --------------------------------------------------------------------------------------------------


class _MemoryFile(io.RawIOBase):
    """Reads bytes in place; ``io.BytesIO`` would copy them all."""

    def __init__(self, data: memoryview) -> None:
        super().__init__()
        self.data = data
        self.position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self.position, os.SEEK_END: self.data.nbytes}[whence]
        if start + offset < 0:
            raise OSError(f"seek to {start + offset}, before the start")
        self.position = start + offset
        return self.position

    def readinto(self, target: Any) -> int:
        piece = self.data[self.position : self.position + len(target)]
        target[: piece.nbytes] = piece
        self.position += piece.nbytes
        return piece.nbytes


def read_npz(source: memoryview | str | os.PathLike[str], path: str) -> dict[str, NDArray[Any]]:
    """Read all arrays of an ``.npz`` in memory or in a file; `path` is named in errors.

    Raises
    ------
    PackedError
        It is no ``.npz``, is damaged, or holds Python objects.
    OSError
        The file cannot be read.
    """
    file = io.BufferedReader(_MemoryFile(source)) if isinstance(source, memoryview) else source
    try:
        loaded = np.load(file, allow_pickle=False)
        if not isinstance(loaded, np.lib.npyio.NpzFile):
            raise PackedError("holds a single array, expected an .npz", path=path)
        with loaded:
            return {name: loaded[name] for name in loaded.files}
    except (ValueError, EOFError, KeyError, zipfile.BadZipFile) as error:
        raise PackedError(f"its content is no .npz that can be read: {error}", path=path) from error
