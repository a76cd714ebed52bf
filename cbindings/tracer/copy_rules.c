/* copy_rules.c - the operations that move bytes about and leave them as they are.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Lane 0 and byte 0 are the least significant. Where a rule drops bytes of an operand, they are not
 * used; where it makes bytes of a sign, these remember whose.
 */
#include "copy_rules.h"

UInt type_bytes(IRType type)
{
    return type == Ity_I1 ? 0 : (UInt)sizeofIRType(type);
}

value value_computed(IRType type)
{
    value made = {.bytes = type_bytes(type)};
    return made;
}

static void put_constant(value *made, UInt at, UInt bytes, ULong constant)
{
    for (UInt k = 0; k < bytes; k++)
        made->byte[at + k] = BYTE_CONSTANT | (k < 8 ? (constant >> (8 * k)) & 0xff : 0);
}

value value_constant(const IRConst *constant)
{
    value made = value_computed(typeOfIRConst(constant));
    switch (constant->tag) {
    case Ico_U8:
        put_constant(&made, 0, 1, constant->Ico.U8);
        break;
    case Ico_U16:
        put_constant(&made, 0, 2, constant->Ico.U16);
        break;
    case Ico_U32:
        put_constant(&made, 0, 4, constant->Ico.U32);
        break;
    case Ico_U64:
        put_constant(&made, 0, 8, constant->Ico.U64);
        break;
    case Ico_V128: /* one bit a byte */
        for (UInt k = 0; k < 16; k++)
            put_constant(&made, k, 1, constant->Ico.V128 >> k & 1 ? 0xff : 0);
        break;
    case Ico_V256:
        for (UInt k = 0; k < 32; k++)
            put_constant(&made, k, 1, constant->Ico.V256 >> k & 1 ? 0xff : 0);
        break;
    default: /* floating point: nobody masks with it */
        break;
    }
    return made;
}

/* ---- Moving bytes ---- */

static void take(value *made, UInt at, const value *from, UInt first, UInt bytes)
{
    for (UInt k = 0; k < bytes; k++)
        made->byte[at + k] = from->byte[first + k];
}

static byte_source sign_of(byte_source highest)
{
    if (byte_is_constant(highest))
        return BYTE_CONSTANT | (highest & 0x80 ? 0xff : 0);
    return byte_is_slot(highest) ? highest | BYTE_FROM : BYTE_COMPUTED;
}

static void extend(value *made, UInt from, UInt end, Bool by_sign)
{
    byte_source fill = by_sign && from > 0 ? sign_of(made->byte[from - 1]) : BYTE_CONSTANT;
    for (UInt k = from; k < end; k++)
        made->byte[k] = fill;
}

value value_widened(const value *narrow, IRType type, Bool by_sign)
{
    value made = value_computed(type);
    take(&made, 0, narrow, 0, narrow->bytes);
    extend(&made, narrow->bytes, made.bytes, by_sign);
    return made;
}

static void widen_lanes(value *made, const value *from, UInt lane, Bool by_sign)
{
    for (UInt k = 0; k < made->bytes / (2 * lane); k++) {
        take(made, 2 * k * lane, from, k * lane, lane);
        extend(made, 2 * k * lane + lane, 2 * (k + 1) * lane, by_sign);
    }
}

/* The lower half of each lane; the higher lanes of the result from the left operand. */
static void narrow_lanes(value *made, const value *left, const value *right, UInt lane)
{
    UInt lanes = right->bytes / lane;
    for (UInt k = 0; k < lanes; k++) {
        take(made, k * lane / 2, right, k * lane, lane / 2);
        if (left)
            take(made, (lanes + k) * lane / 2, left, k * lane, lane / 2);
    }
}

/* Lanes of both in turn, the right operand's first: from lane `first` on, each `step` lanes. */
static void interleave(value *made, const value *left, const value *right, UInt lane, UInt first,
                       UInt step)
{
    for (UInt k = 0; k < made->bytes / (2 * lane); k++) {
        take(made, 2 * k * lane, right, (first + k * step) * lane, lane);
        take(made, (2 * k + 1) * lane, left, (first + k * step) * lane, lane);
    }
}

