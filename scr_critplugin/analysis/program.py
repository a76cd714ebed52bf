"""The program under analysis: its state, and its step and output run plainly or on a tape.

The caller's arrays are never written to: plain and traced runs get copies.

May import `bits`, `boxes`, `masks`, `outside`, `process_copy`, `recording`, `tape` and the errors. Tests:
``tests/test_dependence.py``, ``tests/test_outside.py``, ``tests/test_recurrence.py``.
"""

from __future__ import annotations

import random
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeAlias

import autograd
import numpy as np
from autograd.tracer import getval, isbox

from scr_critplugin import analysis
from scr_critplugin.analysis import outside
from scr_critplugin.analysis.bits import digest_of
from scr_critplugin.analysis.boxes import TracedArray
from scr_critplugin.analysis.process_copy import ProcessCopy
from scr_critplugin.analysis.ranks import current
from scr_critplugin.analysis.recording import recording
from scr_critplugin.analysis.tape import DependenceNode, Tape
from scr_critplugin.errors import ProfileError

State: TypeAlias = dict[str, Any]
Step: TypeAlias = Callable[[State], Mapping[str, Any] | None]
Output: TypeAlias = Callable[[State], Any]
Progress: TypeAlias = Callable[[str, int, "int | None"], None]

_MACHINERY = tuple(str(Path(str(module.__file__)).parent) for module in (analysis, np, autograd))
_SCALARS = (np.generic, int, float, complex, bool, str, bytes)


@dataclass(frozen=True)
class TracedStep:
    """A recorded step: the `values` of the next state, and the nodes of those that were traced.

    `written`: the variables whose memory the step wrote to in place. `let_go` drops the values, which a tape
    outlives.
    """

    tape: Tape
    values: State
    nodes: dict[str, DependenceNode]
    written: frozenset[str]

    def let_go(self) -> None:
        """Drop the values."""
        self.values.clear()


@dataclass(frozen=True)
class TracedOutput:
    """A recorded output: `values` of its leaves in order; nodes and values of those that were `traced`."""

    tape: Tape
    values: list[Any]
    nodes: list[DependenceNode]
    traced: list[Any]

    def let_go(self) -> None:
        """Drop the values."""
        self.values.clear()
        self.traced.clear()


Results: TypeAlias = "list[tuple[str, tuple[str, bytes]]]"
"""Name and digest of the variables of a state, and of the leaves of the output."""


@dataclass(frozen=True)
class AfterOthers:
    """Answer of `Program.after_others`: `results` from the state, and why other states failed, in words."""

    failures: tuple[str, ...]
    results: Results


class Program:
    """`step` and `output` of a program, as `profile` takes them.

    In a ``with`` statement, entered before the first call, `uncalled` is a copy of this process in which the
    program has not been called. It is None outside of the statement, where there are no forks, and in an MPI
    program of several processes, among which a copy has no place.

    Parameters
    ----------
    step, output : callable
        See `profile`.
    agree : callable
        Given a decision that depends on what was recorded, returns the one to follow. Programs of several
        processes whose tapes are swept together must decide the same: True only if all of them say so.
    tell : callable
        Told how far the work is: what is being done, how much of it is done, and of how much (None: unknown).
    """

    def __init__(
        self,
        step: Step,
        output: Output,
        agree: Callable[[bool], bool] = bool,
        tell: Progress | None = None,
    ) -> None:
        self.step = step
        self.output = output
        self.agree = agree
        self.tell = tell or _tell_nobody
        self.uncalled: ProcessCopy | None = None

    def __enter__(self) -> Self:
        if ProcessCopy.possible() and not _is_one_of_several():
            self.uncalled = ProcessCopy(self.answer)
        return self

    def __exit__(self, *_: object) -> None:
        if self.uncalled is not None:
            self.uncalled.close()
            self.uncalled = None

    def advance(self, state: State) -> State:
        """The state after one plain step."""
        given = _copied(state)
        with current().together("step"):
            return _next_state(self.step(given), given, state)

    def outputs(self, state: State) -> list[Any]:
        """Leaves of the plain output at `state`."""
        return [leaf for _, leaf in self.named_outputs(state)]

    def named_outputs(self, state: State) -> list[tuple[str, Any]]:
        """Leaves of the plain output at `state`, each with where it stands."""
        with current().together("output"):
            return list(leaves(self.output(_copied(state))))

    def answer(self, question: tuple[Any, ...]) -> Any:
        """The work of `uncalled`. The question: a function of the program and more, and its arguments."""
        function, *arguments = question
        return function(self, *arguments)

    def after_others(self, others: Iterable[State], state: State, with_output: bool) -> AfterOthers:
        """What a step from `state` gives after one from another state, and the output if it counts.

        The other state is the first of `others` that the program can run from.
        """
        failures: list[str] = []
        others = iter(others)
        # Not a loop: its variable would keep a large state.
        while self._fails_from(next(others, None), with_output, failures):
            pass
        return AfterOthers(tuple(failures), self._run_from(state, with_output))

    def _fails_from(self, state: State | None, with_output: bool, failures: list[str]) -> bool:
        """Whether the program fails from `state`: then `failures` get the reason. From None it does not."""
        try:
            if state is not None:
                self._run_from(state, with_output)
        except Exception as error:
            failures.append(f"{type(error).__name__}: {error}")
            return True
        return False

    def _run_from(self, state: State, with_output: bool) -> Results:
        after = self.advance(state)
        return results_of(after, self.outputs(after) if with_output else ())

    def trace_step(self, state: State, number: int | None = None, *, values: bool = False) -> TracedStep:
        """Record one step from `state`: step `number` after the checkpoint, the first being 1.

        `values`: with what adjoints need.
        """
        with own_errors_pass(lambda: self.advance(state)):
            return outside.recorded(self, state, partial(self._trace_step, values=values))

    def trace_output(self, state: State, number: int | None = None, *, values: bool = False) -> TracedOutput:
        """Record the output at `state`, to which step `number` led. `values`: with what adjoints need."""
        with own_errors_pass(lambda: self.outputs(state)):
            return outside.recorded(self, state, partial(self._trace_output, values=values))

    def _trace_step(self, state: State, arrays: bool, *, values: bool) -> TracedStep:
        users = recording(self.step, arrays=arrays, values=values)
        with users as (tape, box), current().together("step", tape):
            given = _boxed(state, box)
            first = dict(given)
            result = _next_state(self.step(given), given, state)
            written = frozenset(name for name, value in first.items() if _is_written(value))
            nodes = {name: value._node for name, value in result.items() if _is_traced(value)}
        return TracedStep(tape, {name: getval(value) for name, value in result.items()}, nodes, written)

    def _trace_output(self, state: State, arrays: bool, *, values: bool) -> TracedOutput:
        users = recording(self.output, arrays=arrays, values=values)
        with users as (tape, box), current().together("output", tape):
            found = [leaf for _, leaf in leaves(self.output(_boxed(state, box)))]
            traced = [leaf for leaf in found if _is_traced(leaf)]
            nodes = [leaf._node for leaf in traced]
        return TracedOutput(tape, [getval(leaf) for leaf in found], nodes, [getval(leaf) for leaf in traced])


