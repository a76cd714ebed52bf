"""Merging the maps of many ranks, runs and inputs: equal ones are read once, those of one shape are united.

A map's file is told from others by the stored bytes of its arrays, so ten thousand files of few kinds cost
little more than reading them. One map per group is in memory, whatever the number of files.

Imports NumPy, ``criticality``, ``provenance`` and the errors. Tests: ``tests/test_merge.py``.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from .criticality import CriticalityMap, Variable
from .errors import MapError, StorageError
from .provenance import Sources

_RANGES = 6
"""Ranges of ranks that are spelled out."""

GroupBy = Literal["shape", "content"]


@dataclass
class Kind:
    """Maps that are equal: the `first` file, how many, and of which ranks, where their provenance says so."""

    first: Path
    maps: int = 0
    ranks: list[int] = field(default_factory=list)

    def ranks_in_words(self) -> str:
        """The ranks as ranges: ``0-3, 7``, of many the first ones; empty if no rank is known."""
        numbers = sorted(set(self.ranks))
        ends = [i for i in range(len(numbers)) if i + 1 == len(numbers) or numbers[i + 1] != numbers[i] + 1]
        starts = [0, *(i + 1 for i in ends[:-1])]
        runs = [(numbers[a], numbers[b]) for a, b in zip(starts, ends, strict=True)] if numbers else []
        words = ", ".join(f"{a}-{b}" if b > a else f"{a}" for a, b in runs[:_RANGES])
        more = sum(b - a + 1 for a, b in runs[_RANGES:])
        return f"{words} and {more} more" if more else words


@dataclass
class Group:
    """Maps that were united: the `map` of them all, with its provenance, and the `kinds` among them."""

    map: CriticalityMap
    kinds: list[Kind]

    @property
    def maps(self) -> int:
        """Number of maps."""
        return sum(kind.maps for kind in self.kinds)


def merge(paths: Iterable[Path], group_by: GroupBy | None = None) -> list[Group]:
    """Unite the maps in the files `paths`.

    Parameters
    ----------
    paths : iterable of Path
        At least one.
    group_by : "shape", "content" or None
        Make one map of all; or one of each set of maps whose variables agree in name, shape, dtype and order
        (the ranks of an uneven decomposition); or one of each set of equal maps.

    Returns
    -------
    list of Group
        In the order in which their first files come.

    Raises
    ------
    MapError
        A file is no map; or, without `group_by`, the variables of two maps differ: both files are named. Or
        there are no files.
    StorageError
        A file cannot be read.
    """
    merger = _Merger(group_by)
    for path in paths:
        merger.add(path)
    groups = merger.groups()
    if not groups:
        raise MapError("found no maps to merge")
    return groups


class _Group:
    """A group that still grows."""

    def __init__(self, united: CriticalityMap) -> None:
        self.united = united
        self.sources = Sources()
        self.kinds: dict[bytes, Kind] = {}


class _Merger:
    def __init__(self, group_by: GroupBy | None) -> None:
        self._group_by = group_by
        self._groups: dict[Any, _Group] = {}
        # By the stored bytes of a file's arrays, and by what they say: compressors differ.
        self._known: dict[bytes, tuple[_Group, Kind]] = {}

    def add(self, path: Path) -> None:
        stored, provenance = _outline(path)
        known = self._known.get(stored) if stored else None
        if known is None:
            loaded = CriticalityMap.load(path)
            provenance = loaded.provenance
            known = self._placed(loaded, path)
            if stored:
                self._known[stored] = known
        group, kind = known
        group.sources.add(provenance)
        kind.maps += 1
        rank = provenance.get("rank")
        if isinstance(rank, int):
            kind.ranks.append(rank)

    def groups(self) -> list[Group]:
        made = []
        for group in self._groups.values():
            kinds = list(group.kinds.values())
            provenance = group.sources.provenance()
            if len(kinds) == 1 and kinds[0].maps == 1:
                provenance = group.united.provenance
            made.append(Group(CriticalityMap(group.united.values(), provenance), kinds))
        return made

    def _placed(self, loaded: CriticalityMap, path: Path) -> tuple[_Group, Kind]:
        """The group and the kind of a map, united with what is there."""
        content = _digest_of(loaded)
        key: Any = {"shape": _signature(loaded), "content": content, None: None}[self._group_by]
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = _Group(loaded)
        elif content not in group.kinds:
            _refuse_other_variables(group, loaded, path)
            group.united = CriticalityMap(group.united.union(loaded).values())
        return group, group.kinds.setdefault(content, Kind(path))


def _outline(path: Path) -> tuple[bytes, dict[str, Any]]:
    """Digest of a map's stored arrays but the provenance, and the provenance; empty if it is no map."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise StorageError(f"cannot read the map: {error.strerror}", errno=error.errno, path=path) from error
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            text = np.lib.format.read_array(
                io.BytesIO(archive.read("provenance.npy")), allow_pickle=False
            ).tobytes()
            provenance = json.loads(text)
            members = [(each, _stored(data, each)) for each in archive.infolist()]
    except (
        zipfile.BadZipFile,
        zlib.error,
        KeyError,
        ValueError,
        EOFError,
        NotImplementedError,
        RuntimeError,
    ):
        # What is wrong with it, the reader of maps says.
        return b"", {}
    if not isinstance(provenance, dict):
        return b"", {}
    digest = hashlib.blake2b(digest_size=32)
    for info, stored in sorted(members, key=lambda member: member[0].filename):
        if info.filename != "provenance.npy":
            digest.update(f"{info.filename}\0{info.compress_type}\0{len(stored)}\0".encode())
            digest.update(stored)
    return digest.digest(), provenance


def _stored(data: bytes, info: zipfile.ZipInfo) -> bytes:
    """The bytes of a zip member as they lie in the file, behind a header of 30 bytes, its name and extras."""
    start = info.header_offset + 30
    header = data[info.header_offset : start]
    start += int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
    return data[start : start + info.compress_size]


def _signature(loaded: CriticalityMap) -> tuple[Any, ...]:
    return tuple(
        sorted((name, each.shape, str(each.dtype.descr), each.order) for name, each in loaded.items())
    )


def _digest_of(loaded: CriticalityMap) -> bytes:
    digest = hashlib.blake2b(repr(_signature(loaded)).encode(), digest_size=32)
    for name in sorted(loaded):
        for array in _arrays(loaded[name]):
            digest.update(array.tobytes())
    return digest.digest()


def _arrays(variable: Variable) -> list[Any]:
    magnitudes = getattr(variable, "magnitudes", None)
    return [variable.states] if magnitudes is None else [variable.states, magnitudes]


def _refuse_other_variables(group: _Group, loaded: CriticalityMap, path: Path) -> None:
    comparison = group.united.compare(loaded)
    first = next(iter(group.kinds.values())).first
    reasons = {
        **comparison.mismatched,
        **dict.fromkeys(comparison.only_in_self, f"only {first} has this variable"),
        **dict.fromkeys(comparison.only_in_other, f"{first} has no such variable"),
    }
    for name, reason in reasons.items():
        raise MapError(
            f"cannot be united with {first}: {reason}. Merge maps of one program and one shape; for "
            f"ranks whose "
            "blocks differ, --group-by shape makes one map of each shape",
            path=path,
            key=name,
        )
