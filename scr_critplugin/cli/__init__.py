"""The command line, ``scr_crit``: one module a command, each a thin layer over the package.

May import every part of the package; nothing imports it. Tests: ``tests/test_cli.py``.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from scr_critplugin.cli.check import check
from scr_critplugin.cli.demo import demo
from scr_critplugin.cli.doctor import doctor
from scr_critplugin.cli.merge import merge
from scr_critplugin.cli.pack import pack, unpack
from scr_critplugin.cli.plan import plan
from scr_critplugin.cli.profile import profile
from scr_critplugin.cli.run import run
from scr_critplugin.cli.show import show
from scr_critplugin.cli.trace import trace
from scr_critplugin.cli.version import print_version
from scr_critplugin.errors import CritError


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=print_version,
    help="Print the versions of package, core and formats, and the libscr that would be used.",
)
def cli() -> None:
    """Element-wise checkpoint reduction for SCR: store only what a restart needs.

    \b
    A first session:
      scr_crit demo                                the whole story on this machine
      mpiexec -n 4 scr_crit trace ./app            a compiled program, to its plan
      scr_crit profile app.py:setup -o state.map.npz
      scr_crit plan state.map.npz --layout ckpt.toml -o plan
      scr_crit run --plan plan -- mpiexec -n 4 ./app
    """


for command in (demo, profile, trace, merge, plan, show, pack, unpack, check, run, doctor):
    cli.add_command(command)


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point of ``scr_crit``: errors go to stderr in one line, and the exit status is not zero."""
    try:
        status = cli.main(args=arguments, prog_name="scr_crit", standalone_mode=False)
    except click.Abort:
        click.echo("scr_crit: interrupted", err=True)
        sys.exit(130)
    except click.ClickException as usage:
        usage.show()
        sys.exit(usage.exit_code)
    except (CritError, OSError) as error:
        click.echo(f"scr_crit: error: {error}", err=True)
        sys.exit(1)
    # Outside its standalone mode click hands the status of ctx.exit() back instead of leaving with it.
    sys.exit(status if isinstance(status, int) else 0)
