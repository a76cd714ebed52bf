/*
 * cache.h - the datasets of this job that SCR has at hand: their files are in the cache directory,
 * or, for a dataset that bypasses the cache, in the prefix directory. All ranks keep the same list
 * in memory; rank 0 keeps it in CONTROL/local.cindex.
 * Everything here is collective, except the look-ups (find, count, at).
 */
#ifndef SCRL_CACHE_H
#define SCRL_CACHE_H

#include "dataset.h"
#include "filemap.h"

typedef struct {
    scrl_dataset dataset;
    int bypass;  /* the files are in the prefix directory */
    int flushed; /* the dataset is complete in the prefix directory */
    int ranks;   /* of the job that wrote it */
} scrl_cached;

/* Reads the list that an earlier run left. */
void scrl_cache_load(void);

/* Frees the memory; files stay. Not collective. */
void scrl_cache_forget(void);

int scrl_cache_count(void);

/* The entry by place (ascending number) or by number (NULL if absent); valid until a change. */
scrl_cached *scrl_cache_at(int place);
scrl_cached *scrl_cache_find(int id);

/* Adds a dataset and makes its directories. */
void scrl_cache_add(const scrl_dataset *dataset, int bypass);

/* Writes the list after an entry was changed. */
void scrl_cache_save(void);

/* The directory for the dataset's files in the cache. Not collective. */
void scrl_cache_directory(int id, char directory[SCR_MAX_FILENAME]);

/* 1 when every rank has its list of files and each file is there with its recorded size. */
int scrl_cache_is_whole(const scrl_cached *cached);

/* Forgets the dataset and removes its files, unless they are in the prefix directory. */
void scrl_cache_drop(int id);

/* Drops all datasets, or those with this name, or those with a number above `id`. */
void scrl_cache_drop_all(void);
void scrl_cache_drop_name(const char *name);
void scrl_cache_drop_after(int id);

/* The checkpoint of SCR_CURRENT that was already honoured for this cache, or empty. */
const char *scrl_cache_current(void);
void scrl_cache_set_current(const char *name);

#endif
