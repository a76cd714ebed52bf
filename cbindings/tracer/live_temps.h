/* live_temps.h - what becomes of each temporary of a block.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef SCR_CRIT_TRACER_LIVE_TEMPS_H
#define SCR_CRIT_TRACER_LIVE_TEMPS_H

#include "tool.h"

#include <libvex_ir.h>

typedef struct {
    UInt last_read; /* number of the last statement that reads it, 0 for none; the block's end has
                     * the number of statements */
    Bool value;     /* read for more than to remember what flags may be computed from */
} temp_life;

/* Fills in one for each temporary of the block. */
void live_temps(const IRSB *block, temp_life *lives);

#endif
