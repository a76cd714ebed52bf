/* call.h - a thread's present system call, between the tool's look before and after it.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef SCR_CRIT_TRACER_CALL_H
#define SCR_CRIT_TRACER_CALL_H

#include "tool.h"

#include <pub_tool_vki.h>

typedef struct {
    /* What the call reads goes to a file and is no use; the vector's own memory is. */
    Bool deferred;
    Addr vector;
    /* The buffers of a transfer, as the program gave them. */
    struct vki_iovec *buffers;
    UWord buffer_count;
    /* The file's own position is used: where it was, and of which file. */
    Bool by_position;
    Long position;
    ULong device, inode;
    Bool disturbed; /* another thread's call used the same position meanwhile */
    /* A path, absolute or from the working directory; what was there before. */
    HChar *path;
    ULong path_device, path_inode; /* 0, 0: nothing */
    Bool closes_dump;
    /* Where recvfrom writes: as many bytes as it tells, not as many as there is room for. */
    Addr receives;
} call;

/* calls_transfer.c: read, write and their kin. False: not one of them. */
Bool transfer_before(UInt number, call *at, const UWord *arguments);
void transfer_after(UInt number, call *at, const UWord *arguments, UWord result);

/* calls_files.c, calls_memory.c: other kinds of system call. Either function may be NULL; result is
 * never an error. */
typedef struct {
    UInt number;
    void (*before)(call *at, const UWord *arguments);
    void (*after)(ThreadId tid, call *at, const UWord *arguments, UWord result);
} call_kind;
extern const call_kind calls_on_files[], calls_on_memory[]; /* the last has no function */

/* syscalls.c */
/* The calls of other threads that are not over: visits each. */
void calls_each_pending(void (*visit)(call *other, void *closure), void *closure);
/* A copy of a path of the program, with the folder that dirfd stands for; NULL if it cannot be
 * read. The caller frees it. */
HChar *call_path(Int dirfd, Addr path);
/* The kernel wrote there. */
void call_wrote(Addr address, SizeT bytes);
/* Whether the program may read these bytes. */
Bool call_readable(Addr address, SizeT bytes);

#endif
