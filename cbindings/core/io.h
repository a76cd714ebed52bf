/* io.h - reads and writes that survive signals and short transfers, and tables held in memory.
 *
 * Offsets are explicit throughout: the core never depends on a file position.
 * May use error.h. Tests: tests/c/test_faults.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CRIT_IO_H
#define CRIT_IO_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/* How much is read or written at once. With two such windows and the codec's chunks the core stays
 * within the 16 MiB that the public header promises. */
enum { CRIT_WINDOW = 4 << 20 };

/* How large a window on `length` bytes need be, at least 1. */
static inline size_t crit_window_size(uint64_t length)
{
    return length == 0 ? 1 : length < CRIT_WINDOW ? (size_t)length : CRIT_WINDOW;
}

/* Open a regular file for reading, without waiting for anything. Fails with IO, or ARG when it is
 * no regular file. The caller closes *fd. */
int crit_open_regular(const char *path, int *fd, struct stat *status);

/* Read up to `size` bytes at `offset`; *got is less than size only at the end of the file. IO. */
int crit_read_at(int fd, uint64_t offset, void *target, size_t size, size_t *got);

/* Read exactly `size` bytes at `offset`; FORMAT when the file ends before, naming `what`. */
int crit_read_exactly(int fd, uint64_t offset, void *target, size_t size, const char *what);

/* Write all of `size` bytes at `offset`. Fails with NOSPACE or IO. */
int crit_write_at(int fd, uint64_t offset, const void *data, size_t size);

/* A part of a file held in memory: copied when small, so that a failing or shrinking file gives an
 * error, mapped when large, so that memory stays bounded. */
typedef struct crit_region {
    const uint8_t *bytes;
    size_t size;
    void *memory;  /* allocated or mapped; NULL if empty */
    size_t mapped; /* length of the mapping; 0 if allocated */
} crit_region;

/* Hold [offset, offset + size) of a file that is known to be that long. Fails with NOMEM, IO,
 * FORMAT. */
int crit_region_load(int fd, uint64_t offset, uint64_t size, const char *what, crit_region *region);
void crit_region_free(crit_region *region);

#endif
