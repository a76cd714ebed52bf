"""MPI for programs that are to be profiled: mpi4py, with communicators whose messages a profile can follow.

``from scr_critplugin import mpi as MPI`` stands for ``from mpi4py import MPI``. While no profile is being
made, every call goes to mpi4py as it is. While `scr_critplugin.analysis.profile` runs, the calls are
recorded, so that dependence crosses from rank to rank.

Imports nothing of the package but the errors, and mpi4py on first use: a production run pays for neither
autograd nor the analysis. Tests: ``tests/test_mpi_profile.py``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from scr_critplugin.errors import ProfileError

Label = tuple[Any, ...]

_analysis: Any = None


@contextmanager
def under_analysis(method: Callable[[Any, Label, str], Any]) -> Iterator[None]:
    """Let ``method(communicator, label, name)`` make the methods of communicators while the block runs."""
    global _analysis
    before, _analysis = _analysis, method
    try:
        yield
    finally:
        _analysis = before


class Comm:
    """A communicator of mpi4py whose messages a profile can follow.

    Attributes and methods are those of `raw`: ``send``, ``recv``, ``sendrecv``, ``isend``, ``irecv``,
    ``bcast``, ``reduce``, ``allreduce``, ``gather``, ``allgather``, ``alltoall``, ``scatter``, their
    uppercase forms for buffers, ``rank``, ``size``, ``Split``, ``Create_cart`` and so on. Methods that make a
    communicator return a `Comm`.

    Parameters
    ----------
    raw : mpi4py communicator, optional
        Default: ``MPI.COMM_WORLD``.

    Raises
    ------
    ProfileError
        In a profile: traced values are given to a method that has no rule, or messages would not be found.
    """

    __slots__ = ("_children", "_label", "raw")

    raw: Any
    _label: Label
    _children: int

    def __init__(self, raw: Any = None, *, _label: Label = ()) -> None:
        self.raw = raw.raw if isinstance(raw, Comm) else _mpi4py().COMM_WORLD if raw is None else raw
        self._label = _label
        self._children = 0

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "raw":
            raise AttributeError(name)
        member = getattr(self.raw, name) if _analysis is None else _analysis(self.raw, self._label, name)
        return self._making_one(member, name) if name in _MAKERS else member

    def _making_one(self, member: Callable[..., Any], name: str) -> Callable[..., Any]:
        """`member`, with a `Comm` as its result. Its label is the same on all ranks and its own."""

        def make(*args: Any, **kwargs: Any) -> Comm:
            made = member(*args, **kwargs)
            # Create_group is no matter of those that are not in the group, so it must not count.
            self._children += name != "Create_group"
            return Comm(made, _label=(*self._label, name, self._children))

        return make

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self.raw)})

    def __eq__(self, other: object) -> bool:
        return bool(self.raw == (other.raw if isinstance(other, Comm) else other))

    def __hash__(self) -> int:
        return id(self.raw)

    def __bool__(self) -> bool:
        return bool(self.raw)

    def __repr__(self) -> str:
        return f"<Comm of {self.raw!r}>"


_MAKERS = frozenset(
    [
        "Clone",
        "Dup",
        "Dup_with_info",
        "Split",
        "Split_type",
        "Create",
        "Create_group",
        "Create_cart",
        "Create_graph",
        "Create_dist_graph",
        "Create_dist_graph_adjacent",
        "Sub",
    ]
)
"""Methods that return a communicator."""


class Request:
    """The functions of mpi4py's ``Request`` that take several requests, also those of a profile."""

    @staticmethod
    def waitall(requests: Sequence[Any], statuses: list[Any] | None = None) -> list[Any]:
        """Complete all; the objects received, None for sends."""
        if _are_raw(requests):
            results: list[Any] = _mpi4py().Request.waitall(requests, statuses)
            return results
        return [request.wait(status) for request, status in _with_statuses(requests, statuses)]

    @staticmethod
    def Waitall(requests: Sequence[Any], statuses: list[Any] | None = None) -> bool:  # noqa: N802
        """Complete all."""
        if _are_raw(requests):
            return bool(_mpi4py().Request.Waitall(requests, statuses))
        return all(request.Wait(status) for request, status in _with_statuses(requests, statuses))


