"""The Python extension and the public header say the same: functions, constants, structures.

Fails when one drifts from the other: an old build, a hand-edited declaration, a function that the header
promises and the core lacks.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
import types
from pathlib import Path

import cffi
import pytest

import scr_critplugin
from scr_critplugin import _core

ffi, lib = _core.ffi, _core.lib
ROOT = Path(__file__).resolve().parents[1]
HEADER = ROOT / "cbindings" / "include" / "scr_crit.h"


def load_builder() -> types.ModuleType:
    """cbindings/build_ffi.py, which is a program and in no package."""
    spec = importlib.util.spec_from_file_location("build_ffi", ROOT / "cbindings" / "build_ffi.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


build_ffi = load_builder()


def declarations(block: str = "core") -> str:
    """A marked block of the header without its comments; read here by other means than the builder's."""
    text = HEADER.read_text()
    start = text.index(f"/* [cdef {block}] */")
    return re.sub(r"/\*.*?\*/", "", text[start : text.index("/* [end cdef] */", start)], flags=re.DOTALL)


def functions() -> set[str]:
    return set(re.findall(r"\b(scr_crit_\w+)\s*\(", declarations()))


def constants() -> set[str]:
    bodies = re.findall(r"enum\s+\w+\s*\{(.*?)\}", declarations(), re.DOTALL)
    return {name for body in bodies for name in re.findall(r"\b(SCR_CRIT_\w+)\s*=", body)}


def structures() -> dict[str, list[str]]:
    """Names and members, in order, of the structures that the header lays open."""
    bodies = re.findall(r"typedef struct \w+ \{(.*?)\}\s*(\w+);", declarations(), re.DOTALL)
    return {name: re.findall(r"(\w+)(?:\[\w+\])?\s*[;,]", body) for body, name in bodies}


def test_every_function_and_constant_of_the_header_is_in_the_module_and_no_other() -> None:
    assert len(functions()) > 30 and len(constants()) > 20
    assert set(dir(lib)) == functions() | constants()


def test_structures_have_the_headers_members_in_its_order() -> None:
    assert len(structures()) >= 7
    for name, members in structures().items():
        assert [field for field, _ in ffi.typeof(name).fields] == members, name


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler, as cc on the PATH")
def test_values_and_sizes_are_the_compilers(tmp_path: Path) -> None:
    lines = [f'printf("{name} %lld\\n", (long long){name});' for name in sorted(constants())]
    for name, members in structures().items():
        lines.append(f'printf("{name} %zu\\n", sizeof({name}));')
        lines += [f'printf("{name}.{one} %zu\\n", offsetof({name}, {one}));' for one in members]
    source = tmp_path / "values.c"
    body = "\n".join(lines)
    source.write_text(f'#include <stdio.h>\n#include "scr_crit.h"\nint main(void) {{\n{body}\n}}\n')
    program = str(tmp_path / "values")
    flags = ["-Wall", "-Wextra", "-Werror", "-I", str(HEADER.parent)]
    subprocess.run(["cc", *flags, str(source), "-o", program], check=True)
    said = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    expected = {name: int(value) for name, value in map(str.split, said.splitlines())}
    found = {name: getattr(lib, name) for name in constants()}
    for name, members in structures().items():
        found[name] = ffi.sizeof(name)
        found |= {f"{name}.{member}": ffi.offsetof(name, member) for member in members}
    assert found == expected


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler, as cc on the PATH")
@pytest.mark.parametrize("standard", ["c11", "c99"])
def test_the_header_stands_alone(standard: str, tmp_path: Path) -> None:
    source = tmp_path / "alone.c"
    source.write_text('#include "scr_crit.h"\n#include "scr_crit.h"\n')
    flags = [f"-std={standard}", "-pedantic", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"]
    subprocess.run(["cc", *flags, "-I", str(HEADER.parent), str(source)], check=True)


def test_the_installed_header_is_the_sources() -> None:
    installed = Path(scr_critplugin.__file__).parent / "include" / "scr_crit.h"
    if not installed.exists():
        pytest.skip(f"{installed} is missing: install the package (make install)")
    assert installed.read_text() == HEADER.read_text()


def test_the_module_is_built_from_the_header_as_it_is() -> None:
    # Both signatures come from cffi, one from the built module and one from the header as it stands.
    fresh = cffi.FFI()
    fresh.cdef(build_ffi.read_cdef("core"))
    for name in functions():
        now = fresh.getctype(fresh.typeof(_pointer_type(name)))
        built = ffi.getctype(ffi.typeof(getattr(lib, name)))
        assert built.replace("struct ", "") == now.replace("struct ", ""), name


def _pointer_type(name: str) -> str:
    declared = re.search(rf"([^;{{}}]*?)\b{name}\s*\(([^;]*?)\)\s*;", declarations(), re.DOTALL)
    assert declared is not None, name
    parameters = []
    for parameter in declared[2].split(","):
        *kind, last = re.findall(r"\w+|\*", parameter)
        parameters.append(" ".join(kind) if kind else last)
    return f"{declared[1].strip()}(*)({', '.join(parameters)})"


# The builder ------------------------------------------------------------------------------------------------


def test_the_shims_block_can_be_read_too() -> None:
    builder = cffi.FFI()
    builder.cdef(build_ffi.read_cdef("core") + build_ffi.read_cdef("shim"))
    assert "output_routed" in dict(builder.typeof("scr_crit_hooks").fields)


@pytest.mark.parametrize(
    "text, words",
    [
        ("int a(void);\n", "found 0 blocks"),
        ("/* [cdef core] */\nint a(void);\n", "found 0 blocks"),
        (2 * "/* [cdef core] */\nint a(void);\n/* [end cdef] */\n", "found 2 blocks"),
        ("/* [cdef core] */\n#define A 1\n/* [end cdef] */\n", "preprocessor"),
    ],
)
def test_a_header_without_its_marks_is_refused(text: str, words: str, tmp_path: Path) -> None:
    header = tmp_path / "header.h"
    header.write_text(text)
    with pytest.raises(ValueError, match=words):
        build_ffi.read_cdef("core", header)


def test_the_builder_writes_the_source_it_is_asked_for(tmp_path: Path) -> None:
    program = [sys.executable, str(ROOT / "cbindings" / "build_ffi.py")]
    target = tmp_path / "core.c"
    subprocess.run([*program, str(target)], check=True, capture_output=True)
    content = target.read_text()
    assert '#include "scr_crit.h"' in content and "PyInit__core" in content
    wrong = subprocess.run(program, capture_output=True, text=True, check=False)
    assert wrong.returncode == 2 and "usage" in wrong.stderr
