/* test_plan_open.c - opening plans, what they say, and what is refused (core/plan.c,
 * core/plan_check.c).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <errno.h>
#include <sys/uio.h>

#include "check.h"
#include "checksums.h"
#include "plan_builder.h"
#include "scratch.h"

/* ---- What is in it ----------------------------------------------------------------------------
 */

static void the_sample_says_what_was_put_in(const scr_crit_plan *plan, size_t size)
{
    scr_crit_plan_info info;
    scr_crit_entry_info entry;
    scr_crit_section_info section;
    const char *key, *value;

    CHECK_STATUS(scr_crit_plan_describe(plan, &info), SCR_CRIT_OK);
    CHECK_U64(info.format, scr_crit_plan_format());
    CHECK_U64(info.entries, 2);
    CHECK_U64(info.facts, 2);
    CHECK_U64(info.bytes, size);
    CHECK_STATUS(scr_crit_plan_entry(plan, 0, &entry), SCR_CRIT_OK);
    CHECK(strcmp(entry.pattern, "{dataset}/rank_{rank}.dat") == 0);
    CHECK_U64(entry.sections, 4);
    CHECK_U64(entry.guards, 1);
    CHECK_U64(entry.checksums, 1);
    CHECK_U64(entry.max_bytes, INT64_MAX);
    CHECK_STATUS(scr_crit_plan_section(plan, 0, 1, &section), SCR_CRIT_OK);
    CHECK(strcmp(section.name, "u") == 0);
    CHECK_U64(section.kind, SCR_CRIT_SECTION_ARRAY);
    CHECK_U64(section.type_size, 8);
    CHECK_U64(section.dims, 3);
    CHECK_U64(section.boxes, 2);
    CHECK_U64(section.unit_bytes, 0); /* an axis is read from the file */
    CHECK_STATUS(scr_crit_plan_section(plan, 0, 2, &section), SCR_CRIT_OK);
    CHECK_U64(section.unit_bytes, 112);
    CHECK_U64(section.unit_kept, 87);
    CHECK_STATUS(scr_crit_plan_section(plan, 1, 0, &section), SCR_CRIT_OK);
    CHECK(strcmp(section.name, "all") == 0);
    CHECK_STATUS(scr_crit_plan_fact(plan, 1, &key, &value), SCR_CRIT_OK);
    CHECK(strcmp(key, "caf\xc3\xa9") == 0 && *value == '\0');
}

static void indices_are_checked(const scr_crit_plan *plan)
{
    scr_crit_entry_info entry;
    scr_crit_section_info section;
    const char *key, *value;

    CHECK_STATUS(scr_crit_plan_entry(plan, 2, &entry), SCR_CRIT_ERR_ARG);
    CHECK_STATUS(scr_crit_plan_section(plan, 2, 0, &section), SCR_CRIT_ERR_ARG);
    CHECK_STATUS(scr_crit_plan_section(plan, 1, 1, &section), SCR_CRIT_ERR_ARG);
    CHECK_STATUS(scr_crit_plan_fact(plan, 2, &key, &value), SCR_CRIT_ERR_ARG);
    CHECK_STATUS(scr_crit_plan_fact(plan, 0, &key, NULL), SCR_CRIT_ERR_ARG);
    CHECK_STATUS(scr_crit_plan_entry(plan, 0, NULL), SCR_CRIT_ERR_ARG);
    CHECK_STATUS(scr_crit_plan_describe(NULL, NULL), SCR_CRIT_ERR_ARG);
}

static void the_first_matching_entry_is_the_files(const scr_crit_plan *plan)
{
    uint32_t entry = 99;
    int tied = 99;

    CHECK_STATUS(scr_crit_plan_match(plan, "ckpt.1/rank_007.dat", 7, "ckpt.1", &entry, &tied),
                 SCR_CRIT_OK);
    CHECK(entry == 0 && tied == 1);
    CHECK_STATUS(scr_crit_plan_match(plan, "ckpt.1/rank_007.dat", 8, NULL, &entry, &tied),
                 SCR_CRIT_OK);
    CHECK(entry == 1 && tied == 0);
    CHECK_STATUS(scr_crit_plan_match(plan, "x", 0, NULL, &entry, NULL), SCR_CRIT_OK);
    CHECK_STATUS(scr_crit_plan_match(plan, "x", -2, NULL, &entry, NULL), SCR_CRIT_ERR_ARG);
    CHECK_STATUS(scr_crit_plan_match(plan, NULL, 0, NULL, &entry, NULL), SCR_CRIT_ERR_ARG);
}

