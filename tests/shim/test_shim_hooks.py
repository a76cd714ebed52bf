"""The table of hooks: who sees which event in which order, with the plugin on and off; and failures."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent


@pytest.fixture(scope="module")
def client(tmp_path_factory, mpicc, scr_root, package_lib):
    """The test program, linked with the shim before libscr."""
    program = tmp_path_factory.mktemp("hooks") / "client"
    words = [
        mpicc,
        "-Wall",
        "-Wextra",
        HERE / "hooks_client.c",
        f"-I{scr_root / 'include'}",
        f"-I{package_lib.parent / 'include'}",
        f"-L{package_lib}",
        "-lscr_crit_shim",
        f"-L{scr_root / 'lib'}",
        "-Wl,--no-as-needed",
        "-lscr",
        f"-Wl,-rpath,{package_lib}",
        f"-Wl,-rpath,{scr_root / 'lib'}",
        "-o",
        program,
    ]
    subprocess.run([str(word) for word in words], check=True)
    return program


@pytest.fixture
def events(job, client):
    """Run the client alone; return its lines."""

    def run(*arguments, **environment):
        command = [*job.mpiexec, "-n", "1", str(client), "ckpt.1/state.0", *arguments]
        ended = subprocess.run(
            command,
            cwd=job.prefix,
            env={**job.settings(), **environment},
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        )
        return ended.stdout.replace(str(job.folder), "JOB").splitlines(), ended.stderr

    return run


def of(lines, *words):
    return [line for line in lines if any(f" {word}" in line for word in words)]


def test_order_of_events_with_the_plugin_on(job, events):
    lines, _ = events()
    assert lines[:3] == ["register a 0", "register b 0", "bad 1 1"]
    kinds = [" ".join(line.split()[:2]) for line in lines if line.split()[0] in ("a", "b")]
    routing = ["a output_started", "b output_started", "a output_routed", "b output_routed"]
    completing = ["b output_completing", "a output_completing", "b output_completed", "a output_completed"]
    restart = ["started", "routed", "completed"]
    reading = [f"{who} restart_{event}" for event in restart for who in ("a", "b")]
    # a leaves in its restart_completed
    assert kinds == ["a initialized", "b initialized", *routing, *completing, *reading, "b finalizing"]
    (seen_by_a, seen_by_b) = of(lines, "output_routed")
    # the filter comes first: a sees its staged path, b what a made of it, and the program what b was given
    assert seen_by_a.startswith("a output_routed ckpt.1/state.0 JOB/stage/scr_crit.")
    assert seen_by_b.split()[3] == seen_by_a.split()[3] + "+a"
    assert of(lines, "routed 0") == [f"program routed 0 {seen_by_b.split()[3]}"]
    assert of(lines, "output_started") == ["a output_started one 1", "b output_started one 1"]
    assert of(lines, "output_completing") == ["b output_completing 1", "a output_completing 1"]
    assert of(lines, "completed 0")[-1] == "program completed 0"
    assert job.is_packed("ckpt.1/state.0")
    assert of(lines, "restart_started") == ["a restart_started one", "b restart_started one"]
    assert "totals 1 1" in lines


def test_events_flow_with_the_plugin_off(events, job, scr_root):
    lines, stderr = events(SCR_CRIT_PLUGIN="0")
    assert "a output_routed ckpt.1/state.0 JOB/prefix/ckpt.1/state.0 1024" in lines
    assert "program read 0" in lines
    assert not job.is_packed("ckpt.1/state.0")
    assert stderr == ""
    assert Path(lines[-1].split()[1]).resolve().parent == (scr_root / "lib").resolve()


def test_a_client_that_refuses_output_fails_the_call(events):
    lines, _ = events("output")
    assert "program routed 1 " in lines
    assert "program completed 1" in lines


def test_a_client_may_veto_the_output(events):
    lines, _ = events("veto")
    assert of(lines, "output_completing") == ["b output_completing 1", "a output_completing 0"]
    assert "program completed 1" in lines


def test_a_client_that_refuses_a_restart_fails_it(events):
    lines, stderr = events("restart")
    assert "program completed 0" in lines
    assert "program restarted 1 " in lines
    assert "program read 1" in lines  # though the program said that all was well
    assert "the restart is reported as invalid" in stderr
