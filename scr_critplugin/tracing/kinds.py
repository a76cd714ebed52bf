"""Kinds of checkpoint file in the traces of runs: which files are alike, and what is known of their bytes.

Puts together what ``file_patterns``, ``sections`` and ``uniting`` find. Imports those, ``run_folder`` (what a
run is) and ``trace_file``. Tests: ``tests/test_tracing_planning.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from .file_patterns import Pattern, Seen, generalise, relative_path
from .run_folder import Run
from .sections import FileSections, Names, sections_of
from .trace_file import RankTrace, TracedFile
from .uniting import ByteStates, MemberStates, Sighting, unite

NamesOf = Callable[[RankTrace], Names]


@dataclass(frozen=True)
class Kind:
    """Files of one pattern and one layout.

    Parameters
    ----------
    pattern : Pattern
        Of one of them.
    files, others : int
        Files at each checkpoint that are so, and that match the pattern but are of another size.
    sections : FileSections, states : ByteStates
    whole : str
        Why the files must stay as they are, or "".
    seen : tuple of (path, rank, dataset)
        Every file that was seen under the pattern.
    """

    pattern: Pattern
    files: int
    others: int
    sections: FileSections
    states: ByteStates
    whole: str = ""
    seen: tuple[tuple[str, int, str], ...] = ()


@dataclass
class Found:
    """All kinds, and what the user should know."""

    kinds: list[Kind] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class _Part:
    """One rank's part in a file at one checkpoint or restart."""

    trace: RankTrace
    file: TracedFile
    ended: bool


@dataclass(frozen=True, eq=False)
class _Instance:
    """A file at one checkpoint that was written, or at one restart."""

    run: int
    is_restart: bool
    parts: tuple[_Part, ...]

    @property
    def size(self) -> int:
        # A rank looks when it is done, and others may still be writing.
        return max(part.file.size for part in self.parts)

    def sightings(self) -> list[Sighting]:
        return [Sighting(part.trace, part.file, part.ended) for part in self.parts]


def find_kinds(runs: Sequence[Run], names_of: NamesOf) -> Found:
    """All kinds of file in the runs, the newest run last.

    Where a file's layout differs between two runs, the newer one counts. Where it differs between
    checkpoints of one run, the file is kept whole: a plan could not tell which layout it meets.
    """
    found = Found()
    for pattern, members in _by_pattern(runs, found.warnings).items():
        judged = [_Member(name, instances, names_of) for name, instances in members.items()]
        for member in judged:
            found.warnings.extend(f"{pattern.pattern}: {text}" for text in member.warnings)
        found.kinds.append(replace(_kind(pattern, judged), seen=_files(members.values())))
    return found


def _files(
    members: Iterable[Mapping[tuple[int, bool, str, int], list[_Part]]],
) -> tuple[tuple[str, int, str], ...]:
    """Path, rank and dataset of every file."""
    found: dict[tuple[str, int, str], None] = {}
    for instances in members:
        for (_, _, path, _), parts in instances.items():
            for part in parts:
                generation = part.trace.generations[part.file.generation]
                dataset = generation.dataset if generation.kind != "dump" else ""
                found[path, part.trace.rank, dataset] = None
    return tuple(found)


