/* packed_read.c - open a packed file and verify all of it but the payload; see packed.h.
 *
 * Order matters: marks and checksum of the header before its numbers are believed, sizes against
 * the file's length before anything is allocated by them, checksums of the tables before they are
 * read.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "bytes.h"
#include "codec.h"
#include "error.h"
#include "packed.h"
#include "packed_layout.h"

/* ---- Header ---------------------------------------------------------------------------------- */

static int bad_number(int offset, const char *name, uint64_t found, uint64_t expected)
{
    return crit_fail(SCR_CRIT_ERR_FORMAT, offset, "header field %s is %llu, expected %llu", name,
                     (unsigned long long)found, (unsigned long long)expected);
}

static void load_header(const uint8_t *bytes, crit_header *header)
{
    header->file_size = crit_load_u64(bytes + AT_FILE_SIZE);
    header->kept = crit_load_u64(bytes + AT_KEPT);
    header->table_size = crit_load_u64(bytes + AT_TABLE_SIZE);
    header->frame_bytes = crit_load_u64(bytes + AT_FRAME_BYTES);
    header->frames = crit_load_u32(bytes + AT_FRAMES);
    header->codec = crit_load_u32(bytes + AT_CODEC);
    header->encodings = crit_load_u32(bytes + AT_ENCODINGS);
    header->checksum_fields = crit_load_u32(bytes + AT_FIELDS);
    header->payload_size = crit_load_u64(bytes + AT_PAYLOAD_SIZE);
    header->packed_size = crit_load_u64(bytes + AT_PACKED_SIZE);
    memcpy(header->plan_digest, bytes + AT_DIGEST, sizeof header->plan_digest);
    header->type_size = crit_load_u32(bytes + AT_TYPE_SIZE);
    header->table_crc = crit_load_u32(bytes + AT_TABLE_CRC);
    header->fields_crc = crit_load_u32(bytes + AT_FIELDS_CRC);
    header->frames_crc = crit_load_u32(bytes + AT_FRAMES_CRC);
}

/* A later version may lay out the rest differently: its number counts before the checksum. */
static int check_identity(const uint8_t *bytes)
{
    if (memcmp(bytes, crit_header_mark, CRIT_MARK_SIZE) != 0)
        return crit_fail(SCR_CRIT_ERR_FORMAT, 0, "not a packed file: its mark is missing");
    const uint32_t version = crit_load_u32(bytes + AT_VERSION);
    const bool intact =
        crit_load_u32(bytes + AT_HEADER_CRC) == scr_crit_crc32c(0, bytes, AT_HEADER_CRC);
    if (version > CRIT_PACKED_VERSION)
        return crit_fail(
            SCR_CRIT_ERR_VERSION, AT_VERSION,
            "packed format %u is newer than this library's %d, or the header is damaged", version,
            CRIT_PACKED_VERSION);
    if (!intact)
        return crit_fail(SCR_CRIT_ERR_CHECKSUM, AT_HEADER_CRC,
                         "checksum of the header does not match: the file is damaged");
    if (version != CRIT_PACKED_VERSION)
        return bad_number(AT_VERSION, "version", version, CRIT_PACKED_VERSION);
    if (crit_load_u32(bytes + AT_HEADER_SIZE) != CRIT_HEADER_SIZE)
        return bad_number(AT_HEADER_SIZE, "header_size", crit_load_u32(bytes + AT_HEADER_SIZE),
                          CRIT_HEADER_SIZE);
    if (!crit_all_zero(bytes + AT_RESERVED, AT_HEADER_CRC - AT_RESERVED))
        return crit_fail(SCR_CRIT_ERR_FORMAT, AT_RESERVED, "reserved bytes of the header are set");
    return SCR_CRIT_OK;
}

static int check_codec(const crit_header *header)
{
    if (header->codec > SCR_CRIT_CODEC_BLOSC2_ZSTD)
        return crit_fail(SCR_CRIT_ERR_CODEC, AT_CODEC,
                         "codec %u is unknown; this library knows 0 (none) and 1 (blosc2-zstd)",
                         header->codec);
    if (header->codec == SCR_CRIT_CODEC_NONE && header->type_size != 1)
        return bad_number(AT_TYPE_SIZE, "type_size", header->type_size, 1);
    if (header->type_size < 1 || header->type_size > 255)
        return crit_fail(SCR_CRIT_ERR_FORMAT, AT_TYPE_SIZE,
                         "header field type_size is %u, expected 1 to 255", header->type_size);
    if (header->codec == SCR_CRIT_CODEC_NONE && header->payload_size != header->kept)
        return bad_number(AT_PAYLOAD_SIZE, "payload_size", header->payload_size, header->kept);
    return SCR_CRIT_OK;
}

