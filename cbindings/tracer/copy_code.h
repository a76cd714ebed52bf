/* copy_code.h - the translation of one block: what its temporaries hold, and the calls that follow
 * it.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * A temporary's value is known byte by byte while the block is translated (copy_rules.h); calls
 * (slots.h) are put into the block only where origins really move: at loads, stores, writes of
 * registers, choices, and uses.
 */
#ifndef SCR_CRIT_TRACER_COPY_CODE_H
#define SCR_CRIT_TRACER_COPY_CODE_H

#include "copy_rules.h"
#include "live_temps.h"

typedef struct {
    const IRSB *in;
    IRSB *out;
    UInt now;   /* number of the present statement */
    UInt slots; /* the next free one */
    UInt temps;
    value *held;         /* by temporary */
    temp_life *lives;    /* by temporary */
    IRTemp *in_register; /* those that hold what stands in registers; may repeat */
    UInt in_registers, in_register_room;
    UChar *used; /* by slot: its use was told, in this block */
    UInt used_room;
} copy_code;

/* Memory is kept from one block to the next. */
void copy_code_begin(copy_code *code, const IRSB *in, IRSB *out);
/* All slots that the block needs exist. */
void copy_code_end(copy_code *code);

value code_value(const copy_code *code, const IRExpr *atom);
void code_set(copy_code *code, IRTemp temp, const value *held);
/* Fresh slots as a value. */
value code_fresh(copy_code *code, IRType type);
value code_registers(IRType type, Int offset);
/* The slot where these bytes stand one after the other; they are moved there if need be. */
UInt code_gathered(copy_code *code, const value *bytes);

/* A temporary of the tool's own. */
IRExpr *code_computed(copy_code *code, IRType type, IRExpr *expression);
/* guard: NULL, or a bit on which the call depends. */
void code_call(copy_code *code, IRExpr *guard, const HChar *name, void *function, IRExpr **args);
IRExpr *code_call_for_word(copy_code *code, const HChar *name, void *function, IRExpr **args);
void code_move(copy_code *code, IRExpr *guard, UInt to, const value *from);
void code_store(copy_code *code, IRExpr *guard, IRExpr *address, const value *from);
/* Those bytes whose bit is set. */
void code_use(copy_code *code, const value *bytes, UInt mask);
/* What the first `count` of them are copied or computed from, in no order, where there is room in a
 * value of this type; else they are used. */
value code_remember(copy_code *code, IRType type, const value *operands, UInt count);
/* What an atom holds is used, all of it. */
void code_use_atom(copy_code *code, const IRExpr *atom);
/* Registers are about to be overwritten, with `put` or (NULL) something else: what is still needed
 * of them goes elsewhere. */
void code_before_registers(copy_code *code, Int offset, UInt bytes, const IRExpr *put);

#endif
