"""Element states from a sample: tiles of what is needed, pulled through a step; boxes around what they need.

A tile is a small box of an array. In each round some tiles of everything that is needed are pulled back:
those at the corners, edges and faces of each box, and as many random ones as were asked for. What they need
is widened to boxes (`hulls`), which are sampled in the next round, until a round finds nothing outside the
boxes; one more round of fresh tiles then confirms them. Arrays of no more tiles than that are swept in full,
and so is all that feeds a sink.

Uncritical is what lies outside the boxes: a claim from a sample, whose strength `Confidence` states.

May import `history`, `hulls`, `program`, `recurrence`, `runsets`, `sparse`, `sweep` and the map. Tests:
``tests/test_tiles.py``.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from scr_critplugin.analysis import sweep
from scr_critplugin.analysis.history import Window
from scr_critplugin.analysis.hulls import LAYERS, Hulls
from scr_critplugin.analysis.program import State, TracedOutput, TracedStep, is_traceable
from scr_critplugin.analysis.recorder import Recorded
from scr_critplugin.analysis.recurrence import variable_of
from scr_critplugin.analysis.runsets import NotSparseError, Runs, c_strides, united
from scr_critplugin.analysis.sparse import Seed, Sweeper, everything
from scr_critplugin.analysis.tape import DependenceNode, Tape
from scr_critplugin.criticality import ElementState, Variable
from scr_critplugin.regions import Box

TILE_ELEMENTS = 512
LEVEL = 0.95

_PATIENCE = 32
"""After so many rounds that grew, what is swept in full is widened to boxes too, so that growth ends."""

Sets = dict[str, Runs]
Shapes = Mapping[str, tuple[int, ...]]


# ---- what it says of itself ----


@dataclass(frozen=True)
class Population:
    """Tiles of one array: `fresh` random ones of `total` confirmed the boxes, or all were swept."""

    fresh: int
    total: int
    complete: bool


@dataclass(frozen=True)
class Confidence:
    """What a sampled map rests on.

    Attributes
    ----------
    tiles : int
        Random tiles a round of each array, as asked for.
    seed : int
        Of the generator that chose them.
    rounds : int
        Rounds that were swept, the confirming ones included.
    confirmations : int
        Rounds that were meant to confirm the boxes; the last did. Each further one is one more chance to be
        lucky, which `missed_share` accounts for.
    level : float
        Confidence level of `missed_share`.
    populations : dict of str to Population
        By output (``output 0``, ...) and by state variable.
    densely : dict of str to int
        Primitives without a sparse rule, and how often boolean arrays were swept through them.
    refuted : str or None
        What poison had against the boxes; the map is then that of a full sweep.
    """

    tiles: int
    seed: int
    rounds: int
    confirmations: int
    level: float
    populations: dict[str, Population]
    densely: dict[str, int] = field(default_factory=dict)
    refuted: str | None = None

    def missed_share(self, name: str) -> float:
        """Largest share of the tiles of `name` that can need an element outside the boxes, at this level.

        Were it more, n random tiles would show it with the level's probability: 1 - (1 - level)^(1/n), about
        3/n at 95 % (the rule of three).
        """
        population = self.populations[name]
        if population.complete:
            return 0.0
        return float(1 - ((1 - self.level) / self.confirmations) ** (1 / population.fresh))

    def describe(self) -> str:
        """One line for each array, for people."""
        lines = [self._line(name, each) for name, each in self.populations.items()]
        if self.refuted is not None:
            lines.append(f"poison refuted the boxes ({self.refuted}); the map is that of a full sweep")
        if self.densely:
            named = ", ".join(f"{name} ({count})" for name, count in sorted(self.densely.items()))
            lines.append(f"swept by boolean arrays: {named}")
        return "\n".join(lines)

    def _line(self, name: str, population: Population) -> str:
        if population.complete:
            return f"{name}: swept in full"
        return (
            f"{name}: {population.fresh} fresh random tiles of {population.total} need nothing outside the "
            f"boxes; with {100 * self.level:.0f} % confidence at most "
            f"{100 * self.missed_share(name):.2g} % of its tiles do"
        )

    def as_provenance(self) -> dict[str, object]:
        """For the map: anything JSON can hold."""
        return {
            "tiles": self.tiles,
            "seed": self.seed,
            "rounds": self.rounds,
            "confirmations": self.confirmations,
            "level": self.level,
            "missed_share": {name: self.missed_share(name) for name in self.populations},
            "densely": dict(self.densely),
            "refuted": self.refuted,
        }


def weakest(confidences: Sequence[Confidence]) -> Confidence | None:
    """What maps of several points, united, rest on: of each array the population that says least."""
    if not confidences:
        return None
    populations: dict[str, Population] = {}
    densely: Counter[str] = Counter()
    for confidence in confidences:
        densely.update(confidence.densely)
        for name, population in confidence.populations.items():
            known = populations.get(name, population)
            populations[name] = min(known, population, key=lambda each: (each.complete, each.fresh))
    return replace(
        confidences[0],
        rounds=sum(each.rounds for each in confidences),
        confirmations=max(each.confirmations for each in confidences),
        populations=populations,
        densely=dict(densely),
    )


# ---- drawing tiles ----


class Tiling:
    """The tiles of some boxes of an array of `shape`, numbered."""

    def __init__(self, boxes: list[Box], shape: tuple[int, ...]) -> None:
        self.shape = shape
        self._boxes = boxes
        self._grids = [
            tuple(max(count // side, 1) for count, side in zip(box.counts, _sides(box.counts), strict=True))
            for box in boxes
        ]
        self._ends = list(itertools.accumulate(map(math.prod, self._grids)))

    @property
    def total(self) -> int:
        """Number of tiles."""
        return self._ends[-1] if self._ends else 0

    def corners(self, generator: np.random.Generator) -> Iterator[Runs]:
        """For each box the tiles at its corners, and a random one on each edge, on each face, and inside."""
        for number, grid in enumerate(self._grids):
            inner = [int(generator.integers(extent)) for extent in grid]
            choices = [sorted({0, at, extent - 1}) for at, extent in zip(inner, grid, strict=True)]
            for place in itertools.product(*choices):
                yield self._tile(number, place)

    def corner_count(self) -> int:
        """Largest number of tiles that `corners` gives."""
        return sum(math.prod(min(extent, 3) for extent in grid) for grid in self._grids)

    def random(self, count: int, generator: np.random.Generator) -> Iterator[Runs]:
        """`count` different tiles, all equally likely."""
        for drawn in generator.choice(self.total, size=min(count, self.total), replace=False).tolist():
            number = int(np.searchsorted(self._ends, drawn, side="right"))
            inside = drawn - (self._ends[number - 1] if number else 0)
            yield self._tile(number, tuple(map(int, np.unravel_index(inside, self._grids[number]))))

    def _tile(self, number: int, place: tuple[int, ...]) -> Runs:
        box, grid = self._boxes[number], self._grids[number]
        cuts = [
            (at * n // tiles, (at + 1) * n // tiles)
            for at, n, tiles in zip(place, box.counts, grid, strict=True)
        ]
        start = np.zeros(1, np.int64)
        for axis, ((begin, end), stride) in enumerate(zip(cuts, c_strides(self.shape), strict=True)):
            first, step = box.start[axis], box.step[axis]
            if axis == len(cuts) - 1 and step == 1:
                start = start + (first + begin)
                return Runs.of(start, start + (end - begin))
            start = np.add.outer(start, (first + step * np.arange(begin, end)) * stride).reshape(-1)
        return Runs.of(start, start + 1)


def _sides(counts: tuple[int, ...]) -> tuple[int, ...]:
    """Least sides, of about `TILE_ELEMENTS` elements: short axes whole, all reaching past the layers."""
    sides = [1] * len(counts)
    budget = TILE_ELEMENTS
    for left, axis in zip(range(len(counts), 0, -1), np.argsort(counts).tolist(), strict=True):
        sides[axis] = min(counts[axis], max(round(budget ** (1 / left)), LAYERS + 1))
        budget = max(budget // sides[axis], 1)
    return tuple(sides)


# ---- what is known of a variable ----


class Guess:
    """Elements of one variable that are needed: `known` from full sweeps, boxes around those from tiles."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self.known = Runs.none()
        self.hulls = Hulls(shape)
        self._hulls_of_known = Hulls(shape)

    def with_(self, other: Guess) -> Guess:
        """What either holds."""
        joined = Guess(self.shape)
        joined.known = united([self.known, other.known])
        joined.hulls = self.hulls.with_(other.hulls)
        joined._hulls_of_known = self._hulls_of_known.with_(other._hulls_of_known)
        return joined

    def equals(self, other: Guess) -> bool:
        """True if both hold the same."""
        return self.known.equals(other.known) and self.hulls.boxes == other.hulls.boxes

    def add(self, found: Runs, *, sampled: bool) -> bool:
        """Take elements in; whether anything new was among them."""
        new = found.minus(self.known)
        if not new:
            return False
        if sampled:
            return self.hulls.add(new)
        self.known = united([self.known, new])
        self._hulls_of_known.add(new)
        return True

    def runs(self) -> Runs:
        """All elements that count as needed."""
        return united([self.known, self.hulls.runs()])

    def mark(self, states: NDArray[np.uint8]) -> None:
        """Set the states of all elements that count as needed."""
        self.known.mark(states, ElementState.CRITICAL)
        for box in self.hulls.boxes:
            states[box.slices] = ElementState.CRITICAL

    def tiling(self) -> Tiling:
        """Tiles to sample: of boxes around everything needed."""
        return Tiling(self.hulls.with_(self._hulls_of_known).boxes, self.shape)


