"""The C core's own tests, ``tests/c/test_*.c``, compiled with sanitizers and run.

Each is a program that prints what failed and says how much it checked.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import core_build
import pytest

# The functions whose failures a test stages: the linker sends the core's calls of them to the test.
WRAPPED = {
    "test_faults": ["open", "pread", "pwrite", "fsync", "ftruncate", "rename", "fchmod", "malloc"],
    "test_changed": ["pread"],
}
PROGRAMS = sorted(path.stem for path in core_build.C_TESTS.glob("test_*.c"))


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_finds_nothing(name: str, sanitized: core_build.Sanitized, tmp_path: Path) -> None:
    wraps = [f"-Wl,--wrap={function}" for function in WRAPPED.get(name, [])]
    source = core_build.C_TESTS / f"{name}.c"
    program = sanitized.build(name, [source], wraps)
    done = subprocess.run(
        [str(program)],
        capture_output=True,
        text=True,
        env=core_build.environment(tmp_path),
        cwd=tmp_path,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    counts = re.search(r"(\d+) checks, 0 failed", done.stdout)
    assert counts is not None and int(counts[1]) > 0, done.stdout
