"""Checkpoints written through HDF5 and MPI-IO: what a library does in between is never called dead.

Needs Valgrind, an MPI and an SCR; the HDF5 cases HDF5's C library (Debian: libhdf5-dev).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
import traced_records as records
from numpy.typing import NDArray
from traced_harness import Job, prove
from traced_truth import ANY, CRITICAL, DEAD, UNUSED, Truth, octets

MakeJob = Callable[..., Job]


def library_part(size: int, step: int) -> Truth:
    """A file of which all is critical so far.

    Constants of the library's own that it keeps in its heap are used for the next file. Behind the last one
    nothing touches them, and they look unused.
    """
    truth = Truth([("file", octets(size))])
    if step == 6:
        truth["file"] = CRITICAL | UNUSED
    return truth


def hdf5_truth(places: dict[str, int], size: int, step: int, restart: bool) -> Truth:
    """A file with the three contiguous datasets at these offsets."""
    truth = library_part(size, step)
    whole = truth["file"]
    whole[places["step"] :][:8] = CRITICAL
    if restart:
        # Nothing is said of what the library reads for itself, or does not read, but that a plain restart
        # works with all droppable bytes poisoned.
        whole[...] = ANY
        whole[places["step"] :][:8] = CRITICAL
    u = whole[places["u"] :][: 40 * 50 * 8].reshape(40, 50, 8)
    # The library's buffer holds copies, and behind the last checkpoint it is freed with nothing to follow.
    dead = DEAD | UNUSED if step == 6 and not restart else DEAD
    u[...] = dead
    u[1:-1, 1:-1] = CRITICAL
    whole[places["work"] :][:8000] = dead
    return truth


def test_hdf5_contiguous(make_job: MakeJob, hdf5_flags: list[str]) -> None:
    job = make_job("hdf5_datasets.c", flags=hdf5_flags, arguments=["contiguous"])
    job.run()
    places = {
        name: int(offset) for name, offset in re.findall(r"^at (\w+) (\d+)$", job.printed, re.MULTILINE)
    }
    assert set(places) == {"step", "u", "work"}
    size = (job.prefix / "ckpt.3" / "state.h5.0").stat().st_size
    job.start_over()
    prove(job, lambda rank, name, step, restart: hdf5_truth(places, size, step, restart))


def test_hdf5_chunked_with_checksums(make_job: MakeJob, hdf5_flags: list[str]) -> None:
    job = make_job("hdf5_datasets.c", flags=hdf5_flags, arguments=["chunked"])
    job.run()
    size = (job.prefix / "ckpt.3" / "state.h5.0").stat().st_size
    job.start_over()

    def expected(rank: int, name: str, step: int, restart: bool) -> Truth:
        truth = library_part(size, step)
        if restart:
            truth["file"] = ANY  # the poisoned restart decides
        return truth

    prove(job, expected)


# ---- MPI-IO: a shared file, in which what a rank did not write itself is not its to judge ----


def shared_mask() -> NDArray[np.bool_]:
    """Bytes of mpiio's file that a restart needs."""
    critical = np.zeros(64 + 16 * 64 * 8, dtype=bool)
    critical[:8] = True
    rows = critical[64:].reshape(16, 2, 32, 8)
    rows[:, :, 8:] = True
    return critical


def told(
    traces: Sequence[records.Trace], kind: str, step: int
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Of the shared file: bytes that some rank calls critical, and bytes that some rank calls anything."""
    critical, anything = (np.zeros(64 + 16 * 64 * 8, dtype=bool) for _ in range(2))
    for trace in traces:
        for file in trace.generation(kind, f"ckpt.{step}").files.values():
            assert Path(file.name).name == "shared"
            states = file.states[: critical.size]
            anything[: states.size] |= states != records.UNTOLD
            critical[: states.size] |= states == records.CRITICAL
    return critical, anything


@pytest.mark.parametrize("how", ["strided", "collective"])
def test_mpiio_never_calls_a_critical_byte_dead(make_job: MakeJob, how: str) -> None:
    job = make_job("mpiio.c", arguments=[how], ranks=2)
    plain = job.run()
    job.start_over()
    digest, written = job.trace()
    assert digest == plain
    needed = shared_mask()
    for step in (3, 6):
        critical, anything = told(written, "output", step)
        assert not (needed & anything & ~critical).any(), f"{how} ckpt.{step}: dead, but needed"
    job.restart_from("ckpt.3")
    digest, read = job.trace()
    assert digest == plain
    critical, anything = told(read, "restart", 3)
    assert not (needed & ~critical).any(), f"{how}: the restart reads them all"
    # What both sides and all ranks allow to drop is poisoned: the restart has the same result.
    path = job.prefix / "ckpt.3" / "shared"
    content = np.fromfile(path, dtype=np.uint8)
    content[anything & ~critical] = 0xFF
    content.tofile(path)
    job.restart_from("ckpt.3")
    assert job.run() == plain
