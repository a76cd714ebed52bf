/* origins.c - where the bytes in memory came from, while copies are followed.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Only memory that was written in the phase has intervals.
 */
#include "origins.h"
#include "registers.h"
#include "slots.h"
#include "watch.h"

#include <pub_tool_machine.h>

static intervals *written;

void origins_init(void)
{
    registers_init();
}

void origins_begin(void)
{
    if (written)
        intervals_clear(written);
    else
        written = intervals_new("origins.written");
    registers_clear();
    slots_forget_uses();
}

void origins_end(void)
{
    intervals_free(written);
    written = NULL;
    registers_clear();
    slots_forget_uses();
}

SizeT origins_piece(Addr address, SizeT limit, ULong *origin)
{
    SizeT length = limit;
    *origin = ORIGIN_NONE;
    if (written)
        length = intervals_piece(written, address, limit, origin);
    if (*origin == ORIGIN_NONE)
        *origin = address;
    return length;
}

void origins_overwrite(Addr address, SizeT bytes, ULong origin)
{
    if (bytes == 0)
        return;
    watch_stored(address, bytes, origin);
    if (written)
        intervals_set(written, address, bytes, origin == ORIGIN_NONE ? ORIGIN_DERIVED : origin);
}

void origins_move(Addr from, Addr to, SizeT bytes)
{
    if (!written || from == to)
        return;
    /* By way of a copy: the two may overlap. */
    intervals *moved = intervals_new("origins.moved");
    ULong origin;
    for (SizeT done = 0; done < bytes;) {
        SizeT length = origins_piece(from + done, bytes - done, &origin);
        intervals_set(moved, done, length, origin);
        done += length;
    }
    intervals_set(written, from, bytes, ORIGIN_DERIVED);
    for (SizeT done = 0; done < bytes;) {
        SizeT length = intervals_piece(moved, done, bytes - done, &origin);
        intervals_set(written, to + done, length, origin);
        done += length;
    }
    intervals_free(moved);
}

void origins_forget(Addr address, SizeT bytes)
{
    if (written)
        intervals_set(written, address, bytes, ORIGIN_DERIVED);
}

void origins_use(Addr address, SizeT bytes)
{
    for (SizeT done = 0; done < bytes;) {
        ULong origin;
        SizeT length = origins_piece(address + done, bytes - done, &origin);
        if (origin != ORIGIN_DERIVED)
            watch_use(origin, length);
        done += length;
    }
}

/* What lies beyond the end of the first thread's stack is left over from calls that returned. Of
 * other threads' stacks only the top is known: a program may have put them into memory that holds
 * other things below, a block of the heap or more stacks. */
static void forget_dead_stack(ThreadId tid)
{
    enum { RED_ZONE = 128 }; /* below the stack pointer, still the function's */
    Addr highest = VG_(thread_get_stack_max)(tid), pointer = VG_(get_SP)(tid);
    SizeT bytes = VG_(thread_get_stack_size)(tid);
    if (highest == 0 || bytes == 0 || bytes > highest)
        return;
    Addr lowest = highest - bytes + 1;
    if (pointer > highest || pointer < lowest + RED_ZONE)
        return; /* the program has its own stacks */
    origins_forget(lowest, pointer - RED_ZONE - lowest);
}

void origins_use_registers(ThreadId tid)
{
    enum { FIRST_THREAD = 1 };
    registers_use(tid);
    ThreadId other;
    Addr lowest, highest;
    VG_(thread_stack_reset_iter)(&other);
    while (VG_(thread_stack_next)(&other, &lowest, &highest)) {
        if (other == FIRST_THREAD)
            forget_dead_stack(other);
    }
}

const intervals *origins_written(void)
{
    return written;
}
