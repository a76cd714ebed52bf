"""Fixtures of the C kernels, and the module beside them made importable (importlib mode does not)."""

from __future__ import annotations

import os
import shutil
import subprocess
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


@pytest.fixture(scope="session")
def valgrind_lib(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """VALGRIND_LIB with the tool: $TRACED_VALGRIND_LIB, else built from the source tree."""
    ready = os.environ.get("TRACED_VALGRIND_LIB")
    if ready:
        return Path(ready)
    for program in ("valgrind", "cmake"):
        if shutil.which(program) is None:
            pytest.skip(f"no {program}: install the package {program}")
    folder = tmp_path_factory.mktemp("tracer")
    tracer = HERE.parents[1] / "cbindings" / "tracer"
    command = ["cmake", "-S", str(tracer), "-B", str(folder), "-DCMAKE_BUILD_TYPE=Release"]
    configured = subprocess.run(command, capture_output=True, text=True, check=True)
    if "left out" in configured.stdout:
        pytest.skip(configured.stdout[configured.stdout.index("Access tracer") :].strip())
    subprocess.run(["make", "-C", str(folder)], capture_output=True, text=True, check=True)
    return folder / "valgrind"
