"""The cross-check of a map: change sampled elements one at a time, run on, and see which outputs change.

Elements that the map calls uncritical must not change a bit of the output; critical ones that change none are
no fault, since structure decides and not the value at one state (DESIGN section 4, rule 3).

May import `replacements`, `trials`, `program`. Tests: ``tests/test_perturbation.py``.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scr_critplugin.analysis.program import Program, State
from scr_critplugin.analysis.replacements import replaced
from scr_critplugin.analysis.trials import Communicator, Trials, require_masks_of

SAMPLES = 16
"""Elements of each variable, unless told otherwise."""

Masks = Mapping[str, NDArray[np.bool_]]


@dataclass(frozen=True)
class PerturbedVariable:
    """What became of the sampled elements of one variable.

    Attributes
    ----------
    shape : tuple of int
        Of the variable.
    indices : 1-d array of int
        The sampled elements, in C order, ascending.
    uncritical, changed : 1-d arrays of bool
        For each of them: what the map says, and whether the output changed.
    """

    shape: tuple[int, ...]
    indices: NDArray[np.intp]
    uncritical: NDArray[np.bool_]
    changed: NDArray[np.bool_]

    @property
    def contradictions(self) -> NDArray[np.bool_]:
        """Elements that the map calls uncritical and that changed the output; of the variable's shape."""
        mask = np.zeros(self.shape, dtype=bool)
        mask.reshape(-1)[self.indices[self.uncritical & self.changed]] = True
        return mask


@dataclass(frozen=True)
class PerturbationReport:
    """What `perturb` found.

    Attributes
    ----------
    variables : dict of str to PerturbedVariable
    steps : int
        Steps of each run; the output was compared after every one.
    runs : int
        Runs in all, two undisturbed ones included.
    seed : int
    difference : str or None
        The first difference made by an element that the map calls uncritical.
    """

    variables: dict[str, PerturbedVariable]
    steps: int
    runs: int
    seed: int
    difference: str | None

    @property
    def contradictions(self) -> dict[str, NDArray[np.bool_]]:
        """Elements that must become critical (`poison.widened`); only variables that have any."""
        found = {name: variable.contradictions for name, variable in self.variables.items()}
        return {name: mask for name, mask in found.items() if mask.any()}

    @property
    def sampled(self) -> int:
        """Elements that were changed."""
        return sum(variable.indices.size for variable in self.variables.values())

    @property
    def insensitive(self) -> float:
        """Share of the sampled critical elements that changed no output; 0 if none was sampled.

        The output depends on them, but no replacement showed it at this state and in these steps: products
        with zero, the other side of a branch, or rounding hid it.
        """
        changed = np.concatenate(
            [variable.changed[~variable.uncritical] for variable in self.variables.values()]
            or [np.zeros(0, dtype=bool)]
        )
        return float(np.count_nonzero(~changed) / changed.size) if changed.size else 0.0

    def __str__(self) -> str:
        wrong = {name: int(mask.sum()) for name, mask in self.contradictions.items()}
        verdict = (
            f"the map was wrong: {self.difference}. Now critical: "
            + ", ".join(f"{count} of {name}" for name, count in wrong.items())
            if wrong
            else "no uncritical one changed an output"
        )
        return (
            f"{self.sampled} elements changed one at a time in {self.runs} runs: {verdict}; "
            f"{100.0 * self.insensitive:.0f} % of the critical ones changed none"
        )

    def to_json_dict(self) -> dict[str, Any]:
        """As a map's provenance holds it: counts by variable."""
        return {
            "seed": self.seed,
            "steps": self.steps,
            "runs": self.runs,
            "insensitive": self.insensitive,
            "difference": self.difference,
            "variables": {
                name: {
                    "sampled": int(variable.indices.size),
                    "sampled_uncritical": int(variable.uncritical.sum()),
                    "changed": int(variable.changed.sum()),
                    "contradictions": int(variable.contradictions.sum()),
                }
                for name, variable in self.variables.items()
            },
        }


