"""Whole files in and out for the Python side: read at once, or replace atomically.

The core writes packed files itself; this is for plans and for checkpoints that packing would not make
smaller. Imports the extension and the errors. Tests: ``tests/test_plan.py``, ``tests/test_packed.py``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ._core import ffi, lib
from ._core_errors import PathLike, require_ok
from .errors import StorageError

_PATH_SIZE = 4096


@contextmanager
def _refusals(path: PathLike, what: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StorageError(f"{what}: {error.strerror}", errno=error.errno, path=path) from error


def read_file(path: PathLike) -> bytes:
    """A file's content; StorageError when it cannot be read."""
    with _refusals(path, "cannot be read"):
        return Path(path).read_bytes()


def temp_path(target: PathLike) -> Path:
    """Name of the temporary file that writing `target` uses; the same folder, so that a rename suffices."""
    buffer = ffi.new(f"char[{_PATH_SIZE}]")
    require_ok(lib.scr_crit_temp_path(os.fsencode(target), buffer, _PATH_SIZE), target, reading="packed")
    return Path(os.fsdecode(ffi.string(buffer)))


def replace_file(path: PathLike, pieces: Iterable[bytes | memoryview]) -> None:
    """Write a file under its final name, complete and synced, or not at all.

    Raises
    ------
    StorageError
        The operating system refused; the temporary file is removed, an older file of that name is as it was.
    """
    temporary = temp_path(path)
    with _refusals(path, "cannot be written"):
        try:
            with temporary.open("wb") as file:
                file.writelines(pieces)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except BaseException:
            with suppress(OSError):
                temporary.unlink()
            raise
        _sync_folder(temporary.parent)


def _sync_folder(folder: Path) -> None:
    """Make the rename itself durable."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
