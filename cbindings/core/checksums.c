/* checksums.c - see checksums.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "checksums.h"

#include <stdlib.h>

#include "bytes.h"
#include "error.h"
#include "io.h"

void crit_field_load(const uint8_t *bytes, crit_checksum_field *field)
{
    field->kind = crit_load_u32(bytes);
    field->places = crit_load_u32(bytes + 4);
    field->start = crit_load_u64(bytes + 8);
    field->length = crit_load_u64(bytes + 16);
    field->place[0] = crit_load_u64(bytes + 24);
    field->place[1] = crit_load_u64(bytes + 32);
}

void crit_field_store(uint8_t *bytes, const crit_checksum_field *field)
{
    crit_store_u32(bytes, field->kind);
    crit_store_u32(bytes + 4, field->places);
    crit_store_u64(bytes + 8, field->start);
    crit_store_u64(bytes + 16, field->length);
    crit_store_u64(bytes + 24, field->place[0]);
    crit_store_u64(bytes + 32, field->place[1]);
}

/* ---- Checks ---------------------------------------------------------------------------------- */

static int bad(uint32_t index, int64_t base, const char *what)
{
    return crit_fail(SCR_CRIT_ERR_FORMAT, base + (int64_t)index * CRIT_FIELD_SIZE,
                     "checksum field %u is malformed: %s", index, what);
}

static bool place_is_good(const crit_checksum_field *field, uint64_t place, uint64_t file_size)
{
    const uint64_t stop = field->start + field->length;
    if (file_size < CRIT_FIELD_VALUE_SIZE || place > file_size - CRIT_FIELD_VALUE_SIZE)
        return false;
    return field->length == 0 || place >= stop || place + CRIT_FIELD_VALUE_SIZE <= field->start;
}

int crit_field_check(const crit_checksum_field *field, uint32_t index, uint64_t file_size,
                     int64_t base, uint64_t *covered)
{
    if (field->kind != CRIT_FIELD_CRC32)
        return bad(index, base, "unknown kind, expected 1");
    if (field->places != 1 && field->places != 2)
        return bad(index, base, "number of places is neither 1 nor 2");
    if (field->places == 1 && field->place[1] != 0)
        return bad(index, base, "second place is set, but there is one only");
    if (field->start > file_size || field->length > file_size - field->start)
        return bad(index, base, "covered bytes reach beyond the file");
    if (field->start < *covered)
        return bad(index, base, "covered bytes begin before those of the field before end");
    for (uint32_t i = 0; i < field->places; i++)
        if (!place_is_good(field, field->place[i], file_size))
            return bad(index, base, "a place lies beyond the file or among the covered bytes");
    *covered = field->start + field->length;
    return SCR_CRIT_OK;
}

int crit_fields_check(const crit_checksum_field *fields, uint32_t count, uint64_t file_size,
                      int64_t base)
{
    uint64_t covered = 0;
    for (uint32_t i = 0; i < count; i++) {
        const int status = crit_field_check(&fields[i], i, file_size, base, &covered);
        if (status != SCR_CRIT_OK)
            return status;
    }
    return SCR_CRIT_OK;
}

/* ---- Recomputation --------------------------------------------------------------------------- */

void crit_field_refresh_memory(const crit_checksum_field *field, uint8_t *file)
{
    const uint32_t crc = crit_crc32(0, file + field->start, (size_t)field->length);
    for (uint32_t i = 0; i < field->places; i++)
        crit_store_u32(file + field->place[i], crc);
}

int crit_field_refresh_file(const crit_checksum_field *field, int fd, uint8_t *scratch)
{
    uint32_t crc = 0;
    int status = SCR_CRIT_OK;
    uint64_t done = 0;
    while (status == SCR_CRIT_OK && done < field->length) {
        const uint64_t left = field->length - done;
        const size_t n = left < CRIT_WINDOW ? (size_t)left : CRIT_WINDOW;
        status = crit_read_exactly(fd, field->start + done, scratch, n, "expanded bytes");
        if (status == SCR_CRIT_OK)
            crc = crit_crc32(crc, scratch, n);
        done += n;
    }
    uint8_t value[CRIT_FIELD_VALUE_SIZE];
    crit_store_u32(value, crc);
    for (uint32_t i = 0; status == SCR_CRIT_OK && i < field->places; i++)
        status = crit_write_at(fd, field->place[i], value, sizeof value);
    return status;
}

/* ---- Verification ---------------------------------------------------------------------------- */

static int sum_source(const crit_checksum_field *field, crit_source *source, uint8_t *scratch,
                      uint32_t *crc)
{
    *crc = 0;
    for (uint64_t done = 0; done < field->length;) {
        const uint64_t left = field->length - done;
        const size_t n = left < CRIT_WINDOW ? (size_t)left : CRIT_WINDOW;
        const uint8_t *data = NULL;
        const int status = crit_source_view(source, field->start + done, n, scratch, &data);
        if (status != SCR_CRIT_OK)
            return status;
        *crc = crit_crc32(*crc, data, n);
        done += n;
    }
    return SCR_CRIT_OK;
}

static int verify(const crit_checksum_field *field, crit_source *source, uint8_t *scratch)
{
    uint32_t crc;
    int status = sum_source(field, source, scratch, &crc);
    for (uint32_t i = 0; status == SCR_CRIT_OK && i < field->places; i++) {
        uint8_t value[CRIT_FIELD_VALUE_SIZE];
        status = crit_source_read(source, field->place[i], value, sizeof value);
        if (status == SCR_CRIT_OK && crit_load_u32(value) != crc)
            status =
                crit_fail(SCR_CRIT_ERR_MISFIT, (int64_t)field->place[i],
                          "the file's own checksum at offset %llu is %08x, its bytes give %08x",
                          (unsigned long long)field->place[i], crit_load_u32(value), crc);
    }
    return status;
}

int crit_fields_verify(const crit_checksum_field *fields, uint32_t count, crit_source *source)
{
    if (count == 0)
        return SCR_CRIT_OK;
    uint8_t *scratch = malloc(CRIT_WINDOW);
    if (scratch == NULL)
        return crit_fail_memory(CRIT_WINDOW);
    int status = SCR_CRIT_OK;
    for (uint32_t i = 0; status == SCR_CRIT_OK && i < count; i++)
        status = verify(&fields[i], source, scratch);
    free(scratch);
    return status;
}
