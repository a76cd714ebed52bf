"""Names, types and shapes of real compiled programs' static memory, against values written by hand.

What pointers point at is read from the running program: it prints the bytes of its own pointers.
"""

from __future__ import annotations

import functools
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from elftools.elf.elffile import ELFFile

from scr_critplugin.errors import ProfileError, StorageError
from scr_critplugin.tracing import _elf_files
from scr_critplugin.tracing._dwarf_expressions import Snapshot, UnknownValueError, evaluate
from scr_critplugin.tracing.symbols import Pointee, Program, StaticVariable

VARIANTS = [
    pytest.param(("-O0", "-gdwarf-5"), id="O0-dwarf5"),
    pytest.param(("-O2", "-gdwarf-4"), id="O2-dwarf4"),
    pytest.param(("-O2", "-gdwarf-5", "-no-pie"), id="O2-no-pie"),
    pytest.param(("-O0", "-gdwarf-5", "-gz"), id="compressed"),
    pytest.param(("-O0", "-gdwarf-4", "-fdebug-types-section"), id="type-section"),
    pytest.param(("-O0", "-gdwarf-5", "-fdebug-types-section"), id="type-units"),
]

C_PROGRAM = r"""
#include <complex.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
typedef double real;
typedef real row[5];
double u[12][13][13][5];
static volatile float f[3];
row rows[7];
bool flags[4];
char text[10];
unsigned char raw[6];
_Complex double z[2];
long double wide[2];
unsigned long long big;
enum colour { RED, BLUE } colours[3];
enum sign { MINUS = -1, PLUS } signs[2];
union either { int i; double d; } either[3];
struct cell { double rho; int id; double v[3]; };
struct cell cells[4];
struct bits { unsigned a : 3; unsigned b : 5; double c; } bits[2];
struct plain { int n; double dt; } plain;
struct state { int step; double u[6][8]; struct cell one; } state;
_Thread_local double local_to_thread[4];
const double table[3] = {1, 2, 3};
double *pointer;
double (*planes)[13][5];
void *anything;
double *list[4];
struct grid { int n; float *data; } grid, grids[3];
int (*function)(const char *);
static double same[3];
double use(void);
static double count(int by)
{
    static double same[4]; static double counter[2];
    same[0] += by;
    return counter[1] += same[0];
}
#define SHOW(name, thing) do { \
    const unsigned char *at = (const unsigned char *)&(thing); printf("%s %p ", name, (void *)at); \
    for (int i = 0; i < 64; i++) printf("%02x", at[i]); printf("\n"); } while (0)
int main(int argc, char **argv)
{
    pointer = calloc(100, 8); planes = calloc(4, sizeof *planes); anything = malloc(64);
    list[2] = calloc(7, 8); grid.data = calloc(5, 4); grids[1].data = calloc(6, 4); function = puts;
    f[argc] = rows[1][argc] = u[1][1][1][argc] = cells[argc].rho = state.u[1][argc] = table[argc];
    same[1] = count(argc) + local_to_thread[argc]; z[1] = wide[1] = big = argc;
    either[1].i = signs[1] = colours[2] = argc;
    bits[1].a = plain.n = flags[1] = text[argc] = raw[argc] = argc;
    SHOW("u", u); SHOW("pointer", pointer); SHOW("planes", planes); SHOW("anything", anything);
    SHOW("list", list); SHOW("grid", grid); SHOW("grids", grids); SHOW("function", function);
    printf("end %g %g\n", same[1] + use(), u[1][1][argc][1] + f[1] + rows[1][1] + cells[1].rho +
           state.u[1][1]);
    return 0;
}
"""
C_OTHER = "static double same[5]; double use(void) { return same[1]++ + same[2]; }\n"

CELL = np.dtype(
    {
        "names": ["rho", "id", "v"],
        "formats": ["<f8", "<i4", ("<f8", 3)],
        "offsets": [0, 8, 16],
        "itemsize": 40,
    }
)


