/* generations.h - checkpoints that were traced: which places stand for their bytes, and the verdicts.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The files of a generation lie one behind the other in a space of positions. Its items say which
 * place stands for which position; a position may have several, a place may stand for positions of
 * many generations. Verdicts go to the trace file, merged, as soon as the places are settled.
 */
#ifndef SCR_CRIT_TRACER_GENERATIONS_H
#define SCR_CRIT_TRACER_GENERATIONS_H

#include "spans.h"
#include "trace_file.h"

typedef struct generation generation;

generation *generation_new(void);
/* Returns the position of the file's first byte. number: as the trace names it. */
ULong generation_add_file(generation *made, UInt number, ULong size);
/* A place stands for bytes of the files. */
void generation_add_item(generation *made, ULong place, ULong length, ULong position);
/* Some position may have several places. */
void generation_has_several(generation *made);
/* What became of bytes of the files. */
void generation_decide(generation *made, ULong position, ULong length, run_state state,
                       run_reason reason);
/* The items are complete, and verdicts go out. */
void generation_made(generation *made);

/* In all generations: what a place stood for (start), another stands for, too (to). Sorted. */
void generations_add_aliases(const spans *aliases);
/* In all generations: places came to an end (places.h). Sorted, disjoint. */
void generations_settle(const spans *settled);
/* Bytes of files with an item left. */
ULong generations_undecided(void);
/* What has an item left is unused. Nothing is left. */
void generations_finish(void);

#endif