static void interleave_high(value *made, const value *left, const value *right, UInt lane)
{
    interleave(made, left, right, lane, made->bytes / (2 * lane), 1);
}

/* Every second lane of the right operand, then of the left. */
static void concatenate_lanes(value *made, const value *left, const value *right, UInt lane,
                              UInt first)
{
    UInt half = made->bytes / 2;
    for (UInt k = 0; k < half / lane; k++) {
        take(made, k * lane, right, (first + 2 * k) * lane, lane);
        take(made, half + k * lane, left, (first + 2 * k) * lane, lane);
    }
}

/* Chunks within each lane in reverse order. */
static void reverse(value *made, const value *from, UInt chunk, UInt lane)
{
    for (UInt at = 0; at < made->bytes; at += lane) {
        for (UInt k = 0; k < lane; k += chunk)
            take(made, at + k, from, at + lane - chunk - k, chunk);
    }
}

/* ---- Unary ---- */

static Bool unary(IROp operation, const value *from, value *made)
{
    switch (operation) {
    case Iop_8Uto16:
    case Iop_8Uto32:
    case Iop_8Uto64:
    case Iop_16Uto32:
    case Iop_16Uto64:
    case Iop_32Uto64:
    case Iop_32UtoV128:
    case Iop_64UtoV128:
        take(made, 0, from, 0, from->bytes);
        extend(made, from->bytes, made->bytes, False);
        return True;
    case Iop_8Sto16:
    case Iop_8Sto32:
    case Iop_8Sto64:
    case Iop_16Sto32:
    case Iop_16Sto64:
    case Iop_32Sto64:
        take(made, 0, from, 0, from->bytes);
        extend(made, from->bytes, made->bytes, True);
        return True;
    case Iop_64to8:
    case Iop_32to8:
    case Iop_16to8:
    case Iop_64to16:
    case Iop_32to16:
    case Iop_64to32:
    case Iop_128to64:
    case Iop_V128to32:
    case Iop_V128to64:
    case Iop_V256to64_0:
    case Iop_V256toV128_0:
    case Iop_F128LOtoF64:
    case Iop_ReinterpV128asI128:
    case Iop_ReinterpI128asV128:
    case Iop_ReinterpF128asI128:
    case Iop_ReinterpI128asF128:
    case Iop_ReinterpF64asI64:
    case Iop_ReinterpI64asF64:
    case Iop_ReinterpF32asI32:
    case Iop_ReinterpI32asF32:
        take(made, 0, from, 0, made->bytes);
        return True;
    case Iop_16HIto8:
    case Iop_32HIto16:
    case Iop_64HIto32:
    case Iop_128HIto64:
    case Iop_V128HIto64:
    case Iop_V256toV128_1:
    case Iop_F128HItoF64:
        take(made, 0, from, made->bytes, made->bytes);
        return True;
    case Iop_V256to64_1:
        take(made, 0, from, 8, 8);
        return True;
    case Iop_V256to64_2:
        take(made, 0, from, 16, 8);
        return True;
    case Iop_V256to64_3:
        take(made, 0, from, 24, 8);
        return True;
    case Iop_ZeroHI64ofV128:
        take(made, 0, from, 0, 8);
        extend(made, 8, 16, False);
        return True;
    case Iop_ZeroHI96ofV128:
        take(made, 0, from, 0, 4);
        extend(made, 4, 16, False);
        return True;
    case Iop_ZeroHI112ofV128:
        take(made, 0, from, 0, 2);
        extend(made, 2, 16, False);
        return True;
    case Iop_ZeroHI120ofV128:
        take(made, 0, from, 0, 1);
        extend(made, 1, 16, False);
        return True;
    case Iop_Widen8Uto16x8:
        widen_lanes(made, from, 1, False);
        return True;
    case Iop_Widen16Uto32x4:
        widen_lanes(made, from, 2, False);
        return True;
    case Iop_Widen32Uto64x2:
        widen_lanes(made, from, 4, False);
        return True;
    case Iop_Widen8Sto16x8:
        widen_lanes(made, from, 1, True);
        return True;
    case Iop_Widen16Sto32x4:
        widen_lanes(made, from, 2, True);
        return True;
    case Iop_Widen32Sto64x2:
        widen_lanes(made, from, 4, True);
        return True;
    case Iop_NarrowUn16to8x8:
        narrow_lanes(made, NULL, from, 2);
        return True;
    case Iop_NarrowUn32to16x4:
        narrow_lanes(made, NULL, from, 4);
        return True;
    case Iop_NarrowUn64to32x2:
        narrow_lanes(made, NULL, from, 8);
        return True;
    case Iop_Dup8x8:
    case Iop_Dup16x4:
    case Iop_Dup32x2:
    case Iop_Dup8x16:
    case Iop_Dup16x8:
    case Iop_Dup32x4:
        for (UInt k = 0; k < made->bytes; k += from->bytes)
            take(made, k, from, 0, from->bytes);
        return True;
    case Iop_Reverse8sIn16_x4:
    case Iop_Reverse8sIn16_x8:
        reverse(made, from, 1, 2);
        return True;
    case Iop_Reverse8sIn32_x1:
    case Iop_Reverse8sIn32_x2:
    case Iop_Reverse8sIn32_x4:
        reverse(made, from, 1, 4);
        return True;
    case Iop_Reverse16sIn32_x2:
    case Iop_Reverse16sIn32_x4:
        reverse(made, from, 2, 4);
        return True;
    case Iop_Reverse8sIn64_x1:
    case Iop_Reverse8sIn64_x2:
        reverse(made, from, 1, 8);
        return True;
    case Iop_Reverse16sIn64_x1:
    case Iop_Reverse16sIn64_x2:
        reverse(made, from, 2, 8);
        return True;
    case Iop_Reverse32sIn64_x1:
    case Iop_Reverse32sIn64_x2:
        reverse(made, from, 4, 8);
        return True;
    default:
        return False;
    }
}

