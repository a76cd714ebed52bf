"""What the survey and the kernels' tests share: poison of chosen elements, and runs compared bit by bit.

Poison of its own, with other noise and other integers than the package's: what both find is found twice.

May import NumPy and `kernel`. Used by `survey` and ``integration/npb/test_*.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

import numpy as np
from kernel import State
from numpy.typing import NDArray

Masks = Mapping[str, NDArray[np.bool_]]


class Kernel(Protocol):
    """What the proofs use of a kernel's module."""

    def step(self, state: Mapping[str, Any]) -> State:
        """One step."""

    def output(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """What the run is for."""


def _bit_noise(values: NDArray[Any]) -> NDArray[Any]:
    if values.dtype.kind == "b":
        return ~values
    as_bytes = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
    # Never zero, so that each byte becomes another one.
    return (as_bytes ^ np.random.default_rng(7).integers(1, 256, as_bytes.size, dtype=np.uint8)).view(
        values.dtype
    )


def _filled(value: float) -> Callable[[NDArray[Any]], NDArray[Any]]:
    def fill(values: NDArray[Any]) -> NDArray[Any]:
        if values.dtype.kind == "c":
            return np.full_like(values, complex(value, value))
        if values.dtype.kind == "f":
            return np.full_like(values, value)
        if values.dtype.kind == "b":
            return ~values
        # Integers have no NaN: their extremes are the worst there is.
        return np.full_like(
            values, np.iinfo(values.dtype).min if np.isnan(value) else np.iinfo(values.dtype).max
        )

    return fill


FILLS: dict[str, Callable[[NDArray[Any]], NDArray[Any]]] = {
    "nan": _filled(np.nan),
    "1e34": _filled(1e34),
    "noise": _bit_noise,
}


def poisoned(state: Mapping[str, Any], masks: Masks, fill: str) -> State:
    """A copy of `state` with `fill` in the elements of the arrays that `masks` set."""
    result = dict(state)
    for name, mask in masks.items():
        if mask.any():
            result[name] = np.array(state[name])
            result[name][mask] = FILLS[fill](result[name][mask])
    return result


def bits_of(members: Mapping[str, Any]) -> Iterator[tuple[str, bytes]]:
    """Name, type and every bit of arrays and numbers."""
    for name, member in members.items():
        array = np.asarray(member)
        yield f"{name} {array.dtype} {array.shape}", array.tobytes()


def ends_the_same(kernel: Kernel, state: State, other: State, steps: int) -> bool:
    """True if the output has the same bits after each of `steps` steps from both states."""
    with np.errstate(all="ignore"):
        for _ in range(steps):
            state, other = kernel.step(state), kernel.step(other)
            if list(bits_of(kernel.output(state))) != list(bits_of(kernel.output(other))):
                return False
    return True


def elements(mask: NDArray[np.bool_], count: int, seed: int = 0) -> list[tuple[int, ...]]:
    """Indices of up to `count` of the elements that `mask` sets, chosen at random."""
    found = np.argwhere(mask)
    chosen = np.random.default_rng(seed).permutation(len(found))[:count]
    return [tuple(int(i) for i in index) for index in found[chosen]]


def only(shape: tuple[int, ...], index: tuple[int, ...]) -> NDArray[np.bool_]:
    """A mask of one element."""
    mask = np.zeros(shape, dtype=bool)
    mask[index] = True
    return mask


def frozen(state: Mapping[str, Any]) -> State:
    """A copy of `state` whose arrays cannot be written to."""
    copy = {name: np.copy(v) if isinstance(v, np.ndarray) else v for name, v in state.items()}
    for value in copy.values():
        if isinstance(value, np.ndarray):
            value.setflags(write=False)
    return copy
