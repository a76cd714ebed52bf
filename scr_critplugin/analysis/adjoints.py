"""How cotangents are pulled back through recorded calls: autograd's own rules, and a table for what it lacks.

`pull_back` is one reverse pass over a tape that was recorded with its values. A rule of autograd is a function
of arguments and result (`autograd.core.primitive_vjps`); the table `ADJOINTS` holds those of reads and writes
(`memory`), and of indexing, whose cotangent is added in place (``A[index] += g``), where autograd would make an
array of the size of A for each read. Functions that only move elements, by their row in `rules`, need no rule:
the function is run on the elements' numbers.

What has no rule, or a result that is no floating-point number, ends the derivative: it counts as zero, and is
reported (`PullBack.ended`), since a zero from there means nothing.

Cotangents follow autograd's convention for complex numbers, in which a holomorphic function's is multiplied
by the derivative and not by its conjugate. They are kept in double precision at least.

May import autograd, `calls`, `masks`, `memory`, `rules`, `tape`, `values`, `windows` and `writes`.
Tests: ``tests/test_gradient.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

import autograd.numpy.numpy_wrapper as wrapper
import numpy as np
from autograd.core import primitive_vjps
from autograd.numpy.numpy_boxes import ArrayBox
from autograd.tracer import trace_primitives_map
from numpy.typing import NDArray

from scr_critplugin.analysis.calls import Call
from scr_critplugin.analysis.memory import load, mix, spread, store
from scr_critplugin.analysis.tape import DependenceNode, Tape
from scr_critplugin.analysis.values import Saved, needs_no_result, needs_no_values
from scr_critplugin.analysis.windows import Places, Region, Window
from scr_critplugin.analysis.writes import one_of_several

Seed = tuple[DependenceNode, Any]


class NoRuleError(Exception):
    """Raised by an adjoint that cannot tell; the derivative ends there."""


class Cotangents:
    """Sums of cotangents by node. What it holds as its own, and only that, is added to in place."""

    def __init__(self, length: int) -> None:
        self._sums: list[Any] = [None] * length
        self._own = [False] * length

    def add(self, node: DependenceNode, cotangent: Any, *, own: bool = False) -> None:
        """Add to that of `node`; `own`: nobody else will look at this array any more."""
        if not carries(node):
            return
        position = node.position
        cotangent = _fitting(node, cotangent)
        present = self._sums[position]
        if present is None:
            self._sums[position], self._own[position] = cotangent, own and _is_plain(cotangent)
        elif self._own[position] and isinstance(present, np.ndarray):
            present += cotangent
        else:
            total = _added(present, cotangent)
            self._sums[position], self._own[position] = total, _is_plain(total)

    def into(self, node: DependenceNode) -> NDArray[Any] | None:
        """That of `node`, zero if there is none yet, to be added to in place; None if it has no derivative."""
        if not carries(node):
            return None
        if cast(Saved, node.saved).dtype is None:
            raise NoRuleError
        position, present = node.position, self._sums[node.position]
        if not self._own[position]:
            dtype = working_dtype(cast(np.dtype[Any], cast(Saved, node.saved).dtype))
            fresh = np.zeros(node.shape, dtype) if present is None else np.array(present, dtype, order="C")
            self._sums[position], self._own[position] = fresh, True
        return cast("NDArray[Any]", self._sums[position])

    def take(self, node: DependenceNode, *, own: bool) -> Any:
        """That of `node`, which is forgotten; None if there is none. `own`: as an array to be changed."""
        if own and self._sums[node.position] is not None:
            self.into(node)
        taken, self._sums[node.position] = self._sums[node.position], None
        self._own[node.position] = False
        return taken


@dataclass
class PullBack:
    """One call on its way back: the node, what was `saved` of it, and where cotangents go."""

    node: DependenceNode
    call: Call
    saved: Saved
    cotangents: Cotangents

    def parents(self) -> Iterable[tuple[int, DependenceNode]]:
        """Positions and nodes of the traced arguments that have derivatives."""
        pairs = zip(self.call.argnums, self.node.parents, strict=True)
        return [(argnum, parent) for argnum, parent in pairs if carries(parent)]


Adjoint: TypeAlias = Callable[[PullBack, Any], None]

ADJOINTS: dict[Callable[..., Any], Adjoint] = {}
"""Rules by raw function; where there is none, autograd's holds."""


