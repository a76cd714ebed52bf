"""Fixtures of the traced programs, and the modules beside them made importable (importlib mode does not)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from traced_harness import Job, Toolchain, call  # noqa: E402


@pytest.fixture(scope="session")
def toolchain(tmp_path_factory: pytest.TempPathFactory, mpicc: str, scr_root: Path) -> Toolchain:
    """Builds programs of several ranks."""
    mpicxx = Path(mpicc).with_name(Path(mpicc).name.replace("mpicc", "mpicxx"))
    return Toolchain(mpicc, str(mpicxx), scr_root, tmp_path_factory.mktemp("programs"))


@pytest.fixture(scope="session")
def serial(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Toolchain:
    """Builds programs of one rank: with SCR_ROOT as those of several; else without a real MPI, for speed."""
    if os.environ.get("SCR_ROOT"):
        return request.getfixturevalue("toolchain")
    for compiler in ("gcc", "g++"):
        if shutil.which(compiler) is None:
            pytest.skip(f"no {compiler}: install the package {compiler}")
    folder = tmp_path_factory.mktemp("serial")
    mpi = HERE / "serial_mpi"
    call(["gcc", "-O2", "-fPIC", "-c", mpi / "serial_mpi.c", "-o", folder / "serial_mpi.o"])
    variables = {
        "MPICC": f"gcc -I{mpi}",
        "LDFLAGS": folder / "serial_mpi.o",  # inside libscr
        "BUILD": folder / "build",
        "PREFIX": folder / "scr",
    }
    words = [f"{name}={value}" for name, value in variables.items()]
    call(["make", "-j2", "-C", HERE.parent / "scr_local", *words, "install"])
    return Toolchain("gcc", "g++", folder / "scr", folder / "programs", [mpi])


@pytest.fixture
def make_job(request: pytest.FixtureRequest, valgrind_lib: Path, tmp_path: Path) -> Callable[..., Job]:
    """Make a job: ``make_job("raw_write.c", flags=[...], arguments=[...], ranks=1)``."""

    def make(source: str, flags: Sequence[str] = (), arguments: Sequence[str] = (), ranks: int = 1) -> Job:
        toolchain = request.getfixturevalue("serial" if ranks == 1 else "toolchain")
        launcher = [] if ranks == 1 else request.getfixturevalue("mpiexec")
        return Job(toolchain.build(source, *flags), arguments, ranks, tmp_path, launcher, valgrind_lib)

    return make


@pytest.fixture(scope="session")
def gfortran() -> str:
    """Path of gfortran."""
    found = shutil.which(os.environ.get("FC") or "gfortran")
    if found is None:
        pytest.skip("no gfortran: install gfortran, or set FC")
    return found


@pytest.fixture(scope="session")
def hdf5_flags() -> list[str]:
    """Flags to compile and link with HDF5's C library, the serial one."""
    for package in ("hdf5-serial", "hdf5"):
        try:
            found = subprocess.run(
                ["pkg-config", "--cflags", "--libs", package], capture_output=True, text=True, check=False
            )
        except FileNotFoundError:
            pytest.skip("no pkg-config: install pkg-config")
        if found.returncode == 0:
            return found.stdout.split()
    pytest.skip("no HDF5 for C: install libhdf5-dev (Debian), hdf5-devel (RHEL) or hdf5 (Spack)")
