/* watch.c - what happens to watched memory, and the end of a phase for the earlier generations.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * In PHASE_TRACK the shadow decides by itself; what leaves or moves is handled at once. A phase
 * that follows copies changes nothing but through uses, because a value that is overwritten may
 * live on as a copy, which is known for sure only at the end. There, in this order
 * (watch_phase_settled):
 *
 *   1. what was accessed before the phase or used in it is settled; what remains in the map of
 *      places was pending when the phase began, and its value is the origin "address"
 *   2. copies of such values are noted as aliases
 *   3. what was overwritten, or has gone, is settled as dead (what went after the last mark: held)
 *   4. the copies become places, and stand for all that the place they were copied from stood for
 *
 * No read is lost: a value that an earlier checkpoint holds is at each moment in places of its own
 * or in an origin that is followed, and each leads to READ. Tests:
 * tests/tracer/test_tracer_files.py.
 */
#include "watch.h"

#include "blocks.h"
#include "files.h"
#include "generations.h"
#include "origins.h"
#include "phase.h"
#include "places.h"
#include "shadow.h"
#include "shared_maps.h"
#include "watch_phase.h"

#include <pub_tool_xarray.h>

enum { SETTLED_MANY = 1 << 16, USED_SLOTS = 1 << 12 };

static intervals *used; /* in this phase; keys: memory origins */
/* In this phase; lists of address -> address, for reserved memory can be larger than all real. */
static spans *gone, *fresh;
static spans *gone_for_good; /* of gone: before a mark, or only moved */
static intervals *shared;    /* until it is gone; keys: addresses */

/* Words used in this phase, by hash: most uses are of few words, again and again. */
static ULong used_lately[USED_SLOTS];

static intervals *made(intervals **map)
{
    if (!*map)
        *map = intervals_new("watch");
    return *map;
}

/* ---- While copies are followed ---- */

static void use_of_file(ULong position, ULong bytes)
{
    while (bytes > 0) {
        trace_file *file;
        ULong offset;
        ULong piece = files_at(position, bytes, &file, &offset);
        files_use(file, offset, piece);
        position += piece;
        bytes -= piece;
    }
}

void watch_use(ULong origin, SizeT bytes)
{
    if (origin_is_file(origin)) {
        if (phase == PHASE_RESTART)
            use_of_file(origin & ~ORIGIN_FILE, bytes);
    } else if (origin_is_memory(origin) && bytes > 0) {
        /* a slot holds an address and, above it, a length: both must be those of this use */
        ULong *slot = &used_lately[(origin ^ origin >> 12) % USED_SLOTS];
        ULong mark = origin | (ULong)bytes << 48;
        if (bytes < 1 << 14 && *slot == mark)
            return;
        *slot = mark;
        shadow_read(origin, bytes);
        intervals_set(made(&used), origin, bytes, ORIGIN_DERIVED);
    }
}

/* Stored into a mapped file that is none of the checkpoint's so far: a temporary that is renamed
 * onto a routed name becomes one, which is known at the phase's end. */
typedef struct {
    ULong device, inode, origin, bytes;
} mapped_store;

static XArray *mapped_stores;

static void note_mapped_store(const shared_map *map, ULong origin, ULong bytes)
{
    if (!mapped_stores)
        mapped_stores = VG_(newXA)(VG_(malloc), "watch.mapped", VG_(free), sizeof(mapped_store));
    Word count = VG_(sizeXA)(mapped_stores);
    mapped_store *last = count > 0 ? VG_(indexXA)(mapped_stores, count - 1) : NULL;
    if (last && last->device == map->device && last->inode == map->inode &&
        origin == origin_at(last->origin, last->bytes)) {
        last->bytes += bytes;
        return;
    }
    mapped_store stored = {map->device, map->inode, origin, bytes};
    VG_(addToXA)(mapped_stores, &stored);
}

static void settle_mapped_stores(void)
{
    for (Word i = 0; mapped_stores && i < VG_(sizeXA)(mapped_stores); i++) {
        const mapped_store *stored = VG_(indexXA)(mapped_stores, i);
        if (!files_is_ours(stored->device, stored->inode))
            watch_use(stored->origin, stored->bytes);
    }
    if (mapped_stores)
        VG_(deleteXA)(mapped_stores);
    mapped_stores = NULL;
}

/* What of a store lies where others may read it at once, whatever becomes of it in this phase. A
 * checkpoint's file that is mapped is not such memory: it is what is being written. */
