"""Makes C programs of random loops over random arrays, which save them all every second step.

The programs have no undefined behaviour and use no copies inside SCR's brackets, so that the tracer and the
compiler's instrumentation must agree on every byte. Nothing is said of what the states are. Tests:
``test_traced_oracle.py``.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

STEPS = 7
# Packed, so that its fields straddle all boundaries.
RECORD = "typedef struct __attribute__((packed)) { uint8_t tag; double value; uint32_t count; } Record;"
SIZES = {"double": 8, "float": 4, "uint8_t": 1, "uint16_t": 2, "uint32_t": 4, "uint64_t": 8, "Record": 13}
FIELDS = {"tag": "uint8_t", "value": "double", "count": "uint32_t"}


@dataclass(frozen=True)
class Array:
    """An array of the program."""

    name: str
    type: str
    length: int
    heap: bool


class Writer:
    """Writes one program; all choices come from the seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.arrays = [self._array(k) for k in range(self.random.randint(8, 14))]

    def _array(self, k: int) -> Array:
        length = self.random.choice([1, 3, 40, 150, 700, self.random.randint(2, 1500)])
        return Array(f"a{k}", self.random.choice(list(SIZES)), length, self.random.random() < 0.5)

    def program(self) -> str:
        """The C source."""
        steps = "\n".join(f"    case {step}:\n{self._body()}\n        break;" for step in range(1, STEPS + 1))
        return f"""/* Made by traced_random_program.py. */
#include "job.h"

{RECORD}
static int64_t step;
static double sum;
static uint64_t total;
{self._declarations()}

__attribute__((noinline, unused)) static void set(uint8_t *at, size_t size, uint8_t value)
{{
    for (size_t i = 0; i < size; i++) {{
        at[i] = (uint8_t)(value + i);
    }}
}}

__attribute__((noinline, unused)) static uint64_t look(const uint8_t *at, size_t size)
{{
    uint64_t found = 0;
    for (size_t i = 0; i < size; i++) {{
        found += at[i];
    }}
    return found;
}}

static void take_step(void)
{{
    step++;
    switch (step) {{
{steps}
    }}
}}

static int save(const char *path)
{{
    FILE *file = fopen(path, "wb");
    int good = file != NULL;
{self._saves()}
    return fclose(file) == 0 && good;
}}

int main(int argc, char **argv)
{{
    job_start(&argc, &argv);
{self._initials()}
    while (step < {STEPS}) {{
        take_step();
        if (job_must_save()) {{
            job_open(step);
            job_saved(save(job_path("state")));
        }}
    }}
    job_digest(&sum, sizeof(sum));
    job_digest(&total, sizeof(total));
    return job_end();
}}
"""

    def _declarations(self) -> str:
        heap = [f"static {a.type} *{a.name};" for a in self.arrays if a.heap]
        return "\n".join(heap + [f"static {a.type} {a.name}[{a.length}];" for a in self.arrays if not a.heap])

    def _initials(self) -> str:
        lines = []
        for a in self.arrays:
            if a.heap:
                lines.append(f"    {a.name} = malloc({a.length} * sizeof({a.type}));")
            lines.append(f"    memset({a.name}, {self.random.randint(0, 9)}, {a.length} * sizeof({a.type}));")
        return "\n".join(lines)

    def _saves(self) -> str:
        lines = ["    good = good && fwrite(&step, sizeof(step), 1, file) == 1;"]
        for a in self.arrays:
            lines.append(
                f"    good = good && fwrite({a.name}, sizeof({a.type}), {a.length}, file) == {a.length};"
            )
        return "\n".join(lines)

    # ---- statements ----

    def _body(self) -> str:
        kinds = [
            self._set,
            self._set,
            self._read,
            self._update,
            self._update,
            self._combine,
            self._copy_bytes,
            self._move_bytes,
            self._fill,
            self._choose,
            self._call,
            self._renew,
            self._grow,
            self._swap,
            self._record,
        ]
        return "\n".join(self.random.choice(kinds)() for _ in range(self.random.randint(6, 12)))

    def _pick(self) -> Array:
        return self.random.choice(self.arrays)

    def _range(self, a: Array) -> str:
        low = self.random.randint(0, a.length - 1)
        high = self.random.randint(low + 1, a.length)
        return f"for (int i = {low}; i < {high}; i += {self.random.choice([1, 1, 1, 2, 3, 7])})"

    def _element(self, a: Array, index: str = "i") -> tuple[str, str]:
        """An element or a field of one, and its type."""
        if a.type != "Record":
            return f"{a.name}[{index}]", a.type
        name = self.random.choice(list(FIELDS))
        return f"{a.name}[{index}].{name}", FIELDS[name]

    def _add(self, element: str, kind: str) -> str:
        return f"sum += {element};" if kind in ("double", "float") else f"total += {element};"

    def _set(self) -> str:
        a = self._pick()
        element, kind = self._element(a)
        return f"        {self._range(a)} {{ {element} = ({kind})(step * {self.random.randint(1, 9)} + i); }}"

    def _read(self) -> str:
        a = self._pick()
        return f"        {self._range(a)} {{ {self._add(*self._element(a))} }}"

    def _update(self) -> str:
        a = self._pick()
        element, kind = self._element(a)
        factor = "0.5" if kind == "double" else "0.5f" if kind == "float" else "3u"
        return f"        {self._range(a)} {{ {element} = ({kind})({element} * {factor} + 1); }}"

    def _combine(self) -> str:
        a, b = self._pick(), self._pick()
        into, kind = self._element(a)
        value, other = self._element(b, f"(i * {self.random.choice([1, 1, 5])} + 1) % {b.length}")
        if other in ("double", "float") and kind not in ("double", "float"):
            value = "step"  # out of an integer's range, the conversion would be undefined
        return f"        {self._range(a)} {{ {into} = ({kind}){value}; }}"

    def _bytes(self, a: Array, size: int) -> str:
        return f"(uint8_t *){a.name} + {self.random.randint(0, a.length * SIZES[a.type] - size)}"

    def _size(self, *arrays: Array) -> int:
        return self.random.randint(1, min(a.length * SIZES[a.type] for a in arrays))

    def _copy_bytes(self) -> str:
        a, b = self.random.sample(self.arrays, 2)
        size = self._size(a, b)
        return f"        memcpy({self._bytes(a, size)}, {self._bytes(b, size)}, {size});"

    def _move_bytes(self) -> str:
        a = self._pick()
        size = self._size(a)
        return f"        memmove({self._bytes(a, size)}, {self._bytes(a, size)}, {size});"

    def _fill(self) -> str:
        a = self._pick()
        size = self._size(a)
        return f"        memset({self._bytes(a, size)}, (int)step, {size});"

    def _choose(self) -> str:
        a, b = self._pick(), self._pick()
        element, _ = self._element(a)
        value, other = self._element(b, f"i % {b.length}")
        return f"        {self._range(a)} {{ if ({element} > 3) {{ {self._add(value, other)} }} }}"

    def _call(self) -> str:
        a = self._pick()
        size = self._size(a)
        if self.random.random() < 0.5:
            return f"        set({self._bytes(a, size)}, {size}, (uint8_t)step);"
        return f"        total += look({self._bytes(a, size)}, {size});"

    def _heap(self) -> Array | None:
        found = [a for a in self.arrays if a.heap]
        return self.random.choice(found) if found else None

    def _renew(self) -> str:
        a = self._heap()
        if a is None:
            return self._set()
        size = f"{a.length} * sizeof({a.type})"
        return f"        free({a.name}); {a.name} = malloc({size}); memset({a.name}, 1, {size});"

    def _grow(self) -> str:
        a = self._heap()
        if a is None:
            return self._read()
        more = self.random.randint(0, 4000)
        return f"        {a.name} = realloc({a.name}, {a.length} * sizeof({a.type}) + {more});"

    def _swap(self) -> str:
        pairs = [
            (a, b)
            for a in self.arrays
            for b in self.arrays
            if a.heap and b.heap and a.name < b.name and (a.type, a.length) == (b.type, b.length)
        ]
        if not pairs:
            return self._update()
        a, b = self.random.choice(pairs)
        return f"        {{ {a.type} *t = {a.name}; {a.name} = {b.name}; {b.name} = t; }}"

    def _record(self) -> str:
        """Whole records are copied."""
        found = [a for a in self.arrays if a.type == "Record" and a.length > 2]
        if not found:
            return self._fill()
        a = self.random.choice(found)
        half = a.length // 2
        return f"        for (int i = 0; i < {half}; i++) {{ {a.name}[i] = {a.name}[i + {half}]; }}"


def random_program(seed: int) -> str:
    """The C source of the program of this seed."""
    return Writer(seed).program()
