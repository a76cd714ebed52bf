/* identity.c - what can be seen of a file from outside.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests: tests/shim/test_shim_bypass.py.
 */
#define _GNU_SOURCE
#include "identity.h"

#include <sys/stat.h>

shim_identity shim_identity_of(const char *path)
{
    struct stat found;
    if (lstat(path, &found) != 0)
        return (shim_identity){.exists = false};
    return (shim_identity){
        .exists = true,
        .plain = S_ISREG(found.st_mode) && found.st_nlink == 1,
        .device = found.st_dev,
        .inode = found.st_ino,
        .size = (uint64_t)found.st_size,
        .modified = found.st_mtim,
    };
}

static bool same_time(struct timespec a, struct timespec b)
{
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

bool shim_identity_touched(const shim_identity *before, const shim_identity *now)
{
    if (!now->exists)
        return false;
    return !before->exists || before->device != now->device || before->inode != now->inode ||
           before->size != now->size || !same_time(before->modified, now->modified);
}
