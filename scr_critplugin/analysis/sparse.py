"""Backward passes over a tape with sets as runs: their cost follows the sets' rows, not the arrays' size.

The passes are those of `sweep`. For the frequent primitives there is a pull on runs (`PULLS`, by the pull
that `rules` gives them); every other one is pulled densely by its own row, on a boolean array made for it,
and counted in `Sweeper.densely`. What depends on everything stays one run.

May import `calls`, `masks`, `pulls`, `runsets`, `sweep`, `tape`, `windows` and `writes`. Tests:
``tests/test_sparse.py``.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from scr_critplugin.analysis import masks, pulls, windows
from scr_critplugin.analysis.calls import Call, Shaped
from scr_critplugin.analysis.masks import BoolArray, Shape
from scr_critplugin.analysis.runsets import (
    DENSER_THAN,
    IndexMap,
    NotSparseError,
    Runs,
    broadcast_strides,
    c_strides,
    too_many_runs,
    united,
)
from scr_critplugin.analysis.sweep import copies
from scr_critplugin.analysis.tape import DependenceNode, Tape
from scr_critplugin.analysis.windows import Places, Window, window_of
from scr_critplugin.analysis.writes import whole_index

Elements: TypeAlias = "Runs | BoolArray | list[Elements]"
"""Elements of a value: runs, a boolean array where runs would take more memory, a list for a sequence."""

Seed: TypeAlias = tuple[DependenceNode, Elements]
SparsePull: TypeAlias = Callable[[Call, Any, int, tuple[int, ...]], Runs]
"""The elements of argument `argnum`, of the given shape, that the needed elements of the result depend on."""


def everything(shape: Shape) -> Elements:
    """All elements of a value."""
    if isinstance(shape, list):
        return [everything(member) for member in shape]
    return Runs.all(math.prod(shape))


def nothing(shape: Shape) -> Elements:
    """No element of a value."""
    return [nothing(member) for member in shape] if isinstance(shape, list) else Runs.none()


def has_any(elements: Elements) -> bool:
    """True if any element is in the set."""
    if isinstance(elements, list):
        return any(map(has_any, elements))
    return bool(elements) if isinstance(elements, Runs) else bool(elements.any())


def as_runs(elements: Elements) -> Runs:
    """The runs of a set of one array."""
    return elements if isinstance(elements, Runs) else Runs.from_mask(cast(BoolArray, elements))


class Sweeper:
    """Passes over one tape. `densely` counts the pulls on boolean arrays, by the primitive's name.

    With `only_runs`, NotSparseError is raised instead.
    """

    def __init__(self, tape: Tape, densely: Counter[str] | None = None, *, only_runs: bool = False) -> None:
        self.tape = tape
        self.only_runs = only_runs
        self.densely: Counter[str] = Counter() if densely is None else densely

    def sinks(self) -> list[Seed]:
        """Everything that left by a sink that counts."""
        nodes = {position: self.tape.nodes[position] for position in self.tape.counted()}
        return [(node, everything(node.shape)) for node in nodes.values()]

    def needed(self, seeds: Iterable[Seed]) -> dict[str, Runs]:
        """Elements of the roots that the elements in `seeds` can depend on; sinks are not among them."""
        held = self._seeded(seeds)
        for node in reversed(self.tape.nodes):
            elements = held.get(node.position)
            if node.call is not None and elements is not None:
                del held[node.position]
                self._pull(node, elements, held)
        return self._of_roots(held)

    def accessed(self, seeds: Iterable[Seed]) -> dict[str, Runs]:
        """Elements of the roots that are computed with, leave by a sink, or are copied to the `seeds`."""
        left = {position: self.tape.nodes[position] for position, _ in self.tape.sinks}
        held = self._seeded([*seeds, *((node, everything(node.shape)) for node in left.values())])
        for node in reversed(self.tape.nodes):
            if node.call is None:
                continue
            if copies(node):
                elements = held.pop(node.position, None)
                if elements is not None:
                    self._pull(node, elements, held)
            else:
                held.pop(node.position, None)
                for parent in node.parents:
                    held[parent.position] = everything(parent.shape)
        return self._of_roots(held)

    def carried(self, seeds: Iterable[Seed]) -> dict[str, Runs]:
        """Elements of the roots that are copied, unchanged, to where `seeds` are set."""
        held = self._seeded(seeds)
        for node in reversed(self.tape.nodes):
            if node.call is None:
                continue
            elements = held.pop(node.position, None)
            if elements is not None and copies(node):
                self._pull(node, elements, held)
        return self._of_roots(held)

    def _seeded(self, seeds: Iterable[Seed]) -> dict[int, Elements]:
        held: dict[int, Elements] = {}
        for node, elements in seeds:
            _add(held, node, elements)
        return held

    def _of_roots(self, held: dict[int, Elements]) -> dict[str, Runs]:
        return {name: as_runs(held.get(node.position, Runs.none())) for name, node in self.tape.roots.items()}

    def _pull(self, node: DependenceNode, elements: Elements, held: dict[int, Elements]) -> None:
        """Add to the parents' sets what the `elements` of the node's result can depend on."""
        call, row = node.call, node.row
        if call is None or row is None or not has_any(elements):
            return
        is_dense = node.coarse or row.pull is pulls.dense
        is_dense = is_dense or (isinstance(elements, list) and not row.many_results)
        for argnum, parent in zip(call.argnums, node.parents, strict=True):
            if is_dense or (isinstance(parent.shape, list) and not row.sequence_argument):
                _add(held, parent, everything(parent.shape))
            elif row.pull in (pulls.container_item, pulls.container_made):
                _add(held, parent, _of_container(row.pull, call, elements, argnum, parent.shape))
            else:
                _add(held, parent, self._through(call, row.pull, elements, argnum, parent.shape))

    def _through(
        self, call: Call, pull: pulls.Pull, elements: Elements, argnum: int, shape: Shape
    ) -> Elements:
        on_runs = _of_view if call.function in VIEWS else PULLS.get(pull, ROLLS.get(call.function))
        if on_runs is not None and isinstance(shape, tuple):
            try:
                return on_runs(call, elements, argnum, shape)
            except NotSparseError:
                pass
        if self.only_runs:
            raise NotSparseError
        self.densely[getattr(call.function, "__name__", repr(call.function))] += 1
        into = masks.nothing(shape)
        pull(call, _as_mask(elements, call.shape), argnum, into)
        return _compact(into)


def _add(held: dict[int, Elements], node: DependenceNode, elements: Elements) -> None:
    before = held.get(node.position)
    held[node.position] = elements if before is None else _union(before, elements, node.shape)


def _union(one: Elements, other: Elements, shape: Shape) -> Elements:
    if isinstance(shape, list):
        if isinstance(one, list) and isinstance(other, list):
            return [_union(a, b, part) for a, b, part in zip(one, other, shape, strict=True)]
        # One side sees a sequence and the other an opaque value: all or nothing is the safe reading.
        return everything(shape)
    if isinstance(one, Runs) and isinstance(other, Runs):
        runs = united([one, other])
        return runs.on(shape) if too_many_runs(runs.rows, math.prod(shape)) else runs
    return np.asarray(_as_mask(one, shape) | _as_mask(other, shape))


def _as_mask(elements: Elements, shape: Shape) -> Any:
    if isinstance(elements, list):
        parts = shape if isinstance(shape, list) else [()] * len(elements)
        return [_as_mask(member, part) for member, part in zip(elements, parts, strict=True)]
    return elements.on(cast("tuple[int, ...]", shape)) if isinstance(elements, Runs) else elements


def _compact(mask: masks.Mask) -> Elements:
    if isinstance(mask, list):
        return [_compact(member) for member in mask]
    flat = mask.reshape(-1)
    edges = int(np.count_nonzero(flat[1:] != flat[:-1]))
    return mask if too_many_runs(edges // 2, mask.size) else Runs.from_mask(mask)


def _of_container(pull: pulls.Pull, call: Call, needed: Elements, argnum: int, shape: Shape) -> Elements:
    if pull is pulls.container_made:
        return needed[argnum - 1] if isinstance(needed, list) else everything(shape)
    if not isinstance(shape, list):
        return everything(shape)
    into = [nothing(member) for member in shape]
    chosen = call.args[1]
    if not isinstance(chosen, slice):
        into[chosen] = needed
        return into
    numbers = range(len(into))[chosen]
    parts = needed if isinstance(needed, list) else [everything(shape[number]) for number in numbers]
    for number, part in zip(numbers, parts, strict=True):
        into[number] = part
    return into


# ---- pulls on runs ----


def _runs_of(needed: Elements) -> Runs:
    """`needed` as runs, or a sign that runs are not the form for it."""
    if not isinstance(needed, Runs):
        raise NotSparseError
    return needed


def _few_places(runs: Runs, size: int) -> NDArray[np.int64]:
    """The elements one by one, if that is no more work than a boolean array of `size` elements would be."""
    return runs.places(max(size // DENSER_THAN, 2**16))


def _shape_of(call: Call) -> tuple[int, ...]:
    if isinstance(call.shape, list):
        raise NotSparseError
    return call.shape


def _broadcast(needed: Runs, result: tuple[int, ...], shape: tuple[int, ...]) -> Runs:
    """The operand's elements under the `needed` ones of a result that it was broadcast to."""
    if math.prod(shape) == math.prod(result):
        # Same elements in the same order: axes of one element make no difference.
        return needed
    if math.prod(shape) == 1:
        return Runs.all(1)
    index_map = IndexMap(result, c_strides(result), broadcast_strides(shape, result))
    return index_map.apply(needed, math.prod(result))


