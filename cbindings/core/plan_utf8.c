/* plan_utf8.c - see plan_utf8.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "plan_utf8.h"

/* Sequence length by its first byte, and the least code point that needs that length (RFC 3629). */
static size_t sequence_length(uint8_t lead, uint32_t *bits, uint32_t *least)
{
    if (lead < 0x80) {
        *bits = lead;
        *least = 0;
        return 1;
    }
    if ((lead & 0xE0) == 0xC0) {
        *bits = lead & 0x1F;
        *least = 0x80;
        return 2;
    }
    if ((lead & 0xF0) == 0xE0) {
        *bits = lead & 0x0F;
        *least = 0x800;
        return 3;
    }
    if ((lead & 0xF8) == 0xF0) {
        *bits = lead & 0x07;
        *least = 0x10000;
        return 4;
    }
    return 0;
}

size_t crit_utf8_decode(const uint8_t *text, size_t size, uint32_t *code)
{
    uint32_t value, least;
    size_t length = sequence_length(text[0], &value, &least);

    if (length == 0 || length > size)
        return 0;
    for (size_t i = 1; i < length; i++) {
        if ((text[i] & 0xC0) != 0x80)
            return 0;
        value = value << 6 | (text[i] & 0x3F);
    }
    if (value < least || value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF))
        return 0;
    *code = value;
    return length;
}
