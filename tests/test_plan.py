"""Plans: from maps and layouts to rules; what the core makes of them for real files; plans as objects."""

from __future__ import annotations

import errno
import json
import pickle
import re
import struct
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import core_build
import numpy as np
import pytest
from core_library import Core
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scr_critplugin import packed
from scr_critplugin.criticality import CriticalityMap, ElementState, Variable
from scr_critplugin.errors import (
    ChecksumError,
    CritError,
    LayoutError,
    NoMatchError,
    PlanError,
    StorageError,
)
from scr_critplugin.layout import REST, Array, Bytes, FileLayout, Guard, IntAt, Layout, Record
from scr_critplugin.plan import Evidence, Plan, PlanWarning, compile_plan, glob

GOLDEN = Path(__file__).parent / "golden"
DTYPES = st.sampled_from(["<f8", ">f4", "<i2", "u1", "<c16", "S5"])
ORDERS = st.sampled_from(["C", "F"])


@contextmanager
def written(content: bytes) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        path.write_bytes(content)
        yield path


def critical_bytes(plan: Plan, content: bytes) -> np.ndarray:
    """What the core says of a file of this content, one element a byte."""
    with written(content) as path:
        pairs = packed.runs(path, plan, entry=0)
    mask = np.zeros(len(content), bool)
    for start, stop in pairs:
        mask[start:stop] = True
    return mask


def one_file(*sections: Any, **more: Any) -> Layout:
    return Layout((FileLayout("*", sections, **more),))


def as_file_bytes(mask: np.ndarray, order: str, itemsize: int) -> np.ndarray:
    return np.repeat(mask.ravel(order), itemsize)


# Masks of every kind, fixed layouts -------------------------------------------------------------------------


@st.composite
def masks(draw: st.DrawFn, shape: tuple[int, ...]) -> np.ndarray:
    """Blocks with and without steps, or noise, or uniform."""
    kind = draw(st.sampled_from(["boxes", "noise", "all", "none"]))
    if kind == "noise":
        return np.random.default_rng(draw(st.integers(0, 1000))).random(shape) < draw(st.floats(0, 1))
    mask = np.full(shape, kind == "all")
    for _ in range(draw(st.integers(1, 3)) if kind == "boxes" else 0):
        starts = [draw(st.integers(0, extent)) for extent in shape]
        stops = [draw(st.integers(start, extent)) for start, extent in zip(starts, shape, strict=True)]
        steps = [draw(st.integers(1, 3)) for _ in shape]
        mask[tuple(map(slice, starts, stops, steps))] = draw(st.booleans()) or True
    return mask


