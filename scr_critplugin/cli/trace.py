"""``scr_crit trace``: from a run of a compiled program to a plan."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from scr_critplugin.tracing.planning import TracedKind, TracedVariable
    from scr_critplugin.tracing.session import Made

_REGIONS = 8
_WIDTH = 110
_STEPS = 8
_FRAMES = 3


class ShapeType(click.ParamType[tuple[str, tuple[int, ...]]]):
    """NAME=12,13,13,5 as a name and a shape."""

    name = "NAME=N,N,..."

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, tuple[int, ...]]:
        """The name and the shape; a usage error says what was expected."""
        if isinstance(value, tuple):
            return value
        name, equals, lengths = str(value).rpartition("=")
        numbers = [part.strip() for part in lengths.split(",")]
        if not (name and equals and all(part.isascii() and part.isdecimal() for part in numbers)):
            self.fail(f"{value!r}: expected a variable and its lengths, as in u=12,13,13,5", param, ctx)
        shape = tuple(map(int, numbers))
        if min(shape) < 1:
            self.fail(f"{value!r}: expected lengths of at least 1", param, ctx)
        return name, shape


@click.command(context_settings={"allow_interspersed_args": False})
@click.option(
    "--restart",
    is_flag=True,
    help="The run must restart from a checkpoint under the prefix: what it reads of it and uses decides.",
)
@click.option(
    "--shape",
    "shapes",
    type=ShapeType(),
    multiple=True,
    help="Shape of a variable, slowest axis first, where the program does not say; may be repeated.",
)
@click.option(
    "--fingerprint",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    multiple=True,
    metavar="FILE",
    help="Input file whose digest the plan records; may be repeated.",
)
@click.option(
    "--until-flat",
    type=click.IntRange(min=1),
    metavar="N",
    help="Stop tracing when N steps (calls of SCR_Need_checkpoint) decided nothing new; the program runs on. "
    "What is unused then is kept.",
)
@click.option(
    "--dump",
    metavar="GLOB",
    help="Files that the program writes outside of SCR's calls and that count as checkpoints, too: a pattern "
    "of paths, in quotes.",
)
@click.option(
    "--prefix",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="SCR's prefix. Default: SCR_PREFIX, else the working directory, as SCR does.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="PLAN",
    help="Plan to write. Default: .scr_crit/plan under the prefix, where a job with SCR_CRIT_PLUGIN=1 looks.",
)
@click.option(
    "--fresh", is_flag=True, help="Forget the traces of earlier runs instead of uniting them with this."
)
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[PROGRAM [ARGS]...]")
def trace(
    shapes: Sequence[tuple[str, tuple[int, ...]]],
    until_flat: int | None,
    dump: str | None,
    prefix: Path | None,
    output: Path | None,
    command: tuple[str, ...],
    restart: bool,
    fresh: bool,
    fingerprint: tuple[Path, ...],
) -> None:
    """Trace a compiled SCR program and make a plan of what its restart needs.

    PROGRAM is the program as it is, in C, C++ or Fortran: neither source nor recompilation is needed. Put
    scr_crit trace between the MPI launcher and the program; every rank runs under Valgrind, 10 to 30 times
    slower than by itself, so choose a small case. Let it write a checkpoint or two and run on to its end.

    Each byte of a checkpoint file is followed back to the memory it came from, and the first access to that
    memory afterwards decides: read, the byte is critical; overwritten, it is dead. The union over all ranks
    and checkpoints, and over earlier runs of the same program under the prefix (--fresh forgets them),
    becomes .scr_crit/plan under the prefix. Only what a simple rule describes is dropped: boxes of an array.
    Names and shapes come from debug information (compile with -g), else from allocation sites and --shape.

    Without PROGRAM the plan is made anew from the traces at hand, with other shapes for instance.

    If the program fails on any rank, or a rank's trace is not whole, no plan is written. The exit status is
    the program's; else 1 if no plan could be made. Limits and requirements: docs/trace.md.

    \b
    Examples:
      mpiexec -n 4 scr_crit trace ./app input.nml
      mpiexec -n 4 scr_crit trace --restart ./app input.nml
      scr_crit trace --shape 'u=12,13,13,5'
    """
    from scr_critplugin.tracing.launch import Tracing
    from scr_critplugin.tracing.session import FOLDER, Wishes, plan_again, trace_rank

    root = Path(prefix or os.environ.get("SCR_PREFIX") or ".").absolute()
    wishes = Wishes(
        prefix=root,
        plan=output.absolute() if output else root / FOLDER / "plan",
        restart=restart,
        fresh=fresh,
        shapes=dict(shapes),
        fingerprint=fingerprint,
        tracing=Tracing(until_flat or 0, dump or ""),
    )
    if not command:
        _refuse_without_program(until_flat, dump, fresh, fingerprint)
        _report(plan_again(wishes))
        return
    ended = trace_rank(command[0], command[1:], wishes, os.environ, _say)
    if ended.problems:
        _say("no plan was made:")
        for problem in ended.problems:
            _say(f"  {problem}")
    if ended.made is not None:
        _report(ended.made)
    if ended.status:
        raise click.exceptions.Exit(ended.status)


def _refuse_without_program(*of_a_run: Any) -> None:
    if any(of_a_run):
        raise click.UsageError(
            "expected a PROGRAM to trace; without one the plan is made anew from the traces at hand, and "
            "only --shape, --restart, --prefix and --output make sense"
        )


def _say(text: str) -> None:
    click.echo(f"scr_crit trace: {text}", err=True)


# ---- the report ----


def _report(made: Made) -> None:
    console = Console(width=_width())
    for kind in made.outcome.kinds:
        _draw_kind(kind, console)
    for line in _lines(made):
        console.print(line, highlight=False, markup=False, soft_wrap=True)


def _width() -> int | None:
    """None: the terminal's. Launchers hand the output on through pipes and terminals without a width."""
    try:
        return None if os.get_terminal_size(sys.stdout.fileno()).columns else _WIDTH
    except (OSError, ValueError):
        return _WIDTH


