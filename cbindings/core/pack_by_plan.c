/* pack_by_plan.c - pack, measure and overwrite by a plan entry; public functions of scr_crit.h.
 *
 * Joins the resolver (plan.h) to what works on a resolution (pack.h, overwrite.h).
 * Tests: tests/test_core_packed.py, tests/test_plan.py.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "error.h"
#include "expand.h"
#include "overwrite.h"
#include "pack.h"
#include "plan.h"

/* A packed file's bytes mean nothing to a plan: say "packed already" rather than "does not fit". */
static int resolve(const scr_crit_plan *plan, uint32_t entry, crit_source *source,
                   crit_resolution *resolution)
{
    int status = crit_refuse_packed(source);
    if (status == SCR_CRIT_OK)
        status = crit_plan_resolve(plan, entry, source, resolution);
    return crit_blame(status, source->name);
}

static int pack_source(const scr_crit_plan *plan, uint32_t entry, crit_source *source,
                       const char *target, const scr_crit_pack_options *options,
                       scr_crit_info *info)
{
    crit_resolution resolution;
    crit_resolution_init(&resolution);
    int status = resolve(plan, entry, source, &resolution);
    if (status == SCR_CRIT_OK)
        status = crit_pack(source, &resolution, target, options, info);
    crit_resolution_free(&resolution);
    return status;
}

static int missing(const char *what)
{
    return crit_fail(SCR_CRIT_ERR_ARG, CRIT_NO_OFFSET, "%s is NULL", what);
}

int scr_crit_pack(scr_crit_plan *plan, uint32_t entry, const char *source, const char *target,
                  const scr_crit_pack_options *options, scr_crit_info *info)
{
    crit_source file;
    if (plan == NULL || source == NULL || target == NULL)
        return missing("plan, source or target");
    int status = crit_source_open(&file, source);
    if (status != SCR_CRIT_OK)
        return crit_blame(status, source);
    status = pack_source(plan, entry, &file, target, options, info);
    crit_source_close(&file);
    return status;
}

int scr_crit_pack_buffers(scr_crit_plan *plan, uint32_t entry, const scr_crit_buffer *buffers,
                          size_t count, const char *target, const scr_crit_pack_options *options,
                          scr_crit_info *info)
{
    crit_source memory;
    if (plan == NULL || target == NULL)
        return missing("plan or target");
    const int status = crit_source_buffers(&memory, buffers, count);
    if (status != SCR_CRIT_OK)
        return status;
    return pack_source(plan, entry, &memory, target, options, info);
}

int scr_crit_measure(scr_crit_plan *plan, uint32_t entry, const char *source, scr_crit_info *info)
{
    crit_source file;
    crit_resolution resolution;
    if (plan == NULL || source == NULL || info == NULL)
        return missing("plan, source or info");
    int status = crit_source_open(&file, source);
    if (status != SCR_CRIT_OK)
        return crit_blame(status, source);
    crit_resolution_init(&resolution);
    status = resolve(plan, entry, &file, &resolution);
    if (status == SCR_CRIT_OK)
        status = crit_blame(crit_pack_measure(&resolution, info), source);
    crit_resolution_free(&resolution);
    crit_source_close(&file);
    return status;
}

int scr_crit_overwrite(scr_crit_plan *plan, uint32_t entry, const char *path,
                       const scr_crit_fill *fill, scr_crit_info *info)
{
    crit_source file;
    crit_resolution resolution;
    scr_crit_info measured;
    if (plan == NULL || path == NULL)
        return missing("plan or path");
    int status = crit_fill_check(fill);
    if (status == SCR_CRIT_OK)
        status = crit_blame(crit_source_open(&file, path), path);
    if (status != SCR_CRIT_OK)
        return status;
    crit_resolution_init(&resolution);
    status = resolve(plan, entry, &file, &resolution);
    if (status == SCR_CRIT_OK)
        status = crit_blame(crit_pack_measure(&resolution, &measured), path);
    if (status == SCR_CRIT_OK)
        status = crit_overwrite(&file, &resolution, fill);
    if (status == SCR_CRIT_OK && info != NULL) {
        *info = measured;
        info->packed_bytes = 0; /* none was written */
    }
    crit_resolution_free(&resolution);
    crit_source_close(&file);
    return status;
}
