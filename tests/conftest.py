"""Fixtures of several tests, and the helper modules beside them made importable.

pytest's importlib mode leaves test folders off the path, so the helpers would not be found.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import core_build
from core_library import Core

HERE = Path(__file__).resolve().parent


@pytest.fixture(scope="session")
def core(tmp_path_factory: pytest.TempPathFactory) -> Core:
    """The C core, compiled from the source tree."""
    return Core(core_build.build_shared(tmp_path_factory.mktemp("core")))


@pytest.fixture(scope="session")
def sanitized(tmp_path_factory: pytest.TempPathFactory) -> core_build.Sanitized:
    """The C core with sanitizers, to be linked to C tests."""
    return core_build.build_sanitized(tmp_path_factory.mktemp("sanitized"))


@pytest.fixture(scope="session")
def core_with_codec(core: Core) -> Core:
    """The same, where it can compress."""
    if "blosc2-zstd" not in core.codecs():
        pytest.skip("no c-blosc2 with headers: pip install blosc2")
    return core


@pytest.fixture
def ram_path() -> Iterator[Path]:
    """A folder in memory where there is one: tests that sync hundreds of files need not wait for a disk."""
    base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="scr_crit_test.", dir=base) as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def run_ranks(mpiexec: list[str]) -> Any:
    """Run a script (a path, or one of this folder) on several ranks; the JSON that it prints, one a line."""
    pytest.importorskip("mpi4py", reason="no mpi4py: pip install 'scr_critplugin[mpi]'")

    def run(ranks: int, script: str | Path, *arguments: str, timeout: float = 500) -> list[Any]:
        command = [*mpiexec, "-n", str(ranks), sys.executable, str(HERE / script), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
        assert done.returncode == 0, done.stdout + done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    return run
