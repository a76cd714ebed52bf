/* payload_reader.c - frames into critical bytes, verified; see payload.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "payload.h"

/* Read ahead by a codec's frame; pieces larger than a quarter of it go straight to where they are
 * wanted. */
enum { AHEAD = CRIT_CODEC_FRAME };

int crit_payload_reader_open(crit_payload_reader *reader, const crit_packed *packed)
{
    memset(reader, 0, sizeof *reader);
    reader->packed = packed;
    reader->at = packed->parts.payload;
    if (packed->header.frames > 0)
        reader->left = crit_header_frame_length(&packed->header, 0);
    reader->ahead = packed->header.kept < AHEAD ? (size_t)packed->header.kept : AHEAD;
    reader->plain = malloc(reader->ahead + 1);
    if (reader->plain == NULL)
        return crit_fail_memory(reader->ahead);
    if (packed->header.codec == SCR_CRIT_CODEC_NONE)
        return SCR_CRIT_OK;
    reader->stored = malloc(reader->ahead + CRIT_CODEC_GROWTH);
    if (reader->stored == NULL)
        return crit_fail_memory(reader->ahead);
    return crit_codec_open_decompressor(packed->header.codec, &reader->codec);
}

void crit_payload_reader_close(crit_payload_reader *reader)
{
    crit_codec_close(reader->codec);
    free(reader->stored);
    free(reader->plain);
    memset(reader, 0, sizeof *reader);
}

static int check_crc(const crit_packed *packed, uint32_t frame, uint64_t end, uint32_t found)
{
    uint64_t stored;
    uint32_t expected;
    crit_packed_frame(packed, frame, &stored, &expected);
    if (found != expected)
        return crit_fail(
            SCR_CRIT_ERR_CHECKSUM, (int64_t)(end - stored),
            "checksum of frame %u, %llu bytes at offset %llu, does not match: the file is "
            "damaged",
            frame, (unsigned long long)stored, (unsigned long long)(end - stored));
    return SCR_CRIT_OK;
}

static void next_frame(crit_payload_reader *reader)
{
    reader->frame++;
    reader->crc = 0;
    if (reader->frame < reader->packed->header.frames)
        reader->left = crit_header_frame_length(&reader->packed->header, reader->frame);
}

/* Fetch plain bytes of the current frame. */
static int fetch_plain(crit_payload_reader *reader, uint8_t *target, size_t size)
{
    int status = crit_read_exactly(reader->packed->fd, reader->at, target, size, "payload");
    if (status != SCR_CRIT_OK)
        return status;
    reader->at += size;
    reader->left -= size;
    reader->crc = scr_crit_crc32c(reader->crc, target, size);
    if (reader->left > 0)
        return SCR_CRIT_OK;
    status = check_crc(reader->packed, reader->frame, reader->at, reader->crc);
    next_frame(reader);
    return status;
}

/* Fetch the current frame, all of it, through the codec. */
static int fetch_frame(crit_payload_reader *reader)
{
    uint64_t stored;
    uint32_t crc;
    const int64_t offset = (int64_t)reader->at;
    crit_packed_frame(reader->packed, reader->frame, &stored, &crc);
    int status = crit_read_exactly(reader->packed->fd, reader->at, reader->stored, (size_t)stored,
                                   "payload");
    if (status != SCR_CRIT_OK)
        return status;
    reader->at += stored;
    status = check_crc(reader->packed, reader->frame, reader->at,
                       scr_crit_crc32c(0, reader->stored, (size_t)stored));
    if (status == SCR_CRIT_OK)
        status = crit_codec_decompress(reader->codec, reader->stored, (size_t)stored, reader->plain,
                                       (size_t)reader->left, offset);
    reader->end = (size_t)reader->left;
    reader->left = 0;
    next_frame(reader);
    return status;
}

static int fetch_ahead(crit_payload_reader *reader)
{
    reader->begin = 0;
    if (reader->codec != NULL)
        return fetch_frame(reader);
    reader->end = reader->left < reader->ahead ? (size_t)reader->left : reader->ahead;
    return fetch_plain(reader, reader->plain, reader->end);
}

/* Hand out what has been fetched, or fetch: some bytes of the `size` that are wanted. */
static int read_some(crit_payload_reader *reader, uint8_t *target, size_t size, size_t *got)
{
    if (reader->begin == reader->end) {
        if (reader->left == 0)
            return crit_fail(SCR_CRIT_ERR_CHANGED, (int64_t)reader->at,
                             "the program of runs changed while it was being read");
        if (reader->codec == NULL && size > AHEAD / 4) {
            *got = size < reader->left ? size : (size_t)reader->left;
            return fetch_plain(reader, target, *got);
        }
        const int status = fetch_ahead(reader);
        if (status != SCR_CRIT_OK)
            return status;
    }
    const size_t there = reader->end - reader->begin;
    *got = size < there ? size : there;
    memcpy(target, reader->plain + reader->begin, *got);
    reader->begin += *got;
    return SCR_CRIT_OK;
}

int crit_payload_read(crit_payload_reader *reader, uint8_t *target, size_t size)
{
    while (size > 0) {
        size_t got = 0;
        const int status = read_some(reader, target, size, &got);
        if (status != SCR_CRIT_OK)
            return status;
        target += got;
        size -= got;
    }
    return SCR_CRIT_OK;
}

/* ---- Check ----------------------------------------------------------------------------------- */

/* Checksums alone: for a codec that this machine lacks. They cover every stored byte. */
static int check_stored(const crit_packed *packed, uint8_t *scratch)
{
    uint64_t at = packed->parts.payload;
    for (uint32_t frame = 0; frame < packed->header.frames; frame++) {
        uint64_t stored;
        uint32_t crc;
        crit_packed_frame(packed, frame, &stored, &crc);
        int status = crit_read_exactly(packed->fd, at, scratch, (size_t)stored, "payload");
        at += stored;
        if (status == SCR_CRIT_OK)
            status = check_crc(packed, frame, at, scr_crit_crc32c(0, scratch, (size_t)stored));
        if (status != SCR_CRIT_OK)
            return status;
    }
    return SCR_CRIT_OK;
}

static int check_plain(const crit_packed *packed, uint8_t *scratch, size_t capacity)
{
    crit_payload_reader reader;
    int status = crit_payload_reader_open(&reader, packed);
    uint64_t left = packed->header.kept;
    while (status == SCR_CRIT_OK && left > 0) {
        const size_t n = left < capacity ? (size_t)left : capacity;
        status = crit_payload_read(&reader, scratch, n);
        left -= n;
    }
    crit_payload_reader_close(&reader);
    return status;
}

int crit_payload_check(const crit_packed *packed)
{
    /* A frame as stored fits too. */
    const size_t capacity = crit_window_size(packed->header.kept + CRIT_CODEC_GROWTH);
    uint8_t *scratch = malloc(capacity);
    if (scratch == NULL)
        return crit_fail_memory(capacity);
    const int status = crit_codec_usable(packed->header.codec) == SCR_CRIT_OK
                           ? check_plain(packed, scratch, capacity)
                           : check_stored(packed, scratch);
    free(scratch);
    return status;
}
