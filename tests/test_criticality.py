"""Criticality maps: construction, set algebra, and the stored form with every kind of damage."""

from __future__ import annotations

import errno
import json
import os
import pickle
import stat
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

sys.path.insert(0, str(Path(__file__).parent / "golden"))
import make_map_golden

from scr_critplugin.criticality import CriticalityMap, ElementState, Variable
from scr_critplugin.errors import MapError, StorageError, UnknownVariableError

CRITICAL, INERT, DEAD, UNUSED = ElementState

PARTICLE = np.dtype([("x", "<f8", (3,)), ("kind", "<i2"), ("v", [("r", ">f4"), ("phi", ">f4")])], align=True)
DTYPES = st.sampled_from(
    [np.dtype(text) for text in ("<f8", ">f8", "<i4", "<c16", "?", "u1", "S7", "<U3", "M8[s]")] + [PARTICLE]
)
NAMES = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=12)
SHAPES = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5)
STATES = hnp.arrays(np.uint8, SHAPES, elements=st.integers(0, 3))
FLOATS = st.sampled_from([np.dtype(text) for text in ("<f8", ">f8", "<f4", "<f2", "<c16", ">c8")])
MAGNITUDES = st.floats(0, width=32) | st.just(float("nan"))


def magnitudes_of(shape: tuple[int, ...]) -> st.SearchStrategy[Any]:
    return hnp.arrays(np.float32, shape, elements=MAGNITUDES)


@st.composite
def variables_with_magnitudes(draw: st.DrawFn) -> Variable:
    states = draw(STATES)
    order = draw(st.sampled_from(["C", "F"]))
    return Variable(draw(NAMES), states, draw(FLOATS), order, draw(magnitudes_of(states.shape)))


