/* test_plan_hostile.c - damaged and hostile plans: every flipped bit and every truncation is an
 * error, and whatever a plan with right checksums holds, nothing is read or written out of bounds
 * (run it with sanitizers). Random mutations are fuzz_plan.c's affair.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "check.h"
#include "plan_builder.h"
#include "plan_exercise.h"

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
        builder_seal(bytes, length);
        CHECK(!exercise_plan(bytes, length));
        free(bytes);
    }
}

/* One bit at a time, with right checksums. */
static void sealed_bits_do_no_harm(const uint8_t *sample, size_t size)
{
    uint8_t *bytes = malloc(size), *sealed = malloc(size);

    memcpy(bytes, sample, size);
    for (size_t bit = 0; bit < 8 * size; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        memcpy(sealed, bytes, size);
        builder_seal(sealed, size);
        exercise_plan(sealed, size);
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    CHECK(memcmp(bytes, sample, size) == 0);
    free(sealed);
    free(bytes);
}

/* Some KiB that would take minutes if the indices between two far ones were looked at. */
static void far_steps_take_no_time(void)
{
    enum { SECTIONS = 80 };
    const int64_t length = INT64_C(1) << 40;
    plan_builder *builder = calloc(1, sizeof *builder);
    scr_crit_section_info section;
    scr_crit_plan *plan = NULL;
    uint8_t *bytes;
    size_t size;

    builder_entry(builder, "*");
    for (int i = 0; i < SECTIONS; i++) {
        builder_array(builder, "u", 1, 0, 1, 2);
        builder_fixed(builder, 1);
        builder_fixed(builder, length);
        builder_axis(builder, 0, length, (uint64_t)length - 1, 0);
        builder_axis(builder, 0, length - 1, (uint64_t)length - 2, 0);
    }
    bytes = builder_finish(builder, &size);
    CHECK_STATUS(scr_crit_plan_open_memory(bytes, size, &plan), SCR_CRIT_OK);
    for (uint32_t i = 0; i < SECTIONS; i++) {
        CHECK_STATUS(scr_crit_plan_section(plan, 0, i, &section), SCR_CRIT_OK);
        CHECK_U64(section.unit_kept, 3);
    }
    scr_crit_plan_close(plan);
    CHECK(exercise_plan(bytes, size));
    free(bytes);
    free(builder);
}

int main(void)
{
    size_t size;
    uint8_t *sample = builder_sample(&size);

    CHECK(exercise_plan(sample, size));
    every_flipped_bit_is_an_error(sample, size);
    every_truncation_is_an_error(sample, size);
    sealed_bits_do_no_harm(sample, size);
    far_steps_take_no_time();
    free(sample);
    return check_result();
}