/* ---- Binary ---- */

static Bool rearrange(IROp operation, const value *left, const value *right, value *made)
{
    switch (operation) {
    case Iop_8HLto16:
    case Iop_16HLto32:
    case Iop_32HLto64:
    case Iop_64HLto128:
    case Iop_64HLtoV128:
    case Iop_V128HLtoV256:
    case Iop_F64HLtoF128:
        take(made, 0, right, 0, right->bytes);
        take(made, right->bytes, left, 0, left->bytes);
        return True;
    case Iop_SetV128lo32:
    case Iop_SetV128lo64:
        take(made, 0, left, 0, left->bytes);
        take(made, 0, right, 0, right->bytes);
        return True;
    case Iop_InterleaveLO8x8:
    case Iop_InterleaveLO8x16:
        interleave(made, left, right, 1, 0, 1);
        return True;
    case Iop_InterleaveLO16x4:
    case Iop_InterleaveLO16x8:
        interleave(made, left, right, 2, 0, 1);
        return True;
    case Iop_InterleaveLO32x2:
    case Iop_InterleaveLO32x4:
        interleave(made, left, right, 4, 0, 1);
        return True;
    case Iop_InterleaveLO64x2:
        interleave(made, left, right, 8, 0, 1);
        return True;
    case Iop_InterleaveHI8x8:
    case Iop_InterleaveHI8x16:
        interleave_high(made, left, right, 1);
        return True;
    case Iop_InterleaveHI16x4:
    case Iop_InterleaveHI16x8:
        interleave_high(made, left, right, 2);
        return True;
    case Iop_InterleaveHI32x2:
    case Iop_InterleaveHI32x4:
        interleave_high(made, left, right, 4);
        return True;
    case Iop_InterleaveHI64x2:
        interleave_high(made, left, right, 8);
        return True;
    case Iop_InterleaveEvenLanes8x8:
    case Iop_InterleaveEvenLanes8x16:
        interleave(made, left, right, 1, 0, 2);
        return True;
    case Iop_InterleaveOddLanes8x8:
    case Iop_InterleaveOddLanes8x16:
        interleave(made, left, right, 1, 1, 2);
        return True;
    case Iop_InterleaveEvenLanes16x4:
    case Iop_InterleaveEvenLanes16x8:
        interleave(made, left, right, 2, 0, 2);
        return True;
    case Iop_InterleaveOddLanes16x4:
    case Iop_InterleaveOddLanes16x8:
        interleave(made, left, right, 2, 1, 2);
        return True;
    case Iop_InterleaveEvenLanes32x4:
        interleave(made, left, right, 4, 0, 2);
        return True;
    case Iop_InterleaveOddLanes32x4:
        interleave(made, left, right, 4, 1, 2);
        return True;
    case Iop_CatEvenLanes8x16:
        concatenate_lanes(made, left, right, 1, 0);
        return True;
    case Iop_CatOddLanes8x16:
        concatenate_lanes(made, left, right, 1, 1);
        return True;
    case Iop_CatEvenLanes16x4:
    case Iop_CatEvenLanes16x8:
        concatenate_lanes(made, left, right, 2, 0);
        return True;
    case Iop_CatOddLanes16x4:
    case Iop_CatOddLanes16x8:
        concatenate_lanes(made, left, right, 2, 1);
        return True;
    case Iop_CatEvenLanes32x4:
        concatenate_lanes(made, left, right, 4, 0);
        return True;
    case Iop_CatOddLanes32x4:
        concatenate_lanes(made, left, right, 4, 1);
        return True;
    case Iop_NarrowBin16to8x8:
    case Iop_NarrowBin16to8x16:
        narrow_lanes(made, left, right, 2);
        return True;
    case Iop_NarrowBin32to16x4:
    case Iop_NarrowBin32to16x8:
        narrow_lanes(made, left, right, 4);
        return True;
    case Iop_NarrowBin64to32x4:
        narrow_lanes(made, left, right, 8);
        return True;
    default:
        return False;
    }
}

