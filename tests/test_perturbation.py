"""Elements changed one at a time: against brute force, against the map, and on the NAS kernels BT and IS."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import autograd.numpy as anp
import bt
import is_
import numpy as np
import pytest
from autograd.tracer import getval
from hypothesis import given, settings
from hypothesis import strategies as st

from scr_critplugin.analysis import PerturbationReport, Profile, profile, trials
from scr_critplugin.analysis.bits import digest_of
from scr_critplugin.analysis.perturbation import SAMPLES, perturb, united
from scr_critplugin.analysis.program import Program
from scr_critplugin.analysis.replacements import replaced
from scr_critplugin.criticality import ElementState
from scr_critplugin.errors import ProfileError

X = np.arange(1.0, 11.0)
ALL = 1000


def unchanged(state: dict[str, Any]) -> dict[str, Any]:
    return dict(state)


def report_of(found: Profile) -> PerturbationReport:
    assert found.perturbation is not None
    return found.perturbation


def changed(report: PerturbationReport, name: str = "x") -> set[int]:
    """The sampled elements that changed an output."""
    variable = report.variables[name]
    return set(variable.indices[variable.changed].tolist())


# ---- what an element is replaced by ----

VALUES: list[Any] = [
    *(np.arange(6.0).reshape(2, 3), np.asfortranarray(np.ones((2, 3), ">f4")), np.zeros(4, "f2"), X * 1j),
    *(np.ones(3, np.longdouble), np.array([np.nan, np.inf, -0.0]), np.array(2.0)),
    *(
        np.arange(4, dtype="i1"),
        np.array([0, 2**64 - 1], "u8"),
        np.array([7], ">i4"),
        np.array([True, False]),
    ),
    *(np.array(["ab", "c"]), np.array([b"x"]), np.array(["2020", "NaT"], "M8[D]"), np.zeros(2, "f8,i4")),
    *(1.5, 2 - 1j, 3, 10**40, False, "ab", b"x", np.float32(0), np.int16(-1), np.bool_(1)),
    np.datetime64("2020-01-01"),
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_replacements_change_one_element_and_nothing_else(value: Any) -> None:
    for place in range(np.size(value)):
        others = list(replaced(value, place, np.random.default_rng(0)))
        assert others
        index = np.unravel_index(place, np.shape(value))
        for other in others:
            assert type(other) is type(value)
            assert digest_of(other) != digest_of(value)
            if isinstance(value, np.ndarray):
                assert (other.dtype, other.shape) == (value.dtype, value.shape)
                same = other.copy()
                same[index] = value[index]
                assert digest_of(same) == digest_of(value)


def test_replacements_by_type() -> None:
    stream = np.random.default_rng(0)
    of_two = [float(other[1]) for other in replaced(np.array([8.0, 2.0]), 1, stream)]
    assert of_two[:4] == [2.02, 10.0, -2.0, 1e34]
    assert len(of_two) == 5
    of_three = [int(other) for other in replaced(np.int64(3), 0, stream)]
    assert of_three[0] == 4
    assert [(other ^ 3).bit_count() for other in of_three[1:4]] == [1, 1, 1]
    assert list(replaced(True, 0, stream)) == [False]
    # The imaginary part alone, too: an output may hold no more than that.
    assert {(other.real == 2, other.imag == 0) for other in replaced(2 + 0j, 0, stream)} >= {
        (True, False),
        (False, True),
    }
    # Sizes and counters stay within what can be allocated and counted.
    assert all(abs(other) < 2**16 for other in replaced(1000, 0, stream))


# ---- every element of small programs ----


def test_all_elements_against_truth() -> None:
    state = {
        "x": X.reshape(2, 5),
        "n": np.array([3, 0, 1, 9]),
        "flags": np.array([True, False, False]),
        "z": X[:3] * 1j,
        "weight": 2.0,
        "label": "a",
        "it": 4,
        "none": np.zeros((0, 2)),
    }

    def output(s: dict[str, Any]) -> Any:
        chosen = anp.where(s["flags"][:1], s["x"][0, :2], s["x"][1, 3])
        return [chosen * s["weight"], anp.real(s["z"])[1], s["n"][2], s["label"] * 2, s["it"] > 3]

    program = Program(unchanged, output)
    report = perturb(program, state, 1, uncritical={}, samples=ALL)
    assert report.sampled == 10 + 4 + 3 + 3 + 1 + 1 + 1
    # flags[0] is True: x[1, 3] is not chosen, though the output depends on it.
    assert {name: changed(report, name) for name in state} == {
        "x": {0, 1},
        "n": {2},
        "flags": {0},
        "z": {1},
        "weight": {0},
        "label": {0},
        "it": {0},
        "none": set(),
    }
    assert report.contradictions == {}
    assert report.insensitive == pytest.approx(15 / 23)


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 7)), max_size=5),
    st.integers(1, 3),
    st.sampled_from([np.float64, np.float32, np.int32, np.complex128, np.int8]),
)
def test_any_set_of_elements_is_told_exactly(
    read: list[tuple[str, int]], steps: int, dtype: type[np.generic]
) -> None:
    """The step turns `a` by one, so that what is read of it lies further on."""

    def step(state: dict[str, Any]) -> dict[str, Any]:
        return {"a": anp.concatenate([state["a"][1:], state["a"][:1]]), "b": state["b"]}

    def output(state: dict[str, Any]) -> Any:
        return [state[name][place] for name, place in read]

    start = {name: np.arange(1, 9).astype(dtype) for name in "ab"}
    found = profile(step, start, output, steps=steps, engine="perturbation")
    truth = {
        "a": {(place + n) % 8 for name, place in read if name == "a" for n in range(1, steps + 1)},
        "b": {place for name, place in read if name == "b"},
    }
    for name in "ab":
        assert changed(report_of(found), name) == truth[name]
        assert set(np.flatnonzero(found.map[name].critical)) == truth[name]
    assert report_of(found).insensitive == 0.0


# ---- the cross-check ----


def test_an_element_that_the_map_missed_becomes_critical() -> None:
    def output(state: dict[str, Any]) -> Any:
        return [state["x"][0], getval(state["x"])[7]]

    found = profile(unchanged, {"x": X}, output, engine="perturbation", validate=None)
    report = report_of(found)
    assert np.flatnonzero(report.contradictions["x"]).tolist() == [7]
    assert np.flatnonzero(found.map["x"].critical).tolist() == [0, 7]
    assert found.map["x"].states[7] == ElementState.CRITICAL
    assert report.difference == "with another value in x[7], output[1] differs after step 1"
    assert "1 of x" in str(report) and report.difference in str(report)
    stored = found.map.provenance
    assert stored["engine"] == "perturbation"
    assert stored["perturbation"] == json.loads(json.dumps(report.to_json_dict()))
    assert stored["perturbation"]["variables"]["x"] == {
        "sampled": 10,
        "sampled_uncritical": 9,
        "changed": 2,
        "contradictions": 1,
    }
    # Poison comes after it, and finds nothing more.
    both = profile(unchanged, {"x": X}, output, engine="perturbation")
    assert both.poison is not None
    assert (both.poison.outcome, both.poison.elements) == ("identical", {"x": 8})


def test_accidental_zeros_are_insensitive_and_no_contradiction() -> None:
    def output(state: dict[str, Any]) -> Any:
        x = state["x"]
        return [x[0] * 0.0 + x[1], anp.maximum(x[2] * 0.0 - 1.0, 0.0)]

    found = profile(unchanged, {"x": np.arange(1.0, 5.0)}, output, engine="perturbation")
    report = report_of(found)
    # Even x[0] * 0.0 shows where the sign turns: only large noise could be infinite.
    assert {1} <= changed(report) <= {0, 1, 2}
    assert set(np.flatnonzero(found.map["x"].critical)) == {0, 1, 2}
    assert report.contradictions == {}
    assert str(report).startswith("4 elements changed one at a time")
    assert "no uncritical one changed an output" in str(report)


def test_several_checks_as_one() -> None:
    program = Program(unchanged, lambda state: [state["x"][0], getval(state["x"])[state["it"]]])
    mask = {"x": np.arange(10) > 0}
    reports = [
        perturb(program, {"x": X, "it": it}, steps, uncritical=mask, samples=samples)
        for it, steps, samples in ((3, 1, ALL), (8, 2, ALL), (3, 1, 4))
    ]
    together = united(reports)
    assert together.sampled == 11
    assert changed(together) == {0, 3, 8}
    assert np.flatnonzero(together.contradictions["x"]).tolist() == [3, 8]
    assert (together.steps, together.runs) == (2, sum(report.runs for report in reports))
    assert together.difference == reports[0].difference
    assert reports[2].sampled == 5


def test_with_other_engines_there_is_none() -> None:
    assert profile(unchanged, {"x": X}, lambda s: s["x"]).perturbation is None


# ---- sampling ----


def masks_of(uncritical: int) -> dict[str, np.ndarray]:
    mask = np.zeros((20, 50), bool)
    mask.reshape(-1)[:uncritical] = True
    return {"x": mask}


@pytest.mark.parametrize(
    ("uncritical", "samples", "expected"),
    [(500, 10, 5), (3, 10, 3), (997, 10, 7), (0, 10, 0), (1000, 10, 10), (500, 7, 3), (500, 1000, 500)],
)
def test_half_of_the_sample_is_uncritical(uncritical: int, samples: int, expected: int) -> None:
    program = Program(unchanged, lambda state: state["x"][0, 0])
    state = {"x": np.ones((20, 50))}
    report = perturb(program, state, 1, uncritical=masks_of(uncritical), samples=samples)
    of_x = report.variables["x"]
    assert of_x.indices.size == samples == len(set(of_x.indices.tolist()))
    assert (np.diff(of_x.indices) > 0).all()
    assert of_x.uncritical.sum() == expected
    assert (of_x.uncritical == (of_x.indices < uncritical)).all()


def test_the_seed_decides() -> None:
    program = Program(unchanged, lambda state: state["x"][0])
    state = {"x": np.ones((20, 50)), "y": np.ones((20, 50))}

    def indices(seed: int) -> list[list[int]]:
        report = perturb(program, state, 1, uncritical=masks_of(500), seed=seed)
        assert report.seed == seed
        return [variable.indices.tolist() for variable in report.variables.values()]

    assert indices(0) == indices(0)
    assert indices(0) != indices(1)
    assert indices(0)[0] != indices(0)[1]
    assert len(indices(0)[0]) == SAMPLES


# ---- runs that fail ----


def test_failures_and_endless_steps_are_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials, "SLACK_SECONDS", 0.2)

    def output(state: dict[str, Any]) -> Any:
        x = state["x"]
        while x[2] != 3.0:
            pass
        np.linalg.inv(np.eye(2) * (np.abs(x[4]) < 1e33))
        return [1, 2, 3][state["n"][0]]

    state = {"x": X[:6].copy(), "n": np.array([0, 9])}
    report = perturb(Program(unchanged, output), state, 1, uncritical={}, samples=ALL)
    assert changed(report, "x") == {2, 4}
    assert changed(report, "n") == {0}


def test_a_program_that_does_not_repeat_itself_is_refused() -> None:
    generator = np.random.default_rng(0)
    program = Program(unchanged, lambda state: generator.random())
    with pytest.raises(ProfileError, match="cannot be repeated"):
        perturb(program, {"x": X}, 1, uncritical={})


def test_what_a_changed_run_leaves_behind_is_refused() -> None:
    largest = [0.0]

    def output(state: dict[str, Any]) -> Any:
        largest[0] = max(largest[0], float(np.max(state["x"])))
        return largest[0]

    with pytest.raises(ProfileError, match="after a run from another state"):
        perturb(Program(unchanged, output), {"x": X}, 1, uncritical={})


# ---- the NAS kernels ----


def test_bt() -> None:
    middle = bt.run(bt.initial_state("S"), 30)
    found = profile(bt.step, middle, bt.output, engine="perturbation", seed=3)
    report = report_of(found)
    u = report.variables["u"]
    assert (u.indices.size, u.uncritical.sum()) == (SAMPLES, SAMPLES // 2)
    # Exactly the elements within the grid change the norms.
    assert (u.changed == ~u.uncritical).all()
    assert report.contradictions == {}
    assert int(found.map["u"].uncritical.sum()) == 1500
    assert report.steps == found.steps_swept


def test_is_where_derivatives_say_nothing() -> None:
    middle = is_.run(is_.initial_state("S"), 5)
    found = profile(is_.step, middle, is_.output, steps=5, engine="perturbation")
    report = report_of(found)
    keys, buckets = report.variables["key_array"], report.variables["bucket_ptrs"]
    assert {6, 16} <= set(keys.indices.tolist())
    assert (keys.changed == ~keys.uncritical).all()
    assert buckets.uncritical.all() and not buckets.changed.any()
    assert changed(report, "iteration") == changed(report, "passed_verification") == {0}
    assert (report.contradictions, report.insensitive) == ({}, 0.0)


# ---- several ranks ----

RANKS = """
import json
import numpy as np
from mpi4py import MPI
from scr_critplugin.analysis.perturbation import perturb
from scr_critplugin.analysis.program import Program

comm = MPI.COMM_WORLD

def step(state):
    left = comm.sendrecv(state["x"][comm.rank], dest=(comm.rank + 1) % comm.size)
    return {"x": state["x"], "seen": state["seen"] + left}

state = {"x": np.arange(1.0, 6.0 + comm.rank), "seen": 0.0}
mask = {"x": np.arange(5 + comm.rank) > 1}
report = perturb(Program(step, lambda s: s["seen"]), state, 2, uncritical=mask, samples=99, comm=comm)
x = report.variables["x"]
found = comm.gather([x.indices[x.changed].tolist(), report.runs, int(x.contradictions.sum())])
if comm.rank == 0:
    print(json.dumps(found))
"""


def test_ranks_change_one_element_at_a_time(tmp_path: Path, run_ranks: Any) -> None:
    script = tmp_path / "ranks.py"
    script.write_text(RANKS)
    (found,) = run_ranks(3, script, timeout=120)
    assert [places for places, *_ in found] == [[0], [1], [2]]
    assert len({runs for _, runs, _ in found}) == 1
    assert [contradictions for *_, contradictions in found] == [0, 0, 1]
