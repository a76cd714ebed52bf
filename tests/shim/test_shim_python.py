"""SCR from Python: this package's binding, SCR's own module adopted, hooks as Python callables."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
PROGRAM = HERE / "python_program.py"


# How many ranks mpi4py sees, and how many MPI libraries there are once libscr is loaded as well.
WHICH_MPI = """
import ctypes, pathlib, re, sys
from mpi4py import MPI
ctypes.CDLL(sys.argv[1])
maps = pathlib.Path("/proc/self/maps").read_text()
libraries = set(re.findall(r"/\\S*/libmpi(?:ch)?\\.so\\S*", maps))
sys.stdout.write(f"{MPI.COMM_WORLD.size}-{len(libraries)}\\n")
"""


@pytest.fixture(scope="module")
def mpi_for_python(mpiexec, scr_root):
    """Skip unless mpi4py works with the MPI under test: another one sees each rank as a job of its own."""
    words = [*mpiexec, "-n", "2", sys.executable, "-c", WHICH_MPI, str(scr_root / "lib" / "libscr.so")]
    said = subprocess.run(words, capture_output=True, text=True, check=False)
    if said.stdout.split() != ["2-1", "2-1"]:
        pytest.skip("needs an mpi4py that works with this MPI: pip install --no-binary mpi4py mpi4py")


@pytest.fixture
def python(job, scr_root, mpi_for_python):
    """Run a Python program under mpiexec; return the JSON that each rank printed, by rank, and the run."""

    def run(*arguments, ranks=2, check=True, **environment):
        settings = {
            **job.settings(),
            "SCR_ROOT": str(scr_root),
            **{key: str(value) for key, value in environment.items()},
        }
        command = [*job.mpiexec, "-n", str(ranks), sys.executable, *(str(word) for word in arguments)]
        ended = subprocess.run(
            command, cwd=job.prefix, env=settings, capture_output=True, text=True, check=False, timeout=120
        )
        if check:
            assert ended.returncode == 0, ended.stdout + ended.stderr
        said = [json.loads(line) for line in ended.stdout.splitlines() if line.startswith("{")]
        return {entry["rank"]: entry for entry in said}, ended

    return run


@pytest.fixture
def content(job, tools):
    path = job.folder / "content"
    path.write_bytes(tools.content(tools.STATE, 10))
    return path


@pytest.fixture(scope="session")
def scr_module(scr_root):
    """Folder of SCR's own Python module."""
    folder = scr_root / "share" / "scr" / "python"
    if not (folder / "scr.py").exists():
        pytest.skip("needs SCR's own Python module: set SCR_ROOT to a real SCR")
    return folder


def check_both_runs(job, tools, python, how, content, **environment):
    wrote, _ = python(*how, content, **environment)
    for rank in range(2):
        said = wrote[rank]
        assert said["flags"] == [0, 1, 2]
        assert (said["unset"], said["set"], said["query"]) == (None, None, "1")
        assert said["outside"] == "name"
        assert (said["init"], said["start"], said["finalize"]) == (None, None, None)
        assert (said["need"], said["complete"], said["exit"]) == (True, True, False)
        assert job.is_packed(f"ckpt.1/state.{rank}")
    read, _ = python(*how, content, **environment)
    for rank in range(2):
        assert read[rank]["restart"] == "ckpt.1"
        assert read[rank]["complete"] is True
        assert (read[rank]["current"], read[rank]["drop"]) == (None, None)
        restored = (job.prefix / f"read.{rank}").read_bytes()
        assert restored == tools.after_restart(tools.content(tools.STATE, 10))
    assert job.leftovers() == []
    return read


def test_the_binding_has_the_calls_of_scrs_module(job, tools, python, content):
    read = check_both_runs(job, tools, python, [PROGRAM, "binding"], content)
    assert read[0]["error"][0] == "ScrError"
    assert "no.such.file" in read[0]["error"][1]


def test_the_binding_uses_a_shim_that_is_preloaded(job, tools, python, content, shim_lib, tmp_path):
    """Another copy of the library than the package's own: what is there already must be used."""
    copy = tmp_path / "libscr_crit_shim.so"
    copy.write_bytes(shim_lib.read_bytes())
    check_both_runs(job, tools, python, [PROGRAM, "binding"], content, LD_PRELOAD=copy)


def test_without_the_plugin_the_binding_is_scr(job, tools, python, content):
    python(PROGRAM, "binding", content, SCR_CRIT_PLUGIN="0")
    assert (job.prefix / "ckpt.1/state.0").read_bytes() == content.read_bytes()


@pytest.mark.scr
def test_scrs_own_module_by_one_line(job, tools, python, content, scr_module):
    read = check_both_runs(
        job, tools, python, [PROGRAM, "adopted"], content, PYTHONPATH=path_with(scr_module)
    )
    assert read[0]["error"][0] == "RuntimeError"


@pytest.mark.scr
def test_scrs_own_module_without_touching_the_program(job, tools, python, content, scr_module):
    runner = ["-m", "scr_critplugin.scr", PROGRAM, "own"]
    check_both_runs(job, tools, python, runner, content, PYTHONPATH=path_with(scr_module))


@pytest.mark.scr
def test_preloading_alone_does_not_reach_scrs_own_module(job, python, content, scr_module, shim_lib):
    """Why the line is needed: SCR's module opens libscr by an absolute path."""
    python(PROGRAM, "own", content, PYTHONPATH=path_with(scr_module), LD_PRELOAD=shim_lib)
    assert not job.is_packed("ckpt.1/state.0")


def test_a_program_for_scrs_module_runs_where_there_is_none(job, tools, python, content):
    wrote, _ = python("-m", "scr_critplugin.scr", PROGRAM, "own", content, PYTHONPATH=path_with())
    assert wrote[1]["complete"] is True
    assert job.is_packed("ckpt.1/state.1")


