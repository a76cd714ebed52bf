"""A process's rank: MPI's word counts, the launcher's environment is the fallback, nothing is guessed."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

SHIM = Path(__file__).resolve().parents[2] / "cbindings" / "shim"

ASK = """
#include <stdio.h>
#include "rank.h"
#ifdef WITH_MPI
#include <mpi.h>
#else
#define MPI_Init(a, b) (void)(a), (void)(b)
#define MPI_Finalize()
#endif
void *shim_real_find(const char *symbol) { (void)symbol; return 0; }
int main(int argc, char **argv)
{
    if (argc > 1)
        MPI_Init(&argc, &argv);
    shim_rank found = shim_rank_find();
    if (argc > 1)
        MPI_Finalize();
    printf("%d of %d\\n", found.rank, found.size);
    return 0;
}
"""

LAUNCHERS = ("OMPI_COMM_WORLD", "MV2_COMM_WORLD", "PMI_", "PMIX_", "PALS_", "FLUX_", "SLURM_")


@pytest.fixture(scope="module")
def build_ask(tmp_path_factory):
    """Compile a program that asks for its rank."""
    folder = tmp_path_factory.mktemp("rank")
    (folder / "ask.c").write_text(ASK)

    def build(name, compiler, *words):
        command = [
            compiler,
            "-std=gnu11",
            *words,
            str(folder / "ask.c"),
            str(SHIM / "rank.c"),
            f"-I{SHIM}",
            "-ldl",
            "-o",
            str(folder / name),
        ]
        subprocess.run(command, check=True)
        return folder / name

    return build


@pytest.fixture(scope="module")
def without_mpi(build_ask):
    return build_ask("without", "cc")


@pytest.fixture(scope="module", params=["dynamic", "wrap"])
def with_mpi(request, build_ask, mpicc):
    return build_ask(
        request.param, mpicc, "-DWITH_MPI", *(["-DSHIM_WRAP"] if request.param == "wrap" else [])
    )


def is_open_mpi(mpiexec):
    version = subprocess.run([*mpiexec, "--version"], capture_output=True, text=True, check=False)
    said = version.stdout + version.stderr
    return "Open MPI" in said or "OpenRTE" in said


def ask(command, **environment):
    clean = {name: value for name, value in os.environ.items() if not name.startswith(LAUNCHERS)}
    ended = subprocess.run(
        [str(word) for word in command],
        env={**clean, **environment},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return sorted(ended.stdout.splitlines())


@pytest.mark.parametrize(
    "environment, expected",
    [
        ({}, "-1 of 0"),
        ({"PMI_RANK": "3", "PMI_SIZE": "8"}, "3 of 8"),
        ({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2"}, "1 of 2"),
        ({"MV2_COMM_WORLD_RANK": "1", "MV2_COMM_WORLD_SIZE": "2"}, "1 of 2"),
        ({"PMIX_RANK": "5"}, "5 of 0"),
        ({"PALS_RANKID": "6"}, "6 of 0"),
        ({"FLUX_TASK_RANK": "2", "FLUX_JOB_SIZE": "4"}, "2 of 4"),
        ({"SLURM_PROCID": "7", "SLURM_NTASKS": "9"}, "7 of 9"),
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "1", "PMI_RANK": "2", "PMI_SIZE": "4"}, "2 of 4"),
        ({"PMI_RANK": "x", "SLURM_PROCID": "7"}, "7 of 0"),
        ({"PMI_RANK": "-1"}, "-1 of 0"),
        ({"PMI_RANK": "99999999999"}, "-1 of 0"),
    ],
)
def test_the_launchers_environment(without_mpi, environment, expected):
    assert ask([without_mpi], **environment) == [expected]


def test_mpi_knows_better_than_the_environment(with_mpi, mpiexec):
    misleading = {"SLURM_PROCID": "0", "SLURM_NTASKS": "1"}
    command = [*mpiexec, "-n", 3, "env", "OMPI_COMM_WORLD_RANK=9", with_mpi, "init"]
    if not is_open_mpi(mpiexec):  # there the variable is set for real
        assert ask(command, **misleading) == ["0 of 3", "1 of 3", "2 of 3"]
    assert ask([*mpiexec, "-n", 3, with_mpi, "init"], **misleading) == ["0 of 3", "1 of 3", "2 of 3"]


def test_before_mpi_is_initialised_the_environment_is_asked(with_mpi):
    assert ask([with_mpi], SLURM_PROCID="4", SLURM_NTASKS="5") == ["4 of 5"]


def test_one_process_without_a_launcher(with_mpi):
    assert ask([with_mpi, "init"]) == ["0 of 1"]


def test_the_standard_abi(build_ask, mpicc, mpiexec):
    compiler = Path(mpicc).with_name("mpicc_abi")
    if not compiler.exists():
        pytest.skip("needs an MPI that offers the standard ABI: pip install 'mpich>=5'")
    program = build_ask("abi", str(compiler), "-DWITH_MPI")
    assert ask([*mpiexec, "-n", 2, program, "init"]) == ["0 of 2", "1 of 2"]


def test_an_unknown_rank_packs_nothing(job, tools, build, mpiexec):
    """Two ranks that both took themselves for rank 0 would each pack the other's file."""
    if is_open_mpi(mpiexec):
        pytest.skip("needs an MPI that is known by its version string alone: MPICH or one of its family")
    job.preload = [build / "libfaults.so", *job.preload]
    hide = [("environment", name, "hidden") for name in ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK")]
    ended = job.run([*hide, *tools.session(tools.checkpoint(1))], FAULT_MPI_NAME="Some other MPI 1.0")
    assert ended.reports("complete") == [["0"], ["0"]]
    assert (job.prefix / "ckpt.1/state.0").read_bytes() == tools.content(tools.STATE, 10)
    assert any(
        "tells this process's rank: files are stored whole" in line for line in ended.messages("WARNING")
    )
    assert "rank ? on" in ended.messages("WARNING")[0]
