"""The benchmark runs and reports every pattern; what it measures is not judged here."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

RUN = Path(__file__).with_name("run.py")
PROFILE_COST = Path(__file__).with_name("profile_cost.py")


def test_bench_reports_every_pattern(tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    words = ["--mib", "1", "--repeats", "1", "--folder", str(tmp_path), "--json", str(figures)]
    ran = subprocess.run([sys.executable, str(RUN), *words], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    seconds = json.loads(figures.read_text())["seconds"]
    assert set(seconds) == {"padded boxes", "ghosted blocks", "every second", "random 15 %"}
    assert abs(seconds["every second"]["kept_percent"] - 50) < 0.1
    assert all({"limit", "whole copy", "pack", "unpack", "numpy"} <= set(row) for row in seconds.values())
    assert all(name in ran.stdout for name in ("pattern", "limit", "pack"))
    assert [path.name for path in tmp_path.iterdir()] == ["figures.json"]


def test_profile_cost_reports_the_kernels_asked_for(tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    words = ["--class", "S", "--kernel", "MG", "--kernel", "FT", "--repeats", "1", "--json", str(figures)]
    ran = subprocess.run(
        [sys.executable, str(PROFILE_COST), *words], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    seconds = json.loads(figures.read_text())["seconds"]
    assert list(seconds) == ["S"]
    assert list(seconds["S"]) == ["MG", "FT"]
    for row in seconds["S"].values():
        assert set(row) - {"in_place_over_functional"} == {
            "step",
            "record",
            "sweep",
            "profile",
            "percent_of_run",
        }
        assert 0 < row["step"] < row["profile"]
        assert row["percent_of_run"] == 100 * row["profile"] / (1000 * row["step"])
    assert seconds["S"]["MG"]["in_place_over_functional"] > 0
    assert "in_place_over_functional" not in seconds["S"]["FT"]
    assert "of 1000 steps" in ran.stdout
    assert "MG in place" in ran.stdout
