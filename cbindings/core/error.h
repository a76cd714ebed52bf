/* error.h - how the core says what went wrong: a status, words, errno and an offset, per thread.
 *
 * Every failing function inside the core ends in `return crit_fail(...)`. Those that do not know
 * the file's name leave it out; the public function that does know it adds it with crit_blame. Uses
 * nothing of the core. Tests: tests/c/test_error.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CRIT_ERROR_H
#define CRIT_ERROR_H

#include <stddef.h>
#include <stdint.h>

#include "scr_crit.h"

#define CRIT_NO_OFFSET ((int64_t)-1)

/* Record a failure that is not a system call's. `offset` is in the file at fault, or
 * CRIT_NO_OFFSET. Returns `status`. */
int crit_fail(int status, int64_t offset, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Record a failed system call; `error` is its errno, whose text is appended to the words.
 * Returns SCR_CRIT_ERR_NOSPACE for ENOSPC and EDQUOT, SCR_CRIT_ERR_NOMEM for ENOMEM, else
 * SCR_CRIT_ERR_IO. */
int crit_fail_system(int error, int64_t offset, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Record that `size` bytes of memory could not be had. Returns SCR_CRIT_ERR_NOMEM. */
int crit_fail_memory(size_t size);

/* Put "path: " before the words of the failure just recorded, unless a path is there already.
 * Does nothing for SCR_CRIT_OK. Returns `status`. */
int crit_blame(int status, const char *path);

#endif
