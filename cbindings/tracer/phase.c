/* phase.c - the phases of the traced program. See phase.h.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Tests: tests/tracer/test_tracer_accesses.py (SCR's events), test_tracer_files.py (dumps).
 */
#include "phase.h"
#include "files.h"
#include "origins.h"
#include "requests.h"
#include "trace_file.h"
#include "watch.h"

#include <pub_tool_threadstate.h>
#include <pub_tool_transtab.h>

/* SCR's flags of a dataset (SCR v3.1, src/scr.h). */
#define SCR_FLAG_CHECKPOINT 1
#define SCR_FLAG_OUTPUT 2

trace_phase phase = PHASE_IDLE;

/* What PHASE_OUTPUT began with, and so what ends it. */
typedef enum { BEGUN_BY_QUESTION, BEGUN_BY_START, BEGUN_BY_DUMP } output_beginning;
static output_beginning begun_by;
static UInt dumps_open;

static UInt generations; /* checkpoints that are watched */
static Int steps;        /* since the first of them */
static Int flat_steps;   /* that decided nothing, in a row */
static ULong undecided_before;

static Bool exit_was_asked;
static Int asked_exit_code;
static Bool finalize_was_called;

Bool phase_is_dump(void)
{
    return phase == PHASE_OUTPUT && begun_by == BEGUN_BY_DUMP;
}

/* ---- From phase to phase ---- */

/* Valgrind lets a tool discard translations in a client request only. A system call or a signal is
 * handled as far outside of translated code as that (munmap discards, too), so say that it is safe
 * there; of the tool interface only this switch is missing. */
extern Bool VG_(ok_to_discard_translations);

void phase_discard_translations(void)
{
    const Bool was_ok = VG_(ok_to_discard_translations);
    VG_(ok_to_discard_translations) = True;
    VG_(discard_translations_safely)(0x1000, ~(SizeT)0 - 0x1000, "scr_crit");
    VG_(ok_to_discard_translations) = was_ok;
}

/* Code that was translated for the last phase is of no use in the next. */
static void enter(trace_phase next)
{
    if (next == phase)
        return;
    phase = next;
    phase_discard_translations();
}

static void enter_rest(void)
{
    enter(generations > 0 ? PHASE_TRACK : PHASE_IDLE);
}

static void begin_following(trace_phase next, const HChar *dataset)
{
    origins_begin();
    enter(next); /* before files_begin: it looks at the phase */
    files_begin(dataset);
}

static void begin_output(output_beginning by, const HChar *dataset)
{
    begun_by = by;
    begin_following(PHASE_OUTPUT, dataset);
}

/* Make a generation of what was followed, or, where the checkpoint came to nothing, settle what
 * happened to earlier generations meanwhile. The order is that of the parts' contracts. */
static void end_following(ThreadId tid, Bool checkpoint)
{
    origins_use_registers(tid);
    if (phase == PHASE_OUTPUT)
        files_settle_output();
    if (!checkpoint)
        files_drop();
    if (phase == PHASE_OUTPUT)
        watch_output_ended(tid);
    else
        watch_restart_ended(tid);
    origins_end();
    files_end();
    if (checkpoint) {
        generations++;
        flat_steps = 0;
    }
    undecided_before = watch_undecided();
    enter_rest();
}

/* ---- Checkpoints ---- */

/* SCR lets nothing else happen before a bracket is closed: it aborts the program. */
static void leave_open_bracket(ThreadId tid)
{
    if (!phase_follows())
        return;
    if (phase == PHASE_RESTART || begun_by == BEGUN_BY_START)
        tool_warn("a checkpoint or restart was begun before the last one was completed; the last "
                  "one is left out");
    end_following(tid, False);
}

void phase_output_started(ThreadId tid, const HChar *dataset, UWord flags)
{
    if (phase == PHASE_ENDED)
        return;
    if (phase != PHASE_OUTPUT || begun_by == BEGUN_BY_START)
        leave_open_bracket(tid);
    watch_mark();
    if (!(flags & SCR_FLAG_CHECKPOINT) || (flags & SCR_FLAG_OUTPUT)) {
        leave_open_bracket(tid);
        if (flags & SCR_FLAG_CHECKPOINT)
            tool_warn("a checkpoint has the flag SCR_FLAG_OUTPUT: it is wanted whole, so all of it "
                      "counts as read");
        return;
    }
    if (phase == PHASE_OUTPUT && begun_by != BEGUN_BY_START) {
        begun_by = BEGUN_BY_START;
        files_begin(dataset); /* the same phase, now with its name */
        return;
    }
    begin_output(BEGUN_BY_START, dataset);
}

