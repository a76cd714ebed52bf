/* output.h - files that appear under their name complete and synced, or not at all.
 *
 * Begin, write to output->fd, commit; in every case end with close, which removes what was not
 * committed. May use error.h. Tests: tests/c/test_output.c, tests/test_core_packed.py.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CRIT_OUTPUT_H
#define CRIT_OUTPUT_H

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

typedef struct crit_output {
    int fd;             /* the temporary file, open for reading and writing; -1 if none */
    const char *target; /* not owned */
    char temporary[PATH_MAX];
} crit_output;

/* Create the temporary file beside `target`, after clearing away one that a dead writer left.
 *   mode   permission bits, less umask: 0600 if crit_output_adopt follows, so that nobody else can
 * read a private file's bytes meanwhile Fails with ARG (unfit name), IO (EBUSY when a living
 * process is writing the same target), NOSPACE. */
int crit_output_begin(crit_output *output, const char *target, mode_t mode);

/* Give the temporary file the permission bits and user attributes of an open file; if it replaces
 * that very file, owner, group, access list and other attributes as well, as far as possible. A
 * file in a new place has those from its folder: a file staged in memory must not bring its group
 * to a project's folder. Fails with IO or NOSPACE; file systems without attributes are tolerated.
 */
int crit_output_adopt(crit_output *output, int fd, const struct stat *status);

/* Sync the file, give it its name, sync the directory as far as that is possible. Fails with IO or
 * NOSPACE; the name then means what it meant before. */
int crit_output_commit(crit_output *output);

/* Close; remove the temporary file if it was not committed. Keeps the thread's recorded error. */
void crit_output_close(crit_output *output);

#endif
