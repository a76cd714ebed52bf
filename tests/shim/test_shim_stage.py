"""What is left when jobs are killed, and what the next run clears away."""

from __future__ import annotations

import fcntl
import os
import stat

import pytest


def private_folders(job):
    return sorted(job.stage.glob("scr_crit.*/*"))


def temporary_files(job):
    return [path for place in (job.prefix, job.cache) for path in place.rglob(".scr_crit.*")]


@pytest.mark.parametrize("call", ["pwrite", "rename"])
def test_killed_while_packing_leaves_nothing_after_the_next_run(any_job, tools, build, call):
    job = any_job
    job.run(tools.session(tools.checkpoint(1)))
    shim = job.preload
    job.preload = [build / "libfaults.so", *shim]
    path = "/.scr_crit." if call == "pwrite" else "/state."
    job.run(
        tools.session(tools.checkpoint(2)), check=False, FAULT_CALL=call, FAULT_PATH=path, FAULT_ACTION="kill"
    )
    assert private_folders(job)
    assert temporary_files(job)
    job.preload = shim
    (job.folder / "out").mkdir()
    ended = job.run(tools.session([("restart", job.folder / "out", "ckpt.1/state.{rank}")]))
    assert ended.reports("restart", 0)[-1] == ["from", "ckpt.1"]
    assert (job.folder / "out" / "ckpt.1.1.0").read_bytes() == tools.after_restart(
        tools.content(tools.STATE, 10)
    )
    assert job.leftovers() == []


def test_killed_while_the_program_writes(job, tools):
    lines = [
        ("init",),
        ("start", "ckpt.1", 1),
        ("write", "ckpt.1/state.{rank}", tools.STATE, 1),
        ("barrier",),
        ("@0", "kill"),
        ("complete", "auto"),
    ]
    job.run(lines, check=False)
    assert any(path.name.startswith("state.") for path in job.stage.rglob("*"))
    assert job.run(tools.session(tools.checkpoint(1))).quiet
    assert job.leftovers() == []
    assert job.is_packed("ckpt.1/state.0")


def test_a_guests_mark_does_not_outlive_it(job, tools):
    lines = [
        ("init",),
        ("start", "ckpt.1", 1),
        ("@1", "write", "ckpt.1/state.0", tools.STATE, 1),
        ("@1", "kill"),
        ("complete", "auto"),
    ]
    job.run(lines, check=False)
    assert temporary_files(job)
    ended = job.run(tools.session(tools.checkpoint(1)))
    assert ended.reports("complete") == [["0"], ["0"]]
    assert not ended.messages("ERROR")
    assert job.leftovers() == []


def test_exit_without_finalize_leaves_nothing(job, tools):
    """One rank: with more, the launcher kills the others when the first one ends."""
    lines = [
        ("init",),
        ("start", "ckpt.1", 1),
        ("write", "ckpt.1/state.{rank}", tools.STATE, 1),
        ("exit", "3"),
    ]
    job.run(lines, check=False, ranks=1)
    assert job.leftovers() == []


def test_what_a_living_process_stages_is_left_alone(job, tools):
    users = job.stage / f"scr_crit.{os.getuid()}"
    host = os.uname().nodename.replace(".", "_")
    living, dead, elsewhere = (
        users / name for name in (f"job1.0.1@{host}", f"job1.1.1@{host}", "job1.2.1@faraway")
    )
    for folder in (living, dead, elsewhere):
        folder.mkdir(parents=True)
        (folder / "1").mkdir()
        (folder / "1" / "state.0").write_bytes(b"precious")
    users.chmod(0o700)
    victim = job.prefix / ".scr_crit.0123456789abcdef"
    victim.write_bytes(b"half a packed file")
    (dead / "journal").write_bytes(os.fsencode(victim) + b"\0" + os.fsencode(job.prefix / "cut sho"))
    (job.prefix / "cut sho").write_bytes(b"not named in full")
    descriptor = os.open(living, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        job.run(tools.session(tools.checkpoint(1)))
        assert (living / "1" / "state.0").exists()
    finally:
        os.close(descriptor)
    assert not dead.exists()
    assert elsewhere.exists()  # its lock cannot be seen from here
    assert not victim.exists()
    assert (job.prefix / "cut sho").exists()


def test_staging_is_private(job, tools):
    lines = [
        ("init",),
        ("start", "ckpt.1", 1),
        ("write", "ckpt.1/state.{rank}", tools.STATE, 1),
        ("barrier",),
        ("kill",),
    ]
    job.run(lines, check=False)
    users = job.stage / f"scr_crit.{os.getuid()}"
    for folder in (users, *private_folders(job)):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_nothing_is_made_before_it_is_needed(job, tools):
    ended = job.run(tools.session([("start", "ckpt.1", 1), ("write", "notes", 100, 1), ("complete", "auto")]))
    assert ended.quiet
    assert not job.stage.exists()


def test_default_places(job, tools, monkeypatch):
    """Without SCR_CRIT_STAGE: SCR's cache folder."""
    ended = job.run(tools.session(tools.checkpoint(1)), unset=["SCR_CRIT_STAGE"])
    assert ended.reports("write", 0)[0][2].startswith(f"{job.cache}/scr_crit.{os.getuid()}/")
    assert not list(job.cache.glob("scr_crit.*"))
    job.cache.joinpath(f"scr_crit.{os.getuid()}").mkdir(mode=0o700)
    job.cache.joinpath(f"scr_crit.{os.getuid()}").chmod(0o755)  # not private: not used
    ended = job.run(tools.session(tools.checkpoint(2)), unset=["SCR_CRIT_STAGE"])
    assert ended.reports("write", 0)[0][2].startswith(f"/dev/shm/scr_crit.{os.getuid()}/")
    assert ended.quiet
