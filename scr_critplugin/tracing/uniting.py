"""What is known of every byte of a kind of file, from all ranks, checkpoints, runs and both sides.

Rules (safe side first: what nobody saw is critical):

- A byte of one file is critical if it was so for any rank; then unused, then dead. What no rank has a state
  for is critical.
- One file over its checkpoints and runs, and the files of several ranks whose layout is equal: likewise.
- Where a file was traced while it was read (restart), that side is the authority: a byte is critical if it
  was used on any rank and in any run, or if no rank read it from the file. What the side that writes saw
  being read or shared stays critical, too; what it could only not follow (used or computed while the
  checkpoint was written) gives way. What was unused after the restart is what the other side says.
- Unused is as good as its window: it may be dropped only where the program ended by itself.

Imports NumPy, ``criticality`` (the states) and ``trace_file``. Tests: ``tests/test_tracing_planning.py``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..criticality import ElementState
from .trace_file import RankTrace, Reason, TracedFile, reason_of, state_of

Flags = NDArray[np.uint8]

_READ = 1  # critical: read, or open to others
_OPAQUE = 2  # critical: could not be followed, or nobody saw it
_UNUSED = 4
_OPEN = 8  # unused until the trace ended, but the program went on, or failed
_DEAD = 16  # overwritten first
_GONE = 64  # dead, for its memory was freed: at the program's end that befalls all of it
_UNREAD = 32  # restart: no rank read it from the file

_STRONG = (Reason.READ, Reason.SHARED, Reason.MOVED)


@dataclass(frozen=True)
class Sighting:
    """A file in the trace of one rank; `ended`: all ranks of the run ended by themselves and successfully."""

    trace: RankTrace
    file: TracedFile
    ended: bool


@dataclass(frozen=True)
class ByteStates:
    """What is known of the bytes of a kind of file.

    Parameters
    ----------
    states : uint8 array
        An ElementState a byte: CRITICAL, DEAD or UNUSED.
    droppable : bool array
        Dead, or unused until the program's end, everywhere.
    moved : bool array
        Read after one checkpoint of a file and overwritten unread after another: state, not structure.
    checkpoints : int
        Of how many checkpoints each file was seen, at least.
    restarted : bool
        Whether every file was traced on the restart side.
    """

    states: NDArray[np.uint8]
    droppable: NDArray[np.bool_]
    moved: NDArray[np.bool_]
    checkpoints: int
    restarted: bool


class MemberStates:
    """What is known of the bytes of one file, checkpoint by checkpoint."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._written = np.zeros(size, np.uint8)
        self._read: Flags | None = None
        self._checkpoints = 0

    def add_checkpoint(self, ranks: Iterable[Sighting]) -> None:
        """A checkpoint that was written, as seen by every rank that had a part in the file."""
        flags = self._flags(ranks)
        flags[flags == 0] = _OPAQUE
        # Of the uncritical claims of several places or ranks the weakest counts.
        flags[(flags & (_READ | _OPAQUE)) != 0] &= _READ | _OPAQUE
        flags[(flags & (_UNUSED | _OPEN)) != 0] &= ~np.uint8(_DEAD | _GONE)
        self._written |= flags
        self._checkpoints += 1

    def add_restart(self, ranks: Iterable[Sighting]) -> None:
        """A checkpoint that was read, as seen by every rank that read from the file."""
        flags = self._flags(ranks)
        flags[flags == 0] = _UNREAD
        self._read = flags if self._read is None else self._read | flags

    def verdict(self) -> ByteStates:
        """States of this file's bytes."""
        written, read = self._written, self._read
        if read is None:
            critical = _has(written, _READ | _OPAQUE) | (written == 0)
            unused = _has(written, _UNUSED | _OPEN)
            is_open = _has(written, _OPEN)
        else:
            critical = _has(read, _READ | _OPAQUE | _UNREAD) | _has(written, _READ)
            unused = _has(read, _UNUSED | _OPEN)
            is_open = _has(read, _OPEN)
            if self._checkpoints:
                # "Unused" after a restart says little: the restart may have been the end of the program.
                critical |= unused & _has(written, _OPAQUE)
                is_open = unused & _has(written, _OPEN)
                unused &= _has(written, _UNUSED | _OPEN)
        states = np.full(self._size, ElementState.DEAD, np.uint8)
        states[unused] = ElementState.UNUSED
        states[critical] = ElementState.CRITICAL
        moved = _has(written, _READ) & _has(written, _DEAD)
        return ByteStates(states, ~critical & ~(unused & is_open), moved, self._checkpoints, read is not None)

    def _flags(self, ranks: Iterable[Sighting]) -> Flags:
        flags = np.zeros(self._size, np.uint8)
        for sighting in ranks:
            records = sighting.trace.states_of(sighting.file.number)
            bits = _bits(records, sighting.ended)
            starts = records["offset"].astype(np.int64).tolist()
            stops = (records["offset"] + records["length"]).astype(np.int64).tolist()
            for start, stop, bit in zip(starts, stops, bits.tolist(), strict=True):
                flags[start:stop] |= bit
        return flags


def unite(members: Iterable[ByteStates]) -> ByteStates:
    """States of files whose layout is equal: critical in one is critical; then unused, then dead.

    Raises
    ------
    ValueError
        There are none.
    """
    united: ByteStates | None = None
    for member in members:
        united = member if united is None else _both(united, member)
    if united is None:
        raise ValueError("expected at least one file")
    return united


def _both(one: ByteStates, other: ByteStates) -> ByteStates:
    states = np.where(_weakness(one.states) <= _weakness(other.states), one.states, other.states)
    return ByteStates(
        states.astype(np.uint8),
        one.droppable & other.droppable,
        one.moved | other.moved,
        min(one.checkpoints, other.checkpoints),
        one.restarted and other.restarted,
    )


def _weakness(states: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Critical 0, unused 1, dead 2: the smaller one counts."""
    order = np.zeros(4, np.uint8)
    order[[ElementState.CRITICAL, ElementState.UNUSED, ElementState.DEAD]] = range(3)
    return order[states]


def _bits(records: NDArray[Any], ended: bool) -> NDArray[np.uint8]:
    states, reasons = state_of(records), reason_of(records)
    bits = np.full(len(records), _OPAQUE, np.uint8)
    bits[np.isin(reasons, _STRONG)] = _READ
    bits[states == ElementState.DEAD] = _DEAD
    bits[(states == ElementState.DEAD) & (reasons == Reason.GONE)] = _GONE
    bits[states == ElementState.UNUSED] = _UNUSED if ended else _UNUSED | _OPEN
    return bits


def _has(flags: Flags, bits: int) -> NDArray[np.bool_]:
    return np.asarray((flags & np.uint8(bits)) != 0)
