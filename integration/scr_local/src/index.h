/*
 * index.h - the datasets in the prefix directory, kept in PREFIX/.scr/local.index, and the list of
 * each dataset's files, PREFIX/.scr/local.dataset.ID. (A real SCR keeps index.scr and
 * scr.dataset.ID there, in a form of its own: neither touches the other's.)
 * The index itself is rank 0's business: call these there only, except where "collective" is said.
 */
#ifndef SCRL_INDEX_H
#define SCRL_INDEX_H

#include "dataset.h"
#include "names.h"

typedef struct {
    scrl_dataset dataset; /* complete: all files are in the prefix directory */
    int failed;           /* a restart from it went wrong: not offered again */
    int flushed;          /* the copy to the prefix directory was finished once */
    int fetched;          /* how often a restart was tried */
} scrl_index_entry;

typedef struct {
    scrl_index_entry *entries;
    int count;
    char current[SCR_MAX_FILENAME]; /* the checkpoint to restart from, or empty */
} scrl_index;

/* Reads the index; an absent or damaged one gives an empty index (damage is reported). */
void scrl_index_read(scrl_index *index);

/* Writes it back. 0 or -1 after an error message. */
int scrl_index_write(const scrl_index *index);

void scrl_index_free(scrl_index *index);

/* The entry with this name or number, or NULL; valid until the index is changed. */
scrl_index_entry *scrl_index_by_name(scrl_index *index, const char *name);
scrl_index_entry *scrl_index_by_id(scrl_index *index, int id);

/*
 * Enters a dataset, in place of one with the same name or number: as SCR does, a number that is
 * given again (after a restart from an older checkpoint) takes the place of the abandoned dataset.
 */
scrl_index_entry *scrl_index_enter(scrl_index *index, const scrl_dataset *dataset);

/*
 * Takes the named dataset out. If it was the current one, the newest complete checkpoint before it
 * becomes current.
 */
void scrl_index_remove(scrl_index *index, const char *name);

/* Makes the named checkpoint the current one; ignored when it is not there or no checkpoint. */
void scrl_index_set_current(scrl_index *index, const char *name);

/* Marks the dataset as not to be tried again; no dataset is the current one afterwards. */
void scrl_index_mark_failed(scrl_index *index, const char *name);

/* The newest complete, not failed checkpoint with a number below `before` (0: any), or NULL. */
scrl_index_entry *scrl_index_newest(scrl_index *index, int before);

/*
 * Writes the file list of a dataset from every rank's names (relative to the prefix directory).
 * Collective; returns 1 on all ranks when it worked, else 0.
 */
int scrl_filelist_write(int id, const scrl_names *mine);

/*
 * Reads it and gives every rank the names it wrote. Collective; returns 0 on all ranks when there
 * is no list or when the number of ranks is not that of the job.
 */
int scrl_filelist_read(int id, scrl_names *mine);

/* All names of all ranks; rank 0 only. 0 or -1. */
int scrl_filelist_read_all(int id, scrl_names *names);

/* Removes the list; rank 0 only. */
void scrl_filelist_unlink(int id);

#endif
