"""`profile` over several ranks: dependence across messages, common decisions, and failure without a hang.

The programs are in ``mpi_cases.py`` and ``mpi_faults.py``, started under a real mpiexec.
"""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import traceback
from collections.abc import Callable
from typing import Any

import mpi_cases
import numpy as np
import pytest

from scr_critplugin import mpi
from scr_critplugin.analysis import profile
from scr_critplugin.errors import ProfileError

DENSE = {"allreduce_by_a_function", "selection_by_value"}
"""What a function of the program's own does with its operands is not known, nor what is selected: all
counts."""


# ---- every operation ----


@pytest.fixture(scope="session", params=[2, 3, 4])
def cases(request: pytest.FixtureRequest, run_ranks: Any) -> dict[str, Any]:
    """By case, what the profile says and what brute force finds."""
    (found,) = run_ranks(request.param, "mpi_cases.py")
    assert len(found["to_itself"]["masks"]) == request.param, "mpi4py belongs to another MPI than mpiexec"
    return found


@pytest.mark.parametrize("name", mpi_cases.CASES)
def test_communication_agrees_with_brute_force(cases: dict[str, Any], name: str) -> None:
    """On every rank exactly the elements are critical that change a result on some rank."""
    masks, brute = np.array(cases[name]["masks"]), np.array(cases[name]["brute"])
    assert brute.any()
    if name in DENSE:
        assert (masks >= brute).all()
    else:
        assert masks.tolist() == brute.tolist()
        assert not any(cases[name]["sinks"])


# ---- what the ranks decide and raise together ----


@pytest.fixture(scope="session")
def faults(run_ranks: Any) -> dict[str, list[Any]]:
    """By scenario, what each of three ranks found or raised."""
    return {result["scenario"]: result["ranks"] for result in run_ranks(3, "mpi_faults.py")}


ONE_FAILS = {
    "program_raises_on_one_rank": (2, "ZeroDivisionError", "no such cell"),
    "trace_fails_on_one_rank_before_a_collective": (0, "ProfileError", "a traced value is pickled"),
    "analysis_fails_on_one_rank": (2, "ProfileError", "computes something else when it is traced"),
    "program_ends_itself_on_one_rank": (0, "SystemExit", "3"),
    "state_is_wrong_on_one_rank": (2, "ProfileError", "expected an array or scalar"),
}


@pytest.mark.parametrize("name", ONE_FAILS)
def test_error_on_one_rank_is_raised_on_all(faults: dict[str, list[Any]], name: str) -> None:
    """The rank that failed keeps its own error, the others name it; nobody waits for ever."""
    guilty, kind, text = ONE_FAILS[name]
    for rank, result in enumerate(faults[name]):
        assert text in result["text"]
        if rank == guilty:
            assert result["raised"] == kind
        else:
            assert (result["raised"], result["rank"]) == ("ProfileError", guilty)


ALL_FAIL = {
    "message_is_not_received": "3 messages that were sent in a step (or output) were not received",
    "message_crosses_steps": "complete all communication within the step",
    "no_communicator_is_given": "communicates over 3 ranks, and is profiled as a serial one",
    "communicator_is_too_small": "some of which do not take part",
    "options_differ": "'dependence', 'structure', None, 0) here and (None, 1, ",
    "traced_values_go_by_plain_mpi4py": "communicate through scr_critplugin.mpi.Comm",
    "method_without_a_rule": "scan was given values of the traced state, and there is no rule",
    "probing": "iprobe is not supported while a program is profiled",
    "message_is_too_long": "truncated",
    "buffer_is_not_contiguous": "not contiguous",
}


@pytest.mark.parametrize("name", ALL_FAIL)
def test_error_says_what_to_do(faults: dict[str, list[Any]], name: str) -> None:
    for result in faults[name]:
        assert "raised" in result
        assert ALL_FAIL[name] in result["text"]


def test_poison_on_one_rank_shows_on_all(faults: dict[str, list[Any]]) -> None:
    """What it does with it is `poison`'s; that all ranks do the same is tested here."""
    results = faults["poison_shows_on_one_rank"]
    if "raised" in results[0]:
        assert [result["raised"] for result in results] == ["ProfileError"] * 3
    else:
        assert results[2]["critical"]["x"][3] == 1


def test_poisoned_output_that_raises_on_one_rank_is_a_difference_on_all(faults: dict[str, list[Any]]) -> None:
    """No rank is left waiting in the reduction that the other did not come to."""
    results = faults["poison_raises_on_one_rank_before_a_collective"]
    assert [result["critical"]["x"] for result in results] == [[1, 0, 0, 0]] * 2 + [[1, 0, 0, 1]]


def test_structure_that_changes_on_one_rank_changes_on_all(faults: dict[str, list[Any]]) -> None:
    results = faults["structure_changes_on_one_rank"]
    if "raised" in results[0]:
        assert all("structure" in result["text"] for result in results)
    else:
        assert len({result["steps"] for result in results}) == 1
        assert results[2]["critical"]["x"] == [1, 1, 1]


def test_branch_on_a_received_value_is_a_sink(faults: dict[str, list[Any]]) -> None:
    """What fed it on the sender's side is critical; the sink is the program's line."""
    for result in faults["branch_on_what_arrived"]:
        assert result["critical"]["x"] == [0, 0, 1, 0]
        assert result["sinks"] == ["bool mpi_faults.py"]


def test_buffer_outside_the_state_is_a_sink(faults: dict[str, list[Any]]) -> None:
    for result in faults["arrives_in_a_buffer_outside_the_state"]:
        assert result["critical"]["x"] == [0, 1, 1, 0]
        assert result["sinks"] == ["buffer outside the state mpi_faults.py"]


