"""Where the data flow crosses from rank to rank: nodes on the tape, and what comes back through them.

Three kinds of node make up all communication. `sent` has the sender's traced values as arguments and no
result, `received` has a result and no arguments, `reduced` has both. In a backward sweep a receiver sends
back what is needed of each message, and a sender waits for it; walking the tapes in reverse is a run in which
all sends are buffered, so ranks never wait in a circle. Every rank of a communication must visit its node in
each sweep.

What comes back may be masks (`Row.across`) or cotangents (`adjoint`): masks are united, cotangents added.

May import NumPy, `cotangents`, `mailbox`, `masks`, `rules` and `tape`. Tests: ``tests/test_mpi_profile.py``,
``tests/test_mpi_gradient.py``.
"""

from __future__ import annotations

import functools
import operator
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from scr_critplugin.analysis import pulls
from scr_critplugin.analysis.calls import Call, Shaped, shaped
from scr_critplugin.analysis.cotangents import Cotangents, added
from scr_critplugin.analysis.mailbox import Mailbox, Pulled
from scr_critplugin.analysis.masks import Mask, everything, has_any, merge, nothing, unbroadcast
from scr_critplugin.analysis.rules import ITEM_OF_SEQUENCE, Row, add_rule, always, row_of
from scr_critplugin.analysis.tape import DependenceNode, Tape

Parts = list[Any]
"""Masks or cotangents, one for each traced leaf of a message."""
Combine = Callable[[Any, Any], Any]


class _Crossing:
    """What structures compare: the words, not the mailbox or the numbers of messages."""

    def __getstate__(self) -> str:
        return repr(self)


@dataclass(frozen=True)
class Sent(_Crossing):
    """A message, or one message to several ranks. `words` describes it; the same in every step."""

    mailbox: Mailbox = field(repr=False)
    number: Any = field(repr=False)
    destinations: tuple[int, ...]
    words: str

    def back(self, combine: Combine) -> Parts:
        """Wait for what comes back from all destinations, combined."""
        arrived = [self.mailbox.take_pulled(self.number, rank) for rank in self.destinations]
        return [functools.reduce(combine, of_leaf) for of_leaf in zip(*arrived, strict=True)]


@dataclass(frozen=True)
class Received(_Crossing):
    """A message at its receiver; `origin` is the sender's rank."""

    mailbox: Mailbox = field(repr=False)
    number: Any = field(repr=False)
    origin: int
    words: str

    def back(self, parts: Parts) -> None:
        """Send back `parts`. Does not wait."""
        self.mailbox.write(self.origin, Pulled(self.number, self.mailbox.rank, parts))


@dataclass(frozen=True)
class Reduced(_Crossing):
    """A reduction over the ranks `members`. `elementwise`: else every result depends on all of every operand.

    `partial`: derivative of the result by this rank's operand, None if it is not known.
    """

    mailbox: Mailbox = field(repr=False)
    number: Any = field(repr=False)
    members: tuple[int, ...] = field(repr=False)
    elementwise: bool
    words: str
    partial: NDArray[Any] | None = field(default=None, repr=False)

    def back(self, parts: Parts | None, combine: Combine) -> Parts:
        """What is needed of the result on all ranks, combined; `parts` is None on a rank without a result."""
        me, leader = self.mailbox.rank, self.members[0]
        self.mailbox.write(leader, Pulled((self.number, "up"), me, parts))
        if me == leader:
            arrived = [self.mailbox.take_pulled((self.number, "up"), rank) for rank in self.members]
            held = [each for each in arrived if each is not None]
            total = [functools.reduce(combine, of_leaf) for of_leaf in zip(*held, strict=True)]
            for rank in self.members:
                self.mailbox.write(rank, Pulled((self.number, "down"), me, total))
        total = self.mailbox.take_pulled((self.number, "down"), leader)
        return list(total)


# ---- recording ----


def sent(message: Sent, *leaves: Any) -> Any:
    """Name of a recorded send."""


def received(message: Received) -> Any:
    """Name of a recorded receive; its result is the list of the message's traced leaves."""


def reduced(reduction: Reduced, *leaves: Any) -> Any:
    """Name of a recorded reduction; its result is the list of the leaves."""


def leaf_of(arrived: list[Any], place: int) -> Any:
    """Name of one leaf of what arrived."""


def record(
    tape: Tape,
    function: Callable[..., Any],
    crossing: Sent | Received | Reduced,
    leaves: Sequence[Any],
    nodes: Sequence[DependenceNode],
    result: list[Any] | None,
    loose: Sequence[bool] = (),
) -> DependenceNode:
    """Put a crossing on the tape; `nodes` are those of the traced `leaves`.

    `loose`: which leaves of the result have a shape that the state decides.
    """
    node: DependenceNode = DependenceNode.new_root(tape, result)
    if isinstance(node.shape, list) and loose:
        node.shape = [() if each else s for each, s in zip(loose, node.shape, strict=True)]
    arguments = (
        crossing,
        *(Shaped(n.shape, shaped(leaf).dtype) for leaf, n in zip(leaves, nodes, strict=True)),
    )
    node.call = Call(function, arguments, {}, tuple(range(1, len(arguments))), node.shape)
    node.row = row_of(function, (), {})
    node.parents = tuple(nodes)
    return node


