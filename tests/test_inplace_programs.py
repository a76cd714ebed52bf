"""Programs in several modules: wherever a program gets NumPy or a helper from, its arrays can be followed."""

from __future__ import annotations

import importlib
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from scr_critplugin.analysis import profile

N = 6
FILES = {
    "__init__.py": "from . import parts\n",
    "plain.py": """
        import numpy as np

        WEIGHTS = np.array([0.5, 0.5])

        def smooth(u):
            out = np.zeros(len(u))
            out[1:] = WEIGHTS[0] * u[1:] + WEIGHTS[1] * u[:-1]
            return out
    """,
    "renamed.py": """
        import numpy as xp
        import numpy.linalg as la

        def smooth(u):
            out = xp.empty_like(u)
            out[...] = 0.0
            out[1:] = 0.5 * (u[1:] + u[:-1])
            return out

        def scaled(u):
            return u / la.norm(xp.ones(4))
    """,
    "starred.py": """
        from numpy import *

        def smooth(u):
            out = zeros(len(u))
            add(u[1:], u[:-1], out=out[1:])
            return out
    """,
    "named.py": """
        from numpy import zeros as made, multiply

        def smooth(u):
            out = made(len(u))
            multiply(u[1:], u[:-1], out=out[1:])
            return out
    """,
    "inside.py": """
        def smooth(u):
            import numpy as np
            from numpy.lib.stride_tricks import sliding_window_view
            out = np.zeros(len(u))
            out[1:] = sliding_window_view(u, 2).sum(axis=1)
            return out

        def with_parts(u):
            from numpy import zeros
            import numpy.fft as fft
            out = zeros(len(u))
            out[1:] = u[1:] * u[:-1]
            wave = fft.fft(zeros(2))
            wave[0] = out[2]
            out[2] = wave.real[0]
            return out

        def helped(u):
            from .plain import smooth
            return smooth(u)

        def late(u):
            from . import late_module
            return late_module.smooth(u)
    """,
    "late_module.py": """
        import numpy as np

        def smooth(u):
            out = np.zeros(len(u))
            out[1:] = u[1:] + u[:-1]
            return out
    """,
    "parts/__init__.py": "from .deep import smooth\n",
    "parts/deep.py": """
        import numpy

        def smooth(u):
            return numpy.concatenate([numpy.zeros(1), filled(u)])

        def filled(u):
            out = numpy.zeros((1, len(u) - 1))
            out[0] = u[1:] + u[:-1]
            return out[0]
    """,
    "objects.py": """
        import dataclasses
        import functools
        import numpy as np

        @dataclasses.dataclass(frozen=True)
        class Constants:
            weights: tuple = (0.5, 0.5)
            array: object = dataclasses.field(default_factory=lambda: np.array([0.5, 0.5]))

        class Operator:
            scale = np.ones(1)

            def __init__(self, xp):
                self.xp = xp
                self.constants = Constants()

            @property
            def weight(self):
                return self.constants.array[0]

            @staticmethod
            def shifted(u):
                out = np.zeros(len(u) - 1)
                out[:] = u[:-1]
                return out

            def __call__(self, u):
                out = self.xp.zeros(len(u))
                out[1:] = (self.weight * u[1:] + self.shifted(u)) * self.scale
                return out

        class Slotted:
            __slots__ = ("make",)

            def __init__(self):
                self.make = np.zeros

            def smooth(self, u):
                out = self.make(len(u))
                out[1:] = u[1:] + u[:-1]
                return out

        def decorated(function):
            @functools.wraps(function)
            def call(*args):
                return function(*args)
            return call

        @decorated
        def smooth(u):
            out = np.zeros(len(u))
            out[1:] = u[1:] + u[:-1]
            return out

        def made_with(xp):
            def smooth(u):
                out = xp.zeros(len(u))
                out[1:] = u[1:] + u[:-1]
                return out
            return smooth

        def by_default(u, xp=np, *, make=np.zeros):
            out = xp.zeros(len(u))
            out[1:] = u[1:] + u[:-1]
            other = make(len(u))
            other[:] = out
            return other

        def with_scratch(scratch, u):
            out = np.zeros(len(u))
            out[1:] = u[1:] + u[:-1]
            return out

        TABLE = {"smooth": [smooth, made_with(np)], "operator": Operator(np), "slotted": Slotted()}
        partial = functools.partial(with_scratch, 1)

        @functools.lru_cache
        def weights():
            return np.array([1.0, 1.0])

        def cached(u):
            out = np.zeros(len(u))
            out[1:] = weights()[0] * u[1:] + weights()[1] * u[:-1]
            return out
    """,
}
SMOOTHERS = {
    "plain": "program.plain.smooth(u)",
    "renamed": "program.renamed.scaled(program.renamed.smooth(u))",
    "starred": "program.starred.smooth(u)",
    "imported by name": "program.named.smooth(u)",
    "imported inside": "program.inside.smooth(u)",
    "imported inside by name": "program.inside.with_parts(u)",
    "helper imported inside": "program.inside.helped(u)",
    "module first imported inside": "program.inside.late(u)",
    "package": "program.parts.smooth(u)",
    "decorated": "program.objects.smooth(u)",
    "dict and list": "program.objects.TABLE['smooth'][0](u)",
    "closure": "program.objects.TABLE['smooth'][1](u)",
    "object": "program.objects.TABLE['operator'](u)",
    "slots": "program.objects.TABLE['slotted'].smooth(u)",
    "default": "program.objects.by_default(u)",
    "partial": "program.objects.partial(u)",
    "cached": "program.objects.cached(u)",
}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """A package with the modules `FILES`."""
    folder = tmp_path_factory.mktemp("programs")
    package = folder / "program_of_several_modules"
    for name, text in FILES.items():
        path = package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
    sys.path.insert(0, str(folder))
    try:
        found = importlib.import_module(package.name)
        for name in ("plain", "renamed", "starred", "named", "inside", "objects"):
            importlib.import_module(f"{package.name}.{name}")
        yield found
    finally:
        sys.path.remove(str(folder))
        for name in [name for name in sys.modules if name.split(".")[0] == package.name]:
            del sys.modules[name]


def globals_of(program: ModuleType) -> dict[str, dict[str, Any]]:
    return {
        name: dict(vars(module))
        for name, module in sys.modules.items()
        if name.split(".")[0] == program.__name__
    }


@pytest.mark.parametrize("name", SMOOTHERS)
def test_helper_is_followed(program: ModuleType, name: str) -> None:
    smooth = eval(f"lambda program, u: {SMOOTHERS[name]}", {})

    def step(state: dict[str, Any]) -> None:
        state["a"][:] = smooth(program, state["b"])

    state = {"a": np.ones(N), "b": np.linspace(1.0, 2.0, N)}
    before = globals_of(program)
    found = profile(step, state, lambda state: state["a"][2:4])
    assert found.sinks == ()
    assert not found.map["a"].critical.any()
    assert set(np.flatnonzero(found.map["b"].critical)) == {1, 2, 3}
    after = globals_of(program)
    assert all(after[module][key] is value for module in before for key, value in before[module].items())


def test_import_is_put_back(program: ModuleType) -> None:
    before = __import__
    test_helper_is_followed(program, "imported inside")
    assert __import__ is before
    assert Path(np.__file__).exists() and np.zeros(2).__class__ is np.ndarray


def test_random_numbers_from_outside_the_state_are_refused() -> None:
    def step(state: dict[str, Any]) -> None:
        state["a"] += np.random.random(N)

    with pytest.raises(Exception, match="draws random numbers from outside the state"):
        profile(step, {"a": np.ones(N)}, lambda state: state["a"])
