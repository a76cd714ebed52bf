/* plan_builder.h - plans for C tests, row by row, independent of the Python writer (docs/format.md,
 * section 3).
 *
 * Rows are added in the format's order: an entry, its sections each followed by their numbers and
 * axes, its guards and checksum fields. Nothing is checked: tests build bad plans too.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef PLAN_BUILDER_H
#define PLAN_BUILDER_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "checksums.h"
#include "plan_rows.h"
#include "program.h"
#include "scr_crit.h"

enum { BUILDER_ROOM = 8192 };

typedef struct plan_builder {
    uint8_t rows[CRIT_PLAN_TABLES][BUILDER_ROOM];
    uint32_t count[CRIT_PLAN_TABLES];
    /* The blob's pieces by the table that refers to them: they are joined in that order. */
    uint8_t pieces[CRIT_PLAN_TABLES][BUILDER_ROOM];
    uint32_t piece_bytes[CRIT_PLAN_TABLES];
} plan_builder;

static inline uint8_t *builder_row(plan_builder *builder, enum crit_plan_table table)
{
    return builder->rows[table] + builder->count[table]++ * crit_plan_row_size[table];
}

/* Add a piece and write its reference; `at` is completed by builder_finish. */
static inline void builder_refer(plan_builder *builder, enum crit_plan_table table,
                                 uint8_t *reference, const void *bytes, uint32_t size,
                                 uint32_t terminator)
{
    crit_store_u32(reference, builder->piece_bytes[table]);
    crit_store_u32(reference + 4, size);
    if (size > 0)
        memcpy(builder->pieces[table] + builder->piece_bytes[table], bytes, size);
    builder->piece_bytes[table] +=
        size + terminator; /* the terminator is there: zero-initialised */
}

static inline void builder_string(plan_builder *builder, enum crit_plan_table table,
                                  uint8_t *reference, const char *text)
{
    builder_refer(builder, table, reference, text, (uint32_t)strlen(text), 1);
}

/* An entry that owns what is added until the next one. */
static inline void builder_entry(plan_builder *builder, const char *pattern)
{
    uint8_t *row = builder_row(builder, CRIT_PLAN_ENTRIES);

    builder_string(builder, CRIT_PLAN_ENTRIES, row, pattern);
    crit_store_u32(row + 16, builder->count[CRIT_PLAN_SECTIONS]);
    crit_store_u32(row + 24, builder->count[CRIT_PLAN_GUARDS]);
    crit_store_u32(row + 32, builder->count[CRIT_PLAN_FIELDS]);
    crit_store_u64(row + 48, INT64_MAX);
}

static inline uint8_t *builder_last(plan_builder *builder, enum crit_plan_table table)
{
    return builder->rows[table] + (builder->count[table] - 1) * crit_plan_row_size[table];
}

static inline void builder_raise(uint8_t *field)
{
    crit_store_u32(field, crit_load_u32(field) + 1);
}

static inline uint8_t *builder_section(plan_builder *builder, uint32_t kind, const char *name,
                                       const void *program, uint32_t program_size)
{
    uint8_t *row = builder_row(builder, CRIT_PLAN_SECTIONS);

    builder_raise(builder_last(builder, CRIT_PLAN_ENTRIES) + 20);
    crit_store_u32(row, kind);
    crit_store_u32(row + 16, 1);
    crit_store_u32(row + 32, builder->count[CRIT_PLAN_NUMBERS]);
    crit_store_u32(row + 36, builder->count[CRIT_PLAN_AXES]);
    builder_string(builder, CRIT_PLAN_SECTIONS, row + 40, name);
    builder_string(builder, CRIT_PLAN_SECTIONS, row + 48, "rule");
    builder_refer(builder, CRIT_PLAN_SECTIONS, row + 56, program, program_size, 0);
    return row;
}

/* Bytes kept whole; its count is the next number added. */
static inline void builder_keep(plan_builder *builder, const char *name)
{
    uint8_t *row = builder_section(builder, SCR_CRIT_SECTION_KEEP, name, NULL, 0);

    crit_store_u64(row + 64, 1);
    crit_store_u64(row + 72, 1);
}

static inline void builder_program(plan_builder *builder, uint32_t kind, const char *name,
                                   const void *program, uint32_t size, uint64_t bytes,
                                   uint64_t kept)
{
    uint8_t *row = builder_section(builder, kind, name, program, size);

    crit_store_u64(row + 64, bytes);
    crit_store_u64(row + 72, kept);
}

