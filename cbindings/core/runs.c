/* runs.c - critical runs of a whole file by its plan, or of a packed file; public functions of
 * scr_crit.h.
 *
 * Tests: tests/test_core_packed.py, tests/test_plan.py.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdlib.h>

#include "error.h"
#include "packed.h"
#include "plan.h"
#include "resolution.h"

struct scr_crit_runs {
    crit_cursor cursor;
    uint64_t length;            /* of the whole file */
    crit_resolution resolution; /* of a plan */
    crit_packed packed;         /* of a packed file; its fd is -1 without one */
};

static int make(scr_crit_runs **runs)
{
    scr_crit_runs *made = calloc(1, sizeof *made);
    if (made == NULL)
        return crit_fail_memory(sizeof *made);
    crit_resolution_init(&made->resolution);
    made->packed.fd = -1;
    *runs = made;
    return SCR_CRIT_OK;
}

void scr_crit_runs_close(scr_crit_runs *runs)
{
    if (runs == NULL)
        return;
    crit_resolution_free(&runs->resolution);
    crit_packed_close(&runs->packed);
    free(runs);
}

static int resolve_file(const scr_crit_plan *plan, uint32_t entry, const char *path,
                        scr_crit_runs *runs)
{
    crit_source source;
    int status = crit_source_open(&source, path);
    if (status != SCR_CRIT_OK)
        return status;
    status = crit_plan_resolve(plan, entry, &source, &runs->resolution);
    runs->length = source.size;
    crit_source_close(&source);
    return status;
}

int scr_crit_runs_of_plan(scr_crit_plan *plan, uint32_t entry, const char *source,
                          scr_crit_runs **runs)
{
    scr_crit_runs *made = NULL;
    if (plan == NULL || source == NULL || runs == NULL)
        return crit_fail(SCR_CRIT_ERR_ARG, CRIT_NO_OFFSET, "plan, source or runs is NULL");
    int status = make(&made);
    if (status == SCR_CRIT_OK)
        status = resolve_file(plan, entry, source, made);
    if (status != SCR_CRIT_OK) {
        scr_crit_runs_close(made);
        return crit_blame(status, source);
    }
    crit_cursor_open(&made->cursor, made->resolution.program.bytes, made->resolution.program.size);
    *runs = made;
    return SCR_CRIT_OK;
}

int scr_crit_runs_of_packed(const char *path, scr_crit_runs **runs)
{
    scr_crit_runs *made = NULL;
    if (path == NULL || runs == NULL)
        return crit_fail(SCR_CRIT_ERR_ARG, CRIT_NO_OFFSET, "path or runs is NULL");
    int status = make(&made);
    if (status == SCR_CRIT_OK)
        status = crit_packed_open(path, &made->packed);
    if (status != SCR_CRIT_OK) {
        scr_crit_runs_close(made);
        return crit_blame(status, path);
    }
    made->length = made->packed.header.file_size;
    crit_cursor_open(&made->cursor, made->packed.program.bytes, made->packed.program.size);
    *runs = made;
    return SCR_CRIT_OK;
}

int scr_crit_runs_next(scr_crit_runs *runs, uint64_t *starts, uint64_t *stops, size_t capacity,
                       size_t *count)
{
    if (runs == NULL || count == NULL || ((starts == NULL || stops == NULL) && capacity != 0))
        return crit_fail(SCR_CRIT_ERR_ARG, CRIT_NO_OFFSET, "a required argument is NULL");
    if (capacity == 0)
        return crit_fail(SCR_CRIT_ERR_ARG, CRIT_NO_OFFSET, "capacity is 0, expected at least 1");
    size_t found = 0;
    crit_run run;
    while (found < capacity && crit_cursor_next(&runs->cursor, &run)) {
        starts[found] = run.start;
        stops[found] = run.stop;
        found++;
    }
    if (runs->cursor.damaged || runs->cursor.position > runs->length)
        return crit_fail(SCR_CRIT_ERR_CHANGED, CRIT_NO_OFFSET,
                         "the program of runs changed while it was being read");
    *count = found;
    return SCR_CRIT_OK;
}
