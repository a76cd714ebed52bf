"""What a program's communication does while it is profiled: plainly run, or recorded.

`Communication` serves one run of a piece of the program on all ranks; a `Link` in it stands for one of the
program's communicators. `objects` and `buffers` build mpi4py's methods on the four verbs of a `Link`: post a
message, expect one, number a collective call, and reduce.

Reductions are folded in the order of ranks, so sums may differ in their last bits from MPI's own.

May import NumPy, `crossings`, `mailbox`, `parcels`, `tape` and the errors; `ranks` makes it. Tests:
``tests/test_mpi_profile.py``.
"""

from __future__ import annotations

import operator
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from scr_critplugin.analysis import crossings
from scr_critplugin.analysis.crossings import Received, Reduced, Sent
from scr_critplugin.analysis.mailbox import Message, Posted
from scr_critplugin.analysis.parcels import Parcel, wrap
from scr_critplugin.analysis.tape import Tape
from scr_critplugin.errors import ProfileError

if TYPE_CHECKING:
    from scr_critplugin.analysis.ranks import Alone

Fold = Callable[[Any, Any], Any]

_PATIENCE = 2.0
"""Seconds that a receive from any source waits for the message that came in an earlier run."""


@dataclass
class Arrival:
    """Which message a receive with wildcards got, when it first ran: source and tag.

    Later runs prefer it. What comes first is chance, and chance in the order of messages would look like
    another structure of the step, or like an output that poison changed.
    """

    choice: tuple[int, int] | None = None


class Communication:
    """Communication of one run; recorded on `tape` if there is one.

    `what` names the piece of the program that is run. `sent` and `received` count the messages, so that one
    which nobody received is noticed.
    """

    def __init__(self, ranks: Alone, what: str, block: int, tape: Tape | None) -> None:
        self.ranks = ranks
        self.what = what
        self.block = block
        self.tape = tape
        self.sent = 0
        self.received = 0
        self.collectives: Counter[Any] = Counter()
        self._links: dict[int, tuple[Any, Link]] = {}
        self._wild: Counter[Any] = Counter()

    def link(self, comm: Any, label: tuple[Any, ...]) -> Link:
        """The link for an mpi4py communicator; `label` tells it from others of the same ranks."""
        known = self._links.get(id(comm))
        if known is None:
            # The communicator is kept, so that its identity stays its own.
            known = self._links[id(comm)] = (comm, Link(self, comm, label))
        return known[1]

    def arrival(self, context: Any) -> Arrival:
        """What the next receive with wildcards in `context` got in earlier runs of the same piece."""
        self._wild[context] += 1
        return self.ranks.arrivals.setdefault((self.what, context, self._wild[context]), Arrival())

    def refuse_unreceived(self, number: int) -> None:
        """Raise if messages, `number` on all ranks together, were sent and not received."""
        if number:
            raise ProfileError(
                f"{number} messages that were sent in a step (or output) were not received in it. A "
                "checkpoint "
                "between the two would lose them: complete all communication within the step",
                key="mpi",
            )


