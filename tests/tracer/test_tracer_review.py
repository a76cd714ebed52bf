"""What a review of the tracer found called dead although a restart needs it. States are by hand.

The program is programs/review_cases.c: a checkpoint of 256 bytes in each case.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PROGRAMS = Path(__file__).resolve().parent / "programs"
TOUCHED = [(100, "c"), (100, "d"), (56, "u")]


@pytest.fixture(scope="module")
def program(compile_program: Callable[..., Path]) -> Path:
    return compile_program(PROGRAMS / "review_cases.c", "-O1", f"-I{PROGRAMS}", "-pthread")


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ("restart_beside_stack_in_heap", TOUCHED),
        ("restart_into_pages_that_move", [(256, "c")]),
    ],
)
def test_restart(
    program: Path, run_traced: Callable[..., Any], case: str, expected: list[tuple[int, str]]
) -> None:
    run_traced(program, case)
    trace = run_traced(program, case).trace()
    assert trace.of("generation")[0][1] == "restart"
    assert trace.file("a", 0).runs() == expected


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ("output_beside_stack_in_heap", TOUCHED),
        ("output_copy_in_pages_that_move", [(256, "c")]),
        ("received_in_part", [(10, "d"), (246, "c")]),
        ("read_by_a_child", [(256, "c")]),
        ("program_started", [(256, "d")]),
        ("window_put_at_once", [(256, "c")]),
        ("window_over_copy", [(256, "c")]),
        ("window_freed_in_checkpoint", [(256, "c")]),
        ("window_overwritten_in_checkpoint", [(256, "c")]),
    ],
)
def test_output(
    program: Path, run_traced: Callable[..., Any], case: str, expected: list[tuple[int, str]]
) -> None:
    trace = run_traced(program, case).trace()
    assert trace.file("a", 0).runs() == expected
    warned = any("forked" in text for (text,) in trace.of("warning"))
    assert warned == (case == "read_by_a_child")