VARIABLES = (
    st.builds(Variable, NAMES, STATES, DTYPES, st.sampled_from(["C", "F"])) | variables_with_magnitudes()
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
MAPS = st.builds(
    CriticalityMap,
    st.lists(VARIABLES, max_size=4, unique_by=lambda variable: variable.name),
    st.dictionaries(st.text(), JSON, max_size=3),
)


@st.composite
def alike_maps(draw: st.DrawFn, count: int = 3) -> list[CriticalityMap]:
    """Maps of the same variables with independent states."""
    first = draw(MAPS)
    again = [
        CriticalityMap(
            [
                Variable(
                    v.name,
                    draw(hnp.arrays(np.uint8, v.shape, elements=st.integers(0, 3))),
                    v.dtype,
                    v.order,
                    draw(st.none() | magnitudes_of(v.shape)) if v.dtype.kind in "fc" else None,
                )
                for v in first.values()
            ],
            draw(st.dictionaries(st.text(), JSON, max_size=2)),
        )
        for _ in range(count - 1)
    ]
    return [first, *again]


def variable(
    name: str = "u",
    states: Any = (0, 1, 2, 3),
    dtype: Any = "<f8",
    order: Any = "C",
    magnitudes: Any = None,
) -> Variable:
    return Variable(name, states, dtype, order, magnitudes)


# Variables --------------------------------------------------------------------------------------------------


def test_a_variable_tells_its_states() -> None:
    u = variable(states=[[0, 1, 2], [3, 0, 0]])
    assert (u.shape, u.ndim, u.size, u.nbytes) == ((2, 3), 2, 6, 48)
    assert u.critical.tolist() == [[True, False, False], [False, True, True]]
    assert (u.uncritical == ~u.critical).all()
    assert u.counts() == {CRITICAL: 3, INERT: 1, DEAD: 1, UNUSED: 1}


@pytest.mark.parametrize("state", list(ElementState))
def test_a_scalar_is_a_variable(state: ElementState) -> None:
    step = variable("step", state, "<i4")
    assert step.shape == ()
    assert step.size == 1
    assert step.critical.shape == ()
    assert bool(step.critical) is (state is CRITICAL)
    assert bool(step.uncritical) is (state is not CRITICAL)
    assert step.counts()[state] == 1


def test_a_variable_cannot_be_changed() -> None:
    given_states = np.zeros(3, np.uint8)
    u = variable(states=given_states)
    given_states[:] = DEAD
    assert u.critical.all()
    given_magnitudes = np.ones(3, np.float32)
    with_magnitudes = Variable("u", given_states, "<f8", magnitudes=given_magnitudes)
    given_magnitudes[:] = 5
    assert with_magnitudes.magnitudes is not None
    assert (with_magnitudes.magnitudes == 1).all()
    for array in (
        u.states,
        u.critical,
        u.uncritical,
        variable(states=0).critical,
        with_magnitudes.magnitudes,
    ):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 1
    with pytest.raises(AttributeError, match="immutable"):
        u.name = "v"
    with pytest.raises(AttributeError, match="immutable"):
        del u.dtype


def test_states_of_a_transposed_array_keep_their_indices() -> None:
    states = np.arange(6).reshape(2, 3) % 4
    u = Variable("u", np.asfortranarray(states), "<f8", "F")
    assert (u.states == states).all()
    assert u.order == "F"


@pytest.mark.parametrize(
    ("arguments", "key", "said"),
    [
        ({"name": ""}, "name", "printable"),
        ({"name": "a\nb"}, "name", "printable"),
        ({"name": "\ud800"}, "name", "printable"),
        ({"name": b"u"}, "name", "expected a str"),
        ({"states": [0, 4]}, "u", r"found 4 at \[1\], expected 0 to 3"),
        ({"states": [[0, 1], [-1, 2]]}, "u", r"found -1 at \[1, 0\]"),
        ({"states": np.array([256])}, "u", r"found 256 at \[0\]"),
        ({"states": [0.0, 1.0]}, "u", "expected integers"),
        ({"states": [True, False]}, "u", "from_masks"),
        ({"dtype": None}, "u", "found None"),
        ({"dtype": "no such type"}, "u", "expected a NumPy dtype"),
        ({"dtype": object}, "u", "Python objects"),
        ({"dtype": [("a", "O")]}, "u", "Python objects"),
        ({"dtype": ("<f8", (3,))}, "u", "sub-array"),
        ({"dtype": "S0"}, "u", "no bytes"),
        (
            {"dtype": {"names": ["a", "b"], "formats": ["<f8", "<f8"], "offsets": [0, 4]}},
            "u",
            "cannot be written",
        ),
        ({"order": "A"}, "u", "expected 'C' or 'F'"),
        ({"magnitudes": np.ones(3)}, "u", r"magnitudes: found shape \(3,\), expected \(4,\)"),
        ({"magnitudes": [1.0, -1.0, 0.0, 2.0]}, "u", r"magnitudes: found -1.0, expected 0 or more"),
        ({"magnitudes": [1, 1, 0, 2]}, "u", "magnitudes: found dtype int64, expected floating point"),
        ({"magnitudes": np.ones(4), "dtype": "<i8"}, "u", "magnitudes: found dtype int64, expected real or"),
    ],
)
def test_a_wrong_argument_is_named(arguments: dict[str, Any], key: str, said: str) -> None:
    with pytest.raises(MapError, match=said) as caught:
        variable(**arguments)
    assert caught.value.key == key


@settings(deadline=None)
@given(VARIABLES)
def test_variables_compare_and_pickle(u: Variable) -> None:
    assert pickle.loads(pickle.dumps(u)) == u
    assert Variable(u.name + "x", u.states, u.dtype, u.order) != u
    assert Variable(u.name, u.states, u.dtype, "F" if u.order == "C" else "C") != u
    assert Variable(u.name, np.stack([u.states]), u.dtype, u.order) != u
    if u.size:
        other = np.array(u.states)
        other.flat[0] ^= 1
        assert Variable(u.name, other, u.dtype, u.order) != u
    assert u != "u"


@settings(deadline=None)
@given(variables_with_magnitudes())
def test_variables_with_other_magnitudes_differ(u: Variable) -> None:
    assert u.magnitudes is not None
    assert Variable(u.name, u.states, u.dtype, u.order, u.magnitudes) == u
    assert Variable(u.name, u.states, u.dtype, u.order) != u
    if u.size:
        other = np.array(u.magnitudes)
        other.flat[0] = 1 if np.isnan(other.flat[0]) else np.nan
        assert Variable(u.name, u.states, u.dtype, u.order, other) != u


def test_magnitudes_neither_vanish_nor_become_infinite_in_single_precision() -> None:
    given_magnitudes = np.array([0.0, 1e-300, 0.1, 1e300, np.inf, np.nan])
    kept = Variable("u", np.zeros(6, int), "<f8", magnitudes=given_magnitudes).magnitudes
    assert kept is not None
    assert kept.dtype == np.float32
    assert ((kept == 0) == (given_magnitudes == 0)).all()
    assert (np.isinf(kept) == np.isinf(given_magnitudes)).all()
    assert (np.isnan(kept) == np.isnan(given_magnitudes)).all()
    assert kept[2] == np.float32(0.1)
    assert kept[0] < kept[1] < kept[2] < kept[3] < kept[4]


# The mapping ------------------------------------------------------------------------------------------------


def test_a_map_is_a_mapping_in_the_order_given() -> None:
    m = CriticalityMap([variable("u"), variable("rho", 0), variable("a.b", np.zeros(0, int))])
    assert list(m) == ["u", "rho", "a.b"]
    assert len(m) == 3
    assert "rho" in m
    assert "v" not in m
    assert 3 not in m
    assert m["u"].critical.tolist() == [True, False, False, False]
    assert m.get("v") is None
    assert dict(m) == {name: m[name] for name in m}
    with pytest.raises(KeyError):
        m["v"]
    with pytest.raises(UnknownVariableError, match=r"it has: u, rho, a\.b") as caught:
        m["v"]
    assert caught.value.key == "v"
    assert str(caught.value).startswith("key v: no such variable")


def test_two_variables_of_one_name_are_refused() -> None:
    with pytest.raises(MapError, match="two variables") as caught:
        CriticalityMap([variable("u"), variable("u")])
    assert caught.value.key == "u"


def test_provenance_becomes_json() -> None:
    given_provenance = {
        "steps": np.int64(3),
        "program": Path("bt.py"),
        "seeds": np.arange(3),
        "eps": np.float32(0.5),
    }
    m = CriticalityMap([], given_provenance)
    assert m.provenance == {"steps": 3, "program": "bt.py", "seeds": [0, 1, 2], "eps": 0.5}


@pytest.mark.parametrize("value", [object(), float("nan"), {1, 2}, 1j])
def test_provenance_that_is_no_json_is_refused(value: object) -> None:
    with pytest.raises(MapError, match="JSON") as caught:
        CriticalityMap([], {"engine": value})
    assert caught.value.key == "provenance"


def test_a_map_from_masks() -> None:
    m = CriticalityMap.from_masks(
        {"u": np.eye(2, dtype=bool), "step": np.True_},
        {"u": "<f8", "step": "<i4"},
        orders={"u": "F"},
        uncritical=DEAD,
    )
    assert m["u"].states.tolist() == [[CRITICAL, DEAD], [DEAD, CRITICAL]]
    assert m["u"].order == "F"
    assert m["step"].order == "C"
    assert m["step"].dtype == "<i4"
    assert CriticalityMap.from_masks({"u": [False]}, float)["u"].counts()[INERT] == 1


@pytest.mark.parametrize(
    ("arguments", "key", "said"),
    [
        (({"u": [0, 1]}, "<f8"), "u", "expected bool"),
        (({"u": [True]}, {}), "u", "does not name"),
        (({"u": [True]}, {"u": "<f8", "v": "<f8"}), "v", "no mask"),
    ],
)
def test_masks_that_do_not_fit_are_refused(arguments: Any, key: str, said: str) -> None:
    with pytest.raises(MapError, match=said) as caught:
        CriticalityMap.from_masks(*arguments)
    assert caught.value.key == key


def test_a_mask_cannot_make_its_uncritical_elements_critical() -> None:
    with pytest.raises(MapError, match="expected INERT, DEAD or UNUSED"):
        CriticalityMap.from_masks({"u": [False]}, "<f8", uncritical=CRITICAL)
    with pytest.raises(MapError, match="no mask"):
        CriticalityMap.from_masks({"u": [False]}, "<f8", orders={"v": "F"})


# Set algebra ------------------------------------------------------------------------------------------------


def test_union_lets_the_weakest_claim_win() -> None:
    pairs = [(a, b) for a in ElementState for b in ElementState]
    one = CriticalityMap([variable(states=[a for a, _ in pairs])])
    other = CriticalityMap([variable(states=[b for _, b in pairs])])
    weakest_first = [CRITICAL, UNUSED, INERT, DEAD]
    expected = [min(pair, key=weakest_first.index) for pair in pairs]
    assert one.union(other)["u"].states.tolist() == expected


@settings(deadline=None)
@given(alike_maps())
def test_union_is_a_lattice_and_critical_in_one_is_critical_in_all(maps: list[CriticalityMap]) -> None:
    a, b, c = maps
    together = a.union(b, c)
    assert together == c.union(a).union(b) == a.union(b.union(c))
    assert a.union(a) == a
    for name in a:
        expected = a[name].critical | b[name].critical | c[name].critical
        assert np.array_equal(together[name].critical, expected)
    distinct: list[tuple[dict[str, Any], int]] = []
    for provenance in (a.provenance, b.provenance, c.provenance):
        counted = [number for known, number in distinct if known == provenance]
        distinct = [each for each in distinct if each[0] != provenance]
        distinct.append((provenance, 1 + sum(counted)))
    sources = [{**known, "maps": number} if number > 1 else known for known, number in distinct]
    assert sorted(together.provenance["union"], key=repr) == sorted(sources, key=repr)
    assert a.union(b).union(c).provenance == together.provenance


def test_union_keeps_the_largest_magnitude_that_all_maps_know() -> None:
    def of(*magnitudes: Any) -> CriticalityMap:
        return CriticalityMap([Variable("u", [0, 1, 0], "<f8", magnitudes=m) for m in magnitudes])

    nan = np.nan
    together = of([1.0, 0.0, 2.0]).union(of([0.5, 3.0, nan]), of([0.0, 0.0, 4.0]))
    expected = Variable("u", [0, 1, 0], "<f8", magnitudes=[1.0, 3.0, nan])
    assert together["u"] == expected
    assert of([1.0, 0.0, 2.0]).union(of(None))["u"].magnitudes is None
    assert of([1.0, 0.0, 2.0]).union(of([1.0, 0.0, 2.0]), of(None))["u"].magnitudes is None


def test_union_with_nothing_is_the_map_itself() -> None:
    m = CriticalityMap([variable()], {"engine": "trace"})
    assert m.union() == m
    assert m.union().provenance == {"engine": "trace"}


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (variable(states=[0, 1]), r"shape differs, \(4,\) and \(2,\) \(first map and map 2\)"),
        (variable(dtype=">f8"), "dtype differs, float64 and >f8"),
        (variable(order="F"), "order differs, C and F"),
        (variable("v"), "only the first map has this variable"),
    ],
)
def test_union_refuses_maps_of_different_variables(other: Variable, said: str) -> None:
    m = CriticalityMap([variable()])
    with pytest.raises(MapError, match=said) as caught:
        m.union(m, CriticalityMap([other]))
    assert caught.value.key == "u"


