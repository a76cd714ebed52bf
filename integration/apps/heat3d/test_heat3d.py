"""heat3d under mpiexec and a libscr: killed, restarted, poisoned, damaged; and its NumPy twin beside it.

Needs mpicc, mpiexec and an SCR (fixtures of the root conftest); the Fortran cases skip without mpifort.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import autograd
import autograd.numpy as anp
import heat3d_twin as twin
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scr_critplugin.analysis import profile
from scr_critplugin.criticality import ElementState
from scr_critplugin.errors import CritError

HERE = Path(__file__).resolve().parent
GRID = ("13", "10", "11")  # uneven on two, three and four ranks
STEPS, EVERY, LAST, BEFORE_LAST = 12, 4, 8, 4
RUN = ("--n", *GRID, "--steps", str(STEPS), "--every", str(EVERY))
MODES = ("bypass", "cache")
SECONDS = 120


# ------------------------------------------------------------------------------------------- programs


@dataclass(frozen=True)
class Program:
    """A built heat3d."""

    language: str
    path: Path


def _make(target: str, build: Path, scr_root: Path, *settings: str) -> Path:
    subprocess.run(
        ["make", "-C", str(HERE), target, f"SCR_ROOT={scr_root}", f"BUILD={build}", *settings],
        check=True,
        text=True,
        timeout=SECONDS,
    )
    return build / target


@pytest.fixture(scope="session")
def program_c(tmp_path_factory: pytest.TempPathFactory, scr_root: Path, mpicc: str) -> Program:
    build = tmp_path_factory.mktemp("heat3d_c")
    return Program("c", _make("heat3d_c", build, scr_root, f"MPICC={mpicc}"))


@pytest.fixture(scope="session")
def program_f(tmp_path_factory: pytest.TempPathFactory, scr_root: Path, mpifort: str) -> Program:
    build = tmp_path_factory.mktemp("heat3d_f")
    return Program("f", _make("heat3d_f", build, scr_root, f"MPIFORT={mpifort}"))


@pytest.fixture(params=["c", "f"])
def program(request: pytest.FixtureRequest) -> Program:
    return request.getfixturevalue(f"program_{request.param}")


# ----------------------------------------------------------------------------------------------- jobs


@dataclass(frozen=True)
class Outcome:
    """What one mpiexec left behind."""

    status: int
    stdout: str
    stderr: str

    @property
    def digest(self) -> str | None:
        line = r"^digest ([0-9a-f]{16}) steps \d+ norm \d\.\d{15}e[+-]\d\d$"
        found = re.search(line, self.stdout, re.M)
        return found[1] if found else None

    @property
    def restarted_at(self) -> int | None:
        """Step of the checkpoint the run began from; 0 for a fresh start."""
        found = re.search(r"^restarted from (\S+) step (\d+)$", self.stdout, re.M)
        if found:
            return int(found[2])
        return 0 if re.search(r"^fresh start$", self.stdout, re.M) else None


class Job:
    """One allocation: a prefix, a cache and a control directory, in which a program can run repeatedly."""

    def __init__(self, folder: Path, mpiexec: list[str], program: Program, ranks: int, mode: str) -> None:
        self.folder, self.mpiexec, self.program, self.ranks = folder, mpiexec, program, ranks
        self.prefix = folder / "prefix"
        self.printed_digest: str | None = None
        bypass = {"SCR_CACHE_BYPASS": "1"}
        cache = {"SCR_CACHE_BYPASS": "0", "SCR_FLUSH": "1", "SCR_CACHE_SIZE": "2"}
        self.environment = {
            **os.environ,
            "SCR_PREFIX": str(self.prefix),
            "SCR_CACHE_BASE": str(folder / "cache"),
            "SCR_CNTL_BASE": str(folder / "cntl"),
            "SCR_USER_NAME": "tester",
            "SCR_JOB_ID": "heat3d",
            **(bypass if mode == "bypass" else cache),
        }

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        for name in ("prefix", "cache", "cntl"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        return subprocess.Popen(
            [*self.mpiexec, "-n", str(self.ranks), str(self.program.path), *arguments],
            cwd=self.prefix,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str) -> Outcome:
        with self.start(*arguments) as running:
            try:
                stdout, stderr = running.communicate(timeout=SECONDS)
            except subprocess.TimeoutExpired:
                running.kill()
                raise
        return Outcome(running.returncode, stdout, stderr)

    def finish(self, *arguments: str) -> Outcome:
        """A run that must end well."""
        outcome = self.run(*arguments)
        assert outcome.status == 0 and outcome.digest, (outcome.stdout, outcome.stderr)
        self.printed_digest = outcome.digest
        return outcome

    def lose_node(self) -> None:
        """Removes what is not in the prefix: the next run must fetch."""
        shutil.rmtree(self.folder / "cache")
        shutil.rmtree(self.folder / "cntl")

    def files(self, step: int) -> list[Path]:
        """The ranks' files of one checkpoint in the prefix."""
        return [self.prefix / f"ckpt.{step}" / f"heat.{rank}" for rank in range(self.ranks)]


