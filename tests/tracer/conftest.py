"""Fixtures of the tracer's tests: the tool, ready to run programs, and traced runs of small C programs.

The tool under test is that of `valgrind_lib`. Programs are linked with the SCR under test (`scr_root`).
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))  # for trace_reader and the like; pytest runs in importlib mode

import trace_reader  # noqa: E402
from tracer_tool import Tool, build_tool, scr_environment, valgrind_program  # noqa: E402

# Long enough for a loaded machine: it only turns a hang into a failure.
HANG = 300


@pytest.fixture(scope="session")
def built_tool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The build folder of the tool, built from the source tree."""
    valgrind_program()
    folder = tmp_path_factory.mktemp("tracer")
    said = build_tool(folder).stdout
    if not list(folder.glob("scr_crit-*")):
        pytest.skip(f"the tracer cannot be built here: {said}")
    return folder


@pytest.fixture(scope="session")
def tool(valgrind_lib: Path) -> Tool:
    """The tool under test."""
    return Tool(valgrind_program(), valgrind_lib)


@pytest.fixture(scope="session")
def compile_program(
    tmp_path_factory: pytest.TempPathFactory, mpicc: str, scr_root: Path
) -> Callable[..., Path]:
    """Compile a C file, or C text, with SCR; static: with libscr.a. Called with a source and options."""

    def compile_(source: str | Path, *options: str, static: bool = False) -> Path:
        folder = tmp_path_factory.mktemp("program")
        file = folder / "program.c" if isinstance(source, str) else source
        if isinstance(source, str):
            file.write_text(source)
        lib = scr_root / "lib"
        libscr = [str(lib / "libscr.a")] if static else [f"-L{lib}", "-lscr", f"-Wl,-rpath,{lib}"]
        command = [mpicc, "-g", "-o", str(folder / "program"), str(file), f"-I{scr_root / 'include'}"]
        done = subprocess.run([*command, *options, *libscr, "-lm"], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return folder / "program"

    return compile_


@dataclass(frozen=True)
class Traced:
    """A traced run that ended."""

    status: int
    stdout: str
    stderr: str
    prefix: Path

    def trace(self) -> trace_reader.Trace:
        """Its trace; fails when there is no whole one."""
        assert Path(f"{self.prefix}.trace").exists(), self.stderr
        return trace_reader.read_trace(self.prefix)


@pytest.fixture
def run_traced(tool: Tool, tmp_path: Path) -> Callable[..., Traced]:
    """Run a program of one rank under the tool, in the test's folder. Called with program and arguments."""
    runs = 0

    def run(
        program: Path,
        *arguments: str,
        options: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        status: int | None = 0,
    ) -> Traced:
        nonlocal runs
        prefix = tmp_path / f"trace{runs}"
        runs += 1
        done = subprocess.run(
            [*tool.command(prefix, *options), str(program), *arguments],
            env={**tool.environment(), **scr_environment(tmp_path), **(environment or {})},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=HANG,
        )
        assert status is None or done.returncode == status, done.stdout + done.stderr
        return Traced(done.returncode, done.stdout, done.stderr, prefix)

    return run
