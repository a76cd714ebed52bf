"""The survey of all kernels: its JSON, the formulas for larger classes, and that it fails when it should."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shares
import survey as survey_module
from autograd.tracer import getval
from suite import CLASS_NAMES, KERNELS
from survey import IDENTICAL, Count, survey

from scr_critplugin.analysis import Profile, profile
from scr_critplugin.criticality import CriticalityMap, ElementState, Variable
from scr_critplugin.errors import ProfileError

ROOT = Path(__file__).resolve().parents[2]

# Elements and uncritical elements at class S, in the middle of the run.
EXPECTED: dict[str, dict[str, tuple[int, int]]] = {
    "BT": {"u": (10140, 1500), "step": (1, 0)},
    "SP": {"u": (10140, 1500), "step": (1, 0)},
    "LU": {
        "u": (10140, 2140),
        "rsd": (10140, 2140),
        "rho_i": (2028, 428),
        "qs": (2028, 428),
        "istep": (1, 0),
    },
    "MG": {"u": (46480, 7176), "r": (46480, 10543), "it": (1, 0)},
    "CG": {"x": (1402, 2), "it": (1, 0)},
    "FT": {"y": (266240, 4096), "sums": (7, 4), "kt": (1, 0)},
    "EP": {"sx": (1, 0), "sy": (1, 0), "q": (10, 0), "k": (1, 0)},
    "IS": {
        "key_array": (65536, 2),
        "bucket_ptrs": (512, 512),
        "passed_verification": (1, 0),
        "iteration": (1, 0),
    },
}


def command(*words: str) -> subprocess.CompletedProcess[str]:
    """Run ``python -m integration.npb`` as a user does, in the root folder."""
    return subprocess.run(
        [sys.executable, "-m", "integration.npb", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def counts(found: dict[str, Any]) -> dict[str, tuple[int, int]]:
    """Elements and uncritical elements of one kernel's JSON."""
    return {name: (count["elements"], count["uncritical"]) for name, count in found["variables"].items()}


# ---- the command ----


@pytest.fixture(scope="module")
def class_s() -> dict[str, Any]:
    """The JSON of the whole survey."""
    ran = command("--class", "S", "--json")
    assert ran.returncode == 0, ran.stderr
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def test_json_names_the_eight_kernels(class_s: dict[str, Any]) -> None:
    assert set(class_s) == {"BT", "SP", "LU", "MG", "CG", "FT", "EP", "IS"}


@pytest.mark.parametrize("kernel", EXPECTED)
def test_class_s(kernel: str, class_s: dict[str, Any]) -> None:
    found = class_s[kernel]
    assert found["verified"] is True
    assert found["poison"] == "identical"
    assert counts(found) == EXPECTED[kernel]
    assert found["at"] == found["steps"] // 2
    assert found["profile_over_run"] == pytest.approx(found["profile_seconds"] / found["run_seconds"])
    assert found["profile_over_run"] > 0.0


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_class_w_agrees_with_the_formulas() -> None:
    ran = command("--class", "W", "--json")
    assert ran.returncode == 0, ran.stderr
    for kernel, found in json.loads(ran.stdout).items():
        assert found["verified"] is True, kernel
        assert found["poison"] == "identical", kernel
        seen = counts(found)
        for name, count in shares.counts_of(kernel, "W").items():
            assert seen[name] == (count.elements, count.uncritical), (kernel, name)


def test_table_of_one_kernel() -> None:
    ran = command("--kernel", "MG", "--kernel", "CG")
    assert ran.returncode == 0, ran.stderr
    lines = [line.split() for line in ran.stdout.splitlines()]
    assert ["MG", "u", "46480", "7176", "15.44", "%", "yes", "identical"] in [line[:8] for line in lines]
    assert ["r", "46480", "10543", "22.68", "%"] in lines
    assert ["CG", "x", "1402", "2", "0.14", "%", "yes", "identical"] in [line[:8] for line in lines]
    assert "BT" not in ran.stdout


def test_table_says_where() -> None:
    ran = command("--kernel", "MG", "--kernel", "FT", "--where")
    assert ran.returncode == 0, ran.stderr
    lines = [line.strip() for line in ran.stdout.splitlines()]
    # MG's coarse levels and what is behind them; FT's padding and the checksums to come.
    for region in ("dead u[39304:46416]", "inert u[46416:46480]", "inert y[:, :, 64]", "dead sums[4:7]"):
        assert region in lines


def test_usage() -> None:
    for words in (("--class", "A"), ("--kernel", "XX"), ("now",)):
        ran = command(*words)
        assert ran.returncode == 2, words
        assert "usage: python -m integration.npb" in ran.stderr


# ---- formulas ----


@pytest.mark.parametrize("kernel", KERNELS)
def test_formulas_agree_with_class_s(kernel: str) -> None:
    """With the table above, which the profiles of class S are held against."""
    by_formula = {
        name: (count.elements, count.uncritical) for name, count in shares.counts_of(kernel, "S").items()
    }
    # What the formulas leave out is critical.
    left_out = {name: (1, 0) for name in EXPECTED[kernel] if name not in by_formula}
    assert {**by_formula, **left_out} == EXPECTED[kernel]


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("class_name", CLASS_NAMES)
def test_formulas_agree_with_the_layouts(kernel: str, class_name: str) -> None:
    state = KERNELS[kernel].module.initial_state(class_name)
    for name, count in shares.counts_of(kernel, class_name).items():
        assert count.elements == np.size(state[name]), name


