"""Poison: what it writes, what counts as a difference, and how it sets right maps that are wrong."""

from __future__ import annotations

import ctypes
import json
import signal
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import autograd.numpy as anp
import numpy as np
import pytest
from autograd.tracer import getval
from brute_force import places as critical
from hypothesis import given, settings
from hypothesis import strategies as st

from scr_critplugin.analysis import Profile, profile, pulls, rules, trials
from scr_critplugin.analysis.bits import digest_of, same_elements
from scr_critplugin.analysis.fills import FILLS, mixed, overwritten, poisoned
from scr_critplugin.analysis.poison import PoisonReport, check_by_poison, united, widened
from scr_critplugin.analysis.program import Program
from scr_critplugin.criticality import CriticalityMap, ElementState
from scr_critplugin.errors import ProfileError

X = np.arange(1.0, 101.0)


def hidden(x: Any) -> Any:
    """The values of an array, out of the tracer's sight."""
    return getval(x)


def changed(values: Any, *places: int) -> bool:
    """True if all of these elements of what was X have other bits."""
    return all(values[place].tobytes() != X[place].tobytes() for place in places)


def unchanged(state: dict[str, Any]) -> dict[str, Any]:
    return dict(state)


def profile_of(output: Callable[[Any], Any], x: Any = X, **options: Any) -> Profile:
    """Profile `output(x)` beside an output that the tracer sees, with a step that does nothing."""
    return profile(unchanged, {"x": x, "seen": np.ones(3)}, lambda s: [s["seen"], output(s["x"])], **options)


def report_of(found: Profile) -> PoisonReport:
    assert found.poison is not None
    return found.poison


# ---- what is written ----

RECORD = np.dtype([("a", "f8"), ("b", "?"), ("c", "i2", (3,))], align=True)
DTYPES = [
    *("f2", "f4", "f8", "g", "F", "D", "G", ">f8", ">g", ">c16"),
    *("i1", "u2", "i8", ">i4", "?", "M8[s]", ">m8[D]", "U3", ">U2", "S4", "V5"),
    RECORD,
]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("fill", FILLS)
def test_every_element_gets_other_bits(dtype: Any, fill: str) -> None:
    stream = np.random.default_rng(0)
    values = np.zeros(300, dtype=dtype)
    # Again on top of itself: a NaN for a NaN, one of 256 bytes for another.
    for _ in range(3):
        other = overwritten(values, fill, stream)
        assert (other.dtype, other.shape) == (values.dtype, values.shape)
        assert not same_elements(values, other).any()
        values = other


def test_fills_of_floating_point() -> None:
    stream = np.random.default_rng(0)
    for dtype in ("f4", "f8", "g", "c8", "c16", ">f8"):
        zeros = np.zeros(200, dtype=dtype)
        nans = overwritten(zeros, "nan", stream)
        huge = overwritten(zeros, "1e34", stream)
        for part in (np.real, np.imag) if zeros.dtype.kind == "c" else (np.real,):
            assert np.isnan(part(nans)).all()
            assert 0 < np.signbit(part(nans)).sum() < 200
            assert np.allclose(part(huge).astype(float), 1e34)
        assert len({nan.tobytes() for nan in nans}) > 150
    assert np.isinf(overwritten(np.zeros(3, "f2"), "1e34", stream)).all()
    assert np.isnat(overwritten(np.zeros(3, "M8[s]"), "nan", stream)).all()


def test_noise_has_a_stream_for_each_variable_fill_and_seed() -> None:
    state = {"a": np.zeros(50, int), "b": np.zeros(50, int)}
    masks = {name: np.ones(50, bool) for name in state}
    made = [
        poisoned(state, masks, fill, seed)[name].tobytes()
        for name in "ab"
        for fill in FILLS
        for seed in (0, 1)
    ]
    assert len(set(made)) == len(made)
    assert poisoned(state, masks, "noise", 1)["b"].tobytes() == made[-1]


SCALARS: list[Any] = [
    *(1.5, 2 - 1j, 3, -(10**40), True, "ab", "", b"", b"x\0"),
    *(np.float32(2), np.longdouble(1), np.bool_(True), np.int8(-128), np.complex64(1j)),
    *(np.datetime64("2020-01-01"), np.str_("abc"), np.zeros(1, RECORD)[0]),
]


