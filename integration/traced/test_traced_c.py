"""C programs under the tracer: each byte of their checkpoint files against the states computed by hand.

The reasons are in the programs' header comments. Needs Valgrind, an MPI and an SCR.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from traced_expected import (
    conversion,
    lifetimes,
    openmp,
    packed_ahead,
    posix_calls,
    raw_write,
    stdio_pieces,
    structs,
    two_files,
    unaligned,
)
from traced_harness import Job, prove
from traced_truth import CRITICAL, DEAD, DROPPABLE, UNUSED, Truth, doubles, octets

MakeJob = Callable[..., Job]


@pytest.mark.parametrize(
    "expected",
    [raw_write, stdio_pieces, structs, lifetimes, posix_calls, unaligned],
    ids=lambda f: f.__name__,
)
def test_program(make_job: MakeJob, expected: Callable[..., Truth]) -> None:
    prove(make_job(f"{expected.__name__}.c"), expected)


def test_conversion(make_job: MakeJob) -> None:
    # Without vectors: their narrowing shuffles may be followed, or make the bytes critical.
    prove(make_job("conversion.c", flags=["-fno-tree-vectorize"]), conversion)


def test_ranks_with_two_files_each(make_job: MakeJob) -> None:
    prove(make_job("two_files.c", ranks=2), two_files)


def test_the_restart_decides_what_was_packed_ahead(make_job: MakeJob) -> None:
    prove(make_job("packed_ahead.c"), packed_ahead, least=0)


def test_openmp(make_job: MakeJob) -> None:
    prove(make_job("openmp.c", flags=["-fopenmp"]), openmp)


@pytest.mark.parametrize(
    ("where", "when", "level"),
    [
        ("stack", "inside", "-O2"),
        ("heap", "early", "-O3"),
        ("static", "inside", "-O0"),
        ("static", "early", "-O2"),
    ],
)
def test_pack_loop(make_job: MakeJob, where: str, when: str, level: str) -> None:
    def expected(rank: int, name: str, step: int, restart: bool) -> Truth:
        truth = Truth([("pairs", doubles(18 * 18, 2)), ("step", octets(8))])
        # A static buffer is refilled for the next checkpoint, if there is one. What becomes of a buffer on
        # the stack is chance: some function may even read what is left of it, to save what no one needs.
        after_last = UNUSED if step == 6 else DEAD
        truth["pairs"][:, 1] = {"stack": DROPPABLE | CRITICAL, "heap": DEAD, "static": after_last}[where]
        return truth.read_by_stdio() if restart else truth

    job = make_job("pack_loop.c", flags=[level], arguments=[where, when])
    prove(job, expected, least=0.45)
