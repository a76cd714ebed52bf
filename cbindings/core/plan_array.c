/* plan_array.c - see plan_array.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "plan_array.h"

#include <inttypes.h>
#include <stdlib.h>

#include "error.h"
#include "plan_boxes.h"

enum { ORDER_FORTRAN = 1 };

/* Place of the plan's axis in storage order. */
static uint32_t storage_axis(const crit_plan_section *section, uint32_t axis)
{
    return section->order == ORDER_FORTRAN ? section->dims - 1 - axis : axis;
}

static void store_lengths(const crit_plan_section *section, const uint64_t *lengths,
                          uint64_t *stored)
{
    for (uint32_t axis = 0; axis < section->dims; axis++)
        stored[storage_axis(section, axis)] = lengths[axis];
}

/* Bounds for an axis of this length. Neither sum can wrap: see plan_check.c on the signs. */
static int apply_length(const crit_plan_axis *axis, uint64_t length, uint32_t box, uint32_t index,
                        crit_box_axis *bounds)
{
    int64_t whole = (int64_t)length;
    int64_t start = axis->start + (axis->flags & CRIT_PLAN_START_FROM_END ? whole : 0);
    int64_t stop = axis->stop + (axis->flags & CRIT_PLAN_STOP_FROM_END ? whole : 0);

    if (start < 0 || start > stop || stop > whole)
        return crit_fail(SCR_CRIT_ERR_MISFIT, CRIT_NO_OFFSET,
                         "box %" PRIu32 " takes indices %" PRId64 " to %" PRId64 " of axis %" PRIu32
                         ", which has %" PRId64,
                         box, start, stop, index, whole);
    *bounds = (crit_box_axis){(uint64_t)start, (uint64_t)stop, axis->step};
    return SCR_CRIT_OK;
}

static int apply_lengths(const scr_crit_plan *plan, const crit_plan_section *section,
                         const uint64_t *lengths, crit_box_axis *bounds)
{
    for (uint32_t box = 0; box < section->boxes; box++) {
        for (uint32_t axis = 0; axis < section->dims; axis++) {
            crit_plan_axis row =
                crit_plan_read_axis(plan, section->first_axis + box * section->dims + axis);
            crit_box_axis *target =
                bounds + (size_t)box * section->dims + storage_axis(section, axis);
            int status = apply_length(&row, lengths[axis], box, axis, target);

            if (status != SCR_CRIT_OK)
                return status;
        }
    }
    return SCR_CRIT_OK;
}

int crit_plan_unit_bytes(const crit_plan_section *section, const uint64_t *lengths, uint64_t *bytes)
{
    if (section->kind != SCR_CRIT_SECTION_ARRAY) {
        *bytes = section->unit_bytes;
        return SCR_CRIT_OK;
    }
    return crit_boxes_volume(&(crit_box_array){.dims = section->dims,
                                               .lengths = lengths,
                                               .type_size = section->type_size},
                             bytes);
}

int crit_plan_array_append(const scr_crit_plan *plan, const crit_plan_section *section,
                           const uint64_t *lengths, uint64_t *looks, crit_program *program,
                           unsigned *depth)
{
    size_t size = ((size_t)section->boxes * section->dims + 1) * sizeof(crit_box_axis);
    crit_box_axis *bounds = malloc(size);
    uint64_t stored[CRIT_PLAN_MAX_DIMS];
    int status;

    if (bounds == NULL)
        return crit_fail_memory(size);
    store_lengths(section, lengths, stored);
    status = apply_lengths(plan, section, lengths, bounds);
    if (status == SCR_CRIT_OK)
        status = crit_boxes_append(program,
                                   &(crit_box_array){.dims = section->dims,
                                                     .boxes = section->boxes,
                                                     .lengths = stored,
                                                     .axes = bounds,
                                                     .type_size = section->type_size},
                                   looks, depth);
    free(bounds);
    return status;
}

/* The axes' lengths if all are fixed. */
static bool fixed_lengths(const scr_crit_plan *plan, const crit_plan_section *section,
                          uint64_t *lengths)
{
    for (uint32_t axis = 0; axis < section->dims; axis++) {
        crit_plan_number number = crit_plan_read_number(plan, section->first_number + 1 + axis);

        if (number.source != CRIT_PLAN_FIXED)
            return false;
        lengths[axis] = (uint64_t)number.value;
    }
    return true;
}

int crit_plan_unit_measure(const scr_crit_plan *plan, const crit_plan_section *section,
                           uint64_t *bytes, uint64_t *kept)
{
    uint64_t lengths[CRIT_PLAN_MAX_DIMS];
    crit_program_facts facts = {0};
    uint64_t looks = CRIT_BOXES_MAX_LOOKS;
    crit_program program;
    unsigned depth;
    int status;

    *bytes = section->unit_bytes;
    *kept = section->unit_kept;
    if (section->kind != SCR_CRIT_SECTION_ARRAY || !fixed_lengths(plan, section, lengths))
        return SCR_CRIT_OK;
    crit_program_init(&program);
    status = crit_plan_array_append(plan, section, lengths, &looks, &program, &depth);
    if (status == SCR_CRIT_OK)
        status = crit_program_check(program.bytes, program.size, CRIT_NO_OFFSET, &facts);
    crit_program_free(&program);
    *bytes = facts.length;
    *kept = facts.kept;
    return status;
}
