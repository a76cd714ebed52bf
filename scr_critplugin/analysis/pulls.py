"""How a mask of needed results is pulled back to one argument: one function per kind of primitive.

Each has the signature of `Pull`: it sets, in `into`, the elements of argument `argnum` that the needed
elements of the result can depend on, whatever the values are. Structure decides, never the number: a product
with zero, the dead side of a relu and an exact cancellation all count as dependence (DESIGN section 4, rule
3).

`into` is a C-contiguous boolean array of the argument's shape. A pull may set too much, never too little.
Lists of masks, of a primitive with several results or with a sequence as argument, reach only those pulls
whose row in `rules` says so; a sequence elsewhere is dense.

May import NumPy, `masks` and `calls`. Tests: ``tests/test_dependence_rules.py``.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Container, Hashable, Sequence
from functools import cache
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from scr_critplugin.analysis.calls import Call, Shaped
from scr_critplugin.analysis.masks import (
    BoolArray,
    Mask,
    any_over,
    fill,
    has_any,
    merge,
    unbroadcast,
    union_of,
)

Pull: TypeAlias = Callable[[Call, Any, int, Any], None]


# ---- everything, or element by element ----


def dense(call: Call, needed: Mask, argnum: int, into: Mask) -> None:
    """Any needed result may depend on every element."""
    if has_any(needed):
        fill(into)


def elementwise(call: Call, needed: Mask, argnum: int, into: BoolArray) -> None:
    """Broadcasting functions: a result depends on the element at its place, in each argument."""
    mask = union_of(needed) if isinstance(needed, list) else needed
    into |= unbroadcast(mask, into.shape)


def shape_only(call: Call, needed: Mask, argnum: int, into: Mask) -> None:
    """The argument gives a shape, its elements are not used."""


def fill_value(call: Call, needed: Mask, argnum: int, into: BoolArray) -> None:
    """``full`` and ``full_like``: only the second argument gives values."""
    if argnum == 1:
        elementwise(call, needed, argnum, into)


def select(call: Call, needed: BoolArray, argnum: int, into: BoolArray) -> None:
    """``where(condition, x, y)``: an untraced condition tells which of the two a result comes from.

    A traced condition may come out differently in another step, so both are needed then.
    """
    condition = call.args[0]
    if argnum > 0 and not isinstance(condition, Shaped):
        chosen = np.asarray(condition, dtype=bool)
        needed = needed & (chosen if argnum == 1 else ~chosen)
    elementwise(call, needed, argnum, into)


def stacked(call: Call, needed: BoolArray, argnum: int, into: BoolArray) -> None:
    """Autograd's ``array_from_args(array_args, array_kwargs, *members)``: members along a new first axis."""
    members = len(call.args) - 2
    into |= needed.reshape((members, *into.shape))[argnum - 2]


# ---- along axes ----


def reduction(call: Call, needed: BoolArray, argnum: int, into: BoolArray) -> None:
    """Sums, extrema and the like: a result depends on all elements along the reduced axes."""
    axes = axes_of(call, into.ndim)
    if axes is None:
        return dense(call, needed, argnum, into)
    if needed.ndim == into.ndim - len(axes):
        needed = np.expand_dims(needed, axes)
    if needed.ndim == into.ndim and all(needed.shape[axis] == 1 for axis in axes):
        _spread(needed, axes, into)
    else:
        dense(call, needed, argnum, into)


def quantiles(call: Call, needed: BoolArray, argnum: int, into: BoolArray) -> None:
    """``quantile`` and ``percentile``: the axes of the second argument come first in the result."""
    reduction(call, any_over(needed, tuple(range(len(call.shape_at(1))))), argnum, into)


def mixed(call: Call, needed: BoolArray, argnum: int, into: BoolArray) -> None:
    """Sorts, transforms and the like: a result depends on all elements of its line along the axes."""
    axes = axes_of(call, into.ndim)
    if axes is None or needed.ndim != into.ndim:
        return dense(call, needed, argnum, into)
    _spread(needed, axes, into)


