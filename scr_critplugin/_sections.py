"""Sections of a checkpoint file: bytes kept whole, arrays, records, and the counts that size them.

Each class checks itself; what involves several sections is checked by ``_layout_check``. A LayoutError raised
here has the key within the object (``shape[0].dtype``); who builds the whole puts the way to it in front.
Imports NumPy and the errors only. Tests: ``tests/test_layout.py``.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from .errors import LayoutError

Order = Literal["C", "F"]


class Rest(enum.Enum):
    """Marker of a count that follows from the file's size; use :data:`REST`."""

    REST = "rest"


REST = Rest.REST


@dataclass(frozen=True)
class IntAt:
    """A count that stands in the file: ``value * mul + add``.

    Parameters
    ----------
    offset : int
        Place of the integer in bytes: from the start of `section`, or of the file where that is None.
    dtype : dtype_like
        Integer of 1, 2, 4 or 8 bytes.
    section : str, optional
        Name of an earlier :class:`Bytes` section of fixed length.
    mul, add : int
        Factor (at least 1) and summand.
    """

    offset: int
    dtype: np.dtype[Any]
    section: str | None = None
    mul: int = 1
    add: int = 0

    def __post_init__(self) -> None:
        require_int("offset", self.offset, 0)
        require_int("mul", self.mul, 1)
        require_int("add", self.add, None)
        dtype = _checked_dtype("dtype", self.dtype)
        if dtype.kind not in "iu" or dtype.itemsize > 8:
            raise LayoutError(f"found {dtype}, expected an integer type such as '<i4'", key="dtype")
        object.__setattr__(self, "dtype", dtype)

    @property
    def stop(self) -> int:
        """Offset behind the integer."""
        return self.offset + self.dtype.itemsize


Count = int | Rest | IntAt


@dataclass(frozen=True)
class Bytes:
    """Bytes kept whole: headers, indices, whatever no variable owns."""

    name: str
    length: Count
    offset: int | None = None

    def __post_init__(self) -> None:
        _check_section(self)

    @property
    def unit(self) -> int:
        """Bytes that one of the counts' product stands for."""
        return 1

    def counts(self) -> dict[str, Count]:
        """The section's counts by key."""
        return {"length": self.length}


@dataclass(frozen=True)
class Array:
    """A variable's elements, or `repeat` blocks of one shape, one after the other.

    Parameters
    ----------
    variable : str
        Name in the criticality map; also the section's name.
    dtype : dtype_like
        Element type in the file, with its byte order.
    shape : tuple of Count
        Axes' lengths of one block; () is a scalar.
    order : {"C", "F"}
        Whether the last or the first index runs fastest in the file.
    repeat : Count
        Number of blocks.
    offset : int, optional
        Byte where the section begins; else it follows the section before.
    """

    variable: str
    dtype: np.dtype[Any]
    shape: tuple[Count, ...]
    order: Order = "C"
    repeat: Count = 1
    offset: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", _checked_dtype("dtype", self.dtype))
        if isinstance(self.shape, str) or not isinstance(self.shape, Sequence):
            raise LayoutError(f"found {self.shape!r}, expected a sequence of counts", key="shape")
        object.__setattr__(self, "shape", tuple(self.shape))
        if self.order not in ("C", "F"):
            raise LayoutError(f"found {self.order!r}, expected 'C' or 'F'", key="order")
        _check_section(self)

    @property
    def name(self) -> str:
        """Name of the section: the variable's."""
        return self.variable

    @property
    def unit(self) -> int:
        """Bytes that one of the counts' product stands for."""
        return self.dtype.itemsize

    def counts(self) -> dict[str, Count]:
        """The section's counts by key."""
        axes = {f"shape[{axis}]": length for axis, length in enumerate(self.shape)}
        return {**axes, "repeat": self.repeat}