def test_union_names_a_variable_only_another_map_has() -> None:
    m = CriticalityMap([variable()])
    with pytest.raises(MapError, match="only map 1 has this variable") as caught:
        m.union(CriticalityMap([variable(), variable("v")]))
    assert caught.value.key == "v"


def test_comparison_counts() -> None:
    one = CriticalityMap([variable(states=[0, 0, 1, 1, 2]), variable("mine", 0), variable("t", 0, "<i4")])
    other = CriticalityMap([variable(states=[0, 3, 0, 1, 3]), variable("theirs", 0), variable("t", 0, "<i8")])
    result = one.compare(other)
    (row,) = result.rows
    assert (row.name, row.elements) == ("u", 5)
    assert (row.both, row.only_self, row.only_other, row.neither, row.same_state) == (1, 1, 1, 2, 2)
    assert result.only_in_self == ("mine",)
    assert result.only_in_other == ("theirs",)
    assert result.mismatched == {"t": "dtype differs, int32 and int64"}
    assert not result.identical


@settings(deadline=None)
@given(alike_maps(2))
def test_comparison_agrees_with_equality(maps: list[CriticalityMap]) -> None:
    one, other = maps
    result = one.compare(other)
    assert result.identical == all(np.array_equal(one[name].states, other[name].states) for name in one)
    assert result.identical or one != other
    assert one.compare(one).identical
    for row in result.rows:
        assert row.both + row.only_self + row.only_other + row.neither == row.elements


