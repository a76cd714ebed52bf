/* pack.c - see pack.h.
 *
 * The source is read forward in windows that begin and end with critical bytes; a long uncritical
 * run is skipped. The header, which needs the checksums of all else, is written last.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "pack.h"

#include <stdlib.h>
#include <string.h>

#include "codec.h"
#include "error.h"
#include "io.h"
#include "output.h"
#include "packed.h"
#include "payload.h"

enum {
    SKIPPED_GAP = 128 << 10, /* uncritical runs from this length on are not read */
    WINDOW_RUNS = 32768      /* most runs in one window: 512 KiB of bounds */
};

/* ---- Header ---------------------------------------------------------------------------------- */

int crit_refuse_packed(crit_source *source)
{
    bool claims;
    const int status = crit_source_claims_packed(source, &claims);
    if (status != SCR_CRIT_OK)
        return status;
    if (claims)
        return crit_fail(SCR_CRIT_ERR_NESTED, 0, "the source is a packed file already");
    return SCR_CRIT_OK;
}

static int plan_header(const crit_resolution *resolution, const scr_crit_pack_options *options,
                       crit_header *header)
{
    memset(header, 0, sizeof *header);
    header->file_size = resolution->facts.length;
    header->kept = resolution->facts.kept;
    header->table_size = resolution->program.size;
    header->encodings = resolution->facts.encodings;
    header->checksum_fields = resolution->field_count;
    header->codec = options ? options->codec : SCR_CRIT_CODEC_NONE;
    header->type_size = 1;
    memcpy(header->plan_digest, resolution->digest, sizeof header->plan_digest);
    if (header->codec != SCR_CRIT_CODEC_NONE)
        header->type_size = options->type_size ? options->type_size : resolution->type_size;
    if (header->type_size < 1 || header->type_size > 255)
        return crit_fail(SCR_CRIT_ERR_ARG, CRIT_NO_OFFSET, "type_size is %u, expected 1 to 255",
                         header->type_size);
    return crit_header_cut_frames(header);
}

/* Where the parts lie when the payload takes `payload_size` bytes. */
static int size_header(crit_header *header, uint64_t payload_size, crit_parts *parts)
{
    header->payload_size = payload_size;
    if (!crit_header_parts(header, parts))
        return crit_fail(SCR_CRIT_ERR_ARG, CRIT_NO_OFFSET,
                         "a packed file would exceed 2^63 - 1 bytes");
    header->packed_size = parts->end;
    return SCR_CRIT_OK;
}

static int check_gain(const crit_header *header)
{
    if (header->packed_size >= header->file_size)
        return crit_fail(SCR_CRIT_ERR_NOGAIN, CRIT_NO_OFFSET,
                         "packed it would take %llu bytes, whole it takes %llu",
                         (unsigned long long)header->packed_size,
                         (unsigned long long)header->file_size);
    return SCR_CRIT_OK;
}

static void fill_info(const crit_header *header, const crit_resolution *resolution,
                      scr_crit_info *info)
{
    if (info == NULL)
        return;
    memset(info, 0, sizeof *info);
    info->file_bytes = header->file_size;
    info->kept_bytes = header->kept;
    info->packed_bytes = header->packed_size;
    info->dropped_runs = resolution->facts.dropped_runs;
    info->table_bytes = header->table_size;
    info->encodings = header->encodings;
    info->codec = header->codec;
    info->format = CRIT_PACKED_VERSION;
    memcpy(info->plan_digest, header->plan_digest, sizeof info->plan_digest);
}

int crit_pack_measure(const crit_resolution *resolution, scr_crit_info *info)
{
    crit_header header;
    crit_parts parts;
    int status = plan_header(resolution, NULL, &header);
    if (status == SCR_CRIT_OK)
        status = size_header(&header, header.kept, &parts);
    if (status == SCR_CRIT_OK)
        fill_info(&header, resolution, info);
    return status;
}

/* ---- Critical bytes -------------------------------------------------------------------------- */

/* Runs that are read at once. */
typedef struct window {
    crit_run *runs;
    size_t count;
    uint8_t *scratch;
    crit_run next; /* the run after those */
    bool more;     /* whether there is one */
} window;

/* Take as many runs as lie within one window; a longer run is taken in part. */
static void fill_window(window *w, crit_cursor *cursor)
{
    const uint64_t limit = w->next.start + CRIT_WINDOW;
    uint64_t reached = w->next.start;
    w->count = 0;
    while (w->more && w->count < WINDOW_RUNS && w->next.start < limit &&
           w->next.start - reached < SKIPPED_GAP) {
        w->runs[w->count] = w->next;
        if (w->next.stop > limit) {
            w->runs[w->count++].stop = limit;
            w->next.start = limit;
            return;
        }
        reached = w->next.stop;
        w->count++;
        w->more = crit_cursor_next(cursor, &w->next);
    }
}

