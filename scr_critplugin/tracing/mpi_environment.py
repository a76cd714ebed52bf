"""Environment in which MPI libraries move data where a tracer can see it.

Single-copy transports let a process read a peer's memory without a call in the peer; two-phase collective I/O
and data sieving let one rank write the bytes of others. Both are switched off by variables of the MPI
libraries, which ignore those of each other. UCX's single-copy transport stays: MPICH 4.0 may hang without it,
and the tracer's wrappers of MPI's calls cover it. Imports nothing of the package.
Tests: ``tests/test_tracing_launch.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

# Values that decide what is seen: a user's own value is replaced.
_NO_SINGLE_COPY = {
    # Open MPI 3 and 4; with "none" its MPI_Win_create fails.
    "OMPI_MCA_btl_vader_single_copy_mechanism": "emulated",
    "OMPI_MCA_smsc": "^cma,xpmem,knem",  # Open MPI 5
    "MPIR_CVAR_CH4_CMA_ENABLE": "0",  # MPICH from 4.3 on
    "MPIR_CVAR_CH4_XPMEM_ENABLE": "0",  # MPICH from 4.0 on
    "FI_SHM_DISABLE_CMA": "1",  # libfabric
    "FI_SHM_USE_XPMEM": "0",
    "PSM_KASSIST_MODE": "none",
    "PSM2_KASSIST_MODE": "none",
    "PSM3_KASSIST_MODE": "none",
    "MV2_SMP_USE_CMA": "0",  # MVAPICH2
    "MV2_SMP_USE_LIMIC2": "0",
    "I_MPI_SHM_LMT": "shm",  # Intel MPI up to 2018
    "MPICH_SMP_SINGLE_COPY_MODE": "NONE",  # Cray MPICH
}
_HINTS = ("romio_cb_write", "romio_cb_read", "romio_ds_write", "romio_ds_read")
_OWN_BYTES = {
    "OMPI_MCA_fcoll": "individual",
    "OMPI_MCA_fbtl_posix_write_datasieving": "0",
    "OMPI_MCA_fbtl_posix_read_datasieving": "0",
    "MPICH_MPIIO_HINTS": "*:" + ":".join(f"{hint}=disable" for hint in _HINTS),
}
_SILENT_HWLOC = "-x86"


def traced_environment(environment: Mapping[str, str], hints: Path) -> tuple[dict[str, str], list[str]]:
    """The environment with what tracing needs, and the names of variables whose own value was replaced.

    `hints` is the file that ROMIO reads its hints from; :func:`hints_text` is to be written there.
    """
    settings = {
        **_NO_SINGLE_COPY,
        **_OWN_BYTES,
        "ROMIO_HINTS": str(hints),
        "HWLOC_COMPONENTS": _without_x86(environment.get("HWLOC_COMPONENTS", "")),
    }
    # The user's hints and components live on in ours.
    replaced = [
        name
        for name, value in settings.items()
        if name not in ("HWLOC_COMPONENTS", "ROMIO_HINTS") and environment.get(name, value) != value
    ]
    return {**environment, **settings}, replaced


def hints_text(environment: Mapping[str, str]) -> str:
    """Content of the file of ROMIO's hints: the user's own lines, without those that are set here."""
    lines: list[str] = []
    given = environment.get("ROMIO_HINTS")
    if given:
        with suppress(OSError):  # ROMIO ignores such a file as well
            lines = Path(given).read_text(errors="replace").splitlines()
    kept = [line for line in lines if line.split(maxsplit=1)[:1] not in [[hint] for hint in _HINTS]]
    return "".join(f"{line}\n" for line in [*kept, *(f"{hint} disable" for hint in _HINTS)])


def _without_x86(given: str) -> str:
    """Components of hwloc without the one that prints a complaint on every rank under Valgrind."""
    return given if _SILENT_HWLOC in given.split(",") else ",".join(filter(None, [given, _SILENT_HWLOC]))
