/* trace_file.h - writes PREFIX.trace and PREFIX.runs (docs/trace-format.md).
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef SCR_CRIT_TRACER_TRACE_FILE_H
#define SCR_CRIT_TRACER_TRACE_FILE_H

#include "tool.h"

/* Open both; exits with a message when that fails. */
void trace_open(const HChar *prefix);
/* A line of PREFIX.trace: a keyword and fields. Text is escaped (%XX) where it holds blanks, '%' or
 * control characters. */
void trace_line(const HChar *format, ...); /* numbers and fixed words */
void trace_text_line(const HChar *key, const HChar *const *texts, UInt count);

typedef enum { RUN_SOURCE = 1, RUN_STATE = 2 } run_kind;
typedef enum { STATE_CRITICAL = 0, STATE_DEAD = 2, STATE_UNUSED = 3 } run_state; /* ElementState */
typedef enum {
    REASON_READ = 0,    /* read first */
    REASON_USED = 1,    /* used while the checkpoint was written or read */
    REASON_DERIVED = 2, /* computed, or of unknown source */
    REASON_SHARED = 3,  /* others can read it unseen */
    REASON_WRITTEN = 4, /* overwritten first */
    REASON_GONE = 5,    /* freed or unmapped first */
    REASON_NEVER = 6,   /* not touched until the end of the trace */
    REASON_MOVED = 7    /* mremap */
} run_reason;
/* Bytes [offset, offset + length) of a file came from (PHASE_OUTPUT) or stood at (PHASE_RESTART)
 * this address; heap block number or -1. */
void trace_source(UInt file, ULong offset, ULong length, Addr address, Long block);
void trace_state(UInt file, ULong offset, ULong length, run_state state, run_reason reason);

/* Path of the traced program, absolute, links followed. */
const HChar *trace_program(void);
/* Write the last lines and "end", and close. Never called for a trace that is not whole. */
void trace_close(void);
/* This process is a forked child: it writes nothing more. */
void trace_abandon(void);

#endif
