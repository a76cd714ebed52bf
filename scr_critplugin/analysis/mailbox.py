"""Letters between the ranks of a profile: messages of the program, masks, and news of failure.

All communication of a program under analysis goes through here and not through the program's communicators,
so that no wait lasts for ever: whoever waits also reads what else arrives, and a rank that failed says so.
The matching of messages to receives is MPI's: by communicator, source and tag, in the order of sending and of
posting, wildcards included.

May import the errors only; mpi4py is what the communicator it is given belongs to. Tests:
``tests/test_mpi_profile.py``.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict, deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

from scr_critplugin.errors import ProfileError

_SHORTEST_PAUSE, _LONGEST_PAUSE = 1e-5, 1e-3
"""Seconds between two looks into the mailbox."""

ANY = None
"""Stands for any source or any tag."""

Context = Hashable
"""Names the communicator of a message: only receives of the same context match it."""


class PeerFailedError(ProfileError):
    """The program, or its analysis, failed on another rank; `block` says in which part of the work."""

    def __init__(self, message: str, *, rank: int, block: int) -> None:
        super().__init__(f"failed on this rank: {message}", rank=rank)
        self.block = block


@dataclass(frozen=True)
class Message:
    """A message of the program. `origin`: the sender in the analysis; `source`: in its own context."""

    block: int
    context: Context
    origin: int
    source: int
    tag: int
    number: Hashable
    """Identifies the message among all of a profile."""
    content: Any


@dataclass(frozen=True)
class Pulled:
    """What comes back for a message or a reduction in a sweep: masks, or cotangents."""

    number: Hashable
    origin: int
    content: Any


@dataclass(frozen=True)
class Failure:
    """News that rank `origin` failed in `block`."""

    block: int
    origin: int
    reason: str


class Posted:
    """A receive that waits for its message."""

    def __init__(self, block: int, context: Context, source: int | None, tag: int | None) -> None:
        self.block = block
        self.context = context
        self.source = source
        self.tag = tag
        self.message: Message | None = None

    def takes(self, message: Message) -> bool:
        """True if `message` is one for this receive."""
        return (
            self.message is None
            and (self.block, self.context) == (message.block, message.context)
            and self.source in (ANY, message.source)
            and self.tag in (ANY, message.tag)
        )

    def __str__(self) -> str:
        source = "any rank" if self.source is ANY else f"rank {self.source}"
        return f"from {source}, {'any tag' if self.tag is ANY else f'tag {self.tag}'}"


class Mailbox:
    """The letters of one rank.

    Parameters
    ----------
    comm : mpi4py communicator or None
        A duplicate for the letters alone. None: a single rank, which writes only to itself.
    """

    def __init__(self, comm: Any = None) -> None:
        self._comm = comm
        self.rank: int = 0 if comm is None else comm.rank
        self.size: int = 1 if comm is None else comm.size
        self.messages: list[Message] = []
        """Messages that have arrived and were not asked for yet."""
        self.posted: list[Posted] = []
        self.failures: dict[int, Failure] = {}
        """First news of failure by block."""
        self.blocks: list[int] = []
        """The blocks that are being worked at, the innermost last."""
        self.serial = 0
        """Number of the last message of this rank."""
        self._newest = -1
        self._pulled: dict[tuple[Hashable, int], deque[Any]] = defaultdict(deque)
        self._sending: list[Any] = []

    def write(self, destination: int, letter: Message | Pulled | Failure) -> None:
        """Send a letter. Never waits."""
        if destination == self.rank:
            self._sort(letter)
            return
        self._sending = [request for request in self._sending if not request.Test()]
        self._sending.append(self._comm.isend(letter, destination))

    def post(self, posted: Posted) -> None:
        """Post a receive; what has arrived is matched first."""
        for place, message in enumerate(self.messages):
            if posted.takes(message):
                posted.message = self.messages.pop(place)
                return
        self.posted.append(posted)

    def repost(self, posted: Posted, source: int | None, tag: int | None) -> None:
        """Let a receive that is still without a message take others."""
        self.posted.remove(posted)
        posted.source, posted.tag = source, tag
        self.post(posted)

    def take_pulled(self, number: Hashable, origin: int) -> Any:
        """Wait for what rank `origin` sends back for the message or reduction `number`."""
        waiting = self._pulled[number, origin]
        self.wait(lambda: bool(waiting))
        content = waiting.popleft()
        if not waiting:
            del self._pulled[number, origin]
        return content

    def wait(self, ready: Callable[[], bool], *, ending: int | None = None) -> None:
        """Read letters until `ready()`.

        Raises
        ------
        PeerFailedError
            Another rank failed in a block that is being worked at, the one that is `ending` excepted.
        """
        pause = 0.0
        while True:
            self.collect()
            for block in self.blocks:
                if block in self.failures and block != ending:
                    failure = self.failures[block]
                    raise PeerFailedError(failure.reason, rank=failure.origin, block=block)
            if ready():
                return
            # Ranks may be more than cores: leave the core to whoever has the message.
            time.sleep(pause)
            pause = min(pause + _SHORTEST_PAUSE, _LONGEST_PAUSE)

    def collect(self) -> None:
        """Read the letters that are there."""
        while self._comm is not None and self._comm.iprobe():
            self._sort(self._comm.recv())

    def open_block(self) -> int:
        """Begin a block inside those that are open; its number, the same on all ranks."""
        self._newest += 1
        self.blocks.append(self._newest)
        return self._newest

    def close_block(self, block: int) -> None:
        """Forget what belongs to a block that is over on all ranks."""
        self.blocks.remove(block)
        self.messages = [message for message in self.messages if message.block > block]
        self.posted = [posted for posted in self.posted if posted.block > block]
        self.failures.pop(block, None)

    def finish(self, seconds: float = math.inf) -> None:
        """Wait until all letters are delivered, or for so many seconds."""
        end = time.monotonic() + seconds
        while not all(request.Test() for request in self._sending) and time.monotonic() < end:
            self.collect()
            time.sleep(_SHORTEST_PAUSE)

    def _sort(self, letter: Message | Pulled | Failure) -> None:
        if isinstance(letter, Pulled):
            self._pulled[letter.number, letter.origin].append(letter.content)
        elif letter.block <= self._newest and letter.block not in self.blocks:
            # Late mail of a block that failed and is over.
            return
        elif isinstance(letter, Failure):
            self.failures.setdefault(letter.block, letter)
        else:
            self._deliver(letter)

    def _deliver(self, message: Message) -> None:
        for posted in self.posted:
            if posted.takes(message):
                posted.message = message
                self.posted.remove(posted)
                return
        self.messages.append(message)
