"""``scr_crit demo``: the whole story on one machine, told as it happens."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from scr_critplugin.errors import CritError

if TYPE_CHECKING:
    from scr_critplugin.cli.demo_job import Job
    from scr_critplugin.cli.demo_profile import HeatPlan


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

    Builds heat3d, an ordinary MPI program that checkpoints through SCR, traces it under Valgrind (where that
    is missing, its NumPy twin is profiled), and runs it to its end without the plugin. Then, with the plugin
    and the same binary, in cache and in bypass mode: packed checkpoints, SIGKILL in the middle, and a restart
    with NaN in everything that was dropped. The result must be the same to the last bit. Where gfortran is
    installed, the Fortran version follows. Uses the SCR at SCR_ROOT, else a single-node stand-in. The exit
    status is 0 only if every restart was identical.
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

    say("1. Profile a Python program by dependence: which elements can influence the result?")
    bt = demo_profile.profile_bt()
    say(
        f"   NAS BT class S: {bt.uncritical} of {bt.elements} elements of u are uncritical: "
        + ", ".join(bt.regions)
    )
    mpi = demo_job.find_mpi()
    scr_root, scr_name = demo_job.build_scr(folder, mpi)
    program = demo_job.build_heat3d(folder, mpi, scr_root)
    whole_job = demo_job.Job(program, mpi, ranks, folder / "whole", demo_job.MODES["bypass"], scr_root)
    say(f"2. Profile heat3d, a compiled program: {ranks} ranks, SCR {scr_name}")
    not_traced = demo_profile.why_not_traced()
    if not_traced is None:
        heat = _trace(replace(whole_job, folder=folder / "traced"), say)
    else:
        say(f"   not traced ({not_traced}): by dependence of its NumPy twin")
        heat = demo_profile.profile_twin(folder)
        _say_rules(heat, say)

    say("3. heat3d without the plugin")
    reference = whole_job.run()
    whole = whole_job.checkpoints()
    bytes_whole = sum(path.stat().st_size for path in whole.values())
    say(f"   digest {reference.digest}, {len(whole)} checkpoint files, {bytes_whole} bytes under the prefix")

    report: dict[str, Any] = {
        "app": "heat3d",
        "ranks": ranks,
        "scr": scr_name,
        "profiled": "twin" if not_traced else "trace",
        "digest": reference.digest,
        "files": len(whole),
        "bytes_whole": bytes_whole,
        "modes": {},
        "bt_uncritical": bt.uncritical,
        "bt_elements": bt.elements,
        "plan_bytes": heat.plan_bytes,
    }
    for number, (mode, settings) in enumerate(demo_job.MODES.items(), start=4):
        say(f"{number}. The same binary with SCR_CRIT_PLUGIN=1, {mode} mode")
        job = replace(whole_job, folder=folder / mode, settings=settings, plan=heat.plan, fill="nan")
        report["modes"][mode] = _kill_and_restart(job, mode, whole, reference.digest, say)
    report |= _summarise(report, whole, job.checkpoints(), say)
    if not_traced is None and mpi.mpifort is not None:
        say("7. heat3d in Fortran: traced, then with the plugin in bypass mode")
        fortran = replace(whole_job, program=demo_job.build_heat3d(folder, mpi, scr_root, "f"))
        report["fortran"] = _fortran(fortran, folder, whole, reference.digest, say)
        report["restart_identical"] &= report["fortran"]["identical"]
    return report


def _trace(job: Job, say: Callable[[str], None]) -> HeatPlan:
    from scr_critplugin.cli import demo_profile

    say("   traced under Valgrind: a run that writes two checkpoints, and a restart from the second")
    heat = demo_profile.trace_heat3d(job, job.folder / "plan")
    _say_rules(heat, say)
    return heat


def _say_rules(heat: HeatPlan, say: Callable[[str], None]) -> None:
    for rule in heat.rules:
        say(f"   what a restart needs of {rule}")
    say(f"   plan: {heat.plan_bytes} bytes")


def _fortran(
    traced: Job, folder: Path, whole: dict[str, Path], digest: str, say: Callable[[str], None]
) -> dict[str, Any]:
    heat = _trace(replace(traced, folder=folder / "traced.f"), say)
    job = replace(traced, folder=folder / "fortran", plan=heat.plan, fill="nan")
    return _kill_and_restart(job, "bypass", whole, digest, say)


def _kill_and_restart(
    job: Job, mode: str, whole: dict[str, Path], digest: str, say: Callable[[str], None]
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
    say(f"6. Sizes of all {report['files']} checkpoint files")
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
