"""Functions that cannot be followed: compiled by numba, in C through ctypes, cffi or an extension, SciPy's.

A stand-in for such a function hands over the memory of traced arrays itself, writable, so that it computes
and writes what it does in the plain run. All it is given counts as needed, and so all that it returns or
writes comes from needed values; the call is named in a warning.

May import NumPy, `boxes` and `namespaces`. Tests: ``tests/test_opaque.py``.
"""

from __future__ import annotations

import ctypes
import types
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from scr_critplugin.analysis import reach
from scr_critplugin.analysis.boxes import TracedArray, lent, mapped
from scr_critplugin.analysis.namespaces import Constant, made_writable
from scr_critplugin.analysis.tape import Tape
from scr_critplugin.analysis.values import owner_of

_C_FUNCTION = ctypes.CFUNCTYPE(None).__mro__[1]
_COMPILED = {"cython_function_or_method", "fortran", "nb_func", "builtin_function_or_method"}
"""Names of the types of functions in extension modules (Cython, f2py, nanobind, C and pybind11)."""
_PACKAGES = {"scipy"}
"""Packages whose Python functions are taken as a whole too: few would work on traced arrays."""
_WITHOUT_MEMORY = {"numba", "scipy"}
"""Packages whose functions keep no pointers to what they were given, other than in what they return."""


def is_opaque(value: Any) -> bool:
    """True for a function that cannot be followed, and for a library or module of such functions."""
    if isinstance(value, (np.ufunc, type)):
        return False
    kind = type(value)
    root = kind.__module__.split(".")[0]
    if root in ("numba", "cffi", "_cffi_backend"):
        return callable(value) or kind.__name__ in ("Lib", "FFI", "FFILibrary")
    if isinstance(value, (_C_FUNCTION, ctypes.CDLL)):
        return True
    if isinstance(value, types.ModuleType):
        return _is_compiled_module(value)
    module = str(getattr(value, "__module__", None) or "").split(".")[0]
    if isinstance(value, types.FunctionType):
        return module in _PACKAGES
    if kind.__name__ not in _COMPILED:
        return False
    # A bound method of a built-in object has no module.
    return bool(module) and (module in _PACKAGES or not reach.is_left_alone(module))


def _is_compiled_module(module: types.ModuleType) -> bool:
    root = module.__name__.split(".")[0]
    if root in _PACKAGES:
        return True
    file = getattr(module, "__file__", None) or ""
    return file.endswith((".so", ".pyd")) and not reach.is_left_alone(root)


class Opaque:
    """Stands for the opaque `original`, a function or something that has some."""

    __slots__ = ("_caller", "_members", "_original")

    def __init__(self, original: Any, caller: Caller) -> None:
        object.__setattr__(self, "_original", original)
        object.__setattr__(self, "_caller", caller)
        object.__setattr__(self, "_members", {})

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._caller.call(self._original, args, kwargs)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """A method, where the original becomes one."""
        bind = getattr(type(self._original), "__get__", None)
        if bind is None or instance is None:
            return self
        return self._part(bind(self._original, instance, owner))

    def __getattr__(self, name: str) -> Any:
        return self._part(getattr(self._original, name))

    def __getitem__(self, key: Any) -> Any:
        # A library's function by name; a launch configuration.
        return self._part(self._original[key])

    def _part(self, member: Any) -> Any:
        return Opaque(member, self._caller) if callable(member) and not isinstance(member, type) else member

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._original, name, original_of(value))

    def __repr__(self) -> str:
        return repr(self._original)


class OpaqueModule(types.ModuleType):
    """Stands for an opaque module."""

    def __init__(self, original: types.ModuleType, caller: Caller) -> None:
        super().__init__(original.__name__, original.__doc__)
        self.__dict__["_original"] = original
        self.__dict__["_caller"] = caller

    def __getattr__(self, name: str) -> Any:
        return self._caller.stand_in(getattr(self._original, name))


def original_of(value: Any) -> Any:
    """What `value` stands for; itself if it stands for nothing."""
    return value._original if isinstance(value, (Opaque, OpaqueModule)) else value


class Caller:
    """Calls opaque functions. `suspended`: a context in which the program sees its own names."""

    def __init__(
        self, tape: Tape, constant: Constant, suspended: Callable[[], AbstractContextManager[None]]
    ) -> None:
        self._tape = tape
        self._constant = constant
        self._suspended = suspended

    def stand_in(self, value: Any) -> Any:
        """What stands for `value` if it is opaque, else `value`."""
        if not is_opaque(value):
            return value
        return OpaqueModule(value, self) if isinstance(value, types.ModuleType) else Opaque(value, self)

    def call(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """``function(*args, **kwargs)`` on the memory of the traced arrays in them."""
        kind = f"call of {_name(function)}"
        boxes = list(_traced([args, kwargs]))
        plain_args, plain_kwargs = (lent(_with_originals(part), kind) for part in (args, kwargs))
        with self._suspended():
            result = function(*plain_args, **plain_kwargs)
        if _keeps_nothing(function, result):
            for box in boxes:
                box.give_back()
        return self._followed(result, boxes, plain_args)

    def _followed(self, result: Any, boxes: list[TracedArray], args: tuple[Any, ...]) -> Any:
        if isinstance(result, np.ndarray):
            memory = self._tape.memories.get(id(owner_of(result)))
            for box in boxes:
                if memory is not None and box._memory is memory:
                    return box.shown_as(_read_only(result))
            return made_writable(result, args, self._constant)
        return mapped(result, lambda member: self._followed(member, boxes, args))


def _keeps_nothing(function: Any, result: Any) -> bool:
    """True if nothing can write through an array that the call was given once it has returned `result`."""
    home = str(getattr(function, "__module__", None)), type(function).__module__
    return any(name.split(".")[0] in _WITHOUT_MEMORY for name in home) and _is_plain(result)


def _is_plain(result: Any) -> bool:
    if isinstance(result, (tuple, list)):
        return all(map(_is_plain, result))
    return isinstance(result, (np.ndarray, np.generic, int, float, complex, str, type(None)))


def _name(function: Any) -> str:
    own = getattr(function, "__qualname__", None) or getattr(function, "__name__", None)
    return str(own or type(function).__name__)


def _traced(nest: Any) -> Iterator[TracedArray]:
    if isinstance(nest, TracedArray):
        yield nest
    elif isinstance(nest, (list, tuple)):
        for member in nest:
            yield from _traced(member)
    elif isinstance(nest, dict):
        yield from _traced(list(nest.values()))


def _with_originals(nest: Any) -> Any:
    return mapped(original_of(nest), _with_originals)


def _read_only(array: Any) -> Any:
    view = array.view()
    view.flags.writeable = False
    return view
