/* test_source.c - files and buffers as the source of a pack (core/source.h), and regions
 * (core/io.h).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <errno.h>
#include <utime.h>

#include "check.h"
#include "io.h"
#include "scratch.h"
#include "source.h"

enum { SIZE = 1000 };

static void every_range_reads_alike(crit_source *source, const uint8_t *bytes)
{
    uint8_t read[SIZE], scratch[SIZE];
    for (size_t start = 0; start <= SIZE; start += 83)
        for (size_t stop = start; stop <= SIZE; stop += 59) {
            const uint8_t *view = NULL;
            CHECK_STATUS(crit_source_read(source, start, read, stop - start), SCR_CRIT_OK);
            CHECK(memcmp(read, bytes + start, stop - start) == 0);
            CHECK_STATUS(crit_source_view(source, start, stop - start, scratch, &view),
                         SCR_CRIT_OK);
            CHECK(memcmp(view, bytes + start, stop - start) == 0);
        }
    CHECK_STATUS(crit_source_read(source, 0, read, 1), SCR_CRIT_OK); /* backwards */
    CHECK(read[0] == bytes[0]);
    CHECK_STATUS(crit_source_read(source, SIZE, read, 1), SCR_CRIT_ERR_ARG);
    CHECK_STATUS(crit_source_read(source, UINT64_MAX, read, 2), SCR_CRIT_ERR_ARG);
}

static void buffers_are_one_file(const uint8_t *bytes)
{
    const scr_crit_buffer pieces[] = {{NULL, 0},        {bytes, 1},       {bytes + 1, 299},
                                      {bytes + 300, 0}, {bytes + 300, 1}, {bytes + 301, 699},
                                      {bytes, 0}};
    crit_source source;
    CHECK_STATUS(crit_source_buffers(&source, pieces, 7), SCR_CRIT_OK);
    CHECK_U64(source.size, SIZE);
    every_range_reads_alike(&source, bytes);
    CHECK_STATUS(crit_source_unchanged(&source), SCR_CRIT_OK);
    crit_source_close(&source);
}

static void bad_buffers_are_refused(const uint8_t *bytes)
{
    crit_source source;
    const scr_crit_buffer null[] = {{bytes, 1}, {NULL, 1}};
    const scr_crit_buffer huge[] = {{bytes, INT64_MAX}, {bytes, 1}};
    CHECK_STATUS(crit_source_buffers(&source, null, 2), SCR_CRIT_ERR_ARG);
    CHECK_STATUS(crit_source_buffers(&source, huge, 2), SCR_CRIT_ERR_ARG);
    CHECK_STATUS(crit_source_buffers(&source, NULL, 1), SCR_CRIT_ERR_ARG);
    CHECK_STATUS(crit_source_buffers(&source, NULL, 0), SCR_CRIT_OK);
    CHECK_U64(source.size, 0);
}

static void change_is_noticed(const uint8_t *bytes)
{
    crit_source source;
    uint8_t read[SIZE];
    scratch_write("file", bytes, SIZE);
    CHECK_STATUS(crit_source_open(&source, "file"), SCR_CRIT_OK);
    every_range_reads_alike(&source, bytes);
    CHECK_STATUS(crit_source_unchanged(&source), SCR_CRIT_OK);

    scratch_write("other", bytes, SIZE); /* same size, other file */
    CHECK(rename("other", "file") == 0);
    CHECK_STATUS(crit_source_unchanged(&source), SCR_CRIT_ERR_CHANGED);
    CHECK(unlink("file") == 0);
    CHECK_STATUS(crit_source_unchanged(&source), SCR_CRIT_ERR_CHANGED);
    crit_source_close(&source);

    scratch_write("file", bytes, SIZE);
    CHECK_STATUS(crit_source_open(&source, "file"), SCR_CRIT_OK);
    const struct utimbuf then = {1000000000, 1000000000};
    CHECK(utime("file", &then) == 0);
    CHECK_STATUS(crit_source_unchanged(&source), SCR_CRIT_ERR_CHANGED);
    CHECK(truncate("file", SIZE / 2) == 0);
    CHECK_STATUS(crit_source_unchanged(&source), SCR_CRIT_ERR_CHANGED);
    CHECK_STATUS(crit_source_read(&source, 0, read, SIZE), SCR_CRIT_ERR_CHANGED);
    CHECK_U64(scr_crit_last_offset(), SIZE / 2);
    crit_source_close(&source);
}

static void only_regular_files_are_read(void)
{
    crit_source source;
    CHECK_STATUS(crit_source_open(&source, "missing"), SCR_CRIT_ERR_IO);
    CHECK(scr_crit_last_errno() == ENOENT);
    CHECK_STATUS(crit_source_open(&source, "."), SCR_CRIT_ERR_ARG);
    CHECK_STATUS(crit_source_open(&source, "/dev/zero"), SCR_CRIT_ERR_ARG);
    CHECK(mkfifo("fifo", 0600) == 0); /* opening one must not wait for a writer */
    CHECK_STATUS(crit_source_open(&source, "fifo"), SCR_CRIT_ERR_ARG);
}

static void regions_hold_any_part(void)
{
    const size_t size = 9u << 20;
    uint8_t *bytes = scratch_bytes(size, 3);
    scratch_write("large", bytes, size);
    const int fd = open("large", O_RDONLY);
    const size_t sizes[] = {0, 1, 5000, 4u << 20, (4u << 20) + 1, (9u << 20) - 777};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        crit_region region;
        CHECK_STATUS(crit_region_load(fd, 777, sizes[i], "table", &region), SCR_CRIT_OK);
        CHECK_U64(region.size, sizes[i]);
        CHECK(sizes[i] == 0 || memcmp(region.bytes, bytes + 777, sizes[i]) == 0);
        crit_region_free(&region);
    }
    crit_region region;
    CHECK_STATUS(crit_region_load(fd, size - 5, 6, "table", &region), SCR_CRIT_ERR_FORMAT);
    CHECK(region.bytes == NULL);
    close(fd);
    free(bytes);
}

static void full_device_is_no_space(void)
{
    const int fd = open("/dev/full", O_WRONLY);
    if (fd < 0) {
        printf("no /dev/full here: that test is left out\n");
        return;
    }
    CHECK_STATUS(crit_write_at(fd, 0, "x", 1), SCR_CRIT_ERR_NOSPACE);
    CHECK(scr_crit_last_errno() == ENOSPC);
    close(fd);
}

int main(void)
{
    uint8_t *bytes = scratch_bytes(SIZE, 1);
    scratch_enter();
    buffers_are_one_file(bytes);
    bad_buffers_are_refused(bytes);
    change_is_noticed(bytes);
    only_regular_files_are_read();
    regions_hold_any_part();
    full_device_is_no_space();
    scratch_leave();
    free(bytes);
    return check_result();
}
