"""``scr_crit check``: are packed files intact?"""

from __future__ import annotations

import json
from pathlib import Path

import click

from scr_critplugin.cli.progress import reading_progress
from scr_critplugin.errors import CritError


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for all files.")
def check(files: tuple[Path, ...], as_json: bool) -> None:
    """Verify every byte of packed FILES: header, tables, payload and trailer.

    A file that is not a packed file is reported as such and counts as a failure, since its content cannot be
    vouched for. The exit status is 0 only if all files are intact.
    """
    from scr_critplugin import packed

    verdicts: dict[str, str] = {}
    with reading_progress("checking", sum(file.stat().st_size for file in files if file.is_file())):
        for file in files:
            try:
                packed.check(file)
                verdicts[str(file)] = "intact"
            except (CritError, OSError) as error:
                verdicts[str(file)] = str(error)
    bad = sum(verdict != "intact" for verdict in verdicts.values())
    if as_json:
        click.echo(json.dumps({"files": verdicts, "intact": len(files) - bad, "bad": bad}, indent=2))
    else:
        for name, verdict in verdicts.items():
            click.echo(f"{name}: {verdict}" if verdict == "intact" else verdict, err=verdict != "intact")
    if bad:
        raise click.exceptions.Exit(1)
