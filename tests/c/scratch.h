/* scratch.h - a folder of its own for a C test, and files in it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef SCRATCH_H
#define SCRATCH_H

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char scratch_folder[PATH_MAX - NAME_MAX - 2];

/* Make the folder below $TMPDIR and change into it: tests use bare names. */
static inline void scratch_enter(void)
{
    const char *base = getenv("TMPDIR");
    snprintf(scratch_folder, sizeof scratch_folder, "%s/scr_crit_test.XXXXXX",
             base ? base : "/tmp");
    if (mkdtemp(scratch_folder) == NULL || chdir(scratch_folder) != 0) {
        perror(scratch_folder);
        exit(2);
    }
}

/* Names in the folder other than "." and ".."; the first of them in `name` if that is not NULL. */
static inline int scratch_count(char *name)
{
    DIR *folder = opendir(".");
    int count = 0;
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (count++ == 0 && name != NULL)
            strcpy(name, entry->d_name);
    }
    closedir(folder);
    return count;
}

static inline void scratch_leave(void)
{
    char name[NAME_MAX + 1];
    while (scratch_count(name) > 0)
        if (unlink(name) != 0 && rmdir(name) != 0)
            break;
    if (chdir("/") == 0)
        rmdir(scratch_folder);
}

static inline void scratch_write(const char *name, const void *data, size_t size)
{
    FILE *file = fopen(name, "wb");
    if (file == NULL || fwrite(data, 1, size, file) != size || fclose(file) != 0) {
        perror(name);
        exit(2);
    }
}

/* Whether a file holds exactly these bytes. */
static inline bool scratch_holds(const char *name, const void *data, size_t size)
{
    FILE *file = fopen(name, "rb");
    if (file == NULL)
        return false;
    uint8_t *found = malloc(size + 1);
    const bool same = fread(found, 1, size + 1, file) == size && memcmp(found, data, size) == 0;
    free(found);
    fclose(file);
    return same;
}

/* Bytes that differ from their neighbours and from zero. */
static inline uint8_t *scratch_bytes(size_t size, uint32_t seed)
{
    uint8_t *bytes = malloc(size ? size : 1);
    for (size_t i = 0; i < size; i++) {
        seed = seed * 1664525u + 1013904223u;
        bytes[i] = (uint8_t)(seed >> 24 | 1);
    }
    return bytes;
}

#endif
