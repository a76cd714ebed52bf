/* overwrite.c - see overwrite.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "overwrite.h"

#include <stdlib.h>

#include "error.h"
#include "expand.h"
#include "io.h"
#include "output.h"

static int read_source(void *context, uint64_t offset, uint8_t *target, size_t size)
{
    crit_source *source = context;
    return crit_blame(crit_source_read(source, offset, target, size), source->name);
}

static int refresh_fields(const crit_resolution *resolution, int fd)
{
    if (resolution->field_count == 0)
        return SCR_CRIT_OK;
    uint8_t *scratch = malloc(CRIT_WINDOW);
    if (scratch == NULL)
        return crit_fail_memory(CRIT_WINDOW);
    int status = SCR_CRIT_OK;
    for (uint32_t i = 0; status == SCR_CRIT_OK && i < resolution->field_count; i++)
        status = crit_field_refresh_file(&resolution->fields[i], fd, scratch);
    free(scratch);
    return status;
}

static int write_overwritten(crit_source *source, const crit_resolution *resolution,
                             const scr_crit_fill *fill, crit_output *output)
{
    const crit_expansion expansion = {.program = resolution->program.bytes,
                                      .program_size = resolution->program.size,
                                      .file_size = source->size,
                                      .fill = fill,
                                      .read = read_source,
                                      .context = source};
    int status = crit_output_adopt(output, source->fd, &source->opened);
    if (status == SCR_CRIT_OK)
        status = crit_expand_to_file(&expansion, output->fd);
    if (status == SCR_CRIT_OK)
        status = refresh_fields(resolution, output->fd);
    if (status == SCR_CRIT_OK)
        status = crit_source_unchanged(source);
    return status == SCR_CRIT_OK ? crit_output_commit(output) : status;
}

int crit_overwrite(crit_source *source, const crit_resolution *resolution, const scr_crit_fill *fill)
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
