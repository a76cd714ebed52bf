"""What a C user finds in the installed package: header, libraries, pkg-config, module template, manual."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
#include <scr_crit.h>
#include <stdio.h>
#include <string.h>
int main(void)
{
    printf("%s %s\\n", SCR_CRIT_VERSION, scr_crit_version());
    return strcmp(SCR_CRIT_VERSION, scr_crit_version()) != 0;
}
"""


@pytest.mark.parametrize("static", [False, True])
def test_a_c_program_builds_by_pkg_config(package_lib: Path, tmp_path: Path, static: bool) -> None:
    if shutil.which("pkg-config") is None or shutil.which("cc") is None:
        pytest.skip("needs pkg-config and cc: install pkg-config and a C compiler")
    environment = {**os.environ, "PKG_CONFIG_PATH": str(package_lib / "pkgconfig")}
    words = subprocess.run(
        ["pkg-config", "--cflags", "--libs", *(["--static"] if static else []), "scr_crit"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    if static:
        words = [str(package_lib / "libscr_crit.a") if word == "-lscr_crit" else word for word in words]
    (tmp_path / "user.c").write_text(PROGRAM)
    subprocess.run(
        [
            "cc",
            "-std=c99",
            "-pedantic",
            "-Wall",
            "-Werror",
            "user.c",
            "-o",
            "user",
            *words,
            f"-Wl,-rpath,{package_lib}",
        ],
        cwd=tmp_path,
        check=True,
    )
    assert subprocess.run([tmp_path / "user"], check=True, capture_output=True).stdout


def test_the_header_serves_cxx(package_lib: Path, tmp_path: Path) -> None:
    if shutil.which("c++") is None:
        pytest.skip("needs a C++ compiler: install g++")
    (tmp_path / "user.cpp").write_text(
        "#include <scr_crit.h>\nint main() { return scr_crit_version() == nullptr; }\n"
    )
    subprocess.run(
        [
            "c++",
            "-std=c++11",
            "-pedantic",
            "-Wall",
            "-Werror",
            f"-I{package_lib.parent / 'include'}",
            "user.cpp",
            f"-L{package_lib}",
            "-lscr_crit",
            f"-Wl,-rpath,{package_lib}",
            "-o",
            "user",
        ],
        cwd=tmp_path,
        check=True,
    )
    subprocess.run([tmp_path / "user"], check=True)


def test_pkg_config_names_the_shims(package_lib: Path) -> None:
    if shutil.which("pkg-config") is None:
        pytest.skip("needs pkg-config")
    environment = {**os.environ, "PKG_CONFIG_PATH": str(package_lib / "pkgconfig")}
    for variable in ("shim", "wrap", "wrap_options"):
        path = subprocess.run(
            ["pkg-config", f"--variable={variable}", "scr_crit"],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        assert Path(path).is_file()


def test_no_library_needs_mpi_or_scr(package_lib: Path) -> None:
    if shutil.which("readelf") is None:
        pytest.skip("needs readelf: install binutils")
    for library in package_lib.glob("*.so"):
        needed = subprocess.run(["readelf", "-d", library], capture_output=True, text=True, check=True).stdout
        lines = [line for line in needed.splitlines() if "NEEDED" in line]
        assert lines and not any(word in line for line in lines for word in ("mpi", "scr", "blosc"))


def test_module_template_and_manual_are_installed(package_lib: Path) -> None:
    module = package_lib.parent / "share" / "modulefiles" / "scr_crit"
    assert module.read_text().startswith("#%Module1.0")
    assert (Path(sys.prefix) / "share" / "man" / "man1" / "scr_crit.1").is_file()
