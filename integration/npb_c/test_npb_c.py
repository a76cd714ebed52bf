"""The NAS kernels in C: verified, killed, restarted, poisoned; their checkpoints fit the NumPy kernels.

Needs mpicc, mpiexec and an SCR (fixtures of the root conftest).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from ports import KERNELS, POISONS, Job, Kernel, Port, overwrite, port

EXPECTED_COUNTS = {
    "bt": {"u": (1500, 10140)},
    "sp": {"u": (1500, 10140)},
    "mg": {"u": (7176, 46480), "r": (10543, 46480)},
    "cg": {"x": (1, 1402)},
    "ft": {"y": (4096, 266240), "sums": (5, 7)},
}
"""Uncritical by access at class S, of all elements."""


# ------------------------------------------------------------------------------- verified, killed, restarted


def test_verifies_at_class_s(kernel: Kernel) -> None:
    assert kernel.undisturbed.verified, kernel.undisturbed
    assert kernel.undisturbed.restarted_from is None


@pytest.mark.slow
@pytest.mark.parametrize("name", KERNELS)
def test_verifies_at_class_w(
    name: str, tmp_path: Path, mpiexec: list[str], built: Callable[[Port], Path]
) -> None:
    which = port(name, "W")
    job = Job(tmp_path, mpiexec, built(which))
    undisturbed = job.run()
    assert undisturbed.verified, undisturbed
    overwrite(job.files(which)[0], which.uncritical_bytes, POISONS["nan"])
    restarted = job.run()
    assert restarted.restarted_from is not None and restarted.values == undisturbed.values


def test_killed_and_restarted_ends_bit_for_bit_the_same(
    kernel: Kernel, tmp_path: Path, mpiexec: list[str]
) -> None:
    job = Job(tmp_path, mpiexec, kernel.job.program)
    killed = job.run("--die-at", str(kernel.port.checkpoint_at + 1))
    assert killed.status != 0 and not killed.values
    restarted = job.run()
    assert restarted.restarted_from == f"{kernel.port.kernel}.{kernel.port.checkpoint_at}"
    assert restarted.verified and restarted.values == kernel.undisturbed.values


def test_scr_decides_when_a_checkpoint_is_due(kernel: Kernel, tmp_path: Path, mpiexec: list[str]) -> None:
    job = Job(tmp_path, mpiexec, kernel.job.program)
    due = kernel.port.checkpoint_at - 1
    done = job.run("--ask", "--checkpoint-at", "0", SCR_CHECKPOINT_INTERVAL=str(due))
    assert done.verified and done.values == kernel.undisturbed.values
    written = sorted(int(path.parent.name.split(".")[1]) for path in job.prefix.glob("*/rank_0"))
    assert written == list(range(due, kernel.port.iterations + 1, due))
    restarted = job.run()
    assert restarted.restarted_from == f"{kernel.port.kernel}.{written[-1]}"
    assert restarted.values == kernel.undisturbed.values


def test_every_rank_computes_and_restarts_the_same(
    kernel: Kernel, tmp_path: Path, mpiexec: list[str]
) -> None:
    job = Job(tmp_path, mpiexec, kernel.job.program, ranks=2)
    assert job.run().verified
    first, second = (path.read_bytes() for path in job.files(kernel.port))
    assert first == second == kernel.job.files(kernel.port)[0].read_bytes()
    restarted = job.run()
    assert restarted.restarted_from is not None and restarted.values == kernel.undisturbed.values


@pytest.mark.parametrize(
    "arguments", [("--wrong",), ("--die-at",), ("--checkpoint-at", "1000"), ("--checkpoint-at", "2x")]
)
def test_bad_options_are_refused(
    arguments: tuple[str, ...], tmp_path: Path, mpiexec: list[str], built: Callable[[Port], Path]
) -> None:
    refused = Job(tmp_path, mpiexec, built(port("cg", "S"))).run(*arguments)
    assert refused.status == 2 and "usage: cg" in refused.stderr and arguments[0] in refused.stderr


@pytest.mark.parametrize("change", [-8, 8])
def test_another_size_of_checkpoint_is_refused(kernel: Kernel, change: int, tmp_path: Path) -> None:
    job = kernel.job.copied(tmp_path)
    file = job.files(kernel.port)[0]
    with file.open("r+b") as stream:
        stream.truncate(file.stat().st_size + change)
    refused = job.run()
    assert refused.status != 0 and "class" in refused.stderr


# ------------------------------------------------------------------------------------- layout and uncritical


def test_counts_at_class_s(kernel: Kernel) -> None:
    counts = {name: (int(mask.sum()), mask.size) for name, mask in kernel.port.uncritical.items()}
    assert counts == EXPECTED_COUNTS[kernel.port.kernel]


def test_numpy_kernel_goes_on_from_the_checkpoint(kernel: Kernel) -> None:
    """The layouts are the same, and so is what they mean."""
    which = kernel.port
    record = which.open(kernel.job.files(which)[0])[0]
    assert record[which.counter] == which.checkpoint_at
    # The NumPy kernels count finished iterations, the C kernels name the one to come.
    done = which.checkpoint_at - 1
    state = {name: np.array(record[name]) for name, _ in which.arrays}
    problem = which.module.CLASSES[which.class_name]
    finished = which.module.run({**state, which.counter: done}, problem.steps - done)
    assert which.module.verify(finished).verified


@pytest.mark.parametrize("poison", POISONS)
def test_poison_in_the_uncritical_changes_nothing(kernel: Kernel, poison: str, tmp_path: Path) -> None:
    job = kernel.job.copied(tmp_path)
    overwrite(job.files(kernel.port)[0], kernel.port.uncritical_bytes, POISONS[poison])
    restarted = job.run()
    assert restarted.restarted_from is not None
    assert restarted.verified and restarted.values == kernel.undisturbed.values


def _some_critical_elements(which: Port) -> list[tuple[str, int]]:
    """Three elements of each array, the first and the last among them."""
    random = np.random.default_rng(4)
    found = []
    for name, _ in which.arrays:
        places = np.flatnonzero(~which.uncritical[name].ravel())
        if which.kernel == "cg":
            places = places[:-1]  # read by a copy of which nothing is used
        found += [(name, int(place)) for place in (places[0], random.choice(places), places[-1])]
    return found


def test_one_poisoned_critical_element_fails_the_verification(kernel: Kernel, tmp_path: Path) -> None:
    for number, (name, place) in enumerate(_some_critical_elements(kernel.port)):
        job = kernel.job.copied(tmp_path / str(number))
        record = kernel.port.open(job.files(kernel.port)[0])
        record[name].reshape(-1)[place] = np.nan
        record.flush()
        poisoned = job.run()
        assert poisoned.restarted_from is not None
        assert poisoned.status == 1 and not poisoned.verified, (name, place)
        assert poisoned.values != kernel.undisturbed.values
