"""Fixtures of the C core's tests, and the helper modules beside them made importable.

pytest's importlib mode leaves test folders off the path, so the helpers would not be found.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import core_build
from core_library import Core


@pytest.fixture(scope="session")
def core(tmp_path_factory: pytest.TempPathFactory) -> Core:
    """The C core, compiled from the source tree."""
    return Core(core_build.build_shared(tmp_path_factory.mktemp("core")))


@pytest.fixture(scope="session")
def sanitized(tmp_path_factory: pytest.TempPathFactory) -> core_build.Sanitized:
    """The C core with sanitizers, to be linked to C tests."""
    return core_build.build_sanitized(tmp_path_factory.mktemp("sanitized"))


@pytest.fixture(scope="session")
def core_with_codec(core: Core) -> Core:
    """The same, where it can compress."""
    if "blosc2-zstd" not in core.codecs():
        pytest.skip("no c-blosc2 with headers: pip install blosc2")
    return core


@pytest.fixture
def ram_path() -> Iterator[Path]:
    """A folder in memory where there is one: tests that sync hundreds of files need not wait for a disk."""
    base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="scr_crit_test.", dir=base) as folder:
        yield Path(folder)
