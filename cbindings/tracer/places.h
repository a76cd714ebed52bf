/* places.h - memory that stands for bytes of checkpoint files.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * A place is one byte of memory from the moment that it holds a value that matters until its first
 * access. It has a number that stays when the memory moves; numbers are never used again. Knows
 * the shadow, and nothing of files.
 *
 * What is known of a place is in one of three states:
 *   pending    it is in the map (address -> place), and the shadow says SHADOW_PENDING
 *   accessed   it is in the map, and the shadow says read or written
 *   settled    it is not in the map but in the list of places_take_settled()
 *   held       it is not in the map, and nothing is told of it until places_release_held()
 * places_collect() turns accessed into settled. A phase that follows copies lets the shadow alone
 * but for uses (SHADOW_READ), so until its end the map shows what was pending when it began.
 */
#ifndef SCR_CRIT_TRACER_PLACES_H
#define SCR_CRIT_TRACER_PLACES_H

#include "intervals.h"
#include "spans.h"
#include "trace_file.h"

/* What became of a place, as the `to` of a span: state and reason in the high bits, and below them
 * the low bits of the span's start, so that spans of one outcome join. */
static inline ULong outcome_at(run_state state, run_reason reason, ULong start)
{
    return (ULong)state << 62 | (ULong)reason << 56 | (start & ((1ULL << 56) - 1));
}
static inline run_state outcome_state(ULong outcome)
{
    return (run_state)(outcome >> 62);
}
static inline run_reason outcome_reason(ULong outcome)
{
    return (run_reason)(outcome >> 56 & 0x3f);
}

/* The piece at address that is in the map: its length, at most limit, and its first place; 0 where
 * address is not in the map. */
ULong places_piece(Addr address, ULong limit, ULong *place);
/* The first piece at or behind `from` that begins before `end`. */
Bool places_first(Addr from, Addr end, Addr *start, ULong *length, ULong *place);
/* These bytes are watched: those not in the map get new places. Nothing there may be accessed but
 * not collected. */
void places_watch(Addr address, ULong bytes);
/* Whatever is in the map there has come to an end. */
void places_settle(Addr address, ULong bytes, run_state state, run_reason reason);
/* Likewise, for memory that is gone; held. */
void places_hold(Addr address, ULong bytes);
/* Held becomes settled as dead. */
void places_release_held(void);
/* Accessed becomes settled: everywhere, or in a range. */
void places_collect(void);
void places_collect_range(Addr address, ULong bytes);
/* Memory moves, in PHASE_TRACK; the shadow goes along. */
void places_move(Addr from, Addr to, ULong bytes);
/* Settled since the last call; sorted and disjoint; the caller frees it. */
spans *places_take_settled(void);
ULong places_settled_count(void); /* entries waiting */

#endif