shift_kind shift_of(IROp operation, UInt *lane)
{
    switch (operation) {
#define SHIFTS(kind, prefix)                                                                       \
    case prefix##8:                                                                                \
        *lane = 1;                                                                                 \
        return kind;                                                                               \
    case prefix##16:                                                                               \
        *lane = 2;                                                                                 \
        return kind;                                                                               \
    case prefix##32:                                                                               \
        *lane = 4;                                                                                 \
        return kind;                                                                               \
    case prefix##64:                                                                               \
        *lane = 8;                                                                                 \
        return kind;                                                                               \
    case prefix##V128:                                                                             \
        *lane = 16;                                                                                \
        return kind;
        SHIFTS(SHIFT_LEFT, Iop_Shl)
        SHIFTS(SHIFT_RIGHT, Iop_Shr)
        SHIFTS(SHIFT_RIGHT_SIGNED, Iop_Sar)
#undef SHIFTS
#define LANE_SHIFTS(kind, prefix)                                                                  \
    case prefix##16x4:                                                                             \
    case prefix##16x8:                                                                             \
    case prefix##16x16:                                                                            \
        *lane = 2;                                                                                 \
        return kind;                                                                               \
    case prefix##32x2:                                                                             \
    case prefix##32x4:                                                                             \
    case prefix##32x8:                                                                             \
        *lane = 4;                                                                                 \
        return kind;                                                                               \
    case prefix##64x2:                                                                             \
    case prefix##64x4:                                                                             \
        *lane = 8;                                                                                 \
        return kind;
        LANE_SHIFTS(SHIFT_LEFT, Iop_ShlN)
        LANE_SHIFTS(SHIFT_RIGHT, Iop_ShrN)
#undef LANE_SHIFTS
    default:
        return SHIFT_NONE;
    }
}

/* A shift by whole bytes. */
static Bool shift(IROp operation, const value *from, const value *amount, value *made)
{
    UInt lane = 0;
    shift_kind kind = shift_of(operation, &lane);
    if (kind == SHIFT_NONE || amount->bytes != 1 || !byte_is_constant(amount->byte[0]))
        return False;
    UInt bits = amount->byte[0] & 0xff, by = bits / 8;
    if (bits % 8 != 0 || by >= lane)
        return False;
    for (UInt at = 0; at < made->bytes; at += lane) {
        byte_source fill = BYTE_CONSTANT;
        if (kind == SHIFT_LEFT) {
            take(made, at + by, from, at, lane - by);
        } else {
            take(made, at, from, at + by, lane - by);
            if (kind == SHIFT_RIGHT_SIGNED)
                fill = sign_of(from->byte[at + lane - 1]);
        }
        for (UInt k = 0; k < by; k++)
            made->byte[kind == SHIFT_LEFT ? at + k : at + lane - 1 - k] = fill;
    }
    return True;
}

