"""DWARF types as NumPy dtypes, shapes and memory orders.

What NumPy has no type for (long double, unions, bit fields, incomplete classes) becomes a void dtype of its
size, never a guess. Imports pyelftools, NumPy and ``_dwarf_expressions``. Source: DWARF 5, sections 5.1 to
5.10. Tests: ``tests/test_tracing_symbols.py``.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from elftools.common.exceptions import ELFError
from elftools.dwarf.die import DIE
from elftools.dwarf.dwarf_expr import DWARFExprParser
from elftools.dwarf.dwarfinfo import DWARFInfo

from ._dwarf_expressions import Snapshot, UnknownValueError, evaluate

Order = Literal["C", "F"]

_ALIASES = {
    "DW_TAG_typedef",
    "DW_TAG_const_type",
    "DW_TAG_volatile_type",
    "DW_TAG_restrict_type",
    "DW_TAG_atomic_type",
    "DW_TAG_immutable_type",
    "DW_TAG_packed_type",
    "DW_TAG_shared_type",
}
POINTERS = {"DW_TAG_pointer_type", "DW_TAG_reference_type", "DW_TAG_rvalue_reference_type"}
CLASSES = {"DW_TAG_structure_type", "DW_TAG_class_type"}
# DWARF 5, table 7.17; the language's default lower bound of an array is 1.
_FORTRAN = {0x07, 0x08, 0x0E, 0x22, 0x23, 0x2D}
# DWARF 5, table 7.11
_BOOLEAN, _COMPLEX, _FLOAT, _SIGNED, _SIGNED_CHAR, _UNSIGNED, _UNSIGNED_CHAR, _UTF = 2, 3, 4, 5, 6, 7, 8, 0x10
_COLUMN_MAJOR = 1
# pyelftools calls an attribute by the name of DWARF 2 or by that of DWARF 3 and later.
BYTE_STRIDE = ("DW_AT_byte_stride", "DW_AT_stride")
_BIT_STRIDE = ("DW_AT_bit_stride", "DW_AT_stride_size")
_MAX_FIELDS = 4096


@dataclass(frozen=True)
class Form:
    """How a variable's bytes are to be seen."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...] = ()
    order: Order = "C"
    lower: tuple[int, ...] = ()
    """First index of each axis, as the program counts."""

    @property
    def nbytes(self) -> int:
        """Bytes of the whole."""
        return self.dtype.itemsize * math.prod(self.shape)


@dataclass(frozen=True)
class Member:
    """A data member or base class of a class; the base's name is empty."""

    name: str
    offset: int
    type: DIE
    is_bit_field: bool


@dataclass(frozen=True)
class Bounds:
    """Extent of one axis; None where it is not known."""

    lower: int
    extent: int | None


def name_of(die: DIE) -> str:
    """The DIE's own name, or the empty string."""
    found = die.attributes.get("DW_AT_name")
    value = None if found is None else found.value
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else ""


def is_reserved(name: str) -> bool:
    """Whether a member's name belongs to the implementation, so that the user does not know it."""
    return not name or name.startswith("_")