@pytest.mark.parametrize("value", SCALARS, ids=repr)
@pytest.mark.parametrize("fill", FILLS)
def test_scalars_keep_their_type(value: Any, fill: str) -> None:
    other = poisoned({"v": value}, {"v": np.ones((), bool)}, fill)["v"]
    assert type(other) is type(value)
    assert np.asarray(other).dtype.kind == np.asarray(value).dtype.kind
    assert digest_of(other) != digest_of(value)
    assert poisoned({"v": value}, {"v": np.zeros((), bool)}, fill)["v"] is value


def test_only_masked_elements_are_written_and_layout_is_kept() -> None:
    state = {"f": np.asfortranarray(np.ones((4, 5))), "zero": np.array(2.0), "out": np.ones(2)}
    mask = np.zeros((4, 5), bool)
    mask[1:3, ::2] = True
    other = poisoned(state, {"f": mask, "zero": np.ones((), bool)}, "nan")
    assert np.array_equal(np.isnan(other["f"]), mask)
    assert other["f"].flags.f_contiguous
    assert other["zero"].shape == () and np.isnan(other["zero"])
    assert other["out"] is state["out"]
    assert (state["f"] == 1).all() and state["zero"] == 2
    half = mask.copy()
    half[1] = False
    both = mixed(state, other, {"f": half, "zero": np.zeros((), bool)})
    assert np.array_equal(np.isnan(both["f"]), half)
    assert both["zero"] == 2


# ---- what is compared ----


def test_bits_decide() -> None:
    nan = np.array([np.nan])
    other_nan = (nan.view(np.uint64) ^ np.uint64(1)).view(float)
    pairs: list[tuple[Any, Any]] = [
        (0.0, -0.0),
        (nan, other_nan),
        (nan, -nan),
        (np.zeros(2), np.zeros(2, "f4")),
        (np.zeros(2), np.zeros((2, 1))),
        (1, 1.0),
        (1, True),
        (10**40, 10**40 + 1),
        ("a", b"a"),
        (np.float64(1), 1),
        (np.ma.array([1.0, 2.0], mask=[0, 0]), np.ma.array([1.0, 2.0], mask=[0, 1])),
        (np.array(["a"]), np.array(["b"])),
        (np.array("2020", "M8[s]"), np.array("NaT", "M8[s]")),
        (None, 0),
    ]
    for one, other in pairs:
        assert digest_of(one) != digest_of(other), (one, other)
        assert digest_of(one) == digest_of(one)
    assert digest_of(10**40) == digest_of(int("1" + 40 * "0"))


def test_padding_is_not_compared() -> None:
    padded = np.dtype([("b", "?"), ("a", "f8")], align=True)
    one, other = np.zeros(4, padded), np.zeros(4, padded)
    other.view(np.uint8)[3] = 7
    assert one.tobytes() != other.tobytes()
    assert digest_of(one) == digest_of(other)
    assert same_elements(one, other).all()
    other["a"][2] = -0.0
    assert digest_of(one) != digest_of(other)
    assert same_elements(one, other).tolist() == [True, True, False, True]


@pytest.mark.skipif(
    np.finfo(np.longdouble).nmant != 63, reason="needs the x87 long double of x86 machines, which has padding"
)
def test_padding_of_extended_precision_is_not_compared() -> None:
    for dtype in (np.longdouble, np.clongdouble):
        one, other = np.ones(2, dtype), np.ones(2, dtype)
        other.view(np.uint8)[12] = 7
        assert one.tobytes() != other.tobytes()
        assert digest_of(one) == digest_of(other)
        other.view(np.uint8)[0] ^= 1
        assert digest_of(one) != digest_of(other)
        assert same_elements(one, other).tolist() == [False, True]


# ---- a map that is right ----


def shift(state: dict[str, Any]) -> dict[str, Any]:
    return {"x": anp.concatenate([state["x"][1:], state["x"][:1]])}


