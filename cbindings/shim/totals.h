/* totals.h - what the shim did in this process, and why it left files whole.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * May use message.h. Tests: tests/shim/test_shim_modes.py.
 */
#ifndef SHIM_TOTALS_H
#define SHIM_TOTALS_H

#include <stdbool.h>

#include "rank.h"
#include "scr_crit.h"

/* Why a file is stored whole. */
typedef enum shim_cause {
    SHIM_CAUSE_UNPLANNED, /* no plan entry matches it */
    SHIM_CAUSE_EXCLUDED,  /* by SCR_CRIT_INCLUDE or SCR_CRIT_EXCLUDE */
    SHIM_CAUSE_DRY_RUN,
    SHIM_CAUSE_DOUBT,  /* a parameter is not understood */
    SHIM_CAUSE_SHARED, /* another rank may write it as well */
    SHIM_CAUSE_MISFIT,
    SHIM_CAUSE_NO_GAIN,
    SHIM_CAUSE_PACKED,   /* the application wrote a packed file */
    SHIM_CAUSE_NO_STAGE, /* no staging, or no space in it */
    SHIM_CAUSE_NAME,     /* its staged name would be too long */
    SHIM_CAUSE_LINKED,   /* a link, or no regular file */
    SHIM_CAUSE_BYPASSED, /* the application did not write where SCR told it to */
    SHIM_CAUSE_CHANGED,  /* it changed while it was packed */
    SHIM_CAUSE_OPEN,     /* somebody may still write to it */
    SHIM_CAUSE_NO_SPACE, /* for the packed file */
    SHIM_CAUSE_CODEC,
    SHIM_CAUSE_SYSTEM, /* any other failure of the system */
    SHIM_CAUSES
} shim_cause;

/* Cause that a status of the core stands for. */
shim_cause shim_cause_of(int status);

/* Count a file that is stored whole, and say so in one warning for each cause.
 *   detail   what exactly was found, or NULL */
void shim_totals_whole(shim_cause cause, const char *path, const char *detail);

void shim_totals_packed(const scr_crit_info *info, double seconds);
void shim_totals_measured(const scr_crit_info *info, double seconds);
void shim_totals_zeroed(const scr_crit_info *info, double seconds);
void shim_totals_expanded(double seconds);

/* Time spent packing that led to no packed file. */
void shim_totals_spent(double seconds);

/* Seconds of a clock that only goes forward. */
double shim_seconds(void);

/* Start all counts anew. */
void shim_totals_reset(void);

/* The closing line: from rank 0, or from every rank at SCR_CRIT_DEBUG 1. */
void shim_totals_report(shim_rank rank);

#endif
