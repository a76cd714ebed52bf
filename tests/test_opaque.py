"""Programs that call what cannot be followed: sound masks, the same results, and a warning that names it."""

from __future__ import annotations

import ctypes
import ctypes.util
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scr_critplugin.analysis import Profile, profile
from scr_critplugin.errors import ProfileError, ProfileWarning

State = dict[str, Any]
N = 6
ARRAY = np.ctypeslib.ndpointer(dtype=np.float64, flags="C_CONTIGUOUS")

SMOOTH = """
#include <stddef.h>

void smooth(const double *from, double *to, size_t n)
{
    for (size_t i = 1; i + 1 < n; i++) {
        to[i] = 0.5 * (from[i - 1] + from[i + 1]);
    }
}

double total(const double *from, size_t n)
{
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) {
        sum += from[i];
    }
    return sum;
}
"""


def start() -> State:
    return {name: np.linspace(0.3, 1.7, N) + 0.1 * i for i, name in enumerate("abcd")}


def critical(found: Profile) -> dict[str, set[int]]:
    return {name: {int(i) for i in np.flatnonzero(found.map[name].critical)} for name in found.map}


def profiled(step: Callable[[State], Any], name: str) -> dict[str, set[int]]:
    """The mask of a `step` that calls something called `name`, which the warning and the sinks say."""
    with pytest.warns(ProfileWarning, match=name):
        found = profile(step, start(), lambda s: s["a"][1:4])
    assert any(name in sink.kind for sink in found.sinks)
    assert any(name in warning for warning in found.warnings)
    return critical(found)


ALL = set(range(N))


# ---- C through ctypes and cffi ----


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("needs a C compiler (cc or gcc) on PATH")
    folder = tmp_path_factory.mktemp("library")
    source, built = folder / "smooth.c", folder / "libsmooth.so"
    source.write_text(SMOOTH)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", built, source], check=True)
    return built


def test_c_function_that_writes_into_the_state(library: Path) -> None:
    c = ctypes.CDLL(str(library))
    c.smooth.argtypes = [ARRAY, ARRAY, ctypes.c_size_t]
    c.smooth.restype = None

    def step(s: State) -> None:
        c.smooth(s["b"], s["a"], N)
        s["c"][:] = s["d"]

    found = profiled(step, "smooth")
    assert found == {"a": ALL, "b": ALL, "c": set(), "d": set()}


def test_c_function_by_pointers(library: Path) -> None:
    c = ctypes.CDLL(str(library))
    pointer = ctypes.POINTER(ctypes.c_double)

    def step(s: State) -> None:
        work = np.zeros(N)
        c.smooth(s["b"].ctypes.data_as(pointer), work.ctypes.data_as(pointer), ctypes.c_size_t(N))
        s["a"][:] = work
        c.smooth(ctypes.c_void_p(s["a"].ctypes.data), ctypes.c_void_p(s["c"].ctypes.data), ctypes.c_size_t(N))

    found = profiled(step, "ctypes")
    assert found["b"] == ALL
    assert found["d"] == set()


def test_pointer_that_is_kept_sees_later_writes(library: Path) -> None:
    c = ctypes.CDLL(str(library))
    pointer = ctypes.POINTER(ctypes.c_double)

    def step(s: State) -> None:
        work = np.zeros(N)
        kept = work.ctypes.data_as(pointer)
        work[:] = s["b"]
        c.smooth(kept, s["a"].ctypes.data_as(pointer), ctypes.c_size_t(N))

    assert profiled(step, "ctypes")["b"] == ALL


def test_result_of_a_c_function(library: Path) -> None:
    c = ctypes.CDLL(str(library))
    c.total.argtypes = [ARRAY, ctypes.c_size_t]
    c.total.restype = ctypes.c_double

    def step(s: State) -> None:
        s["a"][:] = c.total(s["b"], N) * s["c"]

    assert profiled(step, "total") == {"a": set(), "b": ALL, "c": {1, 2, 3}, "d": set()}


def test_function_of_the_mathematical_library() -> None:
    name = ctypes.util.find_library("m")
    if name is None:
        pytest.skip("no libm found")
    function = ctypes.CDLL(name).cos
    function.argtypes, function.restype = [ctypes.c_double], ctypes.c_double

    def step(s: State) -> None:
        s["a"][1] = function(s["b"][2])

    found = critical(profile(step, start(), lambda s: s["a"][1:4]))
    assert found["b"] == {2}


def test_cffi(library: Path) -> None:
    cffi = pytest.importorskip("cffi", reason="needs cffi; pip install cffi")
    ffi = cffi.FFI()
    ffi.cdef("void smooth(const double *from, double *to, size_t n);")
    c = ffi.dlopen(str(library))

    def step(s: State) -> None:
        c.smooth(ffi.from_buffer("double *", s["b"]), ffi.from_buffer("double *", s["a"]), N)
        c.smooth(ffi.cast("double *", s["a"].ctypes.data), ffi.cast("double *", s["c"].ctypes.data), N)

    assert profiled(step, "from_buffer")["b"] == ALL


# ---- numba ----


@pytest.fixture(scope="module")
def numba() -> Any:
    return pytest.importorskip("numba", reason="needs numba; pip install numba")


def test_numba_kernel_that_writes(numba: Any) -> None:
    @numba.njit  # type: ignore[misc]
    def kernel(source: Any, target: Any) -> None:
        for i in range(1, source.shape[0]):
            target[i] = source[i - 1] * 2.0

    def step(s: State) -> None:
        kernel(s["b"], s["a"])
        s["c"][:] = s["d"]

    assert profiled(step, "kernel") == {"a": ALL, "b": ALL, "c": set(), "d": set()}


