"""Names of traced memory: real programs' own pointers and variables, and stacks as the tracer writes them."""

from __future__ import annotations

import itertools
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from elftools.elf.elffile import ELFFile

from scr_critplugin.errors import TraceError
from scr_critplugin.tracing.naming import Namer, name_sources, static_pieces
from scr_critplugin.tracing.trace_file import Block, Frame, RankTrace, Root, TracedObject, Window

PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
double u[4][5];
struct { int n; float t[3]; } state;
double *field, (*planes)[3][5], *spare;
void *raw;
int main(void)
{
    field = malloc(80); planes = malloc(4 * sizeof *planes); raw = malloc(24); spare = field;
    u[1][1] = state.t[1] = 1;
    printf("%p %p %p\n", (void *)field, (void *)planes, raw);
    return 0;
}
"""


def frame(function: str = "", file: str = "", line: int = 0, of: str = "/app/heat3d") -> Frame:
    return Frame(function, of, file, line)


def trace_of(*blocks: Block, **given: object) -> RankTrace:
    plain = RankTrace(
        path=Path("trace"),
        tool="0",
        valgrind="3.19",
        program="/app/heat3d",
        arguments=("heat3d",),
        window=Window("end", 0, 3),
        rank=2,
        ranks=4,
        blocks={block.number: block for block in blocks},
    )
    return replace(plain, **given)  # type: ignore[arg-type]


def heap(number: int, *stack: Frame, nbytes: int = 64) -> Block:
    return Block(number, "heap", 0x1000 * (number + 1), nbytes, stack)


def names(trace: RankTrace) -> list[str]:
    return [source.name for source in name_sources(trace).values()]


# Allocation sites -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stack", "name"),
    [
        ([frame("setup", "src/heat3d.c", 57), frame("main", "src/heat3d.c", 90)], "heat3d.c:57"),
        (
            [
                frame("operator new(unsigned long)", of="/lib/libstdc++.so"),
                frame("std::allocator<double>::allocate(unsigned long)", "new_allocator.h", 137),
                frame(
                    "std::vector<double, std::allocator<double> >::resize(unsigned long)", "stl_vector.h", 9
                ),
                frame("Solver::init(int)", "solver.cpp", 21),
            ],
            "solver.cpp:21",
        ),
        ([frame("double* std::__alloc<double>(int)", "alloc.h", 3), frame("go", "go.cpp", 4)], "go.cpp:4"),
        ([frame("calloc", of="/lib/libc.so"), frame("alloc_grid"), frame("main")], "alloc_grid"),
        ([frame("H5MM_malloc", of="/lib/libhdf5.so"), frame("save(int) const"), frame("main")], "save"),
        ([frame("inside", of="/lib/libx.so")], "inside"),
        ([frame("", of="/lib/libx.so")], "block of libx.so"),
        ([], "heap block"),
        ([frame("bad\x1bname")], "bad?name"),
    ],
)
def test_a_block_is_named_by_what_allocated_it(stack: list[Frame], name: str) -> None:
    assert names(trace_of(heap(0, *stack))) == [name]


def test_several_blocks_of_one_site_are_numbered_and_the_first_is_as_if_alone() -> None:
    site = frame("main", "heat3d.c", 57)
    assert names(trace_of(heap(3, site), heap(5, site), heap(9, site))) == [
        "heat3d.c:57",
        "heat3d.c:57#2",
        "heat3d.c:57#3",
    ]


def test_names_do_not_depend_on_addresses() -> None:
    blocks = [heap(0, frame("a", "a.c", 1)), heap(1), Block(2, "stack", 9, 8, (frame("main"),))]
    moved = [replace(block, address=block.address + 0x777000) for block in blocks]
    assert names(trace_of(*blocks)) == names(trace_of(*moved))


def test_other_kinds_have_plain_names() -> None:
    blocks = [
        Block(0, "stack", 0x10, 64, (frame("main"),)),
        Block(1, "stack", 0x90, 64, ()),
        Block(2, "mapping", 0x100, 64, ()),
        Block(3, "mapping", 0x200, 64, (frame("mmap"), frame("pool", "pool.c", 8))),
    ]
    found = name_sources(trace_of(*blocks))
    assert [source.name for source in found.values()] == ["stack of main", "stack", "mapping", "pool.c:8"]
    assert all(source.dtype == np.uint8 and source.shape is None for source in found.values())


def test_the_stack_of_a_source_is_for_reading() -> None:
    found = name_sources(trace_of(heap(0, frame("setup", "heat3d.c", 57), frame("main"))))
    assert found[0].stack == ("setup (heat3d.c:57)", "main (/app/heat3d)")


# Shapes that the user states --------------------------------------------------------------------------------


def test_a_stated_shape_tells_the_size_of_the_elements() -> None:
    trace = trace_of(heap(0, frame("main", "heat3d.c", 57), nbytes=480))
    found = name_sources(trace, {"heat3d.c:57": (3, 4, 5)})[0]
    assert (found.shape, found.dtype, found.lower) == ((3, 4, 5), np.dtype("V8"), (0, 0, 0))
    assert name_sources(trace, {"heat3d.c:57": (480,)})[0].dtype == np.uint8
    assert name_sources(trace, {"other": (7,)})[0].shape is None


@pytest.mark.parametrize("shape", [(7, 7), (0,), (1000,)])
def test_a_stated_shape_that_does_not_fit_is_refused(shape: tuple[int, ...]) -> None:
    trace = trace_of(heap(0, frame("main", "heat3d.c", 57), nbytes=480))
    with pytest.raises(TraceError, match="480 bytes") as raised:
        name_sources(trace, {"heat3d.c:57": shape})
    assert (raised.value.key, raised.value.rank) == ("heat3d.c:57", 2)


# A real program's memory ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("gcc") is None:
        pytest.skip("no gcc: install it to test the names of a program's memory")
    folder = tmp_path_factory.mktemp("naming")
    (folder / "main.c").write_text(PROGRAM)
    subprocess.run(["gcc", "-g", "main.c", "-o", "heat3d"], cwd=folder, check=True)
    return folder / "heat3d"


BIAS = 0x4000000


def address_of(program: Path, symbol: str) -> int:
    with program.open("rb") as file:
        return (
            int(ELFFile(file).get_section_by_name(".symtab").get_symbol_by_name(symbol)[0]["st_value"]) + BIAS
        )


def loaded(program: Path, *blocks: Block, pointers: dict[str, int] | None = None) -> RankTrace:
    """A trace of the program at BIAS; `pointers` says which variable points at which block."""
    owner = TracedObject(str(program), BIAS, BIAS, BIAS + 0x100000)
    starts = {block.number: block.address for block in blocks}
    roots = tuple(
        Root(address_of(program, name), number, starts[number].to_bytes(8, "little") + bytes(56))
        for name, number in (pointers or {}).items()
    )
    return trace_of(*blocks, program=str(program), objects=(owner,), roots=roots)


def test_a_block_takes_the_name_and_type_of_the_pointer(program: Path) -> None:
    site = frame("main", "main.c", 10)
    blocks = [heap(0, site, nbytes=80), heap(1, site, nbytes=480), heap(2, site, nbytes=24), heap(3, site)]
    pointers = {"field": 0, "planes": 1, "raw": 2, "spare": 0}
    found = name_sources(loaded(program, *blocks, pointers=pointers))
    assert [(one.name, one.dtype, one.shape) for one in found.values()] == [
        ("field", np.dtype("<f8"), None),  # "spare" says as much, and comes behind in the alphabet
        ("planes", np.dtype("<f8"), (4, 3, 5)),
        ("raw", np.dtype(np.uint8), None),
        ("main.c:10", np.dtype(np.uint8), None),
    ]


def test_what_does_not_fill_its_block_has_no_shape_or_type(program: Path) -> None:
    blocks = [heap(0, nbytes=83), heap(1, nbytes=481)]
    found = name_sources(loaded(program, *blocks, pointers={"field": 0, "planes": 1}))
    assert [(one.name, one.dtype, one.shape) for one in found.values()] == [
        ("field", np.dtype(np.uint8), None),
        ("planes", np.dtype(np.uint8), None),
    ]


def test_a_typed_pointers_block_takes_only_fitting_shapes(program: Path) -> None:
    trace = loaded(program, heap(0, nbytes=80), pointers={"field": 0})
    found = name_sources(trace, {"field": (2, 5)})[0]
    assert (found.dtype, found.shape) == (np.dtype("<f8"), (2, 5))
    with pytest.raises(TraceError, match="float64"):
        name_sources(trace, {"field": (2, 10)})


def test_static_memory_is_cut_by_variables(program: Path) -> None:
    trace = loaded(program)
    start = address_of(program, "u")
    pieces = static_pieces(trace, start + 16, start + 160)
    assert [(piece.start, piece.stop, piece.source.name) for piece in pieces] == [
        (start + 16, start + 160, "u")
    ]
    source = pieces[0].source
    assert (source.address, source.nbytes, source.dtype, source.shape) == (
        start,
        160,
        np.dtype("<f8"),
        (4, 5),
    )
    assert source.stack == ()


def test_pieces_cover_every_range(program: Path) -> None:
    start = min(address_of(program, name) for name in ("u", "state", "field")) - 64
    stop = max(address_of(program, name) for name in ("u", "state", "field")) + 256
    pieces = static_pieces(loaded(program), start, stop)
    assert pieces[0].start == start and pieces[-1].stop == stop
    assert all(one.stop == two.start for one, two in itertools.pairwise(pieces))
    found = {piece.source.name for piece in pieces}
    assert {"u", "state.n", "state.t", "field", "planes", "raw"} <= found
    for piece in pieces:
        assert piece.source.address <= piece.start < piece.stop <= piece.source.address + piece.source.nbytes


def test_a_pointer_is_not_taken_for_its_block(program: Path) -> None:
    namer = Namer(loaded(program, heap(0, nbytes=80), pointers={"field": 0}))
    assert namer.blocks()[0].name == "field"
    at = address_of(program, "field")
    assert [piece.source.name for piece in namer.static_pieces(at, at + 8)] == ["&field"]


def test_memory_of_no_object_is_unknown(program: Path) -> None:
    pieces = static_pieces(loaded(program), BIAS - 100, BIAS + 8)
    assert pieces[0].source.name == "unknown memory"
    assert (pieces[0].start, pieces[0].stop, pieces[1].start) == (BIAS - 100, BIAS, BIAS)


def test_an_object_that_is_gone_leaves_plain_names() -> None:
    owner = TracedObject("/nowhere/heat3d", BIAS, BIAS, BIAS + 0x1000)
    root = Root(BIAS + 8, 0, bytes(8))
    trace = trace_of(heap(0, frame("main", "a.c", 3)), objects=(owner,), roots=(root,))
    assert names(trace) == ["a.c:3"]
    assert [piece.source.name for piece in static_pieces(trace, BIAS + 16, BIAS + 32)] == ["heat3d+0x10"]


def test_a_static_block_that_is_one_variable_is_that_variable(program: Path) -> None:
    start = address_of(program, "u")
    whole = Block(0, "static", start, 160, ())
    assert names(loaded(program, whole)) == ["u"]
    part = Block(0, "static", start, 80, ())
    assert names(loaded(program, part))[0].startswith("heat3d(.bss+")
