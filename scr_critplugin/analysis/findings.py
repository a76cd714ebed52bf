"""What was found at the points of a profile, and what the map's provenance says of it.

May import `gradient`, `options`, `program`, `tiles`, `union` and the map. Tests: ``tests/test_control.py``.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from scr_critplugin.analysis.gradient import Gradient
from scr_critplugin.analysis.history import Window
from scr_critplugin.analysis.options import Options
from scr_critplugin.analysis.program import Program
from scr_critplugin.analysis.tiles import Confidence
from scr_critplugin.analysis.union import Point, Seen, unrecorded
from scr_critplugin.criticality import Variable


@dataclass(frozen=True)
class Repetition:
    """How the steps after a checkpoint repeat: what a `Window` knows, without its tapes."""

    stationary: bool | None
    period: int | None
    kinds: int | None
    replayed: bool
    counters: tuple[str, ...]
    unchecked: tuple[str, ...]

    @classmethod
    def of(cls, window: Window) -> Repetition:
        """That of a `window` whose steps have been swept."""
        return cls(
            window.stationary,
            window.period,
            window.kinds,
            window.replayed,
            window.counters,
            window.warnings,
        )


@dataclass(frozen=True)
class Found:
    """What was found at one point."""

    point: Point
    variables: dict[str, Variable]
    swept: int
    repetition: Repetition
    seen: Seen
    confidence: Confidence | None
    gradient: Gradient | None


def together(found: Sequence[Found]) -> Repetition:
    """How steps repeat at all points."""
    each = [at_point.repetition for at_point in found]
    stationary = [one.stationary for one in each]
    unchecked = [words for one in each for words in one.unchecked]
    unchecked += unrecorded([at_point.seen for at_point in found])
    return Repetition(
        None if None in stationary else all(stationary),
        _largest([one.period for one in each]),
        _largest([one.kinds for one in each]),
        any(one.replayed for one in each),
        tuple(sorted({name for one in each for name in one.counters})),
        tuple(dict.fromkeys(unchecked)),
    )


def _largest(numbers: Sequence[int | None]) -> int | None:
    """The largest number; None if there is none for one of them."""
    known = [number for number in numbers if number is not None]
    return max(known) if len(known) == len(numbers) else None


def provenance_of(program: Program, found: Sequence[Found], options: Options) -> dict[str, Any]:
    """What was profiled, where, and how the steps repeat."""
    at = sorted({each.point.at for each in found})
    repetition = together(found)
    return {
        "engine": options.engine,
        "step": _full_name(program.step),
        "outputs": _full_name(program.output),
        "at": at[0] if len(at) == 1 else at,
        "inputs": 1 + max(each.point.source for each in found),
        "points": [
            {
                "input": each.point.source,
                "at": each.point.at,
                "steps_swept": each.swept,
                "stationary": each.repetition.stationary,
            }
            for each in found
        ],
        "steps": options.steps,
        "steps_swept": max(each.swept for each in found),
        "stationary": repetition.stationary,
        "period": repetition.period,
        "kinds": repetition.kinds,
        "replayed": repetition.replayed,
        "counters": list(repetition.counters),
        "unchecked": list(repetition.unchecked),
        "control": options.control,
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }


def _full_name(function: Any) -> str:
    name = getattr(function, "__qualname__", type(function).__qualname__)
    return f"{getattr(function, '__module__', '?')}.{name}"
