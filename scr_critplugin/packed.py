"""Packed files: checkpoint files without their uncritical bytes, through the C core.

Files go in and out by :func:`pack` and :func:`unpack`, arrays in memory by :func:`save` and :func:`load`.
A packed file is self-contained; its format is docs/format.md, section 2. Imports ``plan``, ``_npz``,
``_storage``, the extension and the errors. Tests: ``tests/test_packed.py``.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._core import ffi, lib
from ._core_errors import PathLike, require_ok
from ._npz import VirtualNpz, read_npz, virtual_npz
from ._storage import replace_file, temp_path
from .criticality import MAP_FORMAT_VERSION, CriticalityMap
from .errors import CodecError, CritError, StorageError
from .layout import Layout
from .plan import Plan, compile_plan, load_plan

__all__ = [
    "CoreVersion",
    "Fill",
    "PackedInfo",
    "check",
    "copy",
    "core_version",
    "fill_bytes",
    "inspect",
    "is_packed",
    "iter_runs",
    "load",
    "measure",
    "overwrite",
    "pack",
    "runs",
    "save",
    "temp_path",
    "unpack",
]

Fill = str | bytes

_CODECS = {"none": lib.SCR_CRIT_CODEC_NONE, "blosc2-zstd": lib.SCR_CRIT_CODEC_BLOSC2_ZSTD}
_CODEC_NAMES = {number: name for name, number in _CODECS.items()}
_ENCODINGS = {
    lib.SCR_CRIT_ENC_PATTERN: "pattern",
    lib.SCR_CRIT_ENC_RUNS: "runs",
    lib.SCR_CRIT_ENC_BITMAP: "bitmap",
}
_LONGEST_FILL = 64
_RUNS_AT_ONCE = 65536


@dataclass(frozen=True)
class PackedInfo:
    """What a packed file is, or what packing, expanding or measuring came to.

    Sizes are in bytes. `packed_bytes` is 0 if no packed file was involved; `encodings` says how the table of
    runs is stored ("pattern", "runs", "bitmap"); `plan_digest` is that of the plan in hexadecimal digits.
    """

    file_bytes: int
    kept_bytes: int
    packed_bytes: int
    dropped_runs: int
    table_bytes: int
    encodings: tuple[str, ...]
    codec: str
    format: int
    plan_digest: str

    @property
    def dropped_bytes(self) -> int:
        """Uncritical bytes of the whole file."""
        return self.file_bytes - self.kept_bytes

    def to_json_dict(self) -> dict[str, Any]:
        """The fields as JSON values."""
        values = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {**values, "encodings": list(self.encodings), "dropped_bytes": self.dropped_bytes}


@dataclass(frozen=True)
class CoreVersion:
    """Versions of the core and of the formats it writes; `codecs` are those usable in this process."""

    library: str
    codecs: tuple[str, ...]
    packed_format: int
    plan_format: int
    map_format: int


def core_version() -> CoreVersion:
    """Versions of the C core that this package uses."""
    return CoreVersion(
        library=ffi.string(lib.scr_crit_version()).decode(),
        codecs=tuple(ffi.string(lib.scr_crit_codecs()).decode().split()),
        packed_format=lib.scr_crit_packed_format(),
        plan_format=lib.scr_crit_plan_format(),
        map_format=MAP_FORMAT_VERSION,
    )


# Files ----------------------------------------------------------------------------------------------------


def pack(
    source: PathLike,
    target: PathLike,
    plan: Plan | PathLike,
    *,
    rank: int = -1,
    dataset: str | None = None,
    entry: int | None = None,
    codec: str = "none",
    name: str | None = None,
) -> PackedInfo:
    """Pack one checkpoint file. The source is never modified.

    Parameters
    ----------
    source, target : path
        Whole file and packed file; if they are the same, the file is replaced atomically.
    plan : Plan or path
    rank : int
        The writing rank, for ``{rank}`` in the plan's patterns; -1: any.
    dataset : str, optional
        Dataset name, for ``{dataset}``; None: any.
    entry : int, optional
        The plan's entry to pack by; then no pattern is matched.
    codec : {"none", "blosc2-zstd"}
        Compression of the critical bytes.
    name : str, optional
        Path relative to the prefix to match the patterns with; default: the source as given.

    Raises
    ------
    NoMatchError
        No entry matches, or the file does not fit its entry: it should stay whole.
    NestedError, NoGainError, ChangedError
        It is packed already; would not get smaller; was written to meanwhile.
    CodecError, StorageError, MemoryError
        The codec is not there; the operating system refused. No target is left behind.
    """
    opened = load_plan(plan)
    chosen = _choose(opened, source, rank, dataset, entry, name)
    info = ffi.new("scr_crit_info *")
    status = lib.scr_crit_pack(
        opened.handle, chosen, os.fsencode(source), os.fsencode(target), _options(codec), info
    )
    require_ok(status, source, target, reading="packed")
    return _info(info)


def unpack(source: PathLike, target: PathLike, fill: Fill = "zero") -> PackedInfo:
    """Expand a packed file; needs neither map nor plan. Everything is verified before `target` appears.

    Parameters
    ----------
    source, target : path
        Packed file and whole file; not the same.
    fill : str or bytes
        What stands in the uncritical bytes: see :func:`fill_bytes`.

    Raises
    ------
    PackedError, ChecksumError
        Not a packed file, or a damaged one; ``offset`` says where.
    CodecError, StorageError, MemoryError
        As for :func:`pack`; the target is as it was.
    """
    info = ffi.new("scr_crit_info *")
    pattern = _Pattern(fill)
    status = lib.scr_crit_unpack(os.fsencode(source), os.fsencode(target), pattern.argument, info)
    require_ok(status, source, target, reading="packed")
    return _info(info)


def inspect(path: PathLike) -> PackedInfo:
    """Read and verify a packed file's header, tables and length, not its payload; raises as `unpack`."""
    info = ffi.new("scr_crit_info *")
    require_ok(lib.scr_crit_inspect(os.fsencode(path), info), path, reading="packed")
    return _info(info)


