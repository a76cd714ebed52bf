/* copy_code.c - the translation of one block: what its temporaries hold, and the calls that follow
 * it.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "copy_code.h"
#include "slots.h"

#include <pub_tool_machine.h>

/* ---- Begin and end ---- */

static void reserve_used(copy_code *code)
{
    if (code->slots <= code->used_room)
        return;
    UInt room = 2 * code->slots;
    code->used = VG_(realloc)("copy_code.used", code->used, room);
    VG_(memset)(code->used + code->used_room, 0, room - code->used_room);
    code->used_room = room;
}

void copy_code_begin(copy_code *code, const IRSB *in, IRSB *out)
{
    UInt temps = (UInt)in->tyenv->types_used;
    code->in = in;
    code->out = out;
    code->now = 0;
    code->slots = SLOT_REGISTERS;
    code->in_registers = 0;
    if (temps > code->temps) {
        code->held = VG_(realloc)("copy_code.held", code->held, temps * sizeof(value));
        code->lives = VG_(realloc)("copy_code.lives", code->lives, temps * sizeof(temp_life));
        code->temps = temps;
    }
    for (UInt t = 0; t < temps; t++)
        code->held[t] = value_computed(in->tyenv->types[t]);
    live_temps(in, code->lives);
    if (code->used)
        VG_(memset)(code->used, 0, code->used_room);
    reserve_used(code);
}

void copy_code_end(copy_code *code)
{
    slots_reserve(code->slots);
}

/* ---- Values ---- */

value code_value(const copy_code *code, const IRExpr *atom)
{
    if (atom->tag == Iex_RdTmp)
        return code->held[atom->Iex.RdTmp.tmp];
    return value_constant(atom->Iex.Const.con);
}

static UInt slot_of(byte_source source)
{
    return source & ~BYTE_FROM;
}

/* Whether some byte stands in slots [first, first + count). */
static Bool stands_in(const value *held, UInt first, UInt count)
{
    for (UInt k = 0; k < held->bytes; k++) {
        if (byte_is_slot(held->byte[k]) && slot_of(held->byte[k]) - first < count)
            return True;
    }
    return False;
}

void code_set(copy_code *code, IRTemp temp, const value *held)
{
    code->held[temp] = *held;
    if (!stands_in(held, 0, SLOT_REGISTERS))
        return;
    if (code->in_registers == code->in_register_room) {
        code->in_register_room = 2 * code->in_register_room + 64;
        code->in_register = VG_(realloc)("copy_code.in_register", code->in_register,
                                         code->in_register_room * sizeof(IRTemp));
    }
    code->in_register[code->in_registers++] = temp;
}

static value value_in(UInt slot, UInt bytes)
{
    value made = {.bytes = bytes};
    for (UInt k = 0; k < bytes; k++)
        made.byte[k] = slot + k;
    return made;
}

static UInt fresh_slots(copy_code *code, UInt count)
{
    UInt first = code->slots;
    code->slots += count;
    reserve_used(code);
    return first;
}

value code_fresh(copy_code *code, IRType type)
{
    UInt bytes = type_bytes(type);
    return value_in(fresh_slots(code, bytes), bytes);
}

value code_registers(IRType type, Int offset)
{
    return value_in((UInt)offset, type_bytes(type));
}

/* How many bytes from the k-th are of one kind, and for slots, follow each other. */
static UInt run_length(const value *bytes, UInt k)
{
    byte_source first = bytes->byte[k];
    UInt length = 1;
    for (; k + length < bytes->bytes; length++) {
        byte_source next = bytes->byte[k + length];
        if (byte_is_slot(first) ? next != first + length : byte_is_slot(next))
            break;
    }
    return length;
}

/* How many bytes from the k-th are computed from the same one. */
static UInt spread_length(const value *bytes, UInt k)
{
    UInt length = 1;
    while (k + length < bytes->bytes && bytes->byte[k + length] == bytes->byte[k])
        length++;
    return bytes->byte[k] & BYTE_FROM && byte_is_slot(bytes->byte[k]) ? length : 1;
}

