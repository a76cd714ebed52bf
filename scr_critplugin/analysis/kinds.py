"""The kinds of steps: one recording for each structure among the paths that steps take.

Where counters decide what a step does now and then, each path is recorded at its first step. What was found
before must bear it out: steps of one path must have one structure, or the structure hangs on something else.

May import `paths`, `period`, `program`, `structure` and `counters`. Tests: ``tests/test_kinds.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from scr_critplugin.analysis.counters import Turn
from scr_critplugin.analysis.paths import Path, Paths
from scr_critplugin.analysis.period import Forgettable
from scr_critplugin.analysis.program import Program, State
from scr_critplugin.analysis.structure import Structure, digest_only

MOST_KINDS = 8
"""Structures whose recordings are kept at a time."""


class Structured(Forgettable, Protocol):
    """A recording that has a structure."""

    def structure(self) -> Structure:
        """What it has in common with other steps, or not."""


Recording = TypeVar("Recording", bound=Structured)
Record = Callable[[int, State, State], Recording]
"""Records step `number` (from 1), given the state before it and after it."""


@dataclass(frozen=True)
class Kinds(Generic[Recording]):
    """One recording for each of the `structures`, in the order of their first steps.

    `steps`: the first step of each path, counted from 0. `turn`: the first step that is of no recorded path,
    if any. `doubts`: steps that do not have the structure of the others of their path, or could not be
    compared, in words.
    """

    recordings: tuple[Recording, ...]
    structures: tuple[Structure, ...]
    steps: frozenset[int]
    turn: Turn | None
    doubts: tuple[str, ...]


def record_kinds(
    program: Program,
    states: tuple[State, State],
    paths: Paths,
    digests: Sequence[bytes],
    record: Record[Recording],
) -> Kinds[Recording] | None:
    """Record the first step of each path.

    Returns None if the structure hangs on more than the paths, or there are too many structures.

    Parameters
    ----------
    states : tuple
        The first state and the second.
    digests : sequence of bytes
        Of the structures of the first steps.
    """
    if not _explain(paths, digests):
        return None
    kept: dict[bytes, tuple[Recording, Structure]] = {}
    held, doubts = [], []
    for path, before, after in _first_steps(program, states, paths.taken):
        is_known = path.step < len(digests) and digests[path.step] in kept
        if is_known and (path.again is None or path.again < len(digests)):
            continue
        recording = record(path.step + 1, before, after)
        structure = digest_only(recording.structure())
        # What it knows by identity must not be taken for something else.
        held.append(structure)
        if structure.digest in kept:
            recording.forget()
        else:
            kept[structure.digest] = recording, structure
        if len(kept) > MOST_KINDS:
            for each, _ in kept.values():
                each.forget()
            return None
        if path.again is not None and path.again >= len(digests):
            doubts += _doubts(program, path, paths, before, structure, record)
    recordings, structures = zip(*kept.values(), strict=True)
    steps = frozenset(path.step for path in paths.taken)
    return Kinds(recordings, structures, steps, paths.turn, tuple(doubts))


def _explain(paths: Paths, digests: Sequence[bytes]) -> bool:
    """Whether of the first steps, those of the same path have the same structure."""
    return all(
        path >= 0 and digest == digests[paths.taken[path].step]
        for path, digest in zip(paths.near, digests, strict=False)
    )


def _first_steps(
    program: Program, states: tuple[State, State], taken: Sequence[Path]
) -> Iterator[tuple[Path, State, State]]:
    """The first step of each path, with the state before it and after it, by plain steps."""
    (before, after), number = states, 0
    for path in taken:
        while number < path.step:
            before, after, number = after, program.advance(after), number + 1
        yield path, before, after


def _doubts(
    program: Program, path: Path, paths: Paths, before: State, structure: Structure, record: Record[Recording]
) -> list[str]:
    """What speaks against one structure for the path: its next step is too far to be run to.

    Its counters are put into the first step's state.
    """
    distance = (path.again or 0) - path.step
    moved = {
        name: type(before[name])(before[name] + change * distance) for name, change in paths.change.items()
    }
    state = {**before, **moved}
    words = f"step {path.step + 1} after the checkpoint and step {(path.again or 0) + 1}"
    try:
        # By the number of the step that stands for it: only what is recorded in earnest counts as seen.
        again = record(path.step + 1, state, program.advance(state))
    except Exception as error:
        return [f"whether {words} have the same structure was not checked: {type(error).__name__}: {error}"]
    is_same = again.structure().digest == structure.digest
    again.forget()
    if is_same:
        return []
    return [
        f"{words} are decided alike, but differ in structure. The map may call uncritical what later ones "
        "need: give the number of steps from the checkpoint to the output (steps=...)"
    ]
