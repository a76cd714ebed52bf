"""The stored form of a criticality map: an ``.npz`` that is read without pickle, see ``docs/maps.md``.

Writes and reads plain records; what they mean is ``criticality``'s. The reader trusts nothing: every array,
length and JSON value is checked, and damage of any kind is a MapError that names the file and the array.
Imports NumPy, ``_dtypes`` and the errors only. Tests: ``tests/test_criticality.py``.
"""

from __future__ import annotations

import errno
import json
import math
import os
import tokenize
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._dtypes import dtype_from_json, dtype_to_json
from .errors import MapError, StorageError

MAP_FORMAT_VERSION = 2
"""Newest version that is read. Version 2 adds magnitudes; a map without any is still written as version 1."""
_WITHOUT_MAGNITUDES = 1
_VERSION_KEY = "scr_crit_map"
_STATES_PER_BYTE = 4

PathLike = str | os.PathLike[str]


class StoredVariable(NamedTuple):
    """One variable of a stored map; `states` (uint8) and `magnitudes` (float32) have the variable's shape."""

    name: str
    states: NDArray[np.uint8]
    dtype: np.dtype[Any]
    order: Literal["C", "F"]
    magnitudes: NDArray[np.float32] | None = None


def write_map(path: PathLike, variables: Sequence[StoredVariable], provenance: Mapping[str, Any]) -> None:
    """Write a map under a temporary name beside `path`, sync and rename it.

    Raises
    ------
    StorageError
        The operating system refused; an older file at `path` is untouched and no temporary file is left.
    """
    with_magnitudes = any(variable.magnitudes is not None for variable in variables)
    members: dict[str, Any] = {
        _VERSION_KEY: np.array(MAP_FORMAT_VERSION if with_magnitudes else _WITHOUT_MAGNITUDES, np.int64),
        "variables": _json_array([_describe(variable, with_magnitudes) for variable in variables]),
        "provenance": _json_array(provenance),
    }
    for index, variable in enumerate(variables):
        members[_states_key(index)] = _pack(variable.states)
        if variable.magnitudes is not None:
            members[_magnitudes_key(index)] = variable.magnitudes.astype("<f4").reshape(-1)
    _write_atomically(path, members)


def read_map(path: PathLike) -> tuple[list[StoredVariable], dict[str, Any]]:
    """Read a map's variables and provenance.

    Raises
    ------
    StorageError
        The file cannot be opened or read.
    MapError
        The file is no map, is damaged, or was written in a newer format; ``path`` and ``key`` name the place.
    """
    with ExitStack() as opened:
        with _damage_at(path, None):
            file = opened.enter_context(Path(path).open("rb"))
            archive = np.load(file, allow_pickle=False)
        if not isinstance(archive, np.lib.npyio.NpzFile):
            raise MapError("found a single array, expected a map (.npz)", path=path)
        with archive:
            return _MapReader(path, archive).read()


def _states_key(index: int) -> str:
    # By index, not by name: a variable may be called anything, a zip member had better not.
    return f"states.{index}"


def _magnitudes_key(index: int) -> str:
    return f"magnitudes.{index}"


def _json_array(value: Any) -> NDArray[np.uint8]:
    return np.frombuffer(json.dumps(value, allow_nan=False).encode(), np.uint8)


def _describe(variable: StoredVariable, with_magnitudes: bool) -> dict[str, Any]:
    described: dict[str, Any] = {
        "name": variable.name,
        "shape": list(variable.states.shape),
        "dtype": dtype_to_json(variable.dtype),
        "order": variable.order,
    }
    # Without this key a reader could not tell a lost array from one that never was.
    return {**described, "magnitudes": variable.magnitudes is not None} if with_magnitudes else described


