"""States of a file's bytes as computed by hand, and the comparison with what the tracer found.

A ``Truth`` is a NumPy structure of the file whose bytes are expectations: fields are byte arrays of the
shape that the file has, so that a region is stated as an index. Tests: ``test_traced_harness.py``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from records import CRITICAL, DEAD, STATES, UNTOLD, UNUSED

# Expectations that allow more than one state.
DROPPABLE = 10  # dead or unused: which, is not for the program to say
NOT_USED = 11  # dead, or never read by the restart at all
ANY = 12  # not judged
DEAD_IF_FOLLOWED = 13  # dead; critical where the way there cannot be followed

ALLOWED = {
    CRITICAL: {CRITICAL},
    DEAD: {DEAD},
    UNUSED: {UNUSED},
    UNTOLD: {UNTOLD},
    DROPPABLE: {DEAD, UNUSED},
    NOT_USED: {DEAD, UNTOLD},
    ANY: {CRITICAL, DEAD, UNUSED, UNTOLD},
    DEAD_IF_FOLLOWED: {CRITICAL, DEAD},
}
NAMES = {
    **STATES,
    DROPPABLE: "dead or unused",
    NOT_USED: "dead or untold",
    DEAD_IF_FOLLOWED: "dead or critical",
}


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
        if CRITICAL != 0:
            raise AssertionError("a fresh Truth is all critical")

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

    def wrong(self, states: NDArray[np.uint8]) -> NDArray[np.bool_]:
        """Where the states are not as expected."""
        allowed = np.zeros((256, 256), dtype=bool)
        for expectation, good in ALLOWED.items():
            allowed[expectation, list(good)] = True
        return ~allowed[self.expected, states]

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
                was, want = STATES[int(states[start])], NAMES[int(expected[start])]
                lines.append(f"  [{start}, {stop}) {self.name(int(start))}: {was}, expected {want}")
        rest = [f"  and {len(lines) - most} ranges more"] if len(lines) > most else []
        return "\n".join([f"{int(wrong.sum())} of {states.size} bytes are wrong:", *lines[:most], *rest])
