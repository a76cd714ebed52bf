"""Proof by poison: overwrite every uncritical element, run on, and compare the outputs bit for bit.

May import `program`, the map and the errors. Tests: ``tests/test_dependence.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scr_critplugin.analysis.program import Program, State
from scr_critplugin.analysis.ranks import current
from scr_critplugin.errors import ProfileError


@dataclass(frozen=True)
class PoisonReport:
    """What was overwritten: `fills` in turn, `elements` by variable; and for how many `steps`."""

    fills: tuple[str, ...]
    elements: dict[str, int]
    steps: int


def _nan(values: NDArray[Any]) -> Any:
    return np.nan if values.dtype.kind in "fc" else _noise(values)


def _huge(values: NDArray[Any]) -> Any:
    # Large, but no overflow in single precision; half precision gets infinity.
    with np.errstate(over="ignore"):
        return np.array(1e34).astype(values.dtype) if values.dtype.kind in "fc" else _noise(values)


def _noise(values: NDArray[Any]) -> Any:
    if values.dtype.kind == "b":
        return ~values
    generator = np.random.default_rng(values.size)
    return np.frombuffer(generator.bytes(values.nbytes), dtype=values.dtype).reshape(values.shape)


FILLS: dict[str, Callable[[NDArray[Any]], Any]] = {"nan": _nan, "1e34": _huge, "noise": _noise}


def check_by_poison(
    program: Program, state: State, uncritical: Mapping[str, NDArray[np.bool_]], steps: int
) -> PoisonReport:
    """Run `steps` steps with each fill in the `uncritical` elements and compare the output after each.

    Raises
    ------
    ProfileError
        An output changed, or the poisoned run failed: the map would have been wrong. `key` names the variable
        whose poison does it, if a single one does.
    """
    expected = _trajectory(program, state, steps)
    for fill in FILLS:
        difference = _first_difference(program, poisoned(state, uncritical, fill), expected)
        if difference is not None:
            raise ProfileError(
                f"elements found uncritical are not: with {fill} in them, {difference}. Please report this "
                "program; profile with validate=None to look at the map",
                key=_guilty(program, state, uncritical, fill, expected),
            )
    elements = {name: int(mask.sum()) for name, mask in uncritical.items()}
    return PoisonReport(tuple(FILLS), elements, steps)


def poisoned(state: State, uncritical: Mapping[str, NDArray[np.bool_]], fill: str) -> State:
    """A copy of `state` with `fill` ("nan", "1e34" or "noise") in the uncritical elements."""
    result = dict(state)
    for name, mask in uncritical.items():
        if not mask.any():
            continue
        values = np.array(state[name])
        values[mask] = FILLS[fill](values[mask])
        result[name] = values if isinstance(state[name], np.ndarray) else type(state[name])(values[()])
    return result


def same_bits(one: Any, other: Any) -> bool:
    """True if two outputs agree in type, shape and every bit (NaNs included)."""
    left, right = np.asarray(one), np.asarray(other)
    return left.dtype == right.dtype and left.shape == right.shape and left.tobytes() == right.tobytes()


def _trajectory(program: Program, state: State, steps: int) -> list[list[Any]]:
    outputs = []
    for _ in range(steps):
        state = program.advance(state)
        outputs.append(program.outputs(state))
    return outputs


def _first_difference(program: Program, state: State, expected: list[list[Any]]) -> str | None:
    with np.errstate(all="ignore"):
        for number, wanted in enumerate(expected, start=1):
            try:
                state = program.advance(state)
                found = program.outputs(state)
            except Exception as error:
                return f"step {number} raises {type(error).__name__}: {error}"
            differs = len(found) != len(wanted) or not all(map(same_bits, found, wanted))
            if current().any(differs):
                return f"the output after {number} steps changes"
    return None


def _guilty(
    program: Program,
    state: State,
    uncritical: Mapping[str, NDArray[np.bool_]],
    fill: str,
    expected: list[list[Any]],
) -> str | None:
    for name, mask in uncritical.items():
        if _first_difference(program, poisoned(state, {name: mask}, fill), expected) is not None:
            return name
    return None
