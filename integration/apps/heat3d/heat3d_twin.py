"""One block of heat3d in functional ``autograd.numpy``, and the shape of its checkpoint file.

The twin stands in for the compiled program where its data flow is to be analysed: `make_step` gives the
step from one checkpointed state to the next as a pure function of a dict of arrays, which
``scr_critplugin.analysis.profile`` can trace, and `output` what the program's digest reads. It repeats the
arithmetic of ``heat3d.c`` operation by operation, so that its values are the program's values.

What it shows is the rule `INTERIOR`: of ``u`` and ``c`` a restart needs ``[2:-2, 2:-2, 2:-2]`` and nothing
of the ghosts around it, and of the Runge-Kutta registers ``du`` and ``dc`` it needs nothing.

Method: fourth-order central differences; three-stage low-storage Runge-Kutta of Williamson, J. Comput. Phys.
35 (1980) 48-56. May import autograd, NumPy, and errors and layout of ``scr_critplugin``. Tests:
``test_heat3d.py``.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import autograd.numpy as anp
import numpy as np
from numpy.typing import NDArray

from scr_critplugin.errors import LayoutError
from scr_critplugin.layout import Layout

Array = Any
"""A NumPy array, or an autograd box around one."""

State = Mapping[str, Array]
"""Arrays of FIELDS and SCRATCH with their ghosts, ``step`` (int) and ``time`` (float)."""

Order = Literal["C", "F"]

GHOSTS = 2
INTERIOR = (slice(GHOSTS, -GHOSTS),) * 3
"""The rule: the box of ``u`` and ``c`` that a restart needs, for a block of any size."""

FIELDS = ("u", "c")
SCRATCH = ("du", "dc")

DIFFUSIVITY = {"u": 0.02, "c": 0.01}
VELOCITY = (1.0, 0.5, -0.25)
REACTION_RATE = 0.5
FORCING_FREQUENCY = 9.0
DECAY = (0.0, -5.0 / 9.0, -153.0 / 128.0)
WEIGHT = (1.0 / 3.0, 15.0 / 16.0, 8.0 / 15.0)
STAGE_TIME = (0.0, 1.0 / 3.0, 3.0 / 4.0)


@dataclass(frozen=True)
class Block:
    """One rank's block: interior cells, offset of its first cell, and the global grid, each (x, y, z).

    `walls` says whether the block's lower and upper z faces lie on the domain's walls.
    """

    interior: tuple[int, int, int]
    offset: tuple[int, int, int]
    global_cells: tuple[int, int, int]
    walls: tuple[bool, bool]

    @classmethod
    def whole(cls, nx: int, ny: int, nz: int) -> Block:
        """The only block of a run on one rank."""
        return cls((nx, ny, nz), (0, 0, 0), (nx, ny, nz), (True, True))

    @property
    def allocated(self) -> tuple[int, ...]:
        """Shape of an array with its ghosts."""
        return tuple(n + 2 * GHOSTS for n in self.interior)

    @property
    def spacing(self) -> tuple[float, ...]:
        """Cell widths; the domain is the unit cube."""
        return tuple(1.0 / n for n in self.global_cells)

    @property
    def time_step(self) -> float:
        """The step that is stable for both diffusion and advection."""
        finest = min(self.spacing)
        return min(0.1 * (finest * finest) / DIFFUSIVITY["u"], 0.3 * finest / VELOCITY[0])

    def profile(self, axis: int) -> NDArray[np.float64]:
        """sin^2(pi x) at the interior cell centres of an axis; libm's sine, as in the C program."""
        start, width = self.offset[axis], self.spacing[axis]
        waves = [math.sin(math.pi * ((start + i + 0.5) * width)) for i in range(self.interior[axis])]
        return np.array([wave * wave for wave in waves])


# ---------------------------------------------------------------------------------------------- ghosts

Exchange = Callable[[str, int, Array], tuple[Array, Array]]
"""(field's name, axis, the array with the ghosts of earlier axes only) -> lower and upper ghost layers."""


