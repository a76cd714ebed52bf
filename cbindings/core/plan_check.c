/* plan_check.c - see plan_check.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Rows and the blob's pieces have one legal order without gaps (docs/format.md), so running sums
 * are all the bookkeeping there is, every byte has one owner, and no piece is scanned twice.
 */
#include "plan_check.h"

#include <inttypes.h>
#include <string.h>

#include "bytes.h"
#include "checksums.h"
#include "error.h"
#include "glob.h"
#include "plan_utf8.h"
#include "program.h"

static const uint8_t plan_mark[8] = {0x89, 'S', 'C', 'R', 'L', 0x0D, 0x0A, 0x1A};

/* What has been handed out so far. */
struct check {
    const scr_crit_plan *plan;
    uint32_t next[CRIT_PLAN_TABLES]; /* next row without an owner */
    uint32_t blob_next;              /* next byte of the blob without an owner */
};

/* A row that is being checked, for messages. */
struct row {
    enum crit_plan_table table;
    uint32_t index;
};

static int64_t offset_of(const struct check *check, struct row row)
{
    return crit_plan_row_offset(check->plan, row.table, row.index);
}

#define BAD_ROW(check, row, field, format, ...)                                                    \
    crit_fail(SCR_CRIT_ERR_FORMAT, offset_of(check, row) + (field),                                \
              "plan %s %" PRIu32 ": " format, crit_plan_row_name[(row).table], (row).index,        \
              __VA_ARGS__)

/* ---- Header -----------------------------------------------------------------------------------
 */

static int check_zeros(const uint8_t *bytes, size_t size, int64_t offset)
{
    return crit_all_zero(bytes, size)
               ? SCR_CRIT_OK
               : crit_fail(SCR_CRIT_ERR_FORMAT, offset,
                           "plan: %zu reserved bytes are not all 0, as format %d has them", size,
                           CRIT_PLAN_VERSION);
}

static int check_sizes(const crit_plan_header *header, size_t size)
{
    uint64_t sum = CRIT_PLAN_HEADER_SIZE;

    for (int table = 0; table < CRIT_PLAN_TABLES; table++)
        sum += (uint64_t)header->rows[table] * crit_plan_row_size[table];
    sum += header->blob_size;
    if (header->file_size != size)
        return crit_fail(SCR_CRIT_ERR_FORMAT, 16,
                         "plan: has %zu bytes, its header says %" PRIu64
                         "; it is truncated or damaged",
                         size, header->file_size);
    if (sum != size)
        return crit_fail(SCR_CRIT_ERR_FORMAT, 24,
                         "plan: its tables take %" PRIu64 " bytes, the file has %zu", sum, size);
    return SCR_CRIT_OK;
}

static int check_header(const scr_crit_plan *plan, crit_plan_header *header)
{
    uint32_t crc;

    if (plan->size < CRIT_PLAN_HEADER_SIZE)
        return crit_fail(SCR_CRIT_ERR_FORMAT, (int64_t)plan->size,
                         "not a plan, or truncated: %zu bytes, a plan has at least %d", plan->size,
                         CRIT_PLAN_HEADER_SIZE);
    crit_plan_read_header(plan->bytes, header);
    if (memcmp(header->mark, plan_mark, sizeof plan_mark) != 0)
        return crit_fail(SCR_CRIT_ERR_FORMAT, 0,
                         "not a plan: it does not begin with a plan's mark");
    if (header->version > CRIT_PLAN_VERSION)
        return crit_fail(SCR_CRIT_ERR_VERSION, 8,
                         "plan format %" PRIu32
                         ", this version reads up to %d: update scr_critplugin, "
                         "or write the plan again",
                         header->version, CRIT_PLAN_VERSION);
    crc = scr_crit_crc32c(0, plan->bytes, CRIT_PLAN_CRC_COVERS);
    if (crc != header->header_crc)
        return crit_fail(SCR_CRIT_ERR_CHECKSUM, CRIT_PLAN_CRC_COVERS,
                         "plan header: checksum %08" PRIX32 ", its bytes give %08" PRIX32,
                         header->header_crc, crc);
    if (header->version != CRIT_PLAN_VERSION || header->header_size != CRIT_PLAN_HEADER_SIZE)
        return crit_fail(
            SCR_CRIT_ERR_FORMAT, 8,
            "plan: version %" PRIu32 " with a header of %" PRIu32 " bytes, expected %d with %d",
            header->version, header->header_size, CRIT_PLAN_VERSION, CRIT_PLAN_HEADER_SIZE);
    return check_zeros(plan->bytes + 76, 48, 76);
}

