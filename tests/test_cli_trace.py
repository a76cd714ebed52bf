"""``scr_crit trace`` as a user meets it: heat3d under mpiexec and the tracer, and a restart that proves it.

Needs Valgrind with its headers when the package is installed, mpicc, mpiexec and an SCR.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from scr_critplugin.criticality import CriticalityMap
from scr_critplugin.errors import CritError
from scr_critplugin.installation import tracer_folder
from scr_critplugin.plan import Plan

SCR_CRIT = str(Path(sys.executable).with_name("scr_crit"))
HEAT3D = Path(__file__).resolve().parent.parent / "integration" / "apps" / "heat3d"
GRID = ("--n", "16", "12", "12")  # two ranks with 8 x 12 x 12 cells each, and two ghosts on every side
RUN = (*GRID, "--steps", "7", "--every", "3")
INTERIOR, ARRAY, HEADER = 8 * 12 * 12 * 8, 12 * 16 * 16 * 8, 72
DROPPED = 2 * (ARRAY - INTERIOR) + 2 * ARRAY


@pytest.fixture(scope="module", autouse=True)
def _tracer() -> None:
    try:
        tracer_folder()
    except CritError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def heat3d(tmp_path_factory: pytest.TempPathFactory, scr_root: Path, mpicc: str) -> Path:
    """heat3d in C, with debug information."""
    build = tmp_path_factory.mktemp("heat3d")
    settings = [f"SCR_ROOT={scr_root}", f"BUILD={build}", f"MPICC={mpicc}", "CFLAGS=-O2 -g"]
    subprocess.run(["make", "-C", str(HEAT3D), "heat3d_c", *settings], check=True, capture_output=True)
    return build / "heat3d_c"


@dataclass
class Site:
    """A prefix, and how to run there."""

    prefix: Path
    mpiexec: list[str]
    program: Path

    def environment(self, **more: str) -> dict[str, str]:
        own = {
            "SCR_PREFIX": str(self.prefix),
            "SCR_CACHE_BASE": str(self.prefix / "cache"),
            "SCR_CNTL_BASE": str(self.prefix / "cntl"),
            "SCR_JOB_ID": "test",
            "SCR_USER_NAME": "test",
            "SCR_CACHE_BYPASS": "1",
            "SCR_CRIT_STAGE": str(self.prefix / "stage"),
        }
        return {**os.environ, **own, **more}

    def call(self, *words: object, ranks: int = 2, **more: str) -> subprocess.CompletedProcess[str]:
        """Run on some ranks; 0: without a launcher."""
        command = [*([*self.mpiexec, "-n", str(ranks)] if ranks else []), *map(str, words)]
        return subprocess.run(
            command,
            cwd=self.prefix,
            env=self.environment(**more),
            capture_output=True,
            text=True,
            check=False,
        )

    def trace(self, *options: str, arguments: tuple[str, ...] = RUN, ranks: int = 2, **more: str):
        """Run scr_crit trace on heat3d."""
        return self.call(SCR_CRIT, "trace", *options, self.program, *arguments, ranks=ranks, **more)

    def forget(self) -> None:
        """Remove checkpoints and what SCR knows of them."""
        for name in ("ckpt.*", "cache", "cntl", ".scr"):
            for path in self.prefix.glob(name):
                subprocess.run(["rm", "-rf", str(path)], check=True)

    @property
    def plan(self) -> Path:
        return self.prefix / ".scr_crit" / "plan"

    def runs(self) -> list[Path]:
        return sorted((self.prefix / ".scr_crit" / "trace").glob("*"))


@pytest.fixture
def site(tmp_path: Path, mpiexec: list[str], heat3d: Path) -> Site:
    return Site(tmp_path, mpiexec, heat3d)


@pytest.fixture(scope="module")
def traced(
    tmp_path_factory: pytest.TempPathFactory, mpiexec: list[str], heat3d: Path
) -> tuple[Site, subprocess.CompletedProcess[str]]:
    """One traced run on two ranks, with what was printed; tests that need it do not change it."""
    site = Site(tmp_path_factory.mktemp("traced"), mpiexec, heat3d)
    (site.prefix / "in.nml").write_text("an input\n")
    done = site.trace("--fingerprint", "in.nml", OMP_NUM_THREADS="1")
    assert done.returncode == 0, done.stdout + done.stderr
    site.forget()
    return site, done


Traced = tuple[Site, subprocess.CompletedProcess[str]]


def digest(done: subprocess.CompletedProcess[str]) -> str:
    found = re.search(r"^digest (\w+)", done.stdout, re.MULTILINE)
    assert found is not None, done.stdout + done.stderr
    return found[1]


def test_ghosts_and_scratch_of_an_untouched_program_are_found(traced: Traced) -> None:
    site, _ = traced
    (path,) = (site.prefix / ".scr_crit" / "maps").glob("*.map.npz")
    states = [variable for variable in CriticalityMap.load(path).values() if variable.nbytes == ARRAY]
    assert len(states) == 4
    interior = np.zeros((12, 16, 16, 8), bool)
    interior[2:-2, 2:-2, 2:-2] = True
    for field in states[:2]:
        critical = np.repeat(field.critical.ravel(), field.dtype.itemsize)
        assert (critical == interior.ravel()).all()
    for scratch in states[2:]:
        assert not scratch.critical.any()


def test_what_is_printed_says_what_is_dropped_and_what_comes_next(traced: Traced) -> None:
    _, done = traced
    total, dropped = 2 * (HEADER + 4 * ARRAY), 2 * DROPPED
    assert f"a checkpoint: 2 files, {total} bytes, of which {dropped} are dropped" in done.stdout
    assert "{dataset}/heat.{rank}: 2 files" in done.stdout
    assert "SCR_CRIT_PLUGIN=1" in done.stdout
    assert "plan: .scr_crit/plan " in done.stdout
    assert "fresh start" in done.stdout  # the program's own output is passed on


def test_the_plan_says_what_it_was_made_for(traced: Traced, heat3d: Path) -> None:
    facts = Plan.load(traced[0].plan).facts
    assert facts["program"] == str(heat3d.resolve())
    assert re.fullmatch(r"[0-9a-f]{8,}", facts["program.build_id"])
    assert facts["program.arguments"] == " ".join(RUN)
    assert facts["fingerprint.in.nml"].startswith("sha256:")
    assert facts["environment.OMP_NUM_THREADS"] == "1"
    assert (facts["ranks"], facts["traced.checkpoints"]) == ("2", "2")


def test_a_restart_without_what_was_dropped_ends_the_same(traced: Traced) -> None:
    """Longer than the trace, from a checkpoint that was not traced, with NaN in all that was dropped."""
    site, _ = traced
    longer = (*GRID, "--steps", "20", "--every", "5")
    whole = site.call(site.program, *longer)
    site.forget()
    killed = site.call(SCR_CRIT, "run", "--", site.program, *longer, "--die-at", "17")
    assert killed.returncode != 0
    for rank in range(2):
        size = (site.prefix / "ckpt.15" / f"heat.{rank}").stat().st_size
        assert size < HEADER + 4 * ARRAY - DROPPED + 1000
    again = site.call(SCR_CRIT, "run", "--", site.program, *longer, SCR_CRIT_FILL="nan")
    assert "restarted from ckpt.15" in again.stdout
    assert digest(again) == digest(whole)
    site.forget()


def test_the_plan_is_made_anew_without_the_program(traced: Traced) -> None:
    site, _ = traced
    name = next(iter(Plan.load(site.plan).entries[0].sections[1:])).name
    other = site.prefix / "other.plan"
    done = site.call(SCR_CRIT, "trace", "--shape", f"{name}=12,16,16", "-o", other, ranks=0)
    assert done.returncode == 0, done.stderr
    assert "12 x 16 x 16" in done.stdout
    assert Plan.load(other).entries[0].sections[1].unit_kept in (None, INTERIOR)
    wrong = site.call(SCR_CRIT, "trace", "--shape", "nothing=3", "-o", other, ranks=0)
    assert wrong.returncode == 1
    assert "nothing" in wrong.stderr and name in wrong.stderr


def test_a_traced_restart_is_united_with_the_run_before(site: Site) -> None:
    assert site.trace().returncode == 0
    site.forget()
    longer = (*GRID, "--steps", "9", "--every", "4")
    assert site.call(site.program, *longer, "--die-at", "6").returncode != 0
    done = site.trace("--restart", arguments=longer)
    assert done.returncode == 0, done.stderr
    assert "restarted from ckpt.4" in done.stdout
    assert "read in a restart" in done.stdout
    assert "united: 2 runs" in done.stdout
    facts = Plan.load(site.plan).facts
    assert (facts["traced.runs"], facts["traced.restarts"]) == ("2", "1")
    dropped = re.search(r"of which (\d+) are dropped", done.stdout)
    assert dropped is not None
    # A byte of each buffer that the C library fills is looked at while the file is read.
    assert 2 * DROPPED - 200 < int(dropped[1]) <= 2 * DROPPED
    # --fresh: neither united nor kept.
    site.forget()
    fresh = site.trace("--fresh", arguments=(*GRID, "--steps", "4", "--every", "2"))
    assert "united: 1 run " in fresh.stdout
    assert len(site.runs()) == 1


def test_nothing_to_restart_from_is_an_error(site: Site) -> None:
    done = site.trace("--restart", ranks=1)
    assert done.returncode == 1
    assert "did not restart" in done.stderr
    assert not site.plan.exists()


def test_a_program_that_fails_leaves_no_plan_and_an_older_one_as_it_was(site: Site) -> None:
    site.plan.parent.mkdir()
    site.plan.write_bytes(b"older")
    done = site.trace(arguments=("--nonsense",), ranks=1)
    assert done.returncode not in (0, 1) or "no plan was made" in done.stderr
    assert "no plan was made" in done.stderr
    assert site.plan.read_bytes() == b"older"
    assert site.runs() == []


def test_a_program_that_is_killed_leaves_no_plan(site: Site) -> None:
    done = site.trace(arguments=(*RUN, "--die-at", "5"))
    assert done.returncode != 0
    assert not site.plan.exists()
    # What is left of it is not taken for a whole run.
    assert site.trace(arguments=("--help",), ranks=1).returncode == 1


def test_dataset_without_a_name(site: Site) -> None:
    """SCR_Start_checkpoint names no dataset; what changes in the files' names from one to the next is it."""
    done = site.trace(arguments=(*RUN, "--legacy"))
    assert done.returncode == 0, done.stderr
    (entry,) = Plan.load(site.plan).entries
    assert entry.pattern in ("ckpt.*/heat.{rank}", "{dataset}/heat.{rank}")


