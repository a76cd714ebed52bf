"""From runs of a program to a plan: layouts, criticality maps, rules with evidence, and the facts of a plan.

Imports ``layout``, ``plan``, ``criticality``, ``regions`` and, beside it, ``kinds``, ``arrays``,
``memory_names``, ``run_folder``. Tests: ``tests/test_tracing_planning.py``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..criticality import CriticalityMap, ElementState, Variable
from ..errors import NoMatchError, TraceError
from ..layout import REST, Array, Bytes, FileLayout, Layout, Section
from ..plan import Evidence, Plan, compile_plan
from .arrays import ArrayStates, Part, array_states
from .kinds import Kind, find_kinds
from .memory_names import MemoryNames
from .run_folder import Run
from .trace_file import RankTrace

Shapes = Mapping[str, tuple[int, ...]]

_CONFUSED = "their pattern also matches files of another kind"
_LISTED = 16
"""Values that a fact spells out, of many."""


@dataclass(frozen=True)
class TracedVariable:
    """One array of a kind of file; bytes of all states, and `dropped` ones, in each file.

    `why` says why bytes that seem dead are kept; `parts` are those of :class:`ArrayStates`.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    nbytes: int
    dead: int
    unused: int
    dropped: int
    unexplained: int
    why: str
    evidence: str
    stack: tuple[str, ...]
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class TracedKind:
    """A kind of file as the report shows it.

    `unmapped` bytes of each file came from no array, and are kept. `others` files match the pattern, but have
    another size: they go through whole. `map` holds the states as they were seen.
    """

    pattern: str
    names_rank: bool
    files: int
    others: int
    nbytes: int
    unmapped: int
    checkpoints: int
    restarted: bool
    whole: str
    variables: tuple[TracedVariable, ...]
    map: CriticalityMap


@dataclass(frozen=True)
class Outcome:
    """What the traces of some runs give: a plan, and what to tell the user."""

    plan: Plan
    kinds: tuple[TracedKind, ...]
    warnings: tuple[str, ...]
    undecided: int
    """Bytes of a checkpoint that were neither read nor written until the trace ended, on all ranks."""
    steps: tuple[tuple[int, int], ...]
    """Of the newest run: steps, and the bytes of all ranks and checkpoints that were undecided after each."""


def make_plan(runs: Sequence[Run], shapes: Shapes | None = None) -> Outcome:
    """Make a plan of the traces of a program's runs.

    Parameters
    ----------
    runs : sequence of Run
        At least one, the newest last, of one program.
    shapes : mapping of variable to shape, optional
        Where the program does not say.

    Raises
    ------
    TraceError
        No checkpoint was seen; or a shape fits no variable.
    """
    given = dict(shapes or {})
    memory: dict[int, MemoryNames] = {}

    def names_of(trace: RankTrace) -> MemoryNames:
        if id(trace) not in memory:
            memory[id(trace)] = MemoryNames(trace, given)
        return memory[id(trace)]

    found = find_kinds(runs, names_of)
    if not found.kinds:
        raise TraceError(_why_nothing(runs, found.warnings))
    kinds = [(kind, _arrays(kind, given)) for kind in found.kinds]
    _require_names(given, [array.section.name for _, arrays in kinds for array in arrays])
    plan, kinds = _compile_all(kinds, runs)
    told = tuple(_told(kind, arrays, runs) for kind, arrays in kinds)
    warnings = [*found.warnings, *_kind_warnings(told, runs[-1]), *_rank_warnings(runs)]
    return Outcome(plan, told, tuple(dict.fromkeys(warnings)), _undecided(kinds), _steps(runs[-1]))


