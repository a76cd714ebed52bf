"""The tracer's shadow (cbindings/tracer/shadow.c) against a plain array, compiled without Valgrind running.

Windows of memory are chosen so that they lie over every kind of boundary: pages, tables of the tree,
granules that share a guard, and the highest addresses. After any sequence of operations the states must be
those of the model, and the guard must speak for every access that meets a pending byte, and for no access
whose guard's granules hold none.
"""

from __future__ import annotations

import ctypes
import platform
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

HERE = Path(__file__).resolve().parent
TRACER = HERE.parent.parent / "cbindings" / "tracer"

NONE, PENDING, READ, WRITTEN = range(4)
GRANULE, SPAN = 64, 1 << 32
WINDOW = 320
# How far an access of that many bytes may reach into the next granule.
REACH = {1: 0, 2: 7, 4: 7, 8: 7, 10: 15, 16: 15, 28: 31, 32: 31, 64: 63}

WINDOWS = [
    0x1000,  # the first page there can be
    0x4A1FF0 - WINDOW // 2,  # inside a page
    0x5000000 - WINDOW // 2,  # over the end of a table of pages
    SPAN + 0x5000000 - WINDOW // 2,  # shares its guards with the one before
    (1 << 36) - WINDOW // 2,  # over the end of a table of tables
    (1 << 37) - WINDOW,  # a stack
    (1 << 47) - WINDOW,  # the last user addresses of x86_64
    (1 << 48) - WINDOW,  # the last that are watched
]


def _valgrind_headers() -> Path:
    valgrind = shutil.which("valgrind")
    prefixes = [Path(valgrind).resolve().parent.parent] if valgrind else []
    for prefix in [*prefixes, Path("/usr"), Path("/usr/local")]:
        if (prefix / "include" / "valgrind" / "pub_tool_basics.h").exists():
            return prefix / "include" / "valgrind"
    pytest.skip("no Valgrind tool headers: install valgrind (RHEL: valgrind-devel)")


