/* files.c - the files that the application routed in the current phase.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests: tests/shim/test_shim_files.py, tests/shim/test_shim_bypass.py.
 */
#define _GNU_SOURCE
#include "files.h"

#include <stdlib.h>
#include <string.h>

shim_file *shim_files_find(const shim_files *files, const char *path)
{
    for (size_t i = 0; i < files->count; i++)
        if (strcmp(files->items[i].path, path) == 0)
            return &files->items[i];
    return NULL;
}

static bool make_room(shim_files *files)
{
    if (files->count < files->capacity)
        return true;
    size_t capacity = files->capacity ? 2 * files->capacity : 8;
    shim_file *grown = realloc(files->items, capacity * sizeof *grown);
    if (!grown)
        return false;
    files->items = grown;
    files->capacity = capacity;
    return true;
}

shim_file *shim_files_add(shim_files *files, const char *path)
{
    char *copy = make_room(files) ? strdup(path) : NULL;
    if (!copy)
        return NULL;
    shim_file *file = &files->items[files->count++];
    *file = (shim_file){.path = copy};
    return file;
}

void shim_files_clear(shim_files *files)
{
    for (size_t i = 0; i < files->count; i++) {
        free(files->items[i].path);
        free(files->items[i].staged);
    }
    free(files->items);
    *files = (shim_files){0};
}
