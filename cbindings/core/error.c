/* error.c - see error.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { WORDS_SIZE = 1024, ERRNO_TEXT_SIZE = 128, MESSAGE_SIZE = 4096 + WORDS_SIZE };

/* The failure last recorded in this thread. Fixed storage: memory may be what has run out. */
static _Thread_local struct {
    char message[MESSAGE_SIZE];
    int error;
    int64_t offset;
    bool blamed; /* the message names a path */
} last = {.offset = CRIT_NO_OFFSET};

static void record(int error, int64_t offset)
{
    last.error = error;
    last.offset = offset;
    last.blamed = false;
}

int crit_fail(int status, int64_t offset, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(last.message, WORDS_SIZE, format, arguments);
    va_end(arguments);
    record(0, offset);
    return status;
}

static int status_of_errno(int error)
{
    switch (error) {
    case ENOSPC:
    case EDQUOT:
        return SCR_CRIT_ERR_NOSPACE;
    case ENOMEM:
        return SCR_CRIT_ERR_NOMEM;
    default:
        return SCR_CRIT_ERR_IO;
    }
}

/* strerror is not thread-safe, and strerror_r comes in two kinds: %m of printf is neither's
 * problem, but only glibc and musl have it, which are the C libraries this is built for. */
int crit_fail_system(int error, int64_t offset, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(last.message, WORDS_SIZE - ERRNO_TEXT_SIZE, format, arguments);
    va_end(arguments);
    const size_t used = strlen(last.message);
    errno = error;
    snprintf(last.message + used, sizeof last.message - used, ": %m");
    record(error, offset);
    return status_of_errno(error);
}

int crit_fail_memory(size_t size)
{
    crit_fail(SCR_CRIT_ERR_NOMEM, CRIT_NO_OFFSET, "cannot allocate %zu bytes", size);
    last.error = ENOMEM;
    return SCR_CRIT_ERR_NOMEM;
}

int crit_blame(int status, const char *path)
{
    if (status == SCR_CRIT_OK || last.blamed)
        return status;
    char words[WORDS_SIZE];
    snprintf(words, sizeof words, "%.*s", WORDS_SIZE - 1, last.message);
    snprintf(last.message, sizeof last.message, "%.*s: %s", MESSAGE_SIZE - WORDS_SIZE - 3, path,
             words);
    last.blamed = true;
    return status;
}

const char *scr_crit_last_error(void)
{
    return last.message;
}

int scr_crit_last_errno(void)
{
    return last.error;
}

int64_t scr_crit_last_offset(void)
{
    return last.offset;
}

const char *scr_crit_status_name(int status)
{
    static const char *const names[] = {
        [SCR_CRIT_OK] = "ok",
        [SCR_CRIT_ERR_ARG] = "argument",
        [SCR_CRIT_ERR_IO] = "io",
        [SCR_CRIT_ERR_NOSPACE] = "no space",
        [SCR_CRIT_ERR_NOMEM] = "no memory",
        [SCR_CRIT_ERR_FORMAT] = "format",
        [SCR_CRIT_ERR_CHECKSUM] = "checksum",
        [SCR_CRIT_ERR_VERSION] = "version",
        [SCR_CRIT_ERR_NOMATCH] = "no match",
        [SCR_CRIT_ERR_MISFIT] = "misfit",
        [SCR_CRIT_ERR_NESTED] = "nested",
        [SCR_CRIT_ERR_CODEC] = "codec",
        [SCR_CRIT_ERR_NOGAIN] = "no gain",
        [SCR_CRIT_ERR_CHANGED] = "changed",
    };
    const size_t known = sizeof names / sizeof names[0];
    return status >= 0 && (size_t)status < known ? names[status] : "unknown";
}

const char *scr_crit_version(void)
{
    return SCR_CRIT_VERSION;
}
