/* live_temps.c - where each temporary of a block is read for the last time.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "live_temps.h"

static void atom(const IRExpr *read, UInt number, UInt *last)
{
    if (read && read->tag == Iex_RdTmp)
        last[read->Iex.RdTmp.tmp] = number;
}

static void arguments(IRExpr *const *list, UInt number, UInt *last)
{
    for (; *list; list++)
        atom(*list, number, last);
}

static void expression(const IRExpr *read, UInt number, UInt *last)
{
    switch (read->tag) {
    case Iex_GetI:
        atom(read->Iex.GetI.ix, number, last);
        break;
    case Iex_RdTmp:
        atom(read, number, last);
        break;
    case Iex_Qop:
        atom(read->Iex.Qop.details->arg1, number, last);
        atom(read->Iex.Qop.details->arg2, number, last);
        atom(read->Iex.Qop.details->arg3, number, last);
        atom(read->Iex.Qop.details->arg4, number, last);
        break;
    case Iex_Triop:
        atom(read->Iex.Triop.details->arg1, number, last);
        atom(read->Iex.Triop.details->arg2, number, last);
        atom(read->Iex.Triop.details->arg3, number, last);
        break;
    case Iex_Binop:
        atom(read->Iex.Binop.arg1, number, last);
        atom(read->Iex.Binop.arg2, number, last);
        break;
    case Iex_Unop:
        atom(read->Iex.Unop.arg, number, last);
        break;
    case Iex_Load:
        atom(read->Iex.Load.addr, number, last);
        break;
    case Iex_ITE:
        atom(read->Iex.ITE.cond, number, last);
        atom(read->Iex.ITE.iftrue, number, last);
        atom(read->Iex.ITE.iffalse, number, last);
        break;
    case Iex_CCall:
        arguments(read->Iex.CCall.args, number, last);
        break;
    default:
        break;
    }
}

static void statement(const IRStmt *reads, UInt number, UInt *last)
{
    switch (reads->tag) {
    case Ist_Put:
        atom(reads->Ist.Put.data, number, last);
        break;
    case Ist_PutI:
        atom(reads->Ist.PutI.details->ix, number, last);
        atom(reads->Ist.PutI.details->data, number, last);
        break;
    case Ist_WrTmp:
        expression(reads->Ist.WrTmp.data, number, last);
        break;
    case Ist_Store:
        atom(reads->Ist.Store.addr, number, last);
        atom(reads->Ist.Store.data, number, last);
        break;
    case Ist_LoadG:
        atom(reads->Ist.LoadG.details->addr, number, last);
        atom(reads->Ist.LoadG.details->alt, number, last);
        atom(reads->Ist.LoadG.details->guard, number, last);
        break;
    case Ist_StoreG:
        atom(reads->Ist.StoreG.details->addr, number, last);
        atom(reads->Ist.StoreG.details->data, number, last);
        atom(reads->Ist.StoreG.details->guard, number, last);
        break;
    case Ist_CAS:
        atom(reads->Ist.CAS.details->addr, number, last);
        atom(reads->Ist.CAS.details->expdLo, number, last);
        atom(reads->Ist.CAS.details->expdHi, number, last);
        atom(reads->Ist.CAS.details->dataLo, number, last);
        atom(reads->Ist.CAS.details->dataHi, number, last);
        break;
    case Ist_LLSC:
        atom(reads->Ist.LLSC.addr, number, last);
        atom(reads->Ist.LLSC.storedata, number, last);
        break;
    case Ist_Dirty:
        atom(reads->Ist.Dirty.details->guard, number, last);
        atom(reads->Ist.Dirty.details->mAddr, number, last);
        arguments(reads->Ist.Dirty.details->args, number, last);
        break;
    case Ist_Exit:
        atom(reads->Ist.Exit.guard, number, last);
        break;
    default:
        break;
    }
}

void live_temps(const IRSB *block, UInt *last)
{
    for (Int k = 0; k < block->stmts_used; k++)
        statement(block->stmts[k], (UInt)k, last);
    atom(block->next, (UInt)block->stmts_used, last);
}
