"""Make the golden maps, one a format version, that are missing: ``python tests/golden/make_map_golden.py``.

A golden map is never made again: it stands for the maps that users have. A new format version gets a new
name and a new case. The test is in ``tests/test_criticality.py``.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

from scr_critplugin.criticality import CriticalityMap, Variable

FOLDER = Path(__file__).resolve().parent


def _states() -> np.ndarray[Any, Any]:
    states = np.zeros((4, 5, 3), np.uint8)
    states[0] = 2
    states[:, 4] = 1
    states[3, :, 2] = 3
    return states


def _version_1() -> CriticalityMap:
    particle = np.dtype([("x", "<f8", (3,)), ("kind", "<i2")], align=True)
    return CriticalityMap(
        [
            Variable("u", _states(), "<f8"),
            Variable("spectrum", _states().T[:, ::2], ">c16", "F"),
            Variable("particles", [0, 3, 1, 2, 0], particle),
            Variable("step", 0, "<i8"),
            Variable("none", np.zeros((0, 2), np.uint8), "?"),
        ],
        {
            "engine": "dependence",
            "steps": None,
            "outputs": "app.norms",
            "union": [{"at": 3}, {"at": 6}],
        },
    )


def _version_2() -> CriticalityMap:
    magnitudes = np.where(_states() == 0, np.arange(60.0).reshape(4, 5, 3) / 7, 0.0)
    magnitudes[1, 2] = [np.nan, np.inf, 1e-45]
    return CriticalityMap(
        [
            Variable("u", _states(), "<f8", magnitudes=magnitudes),
            Variable("spectrum", _states().T, ">c16", "F", magnitudes.T),
            Variable("dt", 0, "<f4", magnitudes=np.float32(0.1)),
            Variable("none", np.zeros((0, 2), np.uint8), "<f2", magnitudes=np.zeros((0, 2))),
            Variable("unknown", [0, 1], "<f8"),
            Variable("step", 0, "<i8"),
        ],
        {"engine": "gradient", "steps": 2},
    )


def cases() -> dict[str, CriticalityMap]:
    """File name -> what it holds."""
    return {"map-v1.npz": _version_1(), "map-v2.npz": _version_2()}


def make(folder: Path) -> list[Path]:
    """Make the golden maps that `folder` lacks."""
    missing = {folder / name: m for name, m in cases().items() if not (folder / name).exists()}
    for path, m in missing.items():
        m.save(path)
    return list(missing)


if __name__ == "__main__":
    print(*make(FOLDER), sep="\n")
    sys.exit(0)
