/* test_plan_resolve.c - a plan's entry applied to a file (core/plan_resolve.c, core/plan_array.c).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "check.h"
#include "checksums.h"
#include "plan.h"
#include "plan_builder.h"

/* A plan under construction, and what it comes to for some bytes. */
struct bench {
    plan_builder builder;
    scr_crit_plan *plan;
    crit_resolution resolution;
};

static struct bench *bench_new(void)
{
    struct bench *bench = calloc(1, sizeof *bench);

    builder_entry(&bench->builder, "*");
    return bench;
}

static int bench_open(struct bench *bench)
{
    size_t size;
    uint8_t *bytes = builder_finish(&bench->builder, &size);
    int status = scr_crit_plan_open_memory(bytes, size, &bench->plan);

    free(bytes);
    return status;
}

/* Apply the plan's first entry. */
static int bench_resolve(struct bench *bench, const void *data, uint64_t size)
{
    scr_crit_buffer buffer = {data, size};
    crit_source source;
    int status;

    crit_resolution_init(&bench->resolution);
    status = crit_source_buffers(&source, &buffer, 1);
    if (status == SCR_CRIT_OK)
        status = crit_plan_resolve(bench->plan, 0, &source, &bench->resolution);
    crit_source_close(&source);
    return status;
}

/* Sizes and critical bytes alone; the rest is crit_boxes_append's and the program's affair. */
static void expect(struct bench *bench, const void *data, uint64_t size, uint64_t kept)
{
    CHECK_STATUS(bench_resolve(bench, data, size), SCR_CRIT_OK);
    CHECK_U64(bench->resolution.facts.length, size);
    CHECK_U64(bench->resolution.facts.kept, kept);
    crit_resolution_free(&bench->resolution);
}

static void expect_misfit(struct bench *bench, const void *data, uint64_t size, const char *words)
{
    CHECK_STATUS(bench_resolve(bench, data, size), SCR_CRIT_ERR_MISFIT);
    if (strstr(scr_crit_last_error(), words) == NULL)
        fprintf(stderr, "  said: %s\n", scr_crit_last_error());
    CHECK(strstr(scr_crit_last_error(), words) != NULL);
    crit_resolution_free(&bench->resolution);
}

static void bench_free(struct bench *bench)
{
    scr_crit_plan_close(bench->plan);
    free(bench);
}

static const uint8_t zeros[4096];

/* ---- Fixed counts -----------------------------------------------------------------------------
 */

static void fixed_sections_cover_one_size(void)
{
    static const uint8_t record[] = {CRIT_OP_KEEP, 2, CRIT_OP_DROP, 3};
    struct bench *bench = bench_new();

    builder_keep(&bench->builder, "head");
    builder_fixed(&bench->builder, 10);
    builder_program(&bench->builder, SCR_CRIT_SECTION_RECORD, "r", record, sizeof record, 5, 2);
    builder_fixed(&bench->builder, 7);
    builder_keep(&bench->builder, "nothing");
    builder_fixed(&bench->builder, 0);
    CHECK_STATUS(bench_open(bench), SCR_CRIT_OK);
    expect(bench, zeros, 45, 24);
    expect_misfit(bench, zeros, 44, "take 45 bytes, the file has 44");
    expect_misfit(bench, zeros, 46, "the file has 46");
    expect_misfit(bench, zeros, 0, "the file has 0");
    CHECK_STATUS(crit_plan_resolve(bench->plan, 1, NULL, &bench->resolution), SCR_CRIT_ERR_ARG);
    bench_free(bench);
}

static void an_entry_without_sections_is_an_empty_file(void)
{
    struct bench *bench = bench_new();

    CHECK_STATUS(bench_open(bench), SCR_CRIT_OK);
    expect(bench, zeros, 0, 0);
    expect_misfit(bench, zeros, 1, "take 0 bytes, the file has 1");
    bench_free(bench);
}

