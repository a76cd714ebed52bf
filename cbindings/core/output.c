/* output.c - see output.h.
 *
 * A lock on the temporary file tells a living writer from what a dead one left; where the file
 * system has no locks, the file's identity is compared before it gets its name, so that a file half
 * written by somebody else never does.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "attributes.h"
#include "error.h"

/* ---- Begin ----------------------------------------------------------------------------------- */

/* Whether the lock is held by this file description now; true also where there are no locks. */
static bool lock(int fd)
{
    int result;
    do {
        result = flock(fd, LOCK_EX | LOCK_NB);
    } while (result != 0 && errno == EINTR);
    return result == 0 || errno != EWOULDBLOCK;
}

static int busy(void)
{
    return crit_fail_system(EBUSY, CRIT_NO_OFFSET,
                            "another process or thread is writing the same file");
}

/* Remove a temporary file that no living writer holds. */
static int clear_leftover(const char *temporary)
{
    /* For writing too: over NFS an exclusive lock needs that. */
    const int fd = open(temporary, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT)
        return SCR_CRIT_OK;
    /* Not to be opened, a symbolic link: not a file of ours that is being written. */
    const bool held = fd >= 0 && !lock(fd);
    int status = SCR_CRIT_OK;
    if (held)
        status = busy();
    else if (unlink(temporary) != 0 && errno != ENOENT)
        status =
            crit_fail_system(errno, CRIT_NO_OFFSET, "cannot remove the leftover %.200s", temporary);
    if (fd >= 0)
        close(fd);
    return status;
}

static int create(const char *temporary, mode_t mode)
{
    int fd;
    do {
        fd = open(temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
    } while (fd < 0 && errno == EINTR);
    return fd;
}

int crit_output_begin(crit_output *output, const char *target, mode_t mode)
{
    output->fd = -1;
    output->target = target;
    int status = scr_crit_temp_path(target, output->temporary, sizeof output->temporary);
    if (status != SCR_CRIT_OK)
        return status;
    output->fd = create(output->temporary, mode);
    if (output->fd < 0 && errno == EEXIST) {
        status = clear_leftover(output->temporary);
        if (status != SCR_CRIT_OK)
            return status;
        output->fd = create(output->temporary, mode);
    }
    if (output->fd < 0)
        return errno == EEXIST
                   ? busy()
                   : crit_fail_system(errno, CRIT_NO_OFFSET,
                                      "cannot create the temporary file %.200s", output->temporary);
    if (!lock(output->fd)) {
        /* Whoever locked it takes it for a leftover and removes it. */
        close(output->fd);
        output->fd = -1;
        return busy();
    }
    return SCR_CRIT_OK;
}

static bool replaces(const crit_output *output, const struct stat *status)
{
    struct stat found;
    return lstat(output->target, &found) == 0 && found.st_dev == status->st_dev &&
           found.st_ino == status->st_ino;
}

int crit_output_adopt(crit_output *output, int fd, const struct stat *status)
{
    mode_t mode = status->st_mode & 07777;
    const bool in_place = replaces(output, status);
    /* Only root can give files away, and only then do set-id bits keep their meaning. */
    if (!in_place || fchown(output->fd, status->st_uid, status->st_gid) != 0)
        mode &= 0777;
    const int failed = crit_copy_attributes(fd, output->fd, in_place);
    if (failed != SCR_CRIT_OK)
        return failed;
    if (fchmod(output->fd, mode) != 0 && errno != ENOTSUP)
        return crit_fail_system(errno, CRIT_NO_OFFSET, "cannot set permission bits %04o",
                                (unsigned)mode);
    return SCR_CRIT_OK;
}

/* ---- Commit ---------------------------------------------------------------------------------- */

static int sync_file(int fd)
{
    int result;
    do {
        result = fsync(fd);
    } while (result != 0 && errno == EINTR);
    return result;
}

static int open_directory(const char *target)
{
    char copy[PATH_MAX];
    snprintf(copy, sizeof copy, "%s", target);
    return open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Whether the temporary name still means the file that was written. */
static bool is_ours(const crit_output *output)
{
    struct stat by_name, by_fd;
    return fstat(output->fd, &by_fd) == 0 && lstat(output->temporary, &by_name) == 0 &&
           by_fd.st_ino == by_name.st_ino && by_fd.st_dev == by_name.st_dev;
}

/* Make the new name last. The name is given by now and cannot be taken back, so this cannot fail
 * the commit: the file is complete and synced, and its name as durable as that of any file the
 * application makes itself. */
static void sync_directory(int directory)
{
    if (directory < 0)
        return;
    sync_file(directory);
    close(directory);
}

int crit_output_commit(crit_output *output)
{
    if (sync_file(output->fd) != 0)
        return crit_fail_system(errno, CRIT_NO_OFFSET, "cannot sync the temporary file");
    if (!is_ours(output)) {
        close(output->fd);
        output->fd = -1; /* the name is another writer's: leave it */
        return busy();
    }
    const int directory = open_directory(output->target);
    if (rename(output->temporary, output->target) != 0) {
        const int error = errno;
        if (directory >= 0)
            close(directory);
        return crit_fail_system(error, CRIT_NO_OFFSET, "cannot rename the temporary file");
    }
    close(output->fd);
    output->fd = -1;
    sync_directory(directory);
    return SCR_CRIT_OK;
}

void crit_output_close(crit_output *output)
{
    if (output->fd < 0)
        return;
    const int before = errno;
    if (is_ours(output))
        unlink(output->temporary);
    close(output->fd);
    output->fd = -1;
    errno = before;
}
