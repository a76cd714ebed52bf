"""Adjoints of every crossing against finite differences; run by test_mpi_profile.py under mpiexec.

Each case only communicates, so that the nodes between state and output are crossings and their leaves.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np

from scr_critplugin import mpi as MPI  # noqa: N812
from scr_critplugin.analysis import crossings
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
    "twice": lambda x: COMM.allreduce(COMM.sendrecv(x, RIGHT, source=LEFT), op=MPI.PROD),
}


def _reduced_buffer(x: Any, op: Any) -> Any:
    total = np.empty(3)
    COMM.Allreduce(x, total, op=op)
    return total


def pulled_back(traced: TracedOutput, weights: list[Any]) -> Any:
    """Cotangent of x, from those of the outputs that are traced."""
    cotangents: dict[int, Any] = {}

    def add(node: Any, cotangent: Any) -> None:
        cotangents[node.position] = cotangents.get(node.position, 0.0) + cotangent

    for node, weight in zip(traced.nodes, weights, strict=True):
        add(node, weight)
    for node in reversed(traced.tape.nodes):
        if node.call is None:
            continue
        if node.call.function is crossings.leaf_of:
            parent, place = node.parents[0], node.call.args[1]
            parts = cotangents.setdefault(parent.position, [np.zeros(shape) for shape in parent.shape])
            parts[place] = parts[place] + cotangents.get(node.position, 0.0)
        elif node.row.across is not None:
            for parent, part in zip(
                node.parents, crossings.adjoint(node.call, cotangents.get(node.position)), strict=True
            ):
                add(parent, part)
        elif node.call.function.__name__ in ("load", "store", "reshape"):
            # A whole array goes into another: the buffer forms.
            add(node.parents[-1], cotangents.get(node.position, 0.0))
        else:
            raise TypeError(f"unexpected {node.call.function}")
    return np.asarray(cotangents.get(traced.tape.roots["x"].position, np.zeros(3)))


def main() -> None:
    x = np.random.default_rng(COMM.rank).uniform(1.0, 2.0, 3)
    results = {}
    for name, function in CASES.items():
        with taking_part(COMM.raw):
            program = Program(lambda state: state, lambda state, function=function: function(state["x"]))
            traced = program.trace_output({"x": x})
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
