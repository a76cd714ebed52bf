/* claim.c - who on this node will need how much of a staging area.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A file that is being written counts twice, as claimed and as used: so what the staged files of
 * all processes use is added to what is free. Tests: tests/shim/test_shim_bypass.py.
 */
#define _GNU_SOURCE
#include "claim.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "room.h"

#define CLAIM "claim"

/* USERS/PRIVATE/NUMBER/FILE: journals and claims lie higher. */
enum { STAGED_LEVEL = 3 };

/* ---- What all processes claim and use ------------------------------------------------------- */

static uint64_t used_bytes; /* nftw has no context for its callback */

static int add_used(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    (void)path, (void)kind;
    if (place->level >= STAGED_LEVEL)
        used_bytes += (uint64_t)status->st_blocks * 512;
    return 0;
}

static uint64_t used_below(const char *folder)
{
    used_bytes = 0;
    nftw(folder, add_used, 16, FTW_PHYS);
    return used_bytes;
}

static uint64_t claim_of(const char *folder)
{
    char path[SHIM_PATH_SIZE], text[24];
    int file = shim_path_join(path, sizeof path, folder, CLAIM)
                   ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
                   : -1;
    if (file < 0)
        return 0;
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    text[length > 0 ? length : 0] = '\0';
    return strtoull(text, NULL, 10);
}

static uint64_t claims_of_others(const char *users, const char *own)
{
    uint64_t sum = 0;
    DIR *folder = opendir(users);
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        char path[SHIM_PATH_SIZE];
        if (entry->d_name[0] != '.' && strcmp(entry->d_name, own) != 0 &&
            shim_path_join(path, sizeof path, users, entry->d_name))
            sum += claim_of(path);
    }
    if (folder)
        closedir(folder);
    return sum;
}

/* ---- The claim ------------------------------------------------------------------------------ */

/* Between looking and claiming nobody else shall claim. A process that is stopped while it holds
 * the lock must not stop the others: after a while they go on without. */
static void lock_briefly(int descriptor)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    for (int i = 0; i < 200 && flock(descriptor, LOCK_EX | LOCK_NB) != 0; i++)
        nanosleep(&pause, NULL);
}

static bool fits(const char *users, const shim_folder *folder, uint64_t bytes, uint64_t *room)
{
    uint64_t free_bytes = shim_room(users);
    if (free_bytes == UINT64_MAX)
        return true;
    uint64_t there = free_bytes + used_below(users);
    uint64_t others = claims_of_others(users, shim_path_base(folder->path));
    *room = there > others ? there - others : 0;
    return bytes <= *room;
}

static void set_claim(const shim_folder *folder, uint64_t bytes)
{
    char path[SHIM_PATH_SIZE], text[24];
    if (!shim_path_join(path, sizeof path, folder->path, CLAIM))
        return;
    int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file < 0)
        return;
    /* Of one width, so that one write replaces the older number wholly. */
    int length = snprintf(text, sizeof text, "%020" PRIu64, bytes);
    if (pwrite(file, text, (size_t)length, 0) != length)
        unlink(path);
    close(file);
}

bool shim_claim(const shim_folder *folder, uint64_t bytes, uint64_t *room)
{
    char users[SHIM_PATH_SIZE];
    uint64_t found = UINT64_MAX;
    if (!folder->path[0] || !shim_path_folder(folder->path, users, sizeof users))
        return true;
    int lock = bytes ? open(users, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (lock >= 0)
        lock_briefly(lock);
    bool good = bytes == 0 || fits(users, folder, bytes, &found);
    if (good)
        set_claim(folder, bytes);
    if (lock >= 0)
        close(lock);
    if (room)
        *room = found;
    return good;
}
