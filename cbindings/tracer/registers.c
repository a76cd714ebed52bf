/* registers.c - the origins of every thread's guest registers.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "registers.h"
#include "instrument.h"
#include "phase.h"
#include "slots.h"

#include <pub_tool_threadstate.h>

#include <stddef.h>

#if defined(VGA_amd64)
#include <libvex_guest_amd64.h>
#define AT(name) ((Int)offsetof(VexGuestAMD64State, guest_##name))
static const Int integers[][2] = {{AT(RAX), AT(RSP)}, {AT(RBP), AT(R15) + 8}};
static const Int vectors[2] = {AT(YMM0), AT(YMM16) + 32};
static const Int floats[2] = {AT(FPREG), AT(FPREG) + 64};
static const Int flags[2] = {AT(CC_DEP1), AT(CC_NDEP) + 8};
static const Int callee_saved[][2] = {
    {AT(RBX), AT(RBX) + 8}, {AT(RBP), AT(RBP) + 8}, {AT(R12), AT(R15) + 8}};
static const Int lost_by_syscall[] = {AT(RAX), AT(RCX), AT(R11), -1};
static const Int lost_by_request[] = {AT(RDX), -1};
static const Int request_arguments = AT(RAX);
#elif defined(VGA_arm64)
#include <libvex_guest_arm64.h>
#define AT(name) ((Int)offsetof(VexGuestARM64State, guest_##name))
static const Int integers[][2] = {{AT(X0), AT(X30) + 8}};
static const Int vectors[2] = {AT(Q0), AT(Q31) + 16};
static const Int floats[2] = {0, 0};
static const Int flags[2] = {AT(CC_DEP1), AT(CC_NDEP) + 8};
static const Int callee_saved[][2] = {{AT(X19), AT(X29) + 8}, {AT(Q8), AT(Q15) + 16}};
static const Int lost_by_syscall[] = {AT(X0), AT(X1), -1};
static const Int lost_by_request[] = {AT(X3), -1};
static const Int request_arguments = AT(X4);
#else
#error "Registers of this processor are not described: add them here"
#endif

static const Int lost_by_others[] = {-1};

enum { INTEGERS = sizeof(integers) / sizeof(integers[0]) };
enum { CALLEE_SAVED = sizeof(callee_saved) / sizeof(callee_saved[0]) };

static ThreadId owner = VG_INVALID_THREADID; /* whose registers the slots are */
static ULong **kept;                         /* those of the others, by thread, or NULL */

/* ---- Which thread ---- */

static void keep_owner(void)
{
    if (owner == VG_INVALID_THREADID)
        return;
    if (!kept)
        kept = VG_(calloc)("registers.kept", VG_N_THREADS, sizeof(ULong *));
    if (!kept[owner])
        kept[owner] = VG_(malloc)("registers.thread", SLOT_REGISTERS * sizeof(ULong));
    VG_(memcpy)(kept[owner], slots, SLOT_REGISTERS * sizeof(ULong));
}

static void enter(ThreadId tid)
{
    if (tid == owner)
        return;
    keep_owner();
    owner = tid;
    if (kept && kept[tid])
        VG_(memcpy)(slots, kept[tid], SLOT_REGISTERS * sizeof(ULong));
    else
        slots_clear_registers();
}

VG_REGPARM(0) void registers_enter_call(void)
{
    enter(VG_(get_running_tid)());
}

static void forget_thread(ThreadId tid)
{
    if (owner == tid) {
        owner = VG_INVALID_THREADID;
        slots_clear_registers();
    }
    if (kept && kept[tid]) {
        VG_(free)(kept[tid]);
        kept[tid] = NULL;
    }
}

void registers_clear(void)
{
    for (ThreadId tid = 0; kept && tid < VG_N_THREADS; tid++) {
        if (kept[tid])
            VG_(free)(kept[tid]);
    }
    if (kept)
        VG_(free)(kept);
    kept = NULL;
    owner = VG_INVALID_THREADID;
    slots_clear_registers();
}

/* ---- Which registers ---- */

static Bool within(const Int range[2], Int offset)
{
    return offset >= range[0] && offset < range[1];
}

Bool registers_carry(Int offset)
{
    for (UInt k = 0; k < INTEGERS; k++) {
        if (within(integers[k], offset))
            return True;
    }
    return within(vectors, offset) || within(floats, offset) || within(flags, offset);
}

Bool registers_flags(Int offset)
{
    return within(flags, offset);
}

const Int *registers_lost_by(IRJumpKind jump)
{
    switch (jump) {
    case Ijk_ClientReq:
        return lost_by_request;
    case Ijk_Sys_syscall:
    case Ijk_Sys_int32:
    case Ijk_Sys_int128:
    case Ijk_Sys_sysenter:
        return lost_by_syscall;
    default:
        return lost_by_others;
    }
}

Int registers_request(void)
{
    return request_arguments;
}

void registers_use(ThreadId tid)
{
    enter(tid);
    for (UInt k = 0; k < CALLEE_SAVED; k++)
        slots_use(slots + callee_saved[k][0], (UInt)(callee_saved[k][1] - callee_saved[k][0]));
    for (ThreadId other = 0; kept && other < VG_N_THREADS; other++) {
        if (other != tid && kept[other])
            slots_use(kept[other], SLOT_REGISTERS);
    }
}

/* ---- Events ---- */

static void before_register_read(CorePart part, ThreadId tid, const HChar *name, PtrdiffT offset,
                                 SizeT bytes)
{
    (void)part, (void)name;
    if (!phase_follows())
        return;
    enter(tid);
    slots_use(slots + offset, (UInt)bytes);
}

static void lose(ThreadId tid, PtrdiffT offset, SizeT bytes)
{
    if (!phase_follows())
        return;
    enter(tid);
    slots_compute_call((UWord)offset, bytes);
}

static void after_register_written(CorePart part, ThreadId tid, PtrdiffT offset, SizeT bytes)
{
    (void)part;
    lose(tid, offset, bytes);
}

static void after_request_answered(ThreadId tid, PtrdiffT offset, SizeT bytes, Addr function)
{
    (void)function;
    lose(tid, offset, bytes);
}

static void before_thread_ends(ThreadId tid)
{
    if (phase_follows())
        forget_thread(tid);
}

/* The kernel saves and restores registers unseen: what they hold is used and then unknown. */
static void before_signal(ThreadId tid, Int number, Bool on_other_stack)
{
    (void)on_other_stack;
    instrument_signal_delivered(number);
    if (!phase_follows())
        return;
    enter(tid);
    slots_use(slots, SLOT_REGISTERS);
    slots_clear_registers();
}

static void after_signal(ThreadId tid, Int number)
{
    (void)number;
    if (phase_follows())
        forget_thread(tid);
}

void registers_init(void)
{
    VG_(track_pre_reg_read)(before_register_read);
    VG_(track_post_reg_write)(after_register_written);
    VG_(track_post_reg_write_clientcall_return)(after_request_answered);
    VG_(track_pre_thread_ll_exit)(before_thread_ends);
    VG_(track_pre_deliver_signal)(before_signal);
    VG_(track_post_deliver_signal)(after_signal);
}
