/* block_lines.h - lines of the trace that say what memory is: block, object, root.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef SCR_CRIT_TRACER_BLOCK_LINES_H
#define SCR_CRIT_TRACER_BLOCK_LINES_H

#include "tool.h"

#include <pub_tool_execontext.h>

void block_line(Int number, const HChar *kind, Addr start, SizeT bytes, ExeContext *made_at);
/* Lines for objects that were mapped since the last call. */
void object_lines(void);
/* Lines for static pointers of the main program to blocks that were named since the last call. */
void root_lines(void);

#endif
