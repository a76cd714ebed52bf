"""`profile` of one NumPy construct a program: each mask against brute force, exact where that is claimed.

No element that changes the output may be called uncritical, whatever the construct. Those listed as `EXACT`
have precisely the mask that brute force finds; those under `SOUND` may keep more (they go through a sink, or
through a rule that is wider than one state shows). What is refused is in ``tests/test_opaque.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from brute_force import Function as Step
from brute_force import State, critical, truth

N = 6
ROWS = np.array([4, 0, 2])
ODD = np.arange(N) % 2 == 1


def start() -> State:
    state = {name: np.linspace(0.3, 1.7, N) + 0.1 * i for i, name in enumerate("abc")}
    state["m"] = np.linspace(1.0, 2.0, 9).reshape(3, 3) + np.eye(3)
    return state


def output_of(name: str) -> Callable[[State], Any]:
    def output(state: State) -> Any:
        return state[name].reshape(-1)[1:5]

    return output


# ---- reading and writing by index ----


def slices(s: State) -> None:
    s["a"][1:3] = s["b"][::2][:2]
    s["a"][...] = s["a"] + 0.0
    s["m"][1, :] = s["c"][:3]


def negative_strides(s: State) -> None:
    s["a"][::-2] = s["b"][:3]
    s["c"][-2::-1] -= s["a"][1:]


def reshaped_views(s: State) -> None:
    s["a"].reshape(2, 3)[1, ::2] = s["b"][:2]
    s["b"].reshape(3, 2).T[0, 1:] *= s["c"][:2]
    s["m"].ravel()[2:5] = s["c"][1:4]


def axes(s: State) -> None:
    np.swapaxes(s["m"], 0, 1)[0, :] = s["a"][:3]
    np.moveaxis(s["m"], 0, 1)[2] += s["b"][:3]
    s["m"].swapaxes(0, 1)[1][1:] = s["c"][:2]
    s["a"][None, :][0, 1] = s["b"][5]
    np.squeeze(s["c"][:, None])[3] = s["b"][0]
    s["c"].squeeze()[4] = s["a"][0]


def diagonals(s: State) -> None:
    np.fill_diagonal(s["m"], 2.0)
    s["a"][:3] = np.diagonal(s["m"], 1)[[0, 1, 0]]
    s["b"][:3] = s["m"].diagonal(-1)[[0, 1, 1]]


def fancy(s: State) -> None:
    s["a"][ROWS] = s["b"][:3]
    s["b"][ROWS] += s["c"][ROWS]
    s["c"][:3] = s["a"][ROWS]


def boolean(s: State) -> None:
    s["a"][ODD] = s["b"][:3]
    s["c"][:3] = s["b"][~ODD]
    s["b"][ODD] = 0.0


def open_mesh(s: State) -> None:
    s["m"][np.ix_([0, 2], [1, 2])] = s["a"][:4].reshape(2, 2)
    s["b"][:4] = s["m"][np.ix_([1, 0], [0, 2])].ravel()


def mixed_index(s: State) -> None:
    s["m"][[0, 2], 1:] = s["a"][:4].reshape(2, 2)
    s["m"][1, [0, 1]] = s["b"][1:3]


def flat(s: State) -> None:
    s["m"].flat[3:6] = s["a"][:3]
    s["b"][:3] = s["m"].flat[1:4]
    s["c"][1] = s["m"].flat[4]


def elements(s: State) -> None:
    for i in range(1, N):
        s["a"][i] = s["a"][i - 1] * 0.5 + s["b"][i]
    for i, x in enumerate(s["c"]):
        s["b"][i] = x


def rows(s: State) -> None:
    for row in s["m"]:
        row[0] = row[1]
    for row, x in zip(s["m"], s["a"], strict=False):
        row[2] += x


def item_assign(s: State) -> None:
    s["a"].put([1, 4], s["b"][:2])
    s["c"][2] = s["a"].take([4, 1])[0]


# ---- functions that write ----


def put_family(s: State) -> None:
    np.put(s["a"], [0, 3], s["b"][:2])
    np.put_along_axis(s["m"], np.array([[0], [1], [2]]), 9.0, axis=1)


def place_and_mask(s: State) -> None:
    np.place(s["a"], ODD, s["b"][:3])
    np.putmask(s["c"], ODD, s["b"])


def copy_to(s: State) -> None:
    np.copyto(s["a"][1:3], s["b"][4:])
    np.copyto(s["c"], s["a"])


def copy_where(s: State) -> None:
    np.copyto(s["c"], s["a"], where=ODD)


def filled(s: State) -> None:
    s["a"].fill(2.0)
    s["b"][2:].fill(0.5)
    s["c"][...] = s["b"]


def sorted_in_place(s: State) -> None:
    s["a"][:3].sort()
    s["b"].partition(2)
    s["m"].sort(axis=0)
    s["c"][:] = s["c"][np.argsort(np.arange(N))]


def steered_order(s: State) -> None:
    s["a"][:] = s["b"][np.argsort(s["c"])]


def resized(s: State) -> None:
    s["a"][:] = np.resize(s["b"][:2], N)


def with_out(s: State) -> None:
    np.multiply(s["a"][:3], s["b"][3:], out=s["c"][1:4])
    np.add(s["c"], 1.0, s["b"])
    np.sqrt(s["b"], out=s["b"])
    np.sum(s["a"].reshape(3, 2), axis=1, out=s["a"][:3])


def methods_with_out(s: State) -> None:
    s["m"].sum(axis=0, out=s["a"][:3])
    s["b"].cumsum(out=s["b"])
    s["c"].clip(0.5, 1.0, out=s["c"])


def cumulated(s: State) -> None:
    np.cumsum(s["a"], out=s["b"])
    np.clip(s["c"], 0.5, 1.0, out=s["c"])


def two_outputs(s: State) -> None:
    np.divmod(s["a"], 0.7, out=(s["b"], s["c"]))
    q, r = divmod(s["a"], 0.5)
    s["a"][:] = q + r


def fractions(s: State) -> None:
    fraction, whole = np.modf(s["a"])
    s["b"][:] = fraction
    mantissa, _ = np.frexp(s["c"])
    s["c"][:] = mantissa + whole


def ufunc_at(s: State) -> None:
    np.add.at(s["a"], [1, 1, 4], s["b"][:3])
    np.maximum.at(s["c"], ROWS, s["b"][3:])
    np.negative.at(s["b"], [0])


def ufunc_methods(s: State) -> None:
    np.add.accumulate(s["a"], out=s["b"])
    s["c"][:2] = np.add.reduceat(s["a"], [0, 3])
    s["m"][:] = np.multiply.outer(s["a"][:3], s["b"][:3])


def reduce_into(s: State) -> None:
    np.maximum.reduce(s["m"], axis=0, out=s["a"][:3])
    s["b"][0] = np.add.reduce(s["c"])


def operators(s: State) -> None:
    s["a"] **= 2
    s["b"] /= s["a"]
    s["c"] -= s["b"]
    s["c"] //= 0.3
    s["b"] %= 0.7


def matrix_product(s: State) -> None:
    s["m"] @= np.eye(3)
    s["a"][:3] = s["m"] @ s["b"][:3]


def attributes(s: State) -> None:
    class Fields:
        pass

    fields = Fields()
    fields.u = s["a"]  # type: ignore[attr-defined]
    fields.u[1:] += s["b"][1:]  # type: ignore[attr-defined]
    fields.u *= 2.0  # type: ignore[attr-defined]


# ---- functions that make arrays ----


def chosen(s: State) -> None:
    s["a"][:] = np.where(ODD, s["a"], s["b"])
    s["b"][:] = np.select([np.arange(N) < 2, np.arange(N) > 3], [s["c"], s["b"]], 0.0)


def by_value(s: State) -> None:
    s["a"][:] = np.where(s["b"] > 1.0, s["a"], s["c"])
    s["b"][s["c"] > 1.0] = 0.0
    s["c"][:] = np.piecewise(s["c"], [s["c"] < 1.0, s["c"] >= 1.0], [lambda x: -x, lambda x: x])


def np_choose(s: State) -> None:
    s["a"][:] = np.choose([0, 1, 0, 1, 0, 1], [s["b"], s["c"]])


def sums_of_products(s: State) -> None:
    np.einsum("ij,j->i", s["m"], s["a"][:3], out=s["b"][:3])
    s["c"][:3] = np.einsum("ii->i", s["m"])
    np.matmul(s["m"], s["c"][:3], out=s["c"][3:])
    np.dot(s["m"], s["m"], out=s["m"])


def linear_algebra(s: State) -> None:
    s["a"][:3] = np.linalg.solve(s["m"], s["b"][:3])
    s["m"][:] = np.linalg.inv(s["m"])
    s["c"][0] = np.linalg.norm(s["b"])
    s["c"][1] = np.linalg.det(s["m"])


def transforms(s: State) -> None:
    spectrum = np.zeros(N, dtype=complex)
    np.fft.fft(s["a"], out=spectrum)
    spectrum[3:] = 0.0
    s["b"][:] = np.fft.ifft(spectrum).real
    s["c"][:3] = abs(np.fft.rfft(s["c"])[1:])


def windows(s: State) -> None:
    s["a"][:4] = np.lib.stride_tricks.sliding_window_view(s["b"], 3).sum(axis=1)
    s["c"][:] = np.broadcast_to(s["b"][:1], (N,))


def strided(s: State) -> None:
    pairs = np.lib.stride_tricks.as_strided(s["b"], (3, 2), (16, 8))
    s["a"][:3] = pairs[:, 1]


def stacked(s: State) -> None:
    both = np.r_[s["a"][:2], s["b"][:4]]
    s["c"][:] = both
    s["m"][:, :2] = np.c_[s["a"][:3], s["b"][:3]]
    s["a"][:] = np.concatenate([s["b"][3:], s["c"][:3]])
    s["m"][:2] = np.stack([s["a"][:3], s["b"][:3]])


def blocks(s: State) -> None:
    s["a"][:] = np.hstack((s["b"][:3], s["c"][:3]))
    s["m"][:2] = np.vstack((s["a"][:3], s["b"][:3]))
    s["c"][:4] = np.block([[s["b"][:2]], [s["a"][:2]]]).ravel()


def meshes(s: State) -> None:
    x, y = np.meshgrid(s["a"][:3], s["b"][:3])
    s["m"][:] = x + y


def moved(s: State) -> None:
    s["a"][:] = np.roll(s["a"], 1)
    s["b"][:] = np.pad(s["b"][1:-1], 1)
    s["c"][:] = np.flip(s["c"])
    s["m"][:] = np.rot90(s["m"])


def repeated(s: State) -> None:
    s["a"][:] = np.repeat(s["b"][:3], 2)
    s["c"][:] = np.tile(s["b"][3:], 2)
    s["b"][:] = np.delete(np.append(s["a"], 1.0), 2)


def python_functions(s: State) -> None:
    s["a"][:] = np.vectorize(lambda x: x * 2.0)(s["b"])
    s["m"][:] = np.apply_along_axis(lambda row: row[::-1] + 0.0, 1, s["m"])


def counted(s: State) -> None:
    edges = np.array([0.0, 0.5, 1.0, 1.5, 2.0])
    s["a"][:] = np.digitize(s["b"], edges)
    s["b"][:] = np.searchsorted(edges, s["c"])
    s["c"][:4] = np.histogram(s["c"], edges)[0]


def binned(s: State) -> None:
    s["a"][:3] = np.bincount([0, 1, 2, 1, 0, 2], weights=s["b"])
    s["c"][:3] = np.unique(np.floor(s["m"]).ravel())[[0, 0, 0]]


def integrated(s: State) -> None:
    s["a"][0] = np.trapezoid(s["b"]) if hasattr(np, "trapezoid") else np.sum(s["b"])
    s["c"][:5] = np.diff(s["c"])
    s["b"][:] = np.gradient(s["b"])
    s["a"][3] = np.interp(0.5, np.arange(N), s["b"])


def iterated(s: State) -> None:
    for x in np.nditer(s["a"]):
        s["b"][0] += x
    with np.nditer([s["c"]]) as it:
        s["a"][:] = [float(x) for x in it]
    for index, x in np.ndenumerate(s["b"]):
        s["c"][index] = x


def masked(s: State) -> None:
    s["a"][:] = np.ma.masked_where(ODD, s["b"]).filled(0.0)


def matrices(s: State) -> None:
    s["a"][:3] = np.asarray(np.matrix(s["m"]) * np.matrix(s["b"][:3]).T).ravel()


def converted(s: State) -> None:
    s["a"][:] = s["a"].astype(np.float32)
    s["b"][:] = np.asarray(s["b"], dtype=float) + np.array([s["c"][0], 1.0, 2.0, s["c"][1], 0.0, 0.0])
    s["c"][:] = s["c"].tolist()


def asarrays(s: State) -> None:
    x = np.asarray(s["a"])
    x[2] = s["b"][0]
    y = np.ascontiguousarray(s["c"])
    y[1:] += x[1:]
    np.atleast_2d(s["b"])[0, 3] = s["c"][0]


def like(s: State) -> None:
    x = np.empty_like(s["a"])
    x[:] = s["b"]
    y = np.zeros_like(s["m"])
    y[0] = x[:3]
    s["m"][:] = y
    z = np.full_like(s["a"], s["c"][2])
    s["c"][:] = z


def linear_steps(s: State) -> None:
    s["a"][:] = np.linspace(s["b"][0], 2.0, N)
    s["c"][:] = np.arange(N) * s["b"][1]


def zero_sized(s: State) -> None:
    s["a"][3:3] = s["b"][:0]
    s["b"][:0] += 1.0
    s["c"][0] += np.sum(s["a"][:0])


def no_axes(s: State) -> None:
    x = np.array(s["a"][2])
    x[...] = x * s["b"][1]
    s["c"][0] = x[()]
    y = np.zeros(())
    y += s["b"][0]
    s["c"][1] = y


def fortran(s: State) -> None:
    x = np.asfortranarray(s["m"])
    x[:, 0] = s["a"][:3]
    s["m"][:] = x.T
    y = np.empty((2, 3), order="F")
    y[:] = s["b"].reshape(2, 3, order="F")
    s["c"][:] = y.ravel(order="K")


EXACT = [
    slices, negative_strides, reshaped_views, axes, diagonals, fancy, boolean, open_mesh, mixed_index, flat,
    elements, rows, item_assign, put_family, place_and_mask, copy_to, copy_where, filled, sorted_in_place,
    resized, with_out, methods_with_out, cumulated, two_outputs, fractions, ufunc_at, ufunc_methods,
    reduce_into, operators, attributes, chosen, np_choose, transforms, windows, strided, stacked, blocks,
    meshes, moved, repeated, like, asarrays, linear_steps, zero_sized, no_axes, fortran,
]  # fmt: skip
SOUND = [
    steered_order, matrix_product, by_value, sums_of_products, linear_algebra, python_functions, counted,
    binned, integrated, iterated, masked, matrices, converted,
]  # fmt: skip


def _ids(step: Step) -> str:
    return step.__name__


@pytest.mark.parametrize("step", EXACT, ids=_ids)
def test_mask_is_what_brute_force_finds(step: Step) -> None:
    for name in start():
        output = output_of(name)
        assert critical(step, start(), output, steps=1) == truth(step, start(), output), name


@pytest.mark.filterwarnings("ignore::scr_critplugin.errors.ProfileWarning")
@pytest.mark.parametrize("step", SOUND, ids=_ids)
def test_mask_is_sound(step: Step) -> None:
    for name in start():
        output = output_of(name)
        found, expected = critical(step, start(), output, steps=1), truth(step, start(), output)
        for variable in start():
            assert expected[variable] <= found[variable], (name, variable)