void phase_output_completing(ThreadId tid, Bool valid)
{
    if (phase == PHASE_OUTPUT && begun_by == BEGUN_BY_START)
        end_following(tid, valid);
}

void phase_restart_started(ThreadId tid, const HChar *dataset)
{
    if (phase == PHASE_ENDED)
        return;
    leave_open_bracket(tid);
    watch_mark();
    begin_following(PHASE_RESTART, dataset);
}

void phase_restart_completing(ThreadId tid, Bool valid)
{
    if (phase == PHASE_RESTART)
        end_following(tid, valid);
}

void phase_routed(const HChar *name, const HChar *path)
{
    if (phase_follows())
        files_routed(name, path);
}

void phase_dump_opened(ThreadId tid, const HChar *path)
{
    (void)tid;
    if (phase == PHASE_ENDED || phase == PHASE_RESTART ||
        (phase == PHASE_OUTPUT && begun_by == BEGUN_BY_START))
        return;
    if (!phase_is_dump())
        watch_mark();
    if (phase != PHASE_OUTPUT) {
        begin_output(BEGUN_BY_DUMP, path);
    } else if (begun_by == BEGUN_BY_QUESTION) {
        begun_by = BEGUN_BY_DUMP;
        files_begin(path);
    }
    dumps_open++;
    files_routed(path, path);
}

void phase_dump_closed(ThreadId tid)
{
    if (dumps_open > 0 && --dumps_open == 0 && phase_is_dump())
        end_following(tid, True);
}

/* ---- Steps ---- */

static void end_trace(const HChar *window, Int exit_code)
{
    watch_finish();
    trace_line("window %s %d %d", window, exit_code, steps);
    trace_close();
    enter(PHASE_ENDED);
}

/* A step ended: how much is left to be decided. */
static void mark_step(void)
{
    const ULong undecided = watch_undecided();
    const ULong decided = undecided_before - undecided;
    undecided_before = undecided;
    steps++;
    flat_steps = decided == 0 ? flat_steps + 1 : 0;
    trace_line("step %d %llu %llu", steps, undecided, decided);
}

void phase_checkpoint_asked(ThreadId tid, Bool answer)
{
    if (phase == PHASE_OUTPUT && begun_by == BEGUN_BY_QUESTION)
        end_following(tid, False); /* it was asked, and nothing was written */
    watch_mark();
    if (generations > 0 && phase == PHASE_TRACK) {
        mark_step();
        if (option_until_flat > 0 && flat_steps >= option_until_flat)
            end_trace("flat", -1);
    }
    if (answer && (phase == PHASE_IDLE || phase == PHASE_TRACK))
        begin_output(BEGUN_BY_QUESTION, "");
}

/* ---- The end ---- */

void phase_finalizing(void)
{
    finalize_was_called = True;
}

void phase_exit_asked(Int exit_code)
{
    exit_was_asked = True;
    asked_exit_code = exit_code & 0xff;
}

void phase_program_ended(void)
{
    if (phase == PHASE_ENDED)
        return;
    if (phase_follows()) {
        if (phase == PHASE_RESTART || begun_by != BEGUN_BY_QUESTION)
            tool_warn("the program ended before it completed a checkpoint or restart; that one is "
                      "left out");
        end_following(VG_INVALID_THREADID, False);
    }
    if (exit_was_asked)
        end_trace("end", asked_exit_code);
    else
        end_trace(finalize_was_called ? "finalize" : "end", -1);
}

void phase_forked_child(void)
{
    if (phase == PHASE_OUTPUT && begun_by != BEGUN_BY_QUESTION)
        tool_warn("the program forked while it wrote a checkpoint; what the child writes is not "
                  "seen, so that it counts as needed");
    trace_abandon();
    enter(PHASE_ENDED);
}
