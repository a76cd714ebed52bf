/* source.h - where the bytes of a whole file come from: a file, or buffers in memory.
 *
 * The plan resolver reads counts and guards through it, pack reads the critical bytes.
 * May use error.h and io.h. Tests: tests/c/test_source.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CRIT_SOURCE_H
#define CRIT_SOURCE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "scr_crit.h"

typedef struct crit_source {
    const char *name;               /* path, or "(memory)"; not owned */
    uint64_t size;                  /* bytes */
    int fd;                         /* -1 for buffers */
    struct stat opened;             /* of the file, when it was opened */
    const scr_crit_buffer *buffers; /* not owned */
    size_t count;
    size_t at; /* buffer that the last read ended in, and its offset: reads go forward */
    uint64_t at_start;
} crit_source;

/* Open a regular file for reading. Fails with IO, or ARG when it is no regular file. */
int crit_source_open(crit_source *source, const char *path);

/* Take buffers, which must stay until the source is closed. Fails with ARG when a pointer is NULL
 * or the sizes overflow. */
int crit_source_buffers(crit_source *source, const scr_crit_buffer *buffers, size_t count);

void crit_source_close(crit_source *source);

/* Read exactly `size` bytes at `offset` into `target`; survives EINTR and short reads.
 * Fails with ARG when they lie beyond source->size, CHANGED when the file has become shorter, IO.
 */
int crit_source_read(crit_source *source, uint64_t offset, void *target, size_t size);

/* The same without a copy where the bytes lie in one buffer: *data points into it, else into
 * `scratch`, which has room for `size` bytes. */
int crit_source_view(crit_source *source, uint64_t offset, size_t size, void *scratch,
                     const uint8_t **data);

/* Whether the file still has the size, time and identity it had when it was opened.
 * Fails with CHANGED. Always OK for buffers. */
int crit_source_unchanged(const crit_source *source);

#endif
