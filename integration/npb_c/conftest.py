"""Fixtures of the C kernels, and the module beside them made importable (importlib mode does not)."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from ports import KERNELS, Job, Kernel, Port, build, port  # noqa: E402


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory, scr_root: Path, mpicc: str) -> Callable[[Port], Path]:
    """Builds a kernel, once."""
    programs: dict[str, Path] = {}

    def get(which: Port) -> Path:
        if str(which) not in programs:
            programs[str(which)] = build(which, tmp_path_factory.mktemp(str(which)), scr_root, mpicc)
        return programs[str(which)]

    return get


@pytest.fixture(scope="session", params=KERNELS)
def kernel(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    mpiexec: list[str],
    built: Callable[[Port], Path],
) -> Kernel:
    """Each kernel at class S, run."""
    which = port(request.param, "S")
    job = Job(tmp_path_factory.mktemp("undisturbed"), mpiexec, built(which))
    return Kernel(which, job, job.run())
