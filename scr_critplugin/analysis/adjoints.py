"""How cotangents are pulled back through recorded calls: by autograd's own rules, and by a table before them.

`pull_back` is one reverse pass over a tape that was recorded with its values. A rule of autograd is a
function of arguments and result (`autograd.core.primitive_vjps`). The table `ADJOINTS` holds the rules of
this package: indexing, whose cotangent is added in place (``A[index] += g``), where autograd makes an array
of the size of A for each read; reads and writes (`memory_adjoints`); and functions made of others
(`compositions`). Those that only move elements, by their row in `rules`, need no rule: the function is run on
the elements' numbers.

What has no rule, or a result that is no floating-point number, ends the derivative: it counts as zero, and
is reported (`Ended`), since a zero from there means nothing.

Over several ranks a pass is one on all of them: cotangents cross with the messages (`crossings`).

May import autograd, `calls`, `cotangents`, `crossings`, `rules`, `tape` and `values`. Tests:
``tests/test_gradient.py``, ``tests/test_mpi_gradient.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

import autograd.numpy.numpy_wrapper as wrapper
import numpy as np
from autograd.core import SparseObject, primitive_vjps
from autograd.numpy.numpy_boxes import ArrayBox
from autograd.tracer import trace_primitives_map
from numpy.typing import NDArray

from scr_critplugin.analysis.calls import Call
from scr_critplugin.analysis.cotangents import (
    Cotangents,
    NoRuleError,
    add_at,
    carries,
    unbroadcast,
    value_shape,
)
from scr_critplugin.analysis.crossings import ends_derivatives, leaf_of, pull_across, pull_leaf, words_of
from scr_critplugin.analysis.rules import ALL, FIRST, getitem_where
from scr_critplugin.analysis.sweep import communicates
from scr_critplugin.analysis.tape import DependenceNode, Tape
from scr_critplugin.analysis.values import Saved, is_linear_in, needs_no_result, needs_no_values

Seed = tuple[DependenceNode, Any]


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
FALLBACKS: dict[Callable[..., Any], Adjoint] = {}
"""Rules for where autograd has none, or none for the arguments."""
_CHANGE_COTANGENT: set[Callable[..., Any]] = set()


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


def changes_cotangent(*functions: Callable[..., Any]) -> None:
    """Declare that the adjoints of these change the cotangent of the result, and hand it on."""
    _CHANGE_COTANGENT.update(functions)


def pull_back(tape: Tape, seeds: Iterable[Seed], ended: Ended) -> Mapping[str, NDArray[Any]]:
    """Cotangents of the roots, by name, for those `seeds` of results; zero where nothing arrives.

    Notes in `ended` where derivatives end. Roots that are no floating-point numbers are left out. All ranks
    must pull at the same time, those without seeds too.
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
    if communicates(node):
        # Other ranks wait for it, whatever has arrived here.
        if not pull_across(node, cotangents):
            ended.note(node)
        return
    if not carries(node):
        if call.function is leaf_of:
            is_end = ends_derivatives(node)
        else:
            is_end = any(carries(parent) for parent in node.parents)
        if is_end:
            ended.note(node)
        return
    saved = cast(Saved, node.saved)
    step = PullBack(node, call, saved, cotangents)
    cotangent = cotangents.take(node, own=saved.function in _CHANGE_COTANGENT)
    if cotangent is None:
        return
    for adjoint in _adjoints_of(step):
        try:
            adjoint(step, cotangent)
            break
        except NoRuleError:
            continue
    else:
        ended.note(node)


def _name(node: DependenceNode) -> str:
    words = words_of(node)
    if words is not None:
        return words
    saved = cast(Saved, node.saved)
    named = (saved.kwargs or {}).get("how", saved.function)
    return str(getattr(named, "__name__", named))


# ---- which rule ----


