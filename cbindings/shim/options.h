/* options.h - the parameters of the shim, SCR_CRIT_*, checked and with their defaults.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * docs/parameters.md says what each means. A value that is not understood gets one warning that
 * names key, value and what was expected. Where the default could store something else than the
 * user wanted, files then go through whole. May use config.h, message.h, path.h, rank.h. Tests:
 * tests/shim/test_shim_modes.py.
 */
#ifndef SHIM_OPTIONS_H
#define SHIM_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "path.h"
#include "rank.h"
#include "scr_crit.h"

enum { SHIM_FILL_MAX = 64, SHIM_JOB_SIZE = 64, SHIM_STAGE_BASES = 4 };

typedef struct shim_options {
    bool plugin;   /* SCR_CRIT_PLUGIN */
    bool doubtful; /* a parameter is not understood: store files whole */
    bool dry_run;  /* SCR_CRIT_DRYRUN */
    bool zero;     /* SCR_CRIT_MODE=zero */
    int debug;
    shim_rank rank;
    uint32_t codec;
    uint8_t fill[SHIM_FILL_MAX];
    size_t fill_size;
    char prefix[SHIM_PATH_SIZE];
    char plan[SHIM_PATH_SIZE];
    char include[SHIM_PATH_SIZE], exclude[SHIM_PATH_SIZE]; /* lists of globs */
    char job[SHIM_JOB_SIZE];
    char stage[SHIM_STAGE_BASES][SHIM_PATH_SIZE]; /* folders for staging, "" after the last */
    bool stage_chosen;                            /* SCR_CRIT_STAGE names the first */
} shim_options;

/* Read all parameters. While plugin is false, nothing else in it counts.
 *   system_file   path of SCR's system-wide configuration file */
void shim_options_read(shim_options *options, const char *system_file);

/* Whether a path relative to the prefix is one that the user wants packed. */
bool shim_options_wants(const shim_options *options, const char *path, const char *dataset);

#endif
