/*
 * filemap.h - the files that this rank has in one dataset, kept in the dataset's cache directory as
 * .scr/filemap_RANK. It is written when a file is routed and again when the dataset is completed,
 * so that a killed run leaves a list of what it had begun. Nothing here is collective.
 */
#ifndef SCRL_FILEMAP_H
#define SCRL_FILEMAP_H

#include <sys/stat.h>

#include "scr.h"

typedef struct {
    char path[SCR_MAX_FILENAME];   /* what the program opens: in the cache or the prefix */
    char origin[SCR_MAX_FILENAME]; /* its place in the prefix directory */
    long long size;                /* this and what follows: as found at completion */
    long long modified_seconds;
    long long modified_nanoseconds;
    int mode;
} scrl_file;

typedef struct {
    scrl_file *files;
    int count;
    int complete; /* set when the dataset was completed as valid on all ranks */
} scrl_filemap;

/* The entry for `path`, added if it is new. */
scrl_file *scrl_filemap_put(scrl_filemap *map, const char *path, const char *origin);

/* Removes the entry at `index`; later ones keep their order. */
void scrl_filemap_remove(scrl_filemap *map, int index);

/* Records size, time and mode of a file. Returns 0, or -1 when it cannot be looked at. */
int scrl_file_record(scrl_file *file);

/* 1 when the file can be read and has the recorded size. */
int scrl_file_is_whole(const scrl_file *file);

/* 1 when time and mode are as recorded as well. */
int scrl_file_is_untouched(const scrl_file *file);

/* Writes `rank`'s list for the dataset in `directory`. 0 or -1 after an error message. */
int scrl_filemap_save(const scrl_filemap *map, const char *directory, int rank);

/* Reads it. 0, or -1 (without a message when there is none) with an empty map. */
int scrl_filemap_load(scrl_filemap *map, const char *directory, int rank);

/* Removes `rank`'s list. */
void scrl_filemap_unlink(const char *directory, int rank);

void scrl_filemap_free(scrl_filemap *map);

#endif
