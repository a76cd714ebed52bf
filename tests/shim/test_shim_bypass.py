"""Bypass mode: older files of the same name, files beside the routed one, a prefix or stage without space."""

from __future__ import annotations

import errno
import os
import subprocess
from pathlib import Path

import pytest

PART = 2000


def state(tools, *changes):
    """Return the content of a state file after (offset, size, seed) were written over it."""
    data = bytearray(tools.content(tools.STATE, 10))
    for offset, size, seed in changes:
        data[offset : offset + size] = tools.content(size, seed)
    return bytes(data)


def unpacked(job, name: str) -> bytes:
    from scr_critplugin import packed

    target = job.folder / "unpacked"
    packed.unpack(job.prefix / name, target)
    return target.read_bytes()


def test_the_program_writes_to_private_staging(job, tools):
    ended = job.run(tools.session(tools.checkpoint(1)))
    for rank in range(2):
        ((name, status, path),) = ended.reports("write", rank)
        assert path.startswith(f"{job.stage}/scr_crit.{os.getuid()}/job1.{rank}.")
        assert path.endswith(f"/state.{rank}")
        assert (name, status) == (f"ckpt.1/state.{rank}", "0")
    assert job.leftovers() == []


@pytest.mark.parametrize("packed_before", [True, False])
def test_an_existing_file_can_be_changed_in_place(job, tools, packed_before):
    """What is there is what would be there without the plugin; packed bytes are as after a restart."""
    job.run(tools.session(tools.checkpoint(1)), SCR_CRIT_PLUGIN="1" if packed_before else "0")
    assert job.is_packed("ckpt.1/state.0") == packed_before
    seen = job.folder / "seen.{rank}"
    lines = [
        ("start", "ckpt.1", 1),
        ("read", "ckpt.1/state.{rank}", seen),
        ("modify", "ckpt.1/state.{rank}", 1000, PART, 77),
        ("complete", "auto"),
    ]
    ended = job.run(tools.session(lines))
    assert ended.reports("complete") == [["0"], ["0"]]
    whole = tools.content(tools.STATE, 10)
    expected = tools.after_restart(whole) if packed_before else whole
    assert (job.folder / "seen.1").read_bytes() == expected
    assert job.is_packed("ckpt.1/state.1")
    assert unpacked(job, "ckpt.1/state.1") == tools.after_restart(state(tools, (1000, PART, 77)))
    assert ended.quiet


def test_appending_keeps_the_older_part(job, tools, write_plan):
    half = tools.STATE // 2
    lines = [
        ("start", "a", 1),
        ("write", "ckpt.1/state.{rank}", half, 1),
        ("complete", "auto"),
        ("start", "b", 1),
        ("append", "ckpt.1/state.{rank}", half, 2),
        ("complete", "auto"),
    ]
    job.run(tools.session(lines))
    whole = tools.content(half, 1) + tools.content(half, 2)
    assert unpacked(job, "ckpt.1/state.0") == tools.after_restart(whole)


def test_overwriting_with_a_shorter_file(job, tools):
    job.run(tools.session(tools.checkpoint(1), tools.checkpoint(1, size=100, seed=3)))
    assert (job.prefix / "ckpt.1/state.0").read_bytes() == tools.content(100, 3)


def test_writing_beside_and_renaming(job, tools):
    lines = [("start", "ckpt.1", 1), ("rename", "ckpt.1/state.{rank}", tools.STATE, 10), ("complete", "auto")]
    ended = job.run(tools.session(lines))
    assert ended.quiet
    assert unpacked(job, "ckpt.1/state.1") == tools.after_restart(tools.content(tools.STATE, 10))
    assert sorted(path.name for path in (job.prefix / "ckpt.1").iterdir()) == ["state.0", "state.1"]


def test_files_made_beside_the_routed_one_are_stored(job, tools):
    lines = [
        ("start", "ckpt.1", 1),
        ("write", "ckpt.1/state.{rank}", tools.STATE, 10),
        ("companion", "ckpt.1/state.{rank}", ".index", 300, 5),
        ("complete", "auto"),
    ]
    ended = job.run(tools.session(lines))
    assert ended.reports("complete") == [["0"], ["0"]]
    assert job.is_packed("ckpt.1/state.0")
    assert (job.prefix / "ckpt.1/state.0.index").read_bytes() == tools.content(300, 5)
    assert job.leftovers() == []


