"""The program under analysis: its state, and its step and output run plainly or on a tape.

The caller's arrays are never written to: plain and traced runs get copies.

May import `boxes`, `masks`, `tape` and the errors. Tests: ``tests/test_dependence.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from autograd.tracer import getval, isbox

from scr_critplugin.analysis.boxes import TracedArray, recording
from scr_critplugin.analysis.tape import DependenceNode, Tape
from scr_critplugin.errors import ProfileError

State: TypeAlias = dict[str, Any]
Step: TypeAlias = Callable[[State], Mapping[str, Any] | None]
Output: TypeAlias = Callable[[State], Any]

_SCALARS = (np.generic, int, float, complex, bool, str, bytes)


@dataclass(frozen=True)
class TracedStep:
    """A recorded step: the `values` of the next state, and the nodes of those that were traced.

    `written`: the variables whose memory the step wrote to in place.
    """

    tape: Tape
    values: State
    nodes: dict[str, DependenceNode]
    written: frozenset[str]


@dataclass(frozen=True)
class TracedOutput:
    """A recorded output: `values` of its leaves in order, and the nodes of those that were traced."""

    tape: Tape
    values: list[Any]
    nodes: list[DependenceNode]


class Program:
    """`step` and `output` of a program, as `profile` takes them."""

    def __init__(self, step: Step, output: Output) -> None:
        self.step = step
        self.output = output

    def advance(self, state: State) -> State:
        """The state after one plain step."""
        given = {name: np.copy(v) if isinstance(v, np.ndarray) else v for name, v in state.items()}
        return _next_state(self.step(given), given, state)

    def outputs(self, state: State) -> list[Any]:
        """Leaves of the plain output at `state`."""
        given = {name: np.copy(v) if isinstance(v, np.ndarray) else v for name, v in state.items()}
        return [leaf for _, leaf in leaves(self.output(given))]

    def trace_step(self, state: State, number: int | None = None, *, values: bool = False) -> TracedStep:
        """Record one step from `state`: step `number` after the checkpoint, the first being 1.

        `values`: with what adjoints need.
        """
        with recording(self.step, values=values) as (tape, box):
            given = _boxed(state, box)
            first = dict(given)
            result = _next_state(self.step(given), given, state)
            written = frozenset(name for name, value in first.items() if _is_written(value))
            nodes = {name: value._node for name, value in result.items() if _is_traced(value)}
        return TracedStep(tape, {name: getval(value) for name, value in result.items()}, nodes, written)

    def trace_output(self, state: State, number: int | None = None, *, values: bool = False) -> TracedOutput:
        """Record the output at `state`, to which step `number` led. `values`: with what adjoints need."""
        with recording(self.output, values=values) as (tape, box):
            found = [leaf for _, leaf in leaves(self.output(_boxed(state, box)))]
            nodes = [leaf._node for leaf in found if _is_traced(leaf)]
        return TracedOutput(tape, [getval(leaf) for leaf in found], nodes)


def checked_state(state: Any) -> State:
    """`state` as a dict, if it is a mapping of names to arrays and scalars; else ProfileError."""
    if not isinstance(state, Mapping):
        raise ProfileError(
            f"the state must be a mapping of names to arrays and scalars, not {type(state).__name__}"
        )
    for name, value in state.items():
        if not isinstance(name, str):
            raise ProfileError(f"the state's keys must be strings, found {name!r}", key=repr(name))
        plain_array = isinstance(value, np.ndarray) and value.dtype.kind != "O"
        if not plain_array and not isinstance(value, _SCALARS):
            raise ProfileError(
                f"expected an array or scalar, found {_described(value)}. Put the arrays and numbers it "
                "consists of into the state under names of their own",
                key=name,
            )
    return dict(state)


def is_traceable(value: Any) -> bool:
    """True if dependence on the elements of `value` can be followed.

    Python integers and booleans are left bare, since loops, dictionary keys and text need them so.
    """
    if type(value) is np.ndarray:
        return value.dtype.kind in "fciub"
    return isinstance(value, (float, complex, np.inexact)) and not isinstance(value, np.ndarray)


def leaves(nest: Any, path: str = "output") -> Iterator[tuple[str, Any]]:
    """Arrays and scalars of a nest of dicts, lists, tuples and object arrays, each with where it stands."""
    if isinstance(nest, Mapping):
        for key, member in nest.items():
            yield from leaves(member, f"{path}[{key!r}]")
    elif isinstance(nest, (list, tuple)):
        for i, member in enumerate(nest):
            yield from leaves(member, f"{path}[{i}]")
    elif isinstance(nest, np.ndarray) and nest.dtype.kind == "O":
        yield from leaves(nest.reshape(-1).tolist(), path)
    elif nest is None or isbox(nest) or isinstance(nest, (np.ndarray, *_SCALARS)):
        yield path, nest
    else:
        # Something unknown may hold traced values out of sight: their dependence would be lost.
        raise ProfileError(
            f"{path} is {_described(nest)}; the output must consist of arrays and scalars in dicts, lists "
            "and tuples"
        )


def _boxed(state: State, box: Callable[[str, Any], Any]) -> State:
    return {
        name: box(name, np.copy(value) if isinstance(value, np.ndarray) else value)
        if is_traceable(value)
        else value
        for name, value in state.items()
    }


def _is_traced(value: Any) -> bool:
    return isbox(value) and isinstance(value._node, DependenceNode) and not value._node.constant


def _is_written(value: Any) -> bool:
    return isinstance(value, TracedArray) and value._memory is not None and value._memory.version > 0


def _next_state(result: Any, given: State, before: State) -> State:
    """The state that a step returned (or left in the dict it was given), checked against the one before."""
    after = given if result is None else result
    if not isinstance(after, Mapping):
        raise ProfileError(f"step returned {_described(after)}; expected the next state as a dict")
    if after.keys() != before.keys():
        missing, extra = before.keys() - after.keys(), after.keys() - before.keys()
        raise ProfileError(
            f"the state that step returned lacks {sorted(missing)} and has in addition "
            f"{sorted(extra, key=repr)}; expected the names of the state it was given"
        )
    checked_state({name: np.zeros(()) if isinstance(v, TracedArray) else v for name, v in after.items()})
    for name, value in after.items():
        if np.shape(getval(value)) != np.shape(before[name]):
            raise ProfileError(
                f"step changed the shape from {np.shape(before[name])} to {np.shape(getval(value))}; a map "
                "describes arrays of fixed shape",
                key=name,
            )
    return dict(after)


def _described(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of dtype {value.dtype}"
    return f"a {type(value).__module__}.{type(value).__qualname__}"
