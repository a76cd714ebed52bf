"""The NAS CG benchmark (conjugate gradient), classes S and W, in functional NumPy.

An inverse power iteration estimates the smallest eigenvalue of a random sparse matrix: each iteration solves
``A z = x`` by 25 steps of the conjugate gradient method and takes the normalised ``z`` as the next ``x``.
Method and reference values are those of the NAS Parallel Benchmarks (Bailey et al., report RNR-94-007;
verification values of NPB 3).

The state is what the benchmark must checkpoint: ``x`` and the number ``it`` of finished iterations. ``x`` has
the layout of the C version, two elements longer than the matrix has rows: ``x[NA + 2]``.

The verified ``zeta`` of an iteration belongs to the ``x`` that it starts from, and is not part of the state.
So a run of N iterations is N - 1 steps, and `output` does the last one.

`step` and `output` return new arrays and never write into their arguments. They take the array namespace of
``x``. May import NumPy, `kernel` and `randlc`. Tests: ``integration/npb/test_cg.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from kernel import Array, State, class_named, class_of, namespace_of, repeated
from numpy.typing import NDArray
from randlc import skipped, uniform

EPSILON = 1e-10
"""Largest relative deviation from the reference zeta that the benchmark accepts."""

SEED = 314159265
CONDITION = 0.1
"""RCOND of the benchmark: smallest weight of the rank-one terms, and the multiple of the identity added."""
CONJUGATE_STEPS = 25


@dataclass(frozen=True)
class ProblemClass:
    """Order of the matrix, nonzeros of a generating vector, shift, iterations and reference value."""

    name: str
    rows: int
    nonzeros: int
    shift: float
    iterations: int
    zeta: float

    @property
    def shape(self) -> tuple[int]:
        """Shape of ``x`` in the C benchmark."""
        return (self.rows + 2,)

    @property
    def steps(self) -> int:
        """Steps of a whole run: its iterations but the last, which `output` does."""
        return self.iterations - 1


CLASSES = {
    "S": ProblemClass("S", rows=1400, nonzeros=7, shift=10.0, iterations=15, zeta=8.5971775078648),
    "W": ProblemClass("W", rows=7000, nonzeros=8, shift=12.0, iterations=15, zeta=10.362595087124),
}


@dataclass(frozen=True)
class Verification:
    """Outcome of the official test: `verified`, and the relative deviation of zeta."""

    verified: bool
    zeta_deviation: float


@dataclass(frozen=True)
class RowPadded:
    """A sparse matrix whose rows are padded to the longest: ``columns`` and ``values`` are [rows, longest].

    Padding has the value 0 and the row's own number as its column. A product is then one gather and one sum,
    which autograd can trace; both arrays are read-only.
    """

    columns: NDArray[np.intp]
    values: NDArray[np.float64]

    def times(self, vector: Array, xp: Any) -> Array:
        """The product with `vector`, one element a row."""
        return xp.einsum("rk,rk->r", self.values, vector[self.columns])


# ---- problem set-up (plain NumPy) ----


def problem_class(name: str) -> ProblemClass:
    """The benchmark class called `name` ("S" or "W"); ValueError for any other."""
    return class_named(CLASSES, name, "CG")


def problem_of(x: Array) -> ProblemClass:
    """The class whose layout `x` has; ValueError if there is none."""
    return class_of(CLASSES, "x", x, "CG")


def initial_state(name: str) -> State:
    """The state before the first step: ``x`` (float64; ones, but zero in its last element), ``it`` = 0."""
    x = np.ones(problem_class(name).shape)
    x[-1] = 0.0
    return {"x": x, "it": 0}


@cache
def matrix_of(name: str) -> RowPadded:
    """The class's matrix: a weighted sum of v v^T over sparse random v, plus a multiple of the identity."""
    problem = problem_class(name)
    columns, values, present = _generating_vectors(problem)
    n = problem.rows
    weights = (CONDITION ** (1.0 / n)) ** np.arange(n)
    entries = (weights[:, None] * values)[:, :, None] * values[:, None, :]
    number = np.arange(n)[:, None, None]
    on_own_diagonal = (columns[:, :, None] == number) & (columns[:, None, :] == number)
    entries = np.where(on_own_diagonal, entries + CONDITION - problem.shift, entries)
    both = present[:, :, None] & present[:, None, :]
    places = (columns[:, :, None] * n + columns[:, None, :])[both]
    unique, inverse = np.unique(places, return_inverse=True)
    row, column = np.divmod(unique, n)
    sums = np.bincount(inverse, weights=entries[both]).astype(np.float64)
    return _row_padded(row, column, sums, n)


