"""The shim in processes that have no SCR or find one in unusual ways."""

from __future__ import annotations

import os
import re
import subprocess
import sys


def run(command, **environment):
    settings = {**os.environ, **{name: str(value) for name, value in environment.items()}}
    return subprocess.run(
        [str(word) for word in command], env=settings, capture_output=True, text=True, check=False
    )


def test_helper_programs_are_not_disturbed(shim_lib):
    for command in (
        ["true"],
        ["sh", "-c", "echo said; sh -c 'exit 3'"],
        [sys.executable, "-c", "print('said')"],
    ):
        plain, preloaded = (
            run(command),
            run(command, LD_PRELOAD=shim_lib, SCR_CRIT_PLUGIN="1", SCR_CRIT_DEBUG="3"),
        )
        assert (preloaded.returncode, preloaded.stdout, preloaded.stderr) == (
            plain.returncode,
            plain.stdout,
            plain.stderr,
        )


def test_it_needs_neither_mpi_nor_scr(shim_lib):
    needed = run(["ldd", shim_lib]).stdout
    assert "libc." in needed
    assert "mpi" not in needed
    assert "libscr.so" not in needed
    assert "not found" not in needed


def test_only_the_documented_names_are_shown(shim_lib):
    shown = {line.split()[-1] for line in run(["nm", "-D", "--defined-only", shim_lib]).stdout.splitlines()}
    documented = {
        "scr_crit_hooks_register",
        "scr_crit_hooks_unregister",
        "scr_crit_shim_libscr",
        "scr_crit_shim_libscr_error",
        "scr_crit_shim_get_totals",
    }
    assert {name for name in shown if not name.startswith("SCR_")} == documented


def test_the_archive_keeps_its_inner_names_to_itself(wrap_lib):
    shown = [
        line.split()[-1]
        for line in run(["nm", "-g", "--defined-only", wrap_lib]).stdout.splitlines()
        if len(line.split()) == 3
    ]
    assert all(name.startswith(("__wrap_SCR_", "scr_crit_")) for name in shown)
    assert "__wrap_SCR_Route_file" in shown


FIND = """
import ctypes, sys
shim = ctypes.CDLL(sys.argv[1])
shim.scr_crit_shim_libscr.restype = shim.scr_crit_shim_libscr_error.restype = ctypes.c_char_p
if len(sys.argv) > 2:
    ctypes.CDLL(sys.argv[2])
print(shim.scr_crit_shim_libscr().decode())
print(shim.scr_crit_shim_libscr_error().decode())
print(shim.SCR_Init() if not shim.scr_crit_shim_libscr() else "")
"""


def find(shim_lib, *arguments, **environment):
    ended = run([sys.executable, "-c", FIND, shim_lib, *arguments], **environment)
    assert ended.returncode == 0, ended.stderr
    return [*ended.stdout.split("\n")[:3], ended.stderr]


def test_libscr_in_scr_root(shim_lib, scr_root):
    path, error, _, _ = find(shim_lib, SCR_ROOT=scr_root)
    assert os.path.realpath(path) == os.path.realpath(scr_root / "lib" / "libscr.so")
    assert error == ""


def test_libscr_in_lib64(shim_lib, scr_root, tmp_path):
    (tmp_path / "lib64").symlink_to(scr_root / "lib")
    path, _, _, _ = find(shim_lib, SCR_ROOT=tmp_path)
    assert path == str(tmp_path / "lib64" / "libscr.so")


def test_libscr_found_by_the_loader(shim_lib, scr_root):
    path, _, _, _ = find(shim_lib, LD_LIBRARY_PATH=scr_root / "lib", SCR_ROOT="")
    assert os.path.realpath(path) == os.path.realpath(scr_root / "lib" / "libscr.so")


def test_a_libscr_that_is_loaded_already_comes_first(shim_lib, scr_root, tmp_path):
    """Two of them would have two states."""
    library = scr_root / "lib" / "libscr.so"
    path, _, _, _ = find(shim_lib, library, SCR_ROOT=tmp_path)
    assert os.path.realpath(path) == os.path.realpath(library)


def test_without_libscr_calls_fail_and_say_why(shim_lib, tmp_path):
    path, error, status, stderr = find(shim_lib, SCR_ROOT=tmp_path)
    assert path == ""
    assert f"{tmp_path}/lib/libscr.so" in error
    assert f"{tmp_path}/lib64/libscr.so" in error
    assert status == "1"
    assert "SCR_CRIT v" in stderr
    assert "SCR_Init cannot be called" in stderr


def test_our_declarations_agree_with_scrs_header(scr_root, package_lib, tmp_path):
    """Both headers in one unit: the compiler refuses whatever differs."""
    (tmp_path / "both.c").write_text(
        "#include <scr.h>\n#include <scr_api.h>\n"
        '_Static_assert(SCR_SUCCESS == SCR_API_SUCCESS, "");\n'
        '_Static_assert(SCR_MAX_FILENAME == SCR_API_MAX_FILENAME, "");\n'
        '_Static_assert(SCR_FLAG_NONE == SCR_API_FLAG_NONE, "");\n'
        '_Static_assert(SCR_FLAG_CHECKPOINT == SCR_API_FLAG_CHECKPOINT, "");\n'
        '_Static_assert(SCR_FLAG_OUTPUT == SCR_API_FLAG_OUTPUT, "");\n'
    )
    checked = run(
        [
            "cc",
            "-std=c11",
            "-Wall",
            "-Werror",
            "-fsyntax-only",
            f"-I{scr_root / 'include'}",
            f"-I{package_lib.parent / 'include'}",
            tmp_path / "both.c",
        ]
    )
    assert checked.returncode == 0, checked.stderr


def test_every_function_of_scrs_header_is_wrapped(scr_root, shim_lib):
    header = (scr_root / "include" / "scr.h").read_text()
    declared = set(
        re.findall(r"\b(SCR_[A-Z][a-z_]*)\s*\(", re.sub(r"/\*.*?\*/", "", header, flags=re.DOTALL))
    )
    shown = run(["nm", "-D", "--defined-only", shim_lib]).stdout
    assert declared - {name for name in declared if f" {name}\n" in shown} == set()
    assert len(declared) == 18