def _layers(axis: int, layers: slice) -> tuple[slice, ...]:
    return tuple(layers if other == axis else slice(None) for other in range(3))


def wrap(name: str, axis: int, core: Array) -> tuple[Array, Array]:
    """The exchange of a block that is its own neighbour: opposite layers of the interior."""
    return core[_layers(axis, slice(-GHOSTS, None))], core[_layers(axis, slice(None, GHOSTS))]


def received(slabs: Mapping[tuple[str, int], tuple[Array, Array]]) -> Exchange:
    """An exchange that hands out given neighbours' layers, by (field's name, axis): a block among others.

    Layers along an axis have the ghosts of earlier axes, and no ghosts along later ones.
    """
    return lambda name, axis, core: slabs[name, axis]


def _wall_values(name: str, time: Array) -> tuple[Array, Array]:
    if name == "u":
        return 1.0 + 0.25 * anp.sin(FORCING_FREQUENCY * time), 0.0
    return 0.0, 1.0


def fill_ghosts(block: Block, name: str, field: Array, time: Array, exchange: Exchange) -> Array:
    """The field with all ghosts computed anew: of `field` only the interior is read."""
    filled = field[INTERIOR]
    for axis in range(3):
        low, high = exchange(name, axis, filled)
        if axis == 2:
            low_wall, high_wall = _wall_values(name, time)
            if block.walls[0]:
                low = 2.0 * low_wall - filled[:, :, GHOSTS - 1 :: -1]
            if block.walls[1]:
                high = 2.0 * high_wall - filled[:, :, : -GHOSTS - 1 : -1]
        filled = anp.concatenate([low, filled, high], axis=axis)
    return filled


# ------------------------------------------------------------------------------------------------ step


def _shifted(filled: Array, axis: int, by: int) -> Array:
    """The interior of a filled array, seen `by` cells along an axis."""
    end = filled.shape[axis] - GHOSTS + by
    return filled[tuple(slice(GHOSTS + by, end) if other == axis else INTERIOR[other] for other in range(3))]


def _transport(block: Block, diffusivity: float, filled: Array) -> Array:
    """Diffusion minus advection at the interior cells."""
    curvature = drift = 0.0
    centre = filled[INTERIOR]
    for axis in range(3):
        width = block.spacing[axis]
        far_low, low, high, far_high = (_shifted(filled, axis, by) for by in (-2, -1, 1, 2))
        second = 16.0 * (low + high) - (far_low + far_high) - 30.0 * centre
        first = 8.0 * (high - low) - (far_high - far_low)
        curvature = curvature + second / (12.0 * (width * width))
        drift = drift + VELOCITY[axis] * (first / (12.0 * width))
    return diffusivity * curvature - drift


def _rates(block: Block, filled: Mapping[str, Array], time: Array) -> dict[str, Array]:
    x, y, z = (block.profile(axis) for axis in range(3))
    strength = 1.0 + anp.sin(FORCING_FREQUENCY * time)
    source = (strength * (x[:, None] * y[None, :]))[:, :, None] * z
    u, c = filled["u"][INTERIOR], filled["c"][INTERIOR]
    return {
        "u": _transport(block, DIFFUSIVITY["u"], filled["u"]) + source,
        "c": _transport(block, DIFFUSIVITY["c"], filled["c"]) - REACTION_RATE * (u * c),
    }


def _with_zero_ghosts(interior: Array) -> Array:
    for axis in range(3):
        shape = tuple(GHOSTS if other == axis else n for other, n in enumerate(interior.shape))
        zeros = np.zeros(shape)
        interior = anp.concatenate([zeros, interior, zeros], axis=axis)
    return interior


