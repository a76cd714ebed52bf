/* phase.c
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "phase.h"
#include "files.h"
#include "origins.h"
#include "trace_file.h"
#include "watch.h"

#include <pub_tool_transtab.h>

trace_phase phase = PHASE_IDLE;

static void change(trace_phase next)
{
    if (next == phase)
        return;
    phase = next;
    VG_(discard_translations_safely)(0x1000, ~(SizeT)0 - 0x1000, "scr_crit phase");
}

static void begin_following(trace_phase next, const HChar *dataset)
{
    origins_begin();
    files_begin(dataset);
    change(next);
}

void phase_output_started(ThreadId tid, const HChar *dataset)
{
    (void)tid;
    if (!phase_follows())
        begin_following(PHASE_OUTPUT, dataset);
}

void phase_output_completing(ThreadId tid)
{
    if (phase != PHASE_OUTPUT)
        return;
    origins_use_registers(tid);
    files_settle_output();
    watch_output_ended(tid);
    origins_end();
    files_end();
    change(PHASE_TRACK);
}

void phase_restart_started(ThreadId tid, const HChar *dataset)
{
    (void)tid;
    if (!phase_follows())
        begin_following(PHASE_RESTART, dataset);
}

void phase_restart_completing(ThreadId tid)
{
    if (phase != PHASE_RESTART)
        return;
    origins_use_registers(tid);
    watch_restart_ended(tid);
    origins_end();
    files_end();
    change(PHASE_TRACK);
}

void phase_checkpoint_asked(ThreadId tid, Bool answer)
{
    (void)tid, (void)answer;
}

void phase_dump_opened(ThreadId tid, const HChar *path)
{
    (void)tid, (void)path;
}

void phase_dump_closed(ThreadId tid)
{
    (void)tid;
}

void phase_exit_asked(Int exit_code)
{
    (void)exit_code;
}

void phase_program_ended(Int exit_code)
{
    watch_finish();
    trace_line("window end %d %d", exit_code, 0);
    trace_close();
}
