/* files_output.c - what is written to files in PHASE_OUTPUT.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Each file has a map offset -> origin. A later write takes the place of an earlier one, as in the
 * file. A gap was not written by this process in this phase.
 *
 * Memory that is read back from a file, or shares its pages, has the file's origins. Where those
 * are unknown it has ORIGIN_FILE | position: put back to where they came from, such bytes remain a
 * gap (MPI-IO's data sieving writes the neighbours of its own bytes like that); anywhere else they
 * are of unknown origin.
 */
#include "files_record.h"

#include "origins.h"
#include "phase.h"
#include "shared_maps.h"
#include "watch.h"

#define WHOLE (1ULL << 62) /* longer than any file */

/* The record of the regular file behind fd, where writes matter now. */
static trace_file *written_file(Int fd)
{
    struct vg_stat status;
    if (phase != PHASE_OUTPUT || !files_stat(fd, &status))
        return NULL;
    return files_find_or_add(status.dev, status.ino);
}

/* Whether the origin says that these bytes are what the file held there before this phase, and
 * nothing was written there since. */
static Bool is_unchanged(const trace_file *file, ULong offset, ULong bytes, ULong origin)
{
    trace_file *source;
    ULong source_offset, now;
    if (files_at(origin & ~ORIGIN_FILE, bytes, &source, &source_offset) < bytes || source != file ||
        source_offset != offset)
        return False;
    return intervals_piece(file->content, offset, bytes, &now) == bytes && now == ORIGIN_NONE;
}

/* These bytes of the file were set to an origin; False: they are what they were. */
static Bool set_content(trace_file *file, ULong offset, ULong bytes, ULong *origin)
{
    if (origin_is_file(*origin)) {
        if (is_unchanged(file, offset, bytes, *origin))
            return False;
        *origin = ORIGIN_DERIVED;
    }
    intervals_set(file->content, offset, bytes, *origin);
    return True;
}

/* The file holds this now, and so does memory that shares its pages. */
static void store(trace_file *file, ULong offset, ULong bytes, ULong origin)
{
    if (!set_content(file, offset, bytes, &origin))
        return;
    for (UWord i = 0; i < shared_maps_count(); i++) {
        shared_map map = shared_maps_at(i);
        ULong from = offset > map.offset ? offset : map.offset;
        ULong end = map.offset + map.length;
        if (end > offset + bytes)
            end = offset + bytes;
        if (map.device == file->device && map.inode == file->inode && from < end)
            origins_overwrite(map.start + (from - map.offset), end - from,
                              origin_at(origin, from - offset));
    }
}

void files_written(Int fd, ULong offset, Addr address, SizeT bytes)
{
    if (files_are_passed_on()) {
        files_written_unseen(fd, offset, bytes);
        return;
    }
    trace_file *file = written_file(fd);
    for (SizeT done = 0; file && done < bytes;) {
        ULong origin;
        SizeT piece = origins_piece(address + done, bytes - done, &origin);
        store(file, offset + done, piece, origin);
        done += piece;
    }
}

void files_written_unseen(Int fd, ULong offset, ULong bytes)
{
    trace_file *file = written_file(fd);
    if (file && bytes)
        store(file, offset, bytes, ORIGIN_DERIVED);
}

/* What a file holds at offset. */
static ULong held_piece(trace_file *file, ULong offset, ULong limit, ULong *origin)
{
    ULong piece = intervals_piece(file->content, offset, limit, origin);
    if (*origin == ORIGIN_NONE)
        *origin = ORIGIN_FILE | files_position_of(file, offset, &piece);
    return piece;
}

static trace_file *known_file(Int fd)
{
    struct vg_stat status;
    return files_stat(fd, &status) ? files_find(status.dev, status.ino) : NULL;
}

void files_copied(Int from, ULong from_offset, Int to, ULong to_offset, ULong bytes)
{
    trace_file *target = written_file(to);
    if (!target) {
        files_sent(from, from_offset, bytes);
        return;
    }
    trace_file *source = written_file(from);
    for (ULong done = 0; source && done < bytes;) {
        ULong origin;
        ULong piece = held_piece(source, from_offset + done, bytes - done, &origin);
        store(target, to_offset + done, piece, origin);
        done += piece;
    }
}