def check(path: PathLike) -> PackedInfo:
    """Verify every byte of a packed file; raises as :func:`unpack`."""
    info = ffi.new("scr_crit_info *")
    require_ok(lib.scr_crit_check(os.fsencode(path), info), path, reading="packed")
    return _info(info)


def is_packed(path: PathLike) -> bool:
    """Whether a file is, or claims to be, a packed file, be it damaged; StorageError if it cannot be read."""
    claims = ffi.new("int *")
    require_ok(lib.scr_crit_is_packed(os.fsencode(path), claims), path, reading="packed")
    return bool(claims[0])


def measure(
    source: PathLike,
    plan: Plan | PathLike,
    *,
    rank: int = -1,
    dataset: str | None = None,
    entry: int | None = None,
    name: str | None = None,
) -> PackedInfo:
    """Tell what :func:`pack` would come to without a codec; writes nothing, arguments and errors as there."""
    opened = load_plan(plan)
    chosen = _choose(opened, source, rank, dataset, entry, name)
    info = ffi.new("scr_crit_info *")
    status = lib.scr_crit_measure(opened.handle, chosen, os.fsencode(source), info)
    require_ok(status, source, reading="packed")
    return _info(info)


def overwrite(
    path: PathLike,
    plan: Plan | PathLike,
    fill: Fill = "zero",
    *,
    rank: int = -1,
    dataset: str | None = None,
    entry: int | None = None,
    name: str | None = None,
) -> PackedInfo:
    """Overwrite a whole file's uncritical bytes with a fill; its size stays.

    The file is replaced atomically; arguments and errors as for :func:`pack`.
    """
    opened = load_plan(plan)
    chosen = _choose(opened, path, rank, dataset, entry, name)
    info = ffi.new("scr_crit_info *")
    pattern = _Pattern(fill)
    status = lib.scr_crit_overwrite(opened.handle, chosen, os.fsencode(path), pattern.argument, info)
    require_ok(status, path, reading="packed")
    return _info(info)


def copy(source: PathLike, target: PathLike) -> None:
    """Copy a whole file with mode and extended attributes; the target appears complete or not at all."""
    status = lib.scr_crit_copy(os.fsencode(source), os.fsencode(target))
    require_ok(status, source, target, reading="packed")


# Runs -----------------------------------------------------------------------------------------------------


def runs(
    path: PathLike,
    plan: Plan | PathLike | None = None,
    *,
    rank: int = -1,
    dataset: str | None = None,
    entry: int | None = None,
    name: str | None = None,
) -> NDArray[np.int64]:
    """Maximal critical runs of a whole file by a plan, or of a packed file.

    Parameters
    ----------
    path : path
        With a plan a whole file (of which only counts and guards are read), without one a packed file.
    plan, rank, dataset, entry, name
        As for :func:`pack`.

    Returns
    -------
    int64 array of shape (n, 2)
        First byte and last byte + 1 of each run in the whole file, ascending.
    """
    found = list(iter_runs(path, plan, rank=rank, dataset=dataset, entry=entry, name=name))
    return np.concatenate(found) if found else np.zeros((0, 2), np.int64)


