"""What a traced program writes: assignments, ``out=``, in-place operators, ``np.add.at``, ``np.copyto``.

NumPy does the writing, so errors of casting, shape and index are its own. The dependence of the sources is
taken before the write, that of the target changes after it.

May import autograd's tracer, `memory` and `windows`; `boxes` calls it. Tests: ``tests/test_inplace.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import autograd.numpy as anp
import numpy as np
from autograd.numpy.numpy_boxes import ArrayBox
from autograd.tracer import getval, isbox
from numpy.typing import NDArray

from scr_critplugin.analysis import pulls
from scr_critplugin.analysis.memory import Memory, mix, spread, store, whole_window
from scr_critplugin.analysis.rules import Row, add_rule, row_of
from scr_critplugin.analysis.tape import DependenceNode
from scr_critplugin.analysis.windows import Places, Region
from scr_critplugin.errors import ProfileError

Source = tuple[Any, DependenceNode | None]


def one_of_several(*arguments: Any) -> Any:
    """Name of a recorded result of a ufunc that has several."""


add_rule(one_of_several, Row(pulls.elementwise))


def memory_written(target: Any) -> Memory:
    """Memory of the traced array `target`; ProfileError if it cannot be written to."""
    memory = getattr(target, "_memory", None)
    if not isinstance(memory, Memory):
        raise ProfileError(
            "assignment into an array of the traced state that cannot be followed: an array inside a "
            "gradient of autograd, a view at a place that the state decides, a member of a sequence of "
            "views, or no array. Copy it first (x = x.copy())"
        )
    return memory


def part_of(source: Source, index: Any) -> Source:
    """``source[index]``, the index bare."""
    value, node = source
    part = np.asarray(value)[index]
    if node is None:
        return part, None
    return part, DependenceNode(part, ArrayBox.__getitem__.fun, (value, index), {}, (0,), (node,))


def source_of(value: Any) -> Source:
    """The bare value and the node of something that is written."""
    if isinstance(value, (list, tuple)) and holds_traced(value):
        value = anp.array(value)
    if not isbox(value):
        return value, None
    if not isinstance(value._node, DependenceNode) or isbox(value._value):
        raise ProfileError(
            "a value inside a gradient of autograd is written into an array from outside it. Take the "
            "gradient of a function that returns new arrays"
        )
    return value._value, value._node


def holds_traced(nest: Any) -> bool:
    """True if a nest of lists and tuples holds a traced value."""
    if isinstance(nest, (list, tuple)):
        return any(holds_traced(member) for member in nest)
    return bool(isbox(nest))


def assign(target: Any, index: Any, value: Any, *, steered: bool) -> None:
    """``target[index] = value``, the index bare; `steered` if a traced value was in it."""
    if not np.size(getval(target)):
        getval(target).copy()[index] = getval(value)
        return
    memory = memory_written(target)
    shown = target._value
    region: Region
    if is_basic(index):
        part = shown[whole_index(index)]
        region = whole_window(memory, part)
        if _shows(value, memory, region):
            # The tail of `u[k] += x`: the view has been written through already.
            return
    else:
        window = whole_window(memory, shown)
        region = Places(np.asarray(window.places()[index]), window.whole, window.inside)
    note_errors_of_cast(value, shown.dtype)
    source = source_of(value)
    memory.writable(shown)[index] = source[0]
    memory.write(spread if steered else store, region, [source])


def note_errors_of_cast(value: Any, dtype: np.dtype[Any]) -> None:
    """Record that numbers leave the data flow that NumPy would not take as `dtype` if they were others.

    A single number, alone or in a list, goes through Python's ``int``, which raises on NaN and on what is too
    large; the elements of an array do not.
    """
    if dtype.kind not in "iu":
        return
    if isinstance(value, (list, tuple)):
        for member in value:
            note_errors_of_cast(member, dtype)
    elif isbox(value) and isinstance(value._node, DependenceNode):
        number = getval(value)
        if not isinstance(number, np.ndarray) and not np.can_cast(np.result_type(number), dtype):
            value._node.tape.leave(value._node, "errors of __setitem__")


def is_basic(index: Any) -> bool:
    """True if indexing with `index` makes a view."""
    parts = index if isinstance(index, tuple) else (index,)
    return all(
        part is None
        or part is Ellipsis
        or isinstance(part, (slice, np.integer))
        or (isinstance(part, int) and not isinstance(part, bool))
        for part in parts
    )


def whole_index(index: Any) -> Any:
    """The basic `index`, completed so that it makes an array also of a single element."""
    parts = index if isinstance(index, tuple) else (index,)
    return parts if any(part is Ellipsis for part in parts) else (*parts, Ellipsis)


def _shows(value: Any, memory: Memory, region: Region) -> bool:
    return (
        getattr(value, "_memory", None) is memory
        and isinstance(value._value, np.ndarray)
        and whole_window(memory, value._value) == region
    )


# ---- ufuncs ----


def ufunc_into(
    ufunc: np.ufunc,
    inputs: Sequence[Any],
    outs: Sequence[Any],
    options: dict[str, Any],
    bare: Callable[[Any], Any],
) -> Any:
    """``ufunc(*inputs, out=outs, **options)`` where an input or an output is traced.

    An output that is an ordinary array gets bare values, and what they come from counts as needed.
    """
    if not any(np.size(getval(out)) for out in outs if out is not None):
        ufunc(*map(getval, inputs), out=tuple(None if out is None else getval(out).copy() for out in outs))
        return outs[0] if ufunc.nout == 1 else tuple(outs)
    if any(out is not None and not isbox(out) for out in outs):
        bare_outs = tuple(out if out is None or not isbox(out) else None for out in outs)
        if any(out is None for out in bare_outs):
            raise ProfileError(f"{ufunc.__name__} writes into a traced and into an ordinary array at once")
        ufunc(*bare(list(inputs)), out=bare_outs, **bare(options))
        return outs[0] if ufunc.nout == 1 else tuple(outs)
    memories = [None if out is None else memory_written(out) for out in outs]
    if any(memory is None for memory in memories):
        raise ProfileError(
            f"{ufunc.__name__} with some of several outputs is not supported; give all of them"
        )
    sources = [source_of(value) for value in inputs]
    where = source_of(options.pop("where")) if "where" in options else None
    masked = {} if where is None else {"where": where[0]}
    targets = [m.writable(o._value) for m, o in zip(memories, outs, strict=True) if m is not None]
    sources = _as_before(memories, sources, targets)
    ufunc(*(value for value, _ in sources), out=tuple(targets), **masked, **options)
    for memory, target in zip(memories, targets, strict=True):
        if memory is not None and target.size:
            result = (target, _result_node(ufunc, target, sources, {**options, **masked}))
            _write_where(memory, target, result, where)
    return outs[0] if ufunc.nout == 1 else tuple(outs)


def _write_where(memory: Memory, target: NDArray[Any], result: Source, where: Source | None) -> None:
    """Record that `result`, of the shape of `target`, was written to it, or to a part of it."""
    region = whole_window(memory, target)
    if where is None or where[0] is True:
        memory.write(store, region, [result])
    elif where[1] is not None and not where[1].constant:
        memory.write(mix, region, [result, where], "where")
    else:
        chosen = np.broadcast_to(np.asarray(where[0], dtype=bool), target.shape)
        part = Places(region.places()[chosen], region.whole, region.inside)
        memory.write(store, part, [part_of(result, chosen)])


def _as_before(
    memories: Sequence[Memory | None], sources: list[Source], targets: list[NDArray[Any]]
) -> list[Source]:
    """`sources`, with copies of what is about to be overwritten if the adjoints will want it."""
    values = next(memory.node.tape.values for memory in memories if memory is not None)
    return sources if values is None else values.copies_of_shared(sources, targets)


def _result_node(
    ufunc: np.ufunc, result: NDArray[Any], sources: Sequence[Source], options: dict[str, Any]
) -> DependenceNode | None:
    traced = {i: node for i, (_, node) in enumerate(sources) if node is not None}
    if not traced:
        return None
    arguments = tuple(value for value, _ in sources)
    if ufunc.nout == 1:
        return DependenceNode(result, ufunc, arguments, options, tuple(traced), tuple(traced.values()))
    options = {**options, "how": ufunc}
    return DependenceNode(result, one_of_several, arguments, options, tuple(traced), tuple(traced.values()))


def ufunc_at(ufunc: np.ufunc, target: Any, index: Any, values: Sequence[Any], *, steered: bool) -> None:
    """``ufunc.at(target, index, *values)``, the index bare."""
    memory = memory_written(target)
    window = whole_window(memory, target._value)
    sources = [source_of(value) for value in values]
    region = Places(np.asarray(window.places()[index]), window.whole, window.inside)
    ufunc.at(memory.writable(target._value), index, *(value for value, _ in sources))
    known = row_of(ufunc, (target._value, *(value for value, _ in sources)), {}).known
    memory.write(mix if known and not steered else spread, region, sources, ufunc)


# ---- functions ----


def copy_to(target: Any, value: Any, casting: Any = "same_kind", where: Any = True) -> None:
    """``np.copyto``."""
    if not np.size(getval(target)):
        return
    memory = memory_written(target)
    source, mask = source_of(value), source_of(where)
    writable = memory.writable(target._value)
    np.copyto(writable, source[0], casting=casting, where=mask[0])
    if mask[0] is not True and np.shape(source[0]) != writable.shape:
        source = _broadcast(source, writable.shape)
    _write_where(memory, writable, source, mask)


def _broadcast(source: Source, shape: tuple[int, ...]) -> Source:
    value, node = source
    wide = np.broadcast_to(value, shape)
    if node is None:
        return wide, None
    return wide, DependenceNode(wide, np.broadcast_to, (value, shape), {}, (0,), (node,))


def set_flat(array: NDArray[Any], index: Any, values: Any) -> None:
    """``array.flat[index] = values``."""
    array.flat[index] = values


CHANGING: dict[Callable[..., Any], tuple[int, str]] = {
    np.put: (2, "v"),
    np.place: (2, "vals"),
    np.putmask: (2, "values"),
    np.fill_diagonal: (1, "val"),
    np.put_along_axis: (2, "values"),
    set_flat: (2, "values"),
}
"""Functions that write into their first argument at places of their own: where their values stand."""


def change(
    function: Callable[..., Any],
    target: Any,
    arguments: Sequence[Any],
    options: dict[str, Any],
    *,
    steered: bool,
) -> None:
    """Call one of the functions `CHANGING`; all but its values are bare.

    `steered`: a traced value tells where it writes. Where it does, and what, is found by letting it write the
    numbers of the values into an array of zeros.
    """
    memory = memory_written(target)
    shown = target._value
    position, name = CHANGING[function]
    named = name in options
    values_given = options[name] if named else arguments[position - 1]
    note_errors_of_cast(values_given, shown.dtype)
    source = source_of(values_given)

    def call(array: NDArray[Any], values: Any) -> None:
        if named:
            function(array, *arguments, **{**options, name: values})
        else:
            function(array, *arguments[: position - 1], values, *arguments[position:], **options)

    numbers = np.arange(1, np.size(source[0]) + 1, dtype=np.intp).reshape(np.shape(source[0]))
    came_from = np.zeros(shown.shape, dtype=np.intp)
    call(came_from, numbers)
    call(memory.writable(shown), source[0])
    region = whole_window(memory, shown)
    written = came_from > 0
    value = source
    if np.ndim(source[0]):
        value = part_of(source, np.unravel_index(came_from[written] - 1, np.shape(source[0])))
    if steered and source[1] is not None:
        # Another index would take other values.
        source[1].tape.leave(source[1], "argument of __setitem__")
    places = Places(region.places()[written], region.whole, region.inside)
    memory.write(spread if steered else store, places, [value])
