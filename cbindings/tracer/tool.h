/* tool.h - what every part of the tool includes.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The tool has no C library: memory, files and text are Valgrind's own (VG_()). Parts and who may
 * call whom: main -> phase -> watch -> shadow, origins -> intervals; instrumentation (accesses,
 * copies) and system calls report to phase, shadow and origins; trace_file writes what watch and
 * blocks hold.
 */
#ifndef SCR_CRIT_TRACER_TOOL_H
#define SCR_CRIT_TRACER_TOOL_H

#include <pub_tool_basics.h>
#include <pub_tool_libcassert.h>
#include <pub_tool_libcbase.h>
#include <pub_tool_libcprint.h>
#include <pub_tool_mallocfree.h>
#include <pub_tool_tooliface.h>

/* Warn once for each text: to the user's terminal and into the trace. */
void tool_warn(const HChar *text);

/* Options, read once at start (main.c). */
extern const HChar *option_trace_out; /* --trace-out=PREFIX: PREFIX.trace, PREFIX.runs */
extern const HChar *option_dump; /* --dump=GLOB: checkpoint files written outside SCR; or NULL */
extern Int option_until_flat;    /* --until-flat=N: 0 means to the program's end */

#endif