/* An array; its count and lengths are the next numbers, its boxes the next axes. */
static inline void builder_array(plan_builder *builder, const char *name, uint32_t type_size,
                                 uint32_t order, uint32_t dims, uint32_t boxes)
{
    uint8_t *row = builder_section(builder, SCR_CRIT_SECTION_ARRAY, name, NULL, 0);

    crit_store_u32(row + 16, type_size);
    crit_store_u32(row + 20, order);
    crit_store_u32(row + 24, dims);
    crit_store_u32(row + 28, boxes);
}

static inline void builder_fixed(plan_builder *builder, int64_t value)
{
    uint8_t *row = builder_row(builder, CRIT_PLAN_NUMBERS);

    row[0] = CRIT_PLAN_FIXED;
    crit_store_u64(row + 8, (uint64_t)value);
}

static inline void builder_solved(plan_builder *builder)
{
    builder_row(builder, CRIT_PLAN_NUMBERS)[0] = CRIT_PLAN_SIZE;
}

static inline void builder_integer(plan_builder *builder, uint8_t width, uint8_t is_signed,
                                   uint8_t big_endian, uint32_t base, uint64_t offset,
                                   int64_t factor, int64_t add)
{
    uint8_t *row = builder_row(builder, CRIT_PLAN_NUMBERS);

    row[0] = CRIT_PLAN_INT;
    row[1] = width;
    row[2] = is_signed;
    row[3] = big_endian;
    crit_store_u32(row + 4, base);
    crit_store_u64(row + 8, (uint64_t)factor);
    crit_store_u64(row + 16, (uint64_t)add);
    crit_store_u64(row + 24, offset);
}

static inline void builder_axis(plan_builder *builder, int64_t start, int64_t stop, uint64_t step,
                                uint32_t flags)
{
    uint8_t *row = builder_row(builder, CRIT_PLAN_AXES);

    crit_store_u64(row, (uint64_t)start);
    crit_store_u64(row + 8, (uint64_t)stop);
    crit_store_u64(row + 16, step);
    crit_store_u32(row + 24, flags);
}

static inline void builder_guard(plan_builder *builder, uint32_t base, uint64_t offset,
                                 const void *bytes, uint32_t size)
{
    uint8_t *row = builder_row(builder, CRIT_PLAN_GUARDS);

    builder_raise(builder_last(builder, CRIT_PLAN_ENTRIES) + 28);
    builder_refer(builder, CRIT_PLAN_GUARDS, row, bytes, size, 0);
    crit_store_u32(row + 8, base);
    crit_store_u64(row + 16, offset);
}

static inline void builder_field(plan_builder *builder, crit_plan_place start, crit_plan_place stop,
                                 crit_plan_place place)
{
    uint8_t *row = builder_row(builder, CRIT_PLAN_FIELDS);

    builder_raise(builder_last(builder, CRIT_PLAN_ENTRIES) + 36);
    crit_store_u32(row, CRIT_FIELD_CRC32);
    crit_store_u32(row + 4, 1);
    crit_store_u32(row + 8, start.base);
    crit_store_u32(row + 12, stop.base);
    crit_store_u32(row + 16, place.base);
    crit_store_u64(row + 24, start.offset);
    crit_store_u64(row + 32, stop.offset);
    crit_store_u64(row + 40, place.offset);
}

static inline void builder_fact(plan_builder *builder, const char *key, const char *value)
{
    uint8_t *row = builder_row(builder, CRIT_PLAN_FACTS);

    builder_string(builder, CRIT_PLAN_FACTS, row, key);
    builder_string(builder, CRIT_PLAN_FACTS, row + 8, value);
}

/* Make both checksums of a plan right, whatever else is wrong with it. */
static inline void builder_seal(uint8_t *plan, size_t size)
{
    if (size < CRIT_PLAN_HEADER_SIZE)
        return;
    crit_store_u32(plan + 72,
                   scr_crit_crc32c(0, plan + CRIT_PLAN_HEADER_SIZE, size - CRIT_PLAN_HEADER_SIZE));
    crit_store_u32(plan + CRIT_PLAN_CRC_COVERS, scr_crit_crc32c(0, plan, CRIT_PLAN_CRC_COVERS));
}

/* Offset of the reference fields in the rows of each table. */
static inline void builder_shift_references(plan_builder *builder, enum crit_plan_table table,
                                            uint32_t shift)
{
    static const int8_t references[CRIT_PLAN_TABLES][4] = {
        [CRIT_PLAN_ENTRIES] = {0, -1}, [CRIT_PLAN_SECTIONS] = {40, 48, 56, -1},
        [CRIT_PLAN_NUMBERS] = {-1},    [CRIT_PLAN_AXES] = {-1},
        [CRIT_PLAN_GUARDS] = {0, -1},  [CRIT_PLAN_FIELDS] = {-1},
        [CRIT_PLAN_FACTS] = {0, 8, -1}};

    for (uint32_t row = 0; row < builder->count[table]; row++)
        for (int i = 0; references[table][i] >= 0; i++) {
            uint8_t *at =
                builder->rows[table] + row * crit_plan_row_size[table] + references[table][i];
            crit_store_u32(at, crit_load_u32(at) + shift);
        }
}