def _draw_kind(kind: TracedKind, console: Console) -> None:
    table = Table("variable", "shape", "dtype", title=_title(kind), title_justify="left")
    for heading in ("bytes", "dead", "unused", "dropped"):
        table.add_column(heading, justify="right")
    table.add_column("evidence")
    for column in table.columns:
        column.overflow = "fold"
    for variable in kind.variables:
        table.add_row(
            variable.name,
            " x ".join(map(str, variable.shape)) or "scalar",
            variable.dtype,
            str(variable.nbytes),
            _share(variable.dead, variable.nbytes),
            _share(variable.unused, variable.nbytes),
            _share(variable.dropped, variable.nbytes),
            variable.evidence or "-",
        )
    table.add_row("(no variable)", "", "", str(kind.unmapped), "-", "-", "-", "-")
    console.print(table)
    for variable in kind.variables:
        for line in _regions(kind, variable):
            console.print(line, highlight=False, markup=False, soft_wrap=True)


def _title(kind: TracedKind) -> str:
    seen = _counted(kind.checkpoints, "checkpoint")
    restart = ", and read in a restart" if kind.restarted else ""
    return f"{kind.pattern}: {_counted(kind.files, 'file')} of {kind.nbytes} bytes, seen in {seen}{restart}"


def _regions(kind: TracedKind, variable: TracedVariable) -> list[str]:
    """What is dropped of a variable, or why what seems dead is not."""
    from scr_critplugin.regions import describe

    if variable.unexplained:
        return [f"  {variable.name}: {variable.unexplained} uncritical bytes are kept: {variable.why}"]
    if not variable.dropped:
        return []
    place = f", allocated in {' < '.join(variable.stack[:_FRAMES])}" if variable.stack else ""
    if variable.dropped == variable.nbytes:
        return [f"  {variable.name}: nothing of it is critical{place}"]
    critical = kind.map[variable.name].critical
    lines = []
    for part in variable.parts:
        shape = " x ".join(map(str, part.shape))
        name = f"{variable.name}[{part.start}:{part.stop}] as {shape}: "
        here = describe("", critical[part.start : part.stop].reshape(part.shape), _REGIONS)
        lines += [f"{name}{', '.join(here) or 'nothing'}"]
    if not variable.parts:
        lines = describe(variable.name, critical, _REGIONS)
    return [f"  {variable.name}: critical is{place}", *(f"    {line}" for line in lines)]


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole and part else "-"


def _lines(made: Made) -> list[str]:
    outcome = made.outcome
    files = sum(kind.files + kind.others for kind in outcome.kinds)
    total = sum(kind.files * kind.nbytes for kind in outcome.kinds)
    # Files that ranks may share are stored whole.
    packed = [kind for kind in outcome.kinds if kind.names_rank or made.ranks == 1]
    dropped = sum(kind.files * each.dropped for kind in packed for each in kind.variables)
    unexplained = sum(kind.files * each.unexplained for kind in outcome.kinds for each in kind.variables)
    lines = [
        f"a checkpoint: {_counted(files, 'file')}, {total} bytes, "
        f"of which {dropped} are dropped ({100 * dropped / total if total else 0:.1f} %)",
        f"undecided (never touched until the trace ended): {outcome.undecided} bytes; "
        f"uncritical without a simple rule, and kept: {unexplained} bytes",
        *_steps(outcome.steps),
        f"united: {_counted(made.runs, 'run')} of {_counted(made.ranks, 'rank')}",
        *(f"note: {text}" for text in made.notes),
        *(f"warning: {text}" for text in outcome.warnings),
        *(f"map: {_shown(path)}" for path in made.maps),
        f"plan: {_shown(made.plan)} (see `scr_crit show {_shown(made.plan)}`)",
    ]
    return [*lines, *_next_steps(dropped, outcome.kinds)]


def _shown(path: Path) -> Path:
    """The path as one would type it here."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def _steps(undecided: Sequence[tuple[int, int]]) -> list[str]:
    """Undecided bytes after some of the steps, the first and the last among them."""
    if not undecided:
        return []
    stride = max(1, -(-(len(undecided) - 1) // (_STEPS - 1)))
    shown = [*undecided[:-1:stride], undecided[-1]]
    return ["undecided bytes after step: " + ", ".join(f"{step}: {count}" for step, count in shown)]


def _next_steps(dropped: int, kinds: Sequence[TracedKind]) -> list[str]:
    if not dropped:
        return ["next: nothing would be dropped; a job with this plan stores whole files"]
    lines = [
        "next: run the same program with the same input and SCR_CRIT_PLUGIN=1 (`scr_crit run -- mpiexec "
        "...`). Before you rely on it, restart once with SCR_CRIT_FILL=nan, from a checkpoint that was not "
        "traced, and compare the results",
    ]
    if not all(kind.restarted for kind in kinds):
        lines.append(
            "      a traced restart makes the plan surer: the same command with --restart, from a "
            "checkpoint in the middle of a run"
        )
    return lines
