/* crc32c.h - CRC-32C by the means the machine has; the public entry is scr_crit_crc32c.
 *
 * The single means are visible so that the tests can hold them against each other.
 * Tests: tests/c/test_crc.c (the vectors of RFC 3720, appendix B.4).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CRIT_CRC32C_H
#define CRIT_CRC32C_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Advance the register (not inverted) over data. */
typedef uint32_t crit_crc32c_means(uint32_t state, const uint8_t *data, size_t size);

/* By table; on every machine. */
crit_crc32c_means crit_crc32c_table;

/* By the processor's instruction (SSE4.2, ARMv8 CRC), or NULL where it has none. */
crit_crc32c_means *crit_crc32c_instruction(void);

#endif
