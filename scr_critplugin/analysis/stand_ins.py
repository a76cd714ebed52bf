"""What stands in a program's modules, objects and closures while it is recorded, and is taken out afterwards.

For `numpy` and its functions: a `Namespace`. For functions that cannot be followed: `opaque`. For arrays that
live outside the state, if asked for: traced arrays with the same, constant, contents, so that a scratch array
of a module can take traced values. An ``import`` inside a function gives the same as one at the top.

May import NumPy, autograd, `namespaces`, `opaque` and `reach`. Tests: ``tests/test_inplace_programs.py``.
"""

from __future__ import annotations

import builtins
import functools
import types
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import autograd.numpy as anp
import numpy as np
from autograd.tracer import isbox
from numpy.typing import NDArray

from scr_critplugin.analysis import reach
from scr_critplugin.analysis.memory import memory_order
from scr_critplugin.analysis.namespaces import Constant, Namespace, replaced
from scr_critplugin.analysis.opaque import Caller, Opaque, OpaqueModule
from scr_critplugin.analysis.reach import Slot, Walk
from scr_critplugin.analysis.tape import Outside, Tape
from scr_critplugin.analysis.values import owner_of

_LARGEST_COPY = 1 << 30
"""Bytes of the largest array outside the state that is copied, so that it can be written to."""
_OF_NUMPY = (np, anp, np.linalg, np.fft, np.random, np.lib, np.lib.stride_tricks)


class StandIns:
    """The stand-ins of one recording; `arrays`: also for arrays outside the state."""

    def __init__(self, tape: Tape, constant: Constant, instead: dict[int, Any], *, arrays: bool) -> None:
        self._constant = constant
        self._instead = instead
        self._arrays = Arrays(tape, constant) if arrays else None
        self._caller = Caller(tape, constant, self._suspended)
        self._known: dict[int, tuple[Any, Any]] = {
            id(module): (module, Namespace(module, constant, instead)) for module in _OF_NUMPY
        }
        self._walk = Walk()
        self._put: list[tuple[Slot, Any]] = []
        self._import = builtins.__import__
        self._is_suspended = False

    @contextmanager
    def around(self, users: Iterable[Any]) -> Iterator[None]:
        """Stand in the modules of the functions `users` while the block runs."""
        try:
            self.cover(users)
            builtins.__import__ = self._import_and_cover
            yield
        finally:
            builtins.__import__ = self._import
            for slot, other in reversed(self._put):
                if isinstance(slot.value, np.ndarray) or slot.get() is other:
                    slot.put(slot.value)

    def cover(self, users: Iterable[Any]) -> None:
        """Put stand-ins wherever something is reached from `users` for the first time."""
        for slot in self._walk.slots(users):
            other = self._stand_in(slot.value, slot.name)
            if other is not slot.value:
                try:
                    slot.put(other)
                except (AttributeError, TypeError):
                    # An object that cannot be changed keeps what it has.
                    continue
                self._put.append((slot, other))

    def _stand_in(self, value: Any, name: str) -> Any:
        kind = type(value)
        if kind is staticmethod:
            function = self._stand_in(value.__func__, name)
            return value if function is value.__func__ else staticmethod(function)
        if kind in _NEVER or (kind is types.FunctionType and not _is_foreign(value.__module__)):
            return value
        if isbox(value) or isinstance(value, (Namespace, Opaque, OpaqueModule)):
            return value
        known = self._known.get(id(value))
        if known is not None and known[0] is value:
            return known[1]
        if isinstance(value, np.ndarray):
            return value if self._arrays is None else self._arrays.stand_in(value, name)
        if type(value) is tuple and 0 < len(value) < 100:
            members = tuple(self._stand_in(member, name) for member in value)
            return members if any(a is not b for a, b in zip(members, value, strict=True)) else value
        other = self._caller.stand_in(value)
        if other is value and _is_of_numpy(value):
            other = replaced(value, _plain(value), self._constant, self._instead)
        if other is not value:
            self._known[id(value)] = value, other
        return other

    @contextmanager
    def _suspended(self) -> Iterator[None]:
        """The program sees its own names, as functions compiled or called from elsewhere expect."""
        if self._is_suspended:
            yield
            return
        taken = [
            (slot, other)
            for slot, other in self._put
            if not isinstance(slot.value, np.ndarray) and slot.get() is other
        ]
        for slot, _ in taken:
            slot.put(slot.value)
        self._is_suspended = True
        try:
            yield
        finally:
            self._is_suspended = False
            for slot, other in taken:
                slot.put(other)

    def _import_and_cover(
        self,
        name: str,
        globals: Any = None,
        locals: Any = None,
        fromlist: Any = (),
        level: int = 0,
    ) -> Any:
        found = self._import(name, globals, locals, fromlist, level)
        # A module that is imported for the first time must get the real thing: it keeps it.
        if self._is_suspended or globals is None or locals is globals:
            return found
        if reach.is_left_alone(globals.get("__name__")):
            return found
        members = [getattr(found, member, None) for member in fromlist or ()]
        self.cover([part for part in (found, *members) if isinstance(part, types.ModuleType)])
        return self._stand_in(found, name)


