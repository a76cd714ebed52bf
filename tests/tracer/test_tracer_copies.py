"""Copies are followed while a checkpoint is written or read: end to end, with the states known beforehand.

Each program writes its state through SCR in another way. Afterwards it reads the elements with odd index and
overwrites the others (c/copies_body.h), so that a copy that was followed byte by byte shows as critical and dead
elements in turn, in the order of the file; a value that was computed is critical whatever becomes of its source.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
ELEMENTS = 96

# The usual ways to compile a program; the last one only where the processor can run it.
LEVELS = ["-O0", "-O2", "-O3", "-O3 -mavx2"]


def levels() -> list[object]:
    """Compiler options, for parametrize."""
    cpu = Path("/proc/cpuinfo")
    has_avx2 = cpu.exists() and "avx2" in cpu.read_text()
    no_avx2 = pytest.mark.skipif(not has_avx2, reason="the processor has no AVX2")
    return [pytest.param(level, marks=no_avx2) if "avx2" in level else level for level in LEVELS]


def expected(indices: list[int], size: int = 8) -> str:
    """States of copies of these elements, in this order: odd ones critical, even ones dead."""
    return "".join(("c" if index % 2 else "d") * size for index in indices)


@pytest.fixture
def compile_body(
    tmp_path: Path, mpicc: str, scr_root: Path
) -> Callable[..., Path]:
    """Compile the functions of a test, in C, C++ or Fortran, with the driver."""

    def compile_(body: str, level: str = "-O2", language: str = "c", options: tuple[str, ...] = ()) -> Path:
        names = {"c": "body.c", "c++": "body.cpp", "fortran": "body.f90"}
        commands = {"c": "gcc", "c++": "g++", "fortran": "gfortran"}
        libraries = {"c": [], "c++": ["-lstdc++"], "fortran": ["-lgfortran"]}
        if shutil.which(commands[language]) is None:
            pytest.skip(f"no {commands[language]}: install it")
        source = tmp_path / names[language]
        source.write_text(body)
        made = tmp_path / "body.o"
        lib = scr_root / "lib"
        include = ["-I", str(HERE / "c")] if language != "fortran" else []
        for command in (
            [commands[language], "-g", *level.split(), *options, *include, "-c", str(source), "-o", str(made)],
            [
                mpicc,
                "-g",
                str(HERE / "c" / "copies_driver.c"),
                str(made),
                f"-I{scr_root / 'include'}",
                *options,
                f"-L{lib}",
                "-lscr",
                f"-Wl,-rpath,{lib}",
                *libraries[language],
                "-lm",
                "-o",
                str(tmp_path / "program"),
            ],
        ):
            done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
        return tmp_path / "program"

    return compile_


@pytest.fixture
def states(compile_body: Callable[..., Path], run_traced: Callable[..., object]) -> Callable[..., str]:
    """The states of the bytes of the one checkpoint file that a body writes."""

    def states_(body: str, level: str = "-O2", language: str = "c", options: tuple[str, ...] = ()) -> str:
        program = compile_body(body, level, language, options)
        return run_traced(program).trace().file("state").states()  # type: ignore[attr-defined]

    return states_


def with_body(function: str, head: str = "") -> str:
    """A C or C++ body around write_checkpoint."""
    return f'{head}\n#include "copies_body.h"\n{function}'


# ---- Ways to write ----


def test_raw_write(states: Callable[..., str]) -> None:
    """write(2) of the array itself."""
    body = with_body("void write_checkpoint(const char *path) { write_all(path, state, sizeof(state)); }")
    assert states(body) == expected(list(range(ELEMENTS)))


@pytest.mark.parametrize("items", [1, 7, ELEMENTS])
def test_stdio(states: Callable[..., str], items: int) -> None:
    """fwrite of elements one by one, of some, and of all at once: through the library's buffer or past it."""
    body = with_body(
        """
void write_checkpoint(const char *path)
{
    FILE *file = fopen(path, "w");
    for (int k = 0; k < ELEMENTS; k += ITEMS)
        fwrite(&state[k], sizeof(state[0]), k + ITEMS < ELEMENTS ? ITEMS : ELEMENTS - k, file);
    fclose(file);
}""",
        f"#define ITEMS {items}",
    )
    assert states(body) == expected(list(range(ELEMENTS)))


