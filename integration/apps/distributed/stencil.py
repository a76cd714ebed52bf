"""Heat on a plate, in blocks: each rank has one block of the grid with a ghost cell all around.

The outermost cells of the plate have fixed temperatures, which are state, as they are in a checkpoint. Their
four corners are never read by the five-point stencil, and of the ghosts a restart needs none.

Run it as README.md says. May import NumPy, click, `assembly` and scr_critplugin. Tests:
``test_distributed.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import click
import numpy as np
from assembly import print_maps
from numpy.typing import NDArray

from scr_critplugin import mpi as MPI  # noqa: N812
from scr_critplugin.analysis import profile

CONDUCTIVITY = 0.2
State = dict[str, Any]


def five_points(u: Any) -> Any:
    """New temperatures of all cells but the outermost."""
    around = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]
    return u[1:-1, 1:-1] + CONDUCTIVITY * (around - 4.0 * u[1:-1, 1:-1])


# ---- the serial program ----


def serial_state(cells: tuple[int, int]) -> State:
    """Temperatures of the whole plate, and an array for the next ones."""
    rows, columns = np.indices(cells)
    return {"u": np.sin(0.7 * rows) + np.cos(0.3 * columns), "next": np.zeros(cells), "step": 0}


def serial_step(state: State) -> State:
    """One time step."""
    u, following = state["u"], state["next"]
    following[...] = u
    following[1:-1, 1:-1] = five_points(u)
    return {"u": following.copy(), "next": following, "step": state["step"] + 1}


# ---- the decomposed program ----


@dataclass(frozen=True)
class Block:
    """One rank's part of the plate, cells `start` to `stop` in both directions; `cart` has the ranks."""

    cart: Any
    cells: tuple[int, int]
    start: tuple[int, int]
    stop: tuple[int, int]

    @classmethod
    def of_rank(cls, comm: Any, cells: tuple[int, int]) -> Block:
        """The block of this rank; the blocks differ by a cell where the plate does not divide evenly."""
        grid = MPI.Compute_dims(comm.size, 2)
        cart = comm.Create_cart(grid, periods=[False, False])
        edges = [
            np.linspace(0, n, parts + 1).astype(int).tolist() for n, parts in zip(cells, grid, strict=True)
        ]
        place = cart.Get_coords(cart.rank)
        start = tuple(edge[at] for edge, at in zip(edges, place, strict=True))
        stop = tuple(edge[at + 1] for edge, at in zip(edges, place, strict=True))
        return cls(cart, cells, start, stop)  # type: ignore[arg-type]

    @property
    def where(self) -> tuple[slice, ...]:
        """Where the block stands in the plate."""
        return tuple(slice(a, b) for a, b in zip(self.start, self.stop, strict=True))

    @property
    def inner(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Of the block's rows and columns, which are not the plate's outermost."""
        inside = [
            (np.arange(a, b) > 0) & (np.arange(a, b) < n - 1)
            for a, b, n in zip(self.start, self.stop, self.cells, strict=True)
        ]
        return inside[0], inside[1]

    def state(self) -> State:
        """The block of the serial state, with ghosts that hold nonsense."""
        whole = serial_state(self.cells)
        state: State = {"step": 0}
        for name in ("u", "next"):
            state[name] = np.pad(whole[name][self.where], 1, constant_values=1e9)
        return state

    def moving(self) -> tuple[slice, ...]:
        """The block's cells that change, in an array with ghosts: a slice in each direction."""
        return tuple(
            slice(1 + int(np.argmax(inside)), 1 + int(np.argmax(inside)) + int(inside.sum()))
            for inside in self.inner
        )


def exchange_in_place(u: Any, cart: Any) -> None:
    """Fill the ghosts of `u`: rows go as they lie in memory, columns by way of a copy."""
    for direction in (1, -1):
        source, dest = cart.Shift(0, direction)
        sent, ghost = (-2, 0) if direction == 1 else (1, -1)
        cart.Sendrecv(u[sent], dest, 0, u[ghost], source, 0)
    for direction in (1, -1):
        source, dest = cart.Shift(1, direction)
        sent, ghost = (-2, 0) if direction == 1 else (1, -1)
        column = np.empty(u.shape[0])
        cart.Sendrecv(np.ascontiguousarray(u[:, sent]), dest, 0, column, source, 0)
        if source != MPI.PROC_NULL:
            u[:, ghost] = column


def in_place(block: Block) -> Callable[[State], State]:
    """A step that writes into the arrays it is given."""
    rows, columns = block.moving()
    around = (slice(rows.start - 1, rows.stop + 1), slice(columns.start - 1, columns.stop + 1))

    def step(state: State) -> State:
        u, following = state["u"], state["next"]
        exchange_in_place(u, block.cart)
        following[...] = u
        following[rows, columns] = five_points(u[around])
        u[...] = following
        state["step"] += 1
        return state

    return step


def functional(block: Block) -> Callable[[State], State]:
    """A step that makes new arrays, with nonblocking messages."""
    rows, columns = block.moving()
    still = np.ones((block.stop[0] - block.start[0], block.stop[1] - block.start[1]), dtype=bool)
    still[rows.start - 1 : rows.stop - 1, columns.start - 1 : columns.stop - 1] = False

    def step(state: State) -> State:
        own = state["u"][1:-1, 1:-1]
        edges = {(0, 1): own[-1], (0, -1): own[0], (1, 1): own[:, -1], (1, -1): own[:, 0]}
        arrived = exchanged(edges, block.cart)
        tall = np.concatenate([arrived[0, 1][None, :], own, arrived[0, -1][None, :]])
        sides = [np.pad(arrived[1, way], 1)[:, None] for way in (1, -1)]
        u = np.concatenate([sides[0], tall, sides[1]], axis=1)
        following = np.pad(np.where(still, own, five_points(u)), 1)
        return {"u": following, "next": 1.0 * following, "step": state["step"] + 1}

    return step


def exchanged(edges: dict[tuple[int, int], Any], cart: Any) -> dict[tuple[int, int], Any]:
    """What comes from the other side as `edges` go, by axis and direction; zeros from outside the plate."""
    receiving, sending = {}, []
    for (axis, way), edge in edges.items():
        source, dest = cart.Shift(axis, way)
        tag = 2 * axis + (way > 0)
        receiving[axis, way] = cart.irecv(source=source, tag=tag)
        sending.append(cart.isend(edge, dest, tag=tag))
    arrived = {key: request.wait() for key, request in receiving.items()}
    MPI.Request.waitall(sending)
    return {key: np.zeros(len(edges[key])) if got is None else got for key, got in arrived.items()}


# ---- what the run is for ----


def warmth(comm: Any, block: Block) -> Callable[[State], Any]:
    """Sum of squares over all cells but the plate's outermost."""
    rows, columns = block.moving()
    return lambda state: comm.allreduce(np.sum(state["u"][rows, columns] ** 2))


def corner(comm: Any, block: Block) -> Callable[[State], Any]:
    """The cells of the plate's first corner, where this rank has some."""
    last = [n // 3 for n in block.cells]
    inside = tuple(
        slice(1, 1 + max(0, min(b, end) - a)) for a, b, end in zip(block.start, block.stop, last, strict=True)
    )
    return lambda state: state["u"][inside]


SERIAL_OUTPUTS: dict[str, Callable[[State], Any]] = {
    "warmth": lambda state: np.sum(state["u"][1:-1, 1:-1] ** 2),
    "corner": lambda state: state["u"][: state["u"].shape[0] // 3, : state["u"].shape[1] // 3],
}


def setup() -> tuple[Callable[[State], State], State, Callable[[State], Any]]:
    """The in-place program on all ranks, for ``scr_crit profile``."""
    comm = MPI.COMM_WORLD
    block = Block.of_rank(comm, (12, 12))
    return in_place(block), block.state(), warmth(comm, block)


@click.command()
@click.option("--program", "kind", type=click.Choice(["in_place", "functional"]), default="in_place")
@click.option("--output", "what", type=click.Choice(["warmth", "corner"]), default="warmth")
@click.option("--steps", type=int, default=None)
@click.option("--cells", nargs=2, type=int, default=(11, 13))
def main(kind: str, what: str, steps: int | None, cells: tuple[int, int]) -> None:
    """Profile the decomposed and the serial program and print both maps."""
    comm = MPI.COMM_WORLD
    block = Block.of_rank(comm, cells)
    step = {"in_place": in_place, "functional": functional}[kind](block)
    output = {"warmth": warmth, "corner": corner}[what](comm, block)
    found = profile(step, block.state(), output, steps=steps, comm=comm.raw)
    serial = profile(serial_step, serial_state(cells), SERIAL_OUTPUTS[what], steps=steps)
    inside = (slice(1, -1), slice(1, -1))
    owned = {name: (inside, block.where) for name in ("u", "next")}
    print_maps(comm, found, owned, {"u": cells, "next": cells}, serial)


if __name__ == "__main__":
    main()