def _by_pattern(
    runs: Sequence[Run], warnings: list[str]
) -> dict[Pattern, dict[str, dict[tuple[int, bool, str, int], list[_Part]]]]:
    """For every pattern and member of it its instances, each with the ranks' parts."""
    sightings: list[tuple[Seen, bool, int, _Part]] = []
    elsewhere: dict[str, None] = {}
    for number, run in enumerate(runs):
        for record, trace in run.ranks:
            times: dict[tuple[bool, str], int] = {}
            for file in trace.files.values():
                path = relative_path(file.name, file.path, record.working_directory, record.prefix)
                if path is None:
                    elsewhere[file.path or file.name] = None
                    continue
                generation = trace.generations[file.generation]
                is_restart = generation.kind == "restart"
                time = times[is_restart, path] = times.get((is_restart, path), -1) + 1
                rank = trace.rank if trace.rank >= 0 else record.rank
                # A dump is not SCR's: its files are named by the program, and it by one of them.
                dataset = generation.dataset if generation.kind != "dump" else ""
                seen = Seen(path, dataset, rank, number, generation.number, not is_restart)
                sightings.append((seen, is_restart, time, _Part(trace, file, run.ended)))
    if elsewhere:
        names = ", ".join(list(elsewhere)[:3])
        warnings.append(f"{len(elsewhere)} files lie outside the prefix and are left out: {names}")
    patterns = generalise(seen for seen, _, _, _ in sightings)
    found: dict[Pattern, dict[str, dict[tuple[int, bool, str, int], list[_Part]]]] = {}
    first_of: dict[str, Pattern] = {}
    for seen, is_restart, time, part in sightings:
        pattern = first_of.setdefault(patterns[seen].pattern, patterns[seen])
        members = found.setdefault(pattern, {})
        instances = members.setdefault(patterns[seen].member, {})
        instances.setdefault((seen.run, is_restart, seen.path, time), []).append(part)
    return found


class _Member:
    """One file, apart from its checkpoint: its layout, and what is known of its bytes."""

    def __init__(
        self, name: str, instances: Mapping[tuple[int, bool, str, int], list[_Part]], names_of: NamesOf
    ) -> None:
        self.name = name
        self.warnings: list[str] = []
        self._names_of = names_of
        made = [
            _Instance(run, is_restart, tuple(parts)) for (run, is_restart, _, _), parts in instances.items()
        ]
        written = [each for each in made if not each.is_restart]
        newest = max(each.run for each in written or made)
        layouts = {each: self._layout(each) for each in written or made}
        current = {layouts[each].form(): layouts[each] for each in reversed(layouts) if each.run == newest}
        self.is_steady = len(current) == 1
        self.sections = list(current.values())[-1]
        kept = [
            each
            for each in made
            if (
                layouts[each].form() == self.sections.form()
                if each in layouts
                else each.size == self.sections.size
            )
        ]
        left_out = sorted({each.run for each in made} - {each.run for each in kept})
        if left_out:
            self.warnings.append(
                f"{len(left_out)} of the earlier runs wrote files of another layout; they are left out"
            )
        self._instances = kept

    def states(self) -> ByteStates:
        """What is known of the file's bytes."""
        states = MemberStates(self.sections.size)
        for instance in self._instances:
            (states.add_restart if instance.is_restart else states.add_checkpoint)(instance.sightings())
        return states.verdict()

    def _layout(self, instance: _Instance) -> FileSections:
        return sections_of(
            instance.size, ((part.trace, part.file, self._names_of(part.trace)) for part in instance.parts)
        )


def _kind(pattern: Pattern, members: Sequence[_Member]) -> Kind:
    groups: dict[object, list[_Member]] = {}
    for member in members:
        groups.setdefault(member.sections.form(), []).append(member)
    united = [(group, unite(member.states() for member in group)) for group in groups.values()]
    best, states = max(united, key=lambda one: (int(one[1].droppable.sum()) * len(one[0]), len(one[0])))
    others = [member for member in members if member not in best]
    whole = _why_whole(best, others, states)
    return Kind(pattern, len(best), len(others), best[0].sections, states, whole)


def _why_whole(best: Sequence[_Member], others: Sequence[_Member], states: ByteStates) -> str:
    if not all(member.is_steady for member in (*best, *others)):
        return "their layout differs from checkpoint to checkpoint"
    if any(other.sections.size == best[0].sections.size for other in others):
        return "files of equal size have different layouts on different ranks"
    pieces = [piece for section in best[0].sections.sections for piece in section.pieces]
    sourced = [states.states[piece.offset : piece.stop] for piece in pieces]
    if sourced and not states.restarted and all(piece.all() for piece in sourced):
        return (
            "every byte that came from memory seems dead, as that of a buffer does into which the state was "
            "packed before the checkpoint began; trace a restart too (--restart), which tells them apart"
        )
    return ""