@pytest.mark.parametrize(
    ("kernel", "variable", "percent"),
    [
        ("MG", "u", (15.44, 13.20, 12.84, 12.84, 12.67)),
        ("MG", "r", (22.68, 15.18, 13.85, 13.85, 13.18)),
        ("MG", "together", (19.06, 14.19, 13.35, 13.35, 12.93)),
        ("BT", "u", (14.79, 7.84, 3.05, 1.93, 1.22)),
        ("SP", "u", (14.79, 5.33, 3.05, 1.93, 1.22)),
    ],
)
def test_shares(kernel: str, variable: str, percent: tuple[float, ...]) -> None:
    for class_name, expected in zip(shares.CLASS_NAMES, percent, strict=True):
        found = shares.counts_of(kernel, class_name)
        count = shares.together(found) if variable == "together" else found[variable]
        assert count.percent == pytest.approx(expected, abs=0.005), class_name


def test_shares_of_one_padded_line() -> None:
    for class_name, points, rows in zip(
        "SWABC", (64, 128, 256, 512, 512), (1400, 7000, 14000, 75000, 150000), strict=True
    ):
        assert shares.counts_of("FT", class_name)["y"].percent == pytest.approx(100 / (points + 1))
        assert shares.counts_of("CG", class_name)["x"] == Count(rows + 2, 2)


def test_shares_are_printed_and_run_nothing() -> None:
    ran = command("--shares", "--kernel", "MG")
    assert ran.returncode == 0, ran.stderr
    lines = [line.split() for line in ran.stdout.splitlines()]
    assert ["MG", "together", "19.06", "14.19", "13.35", "13.35", "12.93"] in lines
    as_json = json.loads(command("--shares", "--json").stdout)
    assert as_json["MG"]["S"]["r"] == {"elements": 46480, "uncritical": 10543}
    assert as_json["MG"]["C"]["u"] == {"elements": 155501232, "uncritical": 19704488}
    assert list(as_json) == list(KERNELS)


# ---- docs/npb.md ----


def spelled(number: int) -> str:
    """As the page writes numbers."""
    return str(number) if number < 10_000 else f"{number:,}"


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_page_has_the_counts_and_shares(kernel: str) -> None:
    page = (ROOT / "docs" / "npb.md").read_text()
    classes = [shares.counts_of(kernel, name) for name in shares.CLASS_NAMES]
    rows = {name: [found[name] for found in classes] for name in classes[0]}
    if kernel == "EP":
        rows = {"together": [shares.together(found) for found in classes]}
    elif kernel in ("MG", "IS"):
        rows["together"] = [shares.together(found) for found in classes]
    for name, found in rows.items():
        assert f"| {' | '.join(f'{count.percent:#.4g}' for count in found)} |" in page, name
        if name != "together":
            for count in found[:2]:
                assert f"| {spelled(count.uncritical)} of {spelled(count.elements)} |" in page, name


# ---- a survey that fails ----


def with_more_uncritical(name: str, place: int) -> Any:
    """A profile that also calls the element at `place` of a variable uncritical."""

    def wrong(*given: Any, **options: Any) -> Profile:
        found = profile(*given, **options)
        states = found.map[name].states.copy()
        assert states[place] == ElementState.CRITICAL
        states[place] = ElementState.DEAD
        one = Variable(name, states, found.map[name].dtype)
        others = [variable for other, variable in found.map.items() if other != name]
        return replace(found, map=CriticalityMap([one, *others], {}))

    return wrong


def test_a_wrong_mask_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(survey_module, "profile", with_more_uncritical("r", 34**3 - 1))
    found = survey(KERNELS["MG"], "S")
    assert "nan" in found.poison and found.poison.endswith("changed the output")
    assert not found.verified
    assert not found.passed
    assert found.variables["r"].uncritical == 10544


def test_a_run_that_poison_ends_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key beyond all buckets cannot be counted."""
    monkeypatch.setattr(survey_module, "profile", with_more_uncritical("key_array", 1000))
    found = survey(KERNELS["IS"], "S")
    assert found.poison.startswith("nan ended the run: ")
    assert not found.verified
    assert not found.passed


def test_a_widened_map_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """An output that reads behind the coarse levels of MG's u, unseen by the tracer."""

    def with_hidden_output(step: Any, state: Any, output: Any, **options: Any) -> Profile:
        return profile(step, state, lambda s: [output(s), getval(s["u"])[46450]], **options)

    monkeypatch.setattr(survey_module, "profile", with_hidden_output)
    found = survey(KERNELS["MG"], "S")
    assert found.verified
    assert "Now critical: 1 of u" in found.poison
    assert not found.passed
    assert found.variables["u"].uncritical == 7175
    assert found.to_json_dict()["poison"] == found.poison


def test_a_refused_profile_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Profile:
        raise ProfileError("the run cannot be repeated")

    monkeypatch.setattr(survey_module, "profile", refuse)
    found = survey(KERNELS["MG"], "S")
    assert found.verified
    assert found.poison == "the run cannot be repeated"
    assert found.variables == {}
    assert not found.passed


def test_a_run_that_does_not_verify_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    module = KERNELS["MG"].module
    other = replace(module.CLASSES["S"], norm=1.0)
    monkeypatch.setattr(module, "CLASSES", {**module.CLASSES, "S": other})
    found = survey(KERNELS["MG"], "S")
    assert not found.verified
    assert found.poison == IDENTICAL
    assert not found.passed


def test_the_exit_status_tells(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    import importlib.util

    spec = importlib.util.spec_from_file_location("npb_main", Path(__file__).with_name("__main__.py"))
    assert spec is not None and spec.loader is not None
    npb_main = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(npb_main)
    assert npb_main.main(["--kernel", "MG"]) == 0
    monkeypatch.setattr(survey_module, "profile", with_more_uncritical("r", 34**3 - 1))
    assert npb_main.main(["--kernel", "MG"]) == 1
    assert "changed the output" in capsys.readouterr().out
