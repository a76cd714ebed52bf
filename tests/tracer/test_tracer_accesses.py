"""First accesses and phases: real programs under the tool, with states worked out by hand.

`c/accesses.c` accesses each slot of a checkpoint in one way; `c/phases.c` calls SCR in the order that a test
gives. A byte is c(ritical: read first), d(ead: overwritten first) or u(nused: not accessed).
"""

from __future__ import annotations

import platform
import shutil
import signal
import subprocess
from collections.abc import Callable
from itertools import groupby
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
SLOT, PAGE = 64, 4096
CHECKPOINT, OUTPUT = "1", "2"


def states(size: int, *runs: tuple[int, int, str]) -> str:
    """Bytes that are unused but for (offset, length, letter)."""
    letters = ["u"] * size
    for offset, length, letter in runs:
        letters[offset : offset + length] = letter * length
    return "".join(letters)


# What the case of that name in accesses.c does to its slot.
SLOTS: dict[str, list[tuple[int, int, str]]] = {
    "load_sizes": [(1, 1, "c"), (8, 2, "c"), (16, 4, "c"), (24, 8, "c")],
    "store_sizes": [(1, 1, "d"), (8, 2, "d"), (16, 4, "d"), (24, 8, "d")],
    "read_then_written": [(0, 4, "c")],
    "written_then_read": [(0, 4, "d"), (4, 4, "c")],
    "incremented": [(0, 4, "c")],
    "neighbours_read_and_written": [(0, 4, "c"), (4, 4, "d"), (8, 4, "c"), (12, 4, "d"), (16, 4, "d")],
    "straddled_granule": [(61, 3, "c")],
    "straddled_into": [(0, 5, "c")],
    "not_taken": [],
    "library_copy": [(0, 24, "c"), (32, 16, "d")],
    "threads": [(0, 4, "c"), (8, 4, "d")],
    # a compare-and-swap reads even where it fails
    "atomics": [(0, 4, "c"), (8, 8, "c"), (24, 4, "d"), (32, 4, "c")],
    "untouched": [],
    "sse": [(0, 16, "c"), (24, 16, "d")],
    "avx": [(0, 32, "c"), (32, 32, "d")],
    "x87": [(0, 10, "c"), (16, 10, "d"), (32, 8, "c"), (40, 4, "d"), (48, 2, "d"), (50, 2, "c")],
    "masked_load": [(0, 4, "c"), (8, 4, "c"), (28, 4, "c")],
    "masked_store": [(0, 4, "d"), (8, 4, "d"), (28, 4, "d")],
    "gathered": [(0, 4, "c"), (12, 4, "c"), (24, 4, "c"), (36, 4, "c")],
    "string_moves": [(0, 9, "c"), (32, 9, "d"), (48, 8, "d")],
    "compare_and_swap_wide": [(0, 16, "c"), (32, 8, "c")],
    "exchanged": [(0, 8, "c"), (16, 4, "c"), (24, 4, "c")],
    "not_temporal": [(0, 16, "d"), (24, 8, "d")],
    # Valgrind makes a load, a blend and a store of it: read, to be safe
    "masked_bytes": [(0, 16, "c")],
    "moved_conditionally": [(0, 8, "c")],
    "control_and_status": [(0, 4, "d"), (16, 4, "d")],
    "pushed_and_popped": [(24, 8, "d")],
    "environment_saved": [(0, 28, "d")],
}
PAGES = [(PAGE - 1, 2, "c"), (2 * PAGE - 3, 8, "d")]
PAGES_X86 = [(512, 416, "d"), (PAGE - 40, 32, "c"), (2 * PAGE - 16, 32, "d"), *PAGES[:1]]
ON_STACK = SLOTS["load_sizes"]


@pytest.fixture(scope="module")
def phases(compile_program: Callable[..., Path]) -> Path:
    return compile_program(HERE / "c" / "phases.c")


def test_every_kind_of_access(compile_program: Callable[..., Path], run_traced: Callable) -> None:
    program = compile_program(HERE / "c" / "accesses.c", "-O1", "-pthread")
    traced = run_traced(program)
    names = [line.split()[1] for line in traced.stdout.splitlines()]
    found = traced.trace().file("accesses.bin").states()
    for number, name in enumerate(names):
        assert (name, found[number * SLOT :][:SLOT]) == (name, states(SLOT, *SLOTS[name]))
    assert names == list(SLOTS)[: len(names)]
    rest = found[len(names) * SLOT :]
    x86 = platform.machine() == "x86_64"
    # the 8-byte store at the second page's end comes before the wide one that covers part of it
    expected = states(3 * PAGE, *(PAGES_X86 if x86 else PAGES))
    assert runs(rest[: 3 * PAGE]) == runs(expected)
    assert rest[3 * PAGE :] == states(SLOT, *ON_STACK)


