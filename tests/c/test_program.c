/* test_program.c - programs of runs: builder, validator, cursor, encoder (core/program.h).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "bytes.h"
#include "check.h"
#include "program.h"

enum { MANY = 1 << 16 };

/* What a program marks critical, byte by byte; and that the validator's sums say the same. */
static void expect_mask(const uint8_t *bytes, size_t size, const char *mask)
{
    crit_program_facts facts;
    crit_cursor cursor;
    crit_run run;
    const size_t length = strlen(mask);
    char *found = malloc(length + 1);
    memset(found, '.', length);
    found[length] = '\0';
    CHECK_STATUS(crit_program_validate(bytes, size, 0, length, &facts), SCR_CRIT_OK);
    crit_cursor_open(&cursor, bytes, size);
    uint64_t kept = 0, runs = 0, before = 0;
    while (crit_cursor_next(&cursor, &run) && run.stop <= length) {
        CHECK(run.start < run.stop && (runs == 0 || run.start > before));
        memset(found + run.start, '#', (size_t)(run.stop - run.start));
        kept += run.stop - run.start;
        before = run.stop;
        runs++;
    }
    CHECK(!cursor.damaged);
    CHECK_U64(cursor.position, length);
    CHECK_U64(facts.kept, kept);
    CHECK_U64(facts.critical_runs, runs);
    const uint64_t dropped =
        length == 0 ? 0 : runs + 1 - (mask[0] == '#') - (runs && mask[length - 1] == '#');
    CHECK_U64(facts.dropped_runs, dropped);
    if (strcmp(found, mask) != 0)
        fprintf(stderr, "found    %s\nexpected %s\n", found, mask);
    CHECK(strcmp(found, mask) == 0);
    free(found);
}

static void expect_bytes(const crit_program *program, const uint8_t *bytes, size_t size)
{
    CHECK_U64(program->size, size);
    CHECK(program->size == size && memcmp(program->bytes, bytes, size) == 0);
}
#define EXPECT_BYTES(program, ...)                                                                 \
    expect_bytes(program, (const uint8_t[]){__VA_ARGS__}, sizeof(const uint8_t[]){__VA_ARGS__})

/* ---- Builder --------------------------------------------------------------------------------- */

static void neighbours_are_joined(void)
{
    crit_program program;
    crit_program_init(&program);
    CHECK_STATUS(crit_program_keep(&program, 3), SCR_CRIT_OK);
    CHECK_STATUS(crit_program_keep(&program, 0), SCR_CRIT_OK);
    CHECK_STATUS(crit_program_keep(&program, 200), SCR_CRIT_OK);
    CHECK_STATUS(crit_program_drop(&program, 4), SCR_CRIT_OK);
    CHECK_STATUS(crit_program_drop(&program, 1), SCR_CRIT_OK);
    EXPECT_BYTES(&program, 1, 203, 1, 2, 5);
    crit_program_free(&program);
}

static void loops_nest(void)
{
    crit_program program;
    crit_program_init(&program);
    CHECK_STATUS(crit_program_loop_begin(&program), SCR_CRIT_OK);
    CHECK_STATUS(crit_program_drop(&program, 1), SCR_CRIT_OK);
    CHECK_STATUS(crit_program_loop_begin(&program), SCR_CRIT_OK);
    CHECK_STATUS(crit_program_keep(&program, 2), SCR_CRIT_OK);
    CHECK_STATUS(crit_program_drop(&program, 1), SCR_CRIT_OK);
    CHECK_STATUS(crit_program_loop_end(&program, 2), SCR_CRIT_OK);
    CHECK_STATUS(crit_program_loop_end(&program, 3), SCR_CRIT_OK);
    EXPECT_BYTES(&program, 3, 3, 9, 2, 1, 3, 2, 4, 1, 2, 2, 1);
    expect_mask(program.bytes, program.size, ".##.##..##.##..##.##.");
    crit_program_free(&program);
}

