"""What each rank sees of its launcher; run by test_mpi_profile.py under mpiexec."""

import json

from scr_critplugin import mpi

comm = mpi.world_if_parallel()
results = comm.gather([mpi.path_of_rank("map.{rank}.npz", comm), comm.size])
if comm.rank == 0:
    print(json.dumps(results))
