"""Make the golden packed files of one format version: once, when the version is new.

    python tests/golden/make_golden.py

A golden file is never made again. It stands for the files that users have: if one no longer reads, the
reader is wrong, and a changed writer changes nothing about it. So this refuses when any of its files exists.
A new format version gets new names. The test is ``tests/test_core_golden.py``.
"""

from __future__ import annotations

import hashlib
import io
import json
import struct
import sys
import tempfile
import zipfile
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parent))  # the helper modules beside the tests
VERSION = 1
FILL = b"\xde\xad\xbe"


def _element(i: int) -> bytes:
    return struct.pack("<d", 1.0 + i / 7)


def _npz_like() -> tuple[bytes, list, list]:
    """A stored zip member with its CRC in two places."""
    import packed_format as pf

    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        member = zipfile.ZipInfo("u.npy", date_time=(2024, 1, 1, 0, 0, 0))
        archive.writestr(member, b"".join(map(_element, range(200))))
    data = stream.getvalue()
    start = 30 + len("u.npy")
    fields = [pf.ChecksumField(start, 1600, (14, data.index(b"PK\1\2") + 16))]
    return data, fields, [("keep", start + 800), ("drop", 480), ("keep", len(data) - start - 1280)]


def cases() -> dict[str, tuple[bytes, list, list, int]]:
    """Name -> content of the whole file, operations, checksum fields, codec."""
    block = b"".join(map(_element, range(7 * 7 * 4)))
    loops = [
        ("keep", 8),
        ("loop", 3, [("drop", 56), ("loop", 5, [("drop", 8), ("keep", 40), ("drop", 8)]), ("drop", 56)]),
    ]
    bits = [i * i % 11 in (1, 3, 4) for i in range(300)]
    npz, fields, npz_operations = _npz_like()
    return {
        "loops": (b"MAGIC 1\n" + block[: 3 * 7 * 56], loops, [], 0),
        "runs": (bytes(range(1, 251)) * 4, [("runs", 0, [100, 24, 25, 24, 400, 24, 403])], [], 0),
        "bitmap": (b"".join(map(_element, range(300))), [("bitmap", 8, bits)], [], 0),
        "checksums": (npz, npz_operations, fields, 0),
        "blosc2": (b"".join(map(_element, range(600))), [("keep", 2400), ("drop", 2400)], [], 1),
        "dropped": (bytes(range(250)) * 2, [("drop", 500)], [], 0),
    }


def file_names(folder: Path) -> list[Path]:
    """All files that this makes."""
    stems = [f"packed-v{VERSION}-{name}" for name in cases()]
    return [folder / f"{stem}{end}" for stem in stems for end in (".scrp", ".zero", ".fill")] + [
        folder / f"packed-v{VERSION}.json"
    ]


def refuse_to_replace(folder: Path) -> None:
    """Raise FileExistsError when any golden file is there already."""
    for path in file_names(folder):
        if path.exists():
            raise FileExistsError(
                f"{path} exists, and golden files are never made again: "
                "if it no longer reads, mend the reader; a new format version gets new names"
            )


def make(folder: Path, library: Path) -> None:
    """Make the golden files of this version with the core in `library`."""
    import core_library as cl
    import packed_format as pf

    refuse_to_replace(folder)
    core = cl.Core(library)
    digests = {}
    for name, (whole, operations, fields, codec) in cases().items():
        stem = folder / f"packed-v{VERSION}-{name}"
        packed = stem.with_suffix(".scrp")
        digest = hashlib.sha256(name.encode()).digest()[:16]
        program = pf.encode(operations)
        core.pack_buffers([whole], cl.rules(program, fields, 8, digest), packed, codec)
        marks = pf.mask(operations)
        stem.with_suffix(".zero").write_bytes(pf.fill_mask(whole, marks, b"", fields))
        stem.with_suffix(".fill").write_bytes(pf.fill_mask(whole, marks, FILL, fields))
        for end in (".scrp", ".zero", ".fill"):
            path = stem.with_suffix(end)
            digests[path.name] = hashlib.sha256(path.read_bytes()).hexdigest()
    (folder / f"packed-v{VERSION}.json").write_text(json.dumps(digests, indent=1) + "\n")


if __name__ == "__main__":
    refuse_to_replace(FOLDER)
    import core_build

    with tempfile.TemporaryDirectory() as scratch:
        make(FOLDER, core_build.build_shared(Path(scratch)))
    sys.exit(0)