static void sizes_are_bounded(void)
{
    struct bench *bench = bench_new();

    builder_keep(&bench->builder, "all");
    builder_solved(&bench->builder);
    crit_store_u64(bench->builder.rows[CRIT_PLAN_ENTRIES] + 40, 10);
    crit_store_u64(bench->builder.rows[CRIT_PLAN_ENTRIES] + 48, 20);
    CHECK_STATUS(bench_open(bench), SCR_CRIT_OK);
    expect(bench, zeros, 10, 10);
    expect(bench, zeros, 20, 20);
    expect_misfit(bench, zeros, 9, "for 10 to 20");
    expect_misfit(bench, zeros, 21, "for 10 to 20");
    bench_free(bench);
}

/* 2^31 arrays of 2^31 bytes are 2^62; twice that is no file. */
static void huge_products_do_not_wrap(void)
{
    struct bench *bench = bench_new();

    for (int section = 0; section < 2; section++) {
        builder_array(&bench->builder, section ? "b" : "a", 1, 0, 1, 0);
        builder_fixed(&bench->builder, INT64_C(1) << 31);
        builder_fixed(&bench->builder, INT64_C(1) << 31);
    }
    CHECK_STATUS(bench_open(bench), SCR_CRIT_OK);
    expect_misfit(bench, zeros, 0, "more than a file can hold");
    bench_free(bench);
    bench = bench_new();
    builder_array(&bench->builder, "a", 8, 0, 2, 0);
    builder_fixed(&bench->builder, 1);
    builder_fixed(&bench->builder, INT64_C(1) << 40);
    builder_fixed(&bench->builder, INT64_C(1) << 40);
    CHECK_STATUS(bench_open(bench), SCR_CRIT_OK);
    expect_misfit(bench, zeros, 0, "\"a\"");
    bench_free(bench);
}

/* Each of these arrays may be searched for its runs, all of them together may not: the work for a
 * file is bounded however many sections its entry has. */
static void the_search_is_bounded_for_all_sections_together(void)
{
    enum { LENGTH = 300000, SECTIONS = 80 };

    for (int sections = 1; sections <= SECTIONS; sections += SECTIONS - 1) {
        struct bench *bench = bench_new();
        scr_crit_section_info info;
        uint8_t *file = calloc(sections, LENGTH);

        for (int i = 0; i < sections; i++) {
            builder_array(&bench->builder, "u", 1, 0, 1, 3);
            builder_fixed(&bench->builder, 1);
            builder_fixed(&bench->builder, LENGTH);
            builder_axis(&bench->builder, 0, LENGTH, 2, 0); /* every index is met by either */
            builder_axis(&bench->builder, 1, LENGTH, 2, 0);
            builder_axis(&bench->builder, 0, LENGTH, LENGTH - 1, 0); /* and no period fits */
        }
        CHECK_STATUS(bench_open(bench), SCR_CRIT_OK);
        CHECK_STATUS(scr_crit_plan_section(bench->plan, 0, 0, &info), SCR_CRIT_OK);
        CHECK_U64(info.unit_kept, LENGTH);
        if (sections == 1)
            expect(bench, file, LENGTH, LENGTH);
        else
            expect_misfit(bench, file, (uint64_t)sections * LENGTH, "would take too long");
        free(file);
        bench_free(bench);
    }
}

/* ---- Solved counts ----------------------------------------------------------------------------
 */

static void a_count_is_solved_from_the_size(void)
{
    static const uint8_t record[] = {CRIT_OP_DROP, 25, CRIT_OP_KEEP, 87};
    struct bench *bench = bench_new();

    builder_keep(&bench->builder, "head");
    builder_fixed(&bench->builder, 10);
    builder_program(&bench->builder, SCR_CRIT_SECTION_RECORD, "p", record, sizeof record, 112, 87);
    builder_solved(&bench->builder);
    builder_keep(&bench->builder, "tail");
    builder_fixed(&bench->builder, 6);
    CHECK_STATUS(bench_open(bench), SCR_CRIT_OK);
    expect(bench, zeros, 16, 16);
    expect(bench, zeros, 16 + 112, 16 + 87);
    expect(bench, zeros, 16 + 30 * 112, 16 + 30 * 87);
    expect_misfit(bench, zeros, 15, "\"p\": the other sections take 16 bytes, the file has 15");
    expect_misfit(bench, zeros, 17, "\"p\": 1 bytes are left for it, which is no multiple of 112");
    expect_misfit(bench, zeros, 16 + 111, "no multiple");
    bench_free(bench);
}

