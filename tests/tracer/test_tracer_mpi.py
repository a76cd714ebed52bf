"""The tracer's MPI wrappers: what is sent is read, what arrives is written, byte by byte.

Programs: programs/ghost_*. Each rank checkpoints blocks of 24 doubles, one for each family of MPI calls, and
then every family moves its block's data. What must be found is written down here by hand, a letter a double:
c(ritical): read, by the program or by a peer; d(ead): overwritten by a message first; . (unused): never
touched. Three ranks, since two cannot tell left from right.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import mpi_libraries
import pytest
import trace_reader
from mpi_libraries import Mpi
from tracer_tool import Tool

PROGRAMS = Path(__file__).resolve().parent / "programs"
RANKS = 3
BLOCK = 24
# Long enough for a loaded machine, where ranks that wait for each other share a core: it only turns a hang
# into a failure.
HANG = 900

# What all ranks see, or what ranks 0, 1 and 2 see.
Expected = str | tuple[str, str, str]

# A stencil's ghosts (0, 5) and interior; 6 is only sent, 7 only arrives; then a vector sent (8, 10, 12),
# one that arrives (14, 16, 18), and two messages: 20, with room for 21, and 20 and 22 as a struct.
RING = "dccccdcdc.c.c.d.d.d.d.d."
# The rest of each block is unused.
FAMILIES: dict[str, Expected] = {
    "send_recv": RING,
    "sendrecv": RING,
    "isend_irecv_waitall": RING,
    "ssend_waitany": RING,
    "bsend_waitsome": RING,
    "rsend_test": RING,
    "issend_testany": RING,
    "irsend_testsome": RING,
    "ibsend_testall": RING,
    "persistent": RING,
    "persistent_ssend": RING,
    "mprobe_mrecv": RING,
    "mprobe_imrecv": RING,
    "large_counts": RING,
    "isendrecv": RING,
    "bottom": "c.c.....d.d",
    "sendrecv_replace": "cc",
    "nobody": "",
    "cancelled": "",
    "partitioned": "cccd....dddd",
    "bcast": ("dddd", "cccc", "dddd"),
    "gather": ("cc......dddddd", "cc", "cc"),
    "gather_in_place": ("..........dddd", "cc", "cc"),
    "gatherv": ("c.......d.dd.d", "cc", "c"),
    "scatter": ("cccccc..dd", "........dd", "........dd"),
    "scatter_in_place": ("..cccc", "........dd", "........dd"),
    "scatterv": ("c.cc.c..d", "........dd", "........d"),
    "allgather": "cc......dddddd",
    "allgather_in_place": ("........ccdddd", "........ddccdd", "........ddddcc"),
    "allgatherv": ("c.......d.dd.d", "cc......d.dd.d", "c.......d.dd.d"),
    "alltoall": "ccc.....ddd",
    "alltoall_in_place": "........ccc",
    "alltoallv": "c.c.c...d.d.d",
    "alltoallw": "c.c.c...d.d.d",
    "reduce": ("cc", "cc", "cc......dd"),
    "reduce_in_place": ("cc", "cc", "........cc"),
    "allreduce": "cc......dd",
    "allreduce_in_place": "........cc",
    "reduce_scatter": ("cccc....d", "cccc....dd", "cccc....d"),
    "reduce_scatter_block": "ccc.....d",
    "scan": "cc......dd",
    "exscan": ("cc", "cc......dd", "cc......dd"),
    "neighbor_allgather": ("c........d", "c.......dd", "c.......d"),
    "neighbor_allgatherv": ("c.........d", "c.......d.d", "c.......d"),
    "neighbor_alltoall": (".c.......d", "cc......dd", "c.......d"),
    "neighbor_alltoallv": ("..c.......d", "c.c.....d.d", "c.......d"),
    "neighbor_alltoallw": ("..c.......d", "c.c.....d.d", "c.......d"),
    # A window's memory (16 to 19) is shared: others read it unseen.
    "window_put_get": "cc......d.......cccc",
    "window_locked": "cccc....ddddd...cccc",
    "compare_and_swap": "cc......d.......cccc",
}
MPI_4_ONLY = {"isendrecv", "large_counts", "partitioned"}
FORTRAN: dict[str, dict[str, Expected]] = {
    "ghost_f90": {
        "send_recv": "cc......dd",
        "isend_irecv": "cc......dd",
        "sendrecv": "cc......dd",
        "vector": "c.c.c...d.d.d",
        "persistent": "cc......dd",
        "in_place": ("cc......ccdddd", "cc......ddccdd", "cc......ddddcc"),
        "gather": ("cc......dddddd", "cc", "cc"),
        "window": "c.......d.......cccc",
    },
    "ghost_f08": {
        "send_recv": "cc......dd",
        "isend_irecv": "cc......dd",
        "section": "c.c.c...ddd",
        "in_place": "cc",
        "reduce": ("cc......dd", "cc", "cc"),
    },
}


EACH_MPI = [
    *mpi_libraries.USUAL,
    *(pytest.param(name, marks=pytest.mark.slow) for name in mpi_libraries.SLOW),
]


@pytest.fixture(scope="module", params=EACH_MPI)
def mpi(request: pytest.FixtureRequest, mpicc: str, mpiexec: list[str]) -> Mpi:
    """Each MPI that is here; some only with the slow tests."""
    return mpi_libraries.find(request.param, mpicc, mpiexec[0])


def run_traced(
    mpi: Mpi, tool: Tool, folder: Path, *program: str, ranks: int = RANKS, preload: Path | None = None
) -> str:
    """Run ranks under the tool, with folder/trace.<rank> for each; returns all that they printed."""
    start = folder / "start.sh"
    command = " ".join(tool.command(f"{folder}/trace.${{OMPI_COMM_WORLD_RANK:-$PMI_RANK}}"))
    setting = f"LD_PRELOAD={preload} " if preload else ""
    start.write_text(f'#!/bin/sh\n{setting}exec {command} "$@"\n')
    start.chmod(0o755)
    done = subprocess.run(
        [mpi.mpiexec, "-n", str(ranks), str(start), *program],
        env=tool.environment(),
        capture_output=True,
        text=True,
        timeout=HANG,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def doubles(states: str) -> Iterator[str]:
    """The states of bytes as those of doubles; "X" where its bytes differ."""
    for start in range(0, len(states), 8):
        letters = set(states[start : start + 8])
        yield letters.pop() if len(letters) == 1 else "X"


def found_states(folder: Path) -> dict[str, tuple[str, ...]]:
    """Family -> states of its block, for each rank."""
    names = (folder / "families").read_text().split()
    ranks = []
    for rank in range(RANKS):
        trace = trace_reader.read_trace(folder / f"trace.{rank}")
        assert trace.of("rank") == [[str(rank), str(RANKS)]]
        assert trace.of("warning") == []
        letters = "".join(doubles(trace.file(str(folder / f"state.{rank}")).states())).replace("u", ".")
        ranks.append([letters[i : i + BLOCK] for i in range(0, len(letters), BLOCK)])
    return {name: states for name, *states in zip(names, *ranks, strict=True)}


def assert_states(found: Mapping[str, tuple[str, ...]], expected: Mapping[str, Expected]) -> None:
    """Every family has the states that are written down; all differences are shown."""
    wrong = []
    for name, states in found.items():
        wanted = expected[name.partition(":")[0]]
        if name.startswith("alltoall_in_place:"):
            wanted = ""  # the program leaves it out: not every MPI has it
        each = [wanted] * RANKS if isinstance(wanted, str) else wanted
        for rank, (is_, should_be) in enumerate(zip(states, each, strict=True)):
            whole = should_be.ljust(BLOCK, ".")
            if is_ != whole:
                wrong.append(f"{name}, rank {rank}:\n  found    {is_}\n  expected {whole}")
    assert not wrong, "\n".join(wrong)


def test_every_family_of_calls(mpi: Mpi, tool: Tool, tmp_path: Path) -> None:
    program = mpi.compile_c(tmp_path / "program", PROGRAMS / "ghost_families.c")
    run_traced(mpi, tool, tmp_path, str(program), str(tmp_path))
    found = found_states(tmp_path)
    assert {name.partition(":")[0] for name in found} >= set(FAMILIES) - MPI_4_ONLY
    assert_states(found, FAMILIES)


@pytest.mark.parametrize("name", FORTRAN)
def test_fortran_interfaces(mpi: Mpi, tool: Tool, tmp_path: Path, name: str) -> None:
    checkpoint = tmp_path / "checkpoint.o"
    subprocess.run(["cc", "-c", "-o", checkpoint, PROGRAMS / "ghost_scr_fortran.c"], check=True)
    program = mpi.compile_fortran(tmp_path / "program", PROGRAMS / f"{name}.f90", checkpoint)
    run_traced(mpi, tool, tmp_path, str(program), str(tmp_path))
    found = found_states(tmp_path)
    assert set(found) == set(FORTRAN[name])
    assert_states(found, FORTRAN[name])


def test_wrappers_alone_tell_all(tool: Tool, mpicc: str, mpiexec: list[str], tmp_path: Path) -> None:
    """With an MPI that touches no buffer where it can be seen, the states are the same."""
    mpi = mpi_libraries.find("default", mpicc, mpiexec[0])
    if not mpi.is_kind("MPICH_VERSION"):
        pytest.skip("the default MPI has not MPICH's binary interface: set MPICC and MPIEXEC to one that has")
    blind = tmp_path / "libmpi_blind.so"
    source = PROGRAMS / "blind_mpi.c"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-g", "-Wno-pragmas", "-o", blind, source], check=True)
    program = mpi.compile_c(tmp_path / "program", PROGRAMS / "ghost_families.c")
    run_traced(mpi, tool, tmp_path, str(program), str(tmp_path), preload=blind)
    found = found_states(tmp_path)
    found.pop("isendrecv", None)  # its length is not known, so that nothing is told of what it receives
    assert_states(found, FAMILIES)


# What each rank must find of the file that both write: its own stripes, and nothing else. It reads the first
# half, overwrites the third quarter, and the last by the restart, after which that is never touched.
STRIPES = {
    "output": ("cccc----cccc----dddd----dddd----", "----cccc----cccc----dddd----dddd"),
    "restart": ("cccc----cccc----dddd----uuuu----", "----cccc----cccc----dddd----uuuu"),
}


@pytest.mark.parametrize("how", ["write", "write_all", "write_at_all", "iwrite_all"])
def test_mpi_io_of_one_file(mpi: Mpi, tool: Tool, tmp_path: Path, how: str) -> None:
    program = mpi.compile_c(tmp_path / "program", PROGRAMS / "ghost_io.c")
    shared = tmp_path / "shared"
    run_traced(mpi, tool, tmp_path, str(program), str(shared), how, "restart", ranks=2)
    for rank in range(2):
        trace = trace_reader.read_trace(tmp_path / f"trace.{rank}")
        assert trace.of("warning") == []
        for generation, kind in enumerate(("output", "restart")):
            states = "".join(doubles(trace.file(str(shared), generation).states()))
            assert states == STRIPES[kind][rank], (rank, kind)


@pytest.mark.parametrize("how", ["write_all", "iwrite_all"])
def test_mpi_io_that_must_exchange_bytes_is_kept(mpi: Mpi, tool: Tool, tmp_path: Path, how: str) -> None:
    """Where the tracer cannot switch that off, the one who writes and reads for all keeps all of it."""
    program = mpi.compile_c(tmp_path / "program", PROGRAMS / "ghost_io.c")
    shared = tmp_path / "shared"
    run_traced(mpi, tool, tmp_path, str(program), str(shared), how, "restart", "exchange", ranks=2)
    found = [[set(), set()] for _ in range(2)]
    for rank in range(2):
        trace = trace_reader.read_trace(tmp_path / f"trace.{rank}")
        assert any("collective MPI-IO" in " ".join(fields) for fields in trace.of("warning"))
        for generation in (0, 1):
            found[rank][generation] = set(trace.file(str(shared), generation).states())
    for generation in (0, 1):
        assert found[0][generation] | found[1][generation] <= {"c", "-"}
        if not mpi.is_kind("OPEN_MPI"):  # of which it is not known whether it did
            assert {"c"} in (found[0][generation], found[1][generation])


def test_what_other_ranks_gave_or_get_is_kept(mpi: Mpi, tool: Tool, tmp_path: Path) -> None:
    """One rank writes and reads for all: it cannot know what becomes of a byte, though its copy is dead."""
    program = mpi.compile_c(tmp_path / "program", PROGRAMS / "ghost_collect.c")
    run_traced(mpi, tool, tmp_path, str(program), str(tmp_path / "all"))
    trace = trace_reader.read_trace(tmp_path / "trace.0")
    for generation in (0, 1):
        assert trace.file(str(tmp_path / "all"), generation).runs() == [(RANKS * 4 * 8, "c")]
