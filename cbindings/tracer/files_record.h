/* files_record.h - the record of a file, for files.c, files_output.c and files_restart.c only.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef SCR_CRIT_TRACER_FILES_RECORD_H
#define SCR_CRIT_TRACER_FILES_RECORD_H

#include "files.h"

#include <pub_tool_vki.h>
#include <pub_tool_xarray.h>

struct trace_file {
    ULong device, inode;
    HChar *name, *path; /* NULL: no routed name points here (so far) */
    UInt number;        /* in the trace, from files_choose on */
    UInt index;
    ULong size;
    intervals *content; /* files.h: files_content */
    intervals *seen;    /* PHASE_RESTART */
    ULong position;     /* of the bytes before `covered`; 0: not dealt out (files_positions.c) */
    ULong covered;
};

/* The record of a file; NULL if there is none. */
trace_file *files_find(ULong device, ULong inode);
trace_file *files_find_or_add(ULong device, ULong inode);
/* All records, those of other files included. */
UInt files_recorded(void);
trace_file *files_record(UInt n);

/* What SCR routed. */
typedef struct {
    HChar *name, *path;
    trace_file *file; /* NULL: not found so far */
} routed_file;
UInt files_routed_count(void);
routed_file *files_routed_nth(UInt n);
/* The file becomes one of the generation, under this name. Nothing happens if it is one already. */
void files_choose(trace_file *file, const routed_file *routed, ULong size);
void files_choose_none(void);

/* Whether files_passed_on holds. */
Bool files_are_passed_on(void);

/* files_output.c: files_read in PHASE_OUTPUT */
Bool files_read_back(Int fd, ULong offset, Addr address, SizeT bytes);

/* files_restart.c */
void files_restart_look(void); /* finds routed files that have appeared */

/* files_positions.c */
/* The position of a byte of a file (files_at is the inverse); *piece (in: wanted) bytes go on. */
ULong files_position_of(trace_file *file, ULong offset, ULong *piece);
void files_positions_end(void);

#endif