def test_a_removed_file_stays_removed(job, tools):
    job.run(tools.session(tools.checkpoint(1)))
    lines = [("start", "ckpt.1", 1), ("@0", "unlink", "ckpt.1/state.0"), ("complete", "auto")]
    ended = job.run(tools.session(lines))
    assert not (job.prefix / "ckpt.1/state.0").exists()
    assert ended.reports("complete") == [["1"], ["1"]]


def test_links_are_left_to_the_program(job, tools):
    target = job.prefix / "target"
    target.write_bytes(b"old")
    (job.prefix / "ckpt.1").mkdir()
    (job.prefix / "ckpt.1/state.0").symlink_to(target)
    (job.prefix / "ckpt.1/state.1").write_bytes(b"old")
    (job.prefix / "hard").hardlink_to(job.prefix / "ckpt.1/state.1")
    ended = job.run(tools.session(tools.checkpoint(1)))
    whole = tools.content(tools.STATE, 10)
    assert (job.prefix / "ckpt.1/state.0").is_symlink()
    assert target.read_bytes() == whole
    assert (job.prefix / "hard").read_bytes() == whole
    assert all("is a link or no regular file" in line for line in ended.messages("WARNING"))
    assert len(ended.messages("WARNING")) == 2


def test_a_program_that_ignores_scrs_path(job, tools):
    """It works without the plugin, where SCR's path is the program's own name: so it must here."""
    lines = [
        ("start", "ckpt.1", 1),
        ("route", "ckpt.1/state.{rank}"),
        ("write_path", "ckpt.1/state.{rank}", tools.STATE, 10),
        ("complete", "auto"),
    ]
    ended = job.run(tools.session(lines))
    assert ended.reports("complete") == [["0"], ["0"]]
    assert (job.prefix / "ckpt.1/state.0").read_bytes() == tools.content(tools.STATE, 10)
    assert all("under its own name" in line for line in ended.messages("WARNING"))


def test_written_at_both_places_is_no_checkpoint(job, tools):
    lines = [
        ("start", "ckpt.1", 1),
        ("write", "ckpt.1/state.{rank}", tools.STATE, 10),
        ("@1", "write_path", "ckpt.1/state.1", tools.STATE, 66),
        ("complete", "auto"),
    ]
    ended = job.run(tools.session(lines))
    assert ended.reports("complete") == [["1"], ["1"]]
    (error,) = ended.messages("ERROR")
    assert "rank 1" in error
    assert "ckpt.1/state.1 is written by two ranks" in error
    assert (job.prefix / "ckpt.1/state.1").read_bytes() == tools.content(tools.STATE, 66)


def test_writing_to_a_packed_file_that_is_not_staged_is_noticed(job, tools):
    """Excluded now, packed before: what is appended to packed bytes, no restart may take for good."""
    job.run(tools.session(tools.checkpoint(1)))
    lines = [("start", "ckpt.1", 1), ("append", "ckpt.1/state.{rank}", 100, 2), ("complete", "auto")]
    ended = job.run(tools.session(lines), SCR_CRIT_EXCLUDE="ckpt.*/state.*")
    assert ended.reports("complete") == [["1"], ["1"]]
    assert all("the application then wrote to" in line for line in ended.messages("ERROR"))


# ---- Faults ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", ["pwrite", "fsync", "rename"])
def test_no_space_for_the_packed_file_in_cache(job, tools, build, call):
    """In cache mode a failed pack leaves the whole file where it is."""
    job.environment = dict(tools.CACHE)
    job.preload = [build / "libfaults.so", *job.preload]
    path = "/scr.dataset.1/.scr_crit" if call != "rename" else "/scr.dataset.1/state"
    ended = job.run(
        tools.session(tools.checkpoint(1)), FAULT_CALL=call, FAULT_PATH=path, FAULT_ACTION=str(errno.ENOSPC)
    )
    assert ended.reports("complete") == [["0"], ["0"]]
    assert (job.prefix / "ckpt.1/state.0").read_bytes() == tools.content(tools.STATE, 10)
    assert all("there is no space to pack it" in line for line in ended.messages("WARNING"))
    assert job.leftovers() == []