def prefix(call: Call, needed: BoolArray, argnum: int, into: BoolArray) -> None:
    """Cumulative sums and products: a result depends on the elements up to its place."""
    axis = call.parameter("axis")
    if axis is None:
        needed, axis, into = needed.reshape(-1), 0, into.reshape(-1)
    if needed.shape != into.shape:
        # cumulative_sum(include_initial=True): the first result depends on nothing.
        needed = needed[(slice(None),) * (axis % into.ndim) + (slice(1, None),)]
    backwards = np.flip(needed, axis)
    into |= np.flip(np.logical_or.accumulate(backwards, axis=axis), axis)


def difference(call: Call, needed: BoolArray, argnum: int, into: BoolArray) -> None:
    """``diff``: a result of order n depends on n + 1 neighbours along the axis."""
    axis, order = call.parameter("axis"), call.parameter("n")
    padded = any(not _missing(call.parameter(name)) for name in ("prepend", "append"))
    if padded:
        return mixed(call, needed, argnum, into)
    lines, result = np.moveaxis(into, axis, 0), np.moveaxis(needed, axis, 0)
    for start in range(order + 1):
        lines[start : start + len(result)] |= result


def gradients(call: Call, needed: Mask, argnum: int, into: BoolArray) -> None:
    """``gradient``: one result an axis, each mixing along its own axis."""
    axes = call.kwargs.get("axis")
    axes = range(into.ndim) if axes is None else axis_numbers(axes, into.ndim)
    results = needed if isinstance(needed, list) else [needed]
    for axis, mask in zip(axes, results, strict=True):
        _spread(union_of([mask]), (axis,), into)


def axis_numbers(axes: Any, ndim: int) -> tuple[int, ...]:
    """Axes as a tuple of numbers from 0 (NumPy 1 has this only in private modules)."""
    return tuple(operator.index(axis) % ndim for axis in (axes if np.iterable(axes) else (axes,)))


def axes_of(call: Call, ndim: int) -> tuple[int, ...] | None:
    """The axes a call works along; None for all of a flattened array, or if they cannot be told."""
    for name in ("axis", "axes"):
        if call.has_parameter(name):
            axes = call.parameter(name)
            return None if axes is None else axis_numbers(axes, ndim)
    return None


def _spread(needed: BoolArray, axes: tuple[int, ...], into: BoolArray) -> None:
    """Set every line along `axes` of which a result is needed."""
    kept = tuple(n for i, n in enumerate(into.shape) if i not in axes)
    if tuple(n for i, n in enumerate(needed.shape) if i not in axes) == kept and needed.ndim == into.ndim:
        into |= any_over(needed, axes, keepdims=True)
    elif needed.any():
        into[...] = True


def _missing(default: Any) -> bool:
    # NumPy marks "not passed" in diff by a private sentinel instance.
    return default is None or type(default).__name__ in ("_NoValueType", "_NoValue")


# ---- moving elements without changing them ----


def getitem(call: Call, needed: BoolArray, argnum: int, into: BoolArray) -> None:
    """``x[index]`` with an untraced index."""
    index = call.args[1]
    if _visits_once(index):
        into[index] |= needed
    else:
        _set_at(into, _places(into.shape)[index][needed])


def transposed(call: Call, needed: BoolArray, argnum: int, into: BoolArray) -> None:
    """``transpose``."""
    axes = call.parameter("axes")
    into |= needed.T if axes is None else needed.transpose(np.argsort(axis_numbers(axes, into.ndim)))


def axis_moved(call: Call, needed: BoolArray, argnum: int, into: BoolArray) -> None:
    """``moveaxis``."""
    into |= np.moveaxis(needed, call.parameter("destination"), call.parameter("source"))


def concatenated(call: Call, needed: BoolArray, argnum: int, into: BoolArray) -> None:
    """Autograd's ``concatenate_args(axis, *arrays)``."""
    axis = call.args[0]
    if axis is None:
        start = sum(int(np.prod(call.shape_at(i))) for i in range(1, argnum))
        into |= needed[start : start + into.size].reshape(into.shape)
        return
    axis %= into.ndim
    start = sum(call.shape_at(i)[axis] for i in range(1, argnum))
    into |= needed[(slice(None),) * axis + (slice(start, start + into.shape[axis]),)]


def padded(call: Call, needed: BoolArray, argnum: int, into: BoolArray) -> None:
    """``pad`` in a mode that repeats elements of the array or adds constants."""
    mode = call.parameter("mode")
    options = {} if mode == "constant" else {k: v for k, v in call.kwargs.items() if k == "reflect_type"}
    places = np.pad(_places(into.shape), call.parameter("pad_width"), mode=mode, **options)
    _set_at(into, places[needed])


