/* plan_resolve.c - a plan's entry applied to one file; see plan.h and docs/format.md, "Resolving".
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * May use plan_rows.h, plan_array.h, bytes.h, error.h and what plan.h may.
 * Tests: tests/c/test_plan_resolve.c, tests/test_plan.py.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "error.h"
#include "plan.h"
#include "plan_array.h"

/* One entry being applied to one file. */
struct walk {
    const scr_crit_plan *plan;
    crit_plan_entry entry;
    crit_source *source;
    uint32_t first_number; /* of the entry's numbers */
    uint32_t solved;       /* section with the SIZE number; entry.sections if none */
    uint64_t *numbers;     /* values of the entry's numbers */
    uint64_t *starts;      /* of the sections, and the end of the last */
    uint64_t looks;        /* left for the programs of arrays */
};

static const char *name_of(const struct walk *walk, const crit_plan_section *section)
{
    return crit_plan_string(walk->plan, section->name);
}

#define MISFIT(walk, section, offset, format, ...)                                                 \
    crit_fail(SCR_CRIT_ERR_MISFIT, offset, "section \"%.100s\": " format, name_of(walk, section),  \
              __VA_ARGS__)

static crit_plan_section section_of(const struct walk *walk, uint32_t index)
{
    return crit_plan_read_section(walk->plan, walk->entry.first_section + index);
}

/* A section's count, followed by its axes' lengths. */
static uint64_t *numbers_of(const struct walk *walk, const crit_plan_section *section)
{
    return walk->numbers + (section->first_number - walk->first_number);
}

/* Words for a failure that did not know its section; the status stays. */
static int name_section(int status, const struct walk *walk, const crit_plan_section *section)
{
    char words[256];

    if (status != SCR_CRIT_ERR_MISFIT)
        return status;
    strncpy(words, scr_crit_last_error(), sizeof words - 1);
    words[sizeof words - 1] = '\0';
    return MISFIT(walk, section, scr_crit_last_offset(), "%s", words);
}

/* ---- Integers in the file ----------------------------------------------------------------------
 */

static uint64_t assemble(const uint8_t *bytes, const crit_plan_number *number)
{
    uint64_t value = 0;

    for (uint8_t i = 0; i < number->width; i++) {
        uint8_t byte = bytes[number->big_endian ? i : number->width - 1 - i];
        value = value << 8 | byte;
    }
    return value;
}

/* integer x value + add. Returns false when it is negative or beyond 2^63 - 1. */
static bool scale(uint64_t raw, const crit_plan_number *number, int64_t *result)
{
    unsigned unused = 64u - 8u * number->width;
    int64_t integer = (int64_t)raw;
    bool wrapped;

    if (number->is_signed && unused > 0 && (raw >> (63 - unused) & 1))
        integer = (int64_t)(raw | UINT64_MAX << (64 - unused)); /* sign extension */
    wrapped = number->is_signed ? __builtin_mul_overflow(integer, number->value, result)
                                : __builtin_mul_overflow(raw, number->value, result);
    return !wrapped && !__builtin_add_overflow(*result, number->add, result) && *result >= 0;
}

static int read_integer(struct walk *walk, const crit_plan_section *section,
                        const crit_plan_number *number, uint64_t *value)
{
    uint64_t start = number->base == CRIT_PLAN_BASE_FILE ? 0 : walk->starts[number->base];
    uint64_t place, raw;
    uint8_t bytes[8];
    int64_t result;
    int status;

    if (!crit_add(start, number->offset, &place) || place > walk->source->size ||
        number->width > walk->source->size - place)
        return MISFIT(walk, section, CRIT_NO_OFFSET,
                      "its count should stand at offset %" PRIu64 " + %" PRIu64
                      " of a file of %" PRIu64 " bytes",
                      start, number->offset, walk->source->size);
    status = crit_source_read(walk->source, place, bytes, number->width);
    if (status != SCR_CRIT_OK)
        return status;
    raw = assemble(bytes, number);
    if (!scale(raw, number, &result))
        return MISFIT(walk, section, (int64_t)place,
                      "the integer 0x%" PRIX64 " at offset %" PRIu64 " times %" PRId64
                      " plus %" PRId64 " is no count",
                      raw, place, number->value, number->add);
    *value = (uint64_t)result;
    return SCR_CRIT_OK;
}

/* ---- Lengths of the sections -------------------------------------------------------------------
 */

/* Bytes of a section whose numbers are known. */
static int section_bytes(const struct walk *walk, const crit_plan_section *section, uint64_t *bytes)
{
    const uint64_t *numbers = numbers_of(walk, section);
    uint64_t unit;
    int status = crit_plan_unit_bytes(section, numbers + 1, &unit);

    if (status != SCR_CRIT_OK)
        return name_section(status, walk, section);
    if (!crit_multiply(unit, numbers[0], bytes) || *bytes > CRIT_PROGRAM_MAX_LENGTH)
        return MISFIT(walk, section, CRIT_NO_OFFSET,
                      "%" PRIu64 " times %" PRIu64 " bytes are more than a file can hold",
                      numbers[0], unit);
    return SCR_CRIT_OK;
}

