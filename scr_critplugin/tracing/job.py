"""Which job this process is a rank of, from what launchers leave in the environment.

The ranks of a job do not talk to each other; the variables of MPI launchers and resource managers give each
its number, their number, and a name that is the same on all ranks and another one in the next job. Imports
the errors only. Tests: ``tests/test_tracing_job.py``.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ..errors import TraceError

NAME_VARIABLE = "SCR_CRIT_TRACE_RUN"

# Rank, number of ranks. The launcher nearest to the program comes first: mpiexec within a Slurm batch job.
_RANKS = (
    ("SCR_CRIT_TRACE_RANK", "SCR_CRIT_TRACE_RANKS"),  # for launchers that are not known here
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("FLUX_TASK_RANK", "FLUX_JOB_SIZE"),
    ("JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE"),
    ("PALS_RANKID", "PALS_SIZE"),
)
# Of tasks started by srun only: a batch script has SLURM_PROCID, too, but no step.
_SLURM = ("SLURM_PROCID", "SLURM_NTASKS")
_PMIX = "PMIX_RANK"
# Names that all ranks of a job share, across nodes.
_NAMES: tuple[tuple[str, ...], ...] = (
    ("PMIX_NAMESPACE",),
    ("FLUX_JOB_ID",),
    ("PALS_APID",),
    ("PMI_JOBID",),
    ("LSB_JOBID", "JSM_NAMESPACE_ID"),
    ("SLURM_JOB_ID", "SLURM_STEP_ID"),
)


@dataclass(frozen=True)
class Job:
    """The process's rank, the number of ranks, and the job's name.

    `ranks` is 0 where the launcher does not say.
    """

    rank: int
    ranks: int
    name: str


def find_job(environment: Mapping[str, str]) -> Job:
    """The job that this process is a rank of; a process without a launcher is rank 0 of 1.

    Raises
    ------
    TraceError
        A variable that says the rank is no number, or does not fit the number of ranks.
    """
    for rank, ranks in (*_RANKS, *([_SLURM] if "SLURM_STEP_ID" in environment else [])):
        if rank in environment and ranks in environment:
            return _job(environment, rank, ranks)
    if _PMIX in environment:
        return _job(environment, _PMIX, "SLURM_NTASKS" if "SLURM_STEP_ID" in environment else None)
    return Job(0, 1, environment.get(NAME_VARIABLE) or _process_name(os.getpid()))


def _job(environment: Mapping[str, str], rank: str, ranks: str | None) -> Job:
    number = _number(environment, rank)
    size = _number(environment, ranks) if ranks is not None else 0
    if ranks is not None and number >= size:
        raise TraceError(f"found {number} with {ranks}={size}, expected a rank below it", key=rank)
    return Job(number, size, environment.get(NAME_VARIABLE) or _shared_name(environment))


def _number(environment: Mapping[str, str], name: str) -> int:
    text = environment[name]
    if not (text.isascii() and text.isdecimal() and len(text) <= 9):
        raise TraceError(f"found {text[:80]!r}, expected a number", key=name)
    return int(text)


def _shared_name(environment: Mapping[str, str]) -> str:
    for names in _NAMES:
        if all(environment.get(name) for name in names):
            return "-".join(environment[name] for name in names)
    # Ranks of one node have one parent, the launcher's proxy. Its start time tells it from an earlier one.
    return _process_name(os.getppid())


def _process_name(process: int) -> str:
    return f"{socket.gethostname()}-{process}-{_started(process)}"


def _started(process: int) -> str:
    """When a process started, in ticks since the node did (proc(5), ``stat``, field 22)."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return "0"
