/* pack.h - the packer: a source and a resolution into a packed file.
 *
 * Knows nothing of plans: pack_by_plan.c joins it to them. May use everything of the core but
 * plan.h. Tests: tests/test_core_packed.py.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CRIT_PACK_H
#define CRIT_PACK_H

#include "resolution.h"
#include "scr_crit.h"
#include "source.h"

/* Fails with NESTED when the source is, or claims to be, a packed file; CHANGED or IO. */
int crit_refuse_packed(crit_source *source);

/* Pack. `resolution` has passed crit_resolution_check for this source. options, info: optional.
 * Promises and failures as for scr_crit_pack. */
int crit_pack(crit_source *source, const crit_resolution *resolution, const char *target,
              const scr_crit_pack_options *options, scr_crit_info *info);

/* Tell what crit_pack would come to without codec. */
int crit_pack_measure(const crit_resolution *resolution, scr_crit_info *info);

#endif
