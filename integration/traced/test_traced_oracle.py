"""The tracer against the compiler's own instrumentation: every byte of every checkpoint has the same state.

The oracle (``oracle/``) is linked in place of the thread sanitizer's runtime. Needs Valgrind, GCC (its
-fsanitize=thread; no libtsan), an MPI and an SCR.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from expected_c import raw_write, unaligned
from harness import HERE, PROGRAMS, WARNINGS, Job, Toolchain, call, judged
from numpy.typing import NDArray
from random_program import random_program
from records import CRITICAL, DEAD, UNUSED
from truth import Truth, octets

ORACLE = HERE / "oracle"
# The same program for both: what the compiler would make of the C library's functions is seen as well.
SEEN = [
    "-fno-builtin-memcpy",
    "-fno-builtin-memmove",
    "-fno-builtin-memset",
    "-fno-tree-loop-distribute-patterns",
]
SEEN += ["-fno-builtin-fwrite", "-fno-builtin-realloc"]


@pytest.fixture(scope="session")
def oracle_build(toolchain: Toolchain) -> Callable[[Path, Path, str], Path]:
    """Build a program with the oracle; a second build is an ordinary one."""
    wrapped = re.findall(r"^WRAP\([^,]+, (\w+)", (ORACLE / "accesses.c").read_text(), re.MULTILINE)
    assert {"memcpy", "fwrite", "SCR_Complete_output"} <= set(wrapped)
    include = ["-I", PROGRAMS, "-I", toolchain.scr_root / "include"]

    def build(source: Path, target: Path, level: str) -> Path:
        target.parent.mkdir(parents=True, exist_ok=True)
        objects = target.with_suffix(".o")
        instrumented = ["-fsanitize=thread", *SEEN, "-c", source, "-o", objects]
        call([toolchain.mpicc, "-std=c11", *WARNINGS, level, "-g", *include, *instrumented])
        wraps = [f"-Wl,--wrap={name}" for name in wrapped]
        runtime = [ORACLE / "accesses.c", ORACLE / "saved.c"]
        call(
            [
                toolchain.mpicc,
                "-std=c11",
                "-O2",
                *wraps,
                *runtime,
                objects,
                "-o",
                target,
                *toolchain.link_scr("scr"),
            ]
        )
        return target

    return build


def oracle_states(job: Job) -> tuple[str, dict[str, NDArray[np.uint8]]]:
    """Run a program that has the oracle; the digest and each file's states."""
    out = job.folder / "oracle"
    out.mkdir()
    job.settings["ORACLE_OUT"] = str(out)
    digest = job.run()
    states = {path.name: np.fromfile(path, dtype=np.uint8) for path in out.iterdir()}
    return digest, {name.replace("+", "/"): found for name, found in states.items()}


def compare(job: Job, oracle: Job) -> None:
    """Both ways must say the same of every byte, and each state must occur."""
    digest, states = oracle_states(oracle)
    traced, (trace,) = job.trace()
    assert traced == digest
    found = {name: file for g in trace.generations for name, file in g.files.items()}
    assert set(found) == set(states)
    for name in sorted(states):
        truth = Truth([(name, octets(states[name].size))])
        truth[name] = states[name]
        complaint = truth.complaint(judged(found[name], restart=False))
        assert not complaint, f"{name}, expected by the oracle: {complaint}"
    assert set(np.unique(np.concatenate(list(states.values())))) == {CRITICAL, DEAD, UNUSED}


def jobs(
    toolchain: Toolchain, tmp_path: Path, valgrind_lib: Path, plain: Path, instrumented: Path
) -> tuple[Job, Job]:
    traced = Job(plain, [], 1, tmp_path / "traced", [], valgrind_lib)
    oracle = Job(instrumented, [], 1, tmp_path / "instrumented", [])
    for job in (traced, oracle):
        job.folder.mkdir()
        job.settings["SCR_CHECKPOINT_INTERVAL"] = "2"
    return traced, oracle


@pytest.mark.parametrize("program", ["raw_write", "unaligned", "two_files"])
def test_programs(
    toolchain: Toolchain,
    oracle_build: Callable[..., Path],
    valgrind_lib: Path,
    tmp_path: Path,
    program: str,
) -> None:
    instrumented = oracle_build(PROGRAMS / f"{program}.c", tmp_path / "with_oracle" / program, "-O2")
    plain = toolchain.build(f"{program}.c")
    compare(*jobs(toolchain, tmp_path, valgrind_lib, plain, instrumented))


@pytest.mark.parametrize(
    ("seed", "level"), [(1, "-O0"), (2, "-O1"), (3, "-O2"), (4, "-O3"), (5, "-O2"), (6, "-O3")]
)
def test_random_programs(
    toolchain: Toolchain,
    oracle_build: Callable[..., Path],
    valgrind_lib: Path,
    tmp_path: Path,
    seed: int,
    level: str,
) -> None:
    source = tmp_path / f"random_{seed}.c"
    source.write_text(random_program(seed))
    instrumented = oracle_build(source, tmp_path / "with_oracle" / "program", level)
    plain = toolchain.build(source, level)
    compare(*jobs(toolchain, tmp_path, valgrind_lib, plain, instrumented))


def test_the_oracle_itself(toolchain: Toolchain, oracle_build: Callable[..., Path], tmp_path: Path) -> None:
    """The oracle against the states computed by hand: it is no worse judge than the tracer."""
    for program, expected in (("raw_write", raw_write), ("unaligned", unaligned)):
        instrumented = oracle_build(PROGRAMS / f"{program}.c", tmp_path / "with_oracle" / program, "-O2")
        job = Job(instrumented, [], 1, tmp_path / program, [])
        job.folder.mkdir()
        _, states = oracle_states(job)
        for step in (3, 6):
            found = states[f"ckpt.{step}/state.0"]
            complaint = expected(0, "state.0", step, False).complaint(found)
            assert not complaint, f"{program} ckpt.{step}: {complaint}"
