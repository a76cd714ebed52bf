/* stack_frames.c - where a block makes room on the stack.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "stack_frames.h"

#include <pub_tool_tooliface.h>

/* Below the stack pointer, a function's own: a prologue may save registers there first. */
enum { RED_ZONE = 128 };

static const stack_place unknown = {IRTemp_INVALID, 0};

void stack_frames_begin(stack_frames *frames, const IRSB *block, const VexGuestLayout *layout)
{
    UInt temps = (UInt)block->tyenv->types_used;
    frames->pointer = layout->offset_SP;
    frames->now = unknown;
    if (temps > frames->room) {
        frames->temps = VG_(realloc)("stack_frames", frames->temps, temps * sizeof(stack_place));
        frames->room = temps;
    }
    for (UInt t = 0; t < temps; t++)
        frames->temps[t] = unknown;
}

static stack_place moved(const stack_frames *frames, const IRExpr *from, const IRExpr *by,
                         Bool down)
{
    if (from->tag != Iex_RdTmp || by->tag != Iex_Const || by->Iex.Const.con->tag != Ico_U64)
        return unknown;
    stack_place place = frames->temps[from->Iex.RdTmp.tmp];
    Long bytes = (Long)by->Iex.Const.con->Ico.U64;
    place.offset += down ? -bytes : bytes;
    return place;
}

static stack_place place_of(stack_frames *frames, IRTemp temp, const IRExpr *read)
{
    switch (read->tag) {
    case Iex_Get:
        if (read->Iex.Get.offset != frames->pointer || read->Iex.Get.ty != Ity_I64)
            return unknown;
        if (frames->now.base == IRTemp_INVALID)
            frames->now = (stack_place){temp, 0};
        return frames->now;
    case Iex_RdTmp:
        return frames->temps[read->Iex.RdTmp.tmp];
    case Iex_Binop:
        if (read->Iex.Binop.op == Iop_Sub64 || read->Iex.Binop.op == Iop_Add64)
            return moved(frames, read->Iex.Binop.arg1, read->Iex.Binop.arg2,
                         read->Iex.Binop.op == Iop_Sub64);
        return unknown;
    default:
        return unknown;
    }
}

UInt stack_frames_made(stack_frames *frames, const IRStmt *statement)
{
    if (statement->tag == Ist_WrTmp) {
        IRTemp temp = statement->Ist.WrTmp.tmp;
        frames->temps[temp] = place_of(frames, temp, statement->Ist.WrTmp.data);
        return 0;
    }
    if (statement->tag != Ist_Put || statement->Ist.Put.offset != frames->pointer)
        return 0;
    stack_place before = frames->now, after = unknown;
    if (statement->Ist.Put.data->tag == Iex_RdTmp)
        after = frames->temps[statement->Ist.Put.data->Iex.RdTmp.tmp];
    frames->now = after;
    if (before.base == IRTemp_INVALID || after.base != before.base)
        return 0;
    Long bytes = before.offset - after.offset - RED_ZONE;
    return bytes > 0 ? (UInt)bytes : 0;
}
