/* slots.h - origins of the values that a block works with, and what translated code does to them.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * A slot holds the origin of one byte. The first slots are the guest registers of the thread that
 * runs, at their offsets in the guest state; the others are the temporaries of the block that runs,
 * numbered when it is translated. Threads change only between blocks, and a block writes each
 * temporary's slots before it reads them, so that the latter need not be kept. The functions named
 * slots_* that end in _call are called by translated code.
 */
#ifndef SCR_CRIT_TRACER_SLOTS_H
#define SCR_CRIT_TRACER_SLOTS_H

#include "intervals.h"

#include <pub_tool_guest.h>

/* In a slot only, on an origin: computed from the byte that stood there. */
#define ORIGIN_FROM (1ULL << 61)

enum { SLOT_REGISTERS = sizeof(VexGuestArchState) }; /* first slot of the temporaries */

extern ULong *slots;

/* Have at least so many. */
void slots_reserve(UInt count);
/* All registers of the present thread are of unknown origin. */
void slots_clear_registers(void);
/* Bytes with these origins are used. */
void slots_use(const ULong *first, UInt count);
/* A phase begins or ends: forget which uses were told already. */
void slots_forget_uses(void);

/* A number of bytes and another small number, in one argument. */
#define SLOTS_PACK(high, low) ((ULong)(high) << 32 | (ULong)(low))

VG_REGPARM(3) void slots_load_call(Addr address, UWord slot, UWord bytes);
/* pack: offset from address, bytes. */
VG_REGPARM(3) void slots_store_call(Addr address, UWord slot, UWord pack);
VG_REGPARM(2) void slots_store_computed_call(Addr address, UWord pack);
VG_REGPARM(3) void slots_move_call(UWord to, UWord from, UWord bytes);
/* Computed from what stands in each, or from what stands in one. */
VG_REGPARM(3) void slots_move_from_call(UWord to, UWord from, UWord bytes);
VG_REGPARM(3) void slots_spread_from_call(UWord to, UWord from, UWord bytes);
/* A shift that is only known when it happens. pack: to, from; kind: shift_kind, bytes. */
VG_REGPARM(3) void slots_shift_call(UWord pack, UWord kind, UWord bits);
VG_REGPARM(2) void slots_compute_call(UWord slot, UWord bytes);
VG_REGPARM(2) void slots_use_call(UWord slot, UWord bytes);
VG_REGPARM(2) void slots_use_memory_call(Addr address, UWord bytes);
VG_REGPARM(2) void slots_new_frame_call(Addr address, UWord bytes);
/* A circular array of registers. array: first slot, elements; element: bytes, bias + 2^31. */
VG_REGPARM(3) UWord slots_of_element_call(UWord index, UWord array, UWord element);
/* Sixteen bytes chosen by the bytes of control, as Iop_PermOrZero8x16 has it. pack: to, from. */
VG_REGPARM(3) void slots_permute_call(UWord pack, ULong control_low, ULong control_high);
/* Eight lanes of four bytes, as Iop_Perm32x8 has it; two lanes' control in a word. */
VG_REGPARM(3)
void slots_permute_lanes_call(UWord pack, ULong control_0, ULong control_1, ULong control_2,
                              ULong control_3);

/* And, or, exclusive or, of at most 16 bytes, with their values. pack: to, left; right_and_kind:
 * right, logic_kind << 16 | bytes. */
VG_REGPARM(3)
void slots_logic_call(UWord pack, UWord right_and_kind, ULong left_low, ULong left_high,
                      ULong right_low, ULong right_high);
/* Lanes narrowed to half, with saturation: the lower eight bytes from right, the upper from left.
 */
enum { NARROW_LANE = 15, NARROW_TO_SIGNED = 16 }; /* kind: bytes of a lane | flag */
VG_REGPARM(3)
void slots_narrow_call(UWord pack, UWord right_and_kind, ULong left_low, ULong left_high,
                       ULong right_low, ULong right_high);

#endif
