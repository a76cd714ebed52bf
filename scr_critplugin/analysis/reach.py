"""What a program reaches from its functions: the places that hold modules, functions, objects and arrays.

From a function the walk goes to its globals, closure, defaults and wrapped function; from a module or class
to its members; from an object to its attributes; from a list, tuple, dict or partial to what is in it.
Python's own library and the numerical packages are left alone.

May import NumPy and autograd's tracer. Tests: ``tests/test_inplace_programs.py``.
"""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from autograd.tracer import isbox, trace_primitives_map

_LEFT_ALONE = frozenset(
    [
        "numpy",
        "scipy",
        "autograd",
        "numba",
        "numexpr",
        "mpi4py",
        "matplotlib",
        "pandas",
        "pytest",
        "_pytest",
        "pluggy",
        "hypothesis",
        "cffi",
        "_cffi_backend",
        "h5py",
        "scr_critplugin",
    ]
) | frozenset(sys.stdlib_module_names - {"__main__"})
_MOST_MEMBERS = 10_000
"""Longer lists and dicts hold data, not parts of a program."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A place that holds `value`: member `key` of a dict or list, or attribute `key` of anything else."""

    holder: Any
    key: Any
    value: Any
    name: str

    def get(self) -> Any:
        """What the place holds now; None if nothing."""
        if type(self.holder) is dict:
            return self.holder.get(self.key)
        if type(self.holder) is list:
            return self.holder[self.key] if self.key < len(self.holder) else None
        if isinstance(self.holder, type):
            held: Any = vars(self.holder).get(self.key)
            return held.__func__ if self._is_wrapped(held) else held
        return getattr(self.holder, self.key, None)

    def put(self, value: Any) -> None:
        """Let the place hold `value`."""
        if type(self.holder) in (dict, list):
            self.holder[self.key] = value
        elif isinstance(self.holder, functools.partial):
            partial: Any = self.holder
            state = {"func": partial.func, "args": partial.args, "keywords": partial.keywords}
            state[self.key] = value
            partial.__setstate__((*state.values(), vars(partial)))
        elif (
            isinstance(self.holder, type) and hasattr(value, "__get__") and not hasattr(self.value, "__get__")
        ):
            # What it stands for does not become a method.
            setattr(self.holder, self.key, staticmethod(value))
        else:
            setattr(self.holder, self.key, value)

    def _is_wrapped(self, held: Any) -> bool:
        return type(held) is staticmethod and type(self.value) is not staticmethod


def is_left_alone(module: Any) -> bool:
    """True if the module of that name is no part of a program."""
    return _is_left_alone(str(module))


@functools.cache
def _is_left_alone(module: str) -> bool:
    return module.split(".")[0] in _LEFT_ALONE


class Walk:
    """Walks over what programs reach; visits nothing twice."""

    def __init__(self) -> None:
        # A program may hold autograd's table of wrapped functions; it must stay as it is.
        self._seen: dict[int, Any] = {id(trace_primitives_map): trace_primitives_map}

    def slots(self, users: Iterable[Any]) -> Iterator[Slot]:
        """The places that are reached from `users` for the first time."""
        waiting = [user for user in users if _leads_on(user)]
        while waiting:
            value = waiting.pop()
            if id(value) in self._seen:
                continue
            # Kept, so that no other object takes its identity.
            self._seen[id(value)] = value
            for slot in _slots_of(value):
                if _leads_on(slot.value):
                    waiting.append(slot.value)
                yield slot
            waiting += [further for further in _beside(value) if _leads_on(further)]


