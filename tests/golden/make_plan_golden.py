"""Make the stored plans of the current format version: ``python tests/golden/make_plan_golden.py FOLDER``.

Run once per format version; what it wrote for an older one is never made again. Each ``plan-vN-NAME.json``
holds the plan in words and the critical runs of some files.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import numpy as np

from scr_critplugin import packed
from scr_critplugin.criticality import CriticalityMap
from scr_critplugin.layout import REST, Array, Bytes, FileLayout, Guard, IntAt, Layout, Record
from scr_critplugin.plan import Evidence, Plan, compile_plan

Cases = list[tuple[int, bytes, int]]
"""Entry, how the file begins, and how many zero bytes follow."""


def interior(shape: tuple[int, ...]) -> np.ndarray:
    mask = np.zeros(shape, bool)
    mask[tuple(slice(2, extent - 2) for extent in shape)] = True
    return mask


def counts() -> tuple[Plan, Cases]:
    """Every kind of section and number, guards, bounds, evidence, two entries."""
    noise = np.random.default_rng(3).random(64) < 0.5
    masks = {
        "work": noise,
        "dead": np.zeros((3, 5), bool),
        "p.x": np.zeros((4, 3), bool),
        "p.m": np.ones(4, bool),
    }
    dtypes = {"u": "f8", "work": "f4", "dead": "i4", "p.x": "f8", "p.m": "f4"}
    provenance = {"engine": "structural", "program": "golden"}
    maps = [
        CriticalityMap.from_masks({"u": interior(shape), **masks}, dtypes, provenance=provenance)
        for shape in ((6, 7), (8, 10))
    ]
    record = np.dtype([("x", "<f8", (3,)), ("m", "<f4"), ("pad", "V4")])
    lengths = (IntAt(8, np.dtype("<i4")), IntAt(12, np.dtype(">i2"), "head", mul=2, add=-1))
    heat = FileLayout(
        "{dataset}/heat_{rank}.dat",
        (
            Bytes("head", 24),
            Array("u", np.dtype("<f8"), lengths, "F", 2),
            Array("work", np.dtype(">f4"), (64,)),
            Record("particles", record, REST, fields={"x": "p.x", "m": "p.m"}),
            Array("dead", np.dtype("<i4"), (3, 5)),
        ),
        guards=(Guard(0, b"HEATV001"),),
        min_size=64,
        max_size=10**6,
    )
    layout = Layout((heat, FileLayout("**/log.[0-9]*", (Bytes("all", REST),))))
    plan = compile_plan(maps, layout, evidence={"u": Evidence("observed", 3, 2), "dead": "proven"})
    head = b"HEATV001" + (7).to_bytes(4, "little") + (4).to_bytes(2, "big") + bytes(10)
    return plan, [(0, head, 2 * 7 * 7 * 8 + 64 * 4 + 5 * 32 + 60), (1, b"", 33)]


def npz() -> tuple[Plan, Cases]:
    """Checksum fields."""
    with tempfile.TemporaryDirectory() as folder:
        sample = Path(folder) / "sample.npz"
        np.savez(sample, u=np.zeros((6, 7)), n=np.arange(3))
        layout = Layout.from_npz(sample, pattern="state.npz", names={"u": "u"})
        plan = compile_plan(CriticalityMap.from_masks({"u": interior((6, 7))}, "f8"), layout)
        return plan, [(0, sample.read_bytes(), 0)]


def store(folder: Path, name: str, plan: Plan, cases: Cases) -> None:
    stem = folder / f"plan-v{plan.format}-{name}"
    plan.save(stem.with_suffix(".plan"))
    files = []
    for entry, begin, zeros in cases:
        with tempfile.NamedTemporaryFile() as file:
            file.write(begin + bytes(zeros))
            file.flush()
            runs = packed.runs(file.name, plan, entry=entry).tolist()
        files.append({"entry": entry, "content": begin.hex(), "zeros": zeros, "runs": runs})
    stem.with_suffix(".json").write_text(json.dumps({"plan": plan.to_json_dict(), "files": files}, indent=1))


if __name__ == "__main__":
    for made in (counts, npz):
        store(Path(sys.argv[1]), made.__name__, *made())
