"""The tape: every primitive call that touches traced state, and every place where a traced value leaves.

`DependenceNode` is a second node class beside autograd's own, so autograd's tracer records calls here instead
of building derivatives. Nodes are kept in the order of execution; a backward sweep is one pass over them.

May import autograd's tracer, `calls`, `departures`, `masks`, `rules` and `values`.
Tests: ``tests/test_dependence.py``.
"""

from __future__ import annotations

import os
import sys
import sysconfig
import warnings
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from types import FrameType
from typing import Any

import numpy as np
from autograd.tracer import Node, isbox, register_notrace

from scr_critplugin.analysis.calls import Call, Copies, remember, shaped
from scr_critplugin.analysis.departures import Outcomes, Place
from scr_critplugin.analysis.masks import Shape, shape_of
from scr_critplugin.analysis.rules import (
    IN_PLACE_BY_DESIGN,
    NONE,
    Row,
    is_shaped_by_values,
    row_of,
    untraced_primitives,
)
from scr_critplugin.analysis.values import Saved, Values, owner_of
from scr_critplugin.errors import ProfileError, ProfileWarning


@dataclass(frozen=True, slots=True)
class Untraced:
    """Something that could not be followed, and where."""

    words: str
    file: str
    line: int
    names: dict[str, Any]

    def warn(self) -> None:
        """Give a warning, once a place unless the user's filters say otherwise."""
        seen = self.names.setdefault("__warningregistry__", {})
        module = self.names.get("__name__")
        warnings.warn_explicit(self.words, ProfileWarning, self.file, self.line, module, seen)


@dataclass(frozen=True, slots=True)
class Outside:
    """An array outside the state, its axes in memory order, and which of its elements were written."""

    name: str
    array: np.ndarray[Any, Any]
    written: np.ndarray[Any, np.dtype[np.bool_]]


class Tape:
    """The record of one run.

    `nodes` in order of execution, `roots` by name, `sinks`: which node left where, and `outcomes`: with what
    values. `steering_counts`: whether values that only steer count as outputs. `keeps_values`: calls are
    recorded with the `values` that adjoints need.
    """

    def __init__(self, *, keeps_values: bool = False) -> None:
        self.nodes: list[DependenceNode] = []
        self.roots: dict[str, DependenceNode] = {}
        self.sinks: dict[tuple[int, Place], None] = {}
        self.outcomes: dict[Place, Outcomes] = {}
        self.steering_counts = True
        self.warnings: dict[str, Untraced] = {}
        """What could not be followed, in words, each once by place and name, in the order it was met."""
        self.outside: list[Outside] = []
        """Arrays outside the state that could be written to."""
        self.closed = False
        self.box: Callable[[Any, DependenceNode], Any] = lambda value, node: value
        """Puts a traced array around a value that comes from elsewhere; set by `boxes.recording`."""
        self.memories: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
        """Memories of traced arrays by the identity of the array that owns the elements (see `memory`)."""
        self.without_memory: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
        """Arrays that own elements and cannot be written to, nor can views of them, by identity."""
        self.kept: list[Any] = []
        """Memories that must not be forgotten before the tape is."""
        self.indices = Copies()
        """Copies of untraced arguments whose values matter."""
        self.values = Values(self.memories) if keeps_values else None
        self._unfinished: Any = None
        self._begun_at = ""

    def root(self, name: str, value: Any) -> DependenceNode:
        """A node for the state variable `name`."""
        node: DependenceNode = DependenceNode.new_root(self, value)
        self.roots[name] = node
        return node

    def keep_memories(self, members: Any) -> None:
        """Keep the memories of a sequence's members as long as the tape: the sequence holds bare arrays."""
        for member in members:
            if isinstance(member, np.ndarray):
                memory = self.memories.get(id(owner_of(member)))
                if memory is not None:
                    self.kept.append(memory)
            elif isinstance(member, (list, tuple)):
                self.keep_memories(member)

    def constant(self, value: Any) -> DependenceNode:
        """A node for a `value` that does not depend on the state. It has no place on the tape."""
        node: DependenceNode = DependenceNode.__new__(DependenceNode)
        node.be_constant(self, value)
        return node

    def leave(self, node: DependenceNode, kind: str) -> Place | None:
        """Record that the value of `node` leaves the data flow at the innermost frame of user code.

        Returns where; None if the value does not depend on the state.
        """
        if node.constant:
            return None
        frame = _user_frame()
        place = Place(frame.f_code.co_filename, frame.f_lineno, kind)
        self.sinks[node.position, place] = None
        if kind == "array":
            self.warn("conversion to an ordinary array", frame)
        elif kind.startswith(_OPAQUE):
            self.warn(kind, frame)
        return place

    def note(self, place: Place, outcome: Any) -> None:
        """Record the value that was taken at `place`."""
        self.outcomes.setdefault(place, Outcomes()).add(outcome)

    def counted(self) -> Iterator[int]:
        """Positions of the nodes whose values count as outputs because they left."""
        return (position for position, place in self.sinks if self.steering_counts or not place.steers)

    def warn(self, what: str, frame: FrameType) -> None:
        """Name in `warnings` what could not be followed."""
        file, line = frame.f_code.co_filename, frame.f_lineno
        found = f"{what} cannot be followed; everything that it was given counts as needed"
        self.warnings.setdefault(f"{file}:{line}: {found}", Untraced(found, file, line, frame.f_globals))

    def give_warnings(self) -> None:
        """Give the user a `ProfileWarning` for each of `warnings`, at its place."""
        for untraced in self.warnings.values():
            untraced.warn()

    def begin(self, result: Any) -> None:
        """Remember that `result` is still to be written to where its operand was a view of."""
        self._unfinished = result
        self._begun_at = _place(_user_frame())

    def finish(self, result: Any) -> None:
        """Note that `result` is about to be written."""
        if result is self._unfinished:
            self._unfinished = None

    def refuse_if_unfinished(self) -> None:
        """Raise if something else comes before the result of `begin` is written."""
        if self._unfinished is not None:
            raise ProfileError(
                "in-place arithmetic on a view at a place that the state decides cannot be followed at "
                f"{self._begun_at}, unless it is one statement on the array (a[k:m] += x). Write it so"
            )

    def enter(self, node: DependenceNode) -> int:
        """Append `node`; its position."""
        self.refuse_if_closed()
        if self._unfinished is not None:
            self.refuse_if_unfinished()
        self.nodes.append(node)
        return len(self.nodes) - 1

    def refuse_if_closed(self) -> None:
        """Raise if the recording is over."""
        if self.closed:
            raise ProfileError(
                "a traced value of an earlier step was used again: it was kept outside the state, in a "
                "global, an attribute or a closure. Put it into the state"
            )


