/* packed_header.c - marks, header and trailer of packed files, and where their parts lie; see
 * packed.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>
#include <unistd.h>

#include "bytes.h"
#include "codec.h"
#include "error.h"
#include "packed.h"
#include "packed_layout.h"

const uint8_t crit_header_mark[CRIT_MARK_SIZE] = {0x89, 'S', 'C', 'R', 'P', 0x0d, 0x0a, 0x1a};
const uint8_t crit_trailer_mark[CRIT_MARK_SIZE] = {0x1a, 0x0a, 0x0d, 'P', 'R', 'C', 'S', 0x89};

enum { FRAME_UNIT = 1 << 20, FRAMES_PLAIN = 16 };

/* ---- Marks ----------------------------------------------------------------------------------- */

int crit_source_claims_packed(crit_source *source, bool *claims)
{
    uint8_t head[CRIT_MARK_SIZE] = {0};
    uint8_t tail[CRIT_MARK_SIZE] = {0};
    int status = SCR_CRIT_OK;
    if (source->size >= CRIT_MARK_SIZE)
        status = crit_source_read(source, 0, head, sizeof head);
    if (status == SCR_CRIT_OK && source->size >= CRIT_TRAILER_SIZE)
        status = crit_source_read(source, source->size - CRIT_TRAILER_SIZE, tail, sizeof tail);
    *claims = memcmp(head, crit_header_mark, sizeof head) == 0 ||
              memcmp(tail, crit_trailer_mark, sizeof tail) == 0;
    return status;
}

int scr_crit_is_packed(const char *path, int *claims)
{
    if (path == NULL || claims == NULL)
        return crit_fail(SCR_CRIT_ERR_ARG, CRIT_NO_OFFSET, "path or claims is NULL");
    crit_source source;
    bool found = false;
    int status = crit_source_open(&source, path);
    if (status == SCR_CRIT_ERR_ARG) { /* a directory or a device is no packed file */
        *claims = 0;
        return SCR_CRIT_OK;
    }
    if (status == SCR_CRIT_OK) {
        status = crit_source_claims_packed(&source, &found);
        crit_source_close(&source);
    }
    if (status == SCR_CRIT_OK)
        *claims = found;
    return crit_blame(status, path);
}

uint32_t scr_crit_packed_format(void)
{
    return CRIT_PACKED_VERSION;
}

/* ---- Frames and parts ------------------------------------------------------------------------ */

int crit_header_cut_frames(crit_header *header)
{
    header->frame_bytes = FRAME_UNIT;
    if (header->codec == SCR_CRIT_CODEC_NONE) {
        const uint64_t share = header->kept / FRAMES_PLAIN + (header->kept % FRAMES_PLAIN != 0);
        const uint64_t units = share / FRAME_UNIT + (share % FRAME_UNIT != 0);
        header->frame_bytes = (units ? units : 1) * FRAME_UNIT;
    }
    const uint64_t frames =
        header->kept / header->frame_bytes + (header->kept % header->frame_bytes != 0);
    if (frames > UINT32_MAX)
        return crit_fail(SCR_CRIT_ERR_ARG, CRIT_NO_OFFSET,
                         "%llu critical bytes are too many to compress in frames of 1 MiB",
                         (unsigned long long)header->kept);
    header->frames = (uint32_t)frames;
    return SCR_CRIT_OK;
}

uint64_t crit_header_frame_length(const crit_header *header, uint32_t index)
{
    const uint64_t left = header->kept - index * header->frame_bytes;
    return left < header->frame_bytes ? left : header->frame_bytes;
}

bool crit_header_parts(const crit_header *header, crit_parts *parts)
{
    parts->table = CRIT_HEADER_SIZE;
    return crit_add(parts->table, header->table_size, &parts->fields) &&
           crit_add(parts->fields, (uint64_t)header->checksum_fields * CRIT_FIELD_SIZE,
                    &parts->frames) &&
           crit_add(parts->frames, (uint64_t)header->frames * CRIT_FRAME_SIZE, &parts->payload) &&
           crit_add(parts->payload, header->payload_size, &parts->trailer) &&
           crit_add(parts->trailer, CRIT_TRAILER_SIZE, &parts->end) &&
           parts->end <= CRIT_PROGRAM_MAX_LENGTH;
}

/* ---- Writing --------------------------------------------------------------------------------- */

static void store_header(const crit_header *header, uint8_t bytes[CRIT_HEADER_SIZE])
{
    memset(bytes, 0, CRIT_HEADER_SIZE);
    memcpy(bytes, crit_header_mark, CRIT_MARK_SIZE);
    crit_store_u32(bytes + AT_VERSION, CRIT_PACKED_VERSION);
    crit_store_u32(bytes + AT_HEADER_SIZE, CRIT_HEADER_SIZE);
    crit_store_u64(bytes + AT_FILE_SIZE, header->file_size);
    crit_store_u64(bytes + AT_KEPT, header->kept);
    crit_store_u64(bytes + AT_TABLE_SIZE, header->table_size);
    crit_store_u64(bytes + AT_FRAME_BYTES, header->frame_bytes);
    crit_store_u32(bytes + AT_FRAMES, header->frames);
    crit_store_u32(bytes + AT_CODEC, header->codec);
    crit_store_u32(bytes + AT_ENCODINGS, header->encodings);
    crit_store_u32(bytes + AT_FIELDS, header->checksum_fields);
    crit_store_u64(bytes + AT_PAYLOAD_SIZE, header->payload_size);
    crit_store_u64(bytes + AT_PACKED_SIZE, header->packed_size);
    memcpy(bytes + AT_DIGEST, header->plan_digest, sizeof header->plan_digest);
    crit_store_u32(bytes + AT_TYPE_SIZE, header->type_size);
    crit_store_u32(bytes + AT_TABLE_CRC, header->table_crc);
    crit_store_u32(bytes + AT_FIELDS_CRC, header->fields_crc);
    crit_store_u32(bytes + AT_FRAMES_CRC, header->frames_crc);
    crit_store_u32(bytes + AT_HEADER_CRC, scr_crit_crc32c(0, bytes, AT_HEADER_CRC));
}

static void store_trailer(const uint8_t *header, uint8_t bytes[CRIT_TRAILER_SIZE])
{
    memcpy(bytes, crit_trailer_mark, CRIT_MARK_SIZE);
    memcpy(bytes + AT_TRAILER_HEADER_CRC, header + AT_HEADER_CRC, 4);
    crit_store_u32(bytes + AT_TRAILER_CRC, scr_crit_crc32c(0, bytes, AT_TRAILER_CRC));
}

int crit_header_write(const crit_header *header, int fd)
{
    uint8_t head[CRIT_HEADER_SIZE], trailer[CRIT_TRAILER_SIZE];
    store_header(header, head);
    store_trailer(head, trailer);
    const int status = crit_write_at(fd, 0, head, sizeof head);
    if (status != SCR_CRIT_OK)
        return status;
    return crit_write_at(fd, header->packed_size - CRIT_TRAILER_SIZE, trailer, sizeof trailer);
}
