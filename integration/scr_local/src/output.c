/* output.c - see output.h. May use all of cache.h, index.h, transfer.h. */
#include "output.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cache.h"
#include "collective.h"
#include "index.h"
#include "job.h"
#include "message.h"
#include "need.h"
#include "transfer.h"

/*
 * A program that did not restart from what SCR knows may be anywhere in its sequence: then the
 * numbers go on behind the highest in the index, so that nothing is overwritten.
 */
static void continue_numbering(void)
{
    if (!scrl.have_restart && scrl.dataset_id != 0) {
        return;
    }
    int highest[3] = {0, 0, 0};
    if (scrl.rank == 0) {
        scrl_index index;
        scrl_index_read(&index);
        for (int i = 0; i < index.count; i++) {
            const scrl_dataset *dataset = &index.entries[i].dataset;
            if (dataset->id > highest[0]) {
                highest[0] = dataset->id;
            }
            if (dataset->checkpoint_id > highest[1]) {
                highest[1] = dataset->checkpoint_id;
                highest[2] = dataset->id;
            }
        }
        scrl_index_free(&index);
    }
    MPI_Bcast(highest, 3, MPI_INT, 0, scrl.comm);
    if (highest[0] > scrl.dataset_id) {
        scrl.dataset_id = highest[0];
    }
    if (highest[1] > scrl.checkpoint_id) {
        scrl.checkpoint_id = highest[1];
        scrl.checkpoint_dataset_id = highest[2];
    }
    scrl.have_restart = 0;
}

static void check_same_on_all_ranks(const char *name, int flags)
{
    if (!scrl_same_text(name)) {
        scrl_abort("Dataset name provided to SCR_Start_output must be identical on all processes");
    }
    if (!scrl_all(scrl_from_root(flags) == flags)) {
        scrl_abort("Dataset flags provided to SCR_Start_output must be identical on all processes");
    }
}

static void set_name(scrl_dataset *dataset, const char *name)
{
    if (!name || !name[0]) {
        snprintf(dataset->name, sizeof(dataset->name), "scr.dataset.%d", dataset->id);
        return;
    }
    if (strlen(name) >= sizeof(dataset->name)) {
        scrl_abort("dataset name `%s' is longer than SCR_MAX_FILENAME (%d)", name,
                   SCR_MAX_FILENAME);
    }
    strcpy(dataset->name, name);
}

/* Drops the oldest datasets until the new one fits within SCR_CACHE_SIZE. */
static void make_room(void)
{
    while (scrl_cache_count() > 0 && scrl_cache_count() >= scrl.settings.cache_size) {
        scrl_cache_drop(scrl_cache_at(0)->dataset.id);
    }
}

void scrl_output_start(const char *name, int flags)
{
    scrl_need_output_started(flags & SCR_FLAG_CHECKPOINT);
    continue_numbering();
    scrl.dataset_id++;
    if (flags & SCR_FLAG_CHECKPOINT) {
        scrl.checkpoint_id++;
        scrl.checkpoint_dataset_id = scrl.dataset_id;
    }
    scrl_dataset dataset = {.id = scrl.dataset_id, .flags = flags};
    if (flags & SCR_FLAG_CHECKPOINT) {
        dataset.checkpoint_id = scrl.checkpoint_id;
    }
    set_name(&dataset, name);
    check_same_on_all_ranks(dataset.name, flags);

    make_room();
    scrl_cache_add(&dataset, scrl.settings.cache_bypass);
    scrl_filemap_free(&scrl.map);
    char directory[SCR_MAX_FILENAME];
    scrl_cache_directory(dataset.id, directory);
    scrl_filemap_save(&scrl.map, directory, scrl.rank);
    if (scrl.settings.cache_bypass) {
        scrl_announce(&dataset); /* the program writes to the prefix directory at once */
    }
    if (scrl.rank == 0) {
        scrl_dbg(1, "Starting dataset %d `%s'", dataset.id, dataset.name);
    }
}

/* Looks at this rank's files; 1 when all can be read. Adds to the totals. */
static int record_files(scrl_filemap *map, long long totals[2])
{
    int readable = 1;
    for (int i = 0; i < map->count; i++) {
        scrl_file *file = &map->files[i];
        if (access(file->path, R_OK) != 0 || scrl_file_record(file) != 0) {
            scrl_dbg(2, "Do not have read access to file: %s", file->path);
            readable = 0;
        }
        totals[0]++;
        totals[1] += file->size;
    }
    return readable;
}

/* Takes stock of the dataset on all ranks; 1 on all when it is valid and its lists are saved. */
static int seal(scrl_cached *cached, int valid)
{
    long long mine[2] = {0, 0};
    long long totals[2];
    int readable = record_files(&scrl.map, mine);
    MPI_Allreduce(mine, totals, 2, MPI_LONG_LONG, MPI_SUM, scrl.comm);
    cached->dataset.files = totals[0];
    cached->dataset.bytes = totals[1];
    scrl.map.complete = scrl_all(valid && readable);
    cached->dataset.complete = scrl.map.complete;
    char directory[SCR_MAX_FILENAME];
    scrl_cache_directory(cached->dataset.id, directory);
    int saved = scrl_filemap_save(&scrl.map, directory, scrl.rank) == 0;
    return scrl_all(saved) && scrl.map.complete;
}

int scrl_output_complete(int valid)
{
    int id = scrl.dataset_id;
    scrl_cached *cached = scrl_cache_find(id);
    int bypass = cached->bypass;
    int is_checkpoint = scrl_dataset_is_checkpoint(&cached->dataset);
    scrl_assign_owners(&scrl.map, bypass);
    int sealed = seal(cached, valid);
    scrl_cache_save();
    scrl_filemap_free(&scrl.map);
    if (scrl.rank == 0) {
        scrl_dbg(1, "Completed dataset %d `%s': %s, %lld files, %lld bytes", id,
                 cached->dataset.name, sealed ? "valid" : "not valid", cached->dataset.files,
                 cached->dataset.bytes);
    }
    scrl_need_output_completed(is_checkpoint);
    if (!sealed) {
        scrl_cache_drop(id);
    } else if (bypass) {
        scrl_flush(id); /* the files are in their place: only the index needs to know */
    } else {
        scrl_flush_if_due(id);
    }
    MPI_Barrier(scrl.comm);
    return sealed ? SCR_SUCCESS : SCRL_FAILURE;
}