Guesses = dict[str, Guess]


def _joined(one: Guesses, other: Guesses) -> Guesses:
    return {name: guess.with_(other[name]) if name in other else guess for name, guess in one.items()}


def _equal(one: Guesses, other: Guesses) -> bool:
    return all(guess.equals(other[name]) for name, guess in one.items())


# ---- the sweep ----


class _Targets:
    """What is to be pulled through one tape: all of arrays of few tiles, fresh samples of the others."""

    def __init__(self, tiles: int) -> None:
        self._tiles = tiles
        self._tilings: list[tuple[DependenceNode, Tiling]] = []
        self.populations: dict[str, Population] = {}
        self.full: list[Seed] = []

    def all_of(self, node: DependenceNode) -> None:
        """Everything is needed, and is not to be sampled."""
        self.full.append((node, everything(node.shape)))

    def some(self, name: str, node: DependenceNode, tiling: Tiling, wanted: Callable[[], Runs]) -> None:
        """The elements `wanted` of the array are needed, which the `tiling` covers."""
        complete = tiling.total <= tiling.corner_count() + self._tiles
        fresh = tiling.total if complete else self._tiles
        self.populations[name] = Population(fresh, tiling.total, complete)
        if complete:
            self.full.append((node, wanted()))
        else:
            self._tilings.append((node, tiling))

    def sample(self, generator: np.random.Generator) -> list[Seed]:
        """Tiles at corners, and fresh random ones."""
        return [
            (node, united([*tiling.corners(generator), *tiling.random(self._tiles, generator)]))
            for node, tiling in self._tilings
        ]