static int check_body_crc(const scr_crit_plan *plan, const crit_plan_header *header)
{
    uint32_t crc =
        scr_crit_crc32c(0, plan->bytes + CRIT_PLAN_HEADER_SIZE, plan->size - CRIT_PLAN_HEADER_SIZE);

    if (crc != header->body_crc)
        return crit_fail(SCR_CRIT_ERR_CHECKSUM, 72,
                         "plan: checksum %08" PRIX32 ", its bytes give %08" PRIX32,
                         header->body_crc, crc);
    return SCR_CRIT_OK;
}

/* ---- What all rows share -----------------------------------------------------------------------
 */

static int check_reserved(const struct check *check)
{
    static const struct {
        enum crit_plan_table table;
        uint32_t offset, size;
    } reserved[] = {
        {CRIT_PLAN_ENTRIES, 12, 4}, {CRIT_PLAN_ENTRIES, 56, 8}, {CRIT_PLAN_SECTIONS, 80, 16},
        {CRIT_PLAN_AXES, 28, 4},    {CRIT_PLAN_GUARDS, 12, 4},  {CRIT_PLAN_FIELDS, 56, 8},
    };

    for (size_t i = 0; i < sizeof reserved / sizeof reserved[0]; i++) {
        for (uint32_t row = 0; row < check->plan->rows[reserved[i].table]; row++) {
            const uint8_t *bytes =
                crit_plan_row(check->plan, reserved[i].table, row) + reserved[i].offset;
            int status =
                check_zeros(bytes, reserved[i].size, (int64_t)(bytes - check->plan->bytes));
            if (status != SCR_CRIT_OK)
                return status;
        }
    }
    return SCR_CRIT_OK;
}

/* Let a row own the next `count` rows of a table, which it says begin at `first`. */
static int take_rows(struct check *check, struct row owner, int64_t field,
                     enum crit_plan_table table, uint32_t first, uint64_t count)
{
    uint32_t left = check->plan->rows[table] - check->next[table];

    if (first != check->next[table] || count > left)
        return BAD_ROW(check, owner, field,
                       "takes %" PRIu64 " rows of the %s table from %" PRIu32
                       ", expected from %" PRIu32 ", where %" PRIu32 " are left",
                       count, crit_plan_row_name[table], first, check->next[table], left);
    check->next[table] += (uint32_t)count;
    return SCR_CRIT_OK;
}

static int check_all_owned(const struct check *check)
{
    for (int table = CRIT_PLAN_SECTIONS; table <= CRIT_PLAN_FIELDS; table++)
        if (check->next[table] != check->plan->rows[table])
            return crit_fail(SCR_CRIT_ERR_FORMAT, 24 + 4 * table,
                             "plan: %" PRIu32 " %s rows, of which %" PRIu32 " belong to an owner",
                             check->plan->rows[table], crit_plan_row_name[table],
                             check->next[table]);
    if (check->blob_next != check->plan->blob_size)
        return crit_fail(SCR_CRIT_ERR_FORMAT, 52,
                         "plan: a blob of %" PRIu32 " bytes, of which %" PRIu32 " are referred to",
                         check->plan->blob_size, check->blob_next);
    return SCR_CRIT_OK;
}

/* ---- References into the blob ------------------------------------------------------------------
 */