/* Read or copy a section's numbers. One that is solved from the size is left at 1, and *solved is
 * its index in walk->numbers. */
static int find_numbers(struct walk *walk, const crit_plan_section *section, uint64_t **solved)
{
    uint64_t *values = numbers_of(walk, section);

    for (uint32_t i = 0; i <= section->dims; i++) {
        crit_plan_number number = crit_plan_read_number(walk->plan, section->first_number + i);
        int status = SCR_CRIT_OK;

        values[i] = 1;
        if (number.source == CRIT_PLAN_FIXED)
            values[i] = (uint64_t)number.value;
        else if (number.source == CRIT_PLAN_INT)
            status = read_integer(walk, section, &number, &values[i]);
        else
            *solved = &values[i];
        if (status != SCR_CRIT_OK)
            return status;
    }
    return SCR_CRIT_OK;
}

/* Make the sections' lengths add up to the file: `taken` by the others, `step` for each unit. */
static int solve_size(const struct walk *walk, uint64_t taken, uint64_t step, uint64_t *value)
{
    crit_plan_section section = section_of(walk, walk->solved);
    uint64_t size = walk->source->size;

    if (taken > size)
        return MISFIT(walk, &section, CRIT_NO_OFFSET,
                      "the other sections take %" PRIu64 " bytes, the file has %" PRIu64, taken,
                      size);
    if (step == 0)
        return MISFIT(walk, &section, CRIT_NO_OFFSET, "%s",
                      "its count cannot be found from the file's size, for its units are empty");
    if ((size - taken) % step != 0)
        return MISFIT(walk, &section, CRIT_NO_OFFSET,
                      "%" PRIu64 " bytes are left for it, which is no multiple of %" PRIu64,
                      size - taken, step);
    *value = (size - taken) / step;
    return SCR_CRIT_OK;
}

/* Lengths from left to right; those behind the solved section are placed once it is known. */
static int find_lengths(struct walk *walk, uint64_t *lengths)
{
    uint64_t taken = 0; /* by sections of known length */
    uint64_t *solved = NULL;
    int status = SCR_CRIT_OK;

    walk->solved = walk->entry.sections;
    walk->starts[0] = 0;
    for (uint32_t s = 0; s < walk->entry.sections && status == SCR_CRIT_OK; s++) {
        crit_plan_section section = section_of(walk, s);
        bool known = solved != NULL;

        status = find_numbers(walk, &section, &solved);
        if (status == SCR_CRIT_OK)
            status = section_bytes(walk, &section, &lengths[s]);
        if (status != SCR_CRIT_OK)
            return status;
        if (!known && solved != NULL)
            walk->solved = s;
        else if (!crit_add(taken, lengths[s], &taken) || taken > CRIT_PROGRAM_MAX_LENGTH)
            status = MISFIT(walk, &section, CRIT_NO_OFFSET, "%s",
                            "up to here the sections take more than a file can hold");
        walk->starts[s + 1] = taken; /* right as far as the solved section's own start */
    }
    if (status != SCR_CRIT_OK || solved == NULL)
        return status;
    status = solve_size(walk, taken, lengths[walk->solved], solved);
    lengths[walk->solved] = walk->source->size - taken;
    return status;
}

static int place_sections(struct walk *walk)
{
    uint64_t *lengths = calloc((size_t)walk->entry.sections + 1, sizeof *lengths);
    uint64_t end = 0;
    int status;

    if (lengths == NULL)
        return crit_fail_memory(((size_t)walk->entry.sections + 1) * sizeof *lengths);
    status = find_lengths(walk, lengths);
    if (status == SCR_CRIT_OK) {
        for (uint32_t s = 0; s < walk->entry.sections; s++) {
            walk->starts[s] = end;
            end += lengths[s]; /* cannot wrap: their sum has been found to be a file's size */
        }
        walk->starts[walk->entry.sections] = end;
        if (end != walk->source->size)
            status = crit_fail(SCR_CRIT_ERR_MISFIT, CRIT_NO_OFFSET,
                               "the plan's sections take %" PRIu64 " bytes, the file has %" PRIu64,
                               end, walk->source->size);
    }
    free(lengths);
    return status;
}

/* ---- Guards ------------------------------------------------------------------------------------
 */

/* A place's offset in the file. Returns false when it lies beyond its end. */
static bool find_place(const struct walk *walk, crit_plan_place place, uint64_t *offset)
{
    uint64_t start = place.base == CRIT_PLAN_BASE_FILE ? 0 : walk->starts[place.base];

    return crit_add(start, place.offset, offset) && *offset <= walk->source->size;
}

