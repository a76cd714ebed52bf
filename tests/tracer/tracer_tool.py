"""Valgrind with the tool scr_crit, and how the tool is built. For conftest.py and test_tracer_build.py."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
TRACER = HERE.parent.parent / "cbindings" / "tracer"


@dataclass(frozen=True)
class Tool:
    """Valgrind with the tool scr_crit."""

    valgrind: str
    folder: Path  # for VALGRIND_LIB

    def command(self, prefix: Path | str, *options: str) -> list[str]:
        """What stands before the program and its arguments."""
        return [self.valgrind, "--tool=scr_crit", f"--trace-out={prefix}", *options]

    def environment(self) -> dict[str, str]:
        """What Valgrind needs to find the tool, and the test's own environment."""
        return {**os.environ, "VALGRIND_LIB": str(self.folder)}


def valgrind_program() -> str:
    """Path of Valgrind; skips the test when there is none."""
    found = shutil.which("valgrind")
    if found is None:
        pytest.skip("no valgrind: install it (Debian: valgrind; RHEL: valgrind-devel; Spack: valgrind)")
    return found


def build_tool(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Configure and build the tool alone in a folder; returns what CMake said."""
    cmake = shutil.which("cmake")
    if cmake is None:
        pytest.skip("no cmake: install it to build the tracer")
    configured = subprocess.run(
        [cmake, "-S", str(TRACER), "-B", str(folder), *options], capture_output=True, text=True
    )
    assert configured.returncode == 0, configured.stdout + configured.stderr
    built = subprocess.run([cmake, "--build", str(folder)], capture_output=True, text=True)
    assert built.returncode == 0, built.stdout + built.stderr
    assert "warning:" not in built.stderr, built.stderr
    return configured


def scr_environment(folder: Path) -> dict[str, str]:
    """SCR's parameters for a job of one rank in a folder; makes those for cache and control."""
    for name in ("cache", "control"):
        (folder / name).mkdir(exist_ok=True)
    return {
        "SCR_PREFIX": str(folder),
        "SCR_CACHE_BASE": str(folder / "cache"),
        "SCR_CNTL_BASE": str(folder / "control"),
        "SCR_USER_NAME": "tester",
        "SCR_JOB_ID": "1",
    }
