/* fuzz_packed.c - the readers of packed files on arbitrary bytes; a libFuzzer target.
 *
 * Each input is tried as it is, with its checksums made right, and as a bare program of runs with a
 * packed file made around it. No input may crash, hang, or read outside; and what is accepted must
 * agree with itself. With clang: -fsanitize=fuzzer,address,undefined. Without: fuzz_main.c is a
 * driver. Run by tests/test_core_fuzz.py.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bytes.h"
#include "packed.h"
#include "packed_layout.h"
#include "scr_crit.h"

/* Larger files are only looked at: a few bytes may rightly stand for terabytes of fill. */
enum { EXPANDED = 1 << 20, WALKED = 1 << 20 };

static void demand(bool condition, const char *what)
{
    if (!condition) {
        fprintf(stderr, "fuzz_packed: not so: %s (%s)\n", what, scr_crit_last_error());
        abort();
    }
}

/* ---- What is accepted agrees with itself ----------------------------------------------------- */

static void walk(const crit_packed *packed)
{
    crit_cursor cursor;
    crit_run run = {0, 0};
    uint64_t runs = 0, kept = 0, before = 0;
    crit_cursor_open(&cursor, packed->program.bytes, packed->program.size);
    while (runs < WALKED && crit_cursor_next(&cursor, &run)) {
        demand(run.start < run.stop && (runs == 0 || run.start > before),
               "runs are maximal, in order");
        kept += run.stop - run.start;
        before = run.stop;
        runs++;
    }
    if (runs == WALKED)
        return;
    demand(!cursor.damaged, "a validated program is walked to its end");
    demand(cursor.position == packed->header.file_size, "the walk ends where the file does");
    demand(kept == packed->header.kept, "the walk keeps what the header says");
    demand(runs == packed->facts.critical_runs, "runs are as many as the validator counted");
}

static void expand(const char *path, const crit_packed *packed, bool sound)
{
    const size_t size = (size_t)packed->header.file_size;
    uint8_t *memory = malloc(size + 1);
    const scr_crit_fill fill = {(const uint8_t *)"abc", 3};
    scr_crit_info info;
    const int status = scr_crit_unpack_buffer(path, memory, size, &fill, &info);
    demand(status == SCR_CRIT_OK || !sound, "what checks well also expands");
    demand(status != SCR_CRIT_OK || info.kept_bytes == packed->header.kept, "info is the header's");
    free(memory);
}

/* Returns whether it passes for a sound packed file. */
static bool examine(const uint8_t *data, size_t size)
{
    char path[64];
    int claims = 0;
    crit_packed packed;
    const int fd = memfd_create("fuzz", 0);
    demand(fd >= 0 && write(fd, data, size) == (ssize_t)size, "a file in memory can be made");
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    demand(scr_crit_is_packed(path, &claims) == SCR_CRIT_OK, "any file can be asked for its mark");
    const bool sound = scr_crit_check(path, NULL) == SCR_CRIT_OK;
    demand(claims || !sound, "a sound file has its marks");
    if (crit_packed_open(path, &packed) == SCR_CRIT_OK) {
        walk(&packed);
        if (packed.header.file_size <= EXPANDED)
            expand(path, &packed, sound);
        crit_packed_close(&packed);
    } else {
        demand(!sound, "what checks well can be opened");
        demand(scr_crit_last_error()[0] != '\0', "a refusal has words");
    }
    close(fd);
    return sound;
}

/* ---- Checksums made right -------------------------------------------------------------------- */

/* Make header and trailer match the rest. */
static void reseal_ends(uint8_t *data, size_t size)
{
    uint8_t *trailer = data + size - CRIT_TRAILER_SIZE;
    crit_store_u32(data + AT_HEADER_CRC, scr_crit_crc32c(0, data, AT_HEADER_CRC));
    memcpy(trailer, crit_trailer_mark, CRIT_MARK_SIZE);
    memcpy(trailer + AT_TRAILER_HEADER_CRC, data + AT_HEADER_CRC, 4);
    crit_store_u32(trailer + AT_TRAILER_CRC, scr_crit_crc32c(0, trailer, AT_TRAILER_CRC));
}

/* Make the checksum of a part match it, if the part lies within the file; returns where it ends. */
static size_t reseal_part(uint8_t *data, size_t size, size_t begin, uint64_t length, int place)
{
    if (length > size - begin)
        return size;
    crit_store_u32(data + place, scr_crit_crc32c(0, data + begin, (size_t)length));
    return begin + (size_t)length;
}

