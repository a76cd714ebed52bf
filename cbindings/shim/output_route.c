/* output_route.c - decide, while files are routed for output, which are packed and where they are
 * written.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests: see output.h.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "message.h"
#include "output.h"
#include "shared.h"
#include "stage.h"
#include "totals.h"

/* How the plan sees a file. */
typedef struct match {
    uint32_t entry;
    bool own;     /* no other rank writes it */
    bool foreign; /* its name belongs to another rank, which may write it as well */
} match;

/* The first pattern that any rank's name would match decides, so that all ranks decide alike. */
static bool match_plan(const shim_output *output, const char *relative, match *found)
{
    const scr_crit_plan *plan = output->plan;
    const shim_rank *self = &output->options->rank;
    int tied = 0;
    if (scr_crit_plan_match(plan, relative, -1, output->dataset, &found->entry, &tied) !=
        SCR_CRIT_OK)
        return false;
    uint32_t entry;
    bool alone = self->size == 1;
    bool named = tied && self->rank >= 0 &&
                 scr_crit_plan_match(plan, relative, self->rank, output->dataset, &entry, NULL) ==
                     SCR_CRIT_OK &&
                 entry == found->entry;
    found->own = alone || named;
    found->foreign = tied && !found->own;
    return true;
}

/* Tell a guest's file from others, and see whether its owner was there before. */
static void note_guest(shim_file *file)
{
    int claims = 0;
    file->foreign = true;
    shim_shared_mark(file->path);
    file->conflict = scr_crit_is_packed(file->path, &claims) == SCR_CRIT_OK && claims;
}

/* Why the file is not even tried, before anything is known of its content; SHIM_CAUSES if it is. */
static shim_cause objection(const shim_output *output, const match *found, const char *relative,
                            const char **detail)
{
    if (output->options->doubtful)
        return SHIM_CAUSE_DOUBT;
    if (!shim_options_wants(output->options, relative, output->dataset))
        return SHIM_CAUSE_EXCLUDED;
    if (found->own)
        return SHIM_CAUSES;
    *detail = found->foreign ? "the number in its name is another rank's"
                             : "its pattern in the plan does not name the rank: {rank}";
    return SHIM_CAUSE_SHARED;
}

/* ---- Staging -------------------------------------------------------------------------------- */

