"""Sinks with the state elements that feed them: one partial sweep a place.

May import `departures`, `sweep`, `tape` and the regions. Tests: ``tests/test_control.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from scr_critplugin.analysis.departures import Place
from scr_critplugin.analysis.masks import unite_named
from scr_critplugin.analysis.ranks import current
from scr_critplugin.analysis.sweep import Masks, communicates, mask_of, pull_to_parents, set_whole
from scr_critplugin.analysis.tape import Tape
from scr_critplugin.regions import describe

Fed = dict[Place, dict[str, NDArray[np.bool_]]]


@dataclass(frozen=True, order=True)
class Sink:
    """A place where a traced value left the data flow.

    Attributes
    ----------
    file, line : str, int
        Innermost line of the program's own code.
    kind : str
        What took the value: "bool", "int", "float", "index", "array", "argument of roll",
        "unknown primitive inv", ...
    counts : bool
        Whether what feeds it is critical for its sake (see `control` of `profile`).
    elements : dict of str to bool array
        Elements of the state, at the start of the step (or output) in which it left, that can influence the
        value; in any of the recorded steps, points and inputs. Variables without such elements are left out.
    """

    file: str
    line: int
    kind: str
    counts: bool = field(default=True, compare=False)
    elements: dict[str, NDArray[np.bool_]] = field(default_factory=dict, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.kind}"

    def fed_by(self, max_regions: int = 4) -> list[str]:
        """`elements` in slice notation: at most `max_regions` a variable, and how much was left out."""
        return [
            region for name, mask in self.elements.items() for region in describe(name, mask, max_regions)
        ]

    def described(self, max_regions: int = 4) -> str:
        """The place and what feeds it, in one line."""
        fed = ", ".join(self.fed_by(max_regions)) or "no element of the state"
        note = "" if self.counts else " (listed, not counted as an output)"
        return f"{self}, fed by {fed}{note}"


def feed(into: Fed, tape: Tape) -> None:
    """Add to `into` which elements of the tape's roots feed each of its sinks."""
    nodes: dict[Place, list[int]] = {}
    for position, place in tape.sinks:
        nodes.setdefault(place, []).append(position)
    ranks = current()
    if ranks.any(any(map(communicates, tape.nodes))):
        _feed_together(into, tape, nodes, sorted(set().union(*ranks.allgather(set(nodes)))))
        return
    swept: dict[tuple[int, ...], dict[str, NDArray[np.bool_]]] = {}
    for place, positions in nodes.items():
        key = tuple(positions)
        if key not in swept:
            swept[key] = _feeding(tape, positions)
        unite_named(into.setdefault(place, {}), swept[key])


def _feed_together(into: Fed, tape: Tape, nodes: dict[Place, list[int]], places: Sequence[Place]) -> None:
    """The same where sweeps cross ranks: all sweep for every place, and an element may feed one elsewhere."""
    for place in places:
        found = _feeding(tape, nodes.get(place, []), until=len(tape.nodes))
        if place in nodes or found:
            unite_named(into.setdefault(place, {}), found)


def sinks_of(fed: Fed, *, steering_counts: bool) -> tuple[Sink, ...]:
    """The sinks, in the order of their places."""
    return tuple(
        Sink(place.file, place.line, place.kind, steering_counts or not place.steers, fed[place])
        for place in sorted(fed)
    )


def _feeding(tape: Tape, positions: Sequence[int], until: int | None = None) -> dict[str, NDArray[np.bool_]]:
    """Elements of the roots that the nodes at `positions` can depend on; `until`: how many nodes to visit."""
    masks: Masks = [None] * (max(positions) + 1 if until is None else until)
    for position in positions:
        set_whole(tape.nodes[position], masks)
    for position in range(len(masks) - 1, -1, -1):
        mask, node = masks[position], tape.nodes[position]
        if node.call is not None and (mask is not None or communicates(node)):
            masks[position] = None
            pull_to_parents(node, mask, masks)
    reached = [item for item in tape.roots.items() if item[1].position < len(masks)]
    found = {name: mask_of(node, masks) for name, node in reached if masks[node.position] is not None}
    return {name: mask for name, mask in found.items() if isinstance(mask, np.ndarray) and mask.any()}
