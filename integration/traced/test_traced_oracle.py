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
import traced_records as records
from numpy.typing import NDArray
from traced_expected import raw_write, unaligned
from traced_harness import HERE, PROGRAMS, WARNINGS, Job, Toolchain, call, judged
from traced_random_program import random_program
from traced_truth import BITS, Truth, octets

Build = Callable[[Path, Path, str], Path]
States = dict[str, NDArray[np.uint8]]

ORACLE = HERE / "oracle"
HAND_MADE = {"raw_write": raw_write, "unaligned": unaligned}
# The C library's functions stay calls, which the oracle sees.
CALLS = ["memcpy", "memmove", "memset", "fwrite", "realloc"]
INSTRUMENTED = [
    "-fsanitize=thread",
    "-fno-tree-loop-distribute-patterns",
    *(f"-fno-builtin-{c}" for c in CALLS),
]


@pytest.fixture(scope="session")
def oracle_build(serial: Toolchain) -> Build:
    """Builds a program (source, target, -O level) with the oracle in it."""
    wrapped = re.findall(r"^WRAP\([^,]+, (\w+)", (ORACLE / "accesses.c").read_text(), re.MULTILINE)
    assert {"memcpy", "fwrite", "SCR_Complete_output"} <= set(wrapped)
    wraps = [f"-Wl,--wrap={name}" for name in wrapped]
    compiler = [serial.cc, "-std=c11", *WARNINGS]
    runtime = [ORACLE / "accesses.c", ORACLE / "saved.c"]

    def build(source: Path, target: Path, level: str) -> Path:
        target.parent.mkdir(parents=True)
        objects = target.with_suffix(".o")
        call([*compiler, level, *INSTRUMENTED, *serial.includes(), "-c", source, "-o", objects])
        call([*compiler, "-O2", *wraps, *runtime, objects, "-o", target, *serial.link_scr("scr")])
        return target

    return build


def watched(job: Job) -> Job:
    """The job's program has the oracle, which reports to a folder."""
    out = job.folder / "oracle"
    out.mkdir(parents=True)
    job.settings["ORACLE_OUT"] = str(out)
    return job


def oracle_states(job: Job) -> States:
    """What the oracle reported: each file's states."""
    reports = Path(job.settings["ORACLE_OUT"]).iterdir()
    return {path.name.replace("+", "/"): np.fromfile(path, dtype=np.uint8) for path in reports}


def compare(trace: records.Trace, states: States) -> None:
    """Both must say the same of every byte, and each state must occur."""
    found = {name: file for g in trace.generations for name, file in g.files.items()}
    assert set(found) == set(states)
    bits = np.zeros(256, dtype=np.uint8)
    bits[list(BITS)] = list(BITS.values())
    for name in sorted(states):
        truth = Truth([(name, octets(states[name].size))])
        truth[name] = bits[states[name]]
        complaint = truth.complaint(judged(found[name], restart=False))
        assert not complaint, f"{name}, expected by the oracle: {complaint}"
    everything = np.concatenate(list(states.values()))
    assert set(np.unique(everything)) == {records.CRITICAL, records.DEAD, records.UNUSED}


@pytest.mark.parametrize("name", HAND_MADE)
def test_the_oracle_finds_what_was_computed_by_hand(oracle_build: Build, tmp_path: Path, name: str) -> None:
    program = oracle_build(PROGRAMS / f"{name}.c", tmp_path / "build" / name, "-O2")
    job = watched(Job(program, [], 1, tmp_path, []))
    job.run()
    states = oracle_states(job)
    for step in (3, 6):
        complaint = HAND_MADE[name](0, "state.0", step, False).complaint(states[f"ckpt.{step}/state.0"])
        assert not complaint, f"ckpt.{step}: {complaint}"


@pytest.mark.parametrize("level", ["-O1", "-O3"])
@pytest.mark.parametrize("name", HAND_MADE)
def test_an_ordinary_build_under_the_tracer(
    serial: Toolchain, oracle_build: Build, valgrind_lib: Path, tmp_path: Path, name: str, level: str
) -> None:
    program = oracle_build(PROGRAMS / f"{name}.c", tmp_path / "build" / name, level)
    oracle = watched(Job(program, [], 1, tmp_path / "watched", []))
    traced = Job(serial.build(f"{name}.c", level), [], 1, tmp_path / "traced", [], valgrind_lib)
    traced.settings["SCR_CHECKPOINT_INTERVAL"] = oracle.settings["SCR_CHECKPOINT_INTERVAL"] = "2"
    digest = oracle.run()
    traced_digest, (trace,) = traced.trace()
    assert traced_digest == digest
    compare(trace, oracle_states(oracle))


@pytest.mark.parametrize(
    ("seed", "level"), [(1, "-O0"), (2, "-O1"), (3, "-O2"), (4, "-O3"), (5, "-O2"), (6, "-O3")]
)
def test_random_programs(
    oracle_build: Build, valgrind_lib: Path, tmp_path: Path, seed: int, level: str
) -> None:
    """Both watch one and the same run: two builds may differ in what they read without need."""
    source = tmp_path / f"random_{seed}.c"
    source.write_text(random_program(seed))
    program = oracle_build(source, tmp_path / "build" / source.stem, level)
    job = watched(Job(program, [], 1, tmp_path, [], valgrind_lib))
    job.settings["SCR_CHECKPOINT_INTERVAL"] = "2"
    _, (trace,) = job.trace()
    compare(trace, oracle_states(job))
