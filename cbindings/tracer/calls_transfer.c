/* calls_transfer.c - read, write and their kin: which bytes of which file, from or to which memory.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * What the kernel accepted is known after the call, and so is where in the file: then the position
 * is behind the bytes. Memory cannot change in between but by a race in the program itself.
 * Tests: tests/tracer/test_tracer_syscalls.py.
 */
#include "call.h"

#include "files.h"
#include "origins.h"
#include "phase.h"
#include "shadow.h"

#include <pub_tool_libcfile.h>
#include <pub_tool_vkiscnums.h>

enum { BY_POSITION = -1, NO_FLAGS = -1, RWF_APPEND_FLAG = 0x10 };

typedef struct {
    UInt number;
    Bool writes;
    Bool vectored;
    Int offset; /* index of the argument, or BY_POSITION */
    Int flags;  /* index of the argument (version 2 calls), or NO_FLAGS */
} transfer;

static const transfer transfers[] = {
    {__NR_read, False, False, BY_POSITION, NO_FLAGS},
    {__NR_readv, False, True, BY_POSITION, NO_FLAGS},
    {__NR_pread64, False, False, 3, NO_FLAGS},
    {__NR_preadv, False, True, 3, NO_FLAGS},
    {__NR_preadv2, False, True, 3, 5},
    {__NR_write, True, False, BY_POSITION, NO_FLAGS},
    {__NR_writev, True, True, BY_POSITION, NO_FLAGS},
    {__NR_pwrite64, True, False, 3, NO_FLAGS},
    {__NR_pwritev, True, True, 3, NO_FLAGS},
    {__NR_pwritev2, True, True, 3, 5},
};

static const transfer *find(UInt number)
{
    for (UWord i = 0; i < sizeof transfers / sizeof transfers[0]; i++) {
        if (transfers[i].number == number)
            return &transfers[i];
    }
    return NULL;
}

static void take_buffers(const transfer *kind, call *at, const UWord *arguments)
{
    at->vector = kind->vectored ? arguments[1] : 0;
    if (!kind->vectored) {
        at->buffer_count = 1;
        at->buffers = VG_(malloc)("call.buffers", sizeof *at->buffers);
        at->buffers[0].iov_base = (void *)arguments[1];
        at->buffers[0].iov_len = arguments[2];
        return;
    }
    UWord count = arguments[2];
    if (count == 0 || count > 1024 || /* IOV_MAX: more is an error */
        !call_readable(arguments[1], count * sizeof *at->buffers))
        return;
    at->buffer_count = count;
    at->buffers = VG_(malloc)("call.buffers", count * sizeof *at->buffers);
    VG_(memcpy)(at->buffers, (void *)arguments[1], count * sizeof *at->buffers);
}

static void disturb(call *other, void *closure)
{
    call *at = closure;
    if (other != at && other->by_position && other->device == at->device &&
        other->inode == at->inode)
        other->disturbed = at->disturbed = True;
}

Bool transfer_before(UInt number, call *at, const UWord *arguments)
{
    const transfer *kind = find(number);
    struct vg_stat status;
    if (!kind)
        return False;
    if (!phase_follows() || !files_stat((Int)arguments[0], &status))
        return True;
    take_buffers(kind, at, arguments);
    at->deferred = kind->writes && phase == PHASE_OUTPUT;
    if (kind->offset == BY_POSITION || (kind->flags >= 0 && (Long)arguments[3] == -1)) {
        at->by_position = True;
        at->device = status.dev;
        at->inode = status.ino;
        at->position = VG_(lseek)((Int)arguments[0], 0, VKI_SEEK_CUR);
        calls_each_pending(disturb, at);
    }
    return True;
}

/* Linux appends, whatever the offset given, where the file was opened so. */
static Bool appends(Int fd)
{
    HChar path[64], text[512];
    VG_(sprintf)(path, "/proc/self/fdinfo/%d", fd);
    Int info = VG_(fd_open)(path, VKI_O_RDONLY, 0);
    if (info < 0)
        return False;
    Int length = VG_(read)(info, text, sizeof text - 1);
    VG_(close)(info);
    text[length > 0 ? length : 0] = 0;
    const HChar *digit = VG_(strstr)(text, "flags:");
    ULong flags = 0;
    for (digit = digit ? digit + 6 : ""; *digit == ' ' || *digit == '\t'; digit++)
        ;
    for (; *digit >= '0' && *digit <= '7'; digit++)
        flags = flags * 8 + (*digit - '0');
    return (flags & VKI_O_APPEND) != 0;
}

static ULong size_of(Int fd)
{
    struct vg_stat status;
    return files_stat(fd, &status) ? status.size : 0;
}

/* Where the bytes are in the file; False if threads used its position at the same time. */
static Bool find_offset(const transfer *kind, const call *at, const UWord *arguments, ULong bytes,
                        ULong *offset)
{
    Int fd = (Int)arguments[0];
    if (at->by_position) {
        Long now = VG_(lseek)(fd, 0, VKI_SEEK_CUR);
        *offset = now - bytes;
        return now >= (Long)bytes && (*offset == (ULong)at->position || !at->disturbed);
    }
    *offset = arguments[kind->offset];
    Bool flagged = kind->flags >= 0 && (arguments[kind->flags] & RWF_APPEND_FLAG);
    if (kind->writes && (flagged || appends(fd)))
        *offset = size_of(fd) - bytes;
    return True;
}

/* The phase ended during the call: the buffers were read, and nobody else notes it. */
static void note_late(const call *at, ULong bytes)
{
    for (UWord i = 0; i < at->buffer_count && bytes > 0; i++) {
        ULong n = at->buffers[i].iov_len < bytes ? at->buffers[i].iov_len : bytes;
        if (phase == PHASE_TRACK)
            shadow_read((Addr)at->buffers[i].iov_base, n);
        else if (phase_follows())
            origins_use((Addr)at->buffers[i].iov_base, n);
        bytes -= n;
    }
}

static void unclear(const transfer *kind, const call *at, Int fd, ULong bytes)
{
    tool_warn("Threads read or wrote a file at the same time through its own position: which bytes "
              "went where is not known, and all of that file counts as critical.");
    if (kind->writes) {
        files_written_unseen(fd, 0, size_of(fd));
        note_late(at, bytes);
    } else {
        files_sent(fd, 0, size_of(fd));
    }
}

void transfer_after(UInt number, call *at, const UWord *arguments, UWord result)
{
    const transfer *kind = find(number);
    Int fd = (Int)arguments[0];
    ULong bytes = result, offset;
    if (!at->buffers || bytes == 0)
        return;
    if (at->deferred && phase != PHASE_OUTPUT) {
        note_late(at, bytes);
        return;
    }
    if (!find_offset(kind, at, arguments, bytes, &offset)) {
        unclear(kind, at, fd, bytes);
        return;
    }
    for (UWord i = 0; i < at->buffer_count && bytes > 0; i++) {
        ULong n = at->buffers[i].iov_len < bytes ? at->buffers[i].iov_len : bytes;
        if (kind->writes)
            files_written(fd, offset, (Addr)at->buffers[i].iov_base, n);
        else
            files_read(fd, offset, (Addr)at->buffers[i].iov_base, n);
        offset += n;
        bytes -= n;
    }
}