def test_fixed_point_is_that_of_all_ranks(faults: dict[str, list[Any]]) -> None:
    """Masks wander along a chain of ranks; those that see nothing new sweep on with the others."""
    results = faults["only_one_rank_goes_on_for_longer"]
    assert [result["critical"]["x"] for result in results] == [[1, 0]] * 3
    assert len({result["steps"] for result in results}) == 1
    assert results[0]["steps"] >= 3


def test_profile_after_a_failed_one(faults: dict[str, list[Any]]) -> None:
    """Letters of the failed profile do not reach the next one."""
    assert [result["critical"]["x"] for result in faults["goes_on_after_a_failure"]] == [[0, 1, 0, 0]] * 3


# ---- one rank ----


def apart(test: Callable[[], None]) -> Callable[[], None]:
    """Run a test in a copy of this process: where Open MPI was started, mpiexec no longer works."""

    @functools.wraps(test)
    def run() -> None:
        pytest.importorskip("mpi4py", reason="no mpi4py: pip install 'scr_critplugin[mpi]'")
        child = os.fork()
        if child == 0:
            try:
                test()
            except BaseException:
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0

    return run


@apart
def test_one_rank_needs_no_communicator() -> None:
    comm = mpi.Comm()
    assert comm.size == 1

    def output(state: dict[str, Any]) -> Any:
        x = state["x"]
        ghost = np.empty(1)
        comm.Sendrecv(x[1:2], 0, 0, ghost, 0, 0)
        return comm.allreduce(x[3]) + ghost[0]

    found = profile(lambda state: dict(state), {"x": np.arange(1.0, 6.0)}, output)
    assert found.map["x"].critical.tolist() == [False, True, False, True, False]


# ---- outside of a profile ----


@apart
def test_comm_is_mpi4pys_outside_of_a_profile() -> None:
    from mpi4py import MPI

    assert mpi.COMM_WORLD == MPI.COMM_WORLD
    assert mpi.SUM is MPI.SUM
    comm = mpi.Comm(MPI.COMM_SELF)
    assert comm.allgather == MPI.COMM_SELF.allgather
    made = comm.Create_cart([1], periods=[True])
    assert isinstance(made, mpi.Comm)
    assert made.Shift(0, 1) == (0, 0)
    assert isinstance(made.raw, MPI.Cartcomm)
    assert "Iallreduce" in dir(comm)
    with pytest.raises(AttributeError):
        _ = comm.no_such_method
    received = np.empty(2)
    requests = [comm.Irecv(received, 0), comm.Isend(np.array([1.0, 2.0]), 0)]
    assert mpi.Request.Waitall(requests)
    assert received.tolist() == [1.0, 2.0]


def test_importing_it_costs_a_run_nothing() -> None:
    code = (
        "import sys, scr_critplugin.mpi; "
        "print([m for m in ('mpi4py', 'autograd', 'numpy', 'scr_critplugin.analysis') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# ---- for the command line ----


@pytest.fixture
def no_launcher(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in (*mpi._SIZES, "SLURM_NTASKS"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


@pytest.mark.parametrize("variables", [{}, {"PMI_SIZE": "1"}, {"SLURM_NTASKS": "8"}, {"PMI_SIZE": "?"}])
def test_no_world_without_a_launcher(no_launcher: pytest.MonkeyPatch, variables: dict[str, str]) -> None:
    """A batch script of Slurm's is one process, whatever SLURM_NTASKS says."""
    for name, value in variables.items():
        no_launcher.setenv(name, value)
    no_launcher.setattr(mpi, "_mpi4py", lambda: pytest.fail("mpi4py was imported"))
    assert mpi.world_if_parallel() is None


@pytest.mark.parametrize("name", mpi._SIZES)
def test_world_that_mpi4py_does_not_see(no_launcher: pytest.MonkeyPatch, name: str) -> None:
    class OtherMPI:
        class COMM_WORLD:  # noqa: N801
            size = 1

        @staticmethod
        def Get_library_version() -> str:  # noqa: N802
            return "Some MPI 1.0\nbuilt here"

    no_launcher.setenv(name, "4")
    no_launcher.setattr(mpi, "_mpi4py", lambda: OtherMPI)
    with pytest.raises(ProfileError, match=r"started 4 ranks, but mpi4py sees one.*Some MPI 1\.0\)"):
        mpi.world_if_parallel()


def test_world_under_a_launcher(run_ranks: Any) -> None:
    (result,) = run_ranks(2, "mpi_world.py")
    assert result == [["map.0.npz", 2], ["map.1.npz", 2]]


class _Two:
    rank, size = 1, 2


@pytest.mark.parametrize(
    ("template", "comm", "path"),
    [
        ("map.{rank}.npz", _Two, "map.1.npz"),
        ("map.{rank:05d}.npz", _Two, "map.00001.npz"),
        ("map.{rank}.npz", None, "map.0.npz"),
        ("map.npz", None, "map.npz"),
        ("a{b}.npz", None, "a{b}.npz"),
    ],
)
def test_path_of_rank(template: str, comm: Any, path: str) -> None:
    assert mpi.path_of_rank(template, comm) == path


@pytest.mark.parametrize("template", ["map.npz", "map.{host}.npz", "map.{.npz", "map.{}.npz"])
def test_path_that_ranks_would_share(template: str) -> None:
    with pytest.raises(ProfileError, match="rank"):
        mpi.path_of_rank(template, _Two)
