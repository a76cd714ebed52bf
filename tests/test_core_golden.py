"""Golden packed files of every format version still read, to the byte.

They were made once by ``golden/make_golden.py`` and are never made again: when one of these tests fails, the
reader is wrong.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import packed_format as pf
import pytest
from core_library import Core

FOLDER = Path(__file__).resolve().parent / "golden"
FILES = sorted(FOLDER.glob("packed-v*.scrp"))
FILL = b"\xde\xad\xbe"


def _needs_codec(core: Core, data: bytes) -> None:
    if pf.parse(data).codec and "blosc2-zstd" not in core.codecs():
        pytest.skip("no c-blosc2 with headers: pip install blosc2")


def test_golden_files_are_there_and_as_they_were_made() -> None:
    for version in (1,):
        digests = json.loads((FOLDER / f"packed-v{version}.json").read_text())
        assert len(digests) >= 18
        for name, digest in digests.items():
            assert hashlib.sha256((FOLDER / name).read_bytes()).hexdigest() == digest, (
                f"{name} was changed: golden files are kept as they were made; take it from the history again"
            )
    assert {"loops", "runs", "bitmap", "checksums", "blosc2", "dropped"} <= {
        p.stem.split("-")[2] for p in FILES
    }


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
@pytest.mark.parametrize(("end", "fill"), [(".zero", None), (".fill", FILL)])
def test_golden_file_expands_to_the_same_bytes(
    core: Core, ram_path: Path, path: Path, end: str, fill: bytes | None
) -> None:
    _needs_codec(core, path.read_bytes())
    expected = path.with_suffix(end).read_bytes()
    core.check(path)
    info = core.unpack(path, ram_path / "whole", fill)
    assert (ram_path / "whole").read_bytes() == expected
    assert core.unpack_buffer(path, info.file_bytes, fill) == expected
    assert pf.expand(path.read_bytes(), fill or b"") == expected
    assert bytes(info.plan_digest) == hashlib.sha256(path.stem.split("-")[2].encode()).digest()[:16]


def _generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_golden", FOLDER / "make_golden.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_golden_files_are_never_made_again(tmp_path: Path) -> None:
    before = {path.name: path.read_bytes() for path in FOLDER.glob("packed-v*")}
    done = subprocess.run(
        [sys.executable, str(FOLDER / "make_golden.py")], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode != 0 and "never made again" in done.stderr
    assert before == {path.name: path.read_bytes() for path in FOLDER.glob("packed-v*")}
    # A single file that is left is reason enough.
    generator = _generator()
    shutil.copy(FOLDER / "packed-v1-runs.fill", tmp_path)
    with pytest.raises(FileExistsError, match="never made again"):
        generator.refuse_to_replace(tmp_path)


def test_the_writer_still_makes_what_it_made_without_codec(core: Core, tmp_path: Path) -> None:
    """Not a promise of the format, but a change here is one to know of."""
    import core_library as cl

    for name, (whole, operations, fields, codec) in _generator().cases().items():
        if codec:
            continue
        digest = hashlib.sha256(name.encode()).digest()[:16]
        rule = cl.rules(pf.encode(operations), fields, 8, digest)
        core.pack_buffers([whole], rule, tmp_path / name)
        assert (tmp_path / name).read_bytes() == (FOLDER / f"packed-v1-{name}.scrp").read_bytes()