@dataclass(frozen=True)
class Record:
    """A record repeated `count` times.

    Either `fields` says which variable of the map a field holds; fields without a variable and padding are
    kept. Or `critical_fields` and `critical_bytes` say by hand what is critical; everything else of the
    record is dropped. With neither, the records are kept whole.

    Parameters
    ----------
    name : str
        Name of the section.
    dtype : structured dtype_like, or int
        The record, or its length in bytes.
    count : Count
    fields : mapping of field to variable
        A field within a field is written with a dot.
    critical_fields : sequence of str, optional
    critical_bytes : sequence of (start, stop), optional
        Bytes within the record.
    offset : int, optional
    """

    name: str
    dtype: np.dtype[Any] | int
    count: Count
    fields: Mapping[str, str] = field(default_factory=dict)
    critical_fields: tuple[str, ...] | None = None
    critical_bytes: tuple[tuple[int, int], ...] | None = None
    offset: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", _checked_record_dtype(self.dtype))
        object.__setattr__(self, "fields", dict(self.fields))
        if self.critical_fields is not None:
            object.__setattr__(self, "critical_fields", tuple(self.critical_fields))
        if self.critical_bytes is not None:
            object.__setattr__(self, "critical_bytes", _checked_ranges(self.critical_bytes, self.itemsize))
        if self.fields and (self.critical_fields is not None or self.critical_bytes is not None):
            raise LayoutError(
                "found fields together with critical_fields or critical_bytes, expected either a map's "
                "states or a mask by hand",
                key="fields",
            )
        for name, variable in self.fields.items():
            self.field_range(name, "fields")
            _require_name(f"fields.{name}", variable)
        for name in self.critical_fields or ():
            self.field_range(name, "critical_fields")
        _check_section(self)

    @property
    def itemsize(self) -> int:
        """Bytes a record."""
        return self.dtype if isinstance(self.dtype, int) else self.dtype.itemsize

    @property
    def unit(self) -> int:
        """Bytes that one of the counts' product stands for."""
        return self.itemsize

    def counts(self) -> dict[str, Count]:
        """The section's counts by key."""
        return {"count": self.count}

    def field_dtype(self, name: str) -> np.dtype[Any]:
        """Type of a field (a sub-array type where the field is one)."""
        return self._field(name, "fields")[0]

    def field_range(self, name: str, key: str = "fields") -> tuple[int, int]:
        """First byte of a field within the record, and the byte behind it."""
        dtype, offset = self._field(name, key)
        return offset, offset + dtype.itemsize

    def field_ranges(self) -> dict[str, tuple[int, int]]:
        """The bytes within the record of every field, of the outermost level."""
        if isinstance(self.dtype, int):
            return {}
        return {name: self.field_range(name) for name in self.dtype.names or ()}

    def declared_mask(self) -> NDArray[np.bool_] | None:
        """The mask given by hand, one element a byte of the record, True where critical; or None."""
        if self.critical_fields is None and self.critical_bytes is None:
            return None
        mask = np.zeros(self.itemsize, np.bool_)
        named = [self.field_range(name) for name in self.critical_fields or ()]
        for start, stop in (*named, *(self.critical_bytes or ())):
            mask[start:stop] = True
        return mask

    def _field(self, name: str, key: str) -> tuple[np.dtype[Any], int]:
        if isinstance(self.dtype, int):
            raise LayoutError(
                f"found field {name!r} of a record given by its length, expected a structured dtype", key=key
            )
        dtype, offset = self.dtype, 0
        for part in name.split("."):
            inner: Mapping[str, Any] = dtype.fields or {}
            if part not in inner:
                known = ", ".join(dtype.names or ()) or "none"
                raise LayoutError(f"found {name!r}, expected a field of the record; it has: {known}", key=key)
            dtype, offset = inner[part][0], offset + inner[part][1]
        return dtype, offset


Section = Bytes | Array | Record


@dataclass(frozen=True)
class Guard:
    """Bytes that a file of this kind has at `offset`; a file with others goes through whole."""

    offset: int
    data: bytes

    def __post_init__(self) -> None:
        require_int("offset", self.offset, 0)
        if not isinstance(self.data, bytes) or not self.data:
            raise LayoutError(f"found {self.data!r}, expected at least one byte", key="data")

    @property
    def stop(self) -> int:
        """Offset behind the bytes."""
        return self.offset + len(self.data)


@dataclass(frozen=True)
class Checksum:
    """A checksum that the file's own format carries over bytes of which some may be dropped.

    After a restart the fill stands in the dropped bytes, so that the checksum has to be made anew.

    Parameters
    ----------
    kind : "crc32"
        CRC-32 as in zip, four bytes, little-endian.
    start, length : int
        The bytes it covers.
    places : tuple of int
        One or two offsets where it stands, in bytes kept whole.
    """

    kind: Literal["crc32"]
    start: int
    length: int
    places: tuple[int, ...]

    SIZE = 4

    def __post_init__(self) -> None:
        if self.kind != "crc32":
            raise LayoutError(f"found {self.kind!r}, expected 'crc32'", key="kind")
        require_int("start", self.start, 0)
        require_int("length", self.length, 1)
        if (
            isinstance(self.places, str)
            or not isinstance(self.places, Sequence)
            or len(self.places) not in (1, 2)
        ):
            raise LayoutError(f"found {self.places!r}, expected one or two offsets", key="places")
        for number, place in enumerate(self.places):
            require_int(f"places[{number}]", place, 0)
        object.__setattr__(self, "places", tuple(self.places))

    @property
    def stop(self) -> int:
        """Offset behind the bytes it covers."""
        return self.start + self.length