static int take_bytes(struct check *check, struct row row, int64_t field,
                      crit_plan_reference reference, uint32_t terminator)
{
    uint32_t left = check->plan->blob_size - check->blob_next;

    if (reference.at != check->blob_next || reference.size > left ||
        left - reference.size < terminator)
        return BAD_ROW(check, row, field,
                       "refers to %" PRIu32 " bytes of the blob at %" PRIu32
                       ", expected at %" PRIu32 ", where %" PRIu32 " are left",
                       reference.size, reference.at, check->blob_next, left);
    check->blob_next += reference.size + terminator;
    return SCR_CRIT_OK;
}

static int take_string(struct check *check, struct row row, int64_t field,
                       crit_plan_reference reference)
{
    const uint8_t *text;
    int64_t offset;
    size_t i = 0;
    int status = take_bytes(check, row, field, reference, 1);

    if (status != SCR_CRIT_OK)
        return status;
    text = check->plan->blob + reference.at;
    offset = (int64_t)(text - check->plan->bytes);
    while (i < reference.size) {
        uint32_t code = 0;
        size_t width = crit_utf8_decode(text + i, reference.size - i, &code);
        if (width == 0 || code == 0)
            return crit_fail(SCR_CRIT_ERR_FORMAT, offset + (int64_t)i,
                             "plan %s %" PRIu32
                             ": byte 0x%02X in a string, expected UTF-8 without 0",
                             crit_plan_row_name[row.table], row.index, text[i]);
        i += width;
    }
    if (text[i] != 0)
        return crit_fail(SCR_CRIT_ERR_FORMAT, offset + (int64_t)i,
                         "plan %s %" PRIu32 ": a string without its terminating 0",
                         crit_plan_row_name[row.table], row.index);
    return SCR_CRIT_OK;
}

static int take_pattern(struct check *check, struct row row, crit_plan_reference reference)
{
    const char *text, *fault;
    size_t at;
    int status = take_string(check, row, 0, reference);

    if (status != SCR_CRIT_OK)
        return status;
    text = crit_plan_string(check->plan, reference);
    fault = crit_glob_fault(text, &at);
    if (fault != NULL)
        return crit_fail(SCR_CRIT_ERR_FORMAT,
                         (int64_t)((const uint8_t *)text - check->plan->bytes) + (int64_t)at,
                         "plan entry %" PRIu32 ": pattern \"%.200s\" has %s", row.index, text,
                         fault);
    return SCR_CRIT_OK;
}

/* ---- Entries -----------------------------------------------------------------------------------
 */

static int check_entry(struct check *check, uint32_t index)
{
    struct row row = {CRIT_PLAN_ENTRIES, index};
    crit_plan_entry entry = crit_plan_read_entry(check->plan, index);
    int status = take_pattern(check, row, entry.pattern);

    if (status == SCR_CRIT_OK)
        status = take_rows(check, row, 16, CRIT_PLAN_SECTIONS, entry.first_section, entry.sections);
    if (status == SCR_CRIT_OK)
        status = take_rows(check, row, 24, CRIT_PLAN_GUARDS, entry.first_guard, entry.guards);
    if (status == SCR_CRIT_OK)
        status = take_rows(check, row, 32, CRIT_PLAN_FIELDS, entry.first_field, entry.fields);
    if (status != SCR_CRIT_OK)
        return status;
    if (entry.flags != 0)
        return BAD_ROW(check, row, 8, "flags 0x%" PRIX32 ", expected 0", entry.flags);
    if (entry.min_bytes > entry.max_bytes || entry.max_bytes > INT64_MAX)
        return BAD_ROW(check, row, 40, "sizes from %" PRIu64 " to %" PRIu64 " bytes",
                       entry.min_bytes, entry.max_bytes);
    return SCR_CRIT_OK;
}

/* ---- Sections ----------------------------------------------------------------------------------
 */

