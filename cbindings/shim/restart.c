/* restart.c - the filter's restart phase.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests: tests/shim/test_shim_restart.py.
 */
#define _GNU_SOURCE
#include "restart.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "message.h"
#include "stage.h"
#include "totals.h"

static int fail(const char *path, const char *why)
{
    SHIM_ERROR("%s cannot be read, this restart fails on this rank: %s", path, why);
    return 1;
}

typedef struct reason {
    char words[SHIM_PATH_SIZE + 512];
} reason;

/* The last area is tried in any case: there is nothing behind it. */
static bool has_room(size_t area, const char *path)
{
    scr_crit_info info;
    return area + 1 == shim_stage_areas() || scr_crit_inspect(path, &info) != SCR_CRIT_OK ||
           info.file_bytes <= shim_stage_free_bytes(area);
}

/* Expand into one area. Returns a status of the core; `staged` is set on success, `why` on failure.
 */
static int expand_into(const shim_restart *restart, size_t area, const char *path, char *staged,
                       size_t size, reason *why)
{
    scr_crit_info info;
    scr_crit_fill fill = {restart->options->fill, restart->options->fill_size};
    if (!has_room(area, path)) {
        snprintf(why->words, sizeof why->words, "there is no room for it in %s",
                 shim_stage_base(area));
        return SCR_CRIT_ERR_NOSPACE;
    }
    int error = shim_stage_reserve(area, shim_path_base(path), staged, size);
    if (error) {
        snprintf(why->words, sizeof why->words, "it cannot be staged in %s: %s",
                 shim_stage_base(area), strerror(error));
        return SCR_CRIT_ERR_NOSPACE;
    }
    double start = shim_seconds();
    int status = scr_crit_unpack(path, staged, &fill, &info);
    if (status != SCR_CRIT_OK) {
        snprintf(why->words, sizeof why->words, "%s", scr_crit_last_error());
        shim_stage_remove(staged);
        return status;
    }
    shim_totals_expanded(shim_seconds() - start);
    shim_message_debug_at(2, "expanded %s: %" PRIu64 " -> %" PRIu64 " bytes", path,
                          info.packed_bytes, info.file_bytes);
    return SCR_CRIT_OK;
}

/* Only what another area may have more of is worth a further try. */
static bool another_area_may_do(int status)
{
    return status == SCR_CRIT_ERR_NOSPACE || status == SCR_CRIT_ERR_IO;
}

/* The file is good, this process cannot read it. Reporting an invalid restart would make SCR mark
 * the checkpoint as failed for good and try an older one, which it would lose in the same way. */
static bool is_no_fault_of_the_file(int status)
{
    return status == SCR_CRIT_ERR_CODEC || status == SCR_CRIT_ERR_NOMEM;
}

static _Noreturn void end_job(const char *path, const char *why)
{
    SHIM_ERROR("%s cannot be read in this environment: %s; the job ends here, so that SCR does not "
               "mark a good "
               "checkpoint as failed: mend that and restart",
               path, why);
    shim_stage_close();
    fflush(NULL);
    _exit(EXIT_FAILURE);
}

static int expand(const shim_restart *restart, shim_file *file, size_t size)
{
    char staged[SHIM_PATH_SIZE];
    reason why = {"there is no folder for staging"};
    int status = SCR_CRIT_ERR_NOSPACE;
    if (size > sizeof staged)
        size = sizeof staged;
    for (size_t area = 0; area < shim_stage_areas() && another_area_may_do(status); area++)
        status = expand_into(restart, area, file->path, staged, size, &why);
    if (is_no_fault_of_the_file(status))
        end_job(file->path, why.words);
    file->staged = status == SCR_CRIT_OK ? strdup(staged) : NULL;
    return file->staged ? 0 : fail(file->path, why.words);
}

static int hand_out(const shim_file *file, char *path, size_t size)
{
    if (!file->staged)
        return 1;
    snprintf(path, size, "%s", file->staged);
    return 0;
}

int shim_restart_route(shim_restart *restart, char *path, size_t size)
{
    int claims = 0;
    shim_file *file = shim_files_find(&restart->files, path);
    if (file)
        return hand_out(file, path, size);
    if (scr_crit_is_packed(path, &claims) != SCR_CRIT_OK)
        return fail(path, scr_crit_last_error());
    if (!claims)
        return 0;
    file = shim_files_add(&restart->files, path);
    if (!file)
        return fail(path, "no memory");
    return expand(restart, file, size) != 0 ? 1 : hand_out(file, path, size);
}

void shim_restart_end(shim_restart *restart)
{
    for (size_t i = 0; i < restart->files.count; i++)
        if (restart->files.items[i].staged)
            shim_stage_remove(restart->files.items[i].staged);
    shim_files_clear(&restart->files);
}
