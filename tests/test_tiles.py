"""`profile(tiles=...)`: boxes from samples against full sweeps; what a sample misses, what poison says."""

from __future__ import annotations

import json
import math
import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scr_critplugin.analysis import history, profile, tiles
from scr_critplugin.analysis.hulls import Hulls, runs_of_box
from scr_critplugin.analysis.program import Program
from scr_critplugin.analysis.runsets import Runs, united
from scr_critplugin.analysis.tiles import Confidence, Population, Tiling
from scr_critplugin.criticality import ElementState
from scr_critplugin.errors import ProfileError
from scr_critplugin.regions import Box

State = dict[str, Any]


def both(step: Any, state: State, output: Any, *, k: int = 4, **options: Any) -> tuple[Any, Any]:
    """Profiles by a full sweep and by tiles."""
    return profile(step, state, output, **options), profile(step, state, output, tiles=k, **options)


def random_state(**shapes: Any) -> State:
    generator = np.random.default_rng(1)
    return {name: generator.random(shape) for name, shape in shapes.items()}


def is_sampled(found: Any, name: str) -> bool:
    return not found.confidence.populations[name].complete


# ---- programs whose critical elements are boxes: the same map ----

INSIDE = (slice(1, -1),) * 3


def periodic(state: State) -> None:
    """A 7-point stencil in place: ghosts are filled first, `work` is overwritten."""
    u, work = state["u"], state["work"]
    for axis in range(3):
        line = np.swapaxes(u, 0, axis)
        line[0] = line[-2]
        line[-1] = line[1]
    inside = work[INSIDE]
    np.add(u[:-2, 1:-1, 1:-1], u[2:, 1:-1, 1:-1], out=inside)
    inside += u[1:-1, :-2, 1:-1]
    inside += u[1:-1, 2:, 1:-1]
    inside += u[1:-1, 1:-1, :-2]
    inside += u[1:-1, 1:-1, 2:]
    inside -= 6.0 * u[INSIDE]
    u[INSIDE] += 0.1 * inside


def fixed_walls(state: State) -> State:
    """The same, functional, with values on the faces that nothing overwrites: its edges do not matter."""
    u = state["u"]
    around = u[:-2, 1:-1, 1:-1] + u[2:, 1:-1, 1:-1] + u[1:-1, :-2, 1:-1] + u[1:-1, 2:, 1:-1]
    around = around + u[1:-1, 1:-1, :-2] + u[1:-1, 1:-1, 2:]
    new = u.copy()
    new[INSIDE] = u[INSIDE] + 0.1 * (around - 6.0 * u[INSIDE])
    return {"u": new, "work": np.pad(around, 1)}


def inside_of_u(state: State) -> Any:
    return state["u"][INSIDE]


@pytest.mark.parametrize("step", [periodic, fixed_walls])
@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("shape", [(43, 50, 61), (40, 40, 40)])
def test_stencil_gives_the_map_of_the_full_sweep(step: Any, seed: int, shape: tuple[int, ...]) -> None:
    full, sampled = both(step, random_state(u=shape, work=shape), inside_of_u, seed=seed)
    assert is_sampled(sampled, "u")
    assert 0 < full.map["u"].uncritical.sum() < full.map["u"].size
    for name in full.map:
        assert np.array_equal(sampled.map[name].states, full.map[name].states), name
    assert sampled.poison is not None
    assert sampled.confidence.refuted is None
    assert not sampled.confidence.densely


def test_norm_as_output_is_swept_in_full_and_symbolically() -> None:
    full, sampled = both(
        periodic,
        random_state(u=(40,) * 3, work=(40,) * 3),
        lambda state: np.sqrt(np.sum(state["u"][INSIDE] ** 2)),
    )
    assert sampled.confidence.populations["output 0"].complete
    assert is_sampled(sampled, "u")
    assert full.map == sampled.map


def test_every_second_element() -> None:
    def step(state: State) -> State:
        return {"x": 2.0 * state["x"]}

    def output(state: State) -> Any:
        return state["x"][::2]

    full, sampled = both(step, random_state(x=100_000), output)
    assert is_sampled(sampled, "output 0")
    assert full.map["x"].critical.sum() == 50_000
    assert full.map == sampled.map


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_given_number_of_steps(steps: int) -> None:
    """Each step reaches one element further."""

    def step(state: State) -> State:
        x = state["x"]
        return {"x": np.concatenate([x[1:], np.zeros(1)])}

    full, sampled = both(step, random_state(x=90_000), lambda state: state["x"][:40_000], steps=steps)
    assert is_sampled(sampled, "x") or steps == 1
    assert full.map["x"].critical.sum() == 40_000 + steps - 1
    assert np.array_equal(full.map["x"].critical, sampled.map["x"].critical)
    assert sampled.steps_swept == steps


