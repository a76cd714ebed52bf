/* native.h - what of Valgrind the tool's plain parts call, from the C library, for tests.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * A part of the tool that calls no more than this can be compiled and tested without Valgrind
 * running, under the sanitizers.
 */
#ifndef SCR_CRIT_TRACER_NATIVE_H
#define SCR_CRIT_TRACER_NATIVE_H

#include "tool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static ULong native_blocks; /* not freed yet */

void *VG_(malloc)(const HChar *cost_centre, SizeT bytes)
{
    (void)cost_centre;
    native_blocks++;
    return malloc(bytes);
}

void *VG_(calloc)(const HChar *cost_centre, SizeT count, SizeT bytes)
{
    (void)cost_centre;
    native_blocks++;
    return calloc(count, bytes);
}

void *VG_(realloc)(const HChar *cost_centre, void *block, SizeT bytes)
{
    (void)cost_centre;
    if (!block)
        native_blocks++;
    return realloc(block, bytes);
}

void VG_(free)(void *block)
{
    if (block)
        native_blocks--;
    free(block);
}

void *VG_(memmove)(void *to, const void *from, SizeT bytes)
{
    return memmove(to, from, bytes);
}

void *VG_(memset)(void *at, Int value, SizeT bytes)
{
    return memset(at, value, bytes);
}

#define CHECK(condition, ...)                                                                      \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #condition);                        \
            fprintf(stderr, __VA_ARGS__);                                                          \
            fprintf(stderr, "\n");                                                                 \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

#endif