MakeJob = Callable[..., Job]


@pytest.fixture
def make_job(tmp_path: Path, mpiexec: list[str]) -> MakeJob:
    numbers = itertools.count()

    def make(program: Program, ranks: int, mode: str = "bypass") -> Job:
        return Job(tmp_path / f"job{next(numbers)}", mpiexec, program, ranks, mode)

    return make


FinishedJob = Callable[[Program, int], Job]


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, mpiexec: list[str]) -> FinishedJob:
    """The finished job of a program on some ranks that nothing happened to; run once per session."""
    finished: dict[tuple[str, int], Job] = {}

    def get(program: Program, ranks: int) -> Job:
        key = (program.language, ranks)
        if key not in finished:
            job = Job(tmp_path_factory.mktemp("undisturbed"), mpiexec, program, ranks, "bypass")
            job.finish(*RUN)
            finished[key] = job
        return finished[key]

    return get


def digest_of_files(files: list[Path]) -> str:
    joined = 0
    for path in files:
        checkpoint = twin.open_checkpoint(path)
        joined ^= twin.block_digest(checkpoint.block, checkpoint.state)
    return f"{joined:016x}"


def poison(path: Path, value: float = np.nan) -> int:
    """Overwrites all that a restart should not need; returns how many bytes that is."""
    checkpoint = twin.open_checkpoint(path, "r+")
    for name, array in checkpoint.arrays.items():
        kept = np.array(array[twin.INTERIOR])
        array[...] = value
        if name in twin.FIELDS:
            array[twin.INTERIOR] = kept
        array.flush()
    shape = twin.layout(*checkpoint.block.interior)
    return shape.total_bytes - shape.critical_bytes


# -------------------------------------------------------------------------- undisturbed and disturbed


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 8])
def test_result_depends_on_neither_decomposition_nor_language(
    program: Program, program_c: Program, ranks: int, undisturbed: FinishedJob
) -> None:
    assert undisturbed(program, ranks).printed_digest == undisturbed(program_c, 1).printed_digest


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_printed_digest_is_that_of_the_files(program: Program, ranks: int, undisturbed: FinishedJob) -> None:
    job = undisturbed(program, ranks)
    assert job.printed_digest == digest_of_files(job.files(STEPS))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_killed_and_restarted_ends_bit_for_bit_the_same(
    program: Program, ranks: int, mode: str, make_job: MakeJob, undisturbed: FinishedJob
) -> None:
    job = make_job(program, ranks, mode)
    killed = job.run(*RUN, "--die-at", "10", "--rank-die", str(ranks - 1))
    assert killed.status != 0 and killed.digest is None
    restarted = job.finish(*RUN)
    assert restarted.restarted_at == LAST
    assert restarted.digest == undisturbed(program, ranks).printed_digest


@pytest.mark.parametrize("mode", MODES)
def test_killed_within_a_checkpoint_falls_back_to_the_one_before(
    program: Program, mode: str, make_job: MakeJob, undisturbed: FinishedJob
) -> None:
    job = make_job(program, 2, mode)
    killed = job.run(*RUN, "--die-in-checkpoint", str(LAST), "--rank-die", "1")
    assert killed.status != 0 and killed.digest is None
    restarted = job.finish(*RUN)
    assert restarted.restarted_at == BEFORE_LAST
    assert restarted.digest == undisturbed(program, 2).printed_digest


def _processes_of(program: Path) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):  # gone, or another user's
                if (entry / "exe").readlink() == program:
                    found.append(int(entry.name))
    return found


