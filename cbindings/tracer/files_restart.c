/* files_restart.c - files that are read in PHASE_RESTART.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * A byte that is read gets the origin ORIGIN_FILE | position. The space of positions is dealt out
 * in extents, as files are read: an extent is a stretch of one file.
 */
#include "files_record.h"

#include "origins.h"
#include "phase.h"

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

void files_restart_end(void)
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

/* The position of a byte of a file; *piece (in: wanted) bytes go on from there. */
static ULong position_of(trace_file *file, ULong offset, ULong *piece)
{
    if (!file->position) {
        file->covered = file->size;
        file->position = deal_out(file, 0, file->covered);
    }
    if (offset < file->covered) {
        if (*piece > file->covered - offset)
            *piece = file->covered - offset;
        return file->position + offset;
    }
    /* The file has grown: such parts are dealt out as they are read. */
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

void files_restart_look(void)
{
    for (UInt n = 0; n < files_routed_count(); n++) {
        routed_file *routed = files_routed_nth(n);
        struct vg_stat status;
        if (routed->file || sr_isError(VG_(stat)(routed->path, &status)) ||
            !VKI_S_ISREG(status.mode))
            continue;
        routed->file = files_find_or_add(status.dev, status.ino);
        if (!routed->file->seen)
            routed->file->seen = intervals_new("files.seen");
        files_choose(routed->file, routed, status.size);
    }
}

/* Where a restart reads: in files that were routed before, or have appeared since. */
static trace_file *restart_file(Int fd)
{
    struct vg_stat status;
    if (!files_stat(fd, &status))
        return NULL;
    trace_file *file = files_find(status.dev, status.ino);
    if (!file) {
        files_restart_look();
        file = files_find(status.dev, status.ino);
    }
    return file;
}

Bool files_read(Int fd, ULong offset, Addr address, SizeT bytes)
{
    if (phase == PHASE_OUTPUT)
        return files_read_back(fd, offset, address, bytes);
    trace_file *file = phase == PHASE_RESTART ? restart_file(fd) : NULL;
    if (!file || bytes == 0)
        return False;
    if (offset + bytes > file->size)
        file->size = offset + bytes;
    intervals_set(file->seen, offset, bytes, ORIGIN_DERIVED);
    for (SizeT done = 0; done < bytes;) {
        ULong piece = bytes - done;
        ULong position = position_of(file, offset + done, &piece);
        origins_overwrite(address + done, piece, ORIGIN_FILE | position);
        done += piece;
    }
    return True;
}

void files_use(trace_file *file, ULong offset, ULong bytes)
{
    ULong origin;
    if (intervals_piece(file->content, offset, bytes, &origin) == bytes && origin != ORIGIN_NONE)
        return;
    intervals_set(file->content, offset, bytes, ORIGIN_DERIVED);
}
