"""``scr_crit profile``: from a Python program to its criticality map."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, TracebackType
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from scr_critplugin.cli.progress import profile_progress
from scr_critplugin.cli.show import draw_elements
from scr_critplugin.errors import ProfileError, ProfileWarning
from scr_critplugin.mpi import path_of_rank, world_if_parallel

if TYPE_CHECKING:
    from scr_critplugin.analysis import Profile

_CALLERS = (__file__, importlib.__file__, "<frozen importlib")


@click.command()
@click.argument("program", metavar="MODULE:SETUP")
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="MAP",
    help="Criticality map to write. On several ranks with {rank} in its name.",
)
@click.option(
    "--at",
    type=click.IntRange(min=0),
    multiple=True,
    metavar="N",
    help="Take the checkpoint after N steps from setup's state; several times: the map is for any of them. "
    "Default: 0.",
)
@click.option(
    "--steps",
    type=click.IntRange(min=1),
    metavar="N",
    help="Steps from the checkpoint to the end of the run. Default: a run of any length, whose steps must "
    "repeat their structure.",
)
@click.option(
    "--control",
    type=click.Choice(["sink", "report"]),
    default="sink",
    show_default=True,
    help="Values that only steer branches, loops and indices: critical (sink), or only listed (report).",
)
@click.option(
    "--engine",
    type=click.Choice(["dependence", "gradient", "perturbation"]),
    default="dependence",
    show_default=True,
    help="Beside dependence, which finds the map: also gradient magnitudes, which are stored in the map, or "
    "single elements changed one at a time as a cross-check.",
)
@click.option(
    "--mask",
    type=click.Choice(["structure", "gradient"]),
    default="structure",
    show_default=True,
    help="gradient: also drop elements whose gradient is exactly zero, with --engine gradient. Such a map is "
    "good for the states it was made at only, if at all.",
)
@click.option(
    "--tiles",
    type=click.IntRange(min=1),
    metavar="K",
    help="For large arrays: sweep K random tiles of each array and those at its faces, and infer boxes.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Of everything random.")
@click.option(
    "--no-poison",
    is_flag=True,
    help="Do not check the map by overwriting what it calls uncritical and running on.",
)
def profile(program: str, output: Path, at: tuple[int, ...], no_poison: bool, **options: Any) -> None:
    """Find which elements of a program's state a restart needs, and write the map.

    MODULE is a Python module (imported with the working directory on its path) or the path of a .py file
    (imported with its own folder on the path, and not as __main__). SETUP is a function in it that takes
    nothing and returns (step, state, output). state is a dict of arrays and scalars, or a list of such dicts:
    other inputs, other random seeds. step(state) returns the next state or changes the dict and its arrays in
    place; output(state) returns what the run is for.

    Printed are the element states; the sinks (places where values left the data flow to steer a branch, a
    loop or an index; what feeds them is critical); branches that went differently in the recorded steps; what
    could not be followed; and the verdict of poison: all uncritical elements overwritten, the run continued,
    the outputs compared bit for bit. If poison shows, the elements to blame are found and become critical in
    the map that is written, and the exit status is 1.

    A program that communicates (by scr_critplugin.mpi in place of mpi4py.MPI) is profiled on all its ranks:
    every rank writes a map, and rank 0 prints its own report.

    \b
    Examples:
      scr_crit profile heat.py:setup -o heat.map.npz --at 10 --at 1000
      mpiexec -n 4 scr_crit profile stencil.py:setup -o 'stencil.{rank}.map.npz'
    """
    comm = world_if_parallel()
    path = Path(path_of_rank(output, comm))
    module_name, function_name = _named(program)
    with _own_traceback(program):
        module = _imported(module_name)
        setup = _setup_of(module, function_name, program)
        options.update(at=list(at) or None, validate=None if no_poison else "poison", comm=comm)
        with profile_progress(f"profiling {program}") as options["progress"]:
            found = _profiled(setup, program, options)
    path.parent.mkdir(parents=True, exist_ok=True)
    found.map.save(path)
    if comm is None or comm.rank == 0:
        _report(found, path)
    if _was_wrong(found):
        raise click.exceptions.Exit(1)


def _was_wrong(found: Profile) -> bool:
    """True if a check showed that the map had called elements uncritical that are not."""
    by_poison = found.poison is not None and found.poison.outcome != "identical"
    return by_poison or (found.perturbation is not None and bool(found.perturbation.contradictions))


# ---- the user's code ----


@contextmanager
def _own_traceback(program: str) -> Iterator[None]:
    """Errors of the program are shown as Python shows them; only those about profiling are one line."""
    try:
        yield
    except ProfileError:
        raise
    except SystemExit as leaving:
        raise ProfileError(
            f"the program ended itself (exit status {leaving.code!r}) before it was profiled. Keep what it "
            "does as a script behind `if __name__ == '__main__':`",
            key=program,
        ) from leaving
    except Exception as error:
        traceback.print_exception(type(error), error, _program_frames(error))
        raise click.exceptions.Exit(1) from error


def _program_frames(error: Exception) -> TracebackType | None:
    """The traceback without the frames by which this module called the program."""
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename.startswith(_CALLERS):
        frames = frames.tb_next
    # A file that does not compile has no frames: where the mistake is stands in the error.
    return frames if frames is not None or isinstance(error, SyntaxError) else error.__traceback__


def _named(program: str) -> tuple[str, str]:
    module, _, function = program.rpartition(":")
    is_module = module.endswith(".py") or all(part.isidentifier() for part in module.split("."))
    if not (is_module and function.isidentifier()):
        raise click.BadParameter(
            f"{program!r} is not MODULE:SETUP; expected for example heat.py:setup or package.heat:setup",
            param_hint="MODULE:SETUP",
        )
    return module, function


def _imported(name: str) -> ModuleType:
    path = Path(name)
    if path.suffix == ".py":
        return _imported_from(path)
    # As `python -m` does.
    sys.path.insert(0, str(Path.cwd()))
    if not _exists(name):
        raise ProfileError(
            "there is no such module on the path or under the working directory; expected a module's dotted "
            "name or the path of a .py file",
            key=name,
        )
    return importlib.import_module(name)


def _exists(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError as error:
        # A package of the name is missing; what such a package fails to import is the program's error.
        if error.name is not None and f"{name}.".startswith(f"{error.name}."):
            return False
        raise
    except ValueError:
        # What has no spec was made by hand, or has a name that cannot be one.
        return name in sys.modules


def _imported_from(path: Path) -> ModuleType:
    if not path.is_file():
        raise ProfileError("there is no such file; expected a Python program", path=path)
    # As `python FILE` does: modules beside the file are found.
    sys.path.insert(0, str(path.resolve().parent))
    # A program may have the name of a module that is in use here.
    name = path.stem if path.stem not in sys.modules else f"_profiled_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ProfileError("cannot be imported", path=path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _setup_of(module: ModuleType, name: str, program: str) -> Callable[[], Any]:
    found = getattr(module, name, None)
    if not callable(found):
        what = "does not exist" if not hasattr(module, name) else f"is of type {type(found).__name__}"
        raise ProfileError(
            f"{name} {what}; expected a function that returns (step, state, output)", key=program
        )
    setup: Callable[[], Any] = found
    return setup


def _profiled(setup: Callable[[], Any], program: str, options: dict[str, Any]) -> Profile:
    from scr_critplugin import analysis

    made = setup()
    if not (isinstance(made, tuple) and len(made) == 3 and callable(made[0]) and callable(made[2])):
        raise ProfileError(
            f"the setup returned {_described(made)}; expected (step, state, output): "
            "two functions and a dict between them",
            key=program,
        )
    step, state, output = made
    with warnings.catch_warnings():
        # They are in the report.
        warnings.simplefilter("ignore", ProfileWarning)
        return analysis.profile(step, state, output, **options)


def _described(made: Any) -> str:
    if isinstance(made, tuple):
        return f"({', '.join(type(member).__name__ for member in made)})"
    return f"an object of type {type(made).__name__}"


# ---- the report ----


def _report(found: Profile, output: Path) -> None:
    console = Console()
    draw_elements(found.map, f"criticality map {output}", console)
    parts = (_structure, _sinks, _branches, _warnings, _sample, _gradient, _perturbation, _poison)
    for line in (line for part in parts for line in part(found)):
        console.print(line, highlight=False, markup=False, soft_wrap=True)


def _structure(found: Profile) -> Iterator[str]:
    swept = f"{found.primitives} primitives in the first step, {found.steps_swept} steps swept"
    steps = found.map.provenance["steps"]
    length = "any number of steps" if steps is None else f"{steps} steps"
    yield f"holds for {length} after the checkpoint{_repetition(found)}: {swept}"
    if found.counters:
        yield f"counters, always critical: {', '.join(found.counters)}"


def _repetition(found: Profile) -> str:
    if found.period not in (None, 1):
        return f", whose structure repeats every {found.period} steps"
    if found.kinds not in (None, 1):
        return f", which are of {found.kinds} kinds that counters tell apart"
    return ""


def _sinks(found: Profile) -> Iterator[str]:
    if not found.sinks:
        yield "sinks: none; no value of the state steers a branch, a loop or an index"
        return
    yield "sinks: values that left the data flow here, so that what feeds them is critical; the map holds for"
    yield "runs that take the same branches"
    for sink in found.sinks:
        yield f"  {sink.described()}"


def _branches(found: Profile) -> Iterator[str]:
    if found.branches:
        yield "branches that went differently in the recorded steps; the map knows the sides that were taken"
        for branch in found.branches:
            yield f"  {branch}"


def _warnings(found: Profile) -> Iterator[str]:
    for warning in found.warnings:
        yield f"warning: {warning}"


def _sample(found: Profile) -> Iterator[str]:
    if found.confidence is not None:
        yield from found.confidence.describe().splitlines()


def _gradient(found: Profile) -> Iterator[str]:
    if found.gradient is None:
        return
    zero = {name: count for name, count in found.gradient.zero.items() if count}
    listed = ", ".join(f"{count} of {name}" for name, count in zero.items()) or "none"
    yield (
        f"gradient: {found.gradient.draws} random cotangents, {found.gradient.steps} steps; critical by "
        f"structure, but zero here: {listed}"
    )
    if found.gradient.without_rule:
        yield f"  without a derivative: {', '.join(found.gradient.without_rule)}"


def _perturbation(found: Profile) -> Iterator[str]:
    if found.perturbation is not None:
        yield f"perturbation: {found.perturbation}"


def _poison(found: Profile) -> Iterator[str]:
    yield f"poison: {'not checked (--no-poison)' if found.poison is None else found.poison}"