static int check_evidence(const struct check *check, struct row row,
                          const crit_plan_section *section)
{
    bool observed = section->evidence == SCR_CRIT_EVIDENCE_OBSERVED;

    if (section->evidence > SCR_CRIT_EVIDENCE_PROVEN)
        return BAD_ROW(check, row, 4, "evidence %" PRIu32 ", expected 0 to %d", section->evidence,
                       SCR_CRIT_EVIDENCE_PROVEN);
    if (observed != (section->checkpoints > 0) || observed != (section->phases > 0))
        return BAD_ROW(check, row, 8,
                       "evidence %" PRIu32 " from %" PRIu32 " checkpoints and %" PRIu32
                       " phases; both are counted for evidence %d alone",
                       section->evidence, section->checkpoints, section->phases,
                       SCR_CRIT_EVIDENCE_OBSERVED);
    return SCR_CRIT_OK;
}

/* What an array has and the other kinds do not. */
static int check_shape(const struct check *check, struct row row, const crit_plan_section *section)
{
    bool array = section->kind == SCR_CRIT_SECTION_ARRAY;
    bool elements = array || section->kind == SCR_CRIT_SECTION_RAW;

    if (section->type_size == 0 || (!elements && section->type_size != 1))
        return BAD_ROW(check, row, 16, "%" PRIu32 " bytes per element", section->type_size);
    if (section->order > (array ? 1u : 0u))
        return BAD_ROW(check, row, 20, "order %" PRIu32, section->order);
    if (section->dims > (array ? CRIT_PLAN_MAX_DIMS : 0u))
        return BAD_ROW(check, row, 24, "%" PRIu32 " axes, expected at most %d", section->dims,
                       array ? CRIT_PLAN_MAX_DIMS : 0);
    if (section->boxes > (array ? CRIT_PLAN_MAX_BOXES : 0u))
        return BAD_ROW(check, row, 28, "%" PRIu32 " boxes, expected at most %d", section->boxes,
                       array ? CRIT_PLAN_MAX_BOXES : 0);
    return SCR_CRIT_OK;
}

static int check_program(const struct check *check, struct row row,
                         const crit_plan_section *section)
{
    const uint8_t *bytes = crit_plan_bytes(check->plan, section->program); /* taken already */
    crit_program_facts facts;
    int status;

    if (section->program.size == 0)
        return BAD_ROW(check, row, 56, "kind %" PRIu32 " without a program", section->kind);
    status =
        crit_program_validate(bytes, section->program.size, (int64_t)(bytes - check->plan->bytes),
                              section->unit_bytes, &facts);
    if (status != SCR_CRIT_OK)
        return status;
    if (facts.kept != section->unit_kept)
        return BAD_ROW(check, row, 72,
                       "%" PRIu64 " critical bytes a unit, its program has %" PRIu64,
                       section->unit_kept, facts.kept);
    if (facts.depth > CRIT_PLAN_UNIT_DEPTH)
        return BAD_ROW(check, row, 56, "a program of %u nested loops, expected at most %d",
                       facts.depth, CRIT_PLAN_UNIT_DEPTH);
    return SCR_CRIT_OK;
}

static int check_unit(const struct check *check, struct row row, const crit_plan_section *section)
{
    uint64_t unit = section->kind == SCR_CRIT_SECTION_KEEP ? 1 : 0;

    if (section->kind == SCR_CRIT_SECTION_RECORD || section->kind == SCR_CRIT_SECTION_RAW)
        return check_program(check, row, section);
    if (section->program.size != 0)
        return BAD_ROW(check, row, 56, "kind %" PRIu32 " with a program", section->kind);
    if (section->unit_bytes != unit || section->unit_kept != unit)
        return BAD_ROW(check, row, 64,
                       "units of %" PRIu64 " bytes, %" PRIu64 " critical; expected %" PRIu64
                       " for both",
                       section->unit_bytes, section->unit_kept, unit);
    return SCR_CRIT_OK;
}