def path_with(*folders):
    return ":".join([*map(str, folders), *filter(None, [os.environ.get("PYTHONPATH")])])


# ---- Hooks -------------------------------------------------------------------------------------------

HOOKS = """
import json, sys
from mpi4py import MPI
import scr_critplugin.scr as scr

rank = MPI.COMM_WORLD.rank
seen = []
def see(event):
    return lambda *arguments: seen.append([event, *arguments])

def routed(name, path):
    seen.append(["output_routed", name, path])
    return path + ".hook" if sys.argv[1] == "replace" else None

def completing(valid):
    seen.append(["output_completing", valid])
    if sys.argv[1] == "raise":
        raise ValueError("no good")
    return sys.argv[1] != "veto"

hooks = scr.register_hooks(
    name="test", initialized=see("initialized"), output_started=see("output_started"), output_routed=routed,
    output_completing=completing, output_completed=see("output_completed"), finalizing=see("finalizing"))
silent = scr.register_hooks(output_started=lambda dataset, flags: 1 / 0)
silent.remove()
silent.remove()
scr.init()
scr.start_output("ckpt.1", scr.FLAG_CHECKPOINT)
path = scr.route_file(f"ckpt.1/other.{rank}")
with open(path, "wb") as target:
    target.write(b"x" * 100)
said = {"rank": rank, "path": path}
if path.endswith(".hook"):
    import os
    os.rename(path, path[:-5])
try:
    said["complete"] = scr.complete_output(True)
except scr.ScrError as error:
    said["error"] = [str(error), type(error.__cause__).__name__]
said["totals"] = [scr.totals().whole_files, scr.totals().packed_files]
scr.finalize()
said["seen"] = seen
sys.stdout.write(json.dumps(said) + "\\n")  # one write: lines of ranks must not mix
"""


@pytest.fixture
def hooks_program(job):
    path = job.folder / "hooks_program.py"
    path.write_text(HOOKS)
    return path


@pytest.mark.parametrize("plugin", ["0", "1"])
def test_python_hooks_see_the_events(job, python, hooks_program, plugin):
    said, _ = python(hooks_program, "watch", SCR_CRIT_PLUGIN=plugin)
    path = str(job.prefix / "ckpt.1/other.1")
    assert said[1]["seen"] == [
        ["initialized"],
        ["output_started", "ckpt.1", 1],
        ["output_routed", "ckpt.1/other.1", path],
        ["output_completing", True],
        ["output_completed", True],
        ["finalizing"],
    ]
    assert said[1]["complete"] is True
    assert said[1]["totals"] == [int(plugin), 0]


def test_python_hooks_may_replace_the_path(job, python, hooks_program):
    said, _ = python(hooks_program, "replace")
    assert said[0]["path"] == str(job.prefix / "ckpt.1/other.0.hook")
    assert (job.prefix / "ckpt.1/other.0").read_bytes() == b"x" * 100
    assert said[0]["complete"] is True


def test_python_hooks_may_veto(python, hooks_program):
    said, _ = python(hooks_program, "veto")
    assert said[0]["complete"] is False
    assert said[0]["seen"][-2] == ["output_completed", False]


def test_an_exception_in_a_hook_reaches_the_program(python, hooks_program):
    said, _ = python(hooks_program, "raise")
    assert said[0]["error"] == ["a hook raised ValueError: no good", "ValueError"]
    assert said[0]["seen"][-2] == ["output_completed", False]


# ---- Without a job -----------------------------------------------------------------------------------


def run_here(code, **environment):
    settings = {**os.environ, **{key: str(value) for key, value in environment.items()}}
    # -P: the installed package, not the source tree that pytest may run in
    return subprocess.run(
        [sys.executable, "-P", "-c", code], env=settings, capture_output=True, text=True, check=False
    )


def test_importing_loads_nothing(shim_lib):
    ended = run_here("import scr_critplugin.scr, sys; print(open('/proc/self/maps').read())")
    assert ended.returncode == 0
    assert "libscr_crit_shim" not in ended.stdout
    assert "/libscr.so" not in ended.stdout


def test_path_and_version_of_libscr(scr_root):
    code = "import scr_critplugin.scr as scr; print(scr.libscr_path()); print(scr.libscr_version())"
    ended = run_here(code, SCR_ROOT=scr_root)
    path, version = ended.stdout.splitlines()
    assert os.path.realpath(path) == os.path.realpath(scr_root / "lib" / "libscr.so")
    assert re.match(r"\d+\.\d+\.\d+", version)


@pytest.mark.parametrize(
    "call", ["init()", "route_file('x')", "libscr_path()", "libscr_version()", "config('A')"]
)
def test_no_libscr_is_an_error_that_says_where_it_looked(tmp_path, call):
    code = (
        "import scr_critplugin.scr as scr\n"
        f"try:\n    scr.{call}\nexcept RuntimeError as error:\n    print(type(error).__name__, error)\n"
    )
    ended = run_here(code, SCR_ROOT=tmp_path)
    assert ended.stdout.startswith("ScrError found no libscr (")
    assert f"{tmp_path}/lib/libscr.so" in ended.stdout
    assert "set SCR_ROOT" in ended.stdout


def test_adopting_something_else_is_refused():
    code = (
        "import json, scr_critplugin.scr as scr\n"
        "try:\n    scr.adopt(json)\nexcept scr.ScrError as error:\n    print(error)\n"
    )
    assert "is not SCR's own Python module" in run_here(code).stdout


def test_usage_of_the_runner():
    ended = subprocess.run(
        [sys.executable, "-P", "-m", "scr_critplugin.scr"], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 1
    assert ended.stderr.startswith("usage: ")
