"""The demonstration's work: build heat3d and an SCR, make its plan, run, kill and restart it, measure.

May import analysis, layout, plan; knows nothing of the terminal. Tests: ``tests/test_demo.py``.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from scr_critplugin.cli.run import plugin_environment
from scr_critplugin.errors import CritError
from scr_critplugin.installation import demo_sources

STEPS, EVERY, DIE_AT = 60, 10, 47
TRACED_EVERY = 4
# SCR's two ways to store a checkpoint: in cache, flushed to the prefix; or straight to the prefix.
MODES = {
    "cache": {"SCR_CACHE_BYPASS": "0", "SCR_FLUSH": "1", "SCR_CACHE_SIZE": "2"},
    "bypass": {"SCR_CACHE_BYPASS": "1"},
}


@dataclass(frozen=True)
class Outcome:
    """What one run of heat3d said."""

    digest: str
    restarted_from: str | None


@dataclass(frozen=True)
class Mpi:
    """The MPI to build and run with; `mpifort` is None where it has no Fortran."""

    mpicc: str
    mpiexec: str
    mpifort: str | None


def find_mpi() -> Mpi:
    """Find mpicc and mpiexec: MPICC and MPIEXEC, else beside this Python, else on the PATH.

    Raises
    ------
    CritError
        When one is missing.
    """
    found = {}
    for variable, name in (("MPICC", "mpicc"), ("MPIEXEC", "mpiexec")):
        beside = Path(sys.executable).parent / name
        path = shutil.which(os.environ.get(variable) or (str(beside) if beside.exists() else name))
        if path is None:
            raise CritError(
                f"no {name}: install an MPI, or `pip install 'scr_critplugin[mpi]'`, or set {variable}",
                key=variable,
            )
        found[name] = path
    mpifort = os.environ.get("MPIFORT") or str(Path(found["mpicc"]).with_name("mpifort"))
    works = shutil.which(mpifort) and shutil.which("gfortran")
    return Mpi(found["mpicc"], found["mpiexec"], mpifort if works else None)


def build_scr(folder: Path, mpi: Mpi) -> tuple[Path, str]:
    """Return an SCR's install prefix and its name for reports: $SCR_ROOT, else the stand-in, built here."""
    real = os.environ.get("SCR_ROOT")
    if real:
        return Path(real), _version_of(Path(real))
    prefix = folder / "scr_local"
    _make(
        demo_sources() / "scr_local",
        "install",
        MPICC=mpi.mpicc,
        BUILD=folder / "build.scr_local",
        PREFIX=prefix,
    )
    return prefix, "local"


def _version_of(prefix: Path) -> str:
    header = (prefix / "include" / "scr.h").read_text()
    version = re.search(r'define\s+SCR_VERSION\s+"v?([^"]+)"', header)
    return version.group(1) if version else "unknown"


def build_heat3d(folder: Path, mpi: Mpi, scr_root: Path, language: str = "c") -> Path:
    """Build heat3d in C ("c") or Fortran ("f") against that SCR; it knows nothing of the plugin."""
    target = f"heat3d_{language}"
    _make(
        demo_sources() / "heat3d",
        target,
        MPICC=mpi.mpicc,
        MPIFORT=mpi.mpifort or "",
        BUILD=folder / "build.heat3d",
        SCR_ROOT=scr_root,
    )
    return folder / "build.heat3d" / target


def _make(source: Path, target: str, **variables: object) -> None:
    words = [f"{name}={value}" for name, value in variables.items()]
    made = subprocess.run(
        ["make", "-C", str(source), *words, target], capture_output=True, text=True, check=False
    )
    if made.returncode != 0:
        raise CritError(f"`make {target}` failed:\n{made.stderr.strip()}", path=source)


