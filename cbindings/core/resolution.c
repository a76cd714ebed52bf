/* resolution.c - see resolution.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "resolution.h"

#include <stdlib.h>
#include <string.h>

#include "error.h"

void crit_resolution_init(crit_resolution *resolution)
{
    memset(resolution, 0, sizeof *resolution);
    crit_program_init(&resolution->program);
    resolution->type_size = 1;
}

void crit_resolution_free(crit_resolution *resolution)
{
    crit_program_free(&resolution->program);
    free(resolution->fields);
    crit_resolution_init(resolution);
}

int crit_resolution_check(crit_resolution *resolution, uint64_t file_size)
{
    const crit_program *program = &resolution->program;
    int status = crit_program_check(program->bytes, program->size, 0, &resolution->facts);
    if (status != SCR_CRIT_OK)
        return status;
    if (resolution->facts.length != file_size)
        return crit_fail(SCR_CRIT_ERR_MISFIT, CRIT_NO_OFFSET,
                         "the plan's rules cover %llu bytes, the file has %llu",
                         (unsigned long long)resolution->facts.length,
                         (unsigned long long)file_size);
    if (resolution->type_size < 1 || resolution->type_size > 255)
        return crit_fail(SCR_CRIT_ERR_FORMAT, CRIT_NO_OFFSET,
                         "element size is %u, expected 1 to 255", resolution->type_size);
    return crit_fields_check(resolution->fields, resolution->field_count, file_size, 0);
}
