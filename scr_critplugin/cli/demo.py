"""``scr_crit demo``: the whole story on one machine, told as it happens."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import click

from scr_critplugin.errors import CritError


@click.command()
@click.option("--ranks", default=4, show_default=True, type=click.IntRange(1, 64), help="MPI ranks.")
@click.option(
    "--keep",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Work in DIR (created if needed, must be empty) and leave everything there.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of the story.")
def demo(ranks: int, keep: Path | None, as_json: bool) -> None:
    """Profile, pack, kill, restart: the whole story on this machine.

    Builds heat3d, an ordinary MPI program that checkpoints through SCR, and runs it to its end without the
    plugin. Then, with the plugin and the same binary, in cache and in bypass mode: packed checkpoints,
    SIGKILL in the middle, and a restart with NaN in everything that was dropped. The result must be the same
    to the last bit. Uses the SCR at SCR_ROOT, else a single-node stand-in. The exit status is 0 only if
    every restart was identical.
    """
    say: Callable[[str], None] = (lambda _: None) if as_json else click.echo
    with _work_folder(keep) as folder:
        report = _tell(Path(folder), ranks, say)
    if as_json:
        click.echo(json.dumps(report, indent=2))
    if not report["restart_identical"]:
        raise CritError("a restart from packed checkpoints did not end where the undisturbed run did")


def _work_folder(keep: Path | None) -> AbstractContextManager[str]:
    if keep is None:
        return tempfile.TemporaryDirectory(prefix="scr_crit.demo.")
    keep.mkdir(parents=True, exist_ok=True)
    if any(keep.iterdir()):
        raise CritError("is not empty; give --keep an empty or a new folder", path=keep)
    return nullcontext(str(keep.resolve()))


def _tell(folder: Path, ranks: int, say: Callable[[str], None]) -> dict[str, Any]:
    from scr_critplugin.cli import demo_job, demo_profile

    say("1. Profile by dependence: which elements can influence the result?")
    bt = demo_profile.profile_bt()
    say(
        f"   NAS BT class S: {bt.uncritical} of {bt.elements} elements of u are uncritical: "
        + ", ".join(bt.regions)
    )
    heat = demo_profile.profile_heat3d(folder)
    for line in heat.rules:
        say(f"   heat3d, what a restart needs of {line}")
    say(f"   plan for blocks of any size: {heat.plan_bytes} bytes")

    mpi = demo_job.find_mpi()
    scr_root, scr_name = demo_job.build_scr(folder, mpi)
    program = demo_job.build_heat3d(folder, mpi, scr_root)
    say(f"2. heat3d without the plugin, {ranks} ranks, SCR {scr_name}")
    job = demo_job.Job(program, mpi, ranks, folder / "whole", demo_job.MODES["bypass"], scr_root)
    reference = job.run()
    whole = job.checkpoints()
    bytes_whole = sum(path.stat().st_size for path in whole.values())
    say(f"   digest {reference.digest}, {len(whole)} checkpoint files, {bytes_whole} bytes under the prefix")

    report: dict[str, Any] = {
        "app": "heat3d",
        "ranks": ranks,
        "scr": scr_name,
        "digest": reference.digest,
        "files": len(whole),
        "bytes_whole": bytes_whole,
        "modes": {},
        "bt_uncritical": bt.uncritical,
        "bt_elements": bt.elements,
        "plan_bytes": heat.plan_bytes,
    }
    for number, (mode, settings) in enumerate(demo_job.MODES.items(), start=3):
        say(f"{number}. The same binary with SCR_CRIT_PLUGIN=1, {mode} mode")
        job = demo_job.Job(program, mpi, ranks, folder / mode, settings, scr_root, plan=heat.plan, fill="nan")
        report["modes"][mode] = _kill_and_restart(job, mode, whole, reference.digest, say)
    return {**report, **_summarise(report, whole, job.checkpoints(), say)}


def _kill_and_restart(
    job: Any, mode: str, whole: dict[str, Path], digest: str, say: Callable[[str], None]
) -> dict[str, Any]:
    from scr_critplugin.cli import demo_job

    job.run_until_killed()
    say(f"   rank 0 got SIGKILL after step {demo_job.DIE_AT}")
    if mode == "cache":
        job.lose_cache()
        say("   cache and control directories removed: the restart fetches from the prefix")
    ended = job.run()
    stored = job.checkpoints()
    packed = sum(path.stat().st_size for path in stored.values())
    identical = ended.digest == digest and ended.restarted_from is not None and set(stored) == set(whole)
    say(f"   restarted from {ended.restarted_from}, NaN in all that was dropped")
    say(
        f"   digest {ended.digest}: {'identical' if identical else 'NOT IDENTICAL'}; "
        f"{packed} bytes under the prefix"
    )
    return {
        "bytes_packed": packed,
        "restarted_from": ended.restarted_from,
        "digest": ended.digest,
        "identical": identical,
    }


def _summarise(
    report: dict[str, Any], whole: dict[str, Path], packed: dict[str, Path], say: Callable[[str], None]
) -> dict[str, Any]:
    from scr_critplugin.cli import demo_job

    modes = report["modes"].values()
    summary: dict[str, Any] = {
        "bytes_packed": max(mode["bytes_packed"] for mode in modes),
        "restart_identical": all(mode["identical"] for mode in modes),
    }
    say(f"5. Sizes of all {report['files']} checkpoint files")
    base = report["bytes_whole"]
    rows = [("whole", base), ("packed", summary["bytes_packed"])]
    compressed = {name: demo_job.zstd_bytes(files) for name, files in (("whole", whole), ("packed", packed))}
    if compressed["whole"] is None:
        say("   (zstd is not compared: `pip install zstandard`)")
    else:
        rows += [("whole + zstd -3", compressed["whole"]), ("packed + zstd -3", compressed["packed"])]
        summary |= {"bytes_whole_zstd": compressed["whole"], "bytes_packed_zstd": compressed["packed"]}
    for name, size in rows:
        say(f"   {name:<17}{size:>12} bytes {100 * size / base:6.1f} %")
    return summary