def test_summary_and_json_form() -> None:
    m = CriticalityMap([variable("u", [[0, 1, 2], [3, 3, 0]], ">f4"), variable("step", 0, "<i8")])
    assert [row.uncritical for row in m.summary()] == [4, 0]
    # fmt: off
    expected = {"variables": [
        {"name": "u", "shape": [2, 3], "dtype": ">f4", "elements": 6, "critical": 2, "inert": 1, "dead": 1,
         "unused": 2},
        {"name": "step", "shape": [], "dtype": "int64", "elements": 1, "critical": 1, "inert": 0, "dead": 0,
         "unused": 0},
    ]}
    # fmt: on
    assert m.to_json_dict() == expected
    assert json.loads(json.dumps(m.to_json_dict())) == expected


# The file ---------------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(MAPS)
def test_a_saved_map_comes_back(tmp_path_factory: pytest.TempPathFactory, m: CriticalityMap) -> None:
    path = tmp_path_factory.mktemp("map") / "any name.map"
    m.save(path)
    loaded = CriticalityMap.load(path)
    assert loaded == m
    assert list(loaded) == list(m)
    assert loaded.provenance == m.provenance
    assert [v.dtype for v in loaded.values()] == [v.dtype for v in m.values()]
    assert list(path.parent.iterdir()) == [path]


