"""mpi4py's methods for a program that is being profiled: its lowercase ones, requests, and who may pass.

A method that is not here goes to mpi4py as it is, unless it would lose a dependence or wait for a message
that travels another way: then it raises.

May import `communication`, `buffers`, `parcels` and the errors; mpi4py when called. Tests:
``tests/test_mpi_profile.py``.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from autograd.tracer import isbox

from scr_critplugin.analysis.buffers import Region, region_in, regions_in
from scr_critplugin.analysis.communication import Communication, Expected, Link, Operation
from scr_critplugin.analysis.operations import of_arrays, of_objects
from scr_critplugin.errors import ProfileError


def method(communication: Communication, comm: Any, label: tuple[Any, ...], name: str) -> Any:
    """What stands for the attribute `name` of the mpi4py communicator `comm`.

    `label` tells it from other communicators of the same ranks.
    """
    if name.startswith("_"):
        raise AttributeError(name)
    if hasattr(Methods, name):
        return getattr(Methods(communication.link(comm, label)), name)
    member = getattr(comm, name)
    return _guarded(member, name) if callable(member) else member


_ELSEWHERE = frozenset(
    [
        "probe",
        "iprobe",
        "mprobe",
        "improbe",
        "Probe",
        "Iprobe",
        "Mprobe",
        "Improbe",
        "Send_init",
        "Ssend_init",
        "Bsend_init",
        "Rsend_init",
        "Recv_init",
        "Psend_init",
        "Precv_init",
        "Accept",
        "Connect",
        "Spawn",
        "Join",
    ]
)
"""Methods that would look for messages where they do not pass while a program is profiled."""


def _guarded(member: Callable[..., Any], name: str) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        if name in _ELSEWHERE:
            raise ProfileError(f"{name} is not supported while a program is profiled", key=name)
        if any(_holds_traced(value) for value in (*args, *kwargs.values())):
            raise ProfileError(
                f"{name} was given values of the traced state, and there is no rule for it. Use send, recv, "
                "sendrecv, bcast, reduce, allreduce, gather, allgather, alltoall or scatter, or their "
                "forms for "
                "buffers",
                key=name,
            )
        return member(*args, **kwargs)

    return call


def _holds_traced(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_holds_traced, value.values()))
    return any(map(_holds_traced, value)) if isinstance(value, (list, tuple)) else bool(isbox(value))


class Request:
    """A nonblocking operation of a program that is being profiled; `finish` makes what `wait` returns."""

    def __init__(self, expected: Expected | None, finish: Callable[[Any], Any]) -> None:
        self._expected = expected
        self._finish = finish
        self._is_done = False
        self._result: Any = None

    def wait(self, status: Any = None) -> Any:
        """Complete the operation; the object received."""
        if not self._is_done:
            self._is_done = True
            if self._expected is not None:
                message = self._expected.message()
                _tell(status, message.source, message.tag)
                self._result = self._finish(self._expected.opened(message))
        return self._result

    def test(self, status: Any = None) -> tuple[bool, Any]:
        """Whether it is complete, and the object received."""
        if not self._is_done and self._expected is not None and not self._expected.has_arrived():
            return False, None
        return True, self.wait(status)

    def Wait(self, status: Any = None) -> bool:  # noqa: N802
        """Complete the operation."""
        self.wait(status)
        return True

    def Test(self, status: Any = None) -> bool:  # noqa: N802
        """Whether it is complete."""
        return self.test(status)[0]


class Methods:
    """The methods, with the arguments and results of mpi4py's."""

    def __init__(self, link: Link) -> None:
        self._link = link

    # ---- one to one ----

    def send(self, obj: Any, dest: int, tag: int = 0) -> None:
        dest = operator.index(dest)
        if dest != _null():
            self._link.post(obj, [dest], operator.index(tag))

    def isend(self, obj: Any, dest: int, tag: int = 0) -> Request:
        self.send(obj, dest, tag)
        return Request(None, _unchanged)

    def recv(self, buf: Any = None, source: int = -1, tag: int = -1, status: Any = None) -> Any:
        return self.irecv(buf, source, tag).wait(status)

    def irecv(self, buf: Any = None, source: int = -1, tag: int = -1) -> Request:
        return self._request(source, tag, _unchanged)

    def sendrecv(
        self,
        sendobj: Any,
        dest: int,
        sendtag: int = 0,
        recvbuf: Any = None,
        source: int = -1,
        recvtag: int = -1,
        status: Any = None,
    ) -> Any:
        self.send(sendobj, dest, sendtag)
        return self.recv(None, source, recvtag, status)

    ssend = bsend = send
    issend = ibsend = isend

    def Send(self, buf: Any, dest: int, tag: int = 0) -> None:  # noqa: N802
        self.send(region_in(buf).contents(), dest, tag)

    def Isend(self, buf: Any, dest: int, tag: int = 0) -> Request:  # noqa: N802
        self.Send(buf, dest, tag)
        return Request(None, _unchanged)

    def Recv(self, buf: Any, source: int = -1, tag: int = -1, status: Any = None) -> None:  # noqa: N802
        self.Irecv(buf, source, tag).wait(status)

    def Irecv(self, buf: Any, source: int = -1, tag: int = -1) -> Request:  # noqa: N802
        return self._request(source, tag, region_in(buf).store)

    def Sendrecv(  # noqa: N802
        self,
        sendbuf: Any,
        dest: int,
        sendtag: int = 0,
        recvbuf: Any = None,
        source: int = -1,
        recvtag: int = -1,
        status: Any = None,
    ) -> None:
        self.Send(sendbuf, dest, sendtag)
        self.Recv(recvbuf, source, recvtag, status)

    def Sendrecv_replace(  # noqa: N802
        self, buf: Any, dest: int, sendtag: int = 0, source: int = -1, recvtag: int = -1, status: Any = None
    ) -> None:
        self.Sendrecv(buf, dest, sendtag, buf, source, recvtag, status)

    Ssend = Bsend = Rsend = Send
    Issend = Ibsend = Irsend = Isend

    def _request(self, source: int, tag: int, finish: Callable[[Any], Any]) -> Request:
        source, tag = operator.index(source), operator.index(tag)
        if source == _null():
            return Request(None, finish)
        wildcard_source, wildcard_tag = _wildcards()
        expected = self._link.expect(
            None if source == wildcard_source else source, None if tag == wildcard_tag else tag
        )
        return Request(expected, finish)

    # ---- one to all, all to one, all to all ----

    def bcast(self, obj: Any, root: int = 0) -> Any:
        link, tag = self._link, self._link.number_collective("bcast")
        if link.rank != root:
            return link.receive(root, tag, collective="bcast")
        link.post(obj, [rank for rank in range(link.size) if rank != root], tag, collective="bcast")
        return obj

    def scatter(self, sendobj: Sequence[Any] | None, root: int = 0) -> Any:
        link, tag = self._link, self._link.number_collective("scatter")
        if link.rank == root:
            self._post_each(sendobj, tag, "scatter")
        return link.receive(root, tag, collective="scatter")

    def gather(self, sendobj: Any, root: int = 0) -> list[Any] | None:
        link, tag = self._link, self._link.number_collective("gather")
        link.post(sendobj, [root], tag, collective="gather")
        return self._from_each(tag, "gather") if link.rank == root else None

    def allgather(self, sendobj: Any) -> list[Any]:
        link, tag = self._link, self._link.number_collective("allgather")
        link.post(sendobj, range(link.size), tag, collective="allgather")
        return self._from_each(tag, "allgather")

    def alltoall(self, sendobj: Sequence[Any]) -> list[Any]:
        tag = self._link.number_collective("alltoall")
        self._post_each(sendobj, tag, "alltoall")
        return self._from_each(tag, "alltoall")

    def barrier(self) -> None:
        self._link.meet()

    Barrier = barrier

    def _post_each(self, things: Any, tag: int, name: str) -> None:
        things = [] if things is None else list(things)
        if len(things) != self._link.size:
            raise ValueError(f"expecting {self._link.size} items, got {len(things)}")
        for rank, thing in enumerate(things):
            self._link.post(thing, [rank], tag, collective=name)

    def _from_each(self, tag: int, name: str) -> list[Any]:
        return [self._link.receive(rank, tag, collective=name) for rank in range(self._link.size)]

    def reduce(self, sendobj: Any, op: Any = None, root: int = 0) -> Any:
        return self._link.reduce(sendobj, of_objects(op), [root])

    def allreduce(self, sendobj: Any, op: Any = None) -> Any:
        return self._link.reduce(sendobj, of_objects(op), range(self._link.size))

    # ---- the same for buffers ----

    def Bcast(self, buf: Any, root: int = 0) -> None:  # noqa: N802
        region = region_in(buf)
        arrived = self.bcast(region.contents() if self._link.rank == root else None, root)
        if self._link.rank != root:
            region.store(arrived)

    def Reduce(self, sendbuf: Any, recvbuf: Any, op: Any = None, root: int = 0) -> None:  # noqa: N802
        self._reduce_buffers(sendbuf, recvbuf, of_arrays(op), [root])

    def Allreduce(self, sendbuf: Any, recvbuf: Any, op: Any = None) -> None:  # noqa: N802
        self._reduce_buffers(sendbuf, recvbuf, of_arrays(op), range(self._link.size))

    def _reduce_buffers(self, sendbuf: Any, recvbuf: Any, operation: Operation, roots: Sequence[int]) -> None:
        given = region_in(recvbuf if _is_in_place(sendbuf) else sendbuf).contents()
        total = self._link.reduce(given, operation, roots)
        if self._link.rank in roots:
            region_in(recvbuf).store(total)

    def Gather(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> None:  # noqa: N802
        own, size = self._link.rank, self._link.size
        parts = regions_in(recvbuf, size) if own == root else []
        given = parts[own].contents() if _is_in_place(sendbuf) else region_in(sendbuf).contents()
        _store_each(parts, self.gather(given, root) or [])

    Gatherv = Gather

    def Allgather(self, sendbuf: Any, recvbuf: Any) -> None:  # noqa: N802
        parts = regions_in(recvbuf, self._link.size)
        in_place = _is_in_place(sendbuf)
        given = parts[self._link.rank].contents() if in_place else region_in(sendbuf).contents()
        _store_each(parts, self.allgather(given))

    Allgatherv = Allgather

    def Scatter(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> None:  # noqa: N802
        own, size = self._link.rank, self._link.size
        given = [part.contents() for part in regions_in(sendbuf, size)] if own == root else None
        arrived = self.scatter(given, root)
        if not _is_in_place(recvbuf):
            region_in(recvbuf).store(arrived)

    Scatterv = Scatter

    def Alltoall(self, sendbuf: Any, recvbuf: Any) -> None:  # noqa: N802
        parts = regions_in(recvbuf, self._link.size)
        given = parts if _is_in_place(sendbuf) else regions_in(sendbuf, self._link.size)
        _store_each(parts, self.alltoall([part.contents() for part in given]))

    Alltoallv = Alltoall


def _store_each(parts: Sequence[Region], arrived: Sequence[Any]) -> None:
    for part, values in zip(parts, arrived, strict=True):
        part.store(values)


def _unchanged(value: Any) -> Any:
    return value


def _tell(status: Any, source: int, tag: int) -> None:
    """Fill in an mpi4py status."""
    if status is not None:
        status.Set_source(source)
        status.Set_tag(tag)


def _null() -> int:
    from mpi4py import MPI

    return int(MPI.PROC_NULL)


def _wildcards() -> tuple[int, int]:
    from mpi4py import MPI

    return int(MPI.ANY_SOURCE), int(MPI.ANY_TAG)


def _is_in_place(buffer: Any) -> bool:
    from mpi4py import MPI

    return not isinstance(buffer, np.ndarray) and not isbox(buffer) and buffer is MPI.IN_PLACE
