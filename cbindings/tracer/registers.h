/* registers.h - the origins of every thread's guest registers.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The registers of the thread that runs are the first slots (slots.h); those of the others are kept
 * here. Only registers for values carry origins: integer, floating point and vector ones, and what
 * flags are computed from. The stack pointer and modes do not; a value that is put there is used.
 */
#ifndef SCR_CRIT_TRACER_REGISTERS_H
#define SCR_CRIT_TRACER_REGISTERS_H

#include "tool.h"

#include <libvex_ir.h>

/* Events of threads, signals and system calls; in pre_clo_init. */
void registers_init(void);
/* All registers of all threads are of unknown origin; memory is released. */
void registers_clear(void);
/* The present thread's registers become the slots; called by each block first. */
VG_REGPARM(0) void registers_enter_call(void);

/* Whether the register at this offset of the guest state carries origins. */
Bool registers_carry(Int offset);
/* Whether it is part of what the processor's flags are computed from, if anybody asks for them. */
Bool registers_flags(Int offset);
/* What the kernel or the tool's core writes when a block ends with this kind of jump: offsets,
 * ended by -1. */
const Int *registers_lost_by(IRJumpKind jump);
/* The register that points to a client request's arguments. */
Int registers_request(void);

/* What callee-saved registers of `tid` hold is used, and what all registers of the others hold. */
void registers_use(ThreadId tid);

#endif
