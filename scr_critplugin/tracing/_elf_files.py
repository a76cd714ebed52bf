"""An ELF file: its build-id, static data, symbols, and where its debugging information lies.

Debugging information may stand in a file of its own: found by build-id or by ``.gnu_debuglink``, as gdb's
manual, "Debugging Information in Separate Files", describes. Imports pyelftools and the errors. Tests:
``tests/test_tracing_symbols.py``.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.dwarf.dwarfinfo import DWARFInfo
from elftools.elf.constants import SH_FLAGS
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import NoteSection, SymbolTableSection

from ..errors import ProfileError, StorageError

DEBUG_FOLDERS = (Path("/usr/lib/debug"),)
"""Where systems keep debugging information of their own."""

# What pyelftools raises on damaged files.
DAMAGE = (
    ELFError,
    AssertionError,
    AttributeError,
    IndexError,
    KeyError,
    NotImplementedError,
    OverflowError,
    TypeError,
    UnicodeDecodeError,
    ValueError,
    zlib.error,
)


def is_static(path: Path) -> bool:
    """Whether a program is linked without a dynamic loader, so that nothing can be preloaded into it."""
    try:
        with ELFFile.load_from_path(os.fspath(path)) as elf:
            return not any(segment.header.p_type == "PT_INTERP" for segment in elf.iter_segments())
    except DAMAGE:
        return False


@dataclass(frozen=True)
class Symbol:
    """A data object of the symbol table."""

    name: str
    address: int
    nbytes: int


@dataclass(frozen=True)
class DataSection:
    """A section of static data in memory."""

    name: str
    address: int
    nbytes: int


class ElfFile:
    """An executable or shared library.

    Raises
    ------
    StorageError
        It cannot be read.
    ProfileError
        It is no ELF file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._elf = ELFFile.load_from_path(os.fspath(path))
        except OSError as error:
            raise StorageError(f"cannot read: {error.strerror}", errno=error.errno, path=path) from error
        except DAMAGE as error:
            raise ProfileError(f"found no ELF file ({error}), expected a program", path=path) from error

    @property
    def little_endian(self) -> bool:
        """Byte order of the machine it is for."""
        return bool(self._elf.little_endian)

    def build_id(self) -> str | None:
        """Build-id in hexadecimal, or None."""
        return _build_id(self._elf)

    def data_sections(self) -> list[DataSection]:
        """Sections of static data, by address; thread-local ones have no fixed address and are left out."""
        found = []
        for section in self._elf.iter_sections():
            flags = section["sh_flags"]
            is_data = flags & SH_FLAGS.SHF_ALLOC and not flags & SH_FLAGS.SHF_EXECINSTR
            if is_data and not flags & SH_FLAGS.SHF_TLS and section["sh_size"]:
                found.append(DataSection(section.name, section["sh_addr"], section["sh_size"]))
        return sorted(found, key=lambda section: section.address)

    def symbols(self) -> Iterator[Symbol]:
        """Data objects of the symbol table; of the dynamic one where the file is stripped."""
        yield from _symbols(self._elf)

    def debug_files(self) -> Iterator[ELFFile]:
        """The file itself, and files of its own debugging information, as far as they hold any."""
        if self._elf.has_dwarf_info(strict=True):
            yield self._elf
            return
        for candidate in self._candidates():
            try:
                found = ELFFile.load_from_path(os.fspath(candidate))
            except (OSError, *DAMAGE):
                continue
            if found.has_dwarf_info(strict=True) and self._belongs(candidate, found):
                yield found
            else:
                found.close()

    def _candidates(self) -> Iterator[Path]:
        build_id = self.build_id()
        if build_id and len(build_id) > 2:
            for folder in DEBUG_FOLDERS:
                yield folder / ".build-id" / build_id[:2] / f"{build_id[2:]}.debug"
        link = self._elf.get_dwarf_link()
        if link is None:
            return
        name = os.fsdecode(link.filename)
        folder = self.path.resolve().parent
        yield folder / name
        yield folder / ".debug" / name
        for debug_folder in DEBUG_FOLDERS:
            yield debug_folder / folder.relative_to(folder.anchor) / name

    def _belongs(self, candidate: Path, found: ELFFile) -> bool:
        """Whether the file's information is about this very program: another's would give wrong names."""
        wanted = self.build_id()
        if wanted is not None:
            return _build_id(found) == wanted
        link = self._elf.get_dwarf_link()
        return link is not None and _crc(candidate) == link.checksum


def dwarf_of(elf: ELFFile) -> DWARFInfo | None:
    """DWARF of the file, or None if it cannot be read; with what dwz shared among files, if that is there."""
    for follow_links in (True, False):
        try:
            return elf.get_dwarf_info(relocate_dwarf_sections=False, follow_links=follow_links)
        except (OSError, *DAMAGE):
            continue
    return None


def _build_id(elf: ELFFile) -> str | None:
    for section in elf.iter_sections():
        if isinstance(section, NoteSection):
            for note in section.iter_notes():
                if note["n_type"] == "NT_GNU_BUILD_ID":
                    return str(note["n_desc"])
    return None


def _crc(path: Path) -> int:
    crc = 0
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            crc = zlib.crc32(chunk, crc)
    return crc


def _symbols(elf: ELFFile) -> Iterator[Symbol]:
    tables = [section for section in elf.iter_sections() if isinstance(section, SymbolTableSection)]
    tables.sort(key=lambda table: table["sh_type"] != "SHT_SYMTAB")
    for table in tables[:1]:
        for symbol in table.iter_symbols():
            is_data = symbol["st_info"]["type"] == "STT_OBJECT" and symbol["st_shndx"] != "SHN_UNDEF"
            if is_data and symbol["st_size"] and symbol.name:
                yield Symbol(symbol.name, symbol["st_value"], symbol["st_size"])
