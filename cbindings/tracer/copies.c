/* copies.c - what watch_output.c and watch_restart.c have in common.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "copies.h"

#include "block_lines.h"
#include "blocks.h"
#include "files.h"
#include "origins.h"
#include "places.h"
#include "trace_file.h"

static UInt generations_numbered;

/* All of origins_written() that is wanted, as address -> key. */
static spans *written_from(Bool files)
{
    spans *found = spans_new();
    ULong from = 0, start, length, origin;
    while (intervals_first(origins_written(), from, &start, &length, &origin)) {
        if (files && origin_is_file(origin))
            spans_add(found, start, length, origin & ~ORIGIN_FILE);
        if (!files && origin_is_memory(origin) && origin != start)
            spans_add(found, start, length, origin);
        from = start + length;
    }
    return found;
}

static spans *copies(Bool files)
{
    spans *written = written_from(files), *turned = spans_turned(written);
    spans_free(written);
    return turned;
}

spans *copies_of_memory(void)
{
    return copies(False);
}

spans *copies_of_files(void)
{
    return copies(True);
}

void copies_tell_generation(const HChar *kind)
{
    HChar key[64];
    UInt number = generations_numbered++;
    VG_(snprintf)(key, sizeof key, "generation %u %s", number, kind);
    const HChar *dataset[] = {files_dataset()};
    trace_text_line(key, dataset, 1);
    for (UInt n = 0; n < files_count(); n++) {
        const trace_file *file = files_nth(n);
        HChar size[24];
        VG_(snprintf)(key, sizeof key, "file %u %u", files_number(file), number);
        VG_(snprintf)(size, sizeof size, "%llu", files_size(file));
        const HChar *texts[] = {files_name(file), files_path(file), size};
        trace_text_line(key, texts, 3);
    }
    object_lines();
}

void copies_tell_source(UInt file, ULong offset, ULong length, Addr address)
{
    for (ULong done = 0; done < length;) {
        Addr start = 0;
        SizeT bytes = 0;
        Long block = blocks_find(address + done, &start, &bytes);
        ULong piece = length - done;
        if (block >= 0 && start + bytes > address + done && piece > start + bytes - address - done)
            piece = start + bytes - address - done;
        trace_source(file, offset + done, piece, address + done, block);
        done += piece;
    }
}

void copies_watch(generation *made, const spans *wanted)
{
    for (ULong i = 0; i < spans_count(wanted); i++) {
        span s = spans_at(wanted, i);
        places_watch(s.start, s.length);
        for (ULong done = 0; done < s.length;) {
            ULong place;
            ULong piece = places_piece(s.start + done, s.length - done, &place);
            generation_add_place(made, place, piece, s.to + done);
            done += piece;
        }
    }
    generation_made(made);
    root_lines();
}