def runs(letters: str) -> list[tuple[str, int]]:
    """Lengths of equal letters: shorter to read in a failure."""
    return [(letter, len(list(group))) for letter, group in groupby(letters)]


def words(text: str) -> list[str]:
    """Commands of phases.c, as they are passed."""
    return text.split()


WRITTEN = "start first 1 create state.bin write 0 64 close complete 1"


def test_a_checkpoint_and_what_follows(phases: Path, run_traced: Callable) -> None:
    trace = run_traced(
        phases, *words(f"load 0 64 store 0 8 {WRITTEN} load 0 4 store 2 6 finalize exit 0")
    ).trace()
    assert trace.of("generation") == [["0", "output", "first"]]
    assert trace.file("state.bin").states() == states(64, (0, 4, "c"), (4, 4, "d"))
    assert trace.of("window") == [["end", "0", "0"]]


def test_start_and_complete_checkpoint(phases: Path, run_traced: Callable) -> None:
    said = "checkpoint create state.bin write 0 64 close completed 1 store 0 4 finalize exit 0"
    trace = run_traced(phases, *words(said)).trace()
    assert [fields[:2] for fields in trace.of("generation")] == [["0", "output"]]
    assert trace.file("state.bin").states() == states(64, (0, 4, "d"))


def test_a_copy_into_the_next_checkpoint_is_no_read(phases: Path, run_traced: Callable) -> None:
    second = "start second 1 create state.bin write 0 64 close complete 1"
    trace = run_traced(
        phases, *words(f"{WRITTEN} store 0 4 {second} load 0 8 store 8 8 finalize exit 0")
    ).trace()
    assert [fields[2] for fields in trace.of("generation")] == ["first", "second"]
    assert trace.file("state.bin", 0).states() == states(64, (0, 4, "d"), (4, 4, "c"), (8, 8, "d"))
    assert trace.file("state.bin", 1).states() == states(64, (0, 8, "c"), (8, 8, "d"))


def test_packing_after_need_checkpoint_is_followed(phases: Path, run_traced: Callable) -> None:
    packed = "need pack 0 64 start packed 1 create state.bin packed 0 64 close complete 1"
    trace = run_traced(
        phases,
        *words(f"{packed} load 0 4 store 8 8 finalize exit 0"),
        environment={"SCR_CHECKPOINT_INTERVAL": "1"},
    ).trace()
    assert trace.of("generation") == [["0", "output", "packed"]]
    found = trace.file("state.bin").states()
    # the buffer still holds what the array lost, and nobody looks at it: not dead for sure, and never read
    assert found == states(64, (0, 4, "c"))


def test_a_question_without_a_checkpoint_makes_none(phases: Path, run_traced: Callable) -> None:
    said = f"need pack 0 8 need {WRITTEN} need pack 16 4 need load 8 4 finalize exit 0"
    trace = run_traced(phases, *words(said), environment={"SCR_CHECKPOINT_INTERVAL": "1"}).trace()
    assert trace.of("generation") == [["0", "output", "first"]]
    # the copy that nobody used is not a read of what was copied
    assert trace.file("state.bin").states() == states(64, (8, 4, "c"))


def test_a_checkpoint_that_the_program_calls_invalid_is_left_out(phases: Path, run_traced: Callable) -> None:
    said = "start bad 1 create state.bin write 0 64 close complete 0 store 0 64 finalize exit 0"
    trace = run_traced(phases, *words(said)).trace()
    assert trace.of("generation") == [] and trace.files == []


def test_output_that_is_no_checkpoint_is_a_read(phases: Path, run_traced: Callable) -> None:
    output = "start plot 2 create plot.bin write 0 16 close complete 1"
    trace = run_traced(phases, *words(f"{WRITTEN} {output} store 0 32 finalize exit 0")).trace()
    assert [fields[2] for fields in trace.of("generation")] == ["first"]
    assert trace.file("state.bin").states() == states(64, (0, 16, "c"), (16, 16, "d"))


