/* copies.h - what the programs of test_tracer_copies.py share.
 *
 * A state is an array. Of its elements go_on reads those with odd index and overwrites the others.
 */
#ifndef COPIES_H
#define COPIES_H

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif
void prepare(void);
void write_parts(void);
void go_on(void);
void part_path(const char *name, char *path); /* 1024 bytes */
#ifdef __cplusplus
}
#endif

#define OUTLINE __attribute__((noinline, noclone))

enum { ELEMENTS = 96 };

/* Byte by byte, and outlined: exactly these bytes are accessed. */
OUTLINE static void read_bytes(const volatile char *from, size_t bytes)
{
    static volatile char sink;
    for (size_t k = 0; k < bytes; k++)
        sink = from[k];
}

OUTLINE static void clear_bytes(volatile char *to, size_t bytes)
{
    for (size_t k = 0; k < bytes; k++)
        to[k] = 0;
}

static inline void live_on(void *state, size_t element)
{
    for (int k = 0; k < ELEMENTS; k++) {
        char *at = (char *)state + k * element;
        if (k % 2)
            read_bytes(at, element);
        clear_bytes(at, element);
    }
}

static inline void fill(void *state, size_t bytes)
{
    for (size_t k = 0; k < bytes; k++)
        ((unsigned char *)state)[k] = (unsigned char)(5 * k + 3);
}

OUTLINE static void write_part(const char *name, const void *from, size_t bytes)
{
    char path[1024];
    part_path(name, path);
    int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0644);
    if (write(fd, from, bytes) != (ssize_t)bytes)
        abort();
    close(fd);
}

#endif