@st.composite
def fixed_files(draw: st.DrawFn) -> tuple[Layout, dict[str, np.ndarray], np.ndarray]:
    """A layout of fixed counts, a mask for each variable, and the critical bytes that follow."""
    sections: list[Any] = []
    known: dict[str, np.ndarray] = {}
    expected = [np.zeros(0, bool)]
    for number in range(draw(st.integers(1, 4))):
        gap = draw(st.integers(0, 9))
        sections.append(Bytes(f"gap{number}", gap))
        expected.append(np.ones(gap, bool))
        dtype, order = np.dtype(draw(DTYPES)), draw(ORDERS)
        shape = tuple(draw(st.lists(st.integers(0, 6), max_size=4)))
        repeat = draw(st.sampled_from([1, 1, 0, 3]))
        blocks = draw(st.booleans())
        mask = draw(masks((repeat, *shape) if blocks else shape))
        name = f"v{number}"
        sections.append(Array(name, dtype, shape, order, repeat))
        known[name] = mask
        each = mask if blocks else np.broadcast_to(mask, (repeat, *shape))
        expected += [as_file_bytes(block, order, dtype.itemsize) for block in each]
    return one_file(*sections), known, np.concatenate(expected)


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(fixed_files(), st.integers(0, 1000))
def test_the_core_drops_exactly_the_uncritical_bytes(
    case: tuple[Layout, dict[str, np.ndarray], np.ndarray], seed: int
) -> None:
    layout, known, expected = case
    arrays = [section for section in layout.files[0].sections if isinstance(section, Array)]
    dtypes = {section.variable: section.dtype for section in arrays}
    plan = compile_plan(CriticalityMap.from_masks(known, dtypes), layout)
    content = np.random.default_rng(seed).bytes(len(expected))
    np.testing.assert_array_equal(critical_bytes(plan, content), expected)
    for wrong in (content + b"\0", content[:-1]):
        if len(wrong) != len(content):
            with written(wrong) as path, pytest.raises(NoMatchError):
                packed.runs(path, plan, entry=0)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.sampled_from(["<f8", "<i4", "u1", ("<f4", (3,))]), min_size=1, max_size=6),
    st.integers(1, 5),
    st.integers(0, 10000),
    st.booleans(),
)
def test_a_records_byte_is_dropped_only_if_uncritical_in_every_record(
    kinds: list[Any], count: int, seed: int, align: bool
) -> None:
    dtype = np.dtype([(f"f{number}", kind) for number, kind in enumerate(kinds)], align=align)
    random = np.random.default_rng(seed)
    assert dtype.names is not None and dtype.fields is not None
    mapped = {name: f"x.{name}" for name in dtype.names if random.random() < 0.8}
    known, types = {}, {}
    keep = np.ones(dtype.itemsize, bool)
    for name, variable in mapped.items():
        kind, offset = dtype.fields[name][:2]
        mask = random.random((count, *kind.shape)) < 0.3
        known[variable], types[variable] = mask, kind.base
        keep[offset : offset + kind.itemsize] = np.repeat(mask.any(axis=0).ravel(), kind.base.itemsize)
    layout = one_file(Record("particles", dtype, REST, fields=mapped))
    maps = [CriticalityMap.from_masks(known, types)] if known else []
    plan = compile_plan(maps, layout)
    content = random.bytes(dtype.itemsize * 7)
    np.testing.assert_array_equal(critical_bytes(plan, content), np.tile(keep, 7))


def test_records_of_112_and_192_bytes_with_short_runs() -> None:
    for size in (112, 192):
        dead = [(24, 49), (60, 85), (size - 20, size)]
        kept = [(0, 24), (49, 60), (85, size - 20)]
        layout = one_file(Bytes("head", 13), Record("p", size, REST, critical_bytes=tuple(kept)))
        plan = compile_plan([], layout)
        expected = np.ones(13 + 1000 * size, bool)
        for record in range(1000):
            for start, stop in dead:
                expected[13 + record * size + start : 13 + record * size + stop] = False
        content = bytes(len(expected))
        np.testing.assert_array_equal(critical_bytes(plan, content), expected)
        with written(content) as path:
            assert packed.measure(path, plan, entry=0).table_bytes < 64
        assert plan.entries[0].sections[1].unit_kept == size - 70


# Counts read from the file, or solved from its size ---------------------------------------------------------

GHOSTS = 2


def interior(shape: tuple[int, ...]) -> np.ndarray:
    mask = np.zeros(shape, bool)
    mask[tuple(slice(GHOSTS, extent - GHOSTS) for extent in shape)] = True
    return mask


def ghost_maps(shapes: list[tuple[int, ...]]) -> list[CriticalityMap]:
    return [CriticalityMap.from_masks({"u": interior(shape)}, "f8") for shape in shapes]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(5, 12), min_size=1, max_size=3),
    st.sampled_from(["<i4", ">i4", "<u2", ">i8", "i1"]),
    ORDERS,
    st.integers(0, 4),
    st.data(),
)
def test_a_rule_from_two_sizes_holds_at_every_other(
    first: list[int], integer: str, order: Any, blocks: int, data: st.DataObject
) -> None:
    second = [extent + 1 + number for number, extent in enumerate(first)]
    third = [data.draw(st.integers(2 * GHOSTS, 14)) for _ in first]
    dtype = np.dtype(integer)
    lengths = tuple(IntAt(4 + axis * dtype.itemsize, dtype) for axis in range(len(first)))
    head = 4 + len(first) * dtype.itemsize
    sections = (Bytes("head", head), Array("u", "<f8", lengths, order, REST))
    layout = one_file(*sections, guards=(Guard(0, b"HEAD"),))
    plan = compile_plan(ghost_maps([tuple(first), tuple(second)]), layout)
    one = as_file_bytes(interior(tuple(third)), order, 8)
    expected = np.concatenate([np.ones(head, bool), *[one] * blocks])
    content = b"HEAD" + np.array(third, dtype).tobytes() + bytes(len(expected) - head)
    np.testing.assert_array_equal(critical_bytes(plan, content), expected)


