"""Traces of small programs: files, generations, blocks, dumps, restarts. States are worked out by hand.

The programs are in programs/; each case there has an array of 256 bytes, of which touch() reads the first
100, overwrites the next 100 and leaves 56.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from trace_reader import Trace, read_trace
from tracer_tool import valgrind_program

HERE = Path(__file__).resolve().parent
PROGRAMS = HERE / "programs"
TOUCHED = "c" * 100 + "d" * 100 + "u" * 56


def compile_case(compile_program: Callable[..., Path], name: str) -> Path:
    """A program of programs/."""
    return compile_program(PROGRAMS / f"{name}.c", "-O1", f"-I{PROGRAMS}", "-pthread")


def runs(*pieces: tuple[int, str]) -> list[tuple[int, str]]:
    """The pieces without those of no length."""
    return [piece for piece in pieces if piece[0]]


@pytest.fixture
def valgrind_headers() -> str:
    """The compiler's option for Valgrind's client requests."""
    prefix = Path(valgrind_program()).resolve().parent.parent
    folder = prefix / "include" / "valgrind"
    if not (folder / "valgrind.h").exists():
        pytest.skip(f"no {folder}/valgrind.h: install Valgrind's headers")
    return f"-I{folder}"


@pytest.fixture
def traced_case(compile_program: Callable[..., Path], run_traced: Callable[..., Any]) -> Callable[..., Trace]:
    """Compile and trace a program; returns the trace."""

    def run(name: str, *arguments: str, **keywords: Any) -> Trace:
        return run_traced(compile_case(compile_program, name), *arguments, **keywords).trace()

    return run


def test_each_checkpoint_has_its_own_states(traced_case: Callable[..., Trace]) -> None:
    trace = traced_case("generations")
    assert [fields[:3] for fields in trace.of("generation")] == [
        ["0", "output", "first"],
        ["1", "output", "second"],
        ["2", "output", "third"],
    ]
    states = {(f.generation, f.name.split("/")[1]): f.runs() for f in trace.files}
    assert states == {
        # read, overwritten, read and overwritten after the second, overwritten after the third
        (0, "kept"): [(10, "c"), (10, "d"), (10, "c"), (226, "d")],
        (1, "kept"): [(30, "c"), (226, "d")],
        (2, "kept"): [(256, "d")],
        # its value moved within the second bracket
        (0, "moved"): [(100, "c"), (100, "d"), (56, "u")],
        (0, "rewritten"): [(256, "d")],
        (1, "rewritten"): [(256, "c")],
        (2, "rewritten"): [(256, "u")],
        # 50 were added up within the second bracket
        (0, "summed"): [(50, "c"), (206, "u")],
        (1, "summed"): [(50, "c"), (206, "u")],
        (2, "summed"): [(256, "u")],
        # 10 were read in the staging buffer, after the second
        (0, "staged"): [(50, "d"), (10, "c"), (40, "d"), (156, "u")],
        (1, "staged"): [(50, "d"), (10, "c"), (40, "d"), (156, "u")],
        (2, "staged"): [(256, "u")],
        # changed places with another array within the second bracket; 30 were read there
        (0, "swapped_a"): [(30, "c"), (226, "d")],
        # moved by realloc within the second bracket
        (0, "grown"): [(100, "c"), (100, "d"), (56, "u")],
    }
    assert trace.file("second/summed").reasons(0) == {"used"}
    assert trace.file("first/summed").reasons(0) == {"read"}
    assert trace.file("second/rewritten").reasons(0) == {"derived"}


def test_steps_count_bytes_of_files_that_are_undecided(traced_case: Callable[..., Trace]) -> None:
    trace = traced_case("generations")
    # Seven files of 256 bytes; 10 bytes were read and 10 overwritten before the second question.
    assert trace.of("step")[0] == ["1", str(7 * 256 - 20), "20"]


def test_a_restart_and_a_checkpoint_after_it(
    compile_program: Callable[..., Path], run_traced: Callable[..., Any], tmp_path: Path
) -> None:
    program = compile_case(compile_program, "restart_cases")
    from_scratch = run_traced(program, "write").trace()
    assert not from_scratch.of("generation") or from_scratch.of("generation")[0][1] == "output"
    trace = run_traced(program).trace()
    assert trace.of("generation") == [["0", "restart", "old"], ["1", "output", "new"]]
    got = {f.name.split("/")[1]: f.runs() for f in trace.files if f.generation == 0}
    touched = [(100, "c"), (100, "d"), (56, "u")]
    expected = {
        # what is left of it is read (10) and overwritten (10) after the next checkpoint
        "read": [(100, "c"), (100, "d"), (30, "u"), (10, "c"), (10, "d"), (6, "u")],
        "pread": [(72, "d"), (56, "u"), (100, "c"), (28, "d")],
        "readv": touched,
        "preadv": [(30, "c"), (226, "-")],
        "preadv2": [(6, "-"), (100, "c"), (100, "d"), (50, "u")],
        "mmap": touched,
        "shared": touched,
        "stdio": touched,
        # byte 3 decides whether this is a file of ours; the other 15 are dropped
        "header": [(3, "d"), (1, "c"), (12, "d"), (84, "c"), (100, "d"), (56, "u")],
        "copied": [(100, "d"), (100, "c"), (56, "d")],
        "again": [(100, "d"), (100, "c"), (56, "-")],
        "part": [(150, "-"), (20, "c"), (86, "-")],
        "sent": [(10, "-"), (30, "c"), (216, "-")],
        "threads": touched,
        "left": [(30, "d"), (70, "c"), (100, "d"), (56, "u")],
        "moved": touched,
        "freed": [(256, "d")],
    }
    assert got == expected
    assert trace.file("old/header", 0).reasons(3) == {"used"}
    assert trace.file("old/freed", 0).reasons(0) == {"gone"}
    new = trace.file("new/read", 1)
    assert new.runs() == [(90, "u"), (20, "c"), (120, "u"), (10, "c"), (10, "d"), (6, "u")]


def test_sources_of_a_restart_are_where_the_bytes_came_to_lie(
    compile_program: Callable[..., Path], run_traced: Callable[..., Any]
) -> None:
    program = compile_case(compile_program, "restart_cases")
    run_traced(program, "write")
    trace = run_traced(program).trace()
    ((offset, length, address, block),) = trace.file("old/moved", 0).sources()
    assert (offset, length) == (0, 256)
    (fields,) = [f for f in trace.of("block") if f[0] == str(block)]
    assert fields[1:4] == ["heap", f"{address:x}", "100000"]


def test_blocks_roots_and_names(compile_program: Callable[..., Path], run_traced: Callable[..., Any]) -> None:
    program = compile_case(compile_program, "roots")
    done = run_traced(program)
    trace = done.trace()
    printed = [int(text, 16) for text in done.stdout.split()]
    pointer, data, local, number, on_stack, aligned, pointer_at, data_at = printed
    (file,) = trace.files
    assert file.name == "ck/a b%c" and file.path.endswith("/ck/a b%c") and file.size == 1840
    blocks = {int(fields[0]): fields for fields in trace.of("block")}
    by_address = {int(fields[2], 16): int(fields[0]) for fields in blocks.values()}
    assert file.sources() == [
        (0, 800, pointer, by_address[pointer]),
        (800, 480, data, by_address[data]),
        (1280, 80, local, by_address[local]),
        (1360, 4, number, -1),
        (1364, 64, on_stack, -1),
        (1428, 412, aligned + 100, by_address[aligned]),
    ]
    for address, size in ((pointer, 800), (data, 480), (local, 80), (aligned, 512)):
        fields = blocks[by_address[address]]
        assert fields[1:4] == ["heap", f"{address:x}", str(size)]
        if address != aligned:  # malloc itself is left out
            assert fields[4].startswith(f"allocate@{program}(roots.c:"), fields
        assert any(frame.startswith(f"main@{program}(roots.c:") for frame in fields[4:])
    roots = {int(address, 16): (int(block), text) for address, block, text in trace.of("root")}
    assert roots[pointer_at][0] == by_address[pointer]
    block, text = roots[data_at]
    assert block == by_address[data]
    memory = bytes.fromhex(text)
    assert int.from_bytes(memory[:8], "little") == data
    assert [int.from_bytes(memory[8 * i : 8 * i + 8], "little") for i in (1, 2, 3)] == [4, 5, 6]
    assert by_address[local] not in {block for block, _ in roots.values()}
    assert [fields[0] for fields in trace.of("program")] == [str(program)]
    objects = {fields[0]: [int(text, 16) for text in fields[1:]] for fields in trace.of("object")}
    bias, lowest, highest = objects[str(program)]
    assert lowest <= min(pointer_at, data_at, number) and max(pointer_at, data_at, number) < highest
    symbols = subprocess.run(["nm", str(program)], capture_output=True, text=True, check=True).stdout
    (linked,) = [int(line.split()[0], 16) for line in symbols.splitlines() if line.endswith(" pointer")]
    assert linked + bias == pointer_at


@pytest.mark.parametrize("pattern", ["dump.*", "*/dump.?"])
def test_dumps_are_found_by_name(traced_case: Callable[..., Trace], tmp_path: Path, pattern: str) -> None:
    trace = traced_case("dumps", str(tmp_path), options=[f"--dump={pattern}"])
    assert [fields[1] for fields in trace.of("generation")] == ["dump", "dump"]
    got = {Path(f.path).name: (f.generation, f.states()) for f in trace.files}
    assert got == {
        "dump.1": (0, TOUCHED + "c" * 10),  # the first 10 bytes again, through another descriptor
        "dump.2": (0, "c" * 100 + "d" * 100 + "c" * 10 + "u" * 46),
        # Overwritten in the array; but fclose frees its buffer, which holds a copy, after the close that
        # ends the last dump: gone after the last mark.
        "dump.3": (1, "u" * 256),
    }


def test_without_a_pattern_there_are_no_dumps(traced_case: Callable[..., Trace], tmp_path: Path) -> None:
    trace = traced_case("dumps", str(tmp_path))
    assert trace.files == [] and trace.of("generation") == []


def test_a_question_without_a_checkpoint_makes_none(
    compile_program: Callable[..., Path], run_traced: Callable[..., Any]
) -> None:
    """Between the answer 1 and the next question copies are followed; that counts for the last checkpoint."""
    program = compile_case(compile_program, "question")
    trace = run_traced(program, environment={"SCR_CHECKPOINT_INTERVAL": "1"}).trace()
    assert len(trace.of("generation")) == 1
    assert trace.file("ck/a").runs() == [
        (10, "c"), (10, "d"), (10, "c"), (80, "d"), (90, "u"), (10, "c"), (46, "u")
    ]  # fmt: skip


def test_what_is_read_or_written_for_other_processes_is_critical(
    compile_program: Callable[..., Path], run_traced: Callable[..., Any], valgrind_headers: str
) -> None:
    headers = (f"-I{PROGRAMS}", f"-I{HERE.parents[1] / 'cbindings' / 'tracer'}", valgrind_headers)
    program = compile_program(PROGRAMS / "passed_on.c", "-O1", *headers)
    trace = run_traced(program).trace()
    assert trace.file("ck/apart").runs() == [(256, "c")]
    assert trace.file("ck/apart").reasons(0) == {"derived"}
    assert trace.file("ck/own").runs() == [(256, "d")]
    assert trace.file("ck/back").runs() == [(100, "c"), (156, "d")]
    trace = run_traced(program, "restart").trace()
    assert trace.file("ck/apart").runs() == [(256, "c")]
    assert trace.file("ck/apart").reasons(0) == {"used"}
    assert trace.file("ck/own").runs() == [(256, "d")]


LIFETIMES = {
    "in_step": "d",  # freed, and a question follows
    "unmapped": "d",
    "asked": "d",  # freed between the last question and the Start_output that followed it
    "moved": "d",  # reallocated in the last bracket, overwritten afterwards: its old place does not count
    "bracket": "u",  # freed in the last bracket, and nothing follows
    "after": "u",  # freed after it
    "finalized": "u",  # freed after SCR_Finalize, as destructors do
    "at_exit": "u",
}


@pytest.mark.parametrize("last", ["checkpoint", "dump"])
def test_memory_that_goes_is_dead_only_if_the_program_goes_on(
    traced_case: Callable[..., Trace], tmp_path: Path, last: str
) -> None:
    trace = traced_case(
        "lifetimes",
        last,
        str(tmp_path),
        options=["--dump=*.dump"],
        environment={"SCR_CHECKPOINT_INTERVAL": "1"},
    )
    got = {f.name.split("/")[1]: f.runs() for f in trace.files if f.generation == 0}
    expected = {name: [(256, state)] for name, state in LIFETIMES.items()}
    if last == "dump":  # nobody asks there
        del expected["asked"], got["asked"]
    assert got == expected
    assert trace.file("first/in_step", 0).reasons(0) == {"gone"}
    assert trace.file("first/at_exit", 0).reasons(0) == {"never"}


def test_memory_that_goes_after_a_restart_and_nothing_more(traced_case: Callable[..., Trace]) -> None:
    traced_case("lifetimes", "checkpoint", "", environment={"SCR_CHECKPOINT_INTERVAL": "1"})
    trace = traced_case("lifetimes", "restart", "")
    assert [fields[1] for fields in trace.of("generation")] == ["restart"]
    assert trace.file("second/one").runs() == [(1, "u")]
    assert trace.file("second/one").reasons(0) == {"never"}


def test_a_value_that_is_written_often_and_held_often(
    compile_program: Callable[..., Path], run_traced: Callable[..., Any]
) -> None:
    """100000 copies of 8 bytes, all of them written: the work is the sum of both, not the product."""
    program = compile_program(
        """#include "cases.h"
        static volatile double one[1];
        static double many[100000];
        int main(int argc, char **argv) {
            start(&argc, &argv);
            begin_checkpoint("ck");
            for (int i = 0; i < 100000; i++)
                many[i] = one[0];
            int fd = create(route("ck/many"));
            write_all(fd, many, sizeof many);
            close(fd);
            complete_checkpoint();
            read_bytes((unsigned char *)&many[99999], 0, 1);
            finish();
            return 0;
        }""",
        "-O0",
        f"-I{PROGRAMS}",
    )
    trace = run_traced(program).trace()
    # The first byte of the value was read, in one of its places; nobody accessed the other seven.
    assert trace.file("ck/many").states() == ("c" + 7 * "u") * 100000


def test_a_trace_has_its_name_only_when_it_is_whole(
    compile_program: Callable[..., Path], tool: Any, tmp_path: Path
) -> None:
    program = compile_program(
        """#include <unistd.h>
        int main(void) { if (write(1, "x", 1)) pause(); return 0; }"""
    )
    prefix = tmp_path / "t"
    with subprocess.Popen(
        [*tool.command(prefix), str(program)], env=tool.environment(), stdout=subprocess.PIPE
    ) as running:
        assert running.stdout is not None and running.stdout.read(1) == b"x"
        assert Path(f"{prefix}.trace.part").exists()
        running.kill()
    assert not Path(f"{prefix}.trace").exists() and not Path(f"{prefix}.runs").exists()


def test_children_write_nothing(compile_program: Callable[..., Path], run_traced: Callable[..., Any]) -> None:
    program = compile_program(
        """#include "cases.h"
        #include <sys/wait.h>
        static unsigned char a[BYTES];
        int main(int argc, char **argv) {
            int status;
            start(&argc, &argv);
            begin_checkpoint("ck");
            int fd = create(route("ck/a"));
            write_all(fd, a, BYTES);
            close(fd);
            complete_checkpoint();
            pid_t child = fork();
            if (child == 0) {
                read_bytes(a, 0, BYTES);
                exit(0);
            }
            MUST(waitpid(child, &status, 0) == child && status == 0);
            write_bytes(a, 0, 200);
            finish();
            return 0;
        }""",
        f"-I{PROGRAMS}",
    )
    trace = run_traced(program).trace()
    assert trace.file("ck/a").runs() == [(256, "c")]  # what the child reads is not seen


def test_a_trace_that_cannot_be_written_names_its_file(
    compile_program: Callable[..., Path], tool: Any, tmp_path: Path
) -> None:
    program = compile_program("int main(void) { return 0; }")
    missing = tmp_path / "no such folder" / "t"
    done = subprocess.run(
        [*tool.command(missing), str(program)], env=tool.environment(), capture_output=True, text=True
    )
    assert done.returncode != 0 and f"{missing}.trace" in done.stderr


def test_descriptors_that_a_program_closes_are_not_the_traces(
    compile_program: Callable[..., Path], run_traced: Callable[..., Any]
) -> None:
    program = compile_program(
        """#include <unistd.h>
        int main(void) { for (int fd = 3; fd < 70000; fd++) close(fd); return 0; }"""
    )
    trace: Trace = read_trace(run_traced(program).prefix)
    assert trace.of("window") == [["end", "0", "0"]]