def test_a_program_without_scr_is_told(site: Site) -> None:
    done = site.call(SCR_CRIT, "trace", "/bin/true", ranks=0)
    assert done.returncode == 1
    assert "no checkpoint" in done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--shape", "u", "x"], "expected a variable and its lengths"),
        (["--shape", "u=0,3", "x"], "at least 1"),
        (["--until-flat", "3"], "expected a PROGRAM"),
        (["--nonsense", "x"], "No such option"),
        (["--fingerprint", "nowhere", "x"], "nowhere"),
        (["./nowhere"], "no such program"),
        ([], "no traces of earlier runs"),
    ],
)
def test_wrong_uses_are_explained(tmp_path: Path, words: list[str], message: str) -> None:
    done = subprocess.run([SCR_CRIT, "trace", *words], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode in (1, 2)
    assert message in done.stderr


def test_help_is_complete(tmp_path: Path) -> None:
    done = subprocess.run([SCR_CRIT, "trace", "--help"], capture_output=True, text=True, check=True)
    options = (
        "--restart",
        "--shape",
        "--fingerprint",
        "--until-flat",
        "--dump",
        "--prefix",
        "--output",
        "--fresh",
    )
    assert all(option in done.stdout for option in options)


def test_records_are_json(traced: Traced) -> None:
    (run,) = traced[0].runs()
    record = json.loads((run / "rank-1.json").read_text())
    assert (record["rank"], record["ranks"], record["exit_code"]) == (1, 2, 0)
    # Links to Valgrind and other scaffolding are gone.
    assert sorted(path.suffix for path in run.iterdir()) == [
        "",
        *[".json"] * 2,
        *[".runs"] * 2,
        *[".trace"] * 2,
    ]
