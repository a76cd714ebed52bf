"""What the memory that checkpoint bytes came from is called, and what it looks like.

Heap blocks take the name of the static variable that points at them, else of the place that allocated them;
static memory that of its variables. Names do not depend on addresses, so that ranks and runs agree. Imports
NumPy, the errors, ``trace_file``, ``symbols`` and ``shapes``. Tests: ``tests/test_tracing_naming.py``.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from ..errors import CritError, TraceError
from ._pointees import filled
from .shapes import Shape
from .symbols import Order, Pointee, Program, StaticVariable
from .trace_file import Block, Frame, RankTrace, TracedObject

__all__ = ["Namer", "Source", "StaticPiece", "name_sources", "static_pieces"]

_BYTES = np.dtype(np.uint8)
_ALLOCATORS = {
    "malloc",
    "calloc",
    "realloc",
    "reallocarray",
    "memalign",
    "aligned_alloc",
    "posix_memalign",
    "valloc",
    "mmap",
    "mmap64",
    "mremap",
}
# Frames of the standard libraries between the allocator and the program.
_LIBRARY_FUNCTION = re.compile(
    r"(?:[\w:<>,\s*&]*?[\s*&])?(?:std|__gnu_cxx)::|operator new|_gfortrani?_|__libc_"
)


@dataclass(frozen=True)
class Source:
    """A piece of memory that checkpoint bytes came from.

    Parameters
    ----------
    name : str
        Printable, and unique among the sources of a rank; equal on all ranks and in all runs.
    address, nbytes : int
        Where it was at run time.
    dtype : np.dtype
        uint8 where the type is not known.
    shape : tuple of int or None
        None where it is not known; else its bytes are exactly `nbytes`.
    order : {"C", "F"}
    stack : tuple of str
        Where it was allocated, innermost first; empty for static memory.
    lower : tuple of int
        First index of each axis as the program counts; empty where the shape is not known.
    """

    name: str
    address: int
    nbytes: int
    dtype: np.dtype[Any] = _BYTES
    shape: tuple[int, ...] | None = None
    order: Order = "C"
    stack: tuple[str, ...] = ()
    lower: tuple[int, ...] = ()


@dataclass(frozen=True)
class StaticPiece:
    """Run-time addresses ``start <= address < stop`` within one source."""

    start: int
    stop: int
    source: Source


class Namer:
    """Names the memory of one rank.

    Parameters
    ----------
    trace : RankTrace
    overrides : mapping, optional
        Shapes by source name, as the user states them (``--shape 'u=12,13,13,5'``).
    """

    def __init__(self, trace: RankTrace, overrides: Mapping[str, Shape] | None = None) -> None:
        self._trace = trace
        self._overrides = dict(overrides or {})

    def blocks(self) -> dict[int, Source]:
        """Source of each block of the trace.

        Static memory, if it is a block at all, may hold several variables: see :meth:`static_pieces`.

        Raises
        ------
        TraceError
            A stated shape does not fit its memory; `key` is the name.
        """
        found: dict[int, Source] = {}
        times: dict[str, int] = {}
        for number, block in sorted(self._trace.blocks.items()):
            source = self._block(block)
            times[source.name] = times.get(source.name, 0) + 1
            if times[source.name] > 1:
                source = replace(source, name=f"{source.name}#{times[source.name]}")
            found[number] = self._as_stated(source)
        return found

    def static_pieces(self, start: int, stop: int) -> list[StaticPiece]:
        """Cut a range of run-time addresses by the static variables in it; the pieces cover the range.

        What no variable covers is named by its section, and outside of all objects "unknown memory".

        Raises
        ------
        TraceError
            A stated shape does not fit its variable; `key` is the name.
        """
        pieces = []
        for at, end, source in _cut(self._trace, start, stop):
            # The pointer "u" and the block it points at must not be taken for each other.
            points = source.name in self._pointing
            named = replace(source, name=f"&{source.name}") if points else source
            pieces.append(StaticPiece(at, end, self._as_stated(named)))
        return pieces

    @functools.cached_property
    def _pointees(self) -> dict[int, list[Pointee]]:
        """What the static pointers to each block say of it."""
        found: dict[int, list[Pointee]] = {}
        for root in self._trace.roots:
            owner = _object_at(self._trace, root.address)
            program = None if owner is None else _program(owner.path)
            if owner is None or program is None:
                continue
            pointee = program.pointee_at(root.address - owner.bias, root.memory, root.address)
            if pointee is not None:
                found.setdefault(root.block, []).append(pointee)
        return found

    @functools.cached_property
    def _pointing(self) -> set[str]:
        return {pointee.name for pointees in self._pointees.values() for pointee in pointees}

    def _block(self, block: Block) -> Source:
        plain = Source("", block.address, block.nbytes, stack=tuple(map(_frame_text, block.stack)))
        if block.kind == "static":
            return _static_block(self._trace, block)
        if block.kind == "stack":
            function = _function(block.stack[0]) if block.stack else ""
            return replace(plain, name=_printable(f"stack of {function}" if function else "stack"))
        pointees = self._pointees.get(block.number)
        if pointees:
            return _pointed(plain, min(pointees, key=functools.partial(_clarity, block.nbytes)))
        site = _site(block.stack, self._trace.program)
        return replace(plain, name=_printable(site or ("heap block" if block.kind == "heap" else "mapping")))

    def _as_stated(self, source: Source) -> Source:
        if source.name not in self._overrides:
            return source
        shape = tuple(self._overrides[source.name])
        dtype = _fitting(source, shape)
        if dtype is None:
            raise TraceError(
                f"found {source.nbytes} bytes of {source.dtype}, expected a shape that fills them, "
                f"found {shape}; state another shape",
                path=self._trace.path,
                rank=self._trace.rank if self._trace.rank >= 0 else None,
                key=source.name,
            )
        return replace(source, dtype=dtype, shape=shape, lower=(0,) * len(shape))


def _fitting(source: Source, shape: Shape) -> np.dtype[Any] | None:
    """Element type with which the shape fills the source; None if there is none.

    Where the type is not known its size follows from the shape.
    """
    count = math.prod(shape)
    if source.dtype != _BYTES:
        return source.dtype if count * source.dtype.itemsize == source.nbytes else None
    if count <= 0 or source.nbytes % count:
        return None
    item = source.nbytes // count
    return _BYTES if item == 1 else np.dtype(f"V{item}")


def name_sources(trace: RankTrace, overrides: Mapping[str, Shape] | None = None) -> dict[int, Source]:
    """Source of each block of the trace: :meth:`Namer.blocks`."""
    return Namer(trace, overrides).blocks()


def static_pieces(
    trace: RankTrace, start: int, stop: int, overrides: Mapping[str, Shape] | None = None
) -> list[StaticPiece]:
    """The static variables in a range of addresses: :meth:`Namer.static_pieces`, for a single range."""
    return Namer(trace, overrides).static_pieces(start, stop)


# Blocks -----------------------------------------------------------------------------------------------------


def _static_block(trace: RankTrace, block: Block) -> Source:
    pieces = list(_cut(trace, block.address, block.address + block.nbytes))
    if len(pieces) == 1 and pieces[0][2].nbytes == block.nbytes:
        return pieces[0][2]
    return Source(_section_name(trace, block.address), block.address, block.nbytes)


def _pointed(plain: Source, pointee: Pointee) -> Source:
    named = replace(plain, name=_printable(pointee.name), order=pointee.order)
    form = filled(pointee, plain.nbytes)
    if form is not None:
        return replace(named, dtype=form.dtype, shape=form.shape, order=form.order, lower=form.lower)
    if pointee.dtype is None or not pointee.dtype.itemsize or plain.nbytes % pointee.dtype.itemsize:
        return named
    return replace(named, dtype=pointee.dtype)


def _clarity(nbytes: int, pointee: Pointee) -> tuple[bool, bool, int, str]:
    """What says most of a block comes first; of equals the shortest name."""
    return filled(pointee, nbytes) is None, pointee.dtype is None, len(pointee.name), pointee.name


# Allocation sites -------------------------------------------------------------------------------------------


def _site(stack: tuple[Frame, ...], program: str) -> str:
    """The place in the user's sources that allocated, or the empty string."""
    own = [frame for frame in stack if not _is_library_frame(frame)] or list(stack)
    for frame in own:
        if frame.file and frame.line:
            return f"{PurePath(frame.file).name}:{frame.line}"
    named = [frame for frame in own if frame.function]
    in_program = [frame for frame in named if PurePath(frame.object).name == PurePath(program).name]
    for frame in in_program or named:
        return _function(frame)
    return f"block of {PurePath(own[0].object).name}" if own and own[0].object else ""


