"""``scr_crit show``: what a map, a plan or a packed file says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.table import Table

from scr_critplugin.errors import CritError

if TYPE_CHECKING:
    from scr_critplugin.criticality import CriticalityMap

_ZIP_MARK = b"PK\x03\x04"
_PLAN_MARK = b"\x89SCRL\r\n\x1a"


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
def show(file: Path, as_json: bool) -> None:
    """Show a criticality map, a plan or a packed FILE; the kind is found from its first bytes.

    \b
    With --json:
      map     {"variables": [{"name", "shape", "dtype", "elements", "critical", "inert", "dead", "unused"}]}
      plan    {"format", "digest", "facts", "entries": [{"pattern", "sections": [...]}]}
      packed  {"file_bytes", "kept_bytes", "packed_bytes", "dropped_runs", "encodings", "codec", ...}
    """
    kind = _kind(file)
    described, draw = {
        "map": (_map_json, _draw_map),
        "plan": (_plan_json, _draw_plan),
        "packed": (_packed_json, _draw_packed),
    }[kind]
    if as_json:
        click.echo(json.dumps(described(file), indent=2))
    else:
        draw(file, Console())


def _kind(file: Path) -> str:
    from scr_critplugin import packed

    with file.open("rb") as stream:
        mark = stream.read(8)
    if mark.startswith(_ZIP_MARK):
        return "map"
    if mark == _PLAN_MARK:
        return "plan"
    if packed.is_packed(file):
        return "packed"
    raise CritError(f"is no map, plan or packed file: it begins with {mark!r}", path=file)


def _map_json(file: Path) -> dict[str, Any]:
    from scr_critplugin.criticality import CriticalityMap

    return CriticalityMap.load(file).to_json_dict()


def _draw_map(file: Path, console: Console) -> None:
    from scr_critplugin.criticality import CriticalityMap

    loaded = CriticalityMap.load(file)
    draw_elements(loaded, f"criticality map {file}", console)
    for key, value in loaded.provenance.items():
        console.print(f"{key}: {value}", highlight=False, markup=False)


def draw_elements(loaded: CriticalityMap, title: str, console: Console) -> None:
    """Print the table of a map's element states, and where its uncritical elements lie."""
    from scr_critplugin.regions import describe

    table = Table("variable", "shape", "dtype", title=title)
    for heading in ("elements", "critical", "inert", "dead", "unused"):
        table.add_column(heading, justify="right")
    for row in loaded.summary():
        shape = " x ".join(map(str, row.shape)) or "scalar"
        table.add_row(
            row.name,
            shape,
            row.dtype,
            *(f"{n}" for n in (row.elements, row.critical, row.inert, row.dead, row.unused)),
        )
    console.print(table)
    for variable in loaded.values():
        count = int(variable.uncritical.sum())
        if count:
            console.print(f"{variable.name}: {count} of {variable.size} uncritical", highlight=False)
            for line in describe(variable.name, variable.uncritical):
                console.print(f"  {line}", highlight=False, markup=False)


def _plan_json(file: Path) -> dict[str, Any]:
    from scr_critplugin.plan import Plan

    return Plan.load(file).to_json_dict()


def _draw_plan(file: Path, console: Console) -> None:
    plan = _plan_json(file)
    console.print(f"plan {file}: format {plan['format']}, digest {plan['digest']}", highlight=False)
    for entry in plan["entries"]:
        table = Table(
            "section", "kind", "critical rule", "evidence", title=entry["pattern"], title_justify="left"
        )
        for section in entry["sections"]:
            table.add_row(section["name"], section["kind"], section["rule"], section["evidence"])
        console.print(table)
    for key, value in plan["facts"].items():
        console.print(f"{key}: {value}", highlight=False, markup=False)


def _packed_json(file: Path) -> dict[str, Any]:
    from scr_critplugin import packed

    return packed.inspect(file).to_json_dict()


def _draw_packed(file: Path, console: Console) -> None:
    table = Table("property", "value", title=f"packed file {file}")
    for key, value in _packed_json(file).items():
        table.add_row(key, ", ".join(value) if isinstance(value, list) else str(value))
    console.print(table)
