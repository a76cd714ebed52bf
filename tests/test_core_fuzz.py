"""The fuzz targets ``tests/c/fuzz_*.c`` over their corpora and some thousand mutations, with sanitizers.

A crash leaves its input where the message says: commit it below ``tests/c/corpus/`` by a telling name, then
mend the reader.
Further seeds by hand: ``SCR_CRIT_FUZZ_SEED=7 SCR_CRIT_FUZZ_COUNT=1000000 pytest tests/test_core_fuzz.py``.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import core_build
import pytest

TARGETS = sorted(
    path.stem.removeprefix("fuzz_")
    for path in core_build.C_TESTS.glob("fuzz_*.c")
    if path.stem != "fuzz_main"
)
GOLDEN = {"packed": "packed-*.scrp", "plan": "plan-*.plan"}
# Taken at import: the tests run without any SCR_* of the shell.
SEED = os.environ.get("SCR_CRIT_FUZZ_SEED", "1")
COUNT = os.environ.get("SCR_CRIT_FUZZ_COUNT", "15000")


def corpus(target: str) -> list[Path]:
    """Golden files and inputs that were hard once."""
    golden = sorted((core_build.ROOT / "tests" / "golden").glob(GOLDEN[target]))
    return golden + sorted((core_build.C_TESTS / "corpus" / target).iterdir())


@pytest.mark.parametrize("target", TARGETS)
def test_readers_survive(target: str, sanitized: core_build.Sanitized, tmp_path: Path) -> None:
    sources = [core_build.C_TESTS / f"fuzz_{target}.c", core_build.C_TESTS / "fuzz_main.c"]
    program = sanitized.build(f"fuzz_{target}", sources)
    files = corpus(target)
    assert len(files) >= 10
    crash = sanitized.folder / f"crash-{target}"
    done = subprocess.run(
        [str(program), SEED, COUNT, str(crash), *map(str, files)],
        capture_output=True,
        text=True,
        env=core_build.environment(tmp_path),
    )
    assert done.returncode == 0, f"the input is in {crash}\n{done.stdout}{done.stderr}"
    assert f"{len(files)} files and {COUNT} mutations survived" in done.stdout
