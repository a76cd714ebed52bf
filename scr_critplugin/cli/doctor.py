"""``scr_crit doctor``: would a job in this environment really get its checkpoints packed?"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import click

from scr_critplugin.cli.libscr import find_libscr
from scr_critplugin.errors import CritError


@dataclass(frozen=True)
class Finding:
    """The outcome of one examination: what was found, and what to do when it is not well."""

    subject: str
    well: bool
    found: str
    remedy: str = ""


@click.command()
@click.option(
    "--plan",
    "plan_path",
    type=click.Path(path_type=Path),
    metavar="PLAN",
    help="Plan to look at. Default: SCR_CRIT_PLAN, else .scr_crit/plan under SCR_PREFIX.",
)
def doctor(plan_path: Path | None) -> None:
    """Examine the installation: core, shim, libscr, plan, and a probe checkpoint through all of them.

    Each line says what was found and, where something is wrong, what to do. The exit status is 0 only if
    everything is well. The probe runs one process with a prefix and cache of its own, and removes them.
    """
    examinations: tuple[Callable[[], Finding], ...] = (
        _core,
        _shim,
        _libscr,
        lambda: _plan(plan_path),
        _probe,
    )
    findings = [examine() for examine in examinations]
    for finding in findings:
        click.echo(f"{'ok  ' if finding.well else 'FAIL'} {finding.subject}: {finding.found}")
        if not finding.well:
            click.echo(f"     -> {finding.remedy}")
    if not all(finding.well for finding in findings):
        raise click.exceptions.Exit(1)


def _core() -> Finding:
    try:
        from scr_critplugin.packed import core_version

        core = core_version()
    except ImportError as error:
        return Finding(
            "core", False, str(error), "reinstall the package: pip install --force-reinstall scr_critplugin"
        )
    return Finding("core", True, f"version {core.library}, codecs {', '.join(core.codecs)}")


def _shim() -> Finding:
    from scr_critplugin.installation import shim_library

    remedy = "reinstall the package, with a C compiler at hand"
    try:
        library = shim_library()
    except CritError as error:
        return Finding("shim", False, str(error), remedy)
    loaded = subprocess.run(
        [sys.executable, "-c", ""],
        env={**os.environ, "LD_PRELOAD": str(library)},
        capture_output=True,
        text=True,
        check=False,
    )
    if loaded.returncode != 0 or loaded.stderr:
        return Finding("shim", False, f"{library} cannot be preloaded: {loaded.stderr.strip()}", remedy)
    return Finding("shim", True, str(library))


def _libscr() -> Finding:
    library = find_libscr()
    if not library.path:
        return Finding(
            "libscr",
            False,
            library.problem,
            "set SCR_ROOT to SCR's install prefix (it holds lib/libscr.so), or load its module",
        )
    return Finding("libscr", True, f"{library.path}, version {library.version}")


def _plan(chosen: Path | None) -> Finding:
    from scr_critplugin.plan import Plan

    default = Path(os.environ.get("SCR_PREFIX", "")) / ".scr_crit" / "plan"
    path = chosen or Path(os.environ.get("SCR_CRIT_PLAN", default))
    try:
        plan = Plan.load(path)
    except (CritError, OSError) as error:
        return Finding(
            "plan",
            False,
            str(error),
            "make one with `scr_crit plan`, then set SCR_CRIT_PLAN (or SCR_PREFIX, if it is there)",
        )
    return Finding("plan", True, f"{path}, {len(plan.entries)} kinds of file, digest {plan.digest}")


def _probe() -> Finding:
    remedy = (
        "mend what failed above first; if all else is well, run the probe by itself with SCR_CRIT_DEBUG=3 "
        "SCR_DEBUG=1: python -m scr_critplugin.cli.probe EMPTY_FOLDER"
    )
    with tempfile.TemporaryDirectory(prefix="scr_crit.doctor.") as folder:
        ran = subprocess.run(
            [sys.executable, "-P", "-m", "scr_critplugin.cli.probe", folder],
            capture_output=True,
            text=True,
            check=False,
        )
    said = (ran.stdout.strip().splitlines() or [""])[-1]
    if ran.returncode != 0:
        lines = ran.stderr.strip().splitlines()
        return Finding("probe checkpoint", False, lines[-1] if lines else f"status {ran.returncode}", remedy)
    return Finding("probe checkpoint", True, said)
