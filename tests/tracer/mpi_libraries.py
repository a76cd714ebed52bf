"""The MPI libraries on this machine, for the tracer's MPI tests.

The one of conftest.py's `mpicc` and `mpiexec`, the standard binary interface that may come with it
(mpicc_abi), and those that Debian installs side by side. Imports nothing of the package.
"""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

# Two that differ as much as they can, and those that bring little more: for the slow tests.
USUAL = ("default", "openmpi")
SLOW = ("standard_abi", "mpich")


@dataclass(frozen=True)
class Mpi:
    """An MPI library: how to compile for it and to start ranks."""

    name: str
    mpicc: str
    mpiexec: str
    mpifort: str | None

    def is_kind(self, macro: str) -> bool:
        """Whether its mpi.h defines OPEN_MPI, or MPICH_VERSION as MPICH and its kin do."""
        asked = subprocess.run(
            [self.mpicc, "-dM", "-E", "-include", "mpi.h", "-x", "c", "/dev/null"],
            capture_output=True,
            text=True,
            check=True,
        )
        return f"#define {macro} " in asked.stdout

    def compile_c(self, program: Path, source: Path, *options: str) -> Path:
        """Compile a C source; returns the program."""
        return self._compile(self.mpicc, program, source, *options)

    def compile_fortran(self, program: Path, *sources: Path) -> Path:
        """Compile Fortran sources (and objects); skips where there is no Fortran."""
        if self.mpifort is None or shutil.which("gfortran") is None:
            pytest.skip(f"no Fortran for MPI {self.name}: install gfortran and an MPI with mpifort")
        return self._compile(self.mpifort, program, *sources)

    def _compile(self, compiler: str, program: Path, *arguments: Path | str) -> Path:
        command = [compiler, "-O1", "-g", "-o", str(program), *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return program


def find(name: str, mpicc: str, mpiexec: str) -> Mpi:
    """The library of that name; skips the test where it is missing. mpicc, mpiexec: the default's."""
    if name == "default":
        compiler, starter = mpicc, mpiexec
    elif name == "standard_abi":
        compiler, starter = f"{mpicc}_abi", mpiexec
    else:
        compiler, starter = f"mpicc.{name}", f"mpiexec.{name}"
    if shutil.which(compiler) is None or shutil.which(starter) is None:
        pytest.skip(f"no {compiler} with {starter}: install that MPI to test with it")
    same = Path(str(shutil.which(compiler))).resolve() == Path(str(shutil.which(mpicc))).resolve()
    if name != "default" and same:
        pytest.skip(f"{compiler} is the default MPI's, which is tested")
    fortran = compiler.replace("mpicc", "mpifort")
    return Mpi(name, compiler, starter, fortran if shutil.which(fortran) else None)
