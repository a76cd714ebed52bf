"""Cotangents pulled across ranks against finite differences; run by test_mpi_gradient.py under mpiexec."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np

from scr_critplugin import mpi as MPI  # noqa: N812
from scr_critplugin.analysis.adjoints import Ended, pull_back
from scr_critplugin.analysis.program import Program, TracedOutput, leaves
from scr_critplugin.analysis.ranks import taking_part

COMM = MPI.COMM_WORLD
LEFT, RIGHT = (COMM.rank - 1) % COMM.size, (COMM.rank + 1) % COMM.size

CASES: dict[str, Callable[[Any], Any]] = {
    "sendrecv": lambda x: COMM.sendrecv(x, RIGHT, source=LEFT),
    "bcast": lambda x: COMM.bcast(x, root=1),
    "reduce": lambda x: COMM.reduce(x, root=1),
    "allreduce": lambda x: COMM.allreduce(x),
    "allreduce PROD": lambda x: COMM.allreduce(x, op=MPI.PROD),
    "allreduce MAX": lambda x: _reduced_buffer(x, MPI.MAX),
    "allreduce MIN": lambda x: _reduced_buffer(x, MPI.MIN),
    "gather": lambda x: COMM.gather(x, root=1),
    "allgather": lambda x: COMM.allgather(x),
    "alltoall": lambda x: COMM.alltoall([x] * COMM.size),
    "scatter": lambda x: COMM.scatter([x] * COMM.size if COMM.rank == 1 else None, root=1),
    "isend and irecv": lambda x: _nonblocking(x),
    "used on one rank": lambda x: _on_last(COMM.sendrecv(x, RIGHT, source=LEFT)),
    "nest": lambda x: _nest(x),
    "to itself": lambda x: COMM.sendrecv(x[:2] ** 3, COMM.rank, source=COMM.rank),
    "complex": lambda x: np.imag(COMM.allreduce(x * (1.0 + 2.0j)) ** 2),
    "result on one rank": lambda x: _on_last(COMM.allreduce(np.sin(x))),
    "allgatherv": lambda x: _allgathered(x),
    "Sendrecv in place": lambda x: _halo(x),
    "split": lambda x: _half().allreduce(x * x, op=MPI.PROD),
    "twice": lambda x: COMM.allreduce(COMM.sendrecv(x, RIGHT, source=LEFT), op=MPI.PROD),
}


def _reduced_buffer(x: Any, op: Any) -> Any:
    total = np.empty(3)
    COMM.Allreduce(x, total, op=op)
    return total


def _nonblocking(x: Any) -> Any:
    requests = [COMM.irecv(source=LEFT), COMM.isend(np.exp(x), RIGHT)]
    return MPI.Request.waitall(requests)[0] * x[::-1]


def _nest(x: Any) -> Any:
    arrived = COMM.sendrecv({"a": [x[0], np.arange(3)], "b": (x[1:], x)}, RIGHT, source=LEFT)
    return arrived["a"][0] * arrived["b"][1]


def _on_last(value: Any) -> Any:
    return value[1:] if COMM.rank == COMM.size - 1 else None


def _allgathered(x: Any) -> Any:
    counts = [1 + rank % 3 for rank in range(COMM.size)]
    whole = np.zeros(sum(counts))
    COMM.Allgatherv(x[: counts[COMM.rank]] ** 2, [whole, counts])
    return whole[::-1] * x[0]


def _halo(x: Any) -> Any:
    y = np.array([x[0], x[1], x[2], 0.0])
    COMM.Sendrecv(y[1:2], LEFT, recvbuf=y[3:], source=RIGHT)
    return y[1:] * y[:-1]


_HALVES: list[Any] = []


def _half() -> Any:
    if not _HALVES:
        _HALVES.append(COMM.Split(COMM.rank % 2, COMM.rank))
    return _HALVES[0]


def pulled_back(traced: TracedOutput, weights: list[Any]) -> Any:
    """Cotangent of x, from those of the outputs that are traced."""
    ended = Ended()
    found = pull_back(traced.tape, zip(traced.nodes, weights, strict=True), ended)["x"]
    if ended.names:
        raise ValueError(f"derivatives ended at {ended.names}")
    return found


def main() -> None:
    x = np.random.default_rng(COMM.rank).uniform(1.0, 2.0, 3)
    results = {}
    for name, function in CASES.items():
        with taking_part(COMM.raw):
            program = Program(lambda state: state, lambda state, function=function: function(state["x"]))
            traced = program.trace_output({"x": x}, values=True)
            rng = np.random.default_rng(10 + COMM.rank)
            weights = [rng.normal(size=node.shape) for node in traced.nodes]
            found = pulled_back(traced, weights)
        expected = np.array([slope(function, weights, x, rank, i) for rank, i in np.ndindex(COMM.size, 3)])
        results[name] = (
            COMM.raw.gather(found.tolist()),
            expected.reshape(COMM.size, 3).tolist(),
        )
    if COMM.rank == 0:
        print(json.dumps(results))


def slope(function: Callable[[Any], Any], weights: list[Any], x: Any, rank: int, place: int) -> float:
    """Derivative by one element on one rank of the weighted sum of all ranks' outputs."""
    sums = []
    for amount in (1e-6, -1e-6):
        changed = x.copy()
        if COMM.rank == rank:
            changed[place] += amount
        outputs = [leaf for _, leaf in leaves(function(changed)) if leaf is not None]
        if len(outputs) != len(weights):
            # None is an output of a rank that is no root.
            raise ValueError(f"{len(outputs)} outputs and {len(weights)} weights")
        own = sum(float(np.sum(w * out)) for w, out in zip(weights, outputs, strict=True))
        sums.append(COMM.raw.allreduce(own))
    return (sums[0] - sums[1]) / 2e-6


if __name__ == "__main__":
    main()
