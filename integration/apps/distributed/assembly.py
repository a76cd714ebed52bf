"""One map out of those of the ranks: every element of the whole problem as its owner's map has it.

May import NumPy, mpi4py by its communicator, and the analysis. Tests: ``test_distributed.py``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scr_critplugin.analysis import Profile

Owned = Mapping[str, tuple[tuple[slice, ...], tuple[slice, ...]]]
"""By variable: the owned part of the rank's array, and where that stands in the whole problem."""


def print_maps(
    comm: Any, found: Profile, owned: Owned, shapes: Mapping[str, tuple[int, ...]], serial: Profile
) -> None:
    """Print, on rank 0, the states of the whole problem and the serial ones, and the critical ghosts."""
    pieces = comm.gather({name: (owned[name][1], found.map[name].states[owned[name][0]]) for name in owned})
    ghosts = comm.gather(sum(_critical_ghosts(found, name, owned[name][0]) for name in owned))
    if comm.rank != 0:
        return
    whole: dict[str, NDArray[np.int64]] = {name: np.full(shapes[name], -1) for name in owned}
    for of_rank in pieces:
        for name, (where, states) in of_rank.items():
            whole[name][where] = states
    report = {
        "ranks": {name: states.tolist() for name, states in whole.items()},
        "serial": {name: serial.map[name].states.tolist() for name in owned},
        "critical_ghosts": ghosts,
        "uncritical": {name: int(serial.map[name].uncritical.sum()) for name in owned},
        "poison": None if found.poison is None else found.poison.steps,
    }
    print(json.dumps(report))


def _critical_ghosts(found: Profile, name: str, owned: tuple[slice, ...]) -> int:
    ghosts = found.map[name].critical.copy()
    ghosts[owned] = False
    return int(ghosts.sum())
