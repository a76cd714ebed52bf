"""Builds traces as the access tracer writes them, for the tests of ``scr_critplugin.tracing``."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from pathlib import Path

READ, USED, DERIVED, SHARED, WRITTEN, GONE, NEVER, MOVED = range(8)
CRITICAL, DEAD, UNUSED = 0, 2, 3

_RECORD = struct.Struct("<IIQQQIi")


def escaped(text: str) -> str:
    """A text field."""
    if not text:
        return "%"
    raw = text.encode()
    return "".join(chr(byte) if 32 < byte < 127 and byte != 37 else f"%{byte:02X}" for byte in raw)


@dataclass
class TraceBuilder:
    """The trace of one rank; what is added is written by :meth:`save`."""

    rank: int = 0
    ranks: int = 1
    program: str = "/nowhere/app"
    window: str = "end 0 3"
    lines: list[str] = field(default_factory=list)
    records: list[bytes] = field(default_factory=list)
    blocks: int = 0
    generations: int = 0
    files: int = 0

    def block(self, address: int, nbytes: int, frame: str = "make@app(app.c:10)", kind: str = "heap") -> int:
        number, self.blocks = self.blocks, self.blocks + 1
        frames = "".join(f" {escaped(each)}" for each in frame.split("|") if each)
        self.lines.append(f"block {number} {kind} {address:x} {nbytes}{frames}")
        return number

    def generation(self, kind: str = "output", dataset: str = "ckpt.1") -> int:
        number, self.generations = self.generations, self.generations + 1
        self.lines.append(f"generation {number} {kind} {escaped(dataset)}")
        return number

    def file(self, generation: int, name: str, size: int, path: str | None = None) -> int:
        number, self.files = self.files, self.files + 1
        place = escaped(name if path is None else path)
        self.lines.append(f"file {number} {generation} {escaped(name)} {place} {size}")
        return number

    def source(self, file: int, offset: int, length: int, address: int, block: int = -1) -> None:
        self.records.append(_RECORD.pack(1, file, offset, length, address, 0, block))

    def state(self, file: int, offset: int, length: int, state: int, reason: int) -> None:
        self.records.append(_RECORD.pack(2, file, offset, length, 0, state | reason << 8, -1))

    def warning(self, text: str) -> None:
        self.lines.append(f"warning {escaped(text)}")

    def step(self, number: int, undecided: int, decided: int) -> None:
        self.lines.append(f"step {number} {undecided} {decided}")

    def text(self) -> str:
        head = [
            "scr_crit-trace 1",
            "tool 0.1.0 valgrind 3.19.0",
            f"program {escaped(self.program)} app --steps 3",
            f"rank {self.rank} {self.ranks}",
        ]
        tail = [f"window {self.window}", f"runs {len(self.records)}", "end"]
        return "".join(f"{line}\n" for line in [*head, *self.lines, *tail])

    def save(self, prefix: Path) -> Path:
        prefix.with_name(prefix.name + ".trace").write_text(self.text())
        prefix.with_name(prefix.name + ".runs").write_bytes(b"".join(self.records))
        return prefix