UInt code_gathered(copy_code *code, const value *bytes)
{
    if (byte_is_slot(bytes->byte[0]) && !(bytes->byte[0] & BYTE_FROM) &&
        run_length(bytes, 0) == bytes->bytes)
        return bytes->byte[0];
    UInt first = fresh_slots(code, bytes->bytes);
    code_move(code, NULL, first, bytes);
    return first;
}

/* ---- Calls ---- */

IRExpr *code_computed(copy_code *code, IRType type, IRExpr *expression)
{
    IRTemp temp = newIRTemp(code->out->tyenv, type);
    addStmtToIRSB(code->out, IRStmt_WrTmp(temp, expression));
    return IRExpr_RdTmp(temp);
}

static IRDirty *call_of(const HChar *name, void *function, IRExpr **args)
{
    Int count = 0;
    while (args[count])
        count++;
    /* On 64 bits arguments are in registers anyway. */
    return unsafeIRDirty_0_N(count < 3 ? count : 3, name, VG_(fnptr_to_fnentry)(function), args);
}

void code_call(copy_code *code, IRExpr *guard, const HChar *name, void *function, IRExpr **args)
{
    IRDirty *call = call_of(name, function, args);
    if (guard)
        call->guard = guard;
    addStmtToIRSB(code->out, IRStmt_Dirty(call));
}

IRExpr *code_call_for_word(copy_code *code, const HChar *name, void *function, IRExpr **args)
{
    IRDirty *call = call_of(name, function, args);
    call->tmp = newIRTemp(code->out->tyenv, Ity_I64);
    addStmtToIRSB(code->out, IRStmt_Dirty(call));
    return IRExpr_RdTmp(call->tmp);
}

