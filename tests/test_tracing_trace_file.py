"""``scr_critplugin.tracing.trace_file``: a trace is read exactly, or refused with the place of the fault."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from traces import CRITICAL, DEAD, READ, UNUSED, WRITTEN, TraceBuilder, escaped

from scr_critplugin.errors import CritError, StorageError, TraceError
from scr_critplugin.tracing.trace_file import (
    Frame,
    Reason,
    read_trace,
    reason_of,
    state_of,
    unescape,
)


def _whole() -> TraceBuilder:
    trace = TraceBuilder(rank=1, ranks=4)
    trace.lines.append("object /nowhere/app 555000 555040 556000")
    block = trace.block(0x1000, 800, "make@app(a b.c:57)|main@app")
    trace.lines.append(f"root 555100 {block} {struct.pack('<Q', 0x1000).hex()}")
    generation = trace.generation(dataset="ckpt 1%")
    file = trace.file(generation, "ckpt/f.1", 1000, "/p/ckpt/f.1")
    trace.source(file, 72, 800, 0x1000, block)
    trace.state(file, 172, 700, DEAD, WRITTEN)
    trace.state(file, 72, 100, CRITICAL, READ)
    trace.step(1, 800, 0)
    trace.warning("two words")
    return trace


def test_a_trace_is_read_as_it_was_written(tmp_path: Path) -> None:
    found = read_trace(_whole().save(tmp_path / "rank-1"))
    assert (found.rank, found.ranks, found.tool, found.valgrind) == (1, 4, "0.1.0", "3.19.0")
    assert found.arguments == ("app", "--steps", "3")
    assert found.blocks[0].stack == (Frame("make", "app", "a b.c", 57), Frame("main", "app", "", 0))
    assert (found.blocks[0].address, found.blocks[0].nbytes) == (0x1000, 800)
    assert found.roots[0].memory == struct.pack("<Q", 0x1000)
    assert found.objects[0].bias == 0x555000
    assert found.generations[0].dataset == "ckpt 1%"
    assert (found.files[0].name, found.files[0].path, found.files[0].size) == (
        "ckpt/f.1",
        "/p/ckpt/f.1",
        1000,
    )
    assert found.warnings == ("two words",)
    assert (found.window.end, found.window.exit_code, found.window.steps) == ("end", 0, 3)
    assert found.sources_of(0)[["offset", "length", "address", "block"]].tolist() == [(72, 800, 0x1000, 0)]
    # Sorted by offset, whatever order they came in.
    assert found.states_of(0)["offset"].tolist() == [72, 172]
    assert state_of(found.states).tolist() == [CRITICAL, DEAD]
    assert reason_of(found.states).tolist() == [Reason.READ, Reason.WRITTEN]
    assert len(found.states_of(7)) == 0


def test_a_cpp_frame_is_split_at_its_last_at(tmp_path: Path) -> None:
    trace = TraceBuilder()
    trace.block(16, 8, "f<a@b>(int)@lib@2.so(x:y.cpp:3)|?@app|nothing known")
    frames = read_trace(trace.save(tmp_path / "t")).blocks[0].stack
    assert frames == (
        Frame("f<a@b>(int)@lib", "2.so", "x:y.cpp", 3),
        Frame("", "app", "", 0),
        Frame("nothing known", "", "", 0),
    )


@given(st.text())
def test_every_text_survives(text: str) -> None:
    assert unescape(escaped(text)) == text


def _changed(text: str, line: int, to: str) -> str:
    lines = text.split("\n")
    lines[line - 1] = to
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("line", "to", "expected"),
    [
        (1, "scr_crit-trace 2", "scr_crit-trace 1"),
        (2, "tool 1", "field"),
        (2, "colour red", "no line 'tool'"),
        (4, "rank 4 4", "from 5"),
        (4, "rank -1 4", "from 0"),
        (5, "object app 0 9 8", "in order"),
        (5, "object app 0 xyz 8", "hexadecimal"),
        (6, "block 0 heap 10 99999999999999999999", "from 0"),
        (6, "block 0 heap ffffffffffffffff 2", "64 bits"),
        (6, "block 0 pile 10 8", "heap"),
        (7, "root 10 3 0011223344556677", "none"),
        (7, "root 10 0 001122", "8 to 256"),
        (9, "file 0 7 a a 10", "generation 7"),
        (9, "file 0 0 a% a 10", "hexadecimal digits"),
        (9, "file 0 0 a a 10 11", "expected 5"),
        (10, "step one 2 3", "from 0"),
        (12, "window end 0", "steps"),
        (12, "warning x", "no line 'window'"),
        (13, "runs 4", "records"),
        (14, "ende", "not whole"),
    ],
)
def test_a_fault_is_named_with_its_place(tmp_path: Path, line: int, to: str, expected: str) -> None:
    prefix = _whole().save(tmp_path / "t")
    path = prefix.with_name("t.trace")
    path.write_text(_changed(path.read_text(), line, to))
    with pytest.raises(TraceError, match=expected) as fault:
        read_trace(prefix)
    assert fault.value.path is not None and fault.value.path.startswith(str(tmp_path))


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        ((3, 0, 0, 1, 0, 0, -1), "kind 3"),
        ((1, 9, 0, 1, 0, 0, -1), "file 9"),
        ((1, 0, 1000, 1, 0, 0, -1), "offset 1000"),
        ((1, 0, 999, 2, 0, 0, -1), "length 2"),
        ((1, 0, 1, 2**64 - 1, 0, 0, -1), "length"),
        ((1, 0, 0, 0, 0, 0, -1), "length 0"),
        ((1, 0, 0, 10, 2**64 - 5, 0, -1), "64 bits"),
        ((1, 0, 0, 1, 0, 0, 5), "block 5"),
        ((1, 0, 0, 1, 0, 0, -2), "block -2"),
        ((2, 0, 0, 1, 0, 1, -1), "code 1"),
        ((2, 0, 0, 1, 0, 8 << 8, -1), "code"),
    ],
)
def test_a_record_that_does_not_fit_is_refused(
    tmp_path: Path, record: tuple[int, ...], expected: str
) -> None:
    trace = _whole()
    trace.records.insert(1, struct.pack("<IIQQQIi", *record))
    with pytest.raises(TraceError, match=expected) as fault:
        read_trace(trace.save(tmp_path / "t"))
    assert (fault.value.key, fault.value.offset) == ("record 1", 40)


def test_no_file_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="No such file"):
        read_trace(tmp_path / "t")


def test_trace_without_records_file(tmp_path: Path) -> None:
    prefix = _whole().save(tmp_path / "t")
    prefix.with_name("t.runs").unlink()
    with pytest.raises(StorageError):
        read_trace(prefix)


@given(data=st.data())
def test_whatever_is_in_the_files_the_reader_survives(data: st.DataObject, tmp_path_factory) -> None:
    """Cut, changed and mixed content gives a trace whose parts agree, or an error of ours."""
    folder = tmp_path_factory.mktemp("fuzz")
    trace = _whole()
    trace.state(0, 900, 10, UNUSED, 6)
    prefix = trace.save(folder / "t")
    for ending in (".trace", ".runs"):
        path = prefix.with_name("t" + ending)
        content = bytearray(path.read_bytes())
        for _ in range(data.draw(st.integers(0, 3))):
            at = data.draw(st.integers(0, max(0, len(content) - 1)))
            match data.draw(st.sampled_from(["cut", "set", "insert", "swap"])):
                case "cut":
                    del content[at:]
                case "set":
                    content[at : at + 1] = data.draw(st.binary(min_size=1, max_size=1))
                case "insert":
                    content[at:at] = data.draw(st.binary(max_size=30))
                case "swap":
                    lines = bytes(content).split(b"\n")
                    one = data.draw(st.integers(0, len(lines) - 1))
                    lines.insert(data.draw(st.integers(0, len(lines))), lines.pop(one))
                    content = bytearray(b"\n".join(lines))
        path.write_bytes(content)
    try:
        found = read_trace(prefix)
    except CritError:
        return
    for records in (found.sources, found.states):
        for record in records:
            size = found.files[int(record["file"])].size
            assert int(record["offset"]) + int(record["length"]) <= size
    assert set(np.unique(found.sources["block"])) <= {-1, *found.blocks}
