"""Time and memory that the access tracer takes, on the NAS kernels in C and on one large array.

    python integration/bench/tracer.py [--kernel mg.W] [--repeats 3] [--mebibytes 64] [--json FILE]

Time is user processor time of the iterations from the second to the last but one, all of them tracked: the
first one begins with a checkpoint. It is compared with a plain run and with Valgrind's empty tool, which is
the floor: what the tracer adds is the ratio to that. What comes once, however long the program runs, is told
apart: the checkpoint itself and the translation of the code anew before and behind it, as seconds beyond the
empty tool. Both are differences of runs that end at the top of an iteration. Ratios are medians over turns
in which the three alternate; where iterations take less than a second in all, they are as noisy as the
machine. Memory is the peak above that of the empty tool, for each byte of the array, on the checkpoint's
side and on the restart's.

Needs valgrind, mpicc and an SCR: $SCR_ROOT, else the stand-in of ``integration/scr_local`` is built. May
import the package; nothing imports it.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

import scr_critplugin

HERE = Path(__file__).resolve().parent
PORTS = HERE.parent / "npb_c"
STAND_IN = HERE.parent / "scr_local"
LAST_ITERATIONS = {
    **{"bt.S": 60, "bt.W": 200, "sp.S": 100, "sp.W": 400},
    **{"mg.S": 4, "mg.W": 4, "cg.S": 15, "cg.W": 15, "ft.S": 6, "ft.W": 6},
}
"""Each kernel's number of iterations, which its C source states; timed runs end at the top of that one."""
DEFAULT_KERNELS = ("bt.S", "mg.W", "cg.W", "ft.W")
"""Seconds each under Valgrind; bt.W and sp.W take minutes."""
MODES = ("plain", "none", "scr_crit")


@dataclass(frozen=True)
class Spent:
    """What one run took: user seconds of processor time and the peak of resident memory in bytes."""

    seconds: float
    memory: int


class Bench:
    """Programs, a folder to run them in, and Valgrind with the tool."""

    def __init__(self, folder: Path, valgrind_lib: Path) -> None:
        self.folder = folder
        self.valgrind_lib = valgrind_lib
        self.mpicc = os.environ.get("MPICC") or _beside_python("mpicc")
        self.scr_root = Path(os.environ.get("SCR_ROOT") or self._stand_in())

    def _stand_in(self) -> Path:
        root = self.folder / "scr"
        build = f"BUILD={self.folder / 'scr_build'}"
        _make(STAND_IN, "install", f"MPICC={self.mpicc}", build, f"PREFIX={root}")
        return root

    def kernel(self, name: str) -> Path:
        """Build a kernel, e.g. "mg.W"."""
        kernel, _, class_name = name.partition(".")
        build = f"BUILD={self.folder}"
        _make(PORTS, kernel, f"MPICC={self.mpicc}", f"SCR_ROOT={self.scr_root}", build, f"CLASS={class_name}")
        return self.folder / name

    def tracked_array(self, mebibytes: int) -> Path:
        """Build the program with one large array."""
        program = self.folder / "tracked_array"
        (library,) = {path.parent for path in self.scr_root.glob("lib*/libscr.so")}
        sources = [str(HERE / "tracked_array.c"), str(PORTS / "checkpoint.c")]
        include = [f"-I{PORTS}", f"-I{self.scr_root / 'include'}"]
        link = [f"-L{library}", f"-Wl,-rpath,{library}", "-lscr", "-lm"]
        flags = ["-O2", "-g", "-std=c11", f"-DMEBIBYTES={mebibytes}"]
        subprocess.run([self.mpicc, *flags, *include, *sources, *link, "-o", str(program)], check=True)
        return program

    def run(self, mode: str, program: Path, *arguments: str, keep: bool = False) -> Spent:
        """One run, from a checkpoint if `keep` and there is one."""
        job = self.folder / "job"
        if not keep and job.exists():
            shutil.rmtree(job)
        for name in ("prefix", "cache", "cntl"):
            (job / name).mkdir(parents=True, exist_ok=True)
        before = {
            "plain": [],
            "none": ["valgrind", "-q", "--tool=none"],
            "scr_crit": ["valgrind", "-q", "--tool=scr_crit", f"--trace-out={job / 'trace'}"],
        }[mode]
        environment = {
            **os.environ,
            "SCR_PREFIX": str(job / "prefix"),
            "SCR_CACHE_BASE": str(job / "cache"),
            "SCR_CNTL_BASE": str(job / "cntl"),
            "SCR_USER_NAME": "bench",
            "SCR_JOB_ID": "tracer",
            "VALGRIND_LIB": str(self.valgrind_lib),
        }
        if mode != "scr_crit":
            del environment["VALGRIND_LIB"]
        return _spent([*before, str(program), *arguments], environment, job / "prefix")


def _beside_python(name: str) -> str:
    beside = Path(sys.executable).with_name(name)
    found = str(beside) if beside.exists() else shutil.which(name)
    if found is None:
        raise click.ClickException(f"no {name}: install an MPI, or `pip install mpich`, or set MPICC")
    return found


def _make(folder: Path, *arguments: str) -> None:
    subprocess.run(["make", "-s", "-C", str(folder), *arguments], check=True, stdout=subprocess.DEVNULL)


