"""Names, types and shapes of a program's static memory, from its DWARF or else its symbol table.

:class:`Program` answers for link addresses of one ELF object: which variable covers an address, and what the
pointer, std::vector or Fortran descriptor at an address points at. What cannot be known is None, never a
guess. Imports pyelftools, NumPy, the errors, ``_elf_files``, ``_static_variables`` and ``_dwarf_types``.
Tests: ``tests/test_tracing_symbols.py``.
"""

from __future__ import annotations

import bisect
import re
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from elftools.dwarf.die import DIE

from ..errors import ProfileWarning
from ._dwarf_types import CLASSES, Form, Order, TypeReader, UnknownTypeError, is_fortran, is_reserved
from ._elf_files import DAMAGE, DataSection, ElfFile, Symbol, dwarf_of
from ._pointees import Pointee, find_pointee
from ._static_variables import Declared, static_variables

__all__ = ["Order", "Pointee", "Program", "StaticVariable"]

_BYTES = np.dtype(np.uint8)


@dataclass(frozen=True)
class StaticVariable:
    """A variable at a fixed address.

    `address` is a link address. The dtype of a variable without DWARF is uint8; `lower` is the first index of
    each axis as the program counts.
    """

    name: str
    address: int
    nbytes: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    order: Order = "C"
    lower: tuple[int, ...] = ()

    @property
    def end(self) -> int:
        """Address behind the last byte."""
        return self.address + self.nbytes


