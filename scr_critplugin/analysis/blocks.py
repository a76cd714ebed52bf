"""Large arrays part by part, so that work on one needs no second array of its size.

Imports NumPy only. Tests: ``tests/test_blocks.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

BLOCK = 1 << 18
"""Elements of a part: few megabytes, which caches hold."""


def blocks(array: NDArray[Any], elements: int = BLOCK) -> Iterator[NDArray[Any]]:
    """Views of at most `elements` elements (at least 1) that make up `array`, in C order."""
    if array.size <= elements:
        yield array
        return
    rows = elements * len(array) // array.size
    if rows:
        for first in range(0, len(array), rows):
            yield array[first : first + rows]
    else:
        for row in array:
            yield from blocks(row, elements)


def largest_finite(array: NDArray[Any]) -> float:
    """Largest absolute value of the finite elements of a float or complex array; 0 if there are none."""
    largest = 0.0
    for part in blocks(array):
        largest = max(largest, float(np.max(np.abs(part), initial=0.0, where=np.isfinite(part))))
    return largest
