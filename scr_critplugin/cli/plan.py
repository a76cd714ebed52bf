"""``scr_crit plan``: from criticality maps and a layout to a plan."""

from __future__ import annotations

from pathlib import Path

import click

_PATH = click.Path(path_type=Path)


@click.command()
@click.argument("maps", nargs=-1, required=True, type=_PATH, metavar="MAP...")
@click.option(
    "--layout",
    "layout_path",
    required=True,
    type=_PATH,
    metavar="LAYOUT",
    help="TOML that says which bytes of which file hold which variable (docs/layout.md).",
)
@click.option("-o", "--output", required=True, type=_PATH, metavar="PLAN", help="Plan to write.")
@click.option(
    "--allow-unused",
    multiple=True,
    metavar="VARIABLE",
    help="Drop this variable's unused elements too; may be repeated. Unused is not dead: see the README.",
)
def plan(maps: tuple[Path, ...], layout_path: Path, output: Path, allow_unused: tuple[str, ...]) -> None:
    """Compile criticality MAPs and a layout into a plan.

    One MAP gives rules for its own shapes. Several MAPs of the same program at different sizes give rules for
    every size, for layouts whose counts are read from the file; several MAPs of the same shapes are united
    (critical in one is critical).

    \b
    Example:
      scr_crit plan heat.map.npz --layout heat.toml -o .scr_crit/plan
    """
    from scr_critplugin.criticality import CriticalityMap
    from scr_critplugin.layout import Layout
    from scr_critplugin.plan import compile_plan

    layout = Layout.from_toml(layout_path)
    loaded = [CriticalityMap.load(path) for path in maps]
    output.parent.mkdir(parents=True, exist_ok=True)
    compiled = compile_plan(loaded, layout, allow_unused=allow_unused)
    compiled.save(output)
    click.echo(
        f"{output}: {len(compiled.entries)} kinds of file, {len(bytes(compiled))} bytes; "
        f"see `scr_crit show {output}`"
    )
