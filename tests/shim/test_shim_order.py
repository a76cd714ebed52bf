"""Calls in the wrong order: SCR ends the job, the shim neither hangs nor hides it.

SCR's words are not looked for: a launcher may lose what a job says as it aborts.
"""

from __future__ import annotations

import pytest

WRONG = {
    "start twice": [("start", "a", 1), ("start", "b", 1)],
    "complete without start": [("complete", "1")],
    "complete twice": [("start", "a", 1), ("complete", "1"), ("complete", "1")],
    "complete checkpoint after start output": [("start", "a", 1), ("complete_checkpoint", "1")],
    "complete output after start checkpoint": [("start_checkpoint",), ("complete", "1")],
    "complete restart without start": [("complete_restart", "1")],
    "start restart without a checkpoint": [("start_restart",)],
    "finalize in an output phase": [("start", "a", 1), ("finalize",)],
    "init twice": [("init",)],
}


@pytest.mark.parametrize("calls", WRONG.values(), ids=WRONG.keys())
def test_the_job_ends_as_without_the_plugin(job, calls):
    ended = job.run([("init",), *calls, ("finalize",)], check=False, timeout=60)
    plain = job.run([("init",), *calls, ("finalize",)], check=False, timeout=60, SCR_CRIT_PLUGIN="0")
    assert ended.status != 0
    assert plain.status != 0
    assert not ended.messages("ERROR")


def test_before_init_and_outside_of_phases_names_come_back(job, tools):
    lines = [
        ("route", "ckpt.1/state.0"),
        ("init",),
        ("route", "ckpt.1/state.0"),
        *tools.checkpoint(1),
        ("route", "ckpt.1/state.0"),
        ("finalize",),
        ("route", "ckpt.1/state.0"),
    ]
    ended = job.run(lines)
    assert ended.reports("route", 0) == [["ckpt.1/state.0", "0", "ckpt.1/state.0"]] * 4
    assert job.is_packed("ckpt.1/state.0")


def test_missing_arguments_are_refused_by_scr(job, tools):
    lines = [
        ("start", "a", 1),
        ("route_null", "ckpt.1/state.0"),
        ("write", "ckpt.1/state.{rank}", tools.STATE, 1),
        ("complete", "auto"),
    ]
    ended = job.run(tools.session(lines))
    assert ended.reports("route_null") == [["1", "1"]] * 2
    assert ended.reports("complete") == [["0"]] * 2
    assert job.is_packed("ckpt.1/state.0")


def test_a_nameless_dataset(any_job, tools):
    ended = any_job.run(
        tools.session(
            [("start", "-", 1), ("write", "ckpt.1/state.{rank}", tools.STATE, 1), ("complete", "auto")]
        )
    )
    assert ended.reports("complete") == [["0"]] * 2
    assert any_job.is_packed("ckpt.1/state.0")


def test_scr_that_is_switched_off(job, tools):
    ended = job.run([("init",)], SCR_ENABLE="0")
    assert ended.reports("init") == [["1"]] * 2
    assert not job.stage.exists()


def test_outputs_that_are_no_checkpoints(any_job, tools):
    lines = [("start", "out.1", 2), ("write", "ckpt.1/state.{rank}", tools.STATE, 1), ("complete", "auto")]
    any_job.run(tools.session(lines))
    assert any_job.is_packed("ckpt.1/state.1")
