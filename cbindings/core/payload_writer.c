/* payload_writer.c - critical bytes into frames; see payload.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "error.h"
#include "payload.h"

/* A codec's frame, or what is gathered before a plain write: larger pieces bypass it. */
enum { BUFFER_SIZE = CRIT_CODEC_FRAME };

int crit_payload_writer_open(crit_payload_writer *writer, int fd, const crit_header *header,
                             const crit_parts *parts)
{
    memset(writer, 0, sizeof *writer);
    writer->fd = fd;
    writer->header = header;
    writer->at = parts->payload;
    writer->rows_at = parts->frames;
    writer->length = crit_header_frame_length(header, 0);
    writer->buffer = malloc(BUFFER_SIZE);
    writer->rows = malloc((size_t)CRIT_FRAME_ROWS * CRIT_FRAME_SIZE);
    if (writer->buffer == NULL || writer->rows == NULL)
        return crit_fail_memory(BUFFER_SIZE);
    if (header->codec == SCR_CRIT_CODEC_NONE)
        return SCR_CRIT_OK;
    writer->compressed = malloc(CRIT_CODEC_FRAME + CRIT_CODEC_GROWTH);
    if (writer->compressed == NULL)
        return crit_fail_memory(CRIT_CODEC_FRAME);
    return crit_codec_open_compressor(header->codec, header->type_size, &writer->codec);
}

void crit_payload_writer_close(crit_payload_writer *writer)
{
    crit_codec_close(writer->codec);
    free(writer->compressed);
    free(writer->buffer);
    free(writer->rows);
    memset(writer, 0, sizeof *writer);
}

/* ---- Table of frames ------------------------------------------------------------------------- */

static int flush_rows(crit_payload_writer *writer)
{
    const size_t size = writer->row_count * CRIT_FRAME_SIZE;
    writer->frames_crc = scr_crit_crc32c(writer->frames_crc, writer->rows, size);
    const int status = crit_write_at(writer->fd, writer->rows_at, writer->rows, size);
    writer->rows_at += size;
    writer->row_count = 0;
    return status;
}

static int end_frame(crit_payload_writer *writer)
{
    uint8_t *row = writer->rows + writer->row_count * CRIT_FRAME_SIZE;
    crit_store_u64(row, writer->stored);
    crit_store_u32(row + 8, writer->crc);
    crit_store_u32(row + 12, 0);
    writer->row_count++;
    writer->frame++;
    if (writer->frame < writer->header->frames)
        writer->length = crit_header_frame_length(writer->header, writer->frame);
    writer->filled = 0;
    writer->stored = 0;
    writer->crc = 0;
    return writer->row_count == CRIT_FRAME_ROWS ? flush_rows(writer) : SCR_CRIT_OK;
}

/* ---- Bytes ----------------------------------------------------------------------------------- */

static int store(crit_payload_writer *writer, const uint8_t *data, size_t size)
{
    const int status = crit_write_at(writer->fd, writer->at, data, size);
    writer->at += size;
    return status;
}

/* Bring the frame's checksum up to date; not with every run, which may be a few bytes. */
static void sum_buffer(crit_payload_writer *writer)
{
    writer->crc = scr_crit_crc32c(writer->crc, writer->buffer + writer->unsummed,
                                  writer->buffered - writer->unsummed);
    writer->unsummed = writer->buffered;
}

static int flush_plain(crit_payload_writer *writer)
{
    const size_t size = writer->buffered;
    sum_buffer(writer);
    writer->buffered = 0;
    writer->unsummed = 0;
    return store(writer, writer->buffer, size);
}

/* Plain bytes of one frame. They may be written later than their frame ends: only checksums care
 * about frames. */
static int put_plain(crit_payload_writer *writer, const uint8_t *data, size_t size)
{
    const bool large = size > BUFFER_SIZE / 4;
    int status = SCR_CRIT_OK;
    writer->stored += size;
    if (writer->buffered > 0 && (large || size > BUFFER_SIZE - writer->buffered))
        status = flush_plain(writer);
    if (status != SCR_CRIT_OK)
        return status;
    if (large) {
        writer->crc = scr_crit_crc32c(writer->crc, data, size);
        return store(writer, data, size);
    }
    memcpy(writer->buffer + writer->buffered, data, size);
    writer->buffered += size;
    return SCR_CRIT_OK;
}

static int compress_frame(crit_payload_writer *writer)
{
    size_t stored = 0;
    const int status = crit_codec_compress(writer->codec, writer->buffer, writer->buffered,
                                           writer->compressed, &stored);
    if (status != SCR_CRIT_OK)
        return status;
    writer->buffered = 0;
    writer->stored = stored;
    writer->crc = scr_crit_crc32c(0, writer->compressed, stored);
    return store(writer, writer->compressed, stored);
}

/* Bytes that fit the current frame. */
static int put(crit_payload_writer *writer, const uint8_t *data, size_t size)
{
    if (writer->codec == NULL)
        return put_plain(writer, data, size);
    memcpy(writer->buffer + writer->buffered, data, size);
    writer->buffered += size;
    return SCR_CRIT_OK;
}

int crit_payload_write(crit_payload_writer *writer, const uint8_t *data, size_t size)
{
    while (size > 0) {
        const uint64_t room = writer->length - writer->filled;
        const size_t n = size < room ? size : (size_t)room;
        int status = put(writer, data, n);
        writer->filled += n;
        if (status == SCR_CRIT_OK && writer->filled == writer->length) {
            if (writer->codec != NULL)
                status = compress_frame(writer);
            else
                sum_buffer(writer);
            if (status == SCR_CRIT_OK)
                status = end_frame(writer);
        }
        if (status != SCR_CRIT_OK)
            return status;
        data += n;
        size -= n;
    }
    return SCR_CRIT_OK;
}

int crit_payload_finish(crit_payload_writer *writer)
{
    const int status = flush_plain(writer); /* a codec leaves nothing there */
    return status == SCR_CRIT_OK ? flush_rows(writer) : status;
}
