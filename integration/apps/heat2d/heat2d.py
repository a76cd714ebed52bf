"""A heat equation in two dimensions as one writes it with NumPy: in place, with ghost cells and a work array.

``setup()`` is what ``scr_crit profile`` takes. Every hundredth step the plate is heated by ``source``.

May import NumPy. Tests: ``integration/apps/heat2d/test_heat2d.py``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

ROWS, COLUMNS = 48, 64
DIFFUSIVITY = 0.2
HEATED_EVERY = 100

State = dict[str, Any]


def exchange(u: Any) -> None:
    """Fill the ghost cells: periodic in both directions."""
    u[0], u[-1] = u[-2], u[1]
    u[:, 0], u[:, -1] = u[:, -2], u[:, 1]


def step(state: State) -> None:
    """One step; changes the arrays of `state`."""
    u, work = state["u"], state["work"]
    exchange(u)
    work[1:-1, 1:-1] = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4.0 * u[1:-1, 1:-1]
    u[1:-1, 1:-1] += DIFFUSIVITY * work[1:-1, 1:-1]
    if state["step"] % HEATED_EVERY == 0:
        u[1:-1, 1:-1] += state["source"][1:-1, 1:-1]
    state["residual"][:] = np.abs(work[1:-1, 1:-1]).max()
    state["step"] += 1


def output(state: State) -> Any:
    """What the run is for: the field without its ghosts."""
    return state["u"][1:-1, 1:-1]


def setup() -> tuple[Any, State, Any]:
    """The program, at its first step."""
    generator = np.random.default_rng(7)
    shape = (ROWS + 2, COLUMNS + 2)
    state = {
        "u": generator.random(shape),
        "work": np.zeros(shape),
        "source": generator.random(shape),
        "residual": np.zeros(1),
        "step": 0,
    }
    return step, state, output
