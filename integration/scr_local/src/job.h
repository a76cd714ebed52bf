/*
 * job.h - the one running job of this process, as the C API has it: settings, ranks, counters and
 * what is being written or read. Modules read it; who changes what is said at each field.
 */
#ifndef SCRL_JOB_H
#define SCRL_JOB_H

#include <mpi.h>

#include "filemap.h"
#include "scr.h"
#include "settings.h"

/* SCR's own value for a call that did not work. */
#define SCRL_FAILURE (!SCR_SUCCESS)

typedef enum { SCRL_UNINIT, SCRL_IDLE, SCRL_RESTART, SCRL_CHECKPOINT, SCRL_OUTPUT } scrl_state;

typedef struct {
    scrl_state state; /* which calls are allowed; the api_*.c files */
    int disabled;     /* SCR_ENABLE=0; api_session.c */
    MPI_Comm comm;    /* api_session.c */
    int rank;
    int ranks;
    char host[256];
    scrl_settings settings; /* settings.c */

    /* Numbers given last, and the dataset of the newest checkpoint (0: none). */
    int dataset_id;
    int checkpoint_id;
    int checkpoint_dataset_id;
    int have_restart; /* a checkpoint stands ready for SCR_Start_restart */

    scrl_filemap map; /* of the dataset being written; output.c and api_route.c */
} scrl_job;

extern scrl_job scrl;

/* Gives the job its communicator, rank and host name if it has none. Collective. */
void scrl_job_connect(void);

/* Frees what scrl_job_connect made and goes back to the state before SCR_Init. */
void scrl_job_reset(void);

#endif
