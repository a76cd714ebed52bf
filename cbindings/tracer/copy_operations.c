/* copy_operations.c - operations whose effect on copies depends on values at run time, and all
 * others.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Tests: tests/tracer/test_tracer_copies.py.
 */
#include "copy_operations.h"
#include "slots.h"

#define WORD(number) mkIRExpr_HWord(number)
#define CALL(code, function, args) code_call(code, NULL, #function, (void *)function, args)

/* ---- Values as words ---- */

/* Words of 8 bytes that a call is given: at most the half of a vector of 32 bytes. */
typedef struct {
    IRExpr *word[2];
} words;

static IRExpr *word_of(copy_code *code, IRType type, IRExpr *atom)
{
    switch (type) {
    case Ity_I64:
        return atom;
    case Ity_I32:
        return code_computed(code, Ity_I64, IRExpr_Unop(Iop_32Uto64, atom));
    case Ity_I16:
        return code_computed(code, Ity_I64, IRExpr_Unop(Iop_16Uto64, atom));
    default:
        return code_computed(code, Ity_I64, IRExpr_Unop(Iop_8Uto64, atom));
    }
}

/* The 16 bytes from byte 16 * half on. */
static words words_of(copy_code *code, IRType type, IRExpr *atom, UInt half)
{
    static const IROp of_32[] = {Iop_V256to64_0, Iop_V256to64_1, Iop_V256to64_2, Iop_V256to64_3};
    static const IROp of_16[] = {Iop_V128to64, Iop_V128HIto64};
    words made;
    if (type != Ity_V128 && type != Ity_V256) {
        made.word[0] = word_of(code, type, atom);
        made.word[1] = WORD(0);
        return made;
    }
    for (UInt k = 0; k < 2; k++) {
        IROp part = type == Ity_V256 ? of_32[2 * half + k] : of_16[k];
        made.word[k] = code_computed(code, Ity_I64, IRExpr_Unop(part, atom));
    }
    return made;
}

/* A call with slots of two operands and their values. */
static void call_with_values(copy_code *code, const HChar *name, void *function, UInt to, UInt left,
                             UInt right, UInt kind, words lefts, words rights)
{
    code_call(code, NULL, name, function,
              mkIRExprVec_6(WORD(SLOTS_PACK(to, left)), WORD(SLOTS_PACK(right, kind)),
                            lefts.word[0], lefts.word[1], rights.word[0], rights.word[1]));
}

/* ---- Masks and narrowing ---- */

static value logic_at_run_time(copy_code *code, IRType type, logic_kind kind, IRExpr *const *atoms)
{
    value left = code_value(code, atoms[0]), right = code_value(code, atoms[1]);
    UInt left_slot = code_gathered(code, &left), right_slot = code_gathered(code, &right);
    value made = code_fresh(code, type);
    for (UInt at = 0; at < made.bytes; at += 16) {
        UInt bytes = made.bytes - at < 16 ? made.bytes - at : 16;
        call_with_values(code, "slots_logic_call", (void *)slots_logic_call, made.byte[at],
                         left_slot + at, right_slot + at, (UInt)kind << 16 | bytes,
                         words_of(code, type, atoms[0], at / 16),
                         words_of(code, type, atoms[1], at / 16));
    }
    return made;
}

/* The kind for slots_narrow_call, or 0. */
static UInt narrow_of(IROp op)
{
    switch (op) {
    case Iop_QNarrowBin16Sto8Ux16:
        return 2;
    case Iop_QNarrowBin32Sto16Ux8:
        return 4;
    case Iop_QNarrowBin16Sto8Sx16:
        return 2 | NARROW_TO_SIGNED;
    case Iop_QNarrowBin32Sto16Sx8:
        return 4 | NARROW_TO_SIGNED;
    default:
        return 0;
    }
}

