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

# Never accessed, and not merely overwritten: by variable, the index of the first such element, counted
# among the uncritical ones, and of the first that is not.
NEVER_ACCESSED = {
    "bt": {"u": (0, 1500)},
    "sp": {"u": (0, 1500)},
    # The 64 elements behind the coarsest level.
    "mg": {"u": (7112, 7176), "r": (10479, 10543)},
    "cg": {"x": (0, 1)},
    "ft": {"y": (0, 4096), "sums": (0, 1)},
}


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


def _as_fields(traced: Traced, states: NDArray[np.uint8]) -> dict[str, NDArray[np.uint8]]:
    """By variable, one state an element: all its bytes must have the same."""
    found = {}
    record = traced.kernel.port.file
    assert record.fields is not None
    for name, (dtype, offset, *_) in record.fields.items():
        base = dtype.base
        parts = states[offset : offset + dtype.itemsize].reshape(-1, base.itemsize)
        assert (parts == parts[:, :1]).all(), f"{name}: bytes of one element differ"
        found[name] = parts[:, 0].reshape(dtype.shape)
    return found


@pytest.mark.parametrize("side", ["written", "restarted"])
def test_uncritical_is_what_follows_from_the_loops(side: str, request: pytest.FixtureRequest) -> None:
    traced: Traced = request.getfixturevalue(side)
    kind = {"written": "output", "restarted": "restart"}[side]
    port = traced.kernel.port
    for name, states in _as_fields(traced, traced.states(kind)).items():
        if name == port.counter:
            assert states == CRITICAL
            continue
        expected = port.uncritical[name]
        wrong = np.argwhere((states != CRITICAL) != expected)
        assert not len(wrong), f"{name}: {len(wrong)} elements, the first at {wrong[0]}"
        first, end = NEVER_ACCESSED[port.kernel][name]
        assert np.flatnonzero(states[expected] == UNUSED).tolist() == list(range(first, end)), name


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
