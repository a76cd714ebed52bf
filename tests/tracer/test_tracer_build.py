"""The tracer's build: what is built where Valgrind is, what is said where it is not, what is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tracer_tool import TRACER, Tool, build_tool, valgrind_program

ROOT = TRACER.parent.parent
PACKAGES = ("Debian", "RHEL", "Spack", "valgrind-devel", "SCR_CRIT_VALGRIND_ROOT")


def run(tool: Tool, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, env=tool.environment(), capture_output=True, text=True)


def test_the_tool_runs_a_program(tool: Tool, tmp_path: Path) -> None:
    prefix = tmp_path / "trace"
    done = run(tool, *tool.command(prefix), "sh", "-c", "exit 7")
    assert done.returncode == 7, done.stderr
    lines = Path(f"{prefix}.trace").read_text().splitlines()
    assert lines[0] == "scr_crit-trace 1"
    assert lines[-1] == "end"
    assert "window end 7 0" in lines


def test_the_tool_tells_what_it_takes(tool: Tool) -> None:
    done = run(tool, tool.valgrind, "--tool=scr_crit", "--help")
    assert done.returncode == 0
    for option in ("--trace-out=", "--dump=", "--until-flat="):
        assert option in done.stdout


def test_without_a_place_for_the_trace_nothing_runs(tool: Tool) -> None:
    done = run(tool, tool.valgrind, "--tool=scr_crit", "echo", "ran")
    assert done.returncode != 0
    assert "--trace-out" in done.stderr
    assert "ran" not in done.stdout


@pytest.mark.parametrize("option", ["--until-flat=-1", "--until-flat=some", "--frobnicate"])
def test_bad_options_are_refused(tool: Tool, tmp_path: Path, option: str) -> None:
    done = run(tool, *tool.command(tmp_path / "trace", option), "echo", "ran")
    assert done.returncode != 0
    assert option.split("=")[0] in done.stderr
    assert "ran" not in done.stdout


def test_the_installed_folder(built_tool: Path, tmp_path: Path) -> None:
    cmake = shutil.which("cmake")
    assert cmake is not None  # built_tool needs it
    done = subprocess.run(
        [cmake, "--install", str(built_tool), "--prefix", str(tmp_path)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    (folder,) = tmp_path.glob("lib*/**/scr_crit/valgrind")
    names = {file.name.replace("amd64", "ARCH").replace("arm64", "ARCH") for file in folder.iterdir()}
    assert names == {"scr_crit-ARCH-linux", "vgpreload_scr_crit-ARCH-linux.so", "LICENSE"}
    assert "GNU GENERAL PUBLIC LICENSE" in (folder / "LICENSE").read_text()


def test_without_valgrind_a_message_names_the_packages(tmp_path: Path) -> None:
    said = build_tool(tmp_path / "build", f"-DSCR_CRIT_VALGRIND_ROOT={tmp_path}").stdout
    said = " ".join(said.split())
    assert "Access tracer: left out" in said
    for word in PACKAGES:
        assert word in said
    assert "pub_tool_basics.h" in said and "libcoregrind" in said
    assert not list((tmp_path / "build").glob("scr_crit-*"))


def test_the_valgrind_on_the_path_comes_before_the_systems(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cmake = shutil.which("cmake")
    if cmake is None:
        pytest.skip("no cmake: install it")
    names = ["bin/valgrind", "include/valgrind/pub_tool_basics.h"]
    for platform in ("amd64-linux", "arm64-linux"):
        names += [f"lib/valgrind/libcoregrind-{platform}.a", f"libexec/valgrind/none-{platform}"]
    prefix = (tmp_path / "prefix").resolve()
    for name in names:
        (prefix / name).parent.mkdir(parents=True, exist_ok=True)
        (prefix / name).touch(mode=0o755)
    monkeypatch.setenv("PATH", f"{prefix / 'bin'}:{os.environ['PATH']}")
    done = subprocess.run(
        [cmake, "-S", str(TRACER), "-B", str(tmp_path / "build")], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert f"Valgrind's libraries in {prefix / 'lib' / 'valgrind'}" in " ".join(done.stdout.split())
    cache = (tmp_path / "build" / "CMakeCache.txt").read_text()
    assert f"VALGRIND_INCLUDE_DIR:PATH={prefix / 'include' / 'valgrind'}\n" in cache


def test_without_valgrind_the_rest_is_configured(tmp_path: Path) -> None:
    cmake = shutil.which("cmake")
    if cmake is None:
        pytest.skip("no cmake: install it")
    done = subprocess.run(
        [cmake, "-S", str(ROOT), "-B", str(tmp_path / "build"), f"-DSCR_CRIT_VALGRIND_ROOT={tmp_path}"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "Access tracer: left out" in done.stdout
    targets = subprocess.run(
        [cmake, "--build", str(tmp_path / "build"), "--target", "help"], capture_output=True, text=True
    ).stdout
    assert "scr_crit_shim" in targets
    assert "scr_crit_tool" not in targets


def test_the_package_brings_the_tool(package_lib: Path) -> None:
    valgrind_program()
    folder = package_lib / "valgrind"
    if not folder.is_dir():
        pytest.skip(f"{folder} is missing: install the package where Valgrind's headers are")
    assert list(folder.glob("scr_crit-*-linux")) and list(folder.glob("vgpreload_scr_crit-*-linux.so"))
    assert (folder / "LICENSE").exists()
