/* phase.h - what the traced program is doing with its checkpoints, and so what is instrumented.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef SCR_CRIT_TRACER_PHASE_H
#define SCR_CRIT_TRACER_PHASE_H

#include "tool.h"

typedef enum {
    PHASE_IDLE,    /* nothing is watched: no instrumentation */
    PHASE_TRACK,   /* the first access to each watched byte decides (instrument_accesses.c) */
    PHASE_OUTPUT,  /* a checkpoint is being written: copies are followed (instrument_copies.c) */
    PHASE_RESTART, /* a checkpoint is being read: bytes read from its files are followed */
    PHASE_ENDED    /* --until-flat: the trace is complete, the program goes on uninstrumented */
} trace_phase;

extern trace_phase phase;

/* Whether copies are followed now: PHASE_OUTPUT or PHASE_RESTART. */
static inline Bool phase_follows(void)
{
    return phase == PHASE_OUTPUT || phase == PHASE_RESTART;
}

/* Whether the checkpoint that is being written is a dump outside SCR's brackets (--dump). */
Bool phase_is_dump(void);

/* Instrument everything anew; in client requests, system calls and signals, not in translated
 * code. */
void phase_discard_translations(void);

/* Events of the preload (SCR) and of system calls (dump files). Each ignores what does not fit the
 * present phase, with a warning where the user can do something about it. A change of phase
 * discards all translations. */
/* flags are SCR's: a dataset that is output (too) is needed whole and is no checkpoint here. */
void phase_output_started(ThreadId tid, const HChar *dataset, UWord flags);
void phase_output_completing(ThreadId tid, Bool valid);
void phase_restart_started(ThreadId tid, const HChar *dataset);
void phase_restart_completing(ThreadId tid, Bool valid);
void phase_checkpoint_asked(ThreadId tid, Bool answer); /* a step ended */
void phase_routed(const HChar *name, const HChar *path);
void phase_finalizing(void);
void phase_dump_opened(ThreadId tid, const HChar *path);
void phase_dump_closed(ThreadId tid);
/* The program asks to exit: exit_group, or (last thread only) exit. Without this call before its
 * end it was killed, and the trace does not tell what it would have accessed. */
void phase_exit_asked(Int exit_code);
void phase_program_ended(void);
/* This process is a forked child: it is not traced. */
void phase_forked_child(void);

#endif