def perturb(
    program: Program,
    start: State,
    steps: int,
    *,
    uncritical: Masks,
    samples: int = SAMPLES,
    seed: int = 0,
    comm: Communicator | None = None,
) -> PerturbationReport:
    """Change sampled elements of every variable, one at a time, and compare the outputs bit for bit.

    Parameters
    ----------
    program : Program
    start : dict
        The state at the checkpoint. Not written to.
    steps : int
        Steps to run, at least 1; the output is compared after each.
    uncritical : mapping of str to boolean array of the variable's shape
        What the map says; a variable that is left out is critical.
    samples : int
        Elements of each variable: half of them uncritical, half critical, as far as there are so many. A
        variable with no more elements than that is gone through completely.
    seed : int
        Of the choice of elements and of what replaces them.
    comm : mpi4py communicator, optional
        Of the ranks that run the program together; elements of one rank after the other are changed.

    Returns
    -------
    PerturbationReport

    Raises
    ------
    ProfileError
        The program does not repeat itself, so that nothing can be checked; or a mask does not fit.

    Notes
    -----
    An element is tried with several replacements by type until one changes an output. Floating point: a
    hundredth more, a sum with the variable's largest number, the other sign, 1e34, and random bits; complex
    in both parts. Integers: one more, flipped bits, random bits. Booleans: the negation. Text and raw bytes:
    other ones. An exception or a step that does not end counts as a change.
    """
    require_masks_of(start, uncritical)
    trials = Trials(program, start, steps, comm)
    chosen = {
        name: _sampled(name, np.shape(value), uncritical.get(name), samples, seed)
        for name, value in start.items()
    }
    elements = [(name, int(place)) for name, places in chosen.items() for place in places]
    differences = _differences(trials, elements, seed)
    variables = {}
    first: str | None = None
    for name, places in chosen.items():
        shape = np.shape(start[name])
        claimed = _mask(uncritical.get(name), shape).reshape(-1)[places]
        found = [differences[name, int(place)] for place in places]
        changed = np.array([words is not None for words in found], dtype=bool)
        variables[name] = PerturbedVariable(shape, places, claimed, changed)
        for place, wrong, words in zip(places, claimed & changed, found, strict=True):
            if wrong and first is None:
                where = [int(i) for i in np.unravel_index(place, shape)]
                first = f"with another value in {name}{where if where else ''}, {words}"
    return PerturbationReport(variables, steps, trials.runs, seed, first)


def united(reports: Sequence[PerturbationReport]) -> PerturbationReport:
    """What several cross-checks of one map (at other steps, with other inputs) found together."""
    variables = {}
    for name in reports[0].variables:
        parts = [report.variables[name] for report in reports]
        indices, order = np.unique(np.concatenate([part.indices for part in parts]), return_inverse=True)
        uncritical, changed = np.zeros((2, indices.size), dtype=bool)
        np.logical_or.at(uncritical, order, np.concatenate([part.uncritical for part in parts]))
        np.logical_or.at(changed, order, np.concatenate([part.changed for part in parts]))
        variables[name] = PerturbedVariable(parts[0].shape, indices, uncritical, changed)
    return PerturbationReport(
        variables,
        max(report.steps for report in reports),
        sum(report.runs for report in reports),
        reports[0].seed,
        next((report.difference for report in reports if report.difference is not None), None),
    )


def _differences(
    trials: Trials, elements: list[tuple[str, int]], seed: int
) -> dict[tuple[str, int], str | None]:
    """What the changes of each of this rank's elements make of the output."""
    found: dict[tuple[str, int], str | None] = {}
    comm = trials.comm
    own_turn = 0 if comm is None else comm.rank
    counts = [len(elements)] if comm is None else comm.allgather(len(elements))
    for rank, count in enumerate(counts):
        for i in range(count):
            if rank == own_turn:
                found[elements[i]] = _tried(trials, elements[i], seed)
            else:
                _followed(trials)
    if any(words is not None for words in found.values()) or comm is not None:
        # What an altered run left outside the state would have shown as a difference of all later ones.
        trials.refuse_if_not_repeatable("after a run from another state")
    return found


def _tried(trials: Trials, element: tuple[str, int], seed: int) -> str | None:
    name, place = element
    stream = np.random.default_rng([seed, zlib.crc32(name.encode()), place])
    words = None
    for other in replaced(trials.start[name], place, stream):
        _announce(trials.comm, more=True)
        words = trials.difference({**trials.start, name: other})
        if words is not None:
            break
    _announce(trials.comm, more=False)
    return words


def _followed(trials: Trials) -> None:
    """Run undisturbed beside another rank's altered runs."""
    while _announce(trials.comm, more=False):
        trials.difference(trials.start)


def _announce(comm: Communicator | None, *, more: bool) -> bool:
    """Whether a further run is to be made, on any rank."""
    return more if comm is None else any(comm.allgather(more))


def _mask(mask: NDArray[np.bool_] | None, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    return np.zeros(shape, dtype=bool) if mask is None else mask


def _sampled(
    name: str, shape: tuple[int, ...], mask: NDArray[np.bool_] | None, samples: int, seed: int
) -> NDArray[np.intp]:
    """Places in C order, ascending: half of them uncritical as far as there are so many of both."""
    claimed = _mask(mask, shape).reshape(-1)
    stream = np.random.default_rng([seed, zlib.crc32(name.encode())])
    uncritical, critical = np.flatnonzero(claimed), np.flatnonzero(~claimed)
    of_critical = max((samples + 1) // 2, samples - uncritical.size)
    taken = _some(critical, of_critical, stream)
    return np.sort(np.concatenate([taken, _some(uncritical, samples - taken.size, stream)]))


def _some(places: NDArray[np.intp], count: int, stream: np.random.Generator) -> NDArray[np.intp]:
    if places.size <= count:
        return places
    return places[stream.choice(places.size, count, replace=False)]
