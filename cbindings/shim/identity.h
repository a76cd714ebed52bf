/* identity.h - what can be seen of a file from outside, to tell whether somebody touched it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Uses nothing of the shim. Tests: tests/shim/test_shim_bypass.py.
 */
#ifndef SHIM_IDENTITY_H
#define SHIM_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

typedef struct shim_identity {
    bool exists;
    bool plain; /* a regular file with one name: replacing it surprises nobody */
    dev_t device;
    ino_t inode;
    uint64_t size;
    struct timespec modified; /* not the change time: links and permissions touch no content */
} shim_identity;

/* Look at a file, not through symbolic links. One that cannot be seen does not exist. */
shim_identity shim_identity_of(const char *path);

/* Whether there is a file now that was not there, or not so, before. */
bool shim_identity_touched(const shim_identity *before, const shim_identity *now);

#endif
