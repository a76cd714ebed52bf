"""The C core below its Python binding: the public functions and the packer without a plan, through ctypes.

Compiled once per session by the fixture ``core`` of ``conftest.py``. Imports nothing of the package.
"""

from __future__ import annotations

import ctypes as ct
import errno
import os
from collections.abc import Sequence
from pathlib import Path

import packed_format as pf

OK, ARG, IO, NOSPACE, NOMEM, FORMAT, CHECKSUM, VERSION, NOMATCH, MISFIT, NESTED, CODEC, NOGAIN, CHANGED = (
    range(14)
)
NONE, BLOSC2_ZSTD = 0, 1


class Info(ct.Structure):
    """scr_crit_info."""

    _fields_ = [
        ("file_bytes", ct.c_uint64),
        ("kept_bytes", ct.c_uint64),
        ("packed_bytes", ct.c_uint64),
        ("dropped_runs", ct.c_uint64),
        ("table_bytes", ct.c_uint64),
        ("encodings", ct.c_uint32),
        ("codec", ct.c_uint32),
        ("format", ct.c_uint32),
        ("plan_digest", ct.c_uint8 * 16),
    ]


class _Options(ct.Structure):
    _fields_ = [("codec", ct.c_uint32), ("type_size", ct.c_uint32)]


class _Fill(ct.Structure):
    _fields_ = [("bytes", ct.c_char_p), ("size", ct.c_size_t)]


class _Buffer(ct.Structure):
    _fields_ = [("data", ct.c_char_p), ("size", ct.c_uint64)]


class _Rules(ct.Structure):
    _fields_ = [
        ("program", ct.c_char_p),
        ("program_size", ct.c_size_t),
        ("fields", ct.c_char_p),
        ("field_count", ct.c_uint32),
        ("type_size", ct.c_uint32),
        ("digest", ct.c_uint8 * 16),
    ]


class CoreError(Exception):
    """A status other than OK, with the library's words, errno and offset."""

    def __init__(self, status: int, words: str, error: int, offset: int) -> None:
        name = errno.errorcode.get(error, str(error))
        super().__init__(f"status {status}, errno {name}, offset {offset}: {words}")
        self.status = status
        self.words = words
        self.errno = error
        self.offset = offset


def rules(
    program: bytes,
    fields: Sequence[pf.ChecksumField] = (),
    type_size: int = 8,
    digest: bytes = bytes(16),
) -> _Rules:
    """What a plan entry would come to for one file."""
    packed = b"".join(item.pack() for item in fields)
    return _Rules(
        program, len(program), packed, len(fields), type_size, (ct.c_uint8 * 16).from_buffer_copy(digest)
    )


def _fill(pattern: bytes | None) -> ct.Array[_Fill] | None:
    return None if pattern is None else (_Fill * 1)(_Fill(pattern, len(pattern)))