def take_step(block: Block, exchange: Exchange, state: State) -> dict[str, Array]:
    """The state one time step later; see `make_step`."""
    fields = {name: state[name] for name in FIELDS}
    registers = {name: np.zeros(block.interior) for name in FIELDS}
    for decay, weight, fraction in zip(DECAY, WEIGHT, STAGE_TIME, strict=True):
        time = state["time"] + fraction * block.time_step
        filled = {name: fill_ghosts(block, name, fields[name], time, exchange) for name in FIELDS}
        rates = _rates(block, filled, time)
        registers = {name: decay * registers[name] + block.time_step * rates[name] for name in FIELDS}
        # The ghosts stay as this stage's exchange left them: stale, as in the program.
        fields = {name: filled[name] + _with_zero_ghosts(weight * registers[name]) for name in FIELDS}
    scratch = {f"d{name}": _with_zero_ghosts(registers[name]) for name in FIELDS}
    return {**fields, **scratch, "step": state["step"] + 1, "time": state["time"] + block.time_step}


def make_step(block: Block, exchange: Exchange = wrap) -> Callable[[State], dict[str, Array]]:
    """The step of a block as a function from state to state, to be run or to be profiled.

    Parameters
    ----------
    block : Block
        The block; its arrays have the shape ``block.allocated``.
    exchange : Exchange
        Where ghosts beyond the block come from: `wrap` on one rank, else `received`. A received exchange
        gives the same layers in all stages: right for the structure, not for values after stage one.
    """
    return functools.partial(take_step, block, exchange)


def output(state: State) -> Array:
    """What the program's result is made of: the interiors of all fields, flat, shape (2 * cells,)."""
    return anp.concatenate([anp.ravel(state[name][INTERIOR]) for name in FIELDS])


def initial_state(block: Block) -> dict[str, Array]:
    """The state of a fresh start: ghosts and scratch zero, step 0, time 0.0."""
    x, y, z = (block.profile(axis) for axis in range(3))
    bump = (x[:, None] * y[None, :])[:, :, None] * z
    height = np.array([(block.offset[2] + k + 0.5) * block.spacing[2] for k in range(block.interior[2])])
    fields = {"u": _with_zero_ghosts(bump), "c": _with_zero_ghosts(height + 0.1 * bump)}
    scratch = {name: np.zeros(block.allocated) for name in SCRATCH}
    return {**fields, **scratch, "step": 0, "time": 0.0}


# ---------------------------------------------------------------------------------------------- digest