static value narrow(copy_code *code, UInt kind, IRExpr *const *atoms)
{
    value left = code_value(code, atoms[0]), right = code_value(code, atoms[1]);
    UInt left_slot = code_gathered(code, &left), right_slot = code_gathered(code, &right);
    value made = code_fresh(code, Ity_V128);
    call_with_values(code, "slots_narrow_call", (void *)slots_narrow_call, made.byte[0], left_slot,
                     right_slot, kind, words_of(code, Ity_V128, atoms[0], 0),
                     words_of(code, Ity_V128, atoms[1], 0));
    return made;
}

/* ---- Choices by indices, and shifts ---- */

/* Lanes of four bytes chosen by the lanes of a second operand, which is used. */
static value permute_lanes(copy_code *code, IRExpr *from, IRExpr *control)
{
    value bytes = code_value(code, from);
    code_use_atom(code, control);
    UInt there = code_gathered(code, &bytes);
    value made = code_fresh(code, Ity_V256);
    IRExpr *words[4];
    static const IROp part[] = {Iop_V256to64_0, Iop_V256to64_1, Iop_V256to64_2, Iop_V256to64_3};
    for (UInt k = 0; k < 4; k++)
        words[k] = code_computed(code, Ity_I64, IRExpr_Unop(part[k], control));
    code_call(code, NULL, "slots_permute_lanes_call", (void *)slots_permute_lanes_call,
              mkIRExprVec_5(WORD(SLOTS_PACK(made.byte[0], there)), words[0], words[1], words[2],
                            words[3]));
    return made;
}

/* Bytes chosen by the bytes of a second operand, which is used. */
static value permute(copy_code *code, IRExpr *from, IRExpr *control)
{
    value bytes = code_value(code, from);
    code_use_atom(code, control);
    UInt there = code_gathered(code, &bytes);
    value made = code_fresh(code, Ity_V128);
    IRExpr *low = code_computed(code, Ity_I64, IRExpr_Unop(Iop_V128to64, control));
    IRExpr *high = code_computed(code, Ity_I64, IRExpr_Unop(Iop_V128HIto64, control));
    CALL(code, slots_permute_call, mkIRExprVec_3(WORD(SLOTS_PACK(made.byte[0], there)), low, high));
    return made;
}

/* A shift by a number of bits that is only known when it happens; the number is used. */
static value shift_by(copy_code *code, IRType type, shift_kind kind, IRExpr *from, IRExpr *bits)
{
    value bytes = code_value(code, from);
    code_use_atom(code, bits);
    UInt there = code_gathered(code, &bytes);
    value made = code_fresh(code, type);
    CALL(code, slots_shift_call,
         mkIRExprVec_3(WORD(SLOTS_PACK(made.byte[0], there)), WORD(SLOTS_PACK(kind, made.bytes)),
                       code_computed(code, Ity_I64, IRExpr_Unop(Iop_8Uto64, bits))));
    return made;
}

static Bool is_shift_of_word(IROp op, IRType type, shift_kind *kind)
{
    UInt lane;
    *kind = shift_of(op, &lane);
    return *kind != SHIFT_NONE && lane == type_bytes(type) && lane <= 8;
}

value code_operation(copy_code *code, IRType type, IROp op, IRExpr *const *atoms, UInt count)
{
    if (op == Iop_Perm8x16 || op == Iop_PermOrZero8x16)
        return permute(code, atoms[0], atoms[1]);
    if (op == Iop_Perm32x8)
        return permute_lanes(code, atoms[0], atoms[1]);
    if (narrow_of(op))
        return narrow(code, narrow_of(op), atoms);
    shift_kind kind;
    if (count == 2 && atoms[1]->tag == Iex_RdTmp && is_shift_of_word(op, type, &kind))
        return shift_by(code, type, kind, atoms[0], atoms[1]);
    value operands[OPERANDS] = {{0}};
    UInt used[OPERANDS];
    for (UInt k = 0; k < count; k++)
        operands[k] = code_value(code, atoms[k]);
    value made = value_of_operation(op, type, operands, count, used);
    if (count == 2 && logic_of(op) != LOGIC_NONE && (used[0] || used[1]))
        return logic_at_run_time(code, type, logic_of(op), atoms);
    for (UInt k = 0; k < count; k++)
        code_use(code, &operands[k], used[k]);
    return made;
}