class DependenceNode(Node):  # type: ignore[misc]
    """One recorded call, or a state variable (then `call` is None).

    A call all of whose traced arguments are `constant` is constant too, and not recorded.

    `steered`: a traced value decides what the call connects. `loose`: another state would give the result
    another shape (``x[x > 0]`` and what is made of it); its mask is one flag for the whole of it. `coarse`:
    the structure seen holds for this steering value or shape only, so all results depend on all arguments.
    """

    __slots__ = (
        "call",
        "coarse",
        "constant",
        "loose",
        "parents",
        "position",
        "row",
        "saved",
        "shape",
        "steered",
        "tape",
    )

    tape: Tape
    position: int
    shape: Shape
    call: Call | None
    row: Row | None
    saved: Saved | None
    steered: bool
    loose: bool
    coarse: bool
    constant: bool
    parents: tuple[DependenceNode, ...]

    def __init__(
        self,
        value: Any,
        fun: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        parent_argnums: tuple[int, ...],
        parents: tuple[DependenceNode, ...],
    ) -> None:
        function = getattr(fun, "fun", fun)
        tape, constants = parents[0].tape, 0
        for parent in parents:
            parent.tape.refuse_if_closed()
            constants += parent.constant
        if isbox(value) and getattr(value._node, "constant", False):
            # A primitive of the program's own, whose modules make such arrays.
            value = value._value
        _refuse_in_place(function, value, args, kwargs, parent_argnums)
        if isinstance(value, (list, tuple)):
            tape.keep_memories(value)
        if constants:
            varying = [(i, p) for i, p in zip(parent_argnums, parents, strict=True) if not p.constant]
            if not varying:
                self.be_constant(tape, value)
                return
            parent_argnums, parents = (tuple(part) for part in zip(*varying, strict=True))
        row = row_of(function, args, kwargs)
        self.tape = tape
        self.parents = parents
        self.shape = shape_of(value)
        self.row = row
        self.call = _call(tape, function, row, args, kwargs, parent_argnums, self.shape)
        self.position = tape.enter(self)
        values = tape.values
        self.saved = None if values is None else values.of_call(function, value, args, kwargs, parent_argnums)
        self.constant = False
        self.steered = False
        for argnum, parent in zip(parent_argnums, parents, strict=True):
            if not row.known:
                self.tape.leave(parent, f"unknown primitive {_name(function)}")
                continue
            if row.may_raise:
                self.tape.leave(parent, f"errors of {_name(function)}")
            if argnum not in row.data:
                self.steered = True
                self.tape.leave(parent, f"argument of {_name(function)}")
        has_loose = any([parent.loose for parent in parents])
        self.loose = is_shaped_by_values(function, args, steered=self.steered) or (
            has_loose and not self._keeps_shape(row)
        )
        self.coarse = self.steered or self.loose or (has_loose and not row.into_memory)
        if self.loose:
            self.shape = ()

    def _keeps_shape(self, row: Row) -> bool:
        """True if a loose argument cannot make this loose: a single number, or a write into other memory."""
        return self.shape == () or (row.into_memory and not self.parents[0].loose)

    def initialize_root(self, tape: Tape, value: Any) -> None:
        """Make this the node of a state variable."""
        self._be_no_call(tape, value)
        self.saved = None if tape.values is None else tape.values.of_root(value)
        self.position = tape.enter(self)

    def be_constant(self, tape: Tape, value: Any) -> None:
        """Make this the node of a value that does not depend on the state."""
        self._be_no_call(tape, value)
        self.constant = True

    def _be_no_call(self, tape: Tape, value: Any) -> None:
        self.tape = tape
        self.parents = ()
        self.shape = shape_of(value)
        self.call = self.row = self.saved = None
        self.constant = self.steered = self.loose = self.coarse = False
        self.position = -1

    def __deepcopy__(self, memo: dict[int, Any]) -> DependenceNode:
        return self