class TypeReader:
    """Reads the types of one program. Results are kept, since many variables share a type."""

    def __init__(self, little_endian: bool = True) -> None:
        self.byteorder = "little" if little_endian else "big"
        self._mark = "<" if little_endian else ">"
        self._forms: dict[tuple[int, int], Form | None] = {}
        self._parsers: dict[int, DWARFExprParser] = {}

    def type_of(self, die: DIE) -> DIE | None:
        """The type the DIE refers to, aliases and qualifiers taken off; None for void."""
        found: DIE | None = die
        first = True
        for _ in range(64):  # a damaged file may refer in a circle
            if found is None or not (first or found.tag in _ALIASES):
                return found
            first = False
            found = _referred(found, "DW_AT_type")
        return None

    def form(self, die: DIE | None) -> Form | None:
        """Form of a type as :meth:`type_of` gives it; None if its size is not fixed."""
        if die is None:
            return None
        key = (id(die.stream), die.offset)  # units of types may stand in a section of their own
        if key not in self._forms:
            self._forms[key] = None  # a class that holds itself is damage
            self._forms[key] = self._form(die)
        return self._forms[key]

    def size(self, die: DIE) -> int | None:
        """Bytes of a type; None if they are not fixed."""
        stated = constant(die, "DW_AT_byte_size")
        if stated is not None and die.tag != "DW_TAG_array_type":
            return stated
        if die.tag in POINTERS:
            return int(die.cu["address_size"])
        found = self.form(die)
        return None if found is None else found.nbytes

    def members(self, die: DIE) -> list[Member] | None:
        """Data members and base classes of a class; None if one has no fixed offset."""
        found = []
        for child in die.iter_children():
            is_data = child.tag == "DW_TAG_member" and "DW_AT_external" not in child.attributes
            if "DW_AT_declaration" in child.attributes or not (is_data or child.tag == "DW_TAG_inheritance"):
                continue
            type_ = self.type_of(child)
            is_bit_field = "DW_AT_bit_size" in child.attributes
            offset = constant(child, "DW_AT_data_member_location")
            if offset is None and "DW_AT_data_member_location" not in child.attributes:
                offset = 0  # DWARF 5, section 5.7.6: no location means the beginning
            if type_ is None or offset is None or "DW_AT_virtuality" in child.attributes:
                return None
            found.append(Member(name_of(child) if is_data else "", offset, type_, is_bit_field))
            if len(found) > _MAX_FIELDS:
                return None
        return found

    def bounds(self, die: DIE, snapshot: Snapshot | None = None, address: int = 0) -> list[Bounds]:
        """Bounds of each axis of an array type; dynamic ones are read from the snapshot of the object."""
        return [
            self._subrange(child, die, snapshot, address)
            for child in die.iter_children()
            if child.tag in ("DW_TAG_subrange_type", "DW_TAG_enumeration_type", "DW_TAG_generic_subrange")
        ]

    def order(self, die: DIE) -> Order:
        """Memory order of an array type."""
        ordering = constant(die, "DW_AT_ordering")
        if ordering is None:
            return "F" if is_fortran(die) else "C"
        return "F" if ordering == _COLUMN_MAJOR else "C"

    def value(self, die: DIE, attribute: str, snapshot: Snapshot | None, address: int) -> int | None:
        """Value of an attribute that is a constant or an expression over the object; None if unknown."""
        fixed = constant(die, attribute)
        if fixed is not None:
            return fixed
        given = die.attributes.get(attribute)
        if given is None or snapshot is None or not is_expression(given):
            return None
        try:
            return evaluate(given.value, self.parser(die), snapshot, address, self.byteorder)
        except UnknownValueError:
            return None

    def parser(self, die: DIE) -> DWARFExprParser:
        """Parser of expressions in the DIE's unit."""
        key = id(die.cu)
        if key not in self._parsers:
            self._parsers[key] = DWARFExprParser(die.cu.structs)
        return self._parsers[key]

    # Forms --------------------------------------------------------------------------------------------------

    def _form(self, die: DIE) -> Form | None:
        if die.tag == "DW_TAG_array_type":
            return self._array(die)
        if die.tag in CLASSES:
            return self._class(die)
        size = constant(die, "DW_AT_byte_size")
        if die.tag in POINTERS or die.tag == "DW_TAG_ptr_to_member_type":
            size = int(die.cu["address_size"]) if size is None else size
            return Form(np.dtype(f"{self._mark}u{size}")) if size in (4, 8) else self._void(size)
        if not size:
            return None
        if die.tag == "DW_TAG_base_type":
            return Form(self._base(die, size))
        if die.tag == "DW_TAG_enumeration_type":
            signed = any(_signed_constant(child) < 0 for child in die.iter_children())
            return Form(self._number("i" if signed or self._signed_underlying(die) else "u", size))
        if die.tag == "DW_TAG_string_type":
            return Form(np.dtype(f"S{size}"))
        return self._void(size)

    def _void(self, size: int | None) -> Form | None:
        return Form(np.dtype(f"V{size}")) if size else None

    def _number(self, kind: str, size: int) -> np.dtype[Any]:
        known = {"f": (2, 4, 8), "c": (8, 16), "b": (1,), "i": (1, 2, 4, 8), "u": (1, 2, 4, 8)}[kind]
        return np.dtype(f"{self._mark}{kind}{size}" if size in known else f"V{size}")

    def _base(self, die: DIE, size: int) -> np.dtype[Any]:
        encoding = constant(die, "DW_AT_encoding")
        if encoding == _BOOLEAN:
            return self._number("b" if size == 1 else "i", size)
        if encoding == _FLOAT and "bf" in name_of(die):  # bfloat16 is a float of two bytes, but not IEEE's
            return np.dtype(f"V{size}")
        kinds = {
            _COMPLEX: "c",
            _FLOAT: "f",
            _SIGNED: "i",
            _SIGNED_CHAR: "i",
            _UNSIGNED: "u",
            _UNSIGNED_CHAR: "u",
            _UTF: "u",
        }
        return self._number(kinds[encoding], size) if encoding in kinds else np.dtype(f"V{size}")

    def _signed_underlying(self, die: DIE) -> bool:
        underlying = self.type_of(die)
        if underlying is None or underlying.tag != "DW_TAG_base_type":
            return False
        return constant(underlying, "DW_AT_encoding") in (_SIGNED, _SIGNED_CHAR)

    def _array(self, die: DIE) -> Form | None:
        element = self.form(self.type_of(die))
        if element is None or "DW_AT_data_location" in die.attributes:
            return None
        if any(name in die.attributes for name in (*BYTE_STRIDE, *_BIT_STRIDE)):
            return None
        axes = self.bounds(die)
        extents = [axis.extent for axis in axes]
        strided = [
            child for child in die.iter_children() if any(name in child.attributes for name in BYTE_STRIDE)
        ]
        if not axes or None in extents or strided:
            return None
        shape = tuple(extent for extent in extents if extent is not None)
        order = self.order(die) if len(shape) > 1 else ("F" if is_fortran(die) else "C")
        lower = tuple(axis.lower for axis in axes)
        if element.shape and "F" in (order, element.order):
            return None
        return Form(element.dtype, shape + element.shape, order, lower + element.lower)

    def _subrange(self, child: DIE, array: DIE, snapshot: Snapshot | None, address: int) -> Bounds:
        if child.tag == "DW_TAG_generic_subrange":
            return Bounds(0, None)
        lower = self.value(child, "DW_AT_lower_bound", snapshot, address)
        if lower is None:
            if "DW_AT_lower_bound" in child.attributes:
                return Bounds(0, None)
            lower = 1 if is_fortran(array) else 0
        count = self.value(child, "DW_AT_count", snapshot, address)
        upper = self.value(child, "DW_AT_upper_bound", snapshot, address)
        if count is None and upper is not None:
            count = max(_signed(upper) - _signed(lower) + 1, 0)
        return Bounds(_signed(lower), None if count is None or count < 0 else count)

    def _class(self, die: DIE) -> Form | None:
        size = constant(die, "DW_AT_byte_size")
        members = self.members(die)
        if not size or members is None:
            return self._void(size)
        carrying = [member for member in members if not self._is_empty(member.type)]
        if len(carrying) == 1 and is_reserved(carrying[0].name) and not carrying[0].is_bit_field:
            # std::array, std::complex and their like: a shell around what the user sees.
            only = self.form(carrying[0].type)
            if only is not None and carrying[0].offset == 0 and only.nbytes == size:
                return only
        fields = list(self._fields(carrying, 0))
        return self._structure(fields, size) or self._void(size)

    def _is_empty(self, die: DIE) -> bool:
        if die.tag == "DW_TAG_array_type":
            found = self.form(die)
            return found is not None and found.nbytes == 0
        if die.tag not in CLASSES:
            return False
        members = self.members(die)
        return members is not None and all(self._is_empty(member.type) for member in members)

    def _fields(self, members: list[Member], start: int) -> Iterator[tuple[str, Form | None, int]]:
        """Name, form and offset of each field, those of base classes and anonymous members included."""
        for member in members:
            inner = self.members(member.type) if not member.name and member.type.tag in CLASSES else None
            if inner is not None:
                yield from self._fields(
                    [one for one in inner if not self._is_empty(one.type)], start + member.offset
                )
            else:
                form = None if member.is_bit_field else self.form(member.type)
                yield member.name, form, start + member.offset

    def _structure(self, fields: list[tuple[str, Form | None, int]], size: int) -> Form | None:
        """A structured dtype, or None if NumPy cannot describe these fields."""
        names = [name for name, _, _ in fields]
        if not fields or not all(names) or len(set(names)) < len(names) or len(names) > _MAX_FIELDS:
            return None
        formats: list[Any] = []
        end = 0
        for _, form, offset in sorted(fields, key=lambda field: field[2]):
            if form is None or offset < end:
                return None
            end = offset + form.nbytes
        if end > size:
            return None
        for _, form, _ in fields:
            assert form is not None  # for the type checker: seen above
            # A field's own axes are in C order in NumPy: Fortran's are turned round, the bytes are the same.
            shape = form.shape[::-1] if form.order == "F" else form.shape
            formats.append((form.dtype, shape) if shape else form.dtype)
        offsets = [offset for _, _, offset in fields]
        try:
            return Form(np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": size}))
        except (TypeError, ValueError):
            return None


def is_fortran(die: DIE) -> bool:
    """Whether the DIE's unit was written in Fortran."""
    return constant(die.cu.get_top_DIE(), "DW_AT_language") in _FORTRAN


def is_expression(attribute: Any) -> bool:
    """Whether an attribute's value is a DWARF expression."""
    form = str(attribute.form)
    return form == "DW_FORM_exprloc" or form.startswith("DW_FORM_block")


def constant(die: DIE, attribute: str) -> int | None:
    """Value of an attribute of constant class, or None."""
    found = die.attributes.get(attribute)
    if found is None or not isinstance(found.value, int) or isinstance(found.value, bool):
        return None
    if found.form.startswith("DW_FORM_ref") or "list" in found.form or found.form == "DW_FORM_sec_offset":
        return None
    return found.value


def _signed(value: int) -> int:
    # Compilers write -1 as eight unsigned bytes, too.
    return value - (1 << 64) if value >= 1 << 63 else value


def _signed_constant(die: DIE) -> int:
    return constant(die, "DW_AT_const_value") or 0


def _referred(die: DIE, attribute: str) -> DIE | None:
    """The DIE an attribute refers to; a declaration is followed to the type unit that defines it."""
    try:
        for _ in range(2):
            given = die.attributes.get(attribute)
            if given is None:
                return None
            if given.form == "DW_FORM_ref_sig8":
                die = _signed_type(die.dwarfinfo, given.raw_value)
            else:
                die = die.get_DIE_from_attribute(attribute)
            attribute = "DW_AT_signature"
            if attribute not in die.attributes:
                break
    except (ELFError, KeyError, NotImplementedError, ValueError) as error:
        raise UnknownTypeError(str(error)) from error
    return die


def _signed_type(dwarf: DWARFInfo, signature: int) -> DIE:
    """The type of a signature; KeyError if there is none. DWARF 5 has type units among the others."""
    if dwarf.debug_types_sec is not None:
        return dwarf.get_DIE_by_sig8(signature)
    offset, within = _type_units(dwarf)[signature]
    return dwarf.get_DIE_from_refaddr(offset + within)


@functools.lru_cache(maxsize=4)
def _type_units(dwarf: DWARFInfo) -> dict[int, tuple[int, int]]:
    """Offset of the unit, and of the type within it, by signature."""
    return {
        int(unit.header["type_signature"]): (unit.cu_offset, int(unit.header["type_offset"]))
        for unit in dwarf.iter_CUs()
        if unit.header.get("unit_type") == "DW_UT_type"
    }


class UnknownTypeError(Exception):
    """A type lies in a file that is not there; never leaves the package."""