/* Loops over nothing, over one run, and once: each becomes what it says more shortly. */
static void loops_are_simplified(void)
{
    crit_program program;
    crit_program_init(&program);
    crit_program_drop(&program, 1);
    crit_program_loop_begin(&program);
    crit_program_drop(&program, 5);
    CHECK_STATUS(crit_program_loop_end(&program, 4), SCR_CRIT_OK);
    EXPECT_BYTES(&program, 2, 21);
    crit_program_loop_begin(&program);
    crit_program_keep(&program, 9);
    crit_program_drop(&program, 9);
    CHECK_STATUS(crit_program_loop_end(&program, 0), SCR_CRIT_OK);
    crit_program_loop_begin(&program);
    CHECK_STATUS(crit_program_loop_end(&program, 9), SCR_CRIT_OK);
    crit_program_drop(&program, 1);
    EXPECT_BYTES(&program, 2, 22);
    crit_program_loop_begin(&program);
    crit_program_keep(&program, 1);
    crit_program_drop(&program, 1);
    CHECK_STATUS(crit_program_loop_end(&program, 1), SCR_CRIT_OK);
    crit_program_drop(&program, 1);
    EXPECT_BYTES(&program, 2, 22, 1, 1, 2, 2);
    crit_program_free(&program);
}

static void builder_refuses_what_cannot_be(void)
{
    crit_program program;
    crit_program_init(&program);
    CHECK_STATUS(crit_program_loop_end(&program, 2), SCR_CRIT_ERR_FORMAT);
    CHECK_STATUS(crit_program_keep(&program, CRIT_PROGRAM_MAX_LENGTH), SCR_CRIT_OK);
    CHECK_STATUS(crit_program_keep(&program, 1), SCR_CRIT_ERR_FORMAT);
    crit_program_free(&program);
    crit_program_loop_begin(&program);
    crit_program_keep(&program, 1u << 31);
    CHECK_STATUS(crit_program_loop_end(&program, UINT64_C(1) << 40), SCR_CRIT_ERR_FORMAT);
    crit_program_free(&program);
    for (int i = 0; i < CRIT_PROGRAM_DEPTH; i++)
        CHECK_STATUS(crit_program_loop_begin(&program), SCR_CRIT_OK);
    CHECK_STATUS(crit_program_loop_begin(&program), SCR_CRIT_ERR_FORMAT);
    CHECK_STATUS(crit_program_append(&program, (const uint8_t[]){1, 1}, 2, 1), SCR_CRIT_ERR_FORMAT);
    CHECK_STATUS(crit_program_append(&program, (const uint8_t[]){1, 1}, 2, 0), SCR_CRIT_OK);
    crit_program_free(&program);
}

/* A run must not be joined to one inside an appended program or a finished loop. */
static void appended_programs_stay_whole(void)
{
    crit_program program;
    crit_program_init(&program);
    crit_program_keep(&program, 1);
    CHECK_STATUS(crit_program_append(&program, (const uint8_t[]){1, 2, 2, 1}, 4, 0), SCR_CRIT_OK);
    crit_program_drop(&program, 1);
    EXPECT_BYTES(&program, 1, 1, 1, 2, 2, 1, 2, 1);
    expect_mask(program.bytes, program.size, "###..");
    crit_program_free(&program);
}

/* ---- Validator ------------------------------------------------------------------------------- */

static void check_refused(const uint8_t *bytes, size_t size, int64_t offset)
{
    /* In a block of its own size, so that a sanitizer sees a look beyond the end. */
    uint8_t *copy = malloc(size);
    memcpy(copy, bytes, size);
    CHECK_STATUS(crit_program_check(copy, size, 1000, NULL), SCR_CRIT_ERR_FORMAT);
    CHECK_U64(scr_crit_last_offset(), 1000 + offset);
    free(copy);
}
#define REFUSED(offset, ...)                                                                       \
    check_refused((const uint8_t[]){__VA_ARGS__}, sizeof(const uint8_t[]){__VA_ARGS__}, offset)

static void malformed_programs_are_refused(void)
{
    REFUSED(0, 0); /* unknown operations */
    REFUSED(0, 6, 1);
    REFUSED(1, 1); /* cut off */
    REFUSED(1, 1, 0x80);
    REFUSED(1, 2, 0);                /* an empty run */
    REFUSED(3, 1, 1, 2, 0x80, 0x00); /* not the shortest form */
    REFUSED(1, 3, 1, 2, 1, 1);       /* a loop of one */
    REFUSED(1, 3, 2, 0);             /* of nothing */
    REFUSED(1, 3, 2, 3, 1, 1);       /* beyond the end */
    REFUSED(4, 3, 2, 1, 1, 5);       /* body cut off by its own size */
    REFUSED(1, 4, 2, 1, 1, 1);       /* RUNS: first run of a third kind */
    REFUSED(1, 4, 0, 0, 0);          /* none */
    REFUSED(1, 4, 0, 3, 2, 1, 1);    /* more runs than bytes */
    REFUSED(1, 4, 0, 1, 2, 1);       /* data beyond the end */
    REFUSED(5, 4, 0, 1, 2, 1, 1);    /* data left over */
    REFUSED(4, 4, 0, 1, 1, 0);       /* an empty run */
    REFUSED(1, 5, 0, 8, 1);          /* BITMAP: unit 0 */
    REFUSED(1, 5, 1, 0, 1);          /* no bits */
    REFUSED(1, 5, 1, 9, 1);          /* data beyond the end */
    REFUSED(3, 5, 1, 3, 8);          /* unused bits */
    REFUSED(1, 4);
    REFUSED(1, 5);
}

