/* plan.h - plans inside the core: open, validated, and applied to one file.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * plan.c loads a plan and hands out what is in it, plan_check.c validates all of it, plan_rows.c
 * decodes its rows, plan_resolve.c applies an entry to a source, and plan_boxes.c turns an array's
 * critical boxes into a program of runs. The format is docs/format.md, section 3. May use error.h,
 * program.h, resolution.h, source.h. Tests: tests/c/test_plan_*.c, tests/test_plan.py.
 */
#ifndef CRIT_PLAN_H
#define CRIT_PLAN_H

#include <stddef.h>
#include <stdint.h>

#include "resolution.h"
#include "scr_crit.h"
#include "source.h"

/* Apply an entry of an open plan to a source: read its counts, solve what its size leaves open,
 * check that the sections cover it exactly and that the guards stand where they must. resolution
 * initialised by the caller, who frees it, also after a failure. It holds copies: the plan may be
 * closed before it. Fails with MISFIT (the file should go through whole), ARG when there is no such
 * entry, NOMEM, or what crit_source_read fails with. Reads at most the counts' and guards' bytes.
 */
int crit_plan_resolve(const scr_crit_plan *plan, uint32_t entry, crit_source *source,
                      crit_resolution *resolution);

#endif
