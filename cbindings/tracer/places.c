/* places.c - memory that stands for bytes of checkpoint files.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "places.h"

#include "shadow.h"

static intervals *map; /* address -> place */
static spans *settled; /* place -> outcome */
static spans *held;    /* place -> the outcome that it would have */
static ULong next_place = 1;

static intervals *the_map(void)
{
    if (!map)
        map = intervals_new("places.map");
    return map;
}

static void add_outcome(spans **list, ULong place, ULong length, run_state state, run_reason reason)
{
    if (!*list)
        *list = spans_new();
    spans_add(*list, place, length, outcome_at(state, reason, place));
}

ULong places_piece(Addr address, ULong limit, ULong *place)
{
    ULong length = intervals_piece(the_map(), address, limit, place);
    return *place == ORIGIN_NONE ? 0 : length;
}

/* By pieces of what is asked for: an interval may be far longer, and is walked at a cost. */
Bool places_first(Addr from, Addr end, Addr *start, ULong *length, ULong *place)
{
    while (from < end) {
        *length = intervals_piece(the_map(), from, end - from, place);
        if (*place != ORIGIN_NONE) {
            *start = from;
            return True;
        }
        from += *length;
    }
    return False;
}

void places_watch(Addr address, ULong bytes)
{
    for (ULong done = 0; done < bytes;) {
        ULong place;
        ULong length = intervals_piece(the_map(), address + done, bytes - done, &place);
        if (place == ORIGIN_NONE) {
            intervals_set(the_map(), address + done, length, next_place);
            shadow_watch(address + done, length);
            next_place += length;
        }
        done += length;
    }
}

static void unwatch(Addr start, ULong length)
{
    intervals_set(the_map(), start, length, ORIGIN_NONE);
    /* Nobody asks any more: an access there need not be looked at. */
    shadow_write(start, length);
}

static void settle_piece(Addr start, ULong length, ULong place, run_state state, run_reason reason)
{
    add_outcome(&settled, place, length, state, reason);
    unwatch(start, length);
}

void places_settle(Addr address, ULong bytes, run_state state, run_reason reason)
{
    Addr end = address + bytes, start;
    ULong length, place;
    while (places_first(address, end, &start, &length, &place)) {
        settle_piece(start, length, place, state, reason);
        address = start + length;
    }
}

void places_hold(Addr address, ULong bytes)
{
    Addr end = address + bytes, start;
    ULong length, place;
    while (places_first(address, end, &start, &length, &place)) {
        add_outcome(&held, place, length, STATE_DEAD, REASON_GONE);
        unwatch(start, length);
        address = start + length;
    }
}

void places_release_held(void)
{
    for (ULong i = 0; held && i < spans_count(held); i++) {
        span s = spans_at(held, i);
        add_outcome(&settled, s.start, s.length, STATE_DEAD, REASON_GONE);
    }
    if (held)
        spans_free(held);
    held = NULL;
}

static void collect_piece(Addr start, ULong length, ULong place)
{
    for (ULong done = 0; done < length;) {
        shadow_state state;
        SizeT piece = shadow_piece(start + done, length - done, &state);
        if (state == SHADOW_READ)
            settle_piece(start + done, piece, place + done, STATE_CRITICAL, REASON_READ);
        else if (state == SHADOW_WRITTEN)
            settle_piece(start + done, piece, place + done, STATE_DEAD, REASON_WRITTEN);
        else if (state == SHADOW_NONE) /* lost: nothing is known */
            settle_piece(start + done, piece, place + done, STATE_CRITICAL, REASON_DERIVED);
        done += piece;
    }
}

void places_collect_range(Addr address, ULong bytes)
{
    Addr end = address + bytes, start;
    ULong length, place;
    while (places_first(address, end, &start, &length, &place)) {
        collect_piece(start, length, place);
        address = start + length;
    }
}

void places_collect(void)
{
    places_collect_range(0, ~(ULong)0 >> 2);
}

void places_move(Addr from, Addr to, ULong bytes)
{
    places_collect_range(from, bytes);
    spans *pieces = spans_new(); /* offset -> place */
    Addr at = from, start;
    ULong length, place;
    while (places_first(at, from + bytes, &start, &length, &place)) {
        spans_add(pieces, start - from, length, place);
        at = start + length;
    }
    shadow_move(from, to, bytes);
    intervals_set(the_map(), from, bytes, ORIGIN_NONE);
    for (ULong i = 0; i < spans_count(pieces); i++) {
        span s = spans_at(pieces, i);
        intervals_set(the_map(), to + s.start, s.length, s.to);
    }
    spans_free(pieces);
}

spans *places_take_settled(void)
{
    spans *taken = settled ? settled : spans_new();
    settled = NULL;
    spans_sort(taken);
    return taken;
}

ULong places_settled_count(void)
{
    return settled ? spans_count(settled) : 0;
}