def test_report_of_a_right_map() -> None:
    found = profile(shift, {"x": X[:6]}, lambda state: state["x"][:1], steps=2)
    report = report_of(found)
    assert (report.fills, report.elements, report.steps) == (("nan", "1e34", "noise"), {"x": 4}, 2)
    # Twice undisturbed, and once with each fill.
    assert (report.outcome, report.runs, report.guilty, report.difference) == ("identical", 5, {}, None)
    assert str(report) == "nan, 1e34, noise in 4 uncritical elements, 2 steps: outputs identical"
    assert profile_of(lambda x: x, validate=None).poison is None


def test_inert_elements_may_be_computed_with_quietly() -> None:
    def step(state: dict[str, Any]) -> dict[str, Any]:
        return {"x": state["x"], "unread": anp.exp(state["x"]) * 1e300}

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = profile(step, {"x": X[:4], "unread": X[:4]}, lambda state: state["x"][:2])
    assert critical(found) == {0, 1}
    assert report_of(found).outcome == "identical"


# ---- dependence that the tracer cannot see ----


def test_read_through_a_pointer() -> None:
    def output(x: Any) -> Any:
        return ctypes.c_double.from_address(hidden(x).__array_interface__["data"][0] + 8 * 41).value

    found = profile_of(output)
    assert critical(found) == {41}
    assert found.map["x"].states[41] == ElementState.CRITICAL
    assert set(found.map["x"].states[:41]) == {ElementState.UNUSED}
    report = report_of(found)
    assert report.outcome == "widened"
    assert np.flatnonzero(report.guilty["x"]).tolist() == [41]
    assert report.elements == {"x": 99, "seen": 0}
    assert report.complete
    assert 5 < report.runs < 30
    assert report.difference == "with nan in what it calls uncritical, output[1] differs after step 1"
    assert "1 of x" in str(report) and report.difference in str(report)


CACHE: dict[str, Any] = {}


def test_read_through_a_global_cache_steps_later() -> None:
    def step(state: dict[str, Any]) -> dict[str, Any]:
        x, seen = state["x"], state["seen"]
        CACHE["front"] = np.array(hidden(x)[3:5])
        return {"x": anp.concatenate([x[1:], x[:1]]), "seen": seen * 2.0}

    def output(state: dict[str, Any]) -> Any:
        return [state["seen"], CACHE["front"]]

    found = profile(step, {"x": X, "seen": np.ones(2)}, output, steps=4)
    assert critical(found) == {3, 4, 5, 6, 7}
    assert report_of(found).outcome == "widened"


def test_several_culprits_in_several_variables() -> None:
    state = {
        "a": X.reshape(4, 25),
        "n": np.arange(60),
        "flags": np.zeros((2, 3), bool),
        "z": X * 1j,
        "t": np.array(0.5),
        "half": np.float16(1.0),
        "dt": 0.25,
        "clean": X,
        "seen": X,
    }

    def output(s: dict[str, Any]) -> Any:
        a, n, flags, z = (hidden(s[name]) for name in ("a", "n", "flags", "z"))
        return [
            s["seen"],
            *(a[2, 7:9] + n[[0, 59]] + flags[1, 1] + z[50].imag),
            *(hidden(s[name]) * 1 for name in ("t", "half", "dt")),
        ]

    found = profile(unchanged, state, output)
    assert critical(found, "a") == {57, 58}
    assert critical(found, "n") == {0, 59}
    assert critical(found, "flags") == {4}
    assert critical(found, "z") == {50}
    assert all(critical(found, name) == {0} for name in ("t", "half", "dt"))
    assert critical(found, "clean") == set()
    assert set(report_of(found).guilty) == {"a", "n", "flags", "z", "t", "half", "dt"}


@pytest.mark.parametrize("places", [(20, 21), (20, 70), (0, 99), (1, 50, 51, 98)], ids=str)
def test_culprits_that_only_act_together(places: tuple[int, ...]) -> None:
    found = profile_of(lambda x: changed(hidden(x), *places))
    assert critical(found) == set(places)
    assert report_of(found).complete


def test_culprits_of_two_variables_that_only_act_together() -> None:
    def output(s: dict[str, Any]) -> Any:
        return [s["seen"], changed(hidden(s["x"]), 30) and changed(hidden(s["y"]), 60)]

    found = profile(unchanged, {"x": X, "between": X, "y": X, "seen": X}, output)
    assert (critical(found, "x"), critical(found, "y"), critical(found, "between")) == ({30}, {60}, set())


