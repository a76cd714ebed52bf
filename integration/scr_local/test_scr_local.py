"""Tests of the stand-in for libscr, which a real SCR passes as well.

Every test runs `driver.c` under mpiexec against the stand-in and, when SCR_ROOT names an installed SCR
(marker `scr`), against that one: what is asserted here is SCR's behaviour, not the stand-in's. The few tests
of the stand-in alone are at the end. Fixtures `mpicc` and `mpiexec` come from the root's conftest.py.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
CHECKPOINT, OUTPUT = 1, 2
# Long enough for a loaded machine: it only turns a hang into a failure.
HANG = 120

# What a static libscr of the real SCR needs behind it; the stand-in needs nothing.
COMPONENTS = ["axl_mpi", "er", "shuffile", "redset", "spath", "rankstr", "kvtree", "dtcmp", "lwgrp"]


@dataclass(frozen=True)
class Library:
    """An installed SCR, and how to compile against it."""

    root: Path
    mpicc: str

    def compile(self, target: Path, *arguments: str) -> Path:
        strict = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-O1"]
        command = [self.mpicc, *strict, "-o", str(target), *arguments]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return target

    def program(self, target: Path, *options: str, library: str = "scr") -> Path:
        lib = self.root / "lib"
        return self.compile(
            target,
            *options,
            str(HERE / "driver.c"),
            f"-I{self.root / 'include'}",
            f"-L{lib}",
            f"-l{library}",
            f"-Wl,-rpath,{lib}",
        )

    def static_program(self, target: Path, *options: str, library: str = "scr") -> Path:
        lib = self.root / "lib"
        components = [lib / f"lib{name}.a" for name in COMPONENTS]
        behind = [str(archive) for archive in components if archive.exists()]
        if behind:
            behind += ["-lz", "-lpthread"]
        return self.compile(
            target,
            *options,
            str(HERE / "driver.c"),
            f"-I{self.root / 'include'}",
            str(lib / f"lib{library}.a"),
            *behind,
        )


@pytest.fixture(scope="session")
def stand_in(tmp_path_factory: pytest.TempPathFactory, mpicc: str) -> Library:
    """The stand-in, built here whatever SCR_ROOT says."""
    work = tmp_path_factory.mktemp("stand_in")
    command = [
        "make",
        "-C",
        str(HERE),
        f"MPICC={mpicc}",
        f"BUILD={work / 'build'}",
        f"PREFIX={work / 'install'}",
        "CFLAGS=-O1 -g -Werror",
        "install",
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return Library(work / "install", mpicc)


@pytest.fixture(scope="session", params=["stand-in", pytest.param("scr", marks=pytest.mark.scr)])
def library(request: pytest.FixtureRequest, mpicc: str) -> Library:
    """The SCR under test: the stand-in, then the one of SCR_ROOT."""
    if request.param == "stand-in":
        found: Library = request.getfixturevalue("stand_in")
        return found
    return Library(Path(os.environ["SCR_ROOT"]), mpicc)


@pytest.fixture(scope="session")
def driver(library: Library, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return library.program(tmp_path_factory.mktemp("driver") / "driver")


@dataclass(frozen=True)
class Call:
    """One call of one rank: what it returned and what it gave."""

    verb: str
    result: int
    gave: list[str]


@dataclass
class Run:
    """A finished launch; `ranks[r]` are the calls of rank r."""

    status: int
    output: str
    ranks: list[list[Call]]

    def results(self, verb: str) -> list[int]:
        """The return values of all calls of this kind, over all ranks."""
        return [call.result for calls in self.ranks for call in calls if call.verb == verb]

    def gave(self, verb: str, rank: int = 0) -> list[list[str]]:
        return [call.gave for call in self.ranks[rank] if call.verb == verb]


@dataclass
class Job:
    """A job's directories and parameters: launches share them, as the launches of an allocation do."""

    work: Path
    mpiexec: list[str]
    driver: Path
    environment: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.prefix.mkdir()
        self.environment = {
            "SCR_PREFIX": str(self.prefix),
            "SCR_CACHE_BASE": str(self.cache),
            "SCR_CNTL_BASE": str(self.control),
            "SCR_USER_NAME": "tester",
            "SCR_JOB_ID": "job1",
        }

    @property
    def prefix(self) -> Path:
        return self.work / "prefix"

    @property
    def cache(self) -> Path:
        return self.work / "cache"

    @property
    def control(self) -> Path:
        return self.work / "control"

    @property
    def cached_datasets(self) -> list[str]:
        return sorted(path.name for path in self.cache.glob("tester/scr.job1/scr.dataset.*"))

    def use_cache(self, flush: int = 1, size: int = 2) -> None:
        self.environment |= {
            "SCR_CACHE_BYPASS": "0",
            "SCR_FLUSH": str(flush),
            "SCR_CACHE_SIZE": str(size),
        }

    def lose_cache(self) -> None:
        """A new allocation: nothing node-local is left."""
        shutil.rmtree(self.cache)
        shutil.rmtree(self.control)

    def launch(self, ranks: int, *calls: str, **environment: str) -> Run:
        log = self.work / "log"
        for old in self.work.glob("log.*"):
            old.unlink()
        done = subprocess.run(
            [*self.mpiexec, "-n", str(ranks), str(self.driver), str(log), *calls],
            cwd=self.prefix,
            env={**os.environ, **self.environment, **environment},
            capture_output=True,
            text=True,
            errors="replace",
            timeout=HANG,
        )
        said = [path.read_text(errors="replace") for path in sorted(self.work.glob("log.*.said"))]
        output = "".join([done.stdout, done.stderr, *said])
        return Run(done.returncode, output, [self._calls(log, r) for r in range(ranks)])

    def run(self, ranks: int, *calls: str, **environment: str) -> Run:
        """A launch that must come to its end."""
        run = self.launch(ranks, "init", *calls, "finalize", **environment)
        assert run.status == 0, run.output
        assert run.results("init") == run.results("finalize") == [0] * ranks
        return run

    def run_and_die(self, ranks: int, *calls: str, **environment: str) -> Run:
        """A launch that ends by SIGKILL, before SCR_Finalize."""
        run = self.launch(ranks, "init", *calls, "barrier", "@0:die", "barrier", **environment)
        assert run.status != 0
        return run

    @staticmethod
    def _calls(log: Path, rank: int) -> list[Call]:
        path = Path(f"{log}.{rank}")
        calls = []
        for line in path.read_text().splitlines() if path.exists() else []:
            verb, result, *gave = line.split("\t")
            calls.append(Call(verb, int(result), gave))
        return calls


