"""From the C core's statuses to this package's exceptions.

Imports the extension and ``errors`` only. Tests: ``tests/test_plan.py``, ``tests/test_packed.py``.
"""

from __future__ import annotations

import os
from typing import Any, Literal, NoReturn

from ._core import ffi, lib
from .errors import (
    ChangedError,
    ChecksumError,
    CodecError,
    CritError,
    NestedError,
    NoGainError,
    NoMatchError,
    PackedError,
    PlanError,
    StorageError,
)

PathLike = str | os.PathLike[str]


# CritError where the status does not tell what was read: see `raise_failure`.
_EXCEPTIONS: dict[int, type[CritError]] = {
    lib.SCR_CRIT_ERR_ARG: CritError,
    lib.SCR_CRIT_ERR_IO: StorageError,
    lib.SCR_CRIT_ERR_NOSPACE: StorageError,
    lib.SCR_CRIT_ERR_CHECKSUM: ChecksumError,
    lib.SCR_CRIT_ERR_NOMATCH: NoMatchError,
    lib.SCR_CRIT_ERR_MISFIT: NoMatchError,
    lib.SCR_CRIT_ERR_NESTED: NestedError,
    lib.SCR_CRIT_ERR_CODEC: CodecError,
    lib.SCR_CRIT_ERR_NOGAIN: NoGainError,
    lib.SCR_CRIT_ERR_CHANGED: ChangedError,
}


def require_ok(status: int, *paths: PathLike, reading: Literal["plan", "packed"]) -> None:
    """Raise what a status of the core stands for; do nothing for success.

    Parameters
    ----------
    status : int
        What the call returned. Its thread must have made no other call of the core since.
    paths : path
        The files the call was about. The one that the core's words begin with is the one at fault; if none
        is named there, the first.
    reading : {"plan", "packed"}
        What a malformed file is: a bad plan (:class:`PlanError`) or a bad packed file
        (:class:`PackedError`).
    """
    if status != lib.SCR_CRIT_OK:
        raise_failure(status, *paths, reading=reading)


def raise_failure(status: int, *paths: PathLike, reading: Literal["plan", "packed"]) -> NoReturn:
    """Raise the exception of a status that is not success; see :func:`require_ok`."""
    message = ffi.string(lib.scr_crit_last_error()).decode("utf-8", "replace")
    if status == lib.SCR_CRIT_ERR_NOMEM:
        raise MemoryError(message)
    malformed = PlanError if reading == "plan" else PackedError
    exception = _EXCEPTIONS.get(status, malformed)
    path, message = _find_culprit(message, [os.fspath(path) for path in paths])
    offset = lib.scr_crit_last_offset()
    where: dict[str, Any] = {"path": path, "offset": None if offset < 0 else offset}
    if issubclass(exception, StorageError):
        raise exception(message, errno=lib.scr_crit_last_errno() or None, **where)
    raise exception(message, **where)


def _find_culprit(message: str, paths: list[str]) -> tuple[str | None, str]:
    """The path that the message begins with, and the rest of the message."""
    for path in paths:
        if message.startswith(f"{path}: "):
            return path, message[len(path) + 2 :]
    return (paths[0] if paths else None), message
