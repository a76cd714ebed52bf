/* spans.h - lists of spans: [start, start + length) stands for [to, to + length).
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Plain sorted arrays, for work in one sweep over everything at the end of a phase. Spans of a list
 * may overlap unless said otherwise. Knows nothing of programs or files.
 */
#ifndef SCR_CRIT_TRACER_SPANS_H
#define SCR_CRIT_TRACER_SPANS_H

#include "tool.h"

#include <pub_tool_xarray.h>

typedef struct {
    ULong start;
    ULong length;
    ULong to;
} span;

typedef XArray spans; /* of span */

spans *spans_new(void);
void spans_free(spans *list);
/* Appends; joined with the last one where it goes on in both senses. */
void spans_add(spans *list, ULong start, ULong length, ULong to);
static inline ULong spans_count(const spans *list)
{
    return VG_(sizeXA)(list);
}
static inline span spans_at(const spans *list, ULong index)
{
    return *(const span *)VG_(indexXA)(list, index);
}
/* By start. */
void spans_sort(spans *list);
/* A new list, sorted, with start and to exchanged. */
spans *spans_turned(const spans *list);
/* A new list, disjoint and sorted, of what any span of the (sorted) list covers; its `to` is its
 * start. */
spans *spans_union(const spans *list);

/* All overlaps of two sorted lists: [start, start + length) stands for to_a + ... in a and for
 * to_b + ... in b. Takes time for the lists and for what it finds, no more. */
typedef void (*spans_visit)(void *closure, ULong start, ULong length, ULong to_a, ULong to_b);
void spans_join(const spans *a, const spans *b, spans_visit visit, void *closure);

/* Cuts the spans of a sorted list by a disjoint sorted list: overlaps are visited (to_b is cuts'
 * `to` at that point), what remains is appended to rest (may be NULL), sorted. visit may be NULL.
 */
void spans_cut(const spans *list, const spans *cuts, spans_visit visit, void *closure, spans *rest);

#endif
