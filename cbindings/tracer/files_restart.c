/* files_restart.c - files that are read in PHASE_RESTART.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * A byte that is read gets the origin ORIGIN_FILE | position (files_positions.c).
 */
#include "files_record.h"

#include "origins.h"
#include "phase.h"

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
    if (files_are_passed_on())
        files_sent(fd, offset, bytes);
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
        ULong position = files_position_of(file, offset + done, &piece);
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