static int gather_window(const window *w, crit_source *source, crit_payload_writer *payload)
{
    const uint64_t start = w->runs[0].start;
    const size_t span = (size_t)(w->runs[w->count - 1].stop - start);
    const uint8_t *data = NULL;
    int status = crit_blame(crit_source_view(source, start, span, w->scratch, &data), source->name);
    for (size_t i = 0; status == SCR_CRIT_OK && i < w->count; i++)
        status = crit_payload_write(payload, data + (w->runs[i].start - start),
                                    (size_t)(w->runs[i].stop - w->runs[i].start));
    return status;
}

static int gather(crit_source *source, const crit_program *program, crit_payload_writer *payload)
{
    window w = {.runs = malloc(WINDOW_RUNS * sizeof *w.runs),
                .scratch = malloc(crit_window_size(source->size))};
    crit_cursor cursor;
    int status = SCR_CRIT_OK;
    if (w.runs == NULL || w.scratch == NULL)
        status = crit_fail_memory(CRIT_WINDOW);
    crit_cursor_open(&cursor, program->bytes, program->size);
    w.more = crit_cursor_next(&cursor, &w.next);
    while (status == SCR_CRIT_OK && w.more) {
        fill_window(&w, &cursor);
        status = gather_window(&w, source, payload);
    }
    free(w.runs);
    free(w.scratch);
    return status;
}

/* ---- File ------------------------------------------------------------------------------------ */

/* Write program and checksum fields, and note their checksums in the header. */
static int write_tables(const crit_resolution *resolution, const crit_parts *parts, int fd,
                        crit_header *header)
{
    const crit_program *program = &resolution->program;
    header->table_crc = scr_crit_crc32c(0, program->bytes, program->size);
    int status = crit_write_at(fd, parts->table, program->bytes, program->size);
    for (uint32_t i = 0; status == SCR_CRIT_OK && i < resolution->field_count; i++) {
        uint8_t bytes[CRIT_FIELD_SIZE];
        crit_field_store(bytes, &resolution->fields[i]);
        header->fields_crc = scr_crit_crc32c(header->fields_crc, bytes, sizeof bytes);
        status =
            crit_write_at(fd, parts->fields + (uint64_t)i * CRIT_FIELD_SIZE, bytes, sizeof bytes);
    }
    return status;
}

/* Write program and payload, and complete the header. */
static int write_content(crit_source *source, const crit_resolution *resolution, int fd,
                         crit_header *header)
{
    crit_parts parts;
    crit_payload_writer payload;
    int status = size_header(header, header->kept, &parts);
    if (status == SCR_CRIT_OK)
        status = write_tables(resolution, &parts, fd, header);
    if (status != SCR_CRIT_OK)
        return status;
    status = crit_payload_writer_open(&payload, fd, header, &parts);
    if (status == SCR_CRIT_OK)
        status = gather(source, &resolution->program, &payload);
    if (status == SCR_CRIT_OK)
        status = crit_payload_finish(&payload);
    header->frames_crc = payload.frames_crc;
    const uint64_t payload_size = payload.at - parts.payload;
    crit_payload_writer_close(&payload);
    if (status == SCR_CRIT_OK)
        status = size_header(header, payload_size, &parts);
    return status;
}

static int write_packed(crit_source *source, const crit_resolution *resolution, crit_header *header,
                        crit_output *output)
{
    int status = SCR_CRIT_OK;
    if (source->fd >= 0)
        status = crit_output_adopt(output, source->fd, &source->opened);
    if (status == SCR_CRIT_OK)
        status = write_content(source, resolution, output->fd, header);
    if (status == SCR_CRIT_OK)
        status = crit_blame(check_gain(header), source->name);
    if (status == SCR_CRIT_OK)
        status = crit_header_write(header, output->fd);
    if (status == SCR_CRIT_OK)
        status = crit_blame(crit_source_unchanged(source), source->name);
    return status == SCR_CRIT_OK ? crit_output_commit(output) : status;
}

/* What can be known before anything is written. */
static int prepare(crit_source *source, const crit_resolution *resolution,
                   const scr_crit_pack_options *options, crit_header *header)
{
    crit_parts parts;
    int status = crit_refuse_packed(source);
    if (status == SCR_CRIT_OK)
        status = plan_header(resolution, options, header);
    if (status == SCR_CRIT_OK)
        status = crit_codec_usable(header->codec);
    if (status == SCR_CRIT_OK && header->codec == SCR_CRIT_CODEC_NONE) {
        status = size_header(header, header->kept, &parts);
        if (status == SCR_CRIT_OK)
            status = check_gain(header);
    }
    if (status == SCR_CRIT_OK)
        status = crit_fields_verify(resolution->fields, resolution->field_count, source);
    return status;
}

int crit_pack(crit_source *source, const crit_resolution *resolution, const char *target,
              const scr_crit_pack_options *options, scr_crit_info *info)
{
    crit_header header;
    crit_output output;
    int status = prepare(source, resolution, options, &header);
    if (status != SCR_CRIT_OK)
        return crit_blame(status, source->name);
    status = crit_output_begin(&output, target, source->fd >= 0 ? 0600 : 0666);
    if (status == SCR_CRIT_OK)
        status = write_packed(source, resolution, &header, &output);
    crit_output_close(&output);
    if (status == SCR_CRIT_OK)
        fill_info(&header, resolution, info);
    return crit_blame(status, target); /* unless the source has been named */
}
