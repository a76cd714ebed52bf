"""The NAS IS benchmark (integer sort), classes S and W, in functional NumPy.

Each iteration ranks random keys by counting them, after two keys are changed; five ranks are compared with
known ones. Method and reference values are those of the NAS Parallel Benchmarks (Bailey et al., report
RNR-94-007; verification values of NPB 3). The variant is the one of the C version with buckets.

The state is what the benchmark must checkpoint: ``key_array``, the ends ``bucket_ptrs`` of the buckets, the
number ``passed_verification`` of right ranks so far, and the number ``iteration`` of finished iterations. The
arrays hold 32-bit integers, as in C.

An iteration writes ``key_array[iteration]`` and ``key_array[iteration + 10]``, so the structure of `step`
depends on the counter.

`step` and `output` return new arrays and never write into their arguments. They take the array namespace of
``key_array``. May import NumPy, `kernel` and `randlc`. Tests: ``integration/npb/test_is.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from kernel import Array, State, class_named, class_of, namespace_of, repeated
from numpy.typing import NDArray
from randlc import uniform

SEED = 314159265
ITERATIONS = 10


@dataclass(frozen=True)
class ProblemClass:
    """Sizes (as powers of two) and the tested ranks of one benchmark class.

    In iteration n the key at ``test_index[i]`` must have the rank
    ``test_rank[i] + test_drift[i] * (n - test_delay[i])``: the keys changed push all others up or down.
    """

    name: str
    keys_log2: int
    max_key_log2: int
    buckets_log2: int
    test_index: tuple[int, ...]
    test_rank: tuple[int, ...]
    test_drift: tuple[int, ...]
    test_delay: tuple[int, ...] = (0, 0, 0, 0, 0)
    steps: int = ITERATIONS

    @property
    def shape(self) -> tuple[int]:
        """Shape of ``key_array``."""
        return (1 << self.keys_log2,)

    @property
    def max_key(self) -> int:
        """Keys are below this."""
        return 1 << self.max_key_log2

    @property
    def buckets(self) -> int:
        """Length of ``bucket_ptrs``."""
        return 1 << self.buckets_log2

    @property
    def bucket_shift(self) -> int:
        """Bits of a key that do not tell its bucket."""
        return self.max_key_log2 - self.buckets_log2


CLASSES = {
    "S": ProblemClass(
        name="S",
        keys_log2=16,
        max_key_log2=11,
        buckets_log2=9,
        test_index=(48427, 17148, 23627, 62548, 4431),
        test_rank=(0, 18, 346, 64917, 65463),
        test_drift=(1, 1, 1, -1, -1),
    ),
    "W": ProblemClass(
        name="W",
        keys_log2=20,
        max_key_log2=16,
        buckets_log2=10,
        test_index=(357773, 934767, 875723, 898999, 404505),
        test_rank=(1249, 11698, 1039987, 1043896, 1048018),
        test_drift=(1, 1, -1, -1, -1),
        test_delay=(2, 2, 0, 0, 0),
    ),
}


@dataclass(frozen=True)
class Verification:
    """Outcome of the official test: `verified`, the number of right ranks, and of neighbours out of order."""

    verified: bool
    passed: int
    out_of_order: int


# ---- problem set-up (plain NumPy) ----


def problem_class(name: str) -> ProblemClass:
    """The benchmark class called `name` ("S" or "W"); ValueError for any other."""
    return class_named(CLASSES, name, "IS")


def problem_of(key_array: Array) -> ProblemClass:
    """The class whose number of keys `key_array` has; ValueError if there is none."""
    return class_of(CLASSES, "key_array", key_array, "IS")


def initial_state(name: str) -> State:
    """The state before the first step: ``key_array``, ``bucket_ptrs`` (int32), and two counters at 0.

    The benchmark does the first iteration once beforehand, which leaves its two keys and the bucket ends.
    """
    problem = problem_class(name)
    start = {
        "key_array": _random_keys(problem),
        "bucket_ptrs": np.zeros(problem.buckets, dtype=np.int32),
        "passed_verification": 0,
        "iteration": 0,
    }
    return {**step(start), "passed_verification": 0, "iteration": 0}


def _random_keys(problem: ProblemClass) -> NDArray[np.int32]:
    """Each key is the sum of four random numbers, scaled to the range of the keys."""
    numbers = uniform(SEED, 4 * problem.shape[0]).reshape(-1, 4)
    return np.asarray(problem.max_key // 4 * numbers.sum(axis=1)).astype(np.int32)


# ---- the benchmark's public operations ----


def step(state: Mapping[str, Any]) -> State:
    """One iteration: two keys are set, all are ranked, five ranks are tested.

    Takes and returns a dict with ``key_array``, ``bucket_ptrs`` (int32), ``passed_verification`` and
    ``iteration`` (int). Raises ValueError if the run is over.
    """
    xp = namespace_of(state["key_array"])
    problem = problem_of(state["key_array"])
    iteration = state["iteration"] + 1
    if not 0 < iteration <= problem.steps:
        raise ValueError(
            f"iteration is {state['iteration']}: there is no iteration {iteration} of {problem.steps}"
        )
    keys = _with_new_keys(state["key_array"], iteration, problem, xp)
    ranks = xp.cumsum(xp.bincount(keys, minlength=problem.max_key))
    bucket_sizes = xp.bincount(keys >> problem.bucket_shift, minlength=problem.buckets)
    right = _right_ranks(keys, ranks, iteration, problem, xp)
    return {
        "key_array": keys,
        "bucket_ptrs": xp.cumsum(bucket_sizes).astype(np.int32),
        "passed_verification": state["passed_verification"] + right,
        "iteration": iteration,
    }


def run(state: Mapping[str, Any], steps: int) -> State:
    """`steps` iterations from `state`."""
    return repeated(step, state, steps)


def output(state: Mapping[str, Any]) -> dict[str, Array]:
    """What the run is for: ``passed_verification``, and the keys ``sorted``, bucket by bucket."""
    keys = state["key_array"]
    xp = namespace_of(keys)
    problem = problem_of(keys)
    # NumPy sorts short integers in linear time.
    bucket_of_key = (keys >> problem.bucket_shift).astype(np.int16)
    by_bucket = keys[xp.argsort(bucket_of_key, kind="stable")]
    # The bucket of a place is told by the bucket ends, as in C: wrong ends give a wrong order.
    bucket = xp.searchsorted(state["bucket_ptrs"], np.arange(problem.shape[0]), side="right")
    return {
        "passed_verification": state["passed_verification"],
        "sorted": xp.sort(bucket * problem.max_key + by_bucket) % problem.max_key,
    }


def verify(state: Mapping[str, Any]) -> Verification:
    """Whether all ranks tested were right and the keys come out sorted.

    A state that is not at its class's last step never verifies: it lacks tests.
    """
    problem = problem_of(state["key_array"])
    passed = int(state["passed_verification"])
    out_of_order = int((np.diff(output(state)["sorted"]) < 0).sum())
    right = passed == len(problem.test_index) * problem.steps and out_of_order == 0
    return Verification(right and state["iteration"] == problem.steps, passed, out_of_order)


def _with_new_keys(keys: Array, iteration: int, problem: ProblemClass, xp: Any) -> Array:
    """The keys with the two of this iteration in place, one small and one large."""
    small, large = np.array([[iteration], [problem.max_key - iteration]], dtype=np.int32)
    second = iteration + ITERATIONS
    return xp.concatenate([keys[:iteration], small, keys[iteration + 1 : second], large, keys[second + 1 :]])


def _right_ranks(keys: Array, ranks: Array, iteration: int, problem: ProblemClass, xp: Any) -> Array:
    """How many of the tested keys have the known rank: the number of keys below them."""
    tested = keys[np.array(problem.test_index)]
    drift, delay = np.array(problem.test_drift), np.array(problem.test_delay)
    expected = np.array(problem.test_rank) + drift * (iteration - delay)
    # A key of 0 has no rank here; the benchmark leaves it out.
    return xp.sum((tested > 0) & (ranks[tested - 1] == expected))