def test_all_ranks_killed_from_outside(program: Program, make_job: MakeJob, undisturbed: FinishedJob) -> None:
    """A lost node: no rank sees it coming, and where in its work it dies is left to chance."""
    job = make_job(program, 2)
    with job.start(*RUN, "--sleep-ms", "100") as running:
        while not job.files(BEFORE_LAST)[0].exists() and running.poll() is None:
            time.sleep(0.01)
        for process in _processes_of(program.path):
            os.kill(process, signal.SIGKILL)
        stdout, _ = running.communicate(timeout=SECONDS)
    assert "fresh start" in stdout and "digest" not in stdout
    restarted = job.finish(*RUN)
    assert restarted.restarted_at is not None and restarted.restarted_at < STEPS
    assert restarted.digest == undisturbed(program, 2).printed_digest


@pytest.mark.parametrize("mode", MODES)
def test_legacy_calls_restart_too(
    program: Program, mode: str, make_job: MakeJob, undisturbed: FinishedJob
) -> None:
    job = make_job(program, 2, mode)
    assert job.run(*RUN, "--legacy", "--die-at", "10").status != 0
    restarted = job.finish(*RUN, "--legacy")
    assert restarted.restarted_at == LAST
    assert restarted.digest == undisturbed(program, 2).printed_digest


def test_time_matters_to_the_result(program: Program, make_job: MakeJob) -> None:
    """A restart that lost the time would be noticed: the forcing depends on it."""
    job = make_job(program, 1)
    job.finish("--n", *GRID, "--steps", str(LAST), "--every", str(EVERY))
    job.lose_node()
    checkpoint = job.files(LAST)[0]
    header = np.memmap(checkpoint, twin.HEADER, "r+", shape=1)
    right = float(header["time"][0])
    header["time"] = right + 0.125
    header.flush()
    shifted = job.finish(*RUN)
    header["time"] = right
    header.flush()
    shutil.rmtree(job.prefix / f"ckpt.{STEPS}")
    assert shifted.restarted_at == LAST
    assert shifted.digest != make_job(program, 1).finish(*RUN).digest


# ------------------------------------------------------------------------------------ poison and damage


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_poisoned_ghosts_and_scratch_change_nothing(
    program: Program, ranks: int, make_job: MakeJob, undisturbed: FinishedJob
) -> None:
    job = make_job(program, ranks)
    job.finish("--n", *GRID, "--steps", str(LAST), "--every", str(EVERY))
    job.lose_node()
    for path in job.files(LAST):
        assert poison(path) > path.stat().st_size // 2
    restarted = job.finish(*RUN)
    expected = undisturbed(program, ranks)
    assert restarted.restarted_at == LAST
    assert restarted.digest == expected.printed_digest
    # Dead, not merely unused: the next checkpoint has no trace of the poison, ghosts included.
    for mine, theirs in zip(job.files(STEPS), expected.files(STEPS), strict=True):
        assert mine.read_bytes() == theirs.read_bytes()


@pytest.mark.parametrize("name", twin.FIELDS)
@pytest.mark.parametrize("corner", [twin.GHOSTS, -twin.GHOSTS - 1], ids=["first", "last"])
def test_one_interior_value_changes_the_result(
    program: Program, name: str, corner: int, make_job: MakeJob, undisturbed: FinishedJob
) -> None:
    job = make_job(program, 2)
    job.finish("--n", *GRID, "--steps", str(LAST), "--every", str(EVERY))
    job.lose_node()
    array = twin.open_checkpoint(job.files(LAST)[1], "r+").arrays[name]
    array[corner, corner, corner] *= 1.0 + 1e-6
    array.flush()
    restarted = job.finish(*RUN)
    assert restarted.restarted_at == LAST
    assert restarted.digest != undisturbed(program, 2).printed_digest


def _cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 8)


def _lengthen(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"\0" * 8)


def _change_header(field: str, value: object) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        header = np.memmap(path, twin.HEADER, "r+", shape=1)
        header[field] = value
        header.flush()

    return change


def _older(path: Path) -> None:
    """A good file, but of an older step than the other ranks' files."""
    shutil.copyfile(path.parents[1] / f"ckpt.{BEFORE_LAST}" / path.name, path)


