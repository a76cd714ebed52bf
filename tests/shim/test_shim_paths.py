"""Names as text, against Python's own: property tests of the shim's path and settings modules."""

from __future__ import annotations

import ctypes
import os
import posixpath
import string
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

SHIM = Path(__file__).resolve().parents[2] / "cbindings" / "shim"
SIZE = 8192

PARTS = st.lists(st.sampled_from(["", ".", "..", "a", "b c", "..x", "x.", "...", "ü"]), max_size=12)


@pytest.fixture(scope="module")
def inner(tmp_path_factory):
    """The two modules as a library of their own."""
    library = tmp_path_factory.mktemp("paths") / "libinner.so"
    sources = [str(SHIM / name) for name in ("path.c", "settings.c")]
    subprocess.run(["cc", "-std=c11", "-shared", "-fPIC", "-O1", *sources, "-o", str(library)], check=True)
    loaded = ctypes.CDLL(str(library))
    loaded.shim_path_absolute.restype = loaded.shim_path_join.restype = ctypes.c_bool
    loaded.shim_path_below.restype = loaded.shim_settings_expand.restype = ctypes.c_char_p
    return loaded


def absolute(inner, name, size=SIZE):
    buffer = ctypes.create_string_buffer(SIZE)
    fits = inner.shim_path_absolute(os.fsencode(name), buffer, ctypes.c_size_t(size))
    return os.fsdecode(buffer.value) if fits else None


@given(parts=PARTS, rooted=st.booleans())
def test_absolute_names_are_as_pythons(inner, parts, rooted):
    name = ("/" if rooted else "") + "/".join(parts)
    expected = posixpath.normpath(posixpath.join(str(Path.cwd()), name))
    assert absolute(inner, name) == "/" + expected.lstrip("/")


def test_names_that_do_not_fit_are_refused(inner):
    assert absolute(inner, "/" + "x" * 10, 11) is None
    assert absolute(inner, "/" + "x" * 10, 12) == "/" + "x" * 10
    assert absolute(inner, "x" * 8190) is None


@pytest.mark.parametrize(
    "folder, path, expected",
    [
        ("/p", "/p/a/b", b"a/b"),
        ("/p/", "/p/a", b"a"),
        ("/", "/a", b"a"),
        ("/p", "/p", None),
        ("/p", "/p/", None),
        ("/p", "/px/a", None),
        ("/p/q", "/p/a", None),
    ],
)
def test_below_the_prefix(inner, folder, path, expected):
    assert inner.shim_path_below(folder.encode(), path.encode()) == expected


NAMES = st.text(string.ascii_letters + "_", min_size=1, max_size=4)
TEXT = st.text(string.ascii_letters + string.digits + "_{}$ /.", max_size=30)


@given(text=TEXT)
def test_text_without_variables_is_left_alone(inner, text):
    plain = text.replace("$", "")
    assert inner.shim_settings_expand(plain.encode()) == plain.encode()


@given(before=TEXT, name=NAMES, braced=st.booleans(), value=st.text(string.printable, max_size=20))
def test_variables_are_replaced_once(inner, before, name, braced, value):
    before = before.replace("$", "")
    value = value.replace("\0", "")
    variable = f"SHIM_TEST_{name}"
    os.environ[variable] = value
    try:
        text = f"{before}${{{variable}}}!" if braced else f"{before}${variable}!"
        assert inner.shim_settings_expand(text.encode()) == f"{before}{value}!".encode()
    finally:
        del os.environ[variable]


@pytest.mark.parametrize("text", ["$", "${", "${A", "a$", "$ {A}", "${A B}", "$$"])
def test_what_is_no_variable_stays(inner, text):
    assert inner.shim_settings_expand(text.encode()) == text.encode()


def test_a_variable_without_a_name_is_empty_as_in_scr(inner):
    assert inner.shim_settings_expand(b"a${}b") == b"ab"
