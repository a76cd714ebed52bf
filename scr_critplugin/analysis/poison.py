"""The check of a map: overwrite what it calls uncritical, run on, and compare the outputs bit for bit.

If an output differs, the map was wrong. The guilty elements are found by bisection and become critical,
until what is left can be overwritten with every fill.

What it cannot see: a value that the program computed once, before the check, and keeps outside its state.

May import `bisection`, `fills`, `trials`, `program`, the map and the errors. Tests: ``tests/test_poison.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from scr_critplugin.analysis.bisection import Spans, culprits, without
from scr_critplugin.analysis.fills import FILLS, mixed, poisoned
from scr_critplugin.analysis.masks import unite_named
from scr_critplugin.analysis.program import Program, State
from scr_critplugin.analysis.trials import Communicator, Trials, require_masks_of
from scr_critplugin.criticality import ElementState, Variable
from scr_critplugin.errors import ProfileError

MAX_RUNS = 300
"""Runs that the search for guilty elements may take."""

Masks = dict[str, NDArray[np.bool_]]


@dataclass(frozen=True)
class PoisonReport:
    """What was overwritten, and what came of it.

    Attributes
    ----------
    fills : tuple of str
        Written in turn, each in all uncritical elements at once.
    elements : dict of str to int
        Elements overwritten in the last runs, which changed nothing, by variable.
    steps : int
        Steps of each run; the output was compared after every one.
    runs : int
        Runs in all: two undisturbed ones, those with the fills, and those of the search.
    guilty : dict of str to boolean array
        Elements that had been found uncritical and are not, of the variable's shape; only variables that
        have such elements.
    complete : bool
        False if the search used up its runs: then `guilty` holds every element that was still suspect.
    difference : str or None
        The first difference: which fill, which step, and the exception or output.
    """

    fills: tuple[str, ...]
    elements: dict[str, int]
    steps: int
    runs: int
    guilty: dict[str, NDArray[np.bool_]]
    complete: bool = True
    difference: str | None = None

    @property
    def outcome(self) -> Literal["identical", "widened"]:
        """Whether all outputs were identical at once, or only after the map had been widened."""
        return "identical" if self.difference is None else "widened"

    def __str__(self) -> str:
        overwritten = f"{', '.join(self.fills)} in {sum(self.elements.values())} uncritical elements"
        done = f"{overwritten}, {self.steps} {'step' if self.steps == 1 else 'steps'}"
        if self.difference is None:
            return f"{done}: outputs identical"
        found = ", ".join(f"{np.count_nonzero(mask)} of {name}" for name, mask in self.guilty.items())
        found = found or "elements of other ranks"
        if not self.complete:
            found += f" (not each need be to blame: the search ended after {self.runs} runs)"
        return f"the map was wrong: {self.difference}. Now critical: {found}. With {done}: outputs identical"

    def to_json_dict(self) -> dict[str, Any]:
        """As a map's provenance holds it: `guilty` as counts."""
        return {
            "fills": list(self.fills),
            "elements": dict(self.elements),
            "steps": self.steps,
            "runs": self.runs,
            "outcome": self.outcome,
            "guilty": {name: int(mask.sum()) for name, mask in self.guilty.items()},
            "complete": self.complete,
            "difference": self.difference,
        }


def check_by_poison(
    program: Program,
    start: State,
    uncritical: Mapping[str, NDArray[np.bool_]],
    steps: int,
    *,
    doubtful: Mapping[str, NDArray[np.bool_]] | None = None,
    seed: int = 0,
    max_runs: int = MAX_RUNS,
    comm: Communicator | None = None,
) -> PoisonReport:
    """Run `steps` steps with each fill in the `uncritical` elements, and find those that change an output.

    Parameters
    ----------
    program : Program
    start : dict
        The state at the checkpoint. Not written to.
    uncritical : mapping of str to boolean array of the variable's shape
        Variables that are left out are not overwritten.
    steps : int
        At least 1.
    doubtful : mapping of str to boolean array, optional
        Those of the uncritical elements that are the first to be suspected. They are searched apart from the
        others, so that these are spared should the runs not suffice.
    seed : int
        Of the noise, and of the NaNs' signs and payloads.
    max_runs : int
        How many runs the search for guilty elements may take. Then all that are still suspect are guilty.
    comm : mpi4py communicator, optional
        Of the ranks that run the program together: each passes its own state and mask, and gets a report of
        its own elements.

    Returns
    -------
    PoisonReport
        Without the elements that are `guilty` (see `widened`), poison changes no output.

    Raises
    ------
    ProfileError
        The program does not repeat itself, so that nothing can be checked; or a mask does not fit.
    """
    require_masks_of(start, uncritical)
    require_masks_of(start, doubtful or {})
    trials = Trials(program, start, steps, comm)
    search = _Search(trials, uncritical, doubtful or {}, seed, max_runs)
    # A fill again after each widening, so that all three hold for the same mask in the end.
    survived = turn = 0
    while survived < len(FILLS):
        difference = search.difference(FILLS[turn % len(FILLS)])
        if difference is None:
            survived, turn = survived + 1, turn + 1
        else:
            survived = 0
            search.widen(FILLS[turn % len(FILLS)], difference)
    return PoisonReport(
        FILLS,
        {name: int(mask.sum()) for name, mask in search.left.items()},
        steps,
        trials.runs,
        {name: mask for name, mask in search.guilty().items() if mask.any()},
        search.complete,
        search.first_difference,
    )


