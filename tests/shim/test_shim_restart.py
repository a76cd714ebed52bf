"""Restarts: packed files are verified and expanded to private staging, or the restart fails loudly."""

from __future__ import annotations

import errno
import os

import pytest

FILE = "ckpt.2/state.1"


@pytest.fixture
def written(any_job, tools):
    """A job with two checkpoints under the prefix, whose cache is lost; and a folder for what is read."""
    any_job.run(tools.session(tools.checkpoint(1), tools.checkpoint(2)))
    any_job.lose_cache()
    (any_job.folder / "out").mkdir()
    return any_job


def restart(job, tools, **environment):
    lines = [("restart", job.folder / "out", "ckpt.2/state.{rank}")]
    return job.run(tools.session(lines), **environment)


def restart_any(job, tools, **environment):
    """Run SCR's loop by hand: file names depend on the checkpoint's."""
    once = []
    for number in (2, 1):
        once += [
            ("have_restart",),
            ("start_restart",),
            ("read", f"ckpt.{number}/state.{{rank}}", job.folder / "out" / f"{number}.{{rank}}"),
            ("complete_restart", "auto"),
        ]
    return job.run(tools.session(once), **environment)


def damage(path, how):
    data = bytearray(path.read_bytes())
    if how == "payload":
        data[len(data) // 2] ^= 0x10
    elif how == "header":
        data[20] ^= 0x01
    elif how == "trailer":
        data[-9] ^= 0x80
    elif how == "truncated":
        del data[-100:]
    elif how == "longer":
        data += b"x"
    path.write_bytes(data)


@pytest.mark.parametrize("how", ["payload", "header", "trailer", "truncated", "longer"])
def test_a_damaged_file_makes_scr_fall_back(written, tools, how):
    damage(written.prefix / FILE, how)
    ended = restart_any(written, tools)
    (error,) = ended.messages("ERROR")
    assert "rank 1 on" in error
    assert "state.1 cannot be read, this restart fails on this rank" in error
    routed = [words for words in ended.reports("read", 1) if words[0] == FILE]
    assert routed == [[FILE, "1", ""]]
    # rank 1 said no, so all ranks are told that the newest restart failed; the one before is good
    assert all(ended.reports("complete_restart", rank) == [["1"], ["0"]] for rank in range(2))
    names = [words[1] for words in ended.reports("start_restart", 0)]
    assert names == ["ckpt.2", "ckpt.1"]
    for rank in range(2):
        expected = tools.after_restart(tools.content(tools.STATE, 10))
        assert (written.folder / "out" / f"1.{rank}").read_bytes() == expected
    assert written.leftovers() == []


def test_an_application_that_ignores_the_failure_gets_no_valid_restart(written, tools):
    damage(written.prefix / FILE, "payload")
    lines = [
        ("have_restart",),
        ("start_restart",),
        ("route", "ckpt.2/state.{rank}"),
        ("complete_restart", "1"),
    ]
    ended = written.run(tools.session(lines))
    assert ended.reports("complete_restart") == [["1"], ["1"]]
    assert any("the restart is reported as invalid" in line for line in ended.messages("ERROR"))


def test_a_file_that_scr_does_not_know_is_no_failure_of_ours(written, tools):
    lines = [
        ("have_restart",),
        ("start_restart",),
        ("route", "ckpt.2/no.such.file"),
        ("route", "ckpt.2/state.{rank}"),
        ("complete_restart", "1"),
    ]
    ended = written.run(tools.session(lines))
    assert [words[1] for words in ended.reports("route", 0)] == ["1", "0"]
    assert ended.reports("complete_restart") == [["0"], ["0"]]
    assert ended.quiet


def test_routing_twice_expands_once(written, tools):
    lines = [
        ("have_restart",),
        ("start_restart",),
        ("route", "ckpt.2/state.{rank}"),
        ("route", "ckpt.2/./state.{rank}"),
        ("complete_restart", "1"),
    ]
    ended = written.run(tools.session(lines))
    first, second = ended.reports("route", 0)
    assert first[2] == second[2]
    assert "expanded 1 files" in ended.totals(0)


def test_scrs_own_files_stay_packed(written, tools):
    before = (written.prefix / FILE).read_bytes()
    ended = restart(written, tools)
    assert ended.reports("restart", 0)[-1] == ["from", "ckpt.2"]
    assert (written.prefix / FILE).read_bytes() == before
    for path in written.cache.rglob("state.*"):
        assert path.stat().st_size == len(before)


@pytest.mark.parametrize(
    "seed, fill", [("zero", b"\0"), ("nan", b"\xff"), ("7ff8dead", bytes.fromhex("7ff8dead"))]
)
def test_the_fill_stands_in_uncritical_bytes(written, tools, seed, fill):
    restart(written, tools, SCR_CRIT_FILL=seed)
    read = (written.folder / "out" / "ckpt.2.1.0").read_bytes()
    assert read == tools.after_restart(tools.content(tools.STATE, 20), fill)


def test_no_plan_is_needed(written, tools):
    (written.folder / "plan").unlink()
    ended = restart(written, tools)
    assert ended.reports("restart", 0)[-1] == ["from", "ckpt.2"]
    assert (written.folder / "out" / "ckpt.2.0.0").read_bytes() == tools.after_restart(
        tools.content(tools.STATE, 20)
    )
    assert not ended.messages("ERROR")


def test_whole_files_are_handed_out_as_they_are(any_job, tools):
    any_job.run(tools.session(tools.checkpoint(2)), SCR_CRIT_PLUGIN="0")
    (any_job.folder / "out").mkdir()
    ended = restart(any_job, tools)
    assert (any_job.folder / "out" / "ckpt.2.0.0").read_bytes() == tools.content(tools.STATE, 20)
    assert "expanded 0 files" in ended.totals(0)
    assert not any_job.stage.exists()


def test_want_of_space_in_staging_does_not_cost_a_checkpoint(written, tools, build):
    """SCR marks a checkpoint as failed for good: so further areas are tried, the last under the prefix."""
    written.preload = [build / "libfaults.so", *written.preload]
    ended = restart(
        written,
        tools,
        FAULT_CALL="pwrite",
        FAULT_PATH="/stage/scr_crit.",
        FAULT_ACTION=str(errno.ENOSPC),
        TMPDIR=written.folder / "tmp",
    )
    assert ended.reports("restart", 0)[-1] == ["from", "ckpt.2"]
    assert not ended.messages("ERROR")
    (path,) = [words[2] for words in ended.reports("restart", 0) if words[0] == "ckpt.2/state.0"]
    assert not path.startswith(str(written.stage))
    assert written.leftovers() == []


def test_the_last_area_lies_under_the_prefix(written, tools, build):
    written.preload = [build / "libfaults.so", *written.preload]
    # /dev/shm, the cache folder and TMPDIR are all full; what lies under the prefix is not
    ended = restart(
        written,
        tools,
        unset=["TMPDIR"],
        FAULT_CALL="pwrite",
        FAULT_PATH=f"/scr_crit.{os.getuid()}/job1.",
        FAULT_UNLESS="/prefix/.scr_crit/",
        FAULT_ACTION=str(errno.ENOSPC),
    )
    assert ended.reports("restart", 0)[-1] == ["from", "ckpt.2"]
    (path,) = [words[2] for words in ended.reports("restart", 0) if words[0] == "ckpt.2/state.0"]
    assert path.startswith(f"{written.prefix}/.scr_crit/scr_crit.{os.getuid()}/job1.0.")
    assert list((written.prefix / ".scr_crit").iterdir()) == []


def test_no_space_anywhere_is_said(written, tools, build):
    written.preload = [build / "libfaults.so", *written.preload]
    ended = restart(
        written,
        tools,
        FAULT_CALL="pwrite",
        FAULT_PATH=f"/scr_crit.{os.getuid()}/job1.",
        FAULT_ACTION=str(errno.ENOSPC),
    )
    assert ended.reports("restart", 0)[-1] == ["none"]
    assert any(os.strerror(errno.ENOSPC) in line for line in ended.messages("ERROR"))


def test_a_newer_format_is_refused(written, tools):
    path = written.prefix / FILE
    data = bytearray(path.read_bytes())
    data[8] = 99
    path.write_bytes(data)
    ended = restart_any(written, tools)
    assert any("state.1 cannot be read" in line for line in ended.messages("ERROR"))
    assert [words[1] for words in ended.reports("start_restart", 0)] == ["ckpt.2", "ckpt.1"]
