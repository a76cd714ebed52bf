"""Time packing and expanding against plain copies, in one run, on patterns that real checkpoints have.

    python integration/bench/run.py [--mib N] [--repeats N] [--folder DIR] [--json FILE]

Machines are noisy: what counts are the ratios, medians over interleaved repeats. `limit` is a copy of a
file that holds just the critical bytes, the least that any packer must do; both sides sync to the file system
in the same way. May import the package; nothing imports it.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from scr_critplugin import packed
from scr_critplugin.criticality import CriticalityMap
from scr_critplugin.layout import Layout
from scr_critplugin.plan import Plan, compile_plan

ELEMENT = np.dtype("<f8")
STEPS = ("limit", "whole copy", "pack", "unpack", "numpy", "zstd -1")


def padded_boxes(elements: int) -> NDArray[np.bool_]:
    """A padded array as in NAS BT: u[n][n+1][n+1][5], long runs."""
    n = round((elements / 5) ** (1 / 3))
    mask = np.zeros((n, n + 1, n + 1, 5), dtype=bool)
    mask[:, :n, :n] = True
    return mask


def ghosted_blocks(elements: int) -> NDArray[np.bool_]:
    """Blocks of 16^3 cells with two ghost layers: critical runs of 128 bytes."""
    mask = np.zeros((max(elements // 20**3, 1), 20, 20, 20), dtype=bool)
    mask[:, 2:-2, 2:-2, 2:-2] = True
    return mask


def every_second(elements: int) -> NDArray[np.bool_]:
    """Every second element: critical runs of 8 bytes."""
    mask = np.zeros(elements, dtype=bool)
    mask[::2] = True
    return mask


def random_mask(elements: int) -> NDArray[np.bool_]:
    """15 % of the elements uncritical, at random: the worst case for any table of runs."""
    return np.random.default_rng(1).random(elements) >= 0.15


PATTERNS: dict[str, Callable[[int], NDArray[np.bool_]]] = {
    "padded boxes": padded_boxes,
    "ghosted blocks": ghosted_blocks,
    "every second": every_second,
    "random 15 %": random_mask,
}


class Case:
    """One pattern's files and the steps to be timed on them."""

    def __init__(self, folder: Path, mask: NDArray[np.bool_]) -> None:
        self.folder, self.mask = folder, mask
        self.values = np.random.default_rng(2).random(mask.shape).astype(ELEMENT)
        self.source, self.kept = folder / "whole", folder / "kept"
        self.values.tofile(self.source)
        self.values[mask].tofile(self.kept)
        self.plan = self._plan()
        self.info = self.pack()

    def _plan(self) -> Plan:
        layout = Layout.raw("whole", {"u": (0, ELEMENT, self.mask.shape)})
        return compile_plan(CriticalityMap.from_masks({"u": self.mask}, ELEMENT), layout)

    def steps(self) -> dict[str, Callable[[], object]]:
        """The work to be timed, by name."""
        out = self.folder
        steps: dict[str, Callable[[], object]] = {
            "limit": lambda: _copy(self.kept, out / "limit"),
            "whole copy": lambda: _copy(self.source, out / "copy"),
            "pack": self.pack,
            "unpack": lambda: packed.unpack(out / "packed", out / "unpacked"),
            "numpy": self._numpy,
        }
        try:
            import zstandard
        except ImportError:
            return steps
        return steps | {"zstd -1": lambda: _zstd(zstandard.ZstdCompressor(level=1), self.source, out / "zst")}

    def pack(self) -> packed.PackedInfo:
        """Pack the whole file."""
        return packed.pack(self.source, self.folder / "packed", self.plan, name="whole")

    def _numpy(self) -> None:
        np.fromfile(self.source, dtype=ELEMENT).reshape(self.mask.shape)[self.mask].tofile(
            self.folder / "numpy"
        )


def _copy(source: Path, target: Path) -> None:
    shutil.copyfile(source, target)
    with target.open("rb") as stream:
        os.fsync(stream.fileno())


def _zstd(compressor: object, source: Path, target: Path) -> None:
    with source.open("rb") as whole, target.open("wb") as stream:
        compressor.copy_stream(whole, stream)  # type: ignore[attr-defined]


def measure(case: Case, repeats: int) -> dict[str, float]:
    """Median seconds of each step; the steps take turns, so that drift of the machine meets all alike."""
    seconds: dict[str, list[float]] = {name: [] for name in case.steps()}
    for turn in range(repeats + 1):
        for name, work in case.steps().items():
            begin = time.perf_counter()
            work()
            if turn:  # the first turn warms up
                seconds[name].append(time.perf_counter() - begin)
    return {name: statistics.median(values) for name, values in seconds.items()}


@click.command()
@click.option("--mib", default=256, show_default=True, help="Size of each whole file.")
@click.option("--repeats", default=5, show_default=True, help="Timed turns; medians are reported.")
@click.option(
    "--folder",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Where to work. Default: /dev/shm, else the temporary folder.",
)
@click.option(
    "--json", "json_path", type=click.Path(path_type=Path), help="Write the figures to this file too."
)
def main(mib: int, repeats: int, folder: Path | None, json_path: Path | None) -> None:
    """Time pack and unpack against copies of the kept bytes and of the whole file."""
    base = folder or (Path("/dev/shm") if Path("/dev/shm").is_dir() else None)
    figures: dict[str, dict[str, float]] = {}
    for name, pattern in PATTERNS.items():
        with tempfile.TemporaryDirectory(prefix="scr_crit.bench.", dir=base) as work:
            case = Case(Path(work), pattern(mib * 2**20 // ELEMENT.itemsize))
            kept = 100 * case.info.kept_bytes / case.info.file_bytes
            figures[name] = {"kept_percent": kept, "bytes": case.info.file_bytes, **measure(case, repeats)}
    print_table(figures, mib, repeats)
    if json_path:
        json_path.write_text(
            json.dumps(
                {"machine": platform.machine(), "python": platform.python_version(), "seconds": figures},
                indent=2,
            )
            + "\n"
        )


def print_table(figures: dict[str, dict[str, float]], mib: int, repeats: int) -> None:
    """Print seconds of the limit, and every step as a multiple of it."""
    table = Table(
        "pattern", "kept", "limit", *STEPS[1:], title=f"{mib} MiB files, median of {repeats}; x of limit"
    )
    for name, row in figures.items():
        ratios = [f"{row[step] / row['limit']:.2f}x" if step in row else "-" for step in STEPS[1:]]
        table.add_row(name, f"{row['kept_percent']:.1f} %", f"{row['limit'] * 1e3:.0f} ms", *ratios)
    Console().print(table)


if __name__ == "__main__":
    main()
