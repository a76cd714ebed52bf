/* syscalls.c - what system calls do to memory and files: the events, and who handles them.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Memory: Valgrind reports every buffer that the kernel reads or writes. Files: the calls that
 * matter, looked at before and after. Other threads may run in between, so what is known before is
 * kept for each thread; a call that is started anew after a signal begins afresh.
 * Tests: tests/tracer/test_tracer_syscalls.py.
 */
#include "syscalls.h"

#include "blocks.h"
#include "call.h"
#include "files.h"
#include "origins.h"
#include "phase.h"
#include "shadow.h"
#include "shared_maps.h"
#include "watch.h"

#include <pub_tool_aspacemgr.h>
#include <pub_tool_threadstate.h>

static call *calls; /* by thread */

/* ---- Calls ---- */

static call *call_of(ThreadId tid)
{
    if (!calls)
        calls = VG_(calloc)("syscalls.calls", VG_N_THREADS, sizeof *calls);
    return &calls[tid];
}

static void clear(call *at)
{
    VG_(free)(at->buffers);
    VG_(free)(at->path);
    VG_(memset)(at, 0, sizeof *at);
}

void calls_each_pending(void (*visit)(call *other, void *closure), void *closure)
{
    for (ThreadId tid = 0; tid < VG_N_THREADS; tid++)
        visit(call_of(tid), closure);
}

static const call_kind *find(UInt number)
{
    for (const call_kind *kind = calls_on_files; kind->before || kind->after; kind++) {
        if (kind->number == number)
            return kind;
    }
    for (const call_kind *kind = calls_on_memory; kind->before || kind->after; kind++) {
        if (kind->number == number)
            return kind;
    }
    return NULL;
}

static void before_call(ThreadId tid, UInt number, UWord *arguments, UInt count)
{
    (void)count;
    call *at = call_of(tid);
    clear(at);
    if (phase == PHASE_ENDED || transfer_before(number, at, arguments))
        return;
    const call_kind *kind = find(number);
    if (kind && kind->before)
        kind->before(at, arguments);
}

static void after_call(ThreadId tid, UInt number, UWord *arguments, UInt count, SysRes result)
{
    (void)count;
    call *at = call_of(tid);
    if (!sr_isError(result)) {
        const call_kind *kind = find(number);
        if (at->buffers)
            transfer_after(number, at, arguments, sr_Res(result));
        else if (kind && kind->after)
            kind->after(tid, at, arguments, sr_Res(result));
    }
    clear(at);
}

/* ---- The program's memory, read by the tool ---- */

Bool call_readable(Addr address, SizeT bytes)
{
    return bytes == 0 || VG_(am_is_valid_for_client)(address, bytes, VKI_PROT_READ);
}

/* Length of a text with its 0, as far as it can be read. */
static SizeT text_bytes(Addr address)
{
    SizeT n = 0;
    while (call_readable(address + n, 1)) {
        Addr page_end = VG_PGROUNDDN(address + n) + VKI_PAGE_SIZE;
        for (; address + n < page_end; n++) {
            if (*(const HChar *)(address + n) == 0)
                return n + 1;
        }
    }
    return n;
}

HChar *call_path(Int dirfd, Addr path)
{
    SizeT bytes = text_bytes(path);
    if (bytes < 2)
        return NULL;
    HChar *copy = VG_(malloc)("call.path", bytes + 40);
    copy[0] = 0;
    if (*(const HChar *)path != '/')
        VG_(sprintf)(copy, dirfd == VKI_AT_FDCWD ? "/proc/self/cwd/" : "/proc/self/fd/%d/", dirfd);
    SizeT folder = VG_(strlen)(copy);
    VG_(memcpy)(copy + folder, (const void *)path, bytes);
    copy[folder + bytes - 1] = 0;
    return copy;
}

/* ---- Memory ---- */

static void memory_read(CorePart part, ThreadId tid, const HChar *what, Addr address, SizeT bytes)
{
    (void)what;
    if (bytes == 0)
        return;
    if (phase == PHASE_TRACK) {
        shadow_read(address, bytes);
    } else if (phase_follows()) {
        const call *at = call_of(tid);
        if (part != Vg_CoreSysCall || !at->deferred || address == at->vector)
            origins_use(address, bytes);
    }
}

static void text_read(CorePart part, ThreadId tid, const HChar *what, Addr address)
{
    if (phase == PHASE_TRACK || phase_follows())
        memory_read(part, tid, what, address, text_bytes(address));
}

void call_wrote(Addr address, SizeT bytes)
{
    if (phase == PHASE_TRACK)
        shadow_write(address, bytes);
    else if (phase_follows())
        origins_overwrite(address, bytes, ORIGIN_DERIVED);
}

static void memory_written(CorePart part, ThreadId tid, Addr address, SizeT bytes)
{
    if (part == Vg_CoreSysCall && call_of(tid)->receives == address && address)
        return; /* after_received */
    call_wrote(address, bytes);
}

/* A file's memory that is none of the checkpoint's is settled as it is stored into. */
static void shared_map_gone(const shared_map *piece)
{
    if (piece->inode == 0)
        watch_was_shared(piece->start, piece->length);
    files_unmapped(piece->device, piece->inode, piece->offset, piece->start, piece->length);
}

/* What was written there in this phase is no more. The rest is left: a reservation of address space
 * may be larger than all memory, and watch knows what has gone. */
static void forget_written(Addr address, SizeT bytes)
{
    ULong from = address, end = address + bytes, start, length, origin;
    while (from < end && intervals_first(origins_written(), from, &start, &length, &origin) &&
           start < end) {
        ULong first = start > from ? start : from;
        ULong stop = start + length < end ? start + length : end;
        origins_forget(first, stop - first);
        from = start + length;
    }
}

static void memory_gone(Addr address, SizeT bytes)
{
    if (bytes == 0)
        return;
    shared_maps_remove(address, bytes, shared_map_gone);
    watch_gone(address, bytes);
    if (phase_follows())
        forget_written(address, bytes);
    blocks_unmapped(address, bytes);
}

static void memory_mapped(Addr address, SizeT bytes, Bool r, Bool w, Bool x, ULong debug_info)
{
    (void)r, (void)w, (void)x, (void)debug_info;
    memory_gone(address, bytes); /* what was mapped there before, if anything */
    watch_fresh(address, bytes);
}

static void break_moved_up(Addr address, SizeT bytes, ThreadId tid)
{
    (void)tid;
    memory_mapped(address, bytes, True, True, False, 0);
}

static void memory_remapped(Addr from, Addr to, SizeT bytes)
{
    if (phase_follows())
        origins_use(from, bytes); /* what stands there now, wherever it came from */
    watch_remapped(from, to, bytes);
    memory_mapped(to, bytes, True, True, False, 0);
    shared_maps_move(from, to, bytes);
}

void syscalls_init(void)
{
    VG_(needs_syscall_wrapper)(before_call, after_call);
    VG_(track_pre_mem_read)(memory_read);
    VG_(track_pre_mem_read_asciiz)(text_read);
    VG_(track_post_mem_write)(memory_written);
    VG_(track_new_mem_mmap)(memory_mapped);
    VG_(track_new_mem_brk)(break_moved_up);
    VG_(track_copy_mem_remap)(memory_remapped);
    VG_(track_die_mem_munmap)(memory_gone);
    VG_(track_die_mem_brk)(memory_gone);
}