_NEVER = frozenset([str, int, float, bool, dict, list, type(None), type, property, classmethod])
"""Types of which nothing is stood in for: most of what a program reaches."""


@functools.cache
def _is_foreign(module: str | None) -> bool:
    return str(module).split(".")[0] in ("numpy", "autograd", "scipy")


def _is_of_numpy(value: Any) -> bool:
    """True for what was imported from NumPy by name (``from numpy import zeros``)."""
    module = str(getattr(value, "__module__", None) or type(value).__module__)
    return callable(value) and module.split(".")[0] in ("numpy", "autograd") and _plain(value) is not None


def _plain(value: Any) -> Any:
    """The member of NumPy that `value` is, or that it wraps; None if it is none."""
    name = getattr(value, "__name__", None)
    if not isinstance(name, str):
        return None
    for module in _OF_NUMPY:
        if getattr(module, name, None) is value:
            return getattr(np, name, None) if module is anp else value
    return None


class Arrays:
    """Traced arrays that stand for arrays outside the state, views of one memory for views of one memory."""

    def __init__(self, tape: Tape, constant: Constant) -> None:
        self._tape = tape
        self._constant = constant
        self._owners: dict[int, tuple[NDArray[Any], Any]] = {}

    def stand_in(self, array: NDArray[Any], name: str) -> Any:
        """What stands for `array`, or `array` itself if nothing can."""
        owner = owner_of(array)
        if not _can_be_copied(array, owner):
            return array
        if id(owner) not in self._owners:
            box = self._constant(owner.copy(order="K"))
            memory = box._memory
            if memory is None or memory.owner.strides != owner.strides:
                return array
            memory.touched = np.zeros(memory.ordered.shape, dtype=bool)
            self._owners[id(owner)] = owner, box
            ordered = owner.transpose(memory_order(owner))
            self._tape.outside.append(Outside(name, ordered, memory.touched))
        _, box = self._owners[id(owner)]
        memory = box._memory
        start = array.__array_interface__["data"][0] - owner.__array_interface__["data"][0]
        shown = np.ndarray(array.shape, array.dtype, memory.flat, start, array.strides)
        shown.flags.writeable = False
        return box.shown_as(shown)


def _can_be_copied(array: NDArray[Any], owner: NDArray[Any]) -> bool:
    return (
        type(array) is type(owner) is np.ndarray
        and owner.base is None
        and array.flags.writeable
        and array.size > 0
        and array.dtype == owner.dtype
        and array.dtype.kind in "fciub"
        and owner.nbytes <= _LARGEST_COPY
        and owner.transpose(memory_order(owner)).flags.c_contiguous
    )
