"""``scr_critplugin.tracing.file_patterns``: names of files become patterns that match them and no others."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scr_critplugin.plan import glob
from scr_critplugin.tracing.file_patterns import Seen, generalise, relative_path


def patterns(*seen: Seen) -> list[str]:
    return list(dict.fromkeys(each.pattern for each in generalise(seen).values()))


def over(
    names: str, *, ranks: int = 3, steps: tuple[int, ...] = (10, 20), dataset: str = "ckpt.{step}"
) -> list[Seen]:
    return [
        Seen(names.format(step=step, rank=rank, next=rank + 1), dataset.format(step=step), rank, 0, at)
        for at, step in enumerate(steps)
        for rank in range(ranks)
    ]


@pytest.mark.parametrize(
    ("names", "dataset", "expected"),
    [
        ("ckpt.{step}/heat.{rank}", "ckpt.{step}", "{dataset}/heat.{rank}"),
        ("ckpt.{step}/ckpt.{step}.{rank:04}.dat", "ckpt.{step}", "{dataset}/{dataset}.{rank}.dat"),
        ("out/{step:06}/r{next}.dat", "step {step}", "out/*/r{rank+1}.dat"),
        # SCR_Start_checkpoint names no dataset: what changes from one to the next is the checkpoint's.
        ("ckpt.{step}/heat.{rank}", "", "ckpt.*/heat.{rank}"),
        # A constant number is itself, though it is some rank's.
        ("v2/ckpt.{step}/f{rank}", "ckpt.{step}", "v2/{dataset}/f{rank}"),
        ("a[1]{{x}}/ckpt.{step}/f?{rank}*", "ckpt.{step}", "a[[]1][{]x}/{dataset}/f[?]{rank}[*]"),
        ("ckpt.{step}/all.h5", "ckpt.{step}", "{dataset}/all.h5"),
        ("a/b/ckpt.{step}.{rank}", "a/b/ckpt.{step}", "{dataset}.{rank}"),
    ],
)
def test_names_are_generalised(names: str, dataset: str, expected: str) -> None:
    assert patterns(*over(names, dataset=dataset)) == [expected]


def test_one_checkpoint_whose_number_is_in_the_dataset_s_name() -> None:
    seen = over("out_{step:06}/r.{rank}", steps=(10,), dataset="step{step}")
    assert patterns(*seen) == ["out_*/r.{rank}"]


def test_two_files_a_rank_are_told_apart_by_their_own_numbers() -> None:
    seen = [*over("ckpt.{step}/field0.{rank}"), *over("ckpt.{step}/field1.{rank}")]
    assert patterns(*seen) == ["{dataset}/field0.{rank}", "{dataset}/field1.{rank}"]


def test_numbers_that_no_rule_gives_stay() -> None:
    seen = [Seen(f"c/part{2 * rank + 1}", "c", rank) for rank in range(3)]
    assert patterns(*seen) == ["{dataset}/part1", "{dataset}/part3", "{dataset}/part5"]


def test_alternating_slots_are_two_kinds_of_file() -> None:
    seen = [Seen(f"slot{at % 2}/f", "", 0, 0, at) for at in range(4)]
    assert len(patterns(*seen)) == 2


def test_readers_do_not_decide_whose_number_it_is() -> None:
    written = over("ckpt.{step}/heat.{rank}", steps=(10,))
    read = [Seen("ckpt.10/heat.0", "ckpt.10", rank, 0, 1, writes=False) for rank in range(3)]
    assert patterns(*written, *read) == ["{dataset}/heat.{rank}"]


def test_members_tell_ranks_apart_but_not_checkpoints() -> None:
    found = generalise(over("ckpt.{step}/heat.{rank}"))
    assert len({each.member for each in found.values()}) == 3


@given(data=st.data())
def test_a_pattern_matches_its_own_file_and_no_other_rank_s(data: st.DataObject) -> None:
    text = st.text(st.sampled_from("ab.[]{}*?_-7"), min_size=1, max_size=6)
    folder, stem = data.draw(text), data.draw(text)
    if "." in (folder, stem) or ".." in (folder, stem):
        return
    ranks = data.draw(st.integers(1, 4))
    seen = [
        Seen(f"{folder}/s{step}/{stem}r{rank}x", f"s{step}", rank, 0, step)
        for step in (3, 4)
        for rank in range(ranks)
    ]
    for file, found in generalise(seen).items():
        assert glob(found.pattern, file.path, file.rank, file.dataset)
        if found.names_rank and ranks > 1:
            assert not glob(found.pattern, file.path, file.rank + 1, file.dataset)


def test_paths_are_relative_to_the_prefix_by_any_of_its_names(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir()
    link.symlink_to(real)
    assert relative_path("c/f", "", str(real), str(real)) == "c/f"
    assert relative_path("c/f", "", str(link), str(real)) == "c/f"
    assert relative_path(str(link / "c/f"), "", "/", str(real)) == "c/f"
    assert relative_path("../real/c/f", "", str(real), str(link)) == "c/f"
    # A cache folder is not under the prefix; the name that the program gave is.
    assert relative_path("c/f", "/cache/scr.dataset.1/f", str(real), str(real)) == "c/f"
    assert relative_path("/elsewhere/f", str(real / "c/f"), "/", str(real)) == "c/f"
    assert relative_path("/elsewhere/f", "/cache/f", "/", str(real)) is None
