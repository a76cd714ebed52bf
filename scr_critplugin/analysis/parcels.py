"""Objects on their way to another rank: pickled, with the arrays of a traced program beside the pickle.

mpi4py pickles what its lowercase methods send. So does this, except that arrays, and numbers where asked,
travel as leaves, each with whether it was traced, so that the other side can put traced arrays in their
places.

May import NumPy, autograd's tracer, `boxes` and the errors. Tests: ``tests/test_mpi_profile.py``.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from autograd.builtins import SequenceBox
from autograd.tracer import isbox

from scr_critplugin.analysis.boxes import TracedArray
from scr_critplugin.analysis.tape import DependenceNode
from scr_critplugin.errors import ProfileError


@dataclass(frozen=True)
class Parcel:
    """A pickled object without its `leaves`.

    `traced` says which of them depend on the sender's state, `loose` of which even the shape does.
    """

    pickled: bytes
    leaves: tuple[Any, ...]
    traced: tuple[bool, ...]
    loose: tuple[bool, ...]

    @property
    def is_one_leaf(self) -> bool:
        """True if the object is an array or a number and nothing else."""
        return len(self.leaves) == 1 and self.pickled == _ONE_LEAF

    def open(self, replaced: Callable[[int, Any], Any]) -> Any:
        """The object, with `replaced(number, leaf)` in the place of each leaf."""
        return _Opener(self, replaced).load()

    def plain(self) -> Any:
        """The object with bare leaves."""
        return self.open(lambda number, leaf: leaf)


def wrap(thing: Any, *, leaves: bool, numbers: bool = False) -> tuple[Parcel, list[DependenceNode | None]]:
    """Pack an object; the nodes of its leaves, None for one that is not traced.

    Parameters
    ----------
    thing : any object that can be pickled
    leaves : bool
        Take arrays out of the pickle. Traced arrays always are.
    numbers : bool
        Take numbers out too.
    """
    packer = _Packer(leaves, numbers)
    pickled = packer.pack(thing)
    traced = tuple(node is not None for node in packer.nodes)
    loose = tuple(node is not None and node.loose for node in packer.nodes)
    return Parcel(pickled, tuple(packer.leaves), traced, loose), packer.nodes


class _Packer(pickle.Pickler):
    def __init__(self, arrays: bool, numbers: bool) -> None:
        self._buffer = io.BytesIO()
        super().__init__(self._buffer, pickle.HIGHEST_PROTOCOL)
        self._arrays = arrays
        self._numbers = numbers
        self.leaves: list[Any] = []
        self.nodes: list[DependenceNode | None] = []
        # By identity: an array that the object holds twice arrives once.
        self._places: dict[int, int] = {}
        self._alive: list[Any] = []

    def pack(self, thing: Any) -> bytes:
        self.dump(thing)
        return self._buffer.getvalue()

    def persistent_id(self, thing: Any) -> int | None:
        if not self._is_leaf(thing):
            return None
        place = self._places.get(id(thing))
        if place is None:
            place = self._places[id(thing)] = len(self.leaves)
            self._alive.append(thing)
            value, node = _taken_apart(thing)
            self.leaves.append(value.copy() if isinstance(value, np.ndarray) else value)
            self.nodes.append(node)
        return place

    def reducer_override(self, thing: Any) -> Any:
        if isinstance(thing, SequenceBox):
            # autograd's box around the several results of a primitive.
            return (type(thing._value), (list(thing),))
        return NotImplemented

    def _is_leaf(self, thing: Any) -> bool:
        if isinstance(thing, TracedArray):
            return True
        if type(thing) is np.ndarray:
            return self._arrays and thing.dtype.kind in "fciub"
        return self._numbers and isinstance(thing, (bool, int, float, complex, np.number, np.bool_))


class _Opener(pickle.Unpickler):
    def __init__(self, parcel: Parcel, replaced: Callable[[int, Any], Any]) -> None:
        super().__init__(io.BytesIO(parcel.pickled))
        self._opened = [replaced(number, leaf) for number, leaf in enumerate(parcel.leaves)]

    def persistent_load(self, place: int) -> Any:
        return self._opened[place]


def _taken_apart(thing: Any) -> tuple[Any, DependenceNode | None]:
    if not isinstance(thing, TracedArray):
        return thing, None
    node = thing._node
    if isbox(thing._value) or not isinstance(node, DependenceNode):
        raise ProfileError(
            "a value inside a gradient of autograd is communicated, which cannot be followed. Take the "
            "gradient "
            "of a function that does not communicate"
        )
    return thing._value, None if node.constant else node


_ONE_LEAF = wrap(0.0, leaves=False, numbers=True)[0].pickled
