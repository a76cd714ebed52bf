/* resolution.h - a plan entry applied to one file: what pack, measure, overwrite and runs work on.
 *
 * The plan resolver (plan.h) fills it; the packer knows nothing else of plans.
 * May use program.h and checksums.h. Tests: tests/test_core_packed.py.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CRIT_RESOLUTION_H
#define CRIT_RESOLUTION_H

#include <stdint.h>

#include "checksums.h"
#include "program.h"

typedef struct crit_resolution {
    crit_program program;        /* covers the source exactly */
    crit_program_facts facts;    /* of the program */
    crit_checksum_field *fields; /* owned (malloc), NULL if none */
    uint32_t field_count;
    uint32_t type_size; /* element size for the codec's shuffle, 1..255 */
    uint8_t digest[16]; /* of the plan */
} crit_resolution;

void crit_resolution_init(crit_resolution *resolution);
void crit_resolution_free(crit_resolution *resolution);

/* Validate program and fields against the file's size, and fill in the facts. Every resolution
 * passes here before it is used. Fails with FORMAT, or MISFIT when the program's length is not
 * `file_size`. */
int crit_resolution_check(crit_resolution *resolution, uint64_t file_size);

#endif
