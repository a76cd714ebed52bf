"""Damaged, foreign and hostile packed files: each gives an error, none gives wrong bytes.

The fuzz target goes further: ``test_core_fuzz.py``.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import core_library as cl
import packed_format as pf
import pytest
from core_library import Core, CoreError

DAMAGE = (cl.FORMAT, cl.CHECKSUM, cl.VERSION, cl.CODEC)
WHOLE = bytes(range(1, 251)) * 3
FIELD = pf.ChecksumField(100, 300, (20, 700))
OPERATIONS = {
    "pattern": [("loop", 5, [("keep", 50), ("loop", 10, [("drop", 3), ("keep", 2)])]), ("keep", 250)],
    "runs": [("runs", 1, [50, 30, 20, 400, 150, 100])],
    "bitmap": [("bitmap", 3, [i % 7 in (1, 2, 4) for i in range(250)])],
}


def _packed(name: str) -> bytes:
    ops = OPERATIONS[name]
    return pf.write(WHOLE, pf.encode(ops), pf.encodings(ops), [FIELD], bytes(range(16)))


def _compressed(core: Core, folder: Path) -> bytes:
    whole = struct.pack("<500I", *range(0, 5000, 10))
    (folder / "source").write_bytes(whole)
    rule = cl.rules(pf.encode([("keep", 1200), ("drop", 800)]), type_size=4)
    core.pack(folder / "source", rule, folder / "compressed", cl.BLOSC2_ZSTD)
    data = (folder / "compressed").read_bytes()
    (folder / "source").unlink()
    (folder / "compressed").unlink()
    return data


def _refused(core: Core, folder: Path, data: bytes, statuses: tuple[int, ...] = DAMAGE) -> CoreError:
    """Every reader refuses these bytes, and nothing appears; returns the failure of the check."""
    path, target = folder / "damaged", folder / "target"
    path.write_bytes(data)
    failures = []
    for read in (
        lambda: core.check(path),
        lambda: core.unpack(path, target),
        lambda: core.unpack_buffer(path, len(WHOLE)),
    ):
        with pytest.raises(CoreError) as failure:
            read()
        failures.append(failure.value)
        assert "damaged" in failure.value.words  # the path
    assert failures[0].status in statuses, failures[0]
    assert failures[1].status == failures[0].status
    assert [entry.name for entry in folder.iterdir()] == ["damaged"]
    return failures[0]


@pytest.fixture(params=[*OPERATIONS, "codec"])
def sound(request: pytest.FixtureRequest, core: Core, ram_path: Path) -> bytes:
    """A small sound packed file of each kind."""
    if request.param != "codec":
        data = _packed(request.param)
    elif "blosc2-zstd" in core.codecs():
        data = _compressed(core, ram_path)
    else:
        pytest.skip("no c-blosc2 with headers: pip install blosc2")
    (ram_path / "damaged").write_bytes(data)
    core.check(ram_path / "damaged")
    assert len(data) < 1200
    return data


def test_every_flipped_bit_is_noticed(core: Core, ram_path: Path, sound: bytes) -> None:
    for bit in range(8 * len(sound)):
        damaged = bytearray(sound)
        damaged[bit // 8] ^= 1 << bit % 8
        _refused(core, ram_path, bytes(damaged))
        assert core.is_packed(ram_path / "damaged")  # still no whole file


def test_every_truncation_is_noticed(core: Core, ram_path: Path, sound: bytes) -> None:
    for size in range(len(sound)):
        _refused(core, ram_path, sound[:size])


@pytest.mark.parametrize("tail", [b"\0", b"x" * 16, None])
def test_appended_bytes_are_noticed(core: Core, ram_path: Path, sound: bytes, tail: bytes | None) -> None:
    failure = _refused(core, ram_path, sound + (sound if tail is None else tail))
    assert "appended" in failure.words


def test_inserted_and_missing_bytes_are_noticed(core: Core, ram_path: Path, sound: bytes) -> None:
    for at in range(0, len(sound), 7):
        _refused(core, ram_path, sound[:at] + b"\x55" + sound[at:])
        _refused(core, ram_path, sound[:at] + sound[at + 1 :])
        _refused(core, ram_path, sound[:at] + sound[at + 1 :] + b"\0")


@pytest.mark.parametrize(
    "foreign",
    [
        b"",
        b"\x89",
        b"\x7fELF" + bytes(300),
        b"\x89PNG\r\n\x1a\n" + bytes(300),
        b"\x93NUMPY" + bytes(300),
        b"\x89SCRL\r\n\x1a" + bytes(300),
        pf.MARK,
        pf.MARK.replace(b"\r\n", b"\n") + bytes(300),
        bytes(5000),
        random.Random(1).randbytes(5000),
        pf.MARK + random.Random(2).randbytes(5000),
    ],
)
def test_foreign_files_are_refused(core: Core, ram_path: Path, foreign: bytes) -> None:
    _refused(core, ram_path, foreign)


def test_newer_format_is_named(core: Core, ram_path: Path) -> None:
    newer = pf.assemble(pf.parse(_packed("runs")), version=2)
    failure = _refused(core, ram_path, newer, (cl.VERSION,))
    assert "2" in failure.words and failure.offset == 8
    older = pf.assemble(pf.parse(_packed("runs")), version=0)
    _refused(core, ram_path, older, (cl.FORMAT,))


# ---- Consistent checksums, inconsistent content ----------------------------------------------------------

CONTRADICTIONS: dict[str, Callable[[pf.Packed], pf.Packed]] = {
    "file_size above": lambda p: replace(p, file_size=p.file_size + 1),
    "file_size below": lambda p: replace(p, file_size=p.file_size - 1),
    "file_size huge": lambda p: replace(p, file_size=2**64 - 1),
    "file_size negative": lambda p: replace(p, file_size=2**63),
    "kept above": lambda p: replace(p, kept=p.kept + 1),
    "kept huge": lambda p: replace(p, kept=2**64 - 1),
    "kept zero": lambda p: replace(p, kept=0),
    "frame_bytes zero": lambda p: replace(p, frame_bytes=0),
    "frame_bytes huge": lambda p: replace(p, frame_bytes=2**63),
    "frame_bytes one": lambda p: replace(p, frame_bytes=1),
    "encodings": lambda p: replace(p, encodings=7),
    "codec": lambda p: replace(p, codec=2),
    "codec huge": lambda p: replace(p, codec=2**32 - 1),
    "codec that it is not": lambda p: replace(p, codec=1),
    "type_size": lambda p: replace(p, type_size=2),
    "type_size zero": lambda p: replace(p, type_size=0),
    "program short": lambda p: replace(p, program=p.program[:-1]),
    "program empty": lambda p: replace(p, program=b""),
    "program long": lambda p: replace(p, program=p.program + b"\2\1"),
    "program huge": lambda p: replace(p, program=b"\3" + pf.varint(2**62) + b"\2" + p.program[:2]),
    "frame missing": lambda p: replace(p, stored=[]),
    "frame cut": lambda p: replace(p, stored=[p.stored[0][:-1]]),
    "frame too long": lambda p: replace(p, stored=[p.stored[0] + b"x"]),
    "two frames": lambda p: replace(p, stored=[p.stored[0][:9], p.stored[0][9:]]),
    "field beyond the end": lambda p: replace(p, fields=[pf.ChecksumField(0, 751, (0,))]),
    "field huge": lambda p: replace(p, fields=[pf.ChecksumField(2**63, 2**63, (0,))]),
    "place beyond the end": lambda p: replace(p, fields=[pf.ChecksumField(0, 9, (747,))]),
    "place among the covered": lambda p: replace(p, fields=[pf.ChecksumField(0, 9, (8,))]),
    "no place": lambda p: replace(p, fields=[_Raw(struct.pack("<IIQQQQ", 1, 0, 0, 9, 9, 0))]),  # type: ignore
    "unknown kind": lambda p: replace(p, fields=[_Raw(struct.pack("<IIQQQQ", 2, 1, 0, 9, 9, 0))]),  # type: ignore
    "overlap": lambda p: replace(p, fields=[pf.ChecksumField(0, 9, (50,)), pf.ChecksumField(8, 9, (50,))]),
}


class _Raw(bytes):
    def pack(self) -> bytes:
        return self


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_contradictions_under_right_checksums_are_refused(core: Core, ram_path: Path, name: str) -> None:
    wrong = CONTRADICTIONS[name](pf.parse(_packed("pattern")))
    failure = _refused(core, ram_path, pf.assemble(wrong), (cl.FORMAT, cl.CODEC))
    assert failure.offset >= 0


def test_reserved_bytes_are_refused(core: Core, ram_path: Path) -> None:
    data = bytearray(_packed("runs"))
    data[115] = 1
    crc = struct.pack("<I", pf.crc32c(bytes(data[:124])))
    tail = pf.TRAILER_MARK + crc
    resealed = bytes(data[:124]) + crc + bytes(data[128:-16]) + tail + struct.pack("<I", pf.crc32c(tail))
    failure = _refused(core, ram_path, resealed, (cl.FORMAT,))
    assert failure.offset == 112


def test_compressed_frame_must_be_what_the_header_says(core_with_codec: Core, ram_path: Path) -> None:
    import blosc2

    data = _compressed(core_with_codec, ram_path)
    sound = pf.parse(data)
    for stored in (
        blosc2.compress2(bytes(1199), typesize=8),
        blosc2.compress2(bytes(1201), typesize=8),
        blosc2.compress2(bytes(1 << 21), typesize=8),
        sound.stored[0] + b"\0",
        sound.stored[0][:-1],
        sound.stored[0][:15],
        bytes(40),
        b"\xff" * 40,
    ):
        _refused(core_with_codec, ram_path, pf.assemble(replace(sound, stored=[stored])), (cl.FORMAT,))
    failure = _refused(core_with_codec, ram_path, pf.assemble(replace(sound, extra=b"x")), (cl.FORMAT,))
    assert "add up" in failure.words
    (ram_path / "damaged").write_bytes(pf.assemble(sound))
    core_with_codec.check(ram_path / "damaged")


@pytest.mark.timeout(60)
def test_hostile_loops_cost_no_time(core: Core, ram_path: Path) -> None:
    """Some forty bytes of program that stand for 2^60 operations."""
    drop = b"\2\1"
    for _ in range(3):
        drop = b"\3" + pf.varint(1 << 20) + pf.varint(len(drop)) + drop
    size = 1 << 60
    all_dropped = pf.Packed(size, 0, 0, 1, 1, pf.MIB, bytes(16), drop)
    path = ram_path / "hostile"
    path.write_bytes(pf.assemble(all_dropped))
    assert core.check(path).dropped_runs == 1
    assert core.runs(path) == []
    busy = b"\1\1" + b"\2\1" * 5000
    busy = b"\3" + pf.varint(1 << 40) + pf.varint(len(busy)) + busy
    path.write_bytes(pf.assemble(pf.Packed(10_001 << 40, 1 << 40, 0, 1, 1, 1 << 36, bytes(16), busy)))
    with pytest.raises(CoreError):
        core.check(path)


def test_failed_expansion_leaves_the_older_target(core: Core, ram_path: Path) -> None:
    data = bytearray(_packed("runs"))
    data[-20] ^= 1  # payload
    (ram_path / "packed").write_bytes(data)
    (ram_path / "target").write_bytes(b"older")
    with pytest.raises(CoreError, match="frame 0") as failure:
        core.unpack(ram_path / "packed", ram_path / "target")
    assert failure.value.status == cl.CHECKSUM
    assert (ram_path / "target").read_bytes() == b"older"
    assert len(list(ram_path.iterdir())) == 2
