/* origins.h - where the bytes in memory and registers came from, while copies are followed.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * In PHASE_OUTPUT and PHASE_RESTART every byte of memory and of each thread's guest registers has
 * an origin. A memory byte that nobody wrote in this phase is its own origin: its address. A copy
 * keeps the origin; any other use is reported once with watch_use(). Method: DESIGN section 6.
 */
#ifndef SCR_CRIT_TRACER_ORIGINS_H
#define SCR_CRIT_TRACER_ORIGINS_H

#include "intervals.h"

/* Register events of threads, signals and system calls; in pre_clo_init. */
void origins_init(void);
/* A phase begins: all memory is its own origin, registers are of unknown (harmless) origin. */
void origins_begin(void);
/* Free what the phase held, at its end. */
void origins_end(void);

/* As intervals_piece, for memory: never ORIGIN_NONE (an address stands for itself). */
SizeT origins_piece(Addr address, SizeT limit, ULong *origin);
/* Memory was overwritten with bytes of this origin (a system call, a read of a file). Reports
 * watch_stored first. */
void origins_overwrite(Addr address, SizeT bytes, ULong origin);
/* Memory moved (realloc): origins go along. */
void origins_move(Addr from, Addr to, SizeT bytes);
/* Memory is gone (free, munmap): nothing stands there any more. */
void origins_forget(Addr address, SizeT bytes);
/* What stands there is used otherwise than copied (a system call reads it). */
void origins_use(Addr address, SizeT bytes);
/* Values that live on in registers are used: callee-saved ones of `tid`, which is inside a call,
 * and all of the other threads. At the end of a phase. */
void origins_use_registers(ThreadId tid);
/* Intervals of memory that was written in this phase (key: address), for the aliases at its end. */
const intervals *origins_written(void);

#endif
