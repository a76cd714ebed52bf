"""Time what a profile of the NAS kernels costs, in plain steps: recording, sweeping, and all of it.

    python integration/bench/profile_cost.py [--class S] [--kernel MG] [--repeats N] [--json FILE]

Machines are noisy: times are processor time, of this process and of its copies, and what counts are the
ratios, medians over interleaved repeats within one run. `of 1000` is the whole profile, poison and all, over
a run of a thousand plain steps; forks of the process and the modules' stand-ins cost tens of milliseconds of
it, whatever the program. MG is recorded as an in-place program too.

May import the package and the kernels; nothing imports it. ``make bench`` runs it.
"""

from __future__ import annotations

import json
import platform
import resource
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

# The kernels import each other by bare names.
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "npb"))

import mg_inplace
from suite import CLASS_NAMES, KERNELS, Kernel

from scr_critplugin.analysis import profile, sweep
from scr_critplugin.analysis.masks import everything
from scr_critplugin.analysis.program import Program, checked_state

RUN = 1000
"""Steps of the run that a profile is compared with."""
LEAST_SECONDS = 0.05
"""Timers of processor time may be coarse."""
RATIOS = ("record", "sweep", "profile")


def measure(kernel: Kernel, class_name: str, repeats: int) -> dict[str, float]:
    """Median processor seconds of a plain step, and of what profiling one does; they take turns."""
    module = kernel.module
    # Two steps in: the first ones of some kernels build tables that they keep.
    state = checked_state(module.run(module.initial_state(class_name), 2))
    module.output(state)
    program = Program(module.step, module.output)
    recorded: list[Any] = []
    # One step does not stand for the others where the structure depends on the step's number.
    window = 1 if kernel.counts_steps else None

    def record() -> None:
        recorded[:] = [program.trace_step(state)]

    def sweep_back() -> None:
        ends = recorded[0].nodes.values()
        sweep.needed(recorded[0].tape, [(node, everything(node.shape)) for node in ends])

    return _medians(
        {
            "step": lambda: program.advance(state),
            "record": record,
            "sweep": sweep_back,
            "profile": lambda: profile(module.step, state, module.output, steps=window),
        },
        repeats,
    )


def _medians(works: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for turn in range(repeats + 1):
        for name, work in works.items():
            spent = _seconds_of(work)
            if turn:  # the first turn warms up
                seconds[name].append(spent)
    return {name: statistics.median(values) for name, values in seconds.items()}


def _seconds_of(work: Callable[[], object]) -> float:
    """Of one call; of short work, the mean of as many as the clock needs."""
    begin, calls, spent = _processor_seconds(), 0, 0.0
    while spent < LEAST_SECONDS:
        work()
        calls += 1
        spent = _processor_seconds() - begin
    return spent / calls


def _processor_seconds() -> float:
    copies = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + copies.ru_utime + copies.ru_stime


def report(class_name: str, names: list[str], repeats: int, console: Console) -> dict[str, dict[str, float]]:
    """Measure the kernels called `names` and print the table; seconds, and per cent of a long run."""
    figures: dict[str, dict[str, float]] = {}
    for name in names:
        seconds = measure(KERNELS[name], class_name, repeats)
        figures[name] = {**seconds, "percent_of_run": 100 * seconds["profile"] / (RUN * seconds["step"])}
    table = Table(
        "kernel",
        "step",
        *RATIOS,
        f"of {RUN} steps",
        title=f"profiling, class {class_name}, median of {repeats}; x of a plain step",
    )
    for name, row in figures.items():
        ratios = [f"{row[part] / row['step']:.1f}x" for part in RATIOS]
        table.add_row(name, f"{row['step'] * 1e3:.2f} ms", *ratios, f"{row['percent_of_run']:.2f} %")
    console.print(table)
    if "MG" in figures:
        found = mg_inplace.cost(class_name, repeats)
        figures["MG"]["in_place_over_functional"] = found.ratio
        console.print(
            f"MG in place: recorded in {found.recorded_in_place * 1e3:.1f} ms of processor time, "
            f"{found.ratio:.2f}x the functional one ({found.recorded * 1e3:.1f} ms)",
            highlight=False,
        )
    return figures


@click.command()
@click.option(
    "--class",
    "class_names",
    type=click.Choice(CLASS_NAMES),
    multiple=True,
    default=CLASS_NAMES,
    show_default=True,
    help="Problem class; may be repeated.",
)
@click.option(
    "--kernel", "kernels", type=click.Choice(tuple(KERNELS)), multiple=True, help="Only this kernel."
)
@click.option("--repeats", default=5, show_default=True, help="Timed turns; medians are reported.")
@click.option(
    "--json", "json_path", type=click.Path(path_type=Path), help="Write the figures to this file too."
)
def main(
    class_names: tuple[str, ...], kernels: tuple[str, ...], repeats: int, json_path: Path | None
) -> None:
    """Time recording, sweeping and profiling the NAS kernels against their plain steps."""
    names = [name for name in KERNELS if not kernels or name in kernels]
    console = Console()
    seconds = {one: report(one, names, repeats, console) for one in class_names}
    if json_path:
        machine = {"machine": platform.machine(), "python": platform.python_version()}
        json_path.write_text(json.dumps({**machine, "seconds": seconds}, indent=2) + "\n")


if __name__ == "__main__":
    main()