def _spent(command: list[str], environment: dict[str, str], folder: Path) -> Spent:
    """Run a command and ask the kernel what that very process took."""
    with (folder / "output").open("w+") as output:
        child = subprocess.Popen(command, cwd=folder, env=environment, stdout=output, stderr=output)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        expected = -signal.SIGKILL if "--die-at" in command else 0
        if child.returncode != expected:
            output.seek(0)
            raise click.ClickException(
                f"{' '.join(command)}: exit status {child.returncode}\n{output.read()[-2000:]}"
            )
    return Spent(usage.ru_utime, usage.ru_maxrss * 1024)


# ---------------------------------------------------------------------------------------------------- time


def measure_time(bench: Bench, name: str, repeats: int) -> dict[str, float]:
    """Median seconds of the iterations in each mode, their ratios, and what the tracer takes once."""
    program = bench.kernel(name)
    seconds: dict[str, list[float]] = {mode: [] for mode in MODES}
    begun: dict[str, list[float]] = {mode: [] for mode in MODES}
    for _ in range(repeats):
        for mode in MODES:
            set_up = bench.run(mode, program, "--checkpoint-at", "0", "--die-at", "1").seconds
            first = bench.run(mode, program, "--checkpoint-at", "1", "--die-at", "2").seconds
            last = bench.run(
                mode, program, "--checkpoint-at", "1", "--die-at", str(LAST_ITERATIONS[name])
            ).seconds
            begun[mode].append(first - set_up)
            seconds[mode].append(last - first)
    ratios = [ours / floor for ours, floor in zip(seconds["scr_crit"], seconds["none"], strict=True)]
    once = [ours - floor for ours, floor in zip(begun["scr_crit"], begun["none"], strict=True)]
    medians = {mode: statistics.median(values) for mode, values in seconds.items()}
    return {
        **medians,
        "none_over_plain": medians["none"] / medians["plain"],
        "scr_crit_over_none": statistics.median(ratios),
        "once": statistics.median(once),
    }


def report_time(bench: Bench, names: tuple[str, ...], repeats: int, console: Console) -> dict[str, object]:
    """Measure the kernels and print the table."""
    table = Table(
        "kernel",
        "plain",
        "empty tool",
        "tracer",
        "empty / plain",
        "tracer / empty",
        "once",
        title=f"user processor time of the iterations, all tracked; median of {repeats}",
    )
    figures: dict[str, object] = {}
    for name in names:
        row = measure_time(bench, name, repeats)
        figures[name] = row
        seconds = [f"{row[mode]:.2f} s" for mode in MODES]
        ratios = [f"{row['none_over_plain']:.1f}x", f"{row['scr_crit_over_none']:.2f}x"]
        table.add_row(name, *seconds, *ratios, f"{row['once']:.2f} s")
    console.print(table)
    return figures


# -------------------------------------------------------------------------------------------------- memory


def report_memory(bench: Bench, mebibytes: int, console: Console) -> dict[str, float]:
    """Trace the program with one large array, from its start and from its checkpoint; print the table."""
    program = bench.tracked_array(mebibytes)
    size = mebibytes << 20
    figures: dict[str, float] = {}
    table = Table(
        "side", "empty tool", "tracer", "bytes a byte", title=f"peak memory, an array of {mebibytes} MiB"
    )
    for side, keep in (("checkpoint", False), ("restart", True)):
        floor = bench.run("none", program, "--checkpoint-at", "1", keep=keep).memory
        # The restart's floor has restarted as well: the checkpoint is still there.
        ours = bench.run("scr_crit", program, "--checkpoint-at", "1", keep=keep).memory
        figures[side] = (ours - floor) / size
        table.add_row(side, f"{floor >> 20} MiB", f"{ours >> 20} MiB", f"{figures[side]:.3f}")
    console.print(table)
    return figures


@click.command()
@click.option(
    "--kernel",
    "kernels",
    type=click.Choice(list(LAST_ITERATIONS)),
    multiple=True,
    default=DEFAULT_KERNELS,
    show_default=True,
    help="Kernel and class, e.g. mg.W; may be repeated.",
)
@click.option("--repeats", default=3, show_default=True, help="Timed turns; medians are reported.")
@click.option("--mebibytes", default=64, show_default=True, help="Size of the array; 1024 for 1 GiB.")
@click.option(
    "--valgrind-lib",
    type=click.Path(path_type=Path, exists=True),
    default=Path(scr_critplugin.__file__).parent / "lib" / "valgrind",
    help="Folder with the tool, as for VALGRIND_LIB. Default: the installed package's.",
)
@click.option(
    "--json", "json_path", type=click.Path(path_type=Path), help="Write the figures to this file too."
)
def main(
    kernels: tuple[str, ...], repeats: int, mebibytes: int, valgrind_lib: Path, json_path: Path | None
) -> None:
    """Measure the access tracer against plain runs and against Valgrind's empty tool."""
    console = Console()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), valgrind_lib)
        figures = {
            "seconds": report_time(bench, kernels, repeats, console),
            "bytes_a_byte": report_memory(bench, mebibytes, console),
        }
    if json_path:
        json_path.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
