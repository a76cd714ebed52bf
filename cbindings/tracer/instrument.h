/* instrument.h - the two instrumentations of a superblock.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef SCR_CRIT_TRACER_INSTRUMENT_H
#define SCR_CRIT_TRACER_INSTRUMENT_H

#include "tool.h"

/* PHASE_TRACK: loads and stores go to the shadow (instrument_accesses.c). */
IRSB *instrument_accesses(IRSB *block, const VexGuestLayout *layout);
/* PHASE_OUTPUT and PHASE_RESTART: origins follow copies (instrument_copies.c). */
IRSB *instrument_copies(IRSB *block, const VexGuestLayout *layout);

/* This thread's loads count as writes from now on, or no longer (requests.h); for both. */
void instrument_loads_are_writes(ThreadId tid, Bool on);
/* Whether the present thread's loads count as writes; kept right over thread switches. */
extern Bool instrument_loads_write;

/* VG_(track_start_client_code): tid runs from now on. */
void instrument_thread_runs(ThreadId tid, ULong blocks);
/* A signal is delivered to a handler of the program (called by registers.c, which has Valgrind's
 * one event of that). When it is a fault, accesses of the superblock that it struck may be
 * unreported: everything that is undecided is read, and from then on each access is reported before
 * it happens. */
void instrument_signal_delivered(Int number);

#endif