static void reseal_frames(uint8_t *data, size_t size, size_t rows, uint32_t frames)
{
    size_t at = rows + (size_t)frames * CRIT_FRAME_SIZE;
    for (uint32_t i = 0; i < frames; i++) {
        const uint64_t stored = crit_load_u64(data + rows + (size_t)i * CRIT_FRAME_SIZE);
        if (stored > size - at)
            return;
        crit_store_u32(data + rows + (size_t)i * CRIT_FRAME_SIZE + 8,
                       scr_crit_crc32c(0, data + at, (size_t)stored));
        at += (size_t)stored;
    }
}

static void examine_resealed(const uint8_t *data, size_t size)
{
    if (size < CRIT_HEADER_SIZE + CRIT_TRAILER_SIZE)
        return;
    uint8_t *copy = malloc(size);
    memcpy(copy, data, size);
    memcpy(copy, crit_header_mark, CRIT_MARK_SIZE);
    crit_store_u32(copy + AT_VERSION, CRIT_PACKED_VERSION);
    crit_store_u64(copy + AT_PACKED_SIZE, size);
    const uint32_t frames = crit_load_u32(copy + AT_FRAMES);
    const size_t fields = reseal_part(copy, size, CRIT_HEADER_SIZE,
                                      crit_load_u64(copy + AT_TABLE_SIZE), AT_TABLE_CRC);
    const size_t rows =
        reseal_part(copy, size, fields, (uint64_t)crit_load_u32(copy + AT_FIELDS) * CRIT_FIELD_SIZE,
                    AT_FIELDS_CRC);
    if ((uint64_t)frames * CRIT_FRAME_SIZE <= size - rows)
        reseal_frames(copy, size, rows, frames);
    reseal_part(copy, size, rows, (uint64_t)frames * CRIT_FRAME_SIZE, AT_FRAMES_CRC);
    reseal_ends(copy, size);
    examine(copy, size);
    free(copy);
}

/* ---- A packed file around a program ---------------------------------------------------------- */

static void store_head(uint8_t *data, const crit_header *header)
{
    memcpy(data, crit_header_mark, CRIT_MARK_SIZE);
    crit_store_u32(data + AT_VERSION, CRIT_PACKED_VERSION);
    crit_store_u32(data + AT_HEADER_SIZE, CRIT_HEADER_SIZE);
    crit_store_u64(data + AT_FILE_SIZE, header->file_size);
    crit_store_u64(data + AT_KEPT, header->kept);
    crit_store_u64(data + AT_TABLE_SIZE, header->table_size);
    crit_store_u64(data + AT_FRAME_BYTES, header->frame_bytes);
    crit_store_u32(data + AT_FRAMES, header->frames);
    crit_store_u32(data + AT_ENCODINGS, header->encodings);
    crit_store_u64(data + AT_PAYLOAD_SIZE, header->payload_size);
    crit_store_u64(data + AT_PACKED_SIZE, header->packed_size);
    crit_store_u32(data + AT_TYPE_SIZE, 1);
}

static void examine_program(const uint8_t *program, size_t size)
{
    crit_program_facts facts;
    crit_parts parts;
    if (crit_program_check(program, size, 0, &facts) != SCR_CRIT_OK || facts.kept > EXPANDED)
        return;
    crit_header header = {.file_size = facts.length,
                          .kept = facts.kept,
                          .table_size = size,
                          .encodings = facts.encodings,
                          .payload_size = facts.kept};
    demand(crit_header_cut_frames(&header) == SCR_CRIT_OK, "frames can be cut");
    demand(crit_header_parts(&header, &parts), "parts can be placed");
    header.packed_size = parts.end;
    uint8_t *data = calloc(1, (size_t)parts.end);
    store_head(data, &header);
    memcpy(data + parts.table, program, size);
    memset(data + parts.payload, 'p', (size_t)header.kept);
    for (uint32_t i = 0; i < header.frames; i++)
        crit_store_u64(data + parts.frames + (uint64_t)i * CRIT_FRAME_SIZE,
                       crit_header_frame_length(&header, i));
    reseal_frames(data, (size_t)parts.end, (size_t)parts.frames, header.frames);
    reseal_part(data, (size_t)parts.end, parts.table, size, AT_TABLE_CRC);
    reseal_part(data, (size_t)parts.end, parts.frames, (uint64_t)header.frames * CRIT_FRAME_SIZE,
                AT_FRAMES_CRC);
    reseal_ends(data, (size_t)parts.end);
    demand(examine(data, (size_t)parts.end), "a packed file around a valid program is sound");
    free(data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    examine(data, size);
    examine_resealed(data, size);
    examine_program(data, size);
    if (size > CRIT_HEADER_SIZE + CRIT_TRAILER_SIZE) {
        const uint64_t table = crit_load_u64(data + AT_TABLE_SIZE);
        const size_t left = size - CRIT_HEADER_SIZE;
        examine_program(data + CRIT_HEADER_SIZE, table < left ? (size_t)table : left);
    }
    return 0;
}
