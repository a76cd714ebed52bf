"""The processes that a test leaves behind."""

from __future__ import annotations

import os
from pathlib import Path


def children() -> set[int]:
    """Numbers of this process's children, ended ones that nobody waited for included (proc(5), ``stat``)."""
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = stat.read_text()
        except OSError:
            # It has ended in the meantime.
            continue
        parent = int(text.rpartition(")")[2].split()[1])
        if parent == os.getpid():
            found.add(int(stat.parent.name))
    return found
