/* requests.h - what the preload tells the tool: Valgrind client requests.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Read by the tool (main.c) and by the preload (preload_scr.c, preload_mpi.c), which run in the
 * traced program. Needs nothing but valgrind.h.
 */
#ifndef SCR_CRIT_TRACER_REQUESTS_H
#define SCR_CRIT_TRACER_REQUESTS_H

#include <valgrind.h>

typedef enum {
    /* SCR. Names are 0-terminated and read during the request. */
    TRACE_OUTPUT_STARTED = VG_USERREQ_TOOL_BASE('S', 'X'), /* dataset name, SCR's flags */
    TRACE_ROUTED,             /* name as the program gave it, path that SCR returned */
    TRACE_OUTPUT_COMPLETING,  /* valid; sent before SCR sees the files */
    TRACE_RESTART_STARTED,    /* dataset name */
    TRACE_RESTART_COMPLETING, /* valid */
    TRACE_CHECKPOINT_ASKED,   /* what SCR_Need_checkpoint answered: a step mark */
    TRACE_FINALIZING,         /* SCR_Finalize was called */
    /* MPI, and any other code whose accesses the tool cannot see. */
    TRACE_READ,             /* address, bytes: read by somebody (a send buffer) */
    TRACE_WRITTEN,          /* address, bytes: overwritten by somebody (a receive buffer) */
    TRACE_SHARED,           /* address, bytes: others may read and write it from now on unseen */
    TRACE_LOADS_ARE_WRITES, /* 1 or 0: this thread's loads count as writes (to walk a datatype) */
    TRACE_IO_PASSED_ON,     /* 1 or 0: until as many 0 as 1 came, what this process reads from files
                               goes to others unseen, and what it writes came from them */
    TRACE_RANK,             /* rank, number of ranks */
    TRACE_WARNING           /* text: what the tool may not see, for the user */
} trace_request;

#endif
