/* cases.h - what the test programs of files and system calls share.
 *
 * Each case writes (or reads) a file of its own in one bracket, from (or into) an array of its own;
 * afterwards touch() reads the first 100 bytes of an array and overwrites the next 100. The rest is
 * left alone. The tests know which byte of which array each byte of a file is.
 */
#ifndef CASES_H
#define CASES_H

#define _GNU_SOURCE
#include <fcntl.h>
#include <mpi.h>
#include <scr.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define BYTES 256

#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s: %m\n", __FILE__, __LINE__, #condition);                    \
            exit(3);                                                                               \
        }                                                                                          \
    } while (0)

static volatile unsigned char read_here;

/* Accesses that no compiler leaves out, byte by byte. */
static inline void read_bytes(const volatile unsigned char *bytes, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        read_here = (unsigned char)(read_here + bytes[i]); /* a mere copy would be no read */
}
static inline void write_bytes(volatile unsigned char *bytes, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        bytes[i] = 1;
}
static inline void touch(unsigned char *bytes)
{
    read_bytes(bytes, 0, 100);
    write_bytes(bytes, 100, 200);
}

static inline void start(int *argc, char ***argv)
{
    MUST(MPI_Init(argc, argv) == MPI_SUCCESS);
    MUST(SCR_Init() == SCR_SUCCESS);
}
static inline void finish(void)
{
    MUST(SCR_Finalize() == SCR_SUCCESS);
    MUST(MPI_Finalize() == MPI_SUCCESS);
}

static inline void begin_checkpoint(const char *dataset)
{
    int need;
    MUST(SCR_Need_checkpoint(&need) == SCR_SUCCESS);
    MUST(SCR_Start_output(dataset, SCR_FLAG_CHECKPOINT) == SCR_SUCCESS);
}
static inline void complete_checkpoint(void)
{
    MUST(SCR_Complete_output(1) == SCR_SUCCESS);
}

/* The path of a file of the checkpoint; a ring of buffers, so that several can be held. */
static inline const char *route(const char *name)
{
    static char paths[8][SCR_MAX_FILENAME];
    static int next;
    char *path = paths[next++ % 8];
    MUST(SCR_Route_file(name, path) == SCR_SUCCESS);
    return path;
}
static inline int create(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
    MUST(fd >= 0);
    return fd;
}
static inline void write_all(int fd, const void *bytes, size_t count)
{
    MUST(write(fd, bytes, count) == (ssize_t)count);
}

#endif