def _elementwise(call: Call, needed: Elements, argnum: int, shape: tuple[int, ...]) -> Runs:
    if isinstance(needed, list):
        if not isinstance(call.shape, list) or len({str(part) for part in call.shape}) > 1:
            raise NotSparseError
        return _broadcast(united(map(_runs_of, needed)), cast("tuple[int, ...]", call.shape[0]), shape)
    return _broadcast(_runs_of(needed), _shape_of(call), shape)


def _fill_value(call: Call, needed: Elements, argnum: int, shape: tuple[int, ...]) -> Runs:
    return _elementwise(call, needed, argnum, shape) if argnum == 1 else Runs.none()


def _select(call: Call, needed: Elements, argnum: int, shape: tuple[int, ...]) -> Runs:
    condition, result, runs = call.args[0], _shape_of(call), _runs_of(needed)
    if argnum > 0 and not isinstance(condition, Shaped):
        places = _few_places(runs, math.prod(result))
        at = np.unravel_index(places, result)
        chosen = np.broadcast_to(np.asarray(condition, dtype=bool), result)[at]
        runs = Runs.from_places(places[chosen if argnum == 1 else ~chosen])
    return _broadcast(runs, result, shape)


def _stacked(call: Call, needed: Elements, argnum: int, shape: tuple[int, ...]) -> Runs:
    size = math.prod(shape)
    member = IndexMap((size,), (1,), (1,), (argnum - 2) * size)
    return member.apply(_runs_of(needed), size)


