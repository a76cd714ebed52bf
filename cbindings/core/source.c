/* source.c - see source.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "source.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "error.h"
#include "io.h"
#include "program.h"

int crit_source_open(crit_source *source, const char *path)
{
    memset(source, 0, sizeof *source);
    source->name = path;
    const int status = crit_open_regular(path, &source->fd, &source->opened);
    if (status == SCR_CRIT_OK)
        source->size = (uint64_t)source->opened.st_size;
    return status;
}

int crit_source_buffers(crit_source *source, const scr_crit_buffer *buffers, size_t count)
{
    memset(source, 0, sizeof *source);
    source->name = "(memory)";
    source->fd = -1;
    source->buffers = buffers;
    source->count = count;
    if (buffers == NULL && count != 0)
        return crit_fail(SCR_CRIT_ERR_ARG, CRIT_NO_OFFSET, "no buffers given, expected %zu", count);
    for (size_t i = 0; i < count; i++) {
        if (buffers[i].data == NULL && buffers[i].size != 0)
            return crit_fail(SCR_CRIT_ERR_ARG, CRIT_NO_OFFSET,
                             "buffer %zu is NULL, expected %llu bytes", i,
                             (unsigned long long)buffers[i].size);
        if (buffers[i].size > CRIT_PROGRAM_MAX_LENGTH - source->size)
            return crit_fail(SCR_CRIT_ERR_ARG, CRIT_NO_OFFSET,
                             "buffers up to number %zu hold more than 2^63 - 1 bytes", i);
        source->size += buffers[i].size;
    }
    return SCR_CRIT_OK;
}

void crit_source_close(crit_source *source)
{
    if (source->fd >= 0)
        close(source->fd);
    source->fd = -1;
}

/* ---- Reading --------------------------------------------------------------------------------- */

static int check_range(const crit_source *source, uint64_t offset, size_t size)
{
    if (offset > source->size || size > source->size - offset)
        return crit_fail(SCR_CRIT_ERR_ARG, (int64_t)offset,
                         "%zu bytes at offset %llu are beyond the source's %llu bytes", size,
                         (unsigned long long)offset, (unsigned long long)source->size);
    return SCR_CRIT_OK;
}

static int read_file(crit_source *source, uint64_t offset, void *target, size_t size)
{
    size_t got;
    const int status = crit_read_at(source->fd, offset, target, size, &got);
    if (status != SCR_CRIT_OK)
        return status;
    if (got < size)
        return crit_fail(SCR_CRIT_ERR_CHANGED, (int64_t)(offset + got),
                         "the source ends at offset %llu; it had %llu bytes when it was opened",
                         (unsigned long long)(offset + got), (unsigned long long)source->size);
    return SCR_CRIT_OK;
}

/* Make source->at the buffer that holds `offset`, which lies within the source. */
static void seek_buffer(crit_source *source, uint64_t offset)
{
    if (offset < source->at_start) {
        source->at = 0;
        source->at_start = 0;
    }
    while (offset - source->at_start >= source->buffers[source->at].size)
        source->at_start += source->buffers[source->at++].size;
}

static void read_buffers(crit_source *source, uint64_t offset, uint8_t *target, size_t size)
{
    while (size > 0) {
        seek_buffer(source, offset);
        const scr_crit_buffer *buffer = &source->buffers[source->at];
        const uint64_t into = offset - source->at_start;
        const uint64_t there = buffer->size - into;
        const size_t n = size < there ? size : (size_t)there;
        memcpy(target, (const uint8_t *)buffer->data + into, n);
        target += n;
        offset += n;
        size -= n;
    }
}

int crit_source_read(crit_source *source, uint64_t offset, void *target, size_t size)
{
    const int status = check_range(source, offset, size);
    if (status != SCR_CRIT_OK)
        return status;
    if (source->fd >= 0)
        return read_file(source, offset, target, size);
    read_buffers(source, offset, target, size);
    return SCR_CRIT_OK;
}

int crit_source_view(crit_source *source, uint64_t offset, size_t size, void *scratch,
                     const uint8_t **data)
{
    const int status = check_range(source, offset, size);
    if (status != SCR_CRIT_OK)
        return status;
    if (source->fd < 0 && size > 0) {
        seek_buffer(source, offset);
        const scr_crit_buffer *buffer = &source->buffers[source->at];
        const uint64_t into = offset - source->at_start;
        if (size <= buffer->size - into) {
            *data = (const uint8_t *)buffer->data + into;
            return SCR_CRIT_OK;
        }
    }
    *data = scratch;
    return crit_source_read(source, offset, scratch, size);
}

/* ---- Change ---------------------------------------------------------------------------------- */

static int compare(const struct stat *before, const struct stat *now)
{
    if (now->st_size != before->st_size)
        return crit_fail(SCR_CRIT_ERR_CHANGED, CRIT_NO_OFFSET,
                         "the source has %lld bytes; it had %lld when it was opened",
                         (long long)now->st_size, (long long)before->st_size);
    if (now->st_mtim.tv_sec != before->st_mtim.tv_sec ||
        now->st_mtim.tv_nsec != before->st_mtim.tv_nsec)
        return crit_fail(SCR_CRIT_ERR_CHANGED, CRIT_NO_OFFSET,
                         "the source was written to while it was being read");
    if (now->st_ino != before->st_ino || now->st_dev != before->st_dev)
        return crit_fail(SCR_CRIT_ERR_CHANGED, CRIT_NO_OFFSET,
                         "the source was replaced by another file while it was being read");
    return SCR_CRIT_OK;
}

int crit_source_unchanged(const crit_source *source)
{
    struct stat now;
    if (source->fd < 0)
        return SCR_CRIT_OK;
    if (fstat(source->fd, &now) != 0)
        return crit_fail_system(errno, CRIT_NO_OFFSET, "cannot look at the source again");
    const int status = compare(&source->opened, &now);
    if (status != SCR_CRIT_OK)
        return status;
    if (stat(source->name, &now) != 0)
        return crit_fail(SCR_CRIT_ERR_CHANGED, CRIT_NO_OFFSET,
                         "the source was removed while it was being read");
    return compare(&source->opened, &now);
}