static void no_match_is_said(void)
{
    plan_builder *builder = calloc(1, sizeof *builder);
    scr_crit_plan *plan = NULL;
    uint32_t entry = 99;
    uint8_t *bytes;
    size_t size;

    builder_entry(builder, "a");
    bytes = builder_finish(builder, &size);
    CHECK_STATUS(scr_crit_plan_open_memory(bytes, size, &plan), SCR_CRIT_OK);
    CHECK_STATUS(scr_crit_plan_match(plan, "dir/b", 0, NULL, &entry, NULL), SCR_CRIT_ERR_NOMATCH);
    CHECK(entry == 99);
    CHECK(strstr(scr_crit_last_error(), "dir/b") != NULL);
    scr_crit_plan_close(plan);
    free(bytes);
    free(builder);
}

/* ---- Files ------------------------------------------------------------------------------------
 */

static void files_are_opened_like_memory(const uint8_t *bytes, size_t size)
{
    scr_crit_plan *plan = NULL;

    scratch_write("plan", bytes, size);
    CHECK_STATUS(scr_crit_plan_open("plan", &plan), SCR_CRIT_OK);
    the_sample_says_what_was_put_in(plan, size);
    /* Whoever writes into the file does not change an open plan, nor take its pages away. */
    CHECK(truncate("plan", 0) == 0);
    the_sample_says_what_was_put_in(plan, size);
    scr_crit_plan_close(plan);
    CHECK_STATUS(scr_crit_plan_open("plan", &plan), SCR_CRIT_ERR_FORMAT);
    CHECK(strncmp(scr_crit_last_error(), "plan: ", 6) == 0);
    CHECK_STATUS(scr_crit_plan_open("missing", &plan), SCR_CRIT_ERR_IO);
    CHECK_U64(scr_crit_last_errno(), ENOENT);
    CHECK_STATUS(scr_crit_plan_open(".", &plan), SCR_CRIT_ERR_FORMAT);
    CHECK(mkfifo("pipe", 0600) == 0);
    CHECK_STATUS(scr_crit_plan_open("pipe", &plan), SCR_CRIT_ERR_FORMAT); /* and does not wait */
    CHECK_STATUS(scr_crit_plan_open(NULL, &plan), SCR_CRIT_ERR_ARG);
    CHECK_STATUS(scr_crit_plan_open("plan", NULL), SCR_CRIT_ERR_ARG);
    scr_crit_plan_close(NULL);
}

/* The core's reads come here: a file can be truncated between the look at its size and them. */
static const char *truncated_before_read;

ssize_t pread(int fd, void *buffer, size_t size, off_t offset)
{
    struct iovec piece = {buffer, size};

    if (truncated_before_read != NULL)
        CHECK(truncate(truncated_before_read, 200) == 0);
    return preadv(fd, &piece, 1, offset);
}

static void truncation_under_the_reader_is_an_error(const uint8_t *bytes, size_t size)
{
    scr_crit_plan *plan = NULL;

    scratch_write("plan", bytes, size);
    truncated_before_read = "plan";
    CHECK_STATUS(scr_crit_plan_open("plan", &plan), SCR_CRIT_ERR_FORMAT);
    truncated_before_read = NULL;
    CHECK(strstr(scr_crit_last_error(), "ends at offset 200") != NULL);
    CHECK(plan == NULL);
}

/* A plan with a bitmap of this many bytes, all zero, in a file "large". */
static void write_large(size_t bitmap_bytes)
{
    const uint64_t bits = 8 * (uint64_t)bitmap_bytes;
    uint8_t program[16] = {CRIT_OP_BITMAP, 1};
    const size_t head = 2 + crit_varint_store(program + 2, bits);
    plan_builder *builder = calloc(1, sizeof *builder);
    uint8_t *bytes, *grown, *row;
    size_t size;

    builder_entry(builder, "a");
    builder_program(builder, SCR_CRIT_SECTION_RAW, "r", program, 0, bits, 0);
    builder_fixed(builder, 1);
    bytes = builder_finish(builder, &size);
    grown = calloc(1, size + head + bitmap_bytes);
    memcpy(grown, bytes, size);
    memcpy(grown + size, program, head); /* behind the blob, whose last piece it is */
    row = grown + CRIT_PLAN_HEADER_SIZE + crit_plan_row_size[CRIT_PLAN_ENTRIES];
    crit_store_u32(row + 60, (uint32_t)(head + bitmap_bytes));
    crit_store_u32(grown + 52, crit_load_u32(grown + 52) + (uint32_t)(head + bitmap_bytes));
    size += head + bitmap_bytes;
    crit_store_u64(grown + 16, size);
    builder_seal(grown, size);
    scratch_write("large", grown, size);
    free(grown);
    free(bytes);
    free(builder);
}