@dataclass
class Ended:
    """Where derivatives end: nodes by position, and the names of their functions."""

    positions: set[int] = field(default_factory=set)
    names: set[str] = field(default_factory=set)

    def note(self, node: DependenceNode) -> None:
        """Note that the derivative ends at `node`."""
        self.positions.add(node.position)
        self.names.add(_name(node))


def add_adjoint(function: Callable[..., Any], adjoint: Adjoint) -> None:
    """Add or replace the adjoint of `function`, an autograd primitive or the raw function under one."""
    ADJOINTS[getattr(function, "fun", function)] = adjoint


def pull_back(tape: Tape, seeds: Iterable[Seed], ended: Ended) -> Mapping[str, NDArray[Any]]:
    """Cotangents of the roots, by name, for those `seeds` of results; zero where nothing arrives.

    Notes in `ended` where derivatives end. Roots that are no floating-point numbers are left out.
    """
    cotangents = Cotangents(len(tape.nodes))
    for node, cotangent in seeds:
        cotangents.add(node, cotangent)
    with np.errstate(all="ignore"):
        for node in reversed(tape.nodes):
            if node.call is not None:
                _pull_through(node, node.call, cotangents, ended)
    return {name: np.asarray(cotangents.into(node)) for name, node in tape.roots.items() if carries(node)}


def _pull_through(node: DependenceNode, call: Call, cotangents: Cotangents, ended: Ended) -> None:
    if not carries(node):
        if any(carries(parent) for parent in node.parents):
            ended.note(node)
        return
    saved = cast(Saved, node.saved)
    step = PullBack(node, call, saved, cotangents)
    cotangent = cotangents.take(node, own=saved.function in _CHANGE_COTANGENT)
    if cotangent is None:
        return
    try:
        _adjoint_of(step)(step, cotangent)
    except NoRuleError:
        ended.note(node)
    if saved.function is np.where and 0 in call.argnums and carries(node.parents[call.argnums.index(0)]):
        ended.note(node)


def carries(node: DependenceNode) -> bool:
    """True if the node's value can have a derivative: floating-point numbers, or a sequence."""
    dtype = cast(Saved, node.saved).dtype
    return dtype is None or dtype.kind in "fc"


def working_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """What cotangents of that dtype are added up in."""
    return np.result_type(dtype.newbyteorder("="), np.float64)


def _name(node: DependenceNode) -> str:
    saved = cast(Saved, node.saved)
    named = (saved.kwargs or {}).get("how", saved.function)
    return str(getattr(named, "__name__", named))


def _is_plain(cotangent: Any) -> bool:
    return isinstance(cotangent, np.ndarray) and cotangent.flags.writeable and cotangent.flags.c_contiguous


def _added(one: Any, other: Any) -> Any:
    if isinstance(one, (list, tuple)):
        return [_added(mine, theirs) for mine, theirs in zip(one, other, strict=True)]
    return np.asarray(np.add(one, other))


def _fitting(node: DependenceNode, cotangent: Any) -> Any:
    """`cotangent` in the working dtype of the node."""
    dtype = cast(Saved, node.saved).dtype
    if dtype is None:
        return list(cotangent)
    array = np.asarray(cotangent)
    if dtype.kind == "f" and array.dtype.kind == "c":
        array = array.real
    return np.asarray(array, working_dtype(dtype))


# ---- which rule ----


def _adjoint_of(step: PullBack) -> Adjoint:
    function = cast("Callable[..., Any]", step.saved.function)
    own = ADJOINTS.get(function)
    if own is not None:
        return own
    if _vjp_maker(function) is not None:
        return _masked_ufunc if isinstance(function, np.ufunc) else _by_autograd
    row = step.node.row
    if row is not None and row.known and row.moves(step.call):
        return _moved
    return _unknown


