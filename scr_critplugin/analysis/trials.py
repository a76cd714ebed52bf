"""Runs from altered states, each compared bit for bit with the run from the true one.

The undisturbed run is made twice: a program that does not repeat itself cannot be checked by repetition. A
failure of an altered run (an exception, an end of the program, a step that does not end) is a difference.

May import `bits`, `program` and the errors. Tests: ``tests/test_poison.py``.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from scr_critplugin.analysis.bits import digest_of
from scr_critplugin.analysis.program import Program, State
from scr_critplugin.errors import ProfileError

SLOWER = 20.0
SLACK_SECONDS = 10.0
"""An altered step is stopped after `SLOWER` times the undisturbed one's processor time plus this."""

Leaf: TypeAlias = tuple[str, str, bytes]
"""Where an output stands, its type with shape, and a digest of its bits."""


class Communicator(Protocol):
    """What is used of an mpi4py communicator."""

    rank: int
    size: int

    def allgather(self, sendobj: Any) -> list[Any]:
        """Objects of all ranks, in their order."""


class Trials:
    """The undisturbed run of `steps` steps, and altered ones beside it.

    Parameters
    ----------
    program : Program
    start : dict
        The state at the checkpoint.
    steps : int
        Steps to run; the output counts after each.
    comm : mpi4py communicator, optional
        Of the ranks that run the program together, each with its own state. All make the same runs at the
        same time, and a difference on one rank is one on all.

    Attributes
    ----------
    runs : int
        Runs made so far, the undisturbed ones included.

    Raises
    ------
    ProfileError
        Two undisturbed runs differ. Exceptions of the undisturbed program itself pass through.
    """

    def __init__(self, program: Program, start: State, steps: int, comm: Communicator | None = None) -> None:
        self.program = program
        self.start = start
        self.steps = steps
        self.comm = comm
        self.runs = 1
        self.expected: list[list[Leaf]] = []
        longest, state = 0.0, start
        for _ in range(steps):
            clock = time.process_time()
            state = program.advance(state)
            self.expected.append(_outputs(program, state))
            longest = max(longest, time.process_time() - clock)
        self._limit = SLOWER * longest + SLACK_SECONDS
        # Large, perhaps.
        del state
        self.refuse_if_not_repeatable("between two runs from the same state")

    def difference(self, state: State) -> str | None:
        """The first difference of the run from `state` to the undisturbed one, in words; None if none."""
        self.runs += 1
        self.program.tell("runs that check the map", self.runs, None)
        for number, wanted in enumerate(self.expected, start=1):
            state, words = self._altered_step(state, number, wanted)
            heard = [(rank, other) for rank, other in enumerate(self._of_all_ranks(words)) if other]
            if heard:
                rank, words = heard[0]
                return words if self.comm is None else f"on rank {rank}, {words}"
        return None

    def refuse_if_not_repeatable(self, when: str) -> None:
        """Raise ProfileError if the undisturbed run differs from its first time; `when` says since when."""
        self.runs += 1
        self.program.tell("runs that check the map", self.runs, None)
        state = self.start
        for number, wanted in enumerate(self.expected, start=1):
            state = self.program.advance(state)
            found = _outputs(self.program, state)
            differing = None if found == wanted else _first_other(wanted, found)
            for rank, path in enumerate(self._of_all_ranks(differing)):
                if path is not None:
                    raise self._not_repeatable(path, number, when, rank)

    def _altered_step(self, state: State, number: int, wanted: list[Leaf]) -> tuple[State, str | None]:
        """The state after the step, and what differs, in words."""
        where = f"step {number}"
        try:
            with _user_errors_only(), _processor_time(self._limit):
                state = self.program.advance(state)
                where = f"the output after step {number}"
                found = _outputs(self.program, state)
        except _TookTooLongError:
            return state, f"{where} had not ended after {self._limit:.0f} s of processor time"
        except (Exception, SystemExit) as error:
            return state, f"{where} raises {type(error).__name__}: {error}".splitlines()[0]
        if found == wanted:
            return state, None
        return state, f"{_first_other(wanted, found)} differs after step {number}"

    def _of_all_ranks(self, mine: str | None) -> list[str | None]:
        # After each step: no rank may go on alone and wait for the others.
        return [mine] if self.comm is None else self.comm.allgather(mine)

    def _not_repeatable(self, path: str, number: int, when: str, rank: int) -> ProfileError:
        # On several ranks no two runs can be made side by side.
        variable = self._varying_variable(number) if self.comm is None else None
        of_state = f", and with it the state variable {variable!r}," if variable else ""
        return ProfileError(
            f"the run cannot be repeated: {path} after step {number}{of_state} differs {when}. The program "
            "draws random numbers from outside the state, keeps something else outside it, or depends on "
            "time, so that no run can tell what an element does. Put the generator's seed or state, or what "
            "is kept, into the state",
            key=variable or path,
            rank=None if self.comm is None else rank,
        )

    def _varying_variable(self, steps: int) -> str | None:
        """The first variable that differs between two runs side by side."""
        one = other = self.start
        for _ in range(steps):
            one, other = self.program.advance(one), self.program.advance(other)
            for name, value in one.items():
                if digest_of(value) != digest_of(other[name]):
                    return name
        return None


def require_masks_of(start: State, masks: Mapping[str, NDArray[np.bool_]]) -> None:
    """Raise ProfileError unless `masks` are boolean and have the names and shapes of state variables."""
    for name, mask in masks.items():
        if name not in start:
            raise ProfileError(f"there is no such state variable; the state has {list(start)}", key=name)
        found, expected = np.shape(mask), np.shape(start[name])
        if np.asarray(mask).dtype != np.bool_ or found != expected:
            raise ProfileError(
                f"found a mask of {np.asarray(mask).dtype} and shape {found}, expected bool and {expected}",
                key=name,
            )


def _outputs(program: Program, state: State) -> list[Leaf]:
    return [(path, *digest_of(leaf)) for path, leaf in program.named_outputs(state)]


def _first_other(wanted: list[Leaf], found: list[Leaf]) -> str:
    for one, other in zip(wanted, found, strict=False):
        if one != other:
            return one[0]
    return "the number of outputs"


@contextmanager
def _user_errors_only() -> Iterator[None]:
    """Floating-point warnings are off, since odd values are meant; what is an error stays one."""
    shown = {kind for kind, mode in np.geterr().items() if mode in ("warn", "print", "log")}
    with np.errstate(**dict.fromkeys(shown, "ignore")):  # type: ignore[arg-type]
        yield


# ---- steps that do not end ----


class _TookTooLongError(BaseException):
    """Not an Exception: programs catch those."""


@contextmanager
def _processor_time(seconds: float) -> Iterator[None]:
    """Raise _TookTooLongError after that much processor time, where the timer for it is free.

    Processor time, for a busy machine must not make a difference; its timer is also rarely used by others.
    Only the main thread can be interrupted: elsewhere nothing is guarded.
    """
    if not _timer_is_free():
        yield
        return

    def interrupt(*_: Any) -> None:
        raise _TookTooLongError

    before = signal.signal(signal.SIGVTALRM, interrupt)
    try:
        try:
            # Again and again: a program may swallow the first.
            signal.setitimer(signal.ITIMER_VIRTUAL, seconds, min(seconds, 1.0))
            yield
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        signal.signal(signal.SIGVTALRM, before)


def _timer_is_free() -> bool:
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        return False
    handled = signal.getsignal(signal.SIGVTALRM)
    return handled is signal.SIG_DFL and signal.getitimer(signal.ITIMER_VIRTUAL)[0] == 0.0