/* The plan's bytes, allocated; the builder cannot be used again. */
static inline uint8_t *builder_finish(plan_builder *builder, size_t *size)
{
    static const uint8_t mark[8] = {0x89, 'S', 'C', 'R', 'L', 0x0D, 0x0A, 0x1A};
    uint32_t blob_size = 0;
    uint8_t *plan, *next;

    *size = CRIT_PLAN_HEADER_SIZE;
    for (int table = 0; table < CRIT_PLAN_TABLES; table++) {
        builder_shift_references(builder, (enum crit_plan_table)table, blob_size);
        blob_size += builder->piece_bytes[table];
        *size += builder->count[table] * crit_plan_row_size[table];
    }
    *size += blob_size;
    plan = calloc(1, *size);
    memcpy(plan, mark, sizeof mark);
    crit_store_u32(plan + 8, CRIT_PLAN_VERSION);
    crit_store_u32(plan + 12, CRIT_PLAN_HEADER_SIZE);
    crit_store_u64(plan + 16, *size);
    next = plan + CRIT_PLAN_HEADER_SIZE;
    for (int table = 0; table < CRIT_PLAN_TABLES; table++) {
        size_t bytes = builder->count[table] * crit_plan_row_size[table];
        crit_store_u32(plan + 24 + 4 * table, builder->count[table]);
        memcpy(next, builder->rows[table], bytes);
        next += bytes;
    }
    crit_store_u32(plan + 52, blob_size);
    for (int table = 0; table < CRIT_PLAN_TABLES; table++) {
        memcpy(next, builder->pieces[table], builder->piece_bytes[table]);
        next += builder->piece_bytes[table];
    }
    builder_seal(plan, *size);
    return plan;
}

/* A plan with one of everything: an entry with a header that guards and counts, an array of boxes,
 * records, raw runs, a solved rest, a checksum field; a second entry; facts. */
static inline uint8_t *builder_sample(size_t *size)
{
    static const uint8_t record[] = {CRIT_OP_KEEP, 24, CRIT_OP_DROP, 25, CRIT_OP_KEEP, 63};
    static const uint8_t raw[] = {CRIT_OP_RUNS, 0, 4, 4, 3, 5, 2, 6};
    plan_builder *builder = calloc(1, sizeof *builder);
    uint8_t *plan;

    builder_entry(builder, "{dataset}/rank_{rank}.dat");
    builder_keep(builder, "header");
    builder_fixed(builder, 24);
    builder_array(builder, "u", 8, 0, 3, 2);
    builder_integer(builder, 4, 1, 0, CRIT_PLAN_BASE_FILE, 8, 1, 0);
    builder_fixed(builder, 6);
    builder_integer(builder, 2, 0, 1, 0, 12, 2, -1);
    builder_fixed(builder, 4);
    for (int axis = 0; axis < 3; axis++)
        builder_axis(builder, 1, -1, 1, CRIT_PLAN_STOP_FROM_END);
    builder_axis(builder, 0, 1, 1, 0);
    builder_axis(builder, 0, 0, 2, CRIT_PLAN_STOP_FROM_END);
    builder_axis(builder, -1, 0, 1, CRIT_PLAN_START_FROM_END | CRIT_PLAN_STOP_FROM_END);
    builder_program(builder, SCR_CRIT_SECTION_RECORD, "particles", record, sizeof record, 112, 87);
    builder_solved(builder);
    builder_program(builder, SCR_CRIT_SECTION_RAW, "work", raw, sizeof raw, 16, 11);
    builder_fixed(builder, 1);
    builder_guard(builder, CRIT_PLAN_BASE_FILE, 0, "MAGIC\0\1\2", 8);
    builder_field(builder, (crit_plan_place){1, 0}, (crit_plan_place){2, 0},
                  (crit_plan_place){0, 20});
    builder_entry(builder, "**");
    builder_keep(builder, "all");
    builder_solved(builder);
    builder_fact(builder, "map.program", "sample");
    builder_fact(builder, "caf\xc3\xa9", "");
    plan = builder_finish(builder, size);
    free(builder);
    return plan;
}

#endif
