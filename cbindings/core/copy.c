/* copy.c - copy a whole file with the promises of a pack; public function of scr_crit.h.
 *
 * Tests: tests/test_core_packed.py.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdlib.h>

#include "error.h"
#include "io.h"
#include "output.h"
#include "source.h"

static int copy_bytes(crit_source *source, int fd)
{
    const size_t capacity = crit_window_size(source->size);
    uint8_t *window = malloc(capacity);
    if (window == NULL)
        return crit_fail_memory(capacity);
    int status = SCR_CRIT_OK;
    for (uint64_t at = 0; status == SCR_CRIT_OK && at < source->size;) {
        const uint64_t left = source->size - at;
        const size_t n = left < capacity ? (size_t)left : capacity;
        status = crit_blame(crit_source_read(source, at, window, n), source->name);
        if (status == SCR_CRIT_OK)
            status = crit_write_at(fd, at, window, n);
        at += n;
    }
    free(window);
    return status;
}

static int write_copy(crit_source *source, const char *target)
{
    crit_output output;
    int status = crit_output_begin(&output, target, 0600);
    if (status == SCR_CRIT_OK)
        status = crit_output_adopt(&output, source->fd, &source->opened);
    if (status == SCR_CRIT_OK)
        status = copy_bytes(source, output.fd);
    if (status == SCR_CRIT_OK)
        status = crit_blame(crit_source_unchanged(source), source->name);
    if (status == SCR_CRIT_OK)
        status = crit_output_commit(&output);
    crit_output_close(&output);
    return crit_blame(status, target); /* unless the source has been named */
}

int scr_crit_copy(const char *source, const char *target)
{
    crit_source file;
    struct stat found;
    if (source == NULL || target == NULL)
        return crit_fail(SCR_CRIT_ERR_ARG, CRIT_NO_OFFSET, "source or target is NULL");
    int status = crit_blame(crit_source_open(&file, source), source);
    if (status != SCR_CRIT_OK)
        return status;
    if (stat(target, &found) == 0 && found.st_ino == file.opened.st_ino &&
        found.st_dev == file.opened.st_dev)
        status = crit_blame(
            crit_fail(SCR_CRIT_ERR_ARG, CRIT_NO_OFFSET, "target and source are the same file"),
            target);
    else
        status = write_copy(&file, target);
    crit_source_close(&file);
    return status;
}
