"""What poison writes: NaN, 1e34 and bit noise for values of every type; each element gets other bits.

Floating-point numbers get quiet NaNs of random sign and payload, then 1e34 (infinity in half precision), then
random bits; complex ones in both parts. Times get "not a time", then noise. All else is noise from the
start: other bits for integers and raw bytes, the negation of booleans, other letters for text.

May import `bits`, `program` and NumPy. Tests: ``tests/test_poison.py``.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scr_critplugin.analysis.bits import same_elements
from scr_critplugin.analysis.program import State

FILLS = ("nan", "1e34", "noise")
_LETTERS = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz", dtype=np.uint8)


def poisoned(state: State, masks: Mapping[str, NDArray[np.bool_]], fill: str, seed: int = 0) -> State:
    """A copy of `state` with `fill` in the elements that `masks` set.

    Parameters
    ----------
    state : dict of str to array or scalar
    masks : mapping of str to boolean array of the variable's shape
        Variables that are left out are not touched.
    fill : {"nan", "1e34", "noise"}
    seed : int
        Of what is random; each variable and each fill has a stream of its own.
    """
    result = dict(state)
    for name, mask in masks.items():
        if mask.any():
            stream = np.random.default_rng([seed, FILLS.index(fill), zlib.crc32(name.encode())])
            result[name] = _with_fill(state[name], mask, fill, stream)
    return result


def mixed(state: State, other: State, masks: Mapping[str, NDArray[np.bool_]]) -> State:
    """A copy of `state` that has the elements of `other` where `masks` are set."""
    result = dict(state)
    for name, mask in masks.items():
        if not mask.any():
            continue
        result[name] = other[name]
        if isinstance(state[name], np.ndarray) and not mask.all():
            result[name] = np.copy(state[name])
            result[name][mask] = other[name][mask]
    return result


def _with_fill(value: Any, mask: NDArray[np.bool_], fill: str, stream: np.random.Generator) -> Any:
    if not isinstance(value, np.ndarray):
        return overwritten_scalar(value, fill, stream)
    values = np.copy(value)
    values[mask] = overwritten(values[mask], fill, stream)
    return values


def overwritten_scalar(value: Any, fill: str, stream: np.random.Generator) -> Any:
    """What stands for a NumPy scalar or a Python number or text instead of `value`; of the same type."""
    if isinstance(value, np.generic):
        return overwritten(np.asarray(value).reshape(1), fill, stream)[0]
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        # Not through NumPy: Python's integers have any size.
        return value ^ int(stream.integers(1, 1 << 62))
    if isinstance(value, (str, bytes)):
        # Empty text has no letter to change.
        made = overwritten(np.array([value or value.ljust(1)]), fill, stream)
        return made[0].item()
    return overwritten(np.array([value]), fill, stream)[0].item()


def overwritten(values: NDArray[Any], fill: str, stream: np.random.Generator) -> NDArray[Any]:
    """`values` with every element replaced by `fill`, so that each has other bits.

    Parameters
    ----------
    values : 1-d array of any dtype but object
    fill : {"nan", "1e34", "noise"}
    stream : numpy.random.Generator

    Returns
    -------
    1-d array of the same dtype and length
    """
    if values.dtype.names is not None:
        made = values.copy()
        for field in values.dtype.names:
            member = values[field]
            made[field] = overwritten(member.reshape(-1), fill, stream).reshape(member.shape)
        return made
    if values.dtype.hasobject:
        # Text of varying length.
        words = [overwritten_scalar(str(value), fill, stream) for value in values]
        return np.array(words, dtype=values.dtype)
    native = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("="))
    return _filled(native, fill, stream).astype(values.dtype, copy=False)


def _filled(values: NDArray[Any], fill: str, stream: np.random.Generator) -> NDArray[Any]:
    kind = values.dtype.kind
    if kind == "b":
        return ~values
    if kind == "c":
        return _floats(values.view(values.real.dtype), fill, stream).view(values.dtype)
    if kind == "f":
        return _floats(values, fill, stream)
    if kind in "mM":
        noise = _bit_noise(values.view(np.int64), stream).view(values.dtype)
        return np.where(np.isnat(values) | (fill != "nan"), noise, values.dtype.type("NaT"))
    if kind == "U":
        return _letters(values, values.dtype.itemsize // 4, np.uint32, stream)
    if kind == "S":
        return _letters(values, values.dtype.itemsize, np.uint8, stream)
    return _bit_noise(values, stream)


def _floats(values: NDArray[Any], fill: str, stream: np.random.Generator) -> NDArray[Any]:
    # Half precision overflows, and an odd NaN may be called invalid: both are meant.
    with np.errstate(all="ignore"):
        if fill == "1e34":
            made = np.full(values.shape, np.float64(1e34)).astype(values.dtype)
        elif fill == "nan":
            made = _quiet_nans(values.size, stream).astype(values.dtype)
        elif values.dtype.type is np.longdouble:
            # Random bytes would be no number of extended precision at all.
            made = _random_bits(values.size, np.dtype(np.float64), stream).astype(values.dtype)
        else:
            made = _random_bits(values.size, values.dtype, stream)
        same = same_elements(made, values)
        made[same] = -made[same]
    return made


def _quiet_nans(count: int, stream: np.random.Generator) -> NDArray[np.float64]:
    sign_and_payload = stream.integers(0, 1 << 64, count, dtype=np.uint64, endpoint=False)
    quiet = np.uint64(0x7FF8 << 48)
    return (sign_and_payload | quiet).view(np.float64)


def _bit_noise(values: NDArray[Any], stream: np.random.Generator) -> NDArray[Any]:
    made = _random_bits(values.size, values.dtype, stream)
    if values.dtype.itemsize:
        first_byte = made.view(np.uint8).reshape(values.size, values.dtype.itemsize)[:, 0]
        first_byte[same_elements(made, values)] ^= 1
    return made


def _random_bits(count: int, dtype: np.dtype[Any], stream: np.random.Generator) -> NDArray[Any]:
    made = np.empty(count, dtype=dtype)
    if made.nbytes:
        made.view(np.uint8)[...] = stream.integers(0, 256, made.nbytes, dtype=np.uint8)
    return made


def _letters(
    values: NDArray[Any], width: int, unit: type[np.unsignedinteger[Any]], stream: np.random.Generator
) -> NDArray[Any]:
    if not width or not values.size:
        return values
    letters = _LETTERS[stream.integers(0, len(_LETTERS), (values.size, width))].astype(unit)
    # Same word by chance: a letter that is none of those above.
    letters[same_elements(letters.view(values.dtype).reshape(-1), values), 0] = ord("A")
    return letters.view(values.dtype).reshape(-1)