@pytest.fixture
def new_job(tmp_path: Path, mpiexec: list[str], driver: Path) -> Callable[[str], Job]:
    def make(name: str) -> Job:
        (tmp_path / name).mkdir()
        return Job(tmp_path / name, mpiexec, driver)

    return make


@pytest.fixture
def job(new_job: Callable[[str], Job]) -> Job:
    return new_job("job")


@pytest.fixture(params=["bypass", "cache"])
def any_job(request: pytest.FixtureRequest, job: Job) -> Job:
    """A job in each of SCR's two modes."""
    if request.param == "cache":
        job.use_cache()
    return job


def checkpoint(name: str, *, size: int = 1000, valid: str = "1") -> list[str]:
    return [f"start_output={CHECKPOINT},{name}", f"write={size},{name}/state.%r", f"complete_output={valid}"]


def restart(name: str, *, size: int = 1000, valid: str = "1") -> list[str]:
    return ["have", "start_restart", f"read={size},{name}/state.%r", f"complete_restart={valid}"]


def offered(run: Run) -> list[str]:
    """The checkpoints that SCR_Have_restart offered, "" where it had none; all ranks must agree."""
    answers = [[f"{flag}:{name}" for flag, name in run.gave("have", r)] for r in range(len(run.ranks))]
    assert all(answer == answers[0] for answer in answers)
    return [answer.removeprefix("1:") if answer.startswith("1:") else "" for answer in answers[0]]


def verdicts(run: Run, verb: str = "read") -> set[str]:
    return {gave[0] for r in range(len(run.ranks)) for gave in run.gave(verb, r)}


# ---------------------------------------------------------------------------------- writing and reading


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_restart_reads_what_was_written(any_job: Job, ranks: int) -> None:
    assert offered(any_job.run(ranks, "have", *checkpoint("c1"))) == [""]
    run = any_job.run(ranks, *restart("c1"))
    assert offered(run) == ["c1"]
    assert verdicts(run) == {"same"}
    assert run.results("complete_restart") == [0] * ranks


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_fetch_when_the_cache_is_lost(any_job: Job, ranks: int) -> None:
    any_job.run(ranks, *checkpoint("c1"), *checkpoint("c2"))
    any_job.lose_cache()
    run = any_job.run(ranks, *restart("c2"))
    assert offered(run) == ["c2"]
    assert verdicts(run) == {"same"}


def test_all_kinds_of_files(any_job: Job) -> None:
    """Several a rank, none on the last rank, empty ones, directories, blanks, per cent and UTF-8 in names."""
    names = [
        "100,plain.%r",
        "0,empty.%r",
        "5000,a/b/c/deep.%r",
        "70,with blank %r",
        "70,100%% of it.%r",
        "70,ünïcode.%r",
        "65537,x/../y/./dots.%r",
    ]
    files = [f"@{rank}:{{}}={name}" for rank in (0, 1) for name in names]
    any_job.run(
        3,
        f"start_output={CHECKPOINT},name with blanks/c 1",
        *(f.format("write") for f in files),
        "complete_output=1",
    )
    expected = {"plain", "empty", "deep", "with blank ", "dots"}
    for lost in (False, True):
        if lost:
            any_job.lose_cache()
        reads = [f.format("read") for f in files]
        run = any_job.run(3, "have", "start_restart", *reads, "complete_restart=1")
        assert offered(run) == ["name with blanks/c 1"]
        assert verdicts(run) == {"same"}
        assert len(run.results("read")) == 2 * len(names)
    in_prefix = {path.name for path in any_job.prefix.rglob("*") if path.is_file()}
    assert all(any(name.startswith(stem) for name in in_prefix) for stem in expected)
    assert (any_job.prefix / "y" / "dots.0").stat().st_size == 65537


def test_dataset_without_files(any_job: Job) -> None:
    any_job.run(2, f"start_output={CHECKPOINT},nothing", "complete_output=1")
    assert offered(any_job.run(2, "have", "start_restart", "complete_restart=1")) == ["nothing"]


def test_start_checkpoint_makes_a_name(any_job: Job) -> None:
    run = any_job.run(2, "start_checkpoint", "write=10,f.%r", "complete_checkpoint=1")
    assert run.results("complete_checkpoint") == [0, 0]
    assert offered(any_job.run(2, "have")) == ["scr.dataset.1"]


def test_output_that_is_no_checkpoint_is_not_offered(any_job: Job) -> None:
    any_job.run(2, f"start_output={OUTPUT},plot", "write=10,plot.%r", "complete_output=1")
    assert (any_job.prefix / "plot.1").stat().st_size == 10
    assert offered(any_job.run(2, "have")) == [""]


def test_shared_file(any_job: Job) -> None:
    """Allowed under bypass, and in the cache too as long as all ranks share it."""
    run = any_job.run(4, f"start_output={CHECKPOINT},c1", "share=1000,common.dat", "complete_output=1")
    assert run.results("complete_output") == [0] * 4
    assert (any_job.prefix / "common.dat").stat().st_size == 4000
    run = any_job.run(4, "have", "start_restart", "read_share=1000,common.dat", "complete_restart=1")
    assert verdicts(run, "read_share") == {"same"}
    any_job.run(4, "delete=c1")
    assert not (any_job.prefix / "common.dat").exists()


def test_a_file_may_be_routed_twice(any_job: Job) -> None:
    any_job.run(
        2,
        f"start_output={CHECKPOINT},c1",
        "write=10,c1/state.%r",
        "write=1000,c1/state.%r",
        "complete_output=1",
    )
    assert verdicts(any_job.run(2, *restart("c1"))) == {"same"}


