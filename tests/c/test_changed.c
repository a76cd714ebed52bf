/* test_changed.c - a source that changes while it is being read is noticed.
 *
 * The linker sends the core's pread here (-Wl,--wrap=pread): the change happens between two reads.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <errno.h>
#include <time.h>

#include "check.h"
#include "overwrite.h"
#include "pack.h"
#include "scratch.h"

enum { SIZE = 9 << 20 };

static void (*change)(void);
static int reads;

ssize_t __real_pread(int fd, void *data, size_t size, off_t offset);

ssize_t __wrap_pread(int fd, void *data, size_t size, off_t offset)
{
    const ssize_t got = __real_pread(fd, data, size, offset);
    if (++reads == 4 && change != NULL) /* two reads are for the marks */
        change();
    return got;
}

/* ---- Changes --------------------------------------------------------------------------------- */

static void write_one_byte(void)
{
    /* Within the clock tick of the file's last change its time would not move; real writers take
     * longer. */
    const struct timespec pause = {0, 30000000};
    nanosleep(&pause, NULL);
    const int fd = open("whole", O_WRONLY);
    CHECK(pwrite(fd, "!", 1, SIZE - 1) == 1);
    close(fd);
}

static void append(void)
{
    CHECK(truncate("whole", SIZE + 1) == 0);
}

static void cut(void)
{
    CHECK(truncate("whole", SIZE / 2) == 0);
}

static void replace(void)
{
    scratch_write("other", "another file", 12);
    CHECK(rename("other", "whole") == 0);
}

static void vanish(void)
{
    CHECK(unlink("whole") == 0);
}

/* ---- Operations ------------------------------------------------------------------------------ */

static int on_whole(bool in_place)
{
    crit_resolution resolution;
    crit_source source;
    crit_resolution_init(&resolution);
    CHECK_STATUS(crit_program_keep(&resolution.program, SIZE - 1000), SCR_CRIT_OK);
    CHECK_STATUS(crit_program_drop(&resolution.program, 1000), SCR_CRIT_OK);
    CHECK_STATUS(crit_resolution_check(&resolution, SIZE), SCR_CRIT_OK);
    CHECK_STATUS(crit_source_open(&source, "whole"), SCR_CRIT_OK);
    const int status = in_place ? crit_overwrite(&source, &resolution, NULL)
                                : crit_pack(&source, &resolution, "target", NULL, NULL);
    crit_source_close(&source);
    crit_resolution_free(&resolution);
    return status;
}

static int pack(void)
{
    return on_whole(false);
}

static int overwrite(void)
{
    return on_whole(true);
}

static int copy(void)
{
    return scr_crit_copy("whole", "target");
}

static void changed(int (*operation)(void), void (*change_)(void), const uint8_t *bytes)
{
    scratch_write("whole", bytes, SIZE);
    reads = operation == pack ? 0 : 2;
    change = change_;
    CHECK_STATUS(operation(), SCR_CRIT_ERR_CHANGED);
    CHECK(reads >= 4); /* or nothing was tested */
    CHECK(access("target", F_OK) != 0);
    CHECK(scratch_count(NULL) == (change_ != vanish));
    unlink("whole");
}

static void unchanged(int (*operation)(void), const uint8_t *bytes)
{
    scratch_write("whole", bytes, SIZE);
    change = NULL;
    CHECK_STATUS(operation(), SCR_CRIT_OK);
    unlink("target");
    unlink("whole");
}

int main(void)
{
    int (*const operations[])(void) = {pack, overwrite, copy};
    void (*const changes[])(void) = {write_one_byte, append, cut, replace, vanish};
    uint8_t *bytes = scratch_bytes(SIZE, 4);
    scratch_enter();
    for (size_t o = 0; o < 3; o++) {
        unchanged(operations[o], bytes);
        for (size_t c = 0; c < 5; c++)
            changed(operations[o], changes[c], bytes);
    }
    scratch_leave();
    free(bytes);
    return check_result();
}
