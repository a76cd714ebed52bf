"""SCR for Python programs, with the calls of SCR's own Python module, entered through the shim.

    from mpi4py import MPI
    import scr_critplugin.scr as scr

    scr.init()
    if scr.have_restart():
        scr.start_restart()
        read(scr.route_file("state.0"))
        scr.complete_restart(True)

With ``SCR_CRIT_PLUGIN=1`` checkpoints are packed; without, the calls go straight to libscr, which the shim
finds: one that is loaded already, else in ``$SCR_ROOT``, else by the loader. Nothing is loaded before the
first call.

A program that imports SCR's own module ``scr`` opens libscr by an absolute path, which no ``LD_PRELOAD`` can
come between. One line lets it be filtered as well::

    import scr, scr_critplugin.scr; scr_critplugin.scr.adopt(scr)

or, without a change to the program, when it is started by ``python -m scr_critplugin.scr program.py``.

All calls are collective over MPI_COMM_WORLD, except :func:`route_file`, and MPI must be initialised. They
raise :class:`ScrError`, a RuntimeError, where SCR's module raises RuntimeError.
Imports ``_shim``, ``_scr_hooks``, ``errors``. Tests: ``tests/shim/test_shim_python.py``.
"""

from __future__ import annotations

import importlib
import os
import runpy
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from scr_critplugin import _scr_hooks, _shim
from scr_critplugin._scr_hooks import Hooks
from scr_critplugin.errors import ScrError

__all__ = [
    "FLAG_CHECKPOINT",
    "FLAG_NONE",
    "FLAG_OUTPUT",
    "Hooks",
    "ScrError",
    "Totals",
    "adopt",
    "complete_output",
    "complete_restart",
    "config",
    "current",
    "delete",
    "drop",
    "finalize",
    "have_restart",
    "init",
    "libscr_path",
    "libscr_version",
    "need_checkpoint",
    "register_hooks",
    "route_file",
    "should_exit",
    "start_output",
    "start_restart",
    "totals",
]

FLAG_NONE = 0
FLAG_CHECKPOINT = 1
FLAG_OUTPUT = 2

# SCR_MAX_FILENAME is 1024, but SCR v3.1 writes longer paths beyond the caller's buffer (spath_strcpy).
_BUFFER = 8192


def _call(name: str, *arguments: Any) -> Any:
    shim = _shim.load_with_libscr()
    with _scr_hooks.raising():
        return getattr(shim.lib, name)(*arguments)


def _require(name: str, *arguments: Any, path: str | None = None) -> None:
    status = _call(name, *arguments)
    if status != 0:
        raise ScrError(f"{name} failed with status {status}", path=path)


def _new(kind: str) -> Any:
    return _shim.load().ffi.new(kind)


def _text(pointer: Any) -> str:
    return os.fsdecode(_shim.load().ffi.string(pointer))


# ---- Session -----------------------------------------------------------------------------------------


def config(conf: str) -> str | None:
    """Query, set or unset a parameter of SCR or of the plugin, before :func:`init`.

    Parameters
    ----------
    conf : str
        ``"KEY"`` to query, ``"KEY=VALUE"`` to set, ``"KEY="`` to unset.

    Returns
    -------
    str or None
        The value on a query, if the parameter is set; else None.
    """
    value = _call("SCR_Config", os.fsencode(conf))
    return _text(value) if value else None


def init() -> None:
    """Initialise SCR, after MPI: rebuild cached datasets, find the newest checkpoint.

    Raises
    ------
    ScrError
        When SCR refuses (``SCR_ENABLE=0``), or no libscr is found.
    """
    _require("SCR_Init")


def finalize() -> None:
    """Shut SCR down, before MPI; flushes what must reach the prefix.

    Raises
    ------
    ScrError
        When SCR_Finalize fails.
    """
    _require("SCR_Finalize")


def should_exit() -> bool:
    """Tell whether the program should end early.

    Raises
    ------
    ScrError
        When SCR_Should_exit fails.
    """
    flag = _new("int *")
    _require("SCR_Should_exit", flag)
    return bool(flag[0])


# ---- Files -------------------------------------------------------------------------------------------