/* Up to 64 MiB a plan is held in memory; beyond, it stays mapped. */
static void large_plans_are_opened(void)
{
    static const size_t mib[] = {2, 65};

    for (int i = 0; i < 2; i++) {
        scr_crit_section_info section;
        scr_crit_plan *plan = NULL;

        write_large(mib[i] << 20);
        CHECK_STATUS(scr_crit_plan_open("large", &plan), SCR_CRIT_OK);
        if (mib[i] < 64)
            CHECK(truncate("large", 0) == 0);
        CHECK_STATUS(scr_crit_plan_section(plan, 0, 0, &section), SCR_CRIT_OK);
        CHECK_U64(section.unit_bytes, mib[i] << 23);
        CHECK_U64(section.unit_kept, 0);
        CHECK(strcmp(section.name, "r") == 0);
        scr_crit_plan_close(plan);
    }
}
/* ---- What is refused --------------------------------------------------------------------------
 */

/* Where a table's row lies in the sample. */
static size_t row_at(const uint8_t *plan, enum crit_plan_table table, uint32_t index)
{
    size_t at = CRIT_PLAN_HEADER_SIZE;

    for (int before = 0; before < (int)table; before++)
        at += crit_load_u32(plan + 24 + 4 * before) * crit_plan_row_size[before];
    return at + index * crit_plan_row_size[table];
}

struct damage {
    enum crit_plan_table table;
    uint32_t row;
    uint32_t field;
    uint32_t size; /* 1, 4 or 8 */
    uint64_t value;
};

/* One field of the sample is set, with right checksums: each must be refused, with an offset in the
 * plan. */
