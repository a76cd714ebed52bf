/* harness.c - the packer below the plan, callable from Python by ctypes.
 *
 * tests/core_library.py compiles it with the core into one shared library. A resolution comes as a
 * program and checksum fields as a packed file stores them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "overwrite.h"
#include "pack.h"
#include "scr_crit.h"

#pragma GCC visibility push(default)

typedef struct harness_rules {
    const uint8_t *program;
    size_t program_size;
    const uint8_t *fields; /* CRIT_FIELD_SIZE bytes each */
    uint32_t field_count;
    uint32_t type_size;
    uint8_t digest[16];
} harness_rules;

static int make_resolution(const harness_rules *rules, uint64_t file_size,
                           crit_resolution *resolution)
{
    int status = crit_program_append(&resolution->program, rules->program, rules->program_size, 0);
    if (status != SCR_CRIT_OK)
        return status;
    resolution->type_size = rules->type_size;
    memcpy(resolution->digest, rules->digest, sizeof rules->digest);
    resolution->fields = calloc(rules->field_count + 1, sizeof *resolution->fields);
    if (resolution->fields == NULL)
        return crit_fail_memory(rules->field_count);
    resolution->field_count = rules->field_count;
    for (uint32_t i = 0; i < rules->field_count; i++)
        crit_field_load(rules->fields + (size_t)i * CRIT_FIELD_SIZE, &resolution->fields[i]);
    return crit_resolution_check(resolution, file_size);
}

static int pack_source(crit_source *source, const harness_rules *rules, const char *target,
                       const scr_crit_pack_options *options, scr_crit_info *info)
{
    crit_resolution resolution;
    crit_resolution_init(&resolution);
    int status = make_resolution(rules, source->size, &resolution);
    if (status == SCR_CRIT_OK)
        status = crit_pack(source, &resolution, target, options, info);
    crit_resolution_free(&resolution);
    return status;
}

int harness_pack(const char *source, const harness_rules *rules, const char *target,
                 const scr_crit_pack_options *options, scr_crit_info *info)
{
    crit_source file;
    int status = crit_source_open(&file, source);
    if (status != SCR_CRIT_OK)
        return status;
    status = pack_source(&file, rules, target, options, info);
    crit_source_close(&file);
    return status;
}

int harness_pack_buffers(const scr_crit_buffer *buffers, size_t count, const harness_rules *rules,
                         const char *target, const scr_crit_pack_options *options,
                         scr_crit_info *info)
{
    crit_source memory;
    const int status = crit_source_buffers(&memory, buffers, count);
    return status == SCR_CRIT_OK ? pack_source(&memory, rules, target, options, info) : status;
}

int harness_measure(const harness_rules *rules, uint64_t file_size, scr_crit_info *info)
{
    crit_resolution resolution;
    crit_resolution_init(&resolution);
    int status = make_resolution(rules, file_size, &resolution);
    if (status == SCR_CRIT_OK)
        status = crit_pack_measure(&resolution, info);
    crit_resolution_free(&resolution);
    return status;
}

int harness_overwrite(const char *path, const harness_rules *rules, const scr_crit_fill *fill)
{
    crit_source file;
    crit_resolution resolution;
    int status = crit_source_open(&file, path);
    if (status != SCR_CRIT_OK)
        return status;
    crit_resolution_init(&resolution);
    status = make_resolution(rules, file.size, &resolution);
    if (status == SCR_CRIT_OK)
        status = crit_overwrite(&file, &resolution, fill);
    crit_resolution_free(&resolution);
    crit_source_close(&file);
    return status;
}

#pragma GCC visibility pop