static int check_section(struct check *check, uint32_t index)
{
    struct row row = {CRIT_PLAN_SECTIONS, index};
    crit_plan_section section = crit_plan_read_section(check->plan, index);
    int status;

    if (section.kind > SCR_CRIT_SECTION_RAW)
        return BAD_ROW(check, row, 0, "kind %" PRIu32 ", expected 0 to %d", section.kind,
                       SCR_CRIT_SECTION_RAW);
    status = check_evidence(check, row, &section);
    if (status == SCR_CRIT_OK)
        status = check_shape(check, row, &section);
    if (status == SCR_CRIT_OK)
        status = take_rows(check, row, 32, CRIT_PLAN_NUMBERS, section.first_number,
                           1 + (uint64_t)section.dims);
    if (status == SCR_CRIT_OK)
        status = take_rows(check, row, 36, CRIT_PLAN_AXES, section.first_axis,
                           (uint64_t)section.boxes * section.dims);
    if (status == SCR_CRIT_OK)
        status = take_string(check, row, 40, section.name);
    if (status == SCR_CRIT_OK)
        status = take_string(check, row, 48, section.rule);
    if (status == SCR_CRIT_OK)
        status = take_bytes(check, row, 56, section.program, 0);
    if (status == SCR_CRIT_OK)
        status = check_unit(check, row, &section);
    return status;
}

/* ---- Numbers, axes -----------------------------------------------------------------------------
 */

static bool is_width(uint8_t width)
{
    return width == 1 || width == 2 || width == 4 || width == 8;
}

/* The fields that the number's source does not use must be 0. */
static int check_number(const struct check *check, uint32_t index)
{
    struct row row = {CRIT_PLAN_NUMBERS, index};
    crit_plan_number number = crit_plan_read_number(check->plan, index);
    bool has_place = number.width || number.is_signed || number.big_endian || number.base ||
                     number.add || number.offset;

    switch (number.source) {
    case CRIT_PLAN_FIXED:
        if (has_place || number.value < 0)
            return BAD_ROW(check, row, 0, "fixed to %" PRId64 "%s", number.value,
                           has_place ? ", yet with a place in the file" : ", which is negative");
        return SCR_CRIT_OK;
    case CRIT_PLAN_SIZE:
        if (has_place || number.value != 0)
            return BAD_ROW(check, row, 0, "%s",
                           "solved from the file's size, yet with other fields");
        return SCR_CRIT_OK;
    case CRIT_PLAN_INT:
        if (!is_width(number.width) || number.is_signed > 1 || number.big_endian > 1)
            return BAD_ROW(check, row, 1, "an integer of %u bytes, signed %u, big-endian %u",
                           number.width, number.is_signed, number.big_endian);
        if (number.value == 0)
            return BAD_ROW(check, row, 8, "%s", "factor 0");
        return SCR_CRIT_OK;
    default:
        return BAD_ROW(check, row, 0, "source %u, expected 0 to %d", number.source, CRIT_PLAN_INT);
    }
}

static int check_axis(const struct check *check, uint32_t index, const crit_plan_number *length)
{
    struct row row = {CRIT_PLAN_AXES, index};
    crit_plan_axis axis = crit_plan_read_axis(check->plan, index);
    bool start_back = axis.flags & CRIT_PLAN_START_FROM_END;
    bool stop_back = axis.flags & CRIT_PLAN_STOP_FROM_END;
    int64_t start, stop;

    if (axis.flags > (CRIT_PLAN_START_FROM_END | CRIT_PLAN_STOP_FROM_END))
        return BAD_ROW(check, row, 24, "flags 0x%" PRIX32, axis.flags);
    if (axis.step == 0 || axis.step > INT64_MAX)
        return BAD_ROW(check, row, 16, "step %" PRIu64, axis.step);
    if ((start_back ? axis.start > 0 : axis.start < 0) ||
        (stop_back ? axis.stop > 0 : axis.stop < 0))
        return BAD_ROW(check, row, 0, "bounds %" PRId64 "%s and %" PRId64 "%s lie outside the axis",
                       axis.start, start_back ? " from the end" : "", axis.stop,
                       stop_back ? " from the end" : "");
    if (length->source != CRIT_PLAN_FIXED)
        return SCR_CRIT_OK;
    start = axis.start + (start_back ? length->value : 0);
    stop = axis.stop + (stop_back ? length->value : 0);
    if (start < 0 || start > stop || stop > length->value)
        return BAD_ROW(check, row, 0, "indices %" PRId64 " to %" PRId64 " of an axis of %" PRId64,
                       start, stop, length->value);
    return SCR_CRIT_OK;
}

