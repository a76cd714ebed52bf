/* output_complete.c - pack what the application wrote, before SCR sees it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * SCR takes a file's size inside its Complete call and must find the file unchanged ever after, so
 * all happens before that call. Whatever fails, a whole file remains or is put in place; if even
 * that is impossible, valid becomes 0.
 * Tests: see output.h.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "in_use.h"
#include "message.h"
#include "output.h"
#include "shared.h"
#include "stage.h"
#include "totals.h"

/* An area with less than this is full: the application's last write took what was left. */
enum { FULL_BELOW = 1 << 20 };

/* ---- One file ------------------------------------------------------------------------------- */

static void told_packed(const shim_file *file, const scr_crit_info *info)
{
    shim_message_debug_at(2, "packed %s: %" PRIu64 " -> %" PRIu64 " bytes", file->path,
                          info->file_bytes, info->packed_bytes);
}

/* Pack source to target, or overwrite it where it is. Returns whether that was done; else the file
 * is counted as whole. */
static bool reduce(const shim_output *output, const shim_file *file, const char *source,
                   const char *target)
{
    const shim_options *options = output->options;
    scr_crit_pack_options how = {.codec = options->codec};
    scr_crit_info info;
    double start = shim_seconds();
    int status = options->zero
                     ? scr_crit_overwrite(output->plan, file->entry, source, NULL, &info)
                     : scr_crit_pack(output->plan, file->entry, source, target, &how, &info);
    double seconds = shim_seconds() - start;
    if (status != SCR_CRIT_OK) {
        shim_totals_spent(seconds);
        shim_totals_whole(shim_cause_of(status), file->path, scr_crit_last_error());
        return false;
    }
    if (options->zero) {
        shim_totals_zeroed(&info, seconds);
    } else {
        shim_totals_packed(&info, seconds);
        told_packed(file, &info);
    }
    return true;
}

static bool report_conflict(const shim_file *file)
{
    SHIM_ERROR("%s is written by two ranks, though the plan ties its name to one (or an earlier "
               "run left it packed: then remove it): this checkpoint is reported as invalid; "
               "exclude the file (SCR_CRIT_EXCLUDE) or mend its pattern in the plan",
               file->path);
    return false;
}

static bool has_no_guest(const shim_file *file)
{
    return !shim_shared_is_marked(file->path) || report_conflict(file);
}

/* A file that was left to the application. If an older run packed it, the application may have
 * written into a packed file. */
static bool check_whole(const shim_file *file)
{
    int claims = 0;
    if (scr_crit_is_packed(file->path, &claims) != SCR_CRIT_OK || !claims)
        return !file->conflict || report_conflict(file);
    if (file->foreign)
        return report_conflict(file);
    if (scr_crit_check(file->path, NULL) == SCR_CRIT_OK)
        return true;
    SHIM_ERROR("%s: an earlier run left a packed file of this name, which the application then "
               "wrote to: this checkpoint is reported as invalid; remove the file",
               file->path);
    return false;
}

static bool measure(const shim_output *output, const shim_file *file)
{
    scr_crit_info info;
    double start = shim_seconds();
    int status = scr_crit_measure(output->plan, file->entry, file->path, &info);
    double seconds = shim_seconds() - start;
    if (status == SCR_CRIT_OK) {
        shim_totals_measured(&info, seconds);
        shim_totals_whole(SHIM_CAUSE_DRY_RUN, file->path, NULL);
    } else {
        shim_totals_spent(seconds);
        shim_totals_whole(shim_cause_of(status), file->path, scr_crit_last_error());
    }
    return check_whole(file);
}

/* Cache mode. A file that is not there is SCR's to notice. */
static bool pack_in_place(const shim_output *output, const shim_file *file)
{
    shim_identity found = shim_identity_of(file->path);
    if (!found.exists)
        return true;
    if (!found.plain)
        shim_totals_whole(SHIM_CAUSE_LINKED, file->path, NULL);
    else if (found.size == 0)
        shim_totals_whole(SHIM_CAUSE_NO_GAIN, file->path, "it is empty");
    else if (shim_is_open_for_writing(file->path))
        shim_totals_whole(SHIM_CAUSE_OPEN, file->path, NULL);
    else
        reduce(output, file, file->path, file->path);
    return has_no_guest(file);
}

/* ---- Bypass: from staging to the prefix ----------------------------------------------------- */

static bool copy_whole(const char *staged, const char *path)
{
    if (scr_crit_copy(staged, path) == SCR_CRIT_OK)
        return true;
    SHIM_ERROR("%s cannot be stored, the checkpoint is reported as invalid: %s", path,
               scr_crit_last_error());
    return false;
}

static bool move_staged(const shim_output *output, const shim_file *file, uint64_t bytes)
{
    if (bytes == 0)
        shim_totals_whole(SHIM_CAUSE_NO_GAIN, file->path, "it is empty");
    else if (shim_is_open_for_writing(file->staged))
        shim_totals_whole(SHIM_CAUSE_OPEN, file->path, NULL);
    else if (reduce(output, file, file->staged, file->path) && !output->options->zero)
        return true;
    return copy_whole(file->staged, file->path);
}

