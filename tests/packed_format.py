"""The packed-file format once more, in plain Python, straight from ``docs/format.md``.

The tests hold the C core against it: what it writes must be what the core writes, byte for byte, and what
either expands must be the same. Slow, and without the core's care for hostile input. Imports nothing of the
package.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

MARK = bytes.fromhex("89 53 43 52 50 0D 0A 1A")
TRAILER_MARK = bytes.fromhex("1A 0A 0D 50 52 43 53 89")
HEADER = struct.Struct("<8sIIQQQQIIIIQQ16sIIII12xI")
FIELD = struct.Struct("<IIQQQQ")
FRAME = struct.Struct("<QII")
TRAILER = struct.Struct("<8sII")
MIB = 1 << 20

# An operation: ("keep", n), ("drop", n), ("loop", count, [operation...]), ("runs", first, [n...]) or
# ("bitmap", unit, [bool...]).
Operation = tuple
Run = tuple[bool, int]


def _crc32c_table() -> list[int]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


_TABLE = _crc32c_table()


def crc32c(data: bytes) -> int:
    """CRC-32C, a byte at a time."""
    state = 0xFFFFFFFF
    for byte in data:
        state = state >> 8 ^ _TABLE[(state ^ byte) & 0xFF]
    return state ^ 0xFFFFFFFF


# ---- Programs of runs ------------------------------------------------------------------------------------


def varint(value: int) -> bytes:
    """LEB128 in its shortest form."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def encode(operations: Iterable[Operation]) -> bytes:
    """A program's bytes."""
    out = b""
    for operation in operations:
        match operation:
            case ("keep", n):
                out += b"\x01" + varint(n)
            case ("drop", n):
                out += b"\x02" + varint(n)
            case ("loop", count, body):
                inner = encode(body)
                out += b"\x03" + varint(count) + varint(len(inner)) + inner
            case ("runs", first, lengths):
                data = b"".join(map(varint, lengths))
                out += b"\x04" + bytes([first]) + varint(len(lengths)) + varint(len(data)) + data
            case ("bitmap", unit, bits):
                value = sum(1 << i for i, bit in enumerate(bits) if bit)
                out += b"\x05" + varint(unit) + varint(len(bits))
                out += value.to_bytes((len(bits) + 7) // 8, "little")
            case _:
                raise ValueError(f"unknown operation {operation!r}")
    return out


def encodings(operations: Iterable[Operation]) -> int:
    """The header's bits for the operations that occur."""
    bits = 0
    for operation in operations:
        match operation:
            case ("loop", _, body):
                bits |= 1 | encodings(body)
            case ("runs", *_):
                bits |= 2
            case ("bitmap", *_):
                bits |= 4
            case _:
                bits |= 1
    return bits


def mask(operations: Iterable[Operation]) -> bytearray:
    """One byte per byte of the file: 1 where it is critical."""
    out = bytearray()
    for operation in operations:
        match operation:
            case ("keep", n):
                out += b"\1" * n
            case ("drop", n):
                out += b"\0" * n
            case ("loop", count, body):
                out += mask(body) * count
            case ("runs", first, lengths):
                for i, n in enumerate(lengths):
                    out += bytes([(first + i) % 2]) * n
            case ("bitmap", unit, bits):
                for bit in bits:
                    out += bytes([bool(bit)]) * unit
    return out


def runs_of(marks: bytes) -> list[tuple[bool, int, int]]:
    """Maximal runs of a mask: critical or not, start, stop."""
    out = []
    start = 0
    while start < len(marks):
        stop = marks.find(bytes([1 - marks[start]]), start)
        stop = len(marks) if stop < 0 else stop
        out.append((bool(marks[start]), start, stop))
        start = stop
    return out


def decode_mask(program: bytes) -> bytearray:
    """The mask of a program's bytes, which must be well-formed."""
    out = bytearray()
    at = 0

    def number() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = program[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    while at < len(program):
        code = program[at]
        at += 1
        if code in (1, 2):
            out += bytes([code == 1]) * number()
        elif code == 3:
            count, size = number(), number()
            out += decode_mask(program[at : at + size]) * count
            at += size
        elif code == 4:
            kind = program[at]
            at += 1
            count, _ = number(), number()
            for i in range(count):
                out += bytes([(kind + i) % 2]) * number()
        elif code == 5:
            unit, bits = number(), number()
            value = int.from_bytes(program[at : at + (bits + 7) // 8], "little")
            at += (bits + 7) // 8
            for i in range(bits):
                out += bytes([value >> i & 1]) * unit
        else:
            raise ValueError(f"unknown operation {code}")
    return out


# ---- Whole files -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ChecksumField:
    """A zip CRC-32 over `length` bytes at `start`, kept at `places`."""

    start: int
    length: int
    places: tuple[int, ...]

    def pack(self) -> bytes:
        """The field as a packed file stores it."""
        second = self.places[1] if len(self.places) > 1 else 0
        return FIELD.pack(1, len(self.places), self.start, self.length, self.places[0], second)


@dataclass
class Packed:
    """A packed file taken apart."""

    file_size: int
    kept: int
    codec: int
    type_size: int
    encodings: int
    frame_bytes: int
    digest: bytes
    program: bytes
    fields: list[ChecksumField] = field(default_factory=list)
    stored: list[bytes] = field(default_factory=list)
    """Frames as stored."""
    extra: bytes = b""
    """Bytes of the payload that belong to no frame; a sound file has none."""


def fill_mask(whole: bytes, marks: bytes, fill: bytes, fields: Sequence[ChecksumField] = ()) -> bytes:
    """The whole file as it is after packing and expanding with a fill."""
    out = bytearray(whole)
    pattern = fill or b"\0"
    for critical, start, stop in runs_of(marks):
        if not critical:
            n = stop - start
            out[start:stop] = (pattern * (n // len(pattern) + 1))[:n]
    for item in fields:
        crc = zlib.crc32(out[item.start : item.start + item.length])
        for place in item.places:
            out[place : place + 4] = struct.pack("<I", crc)
    return bytes(out)


def write(
    whole: bytes,
    program: bytes,
    encoding_bits: int,
    fields: Sequence[ChecksumField] = (),
    digest: bytes = bytes(16),
) -> bytes:
    """A packed file without codec."""
    marks = decode_mask(program)
    payload = b"".join(whole[start:stop] for critical, start, stop in runs_of(marks) if critical)
    share = (len(payload) + 15) // 16
    frame_bytes = max(1, (share + MIB - 1) // MIB) * MIB
    frames = [payload[i : i + frame_bytes] for i in range(0, len(payload), frame_bytes)]
    return assemble(
        Packed(
            len(whole), len(payload), 0, 1, encoding_bits, frame_bytes, digest, program, list(fields), frames
        )
    )


def assemble(packed: Packed, version: int = 1) -> bytes:
    """Put a packed file together, with right sizes and checksums whatever its parts say."""
    fields = b"".join(item.pack() for item in packed.fields)
    frames = b"".join(FRAME.pack(len(stored), crc32c(stored), 0) for stored in packed.stored)
    payload = b"".join(packed.stored) + packed.extra
    packed_size = 128 + len(packed.program) + len(fields) + len(frames) + len(payload) + 16
    head = HEADER.pack(
        MARK,
        version,
        128,
        packed.file_size,
        packed.kept,
        len(packed.program),
        packed.frame_bytes,
        len(packed.stored),
        packed.codec,
        packed.encodings,
        len(packed.fields),
        len(payload),
        packed_size,
        packed.digest,
        packed.type_size,
        crc32c(packed.program),
        crc32c(fields),
        crc32c(frames),
        0,
    )[:124]
    head_crc = crc32c(head)
    tail = TRAILER_MARK + struct.pack("<I", head_crc)
    return b"".join(
        [
            head,
            struct.pack("<I", head_crc),
            packed.program,
            fields,
            frames,
            payload,
            tail,
            struct.pack("<I", crc32c(tail)),
        ]
    )


def parse(data: bytes) -> Packed:
    """Take a packed file apart, checking what docs/format.md promises of it."""
    head = HEADER.unpack_from(data)
    (mark, version, header_size, file_size, kept, table_size, frame_bytes, frames, codec, bits) = head[:10]
    (field_count, payload_size, packed_size, digest, type_size, table_crc, fields_crc, frames_crc, crc) = (
        head[10:]
    )
    assert (mark, version, header_size) == (MARK, 1, 128)
    assert crc == crc32c(data[:124]) and packed_size == len(data)
    table_end = 128 + table_size
    fields_end = table_end + 40 * field_count
    frames_end = fields_end + 16 * frames
    assert crc32c(data[128:table_end]) == table_crc
    assert crc32c(data[table_end:fields_end]) == fields_crc
    assert crc32c(data[fields_end:frames_end]) == frames_crc
    assert frames_end + payload_size + 16 == len(data)
    assert data[-16:-8] == TRAILER_MARK
    assert struct.unpack("<II", data[-8:]) == (crc, crc32c(data[-16:-4]))
    fields = []
    for at in range(table_end, fields_end, 40):
        kind, places, start, length, first, second = FIELD.unpack_from(data, at)
        assert kind == 1 and places in (1, 2)
        fields.append(ChecksumField(start, length, (first, second)[:places]))
    stored = []
    at = frames_end
    for row in range(fields_end, frames_end, 16):
        size, frame_crc, reserved = FRAME.unpack_from(data, row)
        stored.append(data[at : at + size])
        assert crc32c(stored[-1]) == frame_crc and reserved == 0
        at += size
    assert at == frames_end + payload_size
    program = data[128:table_end]
    return Packed(file_size, kept, codec, type_size, bits, frame_bytes, digest, program, fields, stored)


def plain_payload(packed: Packed) -> bytes:
    """The critical bytes; codec 1 through the blosc2 package, not through the core."""
    if packed.codec == 0:
        return b"".join(packed.stored)
    import blosc2

    return b"".join(blosc2.decompress2(stored) for stored in packed.stored)


def expand(data: bytes, fill: bytes = b"") -> bytes:
    """The whole file."""
    packed = parse(data)
    marks = decode_mask(packed.program)
    payload = plain_payload(packed)
    assert len(marks) == packed.file_size and sum(marks) == packed.kept == len(payload)
    out = bytearray(packed.file_size)
    at = 0
    for critical, start, stop in runs_of(marks):
        if critical:
            out[start:stop] = payload[at : at + stop - start]
            at += stop - start
    return fill_mask(bytes(out), marks, fill, packed.fields)