def widened(
    variables: Mapping[str, Variable], guilty: Mapping[str, NDArray[np.bool_]]
) -> dict[str, Variable]:
    """The variables of a map with the `guilty` elements critical."""
    result = dict(variables)
    for name, mask in guilty.items():
        old = variables[name]
        states = np.where(mask, np.uint8(ElementState.CRITICAL), old.states)
        result[name] = Variable(name, states, old.dtype, old.order, old.magnitudes)
    return result


def united(reports: list[PoisonReport]) -> PoisonReport:
    """What several checks, each with the mask that the one before it left, found together."""
    last = reports[-1]
    guilty: Masks = {}
    for report in reports:
        unite_named(guilty, report.guilty)
    return PoisonReport(
        last.fills,
        last.elements,
        max(report.steps for report in reports),
        sum(report.runs for report in reports),
        guilty,
        all(report.complete for report in reports),
        next((report.difference for report in reports if report.difference is not None), None),
    )


class _Search:
    """The elements `left` to overwrite, and the runs that tell which of them are guilty."""

    def __init__(
        self,
        trials: Trials,
        uncritical: Mapping[str, NDArray[np.bool_]],
        doubtful: Mapping[str, NDArray[np.bool_]],
        seed: int,
        max_runs: int,
    ) -> None:
        self._trials = trials
        self._before = uncritical
        self._doubtful = doubtful
        self._seed = seed
        self._runs_left = max_runs
        self.left: Masks = {name: np.array(mask, dtype=bool) for name, mask in uncritical.items()}
        self.complete = True
        self.first_difference: str | None = None

    def difference(self, fill: str) -> str | None:
        """What a run with `fill` in all that is left changes."""
        altered = self._poisoned(fill)
        if self.first_difference is not None:
            altered = mixed(self._trials.start, altered, self.left)
        return self._trials.difference(altered)

    def widen(self, fill: str, difference: str) -> None:
        """Take guilty elements out of what is left."""
        numbering = _Numbering(self.left, self._doubtful, self._trials.comm)
        if self.first_difference is None:
            self.first_difference = f"with {fill} in what it calls uncritical, {difference}"
        # What poison left behind outside the state would make every element look guilty.
        self._trials.refuse_if_not_repeatable("after a run from another state")
        if numbering.count == 0:
            raise ProfileError(f"the run cannot be repeated: {difference} although nothing was overwritten")
        poison = self._poisoned(fill)

        def fails(spans: Spans) -> bool:
            altered = mixed(self._trials.start, poison, numbering.masks(spans))
            return self._trials.difference(altered) is not None

        runs_before = self._trials.runs
        verdict = culprits(fails, numbering.everyone, self._runs_left)
        self._runs_left -= self._trials.runs - runs_before
        self._trials.refuse_if_not_repeatable("after runs from other states")
        self.complete &= verdict.complete
        self.left = numbering.masks(without(numbering.everyone, verdict.guilty))

    def guilty(self) -> Masks:
        return {name: mask & ~self.left[name] for name, mask in self._before.items()}

    def _poisoned(self, fill: str) -> State:
        # Of the whole mask, whatever is left of it: an element's poison must not change during a search.
        return poisoned(self._trials.start, self._before, fill, self._seed)


class _Numbering:
    """The elements that masks set, numbered through: rank by rank, variable by variable, in C order.

    The doubtful ones come first on each rank.
    """

    def __init__(
        self, masks: Masks, doubtful: Mapping[str, NDArray[np.bool_]], comm: Communicator | None
    ) -> None:
        self._shapes = {name: mask.shape for name, mask in masks.items()}
        first = {name: np.flatnonzero(mask & doubtful.get(name, False)) for name, mask in masks.items()}
        then = {name: np.flatnonzero(mask & ~doubtful.get(name, np.False_)) for name, mask in masks.items()}
        self._places = [*first.items(), *then.items()]
        mine = sum(places.size for _, places in self._places)
        counts = [mine] if comm is None else comm.allgather(mine)
        self._start = 0 if comm is None else sum(counts[: comm.rank])
        self.count = sum(counts)

    @property
    def everyone(self) -> Spans:
        """All numbers."""
        return ((0, self.count),)

    def masks(self, spans: Spans) -> Masks:
        """Elements of this rank that have the numbers in `spans`."""
        found: Masks = {name: np.zeros(shape, dtype=bool) for name, shape in self._shapes.items()}
        first = self._start
        for name, places in self._places:
            flat = found[name].reshape(-1)
            for start, stop in spans:
                flat[places[max(start - first, 0) : max(stop - first, 0)]] = True
            first += places.size
        return found
