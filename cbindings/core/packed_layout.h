/* packed_layout.h - offsets of the fields in header and trailer, shared by writer and reader.
 *
 * Private to packed_header.c and packed_read.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CRIT_PACKED_LAYOUT_H
#define CRIT_PACKED_LAYOUT_H

#include "packed.h"

enum header_place {
    AT_VERSION = 8,
    AT_HEADER_SIZE = 12,
    AT_FILE_SIZE = 16,
    AT_KEPT = 24,
    AT_TABLE_SIZE = 32,
    AT_FRAME_BYTES = 40,
    AT_FRAMES = 48,
    AT_CODEC = 52,
    AT_ENCODINGS = 56,
    AT_FIELDS = 60,
    AT_PAYLOAD_SIZE = 64,
    AT_PACKED_SIZE = 72,
    AT_DIGEST = 80,
    AT_TYPE_SIZE = 96,
    AT_TABLE_CRC = 100,
    AT_FIELDS_CRC = 104,
    AT_FRAMES_CRC = 108,
    AT_RESERVED = 112,
    AT_HEADER_CRC = 124
};

enum trailer_place { AT_TRAILER_HEADER_CRC = 8, AT_TRAILER_CRC = 12 };

extern const uint8_t crit_header_mark[CRIT_MARK_SIZE];
extern const uint8_t crit_trailer_mark[CRIT_MARK_SIZE];

#endif