DAMAGES: dict[str, Callable[[Path], None]] = {
    "missing": Path.unlink,
    "cut": _cut,
    "lengthened": _lengthen,
    "magic": _change_header("magic", b"HEAT3D_X"),
    "version": _change_header("version", 2),
    "interior": _change_header("interior", (10, 13, 11)),
    "offset": _change_header("offset", (1, 0, 0)),
    "global": _change_header("global", (14, 10, 11)),
    "ranks": _change_header("ranks", 3),
    "step": _change_header("step", -1),
    "time": _change_header("time", np.nan),
    "older": _older,
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_checkpoint_is_never_used(
    program: Program, damage: str, make_job: MakeJob, undisturbed: FinishedJob
) -> None:
    job = make_job(program, 2)
    job.finish("--n", *GRID, "--steps", str(LAST), "--every", str(EVERY))
    job.lose_node()
    DAMAGES[damage](job.files(LAST)[1])
    restarted = job.finish(*RUN)
    assert restarted.restarted_at == BEFORE_LAST
    assert restarted.digest == undisturbed(program, 2).printed_digest


def test_all_checkpoints_damaged_starts_afresh(
    program: Program, make_job: MakeJob, undisturbed: FinishedJob
) -> None:
    job = make_job(program, 2)
    job.finish("--n", *GRID, "--steps", str(LAST), "--every", str(EVERY))
    job.lose_node()
    for step in (BEFORE_LAST, LAST):
        DAMAGES["version"](job.files(step)[0])
    restarted = job.finish(*RUN)
    assert restarted.restarted_at == 0
    assert "this checkpoint is refused" in restarted.stderr
    assert restarted.digest == undisturbed(program, 2).printed_digest


def test_languages_refuse_each_others_files(
    program_c: Program, program_f: Program, make_job: MakeJob
) -> None:
    job = make_job(program_f, 1)
    job.finish("--n", *GRID, "--steps", str(LAST), "--every", str(EVERY))
    job.program = program_c
    outcome = job.finish(*RUN)
    assert outcome.restarted_at == 0
    assert "HEAT3D_F" in outcome.stderr and "HEAT3D_C" in outcome.stderr


# ----------------------------------------------------------------------------------------- command line


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("--color",), "--color"),
        (("--n", "8", "8"), "--n"),
        (("--n", "8", "8", "8x"), "8x"),
        (("--steps",), "--steps"),
        (("--steps", "-1"), "-1"),
        (("--every", "4,5"), "4,5"),
        (("--die-at", "0"), "--die-at"),
        (("--steps", "99999999999999999999"), "99999999999999999999"),
    ],
)
def test_bad_arguments_are_named(
    program: Program, arguments: tuple[str, ...], word: str, make_job: MakeJob
) -> None:
    outcome = make_job(program, 1).run(*arguments)
    assert outcome.status == 2
    assert f"'{word}'" in outcome.stderr or f"{word}:" in outcome.stderr
    assert outcome.restarted_at is None


@pytest.mark.parametrize("arguments", [("--n", "3", "9", "9"), ("--n", "9", "9", "9", "--rank-die", "2")])
def test_impossible_runs_end_with_a_reason(
    program: Program, arguments: tuple[str, ...], make_job: MakeJob
) -> None:
    outcome = make_job(program, 2).run(*arguments)
    assert outcome.status != 0
    assert "heat3d: rank" in outcome.stderr and outcome.digest is None


def test_help_is_the_same_in_both_languages(
    program_c: Program, program_f: Program, make_job: MakeJob
) -> None:
    texts = {make_job(program, 1).run("--help").stdout for program in (program_c, program_f)}
    assert len(texts) == 1
    options = re.findall(r"^  (--[a-z-]+)", texts.pop(), re.M)
    assert len(options) == len(set(options)) == 9


# ------------------------------------------------------------------------------------------ static link

WRAPPER = r"""
#include <stdio.h>
int __real_SCR_Route_file(const char *name, char *file);
int __wrap_SCR_Route_file(const char *name, char *file);
int __wrap_SCR_Route_file(const char *name, char *file)
{
    printf("wrapped %s\n", name);
    return __real_SCR_Route_file(name, file);
}
"""


def _needed_by_static_scr(scr_root: Path) -> str:
    """A real libscr.a leans on SCR's component libraries, which lie beside it."""
    folder = next(scr_root / lib for lib in ("lib", "lib64") if list((scr_root / lib).glob("libscr.*")))
    names = sorted({p.name[3:-3] for p in folder.glob("lib*.so")} - {"scr", "scrf"})
    if not names:
        return ""
    components = [f"-l{name}" for name in names]
    return " ".join([f"-L{folder}", f"-Wl,-rpath,{folder}", *components, "-lz", "-lpthread"])