static void an_axis_is_solved_from_the_size(void)
{
    struct bench *bench = bench_new();

    builder_array(&bench->builder, "u", 4, 0, 2, 1);
    builder_fixed(&bench->builder, 3);
    builder_solved(&bench->builder);
    builder_fixed(&bench->builder, 5);
    builder_axis(&bench->builder, 1, -1, 1, CRIT_PLAN_STOP_FROM_END);
    builder_axis(&bench->builder, 1, 4, 1, 0);
    CHECK_STATUS(bench_open(bench), SCR_CRIT_OK);
    expect(bench, zeros, 3 * 4 * 5 * 4, 3 * 2 * 3 * 4);
    expect(bench, zeros, 3 * 2 * 5 * 4, 0);
    expect_misfit(bench, zeros, 3 * 1 * 5 * 4, "\"u\": box 0 takes indices 1 to 0 of axis 0");
    expect_misfit(bench, zeros, 3 * 5 * 4 + 4, "no multiple of 60");
    bench_free(bench);
}

static void an_ambiguous_count_is_a_misfit(void)
{
    struct bench *bench = bench_new();

    builder_array(&bench->builder, "u", 4, 0, 1, 0);
    builder_solved(&bench->builder);
    builder_fixed(&bench->builder, 0);
    CHECK_STATUS(bench_open(bench), SCR_CRIT_OK);
    expect_misfit(bench, zeros, 0, "units are empty");
    expect_misfit(bench, zeros, 4, "units are empty");
    bench_free(bench);
}

static void two_solved_counts_are_refused(void)
{
    struct bench *bench = bench_new();

    builder_keep(&bench->builder, "a");
    builder_solved(&bench->builder);
    builder_array(&bench->builder, "b", 1, 0, 1, 0);
    builder_fixed(&bench->builder, 1);
    builder_solved(&bench->builder);
    CHECK_STATUS(bench_open(bench), SCR_CRIT_ERR_FORMAT);
    bench_free(bench);
}

/* ---- Counts in the file -----------------------------------------------------------------------
 */

struct integer {
    uint8_t width, is_signed, big_endian;
    int64_t factor, add;
    uint8_t bytes[8];
    int64_t count; /* -1: a misfit */
};

static void integers_are_read_in_every_form(void)
{
    static const struct integer integers[] = {
        {1, 0, 0, 1, 0, {200}, 200},
        {1, 1, 0, 1, 0, {200}, -1},
        {1, 1, 0, -1, 0, {200}, 56},
        {1, 1, 0, 1, 60, {0xc8}, 4},
        {2, 0, 0, 1, 0, {0x34, 0x02}, 0x234},
        {2, 0, 1, 1, 0, {0x02, 0x34}, 0x234},
        {2, 1, 1, -1, 0, {0xff, 0xfe}, 2},
        {4, 1, 0, 1, 0, {7}, 7},
        {4, 1, 1, 3, -1, {0, 0, 0, 7}, 20},
        {4, 1, 0, 1, 0, {0xff, 0xff, 0xff, 0xff}, -1},
        {4, 0, 0, 1, -4294967290, {0xff, 0xff, 0xff, 0xff}, 5},
        {8, 1, 1, 1, 0, {0, 0, 0, 0, 0, 0, 1, 1}, 257},
        {8, 1, 0, 1, 0, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, -1},
        {8, 1, 0, -1, 0, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, 1},
        {8, 0, 0, 1, 0, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, -1},
        {8, 0, 0, 1, 0, {0, 0, 0, 0, 0, 0, 0, 0x80}, -1},
        {8, 1, 0, -1, 0, {0, 0, 0, 0, 0, 0, 0, 0x80}, -1}, /* 2^63 wraps */
        {8, 0, 0, INT64_MAX, 0, {2}, -1},
        {8, 0, 0, 1, INT64_MAX, {1}, -1},
        {4, 0, 0, 1, 0, {0}, 0},
    };

    for (size_t i = 0; i < sizeof integers / sizeof integers[0]; i++) {
        const struct integer *n = &integers[i];
        struct bench *bench = bench_new();
        uint8_t data[1024] = {0};

        builder_keep(&bench->builder, "head");
        builder_fixed(&bench->builder, 16);
        builder_keep(&bench->builder, "rest");
        builder_integer(&bench->builder, n->width, n->is_signed, n->big_endian, CRIT_PLAN_BASE_FILE,
                        3, n->factor, n->add);
        memcpy(data + 3, n->bytes, n->width);
        CHECK_STATUS(bench_open(bench), SCR_CRIT_OK);
        if (n->count >= 0) {
            expect(bench, data, 16 + (uint64_t)n->count, 16 + (uint64_t)n->count);
            expect_misfit(bench, data, 16 + (uint64_t)n->count + 1, "bytes");
        } else {
            expect_misfit(bench, data, 16, "\"rest\": the integer 0x");
            CHECK_U64(scr_crit_last_offset(), 3);
        }
        bench_free(bench);
    }
}

