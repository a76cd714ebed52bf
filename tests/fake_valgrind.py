"""A Valgrind that traces nothing: runs the program as it is and writes a made-up trace, to test the launcher.

Started as Valgrind is. What it is to do is in FAKE_TRACE: ``good``, ``none``, ``cut``.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

VERSION = os.environ.get("FAKE_VERSION", "valgrind-3.19.0")


def _trace(out: Path, program: list[str], exit_code: int, what: str) -> None:
    from test_tracing_planning import GHOSTED, heat_trace, restart

    rank = int(os.environ.get("PMI_RANK", "0"))
    ranks = int(os.environ.get("PMI_SIZE", "1"))
    trace = heat_trace(rank, ranks, masks=(GHOSTED,), program=program[0], window=f"end {exit_code} 3")
    if os.environ.get("FAKE_RESTART"):
        restart(trace, GHOSTED, rank)
    if what != "none":
        trace.save(out)
    if what == "cut":
        path = out.with_name(out.name + ".trace")
        path.write_text(path.read_text()[:-5])


def main() -> None:
    """Answer --version, or run the program and write its trace."""
    if "--version" in sys.argv:
        print(VERSION)
        return
    options = [word for word in sys.argv[1:] if word.startswith("--") and "=" in word]
    program = sys.argv[1:]
    while program[0].startswith("-"):
        program.pop(0)
    if "FAKE_LOG" in os.environ:
        seen = {"options": options, "environment": dict(os.environ), "program": program}
        Path(os.environ["FAKE_LOG"]).write_text(json.dumps(seen))
    child = os.fork()
    if child == 0:
        os.execv(program[0], program)
    # The program gets the launcher's signals as it would under Valgrind, where it is the same process.
    for number in (signal.SIGTERM, signal.SIGUSR1):
        signal.signal(number, lambda sent, _: os.kill(child, sent))
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        with suppress(OSError):
            signal.signal(os.WTERMSIG(status), signal.SIG_DFL)
        os.kill(os.getpid(), os.WTERMSIG(status))
    code = os.WEXITSTATUS(status)
    out = next(Path(word.partition("=")[2]) for word in options if word.startswith("--trace-out="))
    _trace(out, program, code, os.environ.get("FAKE_TRACE", "good"))
    sys.exit(code)


main()