static int check_numbers(crit_packed *packed, uint64_t found_size)
{
    const crit_header *header = &packed->header;
    crit_header expected = {.kept = header->kept, .codec = header->codec};
    int status = check_codec(header);
    if (status != SCR_CRIT_OK)
        return status;
    if (header->file_size > CRIT_PROGRAM_MAX_LENGTH || header->kept > header->file_size)
        return crit_fail(SCR_CRIT_ERR_FORMAT, AT_FILE_SIZE,
                         "header fields file_size (%llu) and kept (%llu) do not agree",
                         (unsigned long long)header->file_size, (unsigned long long)header->kept);
    status = crit_header_cut_frames(&expected);
    if (status != SCR_CRIT_OK)
        return crit_fail(SCR_CRIT_ERR_FORMAT, AT_KEPT, "header field kept needs too many frames");
    if (header->frame_bytes != expected.frame_bytes)
        return bad_number(AT_FRAME_BYTES, "frame_bytes", header->frame_bytes, expected.frame_bytes);
    if (header->frames != expected.frames)
        return bad_number(AT_FRAMES, "frames", header->frames, expected.frames);
    if (!crit_header_parts(header, &packed->parts) || packed->parts.end != header->packed_size)
        return crit_fail(SCR_CRIT_ERR_FORMAT, AT_PACKED_SIZE,
                         "header field packed_size is %llu, which is not the sum of its parts",
                         (unsigned long long)header->packed_size);
    if (found_size != header->packed_size)
        return crit_fail(SCR_CRIT_ERR_FORMAT, (int64_t)found_size,
                         "the file has %llu bytes, expected %llu: it was cut or appended to",
                         (unsigned long long)found_size, (unsigned long long)header->packed_size);
    return SCR_CRIT_OK;
}

static int read_header(crit_packed *packed)
{
    uint8_t head[CRIT_HEADER_SIZE], trailer[CRIT_TRAILER_SIZE];
    int status = crit_read_exactly(packed->fd, 0, head, sizeof head, "header");
    if (status == SCR_CRIT_OK)
        status = check_identity(head);
    if (status != SCR_CRIT_OK)
        return status;
    load_header(head, &packed->header);
    status = check_numbers(packed, (uint64_t)packed->status.st_size);
    if (status == SCR_CRIT_OK)
        status = crit_read_exactly(packed->fd, packed->parts.trailer, trailer, sizeof trailer,
                                   "trailer");
    if (status != SCR_CRIT_OK)
        return status;
    if (memcmp(trailer, crit_trailer_mark, CRIT_MARK_SIZE) != 0 ||
        memcmp(trailer + AT_TRAILER_HEADER_CRC, head + AT_HEADER_CRC, 4) != 0 ||
        crit_load_u32(trailer + AT_TRAILER_CRC) != scr_crit_crc32c(0, trailer, AT_TRAILER_CRC))
        return crit_fail(SCR_CRIT_ERR_CHECKSUM, (int64_t)packed->parts.trailer,
                         "trailer does not belong to the header: the file is damaged");
    return SCR_CRIT_OK;
}

/* ---- Tables ---------------------------------------------------------------------------------- */

static int load_table(crit_packed *packed, uint64_t begin, uint64_t end, uint32_t crc,
                      const char *what, crit_region *region)
{
    const int status = crit_region_load(packed->fd, begin, end - begin, what, region);
    if (status != SCR_CRIT_OK)
        return status;
    if (scr_crit_crc32c(0, region->bytes, region->size) != crc)
        return crit_fail(SCR_CRIT_ERR_CHECKSUM, (int64_t)begin,
                         "checksum of the %s does not match: the file is damaged", what);
    return SCR_CRIT_OK;
}

static int read_program(crit_packed *packed)
{
    const crit_header *header = &packed->header;
    int status = load_table(packed, packed->parts.table, packed->parts.fields, header->table_crc,
                            "program of runs", &packed->program);
    if (status == SCR_CRIT_OK)
        status =
            crit_program_validate(packed->program.bytes, packed->program.size,
                                  (int64_t)packed->parts.table, header->file_size, &packed->facts);
    if (status != SCR_CRIT_OK)
        return status;
    if (packed->facts.kept != header->kept)
        return bad_number(AT_KEPT, "kept", header->kept, packed->facts.kept);
    if (packed->facts.encodings != header->encodings)
        return bad_number(AT_ENCODINGS, "encodings", header->encodings, packed->facts.encodings);
    return SCR_CRIT_OK;
}

