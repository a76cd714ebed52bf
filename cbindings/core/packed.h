/* packed.h - header, tables and trailer of a packed file (docs/format.md, section 2).
 *
 * Writing: fill in a crit_header, crit_header_finish, store. Reading: crit_packed_open verifies
 * everything but the payload. May use error.h, bytes.h, io.h, program.h and checksums.h. Tests:
 * tests/test_core_packed.py, tests/c/fuzz_packed.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CRIT_PACKED_H
#define CRIT_PACKED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "checksums.h"
#include "io.h"
#include "program.h"
#include "source.h"

enum {
    CRIT_PACKED_VERSION = 1,
    CRIT_MARK_SIZE = 8,
    CRIT_HEADER_SIZE = 128,
    CRIT_FRAME_SIZE = 16, /* bytes of one row in the table of frames */
    CRIT_TRAILER_SIZE = 16
};

typedef struct crit_header {
    uint64_t file_size;
    uint64_t kept;
    uint64_t table_size;
    uint64_t frame_bytes;
    uint32_t frames;
    uint32_t codec;
    uint32_t encodings;
    uint32_t checksum_fields;
    uint64_t payload_size;
    uint64_t packed_size;
    uint8_t plan_digest[16];
    uint32_t type_size;
    uint32_t table_crc;
    uint32_t fields_crc;
    uint32_t frames_crc;
} crit_header;

/* Where the parts lie. */
typedef struct crit_parts {
    uint64_t table, fields, frames, payload, trailer, end;
} crit_parts;

/* ---- Marks ----------------------------------------------------------------------------------- */

/* Whether bytes at the beginning or the end of a file claim that it is a packed file. */
int crit_source_claims_packed(crit_source *source, bool *claims);

/* ---- Writing --------------------------------------------------------------------------------- */

/* Fill in frame_bytes and frames as kept and codec demand. Fails with ARG if there are too many. */
int crit_header_cut_frames(crit_header *header);

/* Bytes of frame `index` before compression. */
uint64_t crit_header_frame_length(const crit_header *header, uint32_t index);

/* Where the parts lie, by the header's sizes. Returns false when they exceed what a file can be. */
bool crit_header_parts(const crit_header *header, crit_parts *parts);

/* Write the header at the beginning and the trailer at the end of an open file. IO, NOSPACE. */
int crit_header_write(const crit_header *header, int fd);

/* ---- Reading --------------------------------------------------------------------------------- */

typedef struct crit_packed {
    int fd;             /* owned */
    struct stat status; /* of the packed file */
    crit_header header;
    crit_parts parts;
    crit_region program;
    crit_region fields; /* crit_field_load reads them */
    crit_region frames;
    crit_program_facts facts;
} crit_packed;

/* Open a packed file and verify header, tables, trailer and length. The caller closes it.
 * Fails with IO, ARG, FORMAT, CHECKSUM, VERSION, NOMEM; nothing is open then. */
int crit_packed_open(const char *path, crit_packed *packed);

void crit_packed_close(crit_packed *packed);

void crit_packed_info(const crit_packed *packed, scr_crit_info *info);

/* One row of the table of frames. */
void crit_packed_frame(const crit_packed *packed, uint32_t index, uint64_t *stored, uint32_t *crc);

#endif
