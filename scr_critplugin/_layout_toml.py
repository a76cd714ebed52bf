"""Layouts as TOML text, both ways; the text is described in ``docs/layout.md``.

Every table is read through :class:`_Table`, which knows the way to it and refuses keys nobody asked for, so
that a misspelt key is an error and not a default. Imports ``layout`` and its parts. Tests:
``tests/test_layout.py``.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ._dtypes import dtype_from_json, dtype_to_json, require_byte_order
from ._layout_samples import npy_layout, npz_layout
from ._sections import REST, Array, Bytes, Checksum, Count, Guard, IntAt, Record, Section, within
from .errors import LayoutError, StorageError
from .layout import FileLayout, Layout

LAYOUT_VERSION = 1
_FUTURE_FORMATS = ("hdf5", "netcdf", "fortran")


def read_layout(path: str | os.PathLike[str]) -> Layout:
    """Layout from a TOML file; see :meth:`Layout.from_toml`."""
    name = os.fspath(path)
    try:
        text = Path(path).read_bytes().decode("utf-8")
    except OSError as error:
        raise StorageError(
            f"cannot read the layout: {error.strerror}", errno=error.errno, path=name
        ) from error
    except UnicodeDecodeError as error:
        raise LayoutError("found bytes that are not UTF-8", path=name, offset=error.start) from error
    return parse_layout(text, name, Path(path).parent)


def parse_layout(text: str, path: str | None, base: Path) -> Layout:
    """Layout from TOML text; see :meth:`Layout.loads`."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise LayoutError(f"found text that is no TOML: {error}", path=path) from error
    with within("", path):
        with _reading("", document) as table:
            version = table.take("version", int, LAYOUT_VERSION)
            if version != LAYOUT_VERSION:
                raise LayoutError(f"found version {version}, expected {LAYOUT_VERSION}", key="version")
            files = [_parse_file(entry, key, base) for key, entry in table.take_tables("file")]
        return Layout(tuple(files), path)


class _Table:
    """A TOML table and the way to it."""

    def __init__(self, key: str, content: dict[str, Any]) -> None:
        self.key = key
        self.content = dict(content)

    def take(self, key: str, kind: type, *default: Any) -> Any:
        """Value of a key, which is then done with; without a default it must be there."""
        if key not in self.content:
            if default:
                return default[0]
            raise LayoutError("key is missing", key=key)
        value = self.content.pop(key)
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise LayoutError(f"found {value!r}, expected {_KINDS[kind]}", key=key)
        return value

    def take_any(self, key: str, *default: Any) -> Any:
        return self.take(key, object, *default)

    def take_tables(self, key: str) -> Iterator[tuple[str, Any]]:
        for number, entry in enumerate(self.take(key, list, [])):
            yield f"{key}[{number}]", entry

    def refuse_rest(self) -> None:
        for key in self.content:
            raise LayoutError("found a key that has no meaning here; see docs/layout.md", key=key)


_KINDS = {int: "an integer", str: "a text", list: "a list", dict: "a table", object: "a value"}


@contextmanager
def _reading(key: str, content: Any) -> Iterator[_Table]:
    """Read a table: errors inside get its key, and what was not taken is refused."""
    with within(key):
        if not isinstance(content, dict):
            raise LayoutError(f"found {content!r}, expected a table")
        table = _Table(key, content)
        yield table
        table.refuse_rest()


# Reading ----------------------------------------------------------------------------------------------------


def _parse_file(entry: Any, key: str, base: Path) -> FileLayout:
    with _reading(key, entry) as table:
        pattern = table.take("pattern", str)
        kind = table.take("format", str, "raw")
        if kind in _FUTURE_FORMATS:
            raise LayoutError(
                f"not supported yet: {kind}; describe the bytes by sections instead", key="format"
            )
        if kind not in _FORMATS:
            raise LayoutError(f"found {kind!r}, expected one of {', '.join(_FORMATS)}", key="format")
        return _FORMATS[kind](table, pattern, base)


