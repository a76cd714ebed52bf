"""Passes on runs against the dense ones: the same elements, for every primitive and for random programs."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import test_dependence_rules as rules_of
import test_inplace as programs
from hypothesis import given, settings
from hypothesis import strategies as st

from scr_critplugin.analysis import sweep
from scr_critplugin.analysis.program import Program
from scr_critplugin.analysis.runsets import Runs
from scr_critplugin.analysis.sparse import Sweeper


def random_mask(shape: Any, share: float, generator: np.random.Generator) -> Any:
    """A mask with about that share set; a list of them for a sequence."""
    if isinstance(shape, list):
        return [random_mask(part, share, generator) for part in shape]
    return np.asarray(generator.random(shape) < share)


def as_elements(mask: Any) -> Any:
    """The same as runs."""
    return [as_elements(part) for part in mask] if isinstance(mask, list) else Runs.from_mask(mask)


def dense_and_sparse(tape: Any, seeds: list[tuple[Any, Any]]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the roots get from boolean `seeds` (and sinks) in both ways."""
    dense = sweep.needed(tape, [(node, copy.deepcopy(mask)) for node, mask in seeds])
    sweeper = Sweeper(tape)
    found = sweeper.needed([*((node, as_elements(mask)) for node, mask in seeds), *sweeper.sinks()])
    return dense, {name: found[name].on(dense[name].shape) for name in dense}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", [*rules_of.CASES, *rules_of.UFUNC_CASES], ids=lambda case: case.label)
def test_primitive_pulls_the_same_elements(case: Any) -> None:
    tape, found = rules_of.available(case, rules_of.traced)
    for leaf in found:
        if not hasattr(leaf, "_node"):
            continue
        node = leaf._node
        generator = np.random.default_rng(1)
        for share in (0.0, 0.2, 0.7, 1.0):
            mask = random_mask(node.shape, share, generator)
            dense, sparse = dense_and_sparse(tape, [(node, mask)])
            for name in dense:
                assert np.array_equal(sparse[name], dense[name]), (name, share)


@settings(max_examples=80)
@given(st.lists(programs.STATEMENT, min_size=1, max_size=6), st.data())
def test_random_program_gives_the_same_sets(statements: Any, data: Any) -> None:
    with np.errstate(all="ignore"):
        traced = Program(programs.program(statements), lambda s: s["a"]).trace_step(programs.start())
    masks = {name: np.array(data.draw(st.lists(st.booleans(), min_size=6, max_size=6))) for name in "abc"}
    seeds = [(node, masks[name]) for name, node in traced.nodes.items()]
    dense, sparse = dense_and_sparse(traced.tape, seeds)
    sparse_seeds = [(node, Runs.from_mask(mask)) for node, mask in seeds]
    for name in dense:
        assert np.array_equal(sparse[name], dense[name]), name
    for of_sets, of_masks in ((Sweeper.accessed, sweep.accessed), (Sweeper.carried, sweep.carried)):
        found = of_sets(Sweeper(traced.tape), sparse_seeds)
        expected = of_masks(traced.tape, [(node, mask.copy()) for node, mask in seeds])
        for name in expected:
            assert np.array_equal(found[name].on((6,)), expected[name]), (of_sets.__name__, name)


FREQUENT = {
    "stencil of slices": lambda x: x[1:-1, 1:-1] + x[:-2, 1:-1] - 2.0 * x[1:-1, 2:],
    "stencil of rolls": lambda x: np.roll(x, 1, axis=0) + np.roll(x, (-1, 2), axis=(0, 1)),
    "periodic padding": lambda x: np.pad(x, ((2, 1), (0, 3)), mode="wrap"),
    "padding with zeros": lambda x: np.pad(x, 2),
    "sum along an axis": lambda x: np.sum(x, axis=0)[:5],
    "transform along an axis": lambda x: np.sort(x, axis=1)[3:5],
    "broadcast row": lambda x: x + x[:1],
    "broadcast column": lambda x: x * x[:, :1],
    "halves put together": lambda x: np.concatenate([x[10:], x[:10]], axis=0),
    "columns put together": lambda x: np.concatenate([x[:, 10:], x[:, :10]], axis=1),
    "flat view": lambda x: x.reshape(-1)[17:300].reshape(283, 1),
    "transposed": lambda x: np.swapaxes(x, 0, 1)[::-1],
    "where, constant condition": lambda x: np.where(np.arange(32) % 3 == 0, x, 0.0),
    "list of rows": lambda x: x[[5, 3, 3, -1]],
    "masked rows": lambda x: x[np.arange(32) % 5 == 0],
    "halves": lambda x: np.split(x, 2)[1] + np.split(x, 2, axis=0)[0],
    "stack": lambda x: np.stack([x, 2.0 * x]),
}


@pytest.mark.parametrize("label", FREQUENT)
def test_frequent_primitives_need_no_boolean_arrays(label: str) -> None:
    x = np.random.default_rng(2).random((32, 32))
    traced = Program(lambda s: dict(s), lambda s: FREQUENT[label](s["x"])).trace_output({"x": x})
    (node,) = traced.nodes
    generator = np.random.default_rng(3)
    for share in (0.02, 0.5):
        mask = generator.random(node.shape) < share
        sweeper = Sweeper(traced.tape)
        found = sweeper.needed([(node, Runs.from_mask(mask))])
        assert np.array_equal(found["x"].on(x.shape), sweep.needed(traced.tape, [(node, mask)])["x"])
        assert not sweeper.densely


def test_other_primitives_are_pulled_densely_and_counted() -> None:
    x = np.linspace(0.0, 1.0, 12)
    traced = Program(lambda s: dict(s), lambda s: np.cumsum(s["x"])).trace_output({"x": x})
    sweeper = Sweeper(traced.tape)
    found = sweeper.needed([(traced.nodes[0], Runs.from_places(np.array([4])))])
    assert found["x"].places(12).tolist() == [0, 1, 2, 3, 4]
    assert sweeper.densely == {"cumsum": 1}
