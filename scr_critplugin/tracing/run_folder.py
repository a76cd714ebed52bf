"""What the ranks of a traced job leave under the prefix, and who of them is the last.

``.scr_crit/trace/<run>/`` holds for every rank N ``rank-N.trace`` and ``rank-N.runs`` (the tracer's) and
``rank-N.json`` (this module's: what was started, and how it ended). A rank holds a lock on ``rank-N.alive``
as long as it lives, so that the others can tell one that died from one that still runs, on whatever node.
Whoever is done looks, under the run's lock, who is not: the last one does what is left. There is no other
communication, and nobody waits. Imports ``trace_file``, ``_storage`` and the errors.
Tests: ``tests/test_tracing_run_folder.py``.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Self

from .._storage import replace_file
from ..errors import StorageError, TraceError
from .trace_file import RankTrace, read_trace

TRACES = Path(".scr_crit") / "trace"
_WHOLE = "whole"  # marks a run whose ranks all ended well; only such runs are used again
_LOCK = "lock"


@dataclass(frozen=True)
class RankRecord:
    """What one rank started, and how it ended; `exit_code` is None until it has."""

    rank: int
    ranks: int
    host: str
    program: str
    build_id: str
    arguments: tuple[str, ...]
    working_directory: str
    prefix: str
    started: str
    environment: Mapping[str, str] = field(default_factory=dict)
    fingerprints: Mapping[str, str] = field(default_factory=dict)
    exit_code: int | None = None
    problem: str = ""


@dataclass(frozen=True)
class Run:
    """A run of the program: the records and traces of all its ranks, by rank."""

    name: str
    ranks: tuple[tuple[RankRecord, RankTrace], ...]

    @property
    def ended(self) -> bool:
        """Whether every rank was traced until it ended by itself, successfully."""
        return all(
            trace.window.end == "end" and trace.window.exit_code == 0 and record.exit_code == 0
            for record, trace in self.ranks
        )

    @property
    def record(self) -> RankRecord:
        """That of the lowest rank."""
        return self.ranks[0][0]


@dataclass(frozen=True)
class Standing:
    """How the ranks of a run stand, as the last one to look finds them."""

    records: tuple[RankRecord, ...]
    running: tuple[int, ...]
    died: tuple[int, ...]
    missing: tuple[int, ...]

    @property
    def is_last(self) -> bool:
        """Whether no rank is left that could do what is to be done."""
        return not self.running

    def problems(self) -> list[str]:
        """Why there can be no plan of this run, for the user."""
        found = [
            f"rank {one.rank}: {one.problem or f'exit status {one.exit_code}'}"
            for one in self.records
            if one.exit_code != 0 or one.problem
        ]
        if self.died:
            found.append(f"{_ranks(self.died)} died without a word: killed, or the node is gone")
        if self.missing:
            found.append(
                f"{_ranks(self.missing)} never came to this run's folder: not started, on a node that does "
                "not see it, or under another name (set SCR_CRIT_TRACE_RUN to the same text on all ranks)"
            )
        return found


class Seat:
    """A rank's place in the run's folder, from its start to its end.

    Raises
    ------
    TraceError
        Another process has this rank's place.
    StorageError
        The folder cannot be made or written.
    """

    def __init__(self, prefix: Path, run: str, record: RankRecord) -> None:
        self.folder = _unused(prefix / TRACES, run)
        self.record = record
        self.scaffolding: tuple[str, ...] = (_LOCK,)
        """Names in the folder that are of no use once all ranks have ended."""
        with _refusals(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            self._alive = (self.folder / f"rank-{record.rank}.alive").open("w")
        with self._locked():
            try:
                fcntl.flock(self._alive, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                self._alive.close()
                raise TraceError(
                    "another process has this rank's place in this run; does every rank start one scr_crit, "
                    "and has the launcher set the rank's variable (PMI_RANK, PMIX_RANK, "
                    "OMPI_COMM_WORLD_RANK, SLURM_PROCID)?",
                    path=self.folder,
                    rank=record.rank,
                ) from error
            self._write()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._alive.close()

    @property
    def trace(self) -> Path:
        """PREFIX of the rank's trace."""
        return self.folder / f"rank-{self.record.rank}"

    def done(self, exit_code: int, problem: str = "", ranks: int = 0) -> Standing:
        """Tell that this rank has ended, and how the others stand.

        `ranks` is their number where only the trace knows. One of those that come here is the last.
        """
        self.record = replace(
            self.record, exit_code=exit_code, problem=problem, ranks=self.record.ranks or ranks
        )
        with self._locked():
            self._write()
            # From here on this rank is no longer one that runs.
            fcntl.flock(self._alive, fcntl.LOCK_UN)
            return self._standing()

    def mark_whole(self) -> None:
        """Make the run one that may be used: its ranks all ended well."""
        with _refusals(self.folder):
            for path in self.folder.glob("rank-*.alive"):
                path.unlink()
            for name in self.scaffolding:
                path = self.folder / name
                if path.is_dir():
                    shutil.rmtree(path, ignore_errors=True)
                else:
                    path.unlink(missing_ok=True)
            (self.folder / _WHOLE).touch()

    def remove(self) -> None:
        """Remove what the run left, for it is of no use."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _write(self) -> None:
        path = self.folder / f"rank-{self.record.rank}.json"
        replace_file(path, [json.dumps(asdict(self.record), indent=1).encode()])

    def _standing(self) -> Standing:
        records = [_read_record(path) for path in sorted(self.folder.glob("rank-*.json"))]
        done = [record for record in records if record.exit_code is not None]
        others = [record.rank for record in records if record.exit_code is None]
        running = [rank for rank in others if self._is_held(rank)]
        missing = set(range(self.record.ranks)) - {record.rank for record in records}
        return Standing(
            tuple(sorted(done, key=lambda record: record.rank)),
            tuple(sorted(running)),
            tuple(sorted(set(others) - set(running))),
            tuple(sorted(missing)),
        )

    def _is_held(self, rank: int) -> bool:
        with (self.folder / f"rank-{rank}.alive").open("a") as stream:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return True
        return False

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with _refusals(self.folder), (self.folder / _LOCK).open("w") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX)
            yield


# Runs that are over ---------------------------------------------------------------------------------------


def earlier_runs(prefix: Path) -> list[Path]:
    """Folders of whole runs under the prefix, the newest last."""
    marks = (prefix / TRACES).glob(f"*/{_WHOLE}")
    return [mark.parent for mark in sorted(marks, key=lambda mark: (mark.stat().st_mtime_ns, str(mark)))]


def read_run(folder: Path) -> Run:
    """Read the records and traces of a run.

    Raises
    ------
    TraceError, StorageError
        They are not whole, do not agree, or cannot be read.
    """
    records = sorted(map(_read_record, folder.glob("rank-*.json")), key=lambda record: record.rank)
    if not records:
        raise TraceError("found no rank-N.json in this run, expected one for each rank", path=folder)
    found = []
    for record in records:
        trace = read_trace(folder / f"rank-{record.rank}")
        if trace.rank not in (-1, record.rank):
            raise TraceError(
                f"MPI calls this process rank {trace.rank}, the launcher said {record.rank}; "
                "start one scr_crit a rank",
                path=folder,
                rank=record.rank,
            )
        found.append((record, trace))
    return Run(folder.name, tuple(found))


def build_of(folder: Path) -> str:
    """Build-id of the program that a run was of; "" if the run has no record."""
    path = next(iter(sorted(folder.glob("rank-*.json"))), None)
    return _read_record(path).build_id if path is not None else ""


def forget_runs(folders: Sequence[Path]) -> None:
    """Remove runs; what cannot be removed stays."""
    for folder in folders:
        with suppress(OSError):
            (folder / _WHOLE).unlink()
        shutil.rmtree(folder, ignore_errors=True)


def _read_record(path: Path) -> RankRecord:
    try:
        given = json.loads(path.read_bytes())
    except OSError as error:
        raise StorageError(f"cannot be read: {error.strerror}", errno=error.errno, path=path) from error
    except ValueError as error:
        raise TraceError(f"expected the record of a rank in JSON: {error}", path=path) from error
    known = {one.name: str(one.type) for one in fields(RankRecord)}
    if not isinstance(given, dict) or not _fits(given, known):
        raise TraceError(f"expected the record of a rank with {', '.join(known)}", path=path)
    return RankRecord(**{**given, "arguments": tuple(given["arguments"])})


_TYPES: dict[str, type | tuple[type, ...]] = {
    "int": int,
    "str": str,
    "int | None": (int, type(None)),
    "tuple[str, ...]": list,
    "Mapping[str, str]": dict,
}


def _fits(given: Mapping[str, Any], known: Mapping[str, str]) -> bool:
    return set(given) == set(known) and all(isinstance(given[name], _TYPES[known[name]]) for name in known)


def _ranks(numbers: Sequence[int]) -> str:
    shown = ", ".join(map(str, numbers[:8])) + (", ..." if len(numbers) > 8 else "")
    return f"rank {shown}" if len(numbers) == 1 else f"ranks {shown}"


def _unused(traces: Path, run: str) -> Path:
    """Folder for a run of this name; earlier ones of the same name are over, and keep theirs."""
    number = 1
    while True:
        folder = traces / (run if number == 1 else f"{run}.{number}")
        if not (folder / _WHOLE).exists():
            return folder
        number += 1


def run_name(identity: str) -> str:
    """The folder's name for what the ranks of one job have in common."""
    return re.sub(r"[^A-Za-z0-9._-]+", "_", identity)[:100].lstrip(".") or "run"


@contextmanager
def _refusals(path: Path) -> Iterator[None]:
    try:
        yield
    except StorageError:
        raise
    except OSError as error:
        raise StorageError(
            f"cannot be used for traces: {os.strerror(error.errno or 0)}", errno=error.errno, path=path
        ) from error
