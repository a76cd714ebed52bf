"""Layouts: checks, places in real files, TOML both ways, ``.npy`` and ``.npz`` samples."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import io
import math
import re
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scr_critplugin.errors import LayoutError, NoMatchError, StorageError
from scr_critplugin.layout import (
    REST,
    Array,
    Bytes,
    Checksum,
    FileLayout,
    Guard,
    IntAt,
    Layout,
    Record,
    fixed_length,
)
from scr_critplugin.regions import mask_from_runs

DOCUMENT = Path(__file__).parents[1] / "docs" / "layout.md"
PARTICLE = np.dtype([("x", "<f8", (3,)), ("v", [("r", "<f4"), ("phi", "<f4")]), ("id", "<i4")], align=True)

HEADER = Bytes("header", 64)
U = Array("u", np.dtype("<f8"), (4, 5))


def file_of(*sections: Any, **keywords: Any) -> FileLayout:
    return FileLayout(keywords.pop("pattern", "ckpt.{rank}"), sections, **keywords)


def int_at(offset: int, section: str | None = None, dtype: str = "<i4", **keywords: int) -> IntAt:
    return IntAt(offset, np.dtype(dtype), section, **keywords)


# Single sections --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("build", "key", "said"),
    [
        (lambda: Bytes("", 3), "name", "printable"),
        (lambda: Bytes("a\nb", 3), "name", "printable"),
        (lambda: Bytes(3, 3), "name", "printable"),
        (lambda: Bytes("h", -1), "length", "at least 0"),
        (lambda: Bytes("h", 2.0), "length", "expected an integer"),
        (lambda: Bytes("h", True), "length", "expected an integer"),
        (lambda: Bytes("h", 2**63), "length", "64 bits"),
        (lambda: Bytes("h", 3, offset=-1), "offset", "at least 0"),
        (lambda: Array("", "<f8", ()), "variable", "printable"),
        (lambda: Array("u", "<f9", ()), "dtype", "NumPy dtype"),
        (lambda: Array("u", None, ()), "dtype", "found None"),
        (lambda: Array("u", object, ()), "dtype", "Python objects"),
        (lambda: Array("u", ("<f8", (3,)), ()), "dtype", "sub-array"),
        (lambda: Array("u", "S0", ()), "dtype", "at least a byte"),
        (lambda: Array("u", "<f8", 3), "shape", "sequence"),
        (lambda: Array("u", "<f8", (3, "x")), "shape[1]", "expected an integer"),
        (lambda: Array("u", "<f8", (3, -1)), "shape[1]", "at least 0"),
        (lambda: Array("u", "<f8", (), "A"), "order", "'C' or 'F'"),
        (lambda: Array("u", "<f8", (), repeat=-2), "repeat", "at least 0"),
        (lambda: int_at(-1), "offset", "at least 0"),
        (lambda: int_at(0, dtype="<f4"), "dtype", "integer type"),
        (lambda: int_at(0, mul=0), "mul", "at least 1"),
        (lambda: int_at(0, add=0.5), "add", "expected an integer"),
        (lambda: Record("p", 0, 1), "length", "at least 1"),
        (lambda: Record("p", np.dtype("<f8"), 1), "dtype", "structured"),
        (
            lambda: Record(
                "p", np.dtype({"names": ["a", "b"], "formats": ["<f8", "<f4"], "offsets": [0, 4]}), 1
            ),
            "dtype",
            "overlapping fields at byte 4",
        ),
        (lambda: Record("p", PARTICLE, 1, {"w": "p.w"}), "fields", "it has: x, v, id"),
        (lambda: Record("p", PARTICLE, 1, {"v.z": "p.z"}), "fields", "it has: r, phi"),
        (lambda: Record("p", PARTICLE, 1, {"x.y": "p.y"}), "fields", "it has: none"),
        (lambda: Record("p", PARTICLE, 1, {"x": ""}), "fields.x", "printable"),
        (lambda: Record("p", 24, 1, {"x": "p.x"}), "fields", "given by its length"),
        (lambda: Record("p", PARTICLE, 1, {"x": "p.x"}, ("id",)), "fields", "expected either"),
        (lambda: Record("p", PARTICLE, 1, critical_fields=("w",)), "critical_fields", "it has"),
        (lambda: Record("p", 24, 1, critical_bytes=((0, 25),)), "critical_bytes[0]", "stop <= 24"),
        (lambda: Record("p", 24, 1, critical_bytes=((0, 8), (9, 9))), "critical_bytes[1]", "start < stop"),
        (lambda: Record("p", 24, 1, critical_bytes=((0,),)), "critical_bytes[0]", r"\[start, stop\]"),
        (lambda: Record("p", 24, 1, critical_bytes=((-1, 2),)), "critical_bytes[0]", "at least 0"),
        (lambda: Guard(0, b""), "data", "at least one byte"),
        (lambda: Guard(-1, b"x"), "offset", "at least 0"),
        (lambda: Checksum("md5", 0, 1, (0,)), "kind", "crc32"),
        (lambda: Checksum("crc32", 0, 0, (0,)), "length", "at least 1"),
        (lambda: Checksum("crc32", 0, 1, ()), "places", "one or two"),
        (lambda: Checksum("crc32", 0, 1, (9, -1)), "places[1]", "at least 0"),
    ],
)
def test_a_wrong_part_is_named(build: Any, key: str, said: str) -> None:
    with pytest.raises(LayoutError, match=said) as caught:
        build()
    assert caught.value.key == key


def test_a_record_knows_its_fields() -> None:
    record = Record("p", PARTICLE, 3, {"x": "p.x", "v.phi": "p.phi"})
    assert record.itemsize == 40
    assert record.field_ranges() == {"x": (0, 24), "v": (24, 32), "id": (32, 36)}
    assert record.field_range("v.phi") == (28, 32)
    assert record.field_dtype("v.phi") == "<f4"
    assert record.field_dtype("x").shape == (3,)
    assert record.declared_mask() is None
    assert file_of(record).variables() == ("p.x", "p.phi")


def test_a_mask_by_hand() -> None:
    mask = Record("p", PARTICLE, 3, critical_fields=("x", "v.r")).declared_mask()
    assert mask is not None
    assert np.flatnonzero(mask).tolist() == list(range(28))
    mask = Record("p", 16, 3, critical_bytes=((0, 2), (12, 16))).declared_mask()
    assert mask is not None
    assert np.flatnonzero(mask).tolist() == [0, 1, 12, 13, 14, 15]
    mask = Record("p", PARTICLE, 3, critical_fields=("id",), critical_bytes=((0, 1),)).declared_mask()
    assert mask is not None
    assert np.flatnonzero(mask).tolist() == [0, 32, 33, 34, 35]
    nothing = Record("p", 16, 3, critical_fields=()).declared_mask()
    assert nothing is not None
    assert not nothing.any()


# A kind of file ---------------------------------------------------------------------------------------------


def test_gaps_are_made_sections() -> None:
    layout = file_of(
        Bytes("head", 8, offset=4), Array("u", np.dtype("<f4"), (2,), offset=12), Bytes("t", 1, 30)
    )
    assert layout.sequence() == (
        Bytes("(gap 0:4)", 4),
        Bytes("head", 8),
        Array("u", np.dtype("<f4"), (2,)),
        Bytes("(gap 20:30)", 10),
        Bytes("t", 1),
    )
    assert layout.fixed_size() == 31
    assert layout.is_fixed()
    assert layout.variables() == ("u",)


def test_lengths_that_are_not_fixed() -> None:
    assert fixed_length(Array("u", np.dtype("<f8"), (3, REST))) is None
    assert fixed_length(Array("u", np.dtype("<f8"), (3, 4), repeat=2)) == 192
    layout = file_of(HEADER, Array("u", np.dtype("<f8"), (3, int_at(0))))
    assert not layout.is_fixed()
    assert layout.fixed_size() is None


VARYING = Array("v", np.dtype("<f8"), (int_at(0),))


@pytest.mark.parametrize(
    ("sections", "keywords", "key", "said"),
    [
        ((), {}, "section", "no section"),
        ((HEADER, Bytes("header", 1)), {}, "section[1].name", "already"),
        ((U, Bytes("u", 1)), {}, "section[1].name", "already"),
        ((U, Record("p", PARTICLE, 1, {"x": "u"})), {}, "section[1]", r"section\[0\] holds already"),
        ((Record("p", PARTICLE, 1, {"x": "a", "id": "a"}),), {}, "section[0]", "holds already"),
        ((HEADER, dataclasses.replace(U, offset=63)), {}, "section[1].offset", "before ends at 64"),
        ((HEADER, VARYING, dataclasses.replace(U, offset=900)), {}, "section[2].offset", "leave it out"),
        ((Bytes("a", REST), Bytes("b", REST)), {}, "section[1].length", r"first is section\[0\]\.length"),
        ((Array("u", np.dtype("<f8"), (REST, REST)),), {}, "section[0].shape[1]", "second rest"),
        ((Array("u", np.dtype("<f8"), (REST, 0)),), {}, "section[0].shape[0]", "no solution"),
        ((VARYING,), {}, "section[0].shape[0].offset", "so far none"),
        ((U, VARYING), {}, "section[1].shape[0].offset", "so far none"),
        ((Bytes("h", 3), VARYING), {}, "section[1].shape[0].offset", "so far 0:3"),
        (
            (HEADER, U, Bytes("t", 4), Array("v", np.dtype("<f8"), (int_at(222),))),
            {},
            "section[3].shape[0].offset",
            "0:64, 224:228",
        ),
        (
            (HEADER, Bytes("n", int_at(0, "n"))),
            {},
            "section[1].length.section",
            "earlier .* there is: header",
        ),
        ((Bytes("n", int_at(0, "later")), Bytes("later", 4)), {}, "section[0].length.section", "earlier"),
        ((HEADER, U, Bytes("n", int_at(0, "u"))), {}, "section[2].length.section", "expected kind bytes"),
        ((HEADER, Bytes("n", int_at(61, "header"))), {}, "section[1].length.offset", "within the 64 bytes"),
        (
            (HEADER, Bytes("n", int_at(0)), Bytes("m", int_at(0, "n"))),
            {},
            "section[2].length.section",
            "fixed length",
        ),
        (
            (Bytes("a", REST), Bytes("n", 4), Bytes("m", int_at(0, "n"))),
            {},
            "section[2].length.section",
            "no rest before",
        ),
        ((HEADER, U), {"guards": (Guard(62, b"abc"),)}, "guard[0].offset", "kept whole"),
        ((HEADER, Bytes("t", REST)), {"guards": (Guard(64, b"a"),)}, "guard[0].offset", "fixed place"),
        (
            (HEADER, VARYING),
            {"checksums": (Checksum("crc32", 64, 4, (0,)),)},
            "checksum[0]",
            "expected fixed",
        ),
        ((HEADER, U), {"checksums": (Checksum("crc32", 64, 161, (0,)),)}, "checksum[0].length", "within 224"),
        (
            (HEADER, U),
            {"checksums": (Checksum("crc32", 64, 9, (62,)),)},
            "checksum[0].places[0]",
            "kept whole",
        ),
        (
            (HEADER, U),
            {"checksums": (Checksum("crc32", 8, 99, (0, 8)),)},
            "checksum[0].places[1]",
            "covers 8:107",
        ),
        (
            (HEADER, U),
            {"checksums": (Checksum("crc32", 64, 8, (0,)), Checksum("crc32", 70, 8, (4,)))},
            "checksum[1].start",
            "ascending and disjoint",
        ),
        ((HEADER,), {"min_size": 65}, "section", "no file would fit"),
        ((HEADER,), {"max_size": 63}, "section", "no file would fit"),
        ((HEADER,), {"min_size": 5, "max_size": 4}, "max_size", "at least min_size"),
        ((HEADER,), {"min_size": -1}, "min_size", "at least 0"),
        ((HEADER,), {"max_size": 1.5}, "max_size", "expected an integer"),
        ((Array("u", np.dtype("<f8"), (2**40, 2**40)),), {}, "section", "64 bits"),
        ((HEADER,), {"pattern": "/ckpt"}, "pattern", "without a leading /"),
    ],
)
def test_parts_that_do_not_go_together_are_named(sections: Any, keywords: Any, key: str, said: str) -> None:
    with pytest.raises(LayoutError, match=said) as caught:
        file_of(*sections, **keywords)
    assert caught.value.key == key


def test_a_layout_has_files_that_can_be_reached() -> None:
    with pytest.raises(LayoutError, match="at least one"):
        Layout(())
    with pytest.raises(LayoutError, match=r"pattern of file\[0\] again") as caught:
        Layout((file_of(HEADER), file_of(U)))
    assert caught.value.key == "file[1].pattern"
    both = Layout(
        (
            file_of(U),
            file_of(Array("v", np.dtype("<f8"), ()), HEADER, pattern="other"),
            file_of(U, pattern="3"),
        )
    )
    assert both.variables() == ("u", "v")


GOOD_PATTERNS = [
    "ckpt",
    "a/b/c",
    "*",
    "**",
    "**/x",
    "a/**/b",
    "ckpt.{dataset}/rank_{rank}.bin",
    "r{rank+1}-{rank}",
    "a[0-9]b",
    "[!a-c]?",
    "[^a]",
    "[]]",
    "[]a]x",
    "[*][?][[][{]",
    "x}",
    "name with blanks",
    "größe.{rank}",
    "a\\b",
    "..x",
    ".hidden",
    "[a-]",
    "[-a]",
    "a,b",
]
BAD_PATTERNS = [
    "",
    "/abs",
    "a//b",
    "a/",
    "a/../b",
    "./a",
    "..",
    "{rnk}",
    "{rank",
    "{}",
    "{rank+2}",
    "a[bc",
    "[",
    "[!",
    "[]",
    "[z-a]",
    "a\nb",
    "a\x00b",
    "{rank}{rank+1}",
    "[a/b]",
    "x" * 4096,
]


@pytest.mark.parametrize("pattern", GOOD_PATTERNS)
def test_a_pattern(pattern: str) -> None:
    assert file_of(HEADER, pattern=pattern).pattern == pattern


@pytest.mark.parametrize("pattern", BAD_PATTERNS)
def test_a_malformed_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(LayoutError) as caught:
        file_of(HEADER, pattern=pattern)
    assert caught.value.key == "pattern"


@settings(deadline=None, max_examples=500)
@given(
    st.lists(
        st.sampled_from(
            [
                "{rank}",
                "{rank+1}",
                "{dataset}",
                "*",
                "**",
                "?",
                "[",
                "]",
                "!",
                "-",
                "^",
                "{",
                "}",
                "/",
                "a",
                "b",
                "z",
                "é",
            ]
        ),
        min_size=1,
        max_size=9,
    ).map("".join)
)
def test_what_is_accepted_here_is_accepted_by_the_core(pattern: str) -> None:
    from scr_critplugin._core import ffi, lib

    try:
        file_of(HEADER, pattern=pattern)
    except LayoutError:
        return
    assert lib.scr_crit_glob(pattern.encode(), b"a/b", 3, ffi.NULL) >= 0


# Places in a file -------------------------------------------------------------------------------------------


def places(layout: FileLayout, path: Path, content: bytes) -> list[tuple[str, int, int]]:
    path.write_bytes(content)
    return [(place.section.name, place.offset, place.length) for place in layout.locate(path)]


def test_a_raw_dump(tmp_path: Path) -> None:
    u = np.arange(24.0).reshape(2, 3, 4)
    path = tmp_path / "ckpt"
    with path.open("wb") as file:
        file.write(struct.pack("<8sq", b"HEAT3D01", 7))
        u.astype(">f8").tofile(file)
        file.write(b"tail")
    (layout,) = Layout.raw("ckpt", {"u": (16, ">f8", (2, 3, 4))}, size=REST).files
    header, place, tail = layout.locate(path)
    assert (header.section.name, header.offset, header.length) == ("(gap 0:16)", 0, 16)
    assert (tail.offset, tail.length) == (208, 4)
    assert isinstance(place.section, Array)
    again = np.fromfile(path, place.section.dtype, math.prod(place.shape), offset=place.offset)
    assert np.array_equal(again.reshape(place.shape), u)


def test_counts_read_from_the_file(tmp_path: Path) -> None:
    u = np.asfortranarray(np.arange(6 * 7 * 8 * 5, dtype="<f8").reshape(6, 7, 8, 5))
    x = np.arange(3 * 11, dtype="<f4")
    path = tmp_path / "restart"
    with path.open("wb") as file:
        np.array([4, 5, 6, 99], "<i4").tofile(file)
        file.write(u.tobytes(order="F"))
        np.array([11], "<i4").tofile(file)
        x.tofile(file)
    layout = file_of(
        Bytes("dims", 16),
        Array("u", np.dtype("<f8"), (*(int_at(at, "dims", add=2) for at in (0, 4, 8)), 5), "F"),
        Bytes("npart", 4),
        Array("x", np.dtype("<f4"), (3, int_at(0, "npart")), "F"),
    )
    found = {place.section.name: place for place in layout.locate(path)}
    assert found["u"].shape == (6, 7, 8, 5)
    assert found["x"].shape == (3, 11)
    assert found["x"].offset == 16 + u.nbytes + 4
    assert found["x"].offset + found["x"].length == path.stat().st_size
    for dtype in ("<i2", ">u4", "<u8", "i1"):
        head = np.array([3], dtype).tobytes()
        short = file_of(
            Bytes("n", len(head)), Array("v", np.dtype("<f8"), (int_at(0, dtype=dtype, mul=2, add=-1),))
        )
        assert places(short, path, head + bytes(40))[1] == ("v", len(head), 40)


def test_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "file"
    blocks = file_of(HEADER, Array("rho", np.dtype("<f8"), (2, 3), repeat=REST), Bytes("foot", 5))
    assert places(blocks, path, bytes(64 + 48 * 7 + 5)) == [
        ("header", 0, 64),
        ("rho", 64, 336),
        ("foot", 400, 5),
    ]
    assert blocks.locate(path)[1].count == 7
    assert blocks.locate(path)[1].shape == (2, 3)
    assert places(blocks, path, bytes(69))[1] == ("rho", 64, 0)
    axis = file_of(Array("u", np.dtype("<f4"), (3, REST), repeat=2))
    path.write_bytes(bytes(120))
    assert axis.locate(path)[0].shape == (3, 5)
    records = file_of(Record("p", PARTICLE, REST))
    path.write_bytes(bytes(120))
    assert records.locate(path)[0].count == 3


@pytest.mark.parametrize(
    ("layout", "content", "said"),
    [
        (file_of(HEADER), bytes(63), "found 63 bytes, expected 64 by the sections"),
        (file_of(HEADER), bytes(65), "found 65 bytes, expected 64 by the sections"),
        (file_of(HEADER, Bytes("t", REST), min_size=80), bytes(79), "expected at least 80"),
        (file_of(HEADER, Bytes("t", REST), max_size=80), bytes(81), "expected at most 80"),
        (file_of(HEADER, Bytes("t", REST)), bytes(63), "found -1 bytes left"),
        (
            file_of(HEADER, Array("u", np.dtype("<f8"), (REST,))),
            bytes(71),
            "found 7 bytes left .* multiple of 8",
        ),
        (file_of(HEADER, Array("u", np.dtype("<f8"), (REST, int_at(0)))), bytes(64), "multiple of 0"),
        (file_of(HEADER, guards=(Guard(3, b"ab"),)), bytes(64), "found 00 00, expected 61 62"),
        (file_of(HEADER, guards=(Guard(62, b"ab"),)), bytes(63), "found 00, expected 61 62"),
        (file_of(HEADER, Bytes("t", int_at(60))), bytes(62), "ends before the integer"),
        (file_of(HEADER, Bytes("t", int_at(60, add=-1))), bytes(64), "found a count of -1"),
        (file_of(HEADER, Bytes("t", int_at(60))), bytes(60) + b"\xff\xff\xff\xff", "found a count of -1"),
        (file_of(HEADER, Bytes("t", int_at(60))), bytes(60) + b"\x05\x00\x00\x00" + bytes(4), "expected 69"),
    ],
)
def test_a_file_of_another_kind_is_refused(
    tmp_path: Path, layout: FileLayout, content: bytes, said: str
) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(LayoutError, match=said) as caught:
        layout.locate(path)
    assert caught.value.path == str(path)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(StorageError) as caught:
        file_of(HEADER).locate(tmp_path / "none")
    assert caught.value.errno == errno.ENOENT


@st.composite
def files_with_layouts(draw: st.DrawFn) -> tuple[FileLayout, bytes, list[tuple[str, int, int]]]:
    """A random layout, a file that follows it, and the places that its sections have there."""
    sections: list[Any] = []
    content = bytearray()
    expected: list[tuple[str, int, int]] = []
    rest_at = draw(st.none() | st.integers(0, 4))
    can_be_base: list[str] = []
    written: dict[int, int] = {}
    fixed = True
    for number in range(draw(st.integers(1, 5))):
        name = f"s{number}"
        unit, build = draw(
            st.sampled_from(
                [
                    (1, lambda name, count, offset: Bytes(name, count, offset)),
                    (4, lambda name, count, offset: Array(name, np.dtype("<f4"), (count,), offset=offset)),
                    (24, lambda name, count, offset: Array(name, np.dtype("<f8"), (3,), "F", count, offset)),
                    (40, lambda name, count, offset: Record(name, PARTICLE, count, offset=offset)),
                ]
            )
        )
        value = draw(st.integers(0, 5)) + (8 if unit == 1 else 0)
        offset = None
        if fixed and draw(st.booleans()):
            offset = len(content) + draw(st.integers(0, 3))
            if offset > len(content):
                expected.append((f"(gap {len(content)}:{offset})", len(content), offset - len(content)))
            content += bytes(offset - len(content))
        kind = "rest" if number == rest_at else draw(st.sampled_from(["fixed", "read"]))
        count: Any = REST if kind == "rest" else value
        if kind == "read" and can_be_base:
            base = draw(st.sampled_from(can_be_base))
            start = next(at for known, at, _ in expected if known == base)
            add = draw(st.integers(-3, 3))
            place = draw(st.sampled_from([0, 4]))
            count = IntAt(place, np.dtype(">i4"), base, 1, add)
            if start + place not in written:
                written[start + place] = value - add
                struct.pack_into(">i", content, start + place, value - add)
            elif written[start + place] + add >= 0:  # another section's count stands here already
                value = written[start + place] + add
            else:
                count = value
        sections.append(build(name, count, offset))
        expected.append((name, len(content), value * unit))
        content += bytes(value * unit)
        if isinstance(count, int) and unit == 1 and (rest_at is None or number < rest_at):
            can_be_base.append(name)
        fixed = fixed and isinstance(count, int)
    return FileLayout("*", tuple(sections)), bytes(content), expected


@settings(deadline=None, max_examples=200)
@given(files_with_layouts())
def test_every_section_is_found_where_it_was_written(
    tmp_path_factory: pytest.TempPathFactory, drawn: tuple[FileLayout, bytes, list[tuple[str, int, int]]]
) -> None:
    layout, content, expected = drawn
    path = tmp_path_factory.getbasetemp() / "located"
    assert places(layout, path, content) == expected
    again = Layout.loads(Layout((layout,)).to_toml())
    assert again.files == (layout,)


@settings(deadline=None, max_examples=200)
@given(files_with_layouts(), st.data())
@pytest.mark.filterwarnings("ignore:no map knows")
def test_the_core_finds_the_same_places(
    tmp_path_factory: pytest.TempPathFactory,
    drawn: tuple[FileLayout, bytes, list[tuple[str, int, int]]],
    data: st.DataObject,
) -> None:
    """Sound and damaged files: what the core drops lies where locate says, and both refuse the same files."""
    from scr_critplugin import packed
    from scr_critplugin.criticality import CriticalityMap
    from scr_critplugin.plan import compile_plan

    layout, content, _ = drawn
    by_hand = [
        dataclasses.replace(each, critical_bytes=((0, 3), (30, 31))) if isinstance(each, Record) else each
        for each in layout.sections
    ]
    layout = dataclasses.replace(layout, sections=tuple(by_hand))
    changed = bytearray(content) + bytes(data.draw(st.sampled_from([0, 0, 1, 24, 40])))
    for _ in range(data.draw(st.integers(0, 2))):
        if changed:
            changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.sampled_from([0, 1, 7, 255]))
    path = tmp_path_factory.getbasetemp() / "by both"
    path.write_bytes(changed)
    plan = compile_plan(CriticalityMap([]), Layout((layout,)))
    try:
        found = layout.locate(path)
    except LayoutError:
        with pytest.raises(NoMatchError):
            packed.runs(path, plan, entry=0)
        return
    expected = np.ones(len(changed), np.bool_)
    for place in found:
        if isinstance(place.section, Record):
            mask = place.section.declared_mask()
            assert mask is not None
            expected[place.offset : place.offset + place.length] = np.tile(mask, place.count)
    assert np.array_equal(mask_from_runs(packed.runs(path, plan, entry=0), expected.shape), expected)


# TOML -------------------------------------------------------------------------------------------------------

COUNTS = st.integers(0, 2**62) | st.just(REST)
TEXTS = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=8)
OFFSETS = st.none() | st.integers(0, 10**12)


@st.composite
def any_sections(draw: st.DrawFn, name: str) -> Any:
    """Sections with every key used, of a length that fits into 64 bits."""
    kind = draw(st.sampled_from(["bytes", "array", "record"]))
    small = st.integers(0, 99)
    if kind == "bytes":
        return Bytes(name, draw(small))
    if kind == "array":
        dtype = draw(st.sampled_from(["<f8", ">i4", "u1", "<c16", "S3", ">U2", "M8[us]", "V5"]))
        shape = tuple(draw(st.lists(small, max_size=3)))
        chosen = PARTICLE if draw(st.booleans()) else np.dtype(dtype)
        return Array(name, chosen, shape, draw(st.sampled_from(["C", "F"])), draw(small))
    mask = draw(
        st.sampled_from(
            [{}, {"fields": {"x": f"{name}.x", "v.phi": f"{name}.é"}}, {"critical_fields": ("v.r",)}]
        )
    )
    by_length = {"critical_bytes": ((0, 2), (5, 7))} if draw(st.booleans()) else {}
    return draw(
        st.sampled_from(
            [Record(name, PARTICLE, draw(small), **mask), Record(name, 7, draw(small), **by_length)]
        )
    )


@settings(deadline=None)
@given(st.data())
def test_a_layout_comes_back_from_its_text(data: st.DataObject) -> None:
    names = data.draw(st.lists(TEXTS, min_size=1, max_size=4, unique=True))
    head = Bytes('h "\\ \x7f'.strip("\x7f") + "'#", 16)
    files = []
    for number in range(data.draw(st.integers(1, 2))):
        sections = [head, *(data.draw(any_sections(f"{name} {index}")) for index, name in enumerate(names))]
        end = file_of(*sections).fixed_size()
        assert end is not None
        sections.append(Bytes("placed", 3, offset=end + 5))
        checksums = (Checksum("crc32", 8, end - 8, (0, 4)),) if data.draw(st.booleans()) and end > 16 else ()
        if not checksums:
            sections.append(
                Array("read", np.dtype("<f8"), (int_at(2, head.name, ">u2", mul=3, add=-1), REST))
            )
        guards = (Guard(0, b"\x00\xffA"), Guard(9, b"z"))
        files.append(
            file_of(
                *sections, pattern=f"**/{number}.{{rank}}", guards=guards, checksums=checksums, max_size=2**62
            )
        )
    layout = Layout(tuple(files))
    assert Layout.loads(layout.to_toml()) == layout


def test_a_text_is_read_in_its_simplest_form() -> None:
    layout = Layout.loads(
        """
        [[file]]
        pattern = "ckpt.{rank}"
        [[file.section]]
        kind = "array"
        variable = "step"
        dtype = "<i8"
        shape = []
        """
    )
    assert layout == Layout((file_of(Array("step", np.dtype("<i8"), ())),))


ONE_FILE = '[[file]]\npattern = "p"\n'
BYTES = '[[file.section]]\nkind = "bytes"\nname = "h"\nlength = 8\n'
ARRAY = '[[file.section]]\nkind = "array"\nvariable = "u"\ndtype = "<f8"\nshape = [3]\n'
RECORD = '[[file.section]]\nkind = "record"\nname = "p"\ncount = 3\n'


@pytest.mark.parametrize(
    ("text", "key", "said"),
    [
        ("[[file]", None, "no TOML"),
        ("", "file", "at least one"),
        ("version = 2", "version", "found version 2, expected 1"),
        ("version = true", "version", "expected an integer"),
        ("file = 3", "file", "expected a list"),
        ("file = [3]", "file[0]", "expected a table"),
        ("[[files]]", "files", "no meaning"),
        ("[[file]]", "file[0].pattern", "missing"),
        ("[[file]]\npattern = 3", "file[0].pattern", "expected a text"),
        ('[[file]]\npattern = "{x}"', "file[0].pattern", "expected {rank}"),
        (ONE_FILE, "file[0].section", "no section"),
        (ONE_FILE + 'format = "hdf5"', "file[0].format", "not supported yet: hdf5"),
        (ONE_FILE + 'format = "fortran"', "file[0].format", "not supported yet: fortran"),
        (ONE_FILE + 'format = "csv"', "file[0].format", "one of raw, npy, npz"),
        (ONE_FILE + 'format = "npy"', "file[0].sample", "missing"),
        (
            ONE_FILE + 'format = "npz"\nsample = "s"\nnames = { u = 3 }',
            "file[0].names.u",
            "name of a variable",
        ),
        (ONE_FILE + BYTES + "maxsize = 3", "file[0].section[0].maxsize", "no meaning"),
        (ONE_FILE + "max_size = -1\n" + BYTES, "file[0].max_size", "at least 0"),
        (ONE_FILE + "[[file.section]]", "file[0].section[0].kind", "missing"),
        (ONE_FILE + '[[file.section]]\nkind = "hole"', "file[0].section[0].kind", "bytes, array, record"),
        (
            ONE_FILE + BYTES.replace("8", '"all"'),
            "file[0].section[0].length",
            "found 'all', expected a number",
        ),
        (ONE_FILE + BYTES.replace("8", "1.5"), "file[0].section[0].length", "expected a number"),
        (ONE_FILE + BYTES.replace("8", "false"), "file[0].section[0].length", "expected a number"),
        (ONE_FILE + BYTES.replace("8", "{ at = 0 }"), "file[0].section[0].length.dtype", "missing"),
        (
            ONE_FILE
            + BYTES
            + BYTES.replace('"h"', '"i"').replace("8", '{ at = 0, dtype = "<i4", plus = 1 }'),
            "file[0].section[1].length.plus",
            "no meaning",
        ),
        (
            ONE_FILE + BYTES + ARRAY + ARRAY.replace('"u"', '"v"').replace("<f8", "float64"),
            "file[0].section[2].dtype",
            "leaves the byte order open",
        ),
        (ONE_FILE + ARRAY.replace("<f8", "=f8"), "file[0].section[0].dtype", "byte order"),
        (ONE_FILE + ARRAY.replace("<f8", "<f9"), "file[0].section[0].dtype", "expected a NumPy type"),
        (ONE_FILE + ARRAY.replace("<f8", "|O"), "file[0].section[0].dtype", "Python objects"),
        (ONE_FILE + ARRAY.replace('"<f8"', "8"), "file[0].section[0].dtype", "list of fields"),
        (ONE_FILE + ARRAY.replace('"<f8"', '["<f8"]'), "file[0].section[0].dtype", "as a field"),
        (ONE_FILE + ARRAY.replace('"<f8"', '[["a", "f8"]]'), "file[0].section[0].dtype", "byte order open"),
        (ONE_FILE + ARRAY.replace("[3]", "3"), "file[0].section[0].shape", "expected a list"),
        (ONE_FILE + ARRAY.replace("[3]", '[3, "x"]'), "file[0].section[0].shape[1]", "expected a number"),
        (
            ONE_FILE + ARRAY.replace("[3]", '[{ at = 0, dtype = "<f4" }]'),
            "file[0].section[0].shape[0].dtype",
            "integer type",
        ),
        (ONE_FILE + ARRAY + "order = 3", "file[0].section[0].order", "expected a text"),
        (ONE_FILE + RECORD, "file[0].section[0].dtype", "either dtype"),
        (ONE_FILE + RECORD + 'length = 8\ndtype = "<f8"', "file[0].section[0].dtype", "either dtype"),
        (
            ONE_FILE + RECORD + 'dtype = [["x", "<f8"]]\nfields = { y = "p.y" }',
            "file[0].section[0].fields",
            "it has: x",
        ),
        (
            ONE_FILE + RECORD + 'dtype = [["x", "<f8"]]\ncritical_fields = ["x", 3]',
            "file[0].section[0].critical_fields[1]",
            "expected a text",
        ),
        (
            ONE_FILE + RECORD + "length = 8\ncritical_bytes = [[0, 9]]",
            "file[0].section[0].critical_bytes[0]",
            "stop <= 8",
        ),
        (ONE_FILE + BYTES + '[[file.guard]]\noffset = 0\nhex = "0"', "file[0].guard[0].hex", "hexadecimal"),
        (ONE_FILE + BYTES + "[[file.guard]]\noffset = 0", "file[0].guard[0].hex", "either hex or text"),
        (
            ONE_FILE + BYTES + '[[file.guard]]\noffset = 8\ntext = "a"',
            "file[0].guard[0].offset",
            "kept whole",
        ),
        (
            ONE_FILE + BYTES + '[[file.checksum]]\nkind = "crc32"\nstart = 4\nlength = 4\nplaces = [0, 4]',
            "file[0].checksum[0].places[1]",
            "covers 4:8",
        ),
    ],
)
def test_a_wrong_text_is_named(tmp_path: Path, text: str, key: str | None, said: str) -> None:
    path = tmp_path / "state.toml"
    path.write_text(text)
    with pytest.raises(LayoutError, match=said) as caught:
        Layout.from_toml(path)
    assert caught.value.path == str(path)
    assert caught.value.key == key


def test_a_text_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(StorageError) as caught:
        Layout.from_toml(tmp_path / "none.toml")
    assert caught.value.errno == errno.ENOENT
    (tmp_path / "latin.toml").write_bytes(b"# gr\xf6\xdfe")
    with pytest.raises(LayoutError, match="not UTF-8") as bad:
        Layout.from_toml(tmp_path / "latin.toml")
    assert bad.value.offset == 4


def examples() -> list[str]:
    return re.findall(r"```toml\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)


def test_the_documented_examples_are_layouts(tmp_path: Path) -> None:
    assert len(examples()) == 6
    np.save(tmp_path / "u_sample.npy", np.zeros((4, 5)))
    np.savez(tmp_path / "state_sample.npz", **{"u": np.zeros(3), "flow/k1": np.ones(2), "kept": np.ones(4)})
    for text in examples():
        (tmp_path / "layout.toml").write_text(text, encoding="utf-8")
        layout = Layout.from_toml(tmp_path / "layout.toml")
        assert Layout.loads(layout.to_toml()).files == layout.files
    assert layout_of("HEAT3D01") == Layout(
        (
            dataclasses.replace(
                Layout.raw(
                    "step_*/rank_{rank}.bin",
                    {"u": (64, "<f8", (20, 20, 20)), "k1": (64064, "<f8", (20, 20, 20))},
                ).files[0],
                sections=layout_of("HEAT3D01").files[0].sections,
                guards=(Guard(0, b"HEAT3D01"),),
            ),
        )
    )
    numpy_files = Layout.from_toml(tmp_path / "layout.toml") if "npz" in text else None
    assert numpy_files is not None
    assert numpy_files.variables() == ("u", "k1")


def layout_of(word: str) -> Layout:
    (text,) = (each for each in examples() if word in each)
    return Layout.loads(text)


def test_the_documented_programs_write_what_their_layouts_say(tmp_path: Path) -> None:
    path = tmp_path / "file"
    raw = b"HEAT3D01".ljust(64, b"\0") + bytes(2 * 8 * 20**3)
    assert places(layout_of("HEAT3D01").files[0], path, raw)[-1] == ("k1", 64064, 64000)
    fortran = np.array([3, 4, 5, 1], "<i4").tobytes() + bytes(8 * 5 * 6 * 7 * 5) + b"\x02\0\0\0" + bytes(24)
    assert places(layout_of("dims").files[0], path, fortran)[-1] == ("x", 16 + 8400 + 4, 24)
    records = struct.pack("<q", 4) + bytes(4 * 88)
    assert places(layout_of("particles.a").files[0], path, records)[-1] == ("particles", 8, 352)
    record = layout_of("particles.a").files[0].sections[1]
    assert isinstance(record, Record)
    by_hand = layout_of("critical_bytes").files[0].sections[0]
    assert isinstance(by_hand, Record)
    mask = by_hand.declared_mask()
    named = dataclasses.replace(record, fields={}, critical_fields=("x", "v", "id")).declared_mask()
    assert mask is not None
    assert named is not None
    assert np.array_equal(mask, named)


# Raw, .npy and .npz -----------------------------------------------------------------------------------------


def test_raw_layouts() -> None:
    layout = Layout.raw("p", {"b": (40, "<i4", (2,)), "a": (0, "<f8", (2, 2), "F")})
    assert layout.files[0].sections == (
        Array("a", np.dtype("<f8"), (2, 2), "F", offset=0),
        Array("b", np.dtype("<i4"), (2,), offset=40),
    )
    assert layout.files[0].fixed_size() == 48
    assert Layout.raw("p", {"a": (0, "<f8", ())}, size=8).files[0].fixed_size() == 8
    assert Layout.raw("p", {"a": (0, "<f8", ())}, size=11).files[0].sections[-1] == Bytes("(tail)", 3)
    with pytest.raises(LayoutError, match="expected at least the arrays' 8 bytes") as caught:
        Layout.raw("p", {"a": (0, "<f8", ())}, size=7)
    assert caught.value.key == "size"
    with pytest.raises(LayoutError, match="before ends at 16") as caught:
        Layout.raw("p", {"a": (0, "<f8", (2,)), "b": (12, "<f8", ())})
    with pytest.raises(LayoutError, match="expected a NumPy dtype") as caught:
        Layout.raw("p", {"a": (0, "<f9", ())})
    assert caught.value.key == "a.dtype"


ARRAYS = {
    "matrix": np.arange(12.0).reshape(3, 4),
    "fortran": np.asfortranarray(np.arange(24).reshape(2, 3, 4)),
    "big": np.arange(5, dtype=">f4"),
    "scalar": np.float32(2.5),
    "empty": np.zeros((0, 3)),
    "complex": np.ones(3, np.complex64),
    "text": np.array(["ab", "cde"]),
    "flag": np.array([True, False]),
    "struct": np.zeros(4, PARTICLE),
    "packed struct": np.zeros(4, [("a", "<f8"), ("é", "i1"), ("日", "<i2")]),
    "time": np.array(["2020-01-01"], "M8[D]"),
}


@pytest.mark.filterwarnings("ignore:Stored array in format 3.0")
@pytest.mark.parametrize("name", ARRAYS)
def test_npy_files(tmp_path: Path, name: str) -> None:
    given_array = np.asanyarray(ARRAYS[name])
    path = tmp_path / "a.npy"
    np.save(path, given_array)
    layout = Layout.from_npy(path, pattern="*.npy", variable="u")
    assert layout.variables() == ("u",)
    header, place = layout.files[0].locate(path)
    assert isinstance(place.section, Array)
    assert place.section.dtype == given_array.dtype
    assert place.shape == given_array.shape
    raw = path.read_bytes()[place.offset : place.offset + place.length]
    again = np.frombuffer(raw, place.section.dtype).reshape(place.shape, order=place.section.order)
    assert np.array_equal(again, given_array)
    assert header.length + place.length == path.stat().st_size
    assert Layout.loads(layout.to_toml()) == layout


def test_an_npy_of_another_shape_is_another_kind(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    np.save(path, np.zeros((3, 4)))
    (layout,) = Layout.from_npy(path, pattern="*.npy", variable="u").files
    np.save(path, np.ones((3, 4)))
    layout.locate(path)
    for other in (
        np.zeros((4, 3)),
        np.zeros((3, 4), ">f8"),
        np.zeros((3, 4), order="F"),
        np.zeros(12),
        np.zeros((3, 5)),
    ):
        np.save(path, other)
        with pytest.raises(LayoutError):
            layout.locate(path)


def test_npy_samples_that_cannot_be_used(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    np.save(path, np.array([{}, 3], object), allow_pickle=True)
    with pytest.raises(LayoutError, match="Python objects are stored as a pickle") as caught:
        Layout.from_npy(path, pattern="*", variable="u")
    assert caught.value.path == str(path)
    np.save(path, np.zeros(10))
    whole = path.read_bytes()
    for content in (b"", b"\x93NUMPY", whole[:40], whole[:-1], whole + b"x", b"\x93NUMPY\x09" + whole[7:]):
        path.write_bytes(content)
        with pytest.raises(LayoutError) as caught:
            Layout.from_npy(path, pattern="*", variable="u")
        assert caught.value.path == str(path)
    with pytest.raises(StorageError):
        Layout.from_npy(tmp_path / "none.npy", pattern="*", variable="u")


def recomputed(content: bytearray, layout: FileLayout) -> bytearray:
    """The file with its checksums made anew, as unpacking does it."""
    for checksum in layout.checksums:
        value = zlib.crc32(content[checksum.start : checksum.stop])
        for place in checksum.places:
            struct.pack_into("<I", content, place, value)
    return content


@pytest.mark.filterwarnings("ignore:Stored array in format 3.0")
def test_npz_files_open_with_their_fill(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, **ARRAYS)
    (layout,) = Layout.from_npz(path, pattern="*.npz").files
    assert layout.variables() == tuple(ARRAYS)
    assert layout.fixed_size() == path.stat().st_size
    content = bytearray(path.read_bytes())
    found = {place.section.name: place for place in layout.locate(path)}
    for name in ("matrix", "fortran", "big"):
        content[found[name].offset : found[name].offset + 8] = b"\xee" * 8
    path.write_bytes(content)
    with pytest.raises(zipfile.BadZipFile, match="CRC"), np.load(path) as archive:
        archive["matrix"]
    path.write_bytes(recomputed(content, layout))
    with np.load(path) as archive, zipfile.ZipFile(path) as container:
        assert container.testzip() is None
        for name, expected in ARRAYS.items():
            again = archive[name]
            assert again.dtype == np.asanyarray(expected).dtype
            changed = {"matrix": 1, "fortran": 1, "big": 2}.get(name, 0)
            flat = [
                np.asanyarray(a).ravel(order="F" if name == "fortran" else "C") for a in (again, expected)
            ]
            assert np.array_equal(flat[0][changed:], flat[1][changed:])
            assert changed == 0 or not np.array_equal(flat[0], flat[1])
    layout.locate(path)


@pytest.mark.filterwarnings("ignore:Stored array in format 3.0")
def test_checksums_of_a_sound_npz_are_already_right(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, **ARRAYS)
    content = path.read_bytes()
    (layout,) = Layout.from_npz(path, pattern="*.npz").files
    assert bytes(recomputed(bytearray(content), layout)) == content


def test_names_choose_the_members_of_an_npz(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, u=np.zeros(3), v=np.zeros(4), w=np.zeros(5))
    layout = Layout.from_npz(path, pattern="*", names={"w.npy": "W", "u": "U"})
    assert layout.variables() == ("U", "W")
    assert len(layout.files[0].checksums) == 2
    layout.files[0].locate(path)
    for names, key, said in (
        ({"x": "x"}, "x", "there are: u.npy, v.npy, w.npy"),
        ({"u": "a", "u.npy": "b"}, "u.npy", "two names"),
        ({"u": "a", "v": "a"}, "section[3]", "already"),
        ({}, None, "no array"),
    ):
        with pytest.raises(LayoutError, match=said) as caught:
            Layout.from_npz(path, pattern="*", names=names)
        assert caught.value.key in (key, f"{key}.name")
        assert caught.value.path in (str(path), None)


def test_an_npz_of_another_kind_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, u=np.zeros((3, 4)), v=np.zeros(4))
    (layout,) = Layout.from_npz(path, pattern="*").files
    np.savez(path, u=np.ones((3, 4)), v=np.full(4, 7.0))
    layout.locate(path)
    for others in (
        {"u": np.zeros((4, 3)), "v": np.zeros(4)},
        {"v": np.zeros(4), "u": np.zeros((3, 4))},
        {"u": np.zeros((3, 4)), "w": np.zeros(4)},
        {"u": np.zeros((3, 4)), "v": np.zeros(4, int)},
        {"u": np.zeros((3, 4))},
    ):
        np.savez(path, **others)
        with pytest.raises(LayoutError):
            layout.locate(path)
    np.savez_compressed(path, u=np.zeros((3, 4)), v=np.zeros(4))
    with pytest.raises(LayoutError):
        layout.locate(path)


def npz_to_stream(**arrays: Any) -> bytes:
    """What savez writes to a pipe: data descriptors behind the members."""

    class Pipe(io.BytesIO):
        def seekable(self) -> bool:
            return False

        def tell(self) -> int:
            raise io.UnsupportedOperation

        def seek(self, *_: int) -> int:
            raise io.UnsupportedOperation

    pipe = Pipe()
    with zipfile.ZipFile(pipe, "w") as container:
        for name, array in arrays.items():
            with container.open(f"{name}.npy", "w") as member:
                np.lib.format.write_array(member, array)
    return pipe.getvalue()


def test_npz_samples_that_cannot_be_used(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"

    def refused(said: str, key: str | None, **keywords: Any) -> None:
        with pytest.raises(LayoutError, match=said) as caught:
            Layout.from_npz(path, pattern="*", **keywords)
        assert caught.value.path == str(path)
        assert caught.value.key == key

    np.savez_compressed(path, u=np.zeros(100))
    refused("numpy.savez instead of savez_compressed", "u.npy")
    np.savez(path, u=np.zeros(3), o=np.array([{}], object))
    refused("Python objects", "o.npy")
    assert Layout.from_npz(path, pattern="*", names={"u": "u"}).variables() == ("u",)
    path.write_bytes(npz_to_stream(u=np.zeros(3)))
    with np.load(path) as archive:
        assert archive["u"].size == 3
    refused("data descriptor", "u.npy")
    with zipfile.ZipFile(path, "w") as container:
        container.writestr("readme.txt", "nothing here")
    refused("no array", None)
    with zipfile.ZipFile(path, "w") as container:
        container.writestr("u.npy", "no array")
    refused("found no .npy", "u.npy")
    with zipfile.ZipFile(path, "w") as container, pytest.warns(UserWarning, match="Duplicate"):
        container.writestr("u.npy", "1")
        container.writestr("u.npy", "2")
    refused("two members", "u.npy")
    path.write_bytes(b"no zip at all")
    refused("found no .npz", None)
    path.write_bytes(b"")
    refused("found no .npz", None)
    with pytest.raises(StorageError):
        Layout.from_npz(tmp_path / "none.npz", pattern="*")


def test_other_members_of_the_container_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w") as container:
        container.writestr("notes.txt", "some words", zipfile.ZIP_DEFLATED)
        with container.open("u.npy", "w") as member:
            np.lib.format.write_array(member, np.arange(5.0))
        container.writestr("folder/", "")
        container.comment = b"a comment"
    layout = Layout.from_npz(path, pattern="*")
    assert layout.variables() == ("u",)
    place = layout.files[0].locate(path)[1]
    assert np.array_equal(np.fromfile(path, "<f8", 5, offset=place.offset), np.arange(5.0))


def zip64_npz(name: str, array: Any) -> bytes:
    """An archive that keeps every size and offset in 64-bit fields, as archives beyond 4 GiB do."""
    member = io.BytesIO()
    np.lib.format.write_array(member, array)
    data, crc, filename = member.getvalue(), zlib.crc32(member.getvalue()), f"{name}.npy".encode()
    all_ones = 0xFFFFFFFF
    sizes = struct.pack("<QQ", len(data), len(data))
    local_extra = struct.pack("<HH", 1, 16) + sizes
    local = struct.pack(
        "<4sHHHHHIIIHH", b"PK\3\4", 45, 0, 0, 0, 33, crc, all_ones, all_ones, len(filename), len(local_extra)
    )
    front = b"" + local + filename + local_extra + data
    stamp = struct.pack("<HHB", 0x5455, 1, 3)  # a time stamp's extra field in front of the sizes'
    extra = stamp + struct.pack("<HH", 1, 24) + sizes + struct.pack("<Q", 0)
    central = struct.pack(
        "<4sHHHHHHIIIHHHHHII",
        *(
            b"PK\1\2",
            45,
            45,
            0,
            0,
            0,
            33,
            crc,
            all_ones,
            all_ones,
            len(filename),
            len(extra),
            0,
            0,
            0,
            0,
            all_ones,
        ),
    )
    directory = central + filename + extra
    end64 = struct.pack("<4sQHHIIQQQQ", b"PK\6\6", 44, 45, 45, 0, 0, 1, 1, len(directory), len(front))
    locator = struct.pack("<4sIQI", b"PK\6\7", 0, len(front) + len(directory), 1)
    end = struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, all_ones, all_ones, 0)
    return front + directory + end64 + locator + end


def test_zip64(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    array = np.arange(30.0).reshape(5, 6)
    path.write_bytes(zip64_npz("u", array))
    with np.load(path) as archive:
        assert np.array_equal(archive["u"], array)
    (layout,) = Layout.from_npz(path, pattern="*").files
    place = layout.locate(path)[1]
    assert np.array_equal(np.fromfile(path, "<f8", 30, offset=place.offset).reshape(5, 6), array)
    content = bytearray(path.read_bytes())
    content[place.offset : place.offset + 80] = b"\xff" * 80
    path.write_bytes(recomputed(content, layout))
    with np.load(path) as archive:
        assert np.array_equal(archive["u"].ravel()[10:], array.ravel()[10:])
    path.write_bytes(zip64_npz("u", array + 1))
    layout.locate(path)
    path.write_bytes(zip64_npz("u", array.T.copy()))
    with pytest.raises(LayoutError):
        layout.locate(path)


@pytest.fixture(scope="module")
def npz_sample(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, bytes]:
    path = tmp_path_factory.mktemp("npz") / "sample.npz"
    np.savez(path, u=np.arange(6.0).reshape(2, 3), v=np.float32(1))
    return path, path.read_bytes()


def test_every_truncated_npz_is_refused(npz_sample: tuple[Path, bytes]) -> None:
    path, content = npz_sample
    for length in range(len(content)):
        path.write_bytes(content[:length])
        with pytest.raises(LayoutError):
            Layout.from_npz(path, pattern="*")


@settings(deadline=None, max_examples=400)
@given(data=st.data())
def test_a_damaged_npz_is_refused_or_has_its_places_right(
    npz_sample: tuple[Path, bytes], data: st.DataObject
) -> None:
    path, content = npz_sample
    damaged = bytearray(content)
    for _ in range(data.draw(st.integers(1, 3))):
        bit = data.draw(st.integers(0, 8 * len(content) - 1))
        damaged[bit // 8] ^= 1 << bit % 8
    path.write_bytes(damaged)
    try:
        layout = Layout.from_npz(path, pattern="*")
    except LayoutError:
        return
    for place in layout.files[0].locate(path):
        assert place.offset + place.length <= len(content)
    # What zipfile reads in spite of the damage lies where the layout says.
    with contextlib.suppress(zipfile.BadZipFile), np.load(path) as archive:
        found = {place.section.name: place for place in layout.files[0].locate(path)}
        for name in archive.files:
            if name in found:  # a damaged name may no longer end in .npy
                place = found[name]
                raw = bytes(damaged[place.offset : place.offset + place.length])
                assert raw == archive[name].tobytes(order="A")