class Core:
    """The library's functions with Python arguments; each raises `CoreError`."""

    def __init__(self, path: Path) -> None:
        self.library = ct.CDLL(os.fspath(path))
        for name in ("version", "codecs", "last_error", "status_name"):
            getattr(self.library, f"scr_crit_{name}").restype = ct.c_char_p
        self.library.scr_crit_last_offset.restype = ct.c_int64
        self.library.scr_crit_crc32c.restype = ct.c_uint32

    def _must(self, status: int) -> None:
        if status != OK:
            raise CoreError(
                status,
                self.library.scr_crit_last_error().decode(),
                self.library.scr_crit_last_errno(),
                self.library.scr_crit_last_offset(),
            )

    def codecs(self) -> list[str]:
        """Names of usable codecs."""
        return str(self.library.scr_crit_codecs().decode()).split()

    def pack(self, source: Path, rule: _Rules, target: Path, codec: int = NONE, type_size: int = 0) -> Info:
        """Pack a file."""
        info = Info()
        self._must(
            self.library.harness_pack(
                os.fsencode(source),
                ct.byref(rule),
                os.fsencode(target),
                ct.byref(_Options(codec, type_size)),
                ct.byref(info),
            )
        )
        return info

    def pack_buffers(self, pieces: Sequence[bytes], rule: _Rules, target: Path, codec: int = NONE) -> Info:
        """Pack bytes in memory."""
        info = Info()
        buffers = (_Buffer * len(pieces))(*[_Buffer(piece, len(piece)) for piece in pieces])
        self._must(
            self.library.harness_pack_buffers(
                buffers,
                ct.c_size_t(len(pieces)),
                ct.byref(rule),
                os.fsencode(target),
                ct.byref(_Options(codec, 0)),
                ct.byref(info),
            )
        )
        return info

    def measure(self, rule: _Rules, file_size: int) -> Info:
        """What packing a file of this size would come to."""
        info = Info()
        self._must(self.library.harness_measure(ct.byref(rule), ct.c_uint64(file_size), ct.byref(info)))
        return info

    def overwrite(self, path: Path, rule: _Rules, fill: bytes | None = None) -> None:
        """Overwrite the uncritical bytes of a file."""
        self._must(self.library.harness_overwrite(os.fsencode(path), ct.byref(rule), _fill(fill)))

    def unpack(self, source: Path, target: Path, fill: bytes | None = None) -> Info:
        """Expand a packed file."""
        info = Info()
        self._must(
            self.library.scr_crit_unpack(
                os.fsencode(source), os.fsencode(target), _fill(fill), ct.byref(info)
            )
        )
        return info

    def unpack_buffer(self, source: Path, size: int, fill: bytes | None = None) -> bytes:
        """Expand a packed file into memory."""
        data = ct.create_string_buffer(max(size, 1))
        self._must(
            self.library.scr_crit_unpack_buffer(
                os.fsencode(source), data, ct.c_uint64(size), _fill(fill), None
            )
        )
        return data.raw[:size]

    def inspect(self, path: Path) -> Info:
        """Header and tables, verified."""
        info = Info()
        self._must(self.library.scr_crit_inspect(os.fsencode(path), ct.byref(info)))
        return info

    def check(self, path: Path) -> Info:
        """Everything, verified."""
        info = Info()
        self._must(self.library.scr_crit_check(os.fsencode(path), ct.byref(info)))
        return info

    def is_packed(self, path: Path) -> bool:
        """Whether a file claims to be a packed one."""
        claims = ct.c_int(-1)
        self._must(self.library.scr_crit_is_packed(os.fsencode(path), ct.byref(claims)))
        return {0: False, 1: True}[claims.value]

    def copy(self, source: Path, target: Path) -> None:
        """Copy a file."""
        self._must(self.library.scr_crit_copy(os.fsencode(source), os.fsencode(target)))

    def temp_path(self, target: Path) -> Path:
        """Name of a target's temporary file."""
        buffer = ct.create_string_buffer(4096)
        self._must(self.library.scr_crit_temp_path(os.fsencode(target), buffer, ct.c_size_t(4096)))
        return Path(os.fsdecode(buffer.value))

    def runs(self, path: Path, capacity: int = 7) -> list[tuple[int, int]]:
        """Critical runs of a packed file, fetched `capacity` at a time."""
        handle = ct.c_void_p()
        self._must(self.library.scr_crit_runs_of_packed(os.fsencode(path), ct.byref(handle)))
        found: list[tuple[int, int]] = []
        starts = (ct.c_uint64 * capacity)()
        stops = (ct.c_uint64 * capacity)()
        count = ct.c_size_t(1)
        while count.value:
            self._must(
                self.library.scr_crit_runs_next(handle, starts, stops, ct.c_size_t(capacity), ct.byref(count))
            )
            found += zip(starts[: count.value], stops[: count.value], strict=True)
        self.library.scr_crit_runs_close(handle)
        return found

    def encode_runs(self, runs: Sequence[tuple[int, int]], length: int) -> bytes:
        """Irregular runs as a program."""
        starts = (ct.c_uint64 * len(runs))(*[start for start, _ in runs])
        stops = (ct.c_uint64 * len(runs))(*[stop for _, stop in runs])
        size = ct.c_size_t()
        arguments = (starts, stops, ct.c_size_t(len(runs)), ct.c_uint64(length))
        self._must(self.library.scr_crit_encode_runs(*arguments, None, ct.c_size_t(0), ct.byref(size)))
        buffer = ct.create_string_buffer(max(size.value, 1))
        self._must(self.library.scr_crit_encode_runs(*arguments, buffer, size, ct.byref(size)))
        return buffer.raw[: size.value]
