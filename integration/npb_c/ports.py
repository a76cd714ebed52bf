"""The C kernels for tests: what their checkpoints hold, what of it is uncritical, how to build and run them.

The masks come from the kernels' loops by hand, so that they are a truth to hold a trace against.

May import NumPy and the NumPy kernels in ``../npb``, which know the extents of each class. Tests:
``test_npb_c.py`` beside this file.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, TypeAlias

import bt
import cg
import ft
import mg
import numpy as np
import sp
from numpy.typing import NDArray

HERE = Path(__file__).resolve().parent
SECONDS = 300
"""No run takes as long: one that does hangs."""

Mask: TypeAlias = NDArray[np.bool_]
"""True where an element is uncritical."""


# ------------------------------------------------------------------------------------- what is uncritical


class Uncritical(NamedTuple):
    """Of one array: elements that are overwritten before they are read, and those never accessed again."""

    dead: Mask
    unused: Mask


def _padding_of_grid(problem: Any, _: int) -> dict[str, Uncritical]:
    """BT, SP: no loop touches what lies between the even number of points and the odd extent."""
    padding = np.ones(problem.shape, dtype=bool)
    padding[:, : problem.points, : problem.points] = False
    return {"u": Uncritical(np.zeros_like(padding), padding)}


def _coarse_levels(problem: Any, _: int) -> dict[str, Uncritical]:
    """MG: an iteration starts the coarse levels anew, and reads of `r` no cell with an index 0."""
    extent = problem.extents[0]
    unused = np.zeros(problem.shape, dtype=bool)
    unused[sum(each**3 for each in problem.extents) :] = True
    coarse = ~unused
    coarse[: extent**3] = False
    lower_faces = np.zeros((extent,) * 3, dtype=bool)
    lower_faces[0] = lower_faces[:, 0] = lower_faces[:, :, 0] = True
    of_r = coarse.copy()
    of_r[: extent**3] = lower_faces.ravel()
    return {"u": Uncritical(coarse, unused), "r": Uncritical(of_r, unused)}


def _last_element(problem: Any, _: int) -> dict[str, Uncritical]:
    """CG: the element before it is read, though nothing depends on it."""
    last = np.zeros(problem.shape, dtype=bool)
    last[-1] = True
    return {"x": Uncritical(np.zeros_like(last), last)}


def _padding_and_checksums_to_come(problem: Any, iteration: int) -> dict[str, Uncritical]:
    """FT: at the top of an iteration its own checksum is still to come, and sums[0] is nobody's."""
    padding = np.zeros(problem.shape, dtype=bool)
    padding[..., problem.points[2] :] = True
    number = np.arange(problem.steps + 1)
    return {
        "y": Uncritical(np.zeros_like(padding), padding),
        "sums": Uncritical(number >= iteration, number == 0),
    }


# ---------------------------------------------------------------------------------------------- the kernels


@dataclass(frozen=True)
class Port:
    """One C kernel at one class, checkpointing at the top of its middle iteration."""

    kernel: str
    class_name: str
    module: ModuleType
    counter: str
    arrays: tuple[tuple[str, type], ...]
    iterations: int
    uncritical_at: Callable[[Any, int], dict[str, Uncritical]]

    def __str__(self) -> str:
        return f"{self.kernel}.{self.class_name}"

    @property
    def checkpoint_at(self) -> int:
        """The iteration at whose top the checkpoint is written."""
        return self.iterations // 2

    @cached_property
    def masks(self) -> dict[str, Uncritical]:
        """By name of the array; the counter is critical."""
        return self.uncritical_at(self.module.CLASSES[self.class_name], self.checkpoint_at)

    @property
    def uncritical(self) -> dict[str, Mask]:
        """Dead and unused together."""
        return {name: masks.dead | masks.unused for name, masks in self.masks.items()}

    @property
    def file(self) -> np.dtype[Any]:
        """The checkpoint file as one record, its fields named as the variables."""
        fields: list[Any] = [(self.counter, np.int32)]
        fields += [(name, dtype, self.masks[name].dead.shape) for name, dtype in self.arrays]
        return np.dtype(fields)

    def over_file(self, masks: Mapping[str, Mask]) -> Mask:
        """Masks of the arrays' elements as one of the file's bytes; false for the counter."""
        parts = [np.zeros(4, dtype=bool)]
        for name, dtype in self.arrays:
            parts.append(np.repeat(masks[name].ravel(), np.dtype(dtype).itemsize))
        return np.concatenate(parts)

    @property
    def uncritical_bytes(self) -> Mask:
        """Over the whole file."""
        return self.over_file(self.uncritical)

    def open(self, path: Path) -> np.memmap[Any, Any]:
        """The file's record, ``[1]``, for reading and writing in place."""
        if path.stat().st_size != self.file.itemsize:
            raise ValueError(f"{path}: {path.stat().st_size} bytes, expected {self.file.itemsize}")
        return np.memmap(path, self.file, "r+", shape=1)