/* Numbers and axes of one section; they have been found to be its own. */
static int check_section_rows(const struct check *check, uint32_t index)
{
    crit_plan_section section = crit_plan_read_section(check->plan, index);
    int status = SCR_CRIT_OK;

    for (uint32_t i = 0; i <= section.dims && status == SCR_CRIT_OK; i++)
        status = check_number(check, section.first_number + i);
    for (uint32_t i = 0; i < section.boxes * section.dims && status == SCR_CRIT_OK; i++) {
        crit_plan_number length =
            crit_plan_read_number(check->plan, section.first_number + 1 + i % section.dims);
        status = check_axis(check, section.first_axis + i, &length);
    }
    return status;
}

/* ---- Places ------------------------------------------------------------------------------------
 */

/* An entry's one SIZE number: the section that has it; `sections` if there is none. */
static int find_solved(const struct check *check, const crit_plan_entry *entry, uint32_t *solved)
{
    *solved = entry->sections;
    for (uint32_t s = 0; s < entry->sections; s++) {
        crit_plan_section section = crit_plan_read_section(check->plan, entry->first_section + s);

        for (uint32_t i = section.first_number; i <= section.first_number + section.dims; i++) {
            struct row row = {CRIT_PLAN_NUMBERS, i};

            if (crit_plan_read_number(check->plan, i).source != CRIT_PLAN_SIZE)
                continue;
            if (*solved != entry->sections)
                return BAD_ROW(check, row, 0, "%s",
                               "a second number of its entry that is solved from the file's size");
            *solved = s;
        }
    }
    return SCR_CRIT_OK;
}

/* Integers must stand where the walk from left to right already knows. */
static int check_number_places(const struct check *check, const crit_plan_entry *entry)
{
    uint32_t solved;
    int status = find_solved(check, entry, &solved);

    if (status != SCR_CRIT_OK)
        return status;
    for (uint32_t s = 0; s < entry->sections; s++) {
        crit_plan_section section = crit_plan_read_section(check->plan, entry->first_section + s);
        uint32_t last = s < solved ? s : solved;

        for (uint32_t i = section.first_number; i <= section.first_number + section.dims; i++) {
            crit_plan_number number = crit_plan_read_number(check->plan, i);
            struct row row = {CRIT_PLAN_NUMBERS, i};

            if (number.source == CRIT_PLAN_INT && number.base != CRIT_PLAN_BASE_FILE &&
                number.base > last)
                return BAD_ROW(check, row, 4,
                               "stands in section %" PRIu32
                               " of its entry, expected at most %" PRIu32
                               ", whose place is known by then",
                               number.base, last);
        }
    }
    return SCR_CRIT_OK;
}

static bool is_base(uint32_t base, uint32_t limit)
{
    return base == CRIT_PLAN_BASE_FILE || base < limit;
}

static int check_guard(struct check *check, uint32_t index, uint32_t sections)
{
    struct row row = {CRIT_PLAN_GUARDS, index};
    crit_plan_guard guard = crit_plan_read_guard(check->plan, index);

    if (guard.bytes.size == 0)
        return BAD_ROW(check, row, 0, "%s", "no bytes");
    if (!is_base(guard.base, sections))
        return BAD_ROW(check, row, 8, "base %" PRIu32 " of %" PRIu32 " sections", guard.base,
                       sections);
    return take_bytes(check, row, 0, guard.bytes, 0);
}

