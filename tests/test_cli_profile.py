"""``scr_crit profile`` as a user meets it: programs in files and packages, each in a process of its own."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from scr_critplugin.criticality import CriticalityMap, ElementState

SCR_CRIT = str(Path(sys.executable).with_name("scr_crit"))

# Ghosts at both ends: filled from the other end in each step, before anything reads them.
RING = """
import autograd.numpy as np
from weights import WEIGHT

def step(state):
    inner = state["u"][1:-1]
    ring = np.concatenate([inner[-1:], inner, inner[:1]])
    new = inner + WEIGHT * (ring[2:] - 2.0 * inner + ring[:-2])
    return {"u": np.concatenate([new[-1:], new, new[:1]]), "n": state["n"] + 1}

def output(state):
    return np.sum(state["u"][1:-1] ** 2)

def setup():
    return step, {"u": np.arange(10.0), "n": 0}, output

if __name__ == "__main__":
    raise SystemExit("run as a script")
"""
WEIGHTS = "WEIGHT = 0.25\n"

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run ``scr_crit profile`` in tmp_path; returns the completed process."""

    def call(*words: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [SCR_CRIT, "profile", *map(str, words)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )

    return call


@pytest.fixture
def ring(tmp_path: Path) -> Path:
    """The program of a ring, in a folder and with a module beside it."""
    folder = tmp_path / "programs"
    folder.mkdir()
    (folder / "ring.py").write_text(RING)
    (folder / "weights.py").write_text(WEIGHTS)
    return folder / "ring.py"


def program(tmp_path: Path, body: str) -> str:
    """Write a program and name its setup."""
    (tmp_path / "program.py").write_text(body)
    return "program.py:setup"


def uncritical(path: Path) -> list[int]:
    """Indices of u's uncritical elements in a map."""
    return [int(i) for i in np.flatnonzero(CriticalityMap.load(path)["u"].uncritical)]


# ---- maps ----


def test_a_file_gives_its_map_table_and_verdict(run: Run, ring: Path, tmp_path: Path) -> None:
    ran = run(f"{ring}:setup", "-o", "maps/ring.npz")
    assert ran.returncode == 0, ran.stderr
    assert uncritical(tmp_path / "maps" / "ring.npz") == [0, 9]
    written = CriticalityMap.load(tmp_path / "maps" / "ring.npz")
    assert set(written["u"].states[[0, 9]]) == {ElementState.DEAD}
    assert written["n"].critical.all()
    assert written.provenance["at"] == 0
    assert "u: 2 of 10 uncritical" in ran.stdout
    assert "sinks: none" in ran.stdout
    assert "holds for any number of steps" in ran.stdout
    assert "in 2 uncritical elements" in ran.stdout and "outputs identical" in ran.stdout
    assert ran.stderr == ""
    assert "\x1b" not in ran.stdout


def test_a_module_is_found_under_the_working_directory(run: Run, ring: Path, tmp_path: Path) -> None:
    ring.rename(tmp_path / "programs" / "inner.py")
    # The module beside it is found by its dotted name only: this is a package now.
    inner = (tmp_path / "programs" / "inner.py").read_text().replace("from weights", "from programs.weights")
    (tmp_path / "programs" / "inner.py").write_text(inner)
    ran = run("programs.inner:setup", "-o", "ring.npz")
    assert ran.returncode == 0, ran.stderr
    assert uncritical(tmp_path / "ring.npz") == [0, 9]


def test_a_program_may_have_the_name_of_a_module_in_use(run: Run, ring: Path, tmp_path: Path) -> None:
    ring.rename(ring.with_name("click.py"))
    ran = run("programs/click.py:setup", "-o", "ring.npz")
    assert ran.returncode == 0, ran.stderr
    assert uncritical(tmp_path / "ring.npz") == [0, 9]


def test_at_steps_and_no_poison_reach_the_profile(run: Run, ring: Path, tmp_path: Path) -> None:
    ran = run(f"{ring}:setup", "-o", "ring.npz", "--at", 3, "--steps", 2, "--no-poison")
    assert ran.returncode == 0, ran.stderr
    provenance = CriticalityMap.load(tmp_path / "ring.npz").provenance
    assert (provenance["at"], provenance["steps"], provenance["poison"]) == (3, 2, None)
    assert "holds for 2 steps after the checkpoint" in ran.stdout
    assert "poison: not checked" in ran.stdout


def test_steps_decide_where_the_structure_changes(run: Run, tmp_path: Path) -> None:
    """A log written at the counter: refused for any length, and analysed for a given one."""
    changing = program(
        tmp_path,
        "import autograd.numpy as np\n"
        "def step(s):\n"
        "    n = s['n']\n"
        "    entry = np.reshape(np.sum(s['x']), (1,))\n"
        "    return {'u': np.concatenate([s['u'][:n], entry, s['u'][n + 1:]]), 'x': s['x'], 'n': n + 1}\n"
        "def setup():\n"
        "    return step, {'u': np.zeros(50), 'x': np.ones(3), 'n': 0}, lambda s: s['u'][:s['n']]\n",
    )
    refused = run(changing, "-o", "log.npz", "--at", 1)
    assert refused.returncode == 1
    assert refused.stderr.count("\n") == 1 and "structure of the step changes" in refused.stderr
    assert not (tmp_path / "log.npz").exists()
    analysed = run(changing, "-o", "log.npz", "--at", 1, "--steps", 3)
    assert analysed.returncode == 0, analysed.stderr
    assert uncritical(tmp_path / "log.npz") == list(range(1, 50))


def test_sinks_are_listed_with_their_lines(run: Run, tmp_path: Path) -> None:
    steered = program(
        tmp_path,
        "import autograd.numpy as np\n"
        "def step(s):\n"
        "    if s['limit'][0] > 1.0:\n"
        "        return {'u': 0.5 * s['u'], 'limit': s['limit']}\n"
        "    return s\n"
        "def setup():\n"
        "    return step, {'u': np.ones(4), 'limit': np.full(2, 3.0)}, lambda s: s['u'][:3]\n",
    )
    ran = run(steered, "-o", "steered.npz")
    assert ran.returncode == 0, ran.stderr
    assert f"{tmp_path / 'program.py'}:3: bool" in ran.stdout
    assert CriticalityMap.load(tmp_path / "steered.npz")["limit"].critical.tolist() == [True, False]


def test_in_place_program_over_several_points_and_inputs(run: Run, tmp_path: Path) -> None:
    """Ghosts written through views; a branch that only one of the inputs takes, and only later on."""
    relaxing = program(
        tmp_path,
        "import numpy as np\n"
        "def step(s):\n"
        "    u = s['u']\n"
        "    u[0], u[-1] = u[-2], u[1]\n"
        "    u[1:-1] += 0.25 * (u[2:] - 2 * u[1:-1] + u[:-2])\n"
        "    if u[1:-1].max() < s['limit']:\n"
        "        u[1] = s['refill'][0]\n"
        "def setup():\n"
        "    one = {'u': np.arange(8.0), 'limit': np.float64(0.0), 'refill': np.ones(2)}\n"
        "    return step, [one, {**one, 'limit': np.float64(100.0)}], lambda s: s['u'][1:-1].copy()\n",
    )
    ran = run(relaxing, "-o", "map.npz", "--at", 0, "--at", 2)
    assert ran.returncode == 0, ran.stderr
    assert uncritical(tmp_path / "map.npz") == [0, 7]
    found = CriticalityMap.load(tmp_path / "map.npz")
    assert found["refill"].critical.tolist() == [True, False]
    assert found.provenance["at"] == [0, 2] and found.provenance["inputs"] == 2
    assert f"{tmp_path / 'program.py'}:6: bool differs" in ran.stdout
    assert "fed by u[1:7], limit" in ran.stdout


def test_what_cannot_be_followed_is_named(run: Run, tmp_path: Path) -> None:
    opaque = program(
        tmp_path,
        "import ctypes, numpy as np\n"
        "def step(s):\n"
        "    total = sum(s['u'][1:3].tolist())\n"
        "    return {'u': s['u'] * total}\n"
        "def setup():\n"
        "    return step, {'u': np.ones(4)}, lambda s: s['u'][:1]\n",
    )
    ran = run(opaque, "-o", "map.npz")
    assert ran.returncode == 0, ran.stderr
    assert uncritical(tmp_path / "map.npz") == [3]
    assert "program.py:3" in ran.stdout and "fed by u[1:3]" in ran.stdout
    assert ran.stderr == ""


@pytest.mark.parametrize(
    ("engine", "said"),
    [
        ("gradient", "critical by structure, but zero here: 1 of u"),
        ("perturbation", "elements changed one at a time"),
    ],
)
def test_other_engines_report_beside_the_same_map(run: Run, tmp_path: Path, engine: str, said: str) -> None:
    """The structure needs an element that happens to be multiplied by zero."""
    product = program(
        tmp_path,
        "import numpy as np\n"
        "def setup():\n"
        "    return (lambda s: s), {'u': np.arange(4.0)}, lambda s: s['u'][0] * s['u'][1] + s['u'][2]\n",
    )
    ran = run(product, "-o", "map.npz", "--engine", engine, "--seed", 3)
    assert ran.returncode == 0, ran.stderr
    assert said in ran.stdout
    found = CriticalityMap.load(tmp_path / "map.npz")
    assert uncritical(tmp_path / "map.npz") == [3]
    if engine == "gradient":
        assert found["u"].magnitudes is not None and found["u"].magnitudes[1] == 0.0
        shrunk = run(product, "-o", "shrunk.npz", "--engine", engine, "--mask", "gradient")
        assert shrunk.returncode == 1 and "the map was wrong" in shrunk.stdout


RANKS_IN_A_RING = """
import numpy as np
from scr_critplugin import mpi as MPI

comm = MPI.COMM_WORLD

def step(s):
    u, left, right = s["u"], (comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size
    comm.Sendrecv(u[-2:-1], right, 0, u[:1], left, 0)
    comm.Sendrecv(u[1:2], left, 1, u[-1:], right, 1)
    u[1:-1] += 0.25 * (u[2:] - 2 * u[1:-1] + u[:-2])
    s["n"] += 1

def setup():
    return step, {"u": np.arange(8.0) + comm.rank, "n": 0}, lambda s: comm.allreduce(s["u"][1:-1].sum())
"""


def test_every_rank_writes_its_map_and_merge_unites_them(tmp_path: Path, mpiexec: list[str]) -> None:
    pytest.importorskip("mpi4py", reason="no mpi4py: pip install 'scr_critplugin[mpi]'")
    (tmp_path / "ring.py").write_text(RANKS_IN_A_RING)

    def ranks(target: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*mpiexec, "-n", "3", SCR_CRIT, "profile", "ring.py:setup", "-o", target],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )

    ran = ranks("ring.{rank}.npz")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    # One rank reports.
    assert ran.stdout.count("outputs identical") == 1
    for rank in range(3):
        assert uncritical(tmp_path / f"ring.{rank}.npz") == [0, 7]
    merged = subprocess.run(
        [SCR_CRIT, "merge", "ring.*.npz", "-o", "all.npz"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert merged.returncode == 0, merged.stderr
    assert uncritical(tmp_path / "all.npz") == [0, 7]
    refused = ranks("same.npz")
    assert refused.returncode != 0
    assert "Put {rank} into it" in refused.stdout + refused.stderr
    assert not (tmp_path / "same.npz").exists()


def test_a_map_can_be_compiled_at_once(run: Run, ring: Path, tmp_path: Path) -> None:
    run(f"{ring}:setup", "-o", "ring.npz")
    (tmp_path / "ring.toml").write_text(
        '[[file]]\npattern = "c.*/ring.{rank}"\n'
        '[[file.section]]\nkind = "array"\nvariable = "u"\ndtype = "<f8"\nshape = [10]\n'
        '[[file.section]]\nkind = "array"\nvariable = "n"\ndtype = "<i8"\nshape = []\n'
    )
    made = subprocess.run(
        [SCR_CRIT, "plan", "ring.npz", "--layout", "ring.toml", "-o", "plan"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stderr


# ---- what goes wrong ----


def test_poison_that_shows_widens_the_map_and_fails(run: Run, tmp_path: Path) -> None:
    """An element that the output reads behind the tracer's back."""
    secretive = program(
        tmp_path,
        "import numpy as np\n"
        "from autograd.tracer import getval\n"
        "def output(s):\n"
        "    return s['u'][:2], getval(s['u'])[7]\n"
        "def setup():\n"
        "    return (lambda s: s), {'u': np.ones(10)}, output\n",
    )
    ran = run(secretive, "-o", "secretive.npz")
    assert ran.returncode == 1
    assert "poison: the map was wrong: with " in ran.stdout and "Now critical: 1 of u" in ran.stdout
    assert uncritical(tmp_path / "secretive.npz") == [2, 3, 4, 5, 6, 8, 9]
    assert run(secretive, "-o", "believed.npz", "--no-poison").returncode == 0
    assert 7 in uncritical(tmp_path / "believed.npz")


def test_output_that_never_repeats_fails_and_leaves_no_map(run: Run, tmp_path: Path) -> None:
    """An output that draws from outside the state differs between any two runs: nothing can be proved."""
    drawing = program(
        tmp_path,
        "import numpy as np\n"
        "GENERATOR = np.random.default_rng(1)\n"
        "def setup():\n"
        "    return (lambda s: s), {'u': np.ones(4)}, lambda s: s['u'][:2] + GENERATOR.random()\n",
    )
    ran = run(drawing, "-o", "drawing.npz")
    assert ran.returncode == 1
    assert ran.stderr.startswith("scr_crit: error:") and ran.stderr.count("\n") == 1
    assert not (tmp_path / "drawing.npz").exists()


@pytest.mark.parametrize(
    ("where", "body"),
    [
        ("import", "import no_such_module_anywhere\n"),
        ("setup", "def setup():\n    raise FileNotFoundError('no mesh here')\n"),
        (
            "step",
            "def step(state):\n    return {'u': state['v']}\n"
            "def setup():\n    return step, {'u': 1.0}, lambda s: s['u']\n",
        ),
        (
            "output",
            "from scr_critplugin.errors import MapError\n"
            "def output(state):\n    raise MapError('mine')\n"
            "def setup():\n    return (lambda s: s), {'u': 1.0}, output\n",
        ),
    ],
)
def test_errors_of_the_program_keep_their_traceback(run: Run, tmp_path: Path, where: str, body: str) -> None:
    ran = run(program(tmp_path, body), "-o", "none.npz")
    assert ran.returncode == 1
    assert ran.stderr.startswith("Traceback (most recent call last):")
    assert f'"{tmp_path / "program.py"}", line ' in ran.stderr
    assert "cli/profile.py" not in ran.stderr
    last = ran.stderr.strip().splitlines()[-1]
    assert last.startswith(
        {
            "import": "ModuleNotFoundError: No module named 'no_such_module_anywhere'",
            "setup": "FileNotFoundError: no mesh here",
            "step": "KeyError: 'v'",
            "output": "scr_critplugin.errors.MapError: mine",
        }[where]
    )
    assert not (tmp_path / "none.npz").exists()


def test_a_missing_import_of_a_module_is_its_own_error(run: Run, tmp_path: Path) -> None:
    program(tmp_path, "import no_such_module_anywhere\n")
    ran = run("program:setup", "-o", "none.npz")
    assert ran.returncode == 1
    assert "Traceback" in ran.stderr and "program.py" in ran.stderr


def test_a_program_that_does_not_compile_shows_the_place(run: Run, tmp_path: Path) -> None:
    ran = run(program(tmp_path, "def setup(:\n"), "-o", "none.npz")
    assert ran.returncode == 1
    assert 'program.py", line 1' in ran.stderr and "SyntaxError" in ran.stderr


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ("nowhere.py:setup", "nowhere.py: there is no such file"),
        ("nowhere:setup", "nowhere: there is no such module"),
        ("nowhere.deeper:setup", "nowhere.deeper: there is no such module"),
        ("program.py:absent", "absent does not exist"),
        ("program.py:NUMBER", "NUMBER is of type int"),
        ("program.py:pair", "the setup returned (int, int); expected (step, state, output)"),
        ("program.py:listed", "the state must be a mapping"),
        ("leaving.py:setup", "exit status 0"),
    ],
)
def test_other_faults_are_one_line(run: Run, tmp_path: Path, named: str, said: str) -> None:
    program(
        tmp_path,
        "NUMBER = 7\n"
        "def pair():\n    return 1, 2\n"
        "def listed():\n    return (lambda s: s), [1.0], (lambda s: s)\n",
    )
    (tmp_path / "leaving.py").write_text("import sys\nsys.exit(0)\n")
    ran = run(named, "-o", "none.npz")
    assert ran.returncode == 1
    assert ran.stderr.startswith("scr_crit: error: ") and ran.stderr.count("\n") == 1
    assert said in ran.stderr
    assert not (tmp_path / "none.npz").exists()


@pytest.mark.parametrize(
    "words",
    [
        ("program.py", "-o", "m"),
        ("a/b:setup", "-o", "m"),
        (":setup", "-o", "m"),
        ("program.py:", "-o", "m"),
        ("program.py:setup",),
        ("program.py:setup", "-o", "m", "--steps", "0"),
        ("program.py:setup", "-o", "m", "--at", "-1"),
    ],
)
def test_usage_errors(run: Run, tmp_path: Path, words: tuple[str, ...]) -> None:
    program(tmp_path, "def setup():\n    raise RuntimeError('never called')\n")
    ran = run(*words)
    assert ran.returncode == 2
    assert "Usage: scr_crit profile" in ran.stderr


# ---- the terminal ----


def test_on_a_terminal_it_shows_that_it_works_and_output_stays_clean(ring: Path, tmp_path: Path) -> None:
    """The spinner goes to the terminal on stderr; what the program prints and the report go to the pipe."""
    ring.write_text(RING.replace("def setup():", "def setup():\n    print('the program speaks')"))
    mine, theirs = pty.openpty()
    with subprocess.Popen(
        [SCR_CRIT, "profile", f"{ring}:setup", "-o", "ring.npz"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm"},
        text=True,
    ) as process:
        os.close(theirs)
        printed, _ = process.communicate()
    shown = b""
    while True:
        try:
            part = os.read(mine, 4096)
        except OSError:
            # Linux: the other end of the terminal is closed.
            break
        if not part:
            break
        shown += part
    os.close(mine)
    assert process.returncode == 0
    assert b"profiling" in shown and b"\x1b" in shown
    assert "the program speaks" in printed and "outputs identical" in printed
    assert "\x1b" not in printed