def test_alone_and_together() -> None:
    found = profile_of(lambda x: [changed(hidden(x), 4), changed(hidden(x), 10, 90), changed(hidden(x), 55)])
    assert critical(found) == {4, 10, 55, 90}


BY_FILL: dict[str, Callable[[Any], Any]] = {
    "nan": lambda h: np.isnan(h[5]),
    "1e34": lambda h: 1e33 < abs(h[5]) < 1e35,
    "noise": lambda h: np.isfinite(h[5]) and h[5] != 1e34 and h[5] != X[5],
}


@pytest.mark.parametrize("fill", FILLS)
def test_each_fill_finds_what_only_it_shows(fill: str) -> None:
    # Noise may be a NaN by chance: not with this seed.
    found = profile_of(lambda x: bool(BY_FILL[fill](hidden(x))))
    assert critical(found) == {5}
    assert str(report_of(found).difference).startswith(f"with {fill} in")


def test_each_fill_finds_its_own() -> None:
    found = profile_of(lambda x: [hidden(x)[7], np.isnan(hidden(x)[5]), 1e33 < abs(hidden(x)[8]) < 1e35])
    assert critical(found) == {5, 7, 8}


def test_what_hid_behind_a_guilty_element_is_found_with_an_earlier_fill() -> None:
    """Two NaNs cancel; when 1e34 has made one of the elements critical, the other's NaN shows."""
    found = profile_of(lambda x: [np.isnan(hidden(x)[5]) != np.isnan(hidden(x)[8]), hidden(x)[8] == 1e34])
    assert critical(found) == {5, 8}
    assert str(report_of(found).difference).startswith("with 1e34 in")


def test_a_wrong_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(rules.RULES, np.roll, rules.Row(pulls.shape_only))

    def output(state: dict[str, Any]) -> Any:
        return anp.roll(state["y"], 1)[:2] + state["x"][:2]

    found = profile(unchanged, {"x": X, "y": X}, output)
    assert (critical(found, "x"), critical(found, "y")) == ({0, 1}, {99, 0})
    monkeypatch.setitem(rules.RULES, np.flip, rules.Row(pulls.shape_only))
    for value in (np.array([1, 2, 3]), np.array([True, False, True]), X[:3] * 1j):
        found = profile_of(lambda x: anp.flip(x)[:2], value)
        assert critical(found) == {1, 2}


def test_the_widened_map_is_stored_with_the_verdict(tmp_path: Path) -> None:
    found = profile_of(lambda x: hidden(x)[3])
    found.map.save(tmp_path / "map.npz")
    stored = CriticalityMap.load(tmp_path / "map.npz")
    assert np.flatnonzero(stored["x"].critical).tolist() == [3]
    verdict = stored.provenance["poison"]
    assert verdict == json.loads(json.dumps(report_of(found).to_json_dict()))
    assert (verdict["outcome"], verdict["guilty"], verdict["elements"]["x"]) == ("widened", {"x": 1}, 99)


def test_widened_keeps_all_else() -> None:
    found = profile(unchanged, {"f": np.asfortranarray(np.ones((2, 3), "f4"))}, lambda s: s["f"][0])
    guilty = np.zeros((2, 3), bool)
    guilty[1, 2] = True
    new = widened(found.map, {"f": guilty})["f"]
    assert np.argwhere(new.states != found.map["f"].states).tolist() == [[1, 2]]
    assert new.critical[1, 2]
    assert (new.dtype, new.order) == (np.float32, "F")


# ---- few runs ----


def test_used_up_runs_make_all_suspects_critical() -> None:
    """A majority of a hundred matters: no small set explains that."""

    def step(state: dict[str, Any]) -> dict[str, Any]:
        return dict(state)

    def output(state: dict[str, Any]) -> Any:
        return int(np.count_nonzero(hidden(state["x"]) != X) > 50)

    program, mask = Program(step, output), {"x": np.ones(100, bool)}
    report = check_by_poison(program, {"x": X}, mask, 1, max_runs=20)
    assert not report.complete
    assert report.outcome == "widened"
    assert report.guilty["x"].all()
    assert report.elements == {"x": 0}
    assert "not each need be to blame" in str(report)
    # With no run at all, too.
    assert check_by_poison(program, {"x": X}, mask, 1, max_runs=0).guilty["x"].all()
    enough = check_by_poison(program, {"x": X}, mask, 1, max_runs=2000)
    assert enough.complete
    assert enough.guilty["x"].sum() >= 50
    assert not output({"x": np.where(enough.guilty["x"], X, np.nan)})