PACK = """
OUTLINE static void pack(ELEMENT *restrict to, const ELEMENT *restrict from, int count)
{
    for (int k = 0; k < count; k++)
        to[k] = from[%s];
}
void write_checkpoint(const char *path)
{
    ELEMENT *buffer = malloc(sizeof(state));
    pack(buffer, state, %d);
    write_all(path, buffer, %d * sizeof(ELEMENT));
    free(buffer);
}"""


@pytest.mark.parametrize("level", levels())
@pytest.mark.parametrize("element", ["double", "float", "int32_t", "uint16_t", "unsigned char"])
@pytest.mark.parametrize(("index", "stride", "first"), [("k", 1, 0), ("3 * k", 3, 0), ("95 - k", -1, 95)])
def test_pack_loop(
    states: Callable[..., str], level: str, element: str, index: str, stride: int, first: int
) -> None:
    """A loop that packs an array of some type with a stride, as compilers make it, with and without vectors."""
    size = {"double": 8, "float": 4, "int32_t": 4, "uint16_t": 2, "unsigned char": 1}[element]
    count = ELEMENTS // abs(stride)
    body = with_body(PACK % (index, count, count), f"#include <stdint.h>\n#define ELEMENT {element}")
    assert states(body, level) == expected([first + stride * k for k in range(count)], size)


@pytest.mark.parametrize("level", levels())
def test_gather(states: Callable[..., str], level: str) -> None:
    """A pack loop through an index array: copies, whatever the indices are made of."""
    body = with_body(
        """
static int order[ELEMENTS];
OUTLINE static void pack(double *restrict to, const double *restrict from, const int *restrict index)
{
    for (int k = 0; k < ELEMENTS; k++)
        to[k] = from[index[k]];
}
void write_checkpoint(const char *path)
{
    double *buffer = malloc(sizeof(state));
    for (int k = 0; k < ELEMENTS; k++)
        order[k] = 7 * k % ELEMENTS;
    pack(buffer, state, order);
    write_all(path, buffer, sizeof(state));
    free(buffer);
}"""
    )
    assert states(body, level) == expected([7 * k % ELEMENTS for k in range(ELEMENTS)])


@pytest.mark.parametrize("level", levels())
def test_structs(states: Callable[..., str], level: str) -> None:
    """Structs assigned, passed and returned by value; and an array of structs made of arrays."""
    body = with_body(
        """
typedef struct { double a, b, c; } triple;
OUTLINE static triple turned(triple t) { return (triple){t.b, t.c, t.a}; }
OUTLINE static void transpose(triple *restrict to, const double *restrict a, const double *restrict b,
                              const double *restrict c, int count)
{
    for (int k = 0; k < count; k++)
        to[k] = (triple){a[k], b[k], c[k]};
}
void write_checkpoint(const char *path)
{
    triple *buffer = malloc(2 * sizeof(state));
    const triple *from = (const triple *)state;
    for (int k = 0; k < 32; k++)
        buffer[k] = turned(from[k]);
    transpose(buffer + 32, state, state + 32, state + 63, 32);
    write_all(path, buffer, 2 * sizeof(state));
    free(buffer);
}"""
    )
    turned = [3 * k + j for k in range(32) for j in (1, 2, 0)]
    transposed = [start + k for k in range(32) for start in (0, 32, 63)]
    assert states(body, level) == expected(turned + transposed)


@pytest.mark.parametrize("level", levels())
def test_swap(states: Callable[..., str], level: str) -> None:
    """Values that are swapped, written and swapped back: the load counts, not what stands there at the store."""
    body = with_body(
        """
OUTLINE static void swap(double *a, double *b) { double t = *a; *a = *b; *b = t; }
void write_checkpoint(const char *path)
{
    for (int k = 0; k + 1 < ELEMENTS; k += 2)
        swap(&state[k], &state[k + 1]);
    write_all(path, state, sizeof(state));
    for (int k = 0; k + 1 < ELEMENTS; k += 2)
        swap(&state[k], &state[k + 1]);
}"""
    )
    assert states(body, level) == expected([k ^ 1 for k in range(ELEMENTS)])


