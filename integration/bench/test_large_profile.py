"""The benchmark of large profiles runs, and both modes agree on a stencil whose answer is known."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

RUN = Path(__file__).with_name("large_profile.py")


@pytest.mark.parametrize("program", ["in place", "functional"])
def test_both_modes_report_the_stencil(program: str, tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    words = ["--elements", "1e5", "--tiles", "8", "--program", program, "--json", str(figures)]
    ran = subprocess.run([sys.executable, str(RUN), *words], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    found = json.loads(figures.read_text())
    extent = found["extent"]
    assert extent**3 >= 1e5 > (extent - 1) ** 3
    for mode in ("full", "tiles"):
        variables = found[mode]["variables"]
        assert variables["u"]["elements"] == extent**3
        assert variables["u"]["critical"] == (extent - 2) ** 3
        assert variables["u"]["uncritical"][0] == "u[0, :, :]"
        assert variables["work"]["critical"] == 0
        assert found[mode]["poison"] == ["nan", "1e34", "noise"]
        assert found[mode]["peak_bytes"] > found[mode]["state_bytes"] > 0
    assert found["full"]["variables"] == found["tiles"]["variables"]
    assert found["full"]["confidence"] is None
    assert f"u: 8 fresh random tiles of {((extent - 2) // 8) ** 3}" in found["tiles"]["confidence"][1]
    assert "uncritical u[0, :, :]" in ran.stdout
    assert "peak" in ran.stdout
