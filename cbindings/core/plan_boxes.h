/* plan_boxes.h - from an array's critical boxes to a program of runs.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * May use program.h, error.h. Tests: tests/c/test_plan_boxes.c, tests/test_plan.py.
 */
#ifndef CRIT_PLAN_BOXES_H
#define CRIT_PLAN_BOXES_H

#include <stdint.h>

#include "program.h"

/* Indices start, start + step, ... below stop, of one axis of one box. */
typedef struct crit_box_axis {
    uint64_t start, stop, step;
} crit_box_axis;

/* An array and its critical boxes. Axes are in storage order, the slowest first. */
typedef struct crit_box_array {
    uint32_t dims;
    uint32_t boxes;
    const uint64_t
        *lengths; /* dims of them; each 0 <= start <= stop <= length must hold, step >= 1 */
    const crit_box_axis *axes; /* boxes x dims */
    uint64_t type_size;        /* bytes an element, at least 1 */
} crit_box_array;

/* Longest program that boxes may become; what needs more is no rule. Every level of the search may
 * hold two of them: 16 MiB in all. */
enum { CRIT_BOXES_MAX_PROGRAM = 1 << 18 };

/* Most looks at a box in one place that finding one array's program may take; some 10 ms. */
enum { CRIT_BOXES_MAX_LOOKS = 3 << 20 };

/* Append the program of one array: elements in any of the boxes are critical. Its size follows the
 * boxes, not the elements.
 *   looks   in and out: looks left to the caller, from which those taken are subtracted
 *   depth   out: deepest nesting of loops appended, at most 15
 * Fails with NOMEM; MISFIT when the array exceeds 2^63 - 1 bytes or the boxes are so irregular that
 * the program would exceed CRIT_BOXES_MAX_PROGRAM, 15 loops, *looks or CRIT_BOXES_MAX_LOOKS. */
int crit_boxes_append(crit_program *program, const crit_box_array *array, uint64_t *looks,
                      unsigned *depth);

/* Bytes of the array. Fails with MISFIT beyond 2^63 - 1. */
int crit_boxes_volume(const crit_box_array *array, uint64_t *bytes);

#endif