@pytest.mark.parametrize("level", levels())
@pytest.mark.parametrize(
    ("element", "swap", "size"),
    [("uint64_t", "__builtin_bswap64", 8), ("uint32_t", "__builtin_bswap32", 4), ("uint16_t", "__builtin_bswap16", 2)],
)
def test_other_endian(states: Callable[..., str], level: str, element: str, swap: str, size: int) -> None:
    """Bytes in the other order are copies of bytes: here go_on overwrites only the lowest byte of each element."""
    body = f"""
#include <stdint.h>
#define ELEMENT {element}
#define OWN_GO_ON
#include "copies_body.h"
void go_on(void)
{{
    for (int k = 0; k < ELEMENTS; k++) {{
        *(volatile unsigned char *)&state[k] = 0;
        read_element(&state[k]);
    }}
}}
OUTLINE static void turn(ELEMENT *restrict to, const ELEMENT *restrict from, int count)
{{
    for (int k = 0; k < count; k++)
        to[k] = {swap}(from[k]);
}}
void write_checkpoint(const char *path)
{{
    ELEMENT *buffer = malloc(sizeof(state));
    turn(buffer, state, ELEMENTS);
    write_all(path, buffer, sizeof(state));
    free(buffer);
}}"""
    assert states(body, level) == ("c" * (size - 1) + "d") * ELEMENTS


@pytest.mark.parametrize("level", levels())
def test_bytes_by_shifts(states: Callable[..., str], level: str) -> None:
    """A portable format written byte by byte: value >> 8 * j is a copy of byte j."""
    body = with_body(
        """
OUTLINE static void serialise(unsigned char *restrict to, const uint64_t *restrict from, int count)
{
    for (int k = 0; k < count; k++)
        for (int j = 0; j < 8; j++)
            to[8 * k + j] = from[k] >> 8 * j;
}
void write_checkpoint(const char *path)
{
    unsigned char *buffer = malloc(sizeof(state));
    serialise(buffer, state, ELEMENTS);
    write_all(path, buffer, sizeof(state));
    free(buffer);
}""",
        "#include <stdint.h>\n#define ELEMENT uint64_t",
    )
    found = states(body, level)
    wanted = expected(list(range(ELEMENTS)))
    # What a shift leaves in the flags may be asked for at the end of a block: a few bytes more are critical.
    assert all(f == "c" or f == w for f, w in zip(found, wanted, strict=True))
    assert found.count("d") >= 0.8 * wanted.count("d")


