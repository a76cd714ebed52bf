"""State that a program keeps outside its state, found as a restart would find it: in another process.

A value kept in a global, a closure, a cache or an attribute from the first call on is not seen in traced
runs, which find it there as an ordinary array. But what a step computes from a state must not hang on what
the process did before. So a copy of the process, made before the first call, first runs from other states:
from the one after the first step, where counters have moved on, with every floating-point element changed,
and with integers changed too. Then it must compute the same as this process, bit for bit.

May import NumPy, `blocks`, `process_copy`, `program` and the errors. Tests: ``tests/test_recurrence.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from scr_critplugin.analysis.blocks import blocks, largest_finite
from scr_critplugin.analysis.process_copy import Answer, ProcessCopy
from scr_critplugin.analysis.program import AfterOthers, Program, Results, State, is_traceable
from scr_critplugin.errors import ProfileError

LIMIT = 60.0
"""Seconds that the copy may take, at least."""

SHORT_LIMIT = 5.0
"""The same, with integers that the program need not get along with."""

PATIENCE = 20.0
"""How many times as long as one step it may take."""

CHANGE = 2.0**-7
"""Relative size of the changes: results differ in many bits, and programs still get along with them."""

_SUBJECT = "whether the program keeps something outside its state"


def refuse_hidden_state(
    program: Program,
    start: State,
    after: State,
    expected: Results,
    *,
    with_output: bool,
    is_last: bool,
    seconds: float,
) -> tuple[str, ...]:
    """Raise if the program keeps something outside its state; in words, what could not be checked.

    To be called after the first plain step, before any traced one.

    Parameters
    ----------
    start, after : dict
        The states before and after the step.
    expected : list
        Digests of `after`, and of the output after it if `with_output`.
    is_last : bool
        Whether the run is over after this step.
    seconds : float
        Time that step and output took.
    """
    if program.uncalled is None:
        return (f"{_SUBJECT} was not checked: this process cannot be copied",)
    # A run may be over after the first step: then from the start again.
    others = [after, start]
    if any(_is_integer_array(value) for value in start.values()):
        # Integers may be anything, so that a program may rightly fail, hang or crash with others.
        question = (_after_shuffled, others, start, with_output)
        limit = max(SHORT_LIMIT, PATIENCE * seconds)
        _refuse_difference(expected, program.uncalled.answer(question, limit, apart=True))
    limit = max(LIMIT, PATIENCE * seconds)
    answer = program.uncalled.answer((_after_moved, others, start, with_output), limit)
    _refuse_difference(expected, answer)
    failures = answer.result.failures if answer.kind == "done" else (answer.words,)
    if failures:
        _refuse_failure(program, start if is_last else after, limit)
    conclusive = answer.kind == "done" and len(failures) < len(others)
    return () if conclusive else (f"{_SUBJECT} could not be checked: {failures[0]}",)


def _refuse_failure(program: Program, state: State, limit: float) -> None:
    """Raise if the program fails from `state` in a copy in which it was not called, and only there."""
    question = (Program.after_others, (), state, False)
    answer = program.uncalled.answer(question, limit) if program.uncalled else Answer("lost")
    if answer.kind != "raised":
        return
    # Some libraries do not work in any copy.
    with ProcessCopy(program.answer) as called:
        if called.answer(question, limit).kind == "done":
            raise _hidden(f"where it was not called, it fails ({answer.words})", None)


def _refuse_difference(here: Results, answer: Answer) -> None:
    if answer.kind != "done":
        return
    there: Results = answer.result.results
    for one, other in zip(here, there, strict=False):
        if one != other:
            raise _hidden(f"{one[0]!r} differs", one[0])
    if len(here) != len(there):
        raise _hidden("the output has another length", None)


def _hidden(what: str, key: str | None) -> ProfileError:
    return ProfileError(
        "a step from the same state depends on what the program was called with before: "
        f"{what}. Something is kept outside the state (in a global, a closure, a cache or an attribute), or "
        "the program draws random numbers from outside the state. Put it into the state",
        key=key,
    )


# ---- the work in the copy: other states ----
# They are made there one by one, and `others` is emptied, so that few large arrays are there at a time.


def _after_moved(program: Program, others: list[State], start: State, with_output: bool) -> AfterOthers:
    return program.after_others(_all_moved(others), start, with_output)


def _after_shuffled(program: Program, others: list[State], start: State, with_output: bool) -> AfterOthers:
    return program.after_others(map(_shuffled, _all_moved(others)), start, with_output)


def _all_moved(states: list[State]) -> Iterator[State]:
    generator = np.random.default_rng(0)
    while states:
        yield _moved(states.pop(0), generator)


def _moved(state: State, generator: np.random.Generator) -> State:
    """`state` with every floating-point and complex element changed a little."""
    return {name: _moved_value(value, generator) for name, value in state.items()}


def _moved_value(value: Any, generator: np.random.Generator) -> Any:
    if not is_traceable(value) or np.asarray(value).dtype.kind not in "fc":
        return value
    moved = np.array(value)
    with np.errstate(all="ignore"):
        size = largest_finite(moved) or 1.0
        for part in blocks(moved):
            change = CHANGE * generator.uniform(0.5, 1.0, part.shape)
            part += np.where(part == 0.0, size, part) * change
    return moved if isinstance(value, np.ndarray) else type(value)(moved[()])


def _shuffled(state: State) -> State:
    """`state` with other integers in its arrays, of the same set where that is possible."""
    return {name: _other_integers(v) if _is_integer_array(v) else v for name, v in state.items()}


def _other_integers(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    other = values.copy(order="K")
    other[...] = np.roll(values, 1)
    if np.array_equal(other, values):
        other[...] = ~values if values.dtype.kind == "b" else values + 1
    return other


def _is_integer_array(value: Any) -> bool:
    return is_traceable(value) and np.asarray(value).dtype.kind in "iub"
