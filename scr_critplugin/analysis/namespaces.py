"""NumPy as the modules of a traced program see it: arrays it makes can take traced values later.

`buffer = np.zeros(n)` followed by `buffer[1:] = traced` cannot be followed if `buffer` is an ordinary array.
So while a program is traced, `numpy` (and `autograd.numpy`) in the globals of its modules is a stand-in whose
functions give traced arrays with constant contents. The names are put back afterwards.

The modules are those of the program's functions and, from there, of the functions, classes and modules that
stand in their globals; Python's own library and the numerical packages are left alone.

May import NumPy, autograd and `writes`. Tests: ``tests/test_inplace.py``.
"""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import autograd.numpy as anp
import numpy as np
from autograd.tracer import isbox

from scr_critplugin.analysis.writes import CHANGING, holds_traced

Constant = Callable[[Any], Any]

_LEFT_ALONE = frozenset(
    [
        "numpy",
        "scipy",
        "autograd",
        "numba",
        "mpi4py",
        "matplotlib",
        "pandas",
        "pytest",
        "_pytest",
        "hypothesis",
        "cffi",
        "h5py",
    ]
) | frozenset(sys.stdlib_module_names)
_OWN_MODULES = ("scr_critplugin.analysis", "scr_critplugin.mpi")
_CONVERSIONS = ("array", "asarray", "asanyarray", "ascontiguousarray", "asfortranarray", "copy")
_WITHOUT_ARRAYS = [
    "shape",
    "ndim",
    "size",
    "result_type",
    "can_cast",
    "dtype",
    "finfo",
    "iinfo",
    "isscalar",
    "may_share_memory",
    "shares_memory",
    "save",
    "savez",
    "savetxt",
    "frombuffer",
    "asmatrix",
    "memmap",
]


class _ArrayType(type):
    """Makes ``isinstance(x, np.ndarray)`` hold for traced arrays."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, np.ndarray) or (isbox(instance) and np.ndim(instance) > 0)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return np.ndarray(*args, **kwargs)


class _Array(metaclass=_ArrayType):
    """Stands for ``numpy.ndarray``."""


class Namespace(types.ModuleType):
    """Stands for the module `original` (NumPy, or autograd's); arrays it makes go through `constant`."""

    def __init__(self, original: types.ModuleType, constant: Constant) -> None:
        super().__init__(original.__name__, original.__doc__)
        self.__dict__["_original"] = original
        self.__dict__["_constant"] = constant

    def __getattr__(self, name: str) -> Any:
        member = replaced(getattr(self._original, name), name, self._constant)
        self.__dict__[name] = member
        return member


def replaced(member: Any, name: str, constant: Constant) -> Any:
    """What stands for the `member` of NumPy called `name`."""
    plain = getattr(np, name, None)
    if member is np.ndarray:
        return _Array
    if isinstance(plain, np.ufunc) or plain in CHANGING or plain is np.copyto:
        # They write, given ``out=``, which autograd's wrappers cannot.
        return plain
    if name in _WITHOUT_ARRAYS or isinstance(member, (type, types.ModuleType)) or not callable(member):
        return member
    if not isinstance(plain, (types.FunctionType, types.BuiltinFunctionType)) and not hasattr(
        plain, "_implementation"
    ):
        return member
    function = _converting(member, name) if name in _CONVERSIONS else member

    @functools.wraps(member)
    def call(*args: Any, **kwargs: Any) -> Any:
        return _writable(function(*args, **kwargs), args, constant)

    return call


def _converting(member: Callable[..., Any], name: str) -> Callable[..., Any]:
    traced: Callable[..., Any] = getattr(anp, name)

    def convert(value: Any, *args: Any, **kwargs: Any) -> Any:
        if name == "array" and isbox(value) and kwargs.get("copy", True) is not True:
            del kwargs["copy"]
            return anp.asarray(value, *args, **kwargs)
        if isbox(value):
            return traced(value, *args, **kwargs)
        if holds_traced(value):
            return anp.array(value, *args, **kwargs)
        return member(value, *args, **kwargs)

    return convert


def _writable(result: Any, args: tuple[Any, ...], constant: Constant) -> Any:
    """`result`, as a traced array if nobody else holds it."""
    if type(result) is not np.ndarray or result.dtype.kind not in "fciub" or not result.size:
        return result
    if result.base is not None or not result.flags.writeable or any(result is arg for arg in args):
        return result
    return constant(result)


# ---- the modules of a program ----


@contextmanager
def plain_numpy_of(users: Iterable[Any], constant: Constant) -> Iterator[None]:
    """Put the stand-ins into the modules of the functions `users` while the block runs."""
    stand_ins = {id(module): Namespace(module, constant) for module in (np, anp)}
    put: list[tuple[dict[str, Any], str, Any, Any]] = []
    try:
        for names in _globals_of(users):
            for name, value in list(names.items()):
                other = stand_ins.get(id(value), value)
                if other is value and _is_numpy_function(value):
                    other = replaced(value, value.__name__, constant)
                if other is not value:
                    put.append((names, name, value, other))
                    names[name] = other
        yield
    finally:
        for names, name, value, other in put:
            if names.get(name) is other:
                names[name] = value


def _is_numpy_function(value: Any) -> bool:
    """True for a function that was imported from NumPy by name (``from numpy import zeros``)."""
    name = getattr(value, "__name__", None)
    return callable(value) and isinstance(name, str) and getattr(np, name, None) is value and not isbox(value)


def _globals_of(users: Iterable[Any]) -> list[dict[str, Any]]:
    found: dict[int, dict[str, Any]] = {}
    waiting = list(users)
    seen: set[int] = set()
    while waiting:
        value = waiting.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        waiting += _cells(value)
        for names in _namespaces(value):
            if id(names) in found or _is_left_alone(names.get("__name__")):
                continue
            found[id(names)] = names
            waiting += [v for v in list(names.values()) if _leads_on(v)]
    return list(found.values())


def _leads_on(value: Any) -> bool:
    return isinstance(
        value, (types.FunctionType, types.ModuleType, type, types.MethodType, functools.partial)
    )


def _namespaces(value: Any) -> list[dict[str, Any]]:
    if isinstance(value, types.ModuleType):
        return [] if isinstance(value, Namespace) else [value.__dict__]
    if isinstance(value, types.FunctionType):
        return [value.__globals__]
    module = sys.modules.get(
        getattr(value if isinstance(value, type) else type(value), "__module__", "") or ""
    )
    return [] if module is None else [module.__dict__]


def _cells(value: Any) -> list[Any]:
    """Functions and objects that a callable holds: a closure's, a method's, a partial's, a wrapper's."""
    held: list[Any] = []
    if isinstance(value, functools.partial):
        held += [value.func, *value.args]
    if isinstance(value, types.MethodType):
        held += [value.__func__, value.__self__]
    if hasattr(value, "__wrapped__") and not isinstance(value, (type, types.ModuleType)):
        held.append(value.__wrapped__)
    for cell in getattr(value, "__closure__", None) or ():
        try:
            held.append(cell.cell_contents)
        except ValueError:
            # Not filled yet.
            continue
    return [v for v in held if callable(v) or _leads_on(v) or hasattr(v, "__dict__")]


def _is_left_alone(module: Any) -> bool:
    name = str(module)
    return name.split(".")[0] in _LEFT_ALONE or name.startswith(_OWN_MODULES)