class Link:
    """One communicator of the program, in one run.

    `rank` and `size` are the communicator's own; `members` are the ranks in the profile.
    """

    def __init__(self, communication: Communication, comm: Any, label: tuple[Any, ...]) -> None:
        self.communication = communication
        self.comm = comm
        self.members = communication.ranks.members(comm)
        self.rank: int = comm.rank
        self.size: int = comm.size
        self._context = (label, self.members)
        # Without the numbers: a step may make its communicator anew each time.
        self._label = "".join(f", {part}" for part in label if isinstance(part, str))

    # ---- messages ----

    def post(self, thing: Any, destinations: Sequence[int], tag: int, *, collective: str = "") -> None:
        """Send `thing` to ranks of this communicator. Never waits.

        `collective` names the operation that the message is a part of; its tags are apart from all others.
        """
        communication, mailbox = self.communication, self.communication.ranks.mailbox
        tape = communication.tape
        parcel, nodes = wrap(thing, leaves=tape is not None)
        mailbox.serial += 1
        number = (mailbox.rank, mailbox.serial)
        ranks = tuple(self._member(destination, "destination") for destination in destinations)
        if tape is not None and any(parcel.traced) and ranks:
            words = f"{collective or 'message'} with tag {tag}{self._label}"
            varying = [
                (leaf, node) for leaf, node in zip(parcel.leaves, nodes, strict=True) if node is not None
            ]
            crossings.record(
                tape,
                crossings.sent,
                Sent(mailbox, number, ranks, words),
                [leaf for leaf, _ in varying],
                [node for _, node in varying],
                None,
            )
        communication.sent += len(ranks)
        for rank in ranks:
            context = (*self._context, collective)
            mailbox.write(
                rank, Message(communication.block, context, mailbox.rank, self.rank, tag, number, parcel)
            )

    def expect(self, source: int | None, tag: int | None, *, collective: str = "") -> Expected:
        """Post a receive; None is any source or any tag."""
        if source is not None:
            self._member(source, "source")
        context = (*self._context, collective)
        usual = None
        if source is None or tag is None:
            usual = self.communication.arrival((self._label, self.members))
        first = (source, tag) if usual is None else usual.choice or (source, tag)
        posted = Posted(self.communication.block, context, *first)
        self.communication.ranks.mailbox.post(posted)
        return Expected(self, posted, collective, (source, tag), usual)

    def receive(self, source: int, tag: int, *, collective: str) -> Any:
        """Wait for a message that is a part of a collective operation."""
        return self.expect(source, tag, collective=collective).thing()

    def number_collective(self, name: str) -> int:
        """The number of a collective call, the same on all ranks if their calls are."""
        self.communication.collectives[self._context] += 1
        return self.communication.collectives[self._context]

    def _member(self, rank: int, what: str) -> int:
        if not 0 <= rank < self.size:
            raise ProfileError(f"{what} is {rank}; the communicator has ranks 0 to {self.size - 1}")
        return self.members[rank]

    # ---- reductions ----

    def reduce(self, thing: Any, operation: Operation, roots: Sequence[int]) -> Any:
        """Fold what all ranks give; the result on the ranks `roots`, None elsewhere."""
        communication, mailbox = self.communication, self.communication.ranks.mailbox
        tape = communication.tape
        name = f"reduction {operation.name}"
        tag = self.number_collective(name)
        parcel, nodes = wrap(thing, leaves=tape is not None, numbers=tape is not None)
        self._post_bare(parcel, 0, tag, name)
        if self.rank == 0:
            self._fold(operation, roots, tag, name)
        result = self._receive_bare(0, tag, name)
        if tape is None or not result.depends:
            return result.parcel.open(_constants(tape)) if result.wanted else None
        varying = [(leaf, node) for leaf, node in zip(parcel.leaves, nodes, strict=True) if node is not None]
        partial = _partial(operation, parcel, result.parcel) if result.elementwise else None
        leaves = list(result.parcel.leaves) if result.wanted else []
        loose = [result.is_loose and np.ndim(leaf) > 0 for leaf in leaves]
        crossing = Reduced(
            mailbox, result.number, self.members, result.elementwise, name + self._label, partial
        )
        node = crossings.record(
            tape,
            crossings.reduced,
            crossing,
            [leaf for leaf, _ in varying],
            [n for _, n in varying],
            leaves,
            loose,
        )
        if not result.wanted:
            return None
        boxes = crossings.boxed_leaves(tape, node, leaves, loose)
        return result.parcel.open(lambda place, leaf: boxes[place])

    def _fold(self, operation: Operation, roots: Sequence[int], tag: int, name: str) -> None:
        parcels = [self._receive_bare(rank, tag, name) for rank in range(self.size)]
        total = parcels[0].plain()
        for parcel in parcels[1:]:
            total = operation.fold(total, parcel.plain())
        packed, _ = wrap(total, leaves=True, numbers=True)
        is_loose = any(any(each.loose) for each in parcels)
        elementwise = operation.elementwise and all(each.is_one_leaf for each in (*parcels, packed))
        elementwise = elementwise and not is_loose
        mailbox = self.communication.ranks.mailbox
        mailbox.serial += 1
        number = (mailbox.rank, mailbox.serial)
        depends = any(any(each.traced) for each in parcels)
        for rank in range(self.size):
            result = _Result(packed, rank in roots, depends, elementwise, is_loose, number)
            self._post_bare(result, rank, tag, name)

    def _post_bare(self, content: Any, destination: int, tag: int, name: str) -> None:
        communication, mailbox = self.communication, self.communication.ranks.mailbox
        communication.sent += 1
        context = (*self._context, name)
        message = Message(communication.block, context, mailbox.rank, self.rank, tag, None, content)
        mailbox.write(self.members[destination], message)

    def _receive_bare(self, source: int, tag: int, name: str) -> Any:
        return self.expect(source, tag, collective=name).message().content

    def meet(self) -> None:
        """Wait until all ranks are here."""
        self.reduce(0, Operation("barrier", operator.add), range(self.size))


