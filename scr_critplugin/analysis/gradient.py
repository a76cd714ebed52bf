"""The gradient engine: how strongly the output responds to each element, at the state that is looked at.

Random cotangents of all floating-point outputs are pulled back through the recorded steps, so one number per
element stands for all outputs (`adjoints`). Magnitudes are reported beside the structural states. They never
decide one, since ``derivative == 0`` at one state is not "uncritical" (DESIGN section 4, rule 3), unless that
is asked for by name (`with_magnitudes`, ``shrink``); and not even then where a derivative is unknown: what
reaches the output through something without a rule, or steers the program, stays critical (rule 2).

Over several ranks the outputs of all of them count, and all run, pull and sweep at the same time.

May import `adjoints` and its tables, `cotangents`, `masks`, `program`, `ranks`, `replay`, `sweep`, `tape` and
the map. Tests: ``tests/test_gradient.py``, ``tests/test_mpi_gradient.py``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from scr_critplugin.analysis import sweep
from scr_critplugin.analysis.adjoints import ADJOINTS, FALLBACKS, Ended, Seed, pull_back
from scr_critplugin.analysis.compositions import COMPOSED, INSTEAD
from scr_critplugin.analysis.cotangents import carries
from scr_critplugin.analysis.masks import Mask, everything
from scr_critplugin.analysis.memory_adjoints import OF_MEMORY
from scr_critplugin.analysis.program import Program, State, TracedOutput, TracedStep
from scr_critplugin.analysis.ranks import current
from scr_critplugin.analysis.replay import last_to_first
from scr_critplugin.analysis.tape import Tape
from scr_critplugin.criticality import ElementState, Variable

ADJOINTS.update(OF_MEMORY | INSTEAD)
FALLBACKS.update(COMPOSED)

DRAWS = 3
"""Random combinations of the outputs: a derivative that one of them cancels is seen by another."""

Masks = dict[str, NDArray[np.bool_]]


@dataclass(frozen=True)
class Gradient:
    """What the gradient engine found.

    Attributes
    ----------
    magnitudes : dict of str to float32 array
        Of each floating-point variable, in its shape: the largest absolute derivative, over the draws, of a
        random combination of the outputs after each of the steps. NaN where there is none.
    zero : dict of str to int
        Structurally critical elements whose magnitude is exactly zero: the output does not respond to them at
        this state. Elements of `unknown` are not counted.
    unknown : dict of str to bool array
        Elements that reach the output through something without a derivative, or steer the program: a
        magnitude of zero says nothing of them.
    without_rule : tuple of str
        Names of the functions at which derivatives ended, on any rank.
    draws, steps, seed : int
        Random cotangents tried, steps pulled through, and what the random generator was started with.
    """

    magnitudes: dict[str, NDArray[np.float32]]
    zero: dict[str, int]
    unknown: dict[str, NDArray[np.bool_]]
    without_rule: tuple[str, ...]
    draws: int
    steps: int
    seed: int

    def to_json_dict(self) -> dict[str, Any]:
        """What a map's provenance says of it."""
        return {
            "draws": self.draws,
            "steps": self.steps,
            "seed": self.seed,
            "without_rule": list(self.without_rule),
            "critical_with_zero_gradient": self.zero,
        }


def gradient(program: Program, start: State, steps: int, *, draws: int = DRAWS, seed: int = 0) -> Gradient:
    """Magnitudes at `start`, over the outputs after each of `steps` steps; `zero` is left to be counted.

    Values are kept of one step at a time, and plain states of few (`replay`).
    """
    ranks = current()
    generators = [np.random.default_rng([seed, draw, ranks.rank]) for draw in range(draws)]
    found: list[dict[str, NDArray[Any]]] = [{} for _ in range(draws)]
    lost = _Lost()
    ended_names: set[str] = set()
    for number, before, _ in last_to_first(program, (start, program.advance(start)), steps):
        traced = program.trace_step(before, number, values=True)
        output = program.trace_output(traced.values, number, values=True)
        ended_by_step, ended_by_output = Ended(), Ended()
        for draw, generator in enumerate(generators):
            wanted = pull_back(output.tape, _cotangents(output, generator), ended_by_output)
            total = {name: wanted[name] + found[draw].get(name, 0) for name in wanted}
            found[draw] = dict(pull_back(traced.tape, _seeds(traced, total), ended_by_step))
        lost.pull(traced, output, ended_by_step, ended_by_output)
        ended_names |= ended_by_step.names | ended_by_output.names
    magnitudes = {
        name: np.maximum.reduce([np.abs(each[name]) for each in found]).reshape(np.shape(start[name]))
        for name in found[0]
    }
    unknown = {name: mask for name, mask in lost.unknown.items() if name in magnitudes}
    return Gradient(
        cast("dict[str, NDArray[np.float32]]", magnitudes),
        {},
        unknown,
        tuple(sorted(set().union(*ranks.allgather(ended_names)))),
        draws,
        steps,
        seed,
    )