def iter_runs(
    path: PathLike,
    plan: Plan | PathLike | None = None,
    *,
    rank: int = -1,
    dataset: str | None = None,
    entry: int | None = None,
    name: str | None = None,
) -> Iterator[NDArray[np.int64]]:
    """Yield the critical runs of :func:`runs` in arrays of bounded size."""
    handle = ffi.new("scr_crit_runs **")
    opened = None if plan is None else load_plan(plan)  # must outlive the handle
    if opened is None:
        status = lib.scr_crit_runs_of_packed(os.fsencode(path), handle)
    else:
        chosen = _choose(opened, path, rank, dataset, entry, name)
        status = lib.scr_crit_runs_of_plan(opened.handle, chosen, os.fsencode(path), handle)
    require_ok(status, path, reading="packed")
    try:
        yield from _walk(handle[0], path)
    finally:
        lib.scr_crit_runs_close(handle[0])


def _walk(handle: Any, path: PathLike) -> Iterator[NDArray[np.int64]]:
    bounds = np.empty((2, _RUNS_AT_ONCE), np.uint64)
    starts, stops = (ffi.from_buffer("uint64_t[]", row) for row in bounds)
    count = ffi.new("size_t *", 1)
    while count[0]:
        status = lib.scr_crit_runs_next(handle, starts, stops, _RUNS_AT_ONCE, count)
        require_ok(status, path, reading="packed")
        if count[0]:
            yield bounds[:, : count[0]].T.astype(np.int64)


# Arrays ---------------------------------------------------------------------------------------------------


def save(
    path: PathLike,
    arrays: Mapping[str, ArrayLike],
    criticality: CriticalityMap,
    *,
    codec: str = "none",
    allow_unused: Collection[str] = (),
    keep: Collection[str] = (),
) -> PackedInfo:
    """Write arrays as a packed ``.npz``: expanded, the file is one that :func:`numpy.load` reads.

    Where packing would not make the file smaller, a plain ``.npz`` is written; :func:`load` reads either. The
    arrays are not copied, unless they are contiguous in neither order.

    Parameters
    ----------
    path : path
        Name of the file, as it is: no suffix is added.
    arrays : mapping from name to array_like
        No Python objects. Those that the map does not know are written whole, with a warning.
    criticality : CriticalityMap
        Every one of its variables must be among the arrays, with the same type and shape.
    codec, allow_unused, keep
        As for :func:`pack` and :func:`~scr_critplugin.plan.compile_plan`.

    Raises
    ------
    LayoutError
        Map and arrays differ in names, types or shapes.
    CodecError, StorageError, MemoryError
        As for :func:`pack`; an older file of that name is as it was.
    """
    npz = virtual_npz(arrays)
    plan = _plan_of(criticality, npz.layout, allow_unused, keep)
    info = ffi.new("scr_crit_info *")
    memory = [ffi.from_buffer(piece) for piece in npz.pieces]  # holds the buffers during the call
    buffers = ffi.new("scr_crit_buffer[]", [(piece, len(piece)) for piece in memory])
    status = lib.scr_crit_pack_buffers(
        plan.handle, 0, buffers, len(memory), os.fsencode(path), _options(codec), info
    )
    if status == lib.SCR_CRIT_ERR_NOGAIN:
        return _save_whole(path, npz)
    require_ok(status, path, reading="packed")
    return _info(info)


def _save_whole(path: PathLike, npz: VirtualNpz) -> PackedInfo:
    replace_file(path, npz.pieces)
    size = sum(piece.nbytes for piece in npz.pieces)
    return PackedInfo(size, size, 0, 0, 0, (), "none", 0, "")


