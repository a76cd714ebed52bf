"""Every bit of a value that counts, so that two runs can be compared exactly and cheaply.

Padding counts for nothing: neither that of structured types nor that of extended precision is reproducible.
What was an output is kept as a digest, so that long runs of large outputs need no memory.

May import NumPy and `blocks`. Tests: ``tests/test_poison.py``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scr_critplugin.analysis.blocks import blocks

_EXTENDED_PRECISION_BYTES = 10
"""Of the 12 or 16 bytes of an x87 number; the rest is padding."""

_UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def digest_of(value: Any) -> tuple[str, bytes]:
    """Type with shape, in words, and a digest of every bit, of an array or a scalar."""
    if isinstance(value, (np.ndarray, np.generic)):
        array = np.asarray(value)
        kind, chunks = f"{array.dtype}{list(array.shape)}", _chunks(array)
        if isinstance(value, np.ma.MaskedArray):
            chunks = chain(chunks, _chunks(np.ma.getmaskarray(value)))
    else:
        kind, chunks = type(value).__name__, iter([_of_scalar(value)])
    digest = hashlib.blake2b(digest_size=16)
    for chunk in chunks:
        digest.update(chunk)
    return kind, digest.digest()


def same_elements(one: NDArray[Any], other: NDArray[Any]) -> NDArray[np.bool_]:
    """True where two arrays of one dtype and shape have the same bits."""
    same = np.ones(one.shape, dtype=bool)
    if one.dtype.names is not None:
        for field in one.dtype.names:
            fields_same = same_elements(one[field], other[field])
            same &= fields_same.reshape(*one.shape, -1).all(axis=-1)
    elif one.dtype.hasobject:
        same &= np.asarray(one == other, dtype=bool)
    elif one.dtype.itemsize in _UNSIGNED and one.dtype.type is not np.longdouble:
        # The common case, in one pass.
        unsigned = _UNSIGNED[one.dtype.itemsize]
        same = np.asarray(
            np.ascontiguousarray(one).view(unsigned) == np.ascontiguousarray(other).view(unsigned)
        ).reshape(one.shape)
    elif one.dtype.itemsize:
        same &= (_bytes_of(one) == _bytes_of(other)).all(axis=1).reshape(one.shape)
    return same


def _of_scalar(value: Any) -> bytes:
    if isinstance(value, (float, complex)):
        return np.asarray(value).tobytes()
    return repr(value).encode("utf-8", "surrogatepass")


def _chunks(array: NDArray[Any]) -> Iterator[Any]:
    if array.dtype.names is not None:
        for field in array.dtype.names:
            yield from _chunks(array[field])
    elif array.dtype.hasobject:
        yield repr(array.tolist()).encode("utf-8", "surrogatepass")
    elif array.size and array.dtype.itemsize:
        for part in blocks(array):
            yield np.ascontiguousarray(_bytes_of(part))


def _bytes_of(array: NDArray[Any]) -> NDArray[np.uint8]:
    """Bytes that count, one row a number."""
    dtype = array.dtype
    if dtype.type is np.clongdouble:
        parts = np.ascontiguousarray(array).astype(dtype.newbyteorder("=")).reshape(-1).view(np.longdouble)
        return _bytes_of(parts).reshape(array.size, -1)
    rows = np.ascontiguousarray(array).reshape(-1)
    if dtype.type is np.longdouble and np.finfo(dtype).nmant == 63:
        as_bytes = rows.astype(dtype.newbyteorder("=")).view(np.uint8).reshape(array.size, -1)
        return as_bytes[:, :_EXTENDED_PRECISION_BYTES]
    return rows.view(np.uint8).reshape(array.size, dtype.itemsize)
