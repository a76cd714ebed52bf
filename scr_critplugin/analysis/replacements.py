"""What an element is replaced by, one value after the other, to see whether the output depends on it.

Mild changes come first: most elements that matter show at once, and wild values of a number that stands for a
size or a count would cost memory and time.

May import `bits`, `fills` and NumPy. Tests: ``tests/test_perturbation.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scr_critplugin.analysis.bits import digest_of, same_elements
from scr_critplugin.analysis.fills import overwritten, overwritten_scalar

_BITS_OF_A_COUNT = 16
"""Python integers are counters and sizes: noise stays below 2**16."""


def replaced(value: Any, place: int, stream: np.random.Generator) -> Iterator[Any]:
    """Copies of `value` that differ in one element, each by another replacement.

    Parameters
    ----------
    value : array, NumPy scalar, or Python number or text
    place : int
        The element, in C order; 0 in a scalar.
    stream : numpy.random.Generator
        Of flipped bits and noise.

    Yields
    ------
    array or scalar
        Of the type, dtype and shape of `value`, with other bits in the element.
    """
    if isinstance(value, np.ndarray):
        index = np.unravel_index(place, value.shape)
        for new in _elements(value[index], value, stream):
            copy = np.copy(value)
            copy[index] = new[0]
            yield copy
    elif isinstance(value, np.generic):
        yield from (new[0] for new in _elements(value, np.asarray(value), stream))
    else:
        others = _of_python(value, stream)
        yield from (other for other in others if digest_of(other) != digest_of(value))


def _elements(element: Any, whole: NDArray[Any], stream: np.random.Generator) -> list[NDArray[Any]]:
    """Replacements of one element of `whole`, each an array of length 1."""
    one = np.empty(1, dtype=whole.dtype)
    one[0] = element
    # Overflow and odd NaNs are meant.
    with np.errstate(all="ignore"):
        made = [np.asarray(new).astype(one.dtype) for new in _changes(one, whole, stream)]
    made.append(overwritten(one, "noise", stream))
    return [new for new in made if not same_elements(new, one)[0]]


def _changes(one: NDArray[Any], whole: NDArray[Any], stream: np.random.Generator) -> Iterator[Any]:
    kind = one.dtype.kind
    if kind in "fc":
        yield from _of_number(one, _scale(whole))
    elif kind in "iu":
        native = one.astype(one.dtype.newbyteorder("="))
        yield native + native.dtype.type(1)
        for bit in stream.permutation(8 * native.dtype.itemsize)[:3]:
            yield native ^ np.left_shift(1, bit, dtype=native.dtype, casting="unsafe")
    elif kind in "mM":
        steps = one.astype(one.dtype.newbyteorder("=")).view(np.int64) + 1
        yield steps.view(one.dtype.newbyteorder("="))


def _of_number(one: NDArray[Any], scale: Any) -> Iterator[Any]:
    yield one * 1.01
    yield one + scale
    if one.dtype.kind == "c":
        yield one + 1j * scale
        yield np.conj(one)
    yield -one
    yield overwritten(one, "1e34", np.random.default_rng(0))


def _scale(whole: NDArray[Any]) -> float:
    """Typical size of the numbers in `whole`; 1 if they tell none."""
    largest = np.max(np.abs(whole), initial=0.0, where=np.isfinite(whole))
    return float(largest) or 1.0


def _of_python(value: Any, stream: np.random.Generator) -> Iterator[Any]:
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield value + 1
        yield value - 1
        yield from (value ^ (1 << int(bit)) for bit in stream.permutation(_BITS_OF_A_COUNT)[:3])
        yield value ^ int(stream.integers(1, 1 << _BITS_OF_A_COUNT))
    elif isinstance(value, (float, complex)):
        yield from (new[0].item() for new in _elements(value, np.array([value]), stream))
    else:
        yield overwritten_scalar(value, "noise", stream)