def _output_targets(output: TracedOutput, tiles: int) -> _Targets:
    targets = _Targets(tiles)
    for number, node in enumerate(output.nodes):
        shape = node.shape
        if isinstance(shape, list) or 0 in shape:
            targets.all_of(node)
            continue
        whole = Box((0,) * len(shape), shape, (1,) * len(shape))
        everything_of_it = functools.partial(Runs.all, math.prod(shape))
        targets.some(f"output {number}", node, Tiling([whole], shape), everything_of_it)
    return targets


def _step_targets(traced: TracedStep, wanted: Guesses, tiles: int) -> _Targets:
    targets = _Targets(tiles)
    for name, node in traced.nodes.items():
        if name in wanted and node.shape == wanted[name].shape:
            targets.some(name, node, wanted[name].tiling(), wanted[name].runs)
        else:
            # What is not traced before the step is critical, whatever it depends on. What has no fixed shape
            # is needed as a whole.
            targets.all_of(node)
    return targets


class _Pass:
    """Pulls through one tape into guesses of what is needed of its roots. Sinks are pulled at once."""

    def __init__(self, tape: Tape, shapes: Shapes, densely: Counter[str]) -> None:
        self.found: Guesses = {name: Guess(shape) for name, shape in shapes.items()}
        self._sweeper = Sweeper(tape, densely)
        self._targets: _Targets | None = None
        self.grew = self._pull(self._sweeper.sinks(), sampled=False)

    def round(self, targets: _Targets, generator: np.random.Generator, *, impatient: bool) -> bool:
        """Pull a sample of the targets, and what is pulled in full if they are new; whether anything grew."""
        if targets is not self._targets:
            self._targets = targets
            self.grew |= self._pull(targets.full, sampled=impatient)
        grew = self._pull(targets.sample(generator), sampled=True) or self.grew
        self.grew = False
        return grew

    def _pull(self, seeds: list[Seed], *, sampled: bool) -> bool:
        grew = False
        if seeds:
            for name, runs in self._sweeper.needed(seeds).items():
                grew |= self.found[name].add(runs, sampled=sampled)
        return grew


