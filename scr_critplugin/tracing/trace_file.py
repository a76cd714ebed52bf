"""Reads and validates the trace of one rank: PREFIX.trace (text) and PREFIX.runs (records).

The format is docs/trace-format.md. Whatever is in the files, the result is a :class:`RankTrace` whose parts
agree with each other, or a TraceError that says where they do not. Knows nothing of names, plans or other
ranks. Imports NumPy and the errors. Tests: ``tests/test_tracing_trace_file.py``.
"""

from __future__ import annotations

import enum
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from ..errors import StorageError, TraceError

VERSION = 1
TEXT_ENDING, RUNS_ENDING = ".trace", ".runs"

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
"""A record of PREFIX.runs as it stands there; `code` is state | reason << 8."""
_SOURCE, _STATE = 1, 2

_LARGEST = 2**64 - 1
_LONGEST_SHOWN = 80


class Reason(enum.IntEnum):
    """Why a byte has its state."""

    READ = 0
    """Read first."""
    USED = 1
    """Used while the checkpoint was written or read."""
    DERIVED = 2
    """Computed, or of unknown source."""
    SHARED = 3
    """Others can read it unseen."""
    WRITTEN = 4
    """Overwritten first."""
    GONE = 5
    """Freed or unmapped first."""
    NEVER = 6
    """Not touched until the end of the trace."""
    MOVED = 7
    """Moved by mremap."""


@dataclass(frozen=True)
class TracedObject:
    """An ELF object of the program: where it was mapped. `bias` is run address minus link address."""

    path: str
    bias: int
    lowest: int
    highest: int


@dataclass(frozen=True)
class Frame:
    """A frame of a call stack; "" and 0 stand for what is not known."""

    function: str
    object: str
    file: str
    line: int


@dataclass(frozen=True)
class Block:
    """A piece of memory that checkpoint bytes came from, with the stack that allocated it.

    `stack` is innermost first, without malloc's own frame.
    """

    number: int
    kind: Literal["heap", "mapping", "stack", "static"]
    address: int
    nbytes: int
    stack: tuple[Frame, ...]


@dataclass(frozen=True)
class Root:
    """Static memory of the main program at `address` whose first 8 bytes are the start of `block`.

    `memory` is what stood there: 8 to 256 bytes, for a pointer or a Fortran descriptor.
    """

    address: int
    block: int
    memory: bytes


@dataclass(frozen=True)
class Generation:
    """One checkpoint that was written (output, dump) or read (restart)."""

    number: int
    kind: Literal["output", "restart", "dump"]
    dataset: str


@dataclass(frozen=True)
class TracedFile:
    """A file of a generation: its name as the program gave it, where it was, and its size in bytes."""

    number: int
    generation: int
    name: str
    path: str
    size: int


@dataclass(frozen=True)
class Step:
    """A step of the program ended: bytes still undecided, and decided since the step before."""

    number: int
    undecided: int
    decided: int


@dataclass(frozen=True)
class Window:
    """How the trace ended: at the program's end, by --until-flat, or at SCR_Finalize.

    `exit_code` is -1 where the program had not ended.
    """

    end: Literal["end", "flat", "finalize"]
    exit_code: int
    steps: int


@dataclass(frozen=True, eq=False)
class RankTrace:
    """The trace of one rank, validated. Equal to itself only.

    Parameters
    ----------
    path : Path
        PREFIX, without ending.
    tool, valgrind : str
        Versions.
    program : str
        Path of the executable; `arguments` is its argv.
    rank, ranks : int
        -1 and 0 where the program did not say.
    objects, roots, steps, warnings : tuples, in file order
    blocks, generations, files : mappings from number
    sources : structured array of RECORD
        Bytes [offset, offset + length) of a file came from (output, dump), or stood at (restart), `address`;
        `block` is a key of `blocks`, or -1: static memory, or none that is known. Sorted by file and offset.
    states : structured array of RECORD
        What became of the bytes, by ``state_of``, ``reason_of``. A byte may have several. Sorted likewise.
    """

    path: Path
    tool: str
    valgrind: str
    program: str
    arguments: tuple[str, ...]
    window: Window
    rank: int = -1
    ranks: int = 0
    objects: tuple[TracedObject, ...] = ()
    blocks: Mapping[int, Block] = field(default_factory=dict)
    roots: tuple[Root, ...] = ()
    generations: Mapping[int, Generation] = field(default_factory=dict)
    files: Mapping[int, TracedFile] = field(default_factory=dict)
    steps: tuple[Step, ...] = ()
    warnings: tuple[str, ...] = ()
    sources: NDArray[Any] = field(default_factory=lambda: np.zeros(0, RECORD))
    states: NDArray[Any] = field(default_factory=lambda: np.zeros(0, RECORD))

    def sources_of(self, file: int) -> NDArray[Any]:
        """The source records of a file, by offset."""
        return _of_file(self.sources, file)

    def states_of(self, file: int) -> NDArray[Any]:
        """The state records of a file, by offset."""
        return _of_file(self.states, file)


