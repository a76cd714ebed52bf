"""The MG kernel as an ordinary in-place NumPy program: the same state, results and operators as `mg`.

``u`` and ``r`` are written through views of their levels, as the C benchmark does: corrections are added to a
level, ghosts are copied within it, and `step` returns nothing. It shows that `profile` takes such programs as
they are, and what that costs.

``python integration/npb/mg_inplace.py [CLASS ...]`` measures it.

May import NumPy, `mg` and the analysis. Tests: ``integration/npb/test_mg_inplace.py``.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import mg
import numpy as np
from kernel import Array, State
from mg import INSIDE

output = mg.output


def step(state: State) -> None:
    """One V-cycle and the residual after it; changes ``u``, ``r`` (float64, flat) and ``it`` (int)."""
    problem = mg.problem_of(state["u"])
    u, r = _levels(state["u"], problem), _levels(state["r"], problem)
    for fine, coarse in pairwise(r):
        _restrict(fine, coarse)
    u[-1][...] = 0.0
    _smooth(u[-1], r[-1])
    for level in range(len(u) - 2, 0, -1):
        u[level].fill(0.0)
        _interpolate_onto(u[level], u[level + 1])
        _subtract_operator(r[level], u[level], r[level])
        _smooth(u[level], r[level])
    source = mg._right_hand_side(problem.name)
    _interpolate_onto(u[0], u[1])
    _subtract_operator(r[0], u[0], source)
    _smooth(u[0], r[0])
    _subtract_operator(r[0], u[0], source)
    state["it"] += 1


def _levels(flat: Array, problem: mg.ProblemClass) -> list[Array]:
    """Views of all levels as cubes, from fine to coarse."""
    levels, start = [], 0
    for extent in problem.extents:
        levels.append(flat[start : start + extent**3].reshape(extent, extent, extent))
        start += extent**3
    return levels


def _exchange(cube: Array) -> None:
    """Fill the ghosts, periodic in all three directions."""
    for axis in (2, 1, 0):
        line = cube.swapaxes(0, axis)
        line[0] = line[-2]
        line[-1] = line[1]


def _restrict(fine: Array, coarse: Array) -> None:
    """Project the residual `fine` to `coarse` (full weighting)."""
    points = fine.shape[0] - 2
    part = fine[1:, 1:, 1:]
    for axis in range(3):
        before = (slice(None),) * axis
        low, middle, high = (part[(*before, slice(i, points + i, 2))] for i in range(3))
        part = low + high
        part *= 0.5
        part += middle
    np.multiply(part, 0.5, out=coarse[INSIDE])
    _exchange(coarse)


def _interpolate_onto(fine: Array, coarse: Array) -> None:
    """Add the trilinear interpolation of `coarse` to `fine`, ghosts included."""
    for axis in range(3):
        before = (slice(None),) * axis
        low, high = coarse[(*before, slice(None, -1))], coarse[(*before, slice(1, None))]
        shape = list(coarse.shape)
        shape[axis] = 2 * (shape[axis] - 1)
        finer = np.empty(shape)
        finer[(*before, slice(0, None, 2))] = low
        middle = finer[(*before, slice(1, None, 2))]
        np.add(low, high, out=middle)
        middle *= 0.5
        coarse = finer
    fine += coarse


def _subtract_operator(residual: Array, u: Array, source: Array) -> None:
    """``residual = source - A u``; ghosts filled. `source` may be `residual` itself."""
    edges, corners = mg._ring(u)
    found = source[INSIDE] - mg.OPERATOR_CENTRE * u[INSIDE]
    found -= mg.OPERATOR_EDGE * (corners[:, :, 1:-1] + edges[:, :, :-2] + edges[:, :, 2:])
    found -= mg.OPERATOR_CORNER * (corners[:, :, :-2] + corners[:, :, 2:])
    residual[INSIDE] = found
    _exchange(residual)


def _smooth(u: Array, residual: Array) -> None:
    """Add the smoother applied to the residual to `u`; ghosts filled."""
    faces, edges = mg._ring(residual)
    middle = residual[1:-1, 1:-1]
    inside: Any = u[INSIDE]
    inside += mg.SMOOTHER_CENTRE * residual[INSIDE]
    inside += mg.SMOOTHER_FACE * (middle[:, :, :-2] + middle[:, :, 2:] + faces[:, :, 1:-1])
    inside += mg.SMOOTHER_EDGE * (edges[:, :, 1:-1] + faces[:, :, :-2] + faces[:, :, 2:])
    _exchange(u)


# ---- what tracing costs ----


@dataclass(frozen=True)
class Cost:
    """Seconds of the fastest of several runs of one step: plainly and recorded, functional and in place."""

    plain: float
    recorded: float
    plain_in_place: float
    recorded_in_place: float

    @property
    def ratio(self) -> float:
        """Recording the in-place step over recording the functional one."""
        return self.recorded_in_place / self.recorded


def cost(name: str, runs: int = 5) -> Cost:
    """Cost of recording one step of MG of the class `name`, from the state after two steps."""
    from scr_critplugin.analysis.program import Program

    state = mg.run(mg.initial_state(name), 2)
    functional, in_place = Program(mg.step, mg.output), Program(step, output)
    return Cost(
        _fastest(lambda: functional.advance(state), runs),
        _fastest(lambda: functional.trace_step(state), runs),
        _fastest(lambda: in_place.advance(state), runs),
        _fastest(lambda: in_place.trace_step(state), runs),
    )


def _fastest(function: Callable[[], Any], runs: int) -> float:
    found = []
    for _ in range(runs):
        start = time.process_time()
        function()
        found.append(time.process_time() - start)
    return min(found)


def main(names: list[str]) -> None:
    """Print `cost` of the classes `names`, in milliseconds of processor time."""
    print("class   plain  recorded  in place: plain  recorded   ratio of recorded")
    for name in names or ["S"]:
        found = cost(name)
        times = [found.plain, found.recorded, found.plain_in_place, found.recorded_in_place]
        plain, recorded, plain_in_place, recorded_in_place = (1e3 * seconds for seconds in times)
        print(
            f"{name:5} {plain:7.1f} {recorded:9.1f} {plain_in_place:16.1f} {recorded_in_place:9.1f} "
            f"{found.ratio:19.2f}"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
