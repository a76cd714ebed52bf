"""The ranks' maps of a decomposed stencil and a decomposed CG are, put together, exactly the serial ones."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from scr_critplugin.criticality import CriticalityMap

HERE = Path(__file__).resolve().parent
CRITICAL = 0

STENCIL = [
    (ranks, program, output, steps)
    for ranks in (1, 2, 3, 4)
    for program in ("in_place", "functional")
    for output, steps in (("warmth", None), ("corner", 3))
]
CG = [
    (ranks, program, output, steps)
    for ranks in (1, 3, 4)
    for program in ("objects", "buffers")
    for output, steps in (("residual", None), ("part", None), ("part", 2))
]


@pytest.fixture(scope="session")
def maps_of(mpiexec: list[str]) -> Any:
    """Run a program of this folder on several ranks; its report."""
    pytest.importorskip("mpi4py", reason="no mpi4py: pip install 'scr_critplugin[mpi]'")

    def run(ranks: int, script: str, program: str, output: str, steps: int | None) -> Any:
        options = [
            "--program",
            program,
            "--output",
            output,
            *([] if steps is None else ["--steps", str(steps)]),
        ]
        command = [*mpiexec, "-n", str(ranks), sys.executable, str(HERE / script), *options]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
        report = json.loads(done.stdout)
        assert len(report["critical_ghosts"]) == ranks, "mpi4py belongs to another MPI than mpiexec"
        return report

    return run


@pytest.mark.parametrize(("ranks", "program", "output", "steps"), STENCIL)
def test_stencil(maps_of: Any, ranks: int, program: str, output: str, steps: int | None) -> None:
    report = maps_of(ranks, "stencil.py", program, output, steps)
    assert report["ranks"] == report["serial"]
    assert report["critical_ghosts"] == [0] * ranks
    # Of 11 by 13 cells the corners for any number of steps; else what is too far from the corner looked at.
    assert report["uncritical"]["u"] == {"warmth": 4, "corner": 109}[output]
    assert report["uncritical"]["next"] == 11 * 13
    assert report["poison"] is not None


@pytest.mark.parametrize(("ranks", "program", "output", "steps"), CG)
def test_conjugate_gradients(maps_of: Any, ranks: int, program: str, output: str, steps: int | None) -> None:
    report = maps_of(ranks, "conjugate_gradients.py", program, output, steps)
    critical = {
        side: {name: [s == CRITICAL for s in states] for name, states in report[side].items()}
        for side in ("ranks", "serial")
    }
    assert critical["ranks"] == critical["serial"]
    assert report["uncritical"] == {"x": {"residual": 22, "part": 15}[output], "r": 0, "p": 0, "q": 22}


def test_the_command_line_profiles_all_ranks_and_merges(mpiexec: list[str], tmp_path: Path) -> None:
    pytest.importorskip("mpi4py", reason="no mpi4py: pip install 'scr_critplugin[mpi]'")
    (tmp_path / "stencil.py").write_text((HERE / "stencil.py").read_text())
    (tmp_path / "assembly.py").write_text((HERE / "assembly.py").read_text())
    scr_crit = str(Path(sys.executable).with_name("scr_crit"))
    for command in (
        [*mpiexec, "-n", "4", scr_crit, "profile", "stencil.py:setup", "-o", "stencil.{rank}.npz"],
        [scr_crit, "merge", "stencil.*.npz", "-o", "stencil.map.npz"],
    ):
        ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stdout + ran.stderr
    merged = CriticalityMap.load(tmp_path / "stencil.map.npz")
    # Blocks of 6 by 6 cells, with a ghost all round that nothing needs.
    assert merged["u"].shape == (8, 8)
    assert merged["u"].critical[1:-1, 1:-1].all() and merged["u"].critical.sum() == 36
    assert not merged["next"].critical.any()
