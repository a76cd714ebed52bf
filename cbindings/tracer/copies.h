/* copies.h - what watch_output.c and watch_restart.c have in common.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef SCR_CRIT_TRACER_COPIES_H
#define SCR_CRIT_TRACER_COPIES_H

#include "generations.h"
#include "spans.h"

/* Where copies made in this phase stand now: origin -> address, sorted. */
spans *copies_of_memory(void); /* of memory; a byte that was put back where it was is no copy */
spans *copies_of_files(void);  /* of files being restarted from; keys: positions of files.h */

/* Lines of the trace: the generation, its files, the objects that were mapped. */
void copies_tell_generation(const HChar *kind);
/* Source records, cut by blocks. */
void copies_tell_source(UInt file, ULong offset, ULong length, Addr address);
/* address -> value: watches the places, and completes the generation. */
void copies_watch(generation *made, const spans *places);

#endif