def test_reach_that_grows_for_ever_ends_in_more_rather_than_less() -> None:
    """Any number of steps: one more element each, which a full sweep follows to the end."""

    def step(state: State) -> State:
        x = state["x"]
        return {"x": np.concatenate([x[1:], x[-1:]]), "unread": state["unread"]}

    state = random_state(x=1_200, unread=1_200)
    full = profile(step, state, lambda state: state["x"][400:800])
    sampled = profile(step, state, lambda state: state["x"][400:800], tiles=1)
    assert full.map["x"].critical.sum() == 799
    assert not (full.map["x"].critical & ~sampled.map["x"].critical).any()
    assert not sampled.map["unread"].critical.any()
    assert sampled.confidence.rounds < 80


def test_sinks_count_in_full() -> None:
    def step(state: State) -> State:
        factor = 2.0 if np.max(state["w"][::3]) > 0.5 else 3.0
        return {"w": state["w"], "x": factor * state["x"]}

    full, sampled = both(step, random_state(w=50_001, x=50_000), lambda state: state["x"][:40_000])
    assert full.map["w"].critical.sum() == 16_667
    assert full.map == sampled.map
    assert [sink.kind for sink in sampled.sinks] == ["bool"]


def test_small_arrays_are_exact_unless_a_sample_reads_them() -> None:
    few = np.array([0, 3, 4, 11, 17])

    def step(state: State) -> State:
        x = state["x"] if np.sum(state["c"][few]) > 0.0 else -state["x"]
        return {"x": x + np.repeat(state["d"], 5000), "c": state["c"], "d": state["d"]}

    full, sampled = both(step, random_state(x=50_000, c=20, d=10), lambda state: state["x"][100:-6000])
    assert np.flatnonzero(sampled.map["c"].critical).tolist() == few.tolist()
    assert np.flatnonzero(full.map["d"].critical).tolist() == list(range(9))
    assert full.map == sampled.map


def test_sinks_that_do_not_count_are_not_swept() -> None:
    def step(state: State) -> State:
        factor = 2.0 if np.max(state["w"][::3]) > 0.5 else 3.0
        return {"w": state["w"], "x": factor * state["x"]}

    full, sampled = both(
        step,
        random_state(w=50_001, x=50_000),
        lambda state: state["x"][:40_000],
        control="report",
        validate=None,
    )
    assert not sampled.map["w"].critical.any()
    assert full.map == sampled.map


def test_results_of_no_fixed_shape_are_needed_as_a_whole() -> None:
    def step(state: State) -> State:
        x = state["x"]
        return {"x": x + np.sum(x[x > 0.5]), "y": state["y"]}

    full, sampled = both(step, random_state(x=50_000, y=50_000), lambda state: state["x"][:5])
    assert sampled.map["x"].critical.all()
    assert full.map == sampled.map


def test_several_points_rest_on_the_least_of_their_samples() -> None:
    def step(state: State) -> State:
        return {"x": 2.0 * state["x"], "it": state["it"] + 1}

    inputs = [{**random_state(x=60_000), "it": 0}, {**random_state(x=60_000), "it": 5}]
    full, sampled = both(step, inputs, lambda state: state["x"][7:], at=[0, 2])
    assert full.map == sampled.map
    assert sampled.confidence.populations["x"] == Population(4, 117, complete=False)
    one = profile(step, inputs[0], lambda state: state["x"][7:], tiles=4)
    assert sampled.confidence.rounds == 4 * one.confidence.rounds


def test_integers_and_text_stay_critical() -> None:
    def step(state: State) -> State:
        return {**state, "x": state["x"] + 1.0, "it": state["it"] + 1}

    state = {**random_state(x=50_000), "it": 3, "name": "run"}
    full, sampled = both(step, state, lambda state: state["x"][:10])
    assert full.map == sampled.map
    assert sampled.map["it"].critical.all()


def test_dead_and_unused_are_claimed_only_with_proof() -> None:
    def step(state: State) -> State:
        state["tail"][:] = np.cumsum(state["x"])  # no pull on runs: a short proof there is not
        return {"x": 2.0 * state["x"], "tail": state["tail"], "idle": state["idle"]}

    state = random_state(x=300_000, tail=300_000, idle=300_000)
    odd = np.arange(300_000) % 2 == 1
    state["x"][odd] = 0.0

    def output(state: State) -> Any:
        return np.where(odd, state["x"], 0.0)

    full, sampled = both(step, state, output)
    for name in full.map:
        assert not (full.map[name].critical & ~sampled.map[name].critical).any()
        stronger = sampled.map[name].states == ElementState.DEAD
        assert (full.map[name].states[stronger] == ElementState.DEAD).all()
    assert not sampled.map["tail"].critical.any()