for _primitive in untraced_primitives():
    register_notrace(DependenceNode, _primitive)


def _call(
    tape: Tape,
    function: Callable[..., Any],
    row: Row,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    argnums: tuple[int, ...],
    shape: Shape,
) -> Call:
    indices, values = tape.indices, row.values
    kept = tuple(
        [
            shaped(arg) if i in argnums else remember(arg, indices if i in values else None)
            for i, arg in enumerate(args)
        ]
    )
    named = None if values is NONE else indices
    options = {name: remember(value, named) for name, value in kwargs.items()} if kwargs else {}
    return Call(function, kept, options, argnums, shape)


def _refuse_in_place(
    function: Callable[..., Any],
    value: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    argnums: tuple[int, ...],
) -> None:
    """Raise if the call wrote into an array that the program holds untraced: its dependence would be lost."""
    # A function that returns nothing (copyto, put) is called for what it writes.
    written = value is None or (bool(kwargs) and kwargs.get("out") is not None)
    if isinstance(value, np.ndarray):
        for i, arg in enumerate(args):
            if arg is value and i not in argnums and function not in IN_PLACE_BY_DESIGN:
                written = True
    if written:
        raise ProfileError(
            f"{_name(function)} writes into an existing array, which cannot be traced at "
            f"{_place(_user_frame())}. Write the step in functional form: return new arrays"
        )
    if isbox(value):
        raise ProfileError(
            f"{_name(function)} was given a traced value by keyword, which cannot be traced at "
            f"{_place(_user_frame())}. Pass it by position"
        )


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", repr(function))


_OPAQUE = ("unknown primitive ", "untraced ", "call of ", "conversion ")
"""Kinds of sinks that name a function, or a conversion, of which nothing is known."""

_OWN_PACKAGES = ("autograd", "numpy", "scipy", "mpi4py", "scr_critplugin.analysis", "scr_critplugin.mpi")
_LIBRARY = sysconfig.get_path("stdlib") + os.sep
_INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")


def _user_frame() -> FrameType:
    frame = sys._getframe(1)
    while frame.f_back is not None and _is_machinery(
        frame.f_globals.get("__name__", ""), frame.f_code.co_filename
    ):
        frame = frame.f_back
    return frame


@cache
def _is_machinery(module: str, file: str) -> bool:
    """True for code that a user did not write: the numerical packages, this one, and Python's library."""
    if file.startswith("<frozen ") or (
        file.startswith(_LIBRARY) and not any(folder in file for folder in _INSTALLED)
    ):
        return True
    return any(module == package or module.startswith(package + ".") for package in _OWN_PACKAGES)


def _place(frame: FrameType) -> str:
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
