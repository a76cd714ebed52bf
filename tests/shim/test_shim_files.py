"""Checkpoints of all shapes, in both of SCR's modes: what is stored, what a restart reads, what is left."""

from __future__ import annotations

import dataclasses

import pytest


def read_back(job, tools, *names, ranks=2, **environment):
    """Restart from the prefix alone; return what was read, by (rank, index of the file), and the run."""
    job.lose_cache()
    out = job.folder / "read"
    out.mkdir()
    ended = job.run(tools.session([("restart", out, *names)]), ranks=ranks, **environment)
    found = {}
    for path in out.iterdir():
        rank, index = path.name.split(".")[-2:]
        found[int(rank), int(index)] = path.read_bytes()
    return found, ended


def packed_state(tools, seed):
    return tools.after_restart(tools.content(tools.STATE, seed))


def test_each_rank_gets_back_its_critical_bytes(any_job, tools):
    written = any_job.run(tools.session(tools.checkpoint(1), tools.checkpoint(2)), ranks=4)
    assert [words[0] for words in written.reports("complete")] == ["0"] * 8
    assert written.quiet
    names = [f"ckpt.{number}/state.{rank}" for number in (1, 2) for rank in range(4)]
    assert all(any_job.is_packed(name) for name in names)
    assert all((any_job.prefix / name).stat().st_size < tools.STATE * 0.8 for name in names)
    read, ended = read_back(any_job, tools, "ckpt.2/state.{rank}", ranks=4)
    assert ended.reports("restart", 0)[-1] == ["from", "ckpt.2"]
    assert read == {(rank, 0): packed_state(tools, 20) for rank in range(4)}
    assert ended.quiet
    assert any_job.leftovers() == []


def test_several_files_a_rank_and_ranks_with_none(any_job, tools):
    lines = [
        ("init",),
        ("start", "ckpt.1", 1),
        ("@0", "write", "ckpt.1/a/state.0", tools.STATE, 1),
        ("@0", "write", "ckpt.1/b c/deep/state.0", 0, 0),
        ("@0", "write", "ckpt.1/notes.txt", 500, 5),
        ("@2", "write", "ckpt.1/with space/state.2", tools.STATE, 2),
        ("complete", "auto"),
        ("finalize",),
    ]
    if any_job.environment == tools.CACHE:  # SCR's cache knows a file by the last part of its name alone
        lines[3] = ("@0", "write", "ckpt.1/b c/deep/empty.0", 0, 0)
    ended = any_job.run(lines, ranks=3)
    assert [words[0] for words in ended.reports("complete")] == ["0"] * 3
    prefix = any_job.prefix / "ckpt.1"
    assert any_job.is_packed("ckpt.1/a/state.0")
    assert any_job.is_packed("ckpt.1/with space/state.2")
    assert (prefix / "notes.txt").read_bytes() == tools.content(500, 5)
    assert next((prefix / "b c/deep").iterdir()).stat().st_size == 0
    assert "packed 1 files" in ended.totals(0)
    assert "not in the plan" in ended.totals(0)
    assert ended.quiet
    assert any_job.leftovers() == []


def test_relative_absolute_and_dotted_names_are_one(any_job, tools):
    absolute = any_job.prefix / "ckpt.1" / "state.{rank}"
    (any_job.prefix / "sub").mkdir()
    lines = [
        ("init",),
        ("start", "ckpt.1", 1),
        ("chdir", any_job.prefix / "sub"),
        ("write", "../ckpt.1/./state.{rank}", tools.STATE, 3),
        ("route", absolute),
        ("complete", "auto"),
        ("finalize",),
    ]
    ended = any_job.run(lines)
    for rank in range(2):
        (first,), (second,) = ended.reports("write", rank), ended.reports("route", rank)
        assert first[1:] == second[1:]
        assert any_job.is_packed(f"ckpt.1/state.{rank}")
    read, _ = read_back(any_job, tools, absolute)
    assert read == {(rank, 0): packed_state(tools, 3) for rank in range(2)}


def test_a_file_opened_twice_keeps_both_parts(any_job, tools):
    half = tools.STATE // 2
    lines = [
        ("start", "ckpt.1", 1),
        ("write", "ckpt.1/state.{rank}", half, 1),
        ("append", "ckpt.1/state.{rank}", half, 2),
        ("complete", "auto"),
    ]
    any_job.run(tools.session(lines))
    read, _ = read_back(any_job, tools, "ckpt.1/state.{rank}")
    whole = tools.content(half, 1) + tools.content(half, 2)
    assert read == {(rank, 0): tools.after_restart(whole) for rank in range(2)}


