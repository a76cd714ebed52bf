"""What programs and systems do around the shim: files kept open, descriptors taken, limits, cleaners."""

from __future__ import annotations

import shutil

import pytest


def test_a_file_still_open_is_left_whole(any_job, tools):
    """What a library writes after SCR was told that the file is complete must not be lost."""
    lines = [
        ("start", "ckpt.1", 1),
        ("write", "ckpt.1/state.{rank}", tools.STATE, 10),
        ("@0", "keep_open", "ckpt.1/state.{rank}"),
        ("complete", "auto"),
    ]
    ended = any_job.run(tools.session(lines))
    assert ended.reports("complete") == [["0"], ["0"]]
    assert not any_job.is_packed("ckpt.1/state.0")
    assert any_job.is_packed("ckpt.1/state.1")
    (warning,) = ended.messages("WARNING")
    assert "rank 0 on" in warning and "still open" in warning
    assert "(1 still open)" in ended.totals()


def test_an_old_file_keeps_its_content_when_staging_is_cleaned_away(job, tools):
    job.run(
        tools.session([("start", "a", 1), ("write", "state.{rank}", tools.STATE, 1), ("complete", "auto")])
    )
    before = (job.prefix / "state.0").read_bytes()
    lines = [
        ("start", "b", 1),
        ("write", "state.{rank}", tools.STATE, 2),
        ("barrier",),
        ("@0", "remove_tree", job.stage),
        ("barrier",),
        ("complete", "auto"),
    ]
    ended = job.run(tools.session(lines))
    assert ended.reports("complete") == [["1"], ["1"]]
    assert (job.prefix / "state.0").read_bytes() == before
    assert all("has vanished from staging" in line for line in ended.messages("ERROR"))
    assert len(ended.messages("ERROR")) == 2


def test_descriptors_that_the_program_took_are_not_touched(job, tools):
    own = job.folder / "own.{rank}"
    lines = [*tools.checkpoint(1), ("take_descriptors", job.stage, own), *tools.checkpoint(2)]
    ended = job.run(tools.session(lines))
    assert all(int(taken) >= 1 for (taken,) in ended.reports("take_descriptors"))
    assert (job.folder / "own.0").read_bytes() == b"precious"
    assert job.is_packed("ckpt.2/state.0")


def test_a_limit_on_file_sizes_that_the_files_obey_kills_nobody(job, tools):
    """The limit holds each of the program's files, but not the sum of what is staged.

    It is lifted before Complete: MPI and SCR have files of their own.
    """
    names = [f"ckpt.1/{number}/state.{{rank}}" for number in range(8)]
    start, *writes, complete = tools.checkpoint(1, *names)
    lines = [start, ("limit_size", tools.STATE + 4096), *writes, ("limit_size", 0), complete]
    ended = job.run(tools.session(lines))
    assert ended.reports("complete") == [["0"], ["0"]]
    assert all(job.is_packed(f"ckpt.1/{number}/state.0") for number in range(8))


def test_a_packed_file_that_is_routed_outside_of_a_restart_is_named(job, tools):
    job.run(tools.session(tools.checkpoint(1)))
    name = job.prefix / "ckpt.1/state.{rank}"
    ended = job.run(tools.session([("route", name), ("route", name)]))
    errors = ended.messages("ERROR")
    assert len(errors) == 2  # one a rank
    assert all("is a packed file" in line and "scr_crit unpack" in line for line in errors)


def test_staging_is_given_up_where_the_program_failed_in_it(job, tools):
    lines = [
        ("start", "ckpt.1", 1),
        ("write", "ckpt.1/state.{rank}", tools.STATE, 10),
        ("complete", "0"),
        *tools.checkpoint(2),
    ]
    ended = job.run(tools.session(lines))
    assert ended.reports("complete", 0) == [["1"], ["0"]]
    assert (job.prefix / "ckpt.2/state.0").read_bytes() == tools.content(tools.STATE, 20)
    assert any("no more files are staged" in line for line in ended.messages("WARNING"))


def test_a_checkpoint_whose_codec_is_missing_ends_the_job_and_is_kept(job, tools, tmp_path):
    """Reporting an invalid restart would make SCR mark it as failed for good, and the one before as well."""
    from scr_critplugin import packed

    job.run(tools.session(tools.checkpoint(1)), SCR_CRIT_CODEC="blosc2-zstd")
    if packed.inspect(job.prefix / "ckpt.1/state.0").codec == "none":
        pytest.skip("the codec needs libblosc2 where the shim looks for it: pip install blosc2")
    (job.folder / "out").mkdir()
    # A copy of the shim that has no blosc2 package beside it.
    alone = tmp_path / "alone"
    alone.mkdir()
    whole = job.preload
    job.preload = [shutil.copy(whole[0], alone)]
    lines = [("restart", job.folder / "out", "ckpt.1/state.{rank}")]
    ended = job.run(tools.session(lines), check=False)
    if ended.status == 0:
        pytest.skip("libblosc2 is also in the loader's own path: the codec cannot be made to miss")
    assert any("the job ends here" in line for line in ended.messages("ERROR"))
    job.preload = whole
    ended = job.run(tools.session(lines))
    assert ended.reports("restart", 0)[-1] == ["from", "ckpt.1"]
