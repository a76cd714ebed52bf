/* generations.h - checkpoints that were traced: which places stand for their bytes, and the
 * verdicts.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Three spaces of numbers, so that neither a value written to many offsets nor one that stands in
 * much memory costs the product of both:
 *   place      a byte of memory that is watched (places.h)
 *   value      what places hold and files hold; numbered by whoever makes the generation
 *   position   a byte of the generation's files, which lie one behind the other
 * A value may have several places and several positions; a place has one value in a generation (but
 * may be a place in many generations); a position has one value. Verdicts go to the trace file,
 * merged, as soon as places are settled.
 */
#ifndef SCR_CRIT_TRACER_GENERATIONS_H
#define SCR_CRIT_TRACER_GENERATIONS_H

#include "spans.h"
#include "trace_file.h"

typedef struct generation generation;

generation *generation_new(void);
/* Returns the position of the file's first byte. number: as the trace names it. */
ULong generation_add_file(generation *made, UInt number, ULong size);
/* Bytes of the files have these values. */
void generation_add_position(generation *made, ULong value, ULong length, ULong position);
/* The values that have a position, sorted and disjoint; the caller frees it. After the last
 * generation_add_position. */
spans *generation_values(generation *made);
/* A place holds a value. */
void generation_add_place(generation *made, ULong place, ULong length, ULong value);
/* What became of bytes of the files, or of all that have a value. */
void generation_decide(generation *made, ULong position, ULong length, run_state state,
                       run_reason reason);
void generation_decide_value(generation *made, ULong value, ULong length, run_state state,
                             run_reason reason);
/* The generation is complete, and verdicts go out. */
void generation_made(generation *made);

/* In all generations: what a place stood for (start), another stands for, too (to). Sorted. */
void generations_add_aliases(const spans *aliases);
/* In all generations: places came to an end (places.h). Sorted, disjoint. */
void generations_settle(const spans *settled);
/* Bytes of files that are not critical and have a place left. */
ULong generations_undecided(void);
/* What has a place left is unused. Nothing is left. */
void generations_finish(void);

#endif