def test_init_again_after_finalize(any_job: Job) -> None:
    run = any_job.launch(
        2, "init", *checkpoint("c1"), "finalize", "init", *restart("c1"), *checkpoint("c2"), "finalize"
    )
    assert run.status == 0, run.output
    assert offered(run) == ["c1"]
    assert offered(any_job.run(2, "have")) == ["c2"]


# ---------------------------------------------------------------------------------- where files go


def test_route_under_bypass(job: Job) -> None:
    (job.prefix / "sub").mkdir()
    run = job.run(
        1,
        f"start_output={CHECKPOINT},c1",
        "write=1,plain",
        "write=1,new/dir/f",
        "write=1,a/../b//./f",
        f"write=1,{job.prefix}/absolute",
        f"chdir={job.prefix}/sub",
        "write=1,relative",
        "write=1,../upward",
        "complete_output=1",
    )
    paths = [str(Path(gave[1]).relative_to(job.prefix)) for gave in run.gave("write")]
    assert paths == ["plain", "new/dir/f", "b/f", "absolute", "sub/relative", "upward"]


def test_route_into_the_cache(job: Job) -> None:
    job.use_cache()
    run = job.run(2, *checkpoint("c1"), *checkpoint("c2"))
    folder = job.cache / "tester" / "scr.job1"
    for rank in (0, 1):
        assert [gave[1] for gave in run.gave("write", rank)] == [
            str(folder / "scr.dataset.1" / f"state.{rank}"),
            str(folder / "scr.dataset.2" / f"state.{rank}"),
        ]
    run = job.run(2, *restart("c2"))
    assert run.gave("read", 1)[0][1] == str(folder / "scr.dataset.2" / "state.1")


def test_route_outside_a_dataset_copies_the_name(job: Job) -> None:
    run = job.launch(2, "route=some/file", "init", "route=../elsewhere %r", "route=", "finalize")
    assert run.status == 0, run.output
    assert run.gave("route", 1) == [["some/file"], ["../elsewhere 1"], [""]]
    assert run.results("route") == [0, 0, 1, 0, 0, 1]


def test_restart_finds_a_file_by_its_base_name(any_job: Job) -> None:
    any_job.run(2, *checkpoint("c1"))
    run = any_job.run(
        2,
        "have",
        "start_restart",
        "route=state.%r",
        "route=c1/state.%r",
        "route=never.%r",
        "complete_restart=1",
    )
    for calls in run.ranks:
        routes = [call for call in calls if call.verb == "route"]
        assert [call.result for call in routes] == [0, 0, 1]
        assert routes[0].gave == routes[1].gave


@pytest.mark.parametrize("name", ["../outside", "/tmp/outside", "a/../../outside"])
def test_names_outside_the_prefix_stop_the_job(any_job: Job, name: str) -> None:
    run = any_job.launch(2, "init", f"start_output={CHECKPOINT},c1", f"write=1,{name}", "complete_output=1")
    assert run.status != 0
    assert "ABORT" in run.output
    assert "must be under SCR_PREFIX" in run.output


def test_names_of_1024_bytes_stop_the_job(job: Job) -> None:
    long_name = "/".join(["d" * 100] * 11)[:1024]
    run = job.launch(1, "init", f"start_output={CHECKPOINT},c1", f"route={long_name}", "complete_output=1")
    assert run.status != 0
    assert "SCR_MAX_FILENAME" in run.output