def _vjp_maker(function: Callable[..., Any]) -> Callable[..., Any] | None:
    return primitive_vjps.get(function) or primitive_vjps.get(trace_primitives_map.get(function))


def _unknown(step: PullBack, cotangent: Any) -> None:
    raise NoRuleError


def _by_autograd(step: PullBack, cotangent: Any) -> None:
    """The rule of autograd."""
    value, args, kwargs = step.saved.arguments()
    for (_, parent), part in zip(step.parents(), _vjps(step, value, args, kwargs, cotangent), strict=True):
        step.cotangents.add(parent, part)


def _vjps(step: PullBack, value: Any, args: tuple[Any, ...], kwargs: dict[str, Any], cotangent: Any) -> Any:
    argnums = tuple(argnum for argnum, _ in step.parents())
    maker = cast("Callable[..., Any]", _vjp_maker(cast("Callable[..., Any]", step.saved.function)))
    try:
        return tuple(maker(argnums, value, args, kwargs)(cotangent)) if argnums else ()
    except (TypeError, NotImplementedError, KeyError) as missing:
        # autograd's rules differ in which arguments they know, and say so in these ways.
        raise NoRuleError from missing


_UFUNC_OPTIONS = ("dtype", "casting", "order", "subok", "signature")


def _masked_ufunc(step: PullBack, cotangent: Any) -> None:
    """A ufunc, perhaps with ``where``: what was not computed has no derivative, whatever stands there."""
    value, args, kwargs = step.saved.arguments()
    kwargs = {name: option for name, option in kwargs.items() if name not in _UFUNC_OPTIONS}
    where = kwargs.pop("where", True)
    if where is True:
        parts = _vjps(step, value, args, kwargs, cotangent)
        for (_, parent), part in zip(step.parents(), parts, strict=True):
            step.cotangents.add(parent, part)
        return
    shape = np.shape(cotangent)
    chosen = np.broadcast_to(np.asarray(where, bool), shape)
    computed = tuple(np.broadcast_to(arg, shape)[chosen] for arg in args)
    parts = _vjps(step, np.asarray(value)[chosen], computed, kwargs, np.asarray(cotangent)[chosen])
    for (_, parent), part in zip(step.parents(), parts, strict=True):
        whole = np.zeros(shape, np.result_type(part, np.float64))
        whole[chosen] = part
        step.cotangents.add(parent, _unbroadcast(whole, parent.shape), own=True)


def _unbroadcast(cotangent: NDArray[Any], shape: Any) -> NDArray[Any]:
    """Sum over the axes along which an array of that `shape` was repeated."""
    extra = cotangent.ndim - len(shape)
    if extra > 0:
        cotangent = cotangent.sum(axis=tuple(range(extra)))
    elif extra < 0:
        # NumPy lets a value have leading axes of one element more than what it is assigned to.
        cotangent = cotangent.reshape((1,) * -extra + cotangent.shape)
    repeated = tuple(axis for axis, n in enumerate(shape) if n == 1 and cotangent.shape[axis] != 1)
    return np.asarray(cotangent.sum(axis=repeated, keepdims=True) if repeated else cotangent)


# ---- moving elements ----


def _identity(step: PullBack, cotangent: Any) -> None:
    for _, parent in step.parents():
        step.cotangents.add(parent, cotangent)


def _moved(step: PullBack, cotangent: Any) -> None:
    """Any function that only moves elements: run on their numbers, it tells where each came from."""
    _, args, kwargs = step.saved.arguments()
    data = cast(Any, step.node.row).data
    kwargs = {name: option for name, option in kwargs.items() if name not in ("dtype", "casting")}
    for argnum, parent in step.parents():
        into = step.cotangents.into(parent)
        if into is None:
            continue
        numbers = np.arange(1, into.size + 1).reshape(into.shape)
        numbered = tuple(
            numbers if i == argnum else np.zeros(np.shape(arg), np.intp) if i in data else arg
            for i, arg in enumerate(args)
        )
        _add_at_numbers(step.call.function(*numbered, **kwargs), cotangent, into.reshape(-1))


