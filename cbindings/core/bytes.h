/* bytes.h - little-endian integers and varints in byte buffers, and sums that cannot wrap.
 *
 * Uses nothing of the core. Tests: tests/c/test_bytes.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CRIT_BYTES_H
#define CRIT_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline uint32_t crit_load_u32(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
           (uint32_t)bytes[3] << 24;
}

static inline uint64_t crit_load_u64(const uint8_t *bytes)
{
    return (uint64_t)crit_load_u32(bytes) | (uint64_t)crit_load_u32(bytes + 4) << 32;
}

static inline void crit_store_u32(uint8_t *bytes, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        bytes[i] = (uint8_t)(value >> (8 * i));
}

static inline void crit_store_u64(uint8_t *bytes, uint64_t value)
{
    crit_store_u32(bytes, (uint32_t)value);
    crit_store_u32(bytes + 4, (uint32_t)(value >> 32));
}

/* Whether all of `size` bytes are zero. */
static inline bool crit_all_zero(const uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (bytes[i] != 0)
            return false;
    return true;
}

/* ---- Varints (LEB128, shortest form) --------------------------------------------------------- */

enum { CRIT_VARINT_MAX = 10 };

static inline size_t crit_varint_size(uint64_t value)
{
    size_t size = 1;
    while (value >= 0x80) {
        value >>= 7;
        size++;
    }
    return size;
}

/* Store a varint; `bytes` has room for CRIT_VARINT_MAX. Returns its size. */
static inline size_t crit_varint_store(uint8_t *bytes, uint64_t value)
{
    size_t size = 0;
    while (value >= 0x80) {
        bytes[size++] = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    bytes[size++] = (uint8_t)value;
    return size;
}

/* Load a varint from [*at, end) and move *at behind it. Returns false, and leaves *at, when it is
 * cut off, longer than its shortest form, or beyond 64 bits. */
static inline bool crit_varint_load(const uint8_t **at, const uint8_t *end, uint64_t *value)
{
    const uint8_t *next = *at;
    if (next < end && *next < 0x80) { /* nearly all of them */
        *value = *next;
        *at = next + 1;
        return true;
    }
    uint64_t sum = 0;
    for (unsigned shift = 0; shift < 7 * CRIT_VARINT_MAX; shift += 7) {
        if (next == end)
            return false;
        const uint8_t byte = *next++;
        if (shift == 63 && byte > 1)
            return false;
        sum |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            if (byte == 0)
                return false;
            *value = sum;
            *at = next;
            return true;
        }
    }
    return false;
}

/* ---- Sums that cannot wrap ------------------------------------------------------------------- */

/* *sum = a + b or a * b. Return false on overflow. */
static inline bool crit_add(uint64_t a, uint64_t b, uint64_t *sum)
{
    return !__builtin_add_overflow(a, b, sum);
}

static inline bool crit_multiply(uint64_t a, uint64_t b, uint64_t *product)
{
    return !__builtin_mul_overflow(a, b, product);
}

/* The same, but stick at UINT64_MAX. */
static inline uint64_t crit_add_capped(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static inline uint64_t crit_multiply_capped(uint64_t a, uint64_t b)
{
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

#endif