def _is_library_frame(frame: Frame) -> bool:
    return _function(frame) in _ALLOCATORS or bool(_LIBRARY_FUNCTION.match(frame.function))


def _function(frame: Frame) -> str:
    """Name of the frame's function without its arguments."""
    return re.sub(r"\(.*\)(?: const)?$", "", frame.function)


def _frame_text(frame: Frame) -> str:
    place = f"{frame.file}:{frame.line}" if frame.file else frame.object
    return _printable(f"{frame.function or '?'} ({place})" if place else frame.function or "?")


def _printable(text: str) -> str:
    return "".join(character if character.isprintable() else "?" for character in text)


# Static memory ----------------------------------------------------------------------------------------------


def _cut(trace: RankTrace, start: int, stop: int) -> Iterator[tuple[int, int, Source]]:
    at = start
    while at < stop:
        piece = _piece_at(trace, at, stop)
        yield piece
        at = piece[1]


def _piece_at(trace: RankTrace, at: int, stop: int) -> tuple[int, int, Source]:
    owner = _object_at(trace, at)
    if owner is None:
        end = min([other.lowest for other in trace.objects if at < other.lowest] + [stop])
        return at, end, Source("unknown memory", at, end - at)
    program = _program(owner.path)
    variable = None if program is None else program.next_variable(at - owner.bias)
    if variable is not None and variable.address <= at - owner.bias:
        source = _variable_source(variable, owner, trace)
        return at, min(stop, source.address + source.nbytes), source
    end = min(stop, owner.highest)
    if variable is not None:
        end = min(end, variable.address + owner.bias)
    return at, end, Source(_section_name(trace, at), at, end - at)