def test_a_prefix_that_takes_nothing_makes_the_checkpoint_invalid(job, tools, build):
    job.preload = [build / "libfaults.so", *job.preload]
    job.run(tools.session(tools.checkpoint(1)))
    ended = job.run(
        tools.session(tools.checkpoint(2)),
        FAULT_CALL="pwrite",
        FAULT_PATH="/prefix/ckpt.2/.scr_crit",
        FAULT_ACTION=str(errno.EDQUOT),
    )
    assert ended.reports("complete") == [["1"], ["1"]]
    assert all(
        "cannot be stored, the checkpoint is reported as invalid" in line
        and os.strerror(errno.EDQUOT) in line
        for line in ended.messages("ERROR")
    )
    assert len(ended.messages("ERROR")) == 2
    assert job.leftovers() == []
    (job.folder / "out").mkdir()
    restarted = job.run(tools.session([("restart", job.folder / "out", "ckpt.1/state.{rank}")]))
    assert restarted.reports("restart", 0)[-1] == ["from", "ckpt.1"]


def test_a_pack_that_fails_is_made_up_for_by_a_copy(job, tools, build):
    job.preload = [build / "libfaults.so", *job.preload]
    ended = job.run(
        tools.session(tools.checkpoint(1)),
        FAULT_CALL="rename",
        FAULT_PATH="/prefix/ckpt.1/state",
        FAULT_ACTION=str(errno.EIO),
        FAULT_TIMES="1",
    )
    assert ended.reports("complete") == [["0"], ["0"]]
    assert (job.prefix / "ckpt.1/state.0").read_bytes() == tools.content(tools.STATE, 10)
    assert all(
        "packing it failed" in line and os.strerror(errno.EIO) in line for line in ended.messages("WARNING")
    )


@pytest.fixture
def small_stage(job):
    """A staging file system of 1 MiB."""
    job.stage.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(job.stage)],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode != 0:
        pytest.skip(f"needs to mount a small tmpfs: run as root ({mounted.stderr.strip()})")
    yield job.stage
    subprocess.run(["umount", str(job.stage)], check=True)


def test_a_stage_that_does_not_hold_all_ranks_files_is_used_by_some(job, tools, small_stage: Path):
    """Each rank alone would find enough space; the plan tells the files' size before they are written."""
    (small_stage / "filler").write_bytes(bytes(1024 * 1024 - 40 * 1024))
    ended = job.run(tools.session(tools.checkpoint(1), tools.checkpoint(2)), ranks=4)
    assert [words[0] for words in ended.reports("complete")] == ["0"] * 8
    staged = [words[2].startswith(str(small_stage)) for words in ended.reports("write")]
    assert 0 < sum(staged) < 8
    assert all("it cannot be staged" in line and "are needed" in line for line in ended.messages("WARNING"))
    assert not ended.messages("ERROR")
    for rank in range(4):
        name = f"ckpt.2/state.{rank}"
        if not job.is_packed(name):
            assert (job.prefix / name).read_bytes() == tools.content(tools.STATE, 20)
    assert [path.name for path in small_stage.iterdir()] == ["filler"]


def test_a_stage_that_fills_up_is_not_used_again(job, tools, small_stage: Path, write_plan):
    write_plan(job.folder / "plan", "ckpt.*/state.{rank}")
    big = 2 * 1024 * 1024
    lines = [*tools.checkpoint(1, size=big), *tools.checkpoint(2, size=big)]
    ended = job.run(tools.session(lines), ranks=1)
    assert ended.reports("write")[1] == [
        "failed",
        "ckpt.1/state.0",
        os.strerror(errno.ENOSPC),
    ]
    assert ended.reports("complete") == [["1"], ["0"]]
    assert any("no more files are staged" in line for line in ended.messages("WARNING"))
    assert (job.prefix / "ckpt.2/state.0").stat().st_size == big


def test_a_stage_of_somebody_else_is_not_used(job, tools):
    job.stage.mkdir()
    foreign = job.stage / f"scr_crit.{os.getuid()}"
    foreign.mkdir(mode=0o777)
    foreign.chmod(0o777)
    ended = job.run(tools.session(tools.checkpoint(1)))
    assert (job.prefix / "ckpt.1/state.0").read_bytes() == tools.content(tools.STATE, 10)
    assert all("it cannot be staged" in line for line in ended.messages("WARNING"))
    assert list(foreign.iterdir()) == []
