/* restart.h - the filter's restart phase: packed files are verified and expanded to private
 * staging.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Never onto SCR's own path: it would lose the checkpoint's redundancy, and whole files would reach
 * the prefix later. Needs no plan. May use files.h, options.h, stage.h, totals.h. Tests:
 * tests/shim/test_shim_restart.py.
 */
#ifndef SHIM_RESTART_H
#define SHIM_RESTART_H

#include <stddef.h>

#include "files.h"
#include "options.h"

typedef struct shim_restart {
    const shim_options *options;
    shim_files files;
} shim_restart;

/* Replace the path of a packed file by that of its expansion. Returns 0; or 1 when the application
 * cannot be given right bytes, after saying why. */
int shim_restart_route(shim_restart *restart, char *path, size_t size);

/* Remove what was expanded. */
void shim_restart_end(shim_restart *restart);

#endif
