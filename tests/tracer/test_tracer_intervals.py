"""The tool's interval map against a plain array (c/test_intervals.c), under the sanitizers."""

from __future__ import annotations

import subprocess
from pathlib import Path

import core_build
import pytest

HERE = Path(__file__).resolve().parent
TRACER = HERE.parent.parent / "cbindings" / "tracer"
# The part includes Valgrind's headers for its types; it calls nothing of Valgrind's but memory functions.
PLATFORM = ["VGA_amd64=1", "VGO_linux=1", "VGP_amd64_linux=1", "VGPV_amd64_linux_vanilla=1"]
ROUNDS = 2000


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The test program, under AddressSanitizer and UndefinedBehaviorSanitizer."""
    compiler = core_build.compiler()
    headers = next((p for p in map(Path, ("/usr/include", "/usr/local/include")) if _has_headers(p)), None)
    if headers is None:
        pytest.skip("no headers of Valgrind's tools: install valgrind (RHEL: valgrind-devel)")
    made = tmp_path_factory.mktemp("intervals") / "test_intervals"
    core_build.run(
        [
            compiler,
            *("-std=gnu11", "-g", "-O1", "-Wall", "-Wextra", "-Werror", *core_build.SANITIZE),
            *(f"-D{name}" for name in PLATFORM),
            *("-isystem", str(headers / "valgrind"), "-I", str(TRACER), "-I", str(HERE / "c")),
            *(str(HERE / "c" / "test_intervals.c"), str(TRACER / "intervals.c"), "-o", str(made)),
        ]
    )
    return made


def _has_headers(folder: Path) -> bool:
    return (folder / "valgrind" / "pub_tool_basics.h").exists()


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_against_an_array(program: Path, seed: int) -> None:
    """Random intervals set, removed and looked up, in windows of the key space; memory; nothing leaks."""
    done = subprocess.run([str(program), str(seed), str(ROUNDS)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
