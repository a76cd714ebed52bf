"""Starts the program under the tracer, passes signals on to it, and waits for it.

Imports ``valgrind``, ``mpi_environment`` and the errors. Tests: ``tests/test_tracing_launch.py``.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from ..errors import TraceError
from .mpi_environment import hints_text, traced_environment
from .valgrind import TOOL, Valgrind, make_tool_folder

_HINTS, _TOOLS = "romio_hints", "valgrind"
PREPARED = (_HINTS, _TOOLS)
"""What :func:`prepare` leaves in the run's folder."""
_ELF = b"\x7fELF"
_PASSED_ON = (
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGCONT,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGWINCH,
    signal.SIGXCPU,
)
# A terminal sends these to the program itself, which is in the same group.
_FROM_TERMINAL = (signal.SIGINT, signal.SIGQUIT, signal.SIGWINCH)
_SIGNAL_BASE = 128  # as shells do


@dataclass(frozen=True)
class Tracing:
    """How to trace: the tracer's options."""

    until_flat: int = 0
    dump: str = ""


def find_program(name: str) -> Path:
    """The program's path, found as the shell would.

    Raises
    ------
    TraceError
        There is none, it is a script, or it is linked statically.
    """
    from ._elf_files import is_static

    found = shutil.which(name)
    if found is None:
        what = "is no program that can be run" if Path(name).exists() else "no such program"
        raise TraceError(f"{what}; expected a program, as on the command line", path=name)
    path = Path(found).absolute()
    with path.open("rb") as stream:
        mark = stream.read(4)
    if mark != _ELF:
        raise TraceError(
            "is a script, not a compiled program: only the process itself is traced, not what it starts. "
            "Give the binary (for Python programs there is scr_crit profile)",
            path=path,
        )
    if is_static(path):
        raise TraceError(
            "is linked statically: Valgrind cannot load the tracer's wrappers of SCR's calls into it. Link "
            "it without -static (a static libscr.a in a dynamic program is fine)",
            path=path,
        )
    return path


def build_id_of(program: Path) -> str:
    """The program's build-id, or a digest of its content where it was linked without."""
    from .symbols import Program

    build_id = Program(program).build_id
    if build_id:
        return build_id
    return digest_of(program)


def digest_of(file: Path) -> str:
    """The file's SHA-256 as a fact of a plan states it; raises what opening and reading raise."""
    with file.open("rb") as stream:
        return f"sha256:{hashlib.file_digest(stream, 'sha256').hexdigest()}"


def prepare(
    valgrind: Valgrind, folder: Path, environment: Mapping[str, str]
) -> tuple[dict[str, str], list[str]]:
    """The program's environment, and what to tell of it; makes the files it needs in the run's folder."""
    hints = folder / _HINTS
    temporary = folder / f".romio_hints.{os.uname().nodename}.{os.getpid()}"
    temporary.write_text(hints_text(environment))
    temporary.replace(hints)
    traced, replaced = traced_environment(environment, hints)
    traced["VALGRIND_LIB"] = str(make_tool_folder(valgrind, folder / _TOOLS))
    told = [f"{', '.join(replaced)}: replaced, for tracing needs other values"] if replaced else []
    if environment.get("SCR_CRIT_PLUGIN") == "1":
        # A restart may need the plugin to read packed files; what is written must go where SCR sends it.
        traced["SCR_CRIT_DRYRUN"] = "1"
        told.append("SCR_CRIT_PLUGIN is 1: it only reads while tracing (SCR_CRIT_DRYRUN=1)")
    return traced, told


def run_traced(
    valgrind: Valgrind,
    trace: Path,
    command: Sequence[str],
    environment: Mapping[str, str],
    tracing: Tracing,
) -> int:
    """Run the program under the tracer to its end.

    Parameters
    ----------
    valgrind : Valgrind
    trace : Path
        PREFIX of the files that the tracer writes.
    command : the program's path and arguments
    environment : of :func:`prepare`

    Returns
    -------
    int
        Its exit status; 128 and the signal's number if a signal ended it.

    Raises
    ------
    TraceError
        Valgrind cannot be started.
    """
    options = [f"--tool={TOOL}", "-q", "--fair-sched=try", f"--trace-out={trace}"]
    if tracing.until_flat:
        options.append(f"--until-flat={tracing.until_flat}")
    if tracing.dump:
        options.append(f"--dump={tracing.dump}")
    words = [str(valgrind.program), *options, *command]
    with _signals() as pass_on:
        try:
            # Launchers talk to their ranks through open descriptors: they stay open.
            started = subprocess.Popen(
                words, env=dict(environment), close_fds=False, preexec_fn=_end_with_parent()
            )
        except OSError as error:
            raise TraceError(f"cannot be started: {error.strerror}", path=valgrind.program) from error
        pass_on(started)
        status = started.wait()
    return status if status >= 0 else _SIGNAL_BASE - status


@contextmanager
def _signals() -> Iterator[Any]:
    """Signals go to the program once it is known; those that came before follow then."""
    child: list[subprocess.Popen[bytes]] = []
    early: list[int] = []

    def hand_on(number: int, _: FrameType | None) -> None:
        if number in _FROM_TERMINAL and _has_terminal():
            return
        if not child:
            early.append(number)
            return
        with suppress(ProcessLookupError):
            child[0].send_signal(number)

    def pass_on(started: subprocess.Popen[bytes]) -> None:
        child.append(started)
        for number in early:
            hand_on(number, None)

    before = {number: signal.signal(number, hand_on) for number in _PASSED_ON}
    try:
        yield pass_on
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _has_terminal() -> bool:
    """Whether this process is in the foreground of a terminal."""
    try:
        terminal = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)


def _end_with_parent() -> Any:
    """For the child before it starts: it is not to outlive a parent that was killed (prctl(2))."""
    set_death_signal = 1
    prctl = ctypes.CDLL(None, use_errno=True).prctl

    def ask() -> None:
        prctl(set_death_signal, signal.SIGKILL)

    return ask