def _reduction(call: Call, needed: Elements, argnum: int, shape: tuple[int, ...]) -> Runs:
    axes = pulls.axes_of(call, len(shape))
    result, runs = _shape_of(call), _runs_of(needed)
    if axes is None or len(axes) == len(shape):
        return Runs.all(math.prod(shape))
    if len(result) == len(shape) - len(axes):
        strides = iter(c_strides(result))
        source = [0 if axis in axes else next(strides) for axis in range(len(shape))]
    elif len(result) == len(shape) and all(result[axis] == 1 for axis in axes):
        source = [0 if axis in axes else stride for axis, stride in enumerate(c_strides(result))]
    else:
        return Runs.all(math.prod(shape))
    return IndexMap(shape, source, c_strides(shape)).apply(runs, math.prod(shape))


def _mixed(call: Call, needed: Elements, argnum: int, shape: tuple[int, ...]) -> Runs:
    axes = pulls.axes_of(call, len(shape))
    result, runs = _shape_of(call), _runs_of(needed)
    if axes is None or len(result) != len(shape):
        return Runs.all(math.prod(shape))
    lines = tuple(1 if axis in axes else extent for axis, extent in enumerate(shape))
    if any(lines[axis] != result[axis] for axis in range(len(shape)) if axis not in axes):
        return Runs.all(math.prod(shape))
    touched = IndexMap(result, c_strides(result), broadcast_strides(lines, result))
    along = IndexMap(shape, broadcast_strides(lines, shape), c_strides(shape))
    return along.apply(touched.apply(runs, math.prod(result)), math.prod(shape))


