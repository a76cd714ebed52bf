/* watch_output.c - the end of PHASE_OUTPUT: a generation from what was written.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Every file byte has an origin. Its places are the memory at that origin, if it still holds its
 * value, and every copy of it. A byte without a place (its memory was overwritten in the phase, and
 * no copy is left) is critical: what it meant to the program cannot be seen any more.
 */
#include "block_lines.h"
#include "blocks.h"
#include "copies.h"
#include "files.h"
#include "generations.h"
#include "origins.h"
#include "phase.h"
#include "places.h"
#include "trace_file.h"
#include "watch_phase.h"

#include <pub_tool_aspacemgr.h>

/* The values of the generation are its origins. */
typedef struct {
    generation *made;
    spans *places;   /* address -> value */
    spans *in_copy;  /* values with a place that is a copy; to: the same */
    spans *homeless; /* values whose origin was overwritten; to: the same */
} making;

/* The piece at an origin that lies in memory which nothing can write, or not: a constant of the
 * program is no state, and no access tells whether the restart wants it. */
static ULong constant_piece(Addr address, ULong limit, Bool *is_constant)
{
    const NSegment *segment = VG_(am_find_nsegment)(address);
    *is_constant =
        segment && (segment->kind == SkFileC || segment->kind == SkAnonC) && !segment->hasW;
    if (segment && segment->end - address < limit)
        limit = segment->end - address + 1;
    return limit;
}

static void take_origin(generation *made, Addr origin, ULong length, ULong position)
{
    for (ULong done = 0; done < length;) {
        Bool used, is_constant;
        ULong piece = constant_piece(origin + done, length - done, &is_constant);
        piece = watch_used_piece(origin + done, piece, &used);
        if (is_constant)
            generation_decide(made, position + done, piece, STATE_CRITICAL, REASON_DERIVED);
        else if (used)
            generation_decide(made, position + done, piece, STATE_CRITICAL, REASON_USED);
        else
            generation_add_position(made, origin + done, piece, position + done);
        done += piece;
    }
}

static void take_file(generation *made, trace_file *file)
{
    ULong base = generation_add_file(made, files_number(file), files_size(file));
    ULong from = 0, start, length, origin;
    while (intervals_first(files_content(file), from, &start, &length, &origin)) {
        if (origin_is_memory(origin)) {
            copies_tell_source(files_number(file), start, length, origin);
            take_origin(made, origin, length, base + start);
        } else {
            generation_decide(made, base + start, length, STATE_CRITICAL, REASON_DERIVED);
        }
        from = start + length;
    }
}

static void take_gone(void *closure, ULong value, ULong length, ULong same, ULong address)
{
    making *at = closure;
    (void)same, (void)address;
    spans_add(at->homeless, value, length, value);
}

static void take_fresh(void *closure, ULong value, ULong length, ULong same, ULong address)
{
    const making *at = closure;
    (void)same, (void)address;
    generation_decide_value(at->made, value, length, STATE_CRITICAL, REASON_DERIVED);
}

static void take_values(making *at, const spans *values)
{
    spans *old = spans_new(), *there = spans_new();
    spans_cut(values, watch_fresh_spans(), take_fresh, at, old);
    spans_cut(old, watch_gone_spans(), take_gone, at, there);
    spans_free(old);
    for (ULong i = 0; i < spans_count(there); i++) {
        span s = spans_at(there, i);
        for (ULong done = 0; done < s.length;) {
            Bool intact;
            ULong value = s.start + done;
            ULong piece = watch_intact_piece(value, s.length - done, &intact);
            spans_add(intact ? at->places : at->homeless, value, piece, value);
            done += piece;
        }
    }
    spans_free(there);
    spans_sort(at->homeless);
}

static void take_copy(void *closure, ULong origin, ULong length, ULong address, ULong value)
{
    making *at = closure;
    (void)origin;
    spans_add(at->places, address, length, value);
    spans_add(at->in_copy, value, length, value);
}

static void decide_homeless(making *at)
{
    spans_sort(at->in_copy);
    spans *covered = spans_union(at->in_copy), *lost = spans_new();
    spans_cut(at->homeless, covered, NULL, NULL, lost);
    for (ULong i = 0; i < spans_count(lost); i++) {
        span s = spans_at(lost, i);
        generation_decide_value(at->made, s.start, s.length, STATE_CRITICAL, REASON_DERIVED);
    }
    spans_free(covered);
    spans_free(lost);
}

static void make_generation(const spans *copies)
{
    making at = {generation_new(), spans_new(), spans_new(), spans_new()};
    copies_tell_generation(phase_is_dump() ? "dump" : "output");
    for (UInt n = 0; n < files_count(); n++)
        take_file(at.made, files_nth(n));
    spans *values = generation_values(at.made);
    take_values(&at, values);
    spans_cut(copies, values, take_copy, &at, NULL);
    decide_homeless(&at);
    copies_watch(at.made, at.places);
    spans_free(values);
    spans_free(at.places);
    spans_free(at.in_copy);
    spans_free(at.homeless);
}

void watch_output_ended(ThreadId tid)
{
    (void)tid;
    spans *copies = copies_of_memory();
    watch_phase_settled(copies);
    if (files_count() > 0)
        make_generation(copies);
    spans_free(copies);
    watch_phase_finished();
}
