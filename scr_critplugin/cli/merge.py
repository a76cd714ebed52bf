"""``scr_crit merge``: one map of the maps of many ranks, runs and inputs."""

from __future__ import annotations

import glob
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.table import Table

from scr_critplugin.cli.progress import spinner
from scr_critplugin.errors import MapError, StorageError

if TYPE_CHECKING:
    from scr_critplugin.merging import Group

_ENDINGS = (".npz", ".map")
_ROWS = 20


@click.command()
@click.argument("maps", nargs=-1, required=True, metavar="MAP...")
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="MAP",
    help="Map to write; with --group-by its name must contain {group}.",
)
@click.option(
    "--group-by",
    type=click.Choice(["shape", "content"]),
    help="Write a map for each set of maps whose variables have the same shapes, or for each set of equal "
    "maps, instead of one for all.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
def merge(maps: tuple[str, ...], output: Path, group_by: Any, as_json: bool) -> None:
    """Unite criticality maps: of the ranks of a job, of several inputs, checkpoints or random seeds.

    MAP is a map, a folder (its files *.npz and *.map), a pattern (quoted, so that the shell leaves it),
    @FILE for a file with one of these on every line, or - to read such lines from the standard input.

    What is critical in one map is critical in the union. Equal maps are shared: the table says how many
    distinct ones there are, and which ranks have them. Maps can be united if their variables agree in name,
    shape, type and order; for the blocks of an uneven decomposition use --group-by shape.

    \b
    Examples:
      scr_crit merge 'map.*.npz' -o state.map.npz
      scr_crit merge maps/ --group-by shape -o 'state.{group}.npz'
      find maps -name '*.npz' | scr_crit merge - -o state.map.npz
    """
    from scr_critplugin import merging

    if group_by is not None:
        _refuse_one_name(output)
    with spinner("merging maps"):
        groups = merging.merge(_files(maps, output), group_by)
    written = [_path_of(output, number, group_by) for number in range(len(groups))]
    for path, group in zip(written, groups, strict=True):
        path.parent.mkdir(parents=True, exist_ok=True)
        group.map.save(path)
    if as_json:
        described = [_described(group, path) for group, path in zip(groups, written, strict=True)]
        click.echo(json.dumps({"groups": described}, indent=2))
    else:
        _draw(groups, written)


# ---- input ----


def _files(arguments: tuple[str, ...], output: Path) -> Iterator[Path]:
    """The files that the arguments name, without an earlier output."""
    own = output.resolve()
    for argument in arguments:
        if argument == "-":
            yield from _files(_lines(sys.stdin.read()), output)
        elif argument.startswith("@"):
            yield from _files(_lines(_text_of(Path(argument[1:]))), output)
        else:
            yield from (path for path in _named_by(argument) if path.resolve() != own)


def _named_by(argument: str) -> list[Path]:
    path = Path(argument)
    if path.is_dir():
        found = [each for each in path.iterdir() if each.suffix in _ENDINGS and each.is_file()]
        if not found:
            raise MapError("found no maps (*.npz, *.map) in this folder", path=path)
        return sorted(found, key=_by_numbers)
    if path.exists() or not glob.has_magic(argument):
        return [path]
    matching = [Path(each) for each in glob.glob(argument, recursive=True)]  # noqa: PTH207
    if not matching:
        raise MapError("no file has a name like this", path=argument)
    return sorted(matching, key=_by_numbers)


def _by_numbers(path: Path) -> list[tuple[int, Any]]:
    """Sort key that puts rank 9 before rank 10."""
    return [(0, int(part)) if part.isdecimal() else (1, part) for part in re.split(r"(\d+)", str(path))]


def _lines(text: str) -> tuple[str, ...]:
    return tuple(line for line in text.splitlines() if line.strip())


def _text_of(path: Path) -> str:
    try:
        return path.read_text()
    except OSError as error:
        raise StorageError(
            f"cannot read the list of maps: {error.strerror}", errno=error.errno, path=path
        ) from error
    except UnicodeDecodeError as error:
        raise MapError(
            "expected a list of maps, one a line; found bytes that are no text", path=path
        ) from error


# ---- output ----


def _refuse_one_name(output: Path) -> None:
    if "{group}" not in str(output):
        raise click.BadParameter(
            f"{output} would be written once for each group. Put {{group}} into the name: map.{{group}}.npz",
            param_hint="--output",
        )


def _path_of(output: Path, number: int, group_by: str | None) -> Path:
    return output if group_by is None else Path(str(output).replace("{group}", str(number)))


def _described(group: Group, path: Path) -> dict[str, Any]:
    kinds = [{"maps": k.maps, "first": str(k.first), "ranks": sorted(k.ranks)} for k in group.kinds]
    return {"output": str(path), "maps": group.maps, "distinct": kinds, **group.map.to_json_dict()}


def _draw(groups: list[Group], written: list[Path]) -> None:
    console = Console()
    table = Table("written", "maps", "equal ones", "ranks", "first of them")
    for column in table.columns:
        column.overflow = "fold"
    rows = [(path, group, kind) for path, group in zip(written, groups, strict=True) for kind in group.kinds]
    for path, group, kind in rows[:_ROWS]:
        is_first = kind is group.kinds[0]
        table.add_row(
            str(path) if is_first else "",
            str(group.maps) if is_first else "",
            str(kind.maps),
            kind.ranks_in_words() or "-",
            str(kind.first),
        )
    console.print(table)
    if len(rows) > _ROWS:
        console.print(f"and {len(rows) - _ROWS} more kinds of map", highlight=False)
    for path, group in list(zip(written, groups, strict=True))[:_ROWS]:
        counts = [f"{row.name} {row.uncritical} of {row.elements} uncritical" for row in group.map.summary()]
        line = f"{path}: {group.maps} maps, {len(group.kinds)} distinct; {', '.join(counts)}"
        console.print(line, highlight=False, markup=False, soft_wrap=True)
