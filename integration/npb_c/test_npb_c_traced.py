"""The NAS kernels in C under the access tracer: exactly what is uncritical by hand, and poison proves it.

Needs valgrind and the tool in addition to what ``test_npb_c.py`` needs; skips without.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from ports import POISONS, Job, Kernel, overwrite

from scr_critplugin.criticality import ElementState
from scr_critplugin.tracing.trace_file import RankTrace, read_trace, state_of

CRITICAL, DEAD, UNUSED = int(ElementState.CRITICAL), int(ElementState.DEAD), int(ElementState.UNUSED)


@dataclass(frozen=True)
class Traced:
    """A kernel that ran under the tracer, and what the tracer wrote."""

    kernel: Kernel
    job: Job
    trace: RankTrace

    def states(self, kind: str) -> NDArray[np.uint8]:
        """State of each byte of the file of the only generation of that kind."""
        (generation,) = (found.number for found in self.trace.generations.values() if found.kind == kind)
        (file,) = (found for found in self.trace.files.values() if found.generation == generation)
        assert file.size == self.kernel.port.file.itemsize
        return strongest(file.size, self.trace.states_of(file.number))


def strongest(size: int, records: NDArray[np.void]) -> NDArray[np.uint8]:
    """Critical before unused before dead; critical where no record says anything."""
    told = np.zeros(size, dtype=bool)
    states = np.full(size, DEAD, dtype=np.uint8)
    order = {DEAD: 0, UNUSED: 1, CRITICAL: 2}
    pairs = zip(state_of(records).tolist(), records, strict=True)
    for state, record in sorted(pairs, key=lambda pair: order[pair[0]]):
        piece = slice(int(record["offset"]), int(record["offset"] + record["length"]))
        told[piece] = True
        states[piece] = state
    states[~told] = CRITICAL
    return states


def _traced(kernel: Kernel, job: Job, valgrind_lib: Path) -> Traced:
    prefix = job.folder / "trace"
    tool = ("valgrind", "-q", "--tool=scr_crit", f"--trace-out={prefix}")
    outcome = job.run(before=tool, VALGRIND_LIB=str(valgrind_lib))
    assert outcome.verified and outcome.values == kernel.undisturbed.values, outcome
    return Traced(kernel, job, read_trace(prefix))


@pytest.fixture(scope="module")
def written(kernel: Kernel, tmp_path_factory: pytest.TempPathFactory, valgrind_lib: Path) -> Traced:
    """Traced from the start, through the checkpoint, to the end."""
    job = Job(tmp_path_factory.mktemp("written"), kernel.job.mpiexec, kernel.job.program)
    return _traced(kernel, job, valgrind_lib)


@pytest.fixture(scope="module")
def restarted(kernel: Kernel, tmp_path_factory: pytest.TempPathFactory, valgrind_lib: Path) -> Traced:
    """Traced from the restart to the end."""
    return _traced(kernel, kernel.job.copied(tmp_path_factory.mktemp("restarted")), valgrind_lib)


def _expected(kernel: Kernel) -> NDArray[np.uint8]:
    """State of each byte, by hand."""
    masks = kernel.port.masks
    states = np.full(kernel.port.file.itemsize, CRITICAL, dtype=np.uint8)
    states[kernel.port.over_file({name: each.dead for name, each in masks.items()})] = DEAD
    states[kernel.port.over_file({name: each.unused for name, each in masks.items()})] = UNUSED
    return states


def test_states_are_what_follows_from_the_loops(written: Traced) -> None:
    wrong = np.flatnonzero(written.states("output") != _expected(written.kernel))
    assert not wrong.size, (wrong.size, wrong[:10])


def test_so_are_the_states_after_a_restart(restarted: Traced) -> None:
    found = restarted.states("restart")
    wrong = np.flatnonzero(found != _expected(restarted.kernel))
    # The C library compares the first byte of each buffer that it fills with EOF: the tool may call it used.
    assert (found[wrong] == CRITICAL).all() and (wrong % 4096 == 0).all(), (wrong.size, wrong[:10])
    assert wrong.size <= len(restarted.kernel.port.arrays)


def test_trace_covers_the_run_to_its_end(written: Traced) -> None:
    assert (written.trace.window.end, written.trace.window.exit_code) == ("end", 0)
    assert (written.trace.rank, written.trace.ranks) == (0, 1)


@pytest.mark.parametrize("poison", POISONS)
def test_poison_in_all_that_was_found_uncritical_changes_nothing(
    written: Traced, poison: str, tmp_path: Path
) -> None:
    job = written.job.copied(tmp_path)
    file = job.files(written.kernel.port)[0]
    uncritical = written.states("output") != CRITICAL
    assert uncritical.any()
    overwrite(file, uncritical, POISONS[poison])
    restarted = job.run()
    assert restarted.restarted_from is not None
    assert restarted.verified and restarted.values == written.kernel.undisturbed.values


def test_poison_in_what_was_found_critical_fails(written: Traced, tmp_path: Path) -> None:
    job = written.job.copied(tmp_path)
    critical = written.states("output") == CRITICAL
    critical[:4] = False  # the counter: without it the restart is refused, which shows nothing
    overwrite(job.files(written.kernel.port)[0], critical, POISONS["nan"])
    restarted = job.run()
    assert restarted.restarted_from is not None
    assert restarted.status == 1 and not restarted.verified