def _concatenated(call: Call, needed: Elements, argnum: int, shape: tuple[int, ...]) -> Runs:
    axis, result = call.args[0], _shape_of(call)
    before = [call.shape_at(i) for i in range(1, argnum)]
    size = math.prod(shape)
    if axis is None:
        return IndexMap((size,), (1,), (1,), sum(map(math.prod, before))).apply(
            _runs_of(needed), math.prod(result)
        )
    axis %= len(shape)
    strides = c_strides(result)
    start = sum(extents[axis] for extents in before) * strides[axis]
    return IndexMap(shape, strides, c_strides(shape), start).apply(_runs_of(needed), math.prod(result))


def _padded(call: Call, needed: Elements, argnum: int, shape: tuple[int, ...]) -> Runs:
    """Of a pad with constants, the inside; other modes repeat elements of the array."""
    result = _shape_of(call)
    widths = np.broadcast_to(call.parameter("pad_width"), (len(shape), 2))
    if call.parameter("mode") != "constant":
        return _repeating_pad(call, _runs_of(needed), widths, shape)
    start = int(np.dot(widths[:, 0], c_strides(result)))
    inside = IndexMap(shape, c_strides(result), c_strides(shape), start)
    return inside.apply(_runs_of(needed), math.prod(result))


def _repeating_pad(call: Call, needed: Runs, widths: NDArray[np.intp], shape: tuple[int, ...]) -> Runs:
    """Axis by axis: an index of the result shows one index of the array, which NumPy itself tells."""
    mode = call.parameter("mode")
    shown = [
        np.pad(np.arange(extent), tuple(width), mode=mode)
        for extent, width in zip(shape, widths, strict=True)
    ]
    return united(_by_blocks(needed, shown, _shape_of(call), shape))


def _by_blocks(
    needed: Runs, shown: list[NDArray[np.intp]], result: tuple[int, ...], shape: tuple[int, ...]
) -> Iterable[Runs]:
    """Pull a result whose element [i, j, ...] is the argument's [shown[0][i], shown[1][j], ...]."""
    stretches = [_stretches(line) for line in shown]
    strides, own = c_strides(result), c_strides(shape)
    for block in _products(stretches):
        yield IndexMap(
            [extent for _, extent, _, _ in block],
            strides,
            [step * stride for (_, _, _, step), stride in zip(block, own, strict=True)],
            sum(at * stride for (at, _, _, _), stride in zip(block, strides, strict=True)),
            sum(first * stride for (_, _, first, _), stride in zip(block, own, strict=True)),
        ).apply(needed, math.prod(result))


_Stretch: TypeAlias = tuple[int, int, int, int]


def _stretches(line: NDArray[np.intp]) -> list[_Stretch]:
    """`line` as stretches of equal steps: place, length, first value, step."""
    found: list[_Stretch] = []
    at = 0
    steps = np.diff(line)
    while at < len(line):
        step = int(steps[at]) if at < len(steps) else 0
        other = np.flatnonzero(steps[at:] != step)
        length = (int(other[0]) if other.size else len(steps) - at) + 1
        found.append((at, length, int(line[at]), step))
        at += length
    return found