static int read_fields(crit_packed *packed)
{
    uint64_t covered = 0;
    int status = load_table(packed, packed->parts.fields, packed->parts.frames,
                            packed->header.fields_crc, "checksum fields", &packed->fields);
    for (uint32_t i = 0; status == SCR_CRIT_OK && i < packed->header.checksum_fields; i++) {
        crit_checksum_field field;
        crit_field_load(packed->fields.bytes + (size_t)i * CRIT_FIELD_SIZE, &field);
        status = crit_field_check(&field, i, packed->header.file_size,
                                  (int64_t)packed->parts.fields, &covered);
    }
    return status;
}

void crit_packed_frame(const crit_packed *packed, uint32_t index, uint64_t *stored, uint32_t *crc)
{
    const uint8_t *row = packed->frames.bytes + (size_t)index * CRIT_FRAME_SIZE;
    *stored = crit_load_u64(row);
    *crc = crit_load_u32(row + 8);
}

static bool frame_is_good(const crit_packed *packed, uint32_t index, uint64_t stored)
{
    const uint64_t length = crit_header_frame_length(&packed->header, index);
    if (packed->header.codec == SCR_CRIT_CODEC_NONE)
        return stored == length;
    return stored >= 1 && stored <= length + CRIT_CODEC_GROWTH;
}

static int read_frames(crit_packed *packed)
{
    const int64_t base = (int64_t)packed->parts.frames;
    uint64_t sum = 0;
    const int status = load_table(packed, packed->parts.frames, packed->parts.payload,
                                  packed->header.frames_crc, "table of frames", &packed->frames);
    if (status != SCR_CRIT_OK)
        return status;
    for (uint32_t i = 0; i < packed->header.frames; i++) {
        uint64_t stored;
        uint32_t crc;
        crit_packed_frame(packed, i, &stored, &crc);
        if (!frame_is_good(packed, i, stored) ||
            crit_load_u32(packed->frames.bytes + (size_t)i * CRIT_FRAME_SIZE + 12) != 0)
            return crit_fail(SCR_CRIT_ERR_FORMAT, base + (int64_t)i * CRIT_FRAME_SIZE,
                             "frame %u of %llu bytes cannot be %llu bytes as stored", i,
                             (unsigned long long)crit_header_frame_length(&packed->header, i),
                             (unsigned long long)stored);
        sum += stored; /* each at most kept + 32: 2^32 of them cannot wrap it unseen */
        if (sum > packed->header.payload_size)
            break;
    }
    if (sum != packed->header.payload_size)
        return crit_fail(SCR_CRIT_ERR_FORMAT, base,
                         "frames do not add up to the payload's %llu bytes",
                         (unsigned long long)packed->header.payload_size);
    return SCR_CRIT_OK;
}

/* ---- Entry points ---------------------------------------------------------------------------- */

/* The packed file takes the descriptor over, also on failure. */
static int open_fd(int fd, crit_packed *packed)
{
    memset(packed, 0, sizeof *packed);
    packed->fd = fd;
    int status = SCR_CRIT_OK;
    if (fstat(fd, &packed->status) != 0)
        status = crit_fail_system(errno, CRIT_NO_OFFSET, "cannot look at the file");
    if (status == SCR_CRIT_OK)
        status = read_header(packed);
    if (status == SCR_CRIT_OK)
        status = read_program(packed);
    if (status == SCR_CRIT_OK)
        status = read_fields(packed);
    if (status == SCR_CRIT_OK)
        status = read_frames(packed);
    if (status != SCR_CRIT_OK)
        crit_packed_close(packed);
    return status;
}

int crit_packed_open(const char *path, crit_packed *packed)
{
    int fd;
    struct stat found;
    const int status = crit_open_regular(path, &fd, &found);
    return status == SCR_CRIT_OK ? open_fd(fd, packed) : status;
}

void crit_packed_close(crit_packed *packed)
{
    crit_region_free(&packed->program);
    crit_region_free(&packed->fields);
    crit_region_free(&packed->frames);
    if (packed->fd >= 0)
        close(packed->fd);
    packed->fd = -1;
}

void crit_packed_info(const crit_packed *packed, scr_crit_info *info)
{
    memset(info, 0, sizeof *info);
    info->file_bytes = packed->header.file_size;
    info->kept_bytes = packed->header.kept;
    info->packed_bytes = packed->header.packed_size;
    info->dropped_runs = packed->facts.dropped_runs;
    info->table_bytes = packed->header.table_size;
    info->encodings = packed->header.encodings;
    info->codec = packed->header.codec;
    info->format = CRIT_PACKED_VERSION;
    memcpy(info->plan_digest, packed->header.plan_digest, sizeof info->plan_digest);
}
