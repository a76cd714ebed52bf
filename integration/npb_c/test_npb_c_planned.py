"""The NAS kernels in C from ``scr_crit trace`` to restarts from packed checkpoints, NaN in what was dropped.

Needs the package installed with the tracer, and valgrind, in addition to what ``test_npb_c.py`` needs.
"""

from __future__ import annotations

import re
import shutil
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from ports import Job, Kernel, Outcome

from scr_critplugin.criticality import CriticalityMap
from scr_critplugin.errors import CritError
from scr_critplugin.installation import tracer_folder

SCR_CRIT = str(Path(sys.executable).with_name("scr_crit"))
PACKED_HEADER = 1000
"""A packed file's own lines are shorter than this."""

DROPPED = {
    "bt": 1500 * 8,
    "sp": 1500 * 8,
    "mg": (7176 + 10543) * 8,
    "cg": 8,
    # The checksums are too few bytes for a rule, and needed in other iterations.
    "ft": 4096 * 16,
}
"""Bytes of a checkpoint at class S that the plan drops. MG's are the 19 % of its two arrays."""


@dataclass(frozen=True)
class Planned:
    """A kernel that ran once under ``scr_crit trace``; the plan is under the job's prefix."""

    kernel: Kernel
    job: Job
    traced: Outcome

    @property
    def map(self) -> CriticalityMap:
        """The only one that was made."""
        (path,) = (self.job.prefix / ".scr_crit" / "maps").glob("*.map.npz")
        return CriticalityMap.load(path)

    def elsewhere(self, folder: Path) -> Job:
        """The job of another day: the plan is there, checkpoints are not."""
        job = replace(self.job, folder=folder)
        shutil.copytree(self.job.prefix / ".scr_crit", job.prefix / ".scr_crit")
        return job


@pytest.fixture(scope="module")
def planned(kernel: Kernel, tmp_path_factory: pytest.TempPathFactory) -> Planned:
    """Each kernel traced once."""
    try:
        tracer_folder()
    except CritError as error:
        pytest.skip(str(error))
    job = replace(kernel.job, folder=tmp_path_factory.mktemp("planned"))
    traced = job.run(before=(SCR_CRIT, "trace"))
    assert traced.verified, traced
    return Planned(kernel, job, traced)


def test_the_traced_program_computes_the_same(planned: Planned) -> None:
    assert planned.traced.values == planned.kernel.undisturbed.values


def test_map_has_the_program_s_variables(planned: Planned) -> None:
    port = planned.kernel.port
    found = planned.map
    assert not found[port.counter].uncritical.any()
    for name, dtype in port.arrays:
        variable, expected = found[name], port.uncritical[name]
        assert variable.nbytes == expected.size * np.dtype(dtype).itemsize
        # Complex numbers of C are structs: compare byte by byte.
        bytes_found = np.repeat(variable.uncritical.ravel(), variable.dtype.itemsize)
        assert (bytes_found == np.repeat(expected.ravel(), np.dtype(dtype).itemsize)).all(), name


def test_grids_keep_their_shape(planned: Planned) -> None:
    for name, dtype in planned.kernel.port.arrays:
        if dtype is np.float64:
            assert planned.map[name].shape == planned.kernel.port.uncritical[name].shape
            assert planned.map[name].dtype == np.float64


def test_plan_drops_what_has_structure(planned: Planned) -> None:
    told = re.search(r"a checkpoint: 1 file, (\d+) bytes, of which (\d+) are dropped", planned.traced.stdout)
    assert told is not None, planned.traced.stdout
    port = planned.kernel.port
    assert (int(told[1]), int(told[2])) == (port.file.itemsize, DROPPED[port.kernel])


@pytest.mark.parametrize("later", [0, 1])
def test_restart_from_a_packed_checkpoint_changes_nothing(
    planned: Planned, later: int, tmp_path: Path
) -> None:
    """Of the traced iteration, and of one that was not traced: a plan serves the whole run."""
    kernel, port = planned.kernel, planned.kernel.port
    iteration = port.checkpoint_at + later
    job = planned.elsewhere(tmp_path)
    packed = replace(job, mpiexec=[SCR_CRIT, "run", "--", *job.mpiexec])
    written = packed.run("--checkpoint-at", str(iteration))
    assert written.verified and written.values == kernel.undisturbed.values
    (file,) = job.files(port, iteration)
    kept = port.file.itemsize - DROPPED[port.kernel]
    # CG drops a single element: not worth a packed file.
    assert file.stat().st_size <= (port.file.itemsize if port.kernel == "cg" else kept + PACKED_HEADER)
    for name in ("cache", "cntl"):
        shutil.rmtree(job.folder / name)
    restarted = packed.run(SCR_CRIT_FILL="nan")
    assert restarted.restarted_from == f"{port.kernel}.{iteration}"
    assert restarted.verified and restarted.values == kernel.undisturbed.values