def _products(stretches: list[list[_Stretch]]) -> Iterable[tuple[_Stretch, ...]]:
    if math.prod(map(len, stretches)) > _MOST_BLOCKS:
        raise NotSparseError
    blocks: list[tuple[_Stretch, ...]] = [()]
    for choices in stretches:
        blocks = [(*block, choice) for block in blocks for choice in choices]
    return blocks


_MOST_BLOCKS = 1024


def _rolled(call: Call, needed: Elements, argnum: int, shape: tuple[int, ...]) -> Runs:
    axis, shift = call.parameter("axis"), call.parameter("shift")
    if axis is None:
        shown = [np.roll(np.arange(math.prod(shape)), shift)] if math.prod(shape) < 2**20 else None
        if shown is None:
            raise NotSparseError
        flat = (math.prod(shape),)
        return united(_by_blocks(_runs_of(needed), shown, flat, flat))
    shown = [np.arange(extent) for extent in shape]
    for one, by in np.broadcast(np.asarray(axis), np.asarray(shift)):
        shown[int(one)] = np.roll(shown[int(one)], int(by))
    return united(_by_blocks(_runs_of(needed), shown, shape, shape))


def _getitem(call: Call, needed: Elements, argnum: int, shape: tuple[int, ...]) -> Runs:
    index, runs = call.args[1], _runs_of(needed)
    parts = index if isinstance(index, tuple) else (index,)
    if not any(isinstance(part, (np.ndarray, list, bool, np.bool_)) for part in parts):
        blank = np.empty(shape, bool)  # never touched: NumPy tells where its view lies
        return _view_of(blank[whole_index(index)], blank, runs)
    places = _chosen_places(parts, shape)
    rest = math.prod(shape) // math.prod(shape[: len(parts)]) if not _is_mask(parts) else 1
    if _is_mask(parts):
        rest = math.prod(shape[np.ndim(parts[0]) :])
    wanted = _few_places(runs, math.prod(_shape_of(call)))
    which, inside = np.divmod(wanted, rest)
    return Runs.from_places(places[which] * rest + inside)


def _is_mask(parts: tuple[Any, ...]) -> bool:
    return len(parts) == 1 and np.asarray(parts[0]).dtype == bool


def _chosen_places(parts: tuple[Any, ...], shape: tuple[int, ...]) -> NDArray[np.int64]:
    """Places, in the leading axes, that an index of arrays of integers, or of one mask, chooses."""
    if _is_mask(parts):
        return np.flatnonzero(np.asarray(parts[0]))
    arrays = [np.asarray(part) for part in parts if isinstance(part, (np.ndarray, list, int, np.integer))]
    if len(arrays) < len(parts) or any(array.dtype.kind not in "iu" for array in arrays):
        raise NotSparseError
    leading = shape[: len(parts)]
    positive = [np.where(array < 0, array + n, array) for array, n in zip(arrays, leading, strict=True)]
    return np.ravel_multi_index(tuple(np.broadcast_arrays(*positive)), leading).reshape(-1)


def _view_of(view: Any, blank: BoolArray, runs: Runs) -> Runs:
    if not isinstance(view, np.ndarray) or (view.size and not np.may_share_memory(view, blank)):
        raise NotSparseError
    if not view.size:
        return Runs.none()
    window = window_of(view, blank.reshape(-1))
    if not isinstance(window, Window):
        raise NotSparseError
    index_map = IndexMap(window.shape, c_strides(window.shape), window.strides, 0, window.offset)
    return index_map.apply(runs, max(blank.size, view.size))


def _of_view(call: Call, needed: Elements, argnum: int, shape: tuple[int, ...]) -> Runs:
    """Functions that show the elements of their first argument: run on a blank array, they tell where."""
    if call.has_parameter("order") and call.parameter("order") != "C":
        # How the argument lies decides, and of that nothing is kept.
        raise NotSparseError
    blank = np.empty(shape, bool)
    views = call.function(blank, *call.args[1:], **call.kwargs)
    if isinstance(views, (list, tuple)):
        if not isinstance(needed, list):
            raise NotSparseError
        return united(_view_of(view, blank, _runs_of(part)) for view, part in zip(views, needed, strict=True))
    return _view_of(views, blank, _runs_of(needed))