static void use_where_shared(Addr address, SizeT bytes, ULong origin)
{
    for (SizeT done = 0; done < bytes;) {
        ULong is_shared = ORIGIN_NONE;
        shared_map map;
        SizeT piece = shared_maps_piece(address + done, bytes - done, &map);
        if (shared)
            piece = intervals_piece(shared, address + done, piece, &is_shared);
        if (is_shared != ORIGIN_NONE || (map.length > 0 && map.inode == 0))
            watch_use(origin_at(origin, done), piece);
        else if (map.length > 0)
            note_mapped_store(&map, origin_at(origin, done), piece);
        done += piece;
    }
}

void watch_stored(Addr address, SizeT bytes, ULong origin)
{
    Bool known = origin_is_memory(origin) || origin_is_file(origin);
    if (known && (shared || shared_maps_near(address, bytes)))
        use_where_shared(address, bytes, origin);
}

/* ---- Memory that goes or moves ---- */

static void tell_settled(void)
{
    spans *settled = places_take_settled();
    generations_settle(settled);
    spans_free(settled);
}

static void end_places(Addr address, SizeT bytes, run_state state, run_reason reason)
{
    places_collect_range(address, bytes);
    places_settle(address, bytes, state, reason);
    if (places_settled_count() > SETTLED_MANY)
        tell_settled();
}

/* What was accessed before is told; of the rest nothing is known before a mark. */
static void hold_places(Addr address, SizeT bytes)
{
    places_collect_range(address, bytes);
    places_hold(address, bytes);
}

static void note(spans **list, Addr address, SizeT bytes)
{
    if (!*list)
        *list = spans_new();
    spans_add(*list, address, bytes, address);
}

static void note_all(spans **list, const spans *added)
{
    for (ULong i = 0; added && i < spans_count(added); i++)
        note(list, spans_at(added, i).start, spans_at(added, i).length);
}

void watch_mark(void)
{
    if (phase_follows())
        note_all(&gone_for_good, gone);
    places_release_held();
}

/* Others saw this memory, and may have read it, whatever became of it since: what stands there and
 * what stood there when the phase began. Elsewhere than in such a phase places in shared memory are
 * settled already. */
void watch_was_shared(Addr address, SizeT bytes)
{
    if (!phase_follows())
        return;
    origins_use(address, bytes);
    watch_use(address, bytes);
}

static void end_share(Addr address, SizeT bytes)
{
    for (SizeT done = 0; done < bytes;) {
        ULong is_shared;
        SizeT piece = intervals_piece(shared, address + done, bytes - done, &is_shared);
        if (is_shared != ORIGIN_NONE)
            watch_was_shared(address + done, piece);
        done += piece;
    }
    intervals_set(shared, address, bytes, ORIGIN_NONE);
}

void watch_gone(Addr address, SizeT bytes)
{
    if (bytes == 0)
        return;
    if (shared)
        end_share(address, bytes);
    if (phase_follows())
        note(&gone, address, bytes);
    else
        hold_places(address, bytes);
}

void watch_fresh(Addr address, SizeT bytes)
{
    watch_gone(address, bytes); /* whatever was mapped there before */
    if (phase_follows() && bytes > 0)
        note(&fresh, address, bytes);
}

void watch_moved(Addr from, Addr to, SizeT bytes)
{
    if (bytes == 0)
        return;
    if (phase_follows()) {
        note(&gone, from, bytes);
        note(&gone_for_good, from, bytes); /* the value stands elsewhere, and is followed there */
        return;
    }
    /* Where it comes to lie nothing is watched any more: that memory was free. */
    hold_places(to, bytes);
    places_move(from, to, bytes);
}

void watch_remapped(Addr from, Addr to, SizeT bytes)
{
    (void)to;
    if (phase_follows())
        watch_use(from, bytes);
    else
        end_places(from, bytes, STATE_CRITICAL, REASON_MOVED);
}

void watch_shared(Addr address, SizeT bytes)
{
    if (bytes == 0)
        return;
    intervals_set(made(&shared), address, bytes, ORIGIN_DERIVED);
    if (phase_follows())
        origins_use(address, bytes); /* also where a copy lies there */
    else
        end_places(address, bytes, STATE_CRITICAL, REASON_SHARED);
}

/* ---- The end of a phase ---- */

ULong watch_used_piece(Addr address, ULong limit, Bool *is_used)
{
    ULong origin;
    ULong length = intervals_piece(made(&used), address, limit, &origin);
    *is_used = origin != ORIGIN_NONE;
    return length;
}

ULong watch_intact_piece(Addr address, ULong limit, Bool *intact)
{
    ULong written;
    limit = intervals_piece(origins_written(), address, limit, &written);
    *intact = written == ORIGIN_NONE || written == address;
    return limit;
}

