"""What all kernels do alike: find their problem class and array namespace, and repeat their step.

May import NumPy. Tests: those of the kernels.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np

Array: TypeAlias = Any
"""A NumPy array, or an array of `autograd.numpy` that stands for one."""

State: TypeAlias = dict[str, Any]
"""Checkpoint variables by name."""


class SizedClass(Protocol):
    """A problem class that the shape of a state variable tells."""

    @property
    def name(self) -> str:
        """Letter of the class."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the variable."""


AnyClass = TypeVar("AnyClass")
OfShape = TypeVar("OfShape", bound=SizedClass)


def namespace_of(array: Array) -> Any:
    """NumPy, or autograd's NumPy for its arrays. (Arrays of NumPy 1 do not tell.)"""
    namespace = getattr(array, "__array_namespace__", None)
    if namespace is None:
        return np
    # autograd's arrays name a module within autograd.numpy that lacks the transforms.
    return sys.modules[namespace().__package__]


def class_named(classes: Mapping[str, AnyClass], name: str, kernel: str) -> AnyClass:
    """The class called `name`; ValueError if `kernel` has none of that name."""
    try:
        return classes[name]
    except KeyError:
        raise ValueError(f"unknown {kernel} class {name!r}: expected one of {', '.join(classes)}") from None


def class_of(classes: Mapping[str, OfShape], variable: str, value: Array, kernel: str) -> OfShape:
    """The class in which `variable` has the shape of `value`; ValueError if `kernel` has none."""
    for problem in classes.values():
        if np.shape(value) == problem.shape:
            return problem
    known = ", ".join(f"{p.name} {p.shape}" for p in classes.values())
    raise ValueError(
        f"{variable} has shape {np.shape(value)}, which is no {kernel} class; expected one of: {known}"
    )


def repeated(step: Callable[[Mapping[str, Any]], State], state: Mapping[str, Any], steps: int) -> State:
    """The state after `steps` calls of `step`."""
    current = dict(state)
    for _ in range(steps):
        current = step(current)
    return current
