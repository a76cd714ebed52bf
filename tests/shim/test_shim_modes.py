"""The parameters that change what is stored: mode, dry run, codec, include and exclude."""

from __future__ import annotations

import re

import pytest


def zeroed(tools, seed):
    return tools.after_restart(tools.content(tools.STATE, seed))


def test_mode_zero_keeps_size_and_offsets(any_job, tools):
    ended = any_job.run(tools.session(tools.checkpoint(1)), SCR_CRIT_MODE="zero", SCR_CRIT_FILL="nan")
    assert ended.reports("complete") == [["0"], ["0"]]
    assert ended.quiet
    for rank in range(2):
        assert (any_job.prefix / f"ckpt.1/state.{rank}").read_bytes() == zeroed(tools, 10)
    assert "zeroed 1 files, 1792 of 6464 bytes uncritical" in ended.totals(0)
    assert any_job.leftovers() == []
    (any_job.folder / "out").mkdir()
    any_job.lose_cache()
    any_job.run(
        tools.session([("restart", any_job.folder / "out", "ckpt.1/state.{rank}")]), SCR_CRIT_PLUGIN="0"
    )
    assert (any_job.folder / "out" / "ckpt.1.1.0").read_bytes() == zeroed(tools, 10)


def test_dry_run_measures_and_stores_whole_files(any_job, tools):
    ended = any_job.run(tools.session(tools.checkpoint(1), tools.checkpoint(2)), SCR_CRIT_DRYRUN="1")
    assert (any_job.prefix / "ckpt.2/state.0").read_bytes() == tools.content(tools.STATE, 20)
    assert ended.quiet
    packed = any_job.run(tools.session(tools.checkpoint(3)))
    size = (any_job.prefix / "ckpt.3/state.0").stat().st_size
    assert f"dry run: 2 files would be {2 * tools.STATE} -> {2 * size} bytes" in ended.totals(0)
    assert "2 whole (2 dry run)" in ended.totals(0)
    assert "packed 1 files" in packed.totals(0)
    if any_job.environment == tools.BYPASS:
        assert ended.reports("write", 0)[0][2] == str(any_job.prefix / "ckpt.1/state.0")


def test_codec_by_name(job, tools):
    from scr_critplugin import packed

    ended = job.run(tools.session(tools.checkpoint(1)), SCR_CRIT_CODEC="blosc2-zstd")
    if ended.messages("WARNING"):
        assert all(
            'SCR_CRIT_CODEC is "blosc2-zstd", expected none' in line for line in ended.messages("WARNING")
        )
        assert packed.inspect(job.prefix / "ckpt.1/state.0").codec == "none"
        pytest.skip("the codec needs libblosc2 where the shim looks for it: pip install blosc2")
    assert packed.inspect(job.prefix / "ckpt.1/state.0").codec == "blosc2-zstd"
    (job.folder / "out").mkdir()
    job.run(tools.session([("restart", job.folder / "out", "ckpt.1/state.{rank}")]))
    assert (job.folder / "out" / "ckpt.1.0.0").read_bytes() == zeroed(tools, 10)


def test_an_unknown_codec_is_named_and_none_is_used(job, tools):
    ended = job.run(tools.session(tools.checkpoint(1)), SCR_CRIT_CODEC="gzip")
    (warning,) = ended.messages("WARNING")  # the parameter is the same on all ranks: one of them says so
    assert 'SCR_CRIT_CODEC is "gzip", expected none or blosc2-zstd: none is used' in warning
    assert job.is_packed("ckpt.1/state.0")


@pytest.mark.parametrize(
    "include, exclude, packed",
    [
        ("", "", {1, 2}),
        ("ckpt.1/*", "", {1}),
        ("other,ckpt.2/state.{rank}", "", {2}),
        ("", "ckpt.1/**", {2}),
        ("ckpt.*/*", "**/state.*", set()),
        ("ckpt.1/*:ckpt.2/*", "ckpt.{dataset}/x,ckpt.2/*", {1}),
    ],
)
def test_include_and_exclude(job, tools, include, exclude, packed):
    ended = job.run(
        tools.session(tools.checkpoint(1), tools.checkpoint(2)),
        SCR_CRIT_INCLUDE=include,
        SCR_CRIT_EXCLUDE=exclude,
    )
    assert {number for number in (1, 2) if job.is_packed(f"ckpt.{number}/state.0")} == packed
    if len(packed) < 2:
        assert f"{2 - len(packed)} excluded" in ended.totals(0)
    assert ended.quiet


@pytest.mark.parametrize(
    "name, value, expected",
    [
        ("SCR_CRIT_MODE", "zeros", "expected pack or zero: files are stored whole"),
        ("SCR_CRIT_DRYRUN", "yes", "expected 0 or 1: files are stored whole"),
        ("SCR_CRIT_EXCLUDE", "ckpt.[", "expected globs"),
        ("SCR_CRIT_INCLUDE", "state.{rnk}", "expected globs"),
    ],
)
def test_in_doubt_about_what_to_pack_nothing_is(job, tools, name, value, expected):
    ended = job.run(tools.session(tools.checkpoint(1)), **{name: value})
    (warning,) = ended.messages("WARNING")
    assert f'{name} is "{value}", {expected}' in warning
    assert (job.prefix / "ckpt.1/state.0").read_bytes() == tools.content(tools.STATE, 10)


@pytest.mark.parametrize("value", ["7ff", "zz", "00" * 65, "0x"])
def test_a_bad_fill_is_named_and_zero_is_used(job, tools, value):
    job.run(tools.session(tools.checkpoint(1)))
    (job.folder / "out").mkdir()
    ended = job.run(
        tools.session([("restart", job.folder / "out", "ckpt.1/state.{rank}")]), SCR_CRIT_FILL=value
    )
    (warning,) = ended.messages("WARNING")
    assert f'SCR_CRIT_FILL is "{value}", expected zero, nan, or 1 to 64 bytes' in warning
    assert (job.folder / "out" / "ckpt.1.0.0").read_bytes() == zeroed(tools, 10)


def test_a_bad_debug_level_is_named(job, tools):
    ended = job.run(tools.session(tools.checkpoint(1)), SCR_CRIT_DEBUG="7")
    (warning,) = ended.messages("WARNING")
    assert 'SCR_CRIT_DEBUG is "7", expected 0, 1, 2 or 3' in warning
    assert job.is_packed("ckpt.1/state.0")


def test_levels_of_debug(job, tools):
    says = {
        level: job.run(tools.session(tools.checkpoint(level + 1)), SCR_CRIT_DEBUG=str(level))
        for level in range(4)
    }
    for level, ended in says.items():
        assert (ended.stdout.count(": totals of rank") == 2) == (level >= 1)
        assert (": plugin on: " in ended.stdout) == (level >= 1)
        assert (": packed /" in ended.stdout) == (level >= 2)
        assert (": routed for output: " in ended.stdout) == (level >= 3)
    assert says[0].stdout.count("SCR_CRIT v") == 1
    assert "rank 0 on" in says[0].totals(0)


def test_messages_have_scrs_form(job, tools):
    from scr_critplugin import packed

    version = re.escape(packed.core_version().library)
    ended = job.run(tools.session(tools.checkpoint(1, size=10)))
    form = rf"SCR_CRIT v{version} WARNING: rank [01] on \S+: .* @ totals\.c:\d+"
    assert len(ended.messages("WARNING")) == 2
    assert all(re.fullmatch(form, line) for line in ended.messages("WARNING"))
    assert re.fullmatch(rf"SCR_CRIT v{version}: rank 0 on \S+: totals of rank 0 of 2: .*", ended.totals(0))
