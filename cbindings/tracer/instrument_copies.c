/* instrument_copies.c - follows copies through a block of the program, statement by statement.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * What operations do to values is in copy_operations.c and copy_rules.c, what is known of them in
 * copy_code.c, and what happens when the block runs in slots.c. Tests:
 * tests/tracer/test_tracer_copies.py.
 */
#include "instrument.h"
#include "copy_operations.h"
#include "registers.h"
#include "slots.h"
#include "stack_frames.h"

#include <pub_tool_machine.h>

#define WORD(number) mkIRExpr_HWord(number)

/* ---- Pieces of code ---- */

static void call2(copy_code *code, IRExpr *guard, const HChar *name, void *function, IRExpr *a,
                  IRExpr *b)
{
    code_call(code, guard, name, function, mkIRExprVec_2(a, b));
}

static void call3(copy_code *code, IRExpr *guard, const HChar *name, void *function, IRExpr *a,
                  IRExpr *b, IRExpr *c)
{
    code_call(code, guard, name, function, mkIRExprVec_3(a, b, c));
}

#define CALL2(code, guard, function, a, b) call2(code, guard, #function, (void *)function, a, b)
#define CALL3(code, guard, function, a, b, c)                                                      \
    call3(code, guard, #function, (void *)function, a, b, c)

static void use_memory(copy_code *code, IRExpr *guard, IRExpr *address, UInt bytes)
{
    CALL2(code, guard, slots_use_memory_call, address, WORD(bytes));
}

static void store_computed(copy_code *code, IRExpr *guard, IRExpr *address, UInt bytes)
{
    CALL2(code, guard, slots_store_computed_call, address, WORD(SLOTS_PACK(0, bytes)));
}

/* The slot of an element of a circular array of registers, as a word at run time. */
static IRExpr *element_slot(copy_code *code, const IRRegArray *array, IRExpr *index, Int bias)
{
    IRExpr *wide = code_computed(code, Ity_I64, IRExpr_Unop(Iop_32Uto64, index));
    IRExpr **args = mkIRExprVec_3(wide, WORD(SLOTS_PACK(array->base, array->nElems)),
                                  WORD(SLOTS_PACK(type_bytes(array->elemTy), (UInt)bias)));
    return code_call_for_word(code, "slots_of_element_call", (void *)slots_of_element_call, args);
}

/* ---- Expressions ---- */

static value load(copy_code *code, IREndness end, IRType type, IRExpr *address)
{
    code_use_atom(code, address);
    if (end != Iend_LE) {
        use_memory(code, NULL, address, type_bytes(type));
        return value_computed(type);
    }
    value made = code_fresh(code, type);
    CALL3(code, NULL, slots_load_call, address, WORD(made.byte[0]), WORD(made.bytes));
    return made;
}

static value get_indexed(copy_code *code, const IRExpr *get)
{
    const IRRegArray *array = get->Iex.GetI.descr;
    code_use_atom(code, get->Iex.GetI.ix);
    if (!registers_carry(array->base))
        return value_computed(array->elemTy);
    value made = code_fresh(code, array->elemTy);
    IRExpr *slot = element_slot(code, array, get->Iex.GetI.ix, get->Iex.GetI.bias);
    CALL3(code, NULL, slots_move_call, WORD(made.byte[0]), slot, WORD(made.bytes));
    return made;
}

/* A choice by a condition: the condition is used (where it was computed), what is chosen copied. */
static value choice(copy_code *code, IRType type, IRExpr *condition, IRExpr *if_true,
                    IRExpr *if_false)
{
    value yes = code_value(code, if_true), no = code_value(code, if_false);
    value made = value_computed(type);
    Bool copies = False, same = True;
    for (UInt k = 0; k < made.bytes; k++) {
        copies |= byte_is_slot(yes.byte[k]) || byte_is_slot(no.byte[k]);
        same &= yes.byte[k] == no.byte[k];
    }
    if (same)
        return yes;
    if (!copies)
        return made;
    made = code_fresh(code, type);
    code_move(code, NULL, made.byte[0], &no);
    code_move(code, condition, made.byte[0], &yes);
    return made;
}

/* The operands of an operation, or the arguments of a call; their number. */
static UInt operands_of(const IRExpr *read, IROp *op, IRExpr *atoms[OPERANDS])
{
    switch (read->tag) {
    case Iex_Unop:
        *op = read->Iex.Unop.op;
        atoms[0] = read->Iex.Unop.arg;
        return 1;
    case Iex_Binop:
        *op = read->Iex.Binop.op;
        atoms[0] = read->Iex.Binop.arg1;
        atoms[1] = read->Iex.Binop.arg2;
        return 2;
    case Iex_Triop:
        *op = read->Iex.Triop.details->op;
        atoms[0] = read->Iex.Triop.details->arg1;
        atoms[1] = read->Iex.Triop.details->arg2;
        atoms[2] = read->Iex.Triop.details->arg3;
        return 3;
    case Iex_Qop:
        *op = read->Iex.Qop.details->op;
        atoms[0] = read->Iex.Qop.details->arg1;
        atoms[1] = read->Iex.Qop.details->arg2;
        atoms[2] = read->Iex.Qop.details->arg3;
        atoms[3] = read->Iex.Qop.details->arg4;
        return 4;
    default:
        return 0;
    }
}

static value evaluate(copy_code *code, IRTemp temp, IRType type, IRExpr *read)
{
    IROp op = Iop_INVALID;
    IRExpr *atoms[OPERANDS];
    UInt count = operands_of(read, &op, atoms);
    if (count && !code->lives[temp].value) { /* nobody but flags wants it, and they perhaps */
        value operands[OPERANDS];
        for (UInt k = 0; k < count; k++)
            operands[k] = code_value(code, atoms[k]);
        return code_remember(code, type, operands, count);
    }
    if (count)
        return code_operation(code, type, op, atoms, count);
    switch (read->tag) {
    case Iex_Get:
        return registers_carry(read->Iex.Get.offset) ? code_registers(type, read->Iex.Get.offset)
                                                     : value_computed(type);
    case Iex_GetI:
        return get_indexed(code, read);
    case Iex_RdTmp:
    case Iex_Const:
        return code_value(code, read);
    case Iex_Load:
        return load(code, read->Iex.Load.end, type, read->Iex.Load.addr);
    case Iex_ITE:
        return choice(code, type, read->Iex.ITE.cond, read->Iex.ITE.iftrue, read->Iex.ITE.iffalse);
    case Iex_CCall:
        for (IRExpr **argument = read->Iex.CCall.args; *argument; argument++)
            code_use_atom(code, *argument);
        return value_computed(type);
    default:
        return value_computed(type);
    }
}

/* ---- Statements ---- */

static void put(copy_code *code, Int offset, const IRExpr *data)
{
    if (!registers_carry(offset)) {
        code_use_atom(code, data);
        return;
    }
    code_before_registers(code, offset, code_value(code, data).bytes, data);
    value held = code_value(code, data); /* as it is now */
    code_move(code, NULL, (UInt)offset, &held);
}

static void put_indexed(copy_code *code, const IRPutI *details)
{
    const IRRegArray *array = details->descr;
    UInt bytes = type_bytes(array->elemTy);
    code_use_atom(code, details->ix);
    if (!registers_carry(array->base)) {
        code_use_atom(code, details->data);
        return;
    }
    value held = code_value(code, details->data);
    UInt there = code_gathered(code, &held);
    code_before_registers(code, array->base, bytes * (UInt)array->nElems, NULL);
    IRExpr *slot = element_slot(code, array, details->ix, details->bias);
    CALL3(code, NULL, slots_move_call, slot, WORD(there), WORD(bytes));
}

static void store(copy_code *code, IRExpr *guard, IREndness end, IRExpr *address, IRExpr *data)
{
    value held = code_value(code, data);
    code_use_atom(code, address);
    if (end == Iend_LE) {
        code_store(code, guard, address, &held);
    } else {
        code_use(code, &held, ~0u);
        store_computed(code, guard, address, held.bytes);
    }
}

static void load_guarded(copy_code *code, const IRLoadG *details)
{
    IRType type, loaded;
    typeOfIRLoadGOp(details->cvt, &type, &loaded);
    code_use_atom(code, details->addr);
    if (details->end != Iend_LE) {
        code_use_atom(code, details->alt);
        use_memory(code, details->guard, details->addr, type_bytes(loaded));
        return;
    }
    value made = code_fresh(code, type), alternative = code_value(code, details->alt);
    value narrow = code_fresh(code, loaded);
    CALL3(code, details->guard, slots_load_call, details->addr, WORD(narrow.byte[0]),
          WORD(narrow.bytes));
    code_move(code, NULL, made.byte[0], &alternative);
    Bool by_sign = details->cvt == ILGop_8Sto32 || details->cvt == ILGop_16Sto32;
    value wide = value_widened(&narrow, type, by_sign);
    code_move(code, details->guard, made.byte[0], &wide);
    code_set(code, details->dst, &made);
}

/* The old value is compared, and so used; what stands there afterwards, who knows. */
static void compare_and_swap(copy_code *code, const IRCAS *details)
{
    const IRExpr *atoms[] = {details->addr, details->expdLo, details->expdHi, details->dataLo,
                             details->dataHi};
    for (UInt k = 0; k < sizeof(atoms) / sizeof(atoms[0]); k++) {
        if (atoms[k])
            code_use_atom(code, atoms[k]);
    }
    UInt bytes = type_bytes(typeOfIRExpr(code->in->tyenv, details->dataLo));
    if (details->dataHi)
        bytes *= 2;
    use_memory(code, NULL, details->addr, bytes);
    store_computed(code, NULL, details->addr, bytes);
}

static void load_linked_or_store(copy_code *code, IRTemp result, IRExpr *address,
                                 IRExpr *store_data)
{
    code_use_atom(code, address);
    if (store_data) {
        code_use_atom(code, store_data);
        store_computed(code, NULL, address, type_bytes(typeOfIRExpr(code->in->tyenv, store_data)));
    } else {
        use_memory(code, NULL, address, type_bytes(typeOfIRTemp(code->in->tyenv, result)));
    }
}

static void helper_registers(copy_code *code, const IRDirty *details, Int which)
{
    IREffect effect = details->fxState[which].fx;
    for (Int k = 0; k <= details->fxState[which].nRepeats; k++) {
        Int offset = details->fxState[which].offset + k * details->fxState[which].repeatLen;
        UInt bytes = details->fxState[which].size;
        if (effect != Ifx_Write)
            CALL2(code, details->guard, slots_use_call, WORD((UInt)offset), WORD(bytes));
        if (effect != Ifx_Read) {
            code_before_registers(code, offset, bytes, NULL);
            CALL2(code, details->guard, slots_compute_call, WORD((UInt)offset), WORD(bytes));
        }
    }
}

/* A helper of Valgrind's: nobody sees what it does with its arguments, memory and registers. */
static void helper(copy_code *code, const IRDirty *details)
{
    for (IRExpr **argument = details->args; *argument; argument++) {
        if (!is_IRExpr_VECRET_or_GSPTR(*argument))
            code_use_atom(code, *argument);
    }
    if (details->mFx != Ifx_None) {
        code_use_atom(code, details->mAddr);
        if (details->mFx != Ifx_Write)
            use_memory(code, details->guard, details->mAddr, (UInt)details->mSize);
        if (details->mFx != Ifx_Read)
            store_computed(code, details->guard, details->mAddr, (UInt)details->mSize);
    }
    for (Int k = 0; k < details->nFxState; k++)
        helper_registers(code, details, k);
}

static void follow(copy_code *code, const IRStmt *what)
{
    switch (what->tag) {
    case Ist_WrTmp: {
        IRTemp temp = what->Ist.WrTmp.tmp;
        value made =
            evaluate(code, temp, typeOfIRTemp(code->in->tyenv, temp), what->Ist.WrTmp.data);
        code_set(code, temp, &made);
        break;
    }
    case Ist_Put:
        put(code, what->Ist.Put.offset, what->Ist.Put.data);
        break;
    case Ist_PutI:
        put_indexed(code, what->Ist.PutI.details);
        break;
    case Ist_Store:
        store(code, NULL, what->Ist.Store.end, what->Ist.Store.addr, what->Ist.Store.data);
        break;
    case Ist_StoreG: {
        const IRStoreG *details = what->Ist.StoreG.details;
        store(code, details->guard, details->end, details->addr, details->data);
        break;
    }
    case Ist_LoadG:
        load_guarded(code, what->Ist.LoadG.details);
        break;
    case Ist_CAS:
        compare_and_swap(code, what->Ist.CAS.details);
        break;
    case Ist_LLSC:
        load_linked_or_store(code, what->Ist.LLSC.result, what->Ist.LLSC.addr,
                             what->Ist.LLSC.storedata);
        break;
    case Ist_Dirty:
        helper(code, what->Ist.Dirty.details);
        break;
    default: /* a condition was used where its bit was computed */
        break;
    }
}

/* The end: where the block goes, and what the kernel or the tool's core will do then. */
static void follow_end(copy_code *code)
{
    code->now = (UInt)code->in->stmts_used;
    code_use_atom(code, code->in->next);
    if (code->in->jumpkind == Ijk_ClientReq) {
        enum { REQUEST_BYTES = 6 * 8 }; /* the request and its five arguments */
        IRExpr *at = code_computed(code, Ity_I64, IRExpr_Get(registers_request(), Ity_I64));
        use_memory(code, NULL, at, REQUEST_BYTES);
    }
    for (const Int *lost = registers_lost_by(code->in->jumpkind); *lost >= 0; lost++)
        CALL2(code, NULL, slots_compute_call, WORD((UInt)*lost), WORD(8));
}

IRSB *instrument_copies(IRSB *block, const VexGuestLayout *layout)
{
    static copy_code code; /* these keep their memory */
    static stack_frames frames;
    tl_assert(layout->total_sizeB <= SLOT_REGISTERS);
    IRSB *out = deepCopyIRSBExceptStmts(block);
    copy_code_begin(&code, block, out);
    stack_frames_begin(&frames, block, layout);
    Int k = 0;
    for (; k < block->stmts_used && block->stmts[k]->tag != Ist_IMark; k++)
        addStmtToIRSB(out, block->stmts[k]); /* Valgrind's own */
    code_call(&code, NULL, "registers_enter_call", (void *)registers_enter_call, mkIRExprVec_0());
    for (; k < block->stmts_used; k++) {
        code.now = (UInt)k;
        follow(&code, block->stmts[k]);
        UInt frame = stack_frames_made(&frames, block->stmts[k]);
        if (frame)
            CALL2(&code, NULL, slots_new_frame_call, block->stmts[k]->Ist.Put.data, WORD(frame));
        addStmtToIRSB(out, block->stmts[k]);
    }
    follow_end(&code);
    copy_code_end(&code);
    return out;
}
