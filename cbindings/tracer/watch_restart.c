/* watch_restart.c - the end of PHASE_RESTART: a generation from what was read.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * A file byte's places are the memory that holds it now. A byte that was read, not used, and is in
 * no memory any more is dead. Of a byte that was never read this process knows nothing.
 */
#include "blocks.h"
#include "copies.h"
#include "files.h"
#include "generations.h"
#include "origins.h"
#include "trace_file.h"
#include "watch_phase.h"

/* The values of the generation are its positions. */
typedef struct {
    generation *made;
    ULong *bases;   /* position of each file's first byte */
    spans *places;  /* address -> value */
    spans *decided; /* positions that need no other verdict; to: the same */
} making;

static void take_used(making *at, trace_file *file, ULong base)
{
    ULong from = 0, start, length, origin;
    while (intervals_first(files_content(file), from, &start, &length, &origin)) {
        generation_decide(at->made, base + start, length, STATE_CRITICAL, REASON_USED);
        spans_add(at->decided, base + start, length, base + start);
        from = start + length;
    }
}

/* Memory holds bytes of a file that were not used. */
static void take_place(making *at, const trace_file *file, ULong offset, Addr address, ULong length)
{
    ULong base = at->bases[files_index(file)];
    copies_tell_source(files_number(file), offset, length, address);
    for (ULong done = 0; done < length;) {
        ULong used;
        ULong piece = intervals_piece(files_content(file), offset + done, length - done, &used);
        if (used == ORIGIN_NONE) {
            spans_add(at->places, address + done, piece, base + offset + done);
            spans_add(at->decided, base + offset + done, piece, base + offset + done);
        }
        done += piece;
    }
}

static void take_places(making *at)
{
    spans *copies = copies_of_files(); /* position of files.h -> address */
    for (ULong i = 0; i < spans_count(copies); i++) {
        span s = spans_at(copies, i);
        for (ULong done = 0; done < s.length;) {
            trace_file *file;
            ULong offset;
            ULong piece = files_at(s.start + done, s.length - done, &file, &offset);
            take_place(at, file, offset, s.to + done, piece);
            done += piece;
        }
    }
    spans_free(copies);
}

/* Read, not used, and overwritten before the restart was complete. */
static void decide_dropped(making *at)
{
    spans *seen = spans_new(), *dropped = spans_new();
    for (UInt n = 0; n < files_count(); n++) {
        ULong base = at->bases[n], from = 0, start, length, origin;
        while (intervals_first(files_seen(files_nth(n)), from, &start, &length, &origin)) {
            spans_add(seen, base + start, length, base + start);
            from = start + length;
        }
    }
    spans_sort(at->decided);
    spans *covered = spans_union(at->decided);
    spans_cut(seen, covered, NULL, NULL, dropped);
    for (ULong i = 0; i < spans_count(dropped); i++) {
        span s = spans_at(dropped, i);
        generation_decide(at->made, s.start, s.length, STATE_DEAD, REASON_WRITTEN);
    }
    spans_free(covered);
    spans_free(seen);
    spans_free(dropped);
}

static void make_generation(void)
{
    making at = {generation_new(), NULL, spans_new(), spans_new()};
    at.bases = VG_(malloc)("watch_restart.bases", files_count() * sizeof(ULong));
    copies_tell_generation("restart");
    for (UInt n = 0; n < files_count(); n++) {
        trace_file *file = files_nth(n);
        at.bases[n] = generation_add_file(at.made, files_number(file), files_size(file));
        generation_add_position(at.made, at.bases[n], files_size(file), at.bases[n]);
        take_used(&at, file, at.bases[n]);
    }
    take_places(&at);
    decide_dropped(&at);
    copies_watch(at.made, at.places);
    VG_(free)(at.bases);
    spans_free(at.places);
    spans_free(at.decided);
}

void watch_restart_ended(ThreadId tid)
{
    (void)tid;
    spans *copies = copies_of_memory();
    watch_phase_settled(copies);
    if (files_count() > 0)
        make_generation();
    spans_free(copies);
    watch_phase_finished();
}
