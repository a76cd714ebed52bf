"""The steps from a checkpoint on: how their structure goes on, and which recorded ones stand for them.

Steps are recorded until their structure is seen to repeat, and then stand for all later ones. Where it does
not repeat, but is one of a few that counters choose from, one step of each kind stands for all, in any
order. Else each step is recorded when its turn comes, from the last to the first, so that one tape is alive
at a time.

May import `counters`, `foresight`, `hidden`, `kinds`, `period`, `program`, `recorder`, `replay`,
`structure`. Tests: ``tests/test_recurrence.py``, ``tests/test_kinds.py``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import starmap

from scr_critplugin.analysis.counters import Turn
from scr_critplugin.analysis.foresight import Foresight, foresee
from scr_critplugin.analysis.hidden import refuse_hidden_state
from scr_critplugin.analysis.kinds import Kinds, record_kinds
from scr_critplugin.analysis.period import LONGEST_PERIOD, PeriodSearch
from scr_critplugin.analysis.program import Program, State, results_of
from scr_critplugin.analysis.recorder import Recorded, Recorder
from scr_critplugin.analysis.replay import last_to_first
from scr_critplugin.analysis.structure import Structure

EACH = 8
"""Up to so many steps are all recorded, without asking whether their structure repeats."""


@dataclass(frozen=True)
class Window:
    """The steps from the checkpoint on, as the backward recurrence needs them.

    Attributes
    ----------
    steps : int or None
        How many there are; None: any number.
    period : int or None
        Step ``i`` has the structure of step ``i + period``; None if each step stands for itself only.
    stationary : bool or None
        Whether the period is 1; None if it was not asked.
    structures : tuple of Structure
        Of the steps of the period, or of each kind of step.
    recorded : frozenset of int
        The steps, counted from 0, that are known to have these structures.
    warnings : tuple of str
        What could not be checked.
    turn : Turn or None
        A step ahead, counted from 0, for which no recorded one stands.
    """

    program: Program
    steps: int | None
    period: int | None
    stationary: bool | None
    structures: tuple[Structure, ...]
    recorded: frozenset[int]
    warnings: tuple[str, ...]
    turn: Turn | None
    _recorder: Recorder
    _cycle: tuple[Recorded, ...]
    _replay: Callable[[], Iterator[Recorded]] | None

    @property
    def any_order(self) -> bool:
        """Whether there are a few kinds of steps that follow each other in no known order."""
        return self.period is None and self._replay is None

    @property
    def one_by_one(self) -> bool:
        """Whether each step is recorded when it is asked for, and stands for itself only."""
        return self._replay is not None

    @property
    def replayed(self) -> bool:
        """Whether the structure was found not to repeat, so that each step is recorded again."""
        return self.stationary is False and self._replay is not None

    @property
    def kinds(self) -> int | None:
        """Number of structures among the steps; None if each stands for itself only."""
        return None if self._replay is not None else len({each.digest for each in self.structures})

    @property
    def holds_for(self) -> frozenset[int]:
        """Steps, counted from 0, that were recorded and that the masks hold for in any order."""
        return self.recorded if self.any_order or self.period == 1 else frozenset()

    @property
    def counters(self) -> tuple[str, ...]:
        """Names of the untraced variables that changed from step to step until now: loop counters."""
        return tuple(sorted(self._recorder.counters))

    def last_to_first(self) -> Iterator[tuple[int, Recorded]]:
        """The steps from the last to the first, each with its place in the period (0 if there is none).

        Endless if there is a period and any number of steps. In any order, the kinds of steps again and
        again, each with its number. Where each step stands for itself, the next one is recorded when it is
        asked for: let go of the one before (`Recorded.forget`) to keep one tape alive.
        """
        if self._replay is not None:
            # Not a generator of our own: its loop variable would keep the tape alive.
            return map(_in_no_period, self._replay())
        return self._around()

    def _around(self) -> Iterator[tuple[int, Recorded]]:
        period = len(self._cycle)
        is_endless = self.any_order or self.steps is None
        number = period if is_endless else self.steps or 0
        while number > 0 or is_endless:
            number -= 1
            yield number % period, self._cycle[number % period]


def record(program: Program, start: State, steps: int | None, *, validate: bool) -> Window:
    """Look at the steps from `start` on, of which there are `steps` (None: any number).

    `validate`: also run the output plainly. Raises ProfileError as `profile` says.
    """
    clock = time.perf_counter()
    after = program.advance(start)
    results = results_of(after, program.outputs(after) if validate else ())
    seconds = time.perf_counter() - clock
    warnings = refuse_hidden_state(
        program, start, after, results, with_output=validate, is_last=steps == 1, seconds=seconds
    )
    recorder = Recorder(program, start, with_plain_output=validate)
    opening = _Opening(program, recorder, (start, after), steps, validate, seconds)
    if steps is not None and steps <= EACH:
        return opening.each(None, warnings)
    search, foresight = opening.search()
    if steps is not None and not program.agree(not any(place.decides for place in recorder.sinks)):
        # Steps that were not recorded may decide otherwise, and only running them tells.
        return opening.each(False, warnings)
    goes_on = search.period is not None and foresight.goes_on(search.digests)
    if search.period is not None and (goes_on if steps is None else program.agree(goes_on)):
        return opening.periodic(search, warnings + _unknown(foresight), None)
    kinds = opening.kinds(search, foresight)
    if kinds is not None and (steps is None or (kinds.turn is None and not kinds.doubts)):
        known = frozenset(range(search.recorded)) | kinds.steps
        return opening.in_any_order(kinds, known, warnings)
    if steps is not None:
        return opening.each(False, warnings)
    if search.period is None:
        raise search.refusal(sorted(recorder.counters))
    return opening.periodic(search, warnings, foresight.next_turn)


@dataclass(frozen=True)
class _Opening:
    """What is known after the first plain step, which took `seconds`."""

    program: Program
    recorder: Recorder
    states: tuple[State, State]
    steps: int | None
    with_plain_output: bool
    seconds: float

    def periodic(
        self, search: PeriodSearch[Recorded], warnings: tuple[str, ...], turn: Turn | None
    ) -> Window:
        """The window of steps that repeat, but for the one at the `turn`."""
        return Window(
            self.program,
            self.steps,
            search.period,
            search.period == 1,
            search.structures,
            frozenset(range(search.recorded)),
            warnings,
            turn,
            self.recorder,
            search.cycle(),
            None,
        )

    def in_any_order(
        self, kinds: Kinds[Recorded], known: frozenset[int], warnings: tuple[str, ...]
    ) -> Window:
        """The window of a few kinds of steps, stationary if of one only. `known`: steps of these kinds."""
        is_stationary = len(kinds.recordings) == 1
        return Window(
            self.program,
            self.steps,
            1 if is_stationary else None,
            is_stationary,
            kinds.structures,
            known,
            warnings + kinds.doubts,
            kinds.turn,
            self.recorder,
            kinds.recordings,
            None,
        )

    def each(self, stationary: bool | None, warnings: tuple[str, ...]) -> Window:
        """The window of steps that are all recorded."""

        def replay() -> Iterator[Recorded]:
            return starmap(self.recorder.record, last_to_first(self.program, self.states, self.steps or 0))

        return Window(
            self.program,
            self.steps,
            None,
            stationary,
            (),
            frozenset(),
            warnings,
            None,
            self.recorder,
            (),
            replay,
        )

    def kinds(self, search: PeriodSearch[Recorded], foresight: Foresight) -> Kinds[Recorded] | None:
        """The kinds of steps, if what counters decide tells them apart."""
        if foresight.paths is None:
            return None
        return record_kinds(self.program, self.states, foresight.paths, search.digests, self.recorder.record)

    def search(self) -> tuple[PeriodSearch[Recorded], Foresight]:
        """Record steps until their structure repeats and no near one is decided otherwise, or never does."""
        # With few steps left it is cheaper to record each of them than to look for a long period.
        longest = LONGEST_PERIOD if self.steps is None else min(LONGEST_PERIOD, self.steps // 4)
        search: PeriodSearch[Recorded] = PeriodSearch(longest, self.program.agree)
        foresight = Foresight(0)
        (before, after), number = self.states, 1
        while True:
            recorded = self.recorder.record(number, before, after)
            search.add(recorded, recorded.structure())
            if search.period is not None:
                foresight = self._foresee(number, search.period)
                search.go_on(foresight.enough)
            if search.is_over:
                if search.period is None:
                    foresight = self._foresee(number, None)
                return search, foresight
            before, after, number = after, self.program.advance(after), number + 1

    def _foresee(self, recorded: int, period: int | None) -> Foresight:
        return foresee(
            self.program,
            self.states,
            self.steps,
            recorded,
            period,
            with_output=self.with_plain_output,
            seconds=self.seconds,
        )


def _unknown(foresight: Foresight) -> tuple[str, ...]:
    """What is not known of later steps, in words."""
    if foresight.unknown is None:
        return ()
    return (f"whether later steps go on like the recorded ones was not checked: {foresight.unknown}",)


def _in_no_period(recorded: Recorded) -> tuple[int, Recorded]:
    return 0, recorded
