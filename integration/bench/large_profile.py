"""Profile a stencil on a large array, by a full sweep and from a sample of tiles; report memory and time.

    python integration/bench/large_profile.py [--elements N] [--program NAME] [--tiles K] [--json FILE]

The program is a 7-point stencil on ``u`` and a work array ``work``, each of `elements` float64 with one layer
of ghosts, in place (ordinary NumPy) or functional. Each mode runs in a process of its own, one after the
other, so that peaks of resident memory are its own. Ratios are to the CPU time of one plain step.

May import the package; nothing imports it. Tests: ``integration/bench/test_large_profile.py``.
"""

from __future__ import annotations

import concurrent.futures
import json
import multiprocessing
import resource
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import Console

from scr_critplugin import regions
from scr_critplugin.analysis import history, profile, recurrence, tiles
from scr_critplugin.analysis.program import Program
from scr_critplugin.criticality import CriticalityMap, ElementState

INSIDE = (slice(1, -1),) * 3

State = dict[str, Any]


# ---- the program ----


def in_place(state: State) -> None:
    """Fill the ghosts (periodic), then one explicit step of diffusion, in place."""
    u, work = state["u"], state["work"]
    for axis in range(3):
        line = np.swapaxes(u, 0, axis)
        line[0] = line[-2]
        line[-1] = line[1]
    change = work[INSIDE]
    np.add(u[:-2, 1:-1, 1:-1], u[2:, 1:-1, 1:-1], out=change)
    change += u[1:-1, :-2, 1:-1]
    change += u[1:-1, 2:, 1:-1]
    change += u[1:-1, 1:-1, :-2]
    change += u[1:-1, 1:-1, 2:]
    for plane, centre in zip(change, u[INSIDE], strict=True):
        plane -= 6.0 * centre
    change *= 0.1
    u[INSIDE] += change


def functional(state: State) -> State:
    """The same step, with new arrays."""
    u = np.pad(state["u"][INSIDE], 1, mode="wrap")
    around = u[:-2, 1:-1, 1:-1] + u[2:, 1:-1, 1:-1]
    around = around + u[1:-1, :-2, 1:-1] + u[1:-1, 2:, 1:-1]
    around = around + u[1:-1, 1:-1, :-2] + u[1:-1, 1:-1, 2:]
    change = 0.1 * (around - 6.0 * u[INSIDE])
    return {"u": np.pad(u[INSIDE] + change, 1, mode="wrap"), "work": np.pad(change, 1)}


def output(state: State) -> Any:
    """The field without its ghosts."""
    return state["u"][INSIDE]


PROGRAMS: dict[str, Callable[[State], Any]] = {"in place": in_place, "functional": functional}


def initial_state(extent: int) -> State:
    """Cubes of that extent."""
    u = np.random.default_rng(1).random((extent,) * 3)
    return {"u": u, "work": np.zeros_like(u)}


# ---- measuring ----


def measure(program: str, extent: int, tiles_drawn: int | None) -> dict[str, Any]:
    """Profile once, and look at the sweep alone. Times are CPU seconds of this process; memory in bytes."""
    step, state = PROGRAMS[program], initial_state(extent)
    plain, _ = _timed(lambda: step({name: value.copy() for name, value in state.items()}))
    sweep_seconds, sweep_bytes = _of_sweep(step, state, tiles_drawn)
    seconds, found = _timed(lambda: profile(step, state, output, tiles=tiles_drawn))
    return {
        "state_bytes": sum(value.nbytes for value in state.values()),
        "variables": _variables(found.map),
        "plain_step_seconds": plain,
        "sweep_seconds": sweep_seconds,
        "sweep_bytes": sweep_bytes,
        "profile_seconds": seconds,
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "copy_peak_bytes": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024,
        "poison": None if found.poison is None else list(found.poison.fills),
        "confidence": None if found.confidence is None else found.confidence.describe().splitlines(),
    }


