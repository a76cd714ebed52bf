/* folder.h - private folders that do not outlive their process for long.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A private folder lies in BASE/scr_crit.UID/, is readable by its owner alone and locked while its
 * process lives. Whoever finds one that is not locked may clear it away, together with the files
 * that its journal names. So a killed job leaves nothing behind after the next run on the same
 * node. May use path.h. Tests: tests/shim/test_shim_stage.py.
 */
#ifndef SHIM_FOLDER_H
#define SHIM_FOLDER_H

#include <stdbool.h>

#include "path.h"

typedef struct shim_folder {
    char path[SHIM_PATH_SIZE]; /* "" while there is none */
    int lock;                  /* descriptor of the folder, holding the lock; -1 */
} shim_folder;

/* Make a private folder in `base`, which is made as well. Returns 0, or an errno; EPERM when the
 * folder for this user exists but is someone else's or open to others. */
int shim_folder_make(shim_folder *folder, const char *base, const char *name);

/* Remove it with all that is in it; nothing if there is none. */
void shim_folder_remove(shim_folder *folder);

/* Remove a folder and all below it, as far as possible. */
void shim_folder_remove_tree(const char *path);

/* Note a file that must not survive this process. */
void shim_folder_journal(shim_folder *folder, const char *path);

/* Those files are gone or have become what they were meant to be. */
void shim_folder_journal_done(shim_folder *folder);

/* Clear away what dead processes of this user left in `base`.
 *   mine   which folder names to look at */
void shim_folder_clear_orphans(const char *base, bool (*mine)(const char *name));

#endif
