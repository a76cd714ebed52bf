/* room.c - see room.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Memory is what /proc/meminfo calls available (proc(5)), and what the limits of the process's
 * control groups leave (Linux's Documentation/admin-guide/cgroup-v2.rst, memory.max and
 * memory.current; batch systems set them for each job, and pages of tmpfs count).
 */
#define _GNU_SOURCE
#include "room.h"

#include <inttypes.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* ---- Memory --------------------------------------------------------------------------------- */

static uint64_t available_on_node(void)
{
    char line[256];
    uint64_t kib, found = UINT64_MAX;
    FILE *file = fopen("/proc/meminfo", "re");
    while (file && found == UINT64_MAX && fgets(line, sizeof line, file))
        if (sscanf(line, "MemAvailable: %" SCNu64, &kib) == 1)
            found = kib * 1024;
    if (file)
        fclose(file);
    return found;
}

/* A number in a file of its own; UINT64_MAX for "max" and for a file that is not there. */
static uint64_t read_number(const char *folder, const char *name)
{
    char path[PATH_MAX];
    uint64_t number = UINT64_MAX;
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
        return number;
    FILE *file = fopen(path, "re");
    if (!file)
        return number;
    if (fscanf(file, "%" SCNu64, &number) != 1)
        number = UINT64_MAX;
    fclose(file);
    return number;
}

static uint64_t left_of(const char *folder, const char *limit_name, const char *usage_name)
{
    uint64_t limit = read_number(folder, limit_name), used = read_number(folder, usage_name);
    if (limit == UINT64_MAX || used == UINT64_MAX)
        return UINT64_MAX;
    return limit > used ? limit - used : 0;
}

/* What a group and its parents leave; `folder` is shortened on the way up to `root`. */
static uint64_t left_up_to(char *folder, size_t root)
{
    uint64_t left = UINT64_MAX;
    for (char *end; strlen(folder) >= root; *end = '\0') {
        left = smaller(left, left_of(folder, "memory.max", "memory.current"));
        left = smaller(left, left_of(folder, "memory.limit_in_bytes", "memory.usage_in_bytes"));
        end = strrchr(folder, '/');
        if (!end)
            break;
    }
    return left;
}

/* Where the groups of a line of /proc/self/cgroup (ID:CONTROLLERS:PATH) lie; NULL if they hold no
 * memory limit. */
static const char *mount_of(const char *controllers)
{
    if (*controllers == '\0')
        return "/sys/fs/cgroup";
    return strstr(controllers, "memory") ? "/sys/fs/cgroup/memory" : NULL;
}

static uint64_t left_in_groups(void)
{
    char line[PATH_MAX], folder[2 * PATH_MAX];
    uint64_t left = UINT64_MAX;
    FILE *file = fopen("/proc/self/cgroup", "re");
    while (file && fgets(line, sizeof line, file)) {
        char *rest = line;
        strsep(&rest, ":");
        const char *controllers = strsep(&rest, ":");
        const char *mount = rest && controllers ? mount_of(controllers) : NULL;
        if (!mount)
            continue;
        rest[strcspn(rest, "\n")] = '\0';
        snprintf(folder, sizeof folder, "%s%s", mount, strcmp(rest, "/") == 0 ? "" : rest);
        left = smaller(left, left_up_to(folder, strlen(mount)));
    }
    if (file)
        fclose(file);
    return left;
}

/* ---- Room ----------------------------------------------------------------------------------- */

static bool is_in_memory(const struct statfs *system)
{
    return system->f_type == TMPFS_MAGIC || system->f_type == RAMFS_MAGIC;
}

uint64_t shim_room(const char *folder)
{
    struct statfs system;
    if (statfs(folder, &system) != 0)
        return UINT64_MAX;
    uint64_t room = (uint64_t)system.f_bavail * (uint64_t)system.f_bsize;
    if (!is_in_memory(&system))
        return room;
    uint64_t memory = smaller(available_on_node(), left_in_groups());
    return memory == UINT64_MAX ? room : smaller(room, memory / 2);
}
