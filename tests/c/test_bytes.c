/* test_bytes.c - integers and varints (core/bytes.h).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "bytes.h"
#include "check.h"

static void integers_are_little_endian(void)
{
    const uint8_t bytes[8] = {0x01, 0x02, 0x03, 0x84, 0x05, 0x06, 0x07, 0x88};
    uint8_t stored[8];
    CHECK_U64(crit_load_u32(bytes), 0x84030201u);
    CHECK_U64(crit_load_u64(bytes), UINT64_C(0x8807060584030201));
    crit_store_u64(stored, UINT64_C(0x8807060584030201));
    CHECK(memcmp(stored, bytes, 8) == 0);
}

static void varints_survive(void)
{
    for (int shift = 0; shift < 64; shift++) {
        for (int delta = -1; delta <= 1; delta++) {
            const uint64_t value = (UINT64_C(1) << shift) + (uint64_t)delta;
            uint8_t bytes[CRIT_VARINT_MAX];
            const size_t size = crit_varint_store(bytes, value);
            CHECK_U64(size, crit_varint_size(value));
            for (size_t cut = 0; cut <= size; cut++) {
                const uint8_t *at = bytes;
                uint64_t loaded = 0;
                CHECK(crit_varint_load(&at, bytes + cut, &loaded) == (cut == size));
                CHECK(at == (cut == size ? bytes + size : bytes));
                if (cut == size)
                    CHECK_U64(loaded, value);
            }
        }
    }
}

static void refused(const uint8_t *bytes, size_t size)
{
    const uint8_t *at = bytes;
    uint64_t value;
    CHECK(!crit_varint_load(&at, bytes + size, &value));
    CHECK(at == bytes);
}

static void malformed_varints_are_refused(void)
{
    refused((const uint8_t[]){0x80, 0x00}, 2);       /* not the shortest form of 0 */
    refused((const uint8_t[]){0xff, 0x80, 0x00}, 3); /* nor of 127 */
    refused((const uint8_t[]){0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02}, 10);
    refused((const uint8_t[]){0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x81, 0}, 11);
    const uint8_t *at =
        (const uint8_t[]){0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01};
    uint64_t value = 0;
    CHECK(crit_varint_load(&at, at + 10, &value));
    CHECK_U64(value, UINT64_MAX);
}

static void sums_do_not_wrap(void)
{
    uint64_t out;
    CHECK(crit_add(UINT64_MAX - 1, 1, &out) && out == UINT64_MAX);
    CHECK(!crit_add(UINT64_MAX, 1, &out));
    CHECK(!crit_multiply(UINT64_C(1) << 32, UINT64_C(1) << 32, &out));
    CHECK_U64(crit_add_capped(UINT64_MAX, 5), UINT64_MAX);
    CHECK_U64(crit_multiply_capped(UINT64_MAX, 2), UINT64_MAX);
    CHECK_U64(crit_multiply_capped(6, 7), 42);
}

int main(void)
{
    integers_are_little_endian();
    varints_survive();
    malformed_varints_are_refused();
    sums_do_not_wrap();
    return check_result();
}
