/* expand.h - critical bytes back into their places, with a fill between them.
 *
 * Shared by unpack (critical bytes from a packed file) and overwrite (from the whole file itself).
 * May use error.h, io.h, program.h and checksums.h. Tests: tests/test_core_packed.py.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CRIT_EXPAND_H
#define CRIT_EXPAND_H

#include <stddef.h>
#include <stdint.h>

#include "program.h"
#include "scr_crit.h"

enum { CRIT_FILL_MAX = 64 };

/* Where critical bytes come from: asked for in order of offset. Returns a status. */
typedef int crit_read_critical(void *context, uint64_t offset, uint8_t *target, size_t size);

typedef struct crit_expansion {
    const uint8_t *program; /* validated */
    size_t program_size;
    uint64_t file_size;        /* its length */
    const scr_crit_fill *fill; /* NULL: zeros */
    crit_read_critical *read;
    void *context;
} crit_expansion;

/* Check a caller's fill. Fails with ARG. */
int crit_fill_check(const scr_crit_fill *fill);

/* Expand into an open, empty file: it gets its size at once, and long zero fills become holes.
 * Fails with IO, NOSPACE, NOMEM, CHANGED, or as `read` does. */
int crit_expand_to_file(const crit_expansion *expansion, int fd);

/* Expand into memory of file_size bytes. */
int crit_expand_to_memory(const crit_expansion *expansion, uint8_t *memory);

#endif
