"""Sections of a traced file: which of its bytes are which array, put together from where they came from.

What stdio's buffers, record markers and headers cut in pieces, and what several ranks wrote into one file, is
one section again where it is of one source. Knows names and addresses, nothing of states. Imports NumPy,
``regions``, ``naming`` (what a source is) and ``trace_file``. Tests: ``tests/test_tracing_planning.py``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .. import regions
from .naming import Source
from .trace_file import RankTrace, TracedFile

LEAST_BYTES = 4096
"""Smaller sections are kept whole: there is little to gain."""

_BYTE = np.dtype("|u1")


@dataclass(frozen=True)
class Piece:
    """Bytes of a file that follow each other."""

    offset: int
    nbytes: int

    @property
    def stop(self) -> int:
        """Offset behind them."""
        return self.offset + self.nbytes


@dataclass(frozen=True)
class Section:
    """An array in a file, in one piece or several, in file order.

    `shape` is None where nothing is known but the number of elements. `stack` is the call stack that
    allocated it, for people.
    """

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...] | None
    order: regions.Order
    pieces: tuple[Piece, ...]
    stack: tuple[str, ...] = field(default=(), compare=False)

    @property
    def nbytes(self) -> int:
        """Bytes in all pieces."""
        return sum(piece.nbytes for piece in self.pieces)

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.nbytes // self.dtype.itemsize


@dataclass(frozen=True)
class FileSections:
    """The sections of a file of `size` bytes, by their first offset."""

    size: int
    sections: tuple[Section, ...]

    def form(self) -> tuple[int, tuple[tuple[Piece, ...], ...]]:
        """What two files of one layout have in common: where their larger arrays lie.

        Not the arrays' names: programs that swap two arrays write now one, now the other.
        """
        return self.size, tuple(each.pieces for each in self.sections if each.nbytes >= LEAST_BYTES)

    @property
    def sourced(self) -> int:
        """Bytes that are in a section."""
        return sum(section.nbytes for section in self.sections)


class Names(Protocol):
    """What the memory of one rank is called."""

    def pieces(self, block: int, start: int, stop: int) -> Iterable[tuple[int, int, Source]]:
        """Run-time addresses from start to stop, cut by source; what has no name is left out."""


@dataclass(frozen=True)
class _Span:
    """File bytes of one source, `at` bytes from its start."""

    offset: int
    nbytes: int
    source: Source
    at: int


def sections_of(size: int, parts: Iterable[tuple[RankTrace, TracedFile, Names]]) -> FileSections:
    """Sections of one file.

    Parameters
    ----------
    size : int
        Of the file, in bytes.
    parts : iterable of (trace, file in it, the names of the trace's memory)
        One for each rank that wrote (or read) the file.
    """
    of_ranks = [found for found in (_spans(*part) for part in parts) if found]
    is_shared = len(of_ranks) > 1
    if is_shared:
        groups = _by_name([span for spans in of_ranks for span in spans])
    else:
        groups = _by_source(of_ranks[0]) if of_ranks else []
    groups.sort(key=lambda group: group[0].offset)
    used: dict[str, int] = {}
    sections = []
    for group in groups:
        name = group[0].source.name
        used[name] = used.get(name, 0) + 1
        unique = name if used[name] == 1 else f"{name}#{used[name]}"
        sections.append(_section(group, unique, is_shared))
    return FileSections(size, tuple(sections))


# From records to spans ------------------------------------------------------------------------------------


def _spans(trace: RankTrace, file: TracedFile, names: Names) -> list[_Span]:
    found: list[_Span] = []
    position = 0
    for offset, nbytes, address, block in _joined(trace.sources_of(file.number)):
        # What two records claim is the first one's.
        skip = min(nbytes, max(0, position - offset))
        offset, nbytes, address = offset + skip, nbytes - skip, address + skip
        position = max(position, offset + nbytes)
        if not nbytes:
            continue
        for start, stop, source in names.pieces(block, address, address + nbytes):
            found.append(_Span(offset + start - address, stop - start, source, start - source.address))
    return found


def _joined(records: NDArray[Any]) -> Iterable[tuple[int, int, int, int]]:
    """Offset, length, address and block of the records, those that continue each other joined."""
    if not len(records):
        return
    offset, length, address = (records[name].astype(np.uint64) for name in ("offset", "length", "address"))
    goes_on = (
        (offset[1:] == offset[:-1] + length[:-1])
        & (address[1:] == address[:-1] + length[:-1])
        & (records["block"][1:] == records["block"][:-1])
    )
    first = np.flatnonzero(np.concatenate(([True], ~goes_on)))
    last = np.concatenate((first[1:] - 1, [len(records) - 1]))
    ends = offset[last] + length[last]
    for start, end in zip(first.tolist(), ends.tolist(), strict=True):
        begin = int(offset[start])
        yield begin, int(end) - begin, int(address[start]), int(records["block"][start])


# From spans to sections -----------------------------------------------------------------------------------


def _by_source(spans: Sequence[_Span]) -> list[list[_Span]]:
    """Spans of one source whose addresses ascend as their offsets do: the array, in its own order."""
    groups: list[list[_Span]] = []
    open_group: dict[str, list[_Span]] = {}
    for span in spans:
        group = open_group.get(span.source.name)
        if group is None or span.at < group[-1].at + group[-1].nbytes:
            group = open_group[span.source.name] = []
            groups.append(group)
        group.append(span)
    return groups


def _by_name(spans: Iterable[_Span]) -> list[list[_Span]]:
    """Spans of several ranks: the parts of one array, in file order."""
    groups: dict[str, list[_Span]] = {}
    for span in sorted(spans, key=lambda span: span.offset):
        group = groups.setdefault(span.source.name, [])
        if not group or span.offset >= group[-1].offset + group[-1].nbytes:
            group.append(span)
    return list(groups.values())


def _section(group: Sequence[_Span], name: str, is_shared: bool) -> Section:
    source = group[0].source
    dtype, shape, order = _element(source)
    itemsize = dtype.itemsize
    aligned = all(
        span.at % itemsize == 0 and span.nbytes % itemsize == 0 and _element(span.source)[0] == dtype
        for span in group
    )
    pieces = _pieces(group)
    if not aligned:
        dtype, shape = _BYTE, None
    elif is_shared or any(span.source != source for span in group):
        shape = None
    else:
        shape = _written_shape(group, itemsize, shape, order)
    return Section(name, dtype, shape, order if shape is not None else "C", pieces, source.stack)


def _element(source: Source) -> tuple[np.dtype[Any], tuple[int, ...] | None, regions.Order]:
    """Element type, shape and order of a source; structs are taken apart into their bytes."""
    if source.dtype.names is None and source.dtype.subdtype is None:
        return source.dtype, source.shape, source.order
    if source.shape is None:
        return _BYTE, (source.nbytes // source.dtype.itemsize, source.dtype.itemsize), "C"
    shape = source.shape if source.order == "C" else source.shape[::-1]
    return _BYTE, (*shape, source.dtype.itemsize), "C"


def _pieces(group: Sequence[_Span]) -> tuple[Piece, ...]:
    found: list[Piece] = []
    for span in group:
        if found and found[-1].stop == span.offset:
            found[-1] = Piece(found[-1].offset, found[-1].nbytes + span.nbytes)
        else:
            found.append(Piece(span.offset, span.nbytes))
    return tuple(found)


def _written_shape(
    group: Sequence[_Span], itemsize: int, shape: tuple[int, ...] | None, order: regions.Order
) -> tuple[int, ...] | None:
    """Shape of the part of the source that was written, if it is a box of it."""
    if shape is None:
        return None
    elements = math.prod(shape)
    if sum(span.nbytes for span in group) == elements * itemsize:
        return shape
    written = np.zeros(elements, np.bool_)
    for span in group:
        written[span.at // itemsize : (span.at + span.nbytes) // itemsize] = True
    boxes = regions.boxes(written.reshape(shape, order=order))
    return boxes[0].counts if boxes is not None and len(boxes) == 1 else None
