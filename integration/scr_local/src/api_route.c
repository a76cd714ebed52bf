/*
 * api_route.c - SCR_Route_file: where the program finds or puts a file. Not collective.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "api.h"
#include "cache.h"
#include "message.h"
#include "path.h"

static void make_absolute(const char *name, char path[SCR_MAX_FILENAME])
{
    if (scrl_path_absolute(name, path, SCR_MAX_FILENAME) != 0) {
        scrl_abort("Failed to build absolute path to %s of less than SCR_MAX_FILENAME (%d): %s",
                   name, SCR_MAX_FILENAME, strerror(errno));
    }
}

/* The path for `origin`: itself, or its base name in the dataset's cache directory. */
static void place(const scrl_cached *cached, const char *origin, char path[SCR_MAX_FILENAME])
{
    if (cached->bypass) {
        strcpy(path, origin);
        return;
    }
    char directory[SCR_MAX_FILENAME];
    scrl_cache_directory(cached->dataset.id, directory);
    scrl_path_join(path, SCR_MAX_FILENAME, directory, scrl_path_base(origin));
}

static int route_for_output(const scrl_cached *cached, const char *origin, char *file)
{
    if (!scrl_path_is_below(scrl.settings.prefix, origin)) {
        scrl_abort("File `%s' must be under SCR_PREFIX `%s'", origin, scrl.settings.prefix);
    }
    place(cached, origin, file);
    if (cached->bypass && scrl_make_parents(origin, 0777) != 0) {
        scrl_abort("Failed to create the directory of %s: %s", origin, strerror(errno));
    }
    scrl_filemap_put(&scrl.map, file, origin);
    char directory[SCR_MAX_FILENAME];
    scrl_cache_directory(cached->dataset.id, directory);
    scrl_filemap_save(&scrl.map, directory, scrl.rank); /* a killed run leaves a trace of it */
    return SCR_SUCCESS;
}

/* Looks for a file of that base name: a restart may name it without its directory. */
static int find_by_base(const scrl_cached *cached, const char *base, char *file)
{
    char directory[SCR_MAX_FILENAME];
    scrl_cache_directory(cached->dataset.id, directory);
    scrl_filemap map;
    int found = 0;
    if (scrl_filemap_load(&map, directory, scrl.rank) == 0) {
        for (int i = 0; i < map.count && !found; i++) {
            found = strcmp(scrl_path_base(map.files[i].origin), base) == 0;
            if (found) {
                strcpy(file, map.files[i].path);
            }
        }
        scrl_filemap_free(&map);
    }
    return found;
}

static int route_for_restart(const scrl_cached *cached, const char *origin, char *file)
{
    place(cached, origin, file);
    if (access(file, R_OK) == 0) {
        return SCR_SUCCESS;
    }
    if (find_by_base(cached, scrl_path_base(origin), file) && access(file, R_OK) == 0) {
        return SCR_SUCCESS;
    }
    return SCRL_FAILURE;
}

int SCR_Route_file(const char *name, char *file)
{
    int outside = scrl.state == SCRL_UNINIT || scrl.state == SCRL_IDLE;
    if (scrl.disabled && !outside) {
        return SCRL_FAILURE;
    }
    if (!name || !name[0] || !file) {
        return SCRL_FAILURE;
    }
    if (strlen(name) >= SCR_MAX_FILENAME) {
        scrl_abort("file name (%s) is longer than SCR_MAX_FILENAME (%d)", name, SCR_MAX_FILENAME);
    }
    if (outside) {
        strcpy(file, name);
        return SCR_SUCCESS;
    }
    char origin[SCR_MAX_FILENAME];
    make_absolute(name, origin);
    const scrl_cached *cached = scrl_cache_find(scrl.dataset_id);
    if (scrl.state == SCRL_RESTART) {
        return route_for_restart(cached, origin, file);
    }
    return route_for_output(cached, origin, file);
}