static void lengths_beyond_a_file_are_refused(void)
{
    const uint8_t most[] = {1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 1, 1};
    CHECK_STATUS(crit_program_check(most, 10, 0, NULL), SCR_CRIT_OK);
    REFUSED(10, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 1, 1);
    REFUSED(1, 1, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01); /* 2^63 */
    /* 2^40 times 2^40 bytes */
    REFUSED(1, 3, 0x80, 0x80, 0x80, 0x80, 0x80, 0x20, 7, 1, 0x80, 0x80, 0x80, 0x80, 0x80, 0x20);
    /* a bitmap of 2^60 units a bit */
    REFUSED(1, 5, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x10, 8, 1);
    /* 2^63 - 1 bits need not be believed */
    REFUSED(1, 5, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 1);
}

/* Wrap a body in `depth` loops of `count`. */
static size_t nest(uint8_t *bytes, size_t size, unsigned depth, uint64_t count)
{
    for (unsigned i = 0; i < depth; i++) {
        uint8_t head[1 + 2 * CRIT_VARINT_MAX];
        size_t head_size = 0;
        head[head_size++] = CRIT_OP_LOOP;
        head_size += crit_varint_store(head + head_size, count);
        head_size += crit_varint_store(head + head_size, size);
        memmove(bytes + head_size, bytes, size);
        memcpy(bytes, head, head_size);
        size += head_size;
    }
    return size;
}

static void depth_is_bounded(void)
{
    uint8_t bytes[1000] = {1, 1, 2, 1};
    crit_program_facts facts;
    size_t size = nest(bytes, 4, CRIT_PROGRAM_DEPTH, 2);
    CHECK_STATUS(crit_program_validate(bytes, size, 0, 2u << 16, &facts), SCR_CRIT_OK);
    CHECK_U64(facts.depth, CRIT_PROGRAM_DEPTH);
    CHECK_U64(facts.critical_runs, 1u << 16);
    size = nest(bytes, size, 1, 2);
    CHECK_STATUS(crit_program_check(bytes, size, 0, NULL), SCR_CRIT_ERR_FORMAT);
}

/* A few bytes that would take years if loops were walked. */
static void huge_counts_cost_nothing(void)
{
    uint8_t bytes[1000] = {2, 1};
    crit_program_facts facts;
    crit_cursor cursor;
    crit_run run;
    size_t size = nest(bytes, 2, 3, 1u << 20); /* uncritical throughout */
    CHECK_STATUS(crit_program_validate(bytes, size, 0, UINT64_C(1) << 60, &facts), SCR_CRIT_OK);
    CHECK_U64(facts.dropped_runs, 1);
    crit_cursor_open(&cursor, bytes, size);
    CHECK(!crit_cursor_next(&cursor, &run) && !cursor.damaged);
    CHECK_U64(cursor.position, UINT64_C(1) << 60);

    memcpy(bytes, (const uint8_t[]){1, 1, 2, 1}, 4);
    size = nest(bytes, 4, 3, 1u << 20); /* alternating: 2^61 bytes */
    CHECK_STATUS(crit_program_validate(bytes, size, 0, UINT64_C(1) << 61, &facts), SCR_CRIT_OK);
    CHECK_U64(facts.kept, UINT64_C(1) << 60);
    CHECK_U64(facts.dropped_runs, UINT64_C(1) << 60);
}

/* One critical byte and thousands of tiny drops, again and again: refused, since walking it is
 * mostly steps. */