def test_a_file_that_does_not_fit_says_why(tmp_path: Path) -> None:
    lengths = (IntAt(4, np.dtype("<i4"), "head"), IntAt(8, np.dtype("<i4"), "head", mul=2, add=1))
    layout = one_file(Bytes("head", 12), Array("u", "<f4", lengths), guards=(Guard(0, b"HEAD"),))
    plan = compile_plan(
        [CriticalityMap.from_masks({"u": interior(shape)}, "f4") for shape in ((5, 7), (6, 9))], layout
    )

    def verdict(content: bytes) -> str:
        path = tmp_path / "file"
        path.write_bytes(content)
        with pytest.raises(NoMatchError) as caught:
            packed.measure(path, plan, entry=0)
        assert caught.value.path == str(path)
        return str(caught.value)

    head = struct.pack("<4sii", b"HEAD", 6, 3)
    good = head + bytes(6 * 7 * 4)
    (tmp_path / "good").write_bytes(good)
    assert packed.measure(tmp_path / "good", plan, entry=0).kept_bytes == 12 + 2 * 3 * 4
    assert "180" in verdict(good[:-1]) and "179" in verdict(good[:-1])
    assert "181" in verdict(good + b"\0")
    assert "is no count" in verdict(struct.pack("<4sii", b"HEAD", -1, 3) + good[12:])
    assert "offset 0" in verdict(b"TAIL" + good[4:])
    assert "box 0" in verdict(struct.pack("<4sii", b"HEAD", 3, 3) + bytes(3 * 7 * 4))
    assert "2^63 - 1 bytes" in verdict(struct.pack("<4sii", b"HEAD", 2**31 - 1, 2**31 - 1))
    assert "should stand at" in verdict(b"HEAD")
    assert "should stand at" in verdict(b"")


def test_one_map_is_not_enough_for_a_part_of_a_varying_axis() -> None:
    varying = one_file(Bytes("n", 4), Array("u", "<f8", (IntAt(0, np.dtype("<i4")), 9)))
    with pytest.raises(PlanError, match="maps of two sizes") as caught:
        compile_plan(ghost_maps([(8, 9)]), varying)
    assert caught.value.key == "u"
    with pytest.raises(PlanError, match="maps of two sizes"):
        compile_plan(ghost_maps([(8, 9), (8, 9)]), varying)
    across = np.zeros((8, 9), bool)
    across[:, 2:5] = True  # the varying axis as a whole
    plan = compile_plan(CriticalityMap.from_masks({"u": across}, "f8"), varying)
    content = struct.pack("<i", 3) + bytes(3 * 9 * 8)
    expected = np.concatenate([np.ones(4, bool), as_file_bytes(across[:3], "C", 8)])
    np.testing.assert_array_equal(critical_bytes(plan, content), expected)


