"""Copies are followed while a checkpoint is written or read: end to end, with the states known beforehand.

The programs (c/copies_*) write states through SCR in many ways, each to its own file. Afterwards they read
the elements with odd index and overwrite the others, so that a copy that was followed byte by byte shows as
critical and dead elements in turn, in the order of the file; what was computed is critical whatever befalls
its source.
"""

from __future__ import annotations

import functools
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tracer_tool import scr_environment

HERE = Path(__file__).resolve().parent / "c"
ELEMENTS = 96
HANG = 600

# The usual ways to compile a program; vectors of 32 bytes only where the processor can run them.
LEVELS = ["-O0", "-O2", "-O3", "-O3 -mavx2"]

Trace = Any  # trace_reader's; pytest puts its folder on the path only when the fixtures are made


def skip_without_avx2(level: str) -> None:
    """Skip where the processor cannot run what the compiler makes."""
    cpu = Path("/proc/cpuinfo")
    if "avx2" in level and not (cpu.exists() and "avx2" in cpu.read_text()):
        pytest.skip("the processor has no AVX2")


@pytest.fixture(scope="session")
def traced(
    tool: Any, mpicc: str, scr_root: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., Trace]:
    """Trace of a program, run once for all tests.

    Called with the source, the compiler's options, and each run's argument; the last trace is given.
    """
    compilers = {".c": "gcc", ".cpp": "g++", ".f90": "gfortran"}
    libraries = {".c": [], ".cpp": ["-lstdc++"], ".f90": ["-lgfortran"]}

    def compile_(folder: Path, source: Path, level: str) -> Path:
        compiler = shutil.which(compilers[source.suffix])
        if compiler is None:
            pytest.skip(f"no {compilers[source.suffix]}: install it")
        made, program, lib = folder / "body.o", folder / "program", scr_root / "lib"
        scr = [f"-I{scr_root / 'include'}", f"-L{lib}", "-lscr", f"-Wl,-rpath,{lib}"]
        more = [*libraries[source.suffix], "-lm", "-pthread", "-o", str(program)]
        for command in (
            [compiler, "-g", *level.split(), "-pthread", "-c", str(source), "-o", str(made)],
            [mpicc, "-g", str(HERE / "copies_driver.c"), str(made), *scr, *more],
        ):
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
        return program

    @functools.cache
    def run(name: str, level: str, *runs: str) -> Trace:
        import trace_reader

        skip_without_avx2(level)
        folder = tmp_path_factory.mktemp("copies")
        program = compile_(folder, HERE / name, level)
        for argument in runs or ("",):
            done = subprocess.run(
                [*tool.command(folder / "trace"), str(program), argument],
                env={**tool.environment(), **scr_environment(folder)},
                cwd=folder,
                capture_output=True,
                text=True,
                timeout=HANG,
            )
            assert done.returncode == 0, done.stdout + done.stderr
        return trace_reader.read_trace(folder / "trace")

    return run


def expected(indices: list[int], size: int = 8) -> str:
    """States of copies of these elements, in this order: odd ones critical, even ones dead."""
    return "".join(("c" if index % 2 else "d") * size for index in indices)


ALL = list(range(ELEMENTS))
PACKS = [*ALL, *range(1, 96, 2), *range(0, 96, 3), *reversed(ALL)]