def state_of(records: NDArray[Any]) -> NDArray[np.uint8]:
    """The ElementState of each state record."""
    return cast("NDArray[np.uint8]", (records["code"] & 0xFF).astype(np.uint8))


def reason_of(records: NDArray[Any]) -> NDArray[np.uint8]:
    """The Reason of each state record."""
    return cast("NDArray[np.uint8]", (records["code"] >> 8).astype(np.uint8))


def read_trace(prefix: str | os.PathLike[str]) -> RankTrace:
    """Read PREFIX.trace and PREFIX.runs.

    Raises
    ------
    TraceError
        They are no trace, are not whole, or do not agree; `path` and `key` ("line 7", "record 3") say where.
    StorageError
        They cannot be read.
    """
    prefix = Path(prefix)
    text_path = prefix.with_name(prefix.name + TEXT_ENDING)
    runs_path = prefix.with_name(prefix.name + RUNS_ENDING)
    parser = _Parser(text_path)
    parser.read(_content(text_path))
    sources, states = _records(runs_path, parser)
    return RankTrace(path=prefix, sources=sources, states=states, **parser.found())


def unescape(text: str) -> str:
    """A text field as it was: %XX stands for a byte, a lone % for the empty text; else a ValueError."""
    if text == "%":
        return ""
    if re.search(r"%(?![0-9A-Fa-f]{2})", text):
        raise ValueError(f"{text!r} has a % without two hexadecimal digits")
    raw = text.encode("utf-8", "surrogateescape")
    plain = re.sub(rb"%([0-9A-Fa-f]{2})", lambda match: bytes([int(match[1], 16)]), raw)
    return plain.decode("utf-8", "surrogateescape")


# The text ------------------------------------------------------------------------------------------------

_FRAME = re.compile(
    r"(?P<function>.*)@(?P<object>[^@]*?)(?:\((?P<file>.*):(?P<line>[0-9]{1,9})\))?", re.DOTALL
)


def _frame(text: str) -> Frame:
    match = _FRAME.fullmatch(text)
    if match is None:
        return Frame(text, "", "", 0)
    function = match["function"] if match["function"] != "?" else ""
    return Frame(function, match["object"], match["file"] or "", int(match["line"] or 0))


class _Fields:
    """The fields of one line, taken one by one; ValueError says what is wrong."""

    def __init__(self, fields: Sequence[str]) -> None:
        self._fields = list(fields)
        self._next = 0

    def _take(self, what: str) -> str:
        if self._next == len(self._fields):
            raise ValueError(f"found {self._next} fields, expected {what} as the next one")
        self._next += 1
        return self._fields[self._next - 1]

    def text(self, what: str) -> str:
        return unescape(self._take(what))

    def number(self, what: str, least: int = 0, most: int = _LARGEST) -> int:
        given = self._take(what)
        if not re.fullmatch(r"-?[0-9]{1,20}", given) or not least <= int(given) <= most:
            raise ValueError(f"found {_shown(given)}, expected {what} from {least} to {most}")
        return int(given)

    def hex(self, what: str) -> int:
        given = self._take(what)
        if not re.fullmatch(r"(0[xX])?[0-9A-Fa-f]{1,16}", given):
            raise ValueError(f"found {_shown(given)}, expected {what} in hexadecimal, of 64 bits")
        return int(given, 16)

    def bytes(self, what: str, least: int, most: int) -> bytes:
        given = self._take(what)
        if not re.fullmatch(r"([0-9A-Fa-f]{2})+", given) or not least <= len(given) // 2 <= most:
            raise ValueError(
                f"found {_shown(given)}, expected {what}, {least} to {most} bytes in hexadecimal"
            )
        return bytes.fromhex(given)

    def choice(self, what: str, choices: Sequence[str]) -> str:
        given = self._take(what)
        if given not in choices:
            raise ValueError(f"found {_shown(given)}, expected {what}: {', '.join(choices)}")
        return given

    def rest(self) -> tuple[str, ...]:
        rest = tuple(map(unescape, self._fields[self._next :]))
        self._next = len(self._fields)
        return rest

    def end(self) -> None:
        if self._next < len(self._fields):
            raise ValueError(f"found {len(self._fields)} fields, expected {self._next}")


