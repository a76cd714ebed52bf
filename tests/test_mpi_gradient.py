"""The gradient engine over several ranks: cotangents cross with the messages, and derivatives end for all.

The programs are in ``mpi_adjoints.py`` and ``mpi_gradient.py``, started under a real mpiexec.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

RANKS = 3

# ---- every operation ----


@pytest.mark.parametrize("ranks", [2, 3])
def test_cotangents_agree_with_finite_differences(run_ranks: Any, ranks: int) -> None:
    (found,) = run_ranks(ranks, "mpi_adjoints.py")
    assert len(found) == 21
    for name, (pulled, slope) in found.items():
        assert len(pulled) == ranks, "mpi4py belongs to another MPI than mpiexec"
        np.testing.assert_allclose(pulled, slope, rtol=1e-6, atol=1e-6, err_msg=name)
        assert np.any(pulled), name


# ---- decomposed programs ----


@pytest.mark.parametrize(
    ("ranks", "program", "kind", "steps"),
    [
        (2, "stencil", "functional", 3),
        (4, "stencil", "in_place", 3),
        (3, "stencil", "in_place", 0),
        (2, "cg", "buffers", 2),
        (3, "cg", "objects", 2),
    ],
)
def test_magnitudes_are_those_of_the_serial_program(
    run_ranks: Any, ranks: int, program: str, kind: str, steps: int
) -> None:
    """With the same cotangents: exactly the same zeros, and otherwise the same but for rounding."""
    (found,) = run_ranks(ranks, "mpi_gradient.py", program, kind, str(steps))
    assert found["without_rule"] == []
    assert found["ghosts"] == 0
    for name, serial in found["serial"].items():
        magnitudes, expected = np.array(found["ranks"][name]), np.array(serial)
        np.testing.assert_array_equal(magnitudes == 0, expected == 0, err_msg=name)
        np.testing.assert_allclose(magnitudes, expected, rtol=1e-5, err_msg=name)
    assert any(np.any(serial) for serial in found["serial"].values())


# ---- where derivatives end, and where they do not ----


@pytest.fixture(scope="session")
def found(run_ranks: Any) -> dict[str, list[list[dict[str, Any]]]]:
    """By case, what each rank found in its profiles."""
    (results,) = run_ranks(RANKS, "mpi_gradient.py", "cases")
    return dict(results)


ENDS = {
    "largest_and_where": "reduction MAXLOC",
    "function_to_one_rank": "reduction <lambda>",
    "logical": "reduction LOR",
    "product_with_a_zero": "reduction PROD",
}


@pytest.mark.parametrize("name", ENDS)
def test_reductions_without_a_derivative_end_it_on_all_ranks(found: Any, name: str) -> None:
    """On ranks that have no result of the reduction as well; the element beside it is not touched."""
    for result, _ in found[name]:
        assert ENDS[name] in result["without_rule"]
        assert result["magnitudes"] == [0, 0]
        assert result["unknown"] == [True, False]
        assert result["critical"] == [True, False]
        assert result["zero"] == 0


def test_derivative_that_ends_on_another_rank_is_unknown(found: Any) -> None:
    results = [result for result, _ in found["cast_by_the_receiver"]]
    assert [result["unknown"] for result in results] == [[True, False], [False, False], [False, False]]
    assert [result["critical"] for result in results] == [[True, False], [False, False], [False, False]]
    assert [result["without_rule"] for result in results] == [["floor_divide"]] * RANKS


def test_ranks_without_an_output_wait_for_nobody(found: Any) -> None:
    magnitudes = [result["magnitudes"] for result, _ in found["only_one_rank_has_an_output"]]
    assert magnitudes[0][0] > 0
    assert magnitudes[1:] == [[0, 0]] * (RANKS - 1)


def test_zeros_beyond_a_message_are_counted_and_poison_has_the_last_word(found: Any) -> None:
    results = [result for result, _ in found["sent_and_multiplied_by_zero"]]
    assert [result["zero"] for result in results] == [1, 0, 0]
    assert [result["critical"][0] for result in results] == [False, True, True]
    # NaN times zero is NaN, on the rank that the element was sent to.
    assert [result["critical"][0] for (result,) in found["poisoned"]] == [True] * RANKS


def test_what_nobody_needs_of_a_message_gets_no_cotangent(found: Any) -> None:
    """Zero would be one, and zero times the slope of a root at zero is NaN."""
    for result, _ in found["unused_with_an_infinite_slope"]:
        assert result["magnitudes"][0] > 0
        assert result["magnitudes"][1] == 0


def test_integers_that_travel_end_nothing(found: Any) -> None:
    for result, _ in found["integers_too"]:
        assert result["without_rule"] == []
        assert result["magnitudes"][0] > 0


def test_ranks_draw_differently_and_always_the_same(found: Any) -> None:
    assert len({result["magnitudes"][0] for result, _ in found["own_output"]}) == RANKS
    for ranks in found.values():
        assert all(first == second for first, *rest in ranks for second in rest)