def route_file(fname: str | os.PathLike[str]) -> str:
    """Return the path under which to open a file, for writing in an output phase or for reading in a restart.

    Outside of both phases the name comes back unchanged.

    Parameters
    ----------
    fname : str or path
        Absolute, or relative to the working directory.

    Raises
    ------
    ScrError
        When SCR does not know the file in a restart, or its packed bytes cannot be trusted: then report
        ``complete_restart(False)``, and SCR falls back to an older checkpoint.
    """
    path = _new(f"char[{_BUFFER}]")
    _require("SCR_Route_file", os.fsencode(fname), path, path=os.fspath(fname))
    return _text(path)


# ---- Restart -----------------------------------------------------------------------------------------


def have_restart() -> str | None:
    """Return the name of the checkpoint that can be read, or None.

    Raises
    ------
    ScrError
        When SCR_Have_restart fails.
    """
    flag, name = _new("int *"), _new(f"char[{_BUFFER}]")
    _require("SCR_Have_restart", flag, name)
    return _text(name) if flag[0] else None


def start_restart() -> str:
    """Open a restart phase; return the name of the checkpoint.

    Raises
    ------
    ScrError
        When SCR_Start_restart fails.
    """
    name = _new(f"char[{_BUFFER}]")
    _require("SCR_Start_restart", name)
    return _text(name)


def complete_restart(valid: bool = True) -> bool:
    """Close the restart phase.

    Parameters
    ----------
    valid : bool
        Whether this process has read all it needs.

    Returns
    -------
    bool
        Whether all processes have.
    """
    return bool(_call("SCR_Complete_restart", int(valid)) == 0)


# ---- Output ------------------------------------------------------------------------------------------


def need_checkpoint() -> bool:
    """Tell whether SCR would like a checkpoint now.

    Raises
    ------
    ScrError
        When SCR_Need_checkpoint fails.
    """
    flag = _new("int *")
    _require("SCR_Need_checkpoint", flag)
    return bool(flag[0])


def start_output(name: str | None, flags: int) -> None:
    """Open an output phase.

    Parameters
    ----------
    name : str or None
        Name of the dataset; None lets SCR choose one.
    flags : int
        Sum of ``FLAG_CHECKPOINT`` and ``FLAG_OUTPUT``, or ``FLAG_NONE``.

    Raises
    ------
    ScrError
        When SCR_Start_output fails.
    """
    encoded = _shim.load().ffi.NULL if name is None else os.fsencode(name)
    _require("SCR_Start_output", encoded, int(flags))


def complete_output(valid: bool = True) -> bool:
    """Close the output phase; the files must be closed.

    Parameters
    ----------
    valid : bool
        Whether this process has written all its files.

    Returns
    -------
    bool
        Whether all processes have, and SCR took the dataset.
    """
    return bool(_call("SCR_Complete_output", int(valid)) == 0)


# ---- Datasets ----------------------------------------------------------------------------------------


def current(name: str) -> None:
    """Tell SCR from which checkpoint the program restarted by its own means.

    Such a program opens files under the prefix itself and sees packed bytes: it needs ``scr_crit unpack``.

    Raises
    ------
    ScrError
        When SCR_Current fails.
    """
    _require("SCR_Current", os.fsencode(name))


def drop(name: str) -> None:
    """Make SCR forget a dataset; its files stay.

    Raises
    ------
    ScrError
        When SCR_Drop fails.
    """
    _require("SCR_Drop", os.fsencode(name))


def delete(name: str) -> None:
    """Make SCR delete a dataset and its files.

    Raises
    ------
    ScrError
        When SCR_Delete fails.
    """
    _require("SCR_Delete", os.fsencode(name))


# ---- The shim ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Totals:
    """What the plugin did in this process since :func:`init`; bytes are those of the packed files."""

    packed_files: int
    whole_files: int
    expanded_files: int
    bytes_before: int
    bytes_after: int
    pack_seconds: float
    expand_seconds: float


def totals() -> Totals:
    """Return what the plugin did so far in this process."""
    shim = _shim.load()
    counts = shim.ffi.new("scr_crit_shim_totals *")
    shim.lib.scr_crit_shim_get_totals(counts)
    return Totals(**{name: getattr(counts, name) for name in Totals.__dataclass_fields__})


