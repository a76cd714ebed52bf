"""What the C core does when storage fails it, and what it carries over from file to file.

Real faults: a full file system, a size limit, a killed process. Staged faults at every system call are in
``c/test_faults.c``.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import core_library as cl
import packed_format as pf
import pytest
from core_library import Core, CoreError

SIZE = 3 << 20
RULE = cl.rules(pf.encode([("loop", SIZE // 64, [("keep", 40), ("drop", 24)])]))


def _whole(folder: Path) -> Path:
    path = folder / "whole"
    path.write_bytes(os.urandom(SIZE))
    return path


def _names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


# ---- Space -----------------------------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own with room for the source and one megabyte more."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={SIZE + (1 << 20)}", "none", str(folder)]
    try:
        done = subprocess.run(mount, capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("no mount command")
    if done.returncode != 0:
        pytest.skip(
            f"cannot mount a small tmpfs: {done.stderr.strip()}; run as root in a container that may mount"
        )
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_full_file_system_is_no_space_and_harms_nothing(core: Core, small_disk: Path, ram_path: Path) -> None:
    source = _whole(small_disk)
    content = source.read_bytes()
    digest = hashlib.sha256(content).digest()
    elsewhere = ram_path / "packed"
    core.pack(source, RULE, elsewhere)
    (small_disk / "target").write_bytes(b"older")
    for call in (
        lambda: core.pack(source, RULE, source),
        lambda: core.unpack(elsewhere, small_disk / "target"),
        lambda: core.copy(source, small_disk / "target"),
        lambda: core.overwrite(source, RULE),
    ):
        with pytest.raises(CoreError) as failure:
            call()
        assert failure.value.status == cl.NOSPACE and failure.value.errno == errno.ENOSPC
        assert str(small_disk) in failure.value.words
        assert hashlib.sha256(source.read_bytes()).digest() == digest
        assert (small_disk / "target").read_bytes() == b"older"
        assert _names(small_disk) == ["target", "whole"]


@contextlib.contextmanager
def _file_size_limit(limit: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def test_size_limit_is_an_error_that_harms_nothing(core: Core, ram_path: Path) -> None:
    source = _whole(ram_path)
    content = source.read_bytes()
    packed = ram_path / "packed"
    core.pack(source, RULE, packed)
    for call in (lambda: core.pack(source, RULE, source), lambda: core.unpack(packed, ram_path / "target")):
        with _file_size_limit(1 << 20), pytest.raises(CoreError) as failure:
            call()
        assert failure.value.status == cl.IO and failure.value.errno == errno.EFBIG
        assert source.read_bytes() == content
        assert _names(ram_path) == ["packed", "whole"]


@contextlib.contextmanager
def _as_nobody(*paths: Path) -> Iterator[None]:
    """Root may write anywhere: be somebody else, who owns these paths."""
    if os.geteuid() != 0:
        yield
        return
    for path in paths:
        os.chown(path, 65534, 65534)
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_folder_without_permission(core: Core, ram_path: Path) -> None:
    source = _whole(ram_path)
    content = source.read_bytes()
    with _as_nobody(ram_path, source):
        ram_path.chmod(0o500)
        try:
            with pytest.raises(CoreError) as failure:
                core.pack(source, RULE, source)
        finally:
            ram_path.chmod(0o700)
    assert failure.value.status == cl.IO and failure.value.errno == errno.EACCES
    assert source.read_bytes() == content


# ---- Killed in the middle --------------------------------------------------------------------------------

PACK_FOREVER = """
import sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
import core_library as cl, packed_format as pf
core, source, size = cl.Core(Path(sys.argv[2])), Path(sys.argv[3]), int(sys.argv[4])
rule = cl.rules(pf.encode([("loop", size // 64, [("keep", 40), ("drop", 24)])]))
print("ready", flush=True)
sys.stdin.readline()
core.pack(source, rule, source)
print("done", flush=True)
"""


def _kill_while_packing(core: Core, source: Path, size: int, temporary: Path, delay: float) -> bool:
    """Start a packer, kill it `delay` seconds after its temporary file appears; was that in time?"""
    command = [sys.executable, "-c", PACK_FOREVER, str(Path(cl.__file__).parent), core.library._name]
    with subprocess.Popen(
        [*command, str(source), str(size)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.stdin.write("\n")
        process.stdin.flush()
        deadline = time.monotonic() + 30
        while not temporary.exists() and process.poll() is None and time.monotonic() < deadline:
            pass
        time.sleep(delay)
        process.kill()
        process.wait()
    return temporary.exists()


def test_killed_packer_leaves_the_source_and_one_known_name(core: Core, tmp_path: Path) -> None:
    size = 128 << 20
    source = tmp_path / "whole"
    content = os.urandom(1 << 20) * (size >> 20)
    temporary = core.temp_path(source)
    kills = 0
    for delay in (0.0, 0.005, 0.02):
        source.write_bytes(content)
        if _kill_while_packing(core, source, size, temporary, delay):
            kills += 1
            assert source.read_bytes() == content
            assert _names(tmp_path) == sorted([temporary.name, "whole"])
            assert not core.is_packed(temporary) or core.is_packed(source) is False
    assert kills > 0, "no kill was in time: the packer must have been finished each time"
    # The next writer clears up.
    source.write_bytes(content)
    core.pack(source, cl.rules(pf.encode([("loop", size // 64, [("keep", 40), ("drop", 24)])])), source)
    core.check(source)
    assert _names(tmp_path) == ["whole"]


# ---- Mode, owner, attributes -----------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444, 0o755])
def test_permission_bits_are_kept(core: Core, ram_path: Path, mode: int) -> None:
    source, packed, target = _whole(ram_path), ram_path / "packed", ram_path / "target"
    source.chmod(mode)
    core.pack(source, RULE, packed)
    core.unpack(packed, target)
    core.copy(source, ram_path / "copy")
    core.overwrite(source, RULE)
    for path in (packed, target, source, ram_path / "copy"):
        assert path.stat().st_mode & 0o7777 == mode


def test_packed_buffers_obey_the_umask(core: Core, ram_path: Path) -> None:
    before = os.umask(0o027)
    try:
        core.pack_buffers([bytes(SIZE)], RULE, ram_path / "packed")
    finally:
        os.umask(before)
    assert (ram_path / "packed").stat().st_mode & 0o7777 == 0o640


def test_extended_attributes_are_kept(core: Core, tmp_path: Path) -> None:
    source, packed, target = _whole(tmp_path), tmp_path / "packed", tmp_path / "target"
    attributes = {"user.origin": b"run 7", "user.empty": b"", "user.long": bytes(range(256)) * 8}
    try:
        for name, value in attributes.items():
            os.setxattr(source, name, value)
    except OSError as error:
        pytest.skip(f"this file system has no user attributes ({error}); point TMPDIR at one that has")
    core.pack(source, RULE, packed)
    core.unpack(packed, target)
    core.pack(packed.rename(tmp_path / "whole2") and source, RULE, source)
    for path in (tmp_path / "whole2", target, source):
        assert {name: os.getxattr(path, name) for name in os.listxattr(path)} == attributes


def test_owner_is_kept_where_that_is_allowed(core: Core, ram_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give files away; run as root")
    source = _whole(ram_path)
    os.chown(source, 12345, 23456)
    core.pack(source, RULE, source)
    assert (source.stat().st_uid, source.stat().st_gid) == (12345, 23456)


def test_a_file_in_a_new_place_belongs_to_its_folder(core: Core, ram_path: Path) -> None:
    """A project's folder hands its group on; the group of the staged file means nothing there."""
    if os.geteuid() != 0:
        pytest.skip("only root can make a folder of another group; run as root")
    source, project = _whole(ram_path), ram_path / "project"
    project.mkdir()
    os.chown(project, -1, 23456)
    project.chmod(0o2775)
    core.pack(source, RULE, project / "packed")
    core.copy(source, project / "copy")
    core.unpack(project / "packed", project / "whole")
    assert {path.stat().st_gid for path in project.iterdir()} == {23456}


# ---- Names -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["with space", "ünïcode", "-dash", "x" * 255, "a\nb"])
def test_any_name_will_do(core: Core, ram_path: Path, name: str) -> None:
    source = ram_path / name
    source.write_bytes(os.urandom(SIZE))
    core.pack(source, RULE, source)
    core.check(source)
    assert core.temp_path(source).parent == ram_path
    assert _names(ram_path) == [name]


def test_path_of_a_thousand_characters(core: Core, ram_path: Path) -> None:
    folder = ram_path.joinpath(*["d" * 200] * 4)
    folder.mkdir(parents=True)
    source = folder / ("f" * (1000 - len(str(folder)) - 1))
    source.write_bytes(os.urandom(SIZE))
    assert len(str(source)) == 1000
    core.pack(source, RULE, source)
    assert core.is_packed(source)
    with pytest.raises(CoreError) as failure:
        core.unpack(source, source)
    assert failure.value.words.startswith(f"{source}: ")


def test_relative_names(core: Core, ram_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _whole(ram_path)
    monkeypatch.chdir(ram_path)
    core.pack(Path("whole"), RULE, Path("packed"))
    core.unpack(Path("packed"), Path("./target"))
    assert _names(ram_path) == ["packed", "target", "whole"]
