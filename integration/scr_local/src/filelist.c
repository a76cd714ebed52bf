/*
 * filelist.c - which rank wrote which files of a dataset in the prefix directory; see index.h.
 * Rank 0 alone touches the file.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collective.h"
#include "index.h"
#include "job.h"
#include "memory.h"
#include "message.h"

static char *list_path(int id)
{
    return scrl_format("%s/local.dataset.%d", scrl.settings.prefix_scr, id);
}

int scrl_filelist_write(int id, const scrl_names *mine)
{
    scrl_names *all = scrl_gather_names(mine);
    int written = 1;
    if (scrl.rank == 0) {
        scrl_writer writer;
        scrl_writer_start(&writer, "filelist");
        scrl_writer_add(&writer, NULL, "ranks %d", scrl.ranks);
        for (int rank = 0; rank < scrl.ranks; rank++) {
            const char *name = NULL;
            while ((name = scrl_names_next(&all[rank], name)) != NULL) {
                scrl_writer_add(&writer, name, "file %d", rank);
            }
        }
        char *path = list_path(id);
        written = scrl_writer_commit(&writer, path) == 0;
        free(path);
    }
    scrl_free_gathered(all);
    return scrl_from_root(written);
}

/* Reads the records into lists, an array of one a rank, allocated here. 0 or -1. */
static int read_records(scrl_reader *reader, scrl_names **lists, long long *ranks)
{
    const char *keyword = scrl_reader_next(reader);
    if (!keyword || strcmp(keyword, "ranks") != 0 ||
        scrl_reader_number(reader, 1, 1 << 24, ranks) != 0) {
        scrl_err("`%s' line %d: expected the number of ranks", reader->path, reader->number);
        return -1;
    }
    *lists = scrl_alloc((size_t)*ranks * sizeof(scrl_names));
    while ((keyword = scrl_reader_next(reader)) != NULL) {
        long long rank = 0;
        char name[SCR_MAX_FILENAME];
        if (strcmp(keyword, "file") != 0 || scrl_reader_number(reader, 0, *ranks - 1, &rank) != 0 ||
            scrl_reader_name(reader, name, sizeof(name)) != 0) {
            scrl_err("`%s' line %d: expected a file", reader->path, reader->number);
            return -1;
        }
        scrl_names_add(&(*lists)[rank], name);
    }
    return 0;
}

static void free_lists(scrl_names *lists, long long ranks)
{
    for (long long rank = 0; lists && rank < ranks; rank++) {
        scrl_names_free(&lists[rank]);
    }
    free(lists);
}

/* Rank 0: the lists of a dataset. 0 or -1 after a message; then nothing is left to free. */
static int load(int id, scrl_names **lists, long long *ranks)
{
    *lists = NULL;
    *ranks = 0;
    char *path = list_path(id);
    scrl_reader reader;
    scrl_read_status status = scrl_reader_open(&reader, path, "filelist");
    int result = -1;
    if (status == SCRL_READ_OK) {
        result = read_records(&reader, lists, ranks);
        scrl_reader_free(&reader);
    } else if (status == SCRL_READ_ABSENT) {
        scrl_err("the file list `%s' is missing", path);
    }
    if (result != 0) {
        free_lists(*lists, *ranks);
        *lists = NULL;
    }
    free(path);
    return result;
}

int scrl_filelist_read(int id, scrl_names *mine)
{
    *mine = (scrl_names){0};
    scrl_names *lists = NULL;
    long long ranks = 0;
    int usable = 1;
    if (scrl.rank == 0) {
        usable = load(id, &lists, &ranks) == 0;
        if (usable && ranks != scrl.ranks) {
            scrl_err("dataset %d was written by %lld ranks, the job has %d", id, ranks, scrl.ranks);
            usable = 0;
        }
    }
    usable = scrl_from_root(usable);
    if (usable) {
        scrl_scatter_names(lists, mine);
    }
    free_lists(lists, ranks);
    return usable;
}

int scrl_filelist_read_all(int id, scrl_names *names)
{
    *names = (scrl_names){0};
    scrl_names *lists = NULL;
    long long ranks = 0;
    if (load(id, &lists, &ranks) != 0) {
        return -1;
    }
    for (long long rank = 0; rank < ranks; rank++) {
        const char *name = NULL;
        while ((name = scrl_names_next(&lists[rank], name)) != NULL) {
            scrl_names_add(names, name);
        }
    }
    free_lists(lists, ranks);
    return 0;
}

void scrl_filelist_unlink(int id)
{
    char *path = list_path(id);
    unlink(path);
    free(path);
}
