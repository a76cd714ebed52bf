"""The command line as a user meets it: every command in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from scr_critplugin.criticality import CriticalityMap

SCR_CRIT = str(Path(sys.executable).with_name("scr_crit"))
SHAPE = (12, 13, 13, 5)
LAYOUT = """
[[file]]
pattern = "ckpt.*/bt.{rank}"

[[file.section]]
kind = "bytes"
name = "iteration"
length = 8

[[file.section]]
kind = "array"
variable = "u"
dtype = "<f8"
shape = [12, 13, 13, 5]
"""

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run scr_crit in tmp_path; returns the completed process."""

    def call(*words: object, **options: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [SCR_CRIT, *map(str, words)], cwd=tmp_path, capture_output=True, text=True, check=False, **options
        )  # type: ignore[call-overload, no-any-return]

    return call


@pytest.fixture
def bt(tmp_path: Path, run: Run) -> np.ndarray:  # type: ignore[type-arg]
    """A map, a layout, a plan and a checkpoint of a padded array in tmp_path; returns the array's values."""
    mask = np.zeros(SHAPE, dtype=bool)
    mask[:, :12, :12] = True
    CriticalityMap.from_masks({"u": mask}, "<f8").save(tmp_path / "bt.map.npz")
    (tmp_path / "bt.toml").write_text(LAYOUT)
    values = np.random.default_rng(1).random(SHAPE)
    folder = tmp_path / "ckpt.1"
    folder.mkdir()
    (folder / "bt.0").write_bytes(np.int64(7).tobytes() + values.tobytes())
    made = run("plan", "bt.map.npz", "--layout", "bt.toml", "-o", "plan")
    assert made.returncode == 0, made.stderr
    return values


def test_version_names_package_core_formats_and_libscr(run: Run) -> None:
    printed = run("--version")
    assert printed.returncode == 0, printed.stderr
    for word in ("scr_crit 0.", "core 0.", "packed file 1", "plan 1", "map 2", "libscr:"):
        assert word in printed.stdout


@pytest.mark.parametrize(
    "command", ["demo", "profile", "plan", "show", "pack", "unpack", "check", "run", "doctor"]
)
def test_each_command_has_complete_help(run: Run, command: str) -> None:
    import click

    from scr_critplugin.cli import cli

    printed = run(command, "--help").stdout
    for parameter in cli.commands[command].params:
        if isinstance(parameter, click.Option):
            assert parameter.help, f"{command} {parameter.opts} has no help"
            assert parameter.opts[-1] in printed


def test_the_manual_names_every_command_and_option() -> None:
    import click

    from scr_critplugin.cli import cli

    manual = (Path(__file__).parents[1] / "docs" / "scr_crit.1").read_text().replace("\\-", "-")
    for name, command in cli.commands.items():
        assert f".B {name} " in manual or f".B {name}\n" in manual, name
        line = next(line for line in manual.splitlines() if line.startswith(f".B {name}"))
        for parameter in command.params:
            if isinstance(parameter, click.Option) and parameter.name != "help":
                assert any(option in line for option in parameter.opts), (name, parameter.opts)


def test_show_map_json_has_the_agreed_shape(run: Run, bt: object) -> None:
    shown = json.loads(run("show", "bt.map.npz", "--json").stdout)
    assert shown == {
        "variables": [
            {
                "name": "u",
                "shape": list(SHAPE),
                "dtype": "float64",
                "elements": 10140,
                "critical": 8640,
                "inert": 1500,
                "dead": 0,
                "unused": 0,
            }
        ]
    }


def test_show_map_speaks_in_slices(run: Run, bt: object) -> None:
    shown = run("show", "bt.map.npz").stdout
    assert "1500 of 10140 uncritical" in shown
    assert "u[:, 12, :, :]" in shown or "u[:, :, 12, :]" in shown