def libscr_path() -> str:
    """Return the path of the libscr that is called.

    Raises
    ------
    ScrError
        When none is found.
    """
    return _text(_shim.load_with_libscr().lib.scr_crit_shim_libscr())


def libscr_version() -> str:
    """Return the version of the libscr that is called, as in ``3.1.0``.

    Raises
    ------
    ScrError
        When none is found.
    """
    return _text(_call("SCR_Get_version")).removeprefix("v")


def register_hooks(
    *,
    name: str = "python",
    initialized: Callable[[], None] | None = None,
    output_started: Callable[[str | None, int], None] | None = None,
    output_routed: Callable[[str, str], str | os.PathLike[str] | None] | None = None,
    output_completing: Callable[[bool], bool | None] | None = None,
    output_completed: Callable[[bool], None] | None = None,
    restart_started: Callable[[str | None], None] | None = None,
    restart_routed: Callable[[str, str], str | os.PathLike[str] | None] | None = None,
    restart_completed: Callable[[bool], None] | None = None,
    finalizing: Callable[[], None] | None = None,
) -> Hooks:
    """Have Python functions called when datasets and files pass through SCR, whether the plugin is on or off.

    The plugin comes first when a file is routed and last when output completes: a hook sees the path that
    the plugin chose, and the plugin finds the file there again.

    Parameters
    ----------
    name : str
        For messages.
    initialized, finalizing : callable
        SCR has started; SCR is about to shut down.
    output_started : callable(dataset, flags)
        An output phase began; the dataset's name is None if SCR chose it.
    output_routed : callable(name, path) -> path or None
        A file was routed for writing: its name as the program gave it, and where the program will write it. A
        path that is returned replaces it.
    output_completing : callable(valid) -> bool or None
        The program has closed its files, SCR has not seen them. The answer replaces `valid`.
    output_completed : callable(succeeded)
        SCR has taken or rejected the output.
    restart_started : callable(dataset)
    restart_routed : callable(name, path) -> path or None
    restart_completed : callable(valid)
        The same for reading.

    Returns
    -------
    Hooks
        To take them out again: ``remove()``.

    Raises
    ------
    ScrError
        When they cannot be registered. Later, when a hook raises: the call that caused the event raises
        ScrError from it, after the event was answered as failed (the file not routed, the output not valid).
    """
    given = dict(
        initialized=initialized,
        output_started=output_started,
        output_routed=output_routed,
        output_completing=output_completing,
        output_completed=output_completed,
        restart_started=restart_started,
        restart_routed=restart_routed,
        restart_completed=restart_completed,
        finalizing=finalizing,
    )
    return Hooks(name, {event: function for event, function in given.items() if function is not None})


def adopt(module: ModuleType | None = None) -> ModuleType:
    """Make SCR's own Python module call SCR through the shim.

    Parameters
    ----------
    module : module, optional
        SCR's module; by default ``scr`` is imported.

    Returns
    -------
    module
        The same module.

    Raises
    ------
    ScrError
        When it is not SCR's module, or the shim cannot be loaded.
    ImportError
        When there is no module ``scr``.
    """
    adopted: Any = importlib.import_module("scr") if module is None else module
    if not hasattr(adopted, "_ffi") or not hasattr(adopted, "_libscr"):
        raise ScrError(
            "is not SCR's own Python module: expected its members _ffi and _libscr",
            path=getattr(adopted, "__file__", None),
        )
    shim = _shim.load()
    adopted._libscr = adopted._ffi.dlopen(shim.path, _shim.FLAGS)
    return module if module is not None else adopted


def _run_program(arguments: list[str]) -> None:
    """Run a program that imports ``scr``, with SCR's own module adopted, or with this one in its place."""
    if not arguments:
        sys.exit("usage: python -m scr_critplugin.scr PROGRAM [ARGUMENT]...")
    sys.path[0] = str(Path(arguments[0]).resolve().parent)
    try:
        adopt()
    except ImportError:
        sys.modules["scr"] = importlib.import_module("scr_critplugin.scr")
    sys.argv = arguments
    runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    _run_program(sys.argv[1:])
