"""How much may be staged: on disk what is free, in memory at most half of what the node has left."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
SHIM = HERE.parents[1] / "cbindings" / "shim"
MARGIN = 256 << 20  # other processes come and go between two looks


@pytest.fixture(scope="module")
def room(tmp_path_factory):
    """Return a function that asks room.c."""
    if shutil.which("cc") is None:
        pytest.skip("needs a C compiler: install gcc")
    program = tmp_path_factory.mktemp("room") / "room"
    sources = [str(HERE / "room_program.c"), str(SHIM / "room.c")]
    subprocess.run(["cc", "-Wall", "-Wextra", f"-I{SHIM}", *sources, "-o", str(program)], check=True)
    return lambda folder: int(subprocess.run([program, folder], capture_output=True, check=True).stdout)


def free_bytes(folder):
    system = os.statvfs(folder)
    return system.f_bavail * system.f_frsize


def test_on_disk_all_that_is_free(room, tmp_path):
    kind = subprocess.run(["stat", "-f", "-c", "%T", tmp_path], capture_output=True, text=True, check=True)
    if kind.stdout.strip() in ("tmpfs", "ramfs"):
        pytest.skip("the temporary folder is in memory: point TMPDIR at a disk")
    assert abs(room(tmp_path) - free_bytes(tmp_path)) < MARGIN


def test_in_memory_at_most_half_of_what_is_left(room):
    if not Path("/dev/shm").is_dir():
        pytest.skip("needs /dev/shm")
    lines = Path("/proc/meminfo").read_text().splitlines()
    available = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    found = room("/dev/shm")
    assert 0 < found <= min(free_bytes("/dev/shm"), available // 2) + MARGIN


def test_a_folder_that_is_not_there_cannot_be_told(room, tmp_path):
    assert room(tmp_path / "missing") == 2**64 - 1
