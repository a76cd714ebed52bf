"""The ranks that take part in a profile, and what they decide together.

Analysis is written for one rank. Where it decides how to go on, it asks `current()`: the answer is the same
on all ranks, so that all make the same sweeps and runs and reach the same fixed point. An exception on one
rank is raised on all of them, and nobody waits for a rank that failed.

May import `communication`, `mailbox` and the errors; mpi4py only through the communicator it is given. Tests:
``tests/test_mpi_profile.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from scr_critplugin import mpi
from scr_critplugin.analysis.communication import Arrival, Communication
from scr_critplugin.analysis.mailbox import Failure, Mailbox, PeerFailedError, Pulled
from scr_critplugin.analysis.methods import method
from scr_critplugin.analysis.tape import Tape
from scr_critplugin.errors import ProfileError

_LONGEST_REASON = 2000
_abandoned: list[Any] = []
"""What MPI may still read or write after a failure, so that its memory is not given away."""
_OVER = -1
"""Block of an error that all ranks have seen."""
_FAREWELL = 5.0
"""Seconds that a rank which failed waits for the others to take the news."""


class Alone:
    """The only rank of a serial profile. Decisions are its own."""

    rank = 0
    size = 1

    def __init__(self) -> None:
        self.mailbox = Mailbox()
        self.arrivals: dict[Any, Arrival] = {}

    def any(self, flag: Any) -> bool:
        """True if `flag` holds on some rank."""
        return bool(flag)

    def all(self, flag: Any) -> bool:
        """True if `flag` holds on every rank."""
        return bool(flag)

    def refuse_differences(self, what: str, value: Any) -> None:
        """Raise ProfileError unless `value`, described by `what`, is the same on all ranks."""

    def allgather(self, sendobj: Any) -> list[Any]:
        """The object of every rank, in their order."""
        return [sendobj]

    def members(self, comm: Any) -> tuple[int, ...]:
        """Ranks, in this profile, of the members of a communicator of the program."""
        if comm.size > 1:
            raise ProfileError(
                f"the program communicates over {comm.size} ranks, and is profiled as a serial one. "
                f"Profile it on "
                "all of them at once: profile(..., comm=MPI.COMM_WORLD)"
            )
        return (0,)

    @contextmanager
    def together(self, what: str, tape: Tape | None = None) -> Iterator[None]:
        """Run the piece `what` of the program ("step"); `tape` records its communication."""
        block = self.mailbox.open_block()
        communication = Communication(self, what, block, tape)
        try:
            with mpi.under_analysis(partial(method, communication)):
                yield
            communication.refuse_unreceived(communication.sent - communication.received)
        finally:
            self.mailbox.close_block(block)

    @contextmanager
    def to_the_end(self) -> Iterator[None]:
        """The whole of a profile."""
        yield


class Ranks(Alone):
    """The ranks of `comm`, an mpi4py communicator all of whose members profile at once."""

    def __init__(self, comm: Any) -> None:
        super().__init__()
        self._comm = comm.Dup()
        self._group = self._comm.Get_group()
        self.rank = self._comm.rank
        self.size = self._comm.size
        self.mailbox = Mailbox(self._comm)
        self._gathered = 0

    def any(self, flag: Any) -> bool:
        """True if `flag` holds on some rank."""
        return bool(self._sums([bool(flag)])[0])

    def all(self, flag: Any) -> bool:
        """True if `flag` holds on every rank."""
        return not self.any(not flag)

    def refuse_differences(self, what: str, value: Any) -> None:
        """Raise ProfileError unless `value`, described by `what`, is the same on all ranks."""
        values = self._comm.allgather(repr(value))
        for rank, other in enumerate(values):
            if other != values[0]:
                raise ProfileError(f"{what} is {other} here and {values[0]} on rank 0", rank=rank)

    def allgather(self, sendobj: Any) -> list[Any]:
        """The object of every rank, in their order."""
        self._gathered += 1
        number = ("gathered", self._gathered)
        for other in range(self.size):
            self.mailbox.write(other, Pulled(number, self.rank, sendobj))
        return [self.mailbox.take_pulled(number, other) for other in range(self.size)]

    def members(self, comm: Any) -> tuple[int, ...]:
        """Ranks, in this profile, of the members of a communicator of the program.

        Raises
        ------
        ProfileError
            It has members outside of this profile, or is an intercommunicator.
        """
        if comm.Is_inter():
            raise ProfileError("communication over an intercommunicator cannot be followed")
        group = comm.Get_group()
        found = type(group).Translate_ranks(group, list(range(group.size)), self._group)
        group.Free()
        if any(rank < 0 for rank in found):
            raise ProfileError(
                f"the program communicates over {len(found)} ranks, some of which do not take part in "
                f"the profile. "
                "Give profile a communicator that has them all: comm=MPI.COMM_WORLD"
            )
        return tuple(found)

    @contextmanager
    def together(self, what: str, tape: Tape | None = None) -> Iterator[None]:
        """Run the piece `what` of the program on all ranks at once; `tape` records its communication.

        Raises
        ------
        ProfileError
            It raised on another rank, which `rank` names; or a message that was sent in it was not received.
        """
        block = self.mailbox.open_block()
        communication = Communication(self, what, block, tape)
        own: BaseException | None = None
        try:
            with mpi.under_analysis(partial(method, communication)):
                yield
        except PeerFailedError as error:
            if error.block != block:
                raise
        except BaseException as error:
            own = error
            self._announce(block, error)
        self._leave(block, communication, own)

    @contextmanager
    def to_the_end(self) -> Iterator[None]:
        """The whole of a profile. Whoever fails tells the others, and none waits for any other then."""
        block = self.mailbox.open_block()
        _abandoned.append(self.mailbox)
        try:
            yield
            self._sums([])
        except PeerFailedError as error:
            # The rank that failed tells all others itself.
            raise ProfileError(error.message, rank=error.rank) from None
        except BaseException as error:
            self._announce(block, error)
            self.mailbox.finish(seconds=_FAREWELL)
            raise
        self.mailbox.close_block(block)
        self.mailbox.finish()
        _abandoned.remove(self.mailbox)
        self._group.Free()
        self._comm.Free()

    def _announce(self, block: int, error: BaseException) -> None:
        reason = f"{type(error).__name__}: {error}"[:_LONGEST_REASON]
        for other in range(self.size):
            self.mailbox.write(other, Failure(block, self.rank, reason))

    def _leave(self, block: int, communication: Communication, own: BaseException | None) -> None:
        unreceived = communication.sent - communication.received
        try:
            failed, missing = self._sums([own is not None, unreceived], ending=block)
            if failed:
                self.mailbox.wait(lambda: block in self.mailbox.failures, ending=block)
        except PeerFailedError:
            # Another rank was faster: it has failed in this block, and by that in the one around it.
            if own is not None:
                raise own from None
            raise
        failure = self.mailbox.failures.get(block)
        self.mailbox.close_block(block)
        if own is not None:
            raise own
        if failure is not None:
            raise PeerFailedError(failure.reason, rank=failure.origin, block=_OVER)
        communication.refuse_unreceived(missing)

    def _sums(self, numbers: list[Any], *, ending: int | None = None) -> list[int]:
        """Sum of each of the numbers over all ranks."""
        own, sums = np.array(numbers, dtype=np.int64), np.zeros(len(numbers), dtype=np.int64)
        request = self._comm.Iallreduce(own, sums)
        try:
            self.mailbox.wait(request.Test, ending=ending)
        except PeerFailedError:
            _abandoned.append((request, own, sums))
            raise
        return [int(each) for each in sums]


_current: Alone = Alone()


def current() -> Alone:
    """The ranks of the profile that is being made."""
    return _current


@contextmanager
def taking_part(comm: Any) -> Iterator[Alone]:
    """Profile with all members of `comm`, or alone if it is None, while the block runs."""
    global _current
    before = _current
    _current = ranks = Alone() if comm is None else Ranks(comm)
    try:
        with ranks.to_the_end():
            yield ranks
    finally:
        _current = before