def test_used_up_runs_spare_what_was_cleared() -> None:
    program = Program(unchanged, lambda state: hidden(state["x"])[[10, 90]])
    report = check_by_poison(program, {"x": X}, {"x": np.ones(100, bool)}, 1, max_runs=6)
    assert not report.complete
    assert report.guilty["x"][[10, 90]].all()
    assert report.guilty["x"].sum() < 60
    # 2 undisturbed, 1 that failed, 6 of search, 3 that passed, and before and after the search one that shows
    # that nothing was left behind.
    assert report.runs == 14


def test_doubtful_elements_are_suspected_first() -> None:
    """Every other element is guilty, and no run is left to find that out one by one."""
    guilty = np.arange(100) % 2 == 0
    program = Program(unchanged, lambda state: hidden(state["x"])[guilty])
    every = {"x": np.ones(100, bool)}
    blind = check_by_poison(program, {"x": X}, every, 1, max_runs=20)
    told = check_by_poison(program, {"x": X}, every, 1, doubtful={"x": guilty}, max_runs=20)
    assert not blind.complete and blind.guilty["x"].sum() > 90
    assert not told.complete
    assert guilty[told.guilty["x"]].sum() == 50
    assert told.guilty["x"].sum() < 60


@pytest.mark.parametrize(
    ("mask", "words"), [({"y": np.ones(3, bool)}, "no such"), ({"x": np.ones(3, bool)}, r"\(3,\), expected")]
)
def test_masks_that_do_not_fit(mask: dict[str, Any], words: str) -> None:
    with pytest.raises(ProfileError, match=words) as raised:
        check_by_poison(Program(unchanged, lambda state: 0), {"x": X}, mask, 1)
    assert raised.value.key == next(iter(mask))


# ---- runs that fail ----


def singular(h: Any) -> Any:
    return np.linalg.inv(np.eye(3) * (h[5] == X[5]))


def raised_by_numpy(h: Any) -> Any:
    with np.errstate(all="raise"):
        return len(h[5:6] * 1e300)


def leaves_early(h: Any) -> Any:
    if h[5] != X[5]:
        raise SystemExit(3)


def recursive(h: Any) -> Any:
    if h[5] != X[5]:
        return recursive(h)
    return 0


FAILING = {
    singular: "output after step 1 raises LinAlgError",
    raised_by_numpy: "output after step 1 raises FloatingPointError",
    leaves_early: "output after step 1 raises SystemExit: 3",
    recursive: "output after step 1 raises RecursionError",
}


@pytest.mark.parametrize("function", FAILING, ids=lambda function: function.__name__)
def test_failure_is_a_difference(function: Callable[[Any], Any]) -> None:
    found = profile_of(lambda x: function(hidden(x)))
    assert critical(found) == {5}
    assert FAILING[function] in str(report_of(found).difference)


def test_error_in_a_step_is_a_difference() -> None:
    def step(state: dict[str, Any]) -> dict[str, Any]:
        if hidden(state["x"])[5] != X[5]:
            raise ValueError("no such\nphase")
        return dict(state)

    found = profile(step, {"x": X}, lambda state: 0.0)
    assert critical(found) == {5}
    assert str(report_of(found).difference).endswith("step 1 raises ValueError: no such")


def test_floating_point_errors_that_the_user_asked_for_stay_errors() -> None:
    def output(state: dict[str, Any]) -> Any:
        return [state["x"][0], (state["x"][5:6] * 1e300)[:0]]

    with np.errstate(all="ignore"):
        assert critical(profile(unchanged, {"x": X}, output)) == {0}
    # The restart would be stopped, by whatever stands there.
    with np.errstate(all="raise"):
        assert critical(profile(unchanged, {"x": X}, output)) == {0, 5}


def endless(h: Any) -> Any:
    total = 0
    while h[5] != X[5]:
        total += 1
    return total


