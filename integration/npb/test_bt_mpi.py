"""bt_mpi under mpiexec and a libscr: killed, restarted, damaged, and with packed checkpoints.

Needs mpiexec, an mpi4py of the same MPI, an SCR and the installed package (fixtures of the root conftest).
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import bt
import pytest

from scr_critplugin.analysis import profile
from scr_critplugin.layout import Layout
from scr_critplugin.plan import compile_plan

HERE = Path(__file__).resolve().parent
RANKS = 2
STEPS, EVERY, DIE_AT, LAST = 8, 2, 5, 4
SHORT = ("--steps", str(STEPS), "--every", str(EVERY))
WHOLE_FILE = 8 + 8 * 10140
SECONDS = 120


@pytest.fixture(scope="module")
def launcher(mpiexec: list[str], package_lib: Path) -> list[str]:
    """Command that starts the ranks of a Python program."""
    command = [*mpiexec, "-n", str(RANKS), sys.executable]
    probe = [*command, "-c", "from mpi4py import MPI; print(MPI.COMM_WORLD.size)"]
    found = subprocess.run(probe, capture_output=True, text=True, timeout=SECONDS)
    if found.returncode != 0 or found.stdout.split() != [str(RANKS)] * RANKS:
        pytest.skip(
            f"mpi4py does not work under {mpiexec[0]}: install one for this MPI, or choose another by MPIEXEC"
        )
    return command


@dataclass(frozen=True)
class Outcome:
    """What one mpiexec left behind."""

    status: int
    stdout: str
    stderr: str

    def found(self, pattern: str) -> str | None:
        match = re.search(pattern, self.stdout, re.M)
        return match[1] if match else None

    @property
    def digest(self) -> str | None:
        return self.found(r"^digest ([0-9a-f]{16}) steps \d+$")

    @property
    def restarted_at(self) -> str | None:
        return self.found(r"^restarted from \S+ step (\d+)$")


class Job:
    """One allocation: prefix, cache and control directories in which the program can run repeatedly."""

    def __init__(self, folder: Path, launcher: list[str], scr_root: Path, mode: str) -> None:
        self.launcher, self.prefix = launcher, folder / "prefix"
        self.prefix.mkdir(parents=True)
        cache = {"SCR_CACHE_BYPASS": "0", "SCR_FLUSH": "1", "SCR_CACHE_SIZE": "2"}
        self.environment = {
            **os.environ,
            "SCR_ROOT": str(scr_root),
            "SCR_PREFIX": str(self.prefix),
            "SCR_CACHE_BASE": str(folder / "cache"),
            "SCR_CNTL_BASE": str(folder / "cntl"),
            "SCR_USER_NAME": "tester",
            "SCR_JOB_ID": "bt",
            # Two ranks on two cores: threads of BLAS would only get in each other's way.
            "OMP_NUM_THREADS": "1",
            **({"SCR_CACHE_BYPASS": "1"} if mode == "bypass" else cache),
        }

    def run(self, *arguments: str, **environment: str) -> Outcome:
        done = subprocess.run(
            [*self.launcher, str(HERE / "bt_mpi.py"), *arguments],
            cwd=self.prefix,
            env={**self.environment, **environment},
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
        return Outcome(done.returncode, done.stdout, done.stderr)

    def sizes(self, step: int) -> list[int]:
        return [(self.prefix / f"bt.{step}" / f"bt.{rank}").stat().st_size for rank in range(RANKS)]


@pytest.fixture(params=["bypass", "cache"])
def job(request: pytest.FixtureRequest, tmp_path: Path, launcher: list[str], scr_root: Path) -> Job:
    return Job(tmp_path, launcher, scr_root, request.param)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, launcher: list[str], scr_root: Path) -> str:
    """Digest of a run without a checkpoint."""
    job = Job(tmp_path_factory.mktemp("undisturbed"), launcher, scr_root, "bypass")
    outcome = job.run("--steps", str(STEPS), "--every", str(STEPS + 1))
    assert outcome.status == 0, outcome.stderr
    assert outcome.digest is not None
    return outcome.digest


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Plan for class S, from its profile."""
    path = tmp_path_factory.mktemp("plan") / "plan"
    found = profile(bt.step, bt.initial_state("S"), bt.output)
    compile_plan(found.map, Layout.from_toml(HERE / "bt_s.toml")).save(path)
    return path


def test_killed_and_restarted(job: Job, undisturbed: str) -> None:
    killed = job.run(*SHORT, "--die-at", str(DIE_AT))
    assert killed.status != 0
    assert killed.digest is None
    restarted = job.run(*SHORT)
    assert (restarted.status, restarted.restarted_at) == (0, str(LAST)), restarted.stderr
    assert restarted.digest == undisturbed


def test_whole_run_verifies_after_a_restart(tmp_path: Path, launcher: list[str], scr_root: Path) -> None:
    job = Job(tmp_path, launcher, scr_root, "bypass")
    assert job.run("--every", "20", "--die-at", "45").status != 0
    restarted = job.run("--every", "20")
    assert restarted.restarted_at == "40"
    assert restarted.found("^(Verification Successful)$")


@pytest.mark.parametrize("fill", ["zero", "nan"])
def test_packed_checkpoints_restart_bit_for_bit(job: Job, undisturbed: str, plan: Path, fill: str) -> None:
    plugin = {"SCR_CRIT_PLUGIN": "1", "SCR_CRIT_PLAN": str(plan), "SCR_CRIT_FILL": fill}
    job.run(*SHORT, "--die-at", str(DIE_AT), **plugin)
    restarted = job.run(*SHORT, **plugin)
    assert (restarted.status, restarted.restarted_at) == (0, str(LAST)), restarted.stderr
    assert restarted.digest == undisturbed
    for size in job.sizes(STEPS):
        assert WHOLE_FILE - 8 * 1500 <= size <= WHOLE_FILE - 8 * 1500 + 600


def test_damaged_file_falls_back_to_the_checkpoint_before(
    tmp_path: Path, launcher: list[str], scr_root: Path, undisturbed: str
) -> None:
    job = Job(tmp_path, launcher, scr_root, "cache")
    job.run(*SHORT, "--die-at", str(DIE_AT))
    # Without cache the next run must fetch, and a fetch checks no content: the program does.
    for name in ("cache", "cntl"):
        subprocess.run(["rm", "-rf", str(tmp_path / name)], check=True)
    with (job.prefix / f"bt.{LAST}" / "bt.1").open("r+b") as file:
        file.truncate(1000)
    restarted = job.run(*SHORT)
    assert (restarted.status, restarted.restarted_at) == (0, str(LAST - EVERY)), restarted.stderr
    assert "has 1000 bytes" in restarted.stderr
    assert restarted.digest == undisturbed


def test_unreadable_options_end_the_run(tmp_path: Path, launcher: list[str], scr_root: Path) -> None:
    outcome = Job(tmp_path, launcher, scr_root, "bypass").run("--every", "0")
    assert outcome.status != 0
    assert "expected at least 1" in outcome.stderr