def test_a_map_file_is_small_reproducible_and_readable_without_this_package(tmp_path: Path) -> None:
    states = np.zeros((100, 100, 100), np.uint8)
    states[:2] = DEAD
    m = CriticalityMap([variable("u", states)], {"engine": "trace"})
    m.save(tmp_path / "one")
    m.save(tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    assert (tmp_path / "one").stat().st_size < 4000
    with np.load(tmp_path / "one", allow_pickle=False) as archive:
        assert int(archive["scr_crit_map"]) == 1
        assert json.loads(archive["provenance"].tobytes()) == {"engine": "trace"}
        assert json.loads(archive["variables"].tobytes()) == [
            {"name": "u", "shape": [100, 100, 100], "dtype": "<f8", "order": "C"}
        ]
        packed = archive["states.0"]
    assert packed.size == 250_000
    by_hand = np.array([packed[e // 4] >> 2 * (e % 4) & 3 for e in range(19_990, 20_010)])
    assert by_hand.tolist() == [DEAD] * 10 + [CRITICAL] * 10


def test_magnitudes_make_a_map_of_version_2_readable_without_this_package(tmp_path: Path) -> None:
    u = Variable("u", [[0, 1], [2, 0]], "<f8", "F", [[0.5, 0.0], [0.0, 2.0]])
    CriticalityMap([u, variable("step", 0, "<i8")]).save(tmp_path / "m")
    with np.load(tmp_path / "m", allow_pickle=False) as archive:
        assert sorted(archive.files) == [
            "magnitudes.0", "provenance", "scr_crit_map", "states.0", "states.1", "variables"
        ]  # fmt: skip
        assert int(archive["scr_crit_map"]) == 2
        entries = json.loads(archive["variables"].tobytes())
        assert [entry["magnitudes"] for entry in entries] == [True, False]
        assert archive["magnitudes.0"].dtype == "<f4"
        assert archive["magnitudes.0"].tolist() == [0.5, 0.0, 0.0, 2.0]


@pytest.mark.parametrize("name", make_map_golden.cases())
def test_golden_maps_are_read_and_a_map_is_still_written_like_them(name: str, tmp_path: Path) -> None:
    golden, expected = make_map_golden.FOLDER / name, make_map_golden.cases()[name]
    loaded = CriticalityMap.load(golden)
    assert loaded == expected
    assert loaded.provenance == expected.provenance
    loaded.save(tmp_path / name)
    with np.load(golden) as one, np.load(tmp_path / name) as other:
        assert sorted(one.files) == sorted(other.files)
        for member in one.files:
            assert one[member].dtype == other[member].dtype
            assert one[member].shape == other[member].shape
            assert one[member].tobytes() == other[member].tobytes(), member


def test_a_golden_map_is_never_made_again(tmp_path: Path) -> None:
    (tmp_path / "map-v1.npz").write_bytes(b"as it is")
    assert make_map_golden.make(tmp_path) == [tmp_path / "map-v2.npz"]
    assert (tmp_path / "map-v1.npz").read_bytes() == b"as it is"


def test_saving_replaces_a_file_and_obeys_the_umask(tmp_path: Path) -> None:
    path = tmp_path / "m.npz"
    CriticalityMap([variable("old")]).save(path)
    before = os.umask(0o027)
    try:
        CriticalityMap([variable("new")]).save(path)
    finally:
        os.umask(before)
    assert list(CriticalityMap.load(path)) == ["new"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_refused_write_leaves_the_old_map(tmp_path: Path) -> None:
    directory = tmp_path / "taken"
    directory.mkdir()
    (directory / "inside").touch()
    with pytest.raises(StorageError) as caught:
        CriticalityMap([variable()]).save(directory)
    assert caught.value.errno in (errno.EISDIR, errno.EEXIST, errno.ENOTEMPTY)
    assert caught.value.path == str(directory)
    assert sorted(tmp_path.iterdir()) == [directory]
    with pytest.raises(StorageError) as caught:
        CriticalityMap([variable()]).save(tmp_path / "no such directory" / "m.npz")
    assert caught.value.errno == errno.ENOENT


def test_a_full_disk_is_reported_as_such(tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("needs /dev/full, a Linux device that is always full")
    path = tmp_path / "m.npz"
    CriticalityMap([variable("old")]).save(path)
    before = path.read_bytes()
    temporary = Path(f"{path}.tmp-{os.getpid()}")
    temporary.symlink_to("/dev/full")
    with pytest.raises(StorageError) as caught:
        CriticalityMap([variable("new")]).save(path)
    assert caught.value.errno == errno.ENOSPC
    assert path.read_bytes() == before
    assert not temporary.is_symlink()


def test_a_missing_map_is_a_storage_error(tmp_path: Path) -> None:
    with pytest.raises(StorageError) as caught:
        CriticalityMap.load(tmp_path / "none.npz")
    assert caught.value.errno == errno.ENOENT
    with pytest.raises(StorageError) as caught:
        CriticalityMap.load(tmp_path)
    assert caught.value.errno == errno.EISDIR


def members_of(m: CriticalityMap, tmp_path: Path) -> dict[str, np.ndarray[Any, Any]]:
    m.save(tmp_path / "good.npz")
    with np.load(tmp_path / "good.npz", allow_pickle=False) as archive:
        return dict(archive)


def as_json(value: Any) -> np.ndarray[Any, Any]:
    return np.frombuffer(json.dumps(value).encode(), np.uint8)


GOOD_ENTRY = {"name": "u", "shape": [5], "dtype": "<f8", "order": "C"}
MISSING = object()


@pytest.mark.parametrize(
    ("member", "value", "key", "said"),
    [
        ("scr_crit_map", MISSING, "scr_crit_map", "something else"),
        ("scr_crit_map", np.int64(3), "scr_crit_map", "found format version 3, expected at most 2"),
        ("scr_crit_map", np.int64(2), "variables[0]", "name, shape, dtype, order and magnitudes"),
        ("variables", as_json([{**GOOD_ENTRY, "magnitudes": True}]), "variables[0]", "dtype and order"),
        ("magnitudes.0", np.zeros(5, "<f4"), "magnitudes.0", "no map has"),
        ("scr_crit_map", np.int64(0), "scr_crit_map", "expected 1 or more"),
        ("scr_crit_map", np.float64(1), "scr_crit_map", "expected one integer"),
        ("scr_crit_map", np.ones(2, int), "scr_crit_map", "expected one integer"),
        ("provenance", MISSING, "provenance", "missing"),
        ("provenance", np.array("{}"), "provenance", "expected uint8"),
        ("provenance", as_json([]), "provenance", "found a JSON list, expected a dict"),
        ("provenance", np.frombuffer(b"{", np.uint8), "provenance", "not JSON"),
        ("provenance", np.frombuffer(b"\xff{}", np.uint8), "provenance", "not JSON"),
        ("provenance", np.frombuffer(b"[" * 200_000, np.uint8), "provenance", "not JSON"),
        ("provenance", np.frombuffer(b'{"a": NaN}', np.uint8), "provenance", "JSON can hold"),
        ("provenance", np.array([b"x", None], object), "provenance", "allow_pickle"),
        ("variables", MISSING, "variables", "missing"),
        ("variables", as_json({}), "variables", "expected a list"),
        ("variables", as_json(["u"]), "variables[0]", "expected an object"),
        ("variables", as_json([{"name": "u", "shape": [5]}]), "variables[0]", "expected an object"),
        ("variables", as_json([{**GOOD_ENTRY, "shape": 5}]), "variables[0].shape", "list of extents"),
        ("variables", as_json([{**GOOD_ENTRY, "shape": [-5]}]), "variables[0].shape", "list of extents"),
        ("variables", as_json([{**GOOD_ENTRY, "shape": [5.0]}]), "variables[0].shape", "list of extents"),
        ("variables", as_json([{**GOOD_ENTRY, "shape": [True]}]), "variables[0].shape", "list of extents"),
        ("variables", as_json([{**GOOD_ENTRY, "shape": [9]}]), "states.0", "found 2 bytes, expected 3"),
        ("variables", as_json([{**GOOD_ENTRY, "shape": [2**80]}]), "states.0", "found 2 bytes, expected"),
        ("variables", as_json([{**GOOD_ENTRY, "shape": [1] * 200 + [5]}]), "states.0", "damage"),
        ("variables", as_json([{**GOOD_ENTRY, "dtype": "|O"}]), "u", "Python objects"),
        ("variables", as_json([{**GOOD_ENTRY, "dtype": "zz"}]), "variables[0].dtype", "damage"),
        ("variables", as_json([{**GOOD_ENTRY, "dtype": 8}]), "variables[0].dtype", "damage"),
        ("variables", as_json([{**GOOD_ENTRY, "dtype": [["a"]]}]), "variables[0].dtype", "as a field"),
        ("variables", as_json([{**GOOD_ENTRY, "dtype": [[1, "<f8"]]}]), "variables[0].dtype", "damage"),
        ("variables", as_json([{**GOOD_ENTRY, "order": "K"}]), "u", "expected 'C' or 'F'"),
        ("variables", as_json([{**GOOD_ENTRY, "name": ""}]), "name", "printable"),
        ("variables", as_json([{**GOOD_ENTRY, "name": 3}]), "name", "expected a str"),
        ("variables", as_json([GOOD_ENTRY, GOOD_ENTRY]), "states.1", "missing"),
        ("variables", as_json([]), "states.0", "no map has"),
        ("states.0", MISSING, "states.0", "missing"),
        ("states.0", np.zeros(2, np.int8), "states.0", "expected uint8"),
        ("states.0", np.zeros((2, 1), np.uint8), "states.0", "expected uint8 of one dimension"),
        ("states.0", np.zeros(3, np.uint8), "states.0", "found 3 bytes, expected 2"),
        ("states.0", np.array([0, 4], np.uint8), "states.0", "behind the last element"),
        ("states.1", np.zeros(1, np.uint8), "states.1", "no map has"),
    ],
)
def test_each_kind_of_damage_names_path_and_key(
    tmp_path: Path, member: str, value: Any, key: str, said: str
) -> None:
    members = members_of(CriticalityMap([variable(states=[0, 1, 2, 3, 1])]), tmp_path)
    members[member] = value
    if value is MISSING:
        del members[member]
    path = tmp_path / "bad.npz"
    np.savez_compressed(path, **members)
    if (
        said is None
    ):  # 7 elements fill the same two bytes as 5: only the content can tell, and here it does not
        assert CriticalityMap.load(path)["u"].states.ravel().tolist() == [0, 1, 2, 3, 1, 0, 0]
        return
    with pytest.raises(MapError, match=said) as caught:
        CriticalityMap.load(path)
    assert caught.value.path == str(path)
    assert caught.value.key == key


@pytest.mark.parametrize(
    ("member", "value", "key", "said"),
    [
        ("scr_crit_map", np.int64(1), "variables[0]", "name, shape, dtype and order"),
        ("scr_crit_map", np.int64(3), "scr_crit_map", "found format version 3, expected at most 2"),
        ("variables", as_json([{**GOOD_ENTRY, "magnitudes": 1}]), "variables[0].magnitudes", "true or false"),
        ("variables", as_json([GOOD_ENTRY]), "variables[0]", "dtype, order and magnitudes"),
        ("variables", as_json([{**GOOD_ENTRY, "magnitudes": False}]), "magnitudes.0", "no map has"),
        (
            "variables",
            as_json([{**GOOD_ENTRY, "magnitudes": True, "dtype": "<i8"}]),
            "u",
            "expected real or complex",
        ),
        ("magnitudes.0", MISSING, "magnitudes.0", "missing"),
        ("magnitudes.0", np.zeros(5), "magnitudes.0", "expected float32 of one dimension"),
        ("magnitudes.0", np.zeros(5, ">f4"), "magnitudes.0", "expected float32 of one dimension"),
        ("magnitudes.0", np.zeros((1, 5), "<f4"), "magnitudes.0", "expected float32 of one dimension"),
        ("magnitudes.0", np.zeros(4, "<f4"), "magnitudes.0", r"found 4 numbers, expected 5 for shape \(5,\)"),
        ("magnitudes.0", np.array([0, 0, -1, 0, 0], "<f4"), "u", "found -1.0, expected 0 or more"),
        ("magnitudes.1", np.zeros(1, "<f4"), "magnitudes.1", "no map has"),
    ],
)
def test_each_kind_of_damage_to_magnitudes_names_path_and_key(
    tmp_path: Path, member: str, value: Any, key: str, said: str
) -> None:
    good = Variable("u", [0, 1, 2, 3, 1], "<f8", magnitudes=[1.0, 0.0, 0.5, np.nan, 2.0])
    members = members_of(CriticalityMap([good]), tmp_path)
    members[member] = value
    if value is MISSING:
        del members[member]
    np.savez_compressed(tmp_path / "bad.npz", **members)
    with pytest.raises(MapError, match=said) as caught:
        CriticalityMap.load(tmp_path / "bad.npz")
    assert caught.value.path == str(tmp_path / "bad.npz")
    assert caught.value.key == key


def test_version_2_is_for_maps_with_magnitudes(tmp_path: Path) -> None:
    members = members_of(CriticalityMap([]), tmp_path)
    np.savez_compressed(tmp_path / "bad.npz", **{**members, "scr_crit_map": np.int64(2)})
    with pytest.raises(MapError, match="version 2 without any magnitudes") as caught:
        CriticalityMap.load(tmp_path / "bad.npz")
    assert caught.value.key == "scr_crit_map"


def test_a_name_that_occurs_twice_in_a_file_is_refused(tmp_path: Path) -> None:
    members = members_of(CriticalityMap([variable("a"), variable("b")]), tmp_path)
    entry = {**GOOD_ENTRY, "shape": [4]}
    np.savez_compressed(tmp_path / "bad.npz", **{**members, "variables": as_json([entry, entry])})
    with pytest.raises(MapError, match="two variables") as caught:
        CriticalityMap.load(tmp_path / "bad.npz")
    assert (caught.value.path, caught.value.key) == (str(tmp_path / "bad.npz"), "u")


def test_foreign_files_are_no_maps(tmp_path: Path) -> None:
    path = tmp_path / "foreign"
    np.savez(tmp_path / "other.npz", u=np.zeros(3))
    np.save(tmp_path / "array.npy", np.zeros(3))
    contents = {
        "empty": b"",
        "text": b"particles 3\n1 2 3\n",
        "pickle": pickle.dumps({"u": 1}),
        "npz of something else": (tmp_path / "other.npz").read_bytes(),
        "npy": (tmp_path / "array.npy").read_bytes(),
        "zip magic alone": b"PK\x03\x04",
        "npy magic alone": b"\x93NUMPY",
    }
    for kind, content in contents.items():
        path.write_bytes(content)
        with pytest.raises(MapError) as caught:
            CriticalityMap.load(path)
        assert caught.value.path == str(path), kind


def test_a_member_that_is_no_array_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "good.npz"
    CriticalityMap([variable()]).save(path)
    with zipfile.ZipFile(path) as good, zipfile.ZipFile(tmp_path / "bad.npz", "w") as bad:
        for name in good.namelist():
            bad.writestr(name, good.read(name) if name != "states.0.npy" else b"bytes")
    with pytest.raises(MapError, match="found bytes") as caught:
        CriticalityMap.load(tmp_path / "bad.npz")
    assert caught.value.key == "states.0"


@pytest.fixture(scope="module", params=[1, 2], ids=["version 1", "version 2"])
def sound(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> tuple[CriticalityMap, bytes, Path]:
    u = variable("u", np.arange(60).reshape(3, 4, 5) % 4)
    if request.param == 2:
        u = Variable(u.name, u.states, u.dtype, u.order, np.arange(60.0).reshape(3, 4, 5) / 7)
    m = CriticalityMap([u, variable("p", [0, 2], PARTICLE)], {"steps": 2})
    path = tmp_path_factory.mktemp("sound") / "m.npz"
    m.save(path)
    return m, path.read_bytes(), path


def test_every_truncation_is_an_error(sound: tuple[CriticalityMap, bytes, Path]) -> None:
    _, content, path = sound
    for length in range(len(content)):
        path.write_bytes(content[:length])
        with pytest.raises(MapError):
            CriticalityMap.load(path)


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_a_flipped_bit_is_an_error_or_changes_nothing(
    sound: tuple[CriticalityMap, bytes, Path], data: st.DataObject
) -> None:
    m, content, path = sound
    bit = data.draw(st.integers(0, 8 * len(content) - 1))
    damaged = bytearray(content)
    damaged[bit // 8] ^= 1 << bit % 8
    path.write_bytes(damaged)
    try:
        loaded = CriticalityMap.load(path)
    except MapError:
        return
    # Time stamps, attributes and the like of the zip container mean nothing to a map.
    assert loaded == m
    assert loaded.provenance == m.provenance