static int compare_guard(const struct walk *walk, uint32_t index, uint64_t offset,
                         const uint8_t *expected, uint32_t size)
{
    uint8_t found[256];

    for (uint32_t done = 0; done < size;) {
        uint32_t piece = size - done < sizeof found ? size - done : (uint32_t)sizeof found;
        int status = crit_source_read(walk->source, offset + done, found, piece);

        if (status != SCR_CRIT_OK)
            return status;
        for (uint32_t i = 0; i < piece; i++)
            if (found[i] != expected[done + i])
                return crit_fail(
                    SCR_CRIT_ERR_MISFIT, (int64_t)(offset + done + i),
                    "guard %" PRIu32 ": byte 0x%02X at offset %" PRIu64
                    ", expected 0x%02X: another kind of file than the plan was made for",
                    index, found[i], offset + done + i, expected[done + i]);
        done += piece;
    }
    return SCR_CRIT_OK;
}

static int check_guards(const struct walk *walk)
{
    int status = SCR_CRIT_OK;

    for (uint32_t i = 0; i < walk->entry.guards && status == SCR_CRIT_OK; i++) {
        crit_plan_guard guard = crit_plan_read_guard(walk->plan, walk->entry.first_guard + i);
        uint64_t offset;

        if (!find_place(walk, (crit_plan_place){guard.base, guard.offset}, &offset) ||
            guard.bytes.size > walk->source->size - offset)
            return crit_fail(SCR_CRIT_ERR_MISFIT, CRIT_NO_OFFSET,
                             "guard %" PRIu32 " of %" PRIu32 " bytes lies beyond the file's end", i,
                             guard.bytes.size);
        status = compare_guard(walk, i, offset, crit_plan_bytes(walk->plan, guard.bytes),
                               guard.bytes.size);
    }
    return status;
}

/* ---- The program -------------------------------------------------------------------------------
 */

/* One repetition of an array, into the open loop. kept: out, its critical bytes. */
static int append_array(struct walk *walk, const crit_plan_section *section,
                        const uint64_t *lengths, crit_program *whole, uint64_t *kept)
{
    crit_program_facts facts = {0};
    crit_program unit;
    unsigned depth = 0;
    int status;

    crit_program_init(&unit);
    status = crit_plan_array_append(walk->plan, section, lengths, &walk->looks, &unit, &depth);
    if (status == SCR_CRIT_OK)
        status = crit_program_check(unit.bytes, unit.size, CRIT_NO_OFFSET, &facts);
    *kept = facts.kept;
    if (status == SCR_CRIT_OK && unit.last_run == 0)
        status = crit_program_run(whole, facts.kept > 0, facts.length); /* joins its neighbours */
    else if (status == SCR_CRIT_OK)
        status = crit_program_append(whole, unit.bytes, unit.size, depth);
    crit_program_free(&unit);
    return status;
}

/* The same of another section, whose program was checked when the plan was opened. It may be as
 * large as the plan: it is copied once, straight to its place. */
static int append_stored(const struct walk *walk, const crit_plan_section *section,
                         crit_program *whole, uint64_t *kept)
{
    *kept = section->unit_kept;
    if (*kept == 0 || *kept == section->unit_bytes)
        return crit_program_run(whole, *kept > 0, section->unit_bytes);
    return crit_program_append(whole, crit_plan_bytes(walk->plan, section->program),
                               section->program.size, CRIT_PLAN_UNIT_DEPTH);
}

/* Append a section to the whole file's program. kept: out, its critical bytes. */
static int append_section(struct walk *walk, const crit_plan_section *section, crit_program *whole,
                          uint64_t *kept)
{
    const uint64_t *numbers = numbers_of(walk, section);
    int status = crit_program_loop_begin(whole);

    if (status == SCR_CRIT_OK && section->kind == SCR_CRIT_SECTION_ARRAY)
        status = append_array(walk, section, numbers + 1, whole, kept);
    else if (status == SCR_CRIT_OK)
        status = append_stored(walk, section, whole, kept);
    if (status == SCR_CRIT_OK)
        status = crit_program_loop_end(whole, numbers[0]);
    if (status != SCR_CRIT_OK)
        return name_section(status, walk, section);
    *kept *= numbers[0]; /* at most the section's length */
    return SCR_CRIT_OK;
}

/* Also picks the element size for the codec's shuffle: that of the section that keeps most. */
static int build_program(struct walk *walk, crit_resolution *resolution)
{
    uint64_t most = 0;

    resolution->type_size = 1;
    for (uint32_t s = 0; s < walk->entry.sections; s++) {
        crit_plan_section section = section_of(walk, s);
        uint64_t kept = 0;
        int status = append_section(walk, &section, &resolution->program, &kept);

        if (status != SCR_CRIT_OK)
            return status;
        if (kept > most) {
            most = kept;
            resolution->type_size = section.type_size <= 255 ? section.type_size : 1;
        }
    }
    return SCR_CRIT_OK;
}

