"""The memory behind traced arrays, so that programs may write into them.

NumPy does all the writing, through real views of real memory, so overlaps and broadcasts are as it defines
them. What is recorded is which elements a write replaced (`store`), and, when a view is used that something
was written to since, which elements it shows (`load`): nothing is rebuilt at a write, and unread views cost
nothing.

A memory whose contents do not depend on the state has a constant node; reads and writes of constants leave no
record.

May import `tape`, `rules` and `windows`. Tests: ``tests/test_inplace.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import autograd.builtins
import autograd.core
import numpy as np
from numpy.typing import NDArray

from scr_critplugin.analysis import rules, windows
from scr_critplugin.analysis.rules import IN_PLACE_BY_DESIGN, Row, always
from scr_critplugin.analysis.tape import DependenceNode, Tape
from scr_critplugin.analysis.values import owner_of
from scr_critplugin.analysis.windows import Region, window_of


def load(memory: Any, region: Region) -> Any:
    """Name of a recorded read."""


def store(memory: Any, region: Region, *sources: Any) -> Any:
    """Name of a recorded write."""


def mix(memory: Any, region: Region, *sources: Any) -> Any:
    """Name of a recorded write that may leave old contents (``where=``, ``np.add.at``)."""


def spread(memory: Any, region: Region, *sources: Any) -> Any:
    """Name of a recorded write at places that a traced value tells."""


for _function, _row in {
    load: Row(windows.loaded, values=range(1, 2), moves=always),
    store: Row(windows.stored, values=range(1, 2), moves=always, into_memory=True),
    mix: Row(windows.mixed_in, values=range(1, 2), into_memory=True),
    spread: Row(windows.spread_over, into_memory=True),
}.items():
    rules.add_rule(_function, _row)


class Memory:
    """An array that owns its elements, and the node that stands for what they are now.

    `version` counts the writes; `flat` is the writable memory in its own order. `lent`: how many things that
    cannot be followed hold the memory and may read and write it at any time. `touched`: a mask of what was
    ever written, kept for arrays from outside the state only.
    """

    __slots__ = (
        "__weakref__",
        "_in_order",
        "_node",
        "flat",
        "lent",
        "ordered",
        "owner",
        "touched",
        "version",
    )

    def __init__(self, owner: NDArray[Any], node: DependenceNode) -> None:
        self.owner = owner
        self.version = 0
        self._node = node
        self._in_order = owner.flags.c_contiguous
        self.ordered = owner if self._in_order else owner.transpose(memory_order(owner))
        self.flat = self.ordered.reshape(-1)
        self.lent = 0
        self.touched: NDArray[np.bool_] | None = None

    @property
    def node(self) -> DependenceNode:
        """Node of the contents; its shape is the owner's, with the axes in memory order."""
        if not self._in_order:
            self._node = DependenceNode(
                self.ordered, np.transpose, (self.owner, memory_order(self.owner)), {}, (0,), (self._node,)
            )
            self._in_order = True
        return self._node

    def writable(self, view: NDArray[Any]) -> NDArray[Any]:
        """The same elements as `view`, which may be read-only, to be written to now."""
        values = self._node.tape.values
        if values is not None:
            values.before_write(self.owner, view)
        start = view.__array_interface__["data"][0] - self.flat.__array_interface__["data"][0]
        return np.ndarray(view.shape, view.dtype, self.flat, start, view.strides)

    def lend(self, view: NDArray[Any]) -> NDArray[Any]:
        """The same elements as `view`, for code that cannot be followed.

        What that code is given must leave the data flow (`Tape.leave`). Then whatever it writes comes from
        values that are needed, and what it leaves as it was still has its record.
        """
        self.lent += 1
        self.version += 1
        if self.touched is not None:
            self.touched[...] = True
        return self.writable(view)

    def load(self, view: NDArray[Any]) -> DependenceNode:
        """Record a read of `view`; the memory's own node if that is all of it."""
        node = self.node
        if view.shape == node.shape and view.flags.c_contiguous and view.itemsize == self.flat.itemsize:
            return node
        return DependenceNode(view, load, (self.ordered, window_of(view, self.flat)), {}, (0,), (node,))

    def write(
        self,
        function: Callable[..., Any],
        region: Region,
        sources: Sequence[tuple[Any, DependenceNode | None]],
        how: Any = "assign",
    ) -> None:
        """Record that `function` (`store`, `mix` or `spread`) wrote `sources` to `region`.

        `how` is for the adjoint of `mix` and `spread`: "assign", "where" (a mask is the last source), or the
        ufunc whose ``at`` it was; anything else has no adjoint.
        """
        if self.touched is not None:
            region.mark(self.touched)
        traced = {i: node for i, (_, node) in enumerate(sources, start=2) if node is not None}
        current = self.node
        if current.constant and all(node.constant for node in traced.values()):
            return
        # A write at places that the state decides may go anywhere: where it went this time says nothing.
        where = None if function is spread else region
        arguments = (self.ordered, where, *(value for value, _ in sources))
        options = {} if function is store else {"how": how}
        if function is spread and current.tape.values is not None:
            options["region"] = region
        self._node = DependenceNode(
            self.ordered, function, arguments, options, (0, *traced), (current, *traced.values())
        )
        self.version += 1
        if self.lent:
            self._node.tape.leave(self._node, "array that was lent")


ACCUMULATORS = IN_PLACE_BY_DESIGN | {autograd.core.VSpace.add.fun}
"""autograd's sums of gradients, which it later adds to in place."""


def memory_of(value: NDArray[Any], node: DependenceNode) -> tuple[NDArray[Any], Memory | None]:
    """The array to use for the result `value` of `node`, and its memory.

    None if it has none that may be written to: an empty array, a view at a place that the state decides, or a
    member of a sequence whose other members might share it.
    """
    if value.size == 0:
        return value, None
    tape: Tape = node.tape
    owner = owner_of(value)
    function = None if node.call is None else node.call.function
    memory = tape.memories.get(id(owner))
    if memory is not None and (function not in ACCUMULATORS or value is not owner):
        if node.steered or (node.row is not None and not node.row.known):
            # Another value of the state would show another part: to be read only, and as it is now.
            return _without_memory(value.copy(), tape), None
        return value, memory
    if id(owner) in tape.without_memory:
        return value, None
    from_sequence = function is autograd.builtins.container_take.fun
    if value is not owner or not _is_compact(owner):
        # A view of a temporary that nobody else holds.
        if from_sequence:
            _without_memory(owner, tape)
            return value, None
        owner = value = np.array(value)
    memory = tape.memories[id(owner)] = Memory(owner, node)
    if from_sequence:
        tape.kept.append(memory)
    return value, memory


def _without_memory(owner: NDArray[Any], tape: Tape) -> NDArray[Any]:
    """`owner`, of which no view can be written to either."""
    tape.without_memory[id(owner)] = owner
    return owner


def whole_window(memory: Memory, view: NDArray[Any]) -> Region:
    """The region of `view` in `memory`."""
    return window_of(view, memory.flat)


def memory_order(owner: NDArray[Any]) -> tuple[int, ...]:
    """The axes of `owner` in the order in which they lie in memory."""
    return tuple(int(axis) for axis in np.argsort([-stride for stride in owner.strides], kind="stable"))


def _is_compact(owner: NDArray[Any]) -> bool:
    flags = owner.flags
    return (
        type(owner) is np.ndarray
        and owner.base is None
        and flags.writeable
        and (flags.c_contiguous or owner.transpose(memory_order(owner)).flags.c_contiguous)
    )