static int check_field(const struct check *check, uint32_t index, uint32_t sections)
{
    struct row row = {CRIT_PLAN_FIELDS, index};
    crit_plan_field field = crit_plan_read_field(check->plan, index);
    uint32_t limit = sections + 1; /* the end of the file is a base here */

    if (field.kind != CRIT_FIELD_CRC32)
        return BAD_ROW(check, row, 0, "kind %" PRIu32 ", expected %d", field.kind,
                       CRIT_FIELD_CRC32);
    if (field.places < 1 || field.places > 2)
        return BAD_ROW(check, row, 4, "%" PRIu32 " places, expected 1 or 2", field.places);
    if (field.places == 1 && (field.place[1].base || field.place[1].offset))
        return BAD_ROW(check, row, 20, "%s", "one place, yet a second is given");
    if (!is_base(field.start.base, limit) || !is_base(field.stop.base, limit) ||
        !is_base(field.place[0].base, limit) || !is_base(field.place[1].base, limit))
        return BAD_ROW(check, row, 8, "a base beyond %" PRIu32 " sections", sections);
    return SCR_CRIT_OK;
}

static int check_fact(struct check *check, uint32_t index)
{
    struct row row = {CRIT_PLAN_FACTS, index};
    crit_plan_fact fact = crit_plan_read_fact(check->plan, index);
    int status = take_string(check, row, 0, fact.key);

    if (status == SCR_CRIT_OK && fact.key.size == 0)
        status = BAD_ROW(check, row, 0, "%s", "an empty key");
    return status == SCR_CRIT_OK ? take_string(check, row, 8, fact.value) : status;
}

/* ---- All tables --------------------------------------------------------------------------------
 */

/* What needs an entry's sections to be known. */
static int check_entry_places(struct check *check, uint32_t index)
{
    crit_plan_entry entry = crit_plan_read_entry(check->plan, index);
    int status = check_number_places(check, &entry);

    for (uint32_t i = 0; i < entry.guards && status == SCR_CRIT_OK; i++)
        status = check_guard(check, entry.first_guard + i, entry.sections);
    for (uint32_t i = 0; i < entry.fields && status == SCR_CRIT_OK; i++)
        status = check_field(check, entry.first_field + i, entry.sections);
    return status;
}

static int check_tables(struct check *check)
{
    const uint32_t *rows = check->plan->rows;
    int status = check_reserved(check);

    for (uint32_t i = 0; i < rows[CRIT_PLAN_ENTRIES] && status == SCR_CRIT_OK; i++)
        status = check_entry(check, i);
    for (uint32_t i = 0; i < rows[CRIT_PLAN_SECTIONS] && status == SCR_CRIT_OK; i++) {
        status = check_section(check, i);
        if (status == SCR_CRIT_OK)
            status = check_section_rows(check, i);
    }
    for (uint32_t i = 0; i < rows[CRIT_PLAN_ENTRIES] && status == SCR_CRIT_OK; i++)
        status = check_entry_places(check, i);
    for (uint32_t i = 0; i < rows[CRIT_PLAN_FACTS] && status == SCR_CRIT_OK; i++)
        status = check_fact(check, i);
    return status == SCR_CRIT_OK ? check_all_owned(check) : status;
}

int crit_plan_check(scr_crit_plan *plan)
{
    crit_plan_header header;
    struct check check = {.plan = plan};
    int status = check_header(plan, &header);

    if (status == SCR_CRIT_OK)
        status = check_sizes(&header, plan->size);
    if (status == SCR_CRIT_OK)
        status = check_body_crc(plan, &header);
    if (status != SCR_CRIT_OK)
        return status;
    crit_plan_find_tables(plan, &header);
    return check_tables(&check);
}
