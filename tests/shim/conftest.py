"""Jobs for the shim's tests: real ranks under mpiexec, which do what a script says (``driver.c``).

Every job has a prefix, cache, control and staging folder of its own. The tests look at what the program saw,
at what lies under the prefix, and at what the shim said. They run the same on a real SCR and on the stand-in.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest

HERE = Path(__file__).resolve().parent

CACHE = {"SCR_CACHE_BYPASS": "0", "SCR_FLUSH": "1", "SCR_CACHE_SIZE": "2"}
BYPASS = {"SCR_CACHE_BYPASS": "1"}

HEADER, ROWS, COLUMNS, GHOSTS = 64, 40, 20, 2

Word = str | int
Line = Sequence[Word]


def content(size: int, seed: int) -> bytes:
    """What ``driver.c`` writes."""
    at = np.arange(size, dtype=np.int64)
    return (seed + at * 31 + (at >> 8) * 17 + (at >> 16) * 3).astype(np.uint8).tobytes()


def critical_bytes() -> np.ndarray:
    """Which bytes of a state file the tests' plan keeps: a header, and an array less its ghost cells."""
    inner = np.zeros((ROWS, COLUMNS), dtype=bool)
    inner[GHOSTS:-GHOSTS, GHOSTS:-GHOSTS] = True
    return np.concatenate([np.ones(HEADER, dtype=bool), np.repeat(inner.ravel(), 8)])


STATE = HEADER + ROWS * COLUMNS * 8


def after_restart(whole: bytes, fill: bytes = b"\0") -> bytes:
    """Return what a restart must read of a packed state file whose whole content was `whole`."""
    data = np.frombuffer(whole, dtype=np.uint8).copy()
    critical = critical_bytes()
    assert data.size == critical.size
    edges = np.flatnonzero(np.diff(np.concatenate([[True], critical, [True]]).astype(np.int8)))
    for start, stop in zip(edges[::2], edges[1::2], strict=True):
        data[start:stop] = np.resize(np.frombuffer(fill, dtype=np.uint8), stop - start)
    return data.tobytes()


@dataclass
class Ended:
    """A job that ended: its status, and what was said."""

    status: int
    stdout: str
    stderr: str

    def reports(self, verb: str, rank: int | None = None) -> list[list[str]]:
        """Return the words of each report of a verb, without rank and verb."""
        lines = [line.split("\t") for line in self.stdout.splitlines()]
        return [
            words[2:]
            for words in lines
            if len(words) > 2 and words[1] == verb and (rank is None or words[0] == str(rank))
        ]

    def messages(self, kind: str) -> list[str]:
        """Return the shim's messages of a kind: ERROR, WARNING."""
        return [line for line in self.stderr.splitlines() if re.match(rf"SCR_CRIT v\S+ {kind}: ", line)]

    @property
    def quiet(self) -> bool:
        """Whether the shim neither warned nor failed."""
        return not self.messages("ERROR") and not self.messages("WARNING")

    def totals(self, rank: int = 0) -> str:
        """Return the closing line of a rank."""
        found = [line for line in self.stdout.splitlines() if f": totals of rank {rank}" in line]
        assert len(found) == 1, self.stdout + self.stderr
        return found[0]


@dataclass
class Job:
    """A place where jobs of one program run one after the other."""

    folder: Path
    program: Path
    mpiexec: list[str]
    preload: list[Path]
    environment: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.prefix.mkdir(parents=True, exist_ok=True)

    @property
    def prefix(self) -> Path:
        return self.folder / "prefix"

    @property
    def cache(self) -> Path:
        return self.folder / "cache"

    @property
    def stage(self) -> Path:
        return self.folder / "stage"

    def settings(self) -> dict[str, str]:
        """Return the environment of a run, before what a test adds."""
        return {
            **os.environ,
            "SCR_PREFIX": str(self.prefix),
            "SCR_CACHE_BASE": str(self.cache),
            "SCR_CNTL_BASE": str(self.folder / "cntl"),
            "SCR_USER_NAME": "tester",
            "SCR_JOB_ID": "job1",
            "SCR_CRIT_STAGE": str(self.stage),
            "SCR_CRIT_PLUGIN": "1",
            "SCR_CRIT_PLAN": str(self.folder / "plan"),
            **self.environment,
        }

    def run(
        self,
        script: Iterable[Line],
        *,
        ranks: int = 2,
        check: bool = True,
        timeout: float = 120,
        unset: Iterable[str] = (),
        **environment: str | Path,
    ) -> Ended:
        """Run the driver with a script; `environment` is added to the settings."""
        text = "".join("\t".join(str(word) for word in line) + "\n" for line in script)
        (self.folder / "script").write_text(text)
        settings = {**self.settings(), **{name: str(value) for name, value in environment.items()}}
        for name in unset:
            settings.pop(name, None)
        if self.preload:
            settings["LD_PRELOAD"] = ":".join(str(library) for library in self.preload)
        command = [*self.mpiexec, "-n", str(ranks), str(self.program), str(self.folder / "script")]
        ended = subprocess.run(
            command,
            cwd=self.prefix,
            env=settings,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout,
        )
        if check:
            assert ended.returncode == 0, ended.stdout + ended.stderr
        return Ended(ended.returncode, ended.stdout, ended.stderr)

    def lose_cache(self) -> None:
        """Remove cache and control folders: the next run fetches from the prefix."""
        subprocess.run(["rm", "-rf", str(self.cache), str(self.folder / "cntl")], check=True)

    def leftovers(self) -> list[Path]:
        """Return what the shim left behind: temporary files, marks, staging."""
        found = [path for place in (self.prefix, self.cache) for path in place.rglob(".scr_crit.*")]
        return sorted([*found, *self.stage.glob("*")])

    def is_packed(self, name: str) -> bool:
        from scr_critplugin import packed

        return packed.is_packed(self.prefix / name)