def endless_that_swallows(h: Any) -> Any:
    while h[5] != X[5]:
        try:
            endless(h)
        except BaseException:
            break
    return endless(h)


@pytest.mark.parametrize("function", [endless, endless_that_swallows])
def test_a_step_that_does_not_end_is_a_difference(
    function: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trials, "SLACK_SECONDS", 0.2)
    before = signal.getsignal(signal.SIGVTALRM)
    found = profile_of(lambda x: function(hidden(x)), X[:8])
    assert critical(found) == {5}
    assert "had not ended after 0 s of processor time" in str(report_of(found).difference)
    assert signal.getsignal(signal.SIGVTALRM) == before
    assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0.0, 0.0)


def test_a_timer_of_the_program_is_left_alone() -> None:
    before = signal.signal(signal.SIGVTALRM, lambda *_: None)
    try:
        signal.setitimer(signal.ITIMER_VIRTUAL, 1000.0)
        found = profile_of(lambda x: hidden(x)[3])
        assert signal.getitimer(signal.ITIMER_VIRTUAL)[0] > 900.0
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        signal.signal(signal.SIGVTALRM, before)
    assert critical(found) == {3}


def test_in_another_thread() -> None:
    found: list[Any] = []

    def work() -> None:
        program = Program(unchanged, lambda state: hidden(state["x"])[3])
        found.append(check_by_poison(program, {"x": X}, {"x": np.ones(100, bool)}, 1))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert np.flatnonzero(found[0].guilty["x"]).tolist() == [3]


# ---- programs that do not repeat themselves ----
# A profile finds most of them before it comes to poison; this is about those it does not.


def checked(
    output: Callable[[Any], Any], step: Callable[[Any], Any] = unchanged, state: dict[str, Any] | None = None
) -> PoisonReport:
    """Poison in all of x."""
    return check_by_poison(Program(step, output), state or {"x": X}, {"x": np.ones(100, bool)}, 1)


def test_output_that_draws_from_outside_the_state() -> None:
    generator = np.random.default_rng(1)
    with pytest.raises(
        ProfileError, match=r"cannot be repeated: output\['b'\] after step 1 differs"
    ) as raised:
        checked(lambda s: {"a": s["x"][:2], "b": generator.random()})
    assert raised.value.key == "output['b']"
    assert "random numbers from outside the state" in str(raised.value)


def test_state_that_depends_on_time_is_named() -> None:
    def step(state: dict[str, Any]) -> dict[str, Any]:
        return {"y": state["y"], "x": state["x"] + 1e-13 * (time.perf_counter_ns() % 1000)}

    with pytest.raises(ProfileError, match="and with it the state variable 'x', differs") as raised:
        checked(lambda s: [s["y"], s["x"] * 2.0], step, {"y": X, "x": X})
    assert raised.value.key == "x"


def test_what_a_disturbed_run_leaves_behind_is_not_blamed_on_elements() -> None:
    largest = [0.0]

    def output(state: dict[str, Any]) -> Any:
        values = state["x"]
        largest[0] = max(largest[0], float(np.max(values, initial=0.0, where=np.isfinite(values))))
        return largest[0]

    with pytest.raises(ProfileError, match=r"differs after a run from another state"):
        checked(output)


def test_what_the_search_leaves_behind_is_not_blamed_on_elements() -> None:
    left_behind = []

    def output(state: dict[str, Any]) -> Any:
        if changed(state["x"], 3) and not changed(state["x"], 90):
            left_behind.append(state)
        return state["x"][3], len(left_behind)

    with pytest.raises(ProfileError, match=r"differs after runs from other states"):
        checked(output)


def test_random_numbers_seeded_by_the_state_are_fine() -> None:
    def step(state: dict[str, Any]) -> dict[str, Any]:
        generator = np.random.default_rng(state["seed"])
        return {"x": state["x"] + generator.random(100), "seed": state["seed"] + 1}

    assert report_of(profile(step, {"x": X, "seed": 3}, lambda s: s["x"][:5])).outcome == "identical"


# ---- any program ----

GROUPS = st.lists(st.sets(st.integers(0, 39), min_size=1, max_size=3), max_size=4)


