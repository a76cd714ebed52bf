/* blocks.h - the program's heap blocks, with the call stack that allocated them.
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
/* Number of the heap block that holds address, as the trace names it (the trace gets its line when
 * it is first asked for), or -1; start and bytes (optional, out) say where the block is. */
Long blocks_find(Addr address, Addr *start, SizeT *bytes);

#endif