def _are_raw(requests: Sequence[Any]) -> bool:
    return all(isinstance(request, _mpi4py().Request) for request in requests)


def _with_statuses(requests: Sequence[Any], statuses: list[Any] | None) -> list[tuple[Any, Any]]:
    if statuses is not None:
        statuses.extend(_mpi4py().Status() for _ in range(len(requests) - len(statuses)))
    return list(zip(requests, statuses or [None] * len(requests), strict=True))


def world_if_parallel() -> Any:
    """mpi4py's ``COMM_WORLD`` if this process is one of several that an MPI launcher started, else None.

    A process that no launcher started does not import mpi4py for it.

    Raises
    ------
    ProfileError
        A launcher started several ranks, but mpi4py is missing, or belongs to another MPI and sees only one.
    """
    started = _ranks_started()
    if started <= 1:
        return None
    world = _mpi4py().COMM_WORLD
    if world.size == 1:
        raise ProfileError(
            f"a launcher started {started} ranks, but mpi4py sees one: it uses another MPI than the launcher "
            f"({_mpi4py().Get_library_version().splitlines()[0]}). Use the mpiexec of that MPI"
        )
    return world


_SIZES = (
    "PMI_SIZE",
    "OMPI_COMM_WORLD_SIZE",
    "MV2_COMM_WORLD_SIZE",
    "MPI_LOCALNRANKS",
    "SLURM_STEP_NUM_TASKS",
    "PALS_SIZE",
    "JSM_NAMESPACE_SIZE",
)
"""Where launchers say how many ranks they started: Hydra and others by PMI, Open MPI, MVAPICH, MPICH, Slurm's
srun, PALS, jsrun. Slurm's SLURM_NTASKS would not do: it is also set in a batch script, which is one
process."""


def _ranks_started() -> int:
    sizes = (os.environ.get(name, "") for name in _SIZES)
    return max((int(size) for size in sizes if size.isdecimal()), default=1)


def path_of_rank(template: str | os.PathLike[str], comm: Any) -> str:
    """The path that `template` gives for this rank: ``map.{rank}.npz`` or ``map.{rank:05d}.npz``.

    `comm` is an mpi4py communicator, or None for a serial program, which needs no ``{rank}``.

    Raises
    ------
    ProfileError
        Several ranks would write the same file, or the braces hold something else than ``rank``.
    """
    text = os.fspath(template)
    if comm is None and "{rank" not in text:
        return text
    try:
        paths = [text.format(rank=rank) for rank in ((0, 1) if comm is None or comm.size > 1 else (0,))]
        path = text.format(rank=0 if comm is None else comm.rank)
    except (KeyError, IndexError, ValueError) as error:
        raise ProfileError(f"expected {{rank}} in the braces, found {error}", path=text) from error
    if len(set(paths)) < len(paths):
        raise ProfileError(
            "every rank writes a map of its own, and they would have one name. Put {rank} into it: "
            "map.{rank}.npz",
            path=text,
        )
    return path


def _mpi4py() -> Any:
    try:
        from mpi4py import MPI
    except ImportError as error:
        raise ProfileError(
            "mpi4py is needed to communicate: pip install 'scr_critplugin[mpi]', or mpi4py built with "
            "your MPI"
        ) from error
    return MPI


_LOWERCASE = frozenset(["buffer", "get_vendor", "memory", "pickle"])
"""Those names of mpi4py's MPI that do not begin with a capital."""


def __getattr__(name: str) -> Any:
    """`COMM_WORLD` and `COMM_SELF` as `Comm`; anything else is mpi4py's."""
    if not name[0].isupper() and name not in _LOWERCASE:
        # Whoever looks through modules for names of his own must not start MPI by it.
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    member = getattr(_mpi4py(), name)
    if name in ("COMM_WORLD", "COMM_SELF"):
        member = globals()[name] = Comm(member)
    return member