def test_a_path_of_a_thousand_characters(job, tools, write_plan):
    write_plan(job.folder / "plan", "**/state.{rank}")
    base = len(str(job.prefix)) + len("/state.0") + 1
    parts = []
    while base + sum(len(part) + 1 for part in parts) < 1000 - 201:
        parts.append("d" * 200)
    parts.append("e" * (1000 - base - sum(len(part) + 1 for part in parts)))
    name = "/".join(parts) + "/state.{rank}"
    lines = [("start", "long", 1), ("write", name, tools.STATE, 4), ("complete", "auto")]
    ended = job.run(tools.session(lines))
    stored = name.replace("{rank}", "1")
    assert len(str(job.prefix / stored)) == 1000
    assert ended.reports("complete") == [["0"], ["0"]]
    assert job.is_packed(stored)
    read, _ = read_back(job, tools, name)
    assert read[1, 0] == packed_state(tools, 4)


def test_a_path_beyond_scrs_limit_fails_without_harm(job, tools):
    """SCR writes such a path beyond the program's buffer; the shim's call fails, unless SCR ends the job."""
    name = "/".join(["y" * 200] * 4 + ["z" * 150])
    deep = job.prefix / ("p" * 200)
    deep.mkdir()
    assert len(name) < 1024 <= len(str(deep / name))
    lines = [("init",), ("start", "ckpt.1", 1), ("chdir", deep), ("route", name), ("complete", "auto")]
    ended = job.run(lines, check=False)
    assert "stack smashing" not in ended.stderr
    if ended.reports("route"):
        assert ended.reports("route", 0) == [[name, "1", ""]]
        assert any("at most 1023 are possible" in line for line in ended.messages("ERROR"))
    else:
        assert ended.status != 0


def test_a_base_name_of_255_characters(any_job, tools, write_plan):
    write_plan(any_job.folder / "plan", "*.{rank}")
    name = "n" * 253 + ".{rank}"
    any_job.run(tools.session([("start", "long", 1), ("write", name, tools.STATE, 6), ("complete", "auto")]))
    assert any_job.is_packed(name.replace("{rank}", "0"))
    read, _ = read_back(any_job, tools, name)
    assert read[0, 0] == packed_state(tools, 6)


def test_invalid_output_is_not_packed(any_job, tools):
    lines = [
        ("start", "ckpt.1", 1),
        ("write", "ckpt.1/state.{rank}", tools.STATE, 1),
        ("@1", "complete", "0"),
        ("@0", "complete", "1"),
    ]
    ended = any_job.run(tools.session(lines, tools.checkpoint(2)), SCR_CRIT_DEBUG="1")
    assert sorted(ended.reports("complete")) == [["0"], ["0"], ["1"], ["1"]]
    assert "packed 2 files" in ended.totals(0)
    # Under bypass rank 1 failed in staging, and goes without it from then on.
    staged = any_job.environment == tools.BYPASS
    assert f"packed {0 if staged else 1} files" in ended.totals(1)
    read, restarted = read_back(any_job, tools, "ckpt.2/state.{rank}")
    assert restarted.reports("restart", 0)[-1] == ["from", "ckpt.2"]
    assert read[0, 0] == packed_state(tools, 20)
    assert read[1, 0] == (tools.content(tools.STATE, 20) if staged else packed_state(tools, 20))
    assert any_job.leftovers() == []


def test_a_routed_file_that_is_never_written_is_scrs_to_reject(any_job, tools):
    lines = [
        ("start", "ckpt.1", 1),
        ("write", "ckpt.1/state.{rank}", tools.STATE, 1),
        ("@0", "route", "ckpt.1/state.extra.0"),
        ("@1", "route", "ckpt.1/other/state.1"),
        ("complete", "1"),
    ]
    if any_job.environment == tools.CACHE:
        lines[3] = ("@1", "route", "ckpt.1/missing.1")
    ended = any_job.run(tools.session(lines))
    assert ended.reports("complete") == [["1"], ["1"]]
    assert not ended.messages("ERROR")


def test_names_that_meet_in_the_cache_are_not_packed(job, tools):
    """SCR's cache keeps the last part of a name: two rules for one file would be one too many."""
    job.environment = dict(tools.CACHE)
    lines = [
        ("start", "c", 1),
        ("write", "ckpt.1/state.{rank}", tools.STATE, 1),
        ("write", "other/ckpt.1/state.{rank}", tools.STATE, 2),
        ("complete", "auto"),
    ]
    ended = job.run(tools.session(lines))
    assert not job.is_packed("other/ckpt.1/state.0")
    assert (job.prefix / "other/ckpt.1/state.0").read_bytes() == tools.content(tools.STATE, 2)
    assert len(ended.messages("WARNING")) == 2
    assert "SCR sends two names to it" in ended.messages("WARNING")[0]


