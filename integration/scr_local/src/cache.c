/*
 * cache.c - see cache.h. May use collective.h, filemap.h, path.h. Tests: test_scr_local.py (cache,
 * size check, killed run, eviction).
 */
#include "cache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collective.h"
#include "job.h"
#include "memory.h"
#include "message.h"
#include "path.h"

static struct {
    scrl_cached *entries; /* ascending number */
    int count;
    char current[SCR_MAX_FILENAME];
} cache;

static char *list_path(void)
{
    return scrl_format("%s/local.cindex", scrl.settings.control);
}

static scrl_cached *insert(const scrl_dataset *dataset)
{
    size_t size = (size_t)(cache.count + 1) * sizeof(scrl_cached);
    cache.entries = scrl_grow(cache.entries, size);
    int place = cache.count++;
    while (place > 0 && cache.entries[place - 1].dataset.id > dataset->id) {
        cache.entries[place] = cache.entries[place - 1];
        place--;
    }
    cache.entries[place] = (scrl_cached){.dataset = *dataset, .ranks = scrl.ranks};
    return &cache.entries[place];
}

static void take_out(int id)
{
    scrl_cached *entry = scrl_cache_find(id);
    if (entry) {
        int place = (int)(entry - cache.entries);
        size_t behind = (size_t)(cache.count - place - 1);
        memmove(entry, entry + 1, behind * sizeof(*entry));
        cache.count--;
    }
}

static int read_records(scrl_reader *reader)
{
    const char *keyword;
    while ((keyword = scrl_reader_next(reader)) != NULL) {
        int extra[3];
        scrl_dataset dataset;
        if (strcmp(keyword, "current") == 0) {
            if (scrl_reader_name(reader, cache.current, sizeof(cache.current)) != 0) {
                return -1;
            }
        } else if (strcmp(keyword, "dataset") == 0) {
            if (scrl_dataset_read(reader, &dataset, extra) != 0) {
                return -1;
            }
            take_out(dataset.id);
            scrl_cached *entry = insert(&dataset);
            entry->bypass = extra[0];
            entry->flushed = extra[1];
            entry->ranks = extra[2];
        } else {
            scrl_err("`%s' line %d: unknown record `%s'", reader->path, reader->number, keyword);
            return -1;
        }
    }
    return 0;
}

void scrl_cache_load(void)
{
    scrl_cache_forget();
    if (scrl.rank == 0) {
        char *path = list_path();
        scrl_reader reader;
        if (scrl_reader_open(&reader, path, "cindex") == SCRL_READ_OK) {
            if (read_records(&reader) != 0) {
                scrl_cache_forget();
            }
            scrl_reader_free(&reader);
        }
        free(path);
    }
    cache.count = scrl_from_root(cache.count);
    size_t size = (size_t)cache.count * sizeof(scrl_cached);
    cache.entries = scrl_grow(cache.entries, size);
    MPI_Bcast(cache.entries, (int)size, MPI_BYTE, 0, scrl.comm);
    MPI_Bcast(cache.current, sizeof(cache.current), MPI_CHAR, 0, scrl.comm);
}

void scrl_cache_forget(void)
{
    free(cache.entries);
    memset(&cache, 0, sizeof(cache));
}

int scrl_cache_count(void)
{
    return cache.count;
}

scrl_cached *scrl_cache_at(int place)
{
    return &cache.entries[place];
}

scrl_cached *scrl_cache_find(int id)
{
    for (int i = 0; i < cache.count; i++) {
        if (cache.entries[i].dataset.id == id) {
            return &cache.entries[i];
        }
    }
    return NULL;
}

void scrl_cache_save(void)
{
    int saved = 1;
    if (scrl.rank == 0) {
        scrl_writer writer;
        scrl_writer_start(&writer, "cindex");
        if (cache.current[0]) {
            scrl_writer_add(&writer, cache.current, "current");
        }
        for (int i = 0; i < cache.count; i++) {
            const scrl_cached *entry = &cache.entries[i];
            int extra[3] = {entry->bypass, entry->flushed, entry->ranks};
            scrl_dataset_write(&writer, "dataset", &entry->dataset, extra);
        }
        char *path = list_path();
        saved = scrl_writer_commit(&writer, path) == 0;
        free(path);
    }
    /* a list that cannot be written is no reason to stop a running job: it matters to the next
     * run only, which then restarts from the prefix directory */
    if (!scrl_from_root(saved) && scrl.rank == 0) {
        scrl_warn("the list of cached datasets is out of date");
    }
}

void scrl_cache_directory(int id, char directory[SCR_MAX_FILENAME])
{
    char *name = scrl_format("scr.dataset.%d", id);
    scrl_path_join(directory, SCR_MAX_FILENAME, scrl.settings.cache, name);
    free(name);
}