def fixed_length(section: Section) -> int | None:
    """Bytes of a section, or None if a count is read or solved."""
    length = section.unit
    for count in section.counts().values():
        if not isinstance(count, int):
            return None
        length *= count
    return length


def variables_of(section: Section) -> tuple[str, ...]:
    """Names of the variables a section holds elements of."""
    if isinstance(section, Array):
        return (section.variable,)
    return tuple(section.fields.values()) if isinstance(section, Record) else ()


@contextmanager
def within(key: str, path: str | None = None) -> Iterator[None]:
    """Put `key` in front of the key of a LayoutError raised inside, and name the file."""
    try:
        yield
    except LayoutError as error:
        inner = error.key or ""
        joined = key + inner if inner.startswith("[") else ".".join(part for part in (key, inner) if part)
        raise LayoutError(
            error.message, path=error.path or path, offset=error.offset, key=joined or None
        ) from error.__cause__


# Checks of single values ------------------------------------------------------------------------------------


def require_int(key: str, value: object, least: int | None) -> None:
    """LayoutError unless the value is an integer of 64 bits and at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise LayoutError(f"found {value!r}, expected an integer", key=key)
    if least is not None and value < least:
        raise LayoutError(f"found {value}, expected at least {least}", key=key)
    if not -(2**63) <= value < 2**63:
        raise LayoutError(f"found {value}, expected 64 bits to hold it", key=key)


def _require_name(key: str, name: object) -> None:
    if not isinstance(name, str) or not name or not name.isprintable():
        raise LayoutError(f"found {name!r}, expected a printable name", key=key)


def _require_count(key: str, count: object) -> None:
    if not isinstance(count, Rest | IntAt):
        require_int(key, count, 0)


def _checked_dtype(key: str, dtype: DTypeLike) -> np.dtype[Any]:
    if dtype is None:  # np.dtype(None) is float64: a forgotten argument must not become one
        raise LayoutError("found None, expected a NumPy dtype", key=key)
    try:
        found = np.dtype(dtype)
    except (TypeError, ValueError) as error:
        raise LayoutError(f"found {dtype!r}, expected a NumPy dtype ({error})", key=key) from error
    if found.hasobject:
        raise LayoutError(f"found {found}, expected a type without Python objects", key=key)
    if found.subdtype is not None or found.itemsize == 0:
        raise LayoutError(f"found {found}, expected a type of at least a byte and no sub-array", key=key)
    return found


def _checked_record_dtype(dtype: np.dtype[Any] | int) -> np.dtype[Any] | int:
    if isinstance(dtype, int | np.integer):
        require_int("length", dtype, 1)
        return int(dtype)
    found = _checked_dtype("dtype", dtype)
    if found.names is None:
        raise LayoutError(f"found {found}, expected a structured dtype or the record's length", key="dtype")
    taken = np.zeros(found.itemsize, np.int64)
    for name in found.names:
        inner, offset = cast("Mapping[str, Any]", found.fields)[name][:2]
        taken[offset : offset + inner.itemsize] += 1
    if (taken > 1).any():
        # A union's other field may be the critical one.
        raise LayoutError(f"found overlapping fields at byte {int(np.argmax(taken > 1))}", key="dtype")
    return found


def _checked_ranges(ranges: Iterable[Sequence[int]], itemsize: int) -> tuple[tuple[int, int], ...]:
    found = []
    for number, pair in enumerate(ranges):
        key = f"critical_bytes[{number}]"
        if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
            raise LayoutError(f"found {pair!r}, expected [start, stop]", key=key)
        for value in pair:
            require_int(key, value, 0)
        if not pair[0] < pair[1] <= itemsize:
            raise LayoutError(f"found {list(pair)}, expected start < stop <= {itemsize}", key=key)
        found.append((int(pair[0]), int(pair[1])))
    return tuple(found)


def _check_section(section: Section) -> None:
    _require_name("variable" if isinstance(section, Array) else "name", section.name)
    for key, count in section.counts().items():
        _require_count(key, count)
    if section.offset is not None:
        require_int("offset", section.offset, 0)
