"""`scr_crit demo`, as `make demo` runs it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCR_CRIT = str(Path(sys.executable).with_name("scr_crit"))


@pytest.mark.usefixtures("mpicc", "mpiexec")
def test_demo_json(tmp_path: Path) -> None:
    ran = subprocess.run(
        [SCR_CRIT, "demo", "--json", "--keep", str(tmp_path / "kept")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    report = json.loads(ran.stdout)
    assert report["app"] == "heat3d" and report["ranks"] == 4
    assert report["restart_identical"] is True
    assert set(report["modes"]) == {"cache", "bypass"}
    assert (report["bt_uncritical"], report["bt_elements"]) == (1500, 10140)
    # Measured from the files, not from the report: the prefix really is that much smaller.
    for mode in report["modes"]:
        files = list((tmp_path / "kept" / mode / "prefix").glob("ckpt.*/heat.*"))
        assert sum(path.stat().st_size for path in files) == report["modes"][mode]["bytes_packed"]
    assert 0.2 < report["bytes_packed"] / report["bytes_whole"] < 0.45


def test_demo_keeps_out_of_a_folder_in_use(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("precious")
    ran = subprocess.run(
        [SCR_CRIT, "demo", "--keep", str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 1 and "not empty" in ran.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