def test_static_link_passes_through_the_wrapper(
    tmp_path: Path, scr_root: Path, mpicc: str, program_c: Program, make_job: MakeJob
) -> None:
    (tmp_path / "wrap.c").write_text(WRAPPER)
    subprocess.run([mpicc, "-c", "wrap.c", "-o", "wrap.o"], cwd=tmp_path, check=True)
    subprocess.run(["ar", "rcs", "libwrap.a", "wrap.o"], cwd=tmp_path, check=True)
    wrapped = _make(
        "heat3d_c_static",
        tmp_path / "build",
        scr_root,
        f"MPICC={mpicc}",
        f"WRAP_LIB={tmp_path / 'libwrap.a'}",
        "WRAP_FLAGS=-Wl,--wrap=SCR_Route_file",
        f"SCR_STATIC_LIBS={_needed_by_static_scr(scr_root)}",
    )
    outcome = make_job(Program("c", wrapped), 2).finish(*RUN)
    assert outcome.digest == make_job(program_c, 2).finish(*RUN).digest
    lines = re.findall(r"^wrapped (\S+)$", outcome.stdout, re.M)
    steps = range(EVERY, STEPS + 1, EVERY)
    assert sorted(lines) == sorted(f"ckpt.{step}/heat.{rank}" for step in steps for rank in range(2))


# ------------------------------------------------------------------------------------------------- twin


def test_twin_computes_what_the_program_computes(program: Program, make_job: MakeJob) -> None:
    """All arrays, ghosts and scratch included: the twin's data flow is the program's."""
    job = make_job(program, 1)
    job.finish("--n", *GRID, "--steps", "3", "--every", "1")
    block = twin.Block.whole(*map(int, GRID))
    state, step = twin.initial_state(block), twin.make_step(block)
    for number in (1, 2, 3):
        state = step(state)
        written = twin.open_checkpoint(job.files(number)[0]).state
        assert written["step"] == state["step"] == number
        assert written["time"] == pytest.approx(state["time"], rel=1e-15)
        for name in (*twin.FIELDS, *twin.SCRATCH):
            np.testing.assert_allclose(state[name], written[name], rtol=0, atol=1e-13)


def test_twin_goes_on_from_a_blocks_file(program: Program, make_job: MakeJob) -> None:
    job = make_job(program, 1)
    job.finish("--n", *GRID, "--steps", "2", "--every", "1")
    before, after = (twin.open_checkpoint(job.files(number)[0]) for number in (1, 2))
    computed = twin.make_step(before.block)(before.state)
    for name in (*twin.FIELDS, *twin.SCRATCH):
        np.testing.assert_allclose(computed[name], after.state[name], rtol=0, atol=1e-13)


def _random_state(block: twin.Block, seed: int) -> dict[str, twin.Array]:
    random = np.random.default_rng(seed)
    arrays = {name: random.uniform(0.1, 1.0, block.allocated) for name in (*twin.FIELDS, *twin.SCRATCH)}
    return {**arrays, "step": 7, "time": 0.3}


sizes = st.integers(2, 6)


@given(nx=sizes, ny=sizes, nz=sizes, seed=st.integers(0, 2**32 - 1))
@settings(max_examples=25, deadline=None)
def test_twin_needs_the_interior_and_nothing_else(nx: int, ny: int, nz: int, seed: int) -> None:
    block = twin.Block.whole(nx, ny, nz)
    state = _random_state(block, seed)
    poisoned = dict(state)
    for name in (*twin.FIELDS, *twin.SCRATCH):
        poisoned[name] = np.full(block.allocated, np.nan)
    for name in twin.FIELDS:
        poisoned[name][twin.INTERIOR] = state[name][twin.INTERIOR]
    step = twin.make_step(block)
    np.testing.assert_array_equal(twin.output(step(poisoned)), twin.output(step(state)))

    weights = np.random.default_rng(seed + 1).uniform(0.5, 1.0, 2 * nx * ny * nz)
    for name in twin.FIELDS:

        def weighted(values: twin.Array, name: str = name) -> twin.Array:
            return anp.sum(weights * twin.output(step({**state, name: values})))

        needed = autograd.grad(weighted)(state[name]) != 0
        assert needed[twin.INTERIOR].all() and needed.sum() == nx * ny * nz


