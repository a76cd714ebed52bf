"""The paths that steps will take: one step for each combination of what loop counters decide.

A step is watched (see `counters`) to know its path: others that decide all its comparisons alike take the
same one. Those that do not are watched in turn, so that decisions inside of branches are seen, too.

May import NumPy and `counters`. Tests: ``tests/test_kinds.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scr_critplugin.analysis.counters import Forecast, Turn, Watch

FARTHEST_STEP = 200
"""Plain steps that are run, at most, to come to a step of another path."""

MOST_PATHS = 64
"""Small remainders count as decisions, so there are often more paths than kinds of steps."""

_AT_ONCE = 10_000


@dataclass(frozen=True)
class Path:
    """Steps that go the same way.

    `step`: the first one (from 0). `again`: the next one, if any. `phases`: their places in the period.
    `places`: where they turn from other paths, as ``file:line``.
    """

    step: int
    again: int | None
    phases: tuple[int, ...]
    places: tuple[str, ...]


@dataclass(frozen=True)
class Paths:
    """What is known of the paths of the steps ahead.

    Attributes
    ----------
    taken : tuple of Path
        In the order of their first steps.
    near : tuple of int
        For each of the first steps, which of the paths it takes, or -1.
    turn : Turn or None
        The first step that takes none of them: it is too far ahead, there are too many, or it is not known.
    change : mapping of str to int
        The counters that go on evenly, and by how much.
    """

    taken: tuple[Path, ...]
    near: tuple[int, ...]
    turn: Turn | None
    change: Mapping[str, int]


def paths_ahead(
    second: Watch,
    watch_of: Callable[[int], Watch],
    values: Forecast,
    ahead: int,
    near: int,
    period: int,
    change: Mapping[str, int],
    is_late: Callable[[], bool] = lambda: False,
) -> Paths | None:
    """The paths of the next steps; None if what counters decide cannot be foreseen.

    Parameters
    ----------
    second : Watch
        Of step 1, counted from 0.
    watch_of : callable
        Given the number of a step, runs it watched.
    values : callable
        Given the numbers of steps, returns the values of each counter in them.
    ahead, near : int
        Number of steps to look at, and of those whose path is told.
    period : int
        After how many steps the structure was found to repeat; 1 if it was not.
    change : mapping
        See `Paths`.
    is_late : callable
        Whether no more steps are to be watched.
    """
    found: list[tuple[NDArray[np.intp], tuple[str, ...]]] = []
    covered = np.zeros(ahead, dtype=bool)
    step, watch = 1, second
    places: tuple[str, ...] = ()
    turn: Turn | None = None
    while turn is None:
        is_alike = _alike(watch, values, step, ahead)
        if is_alike is None:
            return None
        found.append((np.flatnonzero(is_alike & ~covered), places))
        covered |= is_alike
        if covered.all():
            break
        before, step = step, int(np.argmin(covered))
        places = watch.places_of(values, step, before) or second.places_of(values, step, 1)
        following = (
            None if step > FARTHEST_STEP or len(found) == MOST_PATHS or is_late() else _try(watch_of, step)
        )
        if following is None:
            turn = Turn(step, places)
        else:
            watch = following
    found.sort(key=lambda path: int(path[0][0]))
    taken = tuple(_path(steps, period, places) for steps, places in found)
    return Paths(taken, _near([steps for steps, _ in found], near), turn, change)


def _try(watch_of: Callable[[int], Watch], step: int) -> Watch | None:
    """The watch of a step, if the program can run it: of its state, only the counters are right."""
    try:
        watch = watch_of(step)
    except Exception:
        return None
    return watch if watch.complete else None


def _path(steps: NDArray[np.intp], period: int, places: tuple[str, ...]) -> Path:
    again = int(steps[1]) if len(steps) > 1 else None
    return Path(int(steps[0]), again, tuple(np.unique(steps % period).tolist()), places)


def _near(members: list[NDArray[np.intp]], near: int) -> tuple[int, ...]:
    path_of = np.full(near, -1)
    for path, steps in enumerate(members):
        path_of[steps[steps < near]] = path
    return tuple(path_of.tolist())


def _alike(watch: Watch, values: Forecast, step: int, ahead: int) -> NDArray[np.bool_] | None:
    """Which of the steps ahead take the path of the watched one; None if that is not known."""
    parts = []
    for start in range(0, ahead, _AT_ONCE):
        part = watch.alike(values, step, np.arange(start, min(ahead, start + _AT_ONCE)))
        if isinstance(part, str):
            return None
        parts.append(part)
    is_alike = np.concatenate(parts)
    # Its own counters decide it, even where a forecast is not exact.
    is_alike[step] = True
    return is_alike
