"""Reads the tracer's files, apart from the package's own reader: a second opinion on the format.

Knows ``docs/trace-format.md`` and nothing of the package. Tests: ``test_traced_harness.py``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

CRITICAL, DEAD, UNUSED = 0, 2, 3
UNTOLD = 255  # no state was recorded
STATES = {CRITICAL: "critical", DEAD: "dead", UNUSED: "unused", UNTOLD: "untold"}
READ, USED, DERIVED, SHARED = 0, 1, 2, 3  # reasons for critical

RECORD = np.dtype(
    [
        ("kind", "<u4"),
        ("file", "<u4"),
        ("offset", "<u8"),
        ("length", "<u8"),
        ("address", "<u8"),
        ("code", "<u4"),
        ("block", "<i4"),
    ]
)
SOURCE, STATE = 1, 2
# What overrules what when several places hold a byte's value.
STRENGTH = np.zeros(256, dtype=np.uint8)
STRENGTH[[UNTOLD, DEAD, UNUSED, CRITICAL]] = [0, 1, 2, 3]


class TraceError(Exception):
    """The trace is not as the format says."""


@dataclass
class TracedFile:
    """One file of one generation: a state and, where critical, the reasons (bits) for each byte."""

    number: int
    name: str
    path: str
    states: NDArray[np.uint8]
    reasons: NDArray[np.uint8]

    def add(self, offset: int, length: int, code: int) -> None:
        """Unite with a state of some bytes; the stronger one stays."""
        if offset + length > self.states.size:
            raise TraceError(
                f"{self.name}: state of [{offset}, {offset + length}) in {self.states.size} bytes"
            )
        state, reason = code & 255, code >> 8
        if state not in STATES:
            raise TraceError(f"{self.name}: state {state}")
        part = self.states[offset : offset + length]
        part[STRENGTH[part] < STRENGTH[state]] = state
        if state == CRITICAL:
            self.reasons[offset : offset + length] |= 1 << reason


@dataclass
class Generation:
    """One checkpoint that was written or read."""

    kind: str
    dataset: str
    files: dict[str, TracedFile] = field(default_factory=dict)


@dataclass
class Trace:
    """What one process left."""

    rank: int
    generations: list[Generation]
    warnings: list[str]
    window: str
    exit_code: int

    def generation(self, kind: str, dataset: str) -> Generation:
        """The only generation of that kind and dataset."""
        found = [g for g in self.generations if (g.kind, g.dataset) == (kind, dataset)]
        if len(found) != 1:
            raise TraceError(f"{len(found)} generations {kind} {dataset} in {self.generations}")
        return found[0]


def read_trace(path: Path) -> Trace:
    """Read PREFIX.trace and PREFIX.runs beside it."""
    lines = [line.split(" ") for line in path.read_text().splitlines()]
    if lines[0] != ["scr_crit-trace", "1"] or lines[-1] != ["end"]:
        raise TraceError(f"{path}: begins with {lines[0]}, ends with {lines[-1]}")
    rank, warnings, window, exit_code, count = 0, [], "", -1, -1
    generations: dict[int, Generation] = {}
    files: dict[int, TracedFile] = {}
    for key, *fields in lines[1:-1]:
        texts = [unquote(text) if text != "%" else "" for text in fields]
        if key == "rank":
            rank = int(texts[0])
        elif key == "generation":
            generations[int(texts[0])] = Generation(texts[1], texts[2])
        elif key == "file":
            size = int(texts[4])
            states = np.full(size, UNTOLD, dtype=np.uint8)
            file = TracedFile(int(texts[0]), texts[2], texts[3], states, np.zeros(size, dtype=np.uint8))
            files[file.number] = file
            generations[int(texts[1])].files[file.name] = file
        elif key == "warning":
            warnings.append(texts[0])
        elif key == "window":
            window, exit_code = texts[0], int(texts[1])
        elif key == "runs":
            count = int(texts[0])
    records = np.fromfile(path.with_suffix(".runs"), dtype=RECORD)
    if count != len(records):
        raise TraceError(f"{path}: {len(records)} records, {count} announced")
    for record in records[records["kind"] == STATE]:
        files[int(record["file"])].add(*(int(record[name]) for name in ("offset", "length", "code")))
    return Trace(rank, list(generations.values()), warnings, window, exit_code)
