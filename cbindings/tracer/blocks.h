/* blocks.h - the program's heap blocks and mappings, with the call stack that made them.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Replaces malloc and its kin (VG_(needs_malloc_replacement)); tells watch and origins of blocks
 * that go or move.
 */
#ifndef SCR_CRIT_TRACER_BLOCKS_H
#define SCR_CRIT_TRACER_BLOCKS_H

#include "tool.h"

void blocks_init(void); /* registers the replacement; in pre_clo_init */
/* Number of the block that holds address, as the trace names it (the trace gets its line when it is
 * first asked for), or -1: static memory, a stack, or unknown. start and bytes (optional, out) say
 * where the block is. In PHASE_OUTPUT a block that was freed since the phase began is found, too:
 * an origin is an address of the phase's begin. */
Long blocks_find(Addr address, Addr *start, SizeT *bytes);
/* A phase that follows copies is over: blocks freed in it are forgotten. */
void blocks_phase_ended(void);
/* The program mapped memory (mmap), or it is no longer there. */
void blocks_mapped(ThreadId tid, Addr address, SizeT bytes);
void blocks_unmapped(Addr address, SizeT bytes);
/* Blocks that the trace named since the last call: for the search for their roots. */
void blocks_newly_named(void (*visit)(void *closure, Addr start, Long number), void *closure);

#endif
