"""Environment in which MPI libraries move data where a tracer can see it.

Single-copy transports let a process read a peer's memory without a call in the peer; two-phase collective I/O
and data sieving let one rank write the bytes of others. Both are switched off by variables of the MPI
libraries, which ignore those of each other. Imports nothing of the package.
Tests: ``tests/test_tracing_launch.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

# Values that decide what is seen: a user's own value is replaced.
_NO_SINGLE_COPY = {
    "OMPI_MCA_btl_vader_single_copy_mechanism": "none",  # Open MPI 2 to 4
    "OMPI_MCA_btl_sm_single_copy_mechanism": "none",  # Open MPI 5
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
_SINGLE_COPY_TRANSPORTS = ("cma", "knem", "xpmem")
_SHARED_MEMORY = ("sm", "shm", "shared_mem")


def traced_environment(environment: Mapping[str, str], hints: Path) -> tuple[dict[str, str], list[str]]:
    """The environment with what tracing needs, and the names of variables whose own value was replaced.

    `hints` is the file that ROMIO reads its hints from; :func:`hints_text` is to be written there.
    """
    settings = {
        **_NO_SINGLE_COPY,
        **_OWN_BYTES,
        "UCX_TLS": _transports(environment.get("UCX_TLS", "")),
        "ROMIO_HINTS": str(hints),
    }
    # The user's hints and transports live on in ours.
    replaced = [
        name
        for name, value in settings.items()
        if name not in ("UCX_TLS", "ROMIO_HINTS") and environment.get(name, value) != value
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


def _transports(given: str) -> str:
    """UCX's transports without those that copy between processes."""
    without = ",".join(_SINGLE_COPY_TRANSPORTS)
    if given in ("", "all"):
        return f"^{without}"
    if given.startswith("^"):
        return f"{given},{without}"
    named: list[str] = []
    for one in given.split(","):
        if one in _SHARED_MEMORY:
            named += ["posix", "sysv"]
        elif one not in _SINGLE_COPY_TRANSPORTS:
            named.append(one)
    return ",".join(dict.fromkeys(named)) or f"^{without}"
