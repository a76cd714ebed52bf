/* watch.h - which watched memory stands for which file bytes, and what became of them.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The end of a phase makes a generation: every file byte of that checkpoint with the places that
 * hold its value. Where a place is read first, the byte is critical; where all are overwritten
 * first, dead; where none is read and some is never touched, unused. A place counts for every
 * generation whose value it still holds. Results go to the trace file as soon as they are known.
 */
#ifndef SCR_CRIT_TRACER_WATCH_H
#define SCR_CRIT_TRACER_WATCH_H

#include "intervals.h"

/* While a phase follows copies (called by origins and the system calls): */
/* Bytes of this origin were used otherwise than copied: critical, also in earlier generations. */
void watch_use(ULong origin, SizeT bytes);
/* Bytes of this origin were stored in memory. Where others see that memory, they are used. (What
 * was there before may live on elsewhere: it is settled at the phase's end, from
 * origins_written().) */
void watch_stored(Addr address, SizeT bytes, ULong origin);

/* In any phase: */
/* The program goes on: a step ended, or a checkpoint or restart begins. */
void watch_mark(void);
/* Memory is gone (free, munmap): what was pending there is dead if a mark follows. If none does,
 * the program merely ended, and it was never touched. */
void watch_gone(Addr address, SizeT bytes);
/* Memory is mapped anew, and holds what the kernel put there. */
void watch_fresh(Addr address, SizeT bytes);
/* Memory moved: watched places go along. While copies are followed, origins_move() has to tell
 * where the bytes went. */
void watch_moved(Addr from, Addr to, SizeT bytes);
/* Pages moved (mremap): critical. */
void watch_remapped(Addr from, Addr to, SizeT bytes);
/* Others read and write it unseen: critical in every generation that has it as a place. */
void watch_shared(Addr address, SizeT bytes);
/* Memory that others could access until now. (What watch_shared() told of ends by watch_gone().) */
void watch_was_shared(Addr address, SizeT bytes);

/* The end of a phase: a generation from what files.h and origins.h hold. With no file there is none
 * but what the phase did to earlier ones is settled: also for a phase that is given up. */
void watch_output_ended(ThreadId tid);
void watch_restart_ended(ThreadId tid);

/* Write everything that is still undecided as unused; then the trace can be closed. */
void watch_finish(void);

/* For reports: undecided bytes of files, all generations. */
ULong watch_undecided(void);

#endif
