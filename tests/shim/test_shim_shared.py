"""Files that several ranks write, and programs whose file numbers are not their ranks."""

from __future__ import annotations

import pytest


def test_a_file_without_the_rank_in_its_pattern_goes_through(any_job, tools, write_plan):
    """Others may write it: packed while they do, it would lose what they wrote."""
    write_plan(any_job.folder / "plan", "ckpt.*/shared.*")
    lines = [
        ("start", "ckpt.1", 1),
        ("@0", "write", "ckpt.1/shared.all", tools.STATE, 10),
        ("barrier",),
        ("@1", "route", "ckpt.1/shared.all"),
        ("complete", "auto"),
    ]
    if any_job.environment == tools.CACHE:
        lines = [lines[0], lines[1], lines[4]]
    ended = any_job.run(tools.session(lines))
    assert ended.reports("complete") == [["0"], ["0"]]
    assert (any_job.prefix / "ckpt.1/shared.all").read_bytes() == tools.content(tools.STATE, 10)
    assert all(
        "its pattern in the plan does not name the rank: {rank}" in line for line in ended.messages("WARNING")
    )
    assert not ended.messages("ERROR")


def test_one_rank_alone_shares_with_nobody(any_job, tools, write_plan):
    write_plan(any_job.folder / "plan", "ckpt.*/state.*")
    ended = any_job.run(tools.session(tools.checkpoint(1, "ckpt.1/state.17")), ranks=1)
    assert any_job.is_packed("ckpt.1/state.17")
    assert ended.quiet


def test_numbers_of_a_reordered_communicator_are_stored_whole(any_job, tools):
    """Rank 0 writes state.1 and rank 1 writes state.0: nobody shares, but no rank can know that."""
    lines = [
        ("start", "ckpt.1", 1),
        ("@0", "write", "ckpt.1/state.1", tools.STATE, 1),
        ("@1", "write", "ckpt.1/state.0", tools.STATE, 2),
        ("@2", "write", "ckpt.1/state.2", tools.STATE, 3),
        ("complete", "auto"),
    ]
    ended = any_job.run(tools.session(lines, [(*line,) for line in lines]), ranks=3)
    assert [words[0] for words in ended.reports("complete")] == ["0"] * 6
    assert (any_job.prefix / "ckpt.1/state.1").read_bytes() == tools.content(tools.STATE, 1)
    assert any_job.is_packed("ckpt.1/state.2")
    assert len(ended.messages("WARNING")) == 2
    assert all("the number in its name is another rank's" in line for line in ended.messages("WARNING"))
    assert not ended.messages("ERROR")
    assert any_job.leftovers() == []


@pytest.mark.parametrize("order", ["owner first", "guest first", "guest after the owner packed"])
def test_an_owner_and_a_guest_are_told_apart_from_private_files(any_job, tools, order):
    """Files per group of ranks: rank 0 and rank 1 write state.0, which the plan ties to rank 0."""
    owner = ("@0", "write", "ckpt.1/state.0", tools.STATE, 1)
    guest = ("@1", "write", "ckpt.1/state.0", tools.STATE, 2)
    both = {"owner first": [owner, ("barrier",), guest], "guest first": [guest, ("barrier",), owner]}
    lines = [("start", "ckpt.1", 1), *both.get(order, [owner, guest]), ("complete", "auto")]
    environment = {}
    if order == "guest after the owner packed":
        environment["SCR_CRIT_DEBUG"] = "0"
        lines = [lines[0], owner, ("@1", "wait_packed", any_job.prefix, any_job.cache), guest, lines[-1]]
    ended = any_job.run(tools.session(lines), **environment)
    assert ended.reports("complete") == [["1"], ["1"]]
    assert any(
        "ckpt.1/state.0 is written by two ranks" in line or "state.0 is written by two ranks" in line
        for line in ended.messages("ERROR")
    )
    assert any_job.leftovers() == []
    out = any_job.folder / "out"
    out.mkdir()
    restarted = any_job.run(tools.session([("restart", out, "ckpt.1/state.0")]))
    assert restarted.reports("restart", 0)[-1] == ["none"]
