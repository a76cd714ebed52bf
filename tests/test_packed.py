"""Packed files from Python: files, fills, runs, arrays in memory, and what each failure becomes."""

from __future__ import annotations

import dataclasses
import errno
import resource
import stat
import tempfile
import threading
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from scr_critplugin import packed
from scr_critplugin._npz import virtual_npz
from scr_critplugin.criticality import CriticalityMap
from scr_critplugin.errors import (
    ChecksumError,
    CodecError,
    CritError,
    LayoutError,
    NestedError,
    NoGainError,
    NoMatchError,
    PackedError,
    StorageError,
)
from scr_critplugin.layout import REST, Array, Bytes, FileLayout, Layout, Record
from scr_critplugin.plan import Plan, PlanWarning, compile_plan

FILLS: list[str | bytes] = ["zero", "nan", "a5", "0x0102030405", b"\x7f\xf8"]


def half_plan(elements: int = 1000, pattern: str = "state.{rank}") -> tuple[Plan, np.ndarray]:
    """A plan that drops the second half of `elements` doubles, and the mask of critical bytes."""
    mask = np.arange(elements) < elements // 2
    known = CriticalityMap.from_masks({"u": mask}, "f8")
    return compile_plan(known, Layout.raw(pattern, {"u": (0, "<f8", (elements,))})), np.repeat(mask, 8)


@pytest.fixture
def plan() -> Plan:
    return half_plan()[0]


@pytest.fixture
def state(tmp_path: Path) -> Path:
    path = tmp_path / "state.3"
    np.arange(1, 1001, dtype="<f8").tofile(path)
    return path


def filled(mask: np.ndarray, content: bytes, fill: str | bytes) -> bytes:
    """The oracle: the fill laid anew from the start of every uncritical run."""
    whole = bytearray(content)
    pattern = packed.fill_bytes(fill)
    bounds = np.flatnonzero(np.diff(np.concatenate(([True], mask, [True])).astype(np.int8)))
    for start, stop in bounds.reshape(-1, 2).tolist():
        whole[start:stop] = (pattern * (stop - start))[: stop - start]
    return bytes(whole)


# Any layout, any mask, any fill -----------------------------------------------------------------------------


@st.composite
def cases(draw: st.DrawFn) -> tuple[Layout, CriticalityMap, np.ndarray]:
    """Arrays and records between kept bytes, and the critical bytes of the file."""
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    head = draw(st.integers(0, 40))
    shape = tuple(draw(st.lists(st.integers(1, 12), min_size=1, max_size=3)))
    order = draw(st.sampled_from(["C", "F"]))
    mask = np.zeros(shape, bool)
    mask[tuple(slice(draw(st.integers(0, extent)), None, draw(st.integers(1, 2))) for extent in shape)] = True
    if draw(st.booleans()):
        mask ^= random.random(shape) < 0.1
    record = np.dtype([("x", "<f8", (3,)), ("flag", "u1"), ("y", "<f4")])
    keep_x = random.random((5, 3)) < 0.2
    records = draw(st.integers(0, 30))
    layout = Layout(
        (
            FileLayout(
                "*",
                (
                    Bytes("head", head),
                    Array("u", "<f8", shape, order),
                    Record("p", record, REST, fields={"x": "p.x"}),
                    Bytes("tail", 7),
                ),
            ),
        )
    )
    known = CriticalityMap.from_masks({"u": mask, "p.x": keep_x}, "f8")
    field = np.concatenate([np.repeat(keep_x.any(axis=0), 8), np.ones(5, bool)])
    parts = [np.ones(head, bool), np.repeat(mask.ravel(order), 8), np.tile(field, records), np.ones(7, bool)]
    return layout, known, np.concatenate(parts)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(cases(), st.sampled_from(FILLS), st.integers(0, 1000))
