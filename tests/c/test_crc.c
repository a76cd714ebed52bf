/* test_crc.c - CRC-32C and CRC-32 against published values, and the means against each other.
 *
 * The vectors of CRC-32C are those of RFC 3720, appendix B.4; the check values over "123456789"
 * those of Williams' "A painless guide to CRC error detection algorithms" and its successors'
 * catalogue.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "check.h"
#include "checksums.h"
#include "crc32c.h"

/* iSCSI SCSI Read (10) command PDU of the RFC. */
static const uint8_t read_command[48] = {
    0x01, 0xc0, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x14, 0x00, 0x00, 0x00, 0x00, 0x00, 0x04, 0x00, 0x00, 0x00, 0x00, 0x14, 0x00, 0x00, 0x00, 0x18,
    0x28, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00};

static void vectors(uint32_t (*crc)(const void *data, size_t size))
{
    uint8_t data[32];
    memset(data, 0, sizeof data);
    CHECK_U64(crc(data, sizeof data), 0x8a9136aau);
    memset(data, 0xff, sizeof data);
    CHECK_U64(crc(data, sizeof data), 0x62a8ab43u);
    for (int i = 0; i < 32; i++)
        data[i] = (uint8_t)i;
    CHECK_U64(crc(data, sizeof data), 0x46dd794eu);
    for (int i = 0; i < 32; i++)
        data[i] = (uint8_t)(31 - i);
    CHECK_U64(crc(data, sizeof data), 0x113fdb5cu);
    CHECK_U64(crc(read_command, sizeof read_command), 0xd9963a56u);
    CHECK_U64(crc("123456789", 9), 0xe3069283u);
    CHECK_U64(crc("", 0), 0);
}

static uint32_t by_table(const void *data, size_t size)
{
    return ~crit_crc32c_table(~0u, data, size);
}

static uint32_t by_choice(const void *data, size_t size)
{
    return scr_crit_crc32c(0, data, size);
}

/* One bit at a time, straight from the definition. */
static uint32_t by_definition(uint32_t polynomial, const uint8_t *data, size_t size)
{
    uint32_t state = ~0u;
    for (size_t i = 0; i < size; i++) {
        state ^= data[i];
        for (int bit = 0; bit < 8; bit++)
            state = state >> 1 ^ (state & 1 ? polynomial : 0);
    }
    return ~state;
}

enum { LENGTH = 40000 };

static void fill_randomly(uint8_t *data, size_t size)
{
    uint32_t seed = 12345;
    for (size_t i = 0; i < size; i++) {
        seed = seed * 1664525u + 1013904223u;
        data[i] = (uint8_t)(seed >> 24);
    }
}

/* Lengths around the blocks of the three-way loop, at every alignment. */
static void means_agree(const uint8_t *data)
{
    static const size_t lengths[] = {0,   1,   7,    8,    9,     63,    767,   768,   769,
                                     775, 776, 1536, 2303, 12287, 12288, 12289, 13056, 39000};
    crit_crc32c_means *instruction = crit_crc32c_instruction();
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++)
        for (size_t shift = 0; shift < 9; shift++) {
            const uint32_t expected = by_definition(0x82f63b78u, data + shift, lengths[i]);
            CHECK_U64(by_table(data + shift, lengths[i]), expected);
            CHECK_U64(by_choice(data + shift, lengths[i]), expected);
            if (instruction != NULL)
                CHECK_U64(~instruction(~0u, data + shift, lengths[i]), expected);
        }
    printf("CRC instruction: %s\n", instruction ? "tested" : "this processor has none");
}

static void pieces_make_the_whole(const uint8_t *data)
{
    const uint32_t whole = scr_crit_crc32c(0, data, LENGTH);
    const uint32_t whole32 = crit_crc32(0, data, LENGTH);
    for (size_t cut = 0; cut <= LENGTH; cut += 997) {
        CHECK_U64(scr_crit_crc32c(scr_crit_crc32c(0, data, cut), data + cut, LENGTH - cut), whole);
        CHECK_U64(crit_crc32(crit_crc32(0, data, cut), data + cut, LENGTH - cut), whole32);
    }
}

static void zip_crc(const uint8_t *data)
{
    CHECK_U64(crit_crc32(0, "123456789", 9), 0xcbf43926u);
    CHECK_U64(crit_crc32(0, "", 0), 0);
    for (size_t size = 0; size < 100; size++)
        CHECK_U64(crit_crc32(0, data + size, size), by_definition(0xedb88320u, data + size, size));
}

int main(void)
{
    uint8_t *data = malloc(LENGTH);
    fill_randomly(data, LENGTH);
    vectors(by_table);
    vectors(by_choice);
    means_agree(data);
    pieces_make_the_whole(data);
    zip_crc(data);
    free(data);
    return check_result();
}
