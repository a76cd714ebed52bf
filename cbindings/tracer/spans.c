/* spans.c - lists of spans.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "spans.h"

static Int by_start(const void *left, const void *right)
{
    const span *a = left, *b = right;
    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    if (a->to != b->to)
        return a->to < b->to ? -1 : 1;
    return 0;
}

spans *spans_new(void)
{
    spans *list = VG_(newXA)(VG_(malloc), "spans", VG_(free), sizeof(span));
    VG_(setCmpFnXA)(list, by_start);
    return list;
}

void spans_free(spans *list)
{
    VG_(deleteXA)(list);
}

void spans_add(spans *list, ULong start, ULong length, ULong to)
{
    if (length == 0)
        return;
    Word n = VG_(sizeXA)(list);
    if (n > 0) {
        span *last = VG_(indexXA)(list, n - 1);
        if (last->start + last->length == start && last->to + last->length == to) {
            last->length += length;
            return;
        }
    }
    span added = {start, length, to};
    VG_(addToXA)(list, &added);
}

void spans_sort(spans *list)
{
    ULong n = spans_count(list);
    for (ULong i = 1; i < n; i++) { /* most lists come sorted, and then a sort is a waste */
        span before = spans_at(list, i - 1), after = spans_at(list, i);
        if (by_start(&before, &after) > 0) {
            VG_(sortXA)(list);
            return;
        }
    }
}

spans *spans_turned(const spans *list)
{
    spans *turned = spans_new();
    for (ULong i = 0; i < spans_count(list); i++) {
        span s = spans_at(list, i);
        spans_add(turned, s.to, s.length, s.start);
    }
    spans_sort(turned);
    return turned;
}

spans *spans_union(const spans *list)
{
    spans *covered = spans_new();
    ULong end = 0;
    for (ULong i = 0; i < spans_count(list); i++) {
        span s = spans_at(list, i);
        ULong stop = s.start + s.length;
        ULong from = i > 0 && s.start < end ? end : s.start;
        if (stop > from)
            spans_add(covered, from, stop - from, from);
        if (stop > end)
            end = stop;
    }
    return covered;
}

/* The spans of one list that may still overlap what comes. */
typedef struct {
    span *open;
    UWord count;
    UWord room;
} front;

static void front_add(front *at, span s)
{
    if (at->count == at->room) {
        at->room = at->room ? 2 * at->room : 64;
        at->open = VG_(realloc)("spans.front", at->open, at->room * sizeof(span));
    }
    at->open[at->count++] = s;
}

/* s begins now: pair it with the other list's open spans, and drop those that ended. Each look is a
 * pair found or a span dropped for good. */
static void meet(front *other, span s, Bool s_is_a, spans_visit visit, void *closure)
{
    for (UWord i = 0; i < other->count;) {
        span o = other->open[i];
        ULong stop = o.start + o.length;
        if (stop <= s.start) {
            other->open[i] = other->open[--other->count];
            continue;
        }
        if (stop > s.start + s.length)
            stop = s.start + s.length;
        ULong other_to = o.to + (s.start - o.start);
        visit(closure, s.start, stop - s.start, s_is_a ? s.to : other_to, s_is_a ? other_to : s.to);
        i++;
    }
}

void spans_join(const spans *a, const spans *b, spans_visit visit, void *closure)
{
    front open_a = {0}, open_b = {0};
    ULong i = 0, j = 0, n = spans_count(a), m = spans_count(b);
    while (i < n || j < m) {
        /* Behind the end of one list with none open, nothing more can overlap. */
        if ((i == n && open_a.count == 0) || (j == m && open_b.count == 0))
            break;
        Bool take_a = j == m || (i < n && spans_at(a, i).start <= spans_at(b, j).start);
        span s = take_a ? spans_at(a, i++) : spans_at(b, j++);
        meet(take_a ? &open_b : &open_a, s, take_a, visit, closure);
        front_add(take_a ? &open_a : &open_b, s);
    }
    VG_(free)(open_a.open);
    VG_(free)(open_b.open);
}

void spans_cut(const spans *list, const spans *cuts, spans_visit visit, void *closure, spans *rest)
{
    ULong first = 0, n = spans_count(list), m = spans_count(cuts);
    for (ULong i = 0; i < n; i++) {
        span s = spans_at(list, i);
        ULong at = s.start, end = s.start + s.length;
        while (first < m && spans_at(cuts, first).start + spans_at(cuts, first).length <= s.start)
            first++;
        for (ULong j = first; j < m && at < end; j++) {
            span c = spans_at(cuts, j);
            if (c.start >= end)
                break;
            ULong from = c.start > at ? c.start : at;
            ULong stop = c.start + c.length < end ? c.start + c.length : end;
            if (rest)
                spans_add(rest, at, from - at, s.to + (at - s.start));
            if (visit)
                visit(closure, from, stop - from, s.to + (from - s.start), c.to + (from - c.start));
            at = stop;
        }
        if (rest)
            spans_add(rest, at, end - at, s.to + (at - s.start));
    }
    if (rest)
        spans_sort(rest);
}