class Expected:
    """A receive that has been posted."""

    def __init__(
        self,
        link: Link,
        posted: Posted,
        collective: str,
        asked: tuple[int | None, int | None],
        arrival: Arrival | None,
    ) -> None:
        self._link = link
        self._posted = posted
        self._collective = collective
        self._asked = asked
        self._arrival = arrival
        self._patience = time.monotonic() + _PATIENCE

    def has_arrived(self) -> bool:
        """True if the message is there."""
        mailbox = self._link.communication.ranks.mailbox
        mailbox.collect()
        posted = self._posted
        is_overdue = posted.message is None and time.monotonic() > self._patience
        if is_overdue and (posted.source, posted.tag) != self._asked:
            mailbox.repost(posted, *self._asked)
        return posted.message is not None

    def message(self) -> Message:
        """Wait for the message."""
        communication = self._link.communication
        communication.ranks.mailbox.wait(self.has_arrived)
        message = self._posted.message
        if message is None:
            raise ProfileError("a message was lost")
        communication.received += 1
        if self._arrival is not None and self._arrival.choice is None:
            self._arrival.choice = (message.source, message.tag)
        return message

    def thing(self) -> Any:
        """Wait for the message; what it holds, traced where it was traced at the sender."""
        return self.opened(self.message())

    def opened(self, message: Message) -> Any:
        """What `message` holds, traced where it was traced at the sender."""
        tape = self._link.communication.tape
        parcel: Parcel = message.content
        if tape is None:
            return parcel.plain()
        varying = [leaf for leaf, traced in zip(parcel.leaves, parcel.traced, strict=True) if traced]
        boxes: list[Any] = []
        if varying:
            words = f"{self._collective or 'message'} with tag {message.tag}{self._link._label}"
            crossing = Received(self._link.communication.ranks.mailbox, message.number, message.origin, words)
            loose = [each for each, traced in zip(parcel.loose, parcel.traced, strict=True) if traced]
            node = crossings.record(tape, crossings.received, crossing, [], [], varying, loose)
            boxes = crossings.boxed_leaves(tape, node, varying, loose)
        places = {place: n for n, place in enumerate(np.flatnonzero(parcel.traced).tolist())}

        constant = _constants(tape)
        return parcel.open(
            lambda place, leaf: boxes[places[place]] if parcel.traced[place] else constant(place, leaf)
        )


@dataclass(frozen=True)
class Operation:
    """A reduction: how two operands are folded.

    `elementwise`: an element of the result depends on the elements at its place alone. `partial`: derivative
    of the result by one operand, given both.
    """

    name: str
    fold: Fold
    elementwise: bool = False
    partial: Callable[[Any, Any], Any] | None = None


@dataclass(frozen=True)
class _Result:
    """Of a reduction; `wanted` by the rank, if it is a root. `depends`: on the state of some rank."""

    parcel: Parcel
    wanted: bool
    depends: bool
    elementwise: bool
    is_loose: bool
    number: Any


def _constants(tape: Tape | None) -> Callable[[int, Any], Any]:
    """What to put in the place of a leaf that does not depend on the state: arrays can be written to."""

    def constant(place: int, leaf: Any) -> Any:
        is_array = tape is not None and isinstance(leaf, np.ndarray) and leaf.size
        return tape.box(leaf, tape.constant(leaf)) if tape is not None and is_array else leaf

    return constant


def _partial(operation: Operation, operand: Parcel, result: Parcel) -> Any:
    if operation.partial is None:
        return None
    return operation.partial(operand.leaves[0], result.leaves[0])