def _adjoints_of(step: PullBack) -> Iterable[Adjoint]:
    """Rules to be tried in turn: autograd's do not hold for all arguments."""
    function = cast("Callable[..., Any]", step.saved.function)
    own = ADJOINTS.get(function)
    if own is not None:
        yield own
        return
    if _vjp_maker(function) is not None:
        yield _masked_ufunc if isinstance(function, np.ufunc) else _by_autograd
    if function in FALLBACKS:
        yield FALLBACKS[function]
    row = step.node.row
    if row is not None and row.known and row.moves(step.call):
        yield _moved


def _vjp_maker(function: Callable[..., Any]) -> Callable[..., Any] | None:
    maker = primitive_vjps.get(function) or primitive_vjps.get(trace_primitives_map.get(function))
    return cast("Callable[..., Any] | None", maker)


def _by_autograd(step: PullBack, cotangent: Any) -> None:
    """The rule of autograd."""
    value, args, kwargs = step.saved.arguments()
    for (_, parent), part in zip(step.parents(), _vjps(step, value, args, kwargs, cotangent), strict=True):
        step.cotangents.add(parent, part)


def _vjps(step: PullBack, value: Any, args: tuple[Any, ...], kwargs: dict[str, Any], cotangent: Any) -> Any:
    argnums = tuple(argnum for argnum, _ in step.parents())
    maker = cast("Callable[..., Any]", _vjp_maker(cast("Callable[..., Any]", step.saved.function)))
    try:
        parts = tuple(maker(argnums, value, args, kwargs)(cotangent)) if argnums else ()
    except (TypeError, ValueError, LookupError, NotImplementedError, AssertionError) as missing:
        # autograd's rules differ in which arguments they know, and say so in these ways.
        raise NoRuleError from missing
    for argnum, part in zip(argnums, parts, strict=True):
        array = args[argnum]
        is_dense = isinstance(array, np.ndarray) and not isinstance(part, SparseObject)
        if is_dense and np.shape(part) != array.shape:
            raise NoRuleError
    return parts


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
        step.cotangents.add(parent, unbroadcast(whole, value_shape(parent)), own=True)


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
        # As the argument lies, for functions that go by that.
        numbers = np.empty_like(args[argnum], np.intp)
        numbers[...] = np.arange(1, into.size + 1).reshape(into.shape)
        numbered = tuple(
            numbers
            if i == argnum
            else np.zeros(np.shape(arg), np.intp)
            if i in data and _is_float(arg)
            else arg
            for i, arg in enumerate(args)
        )
        _add_at_numbers(step.call.function(*numbered, **kwargs), cotangent, into.reshape(-1))


def _is_float(value: Any) -> bool:
    array = isinstance(value, (np.ndarray, np.generic))
    return value.dtype.kind in "fc" if array else isinstance(value, (float, complex))


def _add_at_numbers(numbers: Any, cotangent: Any, flat: NDArray[Any]) -> None:
    if isinstance(numbers, (list, tuple)):
        for member, part in zip(numbers, cotangent, strict=True):
            _add_at_numbers(member, part, flat)
        return
    # Some functions give their result a floating-point dtype.
    places = np.asarray(numbers).astype(np.intp)
    moved = places > 0
    add_at(flat, places[moved] - 1, np.asarray(cotangent)[moved])


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
            add_at(into.reshape(-1), np.arange(into.size).reshape(into.shape)[index], cotangent)


def _opened_index(index: Any) -> Any:
    # NumPy 1 took a list of slices for a tuple; what remains is a list of numbers.
    return np.asarray(index, dtype=None if index else np.intp) if isinstance(index, list) else index


def _visits_once(index: Any) -> bool:
    parts = index if isinstance(index, tuple) else (index,)
    arrays = [part for part in parts if isinstance(part, (np.ndarray, list))]
    return all(np.asarray(part).dtype == bool for part in arrays) and len(arrays) <= 1


def _arrived(step: PullBack, cotangent: Any) -> None:
    """One leaf of what another rank sent, or of a reduction."""
    pull_leaf(step.node, cotangent, step.cotangents)