def _packed_size(elements: int) -> int:
    return -(-elements // _STATES_PER_BYTE)


def _pack(states: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Four states a byte, the first in the lowest two bits, in C order of the indices."""
    quads = np.zeros((_packed_size(states.size), _STATES_PER_BYTE), np.uint8)
    quads.reshape(-1)[: states.size] = states.reshape(-1)
    quads <<= np.array([0, 2, 4, 6], np.uint8)
    packed: NDArray[np.uint8] = np.bitwise_or.reduce(quads, axis=1)
    return packed


def _unpack(packed: NDArray[np.uint8]) -> NDArray[np.uint8]:
    quads = np.empty((packed.size, _STATES_PER_BYTE), np.uint8)
    for place in range(_STATES_PER_BYTE):
        quads[:, place] = packed >> (2 * place) & 3
    return quads.reshape(-1)


def _write_atomically(path: PathLike, members: Mapping[str, Any]) -> None:
    temporary = Path(f"{os.fspath(path)}.tmp-{os.getpid()}")
    try:
        try:
            with temporary.open("wb") as file:
                np.savez_compressed(file, **members)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise StorageError(f"cannot write the map: {error.strerror}", errno=error.errno, path=path) from error


# What NumPy, zipfile, zlib and json raise on damaged input; NumPy reads a header with Python's own parser.
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    ValueError,
    EOFError,
    LookupError,
    TypeError,
    RuntimeError,
    MemoryError,
    OverflowError,
    SyntaxError,
    tokenize.TokenError,
)


@contextmanager
def _damage_at(path: PathLike, key: str | None) -> Iterator[None]:
    """Turn the many errors of damaged input into one MapError that names the place."""
    try:
        yield
    except (MapError, StorageError):
        raise
    except _DAMAGE as error:
        raise MapError(f"expected a map of scr_crit, found damage: {error}", path=path, key=key) from error
    except OSError as error:
        # No errno: raised by NumPy or zipfile. EINVAL: they followed an offset to before the file's start.
        if error.errno in (None, errno.EINVAL):
            raise MapError(
                f"expected a map of scr_crit, found damage: {error}", path=path, key=key
            ) from error
        raise StorageError(f"cannot read the map: {error.strerror}", errno=error.errno, path=path) from error


class _MapReader:
    """Reads one opened archive; every method raises MapError with path and key."""

    def __init__(self, path: PathLike, archive: np.lib.npyio.NpzFile) -> None:
        self.path = path
        self.archive = archive
        self.entry_keys = ["name", "shape", "dtype", "order"]

    def fail(self, key: str, message: str) -> MapError:
        return MapError(message, path=self.path, key=key)

    def read(self) -> tuple[list[StoredVariable], dict[str, Any]]:
        version = self.version()
        if version > _WITHOUT_MAGNITUDES:
            self.entry_keys.append("magnitudes")
        entries = self.json("variables", list)
        provenance = self.json("provenance", dict)
        variables = [self.variable(index, entry) for index, entry in enumerate(entries)]
        having = [index for index, each in enumerate(variables) if each.magnitudes is not None]
        known = {_VERSION_KEY, "variables", "provenance", *map(_states_key, range(len(entries)))}
        for unknown in sorted(set(self.archive.files) - known - {_magnitudes_key(index) for index in having}):
            raise self.fail(unknown, "found an array that no map has")
        if version > _WITHOUT_MAGNITUDES and not having:
            raise self.fail(_VERSION_KEY, "found version 2 without any magnitudes, expected version 1")
        return variables, provenance

    def version(self) -> int:
        if _VERSION_KEY not in self.archive.files:
            raise self.fail(_VERSION_KEY, "array is missing: found an .npz of something else, expected a map")
        version = self.member(_VERSION_KEY)
        if version.shape != () or version.dtype.kind not in "iu":
            found = f"{version.dtype} of shape {version.shape}"
            raise self.fail(_VERSION_KEY, f"found {found}, expected one integer")
        if int(version) > MAP_FORMAT_VERSION:
            raise self.fail(
                _VERSION_KEY,
                f"found format version {int(version)}, expected at most {MAP_FORMAT_VERSION}; "
                "read it with the scr_critplugin that wrote it, or a newer one",
            )
        if int(version) < 1:
            raise self.fail(_VERSION_KEY, f"found format version {int(version)}, expected 1 or more")
        return int(version)

    def member(self, key: str) -> NDArray[Any]:
        if key not in self.archive.files:
            raise self.fail(key, "array is missing: the map is incomplete")
        with _damage_at(self.path, key):
            member = self.archive[key]
        if not isinstance(member, np.ndarray):  # NumPy hands back bytes when a member is no .npy
            raise self.fail(key, "found bytes, expected an array")
        return member

    def bytes(self, key: str) -> NDArray[np.uint8]:
        member = self.member(key)
        if member.dtype != np.uint8 or member.ndim != 1:
            found = f"{member.dtype} of shape {member.shape}"
            raise self.fail(key, f"found {found}, expected uint8 of one dimension")
        return member

    def json(self, key: str, kind: type) -> Any:
        text = self.bytes(key).tobytes()
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise self.fail(key, f"found bytes that are not JSON: {error}") from error
        if not isinstance(value, kind):
            raise self.fail(key, f"found a JSON {type(value).__name__}, expected a {kind.__name__}")
        return value

    def variable(self, index: int, entry: Any) -> StoredVariable:
        key = f"variables[{index}]"
        if not isinstance(entry, dict) or set(entry) != set(self.entry_keys):
            *others, last = self.entry_keys
            raise self.fail(key, f"found {entry!r}, expected an object of {', '.join(others)} and {last}")
        shape = entry["shape"]
        if not isinstance(shape, list) or not all(type(extent) is int and extent >= 0 for extent in shape):
            raise self.fail(f"{key}.shape", f"found {shape!r}, expected a list of extents from 0")
        with _damage_at(self.path, f"{key}.dtype"):
            dtype = dtype_from_json(entry["dtype"])
        states = self.states(index, shape)
        has_magnitudes = entry.get("magnitudes", False)
        if not isinstance(has_magnitudes, bool):
            raise self.fail(f"{key}.magnitudes", f"found {has_magnitudes!r}, expected true or false")
        magnitudes = self.magnitudes(index, shape) if has_magnitudes else None
        return StoredVariable(entry["name"], states, dtype, entry["order"], magnitudes)

    def states(self, index: int, shape: list[int]) -> NDArray[np.uint8]:
        key = _states_key(index)
        packed = self.bytes(key)
        elements = math.prod(shape)
        if packed.size != _packed_size(elements):
            raise self.fail(
                key,
                f"found {packed.size} bytes, expected {_packed_size(elements)} for shape {tuple(shape)} "
                "at four states a byte",
            )
        unpacked = _unpack(packed)
        if unpacked[elements:].any():
            raise self.fail(key, "found states behind the last element, expected zero bits there")
        with _damage_at(self.path, key):
            return unpacked[:elements].reshape(shape)

    def magnitudes(self, index: int, shape: list[int]) -> NDArray[np.float32]:
        key = _magnitudes_key(index)
        member = self.member(key)
        if member.dtype != np.dtype("<f4") or member.ndim != 1:
            found = f"{member.dtype} of shape {member.shape}"
            raise self.fail(key, f"found {found}, expected float32 of one dimension")
        if member.size != math.prod(shape):
            raise self.fail(
                key, f"found {member.size} numbers, expected {math.prod(shape)} for shape {tuple(shape)}"
            )
        return member.astype(np.float32, copy=False).reshape(shape)
