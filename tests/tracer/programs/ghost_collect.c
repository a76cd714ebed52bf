/* ghost_collect.c - rank 0 writes and reads the checkpoint of all ranks.
 *
 * Usage: mpiexec -n 3 ghost_collect FILE. Each rank has 4 doubles, which rank 0 gathers in a
 * staging buffer and writes; on restart it reads them there and scatters. Nothing of that is a mere
 * copy: what another rank does with its part cannot be seen here. The fifth double of each rank
 * stays out.
 */
#include "ghost_scr.h"

#include <mpi.h>

#define RANKS 3
#define PART 4

static double part[PART + 1];
static double staging[RANKS * PART];

int main(int argc, char **argv)
{
    int rank;
    char path[1024], name[1024];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc != 2)
        MPI_Abort(MPI_COMM_WORLD, 2);
    for (int i = 0; i < PART; i++)
        part[i] = 10 * rank + i;

    SCR_Start_output("ghost", 1);
    if (rank == 0)
        SCR_Route_file(argv[1], path);
    MPI_Gather(part, PART, MPI_DOUBLE, staging, PART, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        int file = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);
        if (write(file, staging, sizeof staging) != sizeof staging || close(file) != 0)
            MPI_Abort(MPI_COMM_WORLD, 1);
    }
    SCR_Complete_output(1);
    memset(part, 0, sizeof part);
    memset(staging, 0, sizeof staging);

    SCR_Start_restart(name);
    if (rank == 0) {
        SCR_Route_file(argv[1], path);
        int file = open(path, O_RDONLY);
        if (read(file, staging, sizeof staging) != sizeof staging || close(file) != 0)
            MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Scatter(staging, PART, MPI_DOUBLE, part, PART, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    SCR_Complete_restart(1);
    memset(part, 0, sizeof part);
    memset(staging, 0, sizeof staging);
    MPI_Finalize();
    return 0;
}