static void busy_programs_are_refused(void)
{
    uint8_t *bytes = calloc(1, 3 * MANY);
    size_t size = 0;
    bytes[size++] = CRIT_OP_KEEP;
    bytes[size++] = 1;
    for (int i = 0; i < MANY / 4; i++) {
        bytes[size++] = CRIT_OP_DROP;
        bytes[size++] = 1;
    }
    CHECK_STATUS(crit_program_check(bytes, size, 0, NULL), SCR_CRIT_OK);
    size = nest(bytes, size, 1, 1u << 20);
    CHECK_STATUS(crit_program_check(bytes, size, 0, NULL), SCR_CRIT_ERR_FORMAT);
    free(bytes);
}

static void length_must_be_the_expected_one(void)
{
    const uint8_t bytes[] = {1, 5, 2, 5};
    CHECK_STATUS(crit_program_validate(bytes, 4, 128, 10, NULL), SCR_CRIT_OK);
    CHECK_STATUS(crit_program_validate(bytes, 4, 128, 11, NULL), SCR_CRIT_ERR_FORMAT);
    CHECK_U64(scr_crit_last_offset(), 128);
    CHECK_STATUS(crit_program_validate(NULL, 0, 128, 0, NULL), SCR_CRIT_OK);
    CHECK_STATUS(crit_program_validate(NULL, 0, 128, 1, NULL), SCR_CRIT_ERR_FORMAT);
}

/* ---- Cursor ---------------------------------------------------------------------------------- */

static void pieces_are_joined_across_operations(void)
{
    const uint8_t runs[] = {1, 2, 4, 1, 3, 3, 1,
                            2, 1, 5, 2, 3, 5}; /* KEEP, RUNS #..#, BITMAP #.# */
    expect_mask(runs, sizeof runs, "###..###..##");
    /* LOOP 2 { DROP 1 KEEP 1 } LOOP 3 { KEEP 1 } DROP 2 */
    const uint8_t loops[] = {3, 2, 4, 2, 1, 1, 1, 3, 3, 2, 1, 1, 2, 2};
    expect_mask(loops, sizeof loops, ".#.####..");
    /* LOOP 2 { BITMAP ###, KEEP 1 } and LOOP 2 { RUNS one run of 2 }: uniform, each its way */
    const uint8_t uniform[] = {3, 2, 6, 5, 1, 3, 7, 1, 1, 3, 2, 5, 4, 0, 1, 1, 2};
    expect_mask(uniform, sizeof uniform, "########....");
    expect_mask(NULL, 0, "");
}

static void expect_bitmap(const char *mask)
{
    uint8_t bytes[64] = {CRIT_OP_BITMAP, 1};
    const size_t bits = strlen(mask);
    const size_t head = 2 + crit_varint_store(bytes + 2, bits);
    for (size_t bit = 0; bit < bits; bit++)
        if (mask[bit] == '#')
            bytes[head + bit / 8] |= (uint8_t)(1u << (bit % 8));
    expect_mask(bytes, head + (bits + 7) / 8, mask);
}

/* Runs of either kind that begin and end at every place around the words of 64 bits. */
static void bitmaps_of_all_phases(void)
{
    char mask[141];
    mask[140] = '\0';
    for (unsigned begin = 0; begin < 130; begin += 3)
        for (unsigned end = begin + 1; end < 140; end += 5) {
            memset(mask, '.', 140);
            memset(mask + begin, '#', end - begin);
            expect_bitmap(mask);
            memset(mask, '#', 140);
            memset(mask + begin, '.', end - begin);
            expect_bitmap(mask);
        }
}

/* Bytes that change under the cursor (a file overwritten while mapped) may give wrong runs, never a
 * look outside or an endless walk. */
static void damaged_programs_are_survived(void)
{
    const uint8_t good[] = {3, 2, 14, 1, 1, 2, 1, 4, 1, 3, 3, 1, 2, 1, 5, 2, 3, 5, 2, 9};
    for (size_t place = 0; place < sizeof good; place++)
        for (int value = 0; value < 256; value++) {
            uint8_t *bytes = malloc(sizeof good);
            memcpy(bytes, good, sizeof good);
            bytes[place] = (uint8_t)value;
            crit_cursor cursor;
            crit_run run;
            int steps = 0;
            crit_cursor_open(&cursor, bytes, sizeof good);
            while (steps < 100000 && crit_cursor_next(&cursor, &run))
                steps++;
            CHECK(steps < 100000);
            free(bytes);
        }
}

/* ---- Encoder --------------------------------------------------------------------------------- */

static size_t encoded_size(const uint64_t *starts, const uint64_t *stops, size_t count,
                           uint64_t length)
{
    size_t size = 0;
    CHECK_STATUS(scr_crit_encode_runs(starts, stops, count, length, NULL, 0, &size), SCR_CRIT_OK);
    return size;
}

