/* payload.h - the critical bytes as a stream, cut into frames with their checksums.
 *
 * May use error.h, io.h, codec.h and packed.h. Tests: tests/test_core_packed.py.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CRIT_PAYLOAD_H
#define CRIT_PAYLOAD_H

#include <stddef.h>
#include <stdint.h>

#include "codec.h"
#include "packed.h"

/* ---- Writing --------------------------------------------------------------------------------- */

enum {
    CRIT_FRAME_ROWS = 4096
}; /* rows of the table of frames that are held before they are written */

typedef struct crit_payload_writer {
    int fd;
    const crit_header *header; /* frame_bytes, frames, codec, type_size */
    crit_codec *codec;         /* NULL with codec none */
    uint64_t at;               /* where the next stored bytes go */
    uint64_t rows_at;          /* where the next rows of the table of frames go */
    uint32_t frame;            /* the current frame */
    uint64_t length;           /* its length before compression */
    uint64_t filled;           /* bytes in it, before compression */
    uint64_t stored;           /* bytes of it as stored */
    uint32_t crc;              /* of those, less the buffer's bytes from `unsummed` on */
    uint32_t frames_crc;       /* of the rows so far */
    uint8_t *buffer;           /* bytes not yet written or compressed */
    size_t buffered;
    size_t unsummed;
    uint8_t *compressed;
    uint8_t *rows;
    size_t row_count;
} crit_payload_writer;

/* Begin to write the payload of `header` at its place in an open file. Fails with CODEC or NOMEM;
 * close in every case. */
int crit_payload_writer_open(crit_payload_writer *writer, int fd, const crit_header *header,
                             const crit_parts *parts);

/* Append critical bytes. Fails with IO, NOSPACE, CODEC. */
int crit_payload_write(crit_payload_writer *writer, const uint8_t *data, size_t size);

/* Write what is left. Then writer->at is the payload's end, writer->frames_crc complete. */
int crit_payload_finish(crit_payload_writer *writer);

void crit_payload_writer_close(crit_payload_writer *writer);

/* ---- Reading --------------------------------------------------------------------------------- */

typedef struct crit_payload_reader {
    const crit_packed *packed;
    crit_codec *codec; /* NULL with codec none */
    uint64_t at;       /* where the next stored bytes lie */
    uint32_t frame;    /* the current frame */
    uint64_t left;     /* bytes of it not yet fetched */
    uint32_t crc;      /* codec none: of those that were */
    uint8_t *stored;   /* codec: a frame as stored */
    uint8_t *plain;    /* bytes fetched ahead */
    size_t ahead;      /* how many at most: a frame, or all there are */
    size_t begin, end; /* of those not yet handed out */
} crit_payload_reader;

/* Begin to read. Fails with CODEC or NOMEM; close in every case. */
int crit_payload_reader_open(crit_payload_reader *reader, const crit_packed *packed);

/* Read exactly `size` critical bytes; the sum of sizes must not exceed the header's kept. A frame
 * is verified no later than when its last byte is handed out. Fails with CHECKSUM, FORMAT, IO. */
int crit_payload_read(crit_payload_reader *reader, uint8_t *target, size_t size);

void crit_payload_reader_close(crit_payload_reader *reader);

/* Verify the checksums of all frames, and decompress them if their codec is usable. Fails as
 * crit_payload_read. */
int crit_payload_check(const crit_packed *packed);

#endif