def test_what_is_critical_survives_and_the_rest_is_fill(
    case: tuple[Layout, CriticalityMap, np.ndarray], fill: str | bytes, seed: int
) -> None:
    layout, known, mask = case
    content = np.random.default_rng(seed).bytes(len(mask))
    plan = compile_plan(known, layout)
    with tempfile.TemporaryDirectory() as folder:
        source, target, whole = (Path(folder) / name for name in ("source", "packed", "whole"))
        source.write_bytes(content)
        measured = packed.measure(source, plan, entry=0)
        assert (measured.file_bytes, measured.kept_bytes) == (len(mask), mask.sum())
        assert measured.dropped_bytes == len(mask) - mask.sum()
        try:
            info = packed.pack(source, target, plan, entry=0)
        except NoGainError:
            assert measured.packed_bytes >= len(mask) and not target.exists()
        else:
            assert info.packed_bytes == target.stat().st_size == measured.packed_bytes
            assert packed.unpack(target, whole, fill) == info
            assert packed.check(target) == packed.inspect(target) == info
            assert whole.read_bytes() == filled(mask, content, fill)
            np.testing.assert_array_equal(packed.runs(target), packed.runs(source, plan, entry=0))
        assert source.read_bytes() == content
        packed.overwrite(source, plan, fill, entry=0)
        assert source.read_bytes() == filled(mask, content, fill)


# Files ------------------------------------------------------------------------------------------------------


def test_the_entry_is_found_by_name_rank_and_dataset(state: Path, tmp_path: Path) -> None:
    plan, _ = half_plan(pattern="{dataset}/state.{rank}")
    target = tmp_path / "packed"
    for name, rank, dataset in (("ckpt.1/state.3", 3, "ckpt.1"), ("ckpt.1/state.03", -1, None)):
        packed.pack(state, target, plan, name=name, rank=rank, dataset=dataset)
    others = (("ckpt.1/state.3", 4, None), ("ckpt.1/state.3", 3, "ckpt.2"), ("x", -1, None))
    for name, rank, dataset in others:
        with pytest.raises(NoMatchError) as caught:
            packed.pack(state, target, plan, name=name, rank=rank, dataset=dataset)
        assert caught.value.path == name
    with pytest.raises(CritError) as out_of_range:
        packed.pack(state, target, plan, entry=1)
    assert out_of_range.value.key == "entry"


