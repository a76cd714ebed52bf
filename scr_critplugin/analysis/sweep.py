"""Backward passes over a tape.

`needed` is the dependence sweep. Most masks of most programs have every element set; for those `WHOLE`
stands, and is handed on without touching an array.

`accessed` and `carried` follow copies only; with `taken` they tell apart
the states of elements that are not needed: computed with, overwritten unread, or never touched.

May import `calls`, `masks`, `pulls`, `tape` and `windows`. Tests: ``tests/test_dependence.py``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias, cast

import numpy as np

from scr_critplugin.analysis.calls import Call
from scr_critplugin.analysis.masks import (
    WHOLE,
    BoolArray,
    Mask,
    Whole,
    everything,
    fill,
    has_any,
    is_whole,
    merge,
    nothing,
)
from scr_critplugin.analysis.pulls import elementwise
from scr_critplugin.analysis.tape import DependenceNode, Tape
from scr_critplugin.analysis.windows import stored

Seed = tuple[DependenceNode, Mask]
RootMasks = dict[str, BoolArray]
Masks: TypeAlias = "list[Mask | Whole | None]"
"""By position on the tape; None: nothing set."""


def needed(tape: Tape, seeds: Iterable[Seed], watched: dict[int, Mask | None] | None = None) -> RootMasks:
    """Elements of the roots that the elements in `seeds`, or any sink that counts, can depend on.

    Fills in, for the positions of nodes that are keys of `watched`, what is needed of their results.
    """
    masks = _seeded(tape, seeds)
    for position in tape.counted():
        set_whole(tape.nodes[position], masks)
    for node in reversed(tape.nodes):
        mask = masks[node.position]
        if node.call is None or (mask is None and not communicates(node)):
            continue
        masks[node.position] = None
        if watched is not None and mask is not None and node.position in watched:
            seen = watched[node.position] = nothing(node.shape)
            merge(seen, everything(node.shape) if mask is WHOLE else mask)
        pull_to_parents(node, mask, masks)
    return _of_roots(tape, masks)


def accessed(tape: Tape, seeds: Iterable[Seed]) -> RootMasks:
    """Elements of the roots that are computed with, or copied to where `seeds` are set."""
    masks = _seeded(tape, seeds)
    for position, _ in tape.sinks:
        set_whole(tape.nodes[position], masks)
    for node in reversed(tape.nodes):
        if node.call is None:
            continue
        if copies(node):
            mask, masks[node.position] = masks[node.position], None
            if mask is not None or communicates(node):
                pull_to_parents(node, mask, masks)
        else:
            for parent in node.parents:
                set_whole(parent, masks)
    return _of_roots(tape, masks)


def carried(tape: Tape, seeds: Iterable[Seed]) -> RootMasks:
    """Elements of the roots that are copied, unchanged, to where `seeds` are set."""
    masks = _seeded(tape, seeds)
    for node in reversed(tape.nodes):
        mask = masks[node.position]
        if node.call is None or (mask is None and not communicates(node)):
            continue
        masks[node.position] = None
        if copies(node):
            pull_to_parents(node, mask, masks)
    return _of_roots(tape, masks)


def taken(tape: Tape) -> set[str]:
    """Names of the roots that some primitive takes as an argument, or that leave by a sink."""
    positions = {parent.position for node in tape.nodes for parent in node.parents}
    positions |= {position for position, _ in tape.sinks}
    return {name for name, node in tape.roots.items() if node.position in positions}


def pull_to_parents(node: DependenceNode, mask: Mask | Whole | None, masks: Masks) -> None:
    """Set in the masks of the node's parents what `mask` of its result can depend on. Consumes `mask`."""
    call, row = node.call, node.row
    if call is None or row is None:
        return
    if row.across is not None:
        here = everything(node.shape) if mask is WHOLE else mask
        for parent, pulled in zip(node.parents, row.across(call, here), strict=True):
            merge(mask_of(parent, masks), pulled)
        return
    if mask is None:
        return
    # Coarse, or the rule knows one result only.
    is_dense = node.coarse or (isinstance(mask, list) and not row.many_results)
    if (is_dense or row.whole) and is_whole(mask):
        for parent in node.parents:
            set_whole(parent, masks)
        return
    if mask is WHOLE:
        mask = everything(node.shape)
    if row.pull is stored and isinstance(mask, np.ndarray) and not node.loose:
        _pull_store(node, call, mask, masks)
        return
    last = len(node.parents) - 1
    for i, (argnum, parent) in enumerate(zip(call.argnums, node.parents, strict=True)):
        if masks[parent.position] is WHOLE:
            continue
        same_places = (
            row.pull is elementwise and masks[parent.position] is None and parent.shape == node.shape
        )
        if same_places and isinstance(mask, np.ndarray) and not is_dense:
            # By far the most frequent case, without an allocation for the last argument.
            masks[parent.position] = mask if i == last else mask.copy()
            continue
        into = mask_of(parent, masks)
        if not is_dense and (row.sequence_argument or not isinstance(into, list)):
            row.pull(call, mask, argnum, into)
        elif has_any(mask):
            fill(into)


def _pull_store(node: DependenceNode, call: Call, mask: BoolArray, masks: Masks) -> None:
    """The pull of a write, which hands its mask on to the contents before: its cost is that of the region."""
    for argnum, parent in reversed(list(zip(call.argnums, node.parents, strict=True))):
        if masks[parent.position] is WHOLE:
            continue
        if argnum > 0:
            stored(call, mask, argnum, cast(BoolArray, mask_of(parent, masks)))
            continue
        call.args[1].clear(mask)
        if masks[parent.position] is None:
            masks[parent.position] = mask
        else:
            merge(mask_of(parent, masks), mask)


def copies(node: DependenceNode) -> bool:
    """True if the result of the node's call holds copies of elements, nothing computed."""
    return node.row is not None and node.call is not None and not node.steered and node.row.moves(node.call)


def communicates(node: DependenceNode) -> bool:
    """True if other ranks wait for this node in the sweep, even if nothing of its result is needed here."""
    return node.row is not None and node.row.across is not None


def set_whole(node: DependenceNode, masks: Masks) -> None:
    """Set every element of the node's value."""
    if isinstance(node.shape, list):
        fill(mask_of(node, masks))
    elif 0 not in node.shape:
        masks[node.position] = WHOLE


def mask_of(node: DependenceNode, masks: Masks) -> Mask:
    """The mask at the node's place, to be written to."""
    mask = masks[node.position]
    if mask is None or mask is WHOLE:
        made = nothing(node.shape) if mask is None else everything(node.shape)
        mask = masks[node.position] = made
    return mask


def _seeded(tape: Tape, seeds: Iterable[Seed]) -> Masks:
    masks: Masks = [None] * len(tape.nodes)
    for node, mask in seeds:
        merge(mask_of(node, masks), mask)
    return masks


def _of_roots(tape: Tape, masks: Masks) -> RootMasks:
    found: RootMasks = {}
    for name, node in tape.roots.items():
        mask = mask_of(node, masks)
        if isinstance(mask, list):
            raise TypeError(f"state variable {name!r} is a sequence; only arrays and scalars are traced")
        found[name] = mask
    return found
