/* copy.c - see copy.h. */
#include "copy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "memory.h"
#include "message.h"

#define CHUNK ((size_t)1 << 20)

static ssize_t read_some(int file, char *bytes, size_t size)
{
    ssize_t got;
    do {
        got = read(file, bytes, size);
    } while (got < 0 && errno == EINTR);
    return got;
}

static int write_all(int file, const char *bytes, size_t size)
{
    while (size > 0) {
        ssize_t written = write(file, bytes, size);
        if (written < 0 && errno != EINTR) {
            return -1;
        }
        if (written > 0) {
            bytes += written;
            size -= (size_t)written;
        }
    }
    return 0;
}

/* Copies all bytes; 0 or -1 with errno set. */
static int copy_bytes(int from, int to)
{
    char *chunk = scrl_alloc(CHUNK);
    ssize_t got;
    int result = 0;
    while (result == 0 && (got = read_some(from, chunk, CHUNK)) != 0) {
        result = got < 0 ? -1 : write_all(to, chunk, (size_t)got);
    }
    int why = errno;
    free(chunk);
    errno = why;
    return result;
}

/* Gives the copy the mode and times of the source, and checks that it became as long. */
static int finish(int from, int to)
{
    struct stat source;
    struct stat copy;
    if (fstat(from, &source) != 0 || fsync(to) != 0 || fchmod(to, source.st_mode & 07777) != 0) {
        return -1;
    }
    struct timespec times[2] = {source.st_atim, source.st_mtim};
    if (futimens(to, times) != 0 || fstat(to, &copy) != 0) {
        return -1;
    }
    if (copy.st_size != source.st_size) {
        errno = EIO;
        return -1;
    }
    return 0;
}

int scrl_copy_file(const char *source, const char *target)
{
    int from = open(source, O_RDONLY);
    if (from < 0) {
        scrl_err("cannot open `%s': %s", source, strerror(errno));
        return -1;
    }
    int to = open(target, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    int result = -1;
    if (to >= 0) {
        result = copy_bytes(from, to);
        if (result == 0) {
            result = finish(from, to);
        }
        int why = errno;
        if (close(to) != 0 && result == 0) {
            result = -1;
            why = errno;
        }
        errno = why;
    }
    if (result != 0) {
        scrl_err("cannot copy `%s' to `%s': %s", source, target, strerror(errno));
        if (to >= 0) {
            unlink(target);
        }
    }
    close(from);
    return result;
}
