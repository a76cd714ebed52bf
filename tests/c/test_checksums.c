/* test_checksums.c - checksum fields (core/checksums.h).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "bytes.h"
#include "check.h"
#include "checksums.h"
#include "io.h"
#include "scratch.h"

static const crit_checksum_field good = {CRIT_FIELD_CRC32, 2, 10, 20, {6, 90}};

static void fields_survive_storage(void)
{
    uint8_t bytes[CRIT_FIELD_SIZE];
    crit_checksum_field back;
    crit_field_store(bytes, &good);
    crit_field_load(bytes, &back);
    CHECK(memcmp(&good, &back, sizeof good) == 0);
    CHECK_U64(crit_load_u64(bytes + 16), 20);
}

#define REFUSED(...)                                                                               \
    do {                                                                                           \
        const crit_checksum_field fields[] = {__VA_ARGS__};                                        \
        CHECK_STATUS(crit_fields_check(fields, sizeof fields / sizeof fields[0], 100, 0),          \
                     SCR_CRIT_ERR_FORMAT);                                                         \
    } while (0)

static void malformed_fields_are_refused(void)
{
    CHECK_STATUS(crit_fields_check(&good, 1, 100, 0), SCR_CRIT_OK);
    CHECK_STATUS(crit_fields_check(NULL, 0, 0, 0), SCR_CRIT_OK);
    REFUSED({2, 1, 10, 20, {0, 0}}); /* kind */
    REFUSED({1, 0, 10, 20, {0, 0}}); /* places */
    REFUSED({1, 3, 10, 20, {0, 0}});
    REFUSED({1, 1, 10, 20, {0, 50}}); /* a second place that is none */
    REFUSED({1, 1, 10, 91, {0, 0}});  /* covered beyond the end */
    REFUSED({1, 1, 101, 0, {0, 0}});
    REFUSED({1, 1, 10, UINT64_MAX, {0, 0}});
    REFUSED({1, 1, 10, 20, {97, 0}}); /* place beyond the end */
    REFUSED({1, 1, 10, 20, {UINT64_MAX, 0}});
    REFUSED({1, 1, 10, 20, {7, 0}}); /* among the covered bytes */
    REFUSED({1, 1, 10, 20, {29, 0}});
    REFUSED({1, 1, 10, 20, {40, 0}}, {1, 1, 29, 5, {40, 0}}); /* overlapping */
    REFUSED({1, 1, 30, 20, {0, 0}}, {1, 1, 10, 5, {0, 0}});   /* out of order */
}

static void edges_are_allowed(void)
{
    const crit_checksum_field edges[] = {{1, 2, 4, 92, {0, 96}}, {1, 1, 100, 0, {96, 0}}};
    CHECK_STATUS(crit_fields_check(edges, 2, 100, 0), SCR_CRIT_OK);
}

/* Memory and file give the same, and the verifier believes only what is right. */
static void recomputed_fields_are_right(void)
{
    uint8_t *bytes = scratch_bytes(100, 7);
    uint8_t *scratch = malloc(CRIT_WINDOW);
    crit_source source;
    scratch_write("whole", bytes, 100);
    crit_field_refresh_memory(&good, bytes);
    CHECK_U64(crit_load_u32(bytes + 6), crit_crc32(0, bytes + 10, 20));
    CHECK_U64(crit_load_u32(bytes + 90), crit_crc32(0, bytes + 10, 20));

    CHECK_STATUS(crit_source_open(&source, "whole"), SCR_CRIT_OK);
    CHECK_STATUS(crit_fields_verify(&good, 1, &source), SCR_CRIT_ERR_MISFIT);
    const int fd = open("whole", O_RDWR);
    CHECK_STATUS(crit_field_refresh_file(&good, fd, scratch), SCR_CRIT_OK);
    close(fd);
    CHECK(scratch_holds("whole", bytes, 100));
    CHECK_STATUS(crit_fields_verify(&good, 1, &source), SCR_CRIT_OK);
    crit_source_close(&source);

    const scr_crit_buffer pieces[] = {{bytes, 15}, {bytes + 15, 85}};
    CHECK_STATUS(crit_source_buffers(&source, pieces, 2), SCR_CRIT_OK);
    CHECK_STATUS(crit_fields_verify(&good, 1, &source), SCR_CRIT_OK);
    bytes[92] ^= 1; /* the second place only */
    CHECK_STATUS(crit_fields_verify(&good, 1, &source), SCR_CRIT_ERR_MISFIT);
    CHECK_U64(scr_crit_last_offset(), 90);
    free(scratch);
    free(bytes);
}

int main(void)
{
    scratch_enter();
    fields_survive_storage();
    malformed_fields_are_refused();
    edges_are_allowed();
    recomputed_fields_are_right();
    scratch_leave();
    return check_result();
}
