"""Programs that fail, or are profiled wrongly, over several ranks; run by test_mpi_profile.py under mpiexec.

Prints one JSON object a rank, gathered on rank 0: the type and text of what was raised, or what was found.
"""

from __future__ import annotations

import contextlib
import json
import pickle
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from autograd.tracer import getval
from mpi4py import MPI as RAW

from scr_critplugin import mpi as MPI  # noqa: N812
from scr_critplugin.analysis import profile
from scr_critplugin.errors import ProfileError

COMM = MPI.COMM_WORLD
LAST = COMM.size - 1
LEFT, RIGHT = (COMM.rank - 1) % COMM.size, (COMM.rank + 1) % COMM.size
SCENARIOS: dict[str, Callable[[], Any]] = {}


def scenario(function: Callable[[], Any]) -> Callable[[], Any]:
    SCENARIOS[function.__name__] = function
    return function


def unchanged(state: dict[str, Any]) -> dict[str, Any]:
    return dict(state)


def profile_output(function: Callable[[Any], Any], **options: Any) -> Any:
    x = np.arange(1.0, 5.0) + COMM.rank
    return profile(unchanged, {"x": x}, lambda state: function(state["x"]), **{"comm": COMM.raw, **options})


@scenario
def program_raises_on_one_rank() -> Any:
    def step(state: dict[str, Any]) -> dict[str, Any]:
        if COMM.rank == LAST:
            raise ZeroDivisionError("no such cell")
        # The others wait for a message that never comes.
        return {"x": COMM.sendrecv(state["x"], RIGHT, source=LEFT)}

    return profile(step, {"x": np.ones(2)}, lambda state: state["x"], comm=COMM.raw)


@scenario
def trace_fails_on_one_rank_before_a_collective() -> Any:
    def output(x: Any) -> Any:
        if COMM.rank == 0:
            pickle.dumps(x)
        return COMM.allreduce(x[0])

    return profile_output(output)


@scenario
def analysis_fails_on_one_rank() -> Any:
    calls = []

    def step(state: dict[str, Any]) -> dict[str, Any]:
        calls.append(1)
        # Not what the plain run computed, on one rank.
        return {"x": state["x"] + (len(calls) if COMM.rank == LAST else 0)}

    return profile(step, {"x": np.ones(2)}, lambda state: COMM.allreduce(state["x"]), comm=COMM.raw)


@scenario
def program_ends_itself_on_one_rank() -> Any:
    return profile_output(lambda x: COMM.allreduce(x[0] if COMM.rank else sys.exit(3)))


@scenario
def message_is_not_received() -> Any:
    return profile_output(lambda x: COMM.send(x[0], RIGHT) or x[1])


@scenario
def message_crosses_steps() -> Any:
    waiting: list[Any] = []

    def step(state: dict[str, Any]) -> dict[str, Any]:
        waiting.append(COMM.irecv(source=LEFT))
        COMM.isend(state["x"], RIGHT)
        return {"x": waiting.pop(0).wait() if len(waiting) > 1 else state["x"]}

    return profile(step, {"x": np.ones(2)}, lambda state: state["x"], comm=COMM.raw)


@scenario
def no_communicator_is_given() -> Any:
    return profile_output(lambda x: COMM.allreduce(x[0]), comm=None)


@scenario
def communicator_is_too_small() -> Any:
    half = COMM.raw.Split(COMM.rank % 2)
    return profile_output(lambda x: COMM.allreduce(x[0]), comm=half)


@scenario
def options_differ() -> Any:
    return profile_output(lambda x: x, steps=1 + (COMM.rank == LAST))


@scenario
def state_is_wrong_on_one_rank() -> Any:
    x: Any = np.ones(2) if COMM.rank != LAST else object()
    return profile(unchanged, {"x": x}, lambda state: COMM.allreduce(state["x"]), comm=COMM.raw)


@scenario
def traced_values_go_by_plain_mpi4py() -> Any:
    return profile_output(lambda x: RAW.COMM_WORLD.allgather(x[:2]))