# ---- a sample can miss: poison does not ----

ODD = 31_234


def with_an_odd_element(state: State) -> State:
    """Element 29 of x needs y[ODD], nothing else outside y's first half does."""
    x, y = state["x"], state["y"]
    new = x + y[:30_000]
    new[20_011] = new[20_011] * y[ODD]
    return {"x": new, "y": y}


def test_what_only_one_tile_needs_is_caught_by_poison() -> None:
    state = random_state(x=30_000, y=60_000)

    def output(state: State) -> Any:
        return state["x"]

    unchecked = profile(with_an_odd_element, state, output, tiles=2, validate=None)
    assert not unchecked.map["y"].critical[ODD], "the sample was meant to miss it; choose another seed"
    assert unchecked.confidence.refuted is None

    full, sampled = both(with_an_odd_element, state, output, k=2)
    assert sampled.map["y"].critical[ODD]
    assert full.map == sampled.map
    assert sampled.confidence.refuted is not None
    assert "refuted" in sampled.confidence.describe()
    assert sampled.map.provenance["confidence"]["refuted"] == sampled.confidence.refuted


def test_enough_tiles_find_it_without_poison() -> None:
    state = random_state(x=30_000, y=60_000)
    found = profile(with_an_odd_element, state, lambda state: state["x"], tiles=57, validate=None)
    assert found.map["y"].critical[ODD]


# ---- what it says of itself ----


def test_confidence_is_the_rule_of_three() -> None:
    confidence = Confidence(300, 0, 3, 1, 0.95, {"u": Population(300, 10_000, complete=False)})
    assert confidence.missed_share("u") == pytest.approx(1 - 0.05 ** (1 / 300))
    assert confidence.missed_share("u") == pytest.approx(3 / 300, rel=0.01)


def test_further_confirmations_cost_confidence() -> None:
    populations = {"u": Population(64, 1000, complete=False)}
    shares = [Confidence(64, 0, 3, n, 0.95, populations).missed_share("u") for n in (1, 2, 5)]
    assert shares == sorted(shares)
    assert shares[1] == pytest.approx(1 - 0.025 ** (1 / 64))


