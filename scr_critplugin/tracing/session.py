"""One rank of a traced job from start to end, and what the last one does: unite, plan, save.

Imports everything beside it, and ``plan``. Knows nothing of the terminal. Tests: ``tests/test_cli_trace.py``.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from ..errors import CritError, StorageError, TraceError
from ..installation import tracer_folder
from .job import find_job
from .launch import PREPARED, Tracing, build_id_of, digest_of, find_program, prepare, run_traced
from .planning import Outcome, Shapes, make_plan
from .run_folder import (
    RankRecord,
    Run,
    Seat,
    Standing,
    build_of,
    earlier_runs,
    forget_runs,
    read_run,
    run_name,
)
from .trace_file import read_trace
from .valgrind import Valgrind, find_valgrind, tool_version

FOLDER = Path(".scr_crit")

# What changes the numerics or the checkpoints of a run, of all that an environment holds.
_RECORDED = re.compile(r"OMP_[A-Z_]+|SCR_CHECKPOINT_[A-Z_]+|SCR_CACHE_BYPASS")


@dataclass(frozen=True)
class Wishes:
    """What the user asked for, beside the program.

    Parameters
    ----------
    prefix : Path
        SCR's prefix, absolute.
    plan : Path
        Where to write the plan.
    restart : bool
        A restart must be traced.
    fresh : bool
        Earlier runs are not united with this one, and removed.
    shapes : mapping of variable to shape
    fingerprint : sequence of Path
        Input files whose digest the plan records.
    tracing : Tracing
    """

    prefix: Path
    plan: Path
    restart: bool = False
    fresh: bool = False
    shapes: Shapes = field(default_factory=dict)
    fingerprint: Sequence[Path] = ()
    tracing: Tracing = field(default_factory=Tracing)


@dataclass(frozen=True)
class Made:
    """What the last rank made: the plan with all that is known, and where it was written."""

    outcome: Outcome
    plan: Path
    maps: tuple[Path, ...]
    runs: int
    ranks: int
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Ended:
    """How this rank ended: the program's exit status, and what was made if it was the last one."""

    status: int
    made: Made | None = None
    problems: tuple[str, ...] = ()


def trace_rank(
    program: str,
    arguments: Sequence[str],
    wishes: Wishes,
    environment: Mapping[str, str],
    say: Callable[[str], None],
) -> Ended:
    """Trace this rank's process to its end; if it is the last of the job, make the plan.

    `say` is given what the user should know before the program starts, on one rank.

    Raises
    ------
    TraceError, CritError
        The program cannot be traced, or there is nothing to make a plan of.
    StorageError
        A file cannot be read or written.
    """
    path = find_program(program)
    valgrind = find_valgrind(environment)
    job = find_job(environment)
    record = RankRecord(
        rank=job.rank,
        ranks=job.ranks,
        host=socket.gethostname(),
        program=str(path.resolve()),
        build_id=build_id_of(path),
        arguments=tuple(arguments),
        working_directory=str(Path.cwd()),
        prefix=str(wishes.prefix),
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        environment={key: value for key, value in environment.items() if _RECORDED.fullmatch(key)},
        fingerprints={str(file): _digest(file) for file in wishes.fingerprint} if job.rank == 0 else {},
    )
    with Seat(wishes.prefix, run_name(job.name), record) as seat:
        traced, notes = prepare(valgrind, seat.folder, environment)
        seat.scaffolding += PREPARED
        if job.rank == 0:
            for text in [*_versions(valgrind), *notes]:
                say(text)
        status = run_traced(valgrind, seat.trace, [str(path), *arguments], traced, wishes.tracing)
        problem, ranks = _look_at(seat.trace, status, job.ranks)
        standing = seat.done(status, problem, ranks)
        if not standing.is_last:
            return Ended(status)
        return _finish(seat, standing, status, wishes)


def plan_again(wishes: Wishes) -> Made:
    """Make the plan anew from the traces under the prefix.

    Raises
    ------
    TraceError
        There are none, or they do not give a plan.
    """
    folders = earlier_runs(wishes.prefix)
    if not folders:
        raise TraceError("found no traces of earlier runs; name the program to trace", path=wishes.prefix)
    return _make(folders[-1], folders[:-1], wishes)


# The last rank --------------------------------------------------------------------------------------------


