/*
 * accesses.c - what the compiler calls before an access (the interface of -fsanitize=thread), and
 * the C library's and SCR's functions that the program calls (linked with -Wl,--wrap=NAME for
 * each).
 *
 * Compiled without the sanitizer. Names of the interface: GCC's gcc/sanitizer.def.
 */
#define _GNU_SOURCE
#include "oracle.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define ACCESSES(size)                                                                             \
    void __tsan_read##size(void *address);                                                         \
    void __tsan_write##size(void *address);                                                        \
    void __tsan_unaligned_read##size(void *address);                                               \
    void __tsan_unaligned_write##size(void *address);                                              \
    void __tsan_read##size(void *address)                                                          \
    {                                                                                              \
        oracle_access(address, size, 0);                                                           \
    }                                                                                              \
    void __tsan_write##size(void *address)                                                         \
    {                                                                                              \
        oracle_access(address, size, 1);                                                           \
    }                                                                                              \
    void __tsan_unaligned_read##size(void *address)                                                \
    {                                                                                              \
        oracle_access(address, size, 0);                                                           \
    }                                                                                              \
    void __tsan_unaligned_write##size(void *address)                                               \
    {                                                                                              \
        oracle_access(address, size, 1);                                                           \
    }

ACCESSES(1)
ACCESSES(2)
ACCESSES(4)
ACCESSES(8)
ACCESSES(16)

void __tsan_read_range(void *address, unsigned long size);
void __tsan_write_range(void *address, unsigned long size);
void __tsan_func_entry(void *caller);
void __tsan_func_exit(void);
void __tsan_init(void);

void __tsan_read_range(void *address, unsigned long size)
{
    oracle_access(address, size, 0);
}

void __tsan_write_range(void *address, unsigned long size)
{
    oracle_access(address, size, 1);
}

void __tsan_func_entry(void *caller)
{
    (void)caller;
}

void __tsan_func_exit(void)
{
}

void __tsan_init(void)
{
}

/* ---- The C library. __real_NAME is the function itself. ---- */

#define WRAP(type, name, ...)                                                                      \
    type __real_##name(__VA_ARGS__);                                                               \
    type __wrap_##name(__VA_ARGS__);                                                               \
    type __wrap_##name(__VA_ARGS__)

WRAP(void *, memcpy, void *to, const void *from, size_t size)
{
    oracle_access(from, size, 0);
    oracle_access(to, size, 1);
    return __real_memcpy(to, from, size);
}

WRAP(void *, memmove, void *to, const void *from, size_t size)
{
    oracle_access(from, size, 0);
    oracle_access(to, size, 1);
    return __real_memmove(to, from, size);
}

WRAP(void *, memset, void *to, int value, size_t size)
{
    oracle_access(to, size, 1);
    return __real_memset(to, value, size);
}

WRAP(void, free, void *block)
{
    if (block != NULL) {
        oracle_gone(block, malloc_usable_size(block));
    }
    __real_free(block);
}

WRAP(void *, realloc, void *block, size_t size)
{
    size_t old_size = block != NULL ? malloc_usable_size(block) : 0;
    const void *volatile old = block; /* an address, to be looked at when the block is gone */
    void *moved = __real_realloc(block, size);
    if (moved == NULL) {
        abort();
    }
    oracle_moved(old, moved, old_size < size ? old_size : size);
    return moved;
}

WRAP(ssize_t, write, int fd, const void *bytes, size_t size)
{
    off_t offset = lseek(fd, 0, SEEK_CUR);
    oracle_written(fd, offset, bytes, size);
    return __real_write(fd, bytes, size);
}

WRAP(ssize_t, pwrite, int fd, const void *bytes, size_t size, off_t offset)
{
    oracle_written(fd, offset, bytes, size);
    return __real_pwrite(fd, bytes, size, offset);
}

static void vector_written(int fd, const struct iovec *parts, int count, off_t offset)
{
    for (int k = 0; k < count; k++) {
        oracle_written(fd, offset, parts[k].iov_base, parts[k].iov_len);
        offset += (off_t)parts[k].iov_len;
    }
}

WRAP(ssize_t, writev, int fd, const struct iovec *parts, int count)
{
    vector_written(fd, parts, count, lseek(fd, 0, SEEK_CUR));
    return __real_writev(fd, parts, count);
}

WRAP(ssize_t, pwritev, int fd, const struct iovec *parts, int count, off_t offset)
{
    vector_written(fd, parts, count, offset);
    return __real_pwritev(fd, parts, count, offset);
}

WRAP(size_t, fwrite, const void *bytes, size_t size, size_t count, FILE *file)
{
    oracle_written(fileno(file), ftell(file), bytes, size * count);
    return __real_fwrite(bytes, size, count, file);
}

/* ---- SCR ---- */

WRAP(int, SCR_Need_checkpoint, int *flag)
{
    int result = __real_SCR_Need_checkpoint(flag);
    if (*flag) {
        oracle_begin();
    }
    return result;
}

WRAP(int, SCR_Start_output, const char *name, int flags)
{
    int result = __real_SCR_Start_output(name, flags);
    oracle_begin();
    return result;
}

WRAP(int, SCR_Route_file, const char *name, char *path)
{
    int result = __real_SCR_Route_file(name, path);
    oracle_routed(name, path);
    return result;
}

WRAP(int, SCR_Complete_output, int valid)
{
    oracle_complete();
    return __real_SCR_Complete_output(valid);
}

WRAP(int, SCR_Finalize, void)
{
    oracle_report(getenv("ORACLE_OUT"));
    return __real_SCR_Finalize();
}