logic_kind logic_of(IROp operation)
{
    switch (operation) {
    case Iop_And8:
    case Iop_And16:
    case Iop_And32:
    case Iop_And64:
    case Iop_AndV128:
    case Iop_AndV256:
        return LOGIC_AND;
    case Iop_Or8:
    case Iop_Or16:
    case Iop_Or32:
    case Iop_Or64:
    case Iop_OrV128:
    case Iop_OrV256:
        return LOGIC_OR;
    case Iop_Xor8:
    case Iop_Xor16:
    case Iop_Xor32:
    case Iop_Xor64:
    case Iop_XorV128:
    case Iop_XorV256:
        return LOGIC_XOR;
    default:
        return LOGIC_NONE;
    }
}

static UInt combine(logic_kind kind, UInt left, UInt right)
{
    return kind == LOGIC_AND ? left & right : kind == LOGIC_OR ? left | right : left ^ right;
}

/* One byte against a constant: whether the result is known, as a copy or a constant. */
static Bool logic_with_constant(logic_kind kind, byte_source other, UInt constant,
                                byte_source *made)
{
    if (byte_is_constant(other)) {
        *made = BYTE_CONSTANT | combine(kind, other & 0xff, constant);
        return True;
    }
    UInt neutral = kind == LOGIC_AND ? 0xff : 0;
    if (constant == neutral) {
        *made = other;
        return True;
    }
    if (kind != LOGIC_XOR && constant == (neutral ^ 0xff)) {
        *made = BYTE_CONSTANT | constant;
        return True;
    }
    return False;
}

static Bool logic(IROp operation, const value *left, const value *right, value *made,
                  UInt used[OPERANDS])
{
    logic_kind kind = logic_of(operation);
    if (kind == LOGIC_NONE)
        return False;
    for (UInt k = 0; k < made->bytes; k++) {
        byte_source a = left->byte[k], b = right->byte[k];
        Bool known = False;
        if (byte_is_constant(b))
            known = logic_with_constant(kind, a, b & 0xff, &made->byte[k]);
        else if (byte_is_constant(a))
            known = logic_with_constant(kind, b, a & 0xff, &made->byte[k]);
        else if (a == b && byte_is_slot(a)) { /* the very same bits */
            made->byte[k] = kind == LOGIC_XOR ? BYTE_CONSTANT : a;
            known = True;
        }
        if (!known) {
            made->byte[k] = BYTE_COMPUTED;
            used[0] |= 1u << k;
            used[1] |= 1u << k;
        }
    }
    return True;
}

/* ---- All ---- */

/* The lowest bytes of left:right, shifted right by whole bytes. */
static Bool slice(IROp operation, const value *operands, value *made)
{
    if (operation != Iop_SliceV128 && operation != Iop_Slice64)
        return False;
    if (!byte_is_constant(operands[2].byte[0]))
        return False;
    UInt by = operands[2].byte[0] & 0xff;
    if (by > made->bytes)
        return False;
    take(made, 0, &operands[1], by, made->bytes - by);
    take(made, made->bytes - by, &operands[0], 0, by);
    return True;
}

value value_of_operation(IROp operation, IRType type, const value *operands, UInt count,
                         UInt used[OPERANDS])
{
    value made = value_computed(type);
    for (UInt k = 0; k < OPERANDS; k++)
        used[k] = 0;
    if (count == 1 && unary(operation, &operands[0], &made))
        return made;
    if (count == 2 && (rearrange(operation, &operands[0], &operands[1], &made) ||
                       shift(operation, &operands[0], &operands[1], &made) ||
                       logic(operation, &operands[0], &operands[1], &made, used)))
        return made;
    if (count == 3 && slice(operation, operands, &made))
        return made;
    if (count == 4 && operation == Iop_64x4toV256) {
        for (UInt k = 0; k < 4; k++)
            take(&made, 8 * k, &operands[3 - k], 0, 8);
        return made;
    }
    for (UInt k = 0; k < count; k++)
        used[k] = ~0u;
    return value_computed(type);
}
