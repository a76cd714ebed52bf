/* folder.c - private folders that do not outlive their process for long.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The lock is flock on the folder itself. A maker has no lock between mkdir and flock, so that a
 * clearer may take its folder away: the maker looks again once it holds the lock, and starts over.
 * Tests: tests/shim/test_shim_stage.py.
 */
#define _GNU_SOURCE
#include "folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ATTEMPTS = 100 };

static bool users_folder(char *path, size_t size, const char *base)
{
    char name[64];
    snprintf(name, sizeof name, "scr_crit.%lu", (unsigned long)geteuid());
    return shim_path_join(path, size, base, name);
}

/* In a base that everybody may write to, such as /dev/shm, someone else may have made our folder.
 */
static int check_owner(const char *path)
{
    struct stat found;
    if (lstat(path, &found) != 0)
        return errno;
    bool ours = S_ISDIR(found.st_mode) && found.st_uid == geteuid() && !(found.st_mode & 077);
    return ours ? 0 : EPERM;
}

static int make_users_folder(const char *base, const char *path)
{
    int error = shim_path_make_folders(base);
    if (!error && mkdir(path, 0700) != 0 && errno != EEXIST)
        error = errno;
    return error ? error : check_owner(path);
}

static bool still_there(int descriptor, const char *path)
{
    struct stat held, named;
    return fstat(descriptor, &held) == 0 && lstat(path, &named) == 0 &&
           held.st_dev == named.st_dev && held.st_ino == named.st_ino;
}

/* Returns the descriptor that holds the lock, or -1. A file system without locks gives one without.
 */
static int open_locked(const char *path, bool lock_needed)
{
    int descriptor = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (descriptor < 0)
        return -1;
    bool taken = flock(descriptor, LOCK_EX | LOCK_NB) != 0 && (lock_needed || errno == EWOULDBLOCK);
    if (taken || !still_there(descriptor, path)) {
        close(descriptor);
        return -1;
    }
    return descriptor;
}

/* One try. EAGAIN: another name must be tried, or a clearer came between. */
static int make_once(shim_folder *folder, const char *users, const char *name, int attempt)
{
    char numbered[512];
    snprintf(numbered, sizeof numbered, attempt ? "%s.%d" : "%s", name, attempt);
    if (!shim_path_join(folder->path, sizeof folder->path, users, numbered))
        return ENAMETOOLONG;
    if (mkdir(folder->path, 0700) != 0)
        return errno == EEXIST || errno == ENOENT ? EAGAIN : errno;
    folder->lock = open_locked(folder->path, false);
    return folder->lock >= 0 ? 0 : EAGAIN;
}

int shim_folder_make(shim_folder *folder, const char *base, const char *name)
{
    char users[SHIM_PATH_SIZE];
    *folder = (shim_folder){.lock = -1};
    int error = users_folder(users, sizeof users, base) ? EAGAIN : ENAMETOOLONG;
    for (int attempt = 0; error == EAGAIN && attempt < ATTEMPTS; attempt++) {
        error = make_users_folder(base, users);
        if (!error)
            error = make_once(folder, users, name, attempt);
    }
    if (error)
        folder->path[0] = '\0';
    return error;
}

/* ---- Removal -------------------------------------------------------------------------------- */

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    (void)status, (void)kind, (void)place;
    remove(path);
    return 0;
}

void shim_folder_remove_tree(const char *path)
{
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* The application may have closed the descriptor, as daemons and launchers do with all they know
 * nothing of, and may hold a file of its own under that number by now: that one is not ours to
 * close. */
static void release_lock(shim_folder *folder, bool held)
{
    if (folder->lock >= 0 && held)
        close(folder->lock);
    folder->lock = -1;
}

void shim_folder_remove(shim_folder *folder)
{
    char users[SHIM_PATH_SIZE];
    if (!folder->path[0])
        return;
    bool held = folder->lock >= 0 && still_there(folder->lock, folder->path);
    shim_folder_remove_tree(folder->path);
    release_lock(folder, held);
    if (shim_path_folder(folder->path, users, sizeof users))
        rmdir(users); /* the last one turns off the light */
    folder->path[0] = '\0';
}

/* ---- Journal -------------------------------------------------------------------------------- */

static bool journal_path(char *path, size_t size, const char *folder)
{
    return shim_path_join(path, size, folder, "journal");
}

void shim_folder_journal(shim_folder *folder, const char *path)
{
    char journal[SHIM_PATH_SIZE];
    if (!journal_path(journal, sizeof journal, folder->path))
        return;
    /* No descriptor is kept: see release_lock. */
    int file = open(journal, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file < 0)
        return;
    size_t size = strlen(path) + 1;
    /* A record that is cut short has no terminating 0, and is not believed. */
    ssize_t written = write(file, path, size);
    (void)written;
    close(file);
}

void shim_folder_journal_done(shim_folder *folder)
{
    char journal[SHIM_PATH_SIZE];
    if (folder->path[0] && journal_path(journal, sizeof journal, folder->path))
        unlink(journal);
}

static void unlink_journalled(const char *folder)
{
    char path[SHIM_PATH_SIZE];
    FILE *journal = journal_path(path, sizeof path, folder) ? fopen(path, "re") : NULL;
    if (!journal)
        return;
    char *record = NULL;
    size_t size = 0;
    ssize_t length;
    while ((length = getdelim(&record, &size, '\0', journal)) > 0)
        if (record[length - 1] == '\0' && record[0] == '/')
            unlink(record);
    free(record);
    fclose(journal);
}

/* ---- Orphans -------------------------------------------------------------------------------- */

static void clear_if_orphan(const char *users, const char *name)
{
    char path[SHIM_PATH_SIZE];
    if (!shim_path_join(path, sizeof path, users, name))
        return;
    int lock = open_locked(path, true);
    if (lock < 0)
        return;
    unlink_journalled(path);
    shim_folder_remove_tree(path);
    close(lock);
}

void shim_folder_clear_orphans(const char *base, bool (*mine)(const char *name))
{
    char users[SHIM_PATH_SIZE];
    if (!users_folder(users, sizeof users, base) || check_owner(users) != 0)
        return;
    DIR *folder = opendir(users);
    if (!folder)
        return;
    for (struct dirent *entry; (entry = readdir(folder));)
        if (entry->d_name[0] != '.' && mine(entry->d_name))
            clear_if_orphan(users, entry->d_name);
    closedir(folder);
    rmdir(users);
}
