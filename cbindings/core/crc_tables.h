/* crc_tables.h - reflected 32-bit CRCs by table, eight bytes at a time, for any polynomial.
 *
 * crc32c.c uses it where the machine has no CRC instruction, crc32.c always. The method is
 * "slicing-by-8" (Kounavis and Berry, 2005): table k holds what a byte followed by k zero bytes
 * adds to the register. May use bytes.h. Tests: tests/c/test_crc.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CRIT_CRC_TABLES_H
#define CRIT_CRC_TABLES_H

#include <stddef.h>
#include <stdint.h>

#include "bytes.h"

typedef uint32_t crit_crc_tables[8][256];

static inline void crit_crc_tables_build(crit_crc_tables tables, uint32_t reflected_polynomial)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t remainder = byte;
        for (int bit = 0; bit < 8; bit++)
            remainder = remainder >> 1 ^ (remainder & 1 ? reflected_polynomial : 0);
        tables[0][byte] = remainder;
    }
    for (int zeros = 1; zeros < 8; zeros++)
        for (int byte = 0; byte < 256; byte++) {
            const uint32_t before = tables[zeros - 1][byte];
            tables[zeros][byte] = before >> 8 ^ tables[0][before & 0xff];
        }
}

/* Advance the register (not inverted) over data. */
static inline uint32_t crit_crc_advance(const crit_crc_tables tables, uint32_t state,
                                        const uint8_t *data, size_t size)
{
    for (; size >= 8; data += 8, size -= 8) {
        const uint32_t low = state ^ crit_load_u32(data);
        const uint32_t high = crit_load_u32(data + 4);
        state = tables[7][low & 0xff] ^ tables[6][low >> 8 & 0xff] ^ tables[5][low >> 16 & 0xff] ^
                tables[4][low >> 24] ^ tables[3][high & 0xff] ^ tables[2][high >> 8 & 0xff] ^
                tables[1][high >> 16 & 0xff] ^ tables[0][high >> 24];
    }
    for (; size > 0; data++, size--)
        state = state >> 8 ^ tables[0][(state ^ *data) & 0xff];
    return state;
}

#endif
