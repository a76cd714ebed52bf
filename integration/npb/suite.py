"""The eight kernels as one table: what a survey of all of them must know of each.

May import the kernels. Tests: ``integration/npb/test_survey.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import bt
import cg
import ep
import ft
import is_
import lu
import mg
import sp
from kernel import State


class Problem(Protocol):
    """What a survey uses of a problem class."""

    @property
    def steps(self) -> int:
        """Steps of a whole run."""


class Verification(Protocol):
    """What a survey uses of an official test's outcome."""

    @property
    def verified(self) -> bool:
        """True if the benchmark accepts the run."""


class KernelModule(Protocol):
    """The names that every kernel's module has."""

    @property
    def CLASSES(self) -> Mapping[str, Any]:  # noqa: N802 - a constant of the modules
        """Problem classes by letter."""

    def initial_state(self, name: str) -> State:
        """The state before the first step."""

    def step(self, state: Mapping[str, Any]) -> State:
        """One step."""

    def run(self, state: Mapping[str, Any], steps: int) -> State:
        """Several steps."""

    def output(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """What the run is for."""

    def verify(self, state: Mapping[str, Any]) -> Verification:
        """The benchmark's test of a finished run."""


@dataclass(frozen=True)
class Kernel:
    """One row: the module, and `counts_steps` if the structure of a step depends on the step's number.

    Such a kernel is profiled over all steps that are left, for one step does not stand for the others.
    """

    name: str
    module: KernelModule
    counts_steps: bool = False

    def problem(self, class_name: str) -> Problem:
        """The problem class of that letter; KeyError if the kernel is not ported for it."""
        problem: Problem = self.module.CLASSES[class_name]
        return problem


KERNELS: dict[str, Kernel] = {
    kernel.name: kernel
    for kernel in (
        Kernel("BT", bt),
        Kernel("SP", sp),
        Kernel("LU", lu),
        Kernel("MG", mg),
        Kernel("CG", cg),
        Kernel("FT", ft, counts_steps=True),
        Kernel("EP", ep),
        Kernel("IS", is_, counts_steps=True),
    )
}

CLASS_NAMES = ("S", "W")
"""The classes that every kernel is ported for."""
