"""``scr_critplugin.tracing.job``: rank, size and the job's name from what launchers leave."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from scr_critplugin.errors import TraceError
from scr_critplugin.tracing.job import find_job


@pytest.mark.parametrize(
    ("environment", "rank", "ranks", "name"),
    [
        ({"PMI_RANK": "2", "PMI_SIZE": "4", "PMIX_NAMESPACE": "ns"}, 2, 4, "ns"),
        ({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2", "PMIX_NAMESPACE": "9@1"}, 1, 2, "9@1"),
        ({"FLUX_TASK_RANK": "0", "FLUX_JOB_SIZE": "3", "FLUX_JOB_ID": "f7"}, 0, 3, "f7"),
        (
            {"SLURM_PROCID": "5", "SLURM_NTASKS": "8", "SLURM_STEP_ID": "0", "SLURM_JOB_ID": "77"},
            5,
            8,
            "77-0",
        ),
        ({"PMIX_RANK": "3", "PMIX_NAMESPACE": "ns"}, 3, 0, "ns"),
        (
            {"PMI_RANK": "2", "PMI_SIZE": "4", "SCR_CRIT_TRACE_RUN": "mine", "PMIX_NAMESPACE": "ns"},
            2,
            4,
            "mine",
        ),
    ],
)
def test_launchers(environment: dict[str, str], rank: int, ranks: int, name: str) -> None:
    job = find_job(environment)
    assert (job.rank, job.ranks, job.name) == (rank, ranks, name)


def test_a_batch_script_of_slurm_is_no_rank_of_a_step() -> None:
    job = find_job({"SLURM_PROCID": "0", "SLURM_NTASKS": "4", "SLURM_JOB_ID": "77"})
    assert (job.rank, job.ranks) == (0, 1)


def test_mpiexec_within_a_step_is_the_nearer_one() -> None:
    slurm = {"SLURM_PROCID": "0", "SLURM_NTASKS": "1", "SLURM_STEP_ID": "0", "SLURM_JOB_ID": "77"}
    assert find_job({**slurm, "PMI_RANK": "2", "PMI_SIZE": "4"}).ranks == 4


@pytest.mark.parametrize("value", ["", "x", "-1", "4", "99999999999"])
def test_a_rank_that_is_none_is_refused(value: str) -> None:
    with pytest.raises(TraceError) as fault:
        find_job({"PMI_RANK": value, "PMI_SIZE": "4"})
    assert fault.value.key == "PMI_RANK"


_ASK = """
import json, os, pathlib, sys
from scr_critplugin.tracing.job import find_job
job = find_job(os.environ)
pathlib.Path(sys.argv[1], f"{os.getpid()}.json").write_text(json.dumps([job.rank, job.ranks, job.name]))
"""


def test_ranks_of_a_real_launcher_agree_and_two_jobs_differ(mpiexec: list[str], tmp_path: Path) -> None:
    names = []
    for name in "ab":
        folder = tmp_path / name
        folder.mkdir()
        subprocess.run([*mpiexec, "-n", "3", sys.executable, "-c", _ASK, str(folder)], check=True)
        jobs = [json.loads(path.read_text()) for path in folder.iterdir()]
        assert sorted(job[:2] for job in jobs) == [[0, 3], [1, 3], [2, 3]]
        assert len({job[2] for job in jobs}) == 1
        names.append(jobs[0][2])
    assert names[0] != names[1]