static void encoder_keeps_the_mask(void)
{
    const uint64_t starts[] = {0, 3, 5, 9}, stops[] = {2, 5, 6, 10};
    uint8_t bytes[64];
    size_t size = 0;
    CHECK_STATUS(scr_crit_encode_runs(starts, stops, 4, 10, bytes, sizeof bytes, &size),
                 SCR_CRIT_OK);
    expect_mask(bytes, size, "##.###...#");
    CHECK_U64(encoded_size(starts, stops, 4, 10), size);
    CHECK_STATUS(scr_crit_encode_runs(starts, stops, 0, 3, bytes, sizeof bytes, &size),
                 SCR_CRIT_OK);
    expect_mask(bytes, size, "...");
    CHECK_STATUS(scr_crit_encode_runs(starts, stops, 1, 2, bytes, sizeof bytes, &size),
                 SCR_CRIT_OK);
    expect_mask(bytes, size, "##");
}

static void encoder_leaves_a_small_buffer_alone(void)
{
    const uint64_t starts[] = {1}, stops[] = {2};
    uint8_t bytes[2] = {0xaa, 0xaa};
    size_t size = 0;
    CHECK_STATUS(scr_crit_encode_runs(starts, stops, 1, 9, bytes, sizeof bytes, &size),
                 SCR_CRIT_OK);
    CHECK(size > sizeof bytes && bytes[0] == 0xaa && bytes[1] == 0xaa);
}

static void encoder_refuses_bad_runs(void)
{
    size_t size;
    const uint64_t a[] = {0, 1}, b[] = {2, 3}, c[] = {4, 3}, d[] = {4, 9};
    CHECK_STATUS(scr_crit_encode_runs(a, b, 2, 10, NULL, 0, &size), SCR_CRIT_ERR_ARG); /* overlap */
    CHECK_STATUS(scr_crit_encode_runs(a, a, 1, 10, NULL, 0, &size), SCR_CRIT_ERR_ARG); /* empty */
    CHECK_STATUS(scr_crit_encode_runs(c, d, 2, 10, NULL, 0, &size), SCR_CRIT_ERR_ARG); /* order */
    CHECK_STATUS(scr_crit_encode_runs(a, b, 1, 1, NULL, 0, &size), SCR_CRIT_ERR_ARG);  /* beyond */
    CHECK_STATUS(scr_crit_encode_runs(NULL, NULL, 0, 0, NULL, 0, &size), SCR_CRIT_ERR_ARG);
    CHECK_STATUS(scr_crit_encode_runs(NULL, NULL, 1, 5, NULL, 0, &size), SCR_CRIT_ERR_ARG);
    CHECK_STATUS(scr_crit_encode_runs(NULL, NULL, 0, 5, NULL, 0, NULL), SCR_CRIT_ERR_ARG);
}

/* Random elements of 8 bytes behind an odd header: a bit an element. Few long runs: a few bytes. */
static void encoder_takes_the_smaller_form(void)
{
    uint64_t *starts = malloc(MANY * sizeof *starts), *stops = malloc(MANY * sizeof *stops);
    size_t count = 0;
    uint32_t seed = 99;
    for (uint64_t i = 0; i < MANY; i++) {
        seed = seed * 1664525u + 1013904223u;
        if (seed >> 31) {
            starts[count] = 13 + 8 * i;
            stops[count++] = 13 + 8 * i + 8;
        }
    }
    CHECK(encoded_size(starts, stops, count, 13 + 8 * MANY + 3) <= MANY / 8 + 32);
    CHECK(encoded_size(starts, stops, 3, UINT64_C(1) << 40) <= 40);
    free(starts);
    free(stops);
}

int main(void)
{
    neighbours_are_joined();
    loops_nest();
    loops_are_simplified();
    builder_refuses_what_cannot_be();
    appended_programs_stay_whole();
    malformed_programs_are_refused();
    lengths_beyond_a_file_are_refused();
    depth_is_bounded();
    huge_counts_cost_nothing();
    busy_programs_are_refused();
    length_must_be_the_expected_one();
    pieces_are_joined_across_operations();
    bitmaps_of_all_phases();
    damaged_programs_are_survived();
    encoder_keeps_the_mask();
    encoder_leaves_a_small_buffer_alone();
    encoder_refuses_bad_runs();
    encoder_takes_the_smaller_form();
    return check_result();
}