static uint64_t largest(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Bytes that the application will write, as far as can be foreseen. */
static uint64_t expected_bytes(const shim_output *output, const shim_file *file)
{
    scr_crit_entry_info entry;
    scr_crit_info packed;
    uint64_t bytes = output->last_bytes ? output->last_bytes[file->entry] : 0;
    if (scr_crit_plan_entry(output->plan, file->entry, &entry) == SCR_CRIT_OK)
        bytes = largest(bytes, entry.min_bytes);
    bytes = largest(bytes, file->path_before.size);
    int claims = 0;
    if (file->path_before.exists && scr_crit_is_packed(file->path, &claims) == SCR_CRIT_OK &&
        claims && scr_crit_inspect(file->path, &packed) == SCR_CRIT_OK)
        bytes = largest(bytes, packed.file_bytes);
    return bytes;
}

/* The application may append to an older file of that name, or change it in place: it shall find
 * what it would find without the plugin. */
static int provide_content(const shim_output *output, const shim_file *file, const char *staged)
{
    int claims = 0;
    int status = scr_crit_is_packed(file->path, &claims);
    if (status != SCR_CRIT_OK)
        return status;
    if (!claims)
        return scr_crit_copy(file->path, staged);
    scr_crit_fill fill = {output->options->fill, output->options->fill_size};
    return scr_crit_unpack(file->path, staged, &fill, NULL);
}

/* A file takes whole blocks, and a folder of its own. */
static uint64_t in_blocks(uint64_t bytes)
{
    const uint64_t block = 4096;
    return (bytes + block - 1) / block * block + block;
}

/* Claiming means looking at all staged files of the node: do it once for a phase like the one
 * before. */
static bool claim(shim_output *output, uint64_t bytes, uint64_t *room)
{
    if (bytes <= output->claimed)
        return true;
    uint64_t ahead = largest(bytes, output->last_phase);
    if (!shim_stage_claim(ahead, room)) {
        ahead = bytes;
        if (!shim_stage_claim(ahead, room))
            return false;
    }
    output->claimed = ahead;
    return true;
}

static shim_cause find_space(shim_output *output, const shim_file *file, const char *base,
                             char *detail, size_t size)
{
    uint64_t room, bytes = in_blocks(expected_bytes(output, file));
    if (output->no_staging) {
        snprintf(detail, size, "the application failed in %s before", base);
        return SHIM_CAUSE_NO_STAGE;
    }
    if (!claim(output, output->expected + bytes, &room)) {
        snprintf(detail, size,
                 "%s has room for %" PRIu64 " bytes of this rank, %" PRIu64 " are needed", base,
                 room, output->expected + bytes);
        return SHIM_CAUSE_NO_STAGE;
    }
    output->expected += bytes;
    return SHIM_CAUSES;
}

/* Reserve a staged name that fits into `size`, with the older file's content. */
static shim_cause prepare(const shim_output *output, shim_file *file, size_t area, size_t size,
                          char *detail, size_t detail_size)
{
    char staged[SHIM_PATH_SIZE];
    int error = shim_stage_reserve(area, shim_path_base(file->path), staged,
                                   size < sizeof staged ? size : sizeof staged);
    if (error) {
        snprintf(detail, detail_size, "in %s: %s", shim_stage_base(area), strerror(error));
        return error == ENAMETOOLONG ? SHIM_CAUSE_NAME : SHIM_CAUSE_NO_STAGE;
    }
    if (file->path_before.exists && provide_content(output, file, staged) != SCR_CRIT_OK) {
        snprintf(detail, detail_size, "%s", scr_crit_last_error());
        shim_stage_remove(staged);
        return SHIM_CAUSE_NO_STAGE;
    }
    file->staged = strdup(staged);
    file->staged_before = shim_identity_of(staged);
    return file->staged ? SHIM_CAUSES : SHIM_CAUSE_NO_STAGE;
}

static shim_cause stage(shim_output *output, shim_file *file, size_t size, char *detail,
                        size_t detail_size)
{
    file->path_before = shim_identity_of(file->path);
    if (file->path_before.exists && !file->path_before.plain)
        return SHIM_CAUSE_LINKED;
    size_t area = shim_stage_output_area();
    if (area == SHIM_STAGE_AREAS) {
        snprintf(detail, detail_size, "%s", shim_stage_problem());
        return SHIM_CAUSE_NO_STAGE;
    }
    shim_cause cause = find_space(output, file, shim_stage_base(area), detail, detail_size);
    return cause != SHIM_CAUSES ? cause : prepare(output, file, area, size, detail, detail_size);
}

/* ---- The decision --------------------------------------------------------------------------- */

static void journal_temporary_of(const char *path)
{
    char temporary[SHIM_PATH_SIZE];
    if (scr_crit_temp_path(path, temporary, sizeof temporary) == SCR_CRIT_OK)
        shim_stage_journal(temporary);
}

/* Arrange for a file that is to be packed. bypass: SCR sends it to the prefix itself. */
static shim_cause arrange(shim_output *output, shim_file *file, bool bypass, size_t size,
                          char *detail, size_t detail_size)
{
    if (output->options->dry_run)
        return SHIM_CAUSES;
    shim_cause cause = bypass ? stage(output, file, size, detail, detail_size) : SHIM_CAUSES;
    if (cause == SHIM_CAUSES)
        journal_temporary_of(file->path);
    return cause;
}

static void take_in(shim_output *output, const match *found, const char *relative, bool bypass,
                    char *path, size_t size)
{
    shim_file *file = shim_files_add(&output->files, path);
    if (!file) {
        shim_totals_whole(SHIM_CAUSE_SYSTEM, path, "no memory");
        return;
    }
    char text[SHIM_PATH_SIZE + 512] = "";
    const char *detail = text;
    file->entry = found->entry;
    if (found->foreign)
        note_guest(file);
    shim_cause cause = objection(output, found, relative, &detail);
    if (cause == SHIM_CAUSES)
        cause = arrange(output, file, bypass, size, text, sizeof text);
    file->pack = cause == SHIM_CAUSES;
    if (!file->pack)
        shim_totals_whole(cause, path, *detail ? detail : NULL);
    else if (file->staged)
        snprintf(path, size, "%s", file->staged);
}

/* A file that was routed before. In cache mode names of several folders meet in one file (SCR keeps
 * the last part alone): it can only be packed if they agree about its rules. */
static void route_again(shim_file *known, const match *found, char *path, size_t size)
{
    if (known->staged) {
        snprintf(path, size, "%s", known->staged);
    } else if (known->pack && (!found || found->entry != known->entry)) {
        known->pack = false;
        shim_totals_whole(SHIM_CAUSE_SHARED, path, "SCR sends two names to it");
    }
}

void shim_output_route(shim_output *output, const char *name, char *path, size_t size)
{
    char absolute[SHIM_PATH_SIZE];
    if (!output->plan || !shim_path_absolute(name, absolute, sizeof absolute))
        return;
    match found;
    const char *relative = shim_path_below(output->options->prefix, absolute);
    bool planned = relative && match_plan(output, relative, &found);
    shim_file *known = shim_files_find(&output->files, path);
    if (known)
        route_again(known, planned ? &found : NULL, path, size);
    else if (planned)
        take_in(output, &found, relative, strcmp(absolute, path) == 0, path, size);
    else
        shim_totals_whole(SHIM_CAUSE_UNPLANNED, path, NULL);
    shim_message_debug_at(3, "routed for output: %s -> %s", name, path);
}
