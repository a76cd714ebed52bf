"""Finds the variables at fixed addresses in a program's DWARF, without reading all of it.

Most debugging information is types and functions. A first pass over the raw bytes of ``.debug_info`` marks
where an expression "address so-and-so" may stand; only the parts of the tree that hold a mark are read.
Imports pyelftools, NumPy and ``_dwarf_types``. Tests: ``tests/test_tracing_symbols.py``.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

import numpy as np
from elftools.common.exceptions import ELFError
from elftools.dwarf.die import DIE
from elftools.dwarf.dwarfinfo import DWARFInfo
from numpy.typing import NDArray

from ._dwarf_types import CLASSES, TypeReader, UnknownTypeError, constant, is_expression, name_of

_OP_ADDR, _OP_ADDRX = 0x03, 0xA1
_LONGEST_EXPRESSION = 24  # an address and an offset of up to 10 bytes, and some to spare
_FUNCTIONS = {"DW_TAG_subprogram", "DW_TAG_inlined_subroutine"}
_BLOCKS = {"DW_TAG_lexical_block", "DW_TAG_try_block", "DW_TAG_catch_block", "DW_TAG_with_stmt"}
_SCOPES = (
    _FUNCTIONS
    | _BLOCKS
    | CLASSES
    | {"DW_TAG_namespace", "DW_TAG_module", "DW_TAG_common_block", "DW_TAG_union_type"}
)


@dataclass(frozen=True)
class Declared:
    """A variable at a fixed address, as its declaration says."""

    address: int
    name: str
    """Its own name."""
    outer: tuple[str, ...]
    """Namespaces, modules and classes around it, outermost first."""
    inner: tuple[str, ...]
    """Functions or the COMMON block around it, outermost first: left out where the name is clear without."""
    unit: str
    """File name of the source, without folders."""
    is_external: bool
    type: DIE


def static_variables(dwarf: DWARFInfo, types: TypeReader, lowest: int, highest: int) -> Iterator[Declared]:
    """Variables with a fixed address in ``lowest <= address < highest``, in the order of the DWARF.

    Thread-local variables have no fixed address and are left out, and so is what has no name.
    """
    section = dwarf.debug_info_sec
    if section is None:
        return
    little = bool(dwarf.config.little_endian)
    content = section.stream.getvalue() if hasattr(section.stream, "getvalue") else _whole(section.stream)
    marks = _marks(content, dwarf.config.default_address_size, little, lowest, highest)
    if dwarf.debug_addr_sec is not None:
        marks = np.union1d(marks, _indexed_marks(content))
    if not marks.size:
        return
    walk = _Walk(types, marks, lowest, highest)
    for unit in dwarf.iter_CUs():
        start, end = unit.cu_offset, unit.cu_offset + unit.size
        if walk.has_mark(start, end):
            top = unit.get_top_DIE()
            yield from walk.below(top, end)


def _whole(stream: Any) -> bytes:
    stream.seek(0)
    return bytes(stream.read())


def _marks(content: bytes, size: int, little: bool, lowest: int, highest: int) -> NDArray[np.int64]:
    """Offsets of bytes that look like an expression beginning with an address within the bounds."""
    raw = np.frombuffer(content, np.uint8)
    if raw.size <= size + 1:
        return np.zeros(0, np.int64)
    lengths, operations = raw[:-1], raw[1:]
    looks = (operations == _OP_ADDR) & (lengths > size) & (lengths <= _LONGEST_EXPRESSION)
    at = np.flatnonzero(looks) + 1
    at = at[at + size < raw.size]
    addresses = np.zeros(at.size, np.uint64)
    for byte in range(size):
        place = byte if little else size - 1 - byte
        addresses |= raw[at + 1 + byte].astype(np.uint64) << np.uint64(8 * place)
    return at[(addresses >= lowest) & (addresses < highest)]


def _indexed_marks(content: bytes) -> NDArray[np.int64]:
    """The same for addresses that stand in a table of their own (DWARF 5)."""
    raw = np.frombuffer(content, np.uint8)
    if raw.size < 3:
        return np.zeros(0, np.int64)
    looks = (raw[1:] == _OP_ADDRX) & (raw[:-1] >= 2) & (raw[:-1] <= _LONGEST_EXPRESSION)
    return np.flatnonzero(looks) + 1


class _Walk:
    """Reads those parts of the trees that hold a mark."""

    def __init__(self, types: TypeReader, marks: NDArray[np.int64], lowest: int, highest: int) -> None:
        self.types = types
        self.marks: list[int] = marks.tolist()
        self.lowest, self.highest = lowest, highest

    def has_mark(self, start: int, end: int) -> bool:
        at = bisect.bisect_left(self.marks, start)
        return at < len(self.marks) and self.marks[at] < end

    def below(self, parent: DIE, end: int) -> Iterator[Declared]:
        for child in parent.iter_children():
            if not self.has_mark(child.offset, end):
                return
            if child.tag in _SCOPES and child.has_children:
                sibling = child.attributes.get("DW_AT_sibling")
                child_end = end
                if sibling is not None:
                    local = sibling.form != "DW_FORM_ref_addr"
                    child_end = int(sibling.value) + (child.cu.cu_offset if local else 0)
                if child.tag == "DW_TAG_common_block" or self.has_mark(child.offset, child_end):
                    yield from self._common(child)
                    yield from self.below(child, child_end)
            elif child.tag in ("DW_TAG_variable", "DW_TAG_member"):
                yield from self._variable(child, self._address(child))

    def _common(self, block: DIE) -> Iterator[Declared]:
        """Members of a COMMON block that is located as a whole; others are located as variables are."""
        start = self._address(block) if block.tag == "DW_TAG_common_block" else None
        if start is None:
            return
        for child in block.iter_children():
            offset = constant(child, "DW_AT_data_member_location")
            if child.tag in ("DW_TAG_variable", "DW_TAG_member") and offset is not None:
                yield from self._variable(child, start + offset)

    def _address(self, die: DIE) -> int | None:
        """Fixed address of a variable, or None."""
        location = die.attributes.get("DW_AT_location")
        if location is None or not is_expression(location):
            return None
        try:
            operations = self.types.parser(die).parse_expr(bytes(location.value))
            return self._fixed(die, operations)
        except (ELFError, KeyError, ValueError, AttributeError, AssertionError):
            return None

    def _fixed(self, die: DIE, operations: Sequence[Any]) -> int | None:
        if not operations or operations[0].op_name not in ("DW_OP_addr", "DW_OP_addrx"):
            return None
        address = int(operations[0].args[0])
        if operations[0].op_name == "DW_OP_addrx":
            address = int(die.dwarfinfo.get_addr(die.cu, address))
        for operation in operations[1:]:
            if operation.op_name != "DW_OP_plus_uconst":
                return None
            address += int(operation.args[0])
        return address if self.lowest <= address < self.highest else None

    def _variable(self, die: DIE, address: int | None) -> Iterator[Declared]:
        if address is None:
            return
        chain = list(_origins(die))
        name = next((name_of(one) for one in chain if name_of(one)), "")
        typed = next((one for one in chain if "DW_AT_type" in one.attributes), None)
        try:
            type_ = None if typed is None else self.types.type_of(typed)
        except UnknownTypeError:
            return
        if not name or type_ is None:
            return
        outer, inner = _scopes(chain[-1])
        # Link-time optimisation makes units of its own; the first declaration knows its source file.
        unit = PurePosixPath(name_of(chain[-1].cu.get_top_DIE())).name
        is_external = any("DW_AT_external" in one.attributes for one in chain)
        yield Declared(address, name, outer, inner, unit, is_external, type_)


def _origins(die: DIE) -> Iterator[DIE]:
    """The DIE and the declarations it completes."""
    for _ in range(8):
        yield die
        for attribute in ("DW_AT_specification", "DW_AT_abstract_origin"):
            if attribute in die.attributes:
                die = die.get_DIE_from_attribute(attribute)
                break
        else:
            return


def _scopes(die: DIE) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of the scopes around a declaration: those that belong to its name, and the local ones."""
    outer: list[str] = []
    inner: list[str] = []
    parent = die.get_parent()
    if parent is not None and parent.tag == "DW_TAG_common_block":
        return (), (name_of(parent),)  # the same block in any procedure
    while parent is not None and parent.tag in _SCOPES:
        declared = list(_origins(parent))[-1]
        name = name_of(declared)
        is_inline = parent.tag == "DW_TAG_namespace" and "DW_AT_export_symbols" in parent.attributes
        if parent.tag in _FUNCTIONS:
            inner.append(name)
            inner += outer  # a class within a function is local, too
            outer = []
        elif name and not is_inline:
            outer.append(name)
        parent = declared.get_parent()
    return tuple(outer[::-1]), tuple(part for part in inner[::-1] if part)
