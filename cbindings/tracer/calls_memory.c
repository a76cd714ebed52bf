/* calls_memory.c - system calls that map memory, let others at it, or end the program.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Tests: tests/tracer/test_tracer_syscalls.py.
 */
#include "call.h"

#include "blocks.h"
#include "files.h"
#include "phase.h"
#include "shadow.h"
#include "shared_maps.h"

#include <pub_tool_aspacemgr.h>
#include <pub_tool_libcfile.h>
#include <pub_tool_machine.h>
#include <pub_tool_vkiscnums.h>

/* ---- Mappings ---- */

static void map_file(Int fd, ULong offset, Addr address, SizeT bytes, Bool is_shared)
{
    struct vg_stat status;
    if (!phase_follows() || !files_stat(fd, &status))
        return;
    if (is_shared)
        files_mapped(fd, offset, address, bytes);
    /* Behind the file's end there are no bytes of it. */
    ULong held = (ULong)status.size > offset ? status.size - offset : 0;
    if (phase == PHASE_RESTART || !is_shared)
        files_read(fd, offset, address, held < bytes ? held : bytes);
}

static void after_mmap(ThreadId tid, call *at, const UWord *arguments, UWord result)
{
    (void)at;
    SizeT bytes = VG_PGROUNDUP(arguments[1]);
    Bool is_file = !(arguments[3] & VKI_MAP_ANONYMOUS);
    Bool is_shared = (arguments[3] & VKI_MAP_SHARED) != 0; /* also MAP_SHARED_VALIDATE */
    Int fd = (Int)arguments[4];
    ULong offset = arguments[5];
    struct vg_stat status;
    blocks_mapped(tid, result, bytes);
    if (is_shared && (arguments[2] & VKI_PROT_WRITE)) {
        shared_map map = {result, bytes, 0, 0, offset};
        if (is_file && files_stat(fd, &status)) {
            map.device = status.dev;
            map.inode = status.ino;
        }
        shared_maps_add(map);
    }
    if (is_file)
        map_file(fd, offset, result, bytes, is_shared);
}

static void after_shmat(ThreadId tid, call *at, const UWord *arguments, UWord result)
{
    (void)tid, (void)at, (void)arguments;
    const NSegment *segment = VG_(am_find_nsegment)(result);
    if (segment)
        shared_maps_add((shared_map){result, segment->end + 1 - result, 0, 0, 0});
}

/* What it reads is the file's content, which files_unmapped takes. */
static void before_msync(call *at, const UWord *arguments)
{
    (void)arguments;
    at->deferred = phase == PHASE_OUTPUT;
}

/* ---- The end ---- */

static void before_exit_group(call *at, const UWord *arguments)
{
    (void)at;
    phase_exit_asked((Int)arguments[0]);
}

/* Of one thread: the program's end if it is the last. */
static void before_exit(call *at, const UWord *arguments)
{
    ThreadId tid;
    Addr lowest, highest;
    UInt threads = 0;
    (void)at;
    VG_(thread_stack_reset_iter)(&tid);
    while (VG_(thread_stack_next)(&tid, &lowest, &highest))
        threads++;
    if (threads <= 1)
        phase_exit_asked((Int)arguments[0]);
}

/* ---- Messages ---- */

/* Valgrind reports the whole buffer as written, however short the message was. */
static void before_receiving(call *at, const UWord *arguments)
{
    at->receives = arguments[1];
}
static void after_receiving(ThreadId tid, call *at, const UWord *arguments, UWord result)
{
    (void)tid;
    /* MSG_TRUNC tells how long the message was, which may be more than there was room for. */
    call_wrote(at->receives, result < arguments[2] ? result : arguments[2]);
}

/* ---- What the tool cannot see ---- */

/* What is undecided may be read where nobody sees it. */
static void close_off(const HChar *text)
{
    if (phase != PHASE_TRACK || shadow_pending() == 0)
        return;
    tool_warn(text);
    shadow_read(0, ~(SizeT)0);
}

static void child_made(const HChar *text, UWord flags)
{
    if (!(flags & VKI_CLONE_VM)) /* else a thread, or one that starts a program at once */
        close_off(text);
}

static const HChar child_reads[] =
    "the program forked; what the child reads is not seen, and so what was undecided then counts "
    "as needed";

static void before_fork(call *at, const UWord *arguments)
{
    (void)at, (void)arguments;
    child_made(child_reads, 0);
}
static void before_clone(call *at, const UWord *arguments)
{
    (void)at;
    child_made(child_reads, arguments[0]);
}

static void before_exec(call *at, const UWord *arguments)
{
    (void)at, (void)arguments;
    if (phase_follows())
        tool_warn("A program was started in place of this one while a checkpoint was written or "
                  "read: what it does is not seen.");
}

static void before_asynchronous(call *at, const UWord *arguments)
{
    (void)at, (void)arguments;
    if (phase_follows())
        tool_warn("Asynchronous input or output (io_submit or io_uring) while a checkpoint was "
                  "written or read: what it moves is not seen, and stays critical.");
    close_off("asynchronous input or output (io_submit or io_uring): what it reads is not seen, "
              "and so what was undecided then counts as needed");
}

static void before_foreign_access(call *at, const UWord *arguments)
{
    (void)at, (void)arguments;
    if (phase != PHASE_IDLE && phase != PHASE_ENDED)
        tool_warn("Processes read each other's memory directly (process_vm_readv, vmsplice or "
                  "ptrace): accesses by others are not seen, and bytes may be called dead that "
                  "others read. Switch the MPI's single-copy transport off.");
}

const call_kind calls_on_memory[] = {
    {__NR_mmap, NULL, after_mmap},
    {__NR_msync, before_msync, NULL},
    {__NR_shmat, NULL, after_shmat},
    {__NR_recvfrom, before_receiving, after_receiving},
#ifdef __NR_fork
    {__NR_fork, before_fork, NULL},
#endif
    {__NR_clone, before_clone, NULL},
    {__NR_exit_group, before_exit_group, NULL},
    {__NR_exit, before_exit, NULL},
    {__NR_execve, before_exec, NULL},
    {__NR_execveat, before_exec, NULL},
    {__NR_io_submit, before_asynchronous, NULL},
    {425 /* io_uring_setup */, before_asynchronous, NULL},
    {426 /* io_uring_enter */, before_asynchronous, NULL},
    {__NR_process_vm_readv, before_foreign_access, NULL},
    {__NR_process_vm_writev, before_foreign_access, NULL},
    {__NR_vmsplice, before_foreign_access, NULL},
    {__NR_ptrace, before_foreign_access, NULL},
    {0, NULL, NULL},
};
