"""States of a file's bytes as computed by hand, and the comparison with what the tracer found.

A ``Truth`` is a NumPy structure of the file whose bytes are expectations: fields are byte arrays of the
shape that the file has, so that a region is stated as an index. Tests: ``test_traced_harness.py``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import traced_records as records
from numpy.typing import NDArray

# What is allowed: any of these, or several of them by `|`.
CRITICAL, DEAD, UNUSED, UNTOLD = 1, 2, 4, 8
DROPPABLE = DEAD | UNUSED
ANY = CRITICAL | DEAD | UNUSED | UNTOLD
BITS = {
    records.CRITICAL: CRITICAL,
    records.DEAD: DEAD,
    records.UNUSED: UNUSED,
    records.UNTOLD: UNTOLD,
}
# The C library takes a FILE's bytes from it in pieces of this size.
STDIO_BUFFER = 4096


def names(allowed: int) -> str:
    """The allowed states as text."""
    return " or ".join(records.STATES[state] for state, bit in BITS.items() if allowed & bit)


def doubles(*shape: int) -> tuple[str, tuple[int, ...]]:
    """Type of an array of 8 bytes an element; its last axis counts the bytes."""
    return ("u1", (*shape, 8))


def singles(*shape: int) -> tuple[str, tuple[int, ...]]:
    """The same of 4 bytes an element."""
    return ("u1", (*shape, 4))


def octets(*shape: int) -> tuple[str, tuple[int, ...]]:
    """Single bytes."""
    return ("u1", shape)


class Truth:
    """Expectation for each byte of a file; critical where nothing else is said."""

    def __init__(self, fields: list[tuple[str, Any]]) -> None:
        self._whole = np.zeros((), dtype=np.dtype([(name, *kind) for name, kind in fields]))
        for name, _ in fields:
            self[name] = CRITICAL

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self._whole[name]

    def __setitem__(self, name: str, state: int) -> None:
        self._whole[name][...] = state

    @property
    def expected(self) -> NDArray[np.uint8]:
        """One expectation a byte."""
        return np.frombuffer(self._whole.tobytes(), dtype=np.uint8)

    def name(self, offset: int) -> str:
        """What stands at this offset."""
        dtype = self._whole.dtype
        for name in reversed(dtype.names or ()):
            kind, start = dtype.fields[name][:2]  # type: ignore[index]
            if start <= offset:
                sizes = kind.shape
                place = np.unravel_index(offset - start, sizes)
                return f"{name}[{', '.join(str(int(k)) for k in place)}]"
        raise ValueError(f"offset {offset}")

    def read_by_stdio(self) -> Truth:
        """The same, but the first byte of each piece that a FILE takes in may be critical.

        When the C library has filled its buffer it compares the first byte with EOF.
        """
        whole = self._whole.reshape(1).view(np.uint8)
        whole[::STDIO_BUFFER] |= CRITICAL
        return self

    def wrong(self, states: NDArray[np.uint8]) -> NDArray[np.bool_]:
        """Where the states are not as expected."""
        bits = np.zeros(256, dtype=np.uint8)
        bits[list(BITS)] = list(BITS.values())
        return (self.expected & bits[states]) == 0

    def complaint(self, states: NDArray[np.uint8], most: int = 8) -> str:
        """The first wrong ranges as text; empty when all is as expected."""
        expected = self.expected
        if states.size != expected.size:
            return f"the file has {states.size} bytes, expected {expected.size}"
        wrong = self.wrong(states)
        if not wrong.any():
            return ""
        # A range ends where right or wrong, the expectation or the state changes.
        key = np.stack([wrong.astype(np.uint8), expected, states])
        cuts = np.flatnonzero((key[:, 1:] != key[:, :-1]).any(axis=0)) + 1
        starts = np.concatenate([[0], cuts])
        stops = np.concatenate([cuts, [states.size]])
        lines = []
        for start, stop in zip(starts, stops, strict=True):
            if wrong[start]:
                was, want = records.STATES[int(states[start])], names(int(expected[start]))
                lines.append(f"  [{start}, {stop}) {self.name(int(start))}: {was}, expected {want}")
        rest = [f"  and {len(lines) - most} ranges more"] if len(lines) > most else []
        return "\n".join([f"{int(wrong.sum())} of {states.size} bytes are wrong:", *lines[:most], *rest])