def load(path: PathLike, fill: Fill = "zero") -> dict[str, NDArray[Any]]:
    """Read the arrays of a packed, or plain, ``.npz``.

    Parameters
    ----------
    path : path
    fill : str or bytes
        What stands in the uncritical bytes: see :func:`fill_bytes`.

    Raises
    ------
    PackedError, ChecksumError
        Damaged, or not an ``.npz``.
    CodecError, StorageError, MemoryError
        As for :func:`unpack`.
    """
    if not is_packed(path):
        try:
            return read_npz(path, os.fspath(path))
        except OSError as error:
            raise StorageError(f"cannot be read: {error.strerror}", errno=error.errno, path=path) from error
    whole = np.empty(inspect(path).file_bytes, np.uint8)
    pattern = _Pattern(fill)
    status = lib.scr_crit_unpack_buffer(
        os.fsencode(path), ffi.from_buffer(whole), whole.size, pattern.argument, ffi.NULL
    )
    require_ok(status, path, reading="packed")
    return read_npz(whole.data, os.fspath(path))


class _LastPlan:
    """The plan that :func:`save` used last: a program that saves in a loop has one map and one layout."""

    def __init__(self) -> None:
        self.map: Any = lambda: None
        self.key: tuple[object, ...] = ()
        self.plan: Plan | None = None

    def find(self, criticality: CriticalityMap, key: tuple[object, ...]) -> Plan | None:
        return self.plan if self.map() is criticality and self.key == key else None

    def remember(self, criticality: CriticalityMap, key: tuple[object, ...], plan: Plan) -> None:
        self.map, self.key, self.plan = weakref.ref(criticality), key, plan


_last_plan = _LastPlan()


def _plan_of(
    criticality: CriticalityMap, layout: Layout, allow_unused: Collection[str], keep: Collection[str]
) -> Plan:
    key = (layout, frozenset(allow_unused), frozenset(keep))
    plan = _last_plan.find(criticality, key)
    if plan is None:
        plan = compile_plan(criticality, layout, allow_unused=allow_unused, keep=keep)
        _last_plan.remember(criticality, key, plan)
    return plan


# Arguments and results of the core ------------------------------------------------------------------------


def fill_bytes(fill: Fill) -> bytes:
    """The pattern that a fill stands for, laid anew from the start of every uncritical run.

    Parameters
    ----------
    fill : str or bytes
        "zero"; "nan": bytes 0xFF, which make a quiet NaN in every IEEE width and byte order (integers become
        -1 or their maximum); an even number of hexadecimal digits; or the bytes themselves. At most 64 bytes.

    Raises
    ------
    CritError
        Anything else; ``key`` is "fill".
    """
    if isinstance(fill, str) and fill in ("zero", "nan"):
        return b"\0" if fill == "zero" else b"\xff"
    pattern = fill if isinstance(fill, bytes) else b""
    if isinstance(fill, str):
        with suppress(ValueError):
            pattern = bytes.fromhex(fill.removeprefix("0x"))
    if not 1 <= len(pattern) <= _LONGEST_FILL:
        raise CritError(
            f"found {fill!r}, expected 'zero', 'nan', hex digits or bytes, 1 to {_LONGEST_FILL} bytes",
            key="fill",
        )
    return pattern


class _Pattern:
    """A ``scr_crit_fill`` and the bytes it points to; `argument` is valid as long as this object lives."""

    def __init__(self, fill: Fill) -> None:
        pattern = fill_bytes(fill)
        self._bytes = ffi.new("uint8_t[]", pattern)
        self.argument = ffi.new("scr_crit_fill *", (self._bytes, len(pattern)))


def _choose(
    plan: Plan, source: PathLike, rank: int, dataset: str | None, entry: int | None, name: str | None
) -> int:
    if entry is not None:
        if not 0 <= entry < len(plan.entries):
            raise CritError(f"found entry {entry}, the plan has {len(plan.entries)}", key="entry")
        return entry
    return plan.match(os.path.normpath(source) if name is None else name, rank, dataset).index


def _options(codec: str) -> Any:
    if codec not in _CODECS:
        raise CodecError(f"found codec {codec!r}, expected one of {', '.join(_CODECS)}", key="codec")
    return ffi.new("scr_crit_pack_options *", {"codec": _CODECS[codec]})


def _info(info: Any) -> PackedInfo:
    return PackedInfo(
        file_bytes=info.file_bytes,
        kept_bytes=info.kept_bytes,
        packed_bytes=info.packed_bytes,
        dropped_runs=info.dropped_runs,
        table_bytes=info.table_bytes,
        encodings=tuple(name for bit, name in _ENCODINGS.items() if info.encodings & bit),
        codec=_CODEC_NAMES.get(info.codec, str(info.codec)),
        format=info.format,
        plan_digest=bytes(info.plan_digest).hex(),
    )
