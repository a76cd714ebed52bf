/* plan_rows.c - see plan_rows.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "plan_rows.h"

#include <string.h>

#include "bytes.h"

const uint32_t crit_plan_row_size[CRIT_PLAN_TABLES] = {64, 96, 32, 32, 24, 64, 16};

const char *const crit_plan_row_name[CRIT_PLAN_TABLES] = {
    "entry", "section", "number", "axis", "guard", "checksum field", "fact"};

static crit_plan_reference reference_at(const uint8_t *bytes)
{
    return (crit_plan_reference){.at = crit_load_u32(bytes), .size = crit_load_u32(bytes + 4)};
}

void crit_plan_read_header(const uint8_t *bytes, crit_plan_header *header)
{
    memcpy(header->mark, bytes, sizeof header->mark);
    header->version = crit_load_u32(bytes + 8);
    header->header_size = crit_load_u32(bytes + 12);
    header->file_size = crit_load_u64(bytes + 16);
    for (int table = 0; table < CRIT_PLAN_TABLES; table++)
        header->rows[table] = crit_load_u32(bytes + 24 + 4 * table);
    header->blob_size = crit_load_u32(bytes + 52);
    memcpy(header->digest, bytes + 56, sizeof header->digest);
    header->body_crc = crit_load_u32(bytes + 72);
    header->header_crc = crit_load_u32(bytes + CRIT_PLAN_CRC_COVERS);
}

void crit_plan_find_tables(scr_crit_plan *plan, const crit_plan_header *header)
{
    const uint8_t *next = plan->bytes + CRIT_PLAN_HEADER_SIZE;

    for (int table = 0; table < CRIT_PLAN_TABLES; table++) {
        plan->rows[table] = header->rows[table];
        plan->table[table] = next;
        next += (size_t)header->rows[table] * crit_plan_row_size[table];
    }
    plan->blob = next;
    plan->blob_size = header->blob_size;
}

const uint8_t *crit_plan_row(const scr_crit_plan *plan, enum crit_plan_table table, uint32_t index)
{
    return plan->table[table] + (size_t)index * crit_plan_row_size[table];
}

int64_t crit_plan_row_offset(const scr_crit_plan *plan, enum crit_plan_table table, uint32_t index)
{
    return (int64_t)(crit_plan_row(plan, table, index) - plan->bytes);
}

crit_plan_entry crit_plan_read_entry(const scr_crit_plan *plan, uint32_t index)
{
    const uint8_t *row = crit_plan_row(plan, CRIT_PLAN_ENTRIES, index);

    return (crit_plan_entry){
        .pattern = reference_at(row),
        .flags = crit_load_u32(row + 8),
        .first_section = crit_load_u32(row + 16),
        .sections = crit_load_u32(row + 20),
        .first_guard = crit_load_u32(row + 24),
        .guards = crit_load_u32(row + 28),
        .first_field = crit_load_u32(row + 32),
        .fields = crit_load_u32(row + 36),
        .min_bytes = crit_load_u64(row + 40),
        .max_bytes = crit_load_u64(row + 48),
    };
}

crit_plan_section crit_plan_read_section(const scr_crit_plan *plan, uint32_t index)
{
    const uint8_t *row = crit_plan_row(plan, CRIT_PLAN_SECTIONS, index);

    return (crit_plan_section){
        .kind = crit_load_u32(row),
        .evidence = crit_load_u32(row + 4),
        .checkpoints = crit_load_u32(row + 8),
        .phases = crit_load_u32(row + 12),
        .type_size = crit_load_u32(row + 16),
        .order = crit_load_u32(row + 20),
        .dims = crit_load_u32(row + 24),
        .boxes = crit_load_u32(row + 28),
        .first_number = crit_load_u32(row + 32),
        .first_axis = crit_load_u32(row + 36),
        .name = reference_at(row + 40),
        .rule = reference_at(row + 48),
        .program = reference_at(row + 56),
        .unit_bytes = crit_load_u64(row + 64),
        .unit_kept = crit_load_u64(row + 72),
    };
}

crit_plan_number crit_plan_read_number(const scr_crit_plan *plan, uint32_t index)
{
    const uint8_t *row = crit_plan_row(plan, CRIT_PLAN_NUMBERS, index);

    return (crit_plan_number){
        .source = row[0],
        .width = row[1],
        .is_signed = row[2],
        .big_endian = row[3],
        .base = crit_load_u32(row + 4),
        .value = (int64_t)crit_load_u64(row + 8),
        .add = (int64_t)crit_load_u64(row + 16),
        .offset = crit_load_u64(row + 24),
    };
}

crit_plan_axis crit_plan_read_axis(const scr_crit_plan *plan, uint32_t index)
{
    const uint8_t *row = crit_plan_row(plan, CRIT_PLAN_AXES, index);

    return (crit_plan_axis){
        .start = (int64_t)crit_load_u64(row),
        .stop = (int64_t)crit_load_u64(row + 8),
        .step = crit_load_u64(row + 16),
        .flags = crit_load_u32(row + 24),
    };
}

crit_plan_guard crit_plan_read_guard(const scr_crit_plan *plan, uint32_t index)
{
    const uint8_t *row = crit_plan_row(plan, CRIT_PLAN_GUARDS, index);

    return (crit_plan_guard){
        .bytes = reference_at(row),
        .base = crit_load_u32(row + 8),
        .offset = crit_load_u64(row + 16),
    };
}

crit_plan_field crit_plan_read_field(const scr_crit_plan *plan, uint32_t index)
{
    const uint8_t *row = crit_plan_row(plan, CRIT_PLAN_FIELDS, index);

    return (crit_plan_field){
        .kind = crit_load_u32(row),
        .places = crit_load_u32(row + 4),
        .start = {crit_load_u32(row + 8), crit_load_u64(row + 24)},
        .stop = {crit_load_u32(row + 12), crit_load_u64(row + 32)},
        .place = {{crit_load_u32(row + 16), crit_load_u64(row + 40)},
                  {crit_load_u32(row + 20), crit_load_u64(row + 48)}},
    };
}

crit_plan_fact crit_plan_read_fact(const scr_crit_plan *plan, uint32_t index)
{
    const uint8_t *row = crit_plan_row(plan, CRIT_PLAN_FACTS, index);

    return (crit_plan_fact){.key = reference_at(row), .value = reference_at(row + 8)};
}

const char *crit_plan_string(const scr_crit_plan *plan, crit_plan_reference reference)
{
    return (const char *)plan->blob + reference.at;
}

const uint8_t *crit_plan_bytes(const scr_crit_plan *plan, crit_plan_reference reference)
{
    return plan->blob + reference.at;
}
