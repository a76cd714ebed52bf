/* faults.c - a preloaded library that makes one system call fail, or kills the process in it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 *     FAULT_CALL    rename, fsync or pwrite
 *     FAULT_PATH    part of the path the call is about
 *     FAULT_UNLESS  part of a path that is spared
 *     FAULT_ACTION  "kill", or the number of an errno
 *     FAULT_AFTER   how many such calls go well before (0 when unset)
 *     FAULT_TIMES   how many fail then (all when unset)
 *     FAULT_MPI_NAME  what MPI calls itself, instead of its real name
 * For the shim's tests: a fault at an exact place, without root and without waiting for the right
 * moment.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

int MPI_Get_library_version(char *name, int *length)
{
    int (*real)(char *, int *) = dlsym(RTLD_NEXT, "MPI_Get_library_version");
    const char *other = getenv("FAULT_MPI_NAME");
    if (!other)
        return real(name, length);
    *length = sprintf(name, "%s", other);
    return 0;
}

static int seen;

static int strikes(const char *call, const char *path)
{
    const char *wanted = getenv("FAULT_CALL"), *part = getenv("FAULT_PATH");
    const char *action = getenv("FAULT_ACTION"), *after = getenv("FAULT_AFTER");
    const char *times = getenv("FAULT_TIMES"), *spared = getenv("FAULT_UNLESS");
    if (!wanted || !part || !action || strcmp(wanted, call) != 0 || !strstr(path, part) ||
        (spared && strstr(path, spared)))
        return 0;
    int before = after ? atoi(after) : 0;
    int number = seen++;
    if (number < before || (times && number >= before + atoi(times)))
        return 0;
    if (strcmp(action, "kill") == 0)
        raise(SIGKILL);
    errno = atoi(action);
    return 1;
}

static const char *path_of(int descriptor)
{
    static char path[8192];
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, sizeof path - 1);
    path[length > 0 ? length : 0] = '\0';
    return path;
}

int rename(const char *from, const char *to)
{
    int (*real)(const char *, const char *) = dlsym(RTLD_NEXT, "rename");
    return strikes("rename", to) ? -1 : real(from, to);
}

int fsync(int descriptor)
{
    int (*real)(int) = dlsym(RTLD_NEXT, "fsync");
    return strikes("fsync", path_of(descriptor)) ? -1 : real(descriptor);
}

ssize_t pwrite(int descriptor, const void *bytes, size_t count, off_t offset)
{
    ssize_t (*real)(int, const void *, size_t, off_t) = dlsym(RTLD_NEXT, "pwrite");
    return strikes("pwrite", path_of(descriptor)) ? -1 : real(descriptor, bytes, count, offset);
}

/* The core is compiled for 64-bit offsets, whose functions have names of their own. */
ssize_t pwrite64(int descriptor, const void *bytes, size_t count, off_t offset)
{
    ssize_t (*real)(int, const void *, size_t, off_t) = dlsym(RTLD_NEXT, "pwrite64");
    return strikes("pwrite", path_of(descriptor)) ? -1 : real(descriptor, bytes, count, offset);
}
