"""``scr_critplugin.tracing.run_folder``: who is the last of a job, whoever dies; only whole runs are used."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from traced_runs import RECORD
from traces import TraceBuilder

from scr_critplugin.errors import StorageError, TraceError
from scr_critplugin.tracing.run_folder import (
    TRACES,
    RankRecord,
    Seat,
    build_of,
    earlier_runs,
    forget_runs,
    read_run,
    run_name,
)


def record(rank: int, ranks: int = 3) -> RankRecord:
    return replace(RECORD, rank=rank, ranks=ranks, exit_code=None)


def seats(folder: Path, ranks: int = 3, run: str = "job") -> list[Seat]:
    return [Seat(folder, run, record(rank, ranks)) for rank in range(ranks)]


def test_the_last_one_done_knows_it(tmp_path: Path) -> None:
    first, second, third = seats(tmp_path)
    assert not first.done(0).is_last
    assert third.done(0).running == (1,)
    standing = second.done(0)
    assert standing.is_last
    assert standing.problems() == []
    assert [each.rank for each in standing.records] == [0, 1, 2]


def _end(found: list[bool], seat: Seat) -> None:
    found.append(seat.done(0).is_last)


def test_of_many_that_end_at_once_one_is_the_last(tmp_path: Path) -> None:
    for run in range(10):
        found: list[bool] = []
        end = partial(_end, found)
        threads = [threading.Thread(target=end, args=(seat,)) for seat in seats(tmp_path, 8, f"job{run}")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(found) == [False] * 7 + [True]


_TAKE_A_SEAT = """
import sys, time
from dataclasses import replace
sys.path.insert(0, sys.argv[2])
from traced_runs import RECORD
from pathlib import Path
from scr_critplugin.tracing.run_folder import Seat
seat = Seat(Path(sys.argv[1]), "job", replace(RECORD, rank=1, ranks=2, exit_code=None))
print("sits", flush=True)
time.sleep(600)
"""


def test_a_rank_that_is_killed_is_told_and_not_waited_for(tmp_path: Path) -> None:
    command = [sys.executable, "-P", "-c", _TAKE_A_SEAT, str(tmp_path), str(Path(__file__).parent)]
    other = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    seat = Seat(tmp_path, "job", record(0, 2))
    try:
        assert other.stdout is not None and other.stdout.readline() == "sits\n"
        with Seat(tmp_path, "again", record(0, 2)):
            pass
        other.send_signal(signal.SIGKILL)
    finally:
        other.wait()
    standing = seat.done(0)
    assert standing.is_last
    assert standing.died == (1,)
    assert "rank 1 died" in standing.problems()[0]


def test_failures_and_absent_ranks_are_told(tmp_path: Path) -> None:
    first, second = (Seat(tmp_path, "job", record(rank, 4)) for rank in (0, 3))
    first.done(3)
    problems = second.done(0, "the trace cannot be used").problems()
    assert problems[0] == "rank 0: exit status 3"
    assert problems[1] == "rank 3: the trace cannot be used"
    assert problems[2].startswith("ranks 1, 2 never came")
    assert "SCR_CRIT_TRACE_RUN" in problems[2]


def test_the_number_of_ranks_may_be_known_from_the_trace_only(tmp_path: Path) -> None:
    seat = Seat(tmp_path, "job", record(0, 0))
    assert seat.done(0, ranks=2).missing == (1,)


def test_two_processes_of_one_rank_are_refused(tmp_path: Path) -> None:
    with Seat(tmp_path, "job", record(0)), pytest.raises(TraceError, match="PMI_RANK"):
        Seat(tmp_path, "job", record(0))


def whole(folder: Path, run: str, build_id: str = "1234") -> Path:
    seat = Seat(folder, run, replace(record(0, 1), build_id=build_id))
    TraceBuilder().save(seat.trace)
    seat.done(0)
    seat.mark_whole()
    return seat.folder


def test_only_whole_runs_are_found_the_newest_last(tmp_path: Path) -> None:
    one, two = whole(tmp_path, "b"), whole(tmp_path, "a", "99")
    os.utime(one / "whole", ns=(0, 1))
    os.utime(two / "whole", ns=(0, 2))
    Seat(tmp_path, "failed", record(0, 1)).done(1)
    assert earlier_runs(tmp_path) == [one, two]
    assert [build_of(each) for each in (one, two)] == ["1234", "99"]
    run = read_run(one)
    assert run.ended
    assert run.ranks[0][0].arguments == ("--steps", "3")
    forget_runs([one])
    assert earlier_runs(tmp_path) == [two]


def test_a_name_that_comes_again_gets_a_folder_of_its_own(tmp_path: Path) -> None:
    assert whole(tmp_path, "job") != whole(tmp_path, "job")
    assert len(earlier_runs(tmp_path)) == 2


def test_a_trace_of_another_rank_is_refused(tmp_path: Path) -> None:
    folder = whole(tmp_path, "job")
    TraceBuilder(rank=2, ranks=3).save(folder / "rank-0")
    with pytest.raises(TraceError, match="MPI calls this process rank 2"):
        read_run(folder)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"rank": "x"}', "\udc80"])
def test_a_record_that_is_none_is_refused(tmp_path: Path, content: str) -> None:
    folder = whole(tmp_path, "job")
    (folder / "rank-0.json").write_text(content, errors="surrogateescape")
    with pytest.raises(TraceError, match="expected the record"):
        read_run(folder)


def test_a_prefix_that_cannot_be_written_is_an_error_of_the_system(tmp_path: Path) -> None:
    (tmp_path / ".scr_crit").write_text("in the way")
    with pytest.raises(StorageError):
        Seat(tmp_path, "job", record(0))


def test_names_of_runs_are_names_of_folders() -> None:
    assert run_name("prte-node@1/../x y") == "prte-node_1_.._x_y"
    assert run_name("..") == "run"
    assert TRACES / run_name("a") == Path(".scr_crit/trace/a")
