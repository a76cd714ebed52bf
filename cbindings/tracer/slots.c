/* slots.c - origins of the values that a block works with, and what translated code does to them.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "slots.h"
#include "instrument.h"
#include "origins.h"
#include "watch.h"

ULong *slots;

static UInt slots_count;

void slots_reserve(UInt count)
{
    if (count <= slots_count)
        return;
    count += count / 2;
    slots = slots ? VG_(realloc)("slots", slots, count * sizeof(ULong))
                  : VG_(calloc)("slots", count, sizeof(ULong));
    slots_count = count;
}

void slots_clear_registers(void)
{
    slots_reserve(SLOT_REGISTERS);
    VG_(memset)(slots, 0, SLOT_REGISTERS * sizeof(ULong));
}

/* ---- Uses ---- */

/* A loop uses the same few values again and again; watch need not hear each. */
enum { TOLD = 4096 };
static struct {
    ULong origin;
    UInt bytes;
} told[TOLD];

void slots_forget_uses(void)
{
    VG_(memset)(told, 0, sizeof(told));
}

static void tell_use(ULong origin, UInt bytes)
{
    UInt place = (UInt)(origin ^ origin >> 12) % TOLD;
    if (told[place].origin == origin && told[place].bytes >= bytes)
        return;
    told[place].origin = origin;
    told[place].bytes = bytes;
    watch_use(origin, bytes);
}

void slots_use(const ULong *first, UInt count)
{
    for (UInt k = 0; k < count;) {
        ULong origin = first[k] & ~ORIGIN_FROM;
        UInt length = 1;
        if (origin_is_memory(origin) || origin_is_file(origin)) {
            while (k + length < count &&
                   (first[k + length] & ~ORIGIN_FROM) == origin_at(origin, length))
                length++;
            tell_use(origin, length);
        }
        k += length;
    }
}

VG_REGPARM(2) void slots_use_call(UWord slot, UWord bytes)
{
    slots_use(slots + slot, (UInt)bytes);
}

VG_REGPARM(2) void slots_use_memory_call(Addr address, UWord bytes)
{
    if (instrument_loads_write)
        origins_overwrite(address, bytes, ORIGIN_DERIVED);
    else
        origins_use(address, bytes);
}

/* ---- Between slots ---- */

VG_REGPARM(3) void slots_move_call(UWord to, UWord from, UWord bytes)
{
    if (to < from) {
        for (UWord k = 0; k < bytes; k++)
            slots[to + k] = slots[from + k];
    } else {
        for (UWord k = bytes; k > 0; k--)
            slots[to + k - 1] = slots[from + k - 1];
    }
}

static ULong computed_from(ULong origin)
{
    Bool known = origin_is_file(origin) || origin_is_memory(origin & ~ORIGIN_FROM);
    return known ? origin | ORIGIN_FROM : ORIGIN_NONE;
}

VG_REGPARM(3) void slots_move_from_call(UWord to, UWord from, UWord bytes)
{
    slots_move_call(to, from, bytes);
    for (UWord k = 0; k < bytes; k++)
        slots[to + k] = computed_from(slots[to + k]);
}

VG_REGPARM(3) void slots_spread_from_call(UWord to, UWord from, UWord bytes)
{
    ULong origin = computed_from(slots[from]);
    for (UWord k = 0; k < bytes; k++)
        slots[to + k] = origin;
}

VG_REGPARM(2) void slots_compute_call(UWord slot, UWord bytes)
{
    for (UWord k = 0; k < bytes; k++)
        slots[slot + k] = ORIGIN_NONE;
}

VG_REGPARM(3) UWord slots_of_element_call(UWord index, UWord array, UWord element)
{
    UInt elements = (UInt)array, bytes = (UInt)(element >> 32);
    UInt bias = (UInt)element; /* wraps as the index does: elements is a power of two */
    return (array >> 32) + (UWord)(((UInt)index + bias) % elements) * bytes;
}

/* ---- Memory ---- */

VG_REGPARM(3) void slots_load_call(Addr address, UWord slot, UWord bytes)
{
    if (instrument_loads_write) {
        origins_overwrite(address, bytes, ORIGIN_DERIVED);
        slots_compute_call(slot, bytes);
        return;
    }
    for (UWord done = 0; done < bytes;) {
        ULong origin;
        UWord length = origins_piece(address + done, bytes - done, &origin);
        for (UWord k = 0; k < length; k++)
            slots[slot + done + k] = origin_at(origin, k);
        done += length;
    }
}

/* What a slot's byte is in memory: there, what it was computed from is not remembered but used. */
static ULong origin_to_store(UWord slot)
{
    ULong origin = slots[slot];
    if (origin == ORIGIN_NONE || origin == ORIGIN_DERIVED)
        return ORIGIN_DERIVED;
    if (origin & ORIGIN_FROM) {
        slots_use(&slots[slot], 1);
        return ORIGIN_DERIVED;
    }
    return origin;
}

VG_REGPARM(3) void slots_store_call(Addr address, UWord slot, UWord pack)
{
    UWord bytes = (UInt)pack;
    address += pack >> 32;
    for (UWord done = 0; done < bytes;) {
        ULong origin = origin_to_store(slot + done);
        UWord length = 1;
        while (done + length < bytes &&
               origin_to_store(slot + done + length) == origin_at(origin, length))
            length++;
        origins_overwrite(address + done, length, origin);
        done += length;
    }
}

VG_REGPARM(2) void slots_store_computed_call(Addr address, UWord pack)
{
    origins_overwrite(address + (pack >> 32), (UInt)pack, ORIGIN_DERIVED);
}

VG_REGPARM(2) void slots_new_frame_call(Addr address, UWord bytes)
{
    origins_forget(address, bytes);
}