def test_maps_that_follow_no_rule_are_refused() -> None:
    varying = one_file(Bytes("n", 4), Array("u", "<f8", (IntAt(0, np.dtype("<i4")),)))

    def thirds(extent: int) -> CriticalityMap:
        mask = np.zeros(extent, bool)
        mask[: extent // 3] = True
        return CriticalityMap.from_masks({"u": mask}, "f8")

    with pytest.raises(PlanError, match="keep it whole"):
        compile_plan([thirds(9), thirds(12)], varying)
    plan = compile_plan([thirds(9), thirds(12)], varying, keep=["u"])
    assert critical_bytes(plan, struct.pack("<i", 5) + bytes(40)).all()
    noise = np.random.default_rng(1).random(3000) < 0.5
    with pytest.raises(PlanError, match="too irregular"):
        compile_plan(CriticalityMap.from_masks({"u": noise}, "f8"), varying)


def test_blocks_whose_number_varies_share_one_rule() -> None:
    # Critical in any block of any map is critical in every block of every file.
    one, two = np.zeros((2, 3, 4), bool)
    one[0, 1], two[2, 3] = True, True
    layout = one_file(Array("u", "<i4", (4,), repeat=REST))
    plan = compile_plan([CriticalityMap.from_masks({"u": mask}, "i4") for mask in (one, two)], layout)
    expected = np.repeat([False, True, False, True] * 5, 4)
    np.testing.assert_array_equal(critical_bytes(plan, bytes(80)), expected)


def test_maps_of_one_shape_are_united() -> None:
    one, two = np.zeros((2, 6), bool)
    one[1], two[4] = True, True
    plan = compile_plan(
        [CriticalityMap.from_masks({"u": mask}, "f8") for mask in (one, two)],
        Layout.raw("*", {"u": (0, "<f8", (6,))}),
    )
    np.testing.assert_array_equal(critical_bytes(plan, bytes(48)), np.repeat(one | two, 8))


def test_an_array_without_elements_tells_nothing() -> None:
    # A map from a run in which the array was empty must not declare all of it uncritical.
    layout = one_file(Array("u", "<f8", (REST,)))
    empty = CriticalityMap.from_masks({"u": np.zeros(0, bool)}, "f8")
    assert critical_bytes(compile_plan(empty, layout), bytes(80)).all()
    blocks = one_file(Array("u", "<f8", (4,), repeat=REST))
    empty = CriticalityMap.from_masks({"u": np.zeros((0, 4), bool)}, "f8")
    assert critical_bytes(compile_plan(empty, blocks), bytes(80 * 4)).all()
    records = one_file(Record("r", np.dtype([("a", "<f8")]), REST, fields={"a": "u"}))
    empty = CriticalityMap.from_masks({"u": np.zeros(0, bool)}, "f8")
    assert critical_bytes(compile_plan(empty, records), bytes(80)).all()


# What may be dropped ----------------------------------------------------------------------------------------


def states_map(*states: ElementState) -> CriticalityMap:
    return CriticalityMap([Variable("u", np.array(states, np.uint8), "u1")])


FOUR = states_map(ElementState.CRITICAL, ElementState.INERT, ElementState.DEAD, ElementState.UNUSED)
FOUR_LAYOUT = Layout.raw("*", {"u": (0, "u1", (4,))})


def test_unused_elements_stay_unless_their_variable_is_named() -> None:
    plan = compile_plan(FOUR, FOUR_LAYOUT)
    assert critical_bytes(plan, bytes(4)).tolist() == [True, False, False, True]
    assert plan.entries[0].sections[0].evidence == "single"
    plan = compile_plan(FOUR, FOUR_LAYOUT, allow_unused=["u"])
    assert critical_bytes(plan, bytes(4)).tolist() == [True, False, False, False]
    assert plan.entries[0].sections[0].evidence == "none"  # the user said so


def test_evidence_is_recorded_where_something_is_dropped() -> None:
    layout = Layout.raw("*", {"u": (0, "u1", (4,)), "v": (4, "u1", (2,))})
    both = CriticalityMap([FOUR["u"], Variable("v", np.zeros(2, np.uint8), "u1")])
    seen = compile_plan(both, layout, evidence=Evidence("observed", 3, 2)).entries[0].sections
    assert (seen[0].evidence, seen[0].checkpoints, seen[0].phases) == ("observed", 3, 2)
    assert seen[1].evidence == "none"
    mixed = compile_plan(both, layout, evidence={"u": "proven"}).entries[0].sections
    assert mixed[0].evidence == "proven"


@pytest.mark.parametrize(
    "given_", [("certain", 0, 0), ("observed", 0, 1), ("observed", 1, 0), ("single", 1, 1)]
)
def test_evidence_is_checked(given_: tuple[str, int, int]) -> None:
    with pytest.raises(PlanError):
        Evidence(*given_)


def test_a_variable_without_map_stays_whole_and_is_named() -> None:
    layout = Layout.raw("*", {"u": (0, "u1", (4,)), "other": (4, "<f8", (2,))})
    with pytest.warns(PlanWarning, match="other"):
        plan = compile_plan(FOUR, layout)
    assert critical_bytes(plan, bytes(20)).tolist() == [True, False, False, True] + 16 * [True]
    assert "other" in plan.facts["warnings"]


def test_a_map_variable_without_a_place_names_both_sides() -> None:
    with pytest.raises(LayoutError, match=r"'u'.*'v'") as caught:
        compile_plan(FOUR, Layout.raw("*", {"v": (0, "u1", (4,))}))
    assert caught.value.key == "u"


@pytest.mark.parametrize(
    "dtype, shape", [("<i1", (4,)), ("<f4", (1,)), ("u1", (5,)), ("u1", (2, 2)), ("u1", ())]
)
def test_another_type_or_shape_names_both_sides(dtype: str, shape: tuple[int, ...]) -> None:
    with pytest.raises(LayoutError) as caught:
        compile_plan(FOUR, Layout.raw("*", {"u": (0, dtype, shape)}))
    assert caught.value.key == "u"
    assert "uint8" in str(caught.value) or "(4,)" in str(caught.value)


def test_a_record_fields_type_and_shape_are_checked() -> None:
    dtype = np.dtype([("a", "<f8", (3,))])
    for shape, kind in (((2, 4), "f8"), ((2, 3), "f4"), ((2,), "f8"), ((4, 3), "f8"), ((), "f8")):
        with pytest.raises(LayoutError) as caught:
            compile_plan(
                CriticalityMap.from_masks({"x": np.ones(shape, bool)}, kind),
                one_file(Record("r", dtype, 2, fields={"a": "x"})),
            )
        assert caught.value.key == "x"


def test_byte_order_is_the_files_affair() -> None:
    mask = np.array([True, False, True])
    known = CriticalityMap.from_masks({"u": mask}, "<f8")
    plan = compile_plan(known, Layout.raw("*", {"u": (0, ">f8", (3,))}))
    np.testing.assert_array_equal(critical_bytes(plan, bytes(24)), np.repeat(mask, 8))


@pytest.mark.parametrize(
    "arguments", [{"keep": ["v"]}, {"allow_unused": ["v"]}, {"evidence": {"v": "single"}}]
)
def test_names_that_the_layout_lacks_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(PlanError, match="'v'"):
        compile_plan(FOUR, FOUR_LAYOUT, **arguments)


# Size -------------------------------------------------------------------------------------------------------


def test_a_plan_for_a_billion_elements_is_small(tmp_path: Path) -> None:
    lengths = tuple(IntAt(4 * axis, np.dtype("<i4")) for axis in range(3))
    layout = Layout((FileLayout("big", (Bytes("n", 12), Array("u", "<f8", lengths))),))
    plan = compile_plan(ghost_maps([(9, 10, 11), (12, 14, 16)]), layout)
    assert len(plan) < 1024
    path = tmp_path / "big"
    with path.open("wb") as file:  # sparse: 8 GB that take no space
        file.write(np.array([1000, 1000, 1000], "<i4").tobytes())
        file.truncate(12 + 8 * 1000**3)
    measured = packed.measure(path, plan, name="big")
    assert measured.kept_bytes == 12 + 8 * 996**3
    assert measured.table_bytes < 100
    assert measured.dropped_runs == 996 * 996 + 1


def test_a_few_planes_of_a_sparse_file_are_packed(tmp_path: Path) -> None:
    def planes(shape: tuple[int, int]) -> CriticalityMap:
        mask = np.zeros(shape, bool)
        mask[-2:] = True
        return CriticalityMap.from_masks({"u": mask}, "f8")

    lengths = (IntAt(0, np.dtype("<i8")), IntAt(8, np.dtype("<i8")))
    layout = Layout((FileLayout("big", (Bytes("n", 16), Array("u", "<f8", lengths))),))
    plan = compile_plan([planes((5, 6)), planes((7, 9))], layout)
    last = np.arange(2 * 10, dtype="<f8")
    path = tmp_path / "big"
    with path.open("wb") as file:
        file.write(np.array([10**6, 10], "<i8").tobytes())
        file.seek(16 + 8 * (10**7 - 20))
        file.write(last.tobytes())
    info = packed.pack(path, tmp_path / "packed", plan, name="big")
    assert (info.file_bytes, info.kept_bytes) == (16 + 8 * 10**7, 16 + 160)
    assert info.packed_bytes <= info.kept_bytes * 1.001 + 512
    packed.unpack(tmp_path / "packed", tmp_path / "whole")
    with (tmp_path / "whole").open("rb") as file:
        file.seek(16 + 8 * (10**7 - 20))
        assert file.read() == last.tobytes()


def test_noise_costs_a_bit_an_element() -> None:
    mask = np.random.default_rng(5).random((64, 64, 16)) < 0.5
    known = CriticalityMap.from_masks({"u": mask}, "f8")
    plan = compile_plan(known, Layout.raw("*", {"u": (0, "<f8", mask.shape)}))
    with written(bytes(mask.size * 8)) as path:
        info = packed.measure(path, plan, entry=0)
    assert "bitmap" in info.encodings
    assert info.packed_bytes - info.kept_bytes <= mask.size / 8 + 1024
    assert plan.entries[0].sections[0].kind == "raw"


MEMORY = """
import ctypes, re, sys
from pathlib import Path
core, plan, source = ctypes.CDLL(sys.argv[1]), ctypes.c_void_p(), sys.argv[3].encode()
core.scr_crit_last_error.restype = ctypes.c_char_p
peak = lambda: int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
assert core.scr_crit_plan_open(sys.argv[2].encode(), ctypes.byref(plan)) == 0, core.scr_crit_last_error()
before = peak()
info = ctypes.create_string_buffer(1 << 10)
assert core.scr_crit_measure(plan, 0, source, info) == 0, core.scr_crit_last_error()
print("grown by", peak() - before)
"""


def test_a_large_mask_is_copied_once(core: Core, tmp_path: Path) -> None:
    from scr_critplugin._plan_format import EntryRow, Number, SectionRow, serialise

    mask = np.random.default_rng(6).integers(0, 256, 32 << 20, np.uint8)
    size, kept = 8 * 8 * mask.size, 8 * int.from_bytes(mask.tobytes(), "little").bit_count()
    program = b"\x05\x08\x80\x80\x80\x80\x01" + mask.tobytes()  # BITMAP of 2^28 elements of 8 bytes
    section = SectionRow(3, "u", "mask", Number.fixed(1), program=program, unit_bytes=size, unit_kept=kept)
    plan, source = tmp_path / "plan", tmp_path / "source"
    plan.write_bytes(serialise([EntryRow("*", (section,))], {}))
    with source.open("wb") as file:
        file.truncate(size)
    if not Path("/proc/self/status").exists():
        pytest.skip("no /proc: peak memory cannot be read")
    out = core_build.run([sys.executable, "-c", MEMORY, core.library._name, str(plan), str(source)])
    grown = int(re.search(r"grown by (\d+)", out)[1])  # type: ignore[index]
    assert 16 << 10 <= grown <= 40 << 10, f"peak memory grew by {grown} KiB over a mask of 32 MiB"


def test_boxes_that_the_core_finds_no_program_for_are_no_rule() -> None:
    from scr_critplugin._plan_format import Axis
    from scr_critplugin._plan_rules import BoxRule, _resolves

    inner = Axis(1, -1, stop_from_end=True)
    assert _resolves(BoxRule(((inner,) * 3,), "u"), (9, 9, 9), False)
    assert not _resolves(BoxRule(((inner,) * 17,), "u"), (4,) * 17, False)  # deeper than programs may nest


# Patterns ---------------------------------------------------------------------------------------------------


def as_regex(pattern: str, rank: int, dataset: str | None) -> re.Pattern[str]:
    """An oracle: the pattern as a regular expression. Knows nothing of numbers next to wildcards."""
    number = {"{rank}": rank, "{rank+1}": rank + 1}
    out, last = "", "/"
    for token in re.findall(r"\*\*/|\*\*|\*|\?|\{[^}]*\}|\[[^\]]+\]|.", pattern):
        if token in number:
            out += "[0-9]+" if rank < 0 else f"0*{number[token]}" if number[token] else "0+"
        elif token == "{dataset}":
            out += "[^/]+" if dataset is None else re.escape(dataset)
        elif token == "**/":
            out += "(?:.*/)?" if last.endswith("/") else ".*/"
        elif token in WILDCARDS:
            out += WILDCARDS[token]
        elif token.startswith("["):
            out += "(?!/)" + token.replace("!", "^")
        else:
            out += re.escape(token)
        last = token
    return re.compile(out, re.DOTALL)


WILDCARDS = {"**": ".*", "*": "[^/]*", "?": "[^/]"}
PIECES = st.sampled_from(["a", "b", "/", "*", "**", "**/", "?", "[ab]", "[!a]", ".", "{dataset}", "1"])
TEXTS = st.text("ab/.1", max_size=12)


@settings(max_examples=500)
@given(st.lists(PIECES, min_size=1, max_size=8).map("".join), TEXTS, st.sampled_from([None, "a", "a/b", "1"]))
def test_patterns_match_like_regular_expressions(pattern: str, path: str, dataset: str | None) -> None:
    expected = as_regex(pattern, -1, dataset).fullmatch(path) is not None
    assert glob(pattern, path, -1, dataset) == expected


@settings(max_examples=200)
@given(st.integers(0, 20), st.integers(0, 3), st.sampled_from(["{rank}", "{rank+1}"]), st.integers(0, 30))
def test_numbers_match_by_value(rank: int, zeros: int, field: str, written_: int) -> None:
    path = f"dir/file_{'0' * zeros}{written_}.dat"
    wanted = rank if field == "{rank}" else rank + 1
    assert glob(f"dir/file_{field}.dat", path, rank) == (written_ == wanted)
    assert glob(f"dir/*{field}.dat", path, rank) == (written_ == wanted)
    assert glob(f"dir/file_{field}.dat", path)


def test_malformed_patterns_are_errors() -> None:
    for pattern in ("", "[", "{node}", "{rank}{rank}", "[b-a]"):
        with pytest.raises(PlanError):
            glob(pattern, "x")
    with pytest.raises(PlanError):
        glob("x", "x", rank=-2)


def test_the_first_matching_entry_is_the_files() -> None:
    sections = (Bytes("all", REST),)
    plan = compile_plan(
        [],
        Layout(
            (
                FileLayout("{dataset}/rank_{rank}.dat", sections),
                FileLayout("{dataset}/*.dat", sections),
                FileLayout("shared/**", sections),
            )
        ),
    )
    match = plan.match("ckpt.10/rank_0012.dat", 12, "ckpt.10")
    assert (match.index, match.tied, match.entry.pattern) == (0, True, "{dataset}/rank_{rank}.dat")
    assert plan.match("ckpt.10/rank_0012.dat", 13, "ckpt.10").index == 1
    assert plan.match(Path("shared/a/b"), 0).index == 2
    assert not plan.match("shared/a/b", 0).tied
    with pytest.raises(NoMatchError) as caught:
        plan.match("ckpt.11/rank_1.dat", 1, "ckpt.10")
    assert caught.value.path == "ckpt.11/rank_1.dat"
    with pytest.raises(CritError):
        plan.match("x", -2)


# The plan as an object --------------------------------------------------------------------------------------


@pytest.fixture
def plan() -> Plan:
    layout = Layout.raw("ckpt.*/u.{rank}", {"u": (8, "u1", (4,))})
    return compile_plan(FOUR, layout, facts={"program": "test", "Größe": "groß"})


def test_a_saved_plan_is_the_same(plan: Plan, tmp_path: Path) -> None:
    plan.save(tmp_path / "plan")
    loaded = Plan.load(tmp_path / "plan")
    assert loaded == plan and hash(loaded) == hash(plan)
    assert bytes(loaded) == bytes(plan) == (tmp_path / "plan").read_bytes()
    assert loaded.path == str(tmp_path / "plan")
    assert [path.name for path in tmp_path.iterdir()] == ["plan"]
    assert pickle.loads(pickle.dumps(plan)) == plan
    assert loaded.facts["Größe"] == "groß" and loaded.facts["program"] == "test"
    assert re.fullmatch("[0-9a-f]{32}", plan.digest)
    assert plan.digest in repr(plan)


def test_equal_input_gives_equal_plans_and_other_input_other_digests(plan: Plan) -> None:
    layout = Layout.raw("ckpt.*/u.{rank}", {"u": (8, "u1", (4,))})
    again = compile_plan(FOUR, layout, facts={"program": "test", "Größe": "groß"})
    assert again == plan and again.digest == plan.digest
    other = compile_plan(FOUR, layout, facts={"program": "other", "Größe": "groß"})
    assert other != plan and other.digest != plan.digest
    assert plan != "plan"


def test_a_plan_in_words(plan: Plan) -> None:
    described = json.loads(json.dumps(plan.to_json_dict()))
    assert described["format"] == 1 and described["bytes"] == len(plan)
    gap, array = described["entries"][0]["sections"]
    assert described["entries"][0]["pattern"] == "ckpt.*/u.{rank}"
    assert gap["kind"] == "keep"
    assert array == {
        "name": "u",
        "kind": "array",
        "rule": "u[0] + u[3]",
        "evidence": "single",
        "checkpoints": 0,
        "phases": 0,
        "type_size": 1,
        "dims": 1,
        "boxes": 2,
        "unit_bytes": 4,
        "unit_kept": 2,
    }


def test_the_maps_provenance_goes_along() -> None:
    known = CriticalityMap([FOUR["u"]], {"engine": "structural", "steps": [1, 2], "log": "x" * 1000})
    facts = compile_plan(known, FOUR_LAYOUT).facts
    assert facts["map.engine"] == "structural" and facts["map.steps"] == "[1, 2]"
    assert "map.log" not in facts  # long ones stay in the map
    assert facts["writer"].startswith("scr_critplugin ")
    with pytest.raises(PlanError):
        compile_plan(known, FOUR_LAYOUT, facts={"": "x"})


def test_every_truncation_and_flipped_byte_is_an_error(plan: Plan) -> None:
    data = bytes(plan)
    for length in range(len(data)):
        with pytest.raises(PlanError) as caught:
            Plan.from_bytes(data[:length], path="p")
        assert caught.value.path == "p" and caught.value.offset is not None
    for at in range(len(data)):
        with pytest.raises((PlanError, ChecksumError)):
            Plan.from_bytes(data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :])