def test_received_layers_take_the_place_of_wrapped_ones() -> None:
    block = twin.Block.whole(5, 4, 3)
    field = _random_state(block, 5)["u"]
    inner = field[twin.INTERIOR]
    slabs = {("u", 0): twin.wrap("u", 0, inner)}
    along_x = np.concatenate([slabs["u", 0][0], inner, slabs["u", 0][1]], axis=0)
    slabs["u", 1] = twin.wrap("u", 1, along_x)
    slabs["u", 2] = (np.zeros(0), np.zeros(0))  # walls on both sides
    np.testing.assert_array_equal(
        twin.fill_ghosts(block, "u", field, 0.3, twin.received(slabs)),
        twin.fill_ghosts(block, "u", field, 0.3, twin.wrap),
    )


def _profiled_blocks() -> list[tuple[str, twin.Block, twin.Exchange]]:
    whole = twin.Block.whole(4, 5, 3)
    middle = twin.Block((4, 5, 3), (4, 5, 3), (12, 15, 9), (False, False))
    random = np.random.default_rng(3)
    shapes = ((2, 5, 3), (8, 2, 3), (8, 9, 2))
    slabs = {
        (name, axis): (random.uniform(size=shape), random.uniform(size=shape))
        for name in twin.FIELDS
        for axis, shape in enumerate(shapes)
    }
    return [("whole", whole, twin.wrap), ("middle", middle, twin.received(slabs))]


@pytest.mark.parametrize(("block", "exchange"), [p[1:] for p in _profiled_blocks()], ids=["whole", "middle"])
def test_dependence_profile_finds_the_interior(block: twin.Block, exchange: twin.Exchange) -> None:
    found = profile(twin.make_step(block, exchange), _random_state(block, 11), twin.output).map
    interior = np.zeros(block.allocated, dtype=bool)
    interior[twin.INTERIOR] = True
    for name in twin.FIELDS:
        np.testing.assert_array_equal(found[name].critical, interior)
    for name in twin.SCRATCH:
        assert not found[name].critical.any()
    for name in (*twin.FIELDS, *twin.SCRATCH):
        counts = found[name].counts()
        assert counts[ElementState.CRITICAL] + counts[ElementState.DEAD] == found[name].size
    assert found["time"].critical.all() and found["step"].critical.all()


# ------------------------------------------------------------------------------------------------- files


@pytest.mark.parametrize("ranks", [1, 4])
def test_layout_describes_the_files(program: Program, ranks: int, make_job: MakeJob) -> None:
    job = make_job(program, ranks)
    job.finish("--n", *GRID, "--steps", "1", "--every", "1")
    covered = 0
    order: twin.Order = "C" if program.language == "c" else "F"
    (planned,) = twin.checkpoint_layout(order).files
    for path in job.files(1):
        checkpoint = twin.open_checkpoint(path)
        shape = twin.layout(*checkpoint.block.interior, order)
        found = [(place.section.name, place.offset, place.shape) for place in planned.locate(path)[1:]]
        assert found == [(section.name, section.offset, section.shape) for section in shape.sections]
        assert path.stat().st_size == shape.total_bytes
        assert checkpoint.header["ranks"] == ranks and checkpoint.header["ghosts"] == twin.GHOSTS
        covered += np.prod(checkpoint.block.interior)
    assert covered == np.prod([int(n) for n in GRID])


def test_default_block_needs_about_a_third(program: Program, make_job: MakeJob) -> None:
    job = make_job(program, 1)
    job.finish("--steps", "1", "--every", "1")
    block = twin.open_checkpoint(job.files(1)[0]).block
    shape = twin.layout(*block.interior)
    assert 0.30 < shape.critical_bytes / job.files(1)[0].stat().st_size < 0.37


@pytest.mark.parametrize(
    "content",
    [b"", b"HEAT3D_C", b"nonsense" + bytes(64), b"HEAT3D_C" + bytes(64)],
    ids=["empty", "short", "foreign", "zero"],
)
def test_foreign_files_are_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "heat.0"
    path.write_bytes(content)
    with pytest.raises(CritError) as error:
        twin.open_checkpoint(path)
    assert error.value.path == str(path)