def _variable_source(variable: StaticVariable, owner: TracedObject, trace: RankTrace) -> Source:
    # Libraries may have variables of the same names as the program and as each other.
    is_main = PurePath(owner.path).name == PurePath(trace.program).name
    name = variable.name if is_main else f"{PurePath(owner.path).name}:{variable.name}"
    return Source(
        _printable(name),
        variable.address + owner.bias,
        variable.nbytes,
        variable.dtype,
        variable.shape,
        variable.order,
        (),
        variable.lower,
    )


def _section_name(trace: RankTrace, address: int) -> str:
    """A name for static memory without a variable: link addresses are the same in all runs of one binary."""
    owner = _object_at(trace, address)
    if owner is None:
        return "unknown memory"
    program = _program(owner.path)
    section = None if program is None else program.section_at(address - owner.bias)
    base = PurePath(owner.path).name
    if section is None:
        return _printable(f"{base}+{address - owner.bias:#x}")
    return _printable(f"{base}({section.name}+{address - owner.bias - section.address:#x})")


def _object_at(trace: RankTrace, address: int) -> TracedObject | None:
    for owner in trace.objects:
        if owner.lowest <= address < owner.highest:
            return owner
    return None


def _program(path: str) -> Program | None:
    """The object, read once for all ranks; None if it is no longer there."""
    try:
        status = Path(path).stat()
    except OSError:
        return None
    return _opened(path, status.st_ino, status.st_mtime_ns, status.st_size)


@functools.lru_cache(maxsize=64)
def _opened(path: str, inode: int, changed: int, size: int) -> Program | None:
    try:
        return Program(Path(path))
    except CritError:
        return None
