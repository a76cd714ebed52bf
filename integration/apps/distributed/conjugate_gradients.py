"""Conjugate gradients, with the rows of the matrix divided among the ranks.

A step is one iteration: the search direction is gathered on all ranks, the dot products are summed over them.

Run it as README.md says. Method: Hestenes and Stiefel, J. Res. NBS 49 (1952) 409. May import NumPy, click,
`assembly` and scr_critplugin. Tests: ``test_distributed.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click
import numpy as np
from assembly import print_maps
from numpy.typing import NDArray

from scr_critplugin import mpi as MPI  # noqa: N812
from scr_critplugin.analysis import profile

State = dict[str, Any]
VECTORS = ("x", "r", "p", "q")
COUPLED = 3
"""Rows this far apart are coupled."""


def matrix(n: int) -> NDArray[np.float64]:
    """A symmetric positive definite matrix of `n` rows."""
    distance = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    return np.where(distance == 0, 8.0, np.where(distance <= COUPLED, -1.0, 0.0))


def start(n: int) -> State:
    """The state before the first iteration; `q` is scratch that checkpoints contain because it is there."""
    b = np.sin(np.arange(1.0, n + 1.0))
    return {"x": np.zeros(n), "r": b.copy(), "p": b.copy(), "q": np.zeros(n), "rho": float(b @ b)}


def serial_step(n: int) -> Callable[[State], State]:
    """One iteration of the serial program."""
    a = matrix(n)

    def step(state: State) -> State:
        x, r, p, q = (state[name] for name in VECTORS)
        q[...] = a @ p
        alpha = state["rho"] / np.dot(p, q)
        x += alpha * p
        r -= alpha * q
        rho = np.dot(r, r)
        p *= rho / state["rho"]
        p += r
        return {"x": x, "r": r, "p": p, "q": q, "rho": rho}

    return step


def step_by_objects(comm: Any, rows: slice, n: int) -> Callable[[State], State]:
    """One iteration on all ranks, in new arrays, with mpi4py's lowercase methods."""
    a = matrix(n)[rows]

    def step(state: State) -> State:
        x, r, p = state["x"], state["r"], state["p"]
        q = a @ np.concatenate(comm.allgather(p))
        alpha = state["rho"] / comm.allreduce(np.dot(p, q))
        x, r = x + alpha * p, r - alpha * q
        rho = comm.allreduce(np.dot(r, r))
        return {"x": x, "r": r, "p": r + rho / state["rho"] * p, "q": q, "rho": rho}

    return step


def step_by_buffers(comm: Any, rows: slice, n: int) -> Callable[[State], State]:
    """The same in place, with the uppercase ones; the direction comes in unequal parts."""
    a = matrix(n)[rows]
    counts = np.array(comm.raw.allgather(rows.stop - rows.start))

    def summed(value: Any) -> Any:
        total = np.empty(1)
        comm.Allreduce(np.array([value]), total, op=MPI.SUM)
        return total[0]

    def step(state: State) -> State:
        x, r, p, q = (state[name] for name in VECTORS)
        whole = np.empty(n)
        comm.Allgatherv(p, [whole, counts, np.cumsum(counts) - counts, MPI.DOUBLE])
        q[...] = a @ whole
        alpha = state["rho"] / summed(np.dot(p, q))
        x += alpha * p
        r -= alpha * q
        rho = summed(np.dot(r, r))
        p *= rho / state["rho"]
        p += r
        state["rho"] = rho
        return state

    return step


@click.command()
@click.option("--program", "kind", type=click.Choice(["objects", "buffers"]), default="objects")
@click.option("--output", "what", type=click.Choice(["residual", "part"]), default="residual")
@click.option("--steps", type=int, default=None)
@click.option("--rows", "n", type=int, default=22)
def main(kind: str, what: str, steps: int | None, n: int) -> None:
    """Profile the decomposed and the serial program and print both maps."""
    comm = MPI.COMM_WORLD
    edges = np.linspace(0, n, comm.size + 1).astype(int)
    rows = slice(int(edges[comm.rank]), int(edges[comm.rank + 1]))
    state = {name: v[rows].copy() if name in VECTORS else v for name, v in start(n).items()}
    step = {"objects": step_by_objects, "buffers": step_by_buffers}[kind](comm, rows, n)
    wanted = slice(0, max(0, min(rows.stop, n // 3) - rows.start))
    outputs: dict[str, tuple[Callable[[State], Any], Callable[[State], Any]]] = {
        "residual": (lambda state: state["rho"], lambda state: state["rho"]),
        "part": (lambda state: state["x"][wanted], lambda state: state["x"][: n // 3]),
    }
    found = profile(step, state, outputs[what][0], steps=steps, comm=comm.raw)
    serial = profile(serial_step(n), start(n), outputs[what][1], steps=steps)
    owned = {name: ((slice(None),), (rows,)) for name in VECTORS}
    print_maps(comm, found, owned, dict.fromkeys(VECTORS, (n,)), serial)


if __name__ == "__main__":
    main()