@pytest.fixture(scope="module")
def shadow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ctypes.CDLL]:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler: install gcc")
    arch = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine())
    if arch is None:
        pytest.skip(f"the tracer does not support {platform.machine()}")
    library = tmp_path_factory.mktemp("shadow") / "libshadow.so"
    defined = [f"-DVGA_{arch}=1", "-DVGO_linux=1", f"-DVGP_{arch}_linux=1", f"-DVGPV_{arch}_linux_vanilla=1"]
    done = subprocess.run(
        [
            *(compiler, "-std=gnu11", "-Wall", "-Wextra", "-O2", "-fno-strict-aliasing", "-shared", "-fPIC"),
            *defined,
            *("-isystem", str(_valgrind_headers()), f"-I{TRACER}", f"-I{HERE / 'c'}"),
            *(str(TRACER / "shadow.c"), str(HERE / "c" / "shadow_library.c"), "-o", str(library)),
        ],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "shadow.c" not in done.stderr, done.stderr
    loaded = ctypes.CDLL(str(library))
    word = ctypes.c_uint64
    for name in ("shadow_watch", "shadow_read", "shadow_write"):
        getattr(loaded, name).argtypes = [word, word]
    loaded.shadow_move.argtypes = [word, word, word]
    for name in ("shadow_pending", "shadow_memory"):
        getattr(loaded, name).restype = word
    loaded.window_states.argtypes = [word, word, ctypes.c_void_p]
    loaded.window_pieces.argtypes = [word, word, ctypes.c_void_p]
    loaded.window_guards.argtypes = [word, word, word, ctypes.c_void_p]
    yield loaded
    loaded.shadow_clear()


places = st.integers(0, len(WINDOWS) - 1)
offsets = st.integers(0, WINDOW - 1)
lengths = st.one_of(st.integers(1, 16), st.integers(1, WINDOW))
operations = st.one_of(
    st.tuples(st.sampled_from(["watch", "read", "write"]), places, offsets, lengths),
    st.tuples(st.just("move"), places, offsets, lengths, places, offsets),
)


def _apply(shadow: ctypes.CDLL, model: np.ndarray, operation: tuple) -> None:
    kind, place, offset, length, *to = operation
    address = WINDOWS[place] + offset
    if kind == "move":
        to_place, to_offset = to
        length = min(length, WINDOW - offset, WINDOW - to_offset)
        shadow.shadow_move(address, WINDOWS[to_place] + to_offset, length)
        moved = model[place, offset : offset + length].copy()
        model[place, offset : offset + length] = NONE
        model[to_place, to_offset : to_offset + length] = moved
        return
    length = min(length, WINDOW - offset)
    getattr(shadow, f"shadow_{kind}")(address, length)
    part = model[place, offset : offset + length]
    if kind == "watch":
        part[:] = PENDING
    else:
        part[part == PENDING] = READ if kind == "read" else WRITTEN


def _pending_near(model: np.ndarray, base: int, modulus: int) -> np.ndarray:
    """How many pending bytes lie below base + i, for each i up to a window's end and two granules more."""
    near = np.zeros(WINDOW + 4 * GRANULE, dtype=bool)
    for place, at in zip(*np.nonzero(model == PENDING), strict=True):
        distance = (WINDOWS[place] + int(at) - base) % modulus
        if distance < near.size:
            near[distance] = True
    return np.append(0, np.cumsum(near))


def _meets(below: np.ndarray, first: np.ndarray, count: int) -> np.ndarray:
    """Whether a pending byte is among so many, from each of the first ones."""
    return below[first + count] > below[first]


def _check(shadow: ctypes.CDLL, model: np.ndarray) -> None:
    assert shadow.shadow_pending() == int((model == PENDING).sum())
    states = np.empty(WINDOW, dtype=np.uint8)
    pieces = np.empty(WINDOW, dtype=np.uint64)
    guarded = np.empty(WINDOW, dtype=np.uint8)
    for place, start in enumerate(WINDOWS):
        shadow.window_states(start, WINDOW, states.ctypes.data)
        assert states.tolist() == model[place].tolist()
        shadow.window_pieces(start, WINDOW, pieces.ctypes.data)
        ends = np.append(np.flatnonzero(np.diff(model[place].astype(int))) + 1, WINDOW)
        expected = ends[np.searchsorted(ends, np.arange(WINDOW), side="right")] - np.arange(WINDOW)
        assert pieces.tolist() == expected.tolist()
        base = start // GRANULE * GRANULE
        at = start - base + np.arange(WINDOW)
        exact = _pending_near(model, base, 2**64)
        shared = _pending_near(model, base, SPAN)
        for access, reach in REACH.items():
            shadow.window_guards(start, WINDOW, access, guarded.ctypes.data)
            assert not (_meets(exact, at, access) & (guarded == 0)).any(), "an access would go unseen"
            # by its definition
            said = _meets(shared, at // GRANULE * GRANULE, GRANULE + reach)
            assert (guarded != 0).tolist() == said.tolist()


@given(st.lists(operations, min_size=1, max_size=12))
def test_states_and_guards_are_those_of_a_plain_array(shadow: ctypes.CDLL, steps: list[tuple]) -> None:
    shadow.shadow_clear()
    model = np.zeros((len(WINDOWS), WINDOW), dtype=np.uint8)
    for step in steps:
        _apply(shadow, model, step)
    _check(shadow, model)


def test_a_place_is_moved_onto_itself_with_overlap(shadow: ctypes.CDLL) -> None:
    shadow.shadow_clear()
    start = WINDOWS[1]
    shadow.shadow_watch(start, 100)
    shadow.shadow_read(start + 10, 5)
    shadow.shadow_write(start + 50, 7)
    before = np.empty(100, dtype=np.uint8)
    shadow.window_states(start, 100, before.ctypes.data)
    shadow.shadow_move(start, start + 30, 100)
    after = np.empty(130, dtype=np.uint8)
    shadow.window_states(start, 130, after.ctypes.data)
    assert after[30:].tolist() == before.tolist()
    assert after[:30].tolist() == [NONE] * 30


def test_one_access_of_the_whole_address_space(shadow: ctypes.CDLL) -> None:
    shadow.shadow_clear()
    for start in WINDOWS:
        shadow.shadow_watch(start, WINDOW)
    shadow.shadow_read(0, 2**64 - 1)
    assert shadow.shadow_pending() == 0
    states = np.empty(WINDOW, dtype=np.uint8)
    for start in WINDOWS:
        shadow.window_states(start, WINDOW, states.ctypes.data)
        assert (states == READ).all()


@pytest.mark.parametrize("array", [64 << 20, 5000])
def test_memory_is_at_most_0_3_byte_a_byte(shadow: ctypes.CDLL, array: int) -> None:
    # One large array, and many of a page and a bit each, 16 KiB apart: whole pages count for the second, too.
    shadow.shadow_clear()
    watched = 0
    for start in range(0x10000000, 0x10000000 + (64 << 20), max(array, 16384)):
        shadow.shadow_watch(start, array)
        watched += array if array > 8192 else 8192
    assert shadow.shadow_memory() <= 0.3 * watched
    shadow.shadow_clear()
    assert shadow.shadow_memory() == 0
    assert shadow.shadow_pending() == 0


def test_cleared_guards_are_silent(shadow: ctypes.CDLL) -> None:
    shadow.shadow_clear()
    for start in WINDOWS:
        shadow.shadow_watch(start, WINDOW)
    shadow.shadow_clear()
    guarded = np.empty(WINDOW + 2 * GRANULE, dtype=np.uint8)
    for start in WINDOWS:
        shadow.window_guards(start - GRANULE, guarded.size, 64, guarded.ctypes.data)
        assert not guarded.any()