@pytest.mark.parametrize("entry", ["legacy", "fortran", "wrap", "static", "static_fortran"])
def test_other_ways_into_scr(any_job, tools, build, entry):
    job = any_job
    if entry == "fortran":
        job = dataclasses.replace(job, program=build / "driver_fortran")
    if entry in ("wrap", "static", "static_fortran"):
        job = dataclasses.replace(job, program=build / f"driver_{entry}", preload=[])
    if not job.program.exists():
        pytest.skip("needs a static libscr: libscr.a, libscrf.a")
    lines = [("config", "SCR_DEBUG=0"), ("init",)]
    if entry == "legacy":
        lines += [
            ("start_checkpoint",),
            ("write", "ckpt.1/state.{rank}", tools.STATE, 10),
            ("complete_checkpoint", "auto"),
        ]
    else:
        lines += tools.checkpoint(1)
    ended = job.run([*lines, ("finalize",)])
    assert ended.quiet
    assert job.is_packed("ckpt.1/state.1")
    read, restarted = read_back(job, tools, "ckpt.1/state.{rank}")
    assert read == {(rank, 0): packed_state(tools, 10) for rank in range(2)}
    assert restarted.quiet
    assert job.leftovers() == []


def test_wrapped_and_preloaded_at_once_packs_once(any_job, tools, build):
    job = dataclasses.replace(any_job, program=build / "driver_wrap")
    ended = job.run(tools.session(tools.checkpoint(1)))
    assert ended.quiet
    assert "packed 1 files" in ended.totals(0)
    read, _ = read_back(job, tools, "ckpt.1/state.{rank}")
    assert read[0, 0] == packed_state(tools, 10)


def test_two_copies_of_the_shim_pack_once(any_job, tools, shim_lib, tmp_path):
    copy = tmp_path / "libscr_crit_shim.so"
    copy.write_bytes(shim_lib.read_bytes())
    any_job.preload = [copy, shim_lib]
    ended = any_job.run(tools.session(tools.checkpoint(1)))
    assert ended.quiet
    assert "packed 1 files" in ended.totals(0)


@pytest.mark.parametrize("switch", ["0", "", None, "yes"])
def test_inert_unless_switched_on(any_job, tools, switch):
    unset = ["SCR_CRIT_PLUGIN"] if switch is None else []
    ended = any_job.run(tools.session(tools.checkpoint(1)), unset=unset, SCR_CRIT_PLUGIN=switch or "")
    assert "SCR_CRIT" not in ended.stdout
    assert (any_job.prefix / "ckpt.1/state.0").read_bytes() == tools.content(tools.STATE, 10)
    assert not any_job.stage.exists()
    if switch == "yes":
        (warning,) = ended.messages("WARNING")
        assert 'SCR_CRIT_PLUGIN is "yes", expected 0 or 1' in warning
    else:
        assert ended.stderr == ""


def test_without_a_plan_all_goes_through(any_job, tools):
    (any_job.folder / "plan").unlink()
    ended = any_job.run(tools.session(tools.checkpoint(1), tools.checkpoint(2)))
    assert (any_job.prefix / "ckpt.2/state.0").read_bytes() == tools.content(tools.STATE, 20)
    assert len(ended.messages("WARNING")) == 2
    assert all(
        "no plan can be used" in line and str(any_job.folder / "plan") in line
        for line in ended.messages("WARNING")
    )


def test_a_damaged_plan_is_not_used(any_job, tools):
    plan = any_job.folder / "plan"
    data = bytearray(plan.read_bytes())
    data[len(data) // 2] ^= 1
    plan.write_bytes(data)
    ended = any_job.run(tools.session(tools.checkpoint(1)))
    assert (any_job.prefix / "ckpt.1/state.0").read_bytes() == tools.content(tools.STATE, 10)
    assert all("no plan can be used" in line for line in ended.messages("WARNING"))


def test_a_file_that_does_not_fit_goes_through_with_one_warning(any_job, tools):
    ended = any_job.run(tools.session(*(tools.checkpoint(number, size=100) for number in (1, 2, 3))))
    assert (any_job.prefix / "ckpt.3/state.1").read_bytes() == tools.content(100, 30)
    assert len(ended.messages("WARNING")) == 2  # one a rank
    assert "does not fit its plan entry" in ended.messages("WARNING")[0]
    assert "3 whole (3 misfit)" in ended.totals(0)
    read, _ = read_back(any_job, tools, "ckpt.3/state.{rank}")
    assert read[1, 0] == tools.content(100, 30)


def test_a_plan_that_gains_nothing_stores_whole_files(any_job, tools, write_plan):
    write_plan(any_job.folder / "plan", keep_all=True)
    ended = any_job.run(tools.session(tools.checkpoint(1)))
    assert (any_job.prefix / "ckpt.1/state.1").read_bytes() == tools.content(tools.STATE, 10)
    assert "1 whole (1 no gain)" in ended.totals(0)
    assert ended.quiet


def test_permission_bits_survive_packing_and_restart(any_job, tools):
    lines = [*tools.checkpoint(1)]
    any_job.run(tools.session(lines))
    assert (any_job.prefix / "ckpt.1/state.0").stat().st_mode & 0o777 == 0o640
    restart = [
        ("have_restart",),
        ("start_restart",),
        ("stat", "ckpt.1/state.{rank}"),
        ("complete_restart", "1"),
    ]
    ended = any_job.run(tools.session(restart))
    assert ended.reports("stat", 0)[-1] == ["mode", "640", str(tools.STATE)]
