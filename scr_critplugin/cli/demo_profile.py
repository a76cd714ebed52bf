"""The demonstration's profiles: BT by dependence; heat3d by the access tracer.

Without Valgrind, one block of heat3d is profiled by its NumPy twin at two sizes instead. May import analysis,
layout, plan, regions, tracing and ``demo_job``. Tests: ``tests/test_demo.py``.
"""

from __future__ import annotations

import importlib
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from scr_critplugin.analysis import profile
from scr_critplugin.cli.demo_job import Job
from scr_critplugin.criticality import CriticalityMap
from scr_critplugin.errors import CritError
from scr_critplugin.installation import demo_sources, tracer_folder
from scr_critplugin.plan import Plan, compile_plan
from scr_critplugin.regions import describe
from scr_critplugin.tracing.valgrind import find_valgrind

# Two sizes that differ along every axis: bounds that follow the block's size are told from constant ones.
BLOCK_SIZES = ((8, 9, 10), (10, 11, 12))


@dataclass(frozen=True)
class BtProfile:
    """What the dependence engine says of BT's ``u``."""

    elements: int
    uncritical: int
    regions: tuple[str, ...]


@dataclass(frozen=True)
class HeatPlan:
    """heat3d's plan: the file, its size, and its rules in words."""

    plan: Path
    plan_bytes: int
    rules: tuple[str, ...]


def profile_bt() -> BtProfile:
    """Profile NAS BT class S: the step to the next checkpoint, and the verified norms as output."""
    bt = _load("npb", "bt")
    problem = bt.initial_state("S")
    found = profile(bt.step, problem, bt.output).map["u"]
    uncritical = found.uncritical
    return BtProfile(found.size, int(uncritical.sum()), tuple(describe("u", uncritical)))


def why_not_traced() -> str | None:
    """Why compiled programs cannot be traced here; None if they can."""
    try:
        tracer_folder()
        find_valgrind(os.environ)
    except CritError as error:
        return str(error)
    return None


def trace_heat3d(job: Job, plan: Path) -> HeatPlan:
    """Trace heat3d, run and restart, and write `plan`."""
    job.trace(plan)
    return _described(plan)


def profile_twin(folder: Path) -> HeatPlan:
    """Profile one block of heat3d's twin at two sizes and write maps and plan into `folder`."""
    twin = _load("heat3d", "heat3d_twin")
    maps = []
    for size in BLOCK_SIZES:
        block = twin.Block.whole(*size)
        profiled = profile(twin.make_step(block), twin.initial_state(block), twin.output).map
        # The file's header holds step and time; the layout keeps it whole.
        arrays = CriticalityMap([v for v in profiled.values() if v.ndim], profiled.provenance)
        arrays.save(folder / f"heat3d.{'x'.join(map(str, size))}.map.npz")
        maps.append(arrays)
    plan = compile_plan(maps, twin.checkpoint_layout("C"))
    plan.save(folder / "plan")
    return _described(folder / "plan")


def _described(path: Path) -> HeatPlan:
    plan = Plan.load(path)
    rules = tuple(
        f"{section.name}: {section.rule}" for section in plan.entries[0].sections if section.kind != "keep"
    )
    return HeatPlan(path, path.stat().st_size, rules)


def _load(folder: str, name: str) -> ModuleType:
    """Import one of the demonstration's modules; they are programs, not parts of the package."""
    sys.path.insert(0, str(demo_sources() / folder))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.pop(0)
