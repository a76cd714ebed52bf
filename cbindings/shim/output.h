/* output.h - the filter's output phase: which files are packed, where the application writes them,
 * and what becomes of them at Complete.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * output_route.c decides while files are routed, output_complete.c acts when the application has
 * closed them. In cache mode the application writes SCR's own path, which is replaced; under bypass
 * it writes to staging, and what is packed there goes to the prefix. May use files.h, options.h,
 * shared.h, stage.h, totals.h. Tests: tests/shim/test_shim_files.py, test_shim_bypass.py,
 * test_shim_shared.py, test_shim_modes.py.
 */
#ifndef SHIM_OUTPUT_H
#define SHIM_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "files.h"
#include "options.h"
#include "scr_crit.h"

typedef struct shim_output {
    const shim_options *options;
    scr_crit_plan *plan;  /* NULL: there is none, every file goes through */
    uint64_t *last_bytes; /* by plan entry: the largest file so far */
    char *dataset;        /* name of the current one, NULL if unknown */
    shim_files files;
    uint64_t expected;   /* bytes that the files staged in this phase will take */
    uint64_t claimed;    /* bytes of the staging area that are claimed for them */
    uint64_t last_phase; /* bytes that the files staged in the phase before took */
    bool no_staging;     /* the application failed there once */
} shim_output;

/* Take a plan into use; it is closed by shim_output_close. Fails with NOMEM. */
int shim_output_open(shim_output *output, const shim_options *options, scr_crit_plan *plan);
void shim_output_close(shim_output *output);

void shim_output_start(shim_output *output, const char *dataset);

/* Decide about a file; path is replaced when it is staged. */
void shim_output_route(shim_output *output, const char *name, char *path, size_t size);

/* Pack what is to be packed. Returns the new value of valid. */
int shim_output_complete(shim_output *output, int valid);

/* SCR has seen the files: forget them, and remove what is staged. */
void shim_output_end(shim_output *output);

#endif
