"""The harness itself: a wrong expectation, a damaged trace, a result that poison changes are noticed.

No Valgrind is needed here.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import traced_truth as allow
from traced_harness import Job, RunError, Toolchain, check, droppable, poison
from traced_records import CRITICAL, DEAD, RECORD, STATE, UNTOLD, UNUSED, TraceError, read_trace
from traced_truth import Truth, doubles, octets

HEAD = ["scr_crit-trace 1", "tool 1 valgrind 3.19", "rank 1 2"]
GENERATION = ["generation 1 output ckpt.3", "file 1 1 ckpt.3/a%20b.1 % 30"]


def write_trace(folder: Path, lines: list[str], runs: list[tuple[int, int, int]]) -> Path:
    """A trace with states (offset, length, code) of file 1."""
    path = folder / "1.trace"
    path.write_text("\n".join([*HEAD, *lines, f"runs {len(runs)}", "end"]) + "\n")
    rows = [(STATE, 1, offset, length, 0, code, -1) for offset, length, code in runs]
    np.array(rows, dtype=RECORD).tofile(path.with_suffix(".runs"))
    return path


def truth() -> Truth:
    """Three doubles and six bytes: the second double is dead."""
    made = Truth([("values", doubles(3)), ("tail", octets(6))])
    made["values"][1] = allow.DEAD
    return made


def test_reader(tmp_path: Path) -> None:
    path = write_trace(
        tmp_path,
        [*GENERATION, "warning two%20words", "window end 0 4"],
        [(0, 10, 2 | 4 << 8), (4, 2, 0 | 1 << 8), (5, 3, 3 | 6 << 8)],
    )
    trace = read_trace(path)
    assert (trace.rank, trace.window, trace.exit_code, trace.warnings) == (1, "end", 0, ["two words"])
    file = trace.generation("output", "ckpt.3").files["ckpt.3/a b.1"]
    assert file.states.tolist() == [DEAD] * 4 + [CRITICAL] * 2 + [UNUSED] * 2 + [DEAD] * 2 + [UNTOLD] * 20
    assert file.reasons.tolist() == [0] * 4 + [2] * 2 + [0] * 24


@pytest.mark.parametrize("damage", ["cut", "count", "beyond", "state"])
def test_reader_refuses(tmp_path: Path, damage: str) -> None:
    runs = {"beyond": [(28, 3, 2)], "state": [(0, 1, 7)]}.get(damage, [(0, 4, 2)])
    path = write_trace(tmp_path, GENERATION, runs)
    if damage == "cut":
        path.write_text(path.read_text().removesuffix("end\n"))
    if damage == "count":
        path.write_text(path.read_text().replace("runs 1", "runs 2"))
    with pytest.raises(TraceError):
        read_trace(path)


def test_wrong_expectations_are_noticed(tmp_path: Path) -> None:
    path = write_trace(tmp_path, GENERATION, [(0, 8, 0), (8, 8, 2), (16, 14, 0)])
    traces = [read_trace(path)]
    check(traces, 3, False, lambda rank, name, step, restart: truth())
    for place, state in (
        (("values", 0), allow.DEAD),
        (("values", 1), allow.CRITICAL),
        (("tail", 5), allow.UNUSED),
    ):
        wrong = truth()
        wrong[place[0]][place[1]] = state
        with pytest.raises(AssertionError, match=rf"{place[0]}\[{place[1]}"):
            check(traces, 3, False, lambda rank, name, step, restart, wrong=wrong: wrong)
    longer = Truth([("values", doubles(3)), ("tail", octets(7))])
    with pytest.raises(AssertionError, match="30 bytes, expected 31"):
        check(traces, 3, False, lambda rank, name, step, restart: longer)
    with pytest.raises(TraceError, match="0 generations"):
        check(traces, 6, False, lambda rank, name, step, restart: truth())


def test_untold_bytes_are_critical_in_a_checkpoint_and_nothing_in_a_restart(tmp_path: Path) -> None:
    path = write_trace(tmp_path, GENERATION, [(8, 8, 2)])
    check([read_trace(path)], 3, False, lambda rank, name, step, restart: truth())
    path.write_text(path.read_text().replace("output", "restart"))
    with pytest.raises(AssertionError, match="untold, expected critical"):
        check([read_trace(path)], 3, True, lambda rank, name, step, restart: truth())


def test_expectations_with_a_choice() -> None:
    made = Truth([("a", octets(2)), ("b", octets(2))])
    made["a"] = allow.DROPPABLE
    made["b"] = allow.DEAD | allow.UNTOLD
    assert not made.complaint(np.array([DEAD, UNUSED, UNTOLD, DEAD], dtype=np.uint8))
    assert made.wrong(np.array([CRITICAL, UNTOLD, UNUSED, CRITICAL], dtype=np.uint8)).all()


def test_first_byte_of_each_piece_that_stdio_reads_may_be_critical() -> None:
    made = Truth([("a", octets(9000))])
    made["a"] = allow.DEAD
    states = np.full(9000, DEAD, dtype=np.uint8)
    assert not made.complaint(states)
    states[[0, 4096, 8192, 8193]] = CRITICAL
    assert np.flatnonzero(made.wrong(states)).tolist() == [0, 4096, 8192, 8193]
    assert np.flatnonzero(made.read_by_stdio().wrong(states)).tolist() == [8193]


def test_the_restart_decides_unless_the_first_run_read(tmp_path: Path) -> None:
    lines = [*GENERATION, "generation 2 restart ckpt.3", "file 2 2 ckpt.3/a%20b.1 % 30"]
    path = write_trace(tmp_path, lines, [(0, 10, 0 | 2 << 8), (10, 10, 0 | 0 << 8), (20, 10, 2 | 4 << 8)])
    trace = read_trace(path)
    written = trace.generation("output", "ckpt.3").files["ckpt.3/a b.1"]
    read = trace.generation("restart", "ckpt.3").files["ckpt.3/a b.1"]
    read.add(0, 15, DEAD)
    read.add(20, 5, UNUSED)
    read.add(24, 6, CRITICAL)
    assert np.flatnonzero(droppable(written, read)).tolist() == [*range(10), *range(20, 24)]


def test_poison_in_critical_bytes_changes_the_result(serial: Toolchain, tmp_path: Path) -> None:
    job = Job(serial.build("raw_write.c"), [], 1, tmp_path, [])
    plain = job.run()
    saved = job.prefix / "ckpt.3" / "state.0"
    kept = tmp_path / "kept"
    shutil.copy(saved, kept)
    for first, last in ((16 + 8 * (4 * 12 + 4), 8), (16 + 8 * (120 + 50 + 30), 8)):
        where = np.zeros(saved.stat().st_size, dtype=bool)
        where[first : first + last] = True
        poison(saved, where)
        job.restart_from("ckpt.3")
        assert job.run() != plain
        shutil.copy(kept, saved)
    job.restart_from("ckpt.3")
    assert job.run() == plain
    poison(saved, np.arange(saved.stat().st_size) < 8)  # the magic number
    job.restart_from("ckpt.3")
    with pytest.raises(RunError, match="restart failed"):
        job.run()