static void use_content(const trace_file *file, ULong offset, ULong bytes)
{
    ULong end = offset + bytes, start, length, origin;
    while (intervals_first(file->content, offset, &start, &length, &origin) && start < end) {
        ULong first = start > offset ? start : offset;
        ULong stop = start + length < end ? start + length : end;
        watch_use(origin_at(origin, first - start), stop - first);
        offset = start + length;
    }
}

void files_sent(Int fd, ULong offset, ULong bytes)
{
    if (phase == PHASE_RESTART) {
        struct vg_stat status;
        trace_file *file;
        files_restart_look();
        if (files_stat(fd, &status) && (file = files_find(status.dev, status.ino)))
            files_use(file, offset, bytes);
        return;
    }
    trace_file *file = phase == PHASE_OUTPUT ? known_file(fd) : NULL;
    if (file)
        use_content(file, offset, bytes);
}

static void cut_off(trace_file *file, ULong size)
{
    if (file && size < WHOLE)
        intervals_set(file->content, size, WHOLE - size, ORIGIN_NONE);
}

void files_truncated(Int fd, ULong size)
{
    if (phase == PHASE_OUTPUT)
        cut_off(known_file(fd), size);
}

void files_truncated_path(const HChar *path, ULong size)
{
    struct vg_stat status;
    if (phase == PHASE_OUTPUT && !sr_isError(VG_(stat)(path, &status)))
        cut_off(files_find(status.dev, status.ino), size);
}

void files_created(Int fd)
{
    trace_file *file = phase == PHASE_OUTPUT ? known_file(fd) : NULL;
    if (!file)
        return;
    /* The inode of a file that was deleted: nobody knows who read that one before. */
    use_content(file, 0, WHOLE);
    intervals_clear(file->content);
}

static void take_origins(trace_file *file, ULong offset, Addr address, SizeT bytes)
{
    for (SizeT done = 0; done < bytes;) {
        ULong origin;
        ULong piece = held_piece(file, offset + done, bytes - done, &origin);
        origins_overwrite(address + done, piece, origin);
        done += piece;
    }
}

Bool files_read_back(Int fd, ULong offset, Addr address, SizeT bytes)
{
    /* Also of files that were not written so far: they may be, with what was read. */
    trace_file *file = written_file(fd);
    if (file)
        take_origins(file, offset, address, bytes);
    return file != NULL;
}

void files_mapped(Int fd, ULong offset, Addr address, SizeT bytes)
{
    trace_file *file = written_file(fd);
    if (file)
        take_origins(file, offset, address, bytes);
}

void files_unmapped(ULong device, ULong inode, ULong offset, Addr address, SizeT bytes)
{
    if (phase != PHASE_OUTPUT || inode == 0)
        return;
    const intervals *written = origins_written();
    ULong from = address, end = address + bytes, start, length, origin;
    while (intervals_first(written, from, &start, &length, &origin) && start < end) {
        ULong first = start > from ? start : from;
        ULong stop = start + length < end ? start + length : end;
        ULong stored = origin_at(origin, first - start);
        set_content(files_find_or_add(device, inode), offset + (first - address), stop - first,
                    &stored);
        from = start + length;
    }
}

/* Leaves out what lies behind the end of the file (pages are mapped whole, files get shorter). */
static void choose(routed_file *routed)
{
    struct vg_stat status;
    if (sr_isError(VG_(stat)(routed->path, &status)) || !VKI_S_ISREG(status.mode))
        return;
    trace_file *file = files_find_or_add(status.dev, status.ino);
    files_choose(file, routed, status.size);
    cut_off(file, file->size);
}

void files_settle_output(void)
{
    for (UWord i = 0; i < shared_maps_count(); i++) {
        shared_map map = shared_maps_at(i);
        files_unmapped(map.device, map.inode, map.offset, map.start, map.length);
    }
    for (UInt n = 0; n < files_routed_count(); n++)
        choose(files_routed_nth(n));
    for (UInt n = 0; n < files_recorded(); n++) {
        const trace_file *file = files_record(n);
        if (!file->name)
            use_content(file, 0, WHOLE);
    }
}

void files_drop(void)
{
    for (UInt n = 0; phase == PHASE_OUTPUT && n < files_count(); n++)
        use_content(files_nth(n), 0, WHOLE);
    files_choose_none();
}
