"""Where the installed pieces are: the C libraries, the headers, the demonstration's sources.

Imports only ``errors``. Tests: ``tests/test_cli.py``.
"""

from __future__ import annotations

from pathlib import Path

from scr_critplugin.errors import CritError

_PACKAGE = Path(__file__).resolve().parent


def _installed(path: Path) -> Path:
    if not path.exists():
        raise CritError(
            "is missing from this installation; install the package (pip install .)",
            path=path,
        )
    return path


def shim_library() -> Path:
    """Path of the shim for ``LD_PRELOAD``."""
    return _installed(_PACKAGE / "lib" / "libscr_crit_shim.so")


def tracer_folder() -> Path:
    """Folder with the access tracer, a tool for Valgrind."""
    folder = _PACKAGE / "lib" / "valgrind"
    if not any(folder.glob("scr_crit-*")):
        raise CritError(
            "the access tracer is missing: this package was installed without Valgrind's headers and "
            "libraries. Install them (Debian, Ubuntu: valgrind; RHEL, Fedora: valgrind-devel; Spack: "
            "valgrind), then this package again (pip install --force-reinstall --no-deps .)",
            path=folder,
        )
    return folder


def demo_sources() -> Path:
    """Folder with the demonstration's sources: the stand-in for libscr, ``heat3d``, and the BT kernel."""
    return _installed(_PACKAGE / "share" / "demo")
