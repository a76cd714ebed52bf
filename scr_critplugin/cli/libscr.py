"""Ask, in a process of its own, which libscr the shim would call.

A process of its own, because loading libscr loads an MPI, which this process has no use for.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass

_QUESTION = """
import json
from scr_critplugin import scr
print(json.dumps([scr.libscr_path(), scr.libscr_version()]))
"""


@dataclass(frozen=True)
class LibScr:
    """The libscr that the shim found: its path and version, or why there is none."""

    path: str
    version: str
    problem: str


def find_libscr() -> LibScr:
    """Return the libscr that a program in this environment would use."""
    answer = subprocess.run(
        [sys.executable, "-P", "-c", _QUESTION], capture_output=True, text=True, check=False
    )
    if answer.returncode == 0:
        path, version = json.loads(answer.stdout.splitlines()[-1])
        return LibScr(path, version, "")
    lines = answer.stderr.strip().splitlines()
    if not lines:
        return LibScr("", "", f"the probe ended with status {answer.returncode}")
    # The last line of a traceback, without the exception's name.
    return LibScr("", "", lines[-1].partition("Error: ")[2] or lines[-1])