def boxed_leaves(
    tape: Tape, node: DependenceNode, leaves: list[Any], loose: Sequence[bool] = ()
) -> list[Any]:
    """Traced arrays and numbers for the `leaves`, the results of the crossing `node`."""
    boxes = []
    for place, leaf in enumerate(leaves):
        part = DependenceNode(leaf, leaf_of, (leaves, place), {}, (0,), (node,))
        if loose and loose[place]:
            part.loose, part.shape = True, ()
        boxes.append(tape.box(leaf, part))
    return boxes


# ---- masks ----


def _united(one: Mask, other: Mask) -> Mask:
    merge(one, other)
    return one


def _across_send(call: Call, mask: Mask | None) -> list[Mask]:
    return list(call.args[0].back(_united))


def _across_receive(call: Call, mask: Mask | None) -> list[Mask]:
    call.args[0].back(nothing(call.shape) if mask is None else mask)
    return []


def _across_reduction(call: Call, mask: Mask | None) -> list[Mask]:
    reduction: Reduced = call.args[0]
    own = None if call.shape == [] else nothing(call.shape) if mask is None else mask
    total = reduction.back(own if own is None or isinstance(own, list) else [own], _united)
    shapes = [call.args[argnum].shape for argnum in call.argnums]
    if reduction.elementwise:
        return [unbroadcast(total[0], shape) for shape in shapes]
    needed = any(map(has_any, total))
    return [everything(shape) if needed else nothing(shape) for shape in shapes]


_LEAVES = range(1, sys.maxsize)
add_rule(sent, Row(pulls.dense, data=_LEAVES, moves=always, across=_across_send))
add_rule(received, Row(pulls.dense, data=_LEAVES, moves=always, across=_across_receive))
add_rule(reduced, Row(pulls.dense, data=_LEAVES, across=_across_reduction))
add_rule(leaf_of, ITEM_OF_SEQUENCE)


# ---- cotangents ----


def pull_across(node: DependenceNode, cotangents: Cotangents) -> bool:
    """Exchange the cotangents of a crossing with the other ranks, and add what comes back to its parents'.

    False if the derivative ends in it: something arrived on some rank, and not every rank knows how to go on.
    """
    if node.call is None:
        raise TypeError("a state variable is no crossing")
    parts, is_complete = adjoint(node.call, cotangents.take(node, own=False))
    for parent, part in zip(node.parents, parts, strict=True):
        if part is not None:
            cotangents.add(parent, part)
    return is_complete


def adjoint(call: Call, cotangent: Parts | None) -> tuple[Parts, bool]:
    """Cotangents of the traced arguments of a `sent`, `received` or `reduced` call, from that of its result.

    Like the mask rules it communicates, and every rank of the communication must call it, in reverse order of
    the calls; `cotangent` is None where nothing of the result has one, as are parts of it. A send gets the
    sum of what its receivers return; of an allreduced sum every operand gets the sum of all ranks'
    cotangents; the operands of other reductions get that times the derivative of the result by the operand.

    Returns
    -------
    list
        None for an argument to which nothing comes back.
    bool
        False, on all ranks, if something arrived at a reduction whose derivative some rank does not know: a
        logical or bitwise one, MAXLOC, one of the program's own, or a product with a factor of zero.
    """
    crossing = call.args[0]
    if isinstance(crossing, Sent):
        return crossing.back(added), True
    leaves = call.shape if isinstance(call.shape, list) else []
    parts: Parts = [None] * len(leaves) if cotangent is None else cotangent
    if isinstance(crossing, Received):
        crossing.back(parts)
        return [], True
    (is_known,) = crossing.back([crossing.partial is not None or not call.argnums], operator.and_)
    total = crossing.back(parts or None, added)
    own = None if crossing.partial is None else total[0]
    return [
        None if own is None else _summed_to(own * crossing.partial, _extents(call.args[argnum].shape))
        for argnum in call.argnums
    ], is_known or all(part is None for part in total)


def pull_leaf(node: DependenceNode, cotangent: Any, cotangents: Cotangents) -> None:
    """Add the cotangent of one leaf of what arrived to that of the whole."""
    if node.call is None:
        raise TypeError("a state variable is no leaf")
    leaves, place = cast("list[Any]", node.parents[0].shape), node.call.args[1]
    cotangents.add(node.parents[0], [cotangent if i == place else None for i in range(len(leaves))])


def ends_derivatives(leaf: DependenceNode) -> bool:
    """Whether a derivative may end at a `leaf` that is no floating-point number.

    What arrives as an integer was sent as one; but a reduction may make one of floating-point numbers.
    """
    crossing = _crossing_of(leaf)
    return isinstance(crossing, Reduced) and crossing.partial is None


def words_of(node: DependenceNode) -> str | None:
    """Name for the user of a crossing, or a leaf of one; None for any other node."""
    crossing = _crossing_of(node)
    return None if crossing is None else str(crossing.words)


def _crossing_of(node: DependenceNode) -> Any:
    if node.call is not None and node.call.function is leaf_of:
        node = node.parents[0]
    is_crossing = node.call is not None and node.row is not None and node.row.across is not None
    return node.call.args[0] if node.call is not None and is_crossing else None


def _extents(shape: Any) -> tuple[int, ...]:
    return shape if isinstance(shape, tuple) else ()


def _summed_to(cotangent: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    extra = np.ndim(cotangent) - len(shape)
    summed = np.sum(cotangent, axis=tuple(range(extra))) if extra > 0 else np.asarray(cotangent)
    repeated = tuple(i for i, n in enumerate(shape) if n == 1 and summed.shape[i] != 1)
    return np.asarray(np.sum(summed, axis=repeated, keepdims=True) if repeated else summed)
