"""The structure of a recorded step: which primitives, connected how, with which indices; no values.

Two steps of equal structure have the same dependence, so one sweep serves for both. A structure is compared
by its digest, so the tapes it is taken from need not be kept.

May import `calls`, `rules`, `tape` and `windows`. Tests: ``tests/test_recurrence.py``.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

import numpy as np

from scr_critplugin.analysis.calls import Call, Shaped
from scr_critplugin.analysis.masks import Shape
from scr_critplugin.analysis.rules import NONE, Row
from scr_critplugin.analysis.tape import DependenceNode, Tape
from scr_critplugin.analysis.windows import Places, Window, spread_over

Line = tuple[bytes, str, Shape]
"""Of one primitive: what is compared, without line ends; its name and its result's shape for messages."""


@dataclass(frozen=True)
class Structure:
    """The structure of a step and of the output after it.

    Attributes
    ----------
    digest : bytes
        Equal for equal structures.
    step, output : tuple
        A line for each primitive, in order.
    ends : tuple of str
        Names of the traced variables of the next state.
    held : tuple
        What the digest knows by identity only. Held, so that nothing else can get the same identity.
    """

    digest: bytes
    step: tuple[Line, ...]
    output: tuple[Line, ...]
    ends: tuple[str, ...]
    held: tuple[Any, ...]


def structure_of(
    step: Tape, ends: Mapping[str, DependenceNode], output: Tape, leaves: Sequence[DependenceNode]
) -> Structure:
    """The structure of a recorded step that ends in the nodes `ends`, and of the output after it."""
    tokens = _Tokens()
    lines, after = _lines(step, tokens), _lines(output, tokens)
    whole = hashlib.blake2b(digest_size=16)
    for tape, tape_lines in ((step, lines), (output, after)):
        whole.update(b"\n".join([compared for compared, _, _ in tape_lines]))
        whole.update(b"\n\n")
        whole.update(repr([(name, node.position) for name, node in tape.roots.items()]).encode())
        whole.update(repr([(position, str(sink)) for position, sink in tape.sinks]).encode())
    whole.update(repr(sorted((name, node.position) for name, node in ends.items())).encode())
    whole.update(repr([node.position for node in leaves]).encode())
    return Structure(whole.digest(), lines, after, tuple(sorted(ends)), tuple(tokens.held.values()))


def first_difference(one: Structure, other: Structure) -> str | None:
    """Where the structures of a step and of the next one differ, in words; None if they do not."""
    if one.digest == other.digest:
        return None
    for what, left, right in (("step", one.step, other.step), ("output", one.output, other.output)):
        for position, (before, after) in enumerate(zip_longest(left, right)):
            if before is None or after is None or before[0] != after[0]:
                return (
                    f"primitive {position} of the {what} is {_words(before)} in one and {_words(after)} in "
                    "the next"
                )
    if one.ends != other.ends:
        changing = sorted(set(one.ends) ^ set(other.ends))
        return f"{', '.join(map(repr, changing))} depends on the state in one and not in the other"
    return "other results are put into the state or the output, or steer the program"


def digest_only(structure: Structure) -> Structure:
    """The structure without its lines: enough to compare it."""
    return replace(structure, step=(), output=())


def _words(line: Line | None) -> str:
    if line is None:
        return "absent"
    _, name, shape = line
    return f"{name} with result shape {shape}" if name else "a state variable"


def _lines(tape: Tape, tokens: _Tokens) -> tuple[Line, ...]:
    return tuple([_line(node, tokens) for node in tape.nodes])


def _line(node: DependenceNode, tokens: _Tokens) -> Line:
    parents = [parent.position for parent in node.parents]
    call, row = node.call, node.row
    if call is None or row is None:
        return _short(repr((parents, node.shape))), "", node.shape
    token: tuple[Any, ...] = (tokens.identity(call.function), call.argnums, node.steered, parents)
    # What is loose is swept as one whole: neither the arguments' shapes nor any index matters.
    if not node.loose and row.pull is not spread_over:
        loose = [i for i, parent in zip(call.argnums, node.parents, strict=True) if parent.loose]
        token += (node.shape, tokens.of_arguments(call, row, loose))
    return _short(repr(token)), tokens.name(call.function), node.shape