const spans *watch_gone_spans(void)
{
    return gone;
}

const spans *watch_fresh_spans(void)
{
    return fresh;
}

static void each_shared(void (*visit)(Addr start, ULong length))
{
    ULong from = 0, start, length, origin;
    for (; intervals_first(made(&shared), from, &start, &length, &origin); from = start + length)
        visit(start, length);
    for (UWord i = 0; i < shared_maps_count(); i++) {
        shared_map map = shared_maps_at(i);
        /* A checkpoint file that is written through a mapping: others see it as the file it is. */
        if (!files_is_ours(map.device, map.inode))
            visit(map.start, map.length);
    }
}

/* Step 1: what stood in shared memory and was overwritten; a copy of it is not all that stood for
 * the value. */
static void use_overwritten(Addr address, ULong bytes)
{
    for (ULong done = 0; done < bytes;) {
        Bool intact;
        ULong piece = watch_intact_piece(address + done, bytes - done, &intact);
        if (!intact)
            watch_use(address + done, piece);
        done += piece;
    }
}

/* Step 2: pending place -> address of a copy. */
static spans *noted_aliases(const spans *copies)
{
    spans *aliases = spans_new();
    for (ULong i = 0; i < spans_count(copies); i++) {
        span copy = spans_at(copies, i);
        Addr at = copy.start, end = copy.start + copy.length, start;
        ULong length, place;
        while (places_first(at, end, &start, &length, &place)) {
            spans_add(aliases, place, length, copy.to + (start - copy.start));
            at = start + length;
        }
    }
    return aliases;
}

/* Step 3. */
static void settle_overwritten(void)
{
    for (ULong i = 0; i < spans_count(gone_for_good); i++) {
        span s = spans_at(gone_for_good, i);
        places_settle(s.start, s.length, STATE_DEAD, REASON_GONE);
    }
    for (ULong i = 0; i < spans_count(gone); i++)
        places_hold(spans_at(gone, i).start, spans_at(gone, i).length);
    ULong from = 0, start, length, origin;
    for (; intervals_first(origins_written(), from, &start, &length, &origin);
         from = start + length) {
        if (origin != start) /* else it was put back where it had been */
            places_settle(start, length, STATE_DEAD, REASON_WRITTEN);
    }
}

/* Step 4. */
static void watch_aliases(const spans *noted)
{
    spans *aliases = spans_new();
    for (ULong i = 0; i < spans_count(noted); i++) {
        span alias = spans_at(noted, i);
        places_watch(alias.to, alias.length);
        for (ULong done = 0; done < alias.length;) {
            ULong place;
            ULong length = places_piece(alias.to + done, alias.length - done, &place);
            spans_add(aliases, alias.start + done, length, place);
            done += length;
        }
    }
    spans_sort(aliases);
    generations_add_aliases(aliases);
    spans_free(aliases);
}

static void tidy(spans **list)
{
    spans *noted = *list ? *list : spans_new();
    spans_sort(noted);
    *list = spans_union(noted);
    spans_free(noted);
}

void watch_phase_settled(const spans *copies)
{
    settle_mapped_stores();
    each_shared(use_overwritten);
    tidy(&gone);
    tidy(&gone_for_good);
    tidy(&fresh);
    places_collect();
    spans *noted = noted_aliases(copies);
    settle_overwritten();
    watch_aliases(noted);
    spans_free(noted);
}

static void settle_shared_range(Addr start, ULong length)
{
    Addr found;
    ULong bytes, place;
    if (!places_first(start, start + length, &found, &bytes, &place))
        return;
    tool_warn("Memory that other processes can access (a shared mapping, or an MPI window) holds "
              "checkpoint data: those bytes stay critical, since accesses by others are not seen.");
    places_settle(start, length, STATE_CRITICAL, REASON_SHARED);
}

void watch_phase_finished(void)
{
    each_shared(settle_shared_range);
    tell_settled();
    blocks_phase_ended();
    intervals_clear(made(&used));
    spans_free(gone);
    spans_free(gone_for_good);
    spans_free(fresh);
    gone = gone_for_good = fresh = NULL;
    VG_(memset)(used_lately, 0, sizeof used_lately);
}

void watch_finish(void)
{
    places_collect();
    tell_settled();
    generations_finish();
    places_settle(0, ~(ULong)0 >> 2, STATE_UNUSED, REASON_NEVER);
    spans_free(places_take_settled());
}

ULong watch_undecided(void)
{
    if (!phase_follows()) {
        places_collect();
        tell_settled();
    }
    return generations_undecided();
}