@scenario
def method_without_a_rule() -> Any:
    return profile_output(lambda x: COMM.scan(x[0]))


@scenario
def probing() -> Any:
    return profile_output(lambda x: x * COMM.iprobe(source=LEFT))


@scenario
def message_is_too_long() -> Any:
    def output(x: Any) -> Any:
        arrived = np.empty(2)
        COMM.Sendrecv(x, RIGHT, 0, arrived, LEFT, 0)
        return arrived

    return profile_output(output)


@scenario
def buffer_is_not_contiguous() -> Any:
    return profile_output(lambda x: COMM.Send(x[::2], RIGHT))


@scenario
def poison_shows_on_one_rank() -> Any:
    hidden = {"mean": 0.0}

    def output(x: Any) -> Any:
        # Only where it is not traced: no rule can see that the output depends on x[3].
        if COMM.rank == LAST and type(x).__name__ == "ndarray":
            hidden["mean"] = float(x[3])
        total = COMM.allreduce(x[0])
        return [total * 1.0, hidden["mean"]]

    return profile_output(output)


@scenario
def poison_raises_on_one_rank_before_a_collective() -> Any:
    def output(x: Any) -> Any:
        # Out of the tracer's sight; the other ranks wait in the reduction.
        if COMM.rank == LAST and not np.isfinite(getval(x)[3]):
            raise ValueError("odd")
        return COMM.allreduce(x[0])

    return profile_output(output)


@scenario
def structure_changes_on_one_rank() -> Any:
    def step(state: dict[str, Any]) -> dict[str, Any]:
        x = COMM.sendrecv(state["x"], RIGHT, source=LEFT)
        place = int(state["it"]) % 3 if COMM.rank == LAST else 0
        return {"x": x + x[place], "it": state["it"] + 1}

    return profile(step, {"x": np.ones(3), "it": 0}, lambda state: state["x"], comm=COMM.raw)


@scenario
def branch_on_what_arrived() -> Any:
    def output(x: Any) -> Any:
        arrived = COMM.sendrecv(x[2], RIGHT, source=LEFT)
        return 1.0 if arrived > 0 else 2.0

    return profile_output(output)


@scenario
def arrives_in_a_buffer_outside_the_state() -> Any:
    outside = np.empty(2)

    def output(x: Any) -> Any:
        COMM.Sendrecv(x[1:3], RIGHT, 0, outside, LEFT, 0)
        return outside.sum()

    return profile_output(output)


@scenario
def only_one_rank_goes_on_for_longer() -> Any:
    """A chain: what a rank needs of its neighbour shows only after as many steps as ranks between them."""

    def step(state: dict[str, Any]) -> dict[str, Any]:
        x = state["x"]
        arrived = COMM.sendrecv(x[0], RIGHT, source=LEFT)
        return {"x": np.array([arrived, x[1]])}

    return profile(
        step,
        {"x": np.ones(2)},
        lambda state: state["x"][0] if COMM.rank == 0 else None,
        comm=COMM.raw,
    )


@scenario
def goes_on_after_a_failure() -> Any:
    for _ in range(2):
        with contextlib.suppress(ProfileError, ZeroDivisionError):
            program_raises_on_one_rank()
    return profile_output(lambda x: COMM.allreduce(x[1]))


def main() -> None:
    for name in sys.argv[1:] or SCENARIOS:
        try:
            found = SCENARIOS[name]()
            result = {
                "critical": {key: v.critical.astype(int).tolist() for key, v in found.map.items()},
                "sinks": sorted({f"{sink.kind} {sink.file.rsplit('/')[-1]}" for sink in found.sinks}),
                "steps": found.steps_swept,
            }
        except BaseException as error:
            result = {
                "raised": type(error).__name__,
                "text": str(error),
                "rank": getattr(error, "rank", None),
            }
        gathered = COMM.raw.gather(result)
        if COMM.rank == 0:
            print(json.dumps({"scenario": name, "ranks": gathered}), flush=True)


if __name__ == "__main__":
    main()
