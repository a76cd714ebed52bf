"""Buffers as mpi4py's uppercase methods take them, of ordinary and of traced arrays.

A buffer is an array, or a list of an array and, in this order and each optional, counts, displacements and a
datatype. Counts are in elements of the array; the datatype may only say what the array says.

May import NumPy, `boxes` and the errors; mpi4py when called. Tests: ``tests/test_mpi_profile.py``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from autograd.tracer import isbox

from scr_critplugin.analysis.boxes import TracedArray
from scr_critplugin.analysis.tape import DependenceNode
from scr_critplugin.errors import ProfileError


class Region:
    """Elements `start` to `stop` of a buffer, whose elements lie in one row: an ordinary or traced array."""

    def __init__(self, row: Any, start: int, stop: int) -> None:
        self._row = row
        self._start = start
        self._stop = stop

    def contents(self) -> Any:
        """The elements now; of an ordinary array a view."""
        return self._row[self._start : self._stop]

    def store(self, values: Any) -> None:
        """Write what has arrived to the first elements."""
        count = int(np.size(values))
        if count > self._stop - self._start:
            from mpi4py import MPI

            raise MPI.Exception(MPI.ERR_TRUNCATE)
        if values.dtype != self._row.dtype:
            raise ProfileError(f"a message of {values.dtype} arrived in a buffer of {self._row.dtype}")
        if not count:
            return
        if not isinstance(self._row, TracedArray) and isbox(values):
            # The program keeps this array outside its state, so where the values go from there is not seen.
            node = values._node
            if isinstance(node, DependenceNode):
                node.tape.leave(node, "buffer outside the state")
            values = np.array(values._value)
        self._row[self._start : self._start + count] = values


def region_in(buffer: Any) -> Region:
    """The region that a buffer of a single message names."""
    array, counts, displacements = _parsed(buffer)
    row = _row(array)
    start = 0 if displacements is None else int(displacements)
    count = int(np.size(row)) - start if counts is None else int(counts)
    return _checked(row, start, count)


def regions_in(buffer: Any, number: int) -> list[Region]:
    """The regions that a buffer names for `number` ranks: as many equal parts, or as its counts say."""
    array, counts, displacements = _parsed(buffer)
    row = _row(array)
    if counts is None:
        if np.size(row) % number:
            raise ProfileError(
                f"a buffer of {np.size(row)} elements does not divide into {number} equal parts"
            )
        counts = np.size(row) // number
    sizes = [int(each) for each in np.broadcast_to(counts, number)]
    if displacements is None:
        displacements = np.cumsum([0, *sizes[:-1]])
    return [_checked(row, int(start), size) for start, size in zip(displacements, sizes, strict=True)]


def _parsed(buffer: Any) -> tuple[Any, Any, Any]:
    """The array, the counts and the displacements of a buffer; None for what it leaves out."""
    from mpi4py import MPI

    if not isinstance(buffer, (list, tuple)):
        return _array(buffer), None, None
    array, *rest = buffer
    array = _array(array)
    if rest and isinstance(rest[-1], (MPI.Datatype, str)):
        _refuse_other_type(array, rest.pop())
    if len(rest) == 1 and isinstance(rest[0], tuple) and len(rest[0]) == 2:
        rest = list(rest[0])
    if len(rest) > 2:
        raise ProfileError("expected a buffer of an array, counts, displacements and a datatype")
    counts, displacements = (*rest, None, None)[:2]
    return array, counts, displacements


def _array(buffer: Any) -> Any:
    if isinstance(buffer, (np.ndarray, TracedArray)):
        return buffer
    if isbox(buffer):
        raise ProfileError("a value inside a gradient of autograd is communicated, which cannot be followed")
    # Anything else that has memory, as mpi4py takes it.
    return np.asarray(memoryview(buffer))


def _refuse_other_type(array: Any, datatype: Any) -> None:
    from mpi4py import MPI

    known = MPI.Datatype.fromcode(datatype) if isinstance(datatype, str) else datatype
    if not known.is_predefined or known.Get_size() != array.dtype.itemsize:
        name = known.Get_name() or "of the program"
        raise ProfileError(
            f"a buffer of {array.dtype} is communicated as the datatype {name}: "
            "only the datatype of its elements can be followed. Copy the elements to an array of their own"
        )


def _row(array: Any) -> Any:
    """The elements of a contiguous array in memory order: a view."""
    if array.flags.c_contiguous:
        return array.reshape(-1)
    if array.flags.f_contiguous:
        return array.T.reshape(-1)
    raise ValueError("ndarray is not contiguous")


def _checked(row: Any, start: int, count: int) -> Region:
    if start < 0 or count < 0 or start + count > np.size(row):
        raise ProfileError(
            f"elements {start} to {start + count} of a buffer of {np.size(row)} are communicated"
        )
    return Region(row, start, start + count)
