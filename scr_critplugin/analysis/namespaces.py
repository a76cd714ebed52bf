"""NumPy as the modules of a traced program see it: arrays it makes can take traced values later.

`buffer = np.zeros(n)` followed by `buffer[1:] = traced` cannot be followed if `buffer` is an ordinary array.
So the functions of a `Namespace`, which stands for `numpy` (or `autograd.numpy`) in a program's modules while
it is recorded (`stand_ins`), give traced arrays with constant contents.

May import NumPy, autograd and `writes`. Tests: ``tests/test_inplace.py``.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

import autograd.numpy as anp
import numpy as np
from autograd.tracer import isbox

from scr_critplugin.analysis.writes import CHANGING, holds_traced, note_errors_of_cast

Constant = Callable[[Any], Any]

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
_PARTS = {"linalg", "fft", "random", "lib", "stride_tricks"}
"""Parts of NumPy that make arrays."""


class _ArrayType(type):
    """Makes ``isinstance(x, np.ndarray)`` hold for traced arrays."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, np.ndarray) or (isbox(instance) and np.ndim(instance) > 0)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return np.ndarray(*args, **kwargs)


class _Array(metaclass=_ArrayType):
    """Stands for ``numpy.ndarray``."""


class Namespace(types.ModuleType):
    """Stands for the module `original` (NumPy, autograd's, or a part of one).

    Arrays that it makes go through `constant`. `instead`: what stands for members that take no part in
    NumPy's dispatch, by identity.
    """

    def __init__(self, original: types.ModuleType, constant: Constant, instead: dict[int, Any]) -> None:
        super().__init__(original.__name__, original.__doc__)
        self.__dict__["_original"] = original
        self.__dict__["_constant"] = constant
        self.__dict__["_instead"] = instead

    def __getattr__(self, name: str) -> Any:
        original = getattr(self._original, name)
        if isinstance(original, types.ModuleType) and name in _PARTS:
            member: Any = Namespace(original, self._constant, self._instead)
        else:
            plain = np if self._original is anp else self._original
            member = replaced(original, getattr(plain, name, None), self._constant, self._instead)
        self.__dict__[name] = member
        return member


def replaced(member: Any, plain: Any, constant: Constant, instead: dict[int, Any]) -> Any:
    """What stands for a `member` of NumPy or of autograd's NumPy, which wraps the `plain` one."""
    if id(member) in instead:
        return instead[id(member)]
    if member is np.ndarray:
        return _Array
    if isinstance(plain, np.ufunc) or (callable(plain) and (plain in CHANGING or plain is np.copyto)):
        # They write, given ``out=``, which autograd's wrappers cannot.
        return plain
    if isinstance(member, (type, types.ModuleType)) or not callable(member):
        return member
    name = getattr(plain, "__name__", "")
    is_function = isinstance(plain, (types.FunctionType, types.BuiltinFunctionType))
    if name in _WITHOUT_ARRAYS or not (is_function or hasattr(plain, "_implementation")):
        return member
    converts = name in _CONVERSIONS and getattr(np, name, None) is plain
    function = _converting(member, name) if converts else member

    @functools.wraps(member)
    def call(*args: Any, **kwargs: Any) -> Any:
        return made_writable(function(*args, **kwargs), args, constant)

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
            note_errors_of_cast(value, np.dtype(kwargs.get("dtype", args[0] if args else None)))
            return anp.array(value, *args, **kwargs)
        return member(value, *args, **kwargs)

    return convert


def made_writable(result: Any, args: tuple[Any, ...], constant: Constant) -> Any:
    """`result`, as a traced array if nobody else holds it."""
    if type(result) is not np.ndarray or result.dtype.kind not in "fciub" or not result.size:
        return result
    if result.base is not None or not result.flags.writeable or any(result is arg for arg in args):
        return result
    return constant(result)
