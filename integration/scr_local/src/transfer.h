/*
 * transfer.h - datasets move between the cache and the prefix directory: flush (to the prefix) and
 * fetch (from it); and datasets are removed from the prefix directory. All collective.
 */
#ifndef SCRL_TRANSFER_H
#define SCRL_TRANSFER_H

#include "cache.h"

/* Enters a dataset in the index as not complete: from now on its files may be found there. */
void scrl_announce(const scrl_dataset *dataset);

/*
 * Puts the dataset's files in the prefix directory (nothing to do when they are written there) and
 * makes it the current checkpoint. Nothing happens when it is flushed already. Stops the job when
 * it cannot be done: the program was told that its output is safe.
 */
void scrl_flush(int id);

/* scrl_flush if the dataset is output, or a checkpoint whose turn it is by SCR_FLUSH. */
void scrl_flush_if_due(int id);

/*
 * Makes the newest usable checkpoint of the prefix directory available: copies it into the cache,
 * or only looks at its files when it bypasses the cache. A checkpoint that cannot be fetched is
 * marked as failed and the one before is tried. Sets the job's counters and returns 1, or 0.
 */
int scrl_fetch_newest(void);

/* Removes a dataset from the prefix directory: files, empty directories, index entry. */
void scrl_prefix_delete(int id, const char *name);

/* Removes old checkpoints (not output) so that `keep` are left, `id` being the newest. */
void scrl_prefix_keep(int id, int keep);

/* Removes all datasets. */
void scrl_prefix_delete_all(void);

#endif