def _add_at_numbers(numbers: Any, cotangent: Any, flat: NDArray[Any]) -> None:
    if isinstance(numbers, (list, tuple)):
        for member, part in zip(numbers, cotangent, strict=True):
            _add_at_numbers(member, part, flat)
        return
    # Some functions give their result a floating-point dtype.
    places = np.asarray(numbers).astype(np.intp)
    moved = places > 0
    np.add.at(flat, places[moved] - 1, np.asarray(cotangent)[moved])


def _indexed(step: PullBack, cotangent: Any) -> None:
    """``A[index]``."""
    index = _opened_index(step.saved.arguments()[1][1])
    for _, parent in step.parents():
        into = step.cotangents.into(parent)
        if into is None:
            continue
        if _visits_once(index):
            into[index] += cotangent
        else:
            np.add.at(into, index, cotangent)


def _opened_index(index: Any) -> Any:
    # NumPy 1 took a list of slices for a tuple; what remains is a list of numbers.
    return np.asarray(index, dtype=None if index else np.intp) if isinstance(index, list) else index


def _visits_once(index: Any) -> bool:
    parts = index if isinstance(index, tuple) else (index,)
    arrays = [part for part in parts if isinstance(part, (np.ndarray, list))]
    return all(np.asarray(part).dtype == bool for part in arrays) and len(arrays) <= 1


# ---- memory ----


def _part(memory: NDArray[Any], window: Window) -> NDArray[Any]:
    """What the window shows of a memory's cotangent, which lies as the memory does."""
    dtype = memory.dtype if window.whole else memory.real.dtype
    offset = window.offset * memory.itemsize + (dtype.itemsize if window.inside else 0)
    strides = tuple(stride * memory.itemsize for stride in window.strides)
    return np.ndarray(window.shape, dtype, memory.reshape(-1), offset, strides)


def _at(memory: NDArray[Any], region: Region) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """A flat view of a memory's cotangent (its part, if the region is one), and the region's places in it."""
    flat = memory.reshape(-1)
    if not region.whole:
        flat = flat.imag if region.inside else flat.real
    return flat, region.at if isinstance(region, Places) else region.places()


def _sign(region: Region) -> int:
    # A cotangent of z = x + iy is that of x minus i times that of y.
    return -1 if region.inside else 1


def _loaded(step: PullBack, cotangent: Any) -> None:
    """A read of a region."""
    region = step.saved.args[1]
    for _, parent in step.parents():
        into = step.cotangents.into(parent)
        if into is None:
            continue
        signed = _sign(region) * np.asarray(cotangent)
        if isinstance(region, Window) and region.distinct:
            part = _part(into, region)
            part += signed if part.dtype.kind == "c" else signed.real
        else:
            np.add.at(*_at(into, region), signed)


def _taken(cotangent: NDArray[Any], region: Region) -> NDArray[Any]:
    """A copy of what a write to the region gets of the memory's `cotangent`, of the region's shape."""
    if isinstance(region, Window):
        return np.asarray(_sign(region) * _part(cotangent, region))
    flat, places = _at(cotangent, region)
    return np.asarray(_sign(region) * flat[places])


def _cleared(cotangent: NDArray[Any], region: Region) -> None:
    if isinstance(region, Window):
        _part(cotangent, region)[...] = 0
    else:
        flat, places = _at(cotangent, region)
        flat[places] = 0


def _last_writes(region: Region) -> NDArray[np.bool_] | None:
    """Of a region that names elements twice, the writes that lasted; None if it names none twice."""
    if isinstance(region, Window):
        if region.distinct:
            return None
        places = region.places()
    else:
        places = region.at
    flat = places.reshape(-1)
    order = np.arange(flat.size)
    last = np.zeros(flat.max(initial=0) + 1, np.intp)
    np.maximum.at(last, flat, order)
    return np.asarray((last[flat] == order).reshape(places.shape))