def _parse_raw(table: _Table, pattern: str, base: Path) -> FileLayout:
    sections = tuple(_parse_section(entry, key) for key, entry in table.take_tables("section"))
    guards = tuple(_parse_guard(entry, key) for key, entry in table.take_tables("guard"))
    checksums = tuple(_parse_checksum(entry, key) for key, entry in table.take_tables("checksum"))
    min_size, max_size = table.take("min_size", int, 0), table.take("max_size", int, None)
    return FileLayout(pattern, sections, guards, checksums, min_size, max_size)


def _parse_npy(table: _Table, pattern: str, base: Path) -> FileLayout:
    return npy_layout(base / table.take("sample", str), pattern, table.take("variable", str))


def _parse_npz(table: _Table, pattern: str, base: Path) -> FileLayout:
    sample = base / table.take("sample", str)
    names = table.take("names", dict, None)
    for member, variable in (names or {}).items():
        if not isinstance(variable, str):
            raise LayoutError(f"found {variable!r}, expected the name of a variable", key=f"names.{member}")
    return npz_layout(sample, pattern, names)


_FORMATS: dict[str, Callable[[_Table, str, Path], FileLayout]] = {
    "raw": _parse_raw,
    "npy": _parse_npy,
    "npz": _parse_npz,
}


def _parse_section(entry: Any, key: str) -> Section:
    with _reading(key, entry) as table:
        kind = table.take("kind", str)
        if kind not in _SECTIONS:
            raise LayoutError(f"found {kind!r}, expected one of {', '.join(_SECTIONS)}", key="kind")
        return _SECTIONS[kind](table)


def _parse_bytes(table: _Table) -> Bytes:
    return Bytes(table.take("name", str), _take_count(table, "length"), table.take("offset", int, None))


def _parse_array(table: _Table) -> Array:
    return Array(
        table.take("variable", str),
        _take_dtype(table),
        tuple(
            _parse_count(length, f"shape[{axis}]") for axis, length in enumerate(table.take("shape", list))
        ),
        table.take("order", str, "C"),
        _take_count(table, "repeat", 1),
        table.take("offset", int, None),
    )


def _parse_record(table: _Table) -> Record:
    if ("dtype" in table.content) == ("length" in table.content):
        raise LayoutError("expected either dtype (the record's fields) or length (its bytes)", key="dtype")
    return Record(
        table.take("name", str),
        _take_dtype(table) if "dtype" in table.content else table.take("length", int),
        _take_count(table, "count"),
        table.take("fields", dict, {}),
        _take_texts(table, "critical_fields"),
        table.take("critical_bytes", list, None),
        table.take("offset", int, None),
    )


_SECTIONS: dict[str, Callable[[_Table], Section]] = {
    "bytes": _parse_bytes,
    "array": _parse_array,
    "record": _parse_record,
}


def _take_texts(table: _Table, key: str) -> tuple[str, ...] | None:
    texts = table.take(key, list, None)
    for number, text in enumerate(texts or []):
        if not isinstance(text, str):
            raise LayoutError(f"found {text!r}, expected a text", key=f"{key}[{number}]")
    return None if texts is None else tuple(texts)


def _take_count(table: _Table, key: str, *default: Count) -> Count:
    return _parse_count(table.take_any(key, *default), key)


def _parse_count(value: Any, key: str) -> Count:
    if value == REST.value:
        return REST
    if isinstance(value, dict):
        with _reading(key, value) as table:
            return IntAt(
                table.take("at", int),
                _take_dtype(table),
                table.take("section", str, None),
                table.take("mul", int, 1),
                table.take("add", int, 0),
            )
    if isinstance(value, bool) or not isinstance(value, int):
        raise LayoutError(
            f'found {value!r}, expected a number, "rest", or a table with the integer\'s place (at, dtype)',
            key=key,
        )
    return value


def _take_dtype(table: _Table) -> np.dtype[Any]:
    descr = table.take_any("dtype")
    if not isinstance(descr, str | list):
        raise LayoutError(f'found {descr!r}, expected a type such as "<f8", or a list of fields', key="dtype")
    try:
        dtype = dtype_from_json(descr)
        require_byte_order(descr)
    except (TypeError, ValueError) as error:
        raise LayoutError(
            f"found {descr!r}, expected a NumPy type with its byte order: {error}", key="dtype"
        ) from error
    return dtype


