"""What a pointer in static memory points at: plain pointers, std::vector and its kin, Fortran descriptors.

Imports NumPy, pyelftools, ``_dwarf_types`` and ``_dwarf_expressions``. Tests:
``tests/test_tracing_symbols.py``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from elftools.dwarf.die import DIE

from ._dwarf_expressions import Snapshot, UnknownValueError
from ._dwarf_types import (
    BYTE_STRIDE,
    CLASSES,
    POINTERS,
    Form,
    Member,
    Order,
    TypeReader,
    is_fortran,
    is_reserved,
)

_WORD = 8
# First and last pointer of a contiguous container: libstdc++'s and libc++'s names.
_VECTOR_ENDS = {"_M_start": "_M_finish", "__begin_": "__end_"}
_MOST_AXES = 15


@dataclass(frozen=True)
class Pointee:
    """Memory that a variable points at.

    Parameters
    ----------
    name : str
        Name of the variable (``u``, ``grid.u``, ``rows[3]``, ``mesh::field%q``).
    dtype : np.dtype or None
        Of the elements; None where the pointer does not say (``void *``).
    shape : tuple of int or None
        None where the pointer does not say.
    row : tuple of int
        Trailing axes that a pointer to arrays states (``double (*u)[13][5]``: ``(13, 5)``), if `shape` is
        None.
    """

    name: str
    dtype: np.dtype[Any] | None
    shape: tuple[int, ...] | None = None
    order: Order = "C"
    lower: tuple[int, ...] = ()
    row: tuple[int, ...] = ()


def find_pointee(
    types: TypeReader, die: DIE, name: str, offset: int, memory: bytes, address: int
) -> Pointee | None:
    """What the pointer at `offset` within a variable of this type points at; None if there is no pointer.

    Parameters
    ----------
    die : DIE
        Type of the variable, as :meth:`TypeReader.type_of` gives it.
    name : str
        The variable's name.
    offset : int
        Where the pointer stands in the variable, in bytes.
    memory, address
        Bytes at that place, and its run-time address.
    """
    return _Search(types, Snapshot(address, memory)).within(die, name, offset)


class _Search:
    """Goes down from the variable to the pointer."""

    def __init__(self, types: TypeReader, snapshot: Snapshot) -> None:
        self.types = types
        self.snapshot = snapshot

    def within(self, die: DIE, name: str, offset: int, depth: int = 0) -> Pointee | None:
        if offset < 0 or depth > 64:
            return None
        if die.tag in POINTERS:
            return self._pointer(die, name) if offset == 0 else None
        if die.tag == "DW_TAG_array_type":
            if "DW_AT_data_location" in die.attributes:
                return self._descriptor(die, name) if offset == 0 else None
            return self._element(die, name, offset, depth)
        if die.tag in CLASSES:
            return self._member(die, name, offset, depth)
        return None

    def _pointer(self, die: DIE, name: str) -> Pointee | None:
        target = self.types.type_of(die)
        if target is None or target.tag == "DW_TAG_unspecified_type":
            return Pointee(name, None)
        if target.tag == "DW_TAG_subroutine_type":
            return None
        form = self.types.form(target)
        if form is None:
            return Pointee(name, *self._open_array(target))
        return Pointee(name, form.dtype, None, form.order, (), form.shape)

    def _open_array(self, target: DIE) -> tuple[np.dtype[Any] | None]:
        """Element type of an array without bounds, or of a type that is not known here."""
        element = self.types.form(self.types.type_of(target)) if target.tag == "DW_TAG_array_type" else None
        return (None if element is None or element.shape else element.dtype,)

    def _descriptor(self, die: DIE, name: str) -> Pointee | None:
        at = self.snapshot.address
        for attribute in ("DW_AT_allocated", "DW_AT_associated"):
            if attribute in die.attributes and not self.types.value(die, attribute, self.snapshot, at):
                return None
        element = self.types.form(self.types.type_of(die))
        dtype = None if element is None or element.shape else element.dtype
        order = self.types.order(die) if is_fortran(die) else "C"
        if dtype is None:
            return Pointee(name, None, None, order)
        axes = self.types.bounds(die, self.snapshot, at)
        extents = [axis.extent for axis in axes]
        shape = tuple(extent for extent in extents if extent is not None)
        if not 0 < len(axes) == len(shape) <= _MOST_AXES or not self._is_dense(die, dtype, shape):
            return Pointee(name, dtype, None, order)
        return Pointee(name, dtype, shape, order, tuple(axis.lower for axis in axes))

    def _is_dense(self, die: DIE, dtype: np.dtype[Any], shape: tuple[int, ...]) -> bool:
        """Whether the array begins where the descriptor points and its strides leave no gaps."""
        at = self.snapshot.address
        try:
            start = self.snapshot.read(at, _WORD, self.types.byteorder)
        except UnknownValueError:
            return False
        if self.types.value(die, "DW_AT_data_location", self.snapshot, at) != start:
            return False
        subranges = [child for child in die.iter_children() if child.tag == "DW_TAG_subrange_type"]
        if len(subranges) != len(shape):
            return False
        expected = dtype.itemsize
        for child, extent in zip(subranges, shape, strict=True):
            for attribute in BYTE_STRIDE:
                stride = self.types.value(child, attribute, self.snapshot, at)
                if attribute in child.attributes and stride != expected and extent > 1:
                    return False
            expected *= extent
        return True

    def _element(self, die: DIE, name: str, offset: int, depth: int) -> Pointee | None:
        element = self.types.type_of(die)
        size = None if element is None else self.types.size(element)
        axes = self.types.bounds(die)
        extents = [axis.extent for axis in axes]
        shape = tuple(extent for extent in extents if extent is not None)
        if element is None or not size or len(shape) != len(axes) or offset >= size * math.prod(shape):
            return None
        order = self.types.order(die)
        place = np.unravel_index(offset // size, shape, order=order)
        numbers = [int(index) + axis.lower for index, axis in zip(place, axes, strict=True)]
        if is_fortran(die):
            indices = f"({','.join(map(str, numbers))})"
        else:
            indices = "".join(f"[{number}]" for number in numbers)
        # std::array is a shell: its elements are the variable's.
        return self.within(element, name + indices, offset % size, depth + 1)

    def _member(self, die: DIE, name: str, offset: int, depth: int) -> Pointee | None:
        pointers = dict(self._pointers(die, 0, depth))
        for first, last in _VECTOR_ENDS.items():
            if first in pointers and last in pointers:
                start, pointer = pointers[first]
                if offset == start:
                    return self._vector(pointer, name, pointers[last][0] - offset)
                if any(at == offset and key != first for key, (at, _) in pointers.items()):
                    return None  # the end of a vector points at none of its blocks
        joint = "%" if is_fortran(die) else "."
        for member in self.types.members(die) or ():
            size = self.types.size(member.type)
            is_open = size is None and member.offset == offset  # a descriptor
            if not is_open and not (size and member.offset <= offset < member.offset + size):
                continue
            inner = name if is_reserved(member.name) else f"{name}{joint}{member.name}"
            found = self.within(member.type, inner, offset - member.offset, depth + 1)
            if found is not None:
                return found
        return None

    def _pointers(self, die: DIE, start: int, depth: int) -> list[tuple[str, tuple[int, DIE]]]:
        """Pointers of a class that the implementation named, with their offsets: how vectors are known."""
        found: list[tuple[str, tuple[int, DIE]]] = []
        members: list[Member] = self.types.members(die) or []
        for member in members:
            if member.type.tag in POINTERS and is_reserved(member.name):
                found.append((member.name, (start + member.offset, member.type)))
            elif member.type.tag in CLASSES and is_reserved(member.name) and depth < 64:
                found += self._pointers(member.type, start + member.offset, depth + 1)
        return found

    def _vector(self, pointer: DIE, name: str, distance: int) -> Pointee | None:
        found = self._pointer(pointer, name)
        if found is None or found.dtype is None or found.row:
            return found
        at = self.snapshot.address
        try:
            first = self.snapshot.read(at, _WORD, self.types.byteorder)
            last = self.snapshot.read(at + distance, _WORD, self.types.byteorder)
        except UnknownValueError:
            return found
        count, rest = divmod(last - first, found.dtype.itemsize)
        if rest or count < 0:
            return found
        return Pointee(name, found.dtype, (count,), "C", (0,))


def filled(pointee: Pointee, nbytes: int) -> Form | None:
    """Form of a block of `nbytes` that the pointee fills to the last byte; None if it does not.

    Without a known shape the block is as many elements, or rows, as fit.
    """
    if pointee.dtype is None:
        return None
    if pointee.shape is not None:
        form = Form(pointee.dtype, pointee.shape, pointee.order, pointee.lower)
        return form if form.nbytes == nbytes else None
    row = pointee.dtype.itemsize * math.prod(pointee.row)
    if not pointee.row or not row or nbytes % row:
        return None
    return Form(pointee.dtype, (nbytes // row, *pointee.row), "C", (0,) * (1 + len(pointee.row)))
