/* plan_array.h - one repetition of a plan's section: its length, and its program.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * May use plan_rows.h, plan_boxes.h, program.h, error.h. Tests: tests/c/test_plan_resolve.c.
 */
#ifndef CRIT_PLAN_ARRAY_H
#define CRIT_PLAN_ARRAY_H

#include "plan_rows.h"
#include "program.h"

/* Bytes of one repetition. lengths: the axes' lengths, dims of them, in the plan's order.
 * Fails with MISFIT beyond 2^63 - 1. */
int crit_plan_unit_bytes(const crit_plan_section *section, const uint64_t *lengths,
                         uint64_t *bytes);

/* Looks (plan_boxes.h) that all arrays of an entry may take together: a plan of hostile boxes must
 * not keep a rank busy, however many sections it has. */
enum { CRIT_PLAN_ENTRY_LOOKS = 6 << 20 };

/* Append the program of one repetition of an ARRAY section; looks and depth as in
 * crit_boxes_append. Fails with MISFIT when a box does not fit the lengths, or as crit_boxes_append
 * does. */
int crit_plan_array_append(const scr_crit_plan *plan, const crit_plan_section *section,
                           const uint64_t *lengths, uint64_t *looks, crit_program *program,
                           unsigned *depth);

/* Length and critical bytes of one repetition, both 0 where the plan does not fix them. Takes at
 * most CRIT_BOXES_MAX_LOOKS. */
int crit_plan_unit_measure(const scr_crit_plan *plan, const crit_plan_section *section,
                           uint64_t *bytes, uint64_t *kept);

#endif
