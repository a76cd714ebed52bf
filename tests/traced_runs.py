"""Runs of a program as the launcher leaves them, for the tests of ``scr_critplugin.tracing``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
from traces import CRITICAL, DEAD, NEVER, READ, UNUSED, WRITTEN, TraceBuilder

from scr_critplugin.tracing.run_folder import RankRecord, Run, read_run

REASONS = {CRITICAL: READ, DEAD: WRITTEN, UNUSED: NEVER}
RECORD = RankRecord(
    rank=0,
    ranks=1,
    host="node",
    program="/nowhere/app",
    build_id="1234",
    arguments=("--steps", "3"),
    working_directory="/p",
    prefix="/p",
    started="2030-01-01T00:00:00+00:00",
    exit_code=0,
)


def save_run(folder: Path, traces: Sequence[TraceBuilder], record: RankRecord = RECORD) -> Run:
    """Write a run's folder and read it."""
    folder.mkdir(parents=True)
    for trace in traces:
        trace.save(folder / f"rank-{trace.rank}")
        own = replace(record, rank=trace.rank, ranks=len(traces))
        (folder / f"rank-{trace.rank}.json").write_text(json.dumps(asdict(own)))
    return read_run(folder)


def add_states(trace: TraceBuilder, file: int, offset: int, states: np.ndarray, itemsize: int = 1) -> None:
    """State records for an array of ElementStates at an offset of a file, in C order."""
    flat = np.repeat(np.asarray(states, np.uint8).ravel(), itemsize)
    edges = [0, *(np.flatnonzero(flat[1:] != flat[:-1]) + 1).tolist(), flat.size]
    for start, stop in pairwise(edges):
        state = int(flat[start])
        trace.state(file, offset + start, stop - start, state, REASONS[state])