def _why_nothing(runs: Sequence[Run], warnings: Sequence[str]) -> str:
    if warnings:
        return f"found no checkpoint file to plan for: {'; '.join(warnings)}"
    generations = sum(len(trace.generations) for run in runs for _, trace in run.ranks)
    if generations:
        return "checkpoints were begun, but no file was written or read; does the program route its files?"
    return (
        "the program wrote no checkpoint while it was traced: no call of SCR_Start_output or "
        "SCR_Start_checkpoint was seen. Let it run until its first checkpoint; for files that it writes "
        "outside of SCR name them: --dump 'GLOB'"
    )


def _compile_all(
    kinds: list[tuple[Kind, list[ArrayStates]]], runs: Sequence[Run]
) -> tuple[Plan, list[tuple[Kind, list[ArrayStates]]]]:
    """The plan, and the kinds in its order; those whose files it cannot tell from others' are kept whole.

    A file's entry is the first that matches: where that is another kind's, the pattern that says most goes
    first.
    """
    plan = _compile(kinds, _facts(runs, kinds))
    if not _confused(plan, kinds):
        return plan, kinds
    kinds = sorted(kinds, key=lambda one: -len(re.sub(r"\*|{[^}]*}", "", one[0].pattern.pattern)))
    confused = _confused(_compile(kinds, _facts(runs, kinds)), kinds)
    kinds = [
        (replace(kind, whole=_CONFUSED) if kind.pattern.pattern in confused else kind, arrays)
        for kind, arrays in kinds
    ]
    return _compile(kinds, _facts(runs, kinds)), kinds


def _confused(plan: Plan, kinds: Sequence[tuple[Kind, list[ArrayStates]]]) -> set[str]:
    """Patterns that another kind's files match first, and those of these kinds."""
    found: set[str] = set()
    for kind, _ in kinds:
        for path, rank, dataset in kind.seen:
            try:
                first = plan.match(path, rank, dataset or None).entry.pattern
            except NoMatchError:  # read by another rank than the name's
                continue
            if first != kind.pattern.pattern:
                found |= {kind.pattern.pattern, first}
    return found


def _arrays(kind: Kind, shapes: Shapes) -> list[ArrayStates]:
    return [array_states(each, kind.states, shapes.get(each.name)) for each in kind.sections.sections]


def _require_names(shapes: Shapes, names: Sequence[str]) -> None:
    for name in shapes:
        if name not in names:
            known = ", ".join(dict.fromkeys(names)) or "none"
            raise TraceError(f"--shape names it, but the checkpoint's variables are: {known}", key=name)


# Layout and plan ------------------------------------------------------------------------------------------


def _compile(kinds: Sequence[tuple[Kind, list[ArrayStates]]], facts: Mapping[str, str]) -> Plan:
    files: list[FileLayout] = []
    variables: list[Variable] = []
    evidence: dict[str, Evidence] = {}
    taken: set[str] = set()
    for kind, arrays in kinds:
        sections: list[Section] = []
        for array in arrays:
            if kind.whole or not array.drop.any():
                continue
            name = _free_name(array.section.name, taken)
            for section, variable in _placed(array, name):
                sections.append(section)
                variables.append(variable)
                evidence[variable.name] = _evidence(kind)
        files.append(_file_layout(kind, sections))
    return compile_plan(
        CriticalityMap(variables, {"engine": "trace"}), Layout(tuple(files)), evidence=evidence, facts=facts
    )


def _free_name(name: str, taken: set[str]) -> str:
    """The name, or with a number behind it if another kind of file has an array of that name."""
    free, number = name, 1
    while free in taken:
        number += 1
        free = f"{name} ({number})"
    taken.add(free)
    return free


