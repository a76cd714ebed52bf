"""``scr_crit --version``: what is installed, and which libscr a run would use."""

from __future__ import annotations

import click

from scr_critplugin import __version__
from scr_critplugin.cli.libscr import find_libscr


def print_version(context: click.Context, _option: click.Parameter, wanted: bool) -> None:
    """Print the versions and leave; the callback of ``--version``."""
    if not wanted or context.resilient_parsing:
        return
    from scr_critplugin.packed import core_version

    core = core_version()
    library = find_libscr()
    click.echo(f"scr_crit {__version__}")
    click.echo(f"core {core.library}, codecs: {', '.join(core.codecs)}")
    click.echo(f"formats: packed file {core.packed_format}, plan {core.plan_format}, map {core.map_format}")
    click.echo(
        f"libscr: {library.path} ({library.version})" if library.path else f"libscr: none ({library.problem})"
    )
    context.exit()
