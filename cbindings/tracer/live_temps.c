/* live_temps.c - what becomes of each temporary of a block.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "live_temps.h"
#include "registers.h"

/* A statement, which gives a value on or not. Statements are looked at from the last to the first.
 */
typedef struct {
    temp_life *lives;
    UInt number;
    Bool value;
} reader;

static void atom(const IRExpr *read, const reader *by)
{
    if (!read || read->tag != Iex_RdTmp)
        return;
    temp_life *life = &by->lives[read->Iex.RdTmp.tmp];
    if (life->last_read < by->number)
        life->last_read = by->number;
    life->value |= by->value;
}

static void arguments(IRExpr *const *list, const reader *by)
{
    for (; *list; list++)
        atom(*list, by);
}

static void expression(const IRExpr *read, const reader *by)
{
    switch (read->tag) {
    case Iex_GetI:
        atom(read->Iex.GetI.ix, by);
        break;
    case Iex_RdTmp:
        atom(read, by);
        break;
    case Iex_Qop:
        atom(read->Iex.Qop.details->arg1, by);
        atom(read->Iex.Qop.details->arg2, by);
        atom(read->Iex.Qop.details->arg3, by);
        atom(read->Iex.Qop.details->arg4, by);
        break;
    case Iex_Triop:
        atom(read->Iex.Triop.details->arg1, by);
        atom(read->Iex.Triop.details->arg2, by);
        atom(read->Iex.Triop.details->arg3, by);
        break;
    case Iex_Binop:
        atom(read->Iex.Binop.arg1, by);
        atom(read->Iex.Binop.arg2, by);
        break;
    case Iex_Unop:
        atom(read->Iex.Unop.arg, by);
        break;
    case Iex_Load:
        atom(read->Iex.Load.addr, by);
        break;
    case Iex_ITE:
        atom(read->Iex.ITE.cond, by);
        atom(read->Iex.ITE.iftrue, by);
        atom(read->Iex.ITE.iffalse, by);
        break;
    case Iex_CCall:
        arguments(read->Iex.CCall.args, by);
        break;
    default:
        break;
    }
}

static void statement(const IRStmt *reads, const reader *by)
{
    switch (reads->tag) {
    case Ist_Put:
        atom(reads->Ist.Put.data, by);
        break;
    case Ist_PutI:
        atom(reads->Ist.PutI.details->ix, by);
        atom(reads->Ist.PutI.details->data, by);
        break;
    case Ist_WrTmp:
        expression(reads->Ist.WrTmp.data, by);
        break;
    case Ist_Store:
        atom(reads->Ist.Store.addr, by);
        atom(reads->Ist.Store.data, by);
        break;
    case Ist_LoadG:
        atom(reads->Ist.LoadG.details->addr, by);
        atom(reads->Ist.LoadG.details->alt, by);
        atom(reads->Ist.LoadG.details->guard, by);
        break;
    case Ist_StoreG:
        atom(reads->Ist.StoreG.details->addr, by);
        atom(reads->Ist.StoreG.details->data, by);
        atom(reads->Ist.StoreG.details->guard, by);
        break;
    case Ist_CAS:
        atom(reads->Ist.CAS.details->addr, by);
        atom(reads->Ist.CAS.details->expdLo, by);
        atom(reads->Ist.CAS.details->expdHi, by);
        atom(reads->Ist.CAS.details->dataLo, by);
        atom(reads->Ist.CAS.details->dataHi, by);
        break;
    case Ist_LLSC:
        atom(reads->Ist.LLSC.addr, by);
        atom(reads->Ist.LLSC.storedata, by);
        break;
    case Ist_Dirty:
        atom(reads->Ist.Dirty.details->guard, by);
        atom(reads->Ist.Dirty.details->mAddr, by);
        arguments(reads->Ist.Dirty.details->args, by);
        break;
    case Ist_Exit:
        atom(reads->Ist.Exit.guard, by);
        break;
    default:
        break;
    }
}

static Bool gives_value(const IRStmt *reads, const temp_life *lives)
{
    switch (reads->tag) {
    case Ist_Put:
        return !registers_flags(reads->Ist.Put.offset);
    case Ist_WrTmp: /* an address is used, whatever is done with what stands there */
        return lives[reads->Ist.WrTmp.tmp].value || reads->Ist.WrTmp.data->tag == Iex_Load ||
               reads->Ist.WrTmp.data->tag == Iex_GetI;
    default:
        return True;
    }
}

void live_temps(const IRSB *block, temp_life *lives)
{
    for (Int t = 0; t < block->tyenv->types_used; t++)
        lives[t] = (temp_life){0, False};
    reader by = {lives, (UInt)block->stmts_used, True};
    atom(block->next, &by);
    while (by.number > 0) {
        const IRStmt *reads = block->stmts[--by.number];
        by.value = gives_value(reads, lives);
        statement(reads, &by);
    }
}
