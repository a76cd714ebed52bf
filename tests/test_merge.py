"""`scr_crit merge` and the merging under it: unions, groups, kinds of equal maps, provenance, and errors."""

from __future__ import annotations

import io
import json
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scr_critplugin import merging
from scr_critplugin.criticality import CriticalityMap, ElementState
from scr_critplugin.errors import MapError, StorageError
from scr_critplugin.provenance import LISTED, Sources


def map_of(critical: list[int], size: int = 6, *, rank: int | None = None, **more: Any) -> CriticalityMap:
    mask = np.zeros(size, dtype=bool)
    mask[critical] = True
    provenance = {"engine": "dependence", "date": f"2026-11-30T00:00:{(rank or 0) % 60:02d}", **more}
    if rank is not None:
        provenance["rank"] = rank
    return CriticalityMap.from_masks(
        {"u": mask, "step": np.True_}, {"u": "f8", "step": "i4"}, provenance=provenance
    )


def saved(folder: Path, maps: list[CriticalityMap]) -> list[Path]:
    paths = [folder / f"map.{number}.npz" for number in range(len(maps))]
    for path, each in zip(paths, maps, strict=True):
        each.save(path)
    return paths


def critical(found: CriticalityMap) -> list[int]:
    return np.flatnonzero(found["u"].critical).tolist()


# ---- the library ----


def test_one_map_of_all(ram_path: Path) -> None:
    maps = [map_of([0], rank=0), map_of([1], rank=1), map_of([0], rank=2), map_of([0], rank=3)]
    (group,) = merging.merge(saved(ram_path, maps))
    assert critical(group.map) == [0, 1]
    assert group.map == maps[0].union(*maps[1:])
    assert group.maps == 4
    assert [(kind.maps, kind.ranks_in_words()) for kind in group.kinds] == [(3, "0, 2-3"), (1, "1")]
    assert group.kinds[1].first.name == "map.1.npz"
    assert group.map.provenance == {
        "union": [
            {"engine": "dependence", "maps": 4, "dates": ["2026-11-30T00:00:00", "2026-11-30T00:00:03"]}
        ]
    }


