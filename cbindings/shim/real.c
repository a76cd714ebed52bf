/* real.c - find the real libscr (shared shim only).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Never aborts and never loads an MPI by itself: a process that calls no SCR function pays nothing.
 * Tests: tests/shim/test_shim_libscr.py.
 */
#define _GNU_SOURCE
#include "real.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "path.h"
#include "scr_crit.h"

static void *library; /* NULL: none found so far; RTLD_NEXT: behind the shim */
static char library_path[SHIM_PATH_SIZE];
static char failure[2 * SHIM_PATH_SIZE];

static void remember_path_of(void *address)
{
    Dl_info where;
    if (dladdr(address, &where) && where.dli_fname)
        snprintf(library_path, sizeof library_path, "%s", where.dli_fname);
}

static void *behind_the_shim(void)
{
    void *address = dlsym(RTLD_NEXT, "SCR_Init");
    if (!address)
        return NULL;
    remember_path_of(address);
    return RTLD_NEXT;
}

/* libscrf, the Fortran library, holds all of libscr as well. */
static int remember_libscr(struct dl_phdr_info *object, size_t size, void *found)
{
    (void)size;
    const char *base = shim_path_base(object->dlpi_name);
    if (strncmp(base, "libscr.so", 9) != 0 && strncmp(base, "libscrf.so", 10) != 0)
        return 0;
    snprintf(found, SHIM_PATH_SIZE, "%s", object->dlpi_name);
    return 1;
}

/* Two copies of libscr in one process would have two states: one that is loaded comes first. */
static void *already_loaded(void)
{
    char path[SHIM_PATH_SIZE] = "";
    dl_iterate_phdr(remember_libscr, path);
    return path[0] ? dlopen(path, RTLD_NOW | RTLD_NOLOAD) : NULL;
}

static void note_failure(const char *tried)
{
    const char *why = dlerror();
    size_t used = strlen(failure);
    snprintf(failure + used, sizeof failure - used, "%s%s: %s", used ? "; " : "", tried,
             why ? why : "unknown reason");
}

static void *load(const char *path)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        note_failure(path);
    return handle;
}

/* When SCR_ROOT is set, no other SCR will do: a different one would be a silent surprise. */
static void *from_root_or_loader(void)
{
    const char *root = getenv("SCR_ROOT");
    if (!root || !*root)
        return load("libscr.so");
    static const char *const folders[] = {"lib", "lib64"};
    void *handle = NULL;
    for (size_t i = 0; i < 2 && !handle; i++) {
        char path[SHIM_PATH_SIZE];
        int length = snprintf(path, sizeof path, "%s/%s/libscr.so", root, folders[i]);
        if (length > 0 && (size_t)length < sizeof path)
            handle = load(path);
    }
    return handle;
}

/* A search that failed is tried again: SCR_ROOT may have been set meanwhile. */
static void search(void)
{
    if (library)
        return;
    failure[0] = '\0';
    library = behind_the_shim();
    if (!library)
        library = already_loaded();
    if (!library)
        library = from_root_or_loader();
    if (library && library != RTLD_NEXT)
        remember_path_of(dlsym(library, "SCR_Init"));
}

void *shim_real_find(const char *symbol)
{
    search();
    return library ? dlsym(library, symbol) : NULL;
}

const char *scr_crit_shim_libscr(void)
{
    search();
    return library_path;
}

const char *scr_crit_shim_libscr_error(void)
{
    search();
    return library ? "" : failure;
}
