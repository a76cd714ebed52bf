"""Backward passes over a tape.

`needed` is the dependence sweep. `accessed` and `carried` follow copies only; with `taken` they tell apart
the states of elements that are not needed: computed with, overwritten unread, or never touched.

May import `calls`, `masks`, `pulls`, `tape` and `windows`. Tests: ``tests/test_dependence.py``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

import numpy as np

from scr_critplugin.analysis.calls import Call
from scr_critplugin.analysis.masks import BoolArray, Mask, everything, fill, has_any, merge, nothing
from scr_critplugin.analysis.pulls import elementwise
from scr_critplugin.analysis.tape import DependenceNode, Tape
from scr_critplugin.analysis.windows import stored

Seed = tuple[DependenceNode, Mask]
RootMasks = dict[str, BoolArray]


def needed(tape: Tape, seeds: Iterable[Seed]) -> RootMasks:
    """Elements of the roots that the elements in `seeds`, or any sink that counts, can depend on."""
    masks = _seeded(tape, seeds)
    for position in tape.counted():
        masks[position] = everything(tape.nodes[position].shape)
    for node in reversed(tape.nodes):
        mask = masks[node.position]
        if node.call is None or (mask is None and not communicates(node)):
            continue
        masks[node.position] = None
        pull_to_parents(node, mask, masks)
    return _of_roots(tape, masks)


def accessed(tape: Tape, seeds: Iterable[Seed]) -> RootMasks:
    """Elements of the roots that are computed with, or copied to where `seeds` are set."""
    masks = _seeded(tape, seeds)
    for position, _ in tape.sinks:
        masks[position] = everything(tape.nodes[position].shape)
    for node in reversed(tape.nodes):
        if node.call is None:
            continue
        if _copies(node):
            mask, masks[node.position] = masks[node.position], None
            if mask is not None or communicates(node):
                pull_to_parents(node, mask, masks)
        else:
            for parent in node.parents:
                fill(_mask_of(parent, masks))
    return _of_roots(tape, masks)


def carried(tape: Tape, seeds: Iterable[Seed]) -> RootMasks:
    """Elements of the roots that are copied, unchanged, to where `seeds` are set."""
    masks = _seeded(tape, seeds)
    for node in reversed(tape.nodes):
        mask = masks[node.position]
        if node.call is None or (mask is None and not communicates(node)):
            continue
        masks[node.position] = None
        if _copies(node):
            pull_to_parents(node, mask, masks)
    return _of_roots(tape, masks)


def taken(tape: Tape) -> set[str]:
    """Names of the roots that some primitive takes as an argument, or that leave by a sink."""
    positions = {parent.position for node in tape.nodes for parent in node.parents}
    positions |= {position for position, _ in tape.sinks}
    return {name for name, node in tape.roots.items() if node.position in positions}


def pull_to_parents(node: DependenceNode, mask: Mask | None, masks: list[Mask | None]) -> None:
    """Set in the masks of the node's parents what `mask` of its result can depend on. Consumes `mask`."""
    call, row = node.call, node.row
    if call is None or row is None:
        return
    if row.across is not None:
        for parent, pulled in zip(node.parents, row.across(call, mask), strict=True):
            merge(_mask_of(parent, masks), pulled)
        return
    if mask is None:
        return
    if row.pull is stored and isinstance(mask, np.ndarray) and not node.loose:
        _pull_store(node, call, mask, masks)
        return
    # The structure seen holds for this steering value or shape only, or the rule knows one result only.
    is_loose = not row.into_memory and any(parent.loose for parent in node.parents)
    is_dense = node.steered or node.loose or is_loose or (isinstance(mask, list) and not row.many_results)
    last = len(node.parents) - 1
    for i, (argnum, parent) in enumerate(zip(call.argnums, node.parents, strict=True)):
        same_places = (
            row.pull is elementwise and masks[parent.position] is None and parent.shape == node.shape
        )
        if same_places and isinstance(mask, np.ndarray) and not is_dense:
            # By far the most frequent case, without an allocation for the last argument.
            masks[parent.position] = mask if i == last else mask.copy()
            continue
        into = _mask_of(parent, masks)
        if not is_dense and (row.sequence_argument or not isinstance(into, list)):
            row.pull(call, mask, argnum, into)
        elif has_any(mask):
            fill(into)


def _pull_store(node: DependenceNode, call: Call, mask: BoolArray, masks: list[Mask | None]) -> None:
    """The pull of a write, which hands its mask on to the contents before: its cost is that of the region."""
    for argnum, parent in reversed(list(zip(call.argnums, node.parents, strict=True))):
        if argnum > 0:
            stored(call, mask, argnum, cast(BoolArray, _mask_of(parent, masks)))
            continue
        call.args[1].clear(mask)
        if masks[parent.position] is None:
            masks[parent.position] = mask
        else:
            merge(_mask_of(parent, masks), mask)


def _copies(node: DependenceNode) -> bool:
    return node.row is not None and node.call is not None and not node.steered and node.row.moves(node.call)


def communicates(node: DependenceNode) -> bool:
    """True if other ranks wait for this node in the sweep, even if nothing of its result is needed here."""
    return node.row is not None and node.row.across is not None


def _mask_of(node: DependenceNode, masks: list[Mask | None]) -> Mask:
    mask = masks[node.position]
    if mask is None:
        mask = masks[node.position] = nothing(node.shape)
    return mask


def _seeded(tape: Tape, seeds: Iterable[Seed]) -> list[Mask | None]:
    masks: list[Mask | None] = [None] * len(tape.nodes)
    for node, mask in seeds:
        merge(_mask_of(node, masks), mask)
    return masks


def _of_roots(tape: Tape, masks: list[Mask | None]) -> RootMasks:
    found: RootMasks = {}
    for name, node in tape.roots.items():
        mask = _mask_of(node, masks)
        if isinstance(mask, list):
            raise TypeError(f"state variable {name!r} is a sequence; only arrays and scalars are traced")
        found[name] = mask
    return found
