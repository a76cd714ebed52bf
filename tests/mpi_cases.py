"""Every kind of communication, profiled and set against brute force; run by test_mpi_profile.py.

Each case is a function of the communicator, as a program has it, and the rank's ``x``. Brute force changes
one element on one rank, runs the case on all ranks by plain mpi4py, and looks whose results change.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from scr_critplugin import mpi as MPI  # noqa: N812
from scr_critplugin.analysis import profile
from scr_critplugin.analysis.program import leaves

SIZE = 6
CASES: dict[str, Callable[[Any, Any], Any]] = {}


def case(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    CASES[function.__name__] = function
    return function


def neighbours(comm: Any) -> tuple[int, int]:
    return (comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size


# ---- objects ----


@case
def sendrecv_of_a_slice(comm: Any, x: Any) -> Any:
    left, right = neighbours(comm)
    return comm.sendrecv(x[1:3], right, 7, source=left, recvtag=7)[1:]


@case
def send_and_recv_out_of_order(comm: Any, x: Any) -> Any:
    left, right = neighbours(comm)
    comm.send(x[0], right, tag=1)
    comm.send(x[4:], right, tag=2)
    late = comm.recv(source=left, tag=2)
    return late[1] * comm.recv(source=left, tag=1)


@case
def isend_and_irecv(comm: Any, x: Any) -> Any:
    left, right = neighbours(comm)
    requests = [comm.irecv(source=left, tag=4), comm.isend(2.0 * x[2:5], right, tag=4)]
    arrived, nothing = MPI.Request.waitall(requests)
    assert nothing is None
    return arrived[::2]


@case
def requests_waited_for_in_another_order(comm: Any, x: Any) -> Any:
    left, right = neighbours(comm)
    first, second = comm.irecv(source=left), comm.irecv(source=left)
    comm.isend(x[0], right).wait()
    comm.isend(x[1:4], right).wait()
    later = second.wait()
    first.wait()
    return later[0]


@case
def tested_request(comm: Any, x: Any) -> Any:
    left, right = neighbours(comm)
    sending, receiving = comm.isend(x[5], right), comm.irecv(source=left)
    done = False
    while not done:
        done, arrived = receiving.test()
    sending.wait()
    return arrived


@case
def any_source_and_status(comm: Any, x: Any) -> Any:
    if comm.rank:
        comm.send(x[comm.rank :], 0, tag=comm.rank)
        return None
    found = {}
    for _ in range(1, comm.size):
        status = MPI.Status()
        arrived = comm.recv(source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG, status=status)
        assert status.Get_source() == status.Get_tag() == SIZE - len(arrived)
        found[status.Get_source()] = arrived[0]
    return [found[rank] for rank in sorted(found)]


@case
def nest_of_objects(comm: Any, x: Any) -> Any:
    left, right = neighbours(comm)
    arrived = comm.sendrecv({"a": (x[0], [x[1:3]]), "name": "u", "n": 3}, right, source=left)
    assert arrived["name"] == "u"
    return arrived["a"][1][0][: arrived["n"] - 2]


@case
def arrived_arrays_can_be_written_to(comm: Any, x: Any) -> Any:
    left, right = neighbours(comm)
    arrived = comm.sendrecv(x[:3], right, source=left)
    arrived[0] = x[5]
    return arrived[:2]


@case
def constants_that_arrive_can_be_written_to(comm: Any, x: Any) -> Any:
    left, right = neighbours(comm)
    arrived = comm.sendrecv(np.zeros(3), right, source=left)
    arrived[1] = x[4]
    arrived[2] = x[3]
    return arrived[:2]


@case
def to_itself(comm: Any, x: Any) -> Any:
    return comm.sendrecv(x[2], comm.rank, source=comm.rank)


@case
def to_nobody(comm: Any, x: Any) -> Any:
    right = comm.rank + 1 if comm.rank + 1 < comm.size else MPI.PROC_NULL
    left = comm.rank - 1 if comm.rank else MPI.PROC_NULL
    return comm.sendrecv(x[1], right, source=left)


@case
def bcast_of_a_part(comm: Any, x: Any) -> Any:
    arrived = comm.bcast(x if comm.rank == 1 else None, root=1)
    return arrived[comm.rank]


@case
def bcast_of_a_number(comm: Any, x: Any) -> Any:
    count = comm.bcast(2 if comm.rank == 0 else None)
    return x[:count]


@case
def reduce_to_one(comm: Any, x: Any) -> Any:
    total = comm.reduce(x[1:5], op=MPI.SUM, root=1)
    return None if comm.rank != 1 else total[2:]


@case
def allreduce_used_on_one(comm: Any, x: Any) -> Any:
    total = comm.allreduce(x)
    return total[4] if comm.rank == comm.size - 1 else None


@case
def allreduce_of_numbers(comm: Any, x: Any) -> Any:
    return comm.allreduce(np.dot(x[:2], x[:2])) * 1.0


@case
def allreduce_with_a_constant(comm: Any, x: Any) -> Any:
    return comm.allreduce(x[3] if comm.rank == 0 else 1.0)


@case
def allreduce_max(comm: Any, x: Any) -> Any:
    return comm.allreduce(x[1], op=MPI.MAX)


@case
def allreduce_by_a_function(comm: Any, x: Any) -> Any:
    return comm.allreduce(x[:2], op=lambda one, other: one[::-1] * other)[0]


@case
def allreduce_maxloc(comm: Any, x: Any) -> Any:
    return comm.allreduce((x[2], comm.rank), op=MPI.MAXLOC)[0]


@case
def gather_to_one(comm: Any, x: Any) -> Any:
    parts = comm.gather(x[2:4], root=1)
    return None if comm.rank != 1 else [part[rank % 2] for rank, part in enumerate(parts)]


@case
def allgather_parts(comm: Any, x: Any) -> Any:
    return np.concatenate(comm.allgather(x[: 1 + comm.rank]))[1:]


@case
def alltoall_parts(comm: Any, x: Any) -> Any:
    return comm.alltoall([x[rank] for rank in range(comm.size)])[0]


@case
def scatter_from_one(comm: Any, x: Any) -> Any:
    return comm.scatter([x[i : i + 2] for i in range(comm.size)] if comm.rank == 1 else None, root=1)[1]


@case
def selection_by_value(comm: Any, x: Any) -> Any:
    left, right = neighbours(comm)
    return np.sum(comm.sendrecv(x[x > 1.3], right, source=left))


# ---- buffers ----


@case
def buffers_sent_and_received(comm: Any, x: Any) -> Any:
    left, right = neighbours(comm)
    arrived = np.zeros(4)
    comm.Send(x[1:4], right, tag=3)
    comm.Recv(arrived, source=left, tag=3)
    return arrived[1:]


@case
def halo_in_place(comm: Any, x: Any) -> Any:
    left, right = neighbours(comm)
    comm.Sendrecv(x[-2:-1], right, recvbuf=x[:1], source=left)
    comm.Sendrecv([x[1:2], MPI.DOUBLE], left, recvbuf=[x[-1:], MPI.DOUBLE], source=right)
    return x[2:] - x[:-2]


@case
def columns_by_copies(comm: Any, x: Any) -> Any:
    grid = np.reshape(x, (2, 3))
    left, right = neighbours(comm)
    column = np.empty(2)
    comm.Sendrecv(np.ascontiguousarray(grid[:, 1]), right, 0, column, left, 0)
    grid[:, 0] = column
    return grid[:, :2] * 1.0


@case
def nonblocking_buffers(comm: Any, x: Any) -> Any:
    left, right = neighbours(comm)
    arrived = np.empty(2)
    requests = [comm.Irecv(arrived, left), comm.Isend(x[3:5].copy(), right)]
    MPI.Request.Waitall(requests)
    return arrived[1] * 2.0


@case
def buffer_that_is_replaced(comm: Any, x: Any) -> Any:
    left, right = neighbours(comm)
    comm.Sendrecv_replace(x, right, source=left)
    return x[:2] * 1.0


@case
def bcast_of_a_buffer(comm: Any, x: Any) -> Any:
    comm.Bcast(x, root=1)
    return x[comm.rank] + 0.0


@case
def reduce_of_buffers(comm: Any, x: Any) -> Any:
    total = np.empty(2)
    comm.Reduce(x[2:4], total, op=MPI.MIN, root=0)
    return total[1] if comm.rank == 0 else None


@case
def allreduce_of_buffers(comm: Any, x: Any) -> Any:
    total = np.empty(6)
    comm.Allreduce(x * x[0], total, op=MPI.PROD)
    return total[2:4]


@case
def allreduce_in_place(comm: Any, x: Any) -> Any:
    comm.Allreduce(MPI.IN_PLACE, x)
    return x[1] + x[3]


@case
def allreduce_of_truth(comm: Any, x: Any) -> Any:
    met = np.empty(2, dtype=bool)
    comm.Allreduce(x[:2] > 5.0, met, op=MPI.LOR)
    return met[1:]


@case
def gather_of_buffers(comm: Any, x: Any) -> Any:
    whole = np.empty((comm.size, 2)) if comm.rank == 0 else None
    comm.Gather(x[4:], whole)
    return whole[:, 1] if comm.rank == 0 else None


@case
def gather_of_unequal_buffers(comm: Any, x: Any) -> Any:
    counts = [rank + 1 for rank in range(comm.size)]
    whole = np.empty(sum(counts)) if comm.rank == 0 else None
    comm.Gatherv(x[: comm.rank + 1], [whole, counts] if comm.rank == 0 else None)
    return whole[1:] if comm.rank == 0 else None


@case
def allgather_of_buffers(comm: Any, x: Any) -> Any:
    whole = np.empty(2 * comm.size)
    comm.Allgather(x[:2], whole)
    return whole[::2]


@case
def allgather_in_place(comm: Any, x: Any) -> Any:
    whole = np.zeros((comm.size, 3))
    whole[comm.rank] = x[:3]
    comm.Allgather(MPI.IN_PLACE, whole)
    return whole[:, 1:]


@case
def allgather_of_unequal_buffers(comm: Any, x: Any) -> Any:
    counts = np.arange(comm.size) + 2
    starts = np.cumsum(counts) - counts
    whole = np.empty(counts.sum())
    comm.Allgatherv(x[: comm.rank + 2], [whole, counts, starts, MPI.DOUBLE])
    return whole[starts]


@case
def scatter_of_buffers(comm: Any, x: Any) -> Any:
    own = np.empty(1)
    comm.Scatter(x[1 : 1 + comm.size] if comm.rank == 1 else None, own, root=1)
    return own * 3.0


@case
def alltoall_of_buffers(comm: Any, x: Any) -> Any:
    arrived = np.empty(comm.size)
    comm.Alltoall(x[: comm.size].copy(), arrived)
    return arrived[0]


# ---- communicators ----


@case
def halves_of_the_world(comm: Any, x: Any) -> Any:
    half = comm.Split(comm.rank % 2, -comm.rank)
    total = half.allreduce(x[comm.rank % 2])
    return total, half.bcast(x[3])


@case
def a_ring_of_its_own(comm: Any, x: Any) -> Any:
    ring = comm.Create_cart([comm.size], periods=[True])
    source, dest = ring.Shift(0, 1)
    return ring.sendrecv(x[3], dest, source=source)


@case
def same_tags_on_two_communicators(comm: Any, x: Any) -> Any:
    other = comm.Dup()
    left, right = neighbours(comm)
    comm.send(x[0], right)
    other.send(x[1], right)
    second, first = other.recv(source=left), comm.recv(source=left)
    del first
    return second * 2.0


@case
def several_crossings(comm: Any, x: Any) -> Any:
    left, right = neighbours(comm)
    y = x[:2]
    for _ in range(3):
        y = y + comm.sendrecv(y, right, source=left)
    return comm.allreduce(y[1])


def main() -> None:
    comm = MPI.COMM_WORLD
    results = {}
    for name in sys.argv[1:] or CASES:
        function = CASES[name]
        rng = np.random.default_rng(comm.rank)
        x = rng.uniform(1.0, 2.0, SIZE)
        found = profile(
            lambda state: dict(state),
            {"x": x},
            lambda state, function=function: function(comm, state["x"]),
            comm=comm.raw,
        )
        masks = comm.raw.gather(found.map["x"].critical.astype(int).tolist())
        sinks = comm.raw.gather(sorted({sink.kind for sink in found.sinks}))
        results[name] = {"masks": masks, "brute": brute_force(comm, function, x), "sinks": sinks}
    if comm.rank == 0:
        print(json.dumps(results))


def brute_force(comm: Any, function: Callable[[Any, Any], Any], x: Any) -> list[list[int]]:
    """Of each rank's elements, whether changing one changes a result anywhere."""
    plain = results_of(comm, function, x)
    found = np.zeros((comm.size, SIZE), dtype=int)
    for rank in range(comm.size):
        for place in range(SIZE):
            for amount in (100.0, -100.0):
                changed = x.copy()
                if comm.rank == rank:
                    changed[place] += amount
                same = results_of(comm, function, changed) == plain
                if not comm.raw.allreduce(same, op=MPI.LAND):
                    found[rank, place] = 1
                    break
    return found.tolist()


def results_of(comm: Any, function: Callable[[Any, Any], Any], x: Any) -> list[bytes]:
    comm.Barrier()
    return [np.asarray(leaf).tobytes() for _, leaf in leaves(function(comm, x.copy()))]


if __name__ == "__main__":
    main()
