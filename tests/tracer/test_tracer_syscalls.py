"""Each system call that moves bytes between memory and files, in its own small case.

States are worked out by hand. One run for each program of programs/; a case is a file of the checkpoint. Of
an array of 256 bytes touch() reads the first 100, overwrites the next 100 and leaves 56.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from trace_reader import File, Trace, read_trace
from tracer_tool import scr_environment

PROGRAMS = Path(__file__).resolve().parent / "programs"
HANG = 300
READ, WRITTEN, LEFT = (100, "c"), (100, "d"), (56, "u")
TOUCHED = [READ, WRITTEN, LEFT]


def run_case(
    name: str, compile_program: Callable[..., Path], tool: Any, folder: Path, *arguments: str
) -> tuple[Trace, str, str]:
    """Compile and trace a program once; the trace, and what it printed."""
    program = compile_program(PROGRAMS / f"{name}.c", "-O1", "-Wall", "-Wextra", f"-I{PROGRAMS}", "-pthread")
    done = subprocess.run(
        [*tool.command(folder / "trace"), str(program), *arguments],
        env={**tool.environment(), **scr_environment(folder)},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=HANG,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return read_trace(folder / "trace"), done.stdout, done.stderr


@pytest.fixture(scope="module")
def output(
    compile_program: Callable[..., Path], tool: Any, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Trace, str, str]:
    """A run of output_cases.c."""
    return run_case("output_cases", compile_program, tool, tmp_path_factory.mktemp("output"))


@pytest.fixture(scope="module")
def track(
    compile_program: Callable[..., Path], tool: Any, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Trace, str, str]:
    """A run of track_cases.c."""
    folder = tmp_path_factory.mktemp("track")
    return run_case("track_cases", compile_program, tool, folder, str(folder / "scratch"))


OUTPUT: dict[str, list[tuple[int, str]]] = {
    "plain": TOUCHED,
    "pwrite": [(72, "d"), (56, "u"), (100, "c"), (28, "d")],  # halves exchanged
    "writev": [(50, "c"), (100, "d"), (56, "u"), (50, "c")],  # bytes 50.. first
    "pwritev": [(10, "-"), *TOUCHED],  # at offset 10
    "pwritev2": TOUCHED,  # at the position, at an offset, appended
    "append": TOUCHED,
    "dup": TOUCHED,
    "ftruncate": [(100, "c"), (50, "d"), (10, "-")],
    "o_trunc": [(100, "c"), (90, "d")],
    "overwritten": [(100, "c"), (30, "u"), (70, "d"), (56, "u")],  # 90..130 from another array, read to 100
    "renamed": TOUCHED,
    "linked": TOUCHED,
    "beside": [(100, "c"), (28, "d"), (128, "c")],  # the second half went to another file, too
    "copied": TOUCHED,
    "sendfile": [(84, "c"), (100, "d"), (16, "u")],
    "copy_file_range": [(4, "-"), (100, "d")],
    "unseen": [(64, "c")],
    "mapped": [*TOUCHED, (44, "-")],
    "kept_mapped": [(100, "c"), (50, "u"), (10, "c"), (96, "u")],  # 150..160 were read in the mapping
    "stdio": TOUCHED,
    "packed": [(56, "u"), (100, "d"), (100, "c")],  # backwards
    "staging_left": [(100, "c"), (156, "u")],  # the buffer still holds what was overwritten in the array
    "staging_reused": TOUCHED,
    "grown": TOUCHED,
    "given_back": [(256, "c")],  # freed in the bracket: what became of its value cannot be known
    # freed and unmapped after the last mark: that alone makes nothing dead, the program merely ended
    "freed_later": TOUCHED,
    "grown_later": TOUCHED,
    "to_nothing": TOUCHED,  # realloc to 0 bytes frees
    "mapping": TOUCHED,
    "remapped": [(50, "d"), (206, "c")],
    "shared": [(256, "c")],
    "threads": TOUCHED,
    "summed": [(100, "c"), (50, "d"), (106, "c")],
    "computed": [(100, "c"), (156, "u")],  # 64 computed; a copy is left of the others
    "read_again": TOUCHED,
    "from_back": [(84, "c"), (100, "d"), (56, "u")],
    "relative": TOUCHED,
    "fresh": [(156, "c"), (100, "d")],  # the first 56 are zeros of the kernel's
    "zeroed": [(156, "c"), (100, "d")],  # of calloc's
    "sieved": [(10, "-"), (20, "c"), (70, "-"), (50, "d"), (106, "-")],  # read, changed in part, written
    "piped": [(100, "c"), (100, "d"), (56, "c")],
    # 50 of the last 56 were given to others, from a buffer or in memory that was then overwritten
    "socket": [(100, "c"), (100, "d"), (50, "c"), (6, "u")],
    "device": [(100, "c"), (100, "d"), (50, "c"), (6, "u")],
    "memory": [(100, "c"), (100, "d"), (50, "c"), (6, "u")],
    "segment": [(100, "c"), (100, "d"), (50, "c"), (6, "u")],
    "mapped_twice": TOUCHED,
    # a register held 8 of the last 56 as a signal came
    "signal": [(100, "c"), (100, "d"), (8, "c"), (48, "u")],
    "held": [(100, "c"), (100, "d"), (8, "c"), (48, "u")],
}


@pytest.mark.parametrize("name", OUTPUT)
def test_bytes_of_a_checkpoint_are_followed_to_their_file(output: tuple[Trace, str, str], name: str) -> None:
    assert output[0].file(f"ck/{name}").runs() == OUTPUT[name]


def test_a_hole_that_was_punched_is_critical(output: tuple[Trace, str, str]) -> None:
    trace, printed, _ = output
    if "no punch" in printed:
        pytest.skip("this file system punches no holes: run the tests on ext4, XFS or tmpfs")
    file = trace.file("ck/punched")
    assert file.runs() == [(128, "c"), (72, "d"), (56, "u")]
    assert file.reasons(64) == {"derived"} and file.reasons(63) == {"read"}


def test_memory_that_other_processes_are_given(output: tuple[Trace, str, str]) -> None:
    trace, printed, _ = output
    if "no process_vm" in printed:
        pytest.skip("process_vm_readv and its kin are forbidden here: run the tests where ptrace is allowed")
    given, taken = trace.file("ck/vm_given"), trace.file("ck/vm_taken")
    assert given.runs() == taken.runs() == [(100, "c"), (100, "d"), (50, "c"), (6, "u")]
    assert given.reasons(200) == {"used"} and taken.reasons(200) == {"derived"}
    assert any("process_vm_readv" in " ".join(fields) for fields in trace.of("warning"))


def test_only_routed_files_are_named(output: tuple[Trace, str, str]) -> None:
    names = {file.name for file in output[0].files}
    assert names == {f"ck/{name}" for name in [*OUTPUT, "punched", "vm_given", "vm_taken"]}


@pytest.mark.parametrize(
    ("name", "offset", "reasons"),
    [
        ("beside", 255, {"used"}),
        ("piped", 255, {"used"}),
        ("memory", 249, {"used"}),
        ("signal", 200, {"derived"}),
        ("held", 207, {"used"}),
        ("summed", 255, {"used"}),
        ("computed", 0, {"derived"}),
        ("unseen", 0, {"derived"}),
        ("fresh", 55, {"derived"}),
        ("fresh", 56, {"read"}),
        ("zeroed", 55, {"derived"}),
        ("given_back", 0, {"derived"}),
        ("freed_later", 150, {"written"}),
        ("freed_later", 250, {"never"}),
        ("to_nothing", 250, {"never"}),
        ("mapping", 250, {"never"}),
        ("remapped", 0, {"written"}),
        ("remapped", 60, {"moved"}),
        ("shared", 0, {"shared"}),
        ("plain", 0, {"read"}),
        ("plain", 150, {"written"}),
        ("plain", 250, {"never"}),
        ("staging_left", 150, {"written", "never"}),
    ],
)
def test_reasons(output: tuple[Trace, str, str], name: str, offset: int, reasons: set[str]) -> None:
    assert output[0].file(f"ck/{name}").reasons(offset) == reasons


def test_shared_memory_is_warned_of(output: tuple[Trace, str, str]) -> None:
    trace, _, errors = output
    assert any("other processes" in " ".join(fields) for fields in trace.of("warning"))
    assert "other processes" in errors


def test_blocks_of_a_bracket_are_those_at_its_begin(output: tuple[Trace, str, str]) -> None:
    """Grown was moved by realloc, given_back freed, before the bracket's end."""
    trace = output[0]
    for name in ("grown", "given_back", "freed_later", "grown_later", "to_nothing"):
        ((offset, length, address, block),) = trace.file(f"ck/{name}").sources()
        (fields,) = [f for f in trace.of("block") if f[0] == str(block)]
        assert (offset, length) == (0, 256)
        assert fields[1:4] == ["heap", f"{address:x}", "256"], name
        assert fields[4].startswith("block@"), name