def test_show_plan_and_packed(run: Run, bt: object) -> None:
    assert "ckpt.*/bt.{rank}" in run("show", "plan").stdout
    assert json.loads(run("show", "plan", "--json").stdout)["format"] == 1
    assert run("pack", "ckpt.1/bt.0", "--plan", "plan", "-o", "bt.packed").returncode == 0
    described = json.loads(run("show", "bt.packed", "--json").stdout)
    assert described["file_bytes"] == 8 + 8 * 10140
    assert described["kept_bytes"] == 8 + 8 * 8640
    assert "kept_bytes" in run("show", "bt.packed").stdout


def test_show_refuses_a_foreign_file(run: Run, tmp_path: Path) -> None:
    (tmp_path / "foreign").write_bytes(b"neither of the three")
    shown = run("show", "foreign")
    assert shown.returncode == 1
    assert "foreign" in shown.stderr and "neither" in shown.stderr
    assert "Traceback" not in shown.stderr


def test_pack_unpack_check_round_trip(run: Run, bt: np.ndarray, tmp_path: Path) -> None:  # type: ignore[type-arg]
    assert run("pack", "ckpt.1/bt.0", "--plan", "plan", "-o", "bt.packed").returncode == 0
    assert (tmp_path / "bt.packed").stat().st_size < 8 * 8640 + 8 + 512 + 70
    checked = run("check", "bt.packed")
    assert checked.returncode == 0 and "intact" in checked.stdout
    assert run("unpack", "bt.packed", "-o", "bt.whole", "--fill", "nan").returncode == 0
    raw = (tmp_path / "bt.whole").read_bytes()
    values = np.frombuffer(raw[8:], dtype="<f8").reshape(SHAPE)
    assert raw[:8] == np.int64(7).tobytes()
    assert np.array_equal(values[:, :12, :12], bt[:, :12, :12])
    assert np.isnan(values[:, 12]).all() and np.isnan(values[:, :, 12]).all()


def test_unpack_into_a_folder(run: Run, bt: object, tmp_path: Path) -> None:
    run("pack", "ckpt.1/bt.0", "--plan", "plan", "-o", "a")
    run("pack", "ckpt.1/bt.0", "--plan", "plan", "-o", "b")
    (tmp_path / "out").mkdir()
    assert run("unpack", "a", "b", "-d", "out").returncode == 0
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"a", "b"}


