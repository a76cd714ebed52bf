"""Packed files of the C core against the format's plain Python twin (``packed_format.py``).

Random programs of runs, random fills, buffers, the codec, checksum fields, sizes. Damage and storage faults
are in ``test_core_damage.py`` and ``test_core_storage.py``.
"""

from __future__ import annotations

import io
import itertools
import random
import re
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import core_build
import core_library as cl
import numpy as np
import packed_format as pf
import pytest
from core_library import Core, CoreError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

relaxed = settings(
    deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
EVERY_CODEC = [cl.NONE, cl.BLOSC2_ZSTD]

# ---- Strategies ------------------------------------------------------------------------------------------

lengths = st.one_of(st.integers(1, 9), st.integers(1, 300))
plain_operations = st.one_of(
    st.tuples(st.just("keep"), lengths),
    st.tuples(st.just("drop"), lengths),
    st.tuples(st.just("runs"), st.integers(0, 1), st.lists(lengths, min_size=1, max_size=20)),
    st.tuples(st.just("bitmap"), st.integers(1, 9), st.lists(st.booleans(), min_size=1, max_size=150)),
)


def _loops(body: st.SearchStrategy) -> st.SearchStrategy:
    return st.tuples(st.just("loop"), st.integers(2, 5), st.lists(body, min_size=1, max_size=4))


operations = st.recursive(plain_operations, _loops, max_leaves=8)
programs = st.lists(operations, max_size=6).filter(lambda ops: len(pf.mask(ops)) <= 100_000)
fills = st.one_of(st.none(), st.binary(max_size=9), st.just(struct.pack("<d", float("nan"))))


def content(size: int, seed: int = 1) -> bytes:
    """Bytes without zeros, so that a fill cannot pass for content."""
    return np.random.default_rng(seed).integers(1, 256, size, dtype=np.uint8).tobytes()


def is_packable(whole: bytes, packed: bytes) -> bool:
    return len(packed) < len(whole)


def critical(marks: bytes) -> list[tuple[int, int]]:
    return [(start, stop) for kind, start, stop in pf.runs_of(marks) if kind]


# ---- Round trips -----------------------------------------------------------------------------------------


@relaxed
@given(ops=programs, fill=fills, digest=st.binary(min_size=16, max_size=16))
def test_core_writes_and_expands_what_the_format_says(
    core: Core, ram_path: Path, ops: list, fill: bytes | None, digest: bytes
) -> None:
    marks = pf.mask(ops)
    whole = content(len(marks))
    program = pf.encode(ops)
    expected = pf.write(whole, program, pf.encodings(ops), digest=digest)
    source, packed, target = ram_path / "whole", ram_path / "packed", ram_path / "target"
    source.write_bytes(whole)
    packed.unlink(missing_ok=True)  # the folder is the same for all examples
    rule = cl.rules(program, digest=digest)
    if not is_packable(whole, expected):
        with pytest.raises(CoreError) as failure:
            core.pack(source, rule, packed)
        assert failure.value.status == cl.NOGAIN and not packed.exists()
        packed.write_bytes(expected)
    else:
        info = core.pack(source, rule, packed)
        assert packed.read_bytes() == expected
        assert info.packed_bytes == len(expected) == core.measure(rule, len(whole)).packed_bytes
    assert source.read_bytes() == whole

    info = core.unpack(packed, target, fill)
    filled = pf.fill_mask(whole, marks, fill or b"")
    assert target.read_bytes() == filled == pf.expand(expected, fill or b"")
    assert core.unpack_buffer(packed, len(whole), fill) == filled
    runs = critical(marks)
    assert core.runs(packed) == runs
    assert (info.file_bytes, info.kept_bytes) == (len(whole), sum(b - a for a, b in runs))
    assert info.dropped_runs == len(pf.runs_of(marks)) - len(runs)
    assert (info.encodings, info.table_bytes, info.format) == (pf.encodings(ops), len(program), 1)
    assert bytes(info.plan_digest) == digest
    assert bytes(core.check(packed)) == bytes(core.inspect(packed)) == bytes(info)
    core.overwrite(source, rule, fill)
    assert source.read_bytes() == filled


@relaxed
@given(ops=programs, cuts=st.lists(st.integers(0, 100_000), max_size=9))
def test_buffers_pack_like_a_file(core: Core, ram_path: Path, ops: list, cuts: list[int]) -> None:
    whole = content(len(pf.mask(ops)))
    rule = cl.rules(pf.encode(ops))
    bounds = [0, *sorted(min(cut, len(whole)) for cut in cuts), len(whole)]
    pieces = [whole[a:b] for a, b in itertools.pairwise(bounds)]
    expected = pf.write(whole, pf.encode(ops), pf.encodings(ops))
    packed = ram_path / "packed"
    if is_packable(whole, expected):
        core.pack_buffers(pieces, rule, packed)
        assert packed.read_bytes() == expected
    else:
        with pytest.raises(CoreError, match="packed it would take"):
            core.pack_buffers(pieces, rule, packed)


@relaxed
@given(
    ops=programs.filter(lambda ops: any(pf.mask(ops))),
    type_size=st.sampled_from([1, 3, 8, 255]),
    fill=fills,
)
def test_codec_round_trip(
    core_with_codec: Core, ram_path: Path, ops: list, type_size: int, fill: bytes | None
) -> None:
    core = core_with_codec
    marks = pf.mask(ops) + bytes(400)  # enough of a gain
    program = pf.encode([*ops, ("drop", 400)])
    whole = np.arange(len(marks), dtype=np.uint32).tobytes()[: len(marks)]
    source, packed, target = ram_path / "whole", ram_path / "packed", ram_path / "target"
    source.write_bytes(whole)
    core.pack(source, cl.rules(program), packed, cl.BLOSC2_ZSTD, type_size)
    parsed = pf.parse(packed.read_bytes())
    assert (parsed.codec, parsed.type_size) == (1, type_size)
    filled = pf.fill_mask(whole, marks, fill or b"")
    assert pf.expand(packed.read_bytes(), fill or b"") == filled  # through the blosc2 package
    core.unpack(packed, target, fill)
    assert target.read_bytes() == filled
    assert core.check(packed).codec == cl.BLOSC2_ZSTD


def test_type_size_comes_from_the_plan_unless_given(core_with_codec: Core, ram_path: Path) -> None:
    whole = bytes(5000)
    (ram_path / "whole").write_bytes(whole)
    rule = cl.rules(pf.encode([("keep", 4000), ("drop", 1000)]), type_size=6)
    for given_size, expected in ((0, 6), (4, 4)):
        core_with_codec.pack(ram_path / "whole", rule, ram_path / "packed", cl.BLOSC2_ZSTD, given_size)
        assert pf.parse((ram_path / "packed").read_bytes()).type_size == expected


# ---- Large files: windows, frames, holes -----------------------------------------------------------------


def _large_rules() -> tuple[bytes, np.ndarray]:
    """A program over some 53 MB with short runs, long runs, and gaps below and above every threshold."""
    ops = [
        ("keep", 9_000_001),
        ("drop", 5),
        ("loop", 300_000, [("keep", 24), ("drop", 24)]),
        ("drop", 7_000_000),
        ("loop", 40, [("keep", 1000), ("drop", 127 << 10), ("keep", 3), ("drop", 129 << 10)]),
        ("loop", 9, [("keep", 50_000), ("drop", 64 << 10)]),
        ("bitmap", 8, [bool(i * i % 7 % 2) for i in range(100_000)]),
        ("keep", 11_000_000),
    ]
    return pf.encode(ops), np.frombuffer(pf.mask(ops), dtype=bool)


@pytest.mark.parametrize("codec", EVERY_CODEC)
def test_large_file_survives(core: Core, ram_path: Path, codec: int) -> None:
    if codec and "blosc2-zstd" not in core.codecs():
        pytest.skip("no c-blosc2 with headers: pip install blosc2")
    program, marks = _large_rules()
    whole = np.frombuffer(content(len(marks)), dtype=np.uint8)
    source, packed, target = ram_path / "whole", ram_path / "packed", ram_path / "target"
    source.write_bytes(whole.tobytes())
    core.pack(source, cl.rules(program), packed, codec)
    kept = int(marks.sum())
    head = pf.HEADER.unpack_from(packed.read_bytes()[:128])
    frames, frame_bytes = head[7], head[6]
    assert frame_bytes == (-(-kept // 16 // pf.MIB) * pf.MIB if codec == 0 else pf.MIB)
    assert frames == -(-kept // frame_bytes)
    if codec == 0:
        start = packed.stat().st_size - 16 - kept
        assert packed.read_bytes()[start:-16] == whole[marks].tobytes()
    expected = np.where(marks, whole, 0).astype(np.uint8)
    core.unpack(packed, target)
    assert np.array_equal(np.fromfile(target, dtype=np.uint8), expected)
    core.unpack(packed, target, b"abc")  # runs longer than a window, and windows that end within a pattern
    assert target.read_bytes() == pf.fill_mask(whole.tobytes(), marks.astype(np.uint8).tobytes(), b"abc")
    assert core.unpack_buffer(packed, len(whole)) == expected.tobytes()
    pieces = [whole[:7].tobytes(), whole[7:20_000_000].tobytes(), whole[20_000_000:].tobytes()]
    core.pack_buffers(pieces, cl.rules(program), target, codec)
    assert target.read_bytes() == packed.read_bytes()
    core.overwrite(source, cl.rules(program), b"\xff")
    assert np.array_equal(np.fromfile(source, dtype=np.uint8), np.where(marks, whole, 255).astype(np.uint8))


def test_long_zero_fills_are_holes(core: Core, tmp_path: Path) -> None:
    whole = content(1000) + bytes(100 << 20)
    source, packed, target = tmp_path / "whole", tmp_path / "packed", tmp_path / "target"
    source.write_bytes(whole)
    core.pack(source, cl.rules(pf.encode([("keep", 1000), ("drop", 100 << 20)])), packed)
    core.unpack(packed, target)
    assert target.stat().st_size == len(whole)
    assert target.stat().st_blocks * 512 < 1 << 20
    assert target.read_bytes() == whole


MEMORY = """
import re, sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
import core_library as cl, packed_format as pf
core = cl.Core(Path(sys.argv[2]))
folder, codec = Path(sys.argv[3]), int(sys.argv[4])
size = 1 << 28
program = pf.encode([("loop", size // 96, [("keep", 64), ("drop", 32)]), ("keep", size % 96)])
with (folder / "whole").open("wb") as file:
    file.truncate(size)
core.codecs()
pf.crc32c(b"x")
# Not getrusage: its peak is inherited from the process that started this one.
peak = lambda: int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
before = peak()
core.pack(folder / "whole", cl.rules(program), folder / "packed", codec)
core.check(folder / "packed")
core.unpack(folder / "packed", folder / "target", b"\\xff" * 8)
core.overwrite(folder / "whole", cl.rules(program), b"\\x01\\x02")
core.copy(folder / "target", folder / "copy")
print("grown by", peak() - before)
"""


@pytest.mark.parametrize("codec", EVERY_CODEC)
def test_memory_stays_below_the_promised_16_mib(core: Core, tmp_path: Path, codec: int) -> None:
    if codec and "blosc2-zstd" not in core.codecs():
        pytest.skip("no c-blosc2 with headers: pip install blosc2")
    script = tmp_path / "memory.py"
    script.write_text(MEMORY)
    out = core_build.run(
        [
            sys.executable,
            str(script),
            str(Path(cl.__file__).parent),
            core.library._name,
            str(tmp_path),
            str(codec),
        ]
    )
    if not Path("/proc/self/status").exists():
        pytest.skip("no /proc: peak memory cannot be read")
    grown = int(re.search(r"grown by (\d+)", out)[1])  # type: ignore[index]
    assert 0 < grown <= 16 << 10, f"peak memory grew by {grown} KiB over 256 MiB of file"


# ---- Sizes -----------------------------------------------------------------------------------------------


def _packed_size(core: Core, program: bytes, size: int) -> tuple[int, int]:
    info = core.measure(cl.rules(program), size)
    return info.packed_bytes, info.kept_bytes


@pytest.mark.parametrize("blocks", [1, 50, 200_000])
def test_regular_patterns_cost_next_to_nothing(core: Core, blocks: int) -> None:
    """24-byte runs: ghost layers of 4 x 4 x 4 blocks, fields in records of 112 bytes."""
    row = [("drop", 4), ("keep", 24), ("drop", 4)]
    block = [("drop", 128), ("loop", 6, [("drop", 32), ("loop", 6, row), ("drop", 32)]), ("drop", 128)]
    record = [("keep", 24), ("drop", 25), ("keep", 24), ("drop", 39)]
    for unit in (block, record):
        program = pf.encode([("loop", max(blocks, 2), unit)])
        packed, kept = _packed_size(core, program, len(pf.mask(unit)) * max(blocks, 2))
        assert packed - kept <= 512 + kept // 1000


def test_random_mask_costs_a_bit_an_element(core: Core) -> None:
    elements = 100_000
    chosen = np.random.default_rng(7).random(elements) < 0.5
    edges = np.flatnonzero(np.diff(np.concatenate([[0], chosen.view(np.int8), [0]])))
    runs = [(80 + 8 * int(a), 80 + 8 * int(b)) for a, b in edges.reshape(-1, 2)]
    program = core.encode_runs(runs, 80 + 8 * elements)
    packed, kept = _packed_size(core, program, 80 + 8 * elements)
    assert packed - kept <= elements / 8 + 1024
    assert critical(pf.decode_mask(program)) == runs


@relaxed
@given(marks=st.binary(min_size=1, max_size=400), unit=st.integers(1, 9))
def test_encoded_runs_keep_the_mask(core: Core, marks: bytes, unit: int) -> None:
    wide = b"".join(bytes([mark & 1]) * unit for mark in marks)
    runs = critical(wide)
    program = core.encode_runs(runs, len(wide))
    assert pf.decode_mask(program) == wide
    lengths_form = pf.encode([("runs", int(wide[0]), [b - a for _, a, b in pf.runs_of(wide)])])
    assert len(program) <= len(lengths_form)


# ---- Checksum fields -------------------------------------------------------------------------------------


def _npz_with_fields() -> tuple[bytes, list[pf.ChecksumField], list[tuple[int, int]]]:
    """An uncompressed .npz, its members' checksum fields, and where the arrays' bytes lie."""
    stream = io.BytesIO()
    np.savez(stream, u=np.arange(5000.0), v=np.arange(3000, dtype=np.float32) + 1)
    data = stream.getvalue()
    fields, arrays = [], []
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for member in archive.infolist():
            name_size, extra_size = struct.unpack_from("<HH", data, member.header_offset + 26)
            start = member.header_offset + 30 + name_size + extra_size
            central = data.index(b"PK\1\2")
            while data[central + 46 : central + 46 + name_size] != member.filename.encode():
                central = data.index(b"PK\1\2", central + 4)
            places = (member.header_offset + 14, central + 16)
            fields.append(pf.ChecksumField(start, member.file_size, places))
            arrays.append((start + 128, start + member.file_size))
    return data, fields, arrays


def _npz_rules() -> tuple[bytes, cl._Rules, bytes]:
    data, fields, arrays = _npz_with_fields()
    ops, at = [], 0
    for start, stop in arrays:
        ops += [("keep", start + 800 - at), ("drop", 1600), ("keep", stop - start - 2400)]
        at = stop
    program = pf.encode([*ops, ("keep", len(data) - at)])
    return data, cl.rules(program, fields), program


@pytest.mark.parametrize("fill", [None, struct.pack("<d", float("nan"))])
def test_zip_checksums_are_right_after_any_fill(core: Core, ram_path: Path, fill: bytes | None) -> None:
    data, rule, program = _npz_rules()
    source, packed, target = ram_path / "a.npz", ram_path / "packed", ram_path / "b.npz"
    source.write_bytes(data)
    core.pack(source, rule, packed)
    core.unpack(packed, target, fill)
    expanded = target.read_bytes()
    assert expanded == pf.expand(packed.read_bytes(), fill or b"")
    assert core.unpack_buffer(packed, len(data), fill) == expanded
    core.overwrite(source, rule, fill)
    assert source.read_bytes() == expanded
    with zipfile.ZipFile(target) as archive:
        assert archive.testzip() is None
    with np.load(target, allow_pickle=False) as arrays:
        filled = np.zeros(200) if fill is None else np.full(200, np.nan)
        expected = np.concatenate([np.arange(100.0), filled, np.arange(300.0, 5000.0)])
        np.testing.assert_array_equal(arrays["u"], expected)
    assert pf.decode_mask(program)  # the rules did drop something
    assert core.inspect(packed).kept_bytes == len(data) - 3200


@pytest.mark.parametrize("place", [300, 1500])
def test_damage_that_the_file_itself_would_show_is_not_hidden(core: Core, ram_path: Path, place: int) -> None:
    """A recomputed checksum would vouch for bytes that were wrong before: such a file goes through whole."""
    data, rule, _ = _npz_rules()
    damaged = bytearray(data)
    damaged[place] ^= 1
    source = ram_path / "a.npz"
    source.write_bytes(damaged)
    for attempt in (
        lambda: core.pack(source, rule, ram_path / "packed"),
        lambda: core.pack_buffers([bytes(damaged)], rule, ram_path / "packed"),
        lambda: core.overwrite(source, rule),
    ):
        with pytest.raises(CoreError, match="own checksum") as failure:
            attempt()
        assert failure.value.status == cl.MISFIT
    assert source.read_bytes() == damaged and not (ram_path / "packed").exists()


# ---- Refusals --------------------------------------------------------------------------------------------


def _pack_something(core: Core, folder: Path) -> tuple[Path, bytes]:
    whole = content(1000)
    (folder / "whole").write_bytes(whole)
    core.pack(folder / "whole", cl.rules(pf.encode([("keep", 500), ("drop", 500)])), folder / "packed")
    return folder / "packed", whole


def test_packed_files_are_not_packed_again(core: Core, ram_path: Path) -> None:
    packed, _ = _pack_something(core, ram_path)
    data = packed.read_bytes()
    damaged_head = b"X" + data[1:]
    damaged_tail = data[:-10] + b"X" + data[-9:]
    for claims, content_ in ((True, data), (True, damaged_head), (True, damaged_tail), (False, data[1:-1])):
        packed.write_bytes(content_)
        assert core.is_packed(packed) is claims
        rule = cl.rules(pf.encode([("keep", 100), ("drop", len(content_) - 100)]))
        if claims:
            for attempt in (
                lambda rule=rule: core.pack(packed, rule, packed),
                lambda rule=rule, c=content_: core.pack_buffers([c], rule, ram_path / "x"),
            ):
                with pytest.raises(CoreError) as failure:
                    attempt()
                assert failure.value.status == cl.NESTED
        assert packed.read_bytes() == content_


def test_what_is_no_file_is_no_packed_file(core: Core, ram_path: Path) -> None:
    (ram_path / "empty").touch()
    assert not core.is_packed(ram_path / "empty")
    assert not core.is_packed(ram_path)
    with pytest.raises(CoreError, match="missing") as failure:
        core.is_packed(ram_path / "missing")
    assert failure.value.status == cl.IO


def test_arguments_are_checked(core: Core, ram_path: Path) -> None:
    packed, _ = _pack_something(core, ram_path)
    fitting = cl.rules(pf.encode([("keep", 500), ("drop", 500)]))
    cases = [
        (cl.ARG, lambda: core.unpack(packed, packed)),
        (cl.ARG, lambda: core.unpack(packed, ram_path / "x", b"a" * 65)),
        (cl.ARG, lambda: core.unpack_buffer(packed, 999)),
        (cl.ARG, lambda: core.copy(packed, packed)),
        (cl.ARG, lambda: core.unpack(ram_path, ram_path / "x")),
        (cl.IO, lambda: core.unpack(ram_path / "missing", ram_path / "x")),
        (cl.IO, lambda: core.unpack(packed, ram_path / "no" / "folder")),
        (cl.CODEC, lambda: core.pack(ram_path / "whole", fitting, ram_path / "x", codec=7)),
        (cl.MISFIT, lambda: core.pack(ram_path / "whole", cl.rules(b"\1\1"), ram_path / "x")),
    ]
    for status, call in cases:
        with pytest.raises(CoreError) as failure:
            call()
        assert failure.value.status == status
    assert sorted(path.name for path in ram_path.iterdir()) == ["packed", "whole"]


def test_64_byte_fill_is_allowed(core: Core, ram_path: Path) -> None:
    packed, whole = _pack_something(core, ram_path)
    pattern = bytes(range(1, 65))
    core.unpack(packed, ram_path / "x", pattern)
    assert (ram_path / "x").read_bytes() == whole[:500] + (pattern * 8)[:500]


# ---- Codec that is not there -----------------------------------------------------------------------------

NO_CODEC = """
import sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
import core_library as cl, packed_format as pf
core, folder = cl.Core(Path(sys.argv[2])), Path(sys.argv[3])
assert core.codecs() == ["none"]
rule = cl.rules(pf.encode([("keep", 500), ("drop", 500)]))
(folder / "whole").write_bytes(bytes(1000))
calls = [lambda: core.pack(folder / "whole", rule, folder / "x", cl.BLOSC2_ZSTD),
         lambda: core.unpack(folder / "compressed", folder / "x")]
for call in calls:
    try:
        call()
    except cl.CoreError as failure:
        assert failure.status == cl.CODEC, failure
        assert "pip install blosc2" in failure.words, failure.words
    else:
        raise SystemExit("no failure")
core.inspect(folder / "compressed")
core.check(folder / "compressed")
damaged = bytearray((folder / "compressed").read_bytes())
damaged[-30] ^= 1
(folder / "compressed").write_bytes(damaged)
try:
    core.check(folder / "compressed")
except cl.CoreError as failure:
    assert failure.status == cl.CHECKSUM
    print("as it should be")
"""


@pytest.mark.parametrize("lacking", ["headers", "library"])
def test_missing_codec_is_refused_with_a_clear_word(
    core_with_codec: Core, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lacking: str
) -> None:
    folder = tmp_path / "build"
    folder.mkdir()
    (tmp_path / "whole").write_bytes(bytes(range(250)) * 40)
    rule = cl.rules(pf.encode([("keep", 9000), ("drop", 1000)]))
    core_with_codec.pack(tmp_path / "whole", rule, tmp_path / "compressed", cl.BLOSC2_ZSTD)
    built = Path(core_with_codec.library._name)
    library = core_build.build_shared_without_codec(built, folder, lacking)
    script = tmp_path / "script.py"
    script.write_text(NO_CODEC)
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    out = subprocess.run(
        [sys.executable, str(script), str(Path(cl.__file__).parent), str(library), str(tmp_path)],
        capture_output=True,
        text=True,
    )
    if lacking == "library" and 'core.codecs() == ["none"]' in out.stderr:
        pytest.skip("a c-blosc2 of the same version is installed system-wide")
    assert out.stdout.strip() == "as it should be", out.stderr


# ---- Copies ----------------------------------------------------------------------------------------------


def test_copy_is_exact(core: Core, ram_path: Path) -> None:
    source, target = ram_path / "a", ram_path / "b"
    generator = random.Random(3)
    for size in (0, 1, (4 << 20) - 1, 4 << 20, (9 << 20) + 5):
        source.write_bytes(generator.randbytes(size))
        core.copy(source, target)
        assert target.read_bytes() == source.read_bytes()