def _short(text: str) -> bytes:
    """The text itself, a tuple's, or a digest of a long one."""
    data = text.encode()
    return data if len(data) <= _LONGEST else b"long " + _digest(data).hex().encode()


_LONGEST = 400


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()


class _Tokens:
    """Stand-ins for untraced arguments, told apart by their text.

    `held`: objects of which only the identity is known.
    """

    def __init__(self) -> None:
        self.held: dict[int, Any] = {}
        self._names: dict[int, str] = {}
        self._contents: dict[int, tuple[np.ndarray[Any, Any], bytes]] = {}

    def identity(self, value: Any) -> int:
        """Identity of `value`, which is held from now on."""
        self.held[id(value)] = value
        return id(value)

    def name(self, function: Any) -> str:
        """Name of `function` for messages."""
        if id(function) not in self._names:
            self._names[id(function)] = getattr(function, "__name__", None) or repr(function)
        return self._names[id(function)]

    def of_arguments(self, call: Call, row: Row, loose: Container[int]) -> tuple[Any, ...]:
        """Token of all arguments but the `loose` ones; numbers count only where the rule looks at values."""
        found: list[Any] = []
        for i, argument in enumerate(call.args):
            if i in loose:
                found.append("loose")
            elif type(argument) is Shaped:
                found.append(("shaped", argument.shape))
            elif type(argument) is Window:
                found.append((*argument.token(), argument.whole))
            else:
                found.append(self._of(argument, values=i in row.values or i not in row.data))
        for name, value in sorted(call.kwargs.items()) if call.kwargs else ():
            found.append((name, self._of(value, values=row.values is not NONE)))
        return tuple(found)

    def _of(self, argument: Any, *, values: bool) -> Any:
        if isinstance(argument, np.generic):
            # An index counts the same whether it is Python's number or NumPy's.
            argument = argument.item()
        if isinstance(argument, (int, float, complex, str, bytes, type(None), type(...))):
            return argument if values or not isinstance(argument, (int, float, complex)) else "number"
        if isinstance(argument, Places):
            return ("places", argument.at.shape, argument.whole, self._content(argument.at))
        if isinstance(argument, Window):
            return (*argument.token(), argument.whole)
        if isinstance(argument, Shaped):
            return ("shaped", argument.shape)
        if isinstance(argument, np.ndarray):
            return (argument.dtype.str, argument.shape, self._content(argument) if values else b"")
        if isinstance(argument, slice):
            bounds = (argument.start, argument.stop, argument.step)
            return ("slice", *(self._of(bound, values=True) for bound in bounds))
        if isinstance(argument, (tuple, list)):
            return tuple(self._of(member, values=values) for member in argument)
        if isinstance(argument, dict):
            return tuple((key, self._of(value, values=values)) for key, value in argument.items())
        return self._of_object(argument)

    def _of_object(self, value: Any) -> Any:
        if isinstance(value, (np.dtype, np.generic, type)):
            return repr(value)
        if hasattr(value, "tocoo"):
            entries = value.tocoo()
            return ("sparse", value.shape, _digest(entries.row.tobytes()), _digest(entries.col.tobytes()))
        try:
            # All that is in it: texts of objects leave things out.
            return (repr(type(value)), _digest(pickle.dumps(value)))
        except (pickle.PicklingError, AttributeError, TypeError):
            return self.identity(value)

    def _content(self, array: np.ndarray[Any, Any]) -> bytes:
        """Digest of an array; calls share the same copy of an index."""
        if id(array) not in self._contents:
            self._contents[id(array)] = array, _digest(array.tobytes())
        return self._contents[id(array)][1]
