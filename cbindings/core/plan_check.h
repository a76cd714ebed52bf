/* plan_check.h - whether a plan's bytes can be trusted.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * May use plan_rows.h, program.h, glob.h, error.h. Tests: tests/c/test_plan_open.c,
 * test_plan_hostile.c.
 */
#ifndef CRIT_PLAN_CHECK_H
#define CRIT_PLAN_CHECK_H

#include "plan_rows.h"

/* Validate all of a plan whose bytes and size are set, and find its tables, in time proportional to
 * its size. Afterwards every row's references, indices and numbers are as docs/format.md says.
 * Fails with FORMAT, CHECKSUM or VERSION, and the offset of the fault. */
int crit_plan_check(scr_crit_plan *plan);

#endif