class _Phase:
    """A recorded step, the output after it, and what all outputs from there on need of the state before."""

    def __init__(self, sampling: _Sampling, recorded: Recorded) -> None:
        self._sampling = sampling
        self._traced = recorded.step
        self._through_step = _Pass(recorded.step.tape, sampling.shapes, sampling.densely)
        self._through_output = _Pass(recorded.output.tape, sampling.shapes, sampling.densely)
        self._of_output = _output_targets(recorded.output, sampling.tiles)
        self._of_step: _Targets | None = None
        sampling.populations |= self._of_output.populations

    @property
    def found(self) -> Guesses:
        """What is needed of the state before the step."""
        return self._through_step.found

    def round(self, later: Guesses, *, later_grew: bool) -> bool:
        """One round of tiles: of the output, and of what `later` steps need. Whether anything grew."""
        generator, impatient = self._sampling.generator, self._sampling.growing > _PATIENCE
        output_grew = self._through_output.round(self._of_output, generator, impatient=impatient)
        if self._of_step is None or output_grew or later_grew:
            wanted = _joined(self._through_output.found, later)
            self._of_step = _step_targets(self._traced, wanted, self._sampling.tiles)
            self._sampling.populations |= self._of_step.populations
        return self._through_step.round(self._of_step, generator, impatient=impatient) or output_grew


class _Sampling:
    """Rounds of tiles through the recorded steps, from the last to the first."""

    def __init__(self, shapes: Shapes, tiles: int, generator: np.random.Generator) -> None:
        self.shapes = shapes
        self.tiles = tiles
        self.generator = generator
        self.densely: Counter[str] = Counter()
        self.populations: dict[str, Population] = {}
        self.rounds = 0
        self.growing = 0
        self.confirmations = 0

    def around(self, cycle: Sequence[Recorded]) -> list[Guesses]:
        """What is needed before each of the steps, which follow each other round and round without end."""
        phases = [_Phase(self, each) for each in cycle]
        later_grew, confirming, done = True, False, False
        while not done:
            grew = False
            for number in reversed(range(len(phases))):
                later = phases[(number + 1) % len(phases)].found
                later_grew = phases[number].round(later, later_grew=later_grew)
                grew |= later_grew
            done, confirming = self._count(grew, confirming)
        return [phase.found for phase in phases]

    def before(self, recorded: Recorded, later: Guesses) -> Guesses:
        """What is needed before a step, if `later` is needed of the state after it, and the output."""
        phase = _Phase(self, recorded)
        confirming, done = False, False
        while not done:
            done, confirming = self._count(phase.round(later, later_grew=False), confirming)
        return phase.found

    def _count(self, grew: bool, confirming: bool) -> tuple[bool, bool]:
        """Whether all is done after a round, and whether the next one confirms."""
        self.rounds += 1
        self.growing += grew
        self.confirmations += confirming
        complete = all(population.complete for population in self.populations.values())
        return not grew and (confirming or complete), not grew


def states_of(
    start: State, window: Window, tiles: int, seed: int
) -> tuple[dict[str, Variable], int, Confidence]:
    """Element states of every variable, the number of steps swept, and what they rest on.

    For any number of steps the number swept is that of rounds which found something new.
    """
    shapes = {name: np.shape(value) for name, value in start.items() if is_traceable(value)}
    sampling = _Sampling(shapes, tiles, np.random.default_rng(seed))
    rest = _Rest(window, shapes)
    if window.steps is None:
        cycle = _one_cycle(window)
        needed = functools.reduce(_joined, sampling.around(cycle))
        swept = max(sampling.growing, 1)
        while not rest.settled:
            for number in reversed(range(len(cycle))):
                rest.through(number, cycle[number])
    else:
        needed, swept = _of_given_steps(sampling, window, rest)
    confidence = Confidence(
        tiles,
        seed,
        sampling.rounds,
        max(sampling.confirmations, 1),
        LEVEL,
        sampling.populations,
        dict(sampling.densely),
    )
    return rest.states(start, needed), swept, confidence


def _one_cycle(window: Window) -> list[Recorded]:
    """The steps of a period, from first to last."""
    cycle: dict[int, Recorded] = {}
    for phase, recorded in window.last_to_first():
        if phase in cycle:
            break
        cycle[phase] = recorded
    return [cycle[phase] for phase in sorted(cycle)]


def _of_given_steps(sampling: _Sampling, window: Window, rest: _Rest) -> tuple[Guesses, int]:
    """What is needed before the first of a given number of steps, and how many were swept."""
    needed: Guesses = {}
    by_phase: dict[int, Guesses] = {}
    swept = settled = 0
    for phase, recorded in window.last_to_first():
        needed = sampling.before(recorded, needed)
        rest.through(phase, recorded)
        swept += 1
        settled = settled + 1 if phase in by_phase and _equal(needed, by_phase[phase]) else 0
        by_phase[phase] = needed
        if window.period is None:
            recorded.forget()
        # The next step is recorded while this name still stands for the last one.
        del recorded
        if window.period is not None and settled >= window.period and rest.settled:
            break
    return by_phase[0], swept