def _of_sweep(step: Callable[[State], Any], state: State, tiles_drawn: int | None) -> tuple[float, int]:
    """Seconds and additional bytes of the sweep through one recorded step."""
    window = history.record(Program(step, output), state, None, validate=False)
    seconds, _ = _timed(lambda: _sweep(state, window, tiles_drawn))
    tracemalloc.start()
    _sweep(state, window, tiles_drawn)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return seconds, peak


def _sweep(state: State, window: history.Window, tiles_drawn: int | None) -> object:
    if tiles_drawn is None:
        return recurrence.states_of(state, window)
    return tiles.states_of(state, window, tiles_drawn, seed=0)


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    began = time.process_time()
    result = work()
    return time.process_time() - began, result


def _variables(found: CriticalityMap) -> dict[str, dict[str, Any]]:
    return {
        name: {
            "elements": variable.size,
            "critical": variable.counts()[ElementState.CRITICAL],
            "states": {state.name.lower(): count for state, count in variable.counts().items() if count},
            "uncritical": regions.describe(name, variable.uncritical, max_lines=8),
        }
        for name, variable in found.items()
    }


def measured_apart(program: str, extent: int, tiles_drawn: int | None) -> dict[str, Any]:
    """`measure` in a new process."""
    with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(measure, program, extent, tiles_drawn).result()


# ---- the report ----


def show(console: Console, name: str, figures: dict[str, Any]) -> None:
    """Print one mode's figures."""
    plain = figures["plain_step_seconds"]
    console.rule(name)
    for variable, row in figures["variables"].items():
        states = ", ".join(f"{count} {state}" for state, count in row["states"].items())
        console.print(f"{variable}: {row['elements']} elements: {states}", highlight=False)
        for line in row["uncritical"]:
            console.print(f"    uncritical {line}", highlight=False, markup=False)
    console.print(f"plain step  {plain:.2f} s; state {figures['state_bytes'] / 1e9:.3f} GB", highlight=False)
    console.print(
        f"sweep       {figures['sweep_seconds']:.2f} s, {figures['sweep_seconds'] / plain:.2f} plain steps; "
        f"{figures['sweep_bytes'] / 1e9:.3f} GB",
        highlight=False,
    )
    console.print(
        f"profile     {figures['profile_seconds']:.2f} s, {figures['profile_seconds'] / plain:.1f} plain "
        f"steps; peak {figures['peak_bytes'] / 1e9:.2f} GB resident, of the process copy "
        f"{figures['copy_peak_bytes'] / 1e9:.2f} GB",
        highlight=False,
    )
    console.print(f"poison      {', '.join(figures['poison'])}: outputs identical", highlight=False)
    for line in figures["confidence"] or ["everything was swept"]:
        console.print(line, highlight=False, soft_wrap=True)


@click.command()
@click.option("--elements", default=1e8, show_default=True, help="Least number of elements of each array.")
@click.option("--program", type=click.Choice(list(PROGRAMS)), default="in place", show_default=True)
@click.option("--tiles", "tiles_drawn", default=64, show_default=True, help="Random tiles of each array.")
@click.option("--mode", type=click.Choice(["both", "full", "tiles"]), default="both", show_default=True)
@click.option(
    "--json", "json_path", type=click.Path(path_type=Path), help="Write the figures to this file too."
)
def main(elements: float, program: str, tiles_drawn: int, mode: str, json_path: Path | None) -> None:
    """Profile a stencil on arrays of that many elements, by a full sweep and by tiles."""
    extent = 1
    while extent**3 < elements:
        extent += 1
    modes = {"full": None, "tiles": tiles_drawn}
    console = Console()
    figures = {}
    for name, drawn in modes.items():
        if mode in ("both", name):
            figures[name] = measured_apart(program, extent, drawn)
            show(console, f"{program}, {extent}^3, {name}", figures[name])
    if json_path:
        json_path.write_text(json.dumps({"program": program, "extent": extent, **figures}, indent=2) + "\n")


if __name__ == "__main__":
    main()
