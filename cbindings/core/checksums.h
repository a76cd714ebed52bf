/* checksums.h - checksum fields: checksums that a file's own format keeps over bytes that packing
 * drops (docs/format.md, "Checksum fields"). Recomputed after an expansion.
 * May use error.h, bytes.h, io.h and source.h. Tests: tests/c/test_checksums.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CRIT_CHECKSUMS_H
#define CRIT_CHECKSUMS_H

#include <stddef.h>
#include <stdint.h>

#include "source.h"

enum { CRIT_FIELD_SIZE = 40 };                 /* bytes of one field in a packed file */
enum crit_field_kind { CRIT_FIELD_CRC32 = 1 }; /* CRC-32/ISO-HDLC, 4 bytes little-endian */
enum { CRIT_FIELD_VALUE_SIZE = 4 };            /* bytes of a value in the whole file */

typedef struct crit_checksum_field {
    uint32_t kind;
    uint32_t places; /* 1 or 2 */
    uint64_t start;  /* covered bytes in the whole file */
    uint64_t length;
    uint64_t place[2]; /* offsets of the field itself; place[1] is 0 if there is one only */
} crit_checksum_field;

void crit_field_load(const uint8_t *bytes, crit_checksum_field *field);
void crit_field_store(uint8_t *bytes, const crit_checksum_field *field);

/* Check fields against a file of `file_size` bytes: kinds, bounds, covered ranges ascending and
 * disjoint, no place inside its own covered range. `base` as in crit_program_check, with fields
 * CRIT_FIELD_SIZE apart. Fails with FORMAT. */
int crit_fields_check(const crit_checksum_field *fields, uint32_t count, uint64_t file_size,
                      int64_t base);

/* The same for one field; *covered is where the covered range of the field before ends, 0 at first,
 * and is moved to the end of this one's. */
int crit_field_check(const crit_checksum_field *field, uint32_t index, uint64_t file_size,
                     int64_t base, uint64_t *covered);

/* Recompute a field over the whole file in memory, or in an open file. `scratch` has room for
 * CRIT_WINDOW bytes. The field has been checked. The second fails with IO, NOSPACE or FORMAT. */
void crit_field_refresh_memory(const crit_checksum_field *field, uint8_t *file);
int crit_field_refresh_file(const crit_checksum_field *field, int fd, uint8_t *scratch);

/* Check that the fields of a whole file match its bytes. One that does not tells of damage, which
 * recomputing it after an expansion would hide: such a file must not be packed. Fails with MISFIT,
 * IO, CHANGED, NOMEM. */
int crit_fields_verify(const crit_checksum_field *fields, uint32_t count, crit_source *source);

/* CRC-32 as zip and zlib have it, continuing from `crc` (0 to begin). */
uint32_t crit_crc32(uint32_t crc, const void *data, size_t size);

#endif