def checkpoint(number: int, *names: str, size: int = STATE, seed: int | None = None) -> list[Line]:
    """Return the lines that write one checkpoint with a state file a rank, or the given files."""
    name = f"ckpt.{number}"
    files = names or (f"{name}/state.{{rank}}",)
    writes: list[Line] = [("write", file, size, number * 10 if seed is None else seed) for file in files]
    return [("start", name, 1), *writes, ("complete", "auto")]


def session(*parts: Iterable[Line]) -> list[Line]:
    """Return a whole script: SCR_Init, the parts, SCR_Finalize."""
    return [("init",), *(line for part in parts for line in part), ("finalize",)]


class Tools:
    """The functions above, for tests: pytest's importlib mode has no modules beside the tests."""

    CACHE, BYPASS, STATE = CACHE, BYPASS, STATE
    content = staticmethod(content)
    after_restart = staticmethod(after_restart)
    checkpoint = staticmethod(checkpoint)
    session = staticmethod(session)


@pytest.fixture(scope="session")
def tools() -> type[Tools]:
    """Helpers to write scripts and to know what a job must read."""
    return Tools


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory, mpicc: str, scr_root: Path, wrap_lib: Path) -> Path:
    """Folder with the test programs, built once for the SCR under test."""
    folder = tmp_path_factory.mktemp("shim")
    lib = scr_root / "lib"
    common = [
        mpicc,
        "-std=gnu11",
        "-Wall",
        "-Wextra",
        "-O1",
        str(HERE / "driver.c"),
        f"-I{scr_root / 'include'}",
    ]
    link = [f"-L{lib}", f"-Wl,-rpath,{lib}"]

    def make(name: str, *words: str) -> None:
        made = subprocess.run(
            [*common, *words, "-o", str(folder / name)], capture_output=True, text=True, check=False
        )
        assert made.returncode == 0, shlex.join(made.args) + "\n" + made.stderr

    make("driver", *link, "-lscr")
    make("driver_fortran", "-DFORTRAN_ENTRY", *link, "-lscrf")
    # SCR's own components are needed by its static library; the stand-in has none.
    components = ("axl_mpi", "er", "redset", "shuffile", "spath", "rankstr", "kvtree", "dtcmp", "lwgrp")
    others = [f"-l{name}" for name in components if (lib / f"lib{name}.so").exists()]
    others += ["-lz"] if others else []
    options, group = f"-Wl,@{wrap_lib.with_name('scr_crit_wrap.opt')}", ["-Wl,--start-group", str(wrap_lib)]
    for name, archive, words in (
        ("driver_static", "libscr.a", []),
        ("driver_static_fortran", "libscrf.a", ["-DFORTRAN_ENTRY"]),
    ):
        if (lib / archive).exists():
            make(
                name,
                *words,
                options,
                *group,
                str(lib / archive),
                "-Wl,--end-group",
                *link,
                *others,
                "-ldl",
            )
    make(
        "driver_wrap",
        f"-Wl,@{wrap_lib.with_name('scr_crit_wrap.opt')}",
        str(wrap_lib),
        *link,
        "-lscr",
        "-ldl",
    )
    subprocess.run(
        [
            "cc",
            "-shared",
            "-fPIC",
            "-O1",
            "-Wall",
            "-Wextra",
            str(HERE / "faults.c"),
            "-ldl",
            "-o",
            str(folder / "libfaults.so"),
        ],
        check=True,
    )
    return folder


@pytest.fixture(scope="session")
def write_plan() -> Callable[..., None]:
    """Write a plan for state files of the given name patterns."""

    def write(path: Path, *patterns: str, keep_all: bool = False) -> None:
        from scr_critplugin.criticality import CriticalityMap
        from scr_critplugin.layout import Layout
        from scr_critplugin.plan import compile_plan

        mask = np.ones((ROWS, COLUMNS), dtype=bool)
        if not keep_all:
            mask[:] = False
            mask[GHOSTS:-GHOSTS, GHOSTS:-GHOSTS] = True
        chosen = patterns or ("ckpt.*/state.{rank}", "**/state.{rank}", "state.{rank}")
        layout = Layout.raw("any", {"u": (HEADER, "<f8", (ROWS, COLUMNS))}, size=STATE).files[0]
        # With its bounds the plan tells the shim how much staging a file will need.
        files = [replace(layout, pattern=pattern, min_size=STATE, max_size=STATE) for pattern in chosen]
        compile_plan(CriticalityMap.from_masks({"u": mask}, "<f8"), Layout(tuple(files))).save(path)

    return write


@pytest.fixture
def job(
    tmp_path: Path, build: Path, mpiexec: list[str], shim_lib: Path, write_plan: Callable[..., None]
) -> Job:
    """A job with the shim preloaded, in bypass mode, with a plan for state files."""
    made = Job(tmp_path, build / "driver", mpiexec, [shim_lib], dict(BYPASS))
    write_plan(tmp_path / "plan")
    return made


@pytest.fixture(params=["bypass", "cache"])
def any_job(request: pytest.FixtureRequest, job: Job) -> Job:
    """The same in both of SCR's modes."""
    job.environment = dict(CACHE if request.param == "cache" else BYPASS)
    return job


@pytest.fixture(scope="session")
def with_environment() -> Mapping[str, Mapping[str, str]]:
    """The environments of SCR's modes, by name."""
    return {"cache": CACHE, "bypass": BYPASS}
