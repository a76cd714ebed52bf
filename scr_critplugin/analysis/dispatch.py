"""What traced arrays do in calls of plain NumPy, and as operands: NumPy's protocols and Python's operators.

A function that autograd wraps is recorded through its wrapper; a few, which autograd takes apart badly or
not at all, are put together here from others; ``out=`` becomes a write. Any other function gets bare values,
which makes all of them needed (`Tape.leave`), and is named in a warning.

May import autograd, `boxes`, `ufunc_methods` and `writes`. Tests: ``tests/test_inplace.py``,
``tests/test_inplace_constructs.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import autograd.numpy as anp
import numpy as np
from autograd.numpy import numpy_wrapper
from autograd.numpy.numpy_boxes import ArrayBox
from autograd.tracer import getval, isbox, trace_primitives_map

from scr_critplugin.analysis import ufunc_methods, writes
from scr_critplugin.analysis.boxes import TracedArray, bare, varies, written_index

# ---- functions ----


def call_function(
    self: TracedArray, function: Callable[..., Any], types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """``__array_function__``."""
    if function in writes.CHANGING or function is np.copyto:
        return _call_that_writes(function, args, kwargs)
    if kwargs.get("out") is not None:
        options = {name: value for name, value in kwargs.items() if name != "out"}
        return _put_into(kwargs["out"], function(*args, **options))
    view = _VIEWS.get(function)
    if view is not None and args and isinstance(args[0], TracedArray):
        return view(*args, **kwargs)
    if function in _REWRITTEN:
        return _REWRITTEN[function](*args, **kwargs)
    if function in numpy_wrapper.notrace_functions:
        return function(*map(getval, args), **kwargs)
    wrapped = trace_primitives_map.get(function)
    if wrapped is not None and any(isbox(arg) for arg in args):
        return wrapped(*args, **kwargs)
    return _call_with_bare(function, args, kwargs)


def _call_with_bare(function: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
    kind = f"call of {getattr(function, '__name__', function)}"
    return function(*bare(tuple(args), kind), **bare(kwargs, kind))


def _call_that_writes(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    target, *rest = args
    if not isinstance(target, TracedArray):
        return function(target, *bare(rest), **bare(kwargs))
    if function is np.copyto:
        return writes.copy_to(target, *rest, **kwargs)
    position, name = writes.CHANGING[function]
    kind = "argument of __setitem__"
    steered = any(varies(arg) for i, arg in enumerate(rest, start=1) if i != position)
    rest = [arg if i == position else bare(arg, kind) for i, arg in enumerate(rest, start=1)]
    options = {key: arg if key == name else bare(arg, kind) for key, arg in kwargs.items()}
    return writes.change(function, target, rest, options, steered=steered)


def _put_into(out: Any, result: Any) -> Any:
    """Copy the `result` of a call with ``out=`` to where it belongs."""
    if isinstance(out, TracedArray):
        writes.copy_to(out, result)
    else:
        np.copyto(out, bare(result), casting="same_kind")
    return out


def sliding_windows(array: TracedArray, *args: Any, **kwargs: Any) -> Any:
    """``sliding_window_view``; another view of the same memory."""
    shown = np.lib.stride_tricks.sliding_window_view(array._value, *args, **{**kwargs, "writeable": False})
    return array.shown_as(shown)


def as_strided(array: Any, shape: Any = None, strides: Any = None, **kwargs: Any) -> Any:
    """``as_strided``; another view of the same memory if the array is traced."""
    if not isinstance(array, TracedArray):
        return np.lib.stride_tricks.as_strided(array, shape, strides, **kwargs)
    return array.shown_as(np.lib.stride_tricks.as_strided(array._value, shape, strides, writeable=False))


_VIEWS: dict[Callable[..., Any], Callable[..., Any]] = {
    np.lib.stride_tricks.sliding_window_view: sliding_windows,
}


def _select(conditions: Any, choices: Any, default: Any = 0) -> Any:
    result = default
    for condition, choice in reversed(list(zip(conditions, choices, strict=True))):
        result = anp.where(condition, choice, result)
    return result


def _choose(index: Any, choices: Any, out: Any = None, mode: str = "raise") -> Any:
    if varies(index) or not isinstance(choices, (list, tuple)) or mode != "raise":
        return _call_with_bare(np.choose, (index, choices), {"mode": mode})
    index = np.asarray(getval(index))
    if np.any((index < 0) | (index >= len(choices))):
        raise ValueError("invalid entry in choice array")
    result = choices[-1]
    for i in reversed(range(len(choices) - 1)):
        result = anp.where(index == i, choices[i], result)
    return result


def _block(nest: Any) -> Any:
    depth, most_axes = _depth_and_axes(nest)
    axes = max(depth, most_axes)

    def joined(part: Any, axis: int) -> Any:
        if isinstance(part, list):
            return anp.concatenate([joined(member, axis + 1) for member in part], axis)
        return anp.reshape(part, (1,) * (axes - np.ndim(getval(part))) + np.shape(getval(part)))

    return joined(nest, -depth)


def _where(condition: Any, *choices: Any) -> Any:
    return anp.where(condition, *choices) if choices else anp.nonzero(condition)


def _nan_to_num(x: Any, copy: bool = True, **kwargs: Any) -> Any:
    if copy or not isinstance(x, TracedArray) or not np.ndim(getval(x)):
        return anp.nan_to_num(x, **kwargs)
    return _put_into(x, anp.nan_to_num(x, **kwargs))


def _depth_and_axes(nest: Any) -> tuple[int, int]:
    if not isinstance(nest, list):
        return 0, np.ndim(getval(nest))
    depths, axes = zip(*map(_depth_and_axes, nest), strict=True)
    return 1 + max(depths), max(axes)


_REWRITTEN = {
    np.concatenate: anp.concatenate,
    np.stack: anp.stack,
    np.vstack: anp.vstack,
    np.hstack: anp.hstack,
    np.column_stack: anp.column_stack,
    np.select: _select,
    np.choose: _choose,
    np.block: _block,
    np.nan_to_num: _nan_to_num,
    np.dstack: anp.dstack,
    np.where: _where,
}
"""Functions that autograd does not follow: it looks for traced arguments at top level only, and for none that
are written to."""


class Joining:
    """Stands for ``numpy.r_`` and ``numpy.c_``, along axis 0 or the last."""

    def __init__(self, original: Any, axis: int) -> None:
        self._original = original
        self._axis = axis

    def __getitem__(self, key: Any) -> Any:
        parts = key if isinstance(key, tuple) else (key,)
        if not any(isbox(part) for part in parts):
            return self._original[key]
        arrays = [np.r_[part] if isinstance(part, slice) else part for part in parts]
        axes = max((np.ndim(getval(part)) for part in arrays), default=0)
        if any(isinstance(part, str) for part in parts) or axes > 1 + (self._axis != 0):
            return self._original[bare(key, "call of numpy.r_ or numpy.c_")]
        if self._axis == 0:
            return anp.concatenate([anp.atleast_1d(part) for part in arrays], 0)
        return anp.concatenate([_column(part) for part in arrays], 1)


def _column(array: Any) -> Any:
    return array if np.ndim(getval(array)) == 2 else anp.reshape(array, (-1, 1))


REPLACED: dict[int, Any] = {
    id(np.lib.stride_tricks.as_strided): as_strided,
    id(np.r_): Joining(np.r_, 0),
    id(np.c_): Joining(np.c_, -1),
}
"""Members of NumPy, by identity, that do not take part in its dispatch, and what stands for them."""


# ---- ufuncs ----


def call_ufunc(self: TracedArray, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """``__array_ufunc__``."""
    outs = kwargs.pop("out", None)
    if method == "at":
        target, index, *values = inputs
        index, steered = written_index(index, f"argument of {ufunc.__name__}.at")
        if isinstance(target, TracedArray):
            return writes.ufunc_at(ufunc, target, index, values, steered=steered)
        return ufunc.at(target, index, *bare(values))
    if method == "__call__":
        if outs is not None:
            return writes.ufunc_into(ufunc, inputs, outs, kwargs, bare)
        if ufunc in trace_primitives_map:
            return ArrayBox.__array_ufunc__(self, ufunc, method, *inputs, **kwargs)
        return ufunc(*bare(inputs, f"call of {ufunc.__name__}"), **bare(kwargs))
    result = _of_method(ufunc, method, inputs, kwargs)
    return result if outs is None else _put_into(outs[0], result)


def _of_method(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    reduction = _REDUCTIONS.get((ufunc, method))
    if reduction is not None and kwargs.keys() <= {"axis", "keepdims"} and len(inputs) == 1:
        return reduction(*inputs, **{"axis": 0, **kwargs})
    if ufunc_methods.is_followed(ufunc, method, inputs, kwargs):
        return ufunc_methods.FOLLOWED[method](ufunc, *inputs, **kwargs)
    kind = f"call of {ufunc.__name__}.{method}"
    return getattr(ufunc, method)(*bare(inputs, kind), **bare(kwargs, kind))


_REDUCTIONS: dict[tuple[Any, str], Callable[..., Any]] = {
    (np.add, "reduce"): anp.sum,
    (np.multiply, "reduce"): anp.prod,
    (np.maximum, "reduce"): anp.max,
    (np.minimum, "reduce"): anp.min,
    (np.add, "accumulate"): anp.cumsum,
    (np.multiply, "accumulate"): anp.cumprod,
}


# ---- operators ----


def _binary(function: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    return lambda self, other: function(self, other)


def _reflected(function: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    return lambda self, other: function(other, self)


def _in_place(name: str, function: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    def operate(self: TracedArray, other: Any) -> Any:
        if not isinstance(self._value, np.ndarray) or not self._value.size:
            # Numbers do not change, and there is nothing to change in an empty array.
            return function(self, other)
        if self.is_steered_view():
            # The tail of the statement `a[k : k + 2] += x` is the write, to a place that is steered.
            tape, result = self._node.tape, function(self, other)
            tape.begin(result)
            return result
        return getattr(np, name)(self, other, out=self)

    return operate


for _name, _function in {
    "add": anp.add,
    "sub": anp.subtract,
    "mul": anp.multiply,
    "truediv": anp.true_divide,
    "floordiv": anp.floor_divide,
    "mod": anp.mod,
    "pow": anp.power,
    "matmul": anp.matmul,
    "and": anp.bitwise_and,
    "or": anp.bitwise_or,
    "xor": anp.bitwise_xor,
    "lshift": anp.left_shift,
    "rshift": anp.right_shift,
}.items():
    setattr(TracedArray, f"__i{_name}__", _in_place(_function.__name__, _function))
for _name, _function in {
    "floordiv": anp.floor_divide,
    "divmod": anp.divmod,
    "and": anp.bitwise_and,
    "or": anp.bitwise_or,
    "xor": anp.bitwise_xor,
    "lshift": anp.left_shift,
    "rshift": anp.right_shift,
}.items():
    setattr(TracedArray, f"__{_name}__", _binary(_function))
    setattr(TracedArray, f"__r{_name}__", _reflected(_function))
TracedArray.__rmod__ = _reflected(anp.mod)
TracedArray.__invert__ = lambda self: anp.invert(self)
TracedArray.__pos__ = lambda self: anp.positive(self)
TracedArray.__array_function__ = call_function
TracedArray.__array_ufunc__ = call_ufunc