def moved(data: Container[int]) -> Pull:
    """A pull for any function that only moves elements of its arguments at the positions `data`.

    The function itself is run on the elements' numbers, which tells where each result came from; zero stands
    for a result that came from elsewhere.
    """

    def pull(call: Call, needed: Mask, argnum: int, into: BoolArray) -> None:
        arguments = [
            _places(into.shape)
            if position == argnum
            else np.zeros(call.shape_at(position), dtype=np.intp)
            if position in data
            else argument
            for position, argument in enumerate(call.args)
        ]
        options = {name: value for name, value in call.kwargs.items() if name not in ("dtype", "casting")}
        _set_where(call.function(*arguments, **options), needed, into)

    return pull


def diagonal_sum(call: Call, needed: BoolArray, argnum: int, into: BoolArray) -> None:
    """``trace``: a result depends on the elements of one diagonal."""
    offset, first, second = (call.parameter(name) for name in ("offset", "axis1", "axis2"))
    places = np.diagonal(_places(into.shape), offset, first, second)
    _set_at(into, places[np.broadcast_to(needed[..., None], places.shape)])


def _places(shape: tuple[int, ...]) -> NDArray[np.integer[Any]]:
    """The elements' numbers, from 1: zero is left for what is not an element."""
    size = math.prod(shape)
    places: NDArray[np.integer[Any]] = np.arange(size, dtype=np.int32 if size < 2**31 - 1 else np.intp)
    places += 1
    return places.reshape(shape)


def _set_at(into: BoolArray, places: NDArray[np.integer[Any]]) -> None:
    into.reshape(-1)[places[places > 0] - 1] = True


def _set_where(result: Any, needed: Mask, into: BoolArray) -> None:
    if isinstance(needed, list):
        for member, mask in zip(result, needed, strict=True):
            _set_where(member, mask, into)
    else:
        # Some functions give their result a floating-point dtype.
        _set_at(into, np.asarray(result)[needed].astype(np.intp))


def _visits_once(index: Any) -> bool:
    """True if the index names no element twice, so that ``into[index] |= mask`` loses nothing."""
    if isinstance(index, (int, slice)):
        return True
    parts = index if isinstance(index, tuple) else (index,)
    arrays = [part for part in parts if isinstance(part, (np.ndarray, list))]
    return all(np.asarray(part).dtype == bool for part in arrays) and len(arrays) <= 1


# ---- sums of products ----


def labelled(
    needed: BoolArray, result: Sequence[Hashable], operand: Sequence[Hashable], into: BoolArray
) -> None:
    """Pull through a sum of products in Einstein notation.

    `result` and `operand` name the axes; a result depends on the operand's elements that share its labels.
    """
    if len(set(operand)) < len(operand):
        # A repeated label: only the diagonal takes part.
        numbers = {label: number for number, label in enumerate(dict.fromkeys(operand))}
        diagonal = np.einsum(into, [numbers[label] for label in operand], list(numbers.values()))
        return labelled(needed, result, list(numbers), diagonal)
    summed = tuple(i for i, label in enumerate(result) if label not in operand)
    mask = any_over(needed, summed)
    kept = [label for label in result if label in operand]
    mask = mask.transpose([kept.index(label) for label in operand if label in kept])
    sizes = iter(mask.shape)
    mask = mask.reshape([next(sizes) if label in kept else 1 for label in operand])
    into |= unbroadcast(mask, into.shape)


def gufunc_product(call: Call, needed: BoolArray, argnum: int, into: BoolArray) -> None:
    """``matmul`` and its kin, whose signature is the Einstein notation of what they compute."""
    if call.kwargs.keys() & {"axes", "axis", "keepdims"}:
        return dense(call, needed, argnum, into)
    operands, result = _core_labels(call.function, [len(call.shape_at(i)) for i in range(2)])
    batch = needed.ndim - len(result)
    own_batch = into.ndim - len(operands[argnum])
    labelled(
        needed,
        [*range(-batch, 0), *result],
        [*range(-own_batch, 0), *operands[argnum]],
        into,
    )


