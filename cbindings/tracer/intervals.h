/* intervals.h - a map from integers (addresses, file offsets) to origins, stored as intervals.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * An interval [start, start + length) holds the origin of its first element; element k has
 * origin_at(origin, k). Neighbours that continue each other are one interval. Knows nothing of
 * programs or files. Tests: tests/tracer/c/test_intervals.c (built without Valgrind).
 */
#ifndef SCR_CRIT_TRACER_INTERVALS_H
#define SCR_CRIT_TRACER_INTERVALS_H

#include "tool.h"

/* Where a byte came from, unchanged. */
#define ORIGIN_NONE 0ULL
/* a memory address (below 2^62): what stood there when the present phase began */
#define ORIGIN_DERIVED (1ULL << 62) /* computed, or of unknown source: nothing to follow */
#define ORIGIN_FILE (1ULL << 63)    /* | position in the space of restart files (files.h) */

static inline Bool origin_is_file(ULong origin)
{
    return (origin & ORIGIN_FILE) != 0;
}
static inline Bool origin_is_memory(ULong origin)
{
    return origin != ORIGIN_NONE && origin < ORIGIN_DERIVED;
}
static inline ULong origin_at(ULong origin, ULong k)
{
    return origin_is_file(origin) || origin_is_memory(origin) ? origin + k : origin;
}

typedef struct intervals intervals;

/* cost_centre names the memory in Valgrind's own statistics; a static string. */
intervals *intervals_new(const HChar *cost_centre);
void intervals_free(intervals *map); /* NULL allowed */
void intervals_clear(intervals *map);
/* Overwrite [start, start + length); ORIGIN_NONE removes. */
void intervals_set(intervals *map, ULong start, ULong length, ULong origin);
/* The piece that begins at `start` and ends where the origin stops continuing, or at start + limit:
 * its length (at least 1 for limit >= 1) and the origin of its first element. A gap is a piece of
 * ORIGIN_NONE. */
ULong intervals_piece(const intervals *map, ULong start, ULong limit, ULong *origin);
/* First interval that ends behind `from`: False if there is none. Walks a map of unknown extent. */
Bool intervals_first(const intervals *map, ULong from, ULong *start, ULong *length, ULong *origin);
/* Bytes of memory that the map takes. */
ULong intervals_memory(const intervals *map);

#endif
