"""The benchmark runs and reports every pattern; what it measures is not judged here."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

RUN = Path(__file__).with_name("run.py")


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