def test_missed_share_holds() -> None:
    """Of many samples from tiles of which that share would show something, at most 1 in 20 shows nothing."""
    confidence = Confidence(20, 0, 3, 1, 0.95, {"u": Population(20, 1000, complete=False)})
    guilty = math.ceil(confidence.missed_share("u") * 1000)
    tiling = Tiling([Box((0,), (1000 * 512,), (1,))], (1000 * 512,))
    assert tiling.total == 1000
    generator = np.random.default_rng(5)
    lucky = 0
    for _ in range(500):
        drawn = [int(tile.start[0]) // 512 for tile in tiling.random(20, generator)]
        lucky += all(number >= guilty for number in drawn)
    assert lucky / 500 < 0.08
    assert lucky > 0


def test_profile_and_map_state_the_confidence() -> None:
    state = random_state(u=(40,) * 3, work=(40,) * 3)
    found = profile(periodic, state, inside_of_u, tiles=4, seed=7)
    provenance = found.map.provenance
    assert provenance["engine"] == "dependence, sampled"
    assert provenance["confidence"]["tiles"] == 4
    assert provenance["confidence"]["seed"] == 7
    assert provenance["confidence"]["missed_share"]["u"] == pytest.approx(1 - 0.05 ** (1 / 4))
    json.dumps(provenance)
    text = found.confidence.describe()
    assert "u: 4 fresh random tiles of " in text
    assert "95 % confidence at most 53 % of its tiles" in text
    assert "work: swept in full" in text
    assert profile(periodic, state, inside_of_u).confidence is None


def test_seed_chooses_the_tiles() -> None:
    state = random_state(x=60_000)
    rounds = set()
    for seed in (0, 0, 1):
        generator = np.random.default_rng(seed)
        tiling = Tiling([Box((0,), (60_000,), (1,))], (60_000,))
        rounds.add(tuple(int(tile.start[0]) for tile in tiling.random(3, generator)))
    assert len(rounds) == 2
    one, same = (profile(lambda s: dict(s), state, lambda s: s["x"][5:], tiles=3, seed=4) for _ in range(2))
    assert one.map == same.map


def test_no_tiles_are_refused() -> None:
    with pytest.raises(ProfileError, match="tiles is 0; expected at least 1"):
        profile(lambda s: dict(s), random_state(x=3), lambda s: s["x"], tiles=0)


def test_primitives_swept_by_boolean_arrays_are_named() -> None:
    state = random_state(x=60_000)
    found = profile(lambda s: dict(s), state, lambda s: np.cumsum(s["x"])[:100], tiles=2)
    assert found.confidence.densely.keys() == {"cumsum"}
    assert "swept by boolean arrays: cumsum (" in found.confidence.describe()


def test_sweep_takes_memory_of_the_sample_not_of_the_array() -> None:
    n = 110
    start = random_state(u=(n,) * 3, work=(n,) * 3)
    window = history.record(Program(periodic, inside_of_u), start, None, validate=False)
    sampling = tiles._Sampling({name: (n,) * 3 for name in start}, 2, np.random.default_rng(0))
    tracemalloc.start()
    found = sampling.around(tiles._one_cycle(window))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found[0]["u"].hulls.boxes == [Box((1,) * 3, (n - 1,) * 3, (1,) * 3)]
    assert peak < n**3 * 0.8, "less than one mask of the array"


# ---- parts ----

BOX_AXES = st.lists(
    st.tuples(st.integers(0, 3), st.integers(1, 30), st.integers(1, 3)), min_size=1, max_size=3
)


@settings(max_examples=40)
@given(BOX_AXES)
def test_tiles_are_a_partition_of_their_box(axes: list[tuple[int, int, int]]) -> None:
    start = tuple(first for first, _, _ in axes)
    step = tuple(step if count > 1 else 1 for _, count, step in axes)
    stop = tuple(first + (count - 1) * s + 1 for (first, count, _), s in zip(axes, step, strict=True))
    shape = tuple(end + 2 for end in stop)
    box = Box(start, stop, step)
    tiling = Tiling([box], shape)
    parts = list(tiling.random(tiling.total, np.random.default_rng(0)))
    assert len(parts) == tiling.total
    assert sum(part.count for part in parts) == box.size
    assert united(parts).equals(runs_of_box(box, shape))
    corners = united(tiling.corners(np.random.default_rng(0)))
    assert not corners.minus(runs_of_box(box, shape))
    for corner in np.ndindex(*(2,) * len(axes)):
        index = [s if at == 0 else e - 1 for at, s, e in zip(corner, start, stop, strict=True)]
        assert corners.on(shape)[tuple(index)]


@settings(max_examples=50)
@given(st.data())
def test_boxes_hold_all_that_was_seen(data: Any) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 25), min_size=1, max_size=3)))
    size = math.prod(shape)
    hulls, seen = Hulls(shape), Runs.none()
    for _ in range(data.draw(st.integers(1, 4))):
        places = np.array(data.draw(st.lists(st.integers(0, size - 1), max_size=20)), np.int64)
        before = hulls.runs()
        changed = hulls.add(Runs.from_places(places))
        seen = united([seen, Runs.from_places(places)])
        assert not seen.minus(hulls.runs())
        assert changed == (not before.equals(hulls.runs())) or changed
        assert sum(box.size for box in hulls.boxes) == hulls.runs().count, "disjoint"


@pytest.mark.parametrize(
    "box",
    [
        Box((0, 0), (40, 50), (1, 1)),
        Box((2, 3), (38, 47), (1, 1)),
        Box((0, 1), (39, 50), (2, 1)),
        Box((5, 0), (6, 46), (1, 5)),
    ],
)
def test_boxes_are_those_that_were_there(box: Box) -> None:
    hulls = Hulls((40, 50))
    hulls.add(runs_of_box(box, (40, 50)))
    assert hulls.boxes == [box]


def test_two_indices_are_no_stride() -> None:
    hulls = Hulls((1000,))
    hulls.add(Runs.from_places(np.array([100, 900])))
    assert hulls.boxes == [Box((100,), (901,), (1,))]


def test_growth_ends() -> None:
    hulls = Hulls((10_000,))
    growths = sum(hulls.add(Runs.from_places(np.array([5000 + i]))) for i in range(500))
    assert growths < 20
    hulls = Hulls((10_000, 3))
    growths = sum(hulls.add(Runs.from_places(np.array([i * 7919 % 30_000]))) for i in range(200))
    assert growths < 30
    assert hulls.runs().count > 28_000