/* What the application left beside the staged file, as it would have beside the file itself. */
static bool move_companion(const char *folder, const char *name, const char *target_folder)
{
    char source[SHIM_PATH_SIZE], target[SHIM_PATH_SIZE];
    if (!shim_path_join(source, sizeof source, folder, name) ||
        !shim_path_join(target, sizeof target, target_folder, name))
        return false;
    struct stat found;
    if (lstat(source, &found) != 0 || !S_ISREG(found.st_mode)) {
        SHIM_ERROR(
            "%s was made beside a checkpoint file and is no regular file: it cannot be brought to "
            "%s, and the checkpoint is reported as invalid; exclude %s* (SCR_CRIT_EXCLUDE)",
            source, target_folder, name);
        return false;
    }
    static bool told;
    if (!told)
        SHIM_WARNING("%s was made beside a checkpoint file: it is stored as well, but at a restart "
                     "it is not "
                     "beside the expanded file; route it by SCR_Route_file, or exclude %s "
                     "(SCR_CRIT_EXCLUDE)",
                     target, name);
    told = true;
    return copy_whole(source, target);
}

/* Not the application's doing: cleaners of temporary folders, a logout, an epilog. */
static bool report_lost_stage(const shim_file *file)
{
    SHIM_ERROR("%s has vanished from staging (%s): this checkpoint is reported as invalid, an "
               "older file of "
               "that name is left as it is; set SCR_CRIT_STAGE to a folder that nobody cleans",
               file->path, file->staged);
    return false;
}

static bool folder_is_there(const char *staged)
{
    char folder[SHIM_PATH_SIZE];
    struct stat found;
    return shim_path_folder(staged, folder, sizeof folder) && stat(folder, &found) == 0;
}

static bool move_companions(const shim_file *file)
{
    char folder[SHIM_PATH_SIZE], target[SHIM_PATH_SIZE];
    if (!shim_path_folder(file->staged, folder, sizeof folder) ||
        !shim_path_folder(file->path, target, sizeof target))
        return false;
    DIR *stream = opendir(folder);
    bool moved = stream != NULL || report_lost_stage(file);
    const char *own = shim_path_base(file->staged);
    for (struct dirent *entry; stream && (entry = readdir(stream));) {
        const char *name = entry->d_name;
        if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0 && strcmp(name, own) != 0)
            moved &= move_companion(folder, name, target);
    }
    if (stream)
        closedir(stream);
    return moved;
}

/* The application removed what was provided for it from the older file: so the older file goes. */
static bool follow_removal(const shim_file *file)
{
    if (file->staged_before.exists && unlink(file->path) != 0 && errno != ENOENT)
        SHIM_WARNING("%s was removed by the application, but cannot be: %s", file->path,
                     strerror(errno));
    return true;
}

static bool store_staged(shim_output *output, const shim_file *file)
{
    shim_identity path_now = shim_identity_of(file->path);
    shim_identity staged_now = shim_identity_of(file->staged);
    bool path_touched = shim_identity_touched(&file->path_before, &path_now);
    bool staged_touched = shim_identity_touched(&file->staged_before, &staged_now);
    if (path_touched && !staged_touched) {
        shim_totals_whole(SHIM_CAUSE_BYPASSED, file->path, NULL);
        return true;
    }
    if (path_touched)
        return report_conflict(file);
    if (!staged_now.exists && !folder_is_there(file->staged))
        return report_lost_stage(file);
    if (!staged_now.exists)
        return follow_removal(file) && move_companions(file);
    if (output->last_bytes && output->last_bytes[file->entry] < staged_now.size)
        output->last_bytes[file->entry] = staged_now.size;
    return move_staged(output, file, staged_now.size) && has_no_guest(file) &&
           move_companions(file);
}

/* ---- All files ------------------------------------------------------------------------------ */

static bool complete_file(shim_output *output, const shim_file *file)
{
    if (!file->pack)
        return check_whole(file);
    if (output->options->dry_run)
        return measure(output, file);
    return file->staged ? store_staged(output, file) : pack_in_place(output, file);
}

/* Where the application failed in staging, for want of space or because that file system cannot do
 * what the prefix can (O_DIRECT, locks, striping), the next checkpoint must not fail again. */
static void give_up_staging(shim_output *output)
{
    size_t area = shim_stage_output_area();
    bool staged = false;
    for (size_t i = 0; i < output->files.count; i++)
        staged |= output->files.items[i].staged != NULL;
    if (!staged || output->no_staging)
        return;
    output->no_staging = true;
    SHIM_WARNING(
        "the application reported invalid output while its files were staged in %s%s: no more "
        "files are staged, they are stored whole; set SCR_CRIT_STAGE to another folder",
        shim_stage_base(area), shim_stage_free_bytes(area) < FULL_BELOW ? ", which is full" : "");
}

int shim_output_complete(shim_output *output, int valid)
{
    if (!valid) {
        give_up_staging(output);
        return valid;
    }
    bool good = true;
    for (size_t i = 0; i < output->files.count; i++)
        good &= complete_file(output, &output->files.items[i]);
    return good ? valid : 0;
}