def with_magnitudes(
    variables: Mapping[str, Variable], found: Gradient, *, shrink: bool = False
) -> tuple[dict[str, Variable], Gradient]:
    """The variables with their magnitudes, and the gradient with its zeros counted.

    `shrink`: critical elements of magnitude zero become inert, unless their derivative is unknown.
    """
    described, zero, narrow = {}, {}, {}
    for name, variable in variables.items():
        magnitudes = found.magnitudes.get(name)
        if magnitudes is None:
            described[name] = variable
            continue
        silent = variable.critical & (magnitudes == 0)
        if name in found.unknown:
            silent &= ~found.unknown[name]
        states = np.where(silent, ElementState.INERT, variable.states) if shrink else variable.states
        described[name] = Variable(name, states, variable.dtype, variable.order, magnitudes)
        zero[name] = int(silent.sum())
        narrow[name] = cast("NDArray[np.float32]", described[name].magnitudes)
    return described, replace(found, magnitudes=narrow, zero=zero)


def united_gradients(gradients: Sequence[Gradient]) -> Gradient:
    """One for several states: the largest magnitudes, what is unknown at any of them; zeros not counted."""
    first = gradients[0]
    magnitudes = {
        name: np.asarray(np.maximum.reduce([each.magnitudes[name] for each in gradients]))
        for name in first.magnitudes
    }
    unknown = {
        name: np.asarray(np.logical_or.reduce([each.unknown[name] for each in gradients]))
        for name in first.unknown
    }
    names = tuple(sorted({name for each in gradients for name in each.without_rule}))
    return replace(
        first,
        magnitudes=magnitudes,
        unknown=unknown,
        without_rule=names,
        steps=max(each.steps for each in gradients),
    )


def _cotangents(output: TracedOutput, generator: np.random.Generator) -> list[Seed]:
    return [
        (node, _normal(value, generator))
        for node, value in zip(output.nodes, output.traced, strict=True)
        if carries(node)
    ]


def _normal(value: Any, generator: np.random.Generator) -> Any:
    """Random numbers like the value; zeros for what is no floating-point number in a sequence."""
    if isinstance(value, (list, tuple)):
        return [_normal(member, generator) for member in value]
    drawn = np.asarray(generator.standard_normal(np.shape(value)))
    if np.iscomplexobj(value):
        return np.asarray(drawn + 1j * generator.standard_normal(np.shape(value)))
    return drawn if np.asarray(value).dtype.kind == "f" else np.zeros_like(drawn)


def _seeds(traced: TracedStep, wanted: Mapping[str, NDArray[Any]]) -> list[Seed]:
    return [(node, wanted[name]) for name, node in traced.nodes.items() if name in wanted]


# ---- what no derivative tells ----


class _Lost:
    """Elements that something without a derivative lies behind, on the way to the output.

    `needed` are those on which the output depends; of them, `unknown` pass by such a place (or a sink).
    """

    def __init__(self) -> None:
        self.needed: Masks = {}
        self.unknown: Masks = {}

    def pull(self, traced: TracedStep, output: TracedOutput, by_step: Ended, by_output: Ended) -> None:
        """Go back by one step, after which stands the `output`."""
        all_of_it = [(node, everything(node.shape)) for node in output.nodes]
        needed, unknown = _pulled(output.tape, all_of_it, [], by_output)
        # What the state holds besides arrays is always needed.
        self.needed = _either(needed, self.needed)
        self.unknown = _either(unknown, self.unknown)
        self.needed, self.unknown = _pulled(
            traced.tape, _mask_seeds(traced, self.needed), _mask_seeds(traced, self.unknown), by_step
        )


def _pulled(
    tape: Tape, needed: list[sweep.Seed], unknown: list[sweep.Seed], ended: Ended
) -> tuple[Masks, Masks]:
    watched: dict[int, Mask | None] = dict.fromkeys(ended.positions)
    roots = sweep.needed(tape, needed, watched)
    behind = [(tape.nodes[position], mask) for position, mask in watched.items() if mask is not None]
    return roots, sweep.needed(tape, [*unknown, *behind])


def _mask_seeds(traced: TracedStep, wanted: Masks) -> list[sweep.Seed]:
    return [(node, wanted[name]) for name, node in traced.nodes.items() if name in wanted]


def _either(one: Masks, other: Masks) -> Masks:
    return {name: mask | other[name] if name in other else mask for name, mask in one.items()}
