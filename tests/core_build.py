"""Compile the C core and its tests with the system's compiler, as the tests need them.

Imports nothing of the package: these tests stand below it. Used by ``conftest.py`` and ``test_c_core.py``.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import shutil
import subprocess
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
CORE = ROOT / "cbindings" / "core"
INCLUDE = ROOT / "cbindings" / "include"
C_TESTS = ROOT / "tests" / "c"
SANITIZE = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]
LIBRARIES = ["-pthread", "-ldl"]


def compiler() -> str:
    """Path of the C compiler; skips the test when there is none."""
    found = shutil.which(os.environ.get("CC", "cc")) or shutil.which("gcc")
    if found is None:
        pytest.skip("no C compiler: install gcc, or set CC")
    return found


def run(command: list[str], **options: object) -> str:
    """Run a command that must succeed; its output is in the failure otherwise."""
    done = subprocess.run(command, capture_output=True, text=True, **options)  # type: ignore[call-overload]
    if done.returncode != 0:
        pytest.fail(f"{' '.join(command)}\nexit status {done.returncode}\n{done.stdout}{done.stderr}")
    return str(done.stdout + done.stderr)


@functools.cache
def blosc2_folder() -> Path | None:
    """Folder of the blosc2 package with its headers and library, if it is installed."""
    spec = importlib.util.find_spec("blosc2")
    if spec is None or not spec.submodule_search_locations:
        return None
    folder = Path(spec.submodule_search_locations[0])
    return folder if (folder / "include" / "blosc2.h").exists() and blosc2_library(folder) else None


def blosc2_library(folder: Path) -> Path | None:
    """The c-blosc2 library by its soname."""
    found = sorted(folder.glob("lib*/libblosc2.so.[0-9]*"))
    return found[0] if found else None


def codec_flags() -> list[str]:
    """Compiler flags that build the codec in, or none when c-blosc2 is not there."""
    folder = blosc2_folder()
    if folder is None:
        return []
    library = blosc2_library(folder)
    assert library is not None
    return [
        "-isystem",
        str(folder / "include"),
        "-DCRIT_HAVE_BLOSC2",
        f'-DCRIT_BLOSC2_SONAME="{library.name}"',
    ]


def codec_path() -> str:
    """Folder in which the loader finds c-blosc2, or "" when it is not there."""
    folder = blosc2_folder()
    library = blosc2_library(folder) if folder else None
    return str(library.parent) if library else ""


@functools.cache
def sanitizers() -> tuple[str, ...]:
    """The sanitizers' flags, or none when this compiler lacks their run-time libraries."""
    probe = subprocess.run(
        [compiler(), *SANITIZE, "-x", "c", "-", "-o", os.devnull],
        input="int main(void) { return 0; }",
        capture_output=True,
        text=True,
    )
    return tuple(SANITIZE) if probe.returncode == 0 else ()


def _compile(source: Path, target: Path, flags: list[str]) -> Path:
    common = ["-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", f"-I{INCLUDE}", f"-I{CORE}"]
    run([compiler(), *common, *flags, "-c", str(source), "-o", str(target)])
    return target


def compile_core(folder: Path, flags: list[str]) -> list[Path]:
    """Compile all of the core into objects in `folder`."""
    sources = sorted(CORE.glob("*.c"))
    with ThreadPoolExecutor(2) as pool:
        jobs = [
            pool.submit(_compile, source, folder / f"{source.stem}.o", flags + codec_flags())
            for source in sources
        ]
        return [job.result() for job in jobs]


SHARED_FLAGS = ["-O2", "-g", "-fPIC", "-fvisibility=hidden"]


def build_shared(folder: Path) -> Path:
    """Build the core and ``c/harness.c`` into a shared library without sanitizers, for ctypes."""
    objects = compile_core(folder, SHARED_FLAGS)
    objects.append(_compile(C_TESTS / "harness.c", folder / "harness.o", SHARED_FLAGS))
    return link_shared(objects, folder / "libharness.so", codec_path())


def link_shared(objects: list[Path], library: Path, run_path: str) -> Path:
    """Link objects of `build_shared`; `run_path`: where it shall look for c-blosc2 first."""
    rpath = [f"-Wl,-rpath,{run_path}"] if run_path else []
    run([compiler(), "-shared", *map(str, objects), *rpath, *LIBRARIES, "-o", str(library)])
    return library


def build_shared_without_codec(built: Path, folder: Path, lacking: str) -> Path:
    """Link the library `built` again, without c-blosc2's "headers" or without a way to its "library"."""
    objects = sorted(built.parent.glob("*.o"))
    if lacking == "headers":
        bare = _compile(CORE / "codec.c", folder / "codec.o", SHARED_FLAGS)
        objects = [bare if path.name == "codec.o" else path for path in objects]
    return link_shared(objects, folder / "libharness.so", "")


@dataclass(frozen=True)
class Sanitized:
    """The core compiled with sanitizers (where the compiler has them), ready to be linked to C tests."""

    folder: Path
    objects: list[Path]
    flags: list[str]

    def build(self, name: str, sources: list[Path], link_flags: Sequence[str] = ()) -> Path:
        """Build one program from its sources and the core."""
        mains = [_compile(source, self.folder / f"{source.stem}.main.o", self.flags) for source in sources]
        program = self.folder / name
        objects = map(str, [*mains, *self.objects])
        run([compiler(), *self.flags, *link_flags, *objects, *LIBRARIES, "-o", str(program)])
        return program


def build_sanitized(folder: Path) -> Sanitized:
    """Compile the core with sanitizers."""
    if not sanitizers():
        warnings.warn("this compiler has no sanitizers: the C tests run without them", stacklevel=1)
    flags = ["-O1", "-g", *sanitizers()]
    return Sanitized(folder, compile_core(folder, flags), flags)


def environment(tmp_path: Path) -> dict[str, str]:
    """Environment of a C test: scratch space in memory where there is some, since many files are synced."""
    scratch = "/dev/shm" if os.access("/dev/shm", os.W_OK) else str(tmp_path)
    return {**os.environ, "TMPDIR": scratch, "LD_LIBRARY_PATH": codec_path()}