def turned_bytes() -> str:
    """Of this state only the bytes 0, 8, 16, ... are overwritten, all others are read."""
    sources = [at // size * size + size - 1 - at % size for size in (8, 4, 2) for at in range(768)]
    return "".join("d" if source % 8 == 0 else "c" for source in sources)


def widened() -> str:
    """Ten ints widened to longs, the signs of ten others, and 21 ints as they are.

    Of an int that is widened the byte with its sign is used; the upper half is computed.
    """
    low = ["c" if k % 2 else "d" for k in range(21)]
    wide = "".join(low[k] * 3 + "c" + "cccc" for k in range(10))
    signs = "c" * 40
    direct = "".join(low[k] * 3 + "c" for k in range(20)) + "dddd"
    return wide + signs + direct


def decided() -> str:
    """Elements 0, 2, 4 and 6 decide a branch, an index, a file's position and an allocation."""
    return "".join("cccc" if k % 2 or k < 8 else "dddd" for k in range(ELEMENTS))


EXACT = {
    "raw": expected(ALL),
    "stdio_1": expected(ALL),
    "stdio_7": expected(ALL),
    "stdio_all": expected(ALL),
    "packs_double": expected(PACKS, 8),
    "packs_float": expected(PACKS, 4),
    "packs_int32_t": expected(PACKS, 4),
    "packs_uint16_t": expected(PACKS, 2),
    "packs_uint8_t": expected(PACKS, 1),
    "gather": expected([7 * k % ELEMENTS for k in range(ELEMENTS)]),
    "structs": expected(
        [3 * k + j for k in range(32) for j in (1, 2, 0)] + [at + k for k in range(32) for at in (0, 32, 63)]
    ),
    "swapped": expected([k ^ 1 for k in range(ELEMENTS)]),
    "turned_bytes": turned_bytes(),
    "chosen": expected([k if k % 3 == 0 else 47 + k for k in range(48)]),
    "library": expected(ALL * 6),
    "threads": expected(ALL),
    # What is no copy:
    "rounded": "c" * (32 * 4 + 32 * 8) + expected(list(range(32, ELEMENTS))),
    "summed": "c" * (20 * 8) + expected(list(range(20, ELEMENTS))) + "c" * 8,
    "decided": decided(),
}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("part", EXACT)
def test_part(traced: Callable[..., Trace], part: str, level: str) -> None:
    """A way to write a state, as compilers make it, with and without vectors."""
    assert traced("copies_parts.c", level).file(part).states() == EXACT[part]


@pytest.mark.parametrize("level", LEVELS)
def test_sign_extension(traced: Callable[..., Trace], level: str) -> None:
    """Of an int widened to a long the low half is a copy, and only the byte with the sign is used."""
    found, wanted = traced("copies_parts.c", level).file("widened").states(), widened()
    if "-O3" in level:  # with vectors the sign comes from a comparison, which uses the whole int
        assert all(f in ("c", w) for f, w in zip(found, wanted, strict=True))
    else:
        assert found == wanted


@pytest.mark.parametrize("level", LEVELS)
def test_bytes_by_shifts(traced: Callable[..., Trace], level: str) -> None:
    """A portable format written byte by byte: value >> 8 * j is a copy of byte j."""
    found, wanted = traced("copies_parts.c", level).file("shifted_bytes").states(), expected(ALL)
    # What a shift leaves in the flags may be asked for at the end of a block: a few bytes more are critical.
    assert all(f in ("c", w) for f, w in zip(found, wanted, strict=True))
    assert found.count("d") >= 0.8 * wanted.count("d")


def test_sources_are_the_state(traced: Callable[..., Trace]) -> None:
    """The trace says where the bytes of a packed file came from: memory of one block, in the loop's order."""
    sources = traced("copies_parts.c", "-O2").file("packs_double").sources()
    first = min(address for _, _, address, _ in sources)
    addresses = [address + at for _, length, address, _ in sources for at in range(0, length, 8)]
    assert [(address - first) // 8 for address in addresses] == PACKS
    assert len({block for _, _, _, block in sources}) == 1


@pytest.mark.parametrize("level", ["-O0", "-O3"])
def test_cpp(traced: Callable[..., Trace], level: str) -> None:
    """std::vector appended, assigned, inserted and reversed; std::string; through an ofstream."""
    order = [39 - k for k in range(40)] + list(range(50, 60)) + list(range(40)) + list(range(60, 95))
    assert traced("copies_cpp.cpp", level).file("vector").states() == expected(order)


@pytest.mark.parametrize("level", ["-O0", "-O3"])
def test_fortran_sections(traced: Callable[..., Trace], level: str) -> None:
    """Array sections of gfortran, written as such and by way of a temporary."""
    one = [i - 1 for _ in range(4) for i in range(2, 8)]
    two = [i - 1 for i in range(8, 0, -1)]
    three = [i - 1 for i in range(1, 4) for _ in range(4)]
    assert traced("copies_fortran.f90", level).file("sections").states() == expected(one + two + three)


@pytest.mark.parametrize("level", ["-O0", "-O3 -mavx2"])
def test_restart_unpacks(traced: Callable[..., Trace], level: str) -> None:
    """Read into a buffer and unpacked in the other order: bytes go where they are used."""
    states = traced("copies_restart.c", level, "", "restart").file("unpacked").states()
    assert states == expected(list(reversed(ALL)))


@pytest.mark.parametrize("level", ["-O0", "-O3 -mavx2"])
def test_restart_uses_header(traced: Callable[..., Trace], level: str) -> None:
    """What only the restart's code reads is critical: a number that decides, a size for malloc."""
    states = traced("copies_restart.c", level, "", "restart").file("headed").states()
    assert states == "c" * 8 + "d" * 8 + "c" * 8 + "d" * 8 + expected(list(range(4, ELEMENTS)))
