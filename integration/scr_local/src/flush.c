/*
 * flush.c - datasets into the prefix directory; see transfer.h. The index knows of a dataset before
 * its first file is there, and calls it complete only when the last one is.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "collective.h"
#include "copy.h"
#include "index.h"
#include "job.h"
#include "message.h"
#include "path.h"
#include "transfer.h"

void scrl_announce(const scrl_dataset *dataset)
{
    if (scrl.rank == 0) {
        scrl_index index;
        scrl_index_read(&index);
        scrl_index_remove(&index, dataset->name); /* moves "current" off an old one of this name */
        scrl_dataset started = *dataset;
        started.complete = 0;
        scrl_index_enter(&index, &started);
        scrl_index_write(&index);
        scrl_index_free(&index);
    }
    MPI_Barrier(scrl.comm);
}

static void announce_complete(const scrl_dataset *dataset)
{
    if (scrl.rank == 0) {
        scrl_index index;
        scrl_index_read(&index);
        scrl_index_entry *entry = scrl_index_enter(&index, dataset);
        entry->dataset.complete = 1;
        entry->flushed = 1;
        scrl_index_set_current(&index, dataset->name);
        if (scrl_index_write(&index) != 0) {
            scrl_abort("dataset %d `%s' is in the prefix directory but not in its index",
                       dataset->id, dataset->name);
        }
        scrl_index_free(&index);
    }
    MPI_Barrier(scrl.comm);
}

/* Copies one file to its place, unless it was written there. 1 when it is there. */
static int put_file(const scrl_file *file)
{
    if (strcmp(file->path, file->origin) == 0) {
        return access(file->path, R_OK) == 0;
    }
    if (scrl_make_parents(file->origin, 0777) != 0) {
        scrl_err("cannot make the directory of `%s': %s", file->origin, strerror(errno));
        return 0;
    }
    return scrl_copy_file(file->path, file->origin) == 0;
}

static int put_files(const scrl_filemap *map)
{
    int all = map->complete;
    for (int i = 0; all && i < map->count; i++) {
        all = put_file(&map->files[i]);
    }
    return all;
}

static void names_below_prefix(const scrl_filemap *map, scrl_names *names)
{
    const char *prefix = scrl.settings.prefix;
    size_t skip = strcmp(prefix, "/") == 0 ? 1 : strlen(prefix) + 1;
    *names = (scrl_names){0};
    for (int i = 0; i < map->count; i++) {
        scrl_names_add(names, map->files[i].origin + skip);
    }
}

/* Lists and copies; 1 on all ranks when every file of every rank is in its place. */
static int put_dataset(int id)
{
    char directory[SCR_MAX_FILENAME];
    scrl_cache_directory(id, directory);
    scrl_filemap map;
    int have_map = scrl_filemap_load(&map, directory, scrl.rank) == 0;
    if (!scrl_all(have_map)) {
        scrl_filemap_free(&map);
        return 0;
    }
    scrl_names names;
    names_below_prefix(&map, &names);
    int listed = scrl_filelist_write(id, &names);
    int put = listed && put_files(&map);
    scrl_names_free(&names);
    scrl_filemap_free(&map);
    return scrl_all(put);
}

void scrl_flush(int id)
{
    scrl_cached *cached = scrl_cache_find(id);
    if (!cached || cached->flushed) {
        return;
    }
    scrl_dataset dataset = cached->dataset;
    if (cached->ranks != scrl.ranks) {
        if (scrl.rank == 0) {
            scrl_warn("dataset %d `%s' is of %d ranks, the job has %d: it stays in the cache", id,
                      dataset.name, cached->ranks, scrl.ranks);
        }
        return;
    }
    if (scrl.rank == 0) {
        scrl_dbg(1, "Initiating flush of dataset %d `%s'", id, dataset.name);
    }
    scrl_announce(&dataset);
    if (!put_dataset(id)) {
        if (scrl.rank == 0) {
            scrl_abort("Flush of dataset %d `%s' failed", id, dataset.name);
        }
        MPI_Barrier(scrl.comm); /* rank 0 speaks; the others wait for its abort */
    }
    announce_complete(&dataset);
    cached = scrl_cache_find(id);
    cached->flushed = 1;
    scrl_cache_save();
    if (scrl.settings.prefix_size > 0 && scrl_dataset_is_checkpoint(&dataset)) {
        scrl_prefix_keep(id, scrl.settings.prefix_size);
    }
}

void scrl_flush_if_due(int id)
{
    const scrl_cached *cached = scrl_cache_find(id);
    if (!cached) {
        return;
    }
    const scrl_dataset *dataset = &cached->dataset;
    int turn = scrl.settings.flush > 0 && scrl_dataset_is_checkpoint(dataset) &&
               dataset->checkpoint_id > 0 && dataset->checkpoint_id % scrl.settings.flush == 0;
    if (turn || scrl_dataset_is_output(dataset)) {
        scrl_flush(id);
    }
}