#define CALL2(code, guard, function, a, b)                                                         \
    code_call(code, guard, #function, (void *)function, mkIRExprVec_2(a, b))
#define CALL3(code, guard, function, a, b, c)                                                      \
    code_call(code, guard, #function, (void *)function, mkIRExprVec_3(a, b, c))

void code_move(copy_code *code, IRExpr *guard, UInt to, const value *from)
{
    for (UInt k = 0; k < from->bytes;) {
        byte_source source = from->byte[k];
        UInt length = run_length(from, k), spread = spread_length(from, k);
        IRExpr *there = mkIRExpr_HWord(to + k), *slot = mkIRExpr_HWord(slot_of(source));
        IRExpr *bytes = mkIRExpr_HWord(length);
        if (!byte_is_slot(source)) {
            CALL2(code, guard, slots_compute_call, there, bytes);
        } else if (spread > length) {
            CALL3(code, guard, slots_spread_from_call, there, slot, mkIRExpr_HWord(spread));
            length = spread;
        } else if (source & BYTE_FROM) {
            CALL3(code, guard, slots_move_from_call, there, slot, bytes);
        } else if (source != to + k) {
            CALL3(code, guard, slots_move_call, there, slot, bytes);
        }
        k += length;
    }
}

void code_store(copy_code *code, IRExpr *guard, IRExpr *address, const value *from)
{
    for (UInt k = 0; k < from->bytes;) {
        byte_source source = from->byte[k];
        UInt length = run_length(from, k), spread = spread_length(from, k);
        if (byte_is_slot(source) && !(source & BYTE_FROM)) {
            CALL3(code, guard, slots_store_call, address, mkIRExpr_HWord(source),
                  mkIRExpr_HWord(SLOTS_PACK(k, length)));
        } else {
            if (byte_is_slot(source)) { /* in memory, what it was computed from is forgotten */
                CALL2(code, guard, slots_use_call, mkIRExpr_HWord(slot_of(source)),
                      mkIRExpr_HWord(spread > length ? 1 : length));
                length = spread > length ? spread : length;
            }
            CALL2(code, guard, slots_store_computed_call, address,
                  mkIRExpr_HWord(SLOTS_PACK(k, length)));
        }
        k += length;
    }
}

/* ---- Uses ---- */

static Bool to_be_told(const copy_code *code, byte_source source)
{
    return byte_is_slot(source) && !code->used[slot_of(source)];
}

void code_use(copy_code *code, const value *bytes, UInt mask)
{
    for (UInt k = 0; k < bytes->bytes; k++) {
        if (!(mask >> k & 1) || !to_be_told(code, bytes->byte[k]))
            continue;
        UInt first = slot_of(bytes->byte[k]), length = 0;
        while (k + length < bytes->bytes && mask >> (k + length) & 1 &&
               to_be_told(code, bytes->byte[k + length]) &&
               slot_of(bytes->byte[k + length]) == first + length) {
            code->used[first + length] = 1;
            length++;
        }
        CALL2(code, NULL, slots_use_call, mkIRExpr_HWord(first), mkIRExpr_HWord(length));
        k += length - 1;
    }
}

static Bool holds(const value *bytes, byte_source source)
{
    for (UInt k = 0; k < bytes->bytes; k++) {
        if (bytes->byte[k] == source)
            return True;
    }
    return False;
}

value code_remember(copy_code *code, IRType type, const value *operands, UInt count)
{
    value made = value_computed(type);
    UInt room = made.bytes;
    made.bytes = 0;
    for (UInt j = 0; j < count; j++) {
        for (UInt k = 0; k < operands[j].bytes; k++) {
            byte_source source = operands[j].byte[k] | BYTE_FROM;
            if (!byte_is_slot(operands[j].byte[k]) || holds(&made, source))
                continue;
            if (made.bytes == room) {
                for (UInt each = 0; each < count; each++)
                    code_use(code, &operands[each], ~0u);
                return value_computed(type);
            }
            made.byte[made.bytes++] = source;
        }
    }
    made.bytes = room;
    return made;
}

void code_use_atom(copy_code *code, const IRExpr *atom)
{
    if (atom->tag == Iex_RdTmp)
        code_use(code, &code->held[atom->Iex.RdTmp.tmp], ~0u);
}

/* ---- Registers ---- */

/* Whether each byte that stands in these registers is put back where it stands. */
static Bool stays_in_place(const value *held, UInt first, UInt count)
{
    for (UInt k = 0; k < held->bytes; k++) {
        byte_source source = held->byte[k];
        if (byte_is_slot(source) && slot_of(source) - first < count && source != first + k)
            return False;
    }
    return True;
}

static Bool still_needed(const copy_code *code, IRTemp temp, UInt first, UInt count,
                         const IRExpr *put)
{
    const value *held = &code->held[temp];
    if (code->lives[temp].last_read < code->now || !stands_in(held, first, count))
        return False;
    if (code->lives[temp].last_read > code->now)
        return True;
    return put && put->tag == Iex_RdTmp && put->Iex.RdTmp.tmp == temp &&
           !stays_in_place(held, first, count);
}

void code_before_registers(copy_code *code, Int offset, UInt bytes, const IRExpr *put)
{
    UInt first = (UInt)offset;
    Bool needed = False;
    for (UInt k = 0; k < code->in_registers && !needed; k++)
        needed = still_needed(code, code->in_register[k], first, bytes, put);
    if (needed) {
        UInt fresh = fresh_slots(code, bytes);
        value there = {.bytes = 0};
        for (UInt done = 0; done < bytes; done += there.bytes) {
            UInt left = bytes - done;
            there = value_in(first + done, left < VALUE_BYTES ? left : VALUE_BYTES);
            code_move(code, NULL, fresh + done, &there);
        }
        VG_(memcpy)(code->used + fresh, code->used + first, bytes);
        for (UInt k = 0; k < code->in_registers; k++) {
            value *held = &code->held[code->in_register[k]];
            for (UInt b = 0; b < held->bytes; b++) {
                if (byte_is_slot(held->byte[b]) && slot_of(held->byte[b]) - first < bytes)
                    held->byte[b] += fresh - first;
            }
        }
    }
    VG_(memset)(code->used + first, 0, bytes);
}
