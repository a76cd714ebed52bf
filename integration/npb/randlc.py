"""The pseudo-random numbers of the NAS Parallel Benchmarks: x <- 5^13 x mod 2^46, divided by 2^46.

Bailey et al., report RNR-94-007. The report computes in halves of 23 bits because it has only
doubles; 64-bit integers wrap modulo 2^64, a multiple of 2^46, so they multiply exactly. A sequence is built
by doubling (the next n states are the last n times 5^(13 n)), in log2(n) array operations.

May import NumPy. Tests: ``integration/npb/test_ep.py``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

MULTIPLIER = 5**13
MODULUS = 2**46


def skipped(seed: int, count: int) -> int:
    """The state `count` numbers after `seed`."""
    return seed * pow(MULTIPLIER, count, MODULUS) % MODULUS


def states(seed: int, count: int) -> NDArray[np.uint64]:
    """The `count` states that follow `seed`, in order."""
    if not 0 < seed < MODULUS:
        raise ValueError(f"seed is {seed}; expected an integer between 0 and 2^46")
    found = np.empty(count, dtype=np.uint64)
    found[:1] = skipped(seed, 1)
    filled, jump = 1, MULTIPLIER
    while filled < count:
        new = found[filled : 2 * filled]
        np.multiply(found[: len(new)], np.uint64(jump), out=new)
        new &= np.uint64(MODULUS - 1)
        filled, jump = 2 * filled, jump * jump % MODULUS
    return found


def uniform(seed: int, count: int) -> NDArray[np.float64]:
    """The `count` numbers that follow `seed`: uniform in (0, 1), exact multiples of 2^-46."""
    return states(seed, count).astype(np.float64) / MODULUS