@pytest.mark.parametrize("level", levels())
def test_choice(states: Callable[..., str], level: str) -> None:
    """A choice is a copy of what was chosen; what decides it is used."""
    body = with_body(
        """
static volatile int which[ELEMENTS];
OUTLINE static void choose(double *to, const double *yes, const double *no, volatile int *by)
{
    for (int k = 0; k < ELEMENTS / 2; k++)
        to[k] = by[k] ? yes[k] : no[k];
}
void write_checkpoint(const char *path)
{
    double *buffer = malloc(sizeof(state));
    for (int k = 0; k < ELEMENTS / 2; k++)
        which[k] = k % 3 == 0;
    choose(buffer, state, state + 47, which);
    write_all(path, buffer, sizeof(state) / 2);
    free(buffer);
}"""
    )
    assert states(body, level) == expected([k if k % 3 == 0 else 47 + k for k in range(ELEMENTS // 2)])


LIBRARY_COPIES = {
    "memcpy": "memcpy(buffer, state, sizeof(state));",
    "memcpy_small": "for (size_t k = 0; k < sizeof(state); k += step) memcpy(buffer + k, from + k, step);",
    "memmove_overlapping": "memcpy(buffer + 8, state, sizeof(state)); memmove(buffer, buffer + 8, sizeof(state));",
    "rep_movsb": 'void *to = buffer; const void *f = state; size_t n = sizeof(state);\n'
    '__asm__ volatile("rep movsb" : "+D"(to), "+S"(f), "+c"(n) : : "memory");',
    "realloc": "buffer = realloc(buffer, 16); memcpy(buffer, state, 16); buffer = realloc(buffer, 4000);\n"
    "memcpy(buffer + 16, from + 16, sizeof(state) - 16);",
    "qsort": "qsort(memcpy(buffer, state, sizeof(state)), 1, sizeof(state), order);",
    "exchange": "memcpy(buffer, state, sizeof(state));\n"
    "for (int k = 0; k < 8; k++) { double t = ((double *)buffer)[k]; ((double *)buffer)[k] = 0;\n"
    "  ((double *)buffer)[k] = t; }",
}


@pytest.mark.parametrize("how", LIBRARY_COPIES)
def test_library_copies(states: Callable[..., str], how: str) -> None:
    """The C library's ways to copy, large and small."""
    body = with_body(
        f"""
static volatile size_t step_of = 24;
static int order(const void *a, const void *b) {{ return a < b; }}
void write_checkpoint(const char *path)
{{
    char *buffer = malloc(2 * sizeof(state));
    const char *from = (const char *)state;
    size_t step = step_of;
    {LIBRARY_COPIES[how]}
    write_all(path, buffer, sizeof(state));
    free(buffer);
    (void)step, (void)order, (void)from;
}}"""
    )
    assert states(body) == expected(list(range(ELEMENTS)))


# ---- What is no copy ----


@pytest.mark.parametrize("level", levels())
def test_conversion(states: Callable[..., str], level: str) -> None:
    """float(double) is computed: all critical, and the sources are used."""
    body = with_body(
        """
OUTLINE static void pack(float *restrict to, const double *restrict from, int count)
{
    for (int k = 0; k < count; k++)
        to[k] = (float)from[k];
}
void write_checkpoint(const char *path)
{
    char *buffer = malloc(2 * sizeof(state));
    pack((float *)buffer, state, 32);
    memcpy(buffer + 32 * sizeof(float), state, sizeof(state));
    write_all(path, buffer, 32 * sizeof(float) + sizeof(state));
    free(buffer);
}"""
    )
    assert states(body, level) == "c" * (32 * 4 + 32 * 8) + expected(list(range(32, ELEMENTS)))


@pytest.mark.parametrize("level", levels())
def test_checksum(states: Callable[..., str], level: str) -> None:
    """What a checksum reads while the checkpoint is written is used; the rest of the array is not."""
    body = with_body(
        """
OUTLINE static uint64_t sum_of(const uint64_t *from, int count)
{
    uint64_t sum = 0;
    for (int k = 0; k < count; k++)
        sum ^= from[k];
    return sum;
}
void write_checkpoint(const char *path)
{
    uint64_t *buffer = malloc(sizeof(state) + 8);
    memcpy(buffer, state, sizeof(state));
    buffer[ELEMENTS] = sum_of(buffer, 20);
    write_all(path, buffer, sizeof(state) + 8);
    free(buffer);
}""",
        "#include <stdint.h>\n#define ELEMENT uint64_t",
    )
    assert states(body, level) == "c" * 160 + expected(list(range(20, ELEMENTS))) + "c" * 8


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_sign_extension(states: Callable[..., str], level: str) -> None:
    """Of an int widened to a long the low half is a copy; the high half is computed from the sign, which is used."""
    body = with_body(
        """
OUTLINE static void widen(int64_t *to, const int32_t *from, int count)
{
    for (int k = 0; k < count; k++)
        to[k] = from[k];
}
OUTLINE static void highest(int32_t *to, const int32_t *from, int count)
{
    for (int k = 0; k < count; k++)
        to[k] = (int64_t)from[k] >> 32;
}
void write_checkpoint(const char *path)
{
    char *buffer = malloc(1000);
    widen((int64_t *)buffer, state, 10);
    highest((int32_t *)(buffer + 80), state + 10, 10);
    memcpy(buffer + 120, state, 84);
    write_all(path, buffer, 204);
    free(buffer);
}""",
        "#include <stdint.h>\n#define ELEMENT int32_t",
    )
    # Of each int the byte with its sign is used, if not more.
    wide = "".join(("c" if k % 2 else "d") * 3 + "c" + "cccc" for k in range(10))
    direct = "".join(("c" if k % 2 else "d") * 3 + "c" for k in range(10))
    found = states(body, level)
    assert found[:80] == wide
    assert found[80:120] == "c" * 40
    assert found[120:160] == direct
    assert set(found[163:200:4]) == {"c"}
    assert found[200:] == "dddd"


def test_compared(states: Callable[..., str]) -> None:
    """A value that decides a branch, an index, a system call or an allocation is used."""
    body = with_body(
        """
static volatile int table[1000];
OUTLINE static int branch(const int *by) { return *by > 2 ? puts("") : 0; }
void write_checkpoint(const char *path)
{
    int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0644);
    branch(&state[0]);
    table[state[2]] = 1;
    lseek(fd, state[4] - state[4] % 1 - 13, SEEK_SET);
    free(malloc(state[6]));
    if (pwrite(fd, state, sizeof(state), 0) < 0)
        abort();
    close(fd);
}""",
        "#include <stdint.h>\n#define ELEMENT int",
    )
    wanted = list(expected(list(range(ELEMENTS)), 4))
    for index in (0, 2, 4, 6):
        wanted[4 * index : 4 * index + 4] = "cccc"
    assert states(body) == "".join(wanted)


# ---- Threads ----


def test_threads(states: Callable[..., str]) -> None:
    """Each thread packs its part, and they change all the time: registers are each thread's own."""
    body = with_body(
        """
#include <pthread.h>
#include <sched.h>
enum { THREADS = 4, PART = ELEMENTS / THREADS };
static double *buffer;
OUTLINE static double fetch(const double *from)
{
    double value = *from;
    __asm__ volatile("" : "+x"(value));
    return value;
}
static void *pack(void *argument)
{
    int first = (int)(intptr_t)argument * PART;
    for (int k = first; k < first + PART; k++) {
        register uint64_t bits __asm__("rbx");
        bits = ((volatile uint64_t *)state)[k];
        __asm__ volatile("" : "+r"(bits));
        sched_yield(); /* the value waits in a register */
        __asm__ volatile("" : "+r"(bits));
        ((volatile uint64_t *)buffer)[k] = bits;
    }
    return NULL;
}
void write_checkpoint(const char *path)
{
    pthread_t threads[THREADS];
    buffer = malloc(sizeof(state));
    for (int t = 0; t < THREADS; t++)
        pthread_create(&threads[t], NULL, pack, (void *)(intptr_t)t);
    for (int t = 0; t < THREADS; t++)
        pthread_join(threads[t], NULL);
    write_all(path, buffer, sizeof(state));
    free(buffer);
}"""
    )
    assert states(body, "-O2", options=("-pthread",)) == expected(list(range(ELEMENTS)))


# ---- C++ and Fortran ----


@pytest.mark.parametrize("level", ["-O0", "-O2", "-O3"])
def test_vector(states: Callable[..., str], level: str) -> None:
    """std::vector: appended, inserted, copied, reversed; std::string; through an ofstream."""
    body = with_body(
        """
#include <algorithm>
#include <fstream>
#include <string>
#include <vector>
BODY void write_checkpoint(const char *path)
{
    std::vector<double> one, two;
    for (int k = 0; k < 40; k++)
        one.push_back(state[k]);
    two.assign(one.begin(), one.end());
    two.insert(two.begin(), state + 50, state + 60);
    std::reverse(one.begin(), one.end());
    std::string text(reinterpret_cast<const char *>(state + 60), 30 * sizeof(double));
    text += std::string(reinterpret_cast<const char *>(state + 90), 5 * sizeof(double));
    std::ofstream file(path, std::ios::binary);
    file.write(reinterpret_cast<const char *>(one.data()), one.size() * sizeof(double));
    file.write(reinterpret_cast<const char *>(two.data()), two.size() * sizeof(double));
    file << text;
}"""
    )
    order = [39 - k for k in range(40)] + list(range(50, 60)) + list(range(40)) + list(range(60, 95))
    assert states(body, level, "c++") == expected(order)


FORTRAN = """
module body
  use iso_c_binding
  implicit none
  real(c_double), target :: state(8, 12)
  real(c_double), volatile :: sink
contains
  subroutine prepare() bind(c)
    integer :: i, j
    do j = 1, 12
      do i = 1, 8
        state(i, j) = 10 * i + j
      end do
    end do
  end subroutine
  subroutine write_checkpoint(path) bind(c)
    character(kind=c_char), intent(in) :: path(*)
    character(len=1024) :: name
    integer :: n, unit
    name = ' '
    n = 1
    do while (path(n) /= c_null_char)
      name(n:n) = path(n)
      n = n + 1
    end do
    open(newunit=unit, file=trim(name), access='stream', form='unformatted', status='replace')
    {write}
    close(unit)
  end subroutine
  subroutine go_on() bind(c)
    integer :: i, j
    real(c_double), volatile, pointer :: at
    do j = 1, 12
      do i = 1, 8
        at => state(i, j)
        if (mod(i, 2) == 0) sink = at
        at = 0
      end do
    end do
  end subroutine
end module
"""


@pytest.mark.parametrize("level", ["-O0", "-O2", "-O3"])
def test_fortran_sections(states: Callable[..., str], level: str) -> None:
    """Array sections of gfortran, written as such and by way of a temporary."""
    write = """
    write(unit) state(2:7, 1:12:3)
    write(unit) reshape(state(8:1:-1, 5), [4, 2])
    write(unit) transpose(state(1:3, 1:4))"""
    one = [i - 1 for _ in range(4) for i in range(2, 8)]
    two = [i - 1 for i in range(8, 0, -1)]
    three = [i - 1 for i in range(1, 4) for _ in range(4)]
    assert states(FORTRAN.format(write=write), level, "fortran") == expected(one + two + three)


# ---- Restart ----


RESTART = """
#define OWN_GO_ON
#include "copies_body.h"
static char *late;
void write_checkpoint(const char *path) { write_all(path, state, sizeof(state)); }
void go_on(void)
{
    for (int k = 0; k < ELEMENTS; k++) {
        if (k % 2)
            read_element(&state[k]);
        clear_element(&state[k]);
    }
    free(late);
}
OUTLINE static void unpack(ELEMENT *restrict to, const ELEMENT *restrict from, int count)
{
    for (int k = 0; k < count; k++)
        to[count - 1 - k] = from[k];
}
%s
"""


@pytest.fixture
def restart_states(compile_body: Callable[..., Path], run_traced: Callable[..., object]) -> Callable[..., str]:
    """The states that a restart from its own checkpoint gives."""

    def states_(reader: str, level: str = "-O2", element: str = "double") -> str:
        head = f"#include <stdint.h>\n#define ELEMENT {element}\n"
        program = compile_body(head + RESTART % reader, level)
        run_traced(program)
        return run_traced(program, "restart").trace().file("state").states()  # type: ignore[attr-defined]

    return states_


@pytest.mark.parametrize("level", levels())
def test_restart_unpacks(restart_states: Callable[..., str], level: str) -> None:
    """Read into a buffer and unpacked in the other order: bytes go where they are used."""
    reader = """
void read_checkpoint(const char *path)
{
    ELEMENT *buffer = malloc(sizeof(state));
    int fd = open(path, O_RDONLY);
    if (read(fd, buffer, sizeof(state)) != sizeof(state))
        abort();
    close(fd);
    unpack(state, buffer, ELEMENTS);
    free(buffer);
}"""
    assert restart_states(reader, level) == expected([ELEMENTS - 1 - k for k in range(ELEMENTS)])


def test_restart_uses_header(restart_states: Callable[..., str]) -> None:
    """What only the restart's code reads is critical: a magic number, a size, an argument of malloc."""
    reader = """
void read_checkpoint(const char *path)
{
    FILE *file = fopen(path, "r");
    ELEMENT head[4];
    if (fread(head, sizeof(head), 1, file) != 1 || head[0] != 1)
        abort();
    late = malloc(head[2]);
    if (fread(state + 4, sizeof(ELEMENT), ELEMENTS - 4, file) != ELEMENTS - 4)
        abort();
    fclose(file);
}"""
    # head[1] and head[3] are never looked at, and gone when the function returns.
    wanted = "c" * 8 + "d" * 8 + "c" * 8 + "d" * 8 + expected(list(range(4, ELEMENTS)))
    assert restart_states(reader, element="uint64_t") == wanted