def _placed(array: ArrayStates, name: str) -> Iterator[tuple[Section, Variable]]:
    """The array's places in the file, each with the states that the plan is made of."""
    dtype = array.section.dtype
    states = np.where(array.drop, ElementState.DEAD, ElementState.CRITICAL)
    pieces = array.section.pieces
    for part in array.parts:
        own = states[part.start : part.stop].reshape(part.shape)
        label = f"{name}[{part.start}:{part.stop}]"
        offset = pieces[0].offset + part.start * dtype.itemsize
        yield Array(label, dtype, part.shape, offset=offset), Variable(label, own, dtype)
    if array.parts:
        return
    if len(pieces) == 1:
        place = Array(name, dtype, array.shape, array.order, offset=pieces[0].offset)
        yield place, Variable(name, states, dtype, array.order)
        return
    flat = states.ravel(order=array.order)
    start = 0
    for number, piece in enumerate(pieces, start=1):
        count = piece.nbytes // dtype.itemsize
        label = f"{name}, part {number} of {len(pieces)}"
        yield (
            Array(label, dtype, (count,), offset=piece.offset),
            Variable(label, flat[start : start + count], dtype),
        )
        start += count


def _file_layout(kind: Kind, sections: Sequence[Section]) -> FileLayout:
    """Layout of files of exactly the traced size; what has no section is kept."""
    size = kind.sections.size
    pattern = kind.pattern.pattern
    if not sections:
        return FileLayout(pattern, (Bytes("(whole)", REST),))
    placed: list[Section] = sorted(sections, key=lambda section: section.offset or 0)
    end = FileLayout(pattern, tuple(placed)).fixed_size()
    if end is not None and end < size:
        placed.append(Bytes("(tail)", size - end))
    return FileLayout(pattern, tuple(placed), min_size=size, max_size=size)


def _evidence(kind: Kind) -> Evidence:
    checkpoints = kind.states.checkpoints
    if checkpoints < 2:
        return Evidence("single")
    return Evidence("observed", checkpoints, 1)


# Facts ----------------------------------------------------------------------------------------------------


def _facts(runs: Sequence[Run], kinds: Sequence[tuple[Kind, list[ArrayStates]]]) -> dict[str, str]:
    newest = runs[-1]
    record, trace = newest.ranks[0]
    facts = {
        "engine": "trace",
        "program": record.program,
        "program.build_id": record.build_id,
        "program.arguments": _words(record.arguments),
        "ranks": str(len(newest.ranks)),
        "date": record.started,
        "tracer": trace.tool,
        "valgrind": trace.valgrind,
        "traced.runs": str(len(runs)),
        "traced.checkpoints": str(sum(_generations(run, "output", "dump") for run in runs)),
        "traced.restarts": str(sum(_generations(run, "restart") for run in runs)),
        "traced.steps": str(max(each.window.steps for _, each in newest.ranks)),
        "traced.window": "end" if newest.ended else trace.window.end,
        "unexplained_bytes": str(sum(each.unexplained * kind.files for kind, all_ in kinds for each in all_)),
    }
    others = dict.fromkeys(_words(run.record.arguments) for run in runs)
    if len(others) > 1:
        facts["traced.arguments"] = " | ".join(list(others)[:_LISTED])
    facts.update({f"environment.{key}": value for key, value in sorted(record.environment.items())})
    facts.update({f"fingerprint.{key}": value for key, value in sorted(record.fingerprints.items())})
    return facts


def _words(arguments: Iterable[str]) -> str:
    return " ".join(repr(word) if re.search(r"[\s'\"\\]", word) or not word else word for word in arguments)


def _generations(run: Run, *kinds: str) -> int:
    """Checkpoints of a run; every rank has seen each of them."""
    return max(sum(each.kind in kinds for each in trace.generations.values()) for _, trace in run.ranks)


# What is told ---------------------------------------------------------------------------------------------


def _told(kind: Kind, arrays: Sequence[ArrayStates], runs: Sequence[Run]) -> TracedKind:
    return TracedKind(
        kind.pattern.pattern,
        kind.pattern.names_rank,
        kind.files,
        kind.others,
        kind.sections.size,
        kind.sections.size - kind.sections.sourced,
        kind.states.checkpoints,
        kind.states.restarted,
        kind.whole,
        tuple(_variable(kind, array) for array in arrays),
        _map(kind, arrays, runs),
    )


