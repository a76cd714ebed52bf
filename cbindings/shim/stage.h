/* stage.h - private staging: where applications write and read whole files in place of packed ones.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * There are several areas, in order of preference. Output uses the first that is usable. A restart
 * must not fail for want of space, since SCR would mark a good checkpoint as failed: it may use
 * all, the last of which lies under the prefix. May use claim.h, folder.h, path.h. Tests:
 * tests/shim/test_shim_stage.py.
 */
#ifndef SHIM_STAGE_H
#define SHIM_STAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SHIM_STAGE_AREAS = 5 };

/* Set the areas up and clear away what dead processes left in them.
 *   bases    folders in order of preference, up to a NULL
 *   outputs  how many of them may serve output
 *   prefix   SCR's prefix
 *   job, rank   for the folders' names */
void shim_stage_open(const char *const *bases, size_t outputs, const char *prefix, const char *job,
                     int rank);

/* Number of areas. */
size_t shim_stage_areas(void);

/* Reserve the name of a file, in a fresh folder of its own.
 *   area   which area
 *   base   the file's name
 *   path   out
 * Returns 0, or an errno: ENAMETOOLONG when it does not fit into `size`, ENOENT when there is no
 * such area. */
int shim_stage_reserve(size_t area, const char *base, char *path, size_t size);

/* Remove a staged file and whatever else lies in its folder. */
void shim_stage_remove(const char *path);

/* Area for output, its private folder made; SHIM_STAGE_AREAS if none is usable. */
size_t shim_stage_output_area(void);

/* In words, why no area is usable for output. Owned by this module. */
const char *shim_stage_problem(void);

/* Folder of an area, for messages; "" if there is no such area. */
const char *shim_stage_base(size_t area);

/* Bytes that are free in an area; UINT64_MAX when that cannot be told. */
uint64_t shim_stage_free_bytes(size_t area);

/* Claim space of the output area, as shim_claim does; 0 gives it back. */
bool shim_stage_claim(uint64_t bytes, uint64_t *room);

/* Note temporary files that the next run must remove if this process dies; all are done. */
void shim_stage_journal(const char *path);
void shim_stage_journal_done(void);

/* Remove everything. */
void shim_stage_close(void);

#endif