/* The second array's length stands behind the first array, whose own length varies. */
static void places_follow_their_section(void)
{
    struct bench *bench = bench_new();
    uint8_t data[64] = {0};

    builder_keep(&bench->builder, "n");
    builder_fixed(&bench->builder, 1);
    builder_array(&bench->builder, "a", 2, 0, 1, 0);
    builder_fixed(&bench->builder, 1);
    builder_integer(&bench->builder, 1, 0, 0, 0, 0, 1, 0);
    builder_keep(&bench->builder, "m");
    builder_fixed(&bench->builder, 2);
    builder_array(&bench->builder, "b", 2, 0, 1, 0);
    builder_fixed(&bench->builder, 1);
    builder_integer(&bench->builder, 1, 0, 0, 2, 1, 1, 0);
    builder_keep(&bench->builder, "rest");
    builder_solved(&bench->builder);
    CHECK_STATUS(bench_open(bench), SCR_CRIT_OK);
    data[0] = 4;
    data[1 + 8 + 1] = 3;
    expect(bench, data, 1 + 8 + 2 + 6, 3);
    expect(bench, data, 64, 64 - 14);
    data[0] = 5; /* now the second length is read elsewhere, as 0 */
    expect(bench, data, 64, 64 - 10);
    data[0] = 255;
    expect_misfit(bench, data, 64, "\"b\": its count should stand at offset 511 + 1");
    bench_free(bench);
}

static void places_behind_a_solved_section_are_refused(void)
{
    for (uint32_t base = 0; base < 3; base++) {
        struct bench *bench = bench_new();

        builder_keep(&bench->builder, "head");
        builder_fixed(&bench->builder, 4);
        builder_keep(&bench->builder, "solved");
        builder_solved(&bench->builder);
        builder_keep(&bench->builder, "tail");
        builder_integer(&bench->builder, 1, 0, 0, base, 0, 1, 0);
        CHECK_STATUS(bench_open(bench), base < 2 ? SCR_CRIT_OK : SCR_CRIT_ERR_FORMAT);
        if (base == 0)
            expect(bench, "\2abcdefgh", 9, 9);
        bench_free(bench);
    }
}

/* ---- Arrays -----------------------------------------------------------------------------------
 */

/* u[1:, 0] of 3 x 2 elements of 1 byte: its critical bytes in either order. */
static void order_decides_which_bytes(void)
{
    static const uint64_t expected[2][2] = {{2, 4}, {1, 2}}; /* C: two runs; Fortran: one */

    for (uint32_t order = 0; order < 2; order++) {
        struct bench *bench = bench_new();
        crit_cursor cursor;
        crit_run run;

        builder_array(&bench->builder, "u", 1, order, 2, 1);
        builder_fixed(&bench->builder, 1);
        builder_fixed(&bench->builder, 3);
        builder_fixed(&bench->builder, 2);
        builder_axis(&bench->builder, 1, 0, 1, CRIT_PLAN_STOP_FROM_END);
        builder_axis(&bench->builder, 0, 1, 1, 0);
        CHECK_STATUS(bench_open(bench), SCR_CRIT_OK);
        CHECK_STATUS(bench_resolve(bench, zeros, 6), SCR_CRIT_OK);
        crit_cursor_open(&cursor, bench->resolution.program.bytes, bench->resolution.program.size);
        CHECK(crit_cursor_next(&cursor, &run));
        CHECK_U64(run.start, expected[order][0]);
        CHECK_U64(run.stop, 3);
        CHECK(crit_cursor_next(&cursor, &run) == (order == 0));
        if (order == 0)
            CHECK_U64(run.start, expected[order][1]);
        crit_resolution_free(&bench->resolution);
        bench_free(bench);
    }
}