# ---- states of what is not critical ----


class _Rest:
    """What is read, and what is kept to the end, by sweeps in full if these have a short form as runs."""

    def __init__(self, window: Window, shapes: Shapes) -> None:
        self._read = _Fold(window, shapes, Sweeper.accessed, with_output=True)
        self._kept = _Fold(window, shapes, Sweeper.carried, with_output=False)
        self._taken: set[str] = set()

    @property
    def settled(self) -> bool:
        """Whether further steps change nothing."""
        return self._read.settled and self._kept.settled

    def through(self, phase: int, recorded: Recorded) -> None:
        """Go back over a step."""
        self._taken |= {name for tape in recorded.tapes() for name in sweep.taken(tape)}
        self._read.through(phase, recorded)
        self._kept.through(phase, recorded)

    def states(self, start: State, critical: Guesses) -> dict[str, Variable]:
        """Element states of all variables."""
        read, kept = self._read.sets(), self._kept.sets()
        variables = {}
        for name, value in start.items():
            array = np.asarray(value)
            states = np.full(array.shape, ElementState.CRITICAL, dtype=np.uint8)
            if name in critical:
                idle = ElementState.INERT if name in self._taken else ElementState.UNUSED
                if read is None or kept is None:
                    # Dead must be proven for every element; without a short proof the weaker claims stand.
                    states[...] = idle
                else:
                    states[...] = ElementState.DEAD
                    _set(states, kept[name], idle)
                    _set(states, read[name], ElementState.INERT)
                critical[name].mark(states)
            variables[name] = variable_of(name, array, states)
        return variables


class _Fold:
    """One sweep on runs, carried backward from step to step, as `recurrence` does with masks."""

    def __init__(
        self,
        window: Window,
        shapes: Shapes,
        pull: Callable[[Sweeper, list[Seed]], Sets],
        *,
        with_output: bool,
    ) -> None:
        self.settled = False
        self._shapes = shapes
        self._is_periodic = window.period is not None
        self._is_endless = window.steps is None
        self._pull = pull
        self._with_output = with_output
        self._before: Sets | None = {}
        self._before_phase: dict[int, Sets] = {}
        self._after_phase: dict[int, Sets] = {}

    def through(self, phase: int, recorded: Recorded) -> None:
        """Carry the sets from the end of a step to its beginning."""
        if self.settled or self._before is None:
            return
        try:
            self._before = self._carried(phase, recorded, self._before)
        except NotSparseError:
            self._before, self.settled = None, True

    def sets(self) -> Sets | None:
        """What was found: at the first step, or at any of a period. None if that has no short form."""
        if self._before is None:
            return None
        if self._is_endless:
            return functools.reduce(_united, self._before_phase.values())
        return self._before_phase[0]

    def _carried(self, phase: int, recorded: Recorded, wanted: Sets) -> Sets:
        if self._with_output:
            nodes = recorded.output.nodes
            of_output = self._pull(
                Sweeper(recorded.output.tape, only_runs=True),
                [(node, everything(node.shape)) for node in nodes],
            )
            wanted = _united(wanted, of_output)
        if self._is_periodic:
            self.settled = phase in self._after_phase and _same_sets(wanted, self._after_phase[phase])
            self._after_phase[phase] = wanted
        if self.settled:
            return self._before_phase[phase]
        before = self._pull(
            Sweeper(recorded.step.tape, only_runs=True), _seeds(recorded.step, wanted, self._shapes)
        )
        self._before_phase[phase] = before
        return before


def _set(states: NDArray[np.uint8], runs: Runs, state: ElementState) -> None:
    runs.mark(states, state)


def _seeds(traced: TracedStep, wanted: Sets, shapes: Shapes) -> list[Seed]:
    seeds: list[Seed] = []
    for name, node in traced.nodes.items():
        known = wanted.get(name)
        if known is None or (known and node.shape != shapes.get(name)):
            seeds.append((node, everything(node.shape)))
        elif known:
            seeds.append((node, known))
    return seeds


def _united(one: Sets, other: Sets) -> Sets:
    return {name: united([one.get(name, Runs.none()), other.get(name, Runs.none())]) for name in one | other}


def _same_sets(one: Sets, other: Sets) -> bool:
    return one.keys() == other.keys() and all(one[name].equals(other[name]) for name in one)
