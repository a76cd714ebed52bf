/* job.c - see job.h. */
#include "job.h"

#include <stdio.h>
#include <unistd.h>

#include "message.h"

scrl_job scrl = {.comm = MPI_COMM_NULL, .host = "unknown host"};

void scrl_job_connect(void)
{
    if (scrl.comm != MPI_COMM_NULL) {
        return;
    }
    int initialized = 0;
    MPI_Initialized(&initialized);
    if (!initialized) {
        scrl_abort("MPI_Init must be called before the first function of SCR");
    }
    MPI_Comm_dup(MPI_COMM_WORLD, &scrl.comm);
    MPI_Comm_rank(scrl.comm, &scrl.rank);
    MPI_Comm_size(scrl.comm, &scrl.ranks);
    if (gethostname(scrl.host, sizeof(scrl.host)) != 0) {
        snprintf(scrl.host, sizeof(scrl.host), "unknown host");
    }
    scrl.host[sizeof(scrl.host) - 1] = '\0';
}

void scrl_job_reset(void)
{
    scrl_filemap_free(&scrl.map);
    if (scrl.comm != MPI_COMM_NULL) {
        MPI_Comm_free(&scrl.comm);
    }
    scrl = (scrl_job){.comm = MPI_COMM_NULL, .host = "unknown host"};
}
