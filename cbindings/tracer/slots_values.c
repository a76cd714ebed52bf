/* slots_values.c - operations that are copies or not as the values at run time have it.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Shifts, choices by indices, masks in registers, narrowing that would saturate: the operand that
 * decides is used, what it lets through is copied.
 */
#include "slots.h"
#include "copy_rules.h"

#include <pub_tool_aspacemgr.h>

VG_REGPARM(3) void slots_shift_call(UWord pack, UWord kind, UWord bits)
{
    UWord to = pack >> 32, from = (UInt)pack, bytes = (UInt)kind, by = bits / 8;
    if (bits % 8 != 0 || by >= bytes) {
        slots_use(slots + from, (UInt)bytes);
        slots_compute_call(to, bytes);
    } else if (kind >> 32 == SHIFT_LEFT) {
        slots_move_call(to + by, from, bytes - by);
        slots_compute_call(to, by);
    } else {
        slots_move_call(to, from + by, bytes - by);
        if (kind >> 32 == SHIFT_RIGHT_SIGNED)
            slots_spread_from_call(to + bytes - by, from + bytes - 1, by);
        else
            slots_compute_call(to + bytes - by, by);
    }
}

VG_REGPARM(3) void slots_permute_call(UWord pack, ULong control_low, ULong control_high)
{
    UWord to = pack >> 32, from = (UInt)pack;
    ULong chosen[16];
    for (UInt k = 0; k < 16; k++) {
        ULong control = (k < 8 ? control_low : control_high) >> (8 * (k % 8));
        chosen[k] = control & 0x80 ? ORIGIN_NONE : slots[from + (control & 15)];
    }
    for (UInt k = 0; k < 16; k++)
        slots[to + k] = chosen[k];
}

VG_REGPARM(3)
void slots_permute_lanes_call(UWord pack, ULong control_0, ULong control_1, ULong control_2,
                              ULong control_3)
{
    enum { LANES = 8, LANE = 4 };
    UWord to = pack >> 32, from = (UInt)pack;
    ULong controls[] = {control_0, control_1, control_2, control_3};
    for (UInt k = 0; k < LANES; k++) {
        ULong lane = controls[k / 2] >> (32 * (k % 2)) & (LANES - 1);
        slots_move_call(to + k * LANE, from + lane * LANE, LANE);
    }
}

/* ---- Masks ---- */

/* Whether a byte of this origin is of no interest: computed, or a constant of the program. */
static Bool is_constant(ULong origin)
{
    if (!origin_is_memory(origin & ~ORIGIN_FROM))
        return !origin_is_file(origin);
    static Addr page; /* asked for last, with its answer */
    static Bool page_constant;
    Addr address = origin & ~ORIGIN_FROM;
    if (address >> 12 != page) {
        const NSegment *segment = VG_(am_find_nsegment)(address);
        page = address >> 12;
        page_constant = segment && !segment->hasW;
    }
    return page_constant;
}

/* Whether this byte of a mask decides the result alone; `origin` of the other becomes the result's.
 */
static Bool mask_decides(logic_kind kind, UChar mask, ULong *origin)
{
    UChar neutral = kind == LOGIC_AND ? 0xff : 0;
    if (mask == neutral)
        return True;
    if (kind == LOGIC_XOR || mask != (kind == LOGIC_AND ? 0 : 0xff))
        return False;
    *origin = ORIGIN_NONE;
    return True;
}

static ULong logic_byte(logic_kind kind, UWord left, UWord right, UChar left_value,
                        UChar right_value)
{
    ULong from_left = slots[left], from_right = slots[right];
    if (is_constant(from_right) && mask_decides(kind, right_value, &from_left)) {
        slots_use(&slots[right], 1);
        return from_left;
    }
    if (is_constant(from_left) && mask_decides(kind, left_value, &from_right)) {
        slots_use(&slots[left], 1);
        return from_right;
    }
    slots_use(&slots[left], 1);
    slots_use(&slots[right], 1);
    return ORIGIN_NONE;
}

static UChar byte_of(const ULong *words, UInt k)
{
    return (UChar)(words[k / 8] >> (8 * (k % 8)));
}

VG_REGPARM(3)
void slots_logic_call(UWord pack, UWord right_and_kind, ULong left_low, ULong left_high,
                      ULong right_low, ULong right_high)
{
    UWord to = pack >> 32, left = (UInt)pack;
    UWord right = right_and_kind >> 32, bytes = (UShort)right_and_kind;
    logic_kind kind = (logic_kind)((UInt)right_and_kind >> 16);
    ULong lefts[] = {left_low, left_high}, rights[] = {right_low, right_high}, result[16];
    for (UInt k = 0; k < bytes; k++)
        result[k] = logic_byte(kind, left + k, right + k, byte_of(lefts, k), byte_of(rights, k));
    for (UInt k = 0; k < bytes; k++)
        slots[to + k] = result[k];
}

/* ---- Narrowing ---- */

/* Whether a lane's value has room in its lower half. */
static Bool has_room(UInt kind, ULong lane, UInt bits)
{
    Long value = (Long)(lane << (64 - bits)) >> (64 - bits);
    Long limit = 1LL << (bits / 2);
    return kind & NARROW_TO_SIGNED ? value >= -limit / 2 && value < limit / 2
                                   : value >= 0 && value < limit;
}

static void narrow_half(ULong *result, UWord from, const ULong *words, UInt kind)
{
    UInt lane = kind & NARROW_LANE;
    for (UInt k = 0; k < 16 / lane; k++) {
        UInt at = k * lane;
        ULong value = words[at / 8] >> (8 * (at % 8));
        Bool fits = has_room(kind, value, 8 * lane);
        slots_use(&slots[from + at + (fits ? lane / 2 : 0)], fits ? lane / 2 : lane);
        for (UInt b = 0; b < lane / 2; b++)
            result[at / 2 + b] = fits ? slots[from + at + b] : ORIGIN_NONE;
    }
}

VG_REGPARM(3)
void slots_narrow_call(UWord pack, UWord right_and_kind, ULong left_low, ULong left_high,
                       ULong right_low, ULong right_high)
{
    UWord to = pack >> 32, left = (UInt)pack, right = right_and_kind >> 32;
    ULong lefts[] = {left_low, left_high}, rights[] = {right_low, right_high}, result[16];
    narrow_half(result, right, rights, (UInt)right_and_kind);
    narrow_half(result + 8, left, lefts, (UInt)right_and_kind);
    for (UInt k = 0; k < 16; k++)
        slots[to + k] = result[k];
}