def port(kernel: str, class_name: str) -> Port:
    """The kernel of that name ("bt", "sp", "mg", "cg", "ft") at class "S" or "W"."""
    counter, arrays, uncritical_at = {
        "bt": ("step", (("u", np.float64),), _padding_of_grid),
        "sp": ("step", (("u", np.float64),), _padding_of_grid),
        "mg": ("it", (("u", np.float64), ("r", np.float64)), _coarse_levels),
        "cg": ("it", (("x", np.float64),), _last_element),
        "ft": ("kt", (("y", np.complex128), ("sums", np.complex128)), _padding_and_checksums_to_come),
    }[kernel]
    module = {"bt": bt, "sp": sp, "mg": mg, "cg": cg, "ft": ft}[kernel]
    problem = module.CLASSES[class_name]
    # CG's NumPy kernel counts its last iteration as output.
    iterations = problem.iterations if kernel == "cg" else problem.steps
    return Port(kernel, class_name, module, counter, arrays, iterations, uncritical_at)


KERNELS = ("bt", "sp", "mg", "cg", "ft")


def build(which: Port, folder: Path, scr_root: Path, mpicc: str) -> Path:
    """The kernel's program, built with warnings as errors."""
    settings = [f"MPICC={mpicc}", f"SCR_ROOT={scr_root}", f"BUILD={folder}", f"CLASS={which.class_name}"]
    command = ["make", "-C", str(HERE), which.kernel, *settings, "CFLAGS=-O2 -g -Werror"]
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=SECONDS)
    return folder / str(which)


# --------------------------------------------------------------------------------------------------- runs


@dataclass(frozen=True)
class Outcome:
    """What one run left behind."""

    status: int
    stdout: str
    stderr: str

    @property
    def verified(self) -> bool:
        """Whether the official verification passed; exit status and text must agree."""
        said = re.findall(r"^Verification (successful|failed)$", self.stdout, re.M)
        if said == ["successful"] and self.status == 0:
            return True
        if said in (["failed"], []) and self.status != 0:
            return False
        raise ValueError(f"exit status {self.status} with {said}: {self.stdout}{self.stderr}")

    @property
    def values(self) -> list[str]:
        """The verified values, with all their digits."""
        return re.findall(r"^(\S+ +\S+)  reference ", self.stdout, re.M)

    @property
    def restarted_from(self) -> str | None:
        """The checkpoint that the run began from."""
        found = re.search(r"^restarted from (\S+)$", self.stdout, re.M)
        return found[1] if found else None


@dataclass(frozen=True)
class Job:
    """One allocation: a prefix, a cache and a control directory, in which a program can run repeatedly."""

    folder: Path
    mpiexec: list[str]
    program: Path
    ranks: int = 1

    @property
    def prefix(self) -> Path:
        """SCR_PREFIX, where the checkpoints are."""
        return self.folder / "prefix"

    @property
    def environment(self) -> dict[str, str]:
        """Of the runs: SCR's parameters in addition to the present ones."""
        return {
            **os.environ,
            "SCR_PREFIX": str(self.prefix),
            "SCR_CACHE_BASE": str(self.folder / "cache"),
            "SCR_CNTL_BASE": str(self.folder / "cntl"),
            "SCR_USER_NAME": "tester",
            "SCR_JOB_ID": "npb",
        }

    def run(self, *arguments: str, before: tuple[str, ...] = (), **environment: str) -> Outcome:
        """Run the program, `before` put in front of it on each rank."""
        for name in ("prefix", "cache", "cntl"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        done = subprocess.run(
            [*self.mpiexec, "-n", str(self.ranks), *before, str(self.program), *arguments],
            cwd=self.prefix,
            env=self.environment | environment,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
        return Outcome(done.returncode, done.stdout, done.stderr)

    def files(self, which: Port, iteration: int | None = None) -> list[Path]:
        """The ranks' files of a checkpoint, the middle one unless told otherwise."""
        number = which.checkpoint_at if iteration is None else iteration
        return [self.prefix / f"{which.kernel}.{number}" / f"rank_{rank}" for rank in range(self.ranks)]

    def copied(self, folder: Path) -> Job:
        """The same with its files in another place, so that this one stays as it is.

        SCR keeps absolute paths in its cache only, which is left behind: the copy's first run fetches.
        """
        shutil.copytree(self.prefix, folder / "prefix")
        return Job(folder, self.mpiexec, self.program, self.ranks)


@dataclass(frozen=True)
class Kernel:
    """A built kernel at class S, and what it did when nothing happened to it."""

    port: Port
    job: Job
    undisturbed: Outcome


# ------------------------------------------------------------------------------------------------- poison

POISONS = {
    "nan": np.frombuffer(np.float64(np.nan).tobytes(), np.uint8),
    "0xff": np.full(8, 0xFF, np.uint8),
}
"""Bytes of the 8-byte words to overwrite with."""


def overwrite(path: Path, where: Mask, pattern: NDArray[np.uint8]) -> None:
    """Overwrite the bytes of a checkpoint where `where` is true."""
    content = np.memmap(path, np.uint8, "r+")
    # The arrays' words stand behind a counter of 4 bytes.
    poison = np.resize(np.roll(pattern, 4), content.size)
    content[where] = poison[where]
    content.flush()
