/* unpack.c - packed files back into whole ones, and a look at them; public functions of scr_crit.h.
 *
 * Tests: tests/test_core_packed.py, tests/c/fuzz_packed.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdlib.h>
#include <sys/stat.h>

#include "error.h"
#include "expand.h"
#include "io.h"
#include "output.h"
#include "packed.h"
#include "payload.h"

/* A packed file being read. */
typedef struct payload_source {
    crit_payload_reader reader;
    const char *path;
} payload_source;

static int read_payload(void *context, uint64_t offset, uint8_t *target, size_t size)
{
    payload_source *payload = context;
    (void)offset; /* critical bytes are stored in the order in which they are asked for */
    return crit_blame(crit_payload_read(&payload->reader, target, size), payload->path);
}

static crit_expansion expansion_of(const crit_packed *packed, const scr_crit_fill *fill,
                                   payload_source *payload)
{
    return (crit_expansion){.program = packed->program.bytes,
                            .program_size = packed->program.size,
                            .file_size = packed->header.file_size,
                            .fill = fill,
                            .read = read_payload,
                            .context = payload};
}

static crit_checksum_field field_of(const crit_packed *packed, uint32_t index)
{
    crit_checksum_field field;
    crit_field_load(packed->fields.bytes + (size_t)index * CRIT_FIELD_SIZE, &field);
    return field;
}

/* ---- Into a file ----------------------------------------------------------------------------- */

static int refresh_fields(const crit_packed *packed, int fd)
{
    if (packed->header.checksum_fields == 0)
        return SCR_CRIT_OK;
    uint8_t *scratch = malloc(CRIT_WINDOW);
    if (scratch == NULL)
        return crit_fail_memory(CRIT_WINDOW);
    int status = SCR_CRIT_OK;
    for (uint32_t i = 0; status == SCR_CRIT_OK && i < packed->header.checksum_fields; i++) {
        const crit_checksum_field field = field_of(packed, i);
        status = crit_field_refresh_file(&field, fd, scratch);
    }
    free(scratch);
    return status;
}

static int expand_packed(const crit_packed *packed, const char *path, const scr_crit_fill *fill,
                         int fd)
{
    payload_source payload = {.path = path};
    int status = crit_blame(crit_payload_reader_open(&payload.reader, packed), path);
    if (status == SCR_CRIT_OK) {
        const crit_expansion expansion = expansion_of(packed, fill, &payload);
        status = crit_expand_to_file(&expansion, fd);
    }
    crit_payload_reader_close(&payload.reader);
    return status == SCR_CRIT_OK ? refresh_fields(packed, fd) : status;
}

static int refuse_same_file(const crit_packed *packed, const char *target)
{
    struct stat found;
    if (stat(target, &found) == 0 && found.st_ino == packed->status.st_ino &&
        found.st_dev == packed->status.st_dev)
        return crit_fail(SCR_CRIT_ERR_ARG, CRIT_NO_OFFSET, "target and source are the same file");
    return SCR_CRIT_OK;
}

static int write_whole(const crit_packed *packed, const char *path, const char *target,
                       const scr_crit_fill *fill)
{
    crit_output output;
    int status = crit_output_begin(&output, target, 0600);
    if (status == SCR_CRIT_OK)
        status = crit_output_adopt(&output, packed->fd, &packed->status);
    if (status == SCR_CRIT_OK)
        status = expand_packed(packed, path, fill, output.fd);
    if (status == SCR_CRIT_OK)
        status = crit_output_commit(&output);
    crit_output_close(&output);
    return crit_blame(status, target); /* unless the source has been named */
}

int scr_crit_unpack(const char *source, const char *target, const scr_crit_fill *fill,
                    scr_crit_info *info)
{
    crit_packed packed;
    if (source == NULL || target == NULL)
        return crit_fail(SCR_CRIT_ERR_ARG, CRIT_NO_OFFSET, "source or target is NULL");
    int status = crit_fill_check(fill);
    if (status != SCR_CRIT_OK)
        return status;
    status = crit_packed_open(source, &packed);
    if (status != SCR_CRIT_OK)
        return crit_blame(status, source);
    status = refuse_same_file(&packed, target);
    if (status == SCR_CRIT_OK)
        status = write_whole(&packed, source, target, fill);
    if (status == SCR_CRIT_OK && info != NULL)
        crit_packed_info(&packed, info);
    crit_packed_close(&packed);
    return crit_blame(status, source);
}

/* ---- Into memory ----------------------------------------------------------------------------- */

static int expand_buffer(const crit_packed *packed, const char *path, uint8_t *data,
                         const scr_crit_fill *fill)
{
    payload_source payload = {.path = path};
    int status = crit_payload_reader_open(&payload.reader, packed);
    if (status == SCR_CRIT_OK) {
        const crit_expansion expansion = expansion_of(packed, fill, &payload);
        status = crit_expand_to_memory(&expansion, data);
    }
    crit_payload_reader_close(&payload.reader);
    for (uint32_t i = 0; status == SCR_CRIT_OK && i < packed->header.checksum_fields; i++) {
        const crit_checksum_field field = field_of(packed, i);
        crit_field_refresh_memory(&field, data);
    }
    return status;
}

int scr_crit_unpack_buffer(const char *source, void *data, uint64_t size, const scr_crit_fill *fill,
                           scr_crit_info *info)
{
    crit_packed packed;
    if (source == NULL || (data == NULL && size != 0))
        return crit_fail(SCR_CRIT_ERR_ARG, CRIT_NO_OFFSET, "source or data is NULL");
    int status = crit_fill_check(fill);
    if (status != SCR_CRIT_OK)
        return status;
    status = crit_packed_open(source, &packed);
    if (status != SCR_CRIT_OK)
        return crit_blame(status, source);
    if (size != packed.header.file_size)
        status = crit_fail(SCR_CRIT_ERR_ARG, CRIT_NO_OFFSET,
                           "memory of %llu bytes given, the whole file has %llu",
                           (unsigned long long)size, (unsigned long long)packed.header.file_size);
    if (status == SCR_CRIT_OK)
        status = expand_buffer(&packed, source, data, fill);
    if (status == SCR_CRIT_OK && info != NULL)
        crit_packed_info(&packed, info);
    crit_packed_close(&packed);
    return crit_blame(status, source);
}

/* ---- Nowhere --------------------------------------------------------------------------------- */

static int look_at(const char *path, scr_crit_info *info, int (*verify)(const crit_packed *packed))
{
    crit_packed packed;
    if (path == NULL)
        return crit_fail(SCR_CRIT_ERR_ARG, CRIT_NO_OFFSET, "path is NULL");
    int status = crit_packed_open(path, &packed);
    if (status != SCR_CRIT_OK)
        return crit_blame(status, path);
    if (verify != NULL)
        status = verify(&packed);
    if (status == SCR_CRIT_OK && info != NULL)
        crit_packed_info(&packed, info);
    crit_packed_close(&packed);
    return crit_blame(status, path);
}

int scr_crit_inspect(const char *path, scr_crit_info *info)
{
    return look_at(path, info, NULL);
}

int scr_crit_check(const char *path, scr_crit_info *info)
{
    return look_at(path, info, crit_payload_check);
}
