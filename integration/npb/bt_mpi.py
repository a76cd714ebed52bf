"""NAS BT under MPI, saved and restarted through `scr_critplugin.scr`.

Each rank runs a replica of the whole problem and writes a checkpoint of its own: this program is about
checkpoints, and does not distribute the grid. A checkpoint is the dataset ``bt.STEP`` with one file per rank,
``bt.STEP/bt.RANK``: the step as int64, then ``u`` as float64 in C order with its padding, little-endian.

    mpiexec -n 4 python bt_mpi.py --class S --every 10 --die-at 35     killed after step 35
    mpiexec -n 4 python bt_mpi.py --class S --every 10                 restarts from bt.30, verifies

Ends with status 0 if all ranks end with the same bits and, at the class's last step, verify.
Tests: ``integration/npb/test_bt_mpi.py``.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import signal
import sys
from pathlib import Path
from typing import Any

import bt
import numpy as np
from mpi4py import MPI

from scr_critplugin import scr

State = dict[str, Any]

COMM = MPI.COMM_WORLD
HEADER = np.dtype("<i8")
ELEMENT = np.dtype("<f8")


def main() -> int:
    """Run, from the newest checkpoint if there is one; the exit status."""
    options = parse_options()
    scr.init()
    try:
        state = restart(options.problem) or bt.initial_state(options.problem)
        state = advance(state, options)
        return report(state)
    finally:
        scr.finalize()


def parse_options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="NAS BT, checkpointed through SCR by each rank.")
    parser.add_argument(
        "--class", dest="problem", choices=sorted(bt.CLASSES), default="S", help="benchmark class"
    )
    parser.add_argument("--steps", type=positive, help="last step (default: the class's)")
    parser.add_argument(
        "--every", type=positive, help="steps between checkpoints (default: when SCR asks for one)"
    )
    parser.add_argument("--die-at", type=positive, metavar="STEP", help="rank 0 kills itself after this step")
    options = parser.parse_args()
    if options.steps is None:
        options.steps = bt.CLASSES[options.problem].steps
    return options


def positive(text: str) -> int:
    """An integer of at least 1."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"expected at least 1, got {value}")
    return value


def advance(state: State, options: argparse.Namespace) -> State:
    """Step to the end, with checkpoints on the way."""
    while state["step"] < options.steps:
        state = bt.step(state)
        if is_checkpoint_due(state["step"], options.every):
            checkpoint(state)
            if scr.should_exit():
                say(f"SCR asks to exit after step {state['step']}")
                break
        if state["step"] == options.die_at and COMM.rank == 0:
            sys.stdout.flush()
            os.kill(os.getpid(), signal.SIGKILL)
    return state


def is_checkpoint_due(step: int, every: int | None) -> bool:
    """True every so many steps, or when SCR asks for a checkpoint."""
    return scr.need_checkpoint() if every is None else step % every == 0


# ---- checkpoints ----


def file_name(dataset: str) -> str:
    """Name of the file of this rank in a dataset."""
    return f"{dataset}/bt.{COMM.rank}"


def checkpoint(state: State) -> None:
    """Write the dataset ``bt.STEP``."""
    dataset = f"bt.{state['step']}"
    scr.start_output(dataset, scr.FLAG_CHECKPOINT)
    try:
        write(Path(scr.route_file(file_name(dataset))), state)
        written = True
    except OSError as error:
        complain(f"cannot write {dataset}: {error}")
        written = False
    if not scr.complete_output(written):
        say(f"checkpoint {dataset} failed")


def restart(problem: str) -> State | None:
    """The state of the newest checkpoint that all ranks can read; None if there is none."""
    while scr.have_restart():
        dataset = scr.start_restart()
        try:
            state = read(Path(scr.route_file(file_name(dataset))), problem)
        except (OSError, ValueError, scr.ScrError) as error:
            complain(f"cannot restart from {dataset}: {error}")
            state = None
        if scr.complete_restart(state is not None) and state is not None:
            say(f"restarted from {dataset} step {state['step']}")
            return state
    say("fresh start")
    return None


def write(path: Path, state: State) -> None:
    """Write one rank's file."""
    with path.open("wb") as file:
        file.write(np.array(state["step"], dtype=HEADER).tobytes())
        file.write(np.ascontiguousarray(state["u"], dtype=ELEMENT).tobytes())


def read(path: Path, problem: str) -> State:
    """Read one rank's file; ValueError if it does not have the size of the class."""
    shape = bt.problem_class(problem).shape
    expected = HEADER.itemsize + ELEMENT.itemsize * int(np.prod(shape))
    content = path.read_bytes()
    if len(content) != expected:
        raise ValueError(f"{path} has {len(content)} bytes; a checkpoint of class {problem} has {expected}")
    step = np.frombuffer(content, HEADER, count=1)[0]
    u = np.frombuffer(content, ELEMENT, offset=HEADER.itemsize).reshape(shape)
    return {"step": int(step), "u": u.astype(np.float64)}


# ---- the report ----


def report(state: State) -> int:
    """Print norms, verification and digest; 0 if all is well."""
    for name, values in bt.output(state).items():
        say(f"{name} " + " ".join(f"{value:.16e}" for value in values))
    digests = set(COMM.allgather(digest(state)))
    say(f"digest {min(digests)} steps {state['step']}")
    if len(digests) > 1:
        say(f"ranks disagree: {len(digests)} different digests")
        return 1
    problem = bt.problem_of(state["u"])
    if state["step"] != problem.steps:
        say(f"not verified: the reference of class {problem.name} is for {problem.steps} steps")
        return 0
    verified = bt.verify(state).verified
    say("Verification Successful" if verified else "Verification failed")
    return 0 if verified else 1


def digest(state: State) -> str:
    """Hash of the grid without its padding, and of the norms, bit by bit."""
    n = bt.problem_of(state["u"]).points
    grid = np.ascontiguousarray(state["u"][:, :n, :n, :])
    content = grid.tobytes() + b"".join(norms.tobytes() for norms in bt.output(state).values())
    return hashlib.blake2b(content, digest_size=8).hexdigest()


def say(text: str) -> None:
    """Print on rank 0."""
    if COMM.rank == 0:
        print(text, flush=True)


def complain(text: str) -> None:
    """Print on any rank, saying which."""
    print(f"rank {COMM.rank}: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