/* ---- Checksum fields ---------------------------------------------------------------------------
 */

static int place_field(const struct walk *walk, uint32_t index, crit_checksum_field *field)
{
    crit_plan_field row = crit_plan_read_field(walk->plan, walk->entry.first_field + index);
    uint64_t stop;

    *field = (crit_checksum_field){.kind = row.kind, .places = row.places};
    if (!find_place(walk, row.start, &field->start) || !find_place(walk, row.stop, &stop) ||
        !find_place(walk, row.place[0], &field->place[0]) ||
        !find_place(walk, row.place[1], &field->place[1]) || stop < field->start)
        return crit_fail(SCR_CRIT_ERR_MISFIT, CRIT_NO_OFFSET,
                         "checksum field %" PRIu32
                         " lies beyond the file's end, or ends before it begins",
                         index);
    field->length = stop - field->start;
    if (row.places == 1)
        field->place[1] = 0;
    return SCR_CRIT_OK;
}

static int place_fields(const struct walk *walk, crit_resolution *resolution)
{
    uint32_t count = walk->entry.fields;
    int status = SCR_CRIT_OK;

    if (count == 0)
        return SCR_CRIT_OK;
    resolution->fields = calloc(count, sizeof *resolution->fields);
    if (resolution->fields == NULL)
        return crit_fail_memory(count * sizeof *resolution->fields);
    resolution->field_count = count;
    for (uint32_t i = 0; i < count && status == SCR_CRIT_OK; i++)
        status = place_field(walk, i, &resolution->fields[i]);
    if (status == SCR_CRIT_OK)
        status = crit_fields_check(resolution->fields, count, walk->source->size, CRIT_NO_OFFSET);
    return status == SCR_CRIT_ERR_FORMAT
               ? crit_fail(SCR_CRIT_ERR_MISFIT, CRIT_NO_OFFSET, "%s",
                           "the plan's checksum fields do not fit the file")
               : status;
}

/* ---- Entrance ----------------------------------------------------------------------------------
 */

static int check_size(const struct walk *walk)
{
    uint64_t size = walk->source->size;

    if (size < walk->entry.min_bytes || size > walk->entry.max_bytes)
        return crit_fail(SCR_CRIT_ERR_MISFIT, CRIT_NO_OFFSET,
                         "the file has %" PRIu64 " bytes, the plan is for %" PRIu64 " to %" PRIu64,
                         size, walk->entry.min_bytes, walk->entry.max_bytes);
    return SCR_CRIT_OK;
}

/* Memory for the walk: a number per count and axis, a start per section. */
static int prepare(struct walk *walk)
{
    uint64_t numbers = 0;

    for (uint32_t s = 0; s < walk->entry.sections; s++) {
        crit_plan_section section = section_of(walk, s);
        if (s == 0)
            walk->first_number = section.first_number;
        numbers += 1 + (uint64_t)section.dims;
    }
    walk->numbers = calloc(numbers + 1, sizeof *walk->numbers);
    walk->starts = calloc((size_t)walk->entry.sections + 1, sizeof *walk->starts);
    if (walk->numbers == NULL || walk->starts == NULL)
        return crit_fail_memory((numbers + walk->entry.sections) * sizeof(uint64_t));
    return SCR_CRIT_OK;
}

int crit_plan_resolve(const scr_crit_plan *plan, uint32_t entry, crit_source *source,
                      crit_resolution *resolution)
{
    struct walk walk = {.plan = plan, .source = source, .looks = CRIT_PLAN_ENTRY_LOOKS};
    crit_plan_header header;
    int status;

    if (plan == NULL || entry >= plan->rows[CRIT_PLAN_ENTRIES])
        return crit_fail(SCR_CRIT_ERR_ARG, CRIT_NO_OFFSET, "plan entry %" PRIu32 " does not exist",
                         entry);
    walk.entry = crit_plan_read_entry(plan, entry);
    crit_plan_read_header(plan->bytes, &header);
    memcpy(resolution->digest, header.digest, sizeof resolution->digest);
    status = check_size(&walk);
    if (status == SCR_CRIT_OK)
        status = prepare(&walk);
    if (status == SCR_CRIT_OK)
        status = place_sections(&walk);
    if (status == SCR_CRIT_OK)
        status = check_guards(&walk);
    if (status == SCR_CRIT_OK)
        status = build_program(&walk, resolution);
    if (status == SCR_CRIT_OK)
        status = place_fields(&walk, resolution);
    free(walk.numbers);
    free(walk.starts);
    return status == SCR_CRIT_OK ? crit_resolution_check(resolution, source->size) : status;
}
