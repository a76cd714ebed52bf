"""Reads a trace (PREFIX.trace, PREFIX.runs) for tests, independently of the package's own reader.

Written from docs/trace-format.md, and shares no code with `scr_critplugin.tracing` on purpose: a misreading
of the format would have to be made twice to go unseen.
"""

from __future__ import annotations

import struct
import urllib.parse
from dataclasses import dataclass, field
from pathlib import Path

STATES = {0: "critical", 2: "dead", 3: "unused"}
REASONS = ["read", "used", "derived", "shared", "written", "gone", "never", "moved"]
STRENGTH = {"critical": 3, "unused": 2, "dead": 1}
LETTERS = {"critical": "c", "dead": "d", "unused": "u", None: "-"}


@dataclass
class Record:
    """A record of PREFIX.runs."""

    kind: str
    offset: int
    length: int
    address: int
    block: int
    state: str | None
    reason: str | None


@dataclass
class File:
    """A file of a generation, with all that was said of it."""

    number: int
    generation: int
    name: str
    path: str
    size: int
    records: list[Record] = field(default_factory=list)

    def states(self) -> str:
        """One letter a byte: c(ritical), d(ead), u(nused), - (nothing was said)."""
        strongest: list[str | None] = [None] * self.size
        for record in self.records:
            if record.kind != "state":
                continue
            assert record.offset + record.length <= self.size, record
            for at in range(record.offset, record.offset + record.length):
                known = strongest[at]
                if known is None or STRENGTH[record.state] > STRENGTH[known]:
                    strongest[at] = record.state
        return "".join(LETTERS[state] for state in strongest)

    def runs(self) -> list[tuple[int, str]]:
        """The states as (length, letter) of runs."""
        found: list[tuple[int, str]] = []
        for letter in self.states():
            if found and found[-1][1] == letter:
                found[-1] = (found[-1][0] + 1, letter)
            else:
                found.append((1, letter))
        return found

    def reasons(self, offset: int) -> set[str]:
        """Why: all reasons given for a byte."""
        return {
            record.reason
            for record in self.records
            if record.kind == "state" and record.offset <= offset < record.offset + record.length
        }

    def sources(self) -> list[tuple[int, int, int, int]]:
        """(offset, length, address, block) in the order of offsets."""
        return sorted((r.offset, r.length, r.address, r.block) for r in self.records if r.kind == "source")


@dataclass
class Trace:
    """A whole trace."""

    lines: list[list[str]]
    files: list[File]

    def of(self, keyword: str) -> list[list[str]]:
        """The fields of all lines with this keyword."""
        return [fields for key, *fields in self.lines if key == keyword]

    def file(self, name: str, generation: int | None = None) -> File:
        """The only file with this name (in a generation)."""
        found = [f for f in self.files if f.name == name and generation in (None, f.generation)]
        assert len(found) == 1, (name, [(f.name, f.generation) for f in self.files])
        return found[0]


def _text(field: str) -> str:
    return "" if field == "%" else urllib.parse.unquote(field)


def read_trace(prefix: Path) -> Trace:
    """The trace at a prefix."""
    text = Path(f"{prefix}.trace").read_bytes()
    assert text.endswith(b"\nend\n")
    lines = [[_text(part) for part in line.split(" ")] for line in text.decode("ascii").splitlines()]
    assert lines[0] == ["scr_crit-trace", "1"]
    files = []
    for key, *fields in lines:
        if key == "file":
            number, generation, name, path, size = fields
            assert int(number) == len(files)
            files.append(File(int(number), int(generation), name, path, int(size)))
    records = list(struct.iter_unpack("<IIQQQIi", Path(f"{prefix}.runs").read_bytes()))
    assert [["runs", str(len(records))]] == [line for line in lines if line[0] == "runs"]
    for kind, file, offset, length, address, code, block in records:
        assert kind in (1, 2) and length > 0
        if kind == 1:
            record = Record("source", offset, length, address, block, None, None)
        else:
            assert (address, block) == (0, -1)
            record = Record("state", offset, length, 0, -1, STATES[code & 0xFF], REASONS[code >> 8])
        files[file].records.append(record)
    return Trace(lines, files)