def test_the_source_as_given_is_the_name(state: Path, plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(state.parent)
    assert packed.pack("./state.3", "packed", plan, rank=3).kept_bytes == 4000
    with pytest.raises(NoMatchError):
        packed.pack("./state.3", "packed", plan, rank=4)


def test_a_plan_may_be_given_by_its_file(state: Path, plan: Plan, tmp_path: Path) -> None:
    plan.save(tmp_path / "plan")
    info = packed.pack(state, tmp_path / "packed", tmp_path / "plan", entry=0)
    assert info.plan_digest == plan.digest


def test_a_file_may_be_packed_in_its_place(state: Path, plan: Plan) -> None:
    content = state.read_bytes()
    state.chmod(0o640)
    assert not packed.is_packed(state)
    packed.pack(state, state, plan, entry=0)
    assert packed.is_packed(state)
    assert stat.S_IMODE(state.stat().st_mode) == 0o640
    assert [path.name for path in state.parent.iterdir()] == [state.name]
    with pytest.raises(CritError):
        packed.unpack(state, state)
    whole = state.with_name("whole")
    packed.unpack(state, whole)
    assert whole.read_bytes() == content[:4000] + bytes(4000)


def test_info_as_json(state: Path, plan: Plan, tmp_path: Path) -> None:
    info = packed.pack(state, tmp_path / "packed", plan, entry=0)
    described = info.to_json_dict()
    assert described["kept_bytes"] == described["dropped_bytes"] == 4000
    assert described["encodings"] == ["pattern"]
    assert described["plan_digest"] == plan.digest
    assert set(described) == {field.name for field in dataclasses.fields(info)} | {"dropped_bytes"}


def test_copies_are_whole(state: Path, tmp_path: Path) -> None:
    packed.copy(state, tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == state.read_bytes()
    with pytest.raises(StorageError) as caught:
        packed.copy(tmp_path / "missing", tmp_path / "copy")
    assert caught.value.path == str(tmp_path / "missing")


def test_temporary_names_lie_beside_their_target(tmp_path: Path) -> None:
    temporary = packed.temp_path(tmp_path / "target")
    assert temporary.parent == tmp_path and temporary.name != "target"
    assert packed.temp_path(tmp_path / "target") == temporary != packed.temp_path(tmp_path / "other")
    assert len(packed.temp_path(tmp_path / ("n" * 255)).name.encode()) <= 255


def test_runs_come_in_pieces_that_are_complete(tmp_path: Path) -> None:
    count = 200_000
    mask = np.arange(count) % 2 == 0
    layout = Layout.raw("*", {"u": (0, "u1", (count,))})
    plan = compile_plan(CriticalityMap.from_masks({"u": mask}, "u1"), layout)
    path = tmp_path / "file"
    path.write_bytes(bytes(count))
    pieces = list(packed.iter_runs(path, plan, entry=0))
    assert len(pieces) > 1
    found = np.concatenate(pieces)
    np.testing.assert_array_equal(found[:, 0], np.arange(0, count, 2))
    np.testing.assert_array_equal(found[:, 1], found[:, 0] + 1)
    assert packed.runs(path, plan, entry=0).dtype == np.int64


def test_no_critical_byte_is_no_run(tmp_path: Path) -> None:
    known = CriticalityMap.from_masks({"u": np.zeros(1000, bool)}, "f8")
    plan = compile_plan(known, Layout.raw("*", {"u": (0, "f8", (1000,))}))
    path = tmp_path / "file"
    path.write_bytes(bytes(8000))
    assert packed.runs(path, plan, entry=0).shape == (0, 2)
    assert packed.pack(path, tmp_path / "packed", plan, entry=0).packed_bytes < 512
    packed.unpack(tmp_path / "packed", tmp_path / "whole", "nan")
    assert np.isnan(np.fromfile(tmp_path / "whole")).all()


@pytest.mark.parametrize("codec", ["none", "blosc2-zstd"])
def test_codecs_give_the_same_bytes(codec: str, state: Path, plan: Plan, tmp_path: Path) -> None:
    if codec not in packed.core_version().codecs:
        pytest.skip(f"codec {codec} is not usable here: install blosc2")
    info = packed.pack(state, tmp_path / "packed", plan, entry=0, codec=codec)
    assert info.codec == codec
    packed.unpack(tmp_path / "packed", tmp_path / "whole")
    assert (tmp_path / "whole").read_bytes() == state.read_bytes()[:4000] + bytes(4000)


def test_versions_are_those_of_the_formats(plan: Plan, state: Path, tmp_path: Path) -> None:
    core = packed.core_version()
    assert core.plan_format == plan.format
    assert core.packed_format == packed.pack(state, tmp_path / "packed", plan, entry=0).format
    assert "none" in core.codecs and core.library.count(".") == 2


# Fills ------------------------------------------------------------------------------------------------------


def test_nan_is_a_quiet_nan_in_every_width_and_byte_order() -> None:
    pattern = packed.fill_bytes("nan") * 16
    for dtype in ("<f2", ">f2", "<f4", ">f4", "<f8", ">f8"):
        assert np.isnan(np.frombuffer(pattern, dtype)).all()
        high = pattern[0] if dtype[0] == ">" else pattern[np.dtype(dtype).itemsize - 1]
        assert high == 0xFF  # and the first bit of the significand is set: quiet
    assert packed.fill_bytes("zero").strip(b"\0") == b""
    assert packed.fill_bytes("0x7ff8") == packed.fill_bytes("7FF8") == b"\x7f\xf8"
    assert packed.fill_bytes(b"\1" * 64) == b"\1" * 64


@pytest.mark.parametrize("fill", ["", "nil", "abc", "0x", b"", b"\0" * 65, "00" * 65, 7, None])
def test_other_fills_are_refused(fill: Any) -> None:
    with pytest.raises(CritError) as caught:
        packed.fill_bytes(fill)
    assert caught.value.key == "fill"


# Failures ---------------------------------------------------------------------------------------------------


@pytest.fixture
def packed_state(state: Path, plan: Plan) -> Path:
    target = state.with_name("packed")
    packed.pack(state, target, plan, entry=0)
    return target


def test_a_packed_source_is_refused(packed_state: Path, plan: Plan, tmp_path: Path) -> None:
    with pytest.raises(NestedError) as caught:
        packed.pack(packed_state, tmp_path / "twice", plan, entry=0)
    assert caught.value.path == str(packed_state)
    assert not (tmp_path / "twice").exists()


def test_no_gain_is_said(tmp_path: Path) -> None:
    plan, _ = half_plan(4)
    (tmp_path / "small").write_bytes(bytes(32))
    with pytest.raises(NoGainError) as caught:
        packed.pack(tmp_path / "small", tmp_path / "packed", plan, entry=0)
    assert caught.value.path == str(tmp_path / "small")
    assert [path.name for path in tmp_path.iterdir()] == ["small"]


def test_a_misfit_names_section_found_and_expected(state: Path, plan: Plan, tmp_path: Path) -> None:
    with state.open("ab") as file:
        file.write(b"\0")
    with pytest.raises(NoMatchError, match=r"8000 bytes.*8001") as caught:
        packed.pack(state, tmp_path / "packed", plan, entry=0)
    assert caught.value.path == str(state)
    assert not (tmp_path / "packed").exists()


def test_damage_is_an_error_with_its_place(packed_state: Path, tmp_path: Path) -> None:
    content = packed_state.read_bytes()
    for at in range(0, len(content), 7):
        packed_state.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
        for read in (packed.check, lambda path: packed.unpack(path, tmp_path / "whole"), packed.load):
            with pytest.raises(PackedError) as caught:
                read(packed_state)
            assert caught.value.path == str(packed_state)
        assert packed.is_packed(packed_state)
        assert not (tmp_path / "whole").exists()
    packed_state.write_bytes(content[:-8] + bytes(8))
    with pytest.raises(PackedError):
        packed.inspect(packed_state)
    payload = bytearray(content)
    payload[len(content) // 2] ^= 1
    packed_state.write_bytes(payload)
    with pytest.raises(ChecksumError) as checksum:
        packed.check(packed_state)
    assert checksum.value.offset is not None


def test_foreign_files_are_no_packed_files(state: Path, tmp_path: Path) -> None:
    def unpack(path: Path) -> None:
        packed.unpack(path, tmp_path / "whole")

    for read in (packed.inspect, packed.check, packed.runs, unpack):
        with pytest.raises(PackedError):
            read(state)


def test_the_operating_systems_refusals(packed_state: Path, state: Path, plan: Plan, tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    for act in (
        lambda: packed.pack(missing, tmp_path / "target", plan, entry=0),
        lambda: packed.unpack(missing, tmp_path / "target"),
        lambda: packed.inspect(missing),
        lambda: packed.is_packed(missing),
        lambda: packed.load(missing),
        lambda: packed.overwrite(missing, plan, entry=0),
        lambda: packed.measure(missing, plan, entry=0),
        lambda: packed.runs(missing),
    ):
        with pytest.raises(StorageError) as caught:
            act()
        assert caught.value.errno == errno.ENOENT and caught.value.path == str(missing)
        assert isinstance(caught.value, OSError)
    with pytest.raises(StorageError) as nowhere:
        packed.unpack(packed_state, missing / "whole")
    assert nowhere.value.errno == errno.ENOENT


def test_a_refused_write_leaves_nothing_and_the_source(state: Path, plan: Plan) -> None:
    content = state.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        for target in (state.with_name("packed"), state):
            with pytest.raises(StorageError) as caught:
                packed.pack(state, target, plan, entry=0)
            assert caught.value.errno == errno.EFBIG
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert [path.name for path in state.parent.iterdir()] == [state.name]
    assert state.read_bytes() == content


def test_unknown_codecs_are_refused(state: Path, plan: Plan, tmp_path: Path) -> None:
    with pytest.raises(CodecError) as caught:
        packed.pack(state, tmp_path / "packed", plan, entry=0, codec="gzip")
    assert caught.value.key == "codec"


def test_errors_belong_to_their_thread(tmp_path: Path) -> None:
    # Many threads fail at once, each must be told of its own file.
    wrong: list[str] = []

    def fail(number: int) -> None:
        path = str(tmp_path / f"missing.{number}")
        for _ in range(200):
            try:
                packed.inspect(path)
            except StorageError as error:
                if error.path != path or not str(error).startswith(path):
                    wrong.append(str(error))

    threads = [threading.Thread(target=fail, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


# Arrays -----------------------------------------------------------------------------------------------------


def interior(shape: tuple[int, ...]) -> np.ndarray:
    mask = np.zeros(shape, bool)
    mask[tuple(slice(1, -1) for _ in shape)] = True
    return mask


U = np.random.default_rng(1).random((20, 21, 22))
U_MAP = CriticalityMap.from_masks({"u": interior(U.shape)}, "f8")


@pytest.mark.parametrize("fill", FILLS)
def test_saved_arrays_come_back(fill: str | bytes, tmp_path: Path) -> None:
    path = tmp_path / "state.npz"
    info = packed.save(path, {"u": U}, U_MAP)
    mask = interior(U.shape)
    assert info.packed_bytes == path.stat().st_size <= 1.001 * info.kept_bytes + 512
    assert info.dropped_bytes == (~mask).sum() * 8
    found = packed.load(path, fill)
    assert list(found) == ["u"]
    np.testing.assert_array_equal(found["u"][mask], U[mask])
    pattern = packed.fill_bytes(fill)
    if 8 % len(pattern) == 0:
        expected = np.frombuffer(pattern * (8 // len(pattern)), "f8")[0]
        np.testing.assert_array_equal(found["u"][~mask], expected)


def test_expanded_it_is_a_file_that_numpy_and_zip_read(tmp_path: Path) -> None:
    path, whole = tmp_path / "packed", tmp_path / "whole.npz"
    arrays = {"u": U, "v": np.asfortranarray(U), "w": np.arange(9)}
    masks = {"u": interior(U.shape), "v": ~interior(U.shape)}
    with pytest.warns(PlanWarning, match="w"):
        packed.save(path, arrays, CriticalityMap.from_masks(masks, "f8"))
    packed.unpack(path, whole, "nan")
    with zipfile.ZipFile(whole) as archive:
        assert archive.testzip() is None  # every member's CRC-32 is right for the filled bytes
        assert all(info.compress_type == zipfile.ZIP_STORED for info in archive.infolist())
    with np.load(whole, allow_pickle=False) as loaded:
        assert loaded.files == ["u", "v", "w"]
        for name, mask in masks.items():
            np.testing.assert_array_equal(loaded[name][mask], U[mask])
            assert np.isnan(loaded[name][~mask]).all()
        assert loaded["v"].flags.f_contiguous
        np.testing.assert_array_equal(loaded["w"], np.arange(9))
    # The expanded file has the layout that a sample file would have given.
    again = Layout.from_npz(whole, pattern="*", names={"u": "u", "v": "v"})
    plan = compile_plan(CriticalityMap.from_masks(masks, "f8"), again)
    np.testing.assert_array_equal(packed.runs(whole, plan, entry=0), packed.runs(path))


def test_overwriting_keeps_a_zips_checksums_right(tmp_path: Path) -> None:
    path = tmp_path / "state.npz"
    np.savez(path, u=U)
    plan = compile_plan(U_MAP, Layout.from_npz(path, pattern="*"))
    packed.overwrite(path, plan, "nan", entry=0)
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
    with np.load(path) as loaded:
        assert np.isnan(loaded["u"][~interior(U.shape)]).all()


ARRAYS = hnp.arrays(
    st.sampled_from(["<f8", ">f4", "i2", "u1", "c16", "?", "S3", "U2", "M8[s]"]).map(np.dtype)
    | st.just(np.dtype([("a", "<f8", (2,)), ("b", "i1")])),
    hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=6),
)


@settings(max_examples=80, deadline=None)
@given(
    st.dictionaries(st.text("abc/é_0", min_size=1, max_size=6), ARRAYS, min_size=1, max_size=4), st.booleans()
)
def test_arrays_of_every_type_and_order_come_back(arrays: dict[str, np.ndarray], fortran: bool) -> None:
    names = {name for name in arrays if name == name.strip("/")}
    arrays = {name: np.asarray(array, order="F" if fortran else "C") for name, array in arrays.items()}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        if names != set(arrays):
            with pytest.raises(CritError):
                packed.save(path, arrays, CriticalityMap([]))
            return
        with pytest.warns(PlanWarning):
            info = packed.save(path, arrays, CriticalityMap([]))
        assert info.kept_bytes == info.file_bytes  # nothing is known, nothing dropped: a plain .npz
        assert not packed.is_packed(path)
        found = packed.load(path)
        assert set(found) == set(arrays)
        for name, array in arrays.items():
            assert found[name].dtype == array.dtype and found[name].shape == array.shape
            assert found[name].tobytes() == array.tobytes()


@settings(max_examples=60, deadline=None)
@given(
    hnp.array_shapes(min_dims=1, max_dims=3, min_side=3, max_side=20),
    st.sampled_from(["C", "F"]),
    st.sampled_from(["f8", "i4", "c16"]),
    st.booleans(),
)
def test_masks_of_saved_arrays_are_exact(
    shape: tuple[int, ...], order: Any, dtype: str, strided: bool
) -> None:
    whole = np.arange(1, 2 * np.prod(shape) + 1).astype(dtype)
    array = np.asarray(whole[: np.prod(shape)].reshape(shape), order=order)
    if strided:
        array = np.repeat(array, 2, axis=0)[::2]  # contiguous in neither order
    mask = interior(shape)
    padding = np.zeros(5000)
    masks = {"u": mask, "padding": np.zeros(5000, bool)}
    known = CriticalityMap.from_masks(masks, {"u": dtype, "padding": "f8"})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        packed.save(path, {"u": array, "padding": padding}, known)
        assert packed.is_packed(path)
        found = packed.load(path, "nan")
    np.testing.assert_array_equal(found["u"][mask], array[mask])
    assert found["u"][~mask].tobytes().strip(b"\xff") == b""
    assert np.isnan(found["padding"]).all()


def test_the_arrays_own_memory_is_what_is_written() -> None:
    columns = np.asfortranarray(U)
    npz = virtual_npz({"u": U, "v": columns, "s": np.float64(3)})
    shared = [np.frombuffer(piece, np.uint8) for piece in npz.pieces]
    assert any(np.shares_memory(piece, U) for piece in shared)
    assert any(np.shares_memory(piece, columns) for piece in shared)
    own = sum(
        piece.nbytes
        for piece, array in zip(npz.pieces, shared, strict=True)
        if not np.shares_memory(array, U) and not np.shares_memory(array, columns)
    )
    assert own < 2048


def test_the_pieces_are_the_file_that_numpy_would_write(tmp_path: Path) -> None:
    content = b"".join(virtual_npz({"u": U, "n": np.arange(3)}).pieces)
    (tmp_path / "ours.npz").write_bytes(content)
    np.savez(tmp_path / "theirs.npz", u=U, n=np.arange(3))
    assert len(content) == (tmp_path / "theirs.npz").stat().st_size
    with np.load(tmp_path / "ours.npz") as ours:
        np.testing.assert_array_equal(ours["u"], U)


def test_map_and_arrays_must_agree(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for arrays in ({"v": U}, {"u": U.astype("f4")}, {"u": U[:-1]}):
        with pytest.raises(LayoutError):
            packed.save(path, arrays, U_MAP)
    for arrays in ({}, {"u": np.array([object()])}, {"": U}, {"u": np.ma.masked_array(U)}):
        with pytest.raises(CritError):
            packed.save(path, arrays, U_MAP)
    assert not path.exists()


def test_saving_in_a_loop_follows_the_map_and_the_shapes(tmp_path: Path) -> None:
    path = tmp_path / "file"
    first = packed.save(path, {"u": U}, U_MAP)
    assert packed.save(path, {"u": U + 1}, U_MAP) == first
    np.testing.assert_array_equal(packed.load(path)["u"][interior(U.shape)], (U + 1)[interior(U.shape)])
    none = CriticalityMap.from_masks({"u": np.zeros(U.shape, bool)}, "f8")
    assert packed.save(path, {"u": U}, none).kept_bytes < first.kept_bytes
    assert packed.save(path, {"u": np.asfortranarray(U)}, U_MAP).plan_digest != first.plan_digest
    assert packed.save(path, {"u": U}, U_MAP, keep=["u"]).dropped_bytes == 0
    assert packed.save(path, {"u": U}, U_MAP) == first


def test_loading_what_is_no_npz(state: Path, plan: Plan, tmp_path: Path) -> None:
    packed.pack(state, tmp_path / "packed", plan, entry=0)
    for path in (state, tmp_path / "packed"):
        with pytest.raises(PackedError, match=r"no \.npz") as caught:
            packed.load(path)
        assert caught.value.path == str(path)
    np.save(tmp_path / "single.npy", U)
    with pytest.raises(PackedError):
        packed.load(tmp_path / "single.npy")
    np.savez(tmp_path / "objects.npz", o=np.array([{}]))
    with pytest.raises(PackedError):
        packed.load(tmp_path / "objects.npz")


@pytest.mark.parametrize("codec", ["none", "blosc2-zstd"])
def test_a_failed_save_leaves_the_older_file(codec: str, tmp_path: Path) -> None:
    if codec not in packed.core_version().codecs:
        pytest.skip(f"codec {codec} is not usable here: install blosc2")
    path = tmp_path / "file"
    packed.save(path, {"u": U}, U_MAP, codec=codec)
    before = path.read_bytes()
    with pytest.raises(StorageError):
        packed.save(tmp_path / "missing" / "file", {"u": U}, U_MAP, codec=codec)
    with pytest.raises(LayoutError):
        packed.save(path, {"v": U}, U_MAP, codec=codec)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]