def _core_labels(function: Any, ndims: list[int]) -> tuple[list[list[str]], list[str]]:
    """Core dimensions of a gufunc's operands and result; optional ones ("n?") are absent from vectors."""
    left, right = (
        [part.strip("()").split(",") if part.strip("()") else [] for part in side.split("),(")]
        for side in function.signature.split("->")
    )
    absent: set[str] = set()
    for labels, ndim in zip(left, ndims, strict=True):
        if ndim < len(labels):
            absent.update(label for label in labels if label.endswith("?"))
    kept = [[label for label in labels if label not in absent] for labels in (*left, right[0])]
    return kept[:-1], kept[-1]


def dot_product(call: Call, needed: BoolArray, argnum: int, into: BoolArray) -> None:
    """``dot``: last axis of the first with the second-to-last (or only) axis of the second."""
    first, second = len(call.shape_at(0)), len(call.shape_at(1))
    if first == 0 or second == 0:
        return elementwise(call, needed, argnum, into)
    left = [("a", i) for i in range(first)]
    right = [("b", i) for i in range(second)]
    right[max(second - 2, 0)] = left[-1]
    result = [label for label in (*left, *right) if label != left[-1]]
    labelled(needed, result, (left, right)[argnum], into)


def inner_product(call: Call, needed: BoolArray, argnum: int, into: BoolArray) -> None:
    """``inner``: the last axes are summed."""
    first, second = len(call.shape_at(0)), len(call.shape_at(1))
    if first == 0 or second == 0:
        return elementwise(call, needed, argnum, into)
    left = [*(("a", i) for i in range(first - 1)), "sum"]
    right = [*(("b", i) for i in range(second - 1)), "sum"]
    labelled(needed, [*left[:-1], *right[:-1]], (left, right)[argnum], into)


def outer_product(call: Call, needed: BoolArray, argnum: int, into: BoolArray) -> None:
    """``outer`` of the flattened arguments."""
    into |= any_over(needed, (1 - argnum,)).reshape(into.shape)


def tensordot_product(call: Call, needed: BoolArray, argnum: int, into: BoolArray) -> None:
    """``tensordot``."""
    axes = call.parameter("axes")
    first, second = len(call.shape_at(0)), len(call.shape_at(1))
    if np.ndim(axes) == 0:
        axes = (range(first - int(axes), first), range(int(axes)))
    summed = [axis_numbers(one, n) for one, n in zip(axes, (first, second), strict=True)]
    left: list[Hashable] = [("a", i) for i in range(first)]
    right: list[Hashable] = [("b", i) for i in range(second)]
    for i, j in zip(*summed, strict=True):
        right[j] = left[i]
    shared = set(left) & set(right)
    result = [label for label in (*left, *right) if label not in shared]
    labelled(needed, result, (left, right)[argnum], into)


def einsum_product(call: Call, needed: BoolArray, argnum: int, into: BoolArray) -> None:
    """``einsum``, with subscripts as a string or as lists."""
    operands, result = _einsum_labels(tuple(tuple(a) if isinstance(a, list) else a for a in call.args))
    place = argnum - 1 if isinstance(call.args[0], str) else argnum // 2
    labelled(needed, result, operands[place], into)


@cache
def _einsum_labels(arguments: tuple[Any, ...]) -> tuple[list[str], str]:
    """Labels of the operands and of the result, implicit ones and ellipses spelt out."""
    from autograd.numpy.numpy_wrapper import parse_einsum_input

    given = [
        np.broadcast_to(0.0, cast("tuple[int, ...]", arg.shape)) if isinstance(arg, Shaped) else arg
        for arg in arguments
    ]
    subscripts, result, _ = parse_einsum_input(*given)
    return subscripts.split(","), result


# ---- autograd's containers ----


def container_item(call: Call, needed: Mask, argnum: int, into: Mask) -> None:
    """``container_take(sequence, index)``."""
    if not isinstance(into, list):
        return dense(call, needed, argnum, into)
    members = into[call.args[1]]
    merge(members, needed)


def container_made(call: Call, needed: Mask, argnum: int, into: Mask) -> None:
    """``make_sequence(type, *members)``."""
    if isinstance(needed, list):
        merge(into, needed[argnum - 1])
    else:
        dense(call, needed, argnum, into)
