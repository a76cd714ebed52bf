/* io.c - see io.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "error.h"

enum { REGION_COPIED = 4 << 20 }; /* largest region that is copied */

int crit_open_regular(const char *path, int *fd, struct stat *status)
{
    /* O_NONBLOCK: opening a FIFO by mistake must not hang; it means nothing for a regular file. */
    do {
        *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    } while (*fd < 0 && errno == EINTR);
    if (*fd < 0)
        return crit_fail_system(errno, CRIT_NO_OFFSET, "cannot open the file for reading");
    int failed = SCR_CRIT_OK;
    if (fstat(*fd, status) != 0)
        failed = crit_fail_system(errno, CRIT_NO_OFFSET, "cannot look at the file");
    else if (!S_ISREG(status->st_mode))
        failed = crit_fail(SCR_CRIT_ERR_ARG, CRIT_NO_OFFSET, "not a regular file");
    if (failed != SCR_CRIT_OK) {
        close(*fd);
        *fd = -1;
    }
    return failed;
}

int crit_read_at(int fd, uint64_t offset, void *target, size_t size, size_t *got)
{
    *got = 0;
    while (*got < size) {
        const uint64_t here = offset + *got;
        const ssize_t n = pread(fd, (uint8_t *)target + *got, size - *got, (off_t)here);
        if (n == 0)
            break;
        if (n > 0)
            *got += (size_t)n;
        else if (errno != EINTR)
            return crit_fail_system(errno, (int64_t)here, "cannot read %zu bytes at offset %llu",
                                    size - *got, (unsigned long long)here);
    }
    return SCR_CRIT_OK;
}

int crit_read_exactly(int fd, uint64_t offset, void *target, size_t size, const char *what)
{
    size_t got;
    const int status = crit_read_at(fd, offset, target, size, &got);
    if (status != SCR_CRIT_OK)
        return status;
    if (got < size)
        return crit_fail(SCR_CRIT_ERR_FORMAT, (int64_t)(offset + got),
                         "the file ends at offset %llu, within its %s",
                         (unsigned long long)(offset + got), what);
    return SCR_CRIT_OK;
}

int crit_write_at(int fd, uint64_t offset, const void *data, size_t size)
{
    size_t put = 0;
    while (put < size) {
        const ssize_t n =
            pwrite(fd, (const uint8_t *)data + put, size - put, (off_t)(offset + put));
        if (n > 0)
            put += (size_t)n;
        else if (n == 0 || errno != EINTR)
            return crit_fail_system(n == 0 ? EIO : errno, (int64_t)(offset + put),
                                    "cannot write %zu bytes at offset %llu", size - put,
                                    (unsigned long long)(offset + put));
    }
    return SCR_CRIT_OK;
}

/* ---- Regions --------------------------------------------------------------------------------- */

static int copy_region(int fd, uint64_t offset, const char *what, crit_region *region)
{
    region->memory = malloc(region->size);
    if (region->memory == NULL)
        return crit_fail_memory(region->size);
    region->bytes = region->memory;
    return crit_read_exactly(fd, offset, region->memory, region->size, what);
}

static int map_region(int fd, uint64_t offset, const char *what, crit_region *region)
{
    const uint64_t into_page = offset % (uint64_t)sysconf(_SC_PAGESIZE);
    const size_t length = region->size + (size_t)into_page;
    void *mapping = mmap(NULL, length, PROT_READ, MAP_PRIVATE, fd, (off_t)(offset - into_page));
    if (mapping == MAP_FAILED)
        return crit_fail_system(errno, (int64_t)offset, "cannot map the %s", what);
    region->memory = mapping;
    region->mapped = length;
    region->bytes = (const uint8_t *)mapping + into_page;
    return SCR_CRIT_OK;
}

int crit_region_load(int fd, uint64_t offset, uint64_t size, const char *what, crit_region *region)
{
    memset(region, 0, sizeof *region);
    if (size == 0)
        return SCR_CRIT_OK;
    if (size > SIZE_MAX / 2)
        return crit_fail_memory(SIZE_MAX);
    region->size = (size_t)size;
    const int status = region->size <= REGION_COPIED ? copy_region(fd, offset, what, region)
                                                     : map_region(fd, offset, what, region);
    if (status != SCR_CRIT_OK)
        crit_region_free(region);
    return status;
}

void crit_region_free(crit_region *region)
{
    if (region->mapped != 0)
        munmap(region->memory, region->mapped);
    else
        free(region->memory);
    memset(region, 0, sizeof *region);
}