@pytest.mark.parametrize(
    "words", [("unpack", "a"), ("unpack", "a", "b", "-o", "c"), ("unpack", "a", "x/a", "-d", ".")]
)
def test_unpack_usage_errors_change_nothing(run: Run, tmp_path: Path, words: tuple[str, ...]) -> None:
    (tmp_path / "a").write_bytes(b"")
    assert run(*words).returncode == 2
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_check_finds_each_damage_and_fails(run: Run, bt: object, tmp_path: Path) -> None:
    run("pack", "ckpt.1/bt.0", "--plan", "plan", "-o", "good")
    content = bytearray((tmp_path / "good").read_bytes())
    content[len(content) // 2] ^= 4
    (tmp_path / "bad").write_bytes(content)
    checked = run("check", "good", "bad", "ckpt.1/bt.0", "--json")
    assert checked.returncode == 1
    verdicts = json.loads(checked.stdout)
    assert verdicts["intact"] == 1 and verdicts["bad"] == 2
    assert verdicts["files"]["good"] == "intact"
    assert "bad" in verdicts["files"]["bad"]


def test_failures_leave_nothing_half_written(run: Run, bt: object, tmp_path: Path) -> None:
    (tmp_path / "short").write_bytes(b"\0" * 100)
    before = {path.name for path in tmp_path.iterdir()}
    packed = run("pack", "short", "--name", "ckpt.1/bt.0", "--plan", "plan", "-o", "short.packed")
    assert packed.returncode == 1 and "short" in packed.stderr
    assert run("unpack", "short", "-o", "short.whole").returncode == 1
    assert run("plan", "plan", "--layout", "bt.toml", "-o", "plan2").returncode == 1
    assert {path.name for path in tmp_path.iterdir()} == before


def test_run_switches_the_plugin_on_and_passes_the_status_through(
    run: Run, bt: object, tmp_path: Path
) -> None:
    script = (
        "import os, sys; print(os.environ['SCR_CRIT_PLUGIN'], os.environ['SCR_CRIT_PLAN'], "
        "os.environ['LD_PRELOAD']); sys.exit(7)"
    )
    ran = run("run", "--plan", "plan", "--", sys.executable, "-c", script)
    assert ran.returncode == 7
    plugin, plan, preload = ran.stdout.split()
    assert plugin == "1" and plan == str((tmp_path / "plan").resolve())
    assert preload.endswith("libscr_crit_shim.so")
    assert ran.stderr == ""


def test_run_keeps_other_preloads(run: Run) -> None:
    script = "import os; print(os.environ['LD_PRELOAD'])"
    environment = {**os.environ, "LD_PRELOAD": "libm.so.6"}
    ran = run("run", "--", sys.executable, "-c", script, env=environment)
    assert ran.stdout.strip().endswith("libscr_crit_shim.so:libm.so.6")


def test_run_passes_a_signal_through(run: Run) -> None:
    ran = run("run", "--", sys.executable, "-c", "import os, signal; os.kill(os.getpid(), signal.SIGTERM)")
    assert ran.returncode == -signal.SIGTERM


def test_run_refuses_a_broken_plan_and_a_missing_command(run: Run, bt: object, tmp_path: Path) -> None:
    damaged = bytearray((tmp_path / "plan").read_bytes())
    damaged[-1] ^= 1
    (tmp_path / "damaged").write_bytes(damaged)
    ran = run("run", "--plan", "damaged", "--", "true")
    assert ran.returncode == 1 and "damaged" in ran.stderr
    missing = run("run", "--", "no_such_command_anywhere")
    assert missing.returncode == 1 and "no_such_command_anywhere" in missing.stderr


def test_output_to_a_pipe_has_no_escapes_and_no_bar(run: Run, bt: object) -> None:
    for words in (
        ("show", "bt.map.npz"),
        ("check", "plan"),
        ("pack", "ckpt.1/bt.0", "--plan", "plan", "-o", "p"),
    ):
        ran = run(*words)
        assert "\x1b" not in ran.stdout + ran.stderr


def test_doctor_probes_through_scr(run: Run, bt: object, scr_root: Path, tmp_path: Path) -> None:
    examined = run("doctor", "--plan", "plan", env={**os.environ, "SCR_ROOT": str(scr_root)})
    assert examined.returncode == 0, examined.stdout + examined.stderr
    assert examined.stdout.count("ok  ") == 6
    assert "probe checkpoint: stored 5" in examined.stdout


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("SCR_CRIT_DRYRUN", "1"),
        ("SCR_CRIT_EXCLUDE", "**"),
        ("SCR_CRIT_INCLUDE", "other/*"),
        ("SCR_CRIT_CODEC", "gzip"),
        ("SCR_CRIT_FILL", "one"),
        ("SCR_CRIT_STAGE", "/proc/nowhere"),
    ],
)
def test_doctor_sees_settings_that_keep_files_whole(
    run: Run, bt: object, scr_root: Path, key: str, value: str
) -> None:
    examined = run("doctor", "--plan", "plan", env={**os.environ, "SCR_ROOT": str(scr_root), key: value})
    assert examined.returncode == 1, examined.stdout
    assert examined.stdout.count("FAIL") == 1


def test_doctor_says_what_to_do(run: Run, tmp_path: Path) -> None:
    environment = {**os.environ, "SCR_ROOT": str(tmp_path / "nowhere")}
    examined = run("doctor", "--plan", "no_plan_here", env=environment)
    assert examined.returncode == 1
    assert "FAIL libscr" in examined.stdout and "SCR_ROOT" in examined.stdout
    assert "FAIL plan" in examined.stdout and "scr_crit plan" in examined.stdout
    assert examined.stdout.count("->") == examined.stdout.count("FAIL")
