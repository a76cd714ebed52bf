/* dumps.h - files that are checkpoints by their names, outside SCR's brackets (--dump).
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * A dump begins when a matching file is opened to be written, and ends when all that matched since
 * are closed.
 */
#ifndef SCR_CRIT_TRACER_DUMPS_H
#define SCR_CRIT_TRACER_DUMPS_H

#include "tool.h"

/* A file was opened to be written; given: its path as the program gave it. */
void dumps_opened(ThreadId tid, Int fd, const HChar *given);
/* Whether fd is a file of the present dump; whether there is any. */
Bool dumps_has(Int fd);
Bool dumps_any(void);
/* A descriptor of a dump's file was closed. */
void dumps_closed(ThreadId tid);

#endif