_NAMES_OF_VIEWS = (
    "reshape transpose moveaxis ravel swapaxes rollaxis matrix_transpose squeeze expand_dims broadcast_to "
    "flip fliplr flipud rot90 diagonal split array_split hsplit vsplit dsplit unstack"
)
VIEWS: set[Callable[..., Any]] = {getattr(np, name) for name in _NAMES_OF_VIEWS.split() if hasattr(np, name)}
"""Functions for `_of_view`."""

ROLLS: dict[Callable[..., Any], SparsePull] = {np.roll: _rolled}


# ---- reads and writes of memory; the calls are (memory, region, *sources) ----


def _loaded(call: Call, needed: Elements, argnum: int, shape: tuple[int, ...]) -> Runs:
    region, size = call.args[1], math.prod(shape)
    if isinstance(region, Places):
        wanted = _few_places(_runs_of(needed), region.at.size)
        return Runs.from_places(region.at.reshape(-1)[wanted].astype(np.int64))
    index_map = IndexMap(region.shape, c_strides(region.shape), region.strides, 0, region.offset)
    return index_map.apply(_runs_of(needed), max(size, math.prod(region.shape)))


def _stored(call: Call, needed: Elements, argnum: int, shape: tuple[int, ...]) -> Runs:
    if argnum > 0:
        return _from_region(call, _runs_of(needed), shape)
    region = call.args[1]
    if not region.whole:
        return _runs_of(needed)
    return _runs_of(needed).minus(_in_region(region, _runs_of(needed), math.prod(shape)))


def _mixed_in(call: Call, needed: Elements, argnum: int, shape: tuple[int, ...]) -> Runs:
    return _runs_of(needed) if argnum == 0 else _from_region(call, _runs_of(needed), shape)


def _spread_over(call: Call, needed: Elements, argnum: int, shape: tuple[int, ...]) -> Runs:
    return _runs_of(needed) if argnum == 0 else Runs.all(math.prod(shape))


def _in_region(region: Window | Places, runs: Runs, size: int) -> Runs:
    """The elements of a memory in `runs` that lie in the region."""
    if isinstance(region, Places):
        return Runs.from_places(region.at.reshape(-1)[_places_hit(region, runs)].astype(np.int64))
    return IndexMap(region.shape, region.strides, region.strides, region.offset, region.offset).apply(
        runs, size
    )


def _from_region(call: Call, runs: Runs, shape: tuple[int, ...]) -> Runs:
    """Elements of a source of `shape` that were written to where `runs` are."""
    region = call.args[1]
    if isinstance(region, Places):
        return _broadcast(Runs.from_places(np.flatnonzero(_places_hit(region, runs))), region.shape, shape)
    target = broadcast_strides(shape, region.shape)
    return IndexMap(region.shape, region.strides, target, region.offset).apply(
        runs, math.prod(call.shape_at(0))
    )


def _places_hit(region: Places, runs: Runs) -> BoolArray:
    at = region.at.reshape(-1)
    if at.size:
        runs = runs.near(int(at.min()), int(at.max()) + 1)
    before = np.searchsorted(runs.start, at, side="right") - 1
    return (before >= 0) & (at < runs.stop[before]) if runs else np.zeros(at.shape, bool)


PULLS: dict[pulls.Pull, SparsePull] = {
    pulls.elementwise: _elementwise,
    pulls.shape_only: lambda call, needed, argnum, shape: Runs.none(),
    pulls.fill_value: _fill_value,
    pulls.select: _select,
    pulls.stacked: _stacked,
    pulls.reduction: _reduction,
    pulls.mixed: _mixed,
    pulls.getitem: _getitem,
    pulls.concatenated: _concatenated,
    pulls.padded: _padded,
    windows.loaded: _loaded,
    windows.stored: _stored,
    windows.mixed_in: _mixed_in,
    windows.spread_over: _spread_over,
}
"""Pulls on runs, by the dense pull that they stand for."""
