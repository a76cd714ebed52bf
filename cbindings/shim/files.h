/* files.h - the files that the application routed in the current phase.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * May use identity.h. Tests: tests/shim/test_shim_files.py, tests/shim/test_shim_bypass.py.
 */
#ifndef SHIM_FILES_H
#define SHIM_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "identity.h"

typedef struct shim_file {
    char *path;     /* where SCR sends the file */
    char *staged;   /* where the application writes or reads it instead; NULL: at path */
    uint32_t entry; /* of the plan */
    bool pack;      /* output: to be packed if it can be; else it is stored whole */
    bool foreign;   /* output: the plan ties its name to another rank */
    bool conflict;  /* output: that other rank has packed it already */
    shim_identity path_before, staged_before; /* output: when it was routed */
} shim_file;

typedef struct shim_files {
    shim_file *items;
    size_t count, capacity;
} shim_files;

/* Entry of a path, or NULL. */
shim_file *shim_files_find(const shim_files *files, const char *path);

/* A new, empty entry for a path, valid until the next one is added; NULL without memory. */
shim_file *shim_files_add(shim_files *files, const char *path);

/* Forget all; what is staged stays. */
void shim_files_clear(shim_files *files);

#endif
