"""The MG kernel: operators, official verification, and what a restart does not need of u and r."""

from __future__ import annotations

import itertools
from typing import Any

import autograd
import autograd.numpy as anp
import mg
import numpy as np
import pytest
from kernel_proofs import FILLS, elements, ends_the_same, frozen, only, poisoned
from randlc import uniform

from scr_critplugin.analysis import Profile, profile
from scr_critplugin.criticality import ElementState

MIDDLE = 2
TINY = mg.ProblemClass("tiny", levels=2, steps=4, norm=1.0)
Field = np.ndarray


@pytest.fixture(scope="module")
def middle() -> dict[str, Any]:
    """State of class S in the middle of the run."""
    return mg.run(mg.initial_state("S"), MIDDLE)


@pytest.fixture(scope="module")
def profiled(middle: dict[str, Any]) -> Profile:
    """Class S, profiled in the middle of the run."""
    return profile(mg.step, middle, mg.output)


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A state of random numbers for grids of 4 and 2 points a side: 280 elements of levels, 64 unused."""
    monkeypatch.setitem(mg.CLASSES, "tiny", TINY)
    generator = np.random.default_rng(3)
    shape = TINY.shape
    return {"u": generator.standard_normal(shape), "r": generator.standard_normal(shape), "it": 0}


# ---- the operators, cell by cell as the report defines them ----

A = {0: -8 / 3, 1: 0.0, 2: 1 / 6, 3: 1 / 12}
SMOOTHER = {0: -3 / 8, 1: 1 / 32, 2: -1 / 64, 3: 0.0}
PROJECTION = {0: 1 / 2, 1: 1 / 4, 2: 1 / 8, 3: 1 / 16}
OFFSETS = list(itertools.product((-1, 0, 1), repeat=3))


def random_cube(points: int, seed: int = 5) -> Field:
    return np.random.default_rng(seed).standard_normal((points + 2,) * 3)


def stencil(weights: dict[int, float], cube: Field, cell: tuple[int, ...]) -> float:
    """Weighted sum over the 27 cells around `cell`, by the number of axes that differ."""
    cells = [(weights[sum(map(abs, offset))], tuple(np.add(cell, offset))) for offset in OFFSETS]
    return sum(weight * float(cube[neighbour]) for weight, neighbour in cells)


def periodic(inside: Field) -> Field:
    return np.pad(inside, 1, mode="wrap")


def inside(points: int) -> list[tuple[int, ...]]:
    return list(itertools.product(range(1, points + 1), repeat=3))


def test_residual() -> None:
    u, source, expected = random_cube(4), random_cube(4, 6), np.empty((4, 4, 4))
    for cell in inside(4):
        expected[tuple(np.subtract(cell, 1))] = source[cell] - stencil(A, u, cell)
    np.testing.assert_allclose(mg._residual(u, source, np), periodic(expected), rtol=1e-13, atol=1e-13)


def test_smoother() -> None:
    u, residual, expected = random_cube(4), random_cube(4, 6), np.empty((4, 4, 4))
    for cell in inside(4):
        expected[tuple(np.subtract(cell, 1))] = u[cell] + stencil(SMOOTHER, residual, cell)
    np.testing.assert_allclose(mg._smoothed(u, residual, np), periodic(expected), rtol=1e-13, atol=1e-13)


def test_projection() -> None:
    fine, expected = random_cube(8), np.empty((4, 4, 4))
    for cell in inside(4):
        expected[tuple(np.subtract(cell, 1))] = stencil(PROJECTION, fine, tuple(np.multiply(cell, 2)))
    np.testing.assert_allclose(mg._restricted(fine, np), periodic(expected), rtol=1e-13, atol=1e-13)


def test_interpolation() -> None:
    coarse = random_cube(4)
    fine = mg._interpolated(coarse, np)
    assert fine.shape == (10, 10, 10)
    for cell in itertools.product(range(10), repeat=3):
        corners = itertools.product(*({c // 2, (c + 1) // 2} for c in cell))
        assert fine[cell] == pytest.approx(np.mean([coarse[corner] for corner in corners]), rel=1e-12), cell


def test_right_hand_side() -> None:
    inner = mg._right_hand_side("S")[mg.INSIDE]
    numbers = uniform(mg.SEED, 32**3).reshape(32, 32, 32)
    assert np.count_nonzero(inner == 0.0) == 32**3 - 20
    assert np.count_nonzero(inner == 1.0) == np.count_nonzero(inner == -1.0) == 10
    assert numbers[inner == 1.0].min() > numbers[inner != 1.0].max()
    assert numbers[inner == -1.0].max() < numbers[inner != -1.0].min()
    assert np.array_equal(mg._right_hand_side("S"), periodic(inner))


# ---- the benchmark ----


@pytest.mark.parametrize("name", mg.CLASSES)
def test_class_verifies(name: str) -> None:
    verification = mg.verify(mg.run(mg.initial_state(name), mg.CLASSES[name].steps))
    assert verification.verified
    # Rounding alone: far closer to the reference than the benchmark asks for.
    assert verification.norm_deviation < 1e-11


def test_other_results_do_not_verify(middle: dict[str, Any]) -> None:
    assert not mg.verify(middle).verified
    finished = mg.run(middle, 2)
    assert mg.verify(finished).verified
    assert not mg.verify({**finished, "it": 3}).verified
    assert not mg.verify({**finished, "r": 1.00000002 * finished["r"]}).verified
    assert not mg.verify(mg.step(finished)).verified


def test_layout_and_arguments(middle: dict[str, Any]) -> None:
    assert mg.CLASSES["S"].shape == (46480,)
    assert mg.CLASSES["S"].extents == (34, 18, 10, 6, 4)
    assert mg.CLASSES["W"].shape == (2530976,)
    start = mg.initial_state("S")
    assert not start["u"][: 34**3].any()
    # The iteration beforehand leaves the coarse levels; the elements after them are never set.
    for name in ("u", "r"):
        assert np.count_nonzero(start[name][34**3 : -64]) > 6000
        assert not start[name][-64:].any()
    before = frozen(middle)
    mg.step(before)
    assert all(np.array_equal(before[name], middle[name]) for name in ("u", "r"))
    with pytest.raises(ValueError, match="unknown MG class 'B'"):
        mg.initial_state("B")
    with pytest.raises(ValueError, match=r"u has shape \(5,\)"):
        mg.step({"u": np.ones(5), "r": np.ones(5), "it": 0})


# ---- what a restart does not need ----


def expected_masks(problem: mg.ProblemClass) -> dict[str, Field]:
    """All but the finest level; of the residual there also the three faces that the projection leaves out."""
    extent = problem.extents[0]
    needed = {"u": np.ones((extent,) * 3, dtype=bool), "r": np.ones((extent,) * 3, dtype=bool)}
    for axis in range(3):
        needed["r"][(slice(None),) * axis + (0,)] = False
    rest = np.ones(problem.shape[0] - extent**3, dtype=bool)
    return {name: np.concatenate([~mask.ravel(), rest]) for name, mask in needed.items()}


def test_uncritical_elements(profiled: Profile) -> None:
    expected = expected_masks(mg.CLASSES["S"])
    assert expected["u"].sum() == 7176
    assert expected["r"].sum() == 10543
    for name, mask in expected.items():
        assert np.array_equal(profiled.map[name].uncritical, mask), name
        # Coarse levels and faces are overwritten before they are read; behind the levels nothing happens.
        assert set(profiled.map[name].states[:-64][mask[:-64]]) == {ElementState.DEAD}
        assert set(profiled.map[name].states[-64:]) <= {ElementState.INERT, ElementState.UNUSED}
    assert profiled.map["it"].critical.all()
    assert not profiled.sinks
    assert profiled.stationary
    assert profiled.poison is not None
    assert profiled.poison.elements == {"u": 7176, "r": 10543, "it": 0}


def test_brute_force_on_a_tiny_grid(tiny: dict[str, Any]) -> None:
    """Every element of u and r is changed in turn: those that change the output are exactly the critical."""
    found = profile(mg.step, tiny, mg.output)
    expected = expected_masks(TINY)
    for name, mask in expected.items():
        assert np.array_equal(found.map[name].uncritical, mask), name
        for place in range(TINY.shape[0]):
            other = poisoned(tiny, {name: only(TINY.shape, (place,))}, "1e34")
            assert ends_the_same(mg, tiny, other, 2) == bool(mask[place]), (name, place)


def test_class_w() -> None:
    state = mg.run(mg.initial_state("W"), MIDDLE)
    found = profile(mg.step, state, mg.output)
    for name, mask in expected_masks(mg.CLASSES["W"]).items():
        assert np.array_equal(found.map[name].uncritical, mask), name
    other = poisoned(state, {name: found.map[name].uncritical for name in ("u", "r")}, "nan")
    assert mg.verify(mg.run(other, 2)).verified


@pytest.mark.parametrize("fill", FILLS)
@pytest.mark.parametrize("at", [0, 2, 3])
def test_poison_changes_no_bit(profiled: Profile, at: int, fill: str) -> None:
    """The mask of the middle holds at every iteration."""
    state = mg.run(mg.initial_state("S"), at)
    other = poisoned(state, {name: profiled.map[name].uncritical for name in ("u", "r")}, fill)
    assert ends_the_same(mg, state, other, 4 - at)
    assert mg.verify(mg.run(other, 4 - at)).verified


def test_every_critical_element_matters(middle: dict[str, Any], profiled: Profile) -> None:
    for name in ("u", "r"):
        critical = profiled.map[name].critical
        # The last of them is a corner ghost, the hardest to reach.
        for index in [*elements(critical, 20), (34**3 - 1,)]:
            other = poisoned(middle, {name: only(critical.shape, index)}, "nan")
            assert not ends_the_same(mg, middle, other, 2), (name, index)


def test_derivative_agrees(middle: dict[str, Any], profiled: Profile) -> None:
    def norm(u: Any, r: Any) -> Any:
        return mg.output(mg.step({"u": u, "r": r, "it": 0}))["norm"]

    gradients = autograd.grad(norm, argnum=(0, 1))(middle["u"], middle["r"])
    for name, gradient in zip(("u", "r"), gradients, strict=True):
        # The derivative may vanish where the dependence does not, never the other way round.
        assert not (anp.abs(gradient) > 0.0)[profiled.map[name].uncritical].any(), name
        assert np.count_nonzero(gradient) > 0.99 * profiled.map[name].critical.sum()
