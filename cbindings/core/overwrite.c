/* overwrite.c - see overwrite.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "overwrite.h"

#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "expand.h"
#include "io.h"
#include "output.h"

/* The source, read ahead: critical runs may be a few bytes each. */
typedef struct window {
    crit_source *source;
    uint8_t *bytes;
    uint64_t start, stop; /* what is in it */
} window;

static int read_ahead(window *w, uint64_t offset)
{
    const uint64_t left = w->source->size - offset;
    const size_t n = left < CRIT_WINDOW ? (size_t)left : CRIT_WINDOW;
    const int status = crit_source_read(w->source, offset, w->bytes, n);
    w->start = offset;
    w->stop = status == SCR_CRIT_OK ? offset + n : offset;
    return crit_blame(status, w->source->name);
}

static int read_source(void *context, uint64_t offset, uint8_t *target, size_t size)
{
    window *w = context;
    while (size > 0) {
        if (offset < w->start || offset >= w->stop) {
            const int status = read_ahead(w, offset);
            if (status != SCR_CRIT_OK)
                return status;
        }
        const uint64_t there = w->stop - offset;
        const size_t n = size < there ? size : (size_t)there;
        memcpy(target, w->bytes + (offset - w->start), n);
        target += n;
        offset += n;
        size -= n;
    }
    return SCR_CRIT_OK;
}

static int refresh_fields(const crit_resolution *resolution, int fd, uint8_t *scratch)
{
    int status = SCR_CRIT_OK;
    for (uint32_t i = 0; status == SCR_CRIT_OK && i < resolution->field_count; i++)
        status = crit_field_refresh_file(&resolution->fields[i], fd, scratch);
    return status;
}

static int write_content(crit_source *source, const crit_resolution *resolution,
                         const scr_crit_fill *fill, int fd)
{
    window w = {.source = source, .bytes = malloc(CRIT_WINDOW)};
    const crit_expansion expansion = {.program = resolution->program.bytes,
                                      .program_size = resolution->program.size,
                                      .file_size = source->size,
                                      .fill = fill,
                                      .read = read_source,
                                      .context = &w};
    if (w.bytes == NULL)
        return crit_fail_memory(CRIT_WINDOW);
    int status = crit_expand_to_file(&expansion, fd);
    if (status == SCR_CRIT_OK)
        status = refresh_fields(resolution, fd, w.bytes);
    free(w.bytes);
    return status;
}

static int write_overwritten(crit_source *source, const crit_resolution *resolution,
                             const scr_crit_fill *fill, crit_output *output)
{
    int status = crit_output_adopt(output, source->fd, &source->opened);
    if (status == SCR_CRIT_OK)
        status = write_content(source, resolution, fill, output->fd);
    if (status == SCR_CRIT_OK)
        status = crit_source_unchanged(source);
    return status == SCR_CRIT_OK ? crit_output_commit(output) : status;
}

int crit_overwrite(crit_source *source, const crit_resolution *resolution,
                   const scr_crit_fill *fill)
{
    crit_output output;
    int status = crit_fields_verify(resolution->fields, resolution->field_count, source);
    if (status != SCR_CRIT_OK)
        return crit_blame(status, source->name);
    status = crit_output_begin(&output, source->name, 0600);
    if (status == SCR_CRIT_OK)
        status = write_overwritten(source, resolution, fill, &output);
    crit_output_close(&output);
    return crit_blame(status, source->name);
}
