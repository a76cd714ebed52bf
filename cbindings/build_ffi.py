"""Write the C source of ``scr_critplugin._core``, the Python extension over the C core (cffi, API mode).

    python build_ffi.py OUTPUT.c

The declarations are those between the marks ``[cdef core]`` and ``[end cdef]`` of include/scr_crit.h, so that
nothing is typed twice. CMake runs this and compiles the result with the core's objects.
Imports nothing of the package. Tests: ``tests/test_cdef.py``.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import cffi

HEADER = Path(__file__).resolve().parent / "include" / "scr_crit.h"
MODULE = "scr_critplugin._core"


def read_cdef(block: str, header: Path = HEADER) -> str:
    """Return the declarations of one marked block of the header.

    Parameters
    ----------
    block : str
        Name in the opening mark: ``core`` or ``shim``.

    Raises
    ------
    ValueError
        When the header does not have exactly one such block, or the block has preprocessor lines, which cffi
        does not understand.
    """
    pattern = rf"/\* \[cdef {re.escape(block)}\] \*/\n(.*?)/\* \[end cdef\] \*/"
    found = re.findall(pattern, header.read_text(encoding="utf-8"), re.DOTALL)
    if len(found) != 1:
        raise ValueError(f"{header}: found {len(found)} blocks marked [cdef {block}], expected 1")
    if re.search(r"^\s*#", found[0], re.MULTILINE):
        raise ValueError(f"{header}: the block marked [cdef {block}] has preprocessor lines, expected none")
    return str(found[0])


def make_builder() -> cffi.FFI:
    """Return the cffi builder of the extension."""
    builder = cffi.FFI()
    builder.cdef(read_cdef("core"))
    builder.set_source(MODULE, '#include "scr_crit.h"\n')
    return builder


def main(arguments: list[str]) -> int:
    """Write the extension's C source to the one argument; returns the exit status."""
    if len(arguments) != 1:
        print(f"usage: {Path(__file__).name} OUTPUT.c", file=sys.stderr)
        return 2
    make_builder().emit_c_code(arguments[0])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