def _slots_of(value: Any) -> Iterator[Slot]:
    if isinstance(value, types.FunctionType):
        yield from _slots_of_function(value)
    elif isinstance(value, types.ModuleType):
        yield from _members(value.__dict__, value.__name__)
    elif isinstance(value, type):
        for key, member in list(vars(value).items()):
            if not key.startswith("__"):
                yield Slot(value, key, member, f"{value.__qualname__}.{key}")
    elif type(value) is dict:
        yield from _members(value, str(value.get("__name__", "dict")))
    elif type(value) is list:
        for i, member in enumerate(value[:_MOST_MEMBERS]):
            yield Slot(value, i, member, f"list[{i}]")
    elif isinstance(value, functools.partial):
        for key in ("func", "args", "keywords"):
            yield Slot(value, key, getattr(value, key), f"partial.{key}")
    else:
        yield from _attributes(value)


def _members(names: dict[Any, Any], where: str) -> Iterator[Slot]:
    if len(names) <= _MOST_MEMBERS:
        for key, member in list(names.items()):
            if not str(key).startswith("__") or key == "__wrapped__":
                yield Slot(names, key, member, f"{where}.{key}")


def _slots_of_function(function: types.FunctionType) -> Iterator[Slot]:
    name = function.__qualname__
    is_foreign = is_left_alone(function.__globals__.get("__name__"))
    if is_foreign and function.__globals__["__name__"].split(".")[0] not in sys.stdlib_module_names:
        return
    for variable, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield Slot(cell, "cell_contents", cell.cell_contents, f"{variable} of {name}")
        except ValueError:
            # Not filled yet.
            continue
    if is_foreign:
        # A decorator of Python's own library.
        yield from _members(function.__dict__, name)
        return
    if function.__defaults__:
        yield Slot(function, "__defaults__", function.__defaults__, f"a default of {name}")
    if function.__kwdefaults__:
        yield from _members(function.__kwdefaults__, name)
    yield from _members(function.__dict__, name)


def _attributes(value: Any) -> Iterator[Slot]:
    names = getattr(value, "__dict__", None)
    where = type(value).__qualname__
    if type(names) is dict:
        yield from _members(names, where)
    for one in type(value).__mro__:
        slots = one.__dict__.get("__slots__", ())
        for key in (slots,) if isinstance(slots, str) else slots:
            if not key.startswith("__") and hasattr(value, key):
                yield Slot(value, key, getattr(value, key), f"{where}.{key}")


def _beside(value: Any) -> list[Any]:
    """What else belongs to `value`, in places that nothing else can be put into."""
    if isinstance(value, types.FunctionType):
        return [] if is_left_alone(value.__globals__.get("__name__")) else [value.__globals__]
    if isinstance(value, types.MethodType):
        return [value.__func__, value.__self__]
    if isinstance(value, (staticmethod, classmethod)):
        return [value.__func__]
    if isinstance(value, property):
        return [value.fget, value.fset]
    if isinstance(value, tuple):
        return list(value[:_MOST_MEMBERS])
    if isinstance(value, type):
        return [*value.__bases__, sys.modules.get(value.__module__)]
    held = [] if isinstance(value, (types.ModuleType, dict, list)) else [type(value)]
    return [*held, getattr(value, "__wrapped__", None)] if _may_wrap(value) else held


def _may_wrap(value: Any) -> bool:
    return callable(value) and not isinstance(value, (type, types.ModuleType))


_DATA = (str, bytes, int, float, complex, np.ndarray, np.generic, type(None))
_PARTS = (
    *(types.FunctionType, types.MethodType, functools.partial, staticmethod, classmethod, property),
    *(dict, list, tuple),
)


def _leads_on(value: Any) -> bool:
    if type(value) is types.FunctionType:
        return True
    if isbox(value) or isinstance(value, _DATA):
        return False
    if isinstance(value, types.ModuleType):
        return not is_left_alone(value.__name__)
    if isinstance(value, type):
        return not is_left_alone(value.__module__)
    if type(value) is dict and "__name__" in value:
        return not is_left_alone(value["__name__"])
    if isinstance(value, _PARTS):
        return True
    return hasattr(value, "__wrapped__") or not is_left_alone(type(value).__module__)
