"""C++ and Fortran programs under the tracer: see the programs' header comments for the reasons.

Needs Valgrind, an MPI and an SCR; the Fortran ones gfortran.
"""

from __future__ import annotations

from collections.abc import Callable

from traced_harness import Job, prove
from traced_truth import CRITICAL, DEAD, UNUSED, Truth, doubles, octets, singles

MakeJob = Callable[..., Job]


def vectors(rank: int, name: str, step: int, restart: bool) -> Truth:
    truth = Truth(
        [
            ("step", octets(8)),
            ("time", octets(8)),
            ("residual", octets(8)),
            ("field", doubles(2000)),
            ("rows", doubles(10, 40)),
            ("lazy", doubles(25)),
        ]
    )
    truth["residual"] = DEAD
    truth["field"][::3] = DEAD
    truth["rows"][::9] = DEAD
    truth["rows"][:, ::39] = DEAD
    truth["lazy"] = UNUSED
    if restart:
        # `field` goes past the ifstream's buffer; what is read next fills it, and its first byte is compared
        # with EOF.
        truth["rows"][0, 0, 0] |= CRITICAL
    return truth


def stream(rank: int, name: str, step: int, restart: bool) -> Truth:
    # Fortran's first index runs fastest: the axes are reversed here.
    truth = Truth(
        [
            ("step", octets(8)),
            ("u", doubles(10, 12)),
            ("v", doubles(30, 20)),
            ("c", doubles(40)),
            ("k", singles(5)),
            ("w", doubles(600)),
        ]
    )
    truth["u"][::9] = DEAD
    truth["v"][0] = DEAD
    truth["v"][:, 0] = DEAD
    truth["c"][:20] = DEAD
    truth["k"] = UNUSED
    truth["w"] = DEAD
    return truth


def sequential(rank: int, name: str, step: int, restart: bool) -> Truth:
    records = {
        1: [("step", octets(8))],
        2: [("a", doubles(40, 500))],
        3: [("b", doubles(12, 6)), ("s", singles(30))],
        4: [("z", doubles(25, 2))],
    }
    fields = []
    for number, inside in records.items():
        fields += [(f"marker before {number}", octets(4)), *inside, (f"marker behind {number}", octets(4))]
    truth = Truth(fields)
    truth["a"][0] = DEAD
    truth["b"][:, ::5] = DEAD
    truth["s"][:10] = DEAD
    truth["z"][:, 0] = DEAD
    if restart:
        for number in records:
            truth[f"marker behind {number}"] = DEAD  # libgfortran does not look at it
    return truth


def test_cpp(make_job: MakeJob) -> None:
    prove(make_job("vectors.cpp"), vectors)


def test_fortran_stream(make_job: MakeJob, gfortran: str) -> None:
    prove(make_job("stream.f90"), stream)


def test_fortran_sequential(make_job: MakeJob, gfortran: str) -> None:
    prove(make_job("sequential.f90"), sequential)