@contextmanager
def own_errors_pass(plain: Callable[[], Any]) -> Iterator[None]:
    """Turn an error of a recorded run into a ProfileError, unless the `plain` run raises too."""
    try:
        yield
    except ProfileError:
        raise
    except Exception as error:
        if current().size == 1:
            # Of several ranks the others have gone on.
            plain()
        frame = _innermost_of_program(error)
        raise ProfileError(
            f"what runs plainly fails when it is traced, at {frame.filename}:{frame.lineno}, with "
            f"{type(error).__name__}: {error}. The construct cannot be traced: write it with NumPy's "
            "functions and indexing, or let it work on np.array(x.tolist()) and assign the result"
        ) from error


def _innermost_of_program(error: Exception) -> traceback.FrameSummary:
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not any(part in frame.filename for part in _MACHINERY)]
    return (own or frames)[-1]


def _tell_nobody(what: str, done: int, total: int | None) -> None:
    """For who did not ask."""


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
                f"expected an array or scalar, found {_described(value)}. {_instead_of(value)}", key=name
            )
    # A mapped file is an array like any other.
    return {name: np.asarray(v) if isinstance(v, np.memmap) else v for name, v in state.items()}


_GENERATORS = (np.random.Generator, np.random.RandomState, np.random.BitGenerator, np.random.SeedSequence)


def _instead_of(value: Any) -> str:
    """What to put into the state instead of `value`."""
    if isinstance(value, (*_GENERATORS, random.Random)):
        return (
            "A checkpoint holds arrays: keep the numbers of the generator's own state (for NumPy "
            "`rng.bit_generator.state`) in arrays of np.uint64 or np.uint32, 128-bit numbers in two of them; "
            "let the step make a generator, set its state from them, and put its new state back"
        )
    if value is None:
        return "There is nothing of it to store: leave it out, or give the array that it will become"
    if isinstance(value, (list, tuple)):
        return "Make it an array (np.array), or put its members into the state under names of their own"
    return "Put the arrays and numbers it consists of into the state under names of their own"


def is_traceable(value: Any) -> bool:
    """True if dependence on the elements of `value` can be followed.

    Single integers and booleans, Python's and NumPy's and arrays without axes, are left bare, since loops,
    dictionary keys and text need them so.
    """
    if type(value) is np.ndarray:
        return value.dtype.kind in ("fciub" if value.ndim else "fc")
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


def results_of(state: State, leaves_of_output: Iterable[Any]) -> Results:
    """Digests to compare: equal only if every bit is."""
    found = [(name, digest_of(value)) for name, value in state.items()]
    return found + [(f"output {i}", digest_of(leaf)) for i, leaf in enumerate(leaves_of_output)]


def _is_one_of_several() -> bool:
    """True in a process of an MPI program with several of them."""
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi is None or not mpi.Is_initialized() or mpi.Is_finalized():
        return False
    return bool(mpi.COMM_WORLD.Get_size() > 1)


def _copied(state: State) -> State:
    return {name: v.copy(order="K") if isinstance(v, np.ndarray) else v for name, v in state.items()}


def _boxed(state: State, box: Callable[[str, Any], Any]) -> State:
    return {
        name: box(name, value) if is_traceable(value) else value for name, value in _copied(state).items()
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