def test_a_digest_that_is_not_the_contents_is_an_error(plan: Plan) -> None:
    from scr_critplugin._plan_format import crc32c

    data = bytearray(bytes(plan))
    data[56] ^= 1  # the core knows the digest only as a name, and the header's checksum is made right
    data[124:128] = struct.pack("<I", crc32c(bytes(data[:124])))
    with pytest.raises(ChecksumError, match="digest"):
        Plan.from_bytes(bytes(data))


def test_files_that_are_no_plans(tmp_path: Path) -> None:
    with pytest.raises(StorageError) as missing:
        Plan.load(tmp_path / "missing")
    assert missing.value.errno == errno.ENOENT and missing.value.path == str(tmp_path / "missing")
    (tmp_path / "foreign").write_bytes(b"foreign " * 100)
    with pytest.raises(PlanError) as foreign:
        Plan.load(tmp_path / "foreign")
    assert foreign.value.offset == 0 and str(tmp_path / "foreign") in str(foreign.value)


def test_saving_where_one_cannot_leaves_nothing(plan: Plan, tmp_path: Path) -> None:
    with pytest.raises(StorageError) as caught:
        plan.save(tmp_path / "missing" / "plan")
    assert caught.value.errno == errno.ENOENT
    (tmp_path / "folder").mkdir()
    with pytest.raises(StorageError):
        plan.save(tmp_path / "folder")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_no_warning_where_nothing_is_to_be_warned_of() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compile_plan(FOUR, FOUR_LAYOUT)


