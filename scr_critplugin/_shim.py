"""Load the SCR shim into this process, once, by cffi in ABI mode.

The declarations come from the installed headers. The shim finds libscr by itself: behind itself when it was
preloaded, else one that is loaded already, else in ``$SCR_ROOT``, else by the loader.
Imports ``errors`` and ``installation``.
Tests: ``tests/shim/test_shim_python.py``.
"""

from __future__ import annotations

import functools
import os
import re
from pathlib import Path
from typing import Any, NamedTuple

from cffi import FFI

from scr_critplugin.errors import ScrError
from scr_critplugin.installation import shim_library

_INCLUDE = Path(__file__).resolve().parent / "include"

# Global, so that compiled modules of the same program that call SCR are filtered as well.
FLAGS = os.RTLD_NOW | os.RTLD_GLOBAL


class Shim(NamedTuple):
    """The loaded shim: its FFI, the library, and its path (None: it was in the process already)."""

    ffi: FFI
    lib: Any
    path: str | None


def _declarations(header: Path, block: str) -> str:
    try:
        text = header.read_text(encoding="utf-8")
    except OSError as error:
        raise ScrError(f"cannot be read ({error.strerror}); reinstall the package", path=header) from error
    found = re.search(rf"/\* \[cdef {block}\] \*/\n(.*?)/\* \[end cdef\] \*/", text, re.DOTALL)
    if found is None:
        raise ScrError(f"has no block marked [cdef {block}]; reinstall the package", path=header)
    return found.group(1)


@functools.cache
def load() -> Shim:
    """Return the shim: the one that is preloaded or linked in, else the package's own.

    Raises
    ------
    ScrError, CritError
        When it is missing from the installation or cannot be loaded.
    """
    ffi = FFI()
    ffi.cdef(_declarations(_INCLUDE / "scr_crit.h", "shim") + _declarations(_INCLUDE / "scr_api.h", "scr"))
    process = ffi.dlopen(None)
    if hasattr(process, "scr_crit_hooks_register"):
        return Shim(ffi, process, None)
    path = str(shim_library())
    try:
        return Shim(ffi, ffi.dlopen(path, FLAGS), path)
    except OSError as error:
        raise ScrError(f"cannot be loaded: {error}", path=path) from error


def load_with_libscr() -> Shim:
    """Return the shim, once it has found a libscr.

    Raises
    ------
    ScrError
        When there is no libscr; the words say where it was looked for.
    """
    shim = load()
    if not shim.ffi.string(shim.lib.scr_crit_shim_libscr()):
        tried = shim.ffi.string(shim.lib.scr_crit_shim_libscr_error()).decode(errors="replace")
        raise ScrError(f"found no libscr ({tried}); set SCR_ROOT to SCR's install prefix, or load its module")
    return shim