class Program:
    """Static memory of one ELF object, read when first asked for.

    Parameters
    ----------
    path : Path
        An executable or a shared library.

    Raises
    ------
    StorageError
        It cannot be read.
    ProfileError
        It is no ELF file.
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self._elf = ElfFile(self.path)
        self._types = TypeReader(self._elf.little_endian)
        self._sections = self._elf.data_sections()

    @cached_property
    def build_id(self) -> str | None:
        """Build-id in hexadecimal, or None if the linker wrote none."""
        return self._elf.build_id()

    def variable_at(self, link_address: int) -> StaticVariable | None:
        """The variable that covers the address; None if none is known.

        A structure that holds arrays is not one variable but its members: ``state.u``, ``state.dt``.
        """
        found = self.next_variable(link_address)
        return found if found is not None and found.address <= link_address else None

    def next_variable(self, link_address: int) -> StaticVariable | None:
        """The variable that covers the address, or else the first one behind it; None if there is none."""
        at = bisect.bisect_right(self._ends, link_address)
        return self._variables[at] if at < len(self._variables) else None

    def section_at(self, link_address: int) -> DataSection | None:
        """The section of static data that holds the address, or None."""
        for section in self._sections:
            if section.address <= link_address < section.address + section.nbytes:
                return section
        return None

    def pointee_at(self, link_address: int, memory: bytes, address: int) -> Pointee | None:
        """What a pointer in static memory points at.

        Parameters
        ----------
        link_address : int
            Where the pointer, vector or descriptor begins: within any variable, a structure's member or an
            array's element, too.
        memory : bytes
            What stood there at run time: 8 bytes or more; a descriptor needs all of its bytes.
        address : int
            Run-time address of the same place.

        Returns
        -------
        Pointee or None
            None if no pointer is known to stand there, or it is not allocated.
        """
        at = bisect.bisect_right(self._starts, link_address) - 1
        # Variables may overlap (EQUIVALENCE); the nearest few are looked at.
        for entry in self._named[max(at - 3, 0) : at + 1][::-1]:
            try:
                found = find_pointee(
                    self._types, entry.type, entry.name, link_address - entry.address, memory, address
                )
            except (UnknownTypeError, *DAMAGE):
                continue
            if found is not None:
                return found
        return None

    # The tables ---------------------------------------------------------------------------------------------

    @cached_property
    def _named(self) -> list[_Named]:
        """The variables of the DWARF with unique names, by address."""
        if not self._sections:
            return []
        lowest = self._sections[0].address
        highest = max(section.address + section.nbytes for section in self._sections)
        for elf in self._elf.debug_files():
            dwarf = dwarf_of(elf)
            if dwarf is None:
                continue
            declared: list[Declared] = []
            try:
                declared.extend(static_variables(dwarf, self._types, lowest, highest))
            except (UnknownTypeError, *DAMAGE) as error:
                warnings.warn(
                    f"{self.path}: some debugging information cannot be read ({type(error).__name__}: "
                    f"{error}); variables may be named by the symbol table, without types",
                    ProfileWarning,
                    stacklevel=2,
                )
            if declared:
                return _with_names(declared)
        return []

    @cached_property
    def _starts(self) -> list[int]:
        return [entry.address for entry in self._named]

    @cached_property
    def _variables(self) -> list[StaticVariable]:
        """Disjoint variables, by address."""
        symbols = sorted(self._elf.symbols(), key=_by_place)
        sizes = {symbol.address: symbol.nbytes for symbol in reversed(symbols)}
        typed: list[StaticVariable] = []
        for entry in self._named:
            try:
                typed.extend(self._seen(entry, sizes))
            except (UnknownTypeError, *DAMAGE):
                continue
        typed.sort(key=lambda variable: (variable.address, -variable.nbytes))
        chosen = list(_disjoint(typed))
        taken = {variable.name for variable in chosen}
        plain = list(_disjoint(_untyped(symbol, taken) for symbol in symbols if self._is_data(symbol)))
        return _merged(chosen, plain)

    @cached_property
    def _ends(self) -> list[int]:
        return [variable.end for variable in self._variables]

    def _is_data(self, symbol: Symbol) -> bool:
        section = self.section_at(symbol.address)
        return section is not None and symbol.address + symbol.nbytes <= section.address + section.nbytes

    def _seen(self, entry: _Named, sizes: dict[int, int]) -> Iterator[StaticVariable]:
        form = self._types.form(entry.type)
        if form is None:
            # A Fortran descriptor: its size is in the symbol table only.
            nbytes = sizes.get(entry.address, 0)
            if nbytes:
                form = Form(np.dtype(f"V{nbytes}"))
        if form is None or form.nbytes == 0:
            return
        if not form.shape and entry.type.tag in CLASSES and _holds_array(form.dtype):
            yield from self._members(entry)
            return
        lower = form.lower if any(form.lower) else (0,) * len(form.shape)
        yield StaticVariable(
            entry.name, entry.address, form.nbytes, form.dtype, form.shape, form.order, lower
        )

    def _members(self, entry: _Named) -> Iterator[StaticVariable]:
        joint = "%" if is_fortran(entry.type) else "."
        for member in self._types.members(entry.type) or ():
            name = entry.name if is_reserved(member.name) else f"{entry.name}{joint}{member.name}"
            yield from self._seen(_Named(entry.address + member.offset, name, member.type), {})


def _holds_array(dtype: np.dtype[Any]) -> bool:
    fields: Mapping[str, Any] = dtype.fields or {}
    return any(field[0].subdtype is not None or _holds_array(field[0]) for field in fields.values())


@dataclass(frozen=True)
class _Named:
    address: int
    name: str
    type: DIE


def _by_place(symbol: Symbol) -> tuple[int, int, str]:
    return symbol.address, -symbol.nbytes, symbol.name


def _disjoint(variables: Iterable[StaticVariable]) -> Iterator[StaticVariable]:
    """Of variables by address those that begin behind the end of the one before."""
    end = -1
    for variable in variables:
        if variable.address >= end:
            end = variable.end
            yield variable


def _merged(typed: Sequence[StaticVariable], plain: Sequence[StaticVariable]) -> list[StaticVariable]:
    """Typed variables, and untyped ones where no typed one reaches in; by address."""
    ends = [variable.end for variable in typed]
    found = list(typed)
    for variable in plain:
        at = bisect.bisect_right(ends, variable.address)
        if at == len(typed) or typed[at].address >= variable.end:
            found.append(variable)
    return sorted(found, key=lambda variable: variable.address)


# Names ------------------------------------------------------------------------------------------------------


def _with_names(declared: Sequence[Declared]) -> list[_Named]:
    """Each variable once, under a name of its own: as short as is clear, and the same for one binary always.

    Local statics and members of COMMON blocks take the function's or the block's name in front where they
    share theirs, file-local variables the source file's; what is still equal is numbered.
    """
    unique: dict[tuple[int, str, int], Declared] = {}
    for one in declared:
        unique.setdefault((one.address, one.name, one.type.offset), one)
    per_place: dict[tuple[int, str], Declared] = {}
    for one in unique.values():
        per_place.setdefault((one.address, "::".join((*one.outer, one.name))), one)
    entries = list(per_place.values())
    names = ["::".join((*entry.outer, entry.name)) for entry in entries]
    _lengthen(names, entries, lambda entry: bool(entry.inner), lambda entry: "::".join(entry.inner))
    _lengthen(names, entries, lambda entry: not entry.is_external, lambda entry: entry.unit)
    counts: dict[str, int] = defaultdict(int)
    found = []
    for name, entry in zip(names, entries, strict=True):
        counts[name] += 1
        numbered = name if counts[name] == 1 else f"{name}#{counts[name]}"
        found.append(_Named(entry.address, _printable(numbered), entry.type))
    return sorted(found, key=lambda entry: entry.address)


def _lengthen(
    names: list[str],
    entries: Sequence[Declared],
    may: Callable[[Declared], bool],
    prefix: Callable[[Declared], str],
) -> None:
    """Put a prefix before names that occur twice, where it may be put."""
    times: dict[str, int] = defaultdict(int)
    for name in names:
        times[name] += 1
    for at, entry in enumerate(entries):
        if times[names[at]] > 1 and may(entry) and prefix(entry):
            names[at] = f"{prefix(entry)}::{names[at]}"


def _printable(name: str) -> str:
    return "".join(character if character.isprintable() else "?" for character in name)


def _untyped(symbol: Symbol, taken: set[str]) -> StaticVariable:
    """A variable known by its symbol only."""
    name = _printable(_plain_name(symbol.name))
    if name in taken:
        name = _printable(symbol.name)
    number = 1
    while name in taken:
        number += 1
        name = f"{_printable(symbol.name)}#{number}"
    taken.add(name)
    return StaticVariable(name, symbol.address, symbol.nbytes, _BYTES, (symbol.nbytes,), "C", (0,))


def _plain_name(symbol: str) -> str:
    """The name in the source of a mangled symbol of data; what is not simple stays as it is."""
    fortran = re.fullmatch(r"__(?P<module>[a-z]\w*?)_MOD_(?P<name>\w+)", symbol)
    if fortran:
        return f"{fortran['module']}::{fortran['name']}"
    local = re.fullmatch(r"(?P<name>[A-Za-z_]\w*)\.\d+", symbol)
    if local:
        return local["name"]
    for pattern in (r"_ZN(?P<parts>\w+)E", r"_ZL?(?P<parts>\d\w*)"):
        match = re.fullmatch(pattern, symbol)
        parts = None if match is None else _lengths_and_names(match["parts"])
        if parts:
            return "::".join(part for part in parts if part != "_GLOBAL__N_1")
    return symbol


def _lengths_and_names(mangled: str) -> list[str] | None:
    """Names of an Itanium nested name, each behind its length; None if there is anything else."""
    found = []
    at = 0
    while at < len(mangled):
        length = re.match(r"L?(\d+)", mangled[at:])
        if length is None:
            return None
        at += length.end()
        end = at + int(length[1])
        if end > len(mangled):
            return None
        found.append(mangled[at:end])
        at = end
    return found