def test_a_checkpoint_that_is_output_too_is_a_read(phases: Path, run_traced: Callable) -> None:
    both = "start both 3 create plot.bin write 0 16 close complete 1"
    traced = run_traced(phases, *words(f"{WRITTEN} {both} store 0 32 finalize exit 0"))
    assert traced.trace().file("state.bin").states() == states(64, (0, 16, "c"), (16, 16, "d"))
    assert "SCR_FLAG_OUTPUT" in traced.stderr


def test_restart_in_a_later_run(phases: Path, run_traced: Callable) -> None:
    run_traced(phases, *words(f"{WRITTEN} finalize exit 0"))
    restart = "restart open state.bin read 128 64 close restarted 1"
    trace = run_traced(phases, *words(f"{restart} load 128 4 store 136 8 finalize exit 0")).trace()
    assert trace.of("generation") == [["0", "restart", "first"]]
    assert trace.file("state.bin").states() == states(64, (0, 4, "c"), (8, 8, "d"))


def test_a_checkpoint_after_a_restart_in_one_process(phases: Path, run_traced: Callable) -> None:
    run_traced(phases, *words(f"{WRITTEN} finalize exit 0"))
    restart = "restart open state.bin read 0 64 close restarted 1"
    second = "start second 1 create state.bin write 0 64 close complete 1"
    said = f"{restart} load 0 4 store 8 8 {second} load 4 8 store 16 8 finalize exit 0"
    trace = run_traced(phases, *words(said)).trace()
    assert [fields[1] for fields in trace.of("generation")] == ["restart", "output"]
    assert trace.file("state.bin", 0).states() == states(64, (0, 8, "c"), (8, 8, "d"), (16, 8, "d"))
    assert trace.file("state.bin", 1).states() == states(64, (4, 8, "c"), (16, 8, "d"))


# ---- Steps and the window ----


def test_steps_tell_what_is_undecided(phases: Path, run_traced: Callable) -> None:
    said = f"{WRITTEN} load 0 8 need store 8 4 need need load 32 1 need finalize exit 0"
    trace = run_traced(phases, *words(said)).trace()
    assert trace.of("step") == [["1", "56", "8"], ["2", "52", "4"], ["3", "52", "0"], ["4", "51", "1"]]
    assert trace.of("window") == [["end", "0", "4"]]


def test_the_trace_ends_when_steps_decide_nothing(phases: Path, run_traced: Callable) -> None:
    said = f"{WRITTEN} need load 0 8 need need need load 8 8 need {WRITTEN} finalize exit 0"
    traced = run_traced(phases, *words(said), options=["--until-flat=2"])
    trace = traced.trace()
    assert trace.file("state.bin").states() == states(64, (0, 8, "c"))
    assert trace.of("window") == [["flat", "-1", "4"]]
    assert len(trace.of("generation")) == 1


def test_exit_status_and_death(phases: Path, run_traced: Callable) -> None:
    trace = run_traced(phases, *words(f"{WRITTEN} finalize exit 3"), status=3).trace()
    assert trace.of("window") == [["end", "3", "0"]]
    killed = run_traced(phases, *words(f"{WRITTEN} kill 11"), status=-signal.SIGSEGV).trace()
    assert killed.of("window") == [["end", "-1", "0"]]
    finalized = run_traced(phases, *words(f"{WRITTEN} finalize kill 15"), status=-signal.SIGTERM).trace()
    assert finalized.of("window") == [["finalize", "-1", "0"]]


def test_the_end_inside_a_bracket(phases: Path, run_traced: Callable) -> None:
    opened = "start second 1 create state2.bin write 0 16 close"
    traced = run_traced(phases, *words(f"{WRITTEN} {opened} exit 0"), status=None)
    trace = traced.trace()
    assert [fields[2] for fields in trace.of("generation")] == ["first"]
    # what was written to it is no copy any more
    assert trace.file("state.bin").states() == states(64, (0, 16, "c"))
    assert "before it completed" in traced.stderr


def test_a_forked_child_writes_nothing(phases: Path, run_traced: Callable) -> None:
    # The child stores to all of it. What is undecided at a fork is critical: the child may read it.
    trace = run_traced(phases, *words(f"{WRITTEN} store 0 4 fork load 0 4 fork finalize exit 0")).trace()
    assert trace.file("state.bin").states() == states(64, (0, 64, "c"), (0, 4, "d"))


