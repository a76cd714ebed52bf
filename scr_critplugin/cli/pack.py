"""``scr_crit pack`` and ``scr_crit unpack``: the same work as the shim's, by hand."""

from __future__ import annotations

from pathlib import Path

import click

from scr_critplugin.cli.progress import reading_progress

_PATH = click.Path(path_type=Path)


@click.command()
@click.argument("file", type=_PATH)
@click.option("-o", "--output", required=True, type=_PATH, metavar="PACKED", help="Name of the packed file.")
@click.option("--plan", "plan_path", required=True, type=_PATH, metavar="PLAN", help="Plan to pack by.")
@click.option(
    "--name", metavar="PATH", help="Path relative to the prefix, for the plan's patterns. Default: FILE."
)
@click.option(
    "--rank", default=-1, show_default="any", metavar="N", help="Rank, where the pattern has {rank}."
)
@click.option(
    "--dataset", metavar="NAME", help="Dataset name, where the pattern has {dataset}. Default: any."
)
@click.option(
    "--codec",
    default="none",
    show_default=True,
    type=click.Choice(["none", "blosc2-zstd"]),
    help="Compress the critical bytes.",
)
def pack(
    file: Path, output: Path, plan_path: Path, name: str | None, rank: int, dataset: str | None, codec: str
) -> None:
    """Pack one checkpoint FILE by a plan; FILE itself is not changed.

    \b
    Example:
      scr_crit pack ckpt.40/heat.0 --plan plan -o heat.0.packed
    """
    from scr_critplugin import packed
    from scr_critplugin.plan import Plan

    plan = Plan.load(plan_path)
    with reading_progress("packing", file.stat().st_size):
        info = packed.pack(
            file, output, plan, name=name or file.as_posix(), rank=rank, dataset=dataset, codec=codec
        )
    click.echo(
        f"{output}: {info.packed_bytes} bytes of {info.file_bytes} "
        f"({100 * info.packed_bytes / info.file_bytes:.2f} %)"
    )


@click.command()
@click.argument("files", nargs=-1, required=True, type=_PATH)
@click.option(
    "-o", "--output", type=_PATH, metavar="WHOLE", help="Name of the whole file, for a single FILE."
)
@click.option(
    "-d",
    "--directory",
    type=_PATH,
    metavar="DIR",
    help="Folder for the whole files, for one or many; must exist.",
)
@click.option(
    "--fill",
    default="zero",
    show_default=True,
    metavar="zero|nan|HEX",
    help="What stands in the uncritical bytes.",
)
def unpack(files: tuple[Path, ...], output: Path | None, directory: Path | None, fill: str) -> None:
    """Expand packed FILES to whole ones; needs neither map nor plan.

    Use it for programs that open files under the prefix themselves. Never expand onto a file that SCR
    manages: SCR compares sizes, and would refuse the dataset.

    \b
    Examples:
      scr_crit unpack ckpt.40/heat.0 -o heat.0
      scr_crit unpack ckpt.40/* -d /scratch/whole --fill nan
    """
    from scr_critplugin import packed

    if (output is None) == (directory is None):
        raise click.UsageError("give either -o WHOLE or -d DIR")
    if output is not None and len(files) != 1:
        raise click.UsageError(f"-o takes one FILE, {len(files)} were given; use -d DIR")
    if directory is not None and len({file.name for file in files}) != len(files):
        raise click.UsageError("two FILES have the same name and would overwrite each other in DIR")
    targets = [directory / file.name for file in files] if directory else [output]
    with reading_progress("expanding", sum(file.stat().st_size for file in files)):
        for file, target in zip(files, targets, strict=True):
            packed.unpack(file, target, fill=fill)  # type: ignore[arg-type]
