"""What matters to a program's output, found by changing elements one by one; and what `profile` finds."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from scr_critplugin.analysis import Profile, profile

State = dict[str, Any]
Function = Callable[[State], Any]


def copied(state: State) -> State:
    """The state with arrays of its own, in the same memory order."""
    return {name: v.copy(order="K") if isinstance(v, np.ndarray) else v for name, v in state.items()}


def outputs(step: Function, state: State, output: Function, steps: int = 1) -> list[list[bytes]]:
    """The bits of the output after each step; ends with "raises" where the program does."""
    found = []
    with np.errstate(all="ignore"):
        for _ in range(steps):
            given = copied(state)
            try:
                result = step(given)
                state = given if result is None else result
                parts = output(copied(state))
            except (ValueError, IndexError, np.linalg.LinAlgError):
                return [*found, [b"raises"]]
            found.append(
                [np.asarray(part).tobytes() for part in (parts if isinstance(parts, list) else [parts])]
            )
    return found


def numbers(value: Any) -> Iterable[Any]:
    """What to put in an element's place."""
    return (0.0, -2.0, 1e3, 0.77)


def truth(
    step: Function,
    state: State,
    output: Function,
    steps: int = 1,
    others: Callable[[Any], Iterable[Any]] = numbers,
) -> dict[str, set[int]]:
    """The elements that change the output when they are replaced, found one by one."""
    expected = outputs(step, state, output, steps)
    matter: dict[str, set[int]] = {}
    for name, value in state.items():
        matter[name] = set()
        for place, index in enumerate(np.ndindex(np.shape(value))):
            for other in others(value[index]):
                changed = copied(state)
                changed[name][index] = other
                if outputs(step, changed, output, steps) != expected:
                    matter[name].add(place)
    return matter


def places(found: Profile, name: str = "x") -> set[int]:
    """The elements of a variable that a profile calls critical, by their places in C order."""
    return {int(i) for i in np.flatnonzero(found.map[name].critical)}


def critical(step: Function, state: State, output: Function, **options: Any) -> dict[str, set[int]]:
    """The elements that `profile` calls critical, by their places in C order."""
    with np.errstate(all="ignore"):
        found = profile(step, state, output, **options)
    return {name: places(found, name) for name in found.map}
