/* plan_rows.h - a plan's tables and their rows, decoded (docs/format.md, section 3).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The structures mirror the rows of the file field by field. Decoding checks nothing: plan_check.c
 * does, once, when a plan is opened. May use bytes.h. Tests: tests/c/test_plan_open.c.
 */
#ifndef CRIT_PLAN_ROWS_H
#define CRIT_PLAN_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "scr_crit.h"

enum {
    CRIT_PLAN_VERSION = 1,
    CRIT_PLAN_HEADER_SIZE = 128,
    CRIT_PLAN_CRC_COVERS = 124, /* bytes of the header under header_crc */
    CRIT_PLAN_MAX_DIMS = 32,
    CRIT_PLAN_MAX_BOXES = 4096,
    /* A unit's own loops; the section's count is one more. */
    CRIT_PLAN_UNIT_DEPTH = 15
};

#define CRIT_PLAN_BASE_FILE UINT32_MAX /* a place that counts from the start of the file */

enum crit_plan_table {
    CRIT_PLAN_ENTRIES,
    CRIT_PLAN_SECTIONS,
    CRIT_PLAN_NUMBERS,
    CRIT_PLAN_AXES,
    CRIT_PLAN_GUARDS,
    CRIT_PLAN_FIELDS,
    CRIT_PLAN_FACTS,
    CRIT_PLAN_TABLES
};

enum crit_plan_source { CRIT_PLAN_FIXED, CRIT_PLAN_SIZE, CRIT_PLAN_INT };

enum { CRIT_PLAN_START_FROM_END = 1, CRIT_PLAN_STOP_FROM_END = 2 }; /* flags of an axis */

/* An open plan. */
struct scr_crit_plan {
    const uint8_t *bytes; /* owned: allocated, or mapped where too large for that */
    size_t size;
    bool mapped;
    uint32_t rows[CRIT_PLAN_TABLES];        /* number of rows a table has */
    const uint8_t *table[CRIT_PLAN_TABLES]; /* its first row */
    const uint8_t *blob;
    uint32_t blob_size;
};

typedef struct crit_plan_header {
    uint8_t mark[8];
    uint32_t version;
    uint32_t header_size;
    uint64_t file_size;
    uint32_t rows[CRIT_PLAN_TABLES];
    uint32_t blob_size;
    uint8_t digest[16];
    uint32_t body_crc;
    uint32_t header_crc;
} crit_plan_header;

typedef struct crit_plan_reference {
    uint32_t at;
    uint32_t size;
} crit_plan_reference;

typedef struct crit_plan_entry {
    crit_plan_reference pattern;
    uint32_t flags;
    uint32_t first_section, sections;
    uint32_t first_guard, guards;
    uint32_t first_field, fields;
    uint64_t min_bytes, max_bytes;
} crit_plan_entry;

typedef struct crit_plan_section {
    uint32_t kind;
    uint32_t evidence;
    uint32_t checkpoints, phases;
    uint32_t type_size;
    uint32_t order;
    uint32_t dims;
    uint32_t boxes;
    uint32_t first_number;
    uint32_t first_axis;
    crit_plan_reference name, rule, program;
    uint64_t unit_bytes, unit_kept;
} crit_plan_section;

typedef struct crit_plan_number {
    uint8_t source, width, is_signed, big_endian;
    uint32_t base;
    int64_t value;
    int64_t add;
    uint64_t offset;
} crit_plan_number;

typedef struct crit_plan_axis {
    int64_t start, stop;
    uint64_t step;
    uint32_t flags;
} crit_plan_axis;

typedef struct crit_plan_guard {
    crit_plan_reference bytes;
    uint32_t base;
    uint64_t offset;
} crit_plan_guard;

/* A place in the checkpoint file. */
typedef struct crit_plan_place {
    uint32_t base;
    uint64_t offset;
} crit_plan_place;

typedef struct crit_plan_field {
    uint32_t kind;
    uint32_t places;
    crit_plan_place start, stop; /* of the covered bytes */
    crit_plan_place place[2];    /* of the field itself */
} crit_plan_field;

typedef struct crit_plan_fact {
    crit_plan_reference key, value;
} crit_plan_fact;

/* Bytes of a row of each table. */
extern const uint32_t crit_plan_row_size[CRIT_PLAN_TABLES];

/* What a row of each table is called in messages. */
extern const char *const crit_plan_row_name[CRIT_PLAN_TABLES];

/* Decode the header; bytes holds at least CRIT_PLAN_HEADER_SIZE. */
void crit_plan_read_header(const uint8_t *bytes, crit_plan_header *header);

/* Find the tables of a plan whose bytes and size are set and agree with the header. */
void crit_plan_find_tables(scr_crit_plan *plan, const crit_plan_header *header);

/* Where a row lies; index must be below plan->rows[table]. */
const uint8_t *crit_plan_row(const scr_crit_plan *plan, enum crit_plan_table table, uint32_t index);

/* Its offset in the plan, for messages. */
int64_t crit_plan_row_offset(const scr_crit_plan *plan, enum crit_plan_table table, uint32_t index);

/* Decode a row; index must be below plan->rows[...]. */
crit_plan_entry crit_plan_read_entry(const scr_crit_plan *plan, uint32_t index);
crit_plan_section crit_plan_read_section(const scr_crit_plan *plan, uint32_t index);
crit_plan_number crit_plan_read_number(const scr_crit_plan *plan, uint32_t index);
crit_plan_axis crit_plan_read_axis(const scr_crit_plan *plan, uint32_t index);
crit_plan_guard crit_plan_read_guard(const scr_crit_plan *plan, uint32_t index);
crit_plan_field crit_plan_read_field(const scr_crit_plan *plan, uint32_t index);
crit_plan_fact crit_plan_read_fact(const scr_crit_plan *plan, uint32_t index);

/* What a reference of a validated plan points to. */
const char *crit_plan_string(const scr_crit_plan *plan, crit_plan_reference reference);
const uint8_t *crit_plan_bytes(const scr_crit_plan *plan, crit_plan_reference reference);

#endif
