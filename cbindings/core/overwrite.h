/* overwrite.h - a fill in place of the uncritical bytes of a whole file; its size and offsets stay.
 *
 * Knows nothing of plans: pack_by_plan.c joins it to them. May use everything of the core but
 * plan.h. Tests: tests/test_core_packed.py.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CRIT_OVERWRITE_H
#define CRIT_OVERWRITE_H

#include "resolution.h"
#include "scr_crit.h"
#include "source.h"

/* Replace the source, which is a file, atomically by its overwritten self. `resolution` has passed
 * crit_resolution_check for it, fill (optional) crit_fill_check.
 * Fails with IO, NOSPACE, NOMEM, CHANGED, MISFIT (a checksum field does not match); the source is
 * then as it was. */
int crit_overwrite(crit_source *source, const crit_resolution *resolution,
                   const scr_crit_fill *fill);

#endif
