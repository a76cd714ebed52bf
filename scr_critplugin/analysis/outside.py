"""Arrays outside the state that a program writes to: scratch space of its modules, objects and closures.

Their values may not matter between steps, or a restart would need them: that is checked by running plainly
with other values in them.

May import NumPy, `tape` and the errors. Tests: ``tests/test_outside.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from scr_critplugin.analysis.ranks import current
from scr_critplugin.analysis.tape import Outside, Tape
from scr_critplugin.errors import ProfileError


class Recorded(Protocol):
    """What a recorded step and a recorded output have in common."""

    @property
    def tape(self) -> Tape:
        """The record."""


class Runs(Protocol):
    """A program that can be run plainly."""

    def advance(self, state: dict[str, Any]) -> dict[str, Any]:
        """The state after one step."""

    def outputs(self, state: dict[str, Any]) -> list[Any]:
        """The leaves of the output."""


_ASSIGNED = {"array", "float", "complex"}
"""Kinds of sinks by which a value goes into an ordinary array."""
R = TypeVar("R", bound=Recorded)


def recorded(program: Runs, state: dict[str, Any], record: Callable[[dict[str, Any], bool], R]) -> R:
    """Record with ordinary arrays outside the state; again with traced ones if values left into any.

    Gives the recording's warnings.

    Raises
    ------
    ProfileError
        The program keeps values outside its state from one step to the next.
    """
    found = record(state, False)
    # Over several ranks the arrays stay ordinary, and what goes into them counts as needed.
    if current().size == 1 and any(sink.kind in _ASSIGNED for _, sink in found.tape.sinks):
        again = record(state, True)
        written = [array for array in again.tape.outside if array.written.any()]
        if written:
            _refuse_kept_values(program, state, written)
            found = again
    found.tape.give_warnings()
    return found


def _refuse_kept_values(program: Runs, state: dict[str, Any], arrays: list[Outside]) -> None:
    after = program.advance(state)
    kept = [outside.array.copy() for outside in arrays]

    def run(change: Callable[[NDArray[Any]], Any], changed: Iterable[Outside]) -> list[Any]:
        found: list[Any] = []
        for further in (program.outputs, lambda state: list(program.advance(state).values())):
            for outside, values in zip(arrays, kept, strict=True):
                outside.array[...] = values
            for outside in changed:
                outside.array[outside.written] = change(outside.array[outside.written])
            found += further(after)
        return found

    try:
        with np.errstate(all="ignore"):
            expected = run(_other, [])
            for change in (_other, _not_a_number):
                if _differs(lambda change=change: run(change, arrays), expected):  # type: ignore[misc]
                    guilty = [
                        outside.name
                        for outside in arrays
                        if _differs(lambda one=outside, change=change: run(change, [one]), expected)  # type: ignore[misc]
                    ]
                    raise ProfileError(
                        f"{', '.join(guilty or [outside.name for outside in arrays])} is written in one step "
                        "and read in the next, or by the output, outside the state: a restart would lose it. "
                        "Put it into the state"
                    )
    finally:
        for outside, values in zip(arrays, kept, strict=True):
            outside.array[...] = values


def _other(values: NDArray[Any]) -> NDArray[Any]:
    if values.dtype.kind == "b":
        return ~values
    return np.asarray(values + 1)


def _not_a_number(values: NDArray[Any]) -> NDArray[Any]:
    return np.full_like(values, np.nan) if values.dtype.kind in "fc" else _other(values)


def _differs(run: Callable[[], list[Any]], expected: list[Any]) -> bool:
    try:
        found = run()
    except Exception:
        # The plain run did not raise.
        return True
    return not all(_same(one, other) for one, other in zip(found, expected, strict=True))


def _same(one: Any, other: Any) -> bool:
    left, right = np.asarray(one), np.asarray(other)
    return left.dtype == right.dtype and left.shape == right.shape and left.tobytes() == right.tobytes()