def _variable(kind: Kind, array: ArrayStates) -> TracedVariable:
    itemsize = array.section.dtype.itemsize
    dropped = 0 if kind.whole else int(array.drop.sum()) * itemsize
    evidence = _evidence(kind)
    level = (
        f"observed, {evidence.checkpoints} checkpoints" if evidence.level == "observed" else evidence.level
    )
    return TracedVariable(
        array.section.name,
        array.shape,
        str(array.section.dtype),
        array.section.nbytes,
        int((array.states == ElementState.DEAD).sum()) * itemsize,
        int((array.states == ElementState.UNUSED).sum()) * itemsize,
        dropped,
        array.unexplained,
        array.why,
        level if dropped else "",
        array.section.stack,
        array.parts,
    )


def _map(kind: Kind, arrays: Sequence[ArrayStates], runs: Sequence[Run]) -> CriticalityMap:
    record = runs[-1].record
    provenance: dict[str, Any] = {
        "engine": "trace",
        "file": kind.pattern.pattern,
        "program": record.program,
        "build_id": record.build_id,
        "arguments": list(record.arguments),
        "date": record.started,
        "runs": len(runs),
        "ranks": len(runs[-1].ranks),
        "files": kind.files,
        "checkpoints": kind.states.checkpoints,
        "restart_traced": kind.states.restarted,
        "allocated": {
            array.section.name: list(array.section.stack) for array in arrays if array.section.stack
        },
    }
    variables = [
        Variable(array.section.name, array.states, array.section.dtype, array.order) for array in arrays
    ]
    return CriticalityMap(variables, provenance)


def _kind_warnings(kinds: Sequence[TracedKind], newest: Run) -> Iterator[str]:
    several = len(newest.ranks) > 1
    for kind in kinds:
        dropped = sum(variable.dropped for variable in kind.variables)
        if kind.whole:
            yield f"{kind.pattern}: kept whole, for {kind.whole}"
        elif dropped and several and not kind.names_rank:
            yield (
                f"{kind.pattern}: its name does not hold the rank, so that several ranks may share it; such "
                "files are stored whole by jobs of more than one rank"
            )
        if dropped and kind.others:
            yield (
                f"{kind.pattern}: {kind.others} of {kind.files + kind.others} files have another size and go "
                "through whole"
            )
        if dropped and not kind.checkpoints:
            yield f"{kind.pattern}: only a restart was traced; trace a checkpoint, too"
    if not newest.ended:
        yield (
            "the trace does not reach the program's successful end: unused bytes are kept, for they may be "
            "needed later"
        )


def _rank_warnings(runs: Sequence[Run]) -> Iterator[str]:
    """What the tracer warned of, with the ranks it happened on."""
    ranks: dict[str, set[int]] = {}
    for run in runs:
        for record, trace in run.ranks:
            for text in trace.warnings:
                ranks.setdefault(text, set()).add(record.rank)
    several = len(runs[-1].ranks) > 1
    for text, numbers in ranks.items():
        yield f"{text} ({_ranks(numbers)})" if several else text


def _ranks(numbers: set[int]) -> str:
    shown = ", ".join(map(str, sorted(numbers)[:_LISTED])) + (", ..." if len(numbers) > _LISTED else "")
    return f"rank {shown}" if len(numbers) == 1 else f"ranks {shown}"


def _undecided(kinds: Sequence[tuple[Kind, list[ArrayStates]]]) -> int:
    return sum(kind.files * int((kind.states.states == ElementState.UNUSED).sum()) for kind, _ in kinds)


def _steps(run: Run) -> tuple[tuple[int, int], ...]:
    undecided: dict[int, int] = {}
    for _, trace in run.ranks:
        for step in trace.steps:
            undecided[step.number] = undecided.get(step.number, 0) + step.undecided
    return tuple(sorted(undecided.items()))