def test_numba_kernel_on_views_and_scratch(numba: Any) -> None:
    @numba.njit  # type: ignore[misc]
    def doubled(source: Any, target: Any) -> Any:
        work = np.empty_like(source)
        for i in range(source.shape[0]):
            work[i] = source[i] * 2.0
        target[:] = work
        return work

    kernels = {"doubled": doubled}

    def step(s: State) -> None:
        scratch = np.zeros(3)
        result = kernels["doubled"](s["b"][::2], scratch)
        result[1] = s["c"][0]
        s["a"][1:4] = result + scratch

    found = profiled(step, "doubled")
    assert found["b"] == {0, 2, 4}
    assert found["c"] == {0}
    assert found["a"] == found["d"] == set()


def test_numba_kernel_does_not_keep_its_arrays(numba: Any) -> None:
    @numba.njit  # type: ignore[misc]
    def total(x: Any) -> float:
        return float(x.sum())

    class Reductions:
        total_of = total
        static = staticmethod(total)

    def step(s: State) -> None:
        work = np.ones(N)
        s["c"][:] = total(work)
        work[:] = s["b"]
        s["a"][:] = work + Reductions.static(np.ones(2)) + Reductions.total_of(np.ones(1))

    found = profile(step, start(), lambda s: s["a"][1:4])
    assert critical(found)["b"] == {1, 2, 3}
    assert found.sinks == () and found.warnings == ()


def test_numba_ufunc(numba: Any) -> None:
    @numba.vectorize  # type: ignore[misc]
    def half(x: Any) -> Any:
        return x * 0.5

    def step(s: State) -> None:
        s["a"][:] = half(s["b"])

    assert profiled(step, "half")["b"] == ALL


# ---- SciPy ----


def test_scipy_functions() -> None:
    ndimage = pytest.importorskip("scipy.ndimage", reason="needs SciPy; pip install scipy")
    linalg = pytest.importorskip("scipy.linalg")

    def step(s: State) -> None:
        ndimage.convolve(s["b"], np.array([1.0, 2.0, 1.0]), output=s["a"], mode="wrap")
        smooth = ndimage.uniform_filter1d(s["c"], 3)
        smooth[0] = s["d"][5]
        s["a"][1] += smooth[0]
        s["c"][:] = linalg.solve(np.eye(N) * 2.0, s["c"])

    found = profiled(step, "convolve")
    assert found["b"] == found["c"] == ALL
    assert found["d"] == {5}


def test_scipy_imported_inside() -> None:
    pytest.importorskip("scipy.signal", reason="needs SciPy; pip install scipy")

    def step(s: State) -> None:
        from scipy.signal import fftconvolve

        s["a"][:] = fftconvolve(s["b"], s["c"], mode="same")

    found = profiled(step, "fftconvolve")
    assert found["b"] == found["c"] == ALL


def test_scipy_ufunc_is_elementwise() -> None:
    special = pytest.importorskip("scipy.special", reason="needs SciPy; pip install scipy")

    def step(s: State) -> None:
        special.erf(s["b"], out=s["a"])

    found = profile(step, start(), lambda s: s["a"][1:4])
    assert critical(found)["b"] == {1, 2, 3}
    assert found.sinks == ()


def test_callbacks_see_ordinary_arrays() -> None:
    optimize = pytest.importorskip("scipy.optimize", reason="needs SciPy; pip install scipy")

    def residual(x: Any, b: Any) -> Any:
        out = np.zeros(N)
        out[:] = x - b
        return out

    def step(s: State) -> None:
        s["a"][:] = optimize.root(residual, s["a"], args=(s["b"],)).x

    assert profiled(step, "root")["b"] == ALL


# ---- other ways out ----


def test_numexpr() -> None:
    numexpr = pytest.importorskip("numexpr", reason="needs numexpr; pip install numexpr")

    def step(s: State) -> None:
        b = s["b"]
        s["a"][:] = numexpr.evaluate("2 * b")
        assert b is not None

    with pytest.warns(ProfileWarning, match="ordinary array"):
        found = profile(step, start(), lambda s: s["a"][1:4])
    assert critical(found)["b"] == ALL


def test_python_object_arrays() -> None:
    def step(s: State) -> None:
        boxes = np.empty(2, dtype=object)
        boxes[0], boxes[1] = s["b"][1], s["b"][2:4]
        s["a"][1] = boxes[0] + boxes[1][0]

    found = profile(step, start(), lambda s: s["a"][1:4])
    assert {1, 2} <= critical(found)["b"]


def memoryview_write(s: State) -> None:
    memoryview(s["a"])[0] = 1.0


def iterator_write(s: State) -> None:
    for x in np.nditer(s["a"], op_flags=["readwrite"]):
        x[...] = 2.0 * x


def masked_write(s: State) -> None:
    np.ma.array(s["a"], copy=False)[1] = 7.0


def asarray_write(s: State) -> None:
    np.ma.getdata(s["a"])[1] = 7.0


@pytest.mark.parametrize("step", [memoryview_write, iterator_write, masked_write, asarray_write])
@pytest.mark.filterwarnings("ignore::scr_critplugin.errors.ProfileWarning")
def test_writes_that_cannot_be_followed_are_refused(step: Callable[[State], None]) -> None:
    with pytest.raises(ProfileError, match=r"traced"):
        profile(step, start(), lambda s: s["a"])


def test_buffer_that_is_written() -> None:
    def step(s: State) -> None:
        memory = memoryview(s["a"].data)
        memory[1] = 7.0
        s["a"][2] = s["a"][1] + s["b"][0]

    assert profiled(step, "buffer")["b"] == {0}