static void a_scalar_has_one_element(void)
{
    for (uint32_t boxes = 0; boxes < 2; boxes++) {
        struct bench *bench = bench_new();

        builder_array(&bench->builder, "s", 8, 0, 0, boxes);
        builder_fixed(&bench->builder, 1);
        CHECK_STATUS(bench_open(bench), SCR_CRIT_OK);
        expect(bench, zeros, 8, 8 * boxes);
        bench_free(bench);
    }
}

static void the_kept_most_decide_the_element_size(void)
{
    struct bench *bench = bench_new();

    builder_keep(&bench->builder, "head");
    builder_fixed(&bench->builder, 16);
    builder_array(&bench->builder, "u", 8, 0, 1, 1);
    builder_fixed(&bench->builder, 1);
    builder_fixed(&bench->builder, 4);
    builder_axis(&bench->builder, 0, 0, 1, CRIT_PLAN_STOP_FROM_END);
    builder_array(&bench->builder, "dropped", 4, 0, 1, 0);
    builder_fixed(&bench->builder, 1);
    builder_fixed(&bench->builder, 100);
    CHECK_STATUS(bench_open(bench), SCR_CRIT_OK);
    CHECK_STATUS(bench_resolve(bench, zeros, 16 + 32 + 400), SCR_CRIT_OK);
    CHECK_U64(bench->resolution.type_size, 8);
    CHECK(bench->resolution.program.size < 8); /* the head joins the array */
    crit_resolution_free(&bench->resolution);
    bench_free(bench);
}

/* ---- Guards and checksum fields ---------------------------------------------------------------
 */

static void guards_must_stand_where_they_should(void)
{
    static uint8_t long_guard[600];
    struct bench *bench = bench_new();
    uint8_t data[700] = {0};

    memset(long_guard, 7, sizeof long_guard);
    memset(data, 7, 640);
    builder_keep(&bench->builder, "head");
    builder_fixed(&bench->builder, 4);
    builder_keep(&bench->builder, "rest");
    builder_solved(&bench->builder);
    builder_guard(&bench->builder, CRIT_PLAN_BASE_FILE, 3, long_guard, sizeof long_guard);
    builder_guard(&bench->builder, 1, 0, "\7\7", 2);
    CHECK_STATUS(bench_open(bench), SCR_CRIT_OK);
    expect(bench, data, 700, 700);
    data[602] = 8;
    expect_misfit(bench, data, 700, "byte 0x08 at offset 602, expected 0x07");
    CHECK_U64(scr_crit_last_offset(), 602);
    data[602] = 7;
    data[5] = 0;
    expect_misfit(bench, data, 700, "offset 5");
    data[5] = 7;
    expect_misfit(bench, data, 602, "beyond the file's end");
    expect_misfit(bench, data, 4, "beyond the file's end");
    bench_free(bench);
}

static void checksum_fields_follow_their_sections(void)
{
    struct bench *bench = bench_new();
    uint8_t data[64] = {20};

    builder_keep(&bench->builder, "head");
    builder_fixed(&bench->builder, 8);
    builder_array(&bench->builder, "u", 1, 0, 1, 0);
    builder_fixed(&bench->builder, 1);
    builder_integer(&bench->builder, 1, 0, 0, 0, 0, 1, 0);
    builder_keep(&bench->builder, "tail");
    builder_fixed(&bench->builder, 4);
    builder_field(&bench->builder, (crit_plan_place){1, 0}, (crit_plan_place){3, 0},
                  (crit_plan_place){0, 4});
    CHECK_STATUS(bench_open(bench), SCR_CRIT_OK);
    CHECK_STATUS(bench_resolve(bench, data, 32), SCR_CRIT_OK);
    CHECK_U64(bench->resolution.field_count, 1);
    CHECK_U64(bench->resolution.fields[0].start, 8);
    CHECK_U64(bench->resolution.fields[0].length, 24);
    CHECK_U64(bench->resolution.fields[0].place[0], 4);
    crit_resolution_free(&bench->resolution);
    bench_free(bench);
}

