/* live_temps.h - where each temporary of a block is read for the last time.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef SCR_CRIT_TRACER_LIVE_TEMPS_H
#define SCR_CRIT_TRACER_LIVE_TEMPS_H

#include "tool.h"

#include <libvex_ir.h>

/* last[t]: number of the last statement that reads t; for what the block's end reads, the number of
 * statements. Others are left as they are. */
void live_temps(const IRSB *block, UInt *last);

#endif
