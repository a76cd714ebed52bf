"""File names of a job's checkpoint files, generalised over dataset and rank to the patterns of a plan.

A number in a name is the rank's where it is so on every rank that was seen with such a name, and a part of
the dataset's name where it moves from checkpoint to checkpoint. All other text stands for itself. The grammar
is docs/format.md, "Patterns". Knows file names only. Imports nothing of the package but the errors.
Tests: ``tests/test_tracing_file_patterns.py``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

_NUMBER = re.compile(r"([0-9]+)")
_SPECIAL = re.compile(r"[*?\[{]")
_DATASET = "\0"  # stands for the dataset's name while numbers are looked at; no path has it
_CHANGING = "*"


@dataclass(frozen=True)
class Seen:
    """A file that a rank wrote or read: its path relative to the prefix.

    `dataset` is "" where the program did not name it, `rank` is -1 where there is none. `run` and
    `checkpoint` number the run of the program and the checkpoint within it. Whose number stands in a name is
    seen from those who write it: anybody may read it.
    """

    path: str
    dataset: str
    rank: int
    run: int = 0
    checkpoint: int = 0
    writes: bool = True


@dataclass(frozen=True)
class Pattern:
    """The pattern of a file, and its `member`: what tells it from the others that match, dataset apart."""

    pattern: str
    member: str

    @property
    def names_rank(self) -> bool:
        """Whether no two ranks can have the same file."""
        return "{rank}" in self.pattern or "{rank+1}" in self.pattern


def relative_path(name: str, path: str, working_directory: str, prefix: str) -> str | None:
    """A routed file's path relative to the prefix, None if it lies elsewhere.

    Parameters
    ----------
    name : as the program gave it, relative to `working_directory` or absolute
    path : what SCR answered: the same place, or one in its cache
    """
    roots = {os.path.abspath(prefix): None, os.path.realpath(prefix): None}  # noqa: PTH100
    for given in (name, path):
        if not given:
            continue
        # Without following a link at the end: the file itself may be one.
        place = Path(os.path.abspath(Path(working_directory, given)))  # noqa: PTH100
        for each in (place, place.parent.resolve() / place.name):
            for root in roots:
                if each.is_relative_to(root) and each != Path(root):
                    return str(each.relative_to(root))
    return None


def generalise(seen: Iterable[Seen]) -> dict[Seen, Pattern]:
    """Find the pattern of every file.

    Files of one kind get one pattern: equal names but for dataset and rank. Numbers that are neither stay
    as they are, so that two files a rank are two kinds.
    """
    files = list(dict.fromkeys(seen))
    marked = {file: _without_dataset(file) for file in files}
    alike: dict[tuple[str, ...], list[Seen]] = {}
    for file in files:
        alike.setdefault(tuple(_NUMBER.split(marked[file])[::2]), []).append(file)
    found: dict[Seen, Pattern] = {}
    for group in alike.values():
        numbers = {file: _NUMBER.split(marked[file])[1::2] for file in group}
        found.update(_patterns(group, numbers, {file: _NUMBER.split(marked[file])[::2] for file in group}))
    return found


def _without_dataset(file: Seen) -> str:
    """The path with the dataset's name marked wherever it stands by itself."""
    if not file.dataset:
        return file.path
    name = re.escape(file.dataset.strip("/"))
    return re.sub(rf"(?<![0-9A-Za-z]){name}(?![0-9A-Za-z])", _DATASET, file.path)


def _patterns(
    group: Sequence[Seen], numbers: dict[Seen, list[str]], texts: dict[Seen, list[str]]
) -> dict[Seen, Pattern]:
    """Patterns of files whose names differ in their numbers only."""
    places = range(len(numbers[group[0]]))
    deciding = [file for file in group if file.writes] or group
    words = {file: list(numbers[file]) for file in group}
    members = {file: list(numbers[file]) for file in group}
    by_rank = [place for place in places if _is_rank(deciding, numbers, place, 0)]
    by_next = [place for place in places if place not in by_rank and _is_rank(deciding, numbers, place, 1)]
    for file in group:
        for place in by_rank:
            words[file][place] = "{rank}"
        for place in by_next:
            words[file][place] = "{rank+1}"
    rest = [place for place in places if place not in by_rank and place not in by_next]
    for place in _changing(deciding, numbers, rest):
        for file in group:
            words[file][place] = members[file][place] = _CHANGING
    return {
        file: Pattern(_joined(texts[file], words[file]), _joined(texts[file], members[file]))
        for file in group
    }


def _is_rank(group: Sequence[Seen], numbers: dict[Seen, list[str]], place: int, more: int) -> bool:
    return all(file.rank >= 0 and int(numbers[file][place]) == file.rank + more for file in group)


def _changing(group: Sequence[Seen], numbers: dict[Seen, list[str]], places: Sequence[int]) -> list[int]:
    """Places whose number is the checkpoint's: it stands in the dataset's name, or is another one each time.

    A number that takes several values at one checkpoint tells files apart instead.
    """
    return [
        place
        for place in places
        if _in_name(group, numbers, place) or _another_each_time(group, numbers, place)
    ]


def _in_name(group: Sequence[Seen], numbers: dict[Seen, list[str]], place: int) -> bool:
    return all(int(numbers[file][place]) in map(int, _NUMBER.findall(file.dataset)) for file in group)


def _another_each_time(group: Sequence[Seen], numbers: dict[Seen, list[str]], place: int) -> bool:
    """Whether every checkpoint of a run has one number of its own, and some run has several checkpoints."""
    values: dict[int, dict[int, set[str]]] = {}
    for file in group:
        values.setdefault(file.run, {}).setdefault(file.checkpoint, set()).add(numbers[file][place])
    of_runs = [list(checkpoints.values()) for checkpoints in values.values()]
    own = all(all(len(each) == 1 for each in run) and len(set().union(*run)) == len(run) for run in of_runs)
    return own and any(len(run) > 1 for run in of_runs)


def _joined(texts: Sequence[str], numbers: Sequence[str]) -> str:
    pieces = [_literal(texts[0])]
    for number, text in zip(numbers, texts[1:], strict=True):
        pieces += [number, _literal(text)]
    return "".join(pieces)


def _literal(text: str) -> str:
    """Text as a pattern that matches itself; the dataset's mark becomes {dataset}."""
    return _SPECIAL.sub(lambda match: f"[{match[0]}]", text).replace(_DATASET, "{dataset}")
