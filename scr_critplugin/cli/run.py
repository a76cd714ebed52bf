"""``scr_crit run``: run a job as it is, with the shim preloaded."""

from __future__ import annotations

import os
from pathlib import Path

import click

from scr_critplugin.installation import shim_library


@click.command(context_settings={"ignore_unknown_options": True})
@click.option(
    "--plan",
    "plan_path",
    type=click.Path(path_type=Path),
    metavar="PLAN",
    help="Plan to use. Default: SCR_CRIT_PLAN, else .scr_crit/plan under the prefix.",
)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def run(plan_path: Path | None, command: tuple[str, ...]) -> None:
    """Run COMMAND with the plugin switched on; the exit status is the command's.

    Sets SCR_CRIT_PLUGIN=1, SCR_CRIT_PLAN and LD_PRELOAD, and replaces itself by COMMAND. All other
    parameters (SCR_CRIT_*) are passed on as they stand; docs/parameters.md lists them.

    A launcher that does not pass the environment on to other nodes needs its own option for that, such as
    Open MPI's -x LD_PRELOAD -x SCR_CRIT_PLUGIN -x SCR_CRIT_PLAN.

    \b
    Example:
      scr_crit run --plan plan -- mpiexec -n 4 ./app input.nml
    """
    environment = plugin_environment(plan_path)
    try:
        os.execvpe(command[0], list(command), environment)
    except FileNotFoundError:
        raise click.ClickException(f"{command[0]}: no such command; is it on the PATH?") from None
    except PermissionError:
        raise click.ClickException(f"{command[0]}: is not executable") from None


def plugin_environment(plan_path: Path | None) -> dict[str, str]:
    """Return a copy of the environment in which every SCR program runs with the plugin.

    Parameters
    ----------
    plan_path : Path or None
        Plan to use; None leaves the choice to SCR_CRIT_PLAN and the prefix.

    Raises
    ------
    CritError
        When the shim is not installed.
    PlanError, StorageError
        When the plan cannot be read: better now than in every rank.
    """
    environment = dict(os.environ)
    shim = str(shim_library())
    preloaded = environment.get("LD_PRELOAD", "")
    if shim not in preloaded.split(":"):
        environment["LD_PRELOAD"] = f"{shim}:{preloaded}" if preloaded else shim
    environment["SCR_CRIT_PLUGIN"] = "1"
    if plan_path is not None:
        from scr_critplugin.plan import Plan

        Plan.load(plan_path)
        environment["SCR_CRIT_PLAN"] = str(plan_path.resolve())
    return environment
