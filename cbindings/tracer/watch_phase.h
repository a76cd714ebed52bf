/* watch_phase.h - what the end of a phase asks of watch.c.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef SCR_CRIT_TRACER_WATCH_PHASE_H
#define SCR_CRIT_TRACER_WATCH_PHASE_H

#include "spans.h"
#include "watch.h"

/* Settles what the phase did to earlier generations. copies: origin -> address where it stands now,
 * sorted. */
void watch_phase_settled(const spans *copies);
/* The new generation's places are watched: settles those that others share, tells what is known,
 * and forgets the phase. */
void watch_phase_finished(void);
/* The piece at a memory origin that was used, or was not, in this phase. */
ULong watch_used_piece(Addr address, ULong limit, Bool *is_used);
/* Memory that went in this phase, sorted and disjoint; from watch_phase_settled on. */
const spans *watch_gone_spans(void);
/* Memory that was mapped in this phase: what it held then was computed by the kernel. */
const spans *watch_fresh_spans(void);
/* The piece at address that, if it is still there, still holds what stood there when the phase
 * began, or does not. */
ULong watch_intact_piece(Addr address, ULong limit, Bool *intact);

#endif