def test_what_was_undecided_at_a_handled_fault_is_critical(phases: Path, run_traced: Callable) -> None:
    said = f"{WRITTEN} store 0 4 fault {WRITTEN} store 0 8 load 8 4 finalize exit 0"
    traced = run_traced(phases, *words(said))
    trace = traced.trace()
    assert trace.file("state.bin", 0).states() == states(64, (0, 64, "c"), (0, 4, "d"))
    assert trace.file("state.bin", 1).states() == states(64, (0, 8, "d"), (8, 4, "c"))
    assert "SIGSEGV" in traced.stderr


# ---- Ways to SCR ----


def test_libscr_linked_into_the_program(compile_program: Callable[..., Path], run_traced: Callable) -> None:
    program = compile_program(HERE / "c" / "phases.c", static=True)
    trace = run_traced(program, *words(f"{WRITTEN} load 0 4 finalize exit 0")).trace()
    assert trace.of("generation") == [["0", "output", "first"]]
    assert trace.file("state.bin").states() == states(64, (0, 4, "c"))


def test_libscr_loaded_at_run_time(
    compile_program: Callable[..., Path], run_traced: Callable, scr_root: Path
) -> None:
    program = compile_program(HERE / "c" / "phases.c", "-DLOADED", "-ldl")
    trace = run_traced(
        program,
        *words(f"{WRITTEN} load 0 4 finalize exit 0"),
        environment={"PHASES_SCR": str(scr_root / "lib" / "libscr.so")},
    ).trace()
    assert trace.of("generation") == [["0", "output", "first"]]
    assert trace.file("state.bin").states() == states(64, (0, 4, "c"))


def test_the_shim_in_front_of_libscr_is_not_counted(
    phases: Path, run_traced: Callable, shim_lib: Path
) -> None:
    trace = run_traced(
        phases,
        *words(f"{WRITTEN} need load 0 4 need finalize exit 0"),
        environment={"LD_PRELOAD": str(shim_lib)},
    ).trace()
    assert trace.of("generation") == [["0", "output", "first"]]
    assert trace.file("state.bin").states() == states(64, (0, 4, "c"))
    assert len(trace.of("step")) == 2


def test_fortran_events_are_counted_once(
    tmp_path: Path, scr_root: Path, mpicc: str, run_traced: Callable
) -> None:
    gfortran = shutil.which("gfortran")
    if gfortran is None:
        pytest.skip("no gfortran: install it")
    source, made, program = tmp_path / "steps.f90", tmp_path / "steps.o", tmp_path / "steps"
    source.write_text(FORTRAN)
    lib = scr_root / "lib"
    for command in (
        [gfortran, "-g", "-c", "-o", str(made), str(source), f"-I{scr_root / 'include'}"],
        [mpicc, "-o", str(program), str(made), f"-L{lib}", "-lscrf", f"-Wl,-rpath,{lib}", "-lgfortran"],
    ):
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    trace = run_traced(program).trace()
    assert trace.of("generation") == [["0", "output", "fortran"]]
    assert trace.file("field.bin").states() == states(64, (0, 8, "c"), (8, 8, "d"))
    assert [fields[0] for fields in trace.of("step")] == ["1", "2"]


FORTRAN = """
program steps
    use, intrinsic :: iso_c_binding
    implicit none
    include 'scrf.h'
    interface
        integer(c_int) function mpi_init_c(argc, argv) bind(C, name='MPI_Init')
            import :: c_int, c_ptr
            type(c_ptr), value :: argc, argv
        end function
        integer(c_int) function mpi_finalize_c() bind(C, name='MPI_Finalize')
            import :: c_int
        end function
    end interface
    real(8), save :: field(8) = 1
    character(len=SCR_MAX_FILENAME) :: path
    integer :: error, flag, unit

    error = mpi_init_c(c_null_ptr, c_null_ptr)
    call scr_init(error)
    call scr_start_output('fortran', SCR_FLAG_CHECKPOINT, error)
    call scr_route_file('field.bin', path, error)
    open (newunit=unit, file=trim(path), access='stream', status='replace', action='write')
    write (unit) field
    close (unit)
    call scr_complete_output(1, error)
    call scr_need_checkpoint(flag, error)
    if (field(1) > 2) print *, 'never'
    field(2) = 3
    call scr_need_checkpoint(flag, error)
    call scr_finalize(error)
    error = mpi_finalize_c()
end program steps
"""