def build(
    folder: Path, compiler: str, sources: dict[str, str], *options: str, output: str = "program"
) -> Path:
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler}: install it to test its programs' debugging information")
    for name, text in sources.items():
        (folder / name).write_text(text)
    result = subprocess.run(
        [compiler, *options, *sources, "-o", output], cwd=folder, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    return folder / output


def address_of(program: Path, symbol: str) -> int:
    with program.open("rb") as file:
        table: Any = ELFFile(file).get_section_by_name(".symtab")
        return int(table.get_symbol_by_name(symbol)[0]["st_value"])


@functools.lru_cache(maxsize=32)
def opened(program: Path) -> Program:
    """The program, read once for the tests that do not change it."""
    return Program(program)


def variable(program: Path, symbol: str) -> StaticVariable:
    found = opened(program).variable_at(address_of(program, symbol))
    assert found is not None
    return found


def shown(program: Path) -> dict[str, tuple[int, bytes]]:
    """Run-time address and bytes of the pointers that the program shows."""
    output = subprocess.run([program], cwd=program.parent, capture_output=True, text=True, check=True).stdout
    lines = [line.split() for line in output.splitlines()]
    return {
        line[0]: (int(line[1], 16), bytes.fromhex(line[2]))
        for line in lines
        if len(line) == 3 and line[1].startswith("0x")
    }


def pointee(program: Path, name: str, symbol: str | None = None, offset: int = 0) -> Pointee | None:
    address, memory = shown(program)[name]
    link_address = address_of(program, symbol or name)
    return opened(program).pointee_at(link_address + offset, memory[offset:], address + offset)


@pytest.fixture(scope="module", params=VARIANTS)
def c_program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    sources = {"main.c": C_PROGRAM, "other.c": C_OTHER}
    return build(tmp_path_factory.mktemp("c"), "gcc", sources, *request.param)


@pytest.mark.parametrize(
    ("name", "dtype", "shape"),
    [
        ("u", "<f8", (12, 13, 13, 5)),
        ("f", "<f4", (3,)),
        ("rows", "<f8", (7, 5)),
        ("flags", "?", (4,)),
        ("text", "i1", (10,)),
        ("raw", "u1", (6,)),
        ("z", "<c16", (2,)),
        ("wide", "V16", (2,)),
        ("big", "<u8", ()),
        ("colours", "<u4", (3,)),
        ("signs", "<i4", (2,)),
        ("either", "V8", (3,)),
        ("cells", CELL, (4,)),
        ("bits", "V16", (2,)),
        ("plain", np.dtype([("n", "<i4"), ("dt", "<f8")], align=True), ()),
        ("pointer", "<u8", ()),
    ],
)
def test_variables_of_c(c_program: Path, name: str, dtype: Any, shape: tuple[int, ...]) -> None:
    found = variable(c_program, name)
    assert (found.name, found.dtype, found.shape, found.order) == (name, np.dtype(dtype), shape, "C")
    assert found.address == address_of(c_program, name)
    assert found.nbytes == np.dtype(dtype).itemsize * int(np.prod(shape))


def test_an_address_within_a_variable_is_the_variables(c_program: Path) -> None:
    program = opened(c_program)
    start = address_of(c_program, "u")
    whole = program.variable_at(start)
    assert whole is not None
    assert program.variable_at(start + 12 * 13 * 13 * 5 * 8 - 1) == whole
    behind = program.variable_at(start + 12 * 13 * 13 * 5 * 8)
    assert behind != whole


def test_a_structure_with_arrays_is_its_members(c_program: Path) -> None:
    program = opened(c_program)
    start = address_of(c_program, "state")
    members = [program.variable_at(start + offset) for offset in (0, 8, 8 + 383, 392, 400, 408)]
    assert [(member.name, member.shape) for member in members if member is not None] == [
        ("state.step", ()),
        ("state.u", (6, 8)),
        ("state.u", (6, 8)),
        ("state.one.rho", ()),
        ("state.one.id", ()),
        ("state.one.v", (3,)),
    ]
    assert program.variable_at(start + 4) is None  # padding


def test_equal_names_are_told_apart(c_program: Path) -> None:
    names = {found.name: found.shape for found in opened(c_program)._variables if "same" in found.name}
    assert names == {"main.c::same": (3,), "other.c::same": (5,), "count::same": (4,)}
    # A local static whose name is clear needs no function's name.
    assert any(found.name == "counter" for found in opened(c_program)._variables)


def test_link_time_optimisation_keeps_names(tmp_path: Path) -> None:
    path = build(tmp_path, "gcc", {"main.c": C_PROGRAM, "other.c": C_OTHER}, "-O1", "-g", "-flto")
    names = {found.name: found.shape for found in Program(path)._variables}
    assert names["u"] == (12, 13, 13, 5)
    assert (names["main.c::same"], names["other.c::same"]) == ((3,), (5,))


def test_thread_local_variables_have_no_address(c_program: Path) -> None:
    assert all("local_to_thread" not in found.name for found in opened(c_program)._variables)


def test_pointers_of_c(c_program: Path) -> None:
    assert pointee(c_program, "pointer") == Pointee("pointer", np.dtype("<f8"))
    assert pointee(c_program, "planes") == Pointee("planes", np.dtype("<f8"), row=(13, 5))
    assert pointee(c_program, "anything") == Pointee("anything", None)
    assert pointee(c_program, "list", offset=16) == Pointee("list[2]", np.dtype("<f8"))
    assert pointee(c_program, "grid", offset=8) == Pointee("grid.data", np.dtype("<f4"))
    assert pointee(c_program, "grids", offset=24) == Pointee("grids[1].data", np.dtype("<f4"))


def test_what_is_no_data_pointer_points_at_nothing(c_program: Path) -> None:
    assert pointee(c_program, "function") is None
    assert pointee(c_program, "u") is None
    assert pointee(c_program, "grid", offset=0) is None
    assert pointee(c_program, "pointer", offset=4) is None


def test_build_id_is_the_files(c_program: Path) -> None:
    found = opened(c_program).build_id
    notes = subprocess.run(["readelf", "-n", c_program], capture_output=True, text=True, check=True).stdout
    assert found is not None and found in notes


def test_a_position_independent_program_and_another_agree(tmp_path: Path) -> None:
    names = []
    for option in ("-pie", "-no-pie"):
        path = build(
            tmp_path, "gcc", {"main.c": C_PROGRAM, "other.c": C_OTHER}, "-g", option, output=f"p{option}"
        )
        variables = Program(path)._variables
        names.append({(found.name, found.shape) for found in variables if found.dtype != np.uint8})
    assert names[0] == names[1]


# Files without, and with separate, debugging information ----------------------------------------------------


def test_without_dwarf_the_symbol_table_names(tmp_path: Path) -> None:
    path = build(tmp_path, "gcc", {"main.c": C_PROGRAM, "other.c": C_OTHER})
    found = variable(path, "u")
    assert (found.name, found.dtype, found.shape) == ("u", np.dtype(np.uint8), (12 * 13 * 13 * 5 * 8,))
    assert Program(path).pointee_at(address_of(path, "pointer"), bytes(8), 0) is None


def test_a_stripped_program_has_no_names(tmp_path: Path) -> None:
    path = build(tmp_path, "gcc", {"main.c": C_PROGRAM, "other.c": C_OTHER}, "-g")
    address = address_of(path, "u")
    subprocess.run(["strip", path], check=True)
    assert Program(path).variable_at(address) is None
    section = Program(path).section_at(address)
    assert section is not None and section.name == ".bss"


def test_names_of_mangled_symbols(tmp_path: Path) -> None:
    source = (
        "namespace grid { double u[4]; namespace { double hidden[2]; } double *p = hidden; } int main() {}\n"
    )
    path = build(tmp_path, "g++", {"main.cpp": source})
    names = {found.name for found in Program(path)._variables}
    assert {"grid::u", "grid::hidden", "grid::p"} <= names


def split(path: Path, debug: Path, *link: str) -> None:
    subprocess.run(["objcopy", "--only-keep-debug", path, debug], check=True)
    subprocess.run(["strip", path], check=True)
    if link:
        subprocess.run(["objcopy", *link, path], cwd=path.parent, check=True)


@pytest.mark.parametrize("folder", [".", ".debug"])
def test_debug_link(tmp_path: Path, folder: str) -> None:
    path = build(tmp_path, "gcc", {"main.c": C_PROGRAM, "other.c": C_OTHER}, "-g")
    address = address_of(path, "u")
    debug = tmp_path / folder / "program.debug"
    debug.parent.mkdir(exist_ok=True)
    split(path, debug, f"--add-gnu-debuglink={debug}")
    found = Program(path).variable_at(address)
    assert found is not None and (found.name, found.shape) == ("u", (12, 13, 13, 5))


def test_build_id_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = build(tmp_path, "gcc", {"main.c": C_PROGRAM, "other.c": C_OTHER}, "-g")
    address = address_of(path, "u")
    build_id = Program(path).build_id
    assert build_id is not None
    debug = tmp_path / "debug" / ".build-id" / build_id[:2] / f"{build_id[2:]}.debug"
    debug.parent.mkdir(parents=True)
    split(path, debug)
    monkeypatch.setattr(_elf_files, "DEBUG_FOLDERS", (tmp_path / "debug",))
    found = Program(path).variable_at(address)
    assert found is not None and found.shape == (12, 13, 13, 5)


def test_another_programs_debugging_information_is_refused(tmp_path: Path) -> None:
    path = build(tmp_path, "gcc", {"main.c": C_PROGRAM, "other.c": C_OTHER}, "-g")
    address = address_of(path, "u")
    debug = tmp_path / "program.debug"
    split(path, debug, f"--add-gnu-debuglink={debug}")
    other = build(tmp_path, "gcc", {"o.c": "double u[3]; int main() { return 0; }"}, "-g", output="other")
    split(other, debug)
    assert Program(path).variable_at(address) is None


def test_damaged_debugging_information_is_survived(tmp_path: Path) -> None:
    path = build(tmp_path, "gcc", {"main.c": C_PROGRAM, "other.c": C_OTHER}, "-g")
    address = address_of(path, "u")
    with path.open("rb") as file:
        section: Any = ELFFile(file).get_section_by_name(".debug_abbrev")
        start, size = section["sh_offset"], section["sh_size"]
    content = bytearray(path.read_bytes())
    content[start : start + size] = np.random.default_rng(1).bytes(size)
    path.write_bytes(content)
    with pytest.warns(UserWarning, match="cannot be read"):
        found = Program(path).variable_at(address)
    assert found is not None and (found.name, found.dtype) == ("u", np.dtype(np.uint8))


def test_what_is_no_program(tmp_path: Path) -> None:
    with pytest.raises(StorageError):
        Program(tmp_path / "missing")
    text = tmp_path / "text"
    text.write_text("#!/bin/sh\n")
    with pytest.raises(ProfileError, match="no ELF file"):
        Program(text)


def test_shared_libraries_have_static_memory_too(tmp_path: Path) -> None:
    source = "double field[6][7]; double *get(void) { return &field[0][0]; }\n"
    path = build(tmp_path, "gcc", {"lib.c": source}, "-g", "-shared", "-fPIC", output="libfield.so")
    found = variable(path, "field")
    assert (found.name, found.shape) == ("field", (6, 7))


# C++ --------------------------------------------------------------------------------------------------------

CPP_PROGRAM = r"""
#include <array>
#include <atomic>
#include <complex>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>
namespace grid {
std::vector<double> v(10);
std::array<std::array<double, 3>, 4> a;
std::complex<float> z[3];
struct Base { int n; double q[3]; };
struct Field : Base { std::vector<float> w; double *p; };
Field field;
struct Store { static double here[9]; };
double Store::here[9];
template <class T> struct Kind { static T there[3]; };
template <class T> T Kind<T>::there[3];
template struct Kind<double>;
namespace { double hidden[7]; }
inline namespace v2 { double inlined[2]; }
}
std::vector<std::vector<int>> nested(2);
std::vector<bool> bits(100);
std::unique_ptr<double[]> owned(new double[5]);
std::atomic<int> atom;
template <class T> void show(const char *name, T &thing)
{
    const unsigned char *at = reinterpret_cast<const unsigned char *>(&thing);
    std::printf("%s %p ", name, (const void *)at);
    for (int i = 0; i < 64; i++) std::printf("%02x", at[i]);
    std::printf("\n");
}
int main()
{
    grid::v.reserve(100);
    grid::field.w.resize(4);
    grid::field.p = new double[3];
    grid::hidden[1] = grid::inlined[1] = grid::Store::here[1] = grid::a[1][1] = 1;
    show("v", grid::v); show("field", grid::field); show("nested", nested); show("bits", bits);
    show("owned", owned);
    std::printf("end %g\n", grid::hidden[1] + grid::inlined[1] + grid::z[1].real() + atom);
}
"""


@pytest.fixture(scope="module", params=VARIANTS)
def cpp_program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(
        tmp_path_factory.mktemp("cpp"), "g++", {"main.cpp": CPP_PROGRAM}, "-std=c++17", *request.param
    )


@pytest.mark.parametrize(
    ("symbol", "name", "dtype", "shape"),
    [
        ("_ZN4grid1aE", "grid::a", "<f8", (4, 3)),
        ("_ZN4grid1zE", "grid::z", "<c8", (3,)),
        ("_ZN4grid5Store4hereE", "grid::Store::here", "<f8", (9,)),
        ("_ZN4grid4KindIdE5thereE", "grid::Kind<double>::there", "<f8", (3,)),
        ("_ZN4grid2v27inlinedE", "grid::inlined", "<f8", (2,)),
        ("atom", "atom", "<i4", ()),
    ],
)
def test_variables_of_cpp(
    cpp_program: Path, symbol: str, name: str, dtype: str, shape: tuple[int, ...]
) -> None:
    found = variable(cpp_program, symbol)
    assert (found.name, found.dtype, found.shape) == (name, np.dtype(dtype), shape)


def test_base_classes_and_hidden_names(cpp_program: Path) -> None:
    names = {found.name: found.shape for found in opened(cpp_program)._variables}
    assert names["grid::field.q"] == (3,)
    assert names["grid::field.n"] == ()
    assert names["grid::hidden"] == (7,)


def test_pointers_of_cpp(cpp_program: Path) -> None:
    vector = Pointee("grid::v", np.dtype("<f8"), (10,), "C", (0,))
    assert pointee(cpp_program, "v", "_ZN4grid1vE") == vector
    member = Pointee("grid::field.w", np.dtype("<f4"), (4,), "C", (0,))
    assert pointee(cpp_program, "field", "_ZN4grid5fieldE", offset=32) == member
    assert pointee(cpp_program, "field", "_ZN4grid5fieldE", offset=56) == Pointee(
        "grid::field.p", np.dtype("<f8")
    )
    assert pointee(cpp_program, "owned") == Pointee("owned", np.dtype("<f8"))
    assert pointee(cpp_program, "bits") == Pointee("bits", np.dtype("<u8"))
    nested = pointee(cpp_program, "nested")
    assert nested is not None and (nested.name, nested.shape) == ("nested", (2,))
    # The end of a vector is no pointer to a block that happens to begin there.
    assert pointee(cpp_program, "v", "_ZN4grid1vE", offset=8) is None


# Fortran ----------------------------------------------------------------------------------------------------

FORTRAN_PROGRAM = """
module grid
  implicit none
  integer, parameter :: n = 12
  real(8), target :: u(5,0:n,0:n,n)
  real(8), allocatable, target :: w(:,:,:), never(:)
  real(4), pointer :: p(:), section(:)
  complex(8) :: z(3)
  logical :: flag(7)
  character(len=10) :: label(4)
  type cell
    real(8) :: rho
    integer :: id
    real(8) :: v(3)
  end type
  type(cell) :: cells(10)
  type(cell), allocatable, target :: many(:)
  type holder
    integer :: k
    real(8), allocatable :: q(:,:)
  end type
  type(holder), target :: hold
end module
subroutine work
  use grid
  real(8), save :: kept(4,-1:5)
  real(8) :: a, b(6), c
  integer k
  common /blk/ a, b, k
  common // c
  kept = kept + 1; a = 1; b = 2; k = 3; c = 1
  print *, 'end', kept(1,1), b(2), c
end subroutine
program main
  use grid
  real(8), save :: state(100,20)
  real(4), target, save :: pool(20)
  external raw
  state = 1; u = 0; z = 0; flag = .true.; label = 'a'; cells%id = 1; pool = 0
  allocate(w(3,-1:4,5), many(4), hold%q(2,3), p(9))
  w = 0; p = 0; hold%q = 0; many%id = 0
  section => pool(1:20:3)
  call work
  call raw
  print *, 'end', state(1,1), u(1,1,1,1), z(1), label(1), section(1)
end program
"""
# Descriptors can only be seen whole from C.
FORTRAN_HELPER = r"""
#include <stdio.h>
extern unsigned char __grid_MOD_w[], __grid_MOD_p[], __grid_MOD_many[], __grid_MOD_hold[], __grid_MOD_never[];
extern unsigned char __grid_MOD_section[];
static void show(const char *name, const unsigned char *at, int bytes)
{
    printf("%s %p ", name, (const void *)at);
    for (int i = 0; i < bytes; i++) printf("%02x", at[i]);
    printf("\n");
    fflush(stdout);
}
void raw_(void)
{
    show("w", __grid_MOD_w, 112); show("p", __grid_MOD_p, 64); show("many", __grid_MOD_many, 64);
    show("hold", __grid_MOD_hold, 96); show("never", __grid_MOD_never, 64);
    show("section", __grid_MOD_section, 64);
}
"""
FORTRAN_VARIANTS = [variant for variant in VARIANTS if variant.id in ("O0-dwarf5", "O2-dwarf4", "O2-no-pie")]


@pytest.fixture(scope="module", params=FORTRAN_VARIANTS)
def fortran_program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    sources = {"main.f90": FORTRAN_PROGRAM, "helper.c": FORTRAN_HELPER}
    return build(tmp_path_factory.mktemp("fortran"), "gfortran", sources, *request.param)


def named(program: Path, name: str) -> StaticVariable:
    found = [one for one in opened(program)._variables if one.name == name]
    assert len(found) == 1, sorted(one.name for one in opened(program)._variables)
    return found[0]


@pytest.mark.parametrize(
    ("name", "dtype", "shape", "lower"),
    [
        ("grid::u", "<f8", (5, 13, 13, 12), (1, 0, 0, 1)),
        ("grid::z", "<c16", (3,), (1,)),
        ("grid::flag", "<i4", (7,), (1,)),
        ("grid::label", "S10", (4,), (1,)),
        ("grid::cells", CELL, (10,), (1,)),
        ("kept", "<f8", (4, 7), (1, -1)),
        ("b", "<f8", (6,), (1,)),
        ("state", "<f8", (100, 20), (1, 1)),
    ],
)
def test_variables_of_fortran(
    fortran_program: Path, name: str, dtype: Any, shape: tuple[int, ...], lower: tuple[int, ...]
) -> None:
    found = named(fortran_program, name)
    assert (found.dtype, found.shape, found.order, found.lower) == (np.dtype(dtype), shape, "F", lower)


def test_members_of_common_blocks_lie_in_their_block(fortran_program: Path) -> None:
    start = address_of(fortran_program, "blk_")
    places = {name: named(fortran_program, name).address - start for name in ("a", "b", "k")}
    assert places == {"a": 0, "b": 8, "k": 56}
    assert named(fortran_program, "c").address == address_of(fortran_program, "__BLNK__")


def test_descriptors_of_fortran(fortran_program: Path) -> None:
    def at(name: str, offset: int = 0) -> Pointee | None:
        return pointee(fortran_program, name, f"__grid_MOD_{name}", offset)

    assert at("w") == Pointee("grid::w", np.dtype("<f8"), (3, 6, 5), "F", (1, -1, 1))
    assert at("p") == Pointee("grid::p", np.dtype("<f4"), (9,), "F", (1,))
    assert at("many") == Pointee("grid::many", CELL, (4,), "F", (1,))
    assert at("hold", offset=8) == Pointee("grid::hold%q", np.dtype("<f8"), (2, 3), "F", (1, 1))
    assert at("never") is None
    # A section with gaps: the pointer has a name and a type, but no dense shape.
    assert at("section") == Pointee("grid::section", np.dtype("<f4"), None, "F")


def test_a_cut_off_descriptor_says_nothing_wrong(fortran_program: Path) -> None:
    address, memory = shown(fortran_program)["w"]
    link_address = address_of(fortran_program, "__grid_MOD_w")
    program = opened(fortran_program)
    for size in range(8, 112, 8):
        found = program.pointee_at(link_address, memory[:size], address)
        assert found is None or found.shape is None


def test_equal_members_of_two_common_blocks(tmp_path: Path) -> None:
    source = """
subroutine one
  real(8) x(3)
  common /first/ x
  x = 1
end
subroutine two
  real(8) x(4)
  common /second/ x
  x = 2
end
program main
  call one
  call two
end
"""
    path = build(tmp_path, "gfortran", {"main.f90": source}, "-g")
    names = {found.name: found.shape for found in Program(path)._variables}
    assert (names["first::x"], names["second::x"]) == ((3,), (4,))


# Expressions ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("97 06", 0x1122334455667788),  # push_object_address, deref
        ("97 23 08 06", -5),  # ..., plus_uconst 8, deref
        ("97 23 08 94 01", 0xFB),  # ..., deref_size 1
        ("33 34 1e", 12),  # lit3 lit4 mul
        ("33 34 1c", -1),  # lit3 lit4 minus
        ("09 f9 32 1b", -3),  # const1s -7, lit2, div: towards zero
        ("31 32 33 17", 2),  # rot brings the second up
        ("31 32 14 22 22", 4),  # over
        ("31 32 16 1c", 1),  # swap, minus
        ("30 20", -1),  # not
        ("09 f8 31 26", -4),  # shra
        ("09 ff 30 2d", 1),  # -1 < 0: comparisons are signed
    ],
)
def test_expressions(expression: str, value: int, c_program: Path) -> None:
    memory = (0x1122334455667788).to_bytes(8, "little") + (-5).to_bytes(8, "little", signed=True)
    assert (
        evaluate(bytes.fromhex(expression), parser_of(c_program), Snapshot(0x1000, memory), 0x1000) == value
    )


@pytest.mark.parametrize(
    "expression",
    ["", "22", "97 23 10 06", "91 00", "50", "9c", "31 30 1b", "ff", "08"],
    ids=["empty", "no operands", "outside", "frame", "register", "cfa", "by zero", "unknown", "cut off"],
)
def test_expressions_that_cannot_be_known(expression: str, c_program: Path) -> None:
    with pytest.raises(UnknownValueError):
        evaluate(bytes.fromhex(expression), parser_of(c_program), Snapshot(0x1000, bytes(16)), 0x1000)


def parser_of(program: Path) -> Any:
    from elftools.dwarf.dwarf_expr import DWARFExprParser

    with program.open("rb") as file:
        unit = next(iter(ELFFile(file).get_dwarf_info().iter_CUs()))
        return DWARFExprParser(unit.structs)
