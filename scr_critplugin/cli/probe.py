"""The doctor's probe: one process writes a checkpoint through the shim and SCR, another restarts from it.

python -m scr_critplugin.cli.probe EMPTY_FOLDER
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from scr_critplugin.errors import CritError

_ELEMENTS = 32768
_FILE = "probe.1/state.0"
_MODES = {"bypass": {"SCR_CACHE_BYPASS": "1"}, "cache": {"SCR_CACHE_BYPASS": "0", "SCR_FLUSH": "1"}}
_VALUES = np.arange(1, _ELEMENTS + 1, dtype="<f8")


def main(arguments: list[str]) -> None:
    """Run the whole probe in a folder, or one of its two processes."""
    folder = Path(arguments[0])
    if len(arguments) == 2:
        {"write": _write, "restart": _restart}[arguments[1]](folder)
        return
    for mode, settings in _MODES.items():
        work = folder / mode
        work.mkdir()
        _write_plan(work / "plan")
        _run_phase(work, "write", settings)
        share = _stored_share(work / _FILE)
        _run_phase(work, "restart", settings)
    print(
        f"stored {share:.1f} % of a half-critical file in {' and '.join(_MODES)} mode; "
        "restarts got the critical half back"
    )


def _critical() -> np.ndarray:  # type: ignore[type-arg]
    mask = np.zeros(_ELEMENTS, dtype=bool)
    mask[: _ELEMENTS // 2] = True
    return mask


def _write_plan(path: Path) -> None:
    from scr_critplugin.criticality import CriticalityMap
    from scr_critplugin.layout import Layout
    from scr_critplugin.plan import compile_plan

    layout = Layout.raw("probe.*/state.{rank}", {"state": (0, "<f8", (_ELEMENTS,))})
    compile_plan(CriticalityMap.from_masks({"state": _critical()}, "<f8"), layout).save(path)


def _run_phase(folder: Path, phase: str, settings: dict[str, str]) -> None:
    # The user's own staging is what has to work; the probe's cache is no place to find that out.
    stage = os.environ.get("SCR_CRIT_STAGE") or os.environ.get("SCR_CACHE_BASE") or "/dev/shm"
    environment = {
        **os.environ,
        **settings,
        "SCR_PREFIX": str(folder),
        "SCR_CACHE_BASE": str(folder / "cache"),
        "SCR_CNTL_BASE": str(folder / "cntl"),
        "SCR_JOB_ID": "scr_crit_probe",
        "SCR_USER_NAME": "scr_crit_probe",
        "SCR_CRIT_PLUGIN": "1",
        "SCR_CRIT_PLAN": str(folder / "plan"),
        "SCR_CRIT_STAGE": stage,
    }
    # What `doctor` judges by itself, and what would name other files than the probe's.
    for inherited in (
        "SCR_CRIT_DRYRUN",
        "SCR_CRIT_MODE",
        "SCR_CRIT_INCLUDE",
        "SCR_CRIT_EXCLUDE",
        "SCR_CRIT_FILL",
    ):
        environment.pop(inherited, None)
    ran = subprocess.run(
        [sys.executable, "-P", "-m", __spec__.name, str(folder), phase],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    sys.stderr.write(ran.stderr)
    if ran.returncode != 0:
        raise CritError(f"the probe's {phase} process ended with status {ran.returncode}")


def _stored_share(file: Path) -> float:
    from scr_critplugin import packed

    if not packed.is_packed(file):
        raise CritError(
            "the probe's checkpoint reached the prefix whole: the shim did not pack it", path=file
        )
    info = packed.check(file)
    return 100 * info.packed_bytes / info.file_bytes


class _Session:
    """SCR over MPI in this process. MPI is entered through libscr itself, so that it is the right one."""

    def __enter__(self) -> object:
        from scr_critplugin import scr

        self._mpi = ctypes.CDLL(scr.libscr_path())
        if self._mpi.MPI_Init(None, None) != 0:
            raise CritError("MPI_Init failed")
        scr.init()
        return scr

    def __exit__(self, *_: object) -> None:
        from scr_critplugin import scr

        scr.finalize()
        self._mpi.MPI_Finalize()


def _write(_folder: Path) -> None:
    with _Session() as scr:
        scr.start_output("probe.1", scr.FLAG_CHECKPOINT | scr.FLAG_OUTPUT)  # type: ignore[attr-defined]
        _VALUES.tofile(scr.route_file(_FILE))  # type: ignore[attr-defined]
        if not scr.complete_output(True):  # type: ignore[attr-defined]
            raise CritError("SCR rejected the probe's checkpoint")


def _restart(_folder: Path) -> None:
    with _Session() as scr:
        if scr.have_restart() is None:  # type: ignore[attr-defined]
            raise CritError("SCR offers no restart after the probe's checkpoint")
        scr.start_restart()  # type: ignore[attr-defined]
        values = np.fromfile(scr.route_file(_FILE), dtype="<f8")  # type: ignore[attr-defined]
        same = np.array_equal(values, np.where(_critical(), _VALUES, 0.0))
        scr.complete_restart(same)  # type: ignore[attr-defined]
        if not same:
            raise CritError("the restart read other bytes than the critical ones and zeros")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except (CritError, OSError) as failure:
        sys.exit(str(failure))