def _selected(step: PullBack, cotangent: Any) -> None:
    """``where(condition, x, y)``."""
    _, (condition, *_), _ = step.saved.arguments()
    steers = False
    for argnum, parent in step.parents():
        if argnum == 0:
            steers = True
            continue
        chosen = np.where(condition, cotangent, 0) if argnum == 1 else np.where(condition, 0, cotangent)
        step.cotangents.add(parent, unbroadcast(chosen, value_shape(parent)), own=True)
    if steers:
        raise NoRuleError


def _sorted(step: PullBack, cotangent: Any) -> None:
    """``sort`` and ``partition``: each result is the element that the index function names."""
    value, args, kwargs = step.saved.arguments()
    index_of: Callable[..., Any] = np.argsort if step.saved.function is np.sort else np.argpartition
    order = index_of(*args, **kwargs)
    axis = step.call.parameter("axis")
    for _, parent in step.parents():
        into = step.cotangents.into(parent)
        if into is None:
            continue
        if axis is None or not np.array_equal(np.take_along_axis(args[0], order, axis), value):
            raise NoRuleError
        numbers = np.take_along_axis(np.arange(into.size).reshape(into.shape), order, axis)
        add_at(into.reshape(-1), numbers, cotangent)


def _reshaped(step: PullBack, cotangent: Any) -> None:
    if step.call.parameter("order") == "C":
        for _, parent in step.parents():
            step.cotangents.add(parent, np.asarray(cotangent).reshape(value_shape(parent)))
    else:
        _moved(step, cotangent)


def _of_lower_triangle(step: PullBack, cotangent: Any) -> None:
    """Functions that read one triangle of a symmetric matrix; autograd halves its derivative between both."""
    value, args, kwargs = step.saved.arguments()
    upper = kwargs.get("upper", False) or kwargs.get("UPLO", (*args, "L", "L")[1]) in ("U", "u")
    for (_, parent), part in zip(step.parents(), _vjps(step, value, args, kwargs, cotangent), strict=True):
        both = part + np.swapaxes(part, -1, -2)
        read = np.triu(both) if upper else np.tril(both)
        diagonal = np.eye(part.shape[-1], dtype=bool)
        step.cotangents.add(parent, np.where(diagonal, part, read), own=True)


for _function, _adjoint in {
    np.reshape: _reshaped,
    np.ravel: _reshaped,
    np.tile: _moved,
    np.repeat: _moved,
    np.linalg.cholesky: _of_lower_triangle,
    np.linalg.eigh: _of_lower_triangle,
    np.where: _selected,
    np.sort: _sorted,
    np.partition: _sorted,
    np.unwrap: _identity,
    ArrayBox.__getitem__.fun: _indexed,
    getitem_where.fun: _indexed,
    leaf_of: _arrived,
    np.copy: _identity,
    np.asarray: _identity,
    np.asanyarray: _identity,
    np.ascontiguousarray: _identity,
    np.asfortranarray: _identity,
    np.positive: _identity,
}.items():
    add_adjoint(_function, _adjoint)

# ---- what need not be kept ----

_LINEAR = (
    "add subtract negative positive real imag conj conjugate sum mean transpose swapaxes "
    "moveaxis rollaxis squeeze expand_dims broadcast_to flip flipud fliplr rot90 roll tile repeat pad triu "
    "tril diag trace concatenate stack vstack hstack column_stack cumsum diff split array_split hsplit "
    "vsplit dsplit atleast_1d atleast_2d atleast_3d copy asarray asanyarray ascontiguousarray asfortranarray"
)
_TRANSFORMS = "fft ifft fftn ifftn fft2 ifft2 fftshift ifftshift"
_PRODUCTS = "multiply matmul dot inner outer tensordot einsum"

needs_no_values(ArrayBox.__getitem__.fun, getitem_where.fun, leaf_of)
needs_no_values(wrapper.concatenate_args, wrapper._astype)
needs_no_values(*(getattr(np, name) for name in _LINEAR.split() if hasattr(np, name)))
needs_no_values(*(getattr(np.fft, name) for name in _TRANSFORMS.split()))
is_linear_in(ALL, *(getattr(np, name) for name in _PRODUCTS.split()))
is_linear_in(FIRST, np.divide)
needs_no_result(np.where, np.sin, np.cos, np.log)