static char *hidden_directory(const char *directory)
{
    return scrl_format("%s/.scr", directory);
}

void scrl_cache_add(const scrl_dataset *dataset, int bypass)
{
    take_out(dataset->id);
    insert(dataset)->bypass = bypass;
    scrl_cache_save(); /* before the directory: what is on disk is on the list */

    char directory[SCR_MAX_FILENAME];
    scrl_cache_directory(dataset->id, directory);
    char *hidden = hidden_directory(directory);
    if (scrl.rank == 0 && scrl_make_directories(hidden, S_IRWXU | S_IRWXG) != 0) {
        scrl_abort("cannot make the cache directory `%s': %s", hidden, strerror(errno));
    }
    free(hidden);
    MPI_Barrier(scrl.comm);
}

static int my_files_are_whole(const scrl_cached *cached)
{
    char directory[SCR_MAX_FILENAME];
    scrl_cache_directory(cached->dataset.id, directory);
    scrl_filemap map;
    if (scrl_filemap_load(&map, directory, scrl.rank) != 0) {
        scrl_dbg(2, "no list of files for dataset %d", cached->dataset.id);
        return 0;
    }
    int whole = map.complete;
    for (int i = 0; i < map.count; i++) {
        if (!scrl_file_is_whole(&map.files[i])) {
            scrl_dbg(2, "file `%s' cannot be read or is not %lld bytes long", map.files[i].path,
                     map.files[i].size);
            whole = 0;
        }
    }
    scrl_filemap_free(&map);
    return whole;
}

int scrl_cache_is_whole(const scrl_cached *cached)
{
    return scrl_all(my_files_are_whole(cached));
}

/* Removes what one rank of the job that wrote the dataset had. */
static void drop_files_of_rank(const scrl_cached *cached, const char *directory, int rank)
{
    scrl_filemap map;
    if (scrl_filemap_load(&map, directory, rank) == 0) {
        for (int i = 0; i < map.count; i++) {
            const scrl_file *file = &map.files[i];
            /* SCR says this too: most often the program wrote after SCR_Complete_output */
            if (map.complete && access(file->path, F_OK) == 0 && !scrl_file_is_untouched(file)) {
                scrl_warn("Detected change in file `%s' since it was completed", file->path);
            }
            if (!cached->bypass && unlink(file->path) != 0 && errno != ENOENT) {
                scrl_err("cannot remove `%s': %s", file->path, strerror(errno));
            }
        }
        scrl_filemap_free(&map);
    }
    scrl_filemap_unlink(directory, rank);
}

static void remove_directories(const char *directory)
{
    char *hidden = hidden_directory(directory);
    if ((rmdir(hidden) != 0 || rmdir(directory) != 0) && errno != ENOENT) {
        scrl_err("Error deleting directory `%s': %s", directory, strerror(errno));
    }
    free(hidden);
}

void scrl_cache_drop(int id)
{
    const scrl_cached *cached = scrl_cache_find(id);
    if (!cached) {
        return;
    }
    if (scrl.rank == 0) {
        scrl_dbg(1, "Deleting dataset %d `%s' from cache", id, cached->dataset.name);
    }
    char directory[SCR_MAX_FILENAME];
    scrl_cache_directory(id, directory);
    /* the job that wrote it may have had more ranks than this one */
    for (int rank = scrl.rank; rank < cached->ranks; rank += scrl.ranks) {
        drop_files_of_rank(cached, directory, rank);
    }
    MPI_Barrier(scrl.comm);
    if (scrl.rank == 0) {
        remove_directories(directory);
    }
    take_out(id);
    scrl_cache_save();
}

void scrl_cache_drop_all(void)
{
    while (cache.count > 0) {
        scrl_cache_drop(cache.entries[0].dataset.id);
    }
    cache.current[0] = '\0';
    if (scrl.rank == 0) {
        char *path = list_path();
        unlink(path);
        free(path);
    }
}

void scrl_cache_drop_name(const char *name)
{
    for (int i = cache.count - 1; i >= 0; i--) {
        if (strcmp(cache.entries[i].dataset.name, name) == 0) {
            scrl_cache_drop(cache.entries[i].dataset.id);
        }
    }
}

void scrl_cache_drop_after(int id)
{
    while (cache.count > 0 && cache.entries[cache.count - 1].dataset.id > id) {
        scrl_cache_drop(cache.entries[cache.count - 1].dataset.id);
    }
}

const char *scrl_cache_current(void)
{
    return cache.current;
}

void scrl_cache_set_current(const char *name)
{
    strcpy(cache.current, name);
    scrl_cache_save();
}