def _finish(seat: Seat, standing: Standing, status: int, wishes: Wishes) -> Ended:
    problems = standing.problems()
    if problems:
        seat.remove()
        return Ended(status or 1, None, tuple(problems))
    earlier = earlier_runs(wishes.prefix)
    seat.mark_whole()
    made = _make(seat.folder, [] if wishes.fresh else earlier, wishes)
    if wishes.fresh:
        forget_runs(earlier)
    return Ended(status, made)


def _make(newest: Path, earlier: Sequence[Path], wishes: Wishes) -> Made:
    run = read_run(newest)
    if wishes.restart and not _has_restart(run):
        raise TraceError(
            "the program did not restart: no call of SCR_Start_restart was traced. Is there a checkpoint "
            f"under the prefix {wishes.prefix}, and does the program read it by itself? (without --restart "
            "a plan is made of what was traced: scr_crit trace --prefix ...)"
        )
    runs, notes = _same_program(run, earlier)
    outcome = make_plan([*runs, run], wishes.shapes)
    return _save(outcome, wishes, len(runs) + 1, len(run.ranks), notes)


def _has_restart(run: Run) -> bool:
    return any(each.kind == "restart" for _, trace in run.ranks for each in trace.generations.values())


def _same_program(run: Run, earlier: Sequence[Path]) -> tuple[list[Run], list[str]]:
    """The earlier runs of the same build, and a note of those that are left out."""
    found, others, notes = [], 0, []
    for folder in earlier:
        try:
            if build_of(folder) != run.record.build_id:
                others += 1
                continue
            found.append(read_run(folder))
        except (TraceError, StorageError) as error:
            notes.append(f"the traces of an earlier run cannot be used: {error}")
    if others:
        notes.append(f"traces of {others} earlier runs are of another build of the program, and are left out")
    return found, notes


def _save(outcome: Outcome, wishes: Wishes, runs: int, ranks: int, notes: Sequence[str]) -> Made:
    maps = []
    folder = wishes.prefix / FOLDER / "maps"
    taken: dict[str, int] = {}
    for kind in outcome.kinds:
        if not kind.map:
            continue
        name = _file_name(kind.pattern)
        taken[name] = taken.get(name, 0) + 1
        number = "" if taken[name] == 1 else f".{taken[name]}"
        folder.mkdir(parents=True, exist_ok=True)
        maps.append(folder / f"{name}{number}.map.npz")
        kind.map.save(maps[-1])
    wishes.plan.parent.mkdir(parents=True, exist_ok=True)
    outcome.plan.save(wishes.plan)
    return Made(outcome, wishes.plan, tuple(maps), runs, ranks, tuple(notes))


def _file_name(pattern: str) -> str:
    """``{dataset}/heat.{rank}`` as ``dataset.heat.rank``."""
    return re.sub(r"[^A-Za-z0-9_.+-]+", "", pattern.replace("/", ".").replace("*", "x")).strip(".") or "file"


# This rank ------------------------------------------------------------------------------------------------


def _versions(valgrind: Valgrind) -> list[str]:
    built_with = tool_version(tracer_folder())
    texts = [f"tracing under Valgrind {valgrind.version}: expect 10 to 30 times the usual time"]
    if built_with and built_with != valgrind.version:
        texts.append(
            f"the tracer was built with Valgrind {built_with}; if it fails, install this package again"
        )
    return texts


def _look_at(trace: Path, status: int, ranks: int) -> tuple[str, int]:
    """What is wrong with this rank's trace, or "", and the number of ranks that it tells of."""
    if status != 0:
        return "", 0
    try:
        told = read_trace(trace).ranks
    except CritError as error:
        return f"the trace cannot be used: {error}", 0
    if ranks and told > ranks:
        return (
            f"MPI has {told} ranks, but the launcher's variables say {ranks}: they are not known here. Set "
            "SCR_CRIT_TRACE_RANK, SCR_CRIT_TRACE_RANKS and, to the same text on all ranks, SCR_CRIT_TRACE_RUN"
        ), told
    return "", told


def _digest(path: Path) -> str:
    try:
        return digest_of(path)
    except OSError as error:
        raise StorageError(
            f"cannot be read for its fingerprint: {error.strerror}", errno=error.errno, path=path
        ) from error
