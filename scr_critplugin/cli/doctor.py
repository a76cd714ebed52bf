"""``scr_crit doctor``: would a job in this environment really get its checkpoints packed?"""

from __future__ import annotations

import os
import re
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
    everything is well. The probe writes and restarts in bypass and in cache mode, with a prefix and cache of
    its own that it removes, and with your staging folder and codec. Settings are read from the environment;
    docs/parameters.md names the files that SCR reads as well.
    """
    examinations: tuple[Callable[[], Finding], ...] = (
        _core,
        _shim,
        _libscr,
        lambda: _plan(plan_path),
        lambda: _settings(plan_path),
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


def _plan_path(chosen: Path | None) -> Path:
    default = Path(os.environ.get("SCR_PREFIX", "")) / ".scr_crit" / "plan"
    return chosen or Path(os.environ.get("SCR_CRIT_PLAN", default))


def _plan(chosen: Path | None) -> Finding:
    from scr_critplugin.plan import Plan

    path = _plan_path(chosen)
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


def _settings(chosen: Path | None) -> Finding:
    """Would the parameters themselves keep files whole, whatever the plan says?"""
    from scr_critplugin import packed

    given = {key: value for key, value in sorted(os.environ.items()) if key.startswith("SCR_CRIT_") and value}
    found = " ".join(f"{key}={value}" for key, value in given.items()) or "all at their defaults"
    if given.get("SCR_CRIT_DRYRUN", "0") != "0":
        return Finding("settings", False, found, "unset SCR_CRIT_DRYRUN: with it files are only measured")
    codec = given.get("SCR_CRIT_CODEC", "none")
    if codec not in packed.core_version().codecs:
        return Finding(
            "settings", False, found, f"codec {codec} cannot be used: pip install blosc2, or unset it"
        )
    try:
        packed.fill_bytes(given.get("SCR_CRIT_FILL", "zero"))
        excluded = _excluded_patterns(_plan_path(chosen), given)
    except (CritError, OSError) as error:
        return Finding("settings", False, found, str(error))
    if excluded:
        return Finding(
            "settings", False, found, f"SCR_CRIT_INCLUDE and _EXCLUDE keep whole: {', '.join(excluded)}"
        )
    return Finding("settings", True, found)


def _excluded_patterns(plan_path: Path, given: dict[str, str]) -> list[str]:
    """Patterns of the plan of which a file named after them would be kept out."""
    from scr_critplugin.plan import Plan, glob

    if not plan_path.exists():
        return []

    def any_matches(globs: str, name: str) -> bool:
        return any(glob(one, name, rank=0) for one in re.split("[,:]", globs) if one)

    include, exclude = given.get("SCR_CRIT_INCLUDE", "**"), given.get("SCR_CRIT_EXCLUDE", "")
    examples = {entry.pattern: _example_name(entry.pattern) for entry in Plan.load(plan_path).entries}
    return [
        pattern
        for pattern, name in examples.items()
        if any_matches(exclude, name) or not any_matches(include, name)
    ]


def _example_name(pattern: str) -> str:
    """A file name that the pattern matches for rank 0."""
    name = pattern.replace("{rank}", "0").replace("{rank+1}", "1").replace("{dataset}", "dataset")
    return re.sub(r"\[!?.[^]]*\]", "0", name).replace("**", "x").replace("*", "1").replace("?", "1")


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
