"""Finds the user's Valgrind, and makes the folder in which it finds the tracer.

Valgrind loads its tools from one folder, VALGRIND_LIB. The tracer lies in this package, and the user's
installation is used as it stands: a folder of links to the stock one and to the tracer. Imports
``installation`` and the errors. Tests: ``tests/test_tracing_launch.py``.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ..errors import TraceError
from ..installation import tracer_folder

VARIABLE = "SCR_CRIT_VALGRIND"
LEAST_VERSION = (3, 19)
TOOL = "scr_crit"

_PACKAGES = "Debian, Ubuntu: valgrind; RHEL, Fedora: valgrind and valgrind-devel; Spack: valgrind"
_VERSION = re.compile(rb"valgrind-(\d+)\.(\d+)\.(\d+)")


@dataclass(frozen=True)
class Valgrind:
    """An installed Valgrind: its program, its version in words, and the folder with its tools."""

    program: Path
    version: str
    stock: Path


def find_valgrind(environment: Mapping[str, str]) -> Valgrind:
    """Find Valgrind: SCR_CRIT_VALGRIND, else the one on the PATH.

    Raises
    ------
    TraceError
        There is none, it is too old, or its tools are not where they are expected.
    """
    chosen = environment.get(VARIABLE)
    found = shutil.which(chosen or "valgrind", path=environment.get("PATH"))
    if found is None:
        what = f"{chosen!r}, which is no program" if chosen else "no valgrind on the PATH"
        raise TraceError(
            f"found {what}; expected Valgrind {_words(LEAST_VERSION)} or newer. Install it ({_PACKAGES}), "
            f"load its module, or set {VARIABLE} to the program",
            key=VARIABLE,
        )
    program = Path(found).absolute()
    version = _version_of(program, environment)
    return Valgrind(program, _words(version), _stock_folder(program, environment))


def tool_version(folder: Path) -> str:
    """The Valgrind that the tracer was built with, "" if it does not say."""
    for tool in folder.glob(f"{TOOL}-*"):
        match = _VERSION.search(tool.read_bytes())
        if match is not None:
            return _words(tuple(map(int, match.groups())))
    return ""


def make_tool_folder(valgrind: Valgrind, folder: Path) -> Path:
    """Fill `folder` with links to Valgrind's tools and to the tracer; several ranks may do so at once.

    Raises
    ------
    CritError
        The tracer is not installed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for source in (valgrind.stock, tracer_folder()):
        for path in source.iterdir():
            with suppress(FileExistsError):
                (folder / path.name).symlink_to(path)
    return folder


def _version_of(program: Path, environment: Mapping[str, str]) -> tuple[int, ...]:
    try:
        asked = subprocess.run(
            [program, "--version"], capture_output=True, check=False, env=dict(environment), timeout=60
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise TraceError(f"cannot be asked for its version: {error}", path=program) from error
    match = _VERSION.search(asked.stdout)
    if match is None:
        raise TraceError(
            f"answers --version by {asked.stdout[:80]!r}, expected 'valgrind-3.x.y'; "
            f"set {VARIABLE} to a Valgrind",
            path=program,
        )
    version = tuple(map(int, match.groups()))
    if version < LEAST_VERSION:
        raise TraceError(
            f"found Valgrind {_words(version)}, expected {_words(LEAST_VERSION)} or newer ({_PACKAGES})",
            path=program,
        )
    return version


def _stock_folder(program: Path, environment: Mapping[str, str]) -> Path:
    """Where Valgrind has its tools: beside its program, under the same prefix."""
    own = environment.get("VALGRIND_LIB")
    prefix = program.resolve().parent.parent
    candidates = [
        *([Path(own)] if own else []),
        prefix / "libexec" / "valgrind",
        *sorted(prefix.glob("lib*/valgrind")),
        *sorted(prefix.glob("lib/*/valgrind")),
    ]
    for folder in candidates:
        if any(folder.glob(f"none-{_platform()}*")):
            return folder
    looked = ", ".join(map(str, candidates))
    raise TraceError(
        f"its tools (none-{_platform()}) are in none of {looked}; set VALGRIND_LIB to their folder",
        path=program,
    )


def _platform() -> str:
    machine = platform.machine().lower()
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine) + f"-{os.uname().sysname.lower()}"


def _words(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
