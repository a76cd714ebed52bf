"""Fixtures shared by all tests: the MPI, an SCR to run against, and the installed libraries.

With SCR_ROOT set, the SCR tests run against that SCR; else against the stand-in, built once per session.
MPICC, MPIEXEC and MPIFORT choose the MPI; else the one beside this Python, else the one on the PATH.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# No deadlines: a test must not fail because the machine is busy. In CI the examples are the same each time.
settings.register_profile("scr_critplugin", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("scr_critplugin")

ROOT = Path(__file__).resolve().parent


# Open MPI refuses root and more ranks than cores unless told otherwise; MPICH ignores these.
os.environ.update(
    OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_rmaps_base_oversubscribe="1"
)


def _tool(variable: str, name: str) -> str | None:
    chosen = os.environ.get(variable)
    if chosen:
        return shutil.which(chosen)
    beside = Path(sys.executable).parent / name
    return str(beside) if beside.exists() else shutil.which(name)


@pytest.fixture(scope="session")
def mpicc() -> str:
    """Path of the MPI C compiler wrapper."""
    found = _tool("MPICC", "mpicc")
    if found is None:
        pytest.skip("no mpicc: install an MPI, or `pip install mpich`, or set MPICC")
    return found


@pytest.fixture(scope="session")
def mpiexec() -> list[str]:
    """Command that starts ranks, to be followed by ["-n", "4", program, ...]."""
    found = _tool("MPIEXEC", "mpiexec")
    if found is None:
        pytest.skip("no mpiexec: install an MPI, or `pip install mpich`, or set MPIEXEC")
    return [found]


@pytest.fixture(scope="session")
def mpifort(mpicc: str) -> str:
    """Path of an MPI Fortran wrapper that compiles and links, of the same MPI as `mpicc`."""
    found = os.environ.get("MPIFORT") or str(Path(mpicc).with_name("mpifort"))
    if shutil.which(found) is None or shutil.which("gfortran") is None:
        pytest.skip("no Fortran: install gfortran and an MPI with mpifort, or set MPIFORT")
    return found


@pytest.fixture(scope="session")
def scr_root(tmp_path_factory: pytest.TempPathFactory, mpicc: str) -> Path:
    """Install prefix of the SCR under test: $SCR_ROOT, or the single-node stand-in."""
    real = os.environ.get("SCR_ROOT")
    if real:
        return Path(real)
    work = tmp_path_factory.mktemp("scr_local")
    subprocess.run(
        [
            "make",
            "-C",
            str(ROOT / "integration" / "scr_local"),
            f"MPICC={mpicc}",
            f"BUILD={work / 'build'}",
            f"PREFIX={work / 'install'}",
            "install",
        ],
        check=True,
        capture_output=True,
        text=True,
    )
    return work / "install"


@pytest.fixture(scope="session")
def package_lib() -> Path:
    """Folder of the installed package's C libraries."""
    import scr_critplugin

    folder = Path(scr_critplugin.__file__).parent / "lib"
    if not folder.is_dir():
        pytest.skip(f"{folder} is missing: install the package (make install)")
    return folder


@pytest.fixture(scope="session")
def shim_lib(package_lib: Path) -> Path:
    """The shim for LD_PRELOAD."""
    return package_lib / "libscr_crit_shim.so"


@pytest.fixture(scope="session")
def wrap_lib(package_lib: Path) -> Path:
    """The shim for -Wl,--wrap."""
    return package_lib / "libscr_crit_wrap.a"


@pytest.fixture(scope="session")
def valgrind_lib(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder for VALGRIND_LIB with the installed tracer, or with that of the build folder TRACER_BUILD."""
    from scr_critplugin.errors import CritError
    from scr_critplugin.tracing.valgrind import find_valgrind, make_tool_folder

    build = os.environ.get("TRACER_BUILD")
    if build:
        return Path(build) / "valgrind"
    try:
        return make_tool_folder(find_valgrind(os.environ), tmp_path_factory.mktemp("valgrind"))
    except CritError as error:
        pytest.skip(str(error))


@pytest.fixture(autouse=True)
def _quiet_environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No test inherits SCR's or the plugin's parameters from the shell that started pytest."""
    for name in list(os.environ):
        if name.startswith("SCR_") and name not in ("SCR_ROOT", "SCR_CRIT_SLOW_TESTS"):
            monkeypatch.delenv(name)
    yield


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if "scr" in item.keywords and item.get_closest_marker("scr") and not os.environ.get("SCR_ROOT"):
            item.add_marker(pytest.mark.skip(reason="needs a real SCR: set SCR_ROOT to its install prefix"))
        if item.get_closest_marker("slow") and not os.environ.get("SCR_CRIT_SLOW_TESTS"):
            item.add_marker(pytest.mark.skip(reason="slow: set SCR_CRIT_SLOW_TESTS=1 to run"))
