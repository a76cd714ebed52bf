/* crc32c.c - CRC-32C; see crc32c.h.
 *
 * The instructions take 8 bytes in 3 cycles but can start one each cycle: so three neighbouring
 * blocks are worked on at once and their registers joined by "append n zero bytes", a linear map
 * kept as a table (Gopal and others, Intel white paper 323405, 2011, describe the idea).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "crc32c.h"

#include <pthread.h>
#include <string.h>

#include "crc_tables.h"
#include "scr_crit.h"

#if defined(__x86_64__)
#include <nmmintrin.h>
#define HAVE_INSTRUCTION 1
#define INSTRUCTION __attribute__((target("sse4.2")))
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#include <asm/hwcap.h>
#define HAVE_INSTRUCTION 1
#define INSTRUCTION __attribute__((target("+crc")))
#else
#define HAVE_INSTRUCTION 0
#endif

#define POLYNOMIAL UINT32_C(0x82f63b78) /* 0x1EDC6F41, reflected */

/* ---- By table -------------------------------------------------------------------------------- */

static crit_crc_tables slicing;

static void build_slicing(void)
{
    crit_crc_tables_build(slicing, POLYNOMIAL);
}

uint32_t crit_crc32c_table(uint32_t state, const uint8_t *data, size_t size)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, build_slicing);
    return crit_crc_advance(slicing, state, data, size);
}

#if HAVE_INSTRUCTION
/* ---- By instruction -------------------------------------------------------------------------- */

enum { LONG_BLOCK = 4096, SHORT_BLOCK = 256 };

/* What a register becomes when n zero bytes follow, per byte of the register. */
typedef uint32_t zeros_map[4][256];

static zeros_map long_zeros, short_zeros;

static void build_zeros(zeros_map map, size_t zeros)
{
    static const uint8_t block[LONG_BLOCK];
    for (int place = 0; place < 4; place++)
        for (uint32_t byte = 0; byte < 256; byte++)
            map[place][byte] = crit_crc32c_table(byte << (8 * place), block, zeros);
}

static void build_maps(void)
{
    build_zeros(long_zeros, LONG_BLOCK);
    build_zeros(short_zeros, SHORT_BLOCK);
}

static uint32_t append_zeros(const zeros_map map, uint32_t state)
{
    return map[0][state & 0xff] ^ map[1][state >> 8 & 0xff] ^ map[2][state >> 16 & 0xff] ^
           map[3][state >> 24];
}

static inline uint64_t load_word(const uint8_t *data)
{
    uint64_t word;
    memcpy(&word, data, sizeof word);
    return word;
}

#if defined(__x86_64__)
INSTRUCTION static inline uint32_t step_word(uint32_t state, uint64_t word)
{
    return (uint32_t)_mm_crc32_u64(state, word);
}

INSTRUCTION static inline uint32_t step_byte(uint32_t state, uint8_t byte)
{
    return _mm_crc32_u8(state, byte);
}

static bool machine_has_instruction(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("sse4.2");
}
#else
/* Written out, because <arm_acle.h> declares its intrinsics only when the whole file is built for
 * +crc. */
INSTRUCTION static inline uint32_t step_word(uint32_t state, uint64_t word)
{
    __asm__("crc32cx %w0, %w0, %x1" : "+r"(state) : "r"(word));
    return state;
}

INSTRUCTION static inline uint32_t step_byte(uint32_t state, uint8_t byte)
{
    __asm__("crc32cb %w0, %w0, %w1" : "+r"(state) : "r"(byte));
    return state;
}

static bool machine_has_instruction(void)
{
    return getauxval(AT_HWCAP) & HWCAP_CRC32;
}
#endif

INSTRUCTION static uint32_t three_blocks(uint32_t state, const uint8_t *data, size_t block,
                                         const zeros_map map)
{
    uint32_t second = 0, third = 0;
    for (size_t i = 0; i < block; i += 8) {
        state = step_word(state, load_word(data + i));
        second = step_word(second, load_word(data + block + i));
        third = step_word(third, load_word(data + 2 * block + i));
    }
    return append_zeros(map, append_zeros(map, state) ^ second) ^ third;
}

INSTRUCTION static uint32_t by_instruction(uint32_t state, const uint8_t *data, size_t size)
{
    for (; size >= 3 * LONG_BLOCK; data += 3 * LONG_BLOCK, size -= 3 * LONG_BLOCK)
        state = three_blocks(state, data, LONG_BLOCK, long_zeros);
    for (; size >= 3 * SHORT_BLOCK; data += 3 * SHORT_BLOCK, size -= 3 * SHORT_BLOCK)
        state = three_blocks(state, data, SHORT_BLOCK, short_zeros);
    for (; size >= 8; data += 8, size -= 8)
        state = step_word(state, load_word(data));
    for (; size > 0; data++, size--)
        state = step_byte(state, *data);
    return state;
}
#endif

/* ---- Choice ---------------------------------------------------------------------------------- */

static crit_crc32c_means *instruction;

static void look_for_instruction(void)
{
#if HAVE_INSTRUCTION
    if (machine_has_instruction()) {
        build_maps();
        instruction = by_instruction;
    }
#endif
}

crit_crc32c_means *crit_crc32c_instruction(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, look_for_instruction);
    return instruction;
}

uint32_t scr_crit_crc32c(uint32_t crc, const void *data, size_t size)
{
    crit_crc32c_means *means = crit_crc32c_instruction();
    return ~(means ? means : crit_crc32c_table)(~crc, data, size);
}