def _generating_vectors(
    problem: ProblemClass,
) -> tuple[NDArray[np.intp], NDArray[np.float64], NDArray[np.bool_]]:
    """One sparse vector a row: its columns, its values, and which places are used; [rows, nonzeros + 1].

    Vector i has random elements in random columns, and 0.5 in column i.
    """
    shape = (problem.rows, problem.nonzeros + 1)
    columns, values = np.zeros(shape, dtype=np.intp), np.zeros(shape)
    present = np.zeros(shape, dtype=bool)
    # A power of two: every integer below it comes from the same number of random states.
    range_of_columns = 1 << (problem.rows - 1).bit_length()
    # The benchmark draws one number before it makes the matrix.
    pairs = _random_pairs(skipped(SEED, 1))
    for i in range(problem.rows):
        vector: dict[int, float] = {}
        while len(vector) < problem.nonzeros:
            value, location = next(pairs)
            column = int(range_of_columns * location)
            if column < problem.rows:
                vector.setdefault(column, value)
        vector[i] = 0.5
        columns[i, : len(vector)] = list(vector)
        values[i, : len(vector)] = list(vector.values())
        present[i, : len(vector)] = True
    return columns, values, present


def _random_pairs(seed: int, block: int = 1 << 14) -> Iterator[tuple[float, float]]:
    while True:
        numbers = uniform(seed, block).tolist()
        yield from zip(numbers[::2], numbers[1::2], strict=True)
        seed = skipped(seed, block)


def _row_padded(
    row: NDArray[np.intp], column: NDArray[np.intp], entry: NDArray[np.float64], n: int
) -> RowPadded:
    """The matrix of the entries, which come ordered by row and column."""
    lengths = np.bincount(row, minlength=n)
    place = np.arange(len(row)) - (np.cumsum(lengths) - lengths)[row]
    longest = int(lengths.max())
    columns = np.repeat(np.arange(n)[:, None], longest, axis=1)
    values = np.zeros((n, longest))
    columns[row, place] = column
    values[row, place] = entry
    columns.setflags(write=False)
    values.setflags(write=False)
    return RowPadded(columns, values)


# ---- the benchmark's public operations ----


def step(state: Mapping[str, Any]) -> State:
    """One iteration. Takes and returns a dict with ``x`` (float64, padded) and ``it`` (int)."""
    x = state["x"]
    xp = namespace_of(x)
    problem = problem_of(x)
    z = _solve(x, problem, xp)
    normalised = z * (1.0 / xp.sqrt(xp.sum(z * z)))
    return {"x": xp.concatenate([normalised, x[problem.rows :]]), "it": state["it"] + 1}


def run(state: Mapping[str, Any], steps: int) -> State:
    """`steps` iterations from `state`."""
    return repeated(step, state, steps)


def output(state: Mapping[str, Any]) -> dict[str, Array]:
    """``zeta`` and ``residual`` (the norm of x - A z) of the iteration that starts from `state`."""
    x = state["x"]
    xp = namespace_of(x)
    problem = problem_of(x)
    start = x[: problem.rows]
    z = _solve(x, problem, xp)
    remainder = start - matrix_of(problem.name).times(z, xp)
    return {
        "zeta": problem.shift + 1.0 / xp.sum(start * z),
        "residual": xp.sqrt(xp.sum(remainder * remainder)),
    }


def verify(state: Mapping[str, Any]) -> Verification:
    """Compare zeta of the last iteration with the reference value of the class.

    A state that is not at its class's last step never verifies: the reference belongs to that step.
    """
    problem = problem_of(state["x"])
    deviation = abs(float(output(state)["zeta"]) - problem.zeta) / problem.zeta
    return Verification(deviation <= EPSILON and state["it"] == problem.steps, deviation)


def _solve(x: Array, problem: ProblemClass, xp: Any) -> Array:
    """Conjugate gradient steps for ``A z = x`` from z = 0; `z` without padding."""
    matrix = matrix_of(problem.name)
    # The benchmark copies one element more than the matrix has rows, and never looks at it.
    copied = x[: problem.rows + 1]
    residual = direction = copied[: problem.rows]
    z = np.zeros(problem.rows)
    rho = xp.sum(residual * residual)
    for _ in range(CONJUGATE_STEPS):
        product = matrix.times(direction, xp)
        alpha = rho / xp.sum(direction * product)
        z = z + alpha * direction
        residual = residual - alpha * product
        previous, rho = rho, xp.sum(residual * residual)
        direction = residual + (rho / previous) * direction
    return z
