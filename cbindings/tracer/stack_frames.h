/* stack_frames.h - where a block makes room on the stack.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * A new frame holds what earlier calls left there. Functions that read whole vectors beyond the end
 * of a text would "use" that, so that it has no origin any more. Only frames whose size stands in
 * the code are seen: another change of the stack pointer may be one to another stack.
 */
#ifndef SCR_CRIT_TRACER_STACK_FRAMES_H
#define SCR_CRIT_TRACER_STACK_FRAMES_H

#include "tool.h"

#include <libvex_ir.h>

typedef struct {
    IRTemp base; /* holds the stack pointer; IRTemp_INVALID: unknown */
    Long offset;
} stack_place;

typedef struct {
    Int pointer;        /* offset of the stack pointer in the guest state */
    stack_place now;    /* where it points */
    stack_place *temps; /* where each temporary points */
    UInt room;
} stack_frames;

/* Memory is kept from one block to the next. */
void stack_frames_begin(stack_frames *frames, const IRSB *block, const VexGuestLayout *layout);
/* Look at a statement. If it makes a frame: how many bytes of it, from the new stack pointer on,
 * were nobody's before; else 0. */
UInt stack_frames_made(stack_frames *frames, const IRStmt *statement);

#endif