static void bad_rows_are_refused(const uint8_t *sample, size_t size)
{
    static const struct damage damages[] = {
        {CRIT_PLAN_ENTRIES, 0, 0, 4, 1},          /* pattern begins elsewhere */
        {CRIT_PLAN_ENTRIES, 0, 4, 4, UINT32_MAX}, /* and is longer than the blob */
        {CRIT_PLAN_ENTRIES, 0, 8, 4, 1},          /* flags */
        {CRIT_PLAN_ENTRIES, 0, 12, 4, 1},         /* reserved */
        {CRIT_PLAN_ENTRIES, 0, 16, 4, 1},         /* sections of another entry */
        {CRIT_PLAN_ENTRIES, 0, 20, 4, 5},         /* the next entry's section */
        {CRIT_PLAN_ENTRIES, 0, 20, 4, UINT32_MAX},
        {CRIT_PLAN_ENTRIES, 1, 28, 4, 1},                 /* a guard that is not there */
        {CRIT_PLAN_ENTRIES, 0, 40, 8, UINT64_MAX},        /* min_bytes above max_bytes */
        {CRIT_PLAN_ENTRIES, 0, 48, 8, UINT64_C(1) << 63}, /* max_bytes */
        {CRIT_PLAN_ENTRIES, 0, 56, 8, 1},                 /* reserved */
        {CRIT_PLAN_SECTIONS, 1, 0, 4, 4},                 /* kind */
        {CRIT_PLAN_SECTIONS, 1, 4, 4, 4},                 /* evidence */
        {CRIT_PLAN_SECTIONS, 1, 4, 4, 2},                 /* observed, without numbers */
        {CRIT_PLAN_SECTIONS, 1, 8, 4, 1},                 /* checkpoints without "observed" */
        {CRIT_PLAN_SECTIONS, 1, 12, 4, 1},                /* phases */
        {CRIT_PLAN_SECTIONS, 1, 16, 4, 0},                /* type_size */
        {CRIT_PLAN_SECTIONS, 0, 16, 4, 2},                /* bytes of two bytes */
        {CRIT_PLAN_SECTIONS, 1, 20, 4, 2},                /* order */
        {CRIT_PLAN_SECTIONS, 2, 20, 4, 1},                /* a record in Fortran order */
        {CRIT_PLAN_SECTIONS, 1, 24, 4, 33},               /* dims */
        {CRIT_PLAN_SECTIONS, 1, 24, 4, UINT32_MAX},
        {CRIT_PLAN_SECTIONS, 0, 24, 4, 1},    /* bytes with an axis */
        {CRIT_PLAN_SECTIONS, 1, 28, 4, 4097}, /* boxes */
        {CRIT_PLAN_SECTIONS, 1, 28, 4, UINT32_MAX},
        {CRIT_PLAN_SECTIONS, 1, 32, 4, 0},        /* first_number */
        {CRIT_PLAN_SECTIONS, 1, 36, 4, 1},        /* first_axis */
        {CRIT_PLAN_SECTIONS, 2, 60, 4, 0},        /* a record without program */
        {CRIT_PLAN_SECTIONS, 2, 64, 8, 111},      /* unit_bytes */
        {CRIT_PLAN_SECTIONS, 2, 72, 8, 88},       /* unit_kept */
        {CRIT_PLAN_SECTIONS, 0, 64, 8, 2},        /* bytes of two bytes */
        {CRIT_PLAN_SECTIONS, 1, 72, 8, 1},        /* an array's unit_kept */
        {CRIT_PLAN_SECTIONS, 1, 80, 8, 1},        /* reserved */
        {CRIT_PLAN_NUMBERS, 0, 0, 1, 3},          /* source */
        {CRIT_PLAN_NUMBERS, 0, 1, 1, 4},          /* a fixed number with a width */
        {CRIT_PLAN_NUMBERS, 0, 8, 8, UINT64_MAX}, /* -1 */
        {CRIT_PLAN_NUMBERS, 0, 16, 8, 1},         /* a fixed number with a summand */
        {CRIT_PLAN_NUMBERS, 1, 1, 1, 3},          /* width */
        {CRIT_PLAN_NUMBERS, 1, 2, 1, 2},          /* signed */
        {CRIT_PLAN_NUMBERS, 1, 3, 1, 2},          /* big-endian */
        {CRIT_PLAN_NUMBERS, 1, 8, 8, 0},          /* factor */
        {CRIT_PLAN_NUMBERS, 3, 4, 4, 2},          /* stands behind its own section */
        {CRIT_PLAN_NUMBERS, 3, 4, 4, UINT32_MAX - 1},
        {CRIT_PLAN_NUMBERS, 5, 8, 8, 1},              /* solved, with a value */
        {CRIT_PLAN_NUMBERS, 6, 0, 1, CRIT_PLAN_SIZE}, /* a second solved one; has a value too */
        {CRIT_PLAN_AXES, 0, 16, 8, 0},                /* step */
        {CRIT_PLAN_AXES, 0, 16, 8, UINT64_C(1) << 63},
        {CRIT_PLAN_AXES, 0, 24, 4, 4},         /* flags */
        {CRIT_PLAN_AXES, 0, 28, 4, 1},         /* reserved */
        {CRIT_PLAN_AXES, 0, 0, 8, UINT64_MAX}, /* start -1, from the start */
        {CRIT_PLAN_AXES, 0, 8, 8, 1},          /* stop 1 beyond the end */
        {CRIT_PLAN_AXES, 0, 0, 8, 6},          /* start behind stop: the length is fixed */
        {CRIT_PLAN_AXES, 3, 8, 8, 7},          /* stop beyond a fixed length */
        {CRIT_PLAN_GUARDS, 0, 4, 4, 0},        /* no bytes */
        {CRIT_PLAN_GUARDS, 0, 8, 4, 4},        /* base */
        {CRIT_PLAN_GUARDS, 0, 12, 4, 1},       /* reserved */
        {CRIT_PLAN_FIELDS, 0, 0, 4, 2},        /* kind */
        {CRIT_PLAN_FIELDS, 0, 4, 4, 0},        /* places */
        {CRIT_PLAN_FIELDS, 0, 4, 4, 3},
        {CRIT_PLAN_FIELDS, 0, 8, 4, 5}, /* bases */
        {CRIT_PLAN_FIELDS, 0, 12, 4, 5},
        {CRIT_PLAN_FIELDS, 0, 16, 4, 5},
        {CRIT_PLAN_FIELDS, 0, 20, 4, 1}, /* a second place */
        {CRIT_PLAN_FIELDS, 0, 48, 8, 1},
        {CRIT_PLAN_FIELDS, 0, 56, 8, 1}, /* reserved */
        {CRIT_PLAN_FACTS, 0, 4, 4, 0},   /* an empty key */
        {CRIT_PLAN_FACTS, 1, 12, 4, 1},  /* a value beyond the blob */
    };

    for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
        const struct damage *d = &damages[i];
        uint8_t *bytes = malloc(size), *field;
        scr_crit_plan *plan = NULL;

        memcpy(bytes, sample, size);
        field = bytes + row_at(sample, d->table, d->row) + d->field;
        if (d->size == 8)
            crit_store_u64(field, d->value);
        else if (d->size == 4)
            crit_store_u32(field, (uint32_t)d->value);
        else
            *field = (uint8_t)d->value;
        builder_seal(bytes, size);
        CHECK_STATUS(scr_crit_plan_open_memory(bytes, size, &plan), SCR_CRIT_ERR_FORMAT);
        CHECK(scr_crit_last_offset() >= 0 && (uint64_t)scr_crit_last_offset() < size);
        if (plan != NULL)
            fprintf(stderr, "  damage %zu: %s %" PRIu32 ", field %" PRIu32 "\n", i,
                    crit_plan_row_name[d->table], d->row, d->field);
        scr_crit_plan_close(plan);
        free(bytes);
    }
}