# Stored plans of every version still mean the same ----------------------------------------------------------


@pytest.mark.parametrize("stored", sorted(GOLDEN.glob("plan-v*.plan")), ids=lambda path: path.stem)
def test_stored_plans_mean_what_they_did(stored: Path, tmp_path: Path) -> None:
    expected = json.loads(stored.with_suffix(".json").read_text())
    plan = Plan.load(stored)
    assert plan.to_json_dict() == expected["plan"]
    for case in expected["files"]:
        content = bytes.fromhex(case["content"]) + bytes(case["zeros"])
        path = tmp_path / "file"
        path.write_bytes(content)
        assert packed.runs(path, plan, entry=case["entry"]).tolist() == case["runs"]


def test_there_are_stored_plans() -> None:
    assert list(GOLDEN.glob("plan-v1-*.plan"))


def test_math_of_the_sample() -> None:
    # The header's arithmetic in docs/format.md: 128 bytes, then rows of 64, 96, 32, 32, 24, 64 and 16 bytes.
    data = bytes(compile_plan([], one_file(Bytes("all", REST)), facts={}))
    rows = struct.unpack_from("<7I", data, 24)
    blob = struct.unpack_from("<I", data, 52)[0]
    assert 128 + sum(map(int.__mul__, rows, (64, 96, 32, 32, 24, 64, 16))) + blob == len(data)