def _stored(step: PullBack, cotangent: Any) -> None:
    """A write to a region: the source gets its cotangent, what it held before gets none."""
    region = step.saved.args[1]
    for argnum, parent in step.parents():
        if argnum == 0:
            continue
        taken = _taken(cotangent, region)
        lasting = _last_writes(region)
        if lasting is not None:
            taken = np.where(lasting, taken, 0)
        step.cotangents.add(parent, _unbroadcast(taken, parent.shape), own=True)
    _pass_on(step, cotangent, lambda: _cleared(cotangent, region))


def _pass_on(step: PullBack, cotangent: Any, change: Callable[[], None]) -> None:
    """Hand the memory's cotangent on to its contents before the write, after the `change`."""
    if 0 in step.call.argnums:
        change()
        step.cotangents.add(step.node.parents[step.call.argnums.index(0)], cotangent, own=True)


def _mixed(step: PullBack, cotangent: Any) -> None:
    """A write that may leave what it found: where a mask says so, at places, or by a ufunc's ``at``."""
    how = (step.saved.kwargs or {}).get("how")
    if how == "assign":
        _stored(step, cotangent)
    elif how == "where":
        _where_written(step, cotangent)
    elif how in (np.add, np.subtract):
        _accumulated(step, cotangent, 1 if how is np.add else -1)
    else:
        _pass_on(step, cotangent, lambda: _cleared(cotangent, step.saved.args[1]))
        raise NoRuleError


def _where_written(step: PullBack, cotangent: Any) -> None:
    _, args, _ = step.saved.arguments()
    region, mask = args[1], np.broadcast_to(np.asarray(args[-1], bool), args[1].shape)
    for argnum, parent in step.parents():
        if 0 < argnum < len(args) - 1:
            taken = np.where(mask, _taken(cotangent, region), 0)
            step.cotangents.add(parent, _unbroadcast(taken, parent.shape), own=True)
    _pass_on(step, cotangent, lambda: np.copyto(_part(cotangent, region), 0, where=mask))


def _accumulated(step: PullBack, cotangent: Any, sign: int) -> None:
    """``np.add.at`` and ``np.subtract.at``."""
    region = step.saved.args[1]
    for argnum, parent in step.parents():
        if argnum > 0:
            step.cotangents.add(parent, _unbroadcast(sign * _taken(cotangent, region), parent.shape))
    _pass_on(step, cotangent, lambda: None)


for _function, _adjoint in {
    load: _loaded,
    store: _stored,
    mix: _mixed,
    spread: _mixed,
    one_of_several: _unknown,
    ArrayBox.__getitem__: _indexed,
    np.copy: _identity,
    np.asarray: _identity,
    np.asanyarray: _identity,
    np.ascontiguousarray: _identity,
    np.asfortranarray: _identity,
    np.positive: _identity,
}.items():
    add_adjoint(_function, _adjoint)

_CHANGE_COTANGENT = {store, mix, spread}
"""Their adjoints change the cotangent of the result, and hand it on."""

# ---- what need not be kept ----

_LINEAR = (
    "add subtract negative positive real imag conj conjugate sum mean reshape ravel transpose swapaxes moveaxis "
    "rollaxis squeeze expand_dims broadcast_to flip flipud fliplr rot90 roll tile repeat pad triu tril diag trace "
    "concatenate stack vstack hstack column_stack cumsum diff split array_split hsplit vsplit dsplit "
    "atleast_1d atleast_2d atleast_3d copy asarray asanyarray ascontiguousarray asfortranarray"
)
_PRODUCTS = "multiply divide true_divide matmul dot inner outer tensordot einsum sin cos log"

needs_no_values(load, store, mix, spread, ArrayBox.__getitem__, wrapper.concatenate_args, wrapper._astype)
needs_no_values(*(getattr(np, name) for name in _LINEAR.split() if hasattr(np, name)))
needs_no_values(*(getattr(np.fft, name) for name in "fft ifft fftn ifftn fft2 ifft2 fftshift ifftshift".split()))
needs_no_result(*(getattr(np, name) for name in _PRODUCTS.split() if hasattr(np, name)))
needs_no_result(np.where)