def test_longest_name(any_job: Job) -> None:
    """A path of exactly 1023 bytes: the largest that fits the caller's buffer."""
    room = 1023 - len(str(any_job.prefix)) - 1
    parts = ["d" * 100] * (room // 101) + ["f" * (room % 101)]
    name = "/".join(part for part in parts if part)
    assert len(f"{any_job.prefix}/{name}") == 1023
    any_job.run(1, f"start_output={CHECKPOINT},c1", f"write=10,{name}", "complete_output=1")
    assert (any_job.prefix / name).stat().st_size == 10
    any_job.lose_cache()
    run = any_job.run(1, "have", "start_restart", f"read=10,{name}", "complete_restart=1")
    assert verdicts(run) == {"same"}


def test_prefix_defaults_to_the_working_directory(job: Job) -> None:
    del job.environment["SCR_PREFIX"]
    job.run(2, *checkpoint("c1"))
    assert (job.prefix / ".scr").is_dir()
    assert verdicts(job.run(2, *restart("c1"))) == {"same"}


# ---------------------------------------------------------------------------------- flush and cache


def in_prefix(job: Job, name: str) -> bool:
    return (job.prefix / name / "state.0").exists()


def test_every_nth_checkpoint_is_flushed(job: Job) -> None:
    job.use_cache(flush=2, size=9)
    job.run_and_die(2, *checkpoint("c1"), *checkpoint("c2"), *checkpoint("c3"))
    assert [in_prefix(job, name) for name in ("c1", "c2", "c3")] == [False, True, False]


def test_finalize_flushes_the_newest_checkpoint(job: Job) -> None:
    job.use_cache(flush=10, size=9)
    job.run(2, *checkpoint("c1"), *checkpoint("c2"))
    assert [in_prefix(job, name) for name in ("c1", "c2")] == [False, True]
    job.lose_cache()
    assert verdicts(job.run(2, *restart("c2"))) == {"same"}


def test_no_flush_when_it_is_switched_off(job: Job) -> None:
    job.use_cache(flush=0, size=9)
    job.run(
        2, *checkpoint("c1"), f"start_output={OUTPUT},plot", "write=10,plot/state.%r", "complete_output=1"
    )
    assert not in_prefix(job, "c1")
    assert in_prefix(job, "plot")


def test_flushed_files_keep_content_mode_and_time(job: Job) -> None:
    job.use_cache()
    job.run(2, *checkpoint("c1", size=3_000_000))
    for rank in (0, 1):
        cached = job.cache / "tester/scr.job1/scr.dataset.1" / f"state.{rank}"
        flushed = job.prefix / "c1" / f"state.{rank}"
        assert cached.read_bytes() == flushed.read_bytes()
        assert cached.stat().st_mtime_ns == flushed.stat().st_mtime_ns
        assert cached.stat().st_mode == flushed.stat().st_mode


@pytest.mark.parametrize("size", [1, 2, 3])
def test_cache_keeps_the_newest_datasets(job: Job, size: int) -> None:
    job.use_cache(size=size)
    job.run(2, *checkpoint("c1"), *checkpoint("c2"), *checkpoint("c3"), *checkpoint("c4"))
    assert job.cached_datasets == [f"scr.dataset.{id}" for id in range(5 - size, 5)]
    assert all(in_prefix(job, f"c{id}") for id in range(1, 5))


def test_prefix_keeps_as_many_as_asked_for(job: Job) -> None:
    job.environment["SCR_PREFIX_SIZE"] = "2"
    job.run(2, *checkpoint("c1"), *checkpoint("c2"), *checkpoint("c3"))
    assert [in_prefix(job, name) for name in ("c1", "c2", "c3")] == [False, True, True]


def test_fetch_can_be_switched_off(any_job: Job) -> None:
    any_job.run(2, *checkpoint("c1"))
    any_job.lose_cache()
    assert offered(any_job.run(2, "have", SCR_FETCH="0")) == [""]


def test_fetch_bypass_reads_in_place(job: Job) -> None:
    job.use_cache()
    job.run(2, *checkpoint("c1"))
    job.lose_cache()
    run = job.run(2, *restart("c1"), SCR_FETCH_BYPASS="1")
    assert run.gave("read")[0] == ["same", str(job.prefix / "c1" / "state.0")]


def test_flush_on_restart(job: Job) -> None:
    job.use_cache(flush=0, size=9)
    job.run(2, *checkpoint("c1"), *checkpoint("c2"))
    job.run(2, "have", SCR_FLUSH_ON_RESTART="1")
    assert in_prefix(job, "c1")
    assert in_prefix(job, "c2")


def test_what_a_killed_run_had_to_flush_is_flushed_at_the_next_start(job: Job) -> None:
    job.use_cache(flush=0, size=9)
    job.run_and_die(2, *checkpoint("c1"), *checkpoint("c2"))
    job.run(2, "have", SCR_FLUSH="2")
    assert in_prefix(job, "c2")


def test_a_flush_that_fails_stops_the_job(job: Job) -> None:
    """The program was told that its checkpoint is on its way: it must not go on as if it were there."""
    job.use_cache()
    job.run(2, *checkpoint("c1"))
    (job.prefix / "c2").write_text("a file where the directory of c2 should be")
    run = job.launch(2, "init", *checkpoint("c2"), "finalize")
    assert run.status != 0
    assert "Flush of dataset 2" in run.output
    job.lose_cache()
    run = job.run(2, *restart("c1"))
    assert offered(run) == ["c1"]
    assert verdicts(run) == {"same"}


def test_purge(job: Job) -> None:
    job.use_cache(flush=0, size=9)
    job.run(2, *checkpoint("c1"))
    assert offered(job.run(2, "have", SCR_CACHE_PURGE="1")) == [""]
    assert job.cached_datasets == []


def test_changes_after_completion_are_noticed(any_job: Job) -> None:
    """SCR says so when the dataset leaves the cache."""
    any_job.environment["SCR_CACHE_SIZE"] = "1"
    any_job.run(2, *checkpoint("c1"))
    for file in [any_job.prefix / "c1/state.1", *any_job.cache.rglob("state.1")]:
        file.write_bytes(bytes(1000))
    run = any_job.run(2, "have", *checkpoint("c2"))
    assert offered(run) == ["c1"]
    assert "WARNING" in run.output
    assert "change in file" in run.output


# ---------------------------------------------------------------------------------- what does not count


def test_one_invalid_rank_makes_the_dataset_invalid_for_all(any_job: Job) -> None:
    run = any_job.run(4, *checkpoint("c1"), *checkpoint("c2", valid="r2"), "have")
    assert run.results("complete_output") == [0, 1] * 4
    assert offered(run) == ["c1"]
    assert offered(any_job.run(4, "have")) == ["c1"]


def test_a_routed_file_that_is_missing_makes_the_dataset_invalid(any_job: Job) -> None:
    run = any_job.run(
        4,
        *checkpoint("c1"),
        f"start_output={CHECKPOINT},c2",
        "write=10,c2/state.%r",
        "@3:route=c2/never_written",
        "complete_output=1",
    )
    assert run.results("complete_output") == [0, 1] * 4
    any_job.lose_cache()
    assert offered(any_job.run(4, "have")) == ["c1"]


@pytest.mark.parametrize(
    "begun",
    [[], ["write=0,c2/state.%r"], ["@1:write=10,c2/state.%r", "@2:route=c2/state.%r"]],
    ids=["nothing written", "empty files", "partly written"],
)
def test_killed_in_the_middle_of_a_checkpoint(any_job: Job, begun: list[str]) -> None:
    any_job.run_and_die(4, *checkpoint("c1"), f"start_output={CHECKPOINT},c2", *begun)
    run = any_job.run(4, *restart("c1"), *checkpoint("c3"))
    assert offered(run) == ["c1"]
    assert verdicts(run) == {"same"}
    any_job.lose_cache()
    assert offered(any_job.run(4, "have")) == ["c3"]


def test_killed_in_the_first_checkpoint(any_job: Job) -> None:
    any_job.run_and_die(2, f"start_output={CHECKPOINT},c1", "write=1000,c1/state.%r")
    any_job.lose_cache()
    assert offered(any_job.run(2, "have")) == [""]


def test_killed_job_that_lost_its_node(any_job: Job) -> None:
    any_job.run_and_die(
        2, *checkpoint("c1"), *checkpoint("c2"), f"start_output={CHECKPOINT},c3", "write=10,c3/state.%r"
    )
    any_job.lose_cache()
    run = any_job.run(2, *restart("c2"))
    assert offered(run) == ["c2"]
    assert verdicts(run) == {"same"}


@pytest.mark.parametrize("damage", ["truncated", "longer", "missing"])
def test_a_cached_file_of_another_size_is_not_offered(job: Job, damage: str) -> None:
    job.use_cache(flush=0)
    job.run(2, *checkpoint("c1"), *checkpoint("c2"))
    victim = job.cache / "tester/scr.job1/scr.dataset.2/state.1"
    if damage == "missing":
        victim.unlink()
    else:
        os.truncate(victim, 999 if damage == "truncated" else 1001)
    run = job.run(2, *restart("c1"))
    assert offered(run) == ["c1"]
    assert verdicts(run) == {"same"}


def test_a_damaged_cache_falls_back_to_the_prefix(job: Job) -> None:
    job.use_cache(flush=1, size=1)
    job.run(2, *checkpoint("c1"))
    os.truncate(job.cache / "tester/scr.job1/scr.dataset.1/state.0", 10)
    run = job.run(2, *restart("c1"))
    assert offered(run) == ["c1"]
    assert verdicts(run) == {"same"}


def test_content_is_not_checked(any_job: Job) -> None:
    """SCR has no checksum: a changed byte of an unchanged size reaches the program."""
    any_job.run(2, *checkpoint("c1"))
    for victim in [any_job.prefix / "c1/state.0", *any_job.cache.rglob("state.0")]:
        content = bytearray(victim.read_bytes())
        content[500] ^= 1
        victim.write_bytes(content)
    assert verdicts(any_job.run(2, *restart("c1"))) == {"different", "same"}


def test_checkpoints_after_lost_output_do_not_count(job: Job) -> None:
    """The output would never be written again if the job went on behind it."""
    job.use_cache(flush=0, size=9)
    job.run(
        2,
        *checkpoint("c1"),
        f"start_output={CHECKPOINT | OUTPUT},both",
        "write=10,both/state.%r",
        "complete_output=1",
        *checkpoint("c3"),
    )
    next(job.cache.rglob("scr.dataset.2/state.0")).unlink()
    assert offered(job.run(2, "have", SCR_FETCH="0")) == ["c1"]


# ---------------------------------------------------------------------------------- fallback


def test_fallback_goes_to_the_one_before(any_job: Job) -> None:
    any_job.run(2, *checkpoint("c1"), *checkpoint("c2"), *checkpoint("c3"))
    run = any_job.run(2, *restart("c3", valid="r1"), *restart("c2"))
    assert offered(run) == ["c3", "c2"]
    assert run.results("complete_restart") == [1, 0] * 2
    assert verdicts(run) == {"same"}


def test_fallback_ends_when_nothing_is_left(any_job: Job) -> None:
    any_job.run(2, *checkpoint("c1"), *checkpoint("c2"), *checkpoint("c3"))
    tries = [call for name in ("c3", "c2", "c1") for call in restart(name, valid="0")]
    run = any_job.run(2, *tries, "have")
    assert offered(run) == ["c3", "c2", "c1", ""]


def test_a_failed_checkpoint_is_not_offered_again(any_job: Job) -> None:
    any_job.run(2, *checkpoint("c1"), *checkpoint("c2"))
    any_job.run(2, *restart("c2", valid="r0"))
    any_job.lose_cache()
    assert offered(any_job.run(2, "have")) == ["c1"]


def test_a_file_missing_in_the_prefix_falls_back(any_job: Job) -> None:
    any_job.run(2, *checkpoint("c1"), *checkpoint("c2"))
    (any_job.prefix / "c2" / "state.1").unlink()
    any_job.lose_cache()
    run = any_job.run(2, *restart("c1"))
    assert offered(run) == ["c1"]
    assert verdicts(run) == {"same"}


def test_a_checkpoint_that_could_not_be_fetched_is_given_up(any_job: Job) -> None:
    any_job.run(2, *checkpoint("c1"), *checkpoint("c2"))
    (any_job.prefix / "c2" / "state.1").rename(any_job.work / "hidden")
    any_job.lose_cache()
    assert offered(any_job.run(2, "have")) == ["c1"]
    (any_job.work / "hidden").rename(any_job.prefix / "c2" / "state.1")
    any_job.lose_cache()
    assert offered(any_job.run(2, *restart("c1", valid="0"), "have")) == ["c1", ""]


def test_killed_in_a_dataset_that_takes_an_older_ones_number(job: Job) -> None:
    """What is left of the older one must not pass for the new one."""
    job.run(2, *checkpoint("c1"), *checkpoint("c2"))
    job.run_and_die(
        2, "current=c1", *restart("c1"), f"start_output={CHECKPOINT},c2b", "write=1000,c2b/state.%r"
    )
    job.lose_cache()
    assert offered(job.run(2, *restart("c1", valid="0"), "have")) == ["c1", ""]


def test_numbering_after_a_fallback(job: Job) -> None:
    """The dataset after a restart from number 1 is number 2, though 2 and 3 exist."""
    job.use_cache(size=9)
    job.run(2, *checkpoint("c1"), *checkpoint("c2"), *checkpoint("c3"))
    run = job.run(2, *restart("c3", valid="0"), *restart("c2", valid="0"), *restart("c1"), *checkpoint("c2b"))
    assert "scr.dataset.2/" in run.gave("write")[0][1]
    job.lose_cache()
    run = job.run(2, *restart("c2b"))
    assert offered(run) == ["c2b"]
    assert verdicts(run) == {"same"}


def test_numbering_without_a_restart_goes_on(job: Job) -> None:
    job.use_cache(size=9)
    job.run(2, *checkpoint("c1"), *checkpoint("c2"))
    assert "scr.dataset.3/" in job.run(2, *checkpoint("c3")).gave("write")[0][1]
    job.lose_cache()
    assert "scr.dataset.4/" in job.run(2, *checkpoint("c4")).gave("write")[0][1]


def test_another_number_of_ranks_cannot_fetch(any_job: Job) -> None:
    any_job.run(2, *checkpoint("c1"))
    any_job.lose_cache()
    assert offered(any_job.run(4, "have")) == [""]


def test_have_restart_again_after_success(any_job: Job) -> None:
    any_job.run(2, *checkpoint("c1"))
    assert offered(any_job.run(2, *restart("c1"), "have")) == ["c1", "c1"]


# ---------------------------------------------------------------------------------- datasets by name


def test_current_chooses_an_older_checkpoint(any_job: Job) -> None:
    any_job.run(2, *checkpoint("c1"), *checkpoint("c2"))
    run = any_job.run(2, "current=c1", *restart("c1"))
    assert offered(run) == ["c1"]
    assert verdicts(run) == {"same"}


def test_environment_chooses_an_older_checkpoint_once(any_job: Job) -> None:
    any_job.run(2, *checkpoint("c1"), *checkpoint("c2"))
    any_job.lose_cache()
    run = any_job.run(2, *restart("c1"), *checkpoint("c2b"), SCR_CURRENT="c1")
    assert offered(run) == ["c1"]
    assert offered(any_job.run(2, "have", SCR_CURRENT="c1")) == ["c2b"]


def test_the_wish_of_the_environment_does_not_outlive_its_cache(any_job: Job) -> None:
    any_job.run(2, *checkpoint("c1"), *checkpoint("c2"))
    any_job.lose_cache()
    any_job.environment |= {"SCR_CURRENT": "c1", "SCR_CACHE_SIZE": "1"}
    any_job.run(2, *restart("c1"), *checkpoint("c2b"), *checkpoint("c3"))
    assert offered(any_job.run(2, *restart("c3", valid="0"), "have")) == ["c3", "c2b"]


def test_drop_forgets_but_leaves_the_files(any_job: Job) -> None:
    any_job.run(2, *checkpoint("c1"), *checkpoint("c2"), "drop=c2")
    any_job.lose_cache()
    assert offered(any_job.run(2, "have")) == ["c1"]
    assert in_prefix(any_job, "c2")


def test_delete_removes_files_and_empty_directories(any_job: Job) -> None:
    (any_job.prefix / "kept").mkdir()
    (any_job.prefix / "kept" / "of the user").write_text("mine")
    any_job.run(
        2,
        *checkpoint("c1"),
        f"start_output={CHECKPOINT},c2",
        "write=10,deep/er/state.%r",
        "write=10,kept/state%r",
        "complete_output=1",
        "delete=c2",
    )
    assert not (any_job.prefix / "deep").exists()
    assert [path.name for path in (any_job.prefix / "kept").iterdir()] == ["of the user"]
    assert offered(any_job.run(2, "have")) == ["c1"]


def test_unknown_names_do_no_harm(any_job: Job) -> None:
    run = any_job.run(2, *checkpoint("c1"), "drop=none", "delete=none", "current=none", "have")
    assert [*run.results("drop"), *run.results("delete"), *run.results("current")] == [0] * 6
    assert offered(run) == ["c1"]


def test_a_name_used_again(any_job: Job) -> None:
    any_job.run(2, *checkpoint("same", size=100), *checkpoint("same", size=1000))
    any_job.lose_cache()
    run = any_job.run(2, *restart("same"))
    assert offered(run) == ["same"]
    assert verdicts(run) == {"same"}


# ---------------------------------------------------------------------------------- order of calls

START = f"start_output={CHECKPOINT},c1"


@pytest.mark.parametrize(
    ("calls", "told"),
    [
        (["have"], "SCR_Init"),
        ([START], "SCR_Init"),
        (["start_checkpoint"], "SCR_Init"),
        (["finalize"], "SCR_Init"),
        (["need"], "SCR_Init"),
        (["init", "init"], "SCR_Init"),
        (["init", START, START], "SCR_Complete_output"),
        (["init", "start_checkpoint", START], "SCR_Complete_checkpoint"),
        (["init", START, "finalize"], "SCR_Complete_output"),
        (["init", START, "have"], "SCR_Complete_output"),
        (["init", START, "delete=c0"], "SCR_Complete_output"),
        (["init", START, "complete_checkpoint=1"], "SCR_Start_checkpoint"),
        (["init", "start_checkpoint", "complete_output=1"], "SCR_Start_output"),
        (["init", "complete_output=1"], "SCR_Start_output"),
        (["init", "complete_restart=1"], "SCR_Start_restart"),
        (["init", "have", "start_restart"], "SCR_Have_restart"),
        (["init", *checkpoint("c1"), "have", "start_restart", START], "SCR_Complete_restart"),
        (["init", "finalize", "have"], "SCR_Init"),
        (["init", "config=SCR_DEBUG=1"], "SCR_Config"),
    ],
    ids=lambda value: " ".join(value).replace("/", "") if isinstance(value, list) else value,
)
def test_wrong_order_stops_the_job(job: Job, calls: list[str], told: str) -> None:
    run = job.launch(2, *calls)
    assert run.status != 0
    assert "ABORT" in run.output
    assert told in run.output


@pytest.mark.parametrize("call", [f"start_output={CHECKPOINT},c%r", f"start_output=%r,{'c1'}"])
def test_ranks_that_disagree_stop_the_job(job: Job, call: str) -> None:
    run = job.launch(2, "init", call)
    assert run.status != 0
    assert "identical on all processes" in run.output


# ---------------------------------------------------------------------------------- parameters


def test_parameters_and_their_order(job: Job) -> None:
    (job.prefix / ".scrconf").write_text(
        "# a comment\n  SCR_FILE_ONLY = from_file   # another\n\nscr_lower=x\nSCR_BOTH=from_file\n"
        "SCR_HOME=$SCR_FROM_ENV/sub\nCKPT=0 TYPE=XOR INTERVAL=2\n"
    )
    run = job.launch(
        2,
        "config=SCR_FILE_ONLY",
        "config=SCR_LOWER",
        "config=SCR_BOTH",
        "config=SCR_BOTH=program",
        "config=SCR_BOTH",
        "config=SCR_ENV",
        "config=SCR_HOME",
        "config=CKPT=0 TYPE",
        "config=SCR_NONE",
        "config=SCR_MINE=1",
        "config=SCR_MINE",
        "config=SCR_MINE=",
        "config=SCR_MINE",
        "config=STORE=/x COUNT=3",
        "config=STORE=/x COUNT",
        "init",
        "config=SCR_BOTH",
        "finalize",
        SCR_ENV="from_env",
        SCR_FROM_ENV="/e",
    )
    assert run.status == 0, run.output
    for rank in (0, 1):
        assert [gave[0] for gave in run.gave("config", rank)] == [
            "from_file",
            "x",
            "from_file",
            "(null)",
            "from_file",
            "from_env",
            "/e/sub",
            "XOR",
            "(null)",
            "(null)",
            "1",
            "(null)",
            "(null)",
            "(null)",
            "3",
            "from_file",
        ]


def test_parameters_from_the_program(job: Job) -> None:
    del job.environment["SCR_PREFIX"]
    (job.work / "other").mkdir()
    run = job.launch(
        1,
        f"config=SCR_PREFIX={job.work / 'other'}",
        "init",
        START,
        f"write=10,{job.work / 'other' / 'f'}",
        "complete_output=1",
        "finalize",
    )
    assert run.status == 0, run.output
    assert (job.work / "other" / "f").exists()


def test_parameter_file_by_name(job: Job) -> None:
    (job.work / "my.conf").write_text("SCR_CACHE_BYPASS=0\nSCR_FLUSH=1\n")
    run = job.run(1, *checkpoint("c1"), SCR_CONF_FILE=str(job.work / "my.conf"))
    assert run.gave("write")[0][1].startswith(str(job.cache))


def test_disabled(job: Job) -> None:
    run = job.launch(
        2,
        "init",
        "have",
        "need",
        START,
        "route=f",
        "complete_output=1",
        "route=f",
        "finalize",
        SCR_ENABLE="0",
    )
    assert run.status == 0, run.output
    assert [call.result for call in run.ranks[0]] == [1, 1, 1, 1, 1, 1, 0, 1]
    assert run.gave("have") == [["0", ""]]
    assert run.gave("need") == [["0"]]
    assert list(job.prefix.iterdir()) == []


def test_need_checkpoint(job: Job) -> None:
    run = job.run(2, *["need"] * 6, SCR_CHECKPOINT_INTERVAL="3")
    assert [gave[0] for gave in run.gave("need", 1)] == ["0", "0", "1", "0", "0", "1"]
    assert run.gave("need", 0) == run.gave("need", 1)
    assert job.run(2, "need").gave("need") == [["0"]]


@pytest.mark.parametrize(("end_time", "flag"), [("1000000000", "1"), ("9000000000", "0")])
def test_should_exit(job: Job, end_time: str, flag: str) -> None:
    run = job.run(2, "exit", "need", SCR_HALT_SECONDS="3600", SCR_END_TIME=end_time)
    assert run.gave("exit") == run.gave("need") == [[flag]]


# ---------------------------------------------------------------------------------- linking


def test_installed_layout(library: Library) -> None:
    for name in (
        "include/scr.h",
        "include/scrf.h",
        "lib/libscr.so",
        "lib/libscr.a",
        "lib/libscrf.so",
        "lib/libscrf.a",
    ):
        assert (library.root / name).is_file(), name


def test_header_in_cplusplus(library: Library, tmp_path: Path) -> None:
    """A C++ program needs no care of its own: the names are not mangled."""
    compiler = shutil.which("c++")
    if compiler is None:
        pytest.skip("no c++: install a C++ compiler to test the header in one")
    (tmp_path / "probe.cpp").write_text("#include <scr.h>\nint probe() { return SCR_Init(); }\n")
    subprocess.run([compiler, "-c", "probe.cpp", f"-I{library.root / 'include'}"], cwd=tmp_path, check=True)
    needed = subprocess.run(["nm", "-u", "probe.o"], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert "SCR_Init" in needed.stdout.split()


@pytest.fixture
def fortran_job(tmp_path: Path, library: Library, mpiexec: list[str]) -> Job:
    """As `job`, the calls going through the Fortran entry points of libscrf alone."""
    program = library.program(tmp_path / "fortran_driver", "-DFORTRAN", library="scrf")
    (tmp_path / "fortran").mkdir()
    return Job(tmp_path / "fortran", mpiexec, program)


def test_fortran_entry_points(fortran_job: Job) -> None:
    fortran_job.use_cache()
    run = fortran_job.run(
        2,
        "have",
        "need",
        "exit",
        *checkpoint("c 1"),
        *checkpoint("c 2"),
        "start_checkpoint",
        "write=10,f %r",
        "complete_checkpoint=1",
        "delete=scr.dataset.3",
        "drop=c 1",
        "current=c 2",
    )
    assert {call.result for calls in run.ranks for call in calls} == {0}
    fortran_job.lose_cache()
    run = fortran_job.run(2, *restart("c 2", valid="r1"), "have")
    assert offered(run) == ["c 2", ""]
    assert verdicts(run) == {"same"}


def test_fortran_config(fortran_job: Job) -> None:
    run = fortran_job.run(2, "config=SCR_USER_NAME", "config=SCR_NONE")
    assert run.gave("config") == [["tester"], ["(null)"]]


def test_fortran_compiler(library: Library, job: Job, tmp_path: Path, mpicc: str) -> None:
    gfortran = shutil.which("gfortran")
    if gfortran is None:
        pytest.skip("no gfortran: install one to test the entry points with a Fortran compiler")
    objects = tmp_path / "program.o"
    compiled = subprocess.run(
        [gfortran, "-c", f"-I{library.root / 'include'}", "-o", objects, HERE / "fortran_program.f90"],
        capture_output=True,
        text=True,
    )
    assert compiled.returncode == 0, compiled.stderr
    lib = library.root / "lib"
    program = library.compile(
        tmp_path / "program", str(objects), f"-L{lib}", "-lscrf", f"-Wl,-rpath,{lib}", "-lgfortran", "-lm"
    )
    said = []
    for _ in range(2):
        done = subprocess.run(
            [*job.mpiexec, "-n", "1", program],
            cwd=job.prefix,
            timeout=HANG,
            env={**os.environ, **job.environment},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        said.append(done.stdout.strip())
    assert said == ["wrote fortran checkpoint", "read fortran checkpoint"]


def interposed(job: Job) -> list[int]:
    return [int(path.read_text()) for path in job.work.glob("interposed.*")]


@pytest.mark.parametrize("fortran", [False, True], ids=["C", "Fortran"])
def test_preload_steps_in_front(job: Job, library: Library, tmp_path: Path, fortran: bool) -> None:
    if fortran:
        job.driver = library.program(tmp_path / "driver", "-DFORTRAN", library="scrf")
    counter = library.compile(tmp_path / "counter.so", "-shared", "-fPIC", str(HERE / "interposer.c"), "-ldl")
    job.run(
        2,
        *checkpoint("c1"),
        *checkpoint("c2"),
        LD_PRELOAD=str(counter),
        INTERPOSED=str(job.work / "interposed"),
    )
    assert sorted(interposed(job)) == [2, 2]
    assert verdicts(job.run(2, *restart("c2"))) == {"same"}


@pytest.mark.parametrize("fortran", [False, True], ids=["C", "Fortran"])
def test_wrap_steps_in_front_of_the_static_library(
    job: Job, library: Library, tmp_path: Path, fortran: bool
) -> None:
    options = ["-DWRAP", str(HERE / "interposer.c"), "-Wl,--wrap=SCR_Route_file"]
    if fortran:
        options.append("-DFORTRAN")
    job.driver = library.static_program(tmp_path / "driver", *options, library="scrf" if fortran else "scr")
    job.run(2, *checkpoint("c1"), *checkpoint("c2"), INTERPOSED=str(job.work / "interposed"))
    assert sorted(interposed(job)) == [2, 2]
    assert verdicts(job.run(2, *restart("c2"))) == {"same"}


# ---------------------------------------------------------------------------------- the stand-in alone


@pytest.fixture
def local_job(tmp_path: Path, mpiexec: list[str], stand_in: Library) -> Iterator[Job]:
    (tmp_path / "local").mkdir()
    yield Job(tmp_path / "local", mpiexec, stand_in.program(tmp_path / "driver"))


def test_the_stand_in_says_so(local_job: Job) -> None:
    assert local_job.run(1, "version").gave("version") == [["v3.1.0-local"]]


def test_only_the_interface_is_visible(stand_in: Library) -> None:
    for name in ("libscr.so", "libscrf.so"):
        listed = subprocess.run(
            ["nm", "-D", "--defined-only", str(stand_in.root / "lib" / name)],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        symbols = [line.split()[-1] for line in listed.splitlines()]
        fortran = {s for s in symbols if s.startswith("scr_") and s.endswith("_")}
        assert symbols
        assert [s for s in symbols if not s.startswith("SCR_") and s not in fortran] == []


@pytest.mark.parametrize("name", ["local.index", "local.dataset.1", "local.cindex", "filemap_0"])
def test_damaged_records_never_crash(local_job: Job, name: str) -> None:
    """Cut off anywhere near a line's end: a dataset is fetched if its cache records are damaged, and not
    offered if those of the prefix are; the job goes on.
    """
    local_job.use_cache()
    local_job.run(2, *checkpoint("c1"))
    found = [path for path in local_job.work.rglob(name)]
    assert len(found) == 1
    whole = {path: path.read_bytes() for path in local_job.work.rglob("*") if path.is_file()}
    content = whole[found[0]]
    ends = [at for at, byte in enumerate(content) if byte == ord("\n")]
    for cut in {0, 3, *ends, *(end + 1 for end in ends[:-1]), len(content) - 2}:
        for path, data in whole.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        found[0].write_bytes(content[:cut])
        if name in ("local.index", "local.dataset.1"):
            local_job.lose_cache()
        run = local_job.run(2, "have", *checkpoint("c9"))
        assert offered(run) == (["c1"] if name in ("local.cindex", "filemap_0") else [""]), cut
        assert run.results("complete_output") == [0, 0]


def test_hostile_index(local_job: Job) -> None:
    """Numbers out of range, names too long, unknown records: reported, and taken as no index at all."""
    local_job.run(2, *checkpoint("c1"))
    index = local_job.prefix / ".scr" / "local.index"
    head, *records, _ = index.read_text().splitlines()
    bad = [
        "dataset 99999999999999999999 1 1 1 1 1 0 0 0 x",
        "dataset -1 1 1 1 1 1 0 0 0 x",
        "dataset 1 1",
        "dataset 1 1 1 1 1 1 0 0 0 " + "n" * 1024,
        "dataset 1 1 1 1 1 1 0 0 0 %0",
        "surprise 1",
        "",
    ]
    for record in bad:
        index.write_text("\n".join([head, *records, record, f"end {len(records) + 1}"]) + "\n")
        local_job.lose_cache()
        run = local_job.run(2, "have")
        assert offered(run) == [""], record
        assert "ERROR" in run.output


def test_a_shared_file_belongs_to_the_lowest_rank(local_job: Job) -> None:
    local_job.run(
        4, START, "@1:route=common.dat", "@2:route=common.dat", "@3:write=10,common.dat", "complete_output=1"
    )
    listed = (local_job.prefix / ".scr" / "local.dataset.1").read_text().splitlines()
    assert [line for line in listed if "common.dat" in line] == ["file 1 common.dat"]


def test_colliding_base_names_are_pointed_out(local_job: Job) -> None:
    local_job.use_cache()
    run = local_job.run(2, START, "write=10,dir%r/state", "complete_output=1")
    assert "WARNING" in run.output
    assert "base names only" in run.output


def test_a_killed_rank_is_a_killed_process(local_job: Job) -> None:
    """The tests above rely on a real SIGKILL, not on an exit that runs handlers."""
    run = local_job.launch(1, "init", START, "die")
    assert run.status in (signal.SIGKILL, 128 + signal.SIGKILL, -signal.SIGKILL), run.output