@dataclass(frozen=True)
class Job:
    """heat3d on some ranks, with a prefix, cache and control directory of its own."""

    program: Path
    mpi: Mpi
    ranks: int
    folder: Path
    settings: dict[str, str]
    scr_root: Path
    plan: Path | None = None
    fill: str = "zero"

    @property
    def prefix(self) -> Path:
        """The job's SCR_PREFIX."""
        return self.folder / "prefix"

    def run(self) -> Outcome:
        """Run, or restart, to the end.

        Raises
        ------
        CritError
            When heat3d fails or prints no digest.
        """
        ended = self._launch("--steps", str(STEPS), "--every", str(EVERY))
        digest = re.search(r"^digest ([0-9a-f]{16})", ended.stdout, re.MULTILINE)
        if ended.returncode != 0 or digest is None:
            raise CritError(f"heat3d ended with status {ended.returncode}:\n{ended.stdout}{ended.stderr}")
        restarted = re.search(r"^restarted from (\S+)", ended.stdout, re.MULTILINE)
        return Outcome(digest.group(1), restarted.group(1) if restarted else None)

    def run_until_killed(self) -> None:
        """Run until rank 0 raises SIGKILL on itself after step DIE_AT, with no chance to clean up."""
        ended = self._launch("--steps", str(STEPS), "--every", str(EVERY), "--die-at", str(DIE_AT))
        if ended.returncode == 0 or "digest" in ended.stdout:
            raise CritError(f"heat3d was to be killed after step {DIE_AT}, but ran to its end")

    def trace(self, plan: Path) -> None:
        """Make a plan by tracing heat3d: a run that checkpoints twice, and one that restarts from its last.

        Raises
        ------
        CritError
            When tracing fails.
        """
        tracer = [str(Path(sys.executable).with_name("scr_crit")), "trace", "-o", str(plan)]
        for steps, options in ((2 * TRACED_EVERY, ["--fresh"]), (3 * TRACED_EVERY, ["--restart"])):
            ended = self._launch(
                "--steps", str(steps), "--every", str(TRACED_EVERY), wrapper=[*tracer, *options]
            )
            if ended.returncode != 0:
                raise CritError(
                    f"`scr_crit trace` of heat3d ended with status {ended.returncode}:\n"
                    f"{ended.stdout}{ended.stderr}"
                )

    def _launch(self, *options: str, wrapper: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
        self.prefix.mkdir(parents=True, exist_ok=True)
        command = [self.mpi.mpiexec, "-n", str(self.ranks), *wrapper, str(self.program), *options]
        return subprocess.run(
            command, cwd=self.prefix, env=self._environment(), capture_output=True, text=True, check=False
        )

    def _environment(self) -> dict[str, str]:
        environment = plugin_environment(self.plan) if self.plan else dict(os.environ)
        environment.update(self.settings)
        environment.update(
            {
                "SCR_ROOT": str(self.scr_root),
                "SCR_PREFIX": str(self.prefix),
                "SCR_CACHE_BASE": str(self.folder / "cache"),
                "SCR_CNTL_BASE": str(self.folder / "cntl"),
                "SCR_JOB_ID": "scr_crit_demo",
                "SCR_USER_NAME": "scr_crit_demo",
                "SCR_CRIT_STAGE": str(self.folder / "stage"),
                "SCR_CRIT_FILL": self.fill,
                # Open MPI refuses root, and more ranks than cores, unless told otherwise.
                "OMPI_ALLOW_RUN_AS_ROOT": "1",
                "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                "OMPI_MCA_rmaps_base_oversubscribe": "1",
            }
        )
        return environment

    def checkpoints(self) -> dict[str, Path]:
        """Checkpoint files under the prefix, by their path relative to it."""
        return {
            path.relative_to(self.prefix).as_posix(): path
            for path in sorted(self.prefix.glob("ckpt.*/heat.*"))
        }

    def lose_cache(self) -> None:
        """Remove cache and control directories, as a lost node would: the restart fetches from the prefix."""
        for name in ("cache", "cntl"):
            shutil.rmtree(self.folder / name, ignore_errors=True)


def zstd_bytes(files: dict[str, Path]) -> int | None:
    """Size of the files after zstd -3, each by itself; None when the zstandard module is not there."""
    if importlib.util.find_spec("zstandard") is None:
        return None
    import zstandard

    compressor = zstandard.ZstdCompressor(level=3)
    return sum(len(compressor.compress(path.read_bytes())) for path in files.values())
