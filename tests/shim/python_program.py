"""An MPI program in Python that uses SCR's Python module ``scr``, or this package's in its place.

    python_program.py SCR FILE     SCR: own (SCR's module), binding, adopted

Prints one JSON line a rank: what each call returned. ``test_shim_python.py`` runs it.
"""

import json
import sys
from pathlib import Path

from mpi4py import MPI

how, content = sys.argv[1], sys.argv[2]
if how == "own":
    import scr
elif how == "adopted":
    import scr

    import scr_critplugin.scr

    scr_critplugin.scr.adopt(scr)
else:
    import scr_critplugin.scr as scr

rank = MPI.COMM_WORLD.rank
said = {"rank": rank, "flags": [scr.FLAG_NONE, scr.FLAG_CHECKPOINT, scr.FLAG_OUTPUT]}
said["unset"] = scr.config("SCR_CRIT_NO_SUCH_KEY")
said["set"] = scr.config("SCR_CHECKPOINT_INTERVAL=1")
said["query"] = scr.config("SCR_CHECKPOINT_INTERVAL")
said["outside"] = scr.route_file("name")
said["init"] = scr.init()
name = scr.have_restart()
if name is None:
    said["need"] = scr.need_checkpoint()
    said["start"] = scr.start_output("ckpt.1", scr.FLAG_CHECKPOINT | scr.FLAG_OUTPUT)
    said["path"] = scr.route_file(f"ckpt.1/state.{rank}")
    Path(said["path"]).write_bytes(Path(content).read_bytes())
    said["complete"] = scr.complete_output(True)
else:
    said["restart"] = scr.start_restart()
    try:
        scr.route_file("no.such.file")
    except RuntimeError as error:
        said["error"] = [type(error).__name__, str(error)]
    said["path"] = scr.route_file(f"ckpt.1/state.{rank}")
    Path(f"read.{rank}").write_bytes(Path(said["path"]).read_bytes())
    said["complete"] = scr.complete_restart(True)
    said["current"] = scr.current("ckpt.1")
    said["drop"] = scr.drop("ckpt.1")
said["exit"] = scr.should_exit()
said["finalize"] = scr.finalize()
sys.stdout.write(json.dumps(said) + "\n")  # one write: lines of ranks must not mix