static void checksum_fields_within_their_bytes_are_a_misfit(void)
{
    static const crit_plan_place places[][3] = {
        {{0, 0}, {2, 0}, {0, 4}}, /* covers itself */
        {{0, 4}, {0, 2}, {1, 0}}, /* ends before it begins */
        {{0, 0}, {1, 0}, {1, 6}}, /* reaches beyond the file */
        {{0, 0}, {1, 0}, {CRIT_PLAN_BASE_FILE, 1000}},
        {{0, UINT64_MAX}, {1, 0}, {1, 0}},
        {{1, 0}, {1, UINT64_MAX}, {0, 0}},
    };

    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        struct bench *bench = bench_new();

        builder_keep(&bench->builder, "head");
        builder_fixed(&bench->builder, 8);
        builder_keep(&bench->builder, "tail");
        builder_fixed(&bench->builder, 8);
        builder_field(&bench->builder, places[i][0], places[i][1], places[i][2]);
        CHECK_STATUS(bench_open(bench), SCR_CRIT_OK);
        expect_misfit(bench, zeros, 16, "checksum field");
        bench_free(bench);
    }
}

/* ---- Everything at once -----------------------------------------------------------------------
 */

static void the_sample_fits_its_file(void)
{
    size_t size;
    uint8_t *bytes = builder_sample(&size);
    uint8_t data[24 + 2 * 6 * 5 * 4 * 8 + 3 * 112 + 16] = {'M', 'A', 'G', 'I', 'C', 0, 1, 2, 2};
    struct bench *bench = calloc(1, sizeof *bench);
    scr_crit_plan_info info;
    uint64_t kept = 2 * 8 * (4 * 3 * 2 + 1 * 3 * 1); /* the boxes are disjoint */

    CHECK_STATUS(scr_crit_plan_open_memory(bytes, size, &bench->plan), SCR_CRIT_OK);
    data[13] = 3; /* an axis of 2 x 3 - 1 */
    expect(bench, data, sizeof data, 24 + kept + 3 * 87 + 11);
    CHECK_STATUS(scr_crit_plan_describe(bench->plan, &info), SCR_CRIT_OK);
    CHECK_STATUS(bench_resolve(bench, data, sizeof data), SCR_CRIT_OK);
    CHECK(memcmp(bench->resolution.digest, info.digest, sizeof info.digest) == 0);
    crit_resolution_free(&bench->resolution);
    data[13] = 0; /* 2 x 0 - 1 */
    expect_misfit(bench, data, sizeof data, "is no count");
    data[13] = 3;
    data[11] = 0xff;
    expect_misfit(bench, data, sizeof data, "is no count");
    free(bytes);
    bench_free(bench);
}

int main(void)
{
    fixed_sections_cover_one_size();
    an_entry_without_sections_is_an_empty_file();
    sizes_are_bounded();
    huge_products_do_not_wrap();
    the_search_is_bounded_for_all_sections_together();
    a_count_is_solved_from_the_size();
    an_axis_is_solved_from_the_size();
    an_ambiguous_count_is_a_misfit();
    two_solved_counts_are_refused();
    integers_are_read_in_every_form();
    places_follow_their_section();
    places_behind_a_solved_section_are_refused();
    order_decides_which_bytes();
    a_scalar_has_one_element();
    the_kept_most_decide_the_element_size();
    guards_must_stand_where_they_should();
    checksum_fields_follow_their_sections();
    checksum_fields_within_their_bytes_are_a_misfit();
    the_sample_fits_its_file();
    return check_result();
}