def test_every_byte_of_a_file_without_a_gap_has_a_state(output: tuple[Trace, str, str]) -> None:
    gaps = {"ck/pwritev", "ck/ftruncate", "ck/copy_file_range", "ck/mapped", "ck/sieved"}
    for file in output[0].files:
        assert ("-" in file.states()) == (file.name in gaps), file.name


TRACK = {
    "write": (0, [(10, "u"), (90, "c"), (156, "u")]),
    "pwrite": (1, [(50, "c"), (206, "u")]),
    "writev": (2, [(20, "c"), (20, "u"), (20, "c"), (196, "u")]),
    "pread at the end of a file": (3, [(20, "u"), (10, "d"), (226, "u")]),
    "read at the end of a file": (4, [(5, "d"), (251, "u")]),
    "pwritev": (5, [(10, "c"), (40, "u"), (10, "c"), (196, "u")]),
    "preadv": (6, [(4, "d"), (96, "u"), (6, "d"), (150, "u")]),
    "preadv2": (7, [(4, "d"), (96, "u"), (4, "d"), (152, "u")]),
    "readv": (8, [(4, "d"), (96, "u"), (6, "d"), (150, "u")]),
    "a read that is interrupted": (9, [(10, "d"), (246, "u")]),
    "sendmsg": (10, [(30, "c"), (226, "u")]),
    "recvmsg": (11, [(10, "d"), (90, "u"), (20, "d"), (136, "u")]),
    "a read that fails": (13, [(256, "u")]),
}


@pytest.mark.parametrize("name", TRACK)
def test_buffers_of_system_calls_are_accesses(track: tuple[Trace, str, str], name: str) -> None:
    number, expected = TRACK[name]
    assert track[0].file(f"ck/{number}").runs() == expected


def test_results_and_texts_of_system_calls(track: tuple[Trace, str, str]) -> None:
    trace, printed, _ = track
    path, status = (int(word) for word in printed.split())
    assert trace.file("ck/12").runs() == [(status, "d"), (256 - status, "u")]
    assert trace.file("ck/14").runs() == [(path, "d"), (256 - path, "u")]
    length = len("a path that is not there") + 1
    assert trace.file("ck/text").runs() == [(length, "c"), (256 - length, "u")]
    vector: File = trace.file("ck/vector")  # it was overwritten before the call read it
    assert vector.runs() == [(32, "d"), (224, "u")]
