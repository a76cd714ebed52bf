/* instrument_mode.c - threads whose loads count as writes (requests.h).
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * To know which bytes a derived MPI datatype covers, the preload lets the MPI library pack from the
 * receive buffer: what is loaded then is what a receive overwrites.
 */
#include "instrument.h"

#include <pub_tool_threadstate.h>

Bool instrument_loads_write = False;

static UChar *loads_write; /* by thread */

void instrument_loads_are_writes(ThreadId tid, Bool on)
{
    if (!loads_write)
        loads_write = VG_(calloc)("mode.loads_write", VG_N_THREADS, 1);
    loads_write[tid] = on;
    if (tid == VG_(get_running_tid)())
        instrument_loads_write = on;
}

void instrument_thread_runs(ThreadId tid, ULong blocks)
{
    (void)blocks;
    if (loads_write)
        instrument_loads_write = loads_write[tid];
}
