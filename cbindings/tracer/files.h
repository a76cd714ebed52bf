/* files.h - checkpoint files: what was written to them, and where their bytes went when read.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Files are told apart by device and inode, asked from the kernel at each call, so that dup, lseek,
 * O_APPEND, links and renames need no bookkeeping. During PHASE_OUTPUT every regular file that is
 * written is recorded; at its end those at which a routed name points are the checkpoint, and what
 * went to any other counts as used.
 */
#ifndef SCR_CRIT_TRACER_FILES_H
#define SCR_CRIT_TRACER_FILES_H

#include "intervals.h"

#include <pub_tool_libcfile.h>

typedef struct trace_file trace_file; /* one file of one generation */

/* A phase begins; dataset as SCR names it. Or it has its name only now: then nothing else changes.
 */
void files_begin(const HChar *dataset);
const HChar *files_dataset(void);
/* SCR routed a file; both names are copied. A relative path is taken from the working directory. */
void files_routed(const HChar *name, const HChar *path);

/* Until as many ends as begins came: what is read from files is passed to other processes unseen,
 * and is used; what is written to them came from others, and is of unknown origin. */
void files_passed_on(Bool begins);
/* A regular file behind fd; False for anything else. */
Bool files_stat(Int fd, struct vg_stat *status);
/* System calls; ignored unless they matter in the present phase. */
/* fd was written at offset from memory (origins are taken now). */
void files_written(Int fd, ULong offset, Addr address, SizeT bytes);
/* fd was written at offset with bytes that were never in this process's memory: unknown. */
void files_written_unseen(Int fd, ULong offset, ULong bytes);
void files_copied(Int from, ULong from_offset, Int to, ULong to_offset, ULong bytes);
void files_truncated(Int fd, ULong size);
void files_truncated_path(const HChar *path, ULong size);
/* What this file holds went somewhere else than to memory or a file. */
void files_sent(Int fd, ULong offset, ULong bytes);
/* fd is a new file: what an earlier file of the same inode held is no longer there. */
void files_created(Int fd);
/* A file that is being restarted from (or was written in this phase) was read into memory, or
 * mapped there. False if fd is not one of them. */
Bool files_read(Int fd, ULong offset, Addr address, SizeT bytes);
/* PHASE_OUTPUT: a file was mapped to be shared. What is stored there goes to the file. */
void files_mapped(Int fd, ULong offset, Addr address, SizeT bytes);
/* A shared mapping of a file ends: what was stored there in this phase is in the file. */
void files_unmapped(ULong device, ULong inode, ULong offset, Addr address, SizeT bytes);

/* For watch.c, at the end of a phase: */
/* Settle PHASE_OUTPUT: stat every routed path, drop the rest (their origins are used), take what
 * was stored into shared mappings of the files. */
void files_settle_output(void);
/* No checkpoint after all (SCR_Complete_*(0), Need_checkpoint without a Start, the end of the
 * program inside the bracket): what was written to the files so far counts as used (PHASE_OUTPUT),
 * and there are no files. */
void files_drop(void);
/* The files of the present generation. PHASE_OUTPUT: those that were routed, after
 * files_settle_output. PHASE_RESTART: those that were routed and found. */
UInt files_count(void);
trace_file *files_nth(UInt n);
UInt files_number(const trace_file *file); /* as the trace names it */
UInt files_index(const trace_file *file);  /* its n */
const HChar *files_name(const trace_file *file);
const HChar *files_path(const trace_file *file);
ULong files_size(const trace_file *file);
/* PHASE_OUTPUT: offset -> origin. PHASE_RESTART: critical offsets so far (any origin but NONE). */
const intervals *files_content(const trace_file *file);
/* PHASE_RESTART: offsets that were read (any origin but NONE). */
const intervals *files_seen(const trace_file *file);
/* Whether this is one of the files of the present generation. */
Bool files_is_ours(ULong device, ULong inode);
/* Where ORIGIN_FILE | position is: the file and its offset; the piece goes on for at most `limit`
 * bytes. Valid until files_end. Returns the length of the piece. */
ULong files_at(ULong position, ULong limit, trace_file **file, ULong *offset);
/* Mark bytes of a file of PHASE_RESTART critical (watch_use). */
void files_use(trace_file *file, ULong offset, ULong bytes);
/* The phase is over. */
void files_end(void);

#endif
