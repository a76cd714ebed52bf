/* files_positions.c - one space of numbers for the bytes of all files of a phase.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The space is dealt out in extents, as files are met: an extent is a stretch of one file.
 */
#include "files_record.h"

/* Numbers cost nothing: 2^22 files of this size fit, and larger files get more. */
#define FIRST_EXTENT (1ULL << 40)

typedef struct {
    ULong position, length;
    trace_file *file;
    ULong offset;
} extent;

static XArray *extents;  /* of extent, by position, without gaps */
static Word last_extent; /* where to look first */

static const extent *extent_at(Word n)
{
    return VG_(indexXA)(extents, n);
}

void files_positions_end(void)
{
    if (extents)
        VG_(deleteXA)(extents);
    extents = NULL;
    last_extent = 0;
}

static Word find_extent(ULong position)
{
    Word low = 0, high = VG_(sizeXA)(extents) - 1;
    if (last_extent <= high &&
        position - extent_at(last_extent)->position < extent_at(last_extent)->length)
        return last_extent;
    while (low < high) {
        Word middle = (low + high + 1) / 2;
        if (extent_at(middle)->position <= position)
            low = middle;
        else
            high = middle - 1;
    }
    return last_extent = low;
}

ULong files_at(ULong position, ULong limit, trace_file **file, ULong *offset)
{
    const extent *found = extent_at(find_extent(position));
    ULong into = position - found->position;
    *file = found->file;
    *offset = found->offset + into;
    return limit < found->length - into ? limit : found->length - into;
}

static ULong deal_out(trace_file *file, ULong offset, ULong length)
{
    if (!extents)
        extents = VG_(newXA)(VG_(malloc), "files.extents", VG_(free), sizeof(extent));
    Word n = VG_(sizeXA)(extents);
    extent added = {1, length, file, offset};
    if (n > 0)
        added.position = extent_at(n - 1)->position + extent_at(n - 1)->length;
    VG_(addToXA)(extents, &added);
    return added.position;
}

ULong files_position_of(trace_file *file, ULong offset, ULong *piece)
{
    if (!file->position) {
        file->covered = file->size > FIRST_EXTENT ? file->size : FIRST_EXTENT;
        file->position = deal_out(file, 0, file->covered);
    }
    if (offset < file->covered) {
        if (*piece > file->covered - offset)
            *piece = file->covered - offset;
        return file->position + offset;
    }
    /* A huge file that has grown: such parts are dealt out as they are met. */
    for (Word i = VG_(sizeXA)(extents) - 1; i >= 0; i--) {
        const extent *e = extent_at(i);
        if (e->file != file || offset < e->offset || offset - e->offset >= e->length)
            continue;
        ULong into = offset - e->offset;
        if (*piece > e->length - into)
            *piece = e->length - into;
        return e->position + into;
    }
    return deal_out(file, offset, *piece);
}
