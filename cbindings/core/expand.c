/* expand.c - see expand.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "expand.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "error.h"
#include "io.h"

enum { HOLE = 64 << 10 }; /* zero fills from this length on are not written */

int crit_fill_check(const scr_crit_fill *fill)
{
    if (fill != NULL && fill->bytes != NULL && fill->size > CRIT_FILL_MAX)
        return crit_fail(SCR_CRIT_ERR_ARG, CRIT_NO_OFFSET,
                         "fill has %zu bytes, expected at most %d", fill->size, CRIT_FILL_MAX);
    return SCR_CRIT_OK;
}

/* What has been expanded but not written. For memory the window is the memory itself. */
typedef struct window {
    int fd; /* -1: memory */
    uint8_t *bytes;
    size_t capacity;
    size_t used;
    uint64_t at; /* offset of bytes[0] in the whole file */
} window;

static int flush(window *w)
{
    if (w->fd < 0)
        return SCR_CRIT_OK;
    const int status = crit_write_at(w->fd, w->at, w->bytes, w->used);
    w->at += w->used;
    w->used = 0;
    return status;
}

/* Make room, and tell for how many of `wanted` bytes. */
static int make_room(window *w, uint64_t wanted, size_t *room)
{
    int status = SCR_CRIT_OK;
    if (w->used == w->capacity)
        status = flush(w);
    const size_t there = w->capacity - w->used;
    *room = wanted < there ? (size_t)wanted : there;
    return status;
}

static int put_critical(const crit_expansion *expansion, window *w, const crit_run *run)
{
    uint64_t offset = run->start;
    while (offset < run->stop) {
        size_t n;
        int status = make_room(w, run->stop - offset, &n);
        if (status == SCR_CRIT_OK)
            status = expansion->read(expansion->context, offset, w->bytes + w->used, n);
        if (status != SCR_CRIT_OK)
            return status;
        w->used += n;
        offset += n;
    }
    return SCR_CRIT_OK;
}

/* Repeat `pattern` over target, beginning `phase` bytes into it. */
static void lay_pattern(uint8_t *target, size_t size, const scr_crit_fill *fill, uint64_t phase)
{
    const size_t period = fill->size;
    size_t done = 0;
    for (; done < size && done < period; done++)
        target[done] = fill->bytes[(phase + done) % period];
    while (done < size) { /* what is there already is whole periods: copy it, doubling */
        const size_t n = done < size - done ? done : size - done;
        memcpy(target + done, target, n);
        done += n;
    }
}

static bool is_zero_fill(const scr_crit_fill *fill)
{
    return fill == NULL || fill->bytes == NULL || fill->size == 0;
}

static int put_fill(window *w, const scr_crit_fill *fill, uint64_t length)
{
    const bool zeros = is_zero_fill(fill);
    if (zeros && w->fd >= 0 && length >= HOLE) {
        const int status = flush(w);
        w->at += length;
        return status;
    }
    for (uint64_t done = 0; done < length;) {
        size_t n;
        const int status = make_room(w, length - done, &n);
        if (status != SCR_CRIT_OK)
            return status;
        if (zeros)
            memset(w->bytes + w->used, 0, n);
        else
            lay_pattern(w->bytes + w->used, n, fill, done);
        w->used += n;
        done += n;
    }
    return SCR_CRIT_OK;
}

/* A run of the program may not lead beyond the file, whatever has become of the program since it
 * was validated. */
static int check_run(const crit_expansion *expansion, const crit_cursor *cursor,
                     const crit_run *run)
{
    if (cursor->damaged || run->stop > expansion->file_size)
        return crit_fail(SCR_CRIT_ERR_CHANGED, CRIT_NO_OFFSET,
                         "the program of runs changed while it was being read");
    return SCR_CRIT_OK;
}

static int expand(const crit_expansion *expansion, window *w)
{
    crit_cursor cursor;
    crit_run run;
    uint64_t done = 0;
    int status = SCR_CRIT_OK;
    crit_cursor_open(&cursor, expansion->program, expansion->program_size);
    while (status == SCR_CRIT_OK && crit_cursor_next(&cursor, &run)) {
        status = check_run(expansion, &cursor, &run);
        if (status == SCR_CRIT_OK)
            status = put_fill(w, expansion->fill, run.start - done);
        if (status == SCR_CRIT_OK)
            status = put_critical(expansion, w, &run);
        done = run.stop;
    }
    if (status == SCR_CRIT_OK)
        status = put_fill(w, expansion->fill, expansion->file_size - done);
    return status == SCR_CRIT_OK ? flush(w) : status;
}

int crit_expand_to_file(const crit_expansion *expansion, int fd)
{
    window w = {.fd = fd, .capacity = crit_window_size(expansion->file_size)};
    int result;
    do {
        result = ftruncate(fd, (off_t)expansion->file_size);
    } while (result != 0 && errno == EINTR);
    if (result != 0)
        return crit_fail_system(errno, CRIT_NO_OFFSET, "cannot make the file %llu bytes long",
                                (unsigned long long)expansion->file_size);
    w.bytes = malloc(w.capacity);
    if (w.bytes == NULL)
        return crit_fail_memory(w.capacity);
    const int status = expand(expansion, &w);
    free(w.bytes);
    return status;
}

int crit_expand_to_memory(const crit_expansion *expansion, uint8_t *memory)
{
    window w = {.fd = -1, .bytes = memory, .capacity = (size_t)expansion->file_size};
    return expand(expansion, &w);
}
