/* output.c - the output phase from start to end.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests: see output.h.
 */
#define _GNU_SOURCE
#include "output.h"

#include <stdlib.h>
#include <string.h>

#include "shared.h"
#include "stage.h"

int shim_output_open(shim_output *output, const shim_options *options, scr_crit_plan *plan)
{
    *output = (shim_output){.options = options, .plan = plan};
    scr_crit_plan_info info;
    if (!plan || scr_crit_plan_describe(plan, &info) != SCR_CRIT_OK || info.entries == 0)
        return SCR_CRIT_OK;
    output->last_bytes = calloc(info.entries, sizeof *output->last_bytes);
    return output->last_bytes ? SCR_CRIT_OK : SCR_CRIT_ERR_NOMEM;
}

void shim_output_close(shim_output *output)
{
    shim_output_end(output);
    scr_crit_plan_close(output->plan);
    free(output->last_bytes);
    *output = (shim_output){0};
}

void shim_output_start(shim_output *output, const char *dataset)
{
    shim_output_end(output); /* of a phase that was never completed */
    output->dataset = dataset && *dataset ? strdup(dataset) : NULL;
}

void shim_output_end(shim_output *output)
{
    for (size_t i = 0; i < output->files.count; i++) {
        shim_file *file = &output->files.items[i];
        if (file->staged)
            shim_stage_remove(file->staged);
        if (file->foreign)
            shim_shared_unmark(file->path);
    }
    shim_files_clear(&output->files);
    shim_stage_journal_done();
    free(output->dataset);
    output->dataset = NULL;
    if (output->claimed)
        shim_stage_claim(0, NULL);
    if (output->expected)
        output->last_phase = output->expected;
    output->expected = output->claimed = 0;
}
