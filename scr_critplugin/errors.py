"""The exception tree of scr_critplugin.

Every error the package raises on bad input derives from :class:`CritError` and carries where the
fault is: the file, the rank, the byte offset or the key, as far as they are known. Imports nothing of
the package. Tests: ``tests/test_errors.py``.
"""

from __future__ import annotations

import os
from typing import Any


class CritError(Exception):
    """Base of all errors of this package.

    Parameters
    ----------
    message : str
        What was found, what was expected, and what to do.
    path : str or os.PathLike, optional
        File the error is about.
    rank : int, optional
        MPI rank the error is about.
    offset : int, optional
        Byte offset in `path` where the fault was seen.
    key : str, optional
        Key, variable or parameter the error is about.
    """

    def __init__(
        self,
        message: str,
        *,
        path: str | os.PathLike[str] | None = None,
        rank: int | None = None,
        offset: int | None = None,
        key: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.path = None if path is None else os.fspath(path)
        self.rank = rank
        self.offset = offset
        self.key = key

    def __str__(self) -> str:
        where = [
            f"{label}{value}"
            for label, value in (
                ("", self.path),
                ("rank ", self.rank),
                ("offset ", self.offset),
                ("key ", self.key),
            )
            if value is not None
        ]
        return f"{', '.join(where)}: {self.message}" if where else self.message

    def __reduce__(self) -> tuple[Any, ...]:
        # Keyword-only arguments: without this a CritError cannot cross a process pool.
        return (_rebuild, (type(self), self.message, self.__dict__))


def _rebuild(cls: type[CritError], message: str, attributes: dict[str, Any]) -> CritError:
    error = cls(message)
    for name, value in attributes.items():
        setattr(error, name, value)
    return error


class MapError(CritError):
    """A criticality map is malformed, or two maps do not describe the same variables."""


class UnknownVariableError(MapError, KeyError):
    """A criticality map has no variable of that name. Also a KeyError, as any mapping raises."""


class LayoutError(CritError):
    """A layout is malformed or does not fit the map or the checkpoint file."""


class PlanError(CritError):
    """A plan cannot be built, read or trusted."""


class NoMatchError(PlanError):
    """No plan entry matches the file, or the file does not fit its entry: it must stay whole."""


class PackedError(CritError):
    """A packed file is damaged, truncated, foreign, or of an unknown version."""


class ChecksumError(PackedError):
    """A checksum of a packed file or plan does not match its bytes."""


class NestedError(PackedError):
    """The source of a pack is already a packed file."""


class NoGainError(PackedError):
    """Packing would not make the file smaller; it should stay whole."""


class CodecError(PackedError):
    """The payload's codec is unknown or not built in."""


class StorageError(CritError, OSError):
    """The operating system refused an operation; ``errno`` says why (ENOSPC, EDQUOT, EIO, ...)."""

    def __init__(self, message: str, *, errno: int | None = None, **where: Any) -> None:
        CritError.__init__(self, message, **where)
        self.errno = errno

    def __reduce__(self) -> tuple[Any, ...]:
        # OSError keeps errno outside of __dict__.
        return (_rebuild, (type(self), self.message, {**self.__dict__, "errno": self.errno}))


class ChangedError(StorageError):
    """The source changed while it was being packed; nothing was written."""


class ProfileError(CritError):
    """A program cannot be profiled as asked."""


class ProfileWarning(UserWarning):
    """Something in a profiled program cannot be followed: whatever feeds it was kept as critical."""


class TraceError(CritError):
    """A trace of a compiled program is malformed or not whole, or the program cannot be traced as asked."""


class ScrError(CritError, RuntimeError):
    """A call into libscr failed. Also a RuntimeError, as SCR's own Python module raises."""