_Numbered = TypeVar("_Numbered", Block, Generation, TracedFile)
_MOST_FILES = 2**32 - 1
_MOST_BLOCKS = 2**31 - 1


class _Parser:
    """PREFIX.trace, line by line."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._once: dict[str, Any] = {}
        self._lists: dict[str, list[Any]] = {"objects": [], "roots": [], "steps": [], "warnings": []}
        self.blocks: dict[int, Block] = {}
        self.generations: dict[int, Generation] = {}
        self.files: dict[int, TracedFile] = {}
        self._readers: dict[str, Callable[[_Fields], None]] = {
            "tool": self._tool,
            "program": self._program,
            "rank": self._rank,
            "object": self._object,
            "block": self._block,
            "root": self._root,
            "generation": self._generation,
            "file": self._file,
            "step": self._step,
            "warning": self._warning,
            "window": self._window,
            "runs": self._runs,
        }

    @property
    def records(self) -> int:
        """Number of records that PREFIX.runs must have."""
        return cast(int, self._once["runs"])

    def read(self, content: bytes) -> None:
        lines = content.decode("utf-8", "surrogateescape").split("\n")
        if lines[0] != f"scr_crit-trace {VERSION}":
            raise self._fault(1, f"found {_shown(lines[0])}, expected a trace: 'scr_crit-trace {VERSION}'")
        if lines[-2:] != ["end", ""]:
            raise self._fault(
                len(lines), "the trace is not whole: expected 'end' as its last line. The program was stopped"
            )
        for number, line in enumerate(lines[1:-2], start=2):
            keyword, *fields = line.split(" ")
            reader = self._readers.get(keyword)
            if reader is None:
                continue  # as the format asks of its readers
            try:
                given = _Fields(fields)
                reader(given)
                given.end()
            except ValueError as error:
                raise self._fault(number, f"{keyword}: {error}") from error
        self._check(len(lines) - 1)

    def found(self) -> dict[str, Any]:
        """Arguments of RankTrace."""
        once = {key: value for key, value in self._once.items() if key != "runs"}
        lists = {key: tuple(value) for key, value in self._lists.items()}
        return {
            **once,
            **lists,
            "blocks": self.blocks,
            "generations": self.generations,
            "files": self.files,
        }

    def _fault(self, line: int, what: str) -> TraceError:
        return TraceError(what, path=self._path, key=f"line {line}")

    def _check(self, line: int) -> None:
        for key, keyword in (
            ("tool", "tool"),
            ("program", "program"),
            ("window", "window"),
            ("runs", "runs"),
        ):
            if key not in self._once:
                raise self._fault(line, f"the trace has no line {keyword!r}, expected one")
        for file in self.files.values():
            if file.generation not in self.generations:
                raise self._fault(
                    line, f"file {file.number} is of generation {file.generation}: there is none"
                )
        for root in self._lists["roots"]:
            if root.block not in self.blocks:
                raise self._fault(line, f"root {root.address:x} is of block {root.block}: there is none")

    def _set(self, **values: Any) -> None:
        for key, value in values.items():
            if key in self._once:
                raise ValueError("found this line twice, expected it once")
            self._once[key] = value

    @staticmethod
    def _add(table: dict[int, _Numbered], one: _Numbered) -> None:
        if one.number in table:
            raise ValueError(f"found number {one.number} twice, expected each once")
        table[one.number] = one

    # One reader a keyword.

    def _tool(self, fields: _Fields) -> None:
        tool = fields.text("the tool's version")
        fields.choice("a word", ["valgrind"])
        self._set(tool=tool, valgrind=fields.text("Valgrind's version"))

    def _program(self, fields: _Fields) -> None:
        self._set(program=fields.text("the program's path"), arguments=fields.rest())

    def _rank(self, fields: _Fields) -> None:
        rank = fields.number("the rank", most=2**31 - 1)
        self._set(rank=rank, ranks=fields.number("the number of ranks", least=rank + 1, most=2**31))

    def _object(self, fields: _Fields) -> None:
        found = TracedObject(
            fields.text("a path"), *(fields.hex(what) for what in ("bias", "lowest", "highest"))
        )
        if found.lowest > found.highest:
            raise ValueError(
                f"found lowest {found.lowest:x} > highest {found.highest:x}, expected them in order"
            )
        self._lists["objects"].append(found)

    def _block(self, fields: _Fields) -> None:
        number = fields.number("the block's number", most=_MOST_BLOCKS)
        kind = cast(Any, fields.choice("its kind", ["heap", "mapping", "stack", "static"]))
        address, nbytes = fields.hex("its address"), fields.number("its bytes")
        if address + nbytes > _LARGEST + 1:
            raise ValueError(f"found {nbytes} bytes at {address:x}, expected an end within 64 bits")
        self._add(self.blocks, Block(number, kind, address, nbytes, tuple(map(_frame, fields.rest()))))

    def _root(self, fields: _Fields) -> None:
        address, block = fields.hex("an address"), fields.number("a block", most=_MOST_BLOCKS)
        self._lists["roots"].append(Root(address, block, fields.bytes("its memory", 8, 256)))

    def _generation(self, fields: _Fields) -> None:
        number = fields.number("the generation's number", most=_MOST_FILES)
        kind = cast(Any, fields.choice("its kind", ["output", "restart", "dump"]))
        self._add(self.generations, Generation(number, kind, fields.text("the dataset's name")))

    def _file(self, fields: _Fields) -> None:
        number = fields.number("the file's number", most=_MOST_FILES)
        generation = fields.number("its generation", most=_MOST_FILES)
        name, path = fields.text("its name"), fields.text("its path")
        found = TracedFile(number, generation, name, path, fields.number("its size", most=2**63 - 1))
        self._add(self.files, found)

    def _step(self, fields: _Fields) -> None:
        counts = (fields.number(what) for what in ("the step", "undecided bytes", "decided bytes"))
        self._lists["steps"].append(Step(*counts))

    def _warning(self, fields: _Fields) -> None:
        self._lists["warnings"].append(fields.text("a warning"))

    def _window(self, fields: _Fields) -> None:
        end = cast(Any, fields.choice("how the trace ended", ["end", "flat", "finalize"]))
        code = fields.number("the exit code", least=-1, most=2**31 - 1)
        self._set(window=Window(end, code, fields.number("steps")))

    def _runs(self, fields: _Fields) -> None:
        self._set(runs=fields.number("the number of records"))


def _shown(text: str) -> str:
    """A text of unknown origin in a message."""
    return repr(text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + "...")


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise StorageError(
            f"cannot read the trace: {error.strerror}", errno=error.errno, path=path
        ) from error


# The records ---------------------------------------------------------------------------------------------


def _records(path: Path, parser: _Parser) -> tuple[NDArray[Any], NDArray[Any]]:
    content = _content(path)
    if len(content) != parser.records * RECORD.itemsize:
        raise TraceError(
            f"found {len(content)} bytes, expected {parser.records} records of {RECORD.itemsize}: "
            "the trace is not whole",
            path=path,
        )
    records = np.frombuffer(content, RECORD)
    _check_records(records, path, parser)
    return _sorted(records[records["kind"] == _SOURCE]), _sorted(records[records["kind"] == _STATE])


def _sorted(records: NDArray[Any]) -> NDArray[Any]:
    return records[np.lexsort((records["offset"], records["file"]))]


def _check_records(records: NDArray[Any], path: Path, parser: _Parser) -> None:
    def require(good: NDArray[np.bool_], field_name: str, expected: str) -> None:
        if not good.all():
            number = int(np.argmin(good))
            raise TraceError(
                f"found {field_name} {records[field_name][number]}, expected {expected}",
                path=path,
                offset=number * RECORD.itemsize,
                key=f"record {number}",
            )

    kinds, states = records["kind"], records["code"] & 0xFF
    is_state = kinds == _STATE
    require(is_state | (kinds == _SOURCE), "kind", "1 (source) or 2 (state)")
    numbers = np.array(sorted(parser.files), np.uint32)
    require(np.isin(records["file"], numbers), "file", "a file of the trace")
    sizes = np.array([parser.files[int(number)].size for number in numbers], np.uint64)
    size = sizes[np.searchsorted(numbers, records["file"])] if len(numbers) else np.zeros(0, np.uint64)
    require(records["offset"] < size, "offset", "a place within the file")
    require(records["length"] > 0, "length", "at least 1")
    require(records["length"] <= size - records["offset"], "length", "an end within the file")
    good_state = np.isin(states, (0, 2, 3)) & (records["code"] >> 8 < len(Reason))
    require(~is_state | good_state, "code", "a state (0, 2, 3) and a reason (0 to 7)")
    good_block = np.isin(records["block"], [-1, *parser.blocks])
    require(is_state | good_block, "block", "a block of the trace, or -1")
    last = records["address"] + (records["length"] - np.uint64(1))
    require(is_state | (last >= records["address"]), "address", "an end within 64 bits")


def _of_file(records: NDArray[Any], file: int) -> NDArray[Any]:
    first, last = (int(np.searchsorted(records["file"], file, side)) for side in ("left", "right"))
    return records[first:last]
