"""The tracer's MPI wrappers: what is sent is read, what arrives is written, byte by byte.

Programs: programs/ghost_*. Each rank checkpoints blocks of 24 doubles, one for each family of MPI calls, and then
every family moves its block's data. What must be found is written down here by hand, one letter a double:
c(ritical): read, by the program or by a peer; d(ead): overwritten by a message first; . (unused): never touched.
Three ranks, since two cannot tell left from right.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import mpi_libraries
import pytest
import trace_reader
from mpi_libraries import Mpi

PROGRAMS = Path(__file__).resolve().parent / "programs"
RANKS = 3
BLOCK = 24
HANG = 300

# A stencil's ghosts (0, 5) and interior; 6 is only sent, 7 only arrives; then a vector that is sent (8, 10, 12), one
# that arrives (14, 16, 18), and two messages: 20 of a buffer that has room for 21, too, and 20 and 22 of a struct.
RING = "dccccdcdc.c.c.d.d.d.d.d."
# For each family: what all ranks see, or what ranks 0, 1 and 2 see. The rest of the block is unused.
FAMILIES: dict[str, str | tuple[str, str, str]] = {
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
FORTRAN: dict[str, dict[str, str | tuple[str, str, str]]] = {
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


@pytest.fixture(scope="module", params=mpi_libraries.NAMES)
def mpi(request: pytest.FixtureRequest, mpicc: str, mpiexec: list[str]) -> Mpi:
    """Each MPI that is here."""
    return mpi_libraries.find(request.param, mpicc, mpiexec[0])


def run_traced(
    mpi: Mpi, tool, folder: Path, *program: str, ranks: int = RANKS, environment: Mapping[str, str] | None = None
) -> str:
    """Run ranks under the tool, with folder/trace.<rank> for each; returns all that they printed."""
    start = folder / "start.sh"
    command = " ".join(tool.command(f"{folder}/trace.${{OMPI_COMM_WORLD_RANK:-$PMI_RANK}}"))
    start.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
    start.chmod(0o755)
    done = subprocess.run(
        [mpi.mpiexec, "-n", str(ranks), str(start), *program],
        env={**tool.environment(), **(environment or {})},
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


def assert_states(found: Mapping[str, tuple[str, ...]], expected: Mapping[str, str | tuple[str, str, str]]) -> None:
    """Every family has the states that are written down; all differences are shown."""
    wrong = []
    for name, states in found.items():
        wanted = expected[name.partition(":")[0]]
        if name.startswith("alltoall_in_place:"):
            wanted = ""  # the program leaves it out: not every MPI has it
        each = [wanted] * RANKS if isinstance(wanted, str) else wanted
        for rank, (is_, should_be) in enumerate(zip(states, each, strict=True)):
            if is_ != should_be.ljust(BLOCK, "."):
                wrong.append(f"{name}, rank {rank}:\n  found    {is_}\n  expected {should_be.ljust(BLOCK, '.')}")
    assert not wrong, "\n".join(wrong)


def test_every_family_of_calls(mpi: Mpi, tool, tmp_path: Path) -> None:
    program = mpi.compile_c(tmp_path / "program", PROGRAMS / "ghost_families.c")
    run_traced(mpi, tool, tmp_path, str(program), str(tmp_path))
    found = found_states(tmp_path)
    assert {name.partition(":")[0] for name in found} >= set(FAMILIES) - {"isendrecv", "large_counts", "partitioned"}
    assert_states(found, FAMILIES)


@pytest.mark.parametrize("name", FORTRAN)
def test_fortran_interfaces(mpi: Mpi, tool, tmp_path: Path, name: str) -> None:
    checkpoint = tmp_path / "checkpoint.o"
    subprocess.run(["cc", "-c", "-o", checkpoint, PROGRAMS / "ghost_scr_fortran.c"], check=True)
    program = mpi.compile_fortran(tmp_path / "program", PROGRAMS / f"{name}.f90", checkpoint)
    run_traced(mpi, tool, tmp_path, str(program), str(tmp_path))
    found = found_states(tmp_path)
    assert set(found) == set(FORTRAN[name])
    assert_states(found, FORTRAN[name])
