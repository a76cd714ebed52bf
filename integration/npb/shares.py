"""How much of each kernel's checkpoint is uncritical, by formula: for the classes too large to be run here.

A formula takes a problem class and counts from its extents; layouts come from the kernels themselves. That
it agrees with the profile is tested at the classes that can be run. Extents of the classes A to C are those
of the NAS Parallel Benchmarks 3. Counters (`step`, `istep`, `it`, `kt`, `k`, `iteration` and
`passed_verification`) are critical scalars and left out.

May import `suite` and `survey`. Tests: ``integration/npb/test_survey.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import nan, prod
from typing import Any

from suite import KERNELS
from survey import Count

Counts = dict[str, Count]

CLASS_NAMES = ("S", "W", "A", "B", "C")


def _navier_stokes(problem: Any) -> Counts:
    """BT, SP: the padding, since the error norm takes in the whole grid."""
    elements = prod(problem.shape)
    return {"u": Count(elements, elements - 5 * problem.points**3)}


def _lu(problem: Any) -> Counts:
    """The padding and the edges of the cube, at each point five components of `u` and `rsd`."""
    n = problem.points
    points = prod(problem.shape[:3])
    uncritical = points - n**3 + 12 * (n - 2) + 8
    five, one = Count(5 * points, 5 * uncritical), Count(points, uncritical)
    return {"u": five, "rsd": five, "rho_i": one, "qs": one}


def _mg(problem: Any) -> Counts:
    """All but the finest level; of its residual in addition every cell with an index 0."""
    extent = problem.extents[0]
    (elements,) = problem.shape
    coarse = elements - extent**3
    return {
        "u": Count(elements, coarse),
        "r": Count(elements, coarse + extent**3 - (extent - 1) ** 3),
    }


def _cg(problem: Any) -> Counts:
    """The two elements behind the matrix's rows."""
    (elements,) = problem.shape
    return {"x": Count(elements, elements - problem.rows)}


def _ft(problem: Any) -> Counts:
    """The padding of `y`; of `sums` at the middle the first, and those of the iterations to come."""
    elements, steps = prod(problem.shape), problem.steps
    return {
        "y": Count(elements, elements - prod(problem.points)),
        "sums": Count(steps + 1, 1 + steps - steps // 2),
    }


def _ep(_problem: Any) -> Counts:
    """Everything is added to."""
    return {"sx": Count(1, 0), "sy": Count(1, 0), "q": Count(10, 0)}


def _is(problem: Any) -> Counts:
    """Two keys that the next iteration sets, and the bucket ends that it computes anew."""
    (keys,) = problem.shape
    return {"key_array": Count(keys, 2), "bucket_ptrs": Count(problem.buckets, problem.buckets)}


@dataclass(frozen=True)
class Formula:
    """Counts of one kernel, and the fields in which its larger classes differ from class S."""

    counts: Callable[[Any], Counts]
    larger: Mapping[str, Mapping[str, Any]]


def _each(field: str, a: Any, b: Any, c: Any) -> dict[str, dict[str, Any]]:
    return {"A": {field: a}, "B": {field: b}, "C": {field: c}}


_CUBES = _each("points", 64, 102, 162)

FORMULAS: dict[str, Formula] = {
    "BT": Formula(_navier_stokes, _CUBES),
    "SP": Formula(_navier_stokes, _CUBES),
    "LU": Formula(_lu, _CUBES),
    "MG": Formula(_mg, _each("levels", 8, 8, 9)),
    "CG": Formula(_cg, _each("rows", 14000, 75000, 150000)),
    "FT": Formula(
        _ft,
        {
            "A": {"points": (128, 256, 256), "checksums": (nan,) * 6},
            "B": {"points": (256, 256, 512), "checksums": (nan,) * 20},
            "C": {"points": (512, 512, 512), "checksums": (nan,) * 20},
        },
    ),
    "EP": Formula(_ep, _each("pairs_log2", 28, 30, 32)),
    "IS": Formula(
        _is,
        {
            "A": {"keys_log2": 23, "max_key_log2": 19, "buckets_log2": 10},
            "B": {"keys_log2": 25, "max_key_log2": 21, "buckets_log2": 10},
            "C": {"keys_log2": 27, "max_key_log2": 23, "buckets_log2": 10},
        },
    ),
}


def counts_of(kernel_name: str, class_name: str) -> Counts:
    """Elements and uncritical elements of every variable but the counters."""
    formula = FORMULAS[kernel_name]
    classes = KERNELS[kernel_name].module.CLASSES
    larger = formula.larger.get(class_name)
    problem = classes[class_name] if larger is None else replace(classes["S"], name=class_name, **larger)
    return formula.counts(problem)


def together(counts: Counts) -> Count:
    """All variables as one: their elements have the same size wherever there are several arrays."""
    return Count(
        sum(count.elements for count in counts.values()), sum(count.uncritical for count in counts.values())
    )
