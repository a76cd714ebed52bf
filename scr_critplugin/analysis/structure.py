"""The structure of a recorded step: which primitives, connected how, with which indices; no values.

Two steps of equal structure have the same dependence, so one sweep serves for both.

May import `calls`, `rules`, `tape` and `windows`. Tests: ``tests/test_dependence.py``.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import zip_longest
from typing import Any

import numpy as np

from scr_critplugin.analysis.calls import Call, Shaped
from scr_critplugin.analysis.rules import NONE, Row
from scr_critplugin.analysis.tape import DependenceNode, Tape
from scr_critplugin.analysis.windows import Places, Window, spread_over


def first_difference(one: Tape, other: Tape) -> str | None:
    """Where two recorded runs differ in structure, in words; None if they do not."""
    for position, (left, right) in enumerate(zip_longest(one.nodes, other.nodes)):
        if left is None or right is None or _token(left) != _token(right):
            return f"primitive {position} is {_words(left)} in one and {_words(right)} in the next"
    return None


def same_ends(one: Iterable[DependenceNode], other: Iterable[DependenceNode]) -> bool:
    """True if two runs end in the same nodes."""
    return [node.position for node in one] == [node.position for node in other]


def _words(node: DependenceNode | None) -> str:
    if node is None:
        return "absent"
    if node.call is None:
        return "a state variable"
    name = getattr(node.call.function, "__name__", repr(node.call.function))
    return f"{name} with result shape {node.shape}"


def _token(node: DependenceNode) -> tuple[Any, ...]:
    parents = tuple(parent.position for parent in node.parents)
    if node.call is None or node.row is None:
        return (parents, node.shape)
    if node.loose or node.row.pull is spread_over:
        # Swept as one whole: neither the arguments' shapes nor any index matters.
        return (node.call.function, node.call.argnums, parents)
    loose = {i for i, parent in zip(node.call.argnums, node.parents, strict=True) if parent.loose}
    return (
        node.call.function,
        node.call.argnums,
        parents,
        node.shape,
        _arguments(node.call, node.row, loose),
    )


def _arguments(call: Call, row: Row, loose: set[int]) -> tuple[Any, ...]:
    positional = tuple(
        "loose" if i in loose else _of(argument, values=i in row.values or i not in row.data)
        for i, argument in enumerate(call.args)
    )
    named = tuple(
        (name, _of(value, values=row.values is not NONE)) for name, value in sorted(call.kwargs.items())
    )
    return positional + named


def _of(argument: Any, *, values: bool) -> Any:
    """A hashable stand-in for an untraced argument; bare numbers count only if `values` matter."""
    if isinstance(argument, (Window, Places)):
        return argument.token()
    if isinstance(argument, Shaped):
        return ("shaped", str(argument.shape))
    if isinstance(argument, np.ndarray):
        return ("array", argument.shape, argument.dtype.str, argument.tobytes() if values else b"")
    if isinstance(argument, slice):
        return ("slice", argument.start, argument.stop, argument.step)
    if isinstance(argument, (tuple, list)):
        return tuple(_of(member, values=values) for member in argument)
    if isinstance(argument, dict):
        return tuple((key, _of(value, values=values)) for key, value in argument.items())
    if isinstance(argument, (int, float, complex, np.number)) and not values:
        return "number"
    return (
        argument
        if isinstance(argument, (int, float, complex, str, bytes, type(None), np.generic))
        else repr(argument)
    )