def test_equal_maps_are_read_once(ram_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though their files differ, in rank and date."""
    paths = saved(ram_path, [map_of([rank % 2], rank=rank) for rank in range(20)])
    read: list[Path] = []
    load = CriticalityMap.load
    monkeypatch.setattr(CriticalityMap, "load", lambda path: read.append(path) or load(path))
    (group,) = merging.merge(paths)
    assert len(read) == 2
    assert [kind.maps for kind in group.kinds] == [10, 10]


def test_ten_thousand_maps(ram_path: Path) -> None:
    """Memory holds one map and a little for each file, whatever the number of files."""
    size = 40_000
    kinds = [map_of([kind], size) for kind in range(27)]
    templates = []
    for each in kinds:
        each.save(ram_path / "template")
        templates.append((ram_path / "template").read_bytes())
    paths = []
    for number in range(10_000):
        path = ram_path / f"map.{number}.npz"
        path.write_bytes(templates[number % 27])
        paths.append(path)
    tracemalloc.start()
    (group,) = merging.merge(paths)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert critical(group.map) == list(range(27))
    assert group.maps == 10_000
    assert len(group.kinds) == 27
    assert len(json.dumps(group.map.provenance)) < 1000
    # All maps would be 400 MB.
    assert peak < 8e6


def test_maps_that_are_compressed_otherwise_are_one_kind(ram_path: Path) -> None:
    one, other = saved(ram_path, [map_of([1]), map_of([1])])
    with np.load(other) as archive:
        members = dict(archive)
    np.savez(other, **members)
    (group,) = merging.merge([one, other])
    assert [kind.maps for kind in group.kinds] == [2]


def test_shapes_that_differ_name_both_files(ram_path: Path) -> None:
    one, other = saved(ram_path, [map_of([0]), map_of([0], size=5)])
    with pytest.raises(MapError, match=r"shape differs, \(6,\) and \(5,\).*--group-by shape") as raised:
        merging.merge([one, other])
    assert str(one) in str(raised.value)
    assert (raised.value.path, raised.value.key) == (str(other), "u")


def test_variables_that_differ_name_both_files(ram_path: Path) -> None:
    one, other = ram_path / "one.npz", ram_path / "other.npz"
    map_of([0]).save(one)
    CriticalityMap(list(map_of([0]).values())[:1]).save(other)
    for first, second in ((one, other), (other, one)):
        with pytest.raises(MapError, match=str(first)) as raised:
            merging.merge([first, second])
        assert (raised.value.path, raised.value.key) == (str(second), "step")


def test_groups_by_shape(ram_path: Path) -> None:
    maps = [map_of([0], 6, rank=0), map_of([1], 5, rank=1), map_of([2], 6, rank=2)]
    groups = merging.merge(saved(ram_path, maps), "shape")
    assert [critical(group.map) for group in groups] == [[0, 2], [1]]
    assert [group.maps for group in groups] == [2, 1]


def test_groups_by_content(ram_path: Path) -> None:
    maps = [map_of([0], rank=0), map_of([1], rank=1), map_of([0], rank=2)]
    groups = merging.merge(saved(ram_path, maps), "content")
    assert [critical(group.map) for group in groups] == [[0], [1]]
    assert [group.kinds[0].ranks for group in groups] == [[0, 2], [1]]


def test_a_single_map_keeps_its_provenance(ram_path: Path) -> None:
    only = map_of([3], rank=7)
    (group,) = merging.merge(saved(ram_path, [only]))
    assert (group.map, group.map.provenance) == (only, only.provenance)


def test_nothing_to_merge() -> None:
    with pytest.raises(MapError, match="no maps"):
        merging.merge([])


@pytest.mark.parametrize("content", [b"", b"no map", b"PK\x03\x04 cut"])
def test_file_that_is_no_map_is_named(ram_path: Path, content: bytes) -> None:
    (good,) = saved(ram_path, [map_of([0])])
    bad = ram_path / "bad.npz"
    bad.write_bytes(content)
    with pytest.raises(MapError) as raised:
        merging.merge([good, bad])
    assert raised.value.path == str(bad)


def test_damage_in_a_file_that_was_like_others_is_found(ram_path: Path) -> None:
    """A byte of the states that flips makes it another kind, which is read and checked."""
    one, other = saved(ram_path, [map_of([0], 4000), map_of([0], 4000)])
    data = bytearray(other.read_bytes())
    data[data.index(b"states.0.npy") + 60] ^= 0xFF
    other.write_bytes(data)
    with pytest.raises(MapError) as raised:
        merging.merge([one, other])
    assert raised.value.path == str(other)


def test_missing_file(ram_path: Path) -> None:
    with pytest.raises(StorageError, match="No such file"):
        merging.merge([ram_path / "gone.npz"])


@pytest.mark.parametrize(
    ("ranks", "words"),
    [([], ""), ([3], "3"), ([2, 0, 1], "0-2"), ([0, 2, 4, 6, 8, 10, 12, 14], "0, 2, 4, 6, 8, 10 and 2 more")],
)
def test_ranks_in_words(ranks: list[int], words: str) -> None:
    assert merging.Kind(Path("m"), len(ranks), ranks).ranks_in_words() == words


# ---- provenance ----


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 3)), max_size=12), st.integers(0, 12))
def test_sources_are_the_same_however_united(given_: list[tuple[str, int]], cut: int) -> None:
    provenances = [
        {"engine": engine, "rank": r, "date": f"2026-0{r + 1}"} for r, (engine, _) in enumerate(given_[:9])
    ]
    at_once, first, last = Sources(), Sources(), Sources()
    for number, each in enumerate(provenances):
        at_once.add(each)
        (first if number < cut else last).add(each)
    in_two = Sources()
    in_two.add(first.provenance())
    in_two.add(last.provenance())
    key = json.dumps
    assert sorted(at_once.provenance()["union"], key=key) == sorted(in_two.provenance()["union"], key=key)
    assert sum(each.get("maps", 1) for each in at_once.provenance()["union"]) == len(provenances)


def test_many_distinct_sources_are_counted() -> None:
    sources = Sources()
    for number in range(1000):
        sources.add({"engine": f"number {number}"})
    listed = sources.provenance()["union"]
    assert len(listed) == LISTED + 1
    assert listed[-1] == {"maps": 1000 - LISTED, "sources": "more"}
    again = Sources()
    again.add(sources.provenance())
    assert again.provenance() == sources.provenance()


# ---- the command ----


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run scr_crit; exit status, stdout and stderr."""
    monkeypatch.setenv("COLUMNS", "200")
    from scr_critplugin.cli import main

    def call(*arguments: Any) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as left:
            main([str(each) for each in arguments])
        out, err = capsys.readouterr()
        return int(left.value.code or 0), out, err

    return call


def test_command_on_a_folder(run: Any, ram_path: Path) -> None:
    saved(ram_path, [map_of([rank % 2], rank=rank) for rank in range(12)])
    output = ram_path / "all.npz"
    for _ in range(2):
        # The second time the folder holds the output of the first.
        status, out, _ = run("merge", ram_path, "-o", output)
        assert status == 0
        assert critical(CriticalityMap.load(output)) == [0, 1]
        assert "12 maps, 2 distinct; u 4 of 6 uncritical" in out


def test_command_on_patterns_and_lists(run: Any, ram_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = saved(ram_path, [map_of([rank]) for rank in range(3)])
    output = ram_path / "out" / "all.npz"
    (ram_path / "list").write_text(f"{paths[0]}\n\n{paths[2]}\n")
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{paths[1]}\n"))
    for argument, expected in [
        (ram_path / "map.[12].npz", [1, 2]),
        (f"@{ram_path / 'list'}", [0, 2]),
        ("-", [1]),
    ]:
        assert run("merge", argument, "-o", output)[0] == 0
        assert critical(CriticalityMap.load(output)) == expected


def test_command_writes_a_map_for_each_shape(run: Any, ram_path: Path) -> None:
    saved(ram_path, [map_of([0], 6, rank=0), map_of([1], 5, rank=1), map_of([2], 6, rank=2)])
    status, out, _ = run(
        "merge", ram_path, "-o", ram_path / "of" / "{group}.npz", "--group-by", "shape", "--json"
    )
    assert status == 0
    groups = json.loads(out)["groups"]
    assert [each["maps"] for each in groups] == [2, 1]
    assert groups[0]["distinct"][1] == {"maps": 1, "first": str(ram_path / "map.2.npz"), "ranks": [2]}
    assert [critical(CriticalityMap.load(each["output"])) for each in groups] == [[0, 2], [1]]
    assert groups[1]["variables"][0]["shape"] == [5]


def test_command_keeps_states(run: Any, ram_path: Path) -> None:
    dead = CriticalityMap.from_masks({"u": np.zeros(3, bool)}, "f8", uncritical=ElementState.DEAD)
    unused = CriticalityMap.from_masks({"u": np.zeros(3, bool)}, "f8", uncritical=ElementState.UNUSED)
    one, other = saved(ram_path, [dead, unused])
    assert run("merge", one, other, "-o", ram_path / "u.npz")[0] == 0
    assert CriticalityMap.load(ram_path / "u.npz")["u"].states.tolist() == [3, 3, 3]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["{here}/none.*", "-o", "{here}/o"], "no file has a name like this"),
        (["{here}/empty", "-o", "{here}/o"], "found no maps (*.npz, *.map) in this folder"),
        (["@{here}/none", "-o", "{here}/o"], "cannot read the list of maps"),
        (["{here}/map.0.npz", "-o", "{here}/o", "--group-by", "shape"], "Put {group} into the name"),
        (["{here}/map.0.npz", "{here}/map.1.npz", "-o", "{here}/o"], "shape differs"),
    ],
)
def test_command_says_what_is_wrong(run: Any, ram_path: Path, arguments: list[str], said: str) -> None:
    saved(ram_path, [map_of([0]), map_of([0], size=5)])
    (ram_path / "empty").mkdir()
    status, _, err = run("merge", *(each.replace("{here}", str(ram_path)) for each in arguments))
    assert status != 0
    assert said in " ".join(err.replace("│", " ").split())
    assert not (ram_path / "o").exists()
