/*
 * fetch.c - checkpoints out of the prefix directory; see transfer.h. As in SCR, only whether the
 * files can be read is looked at here: the prefix index holds no sizes.
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

/* Gets one file into `path`; 1 when it can be read there. */
static int get_file(const scrl_file *file)
{
    if (strcmp(file->path, file->origin) == 0) {
        return access(file->path, R_OK) == 0;
    }
    return scrl_copy_file(file->origin, file->path) == 0;
}

/* Gets this rank's files and records them; 1 when all are there. */
static int get_files(const scrl_names *names, const char *directory, int bypass, scrl_filemap *map)
{
    const char *name = NULL;
    while ((name = scrl_names_next(names, name)) != NULL) {
        char origin[SCR_MAX_FILENAME];
        char path[SCR_MAX_FILENAME];
        scrl_path_join(origin, sizeof(origin), scrl.settings.prefix, name);
        scrl_path_join(path, sizeof(path), directory, scrl_path_base(name));
        scrl_file *file = scrl_filemap_put(map, bypass ? origin : path, origin);
        if (!get_file(file) || scrl_file_record(file) != 0) {
            scrl_dbg(1, "cannot get `%s'", origin);
            return 0;
        }
    }
    return 1;
}

static int get_dataset(const scrl_cached *cached)
{
    int id = cached->dataset.id;
    char directory[SCR_MAX_FILENAME];
    scrl_cache_directory(id, directory);
    scrl_names names;
    if (!scrl_filelist_read(id, &names)) {
        return 0;
    }
    scrl_filemap map = {0};
    int got = get_files(&names, directory, cached->bypass, &map);
    map.complete = scrl_all(got);
    /* saved even when incomplete: dropping the dataset removes what the map lists */
    int saved = scrl_filemap_save(&map, directory, scrl.rank) == 0;
    got = scrl_all(saved) && map.complete;
    scrl_filemap_free(&map);
    scrl_names_free(&names);
    return got;
}

static int fetch(const scrl_dataset *dataset)
{
    if (scrl.rank == 0) {
        scrl_dbg(1, "Attempting fetch: %s", dataset->name);
    }
    int bypass = scrl.settings.cache_bypass || scrl.settings.fetch_bypass;
    if (!scrl_dataset_is_checkpoint(dataset)) {
        return 0;
    }
    scrl_cache_drop(dataset->id);
    scrl_cache_add(dataset, bypass);
    scrl_cached *cached = scrl_cache_find(dataset->id);
    if (!get_dataset(cached)) {
        scrl_cache_drop(dataset->id);
        return 0;
    }
    cached->flushed = 1;
    scrl_cache_save();
    return 1;
}

/*
 * SCR_CURRENT names the checkpoint to begin with. That wish holds once for a cache: later runs of
 * the job go on from what they wrote.
 */
static void honour_wish(scrl_index *index)
{
    char *wish = scrl.settings.current;
    if (!wish[0]) {
        return;
    }
    if (!scrl_cache_current()[0]) {
        if (scrl.rank == 0 && scrl_index_by_name(index, wish)) {
            scrl_index_set_current(index, wish);
            scrl_index_write(index);
        } else if (scrl.rank == 0) {
            scrl_warn("Checkpoint named in SCR_CURRENT does not exist in index file: `%s'", wish);
        }
        scrl_cache_set_current(wish);
    }
    wish[0] = '\0';
}

/* Rank 0: the next checkpoint to try, the current one or the newest before `before`. */
static int choose(scrl_index *index, int before, scrl_dataset *dataset)
{
    scrl_index_entry *entry = NULL;
    if (index->current[0]) {
        entry = scrl_index_by_name(index, index->current);
        if (!entry) {
            index->current[0] = '\0';
        }
    }
    if (!entry) {
        entry = scrl_index_newest(index, before);
    }
    if (!entry) {
        return 0;
    }
    entry->fetched++;
    *dataset = entry->dataset;
    scrl_index_write(index);
    return 1;
}

static void note_result(scrl_index *index, const scrl_dataset *dataset, int fetched)
{
    if (fetched) {
        scrl_index_set_current(index, dataset->name);
    } else {
        scrl_index_mark_failed(index, dataset->name);
    }
    scrl_index_write(index);
}

int scrl_fetch_newest(void)
{
    scrl_index index = {0};
    if (scrl.rank == 0) {
        scrl_index_read(&index);
    }
    honour_wish(&index);
    int fetched = 0;
    scrl_dataset dataset = {0};
    while (!fetched) {
        int before = dataset.id;
        int found = scrl_from_root(scrl.rank == 0 && choose(&index, before, &dataset));
        if (!found) {
            break;
        }
        MPI_Bcast(&dataset, sizeof(dataset), MPI_BYTE, 0, scrl.comm);
        fetched = fetch(&dataset);
        if (scrl.rank == 0) {
            note_result(&index, &dataset, fetched);
        }
    }
    if (fetched) {
        scrl.dataset_id = dataset.id;
        scrl.checkpoint_id = dataset.checkpoint_id;
        scrl.checkpoint_dataset_id = dataset.id;
    }
    scrl_index_free(&index);
    return fetched;
}
