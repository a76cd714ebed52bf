"""Gradient profiles on several ranks; run by test_mpi_gradient.py under mpiexec.

``mpi_gradient.py cases`` prints, by case, what each rank found. Of the decomposed programs, ``stencil`` and
``cg``, it prints the magnitudes put together, and the serial ones. The output of those is on rank 0 alone,
which draws what a serial profile draws: the cotangents are the same.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from scr_critplugin import mpi as MPI  # noqa: N812
from scr_critplugin.analysis import Profile, profile

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "integration" / "apps" / "distributed"))

COMM = MPI.COMM_WORLD
LEFT, RIGHT = (COMM.rank - 1) % COMM.size, (COMM.rank + 1) % COMM.size
CASES: dict[str, Callable[[Any], Any]] = {}


def case(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    CASES[function.__name__] = function
    return function


# ---- derivatives that end: x[1] is not involved ----


@case
def largest_and_where(x: Any) -> Any:
    return COMM.allreduce((x[0], COMM.rank), op=MPI.MAXLOC)[0]


@case
def function_to_one_rank(x: Any) -> Any:
    return COMM.reduce(x[:1], op=lambda one, other: one - other, root=1)


@case
def logical(x: Any) -> Any:
    met = np.empty(1, dtype=bool)
    COMM.Allreduce(x[:1] > 2.0, met, op=MPI.LOR)
    return met * 2.0


@case
def product_with_a_zero(x: Any) -> Any:
    factor = x[:1] * (COMM.rank != 1)
    return COMM.reduce(factor, op=MPI.PROD, root=0)


@case
def cast_by_the_receiver(x: Any) -> Any:
    arrived = COMM.sendrecv(x[0], RIGHT, source=LEFT)
    return np.floor_divide(arrived, 0.25) if COMM.rank == 1 else None


# ---- derivatives that do not ----


@case
def only_one_rank_has_an_output(x: Any) -> Any:
    arrived = COMM.sendrecv(x[0], RIGHT, source=LEFT)
    return arrived**2 if COMM.rank == 1 else None


@case
def sent_and_multiplied_by_zero(x: Any) -> Any:
    return COMM.sendrecv(x[0], RIGHT, source=LEFT) * (0.0 if COMM.rank == 1 else 1.0)


@case
def unused_with_an_infinite_slope(x: Any) -> Any:
    arrived = COMM.sendrecv({"x": x[0], "root": np.sqrt(x - x)}, RIGHT, source=LEFT)
    return arrived["x"]


@case
def integers_too(x: Any) -> Any:
    counted = COMM.allreduce(np.arange(3))
    arrived = COMM.sendrecv([x[0], counted], RIGHT, source=LEFT)
    return arrived[0] * arrived[1][1]


@case
def own_output(x: Any) -> Any:
    return x[:1] * 1.0


def cases() -> None:
    results = {}
    for name, function in CASES.items():
        found = [_profiled(function, validate=None) for _ in range(2)]
        results[name] = COMM.raw.gather([_described(each) for each in found])
    poisoned = _profiled(CASES["sent_and_multiplied_by_zero"], validate="poison")
    results["poisoned"] = COMM.raw.gather([_described(poisoned)])
    if COMM.rank == 0:
        print(json.dumps(results))


def _profiled(function: Callable[[Any], Any], **options: Any) -> Profile:
    return profile(
        lambda state: dict(state),
        {"x": np.array([1.5, 2.5]) + COMM.rank},
        lambda state: function(state["x"]),
        steps=1,
        engine="gradient",
        mask="gradient",
        comm=COMM.raw,
        **options,
    )


def _described(found: Profile) -> dict[str, Any]:
    gradient = found.gradient
    if gradient is None:
        raise ValueError("no gradient")
    return {
        "magnitudes": gradient.magnitudes["x"].tolist(),
        "unknown": gradient.unknown["x"].tolist(),
        "critical": found.map["x"].critical.tolist(),
        "without_rule": list(gradient.without_rule),
        "zero": gradient.zero["x"],
    }


# ---- decomposed programs ----


def stencil(kind: str, steps: int | None) -> None:
    import stencil as program

    cells = (7, 8)
    block = program.Block.of_rank(COMM, cells)
    rows, columns = block.moving()
    found = profile(
        {"in_place": program.in_place, "functional": program.functional}[kind](block),
        block.state(),
        lambda state: COMM.reduce(np.sum(state["u"][rows, columns] ** 2)),
        steps=steps,
        engine="gradient",
        comm=COMM.raw,
    )
    serial = profile(
        program.serial_step,
        program.serial_state(cells),
        program.SERIAL_OUTPUTS["warmth"],
        steps=steps,
        engine="gradient",
    )
    ghosts = np.array(found.map["u"].magnitudes)
    inside = ghosts[1:-1, 1:-1].copy()
    ghosts[1:-1, 1:-1] = 0
    _print(found, {"u": (inside, block.where)}, {"u": serial.map["u"].magnitudes}, float(ghosts.max()))


def cg(kind: str, steps: int | None) -> None:
    import conjugate_gradients as program

    n = 13
    edges = np.linspace(0, n, COMM.size + 1).astype(int)
    rows = slice(int(edges[COMM.rank]), int(edges[COMM.rank + 1]))
    start = program.start(n)
    vectors = program.VECTORS
    found = profile(
        {"objects": program.step_by_objects, "buffers": program.step_by_buffers}[kind](COMM, rows, n),
        {name: v[rows].copy() if name in vectors else v for name, v in start.items()},
        lambda state: COMM.reduce(np.sum(state["x"] ** 3)),
        steps=steps,
        engine="gradient",
        comm=COMM.raw,
    )
    serial = profile(
        program.serial_step(n), start, lambda state: np.sum(state["x"] ** 3), steps=steps, engine="gradient"
    )
    pieces = {name: (found.map[name].magnitudes, (rows,)) for name in vectors}
    _print(found, pieces, {name: serial.map[name].magnitudes for name in vectors}, 0.0)


def _print(found: Profile, pieces: Any, serial: Any, ghosts: float) -> None:
    of_ranks = COMM.raw.gather(pieces)
    most = COMM.raw.gather(ghosts)
    if COMM.rank != 0:
        return
    whole = {name: np.full(magnitudes.shape, np.nan) for name, magnitudes in serial.items()}
    for of_rank in of_ranks:
        for name, (piece, where) in of_rank.items():
            whole[name][where] = piece
    report = {
        "ranks": {name: magnitudes.tolist() for name, magnitudes in whole.items()},
        "serial": {name: magnitudes.tolist() for name, magnitudes in serial.items()},
        "ghosts": max(most),
        "without_rule": list(found.gradient.without_rule) if found.gradient else None,
    }
    print(json.dumps(report))


if __name__ == "__main__":
    if sys.argv[1] == "cases":
        cases()
    else:
        {"stencil": stencil, "cg": cg}[sys.argv[1]](sys.argv[2], int(sys.argv[3]) or None)