def _hash_words(hashes: NDArray[np.uint64], words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    for byte in range(8):
        octets = (words >> np.uint64(8 * byte)) & np.uint64(0xFF)
        hashes = (hashes ^ octets) * np.uint64(1099511628211)
    return hashes


def block_digest(block: Block, state: State) -> int:
    """The block's part of the program's digest; the whole is the exclusive or of all blocks' parts.

    FNV-1a, 64 bits, over (place in the global grid, bits) of every interior value.
    """
    x, y, z = np.ogrid[tuple(slice(o, o + n) for o, n in zip(block.offset, block.interior, strict=True))]
    place = ((x * block.global_cells[1] + y) * block.global_cells[2] + z).astype(np.uint64)
    joined = np.uint64(0)
    for number, name in enumerate(FIELDS):
        bits = np.ascontiguousarray(state[name][INTERIOR], dtype="<f8").view("<u8")
        start = np.full(place.shape, 14695981039346656037, dtype=np.uint64)
        labels = place * np.uint64(len(FIELDS)) + np.uint64(number)
        joined ^= np.bitwise_xor.reduce(_hash_words(_hash_words(start, labels), bits), axis=None)
    return int(joined)


# ---------------------------------------------------------------------------------------- checkpoint file

HEADER = np.dtype(
    [
        ("magic", "S8"),
        ("version", "<i4"),
        ("interior", "<i4", 3),
        ("ghosts", "<i4"),
        ("offset", "<i4", 3),
        ("global", "<i4", 3),
        ("ranks", "<i4"),
        ("step", "<i8"),
        ("time", "<f8"),
    ]
)
"""The first 72 bytes of a file, whichever program wrote it."""

MAGIC: dict[bytes, Order] = {b"HEAT3D_C": "C", b"HEAT3D_F": "F"}
"""What the first word says about the order of the arrays."""


@dataclass(frozen=True)
class Section:
    """One array of the file: byte offset, element type, shape with ghosts, and memory order."""

    name: str
    offset: int
    dtype: np.dtype[np.float64]
    shape: tuple[int, ...]
    order: Order

    @property
    def nbytes(self) -> int:
        """Bytes of the section."""
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def critical(self) -> tuple[slice, ...] | None:
        """The box a restart needs; None where it needs nothing of the array."""
        return INTERIOR if self.name in FIELDS else None


@dataclass(frozen=True)
class FileShape:
    """What lies where in one rank's file."""

    header_bytes: int
    sections: tuple[Section, ...]

    @property
    def total_bytes(self) -> int:
        """Size of the file."""
        return self.header_bytes + sum(section.nbytes for section in self.sections)

    @property
    def critical_bytes(self) -> int:
        """Bytes a restart needs, the header among them."""
        needed = (section for section in self.sections if section.critical is not None)
        cells = sum(math.prod(n - 2 * GHOSTS for n in section.shape) for section in needed)
        return self.header_bytes + 8 * cells


def layout(nx: int, ny: int, nz: int, order: Order = "C") -> FileShape:
    """Where the arrays of a block of nx x ny x nz interior cells lie in its file.

    `order` is "C" for files of heat3d.c, "F" for those of heat3d.f90; the shape is (x, y, z) in both.
    """
    dtype = np.dtype("<f8")
    shape = tuple(n + 2 * GHOSTS for n in (nx, ny, nz))
    size = math.prod(shape) * dtype.itemsize
    sections = [
        Section(name, HEADER.itemsize + place * size, dtype, shape, order)
        for place, name in enumerate(FIELDS + SCRATCH)
    ]
    return FileShape(HEADER.itemsize, tuple(sections))


def checkpoint_layout(order: Order = "C") -> Layout:
    """The layout of a run's files, as a user would write it; `order` chooses the program, as in `layout`."""
    return Layout.from_toml(Path(__file__).with_name({"C": "heat3d.toml", "F": "heat3d_f.toml"}[order]))


@dataclass(frozen=True)
class Checkpoint:
    """One rank's file, mapped: its block, its header, and its arrays by name."""

    block: Block
    header: np.void
    arrays: dict[str, np.memmap[Any, np.dtype[np.float64]]]

    @property
    def state(self) -> dict[str, Array]:
        """The state the file holds, copied."""
        arrays = {name: np.array(array) for name, array in self.arrays.items()}
        return {**arrays, "step": int(self.header["step"]), "time": float(self.header["time"])}


def open_checkpoint(path: str | Path, mode: Literal["r", "r+"] = "r") -> Checkpoint:
    """Maps a file of either program; with mode "r+", writing into its arrays changes the file.

    Raises
    ------
    LayoutError
        If the file is not one of heat3d's, or is shorter or longer than its header says.
    """
    path = Path(path)
    found = path.stat().st_size
    if found < HEADER.itemsize:
        raise LayoutError(f"{found} bytes are too few for heat3d's header of {HEADER.itemsize}", path=path)
    header = np.fromfile(path, dtype=HEADER, count=1)[0]
    magic = bytes(header["magic"])
    if magic not in MAGIC:
        raise LayoutError(f"magic is {magic!r}, expected one of {list(MAGIC)}", path=path, offset=0)
    nx, ny, nz = (int(n) for n in header["interior"])
    shape = layout(nx, ny, nz, MAGIC[magic])
    if min(nx, ny, nz) < GHOSTS or found != shape.total_bytes:
        raise LayoutError(
            f"{found} bytes, expected {shape.total_bytes} for a block of {nx}x{ny}x{nz}", path=path
        )
    arrays = {s.name: np.memmap(path, s.dtype, mode, s.offset, s.shape, s.order) for s in shape.sections}
    offset = tuple(int(o) for o in header["offset"])
    cells = tuple(int(n) for n in header["global"])
    walls = (offset[2] == 0, offset[2] + nz == cells[2])
    return Checkpoint(Block((nx, ny, nz), offset, cells, walls), header, arrays)  # type: ignore[arg-type]
