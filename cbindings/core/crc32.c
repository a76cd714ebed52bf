/* crc32.c - CRC-32/ISO-HDLC, as zip and zlib have it; see checksums.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <pthread.h>

#include "checksums.h"
#include "crc_tables.h"

#define POLYNOMIAL UINT32_C(0xedb88320) /* 0x04C11DB7, reflected */

static crit_crc_tables slicing;

static void build_slicing(void)
{
    crit_crc_tables_build(slicing, POLYNOMIAL);
}

uint32_t crit_crc32(uint32_t crc, const void *data, size_t size)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, build_slicing);
    return ~crit_crc_advance(slicing, ~crc, data, size);
}
