/* test_plan_hostile.c - damaged and hostile plans: every flipped bit and every truncation is an
 * error, and whatever a plan with right checksums holds, nothing is read or written out of bounds
 * (run it with sanitizers).
 *
 * LLVMFuzzerTestOneInput is the same target for libFuzzer:
 *   clang -fsanitize=fuzzer,address,undefined -DFUZZ -Icbindings/include -Icbindings/core -Itests/c
 * \ tests/c/test_plan_hostile.c cbindings/core/?*.c -ldl -lpthread -o fuzz_plan
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "check.h"
#include "checksums.h"
#include "plan.h"
#include "plan_builder.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What a file of this size resolves to, walked to its end; reading counts and guards from `data`.
 */
static void use_entry(const scr_crit_plan *plan, uint32_t entry, const uint8_t *data, uint64_t size)
{
    scr_crit_buffer buffer = {data, size};
    crit_resolution resolution;
    crit_source source;
    crit_cursor cursor;
    crit_run run;

    crit_resolution_init(&resolution);
    if (crit_source_buffers(&source, &buffer, 1) == SCR_CRIT_OK &&
        crit_plan_resolve(plan, entry, &source, &resolution) == SCR_CRIT_OK) {
        uint64_t at = 0;

        crit_cursor_open(&cursor, resolution.program.bytes, resolution.program.size);
        while (crit_cursor_next(&cursor, &run)) {
            if (run.start < at || run.stop <= run.start || run.stop > size)
                abort();
            at = run.stop;
        }
    }
    crit_source_close(&source);
    crit_resolution_free(&resolution);
}

/* Everything an open plan can be asked. */
static void use_plan(const scr_crit_plan *plan)
{
    static const uint8_t file[4096] = {'M', 'A', 'G', 'I', 'C', 0, 1, 2, 2, 0, 0, 0, 0, 3};
    static const uint64_t sizes[] = {0, 1, 24, 16 + 24, 2296, sizeof file};
    scr_crit_plan_info info;
    scr_crit_entry_info entry;
    scr_crit_section_info section;
    const char *key, *value;
    uint32_t found;
    int tied;

    scr_crit_plan_describe(plan, &info);
    for (uint32_t i = 0; i < info.facts; i++)
        if (scr_crit_plan_fact(plan, i, &key, &value) == SCR_CRIT_OK && strlen(key) == 0)
            abort();
    for (uint32_t e = 0; e < info.entries; e++) {
        scr_crit_plan_entry(plan, e, &entry);
        if (strlen(entry.pattern) == 0)
            abort();
        for (uint32_t s = 0; s < entry.sections; s++)
            if (scr_crit_plan_section(plan, e, s, &section) == SCR_CRIT_OK)
                (void)(strlen(section.name) + strlen(section.rule));
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
            use_entry(plan, e, file, sizes[i]);
    }
    scr_crit_plan_match(plan, "ckpt.1/rank_007.dat", 7, NULL, &found, &tied);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *sealed = malloc(size ? size : 1);
    scr_crit_plan *plan = NULL;

    if (size > 0)
        memcpy(sealed, data, size);
    builder_seal(sealed, size); /* else no mutation would get past the checksums */
    if (scr_crit_plan_open_memory(sealed, size, &plan) == SCR_CRIT_OK)
        use_plan(plan);
    else if (scr_crit_last_offset() < 0 || (uint64_t)scr_crit_last_offset() > size)
        abort(); /* a malformed plan says where */
    scr_crit_plan_close(plan);
    free(sealed);
    return 0;
}

#ifndef FUZZ

static uint32_t seed = 2024;

static uint32_t draw(uint32_t limit)
{
    seed = seed * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)(seed >> 4) % limit);
}

static void every_flipped_bit_is_an_error(const uint8_t *sample, size_t size)
{
    uint8_t *bytes = malloc(size);

    memcpy(bytes, sample, size);
    for (size_t bit = 0; bit < 8 * size; bit++) {
        scr_crit_plan *plan = NULL;
        int status;

        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        status = scr_crit_plan_open_memory(bytes, size, &plan);
        CHECK(status == SCR_CRIT_ERR_FORMAT || status == SCR_CRIT_ERR_CHECKSUM ||
              status == SCR_CRIT_ERR_VERSION);
        CHECK(scr_crit_last_offset() >= 0 && plan == NULL);
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    free(bytes);
}

static void every_truncation_is_an_error(const uint8_t *sample, size_t size)
{
    for (size_t length = 0; length < size; length++) {
        uint8_t *bytes = malloc(length ? length : 1); /* so that reading beyond it is seen */
        scr_crit_plan *plan = NULL;

        if (length > 0)
            memcpy(bytes, sample, length);
        CHECK_STATUS(scr_crit_plan_open_memory(bytes, length, &plan), SCR_CRIT_ERR_FORMAT);
        LLVMFuzzerTestOneInput(bytes, length);
        free(bytes);
    }
}

/* One bit at a time, with right checksums. */
static void sealed_bits_do_no_harm(const uint8_t *sample, size_t size)
{
    uint8_t *bytes = malloc(size);

    memcpy(bytes, sample, size);
    for (size_t bit = 0; bit < 8 * size; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        LLVMFuzzerTestOneInput(bytes, size);
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    CHECK(memcmp(bytes, sample, size) == 0);
    free(bytes);
}

/* A byte, or a whole number, becomes one of those that programs stumble over. */
static void spoil(uint8_t *bytes, size_t size)
{
    static const uint64_t values[] = {0,
                                      1,
                                      2,
                                      0x7f,
                                      0x80,
                                      0xff,
                                      0xffff,
                                      0x7fffffff,
                                      0x80000000,
                                      0xffffffff,
                                      0x100000000,
                                      INT64_MAX,
                                      (uint64_t)INT64_MAX + 1,
                                      UINT64_MAX};
    uint64_t value = values[draw(sizeof values / sizeof values[0])];
    size_t at = draw((uint32_t)size);

    if (draw(3) == 0)
        bytes[at] = (uint8_t)value;
    else if (draw(2) == 0 && at / 4 * 4 + 4 <= size)
        crit_store_u32(bytes + at / 4 * 4, (uint32_t)value);
    else if (at / 8 * 8 + 8 <= size)
        crit_store_u64(bytes + at / 8 * 8, value);
}

static void sealed_mutations_do_no_harm(const uint8_t *sample, size_t size)
{
    uint8_t *bytes = malloc(size);

    for (int round = 0; round < 30000; round++) {
        memcpy(bytes, sample, size);
        for (uint32_t i = 0; i <= draw(4); i++)
            spoil(bytes, size);
        LLVMFuzzerTestOneInput(bytes, size);
    }
    CHECK(size > 0);
    free(bytes);
}

int main(void)
{
    size_t size;
    uint8_t *sample = builder_sample(&size);

    LLVMFuzzerTestOneInput(sample, size);
    every_flipped_bit_is_an_error(sample, size);
    every_truncation_is_an_error(sample, size);
    sealed_bits_do_no_harm(sample, size);
    sealed_mutations_do_no_harm(sample, size);
    free(sample);
    return check_result();
}

#endif
