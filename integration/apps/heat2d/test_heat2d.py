"""The map of `heat2d`, its proof by brute force, and the session that the documentation shows."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from scr_critplugin.criticality import CriticalityMap, ElementState

HERE = Path(__file__).resolve().parent
DOCUMENT = HERE.parents[2] / "docs" / "profile.md"
SCR_CRIT = str(Path(sys.executable).with_name("scr_crit"))


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, CriticalityMap]:
    """What the command of the documentation prints, and the map that it writes."""
    folder = tmp_path_factory.mktemp("heat2d")
    (folder / "heat2d.py").write_text((HERE / "heat2d.py").read_text())
    ran = subprocess.run(
        [SCR_CRIT, "profile", "heat2d.py:setup", "-o", "heat2d.map.npz"],
        cwd=folder,
        env={**os.environ, "COLUMNS": "100"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout, CriticalityMap.load(folder / "heat2d.map.npz")


@pytest.fixture(scope="module")
def program() -> ModuleType:
    """The program as a module."""
    spec = importlib.util.spec_from_file_location("heat2d", HERE / "heat2d.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_documentation_shows_what_is_printed(session: tuple[str, CriticalityMap]) -> None:
    printed, _ = session
    _, after = DOCUMENT.read_text().split("$ scr_crit profile heat2d.py:setup -o heat2d.map.npz\n")
    shown, _, _ = after.partition("```")
    assert lines_of(shown) == lines_of(printed)


def lines_of(text: str) -> list[str]:
    """Without the number of primitives, which another NumPy may change."""
    return [re.sub(r"\d+ primitives", "primitives", line).rstrip() for line in text.splitlines()]


def test_ghosts_and_work_are_not_needed_and_the_rare_source_is(session: tuple[str, CriticalityMap]) -> None:
    _, found = session
    inside = np.zeros(found["u"].shape, bool)
    inside[1:-1, 1:-1] = True
    assert np.array_equal(found["u"].critical, inside)
    assert np.array_equal(found["source"].critical, inside)
    assert set(found["u"].states[~inside]) == {ElementState.DEAD}
    assert not found["work"].critical.any() and not found["residual"].critical.any()
    assert found["step"].critical.all()


@pytest.mark.parametrize("at", [0, 1, 57, 99, 100])
def test_restart_without_what_is_dropped_ends_the_same(
    session: tuple[str, CriticalityMap], program: ModuleType, at: int
) -> None:
    """From checkpoints other than the profiled one, past the next step that heats."""
    _, found = session
    step, state, output = program.setup()
    for _ in range(at):
        step(state)
    restarted = {name: np.copy(value) if np.ndim(value) else value for name, value in state.items()}
    for name in ("u", "work", "source", "residual"):
        restarted[name][found[name].uncritical] = np.nan
    for _ in range(210):
        step(state)
        step(restarted)
    assert np.array_equal(output(restarted), output(state))
