/* calls_files.c - system calls that open, shorten, copy or close files.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Tests: tests/tracer/test_tracer_syscalls.py.
 */
#include "call.h"

#include "dumps.h"
#include "files.h"
#include "phase.h"

#include <pub_tool_libcfile.h>
#include <pub_tool_vkiscnums.h>

enum { PUNCH_HOLE = 0x02, COLLAPSE_RANGE = 0x08, ZERO_RANGE = 0x10, INSERT_RANGE = 0x20 };

#define UNUSED_AFTER (void)tid, (void)at, (void)arguments, (void)result

/* ---- open and its kin ---- */

static void before_opening(call *at, Int dirfd, Addr path)
{
    struct vg_stat status;
    if (phase != PHASE_OUTPUT && !option_dump)
        return;
    at->path = call_path(dirfd, path);
    if (at->path && !sr_isError(VG_(stat)(at->path, &status))) {
        at->path_device = status.dev;
        at->path_inode = status.ino;
    }
}

static void after_opening(ThreadId tid, const call *at, UWord flags, Int fd)
{
    struct vg_stat status;
    if (!at->path || (flags & VKI_O_ACCMODE) == VKI_O_RDONLY || !files_stat(fd, &status))
        return;
    if (phase == PHASE_OUTPUT) {
        Bool was_there = at->path_device == status.dev && at->path_inode == status.ino;
        if (!was_there)
            files_created(fd);
        else if (flags & VKI_O_TRUNC)
            files_truncated(fd, 0);
    }
    dumps_opened(tid, fd, at->path);
}

static void before_open(call *at, const UWord *arguments)
{
    before_opening(at, VKI_AT_FDCWD, arguments[0]);
}
static void after_open(ThreadId tid, call *at, const UWord *arguments, UWord result)
{
    after_opening(tid, at, arguments[1], (Int)result);
}
static void after_creat(ThreadId tid, call *at, const UWord *arguments, UWord result)
{
    (void)arguments;
    after_opening(tid, at, VKI_O_WRONLY | VKI_O_TRUNC, (Int)result);
}
static void before_openat(call *at, const UWord *arguments)
{
    before_opening(at, (Int)arguments[0], arguments[1]);
}
static void after_openat(ThreadId tid, call *at, const UWord *arguments, UWord result)
{
    after_opening(tid, at, arguments[2], (Int)result);
}
static void after_openat2(ThreadId tid, call *at, const UWord *arguments, UWord result)
{
    /* struct open_how begins with the flags. */
    after_opening(tid, at, (UWord) * (const ULong *)arguments[2], (Int)result);
}

/* ---- close ---- */

static void before_close(call *at, const UWord *arguments)
{
    at->closes_dump = dumps_has((Int)arguments[0]);
}
static void after_close(ThreadId tid, call *at, const UWord *arguments, UWord result)
{
    UNUSED_AFTER;
    if (at->closes_dump)
        dumps_closed(tid);
}
static void before_dup2(call *at, const UWord *arguments)
{
    at->closes_dump = arguments[0] != arguments[1] && dumps_has((Int)arguments[1]);
}
static void before_close_range(call *at, const UWord *arguments)
{
    (void)arguments;
    at->closes_dump = dumps_any();
}

/* ---- Shorter files, holes ---- */

static void after_ftruncate(ThreadId tid, call *at, const UWord *arguments, UWord result)
{
    UNUSED_AFTER;
    files_truncated((Int)arguments[0], arguments[1]);
}
static void before_truncate(call *at, const UWord *arguments)
{
    at->path = phase == PHASE_OUTPUT ? call_path(VKI_AT_FDCWD, arguments[0]) : NULL;
}
static void after_truncate(ThreadId tid, call *at, const UWord *arguments, UWord result)
{
    UNUSED_AFTER;
    if (at->path)
        files_truncated_path(at->path, arguments[1]);
}
static void after_fallocate(ThreadId tid, call *at, const UWord *arguments, UWord result)
{
    UNUSED_AFTER;
    Int fd = (Int)arguments[0];
    struct vg_stat status;
    if (!files_stat(fd, &status))
        return;
    if (arguments[1] & (COLLAPSE_RANGE | INSERT_RANGE)) {
        files_sent(fd, 0, status.size); /* bytes change places: no more is known of any */
        files_written_unseen(fd, 0, status.size);
    } else if (arguments[1] & (PUNCH_HOLE | ZERO_RANGE)) {
        files_written_unseen(fd, arguments[2], arguments[3]);
    }
}

/* ---- Copies within the kernel ---- */

/* Where a transfer of `bytes` began that has ended: at the pointer's value, or the file's position.
 */
static ULong began_at(Int fd, Addr pointer, ULong bytes)
{
    return (pointer ? *(const ULong *)pointer : (ULong)VG_(lseek)(fd, 0, VKI_SEEK_CUR)) - bytes;
}

static void copied(Int from, Addr from_pointer, Int to, Addr to_pointer, ULong bytes)
{
    struct vg_stat status;
    if (!phase_follows() || bytes == 0)
        return;
    Bool from_file = files_stat(from, &status), to_file = files_stat(to, &status);
    ULong from_offset = from_file ? began_at(from, from_pointer, bytes) : 0;
    ULong to_offset = to_file ? began_at(to, to_pointer, bytes) : 0;
    if (from_file && to_file)
        files_copied(from, from_offset, to, to_offset, bytes);
    else if (from_file)
        files_sent(from, from_offset, bytes);
    else if (to_file)
        files_written_unseen(to, to_offset, bytes);
}

static void after_sendfile(ThreadId tid, call *at, const UWord *arguments, UWord result)
{
    UNUSED_AFTER;
    copied((Int)arguments[1], arguments[2], (Int)arguments[0], 0, result);
}
static void after_copy_file_range(ThreadId tid, call *at, const UWord *arguments, UWord result)
{
    UNUSED_AFTER;
    copied((Int)arguments[0], arguments[1], (Int)arguments[2], arguments[3], result);
}

const call_kind calls_on_files[] = {
#ifdef __NR_open
    {__NR_open, before_open, after_open},
    {__NR_creat, before_open, after_creat},
    {__NR_dup2, before_dup2, after_close},
#endif
    {__NR_openat, before_openat, after_openat},
#ifdef __NR_openat2
    {__NR_openat2, before_openat, after_openat2},
#else
    {437, before_openat, after_openat2},
#endif
    {__NR_close, before_close, after_close},
    {__NR_dup3, before_dup2, after_close},
    {436 /* close_range */, before_close_range, after_close},
    {__NR_ftruncate, NULL, after_ftruncate},
    {__NR_truncate, before_truncate, after_truncate},
    {__NR_fallocate, NULL, after_fallocate},
    {__NR_sendfile, NULL, after_sendfile},
    {__NR_copy_file_range, NULL, after_copy_file_range},
    {__NR_splice, NULL, after_copy_file_range}, /* the same arguments */
    {0, NULL, NULL},
};