@settings(max_examples=30)
@given(GROUPS, st.integers(1, 3), st.integers(0, 100))
def test_whatever_is_hidden_is_found(groups: list[set[int]], steps: int, seed: int) -> None:
    """Sets of elements that show if all of them are altered: one of each must be kept, and no other."""
    start = {"a": np.linspace(1.0, 2.0, 20), "n": np.arange(10, 20), "b": np.arange(10) % 2 == 0}
    original = np.concatenate([digests(value) for value in start.values()])

    def output(state: dict[str, Any]) -> Any:
        altered = np.concatenate([digests(hidden(value)) for value in state.values()]) != original
        return [bool(altered[sorted(group)].all()) for group in groups]

    found = profile(unchanged, start, output, steps=steps, seed=seed)
    kept = set(np.flatnonzero(np.concatenate([found.map[name].critical for name in start])).tolist())
    assert all(group & kept for group in groups)
    assert kept <= set().union(*groups)
    assert {i for group in groups if len(group) == 1 for i in group} <= kept
    assert report_of(found).outcome == ("widened" if groups else "identical")


def digests(values: Any) -> Any:
    return np.array(
        [value.tobytes() for value in values], dtype="V8" if values.itemsize == 8 else "V1"
    ).astype("V8")


# ---- several points, and several ranks ----


def test_several_checks_as_one() -> None:
    program = Program(unchanged, lambda state: hidden(state["x"])[int(state["it"])])
    masks = {"x": np.ones(100, bool)}
    reports = []
    for it in (3, 8, 3):
        report = check_by_poison(program, {"x": X, "it": it}, masks, 1)
        masks = {"x": masks["x"] & ~report.guilty.get("x", np.zeros(100, bool))}
        reports.append(report)
    assert [report.outcome for report in reports] == ["widened", "widened", "identical"]
    together = united(reports)
    assert (together.outcome, together.elements, together.complete) == ("widened", {"x": 98}, True)
    assert np.flatnonzero(together.guilty["x"]).tolist() == [3, 8]
    assert together.runs == sum(report.runs for report in reports)
    assert together.difference == reports[0].difference


RANKS = """
import json, sys
import numpy as np
from mpi4py import MPI
from scr_critplugin.analysis.poison import check_by_poison
from scr_critplugin.analysis.program import Program
from scr_critplugin.errors import ProfileError

comm = MPI.COMM_WORLD

def step(state):
    x = np.asarray(state["x"])
    left = comm.sendrecv(x[3 + comm.rank], dest=(comm.rank + 1) % comm.size)
    return {"x": x, "seen": state["seen"] + left}

def output(state):
    # What rank 0 sends changes nothing that counts; a NaN ends rank 1.
    if comm.rank == 1 and np.isnan(state["x"][20]):
        raise ValueError("twenty")
    return state["seen"] if comm.rank != 1 else state["x"][30]

size = 50 + 7 * comm.rank
state = {"x": np.arange(1.0, size + 1), "seen": 0.0}
report = check_by_poison(Program(step, output), state, {"x": np.ones(size, bool)}, 2, comm=comm)
guilty = np.flatnonzero(report.guilty.get("x", np.zeros(1, bool))).tolist()

class Counting:
    calls = 0
def drawing(state):
    Counting.calls += comm.rank
    return Counting.calls
try:
    check_by_poison(Program(dict, drawing), {"x": state["x"]}, {}, 3, comm=comm)
    refused = None
except ProfileError as error:
    refused = error.rank
found = comm.gather([guilty, report.outcome, report.runs, report.elements["x"], report.difference, refused])
if comm.rank == 0:
    print(json.dumps(found))
"""


def test_ranks_search_together(tmp_path: Path, run_ranks: Any) -> None:
    script = tmp_path / "ranks.py"
    script.write_text(RANKS)
    (found,) = run_ranks(3, script, timeout=120)
    assert [guilty for guilty, *_ in found] == [[], [4, 20, 30], [5]]
    assert {outcome for _, outcome, *_ in found} == {"widened"}
    assert len({runs for _, _, runs, *_ in found}) == 1
    assert [elements for *_, elements, _, _ in found] == [50, 54, 63]
    assert len({difference for *_, difference, _ in found}) == 1
    assert [refused for *_, refused in found] == [1, 1, 1]