def _parse_guard(entry: Any, key: str) -> Guard:
    with _reading(key, entry) as table:
        offset = table.take("offset", int)
        if ("hex" in table.content) == ("text" in table.content):
            raise LayoutError("expected either hex or text", key="hex")
        if "text" in table.content:
            return Guard(offset, table.take("text", str).encode())
        digits = table.take("hex", str)
        try:
            return Guard(offset, bytes.fromhex(digits))
        except ValueError as error:
            raise LayoutError(f"found {digits!r}, expected hexadecimal digits in pairs", key="hex") from error


def _parse_checksum(entry: Any, key: str) -> Checksum:
    with _reading(key, entry) as table:
        return Checksum(
            table.take("kind", str),  # type: ignore[arg-type]  # Checksum refuses other kinds
            table.take("start", int),
            table.take("length", int),
            tuple(table.take("places", list)),
        )


# Writing ----------------------------------------------------------------------------------------------------


def format_layout(layout: Layout) -> str:
    """TOML text of a layout; samples are not remembered, their sections are written out."""
    return "\n".join([f"version = {LAYOUT_VERSION}", *(_format_file(file) for file in layout.files)])


def _format_file(file: FileLayout) -> str:
    top: dict[str, Any] = {"pattern": file.pattern}
    if file.min_size:
        top["min_size"] = file.min_size
    if file.max_size is not None:
        top["max_size"] = file.max_size
    parts = [_format_table("[[file]]", top)]
    parts += [_format_table("[[file.section]]", _section_keys(section)) for section in file.sections]
    parts += [
        _format_table("[[file.guard]]", {"offset": guard.offset, "hex": guard.data.hex()})
        for guard in file.guards
    ]
    parts += [
        _format_table(
            "[[file.checksum]]",
            {"kind": each.kind, "start": each.start, "length": each.length, "places": list(each.places)},
        )
        for each in file.checksums
    ]
    return "\n".join(parts)


def _section_keys(section: Section) -> dict[str, Any]:
    keys: dict[str, Any]
    if isinstance(section, Bytes):
        keys = {"kind": "bytes", "name": section.name, "length": section.length}
    elif isinstance(section, Array):
        keys = {
            "kind": "array",
            "variable": section.variable,
            "dtype": dtype_to_json(section.dtype),
            "shape": list(section.shape),
            "order": section.order,
        }
        if section.repeat != 1:
            keys["repeat"] = section.repeat
    else:
        keys = _record_keys(section)
    return keys if section.offset is None else {**keys, "offset": section.offset}


def _record_keys(section: Record) -> dict[str, Any]:
    keys: dict[str, Any] = {"kind": "record", "name": section.name}
    if isinstance(section.dtype, int):
        keys["length"] = section.dtype
    else:
        keys["dtype"] = dtype_to_json(section.dtype)
    keys["count"] = section.count
    if section.fields:
        keys["fields"] = dict(section.fields)
    if section.critical_fields is not None:
        keys["critical_fields"] = list(section.critical_fields)
    if section.critical_bytes is not None:
        keys["critical_bytes"] = [list(pair) for pair in section.critical_bytes]
    return keys


def _format_table(header: str, keys: dict[str, Any]) -> str:
    lines = [f"{key} = {_format_value(value)}" for key, value in keys.items()]
    return "\n".join(["", header, *lines])


def _format_value(value: Any) -> str:
    if value is REST:
        return _format_text(REST.value)
    if isinstance(value, IntAt):
        return _format_value(_int_at_keys(value))
    if isinstance(value, dict):
        return (
            "{ "
            + ", ".join(f"{_format_text(key)} = {_format_value(each)}" for key, each in value.items())
            + " }"
        )
    if isinstance(value, list):
        return "[" + ", ".join(map(_format_value, value)) + "]"
    return _format_text(value) if isinstance(value, str) else str(int(value))


def _int_at_keys(place: IntAt) -> dict[str, Any]:
    keys: dict[str, Any] = {"at": place.offset, "dtype": place.dtype.str}
    if place.section is not None:
        keys["section"] = place.section
    if place.mul != 1:
        keys["mul"] = place.mul
    if place.add != 0:
        keys["add"] = place.add
    return keys


def _format_text(text: str) -> str:
    # A basic string of TOML is JSON's but for U+007F, and for surrogates, which no name can hold.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