/* The same for single bytes that are found by their text. */
static void bad_strings_are_refused(const uint8_t *sample, size_t size)
{
    static const struct {
        const char *text;
        size_t at;
        uint8_t byte;
    } damages[] = {
        {"{dataset}/rank", 8, 'x'},                  /* pattern: unclosed brace */
        {"{dataset}/rank", 0, 0},                    /* a zero in it */
        {"particles", 2, 0xff},                      /* no UTF-8 */
        {"particles", 9, 'x'},                       /* no terminator */
        {"sample", 6, 'x'},         {"caf", 4, 'x'}, /* a sequence cut short */
    };

    for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
        uint8_t *bytes = malloc(size);
        scr_crit_plan *plan = NULL;
        uint8_t *text;

        memcpy(bytes, sample, size);
        text = memmem(bytes, size, damages[i].text, strlen(damages[i].text));
        CHECK(text != NULL);
        text[damages[i].at] = damages[i].byte;
        builder_seal(bytes, size);
        CHECK_STATUS(scr_crit_plan_open_memory(bytes, size, &plan), SCR_CRIT_ERR_FORMAT);
        free(bytes);
    }
}

static void bad_headers_are_refused(const uint8_t *sample, size_t size)
{
    static const struct {
        size_t at;
        uint32_t value;
        int status;
    } damages[] = {
        {0, 0, SCR_CRIT_ERR_FORMAT},           {8, 2, SCR_CRIT_ERR_VERSION},
        {8, 0, SCR_CRIT_ERR_FORMAT},           {8, UINT32_MAX, SCR_CRIT_ERR_VERSION},
        {12, 127, SCR_CRIT_ERR_FORMAT},        {16, 0, SCR_CRIT_ERR_FORMAT},
        {20, 1, SCR_CRIT_ERR_FORMAT},          {24, UINT32_MAX, SCR_CRIT_ERR_FORMAT},
        {28, UINT32_MAX, SCR_CRIT_ERR_FORMAT}, {52, UINT32_MAX, SCR_CRIT_ERR_FORMAT},
        {76, 1, SCR_CRIT_ERR_FORMAT},          {120, 1, SCR_CRIT_ERR_FORMAT},
    };
    uint8_t *bytes = malloc(size + 1);
    scr_crit_plan *plan = NULL;

    for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
        memcpy(bytes, sample, size);
        crit_store_u32(bytes + damages[i].at, damages[i].value);
        builder_seal(bytes, size);
        CHECK_STATUS(scr_crit_plan_open_memory(bytes, size, &plan), damages[i].status);
    }
    memcpy(bytes, sample, size);
    bytes[size] = 0;
    CHECK_STATUS(scr_crit_plan_open_memory(bytes, size + 1, &plan), SCR_CRIT_ERR_FORMAT);
    CHECK_STATUS(scr_crit_plan_open_memory(NULL, 0, &plan), SCR_CRIT_ERR_FORMAT);
    CHECK_STATUS(scr_crit_plan_open_memory(NULL, 1, &plan), SCR_CRIT_ERR_ARG);
    CHECK(plan == NULL);
    free(bytes);
}

int main(void)
{
    size_t size;
    uint8_t *sample = builder_sample(&size);
    scr_crit_plan *plan = NULL;

    scratch_enter();
    CHECK_STATUS(scr_crit_plan_open_memory(sample, size, &plan), SCR_CRIT_OK);
    if (plan != NULL) {
        the_sample_says_what_was_put_in(plan, size);
        indices_are_checked(plan);
        the_first_matching_entry_is_the_files(plan);
        scr_crit_plan_close(plan);
    }
    no_match_is_said();
    files_are_opened_like_memory(sample, size);
    truncation_under_the_reader_is_an_error(sample, size);
    large_plans_are_opened();
    bad_rows_are_refused(sample, size);
    bad_strings_are_refused(sample, size);
    bad_headers_are_refused(sample, size);
    free(sample);
    scratch_leave();
    return check_result();
}
