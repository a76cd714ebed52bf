"""Builds the programs of this folder, runs them plainly and under the tracer, restarts them from poison.

Needs an MPI, an SCR and Valgrind with the tool (fixtures in ``conftest.py``). Knows the trace through
``traced_records.py`` alone. Tests: ``test_traced_harness.py``.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from traced_records import CRITICAL, DEAD, READ, SHARED, UNTOLD, UNUSED, Trace, TracedFile, read_trace
from traced_truth import Truth

HERE = Path(__file__).resolve().parent
PROGRAMS = HERE / "programs"
WARNINGS = ["-Wall", "-Wextra"]
# Long enough for a loaded machine: it only turns a hang into a failure.
HANG = 300


class RunError(Exception):
    """A program did not compile, or did not do what it should."""


def call(command: Sequence[str | Path], **options: object) -> str:
    """Run and return what it printed; RunError with all output when it fails."""
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, timeout=HANG, check=False, **options)  # type: ignore[call-overload]
    if done.returncode != 0:
        raise RunError(f"{' '.join(words)}\nended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return str(done.stdout)


@dataclass
class Toolchain:
    """Compilers and libraries; builds each program once for each set of flags."""

    cc: str
    cxx: str
    scr_root: Path
    folder: Path
    include: Sequence[Path] = ()
    built: dict[tuple[str, ...], Path] = field(default_factory=dict)

    def build(self, source: str | Path, *flags: str) -> Path:
        """Build a program of ``programs/``, or of another folder by its absolute path; the program's path.

        Flags that begin with ``-l`` or ``-L`` come last; ``-O2`` holds unless another ``-O`` is given.
        """
        key = (str(source), *flags)
        if key not in self.built:
            target = self.folder / f"{len(self.built)}" / Path(source).stem
            target.parent.mkdir(parents=True)
            build = self._fortran if str(source).endswith(".f90") else self._c
            build(PROGRAMS / source, target, ["-O2", "-g", *flags])
            self.built[key] = target
        return self.built[key]

    def includes(self) -> list[str]:
        """Options that find the headers of SCR, MPI and the programs."""
        return [f"-I{folder}" for folder in (PROGRAMS, self.scr_root / "include", *self.include)]

    def link_scr(self, library: str) -> list[str]:
        """Options that link the SCR under test."""
        folders = [lib for lib in (self.scr_root / "lib", self.scr_root / "lib64") if lib.is_dir()]
        return [f"-L{lib}" for lib in folders] + [f"-Wl,-rpath,{lib}" for lib in folders] + [f"-l{library}"]

    def _c(self, source: Path, target: Path, flags: list[str]) -> None:
        compiler = [self.cxx, "-std=c++17"] if source.suffix == ".cpp" else [self.cc, "-std=c11"]
        libraries = [flag for flag in flags if flag.startswith(("-l", "-L"))]
        options = [flag for flag in flags if flag not in libraries]
        made = [source, "-o", target, *self.link_scr("scr"), *libraries]
        call([*compiler, *WARNINGS, *options, *self.includes(), *made])

    def _fortran(self, source: Path, target: Path, flags: list[str]) -> None:
        compiler = os.environ.get("FC") or "gfortran"
        options = ["-std=f2008", "-Wall", *flags, *self.includes(), "-J", target.parent]
        objects = []
        for part in (PROGRAMS / "job.f90", source):
            objects.append(target.parent / f"{part.stem}.o")
            call([compiler, *options, "-c", part, "-o", objects[-1]])
        call([self.cc, *objects, "-o", target, *self.link_scr("scrf"), "-lgfortran", "-lm"])


@dataclass
class Job:
    """One program in a folder of its own."""

    program: Path
    arguments: Sequence[str]
    ranks: int
    folder: Path
    mpiexec: Sequence[str]
    valgrind_lib: Path | None = None
    settings: dict[str, str] = field(default_factory=dict)
    traced: int = 0
    printed: str = ""  # by the last run

    @property
    def prefix(self) -> Path:
        """SCR_PREFIX."""
        return self.folder / "prefix"

    def run(self) -> str:
        """Run from the beginning, or from what SCR has; the digests."""
        return self._digests(self._launch([]))

    def trace(self) -> tuple[str, list[Trace]]:
        """The same under the tracer; and each rank's trace."""
        self.traced += 1
        out = self.folder / f"trace.{self.traced}"
        out.mkdir(parents=True)
        # The process's number tells the ranks' traces apart whatever the launcher calls them.
        start = 'exec valgrind -q --tool=scr_crit --trace-out="$0/$$" "$@"'
        text = self._launch(["sh", "-c", start, str(out)], VALGRIND_LIB=str(self.valgrind_lib))
        traces = sorted((read_trace(path) for path in out.glob("*.trace")), key=lambda trace: trace.rank)
        if [trace.rank for trace in traces] != list(range(self.ranks)):
            raise RunError(
                f"traces of ranks {[trace.rank for trace in traces]}, expected {self.ranks} of them"
            )
        return self._digests(text), traces

    def start_over(self) -> None:
        """Forget all checkpoints."""
        for name in ("prefix", "cache", "cntl"):
            shutil.rmtree(self.folder / name, ignore_errors=True)

    def restart_from(self, dataset: str) -> None:
        """The next run restarts from this dataset: what SCR holds in its cache is lost."""
        for name in ("cache", "cntl"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
        self.settings["SCR_CURRENT"] = dataset

    def _launch(self, before: list[str], **more: str) -> str:
        self.prefix.mkdir(parents=True, exist_ok=True)
        launcher = [*self.mpiexec, "-n", str(self.ranks)] if self.ranks > 1 else []
        environment = {
            **os.environ,
            "SCR_PREFIX": str(self.prefix),
            "SCR_CACHE_BASE": str(self.folder / "cache"),
            "SCR_CNTL_BASE": str(self.folder / "cntl"),
            "SCR_USER_NAME": "tester",
            "SCR_JOB_ID": "traced",
            "SCR_CHECKPOINT_INTERVAL": "3",
            **self.settings,
            **more,
        }
        command = [*launcher, *before, self.program, *self.arguments]
        self.printed = call(command, cwd=self.prefix, env=environment)
        return self.printed

    def _digests(self, text: str) -> str:
        found = sorted(re.findall(r"^digest \d+ [0-9A-Fa-f]{16}$", text, re.MULTILINE))
        if len(found) != self.ranks:
            raise RunError(f"{self.program} printed:\n{text}")
        return "\n".join(found)


# What should be found: of a rank, a file's name, the step that was saved, and whether it was read.
Expected = Callable[[int, str, int, bool], Truth]


def check(traces: Sequence[Trace], step: int, restart: bool, expected: Expected) -> None:
    """Compare one generation of all ranks; AssertionError with the first wrong ranges."""
    complaints = []
    for trace in traces:
        kind = "restart" if restart else "output"
        generation = trace.generation(kind, f"ckpt.{step}")
        if not generation.files:
            complaints.append(f"rank {trace.rank}: no files of {kind} ckpt.{step}")
        for file in generation.files.values():
            text = expected(trace.rank, Path(file.name).name, step, restart).complaint(judged(file, restart))
            if text:
                complaints.append(f"rank {trace.rank}, {kind} ckpt.{step}, {Path(file.name).name}: {text}")
    assert not complaints, "\n".join(complaints)


def judged(file: TracedFile, restart: bool) -> NDArray[np.uint8]:
    """States of a file; where none was recorded a checkpoint's byte is critical."""
    if restart:
        return file.states
    return np.where(file.states == UNTOLD, np.uint8(CRITICAL), file.states)


def droppable(written: TracedFile, read: TracedFile) -> NDArray[np.bool_]:
    """Bytes that both sides allow to drop: the restart decides, unless the first run really read one."""
    dead = (read.states == DEAD) | (read.states == UNUSED)
    was_read = (written.reasons & (1 << READ | 1 << SHARED)) != 0
    return dead & ~was_read


def poison(path: Path, where: NDArray[np.bool_]) -> None:
    """Overwrite bytes of a file with 0xFF, which makes doubles NaN."""
    content = np.fromfile(path, dtype=np.uint8)
    content[where] = 0xFF
    content.tofile(path)


def prove(job: Job, expected: Expected, *, least: float = 0.01) -> None:
    """The whole proof for one program.

    Plain and traced runs give one result; both checkpoints have the states expected; so have the restart
    from the first one and the checkpoint that follows it; and with every droppable byte of that first one
    poisoned, a plain restart still gives the same result. At least that share of the bytes is poisoned.
    """
    plain = job.run()
    job.start_over()
    digest, written = job.trace()
    assert digest == plain, "the tracer changed the result"
    check(written, 3, False, expected)
    check(written, 6, False, expected)
    job.restart_from("ckpt.3")
    digest, read = job.trace()
    assert digest == plain, "the traced restart has another result"
    check(read, 3, True, expected)
    check(read, 6, False, expected)
    poisoned, size = 0, 0
    for before, after in zip(written, read, strict=True):
        sources = before.generation("output", "ckpt.3").files
        for file in after.generation("restart", "ckpt.3").files.values():
            name = Path(file.name).name
            source = next(source for source in sources.values() if Path(source.name).name == name)
            where = droppable(source, file)
            poisoned += int(where.sum())
            size += where.size
            poison(job.prefix / "ckpt.3" / name, where)
    assert poisoned >= least * size, f"only {poisoned} of {size} bytes can be dropped"
    job.restart_from("ckpt.3")
    assert job.run() == plain, f"{poisoned} bytes were called dead or unused, but the restart needs them"
