/*
 * saved.c - the segments of memory that went into checkpoint files, and what became of them.
 *
 * A list that is searched for each access: small programs only. Sizes and counts have no limits.
 */
#define _GNU_SOURCE
#include "oracle.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The codes of the trace's states; PENDING becomes UNUSED at the end. */
enum { CRITICAL = 0, DEAD = 2, UNUSED = 3, PENDING = UNUSED };

typedef struct {
    char *name;
    char *path;
    dev_t device;
    ino_t inode;
    size_t size;
} saved_file;

typedef struct {
    size_t file;
    off_t offset;
    const unsigned char *address; /* where the bytes are now */
    size_t size, pending;
    unsigned char *states;
} segment;

typedef struct {
    const unsigned char *address;
    size_t size;
} range;

static saved_file *files;
static segment *segments;
static range *uses; /* read while a checkpoint is being written */
static size_t file_count, segment_count, use_count, live_count;
/* Segments [0, live_count) have pending bytes; the checkpoint being written begins there. */
static size_t first_file, first_segment;
static int writing;

extern char __executable_start, __data_start;

static void *grown(void *array, size_t count, size_t size)
{
    void *more = realloc(array, (count + 1) * size);
    if (more == NULL) {
        abort();
    }
    return more;
}

static int is_constant(const void *address)
{
    return (const char *)address >= &__executable_start && (const char *)address < &__data_start;
}

/* Decide the pending bytes of segment `s` that lie in [address, address + size). */
static void decide(segment *s, const unsigned char *address, size_t size, unsigned char state)
{
    const unsigned char *from = address > s->address ? address : s->address;
    const unsigned char *end = address + size;
    const unsigned char *to = end < s->address + s->size ? end : s->address + s->size;
    for (const unsigned char *at = from; at < to; at++) {
        unsigned char *held = &s->states[at - s->address];
        if (*held == PENDING) {
            *held = state;
            s->pending--;
        }
    }
}

/* Segments with nothing pending go behind the live ones. */
static void retire(size_t k)
{
    segment done = segments[k];
    segments[k] = segments[live_count - 1];
    segments[live_count - 1] = done;
    live_count--;
}

static void decide_all(const void *address, size_t size, unsigned char state)
{
    for (size_t k = live_count; k-- > 0;) {
        decide(&segments[k], address, size, state);
        if (segments[k].pending == 0) {
            retire(k);
        }
    }
}

void oracle_access(const void *address, size_t size, int is_write)
{
    decide_all(address, size, is_write ? DEAD : CRITICAL);
    if (writing && !is_write) {
        uses = grown(uses, use_count, sizeof(range));
        uses[use_count++] = (range){address, size};
    }
}

void oracle_gone(const void *address, size_t size)
{
    decide_all(address, size, DEAD);
}

/* Put a segment among the live ones. */
static void add(segment made)
{
    segments = grown(segments, segment_count, sizeof(segment));
    segments[segment_count] = segments[live_count];
    segments[live_count] = made;
    segment_count++;
    live_count++;
}

static segment part_of(const segment *whole, size_t from, size_t to)
{
    segment part = {.file = whole->file,
                    .offset = whole->offset + (off_t)from,
                    .address = whole->address + from,
                    .size = to - from,
                    .states = whole->states + from};
    for (size_t k = 0; k < part.size; k++) {
        part.pending += part.states[k] == PENDING;
    }
    return part;
}

void oracle_moved(const void *from, const void *to, size_t size)
{
    const unsigned char *old = from;
    for (size_t k = live_count; k-- > 0;) {
        segment whole = segments[k];
        if (old >= whole.address + whole.size || whole.address >= old + size) {
            continue;
        }
        size_t begin = old > whole.address ? (size_t)(old - whole.address) : 0;
        size_t end = whole.size;
        if (old + size < whole.address + whole.size) {
            end = (size_t)(old + size - whole.address);
        }
        segments[k] = part_of(&whole, begin, end);
        segments[k].address = (const unsigned char *)to + (segments[k].address - old);
        if (begin > 0) {
            add(part_of(&whole, 0, begin));
        }
        if (end < whole.size) {
            add(part_of(&whole, end, whole.size));
        }
    }
}

void oracle_begin(void)
{
    if (!writing) {
        writing = 1;
        use_count = 0;
        first_file = file_count;
        first_segment = segment_count;
    }
}

void oracle_routed(const char *name, const char *path)
{
    if (writing) {
        files = grown(files, file_count, sizeof(saved_file));
        files[file_count++] = (saved_file){.name = strdup(name), .path = strdup(path)};
    }
}

static saved_file *routed_file(int fd)
{
    struct stat open_one, routed;
    if (!writing || fstat(fd, &open_one) != 0) {
        return NULL;
    }
    for (size_t k = first_file; k < file_count; k++) {
        if (stat(files[k].path, &routed) == 0 && routed.st_dev == open_one.st_dev &&
            routed.st_ino == open_one.st_ino) {
            return &files[k];
        }
    }
    return NULL;
}

void oracle_written(int fd, off_t offset, const void *address, size_t size)
{
    saved_file *file = routed_file(fd);
    if (file == NULL) {
        oracle_access(address, size, 0);
        return;
    }
    if ((size_t)offset + size > file->size) {
        file->size = (size_t)offset + size;
    }
    if (is_constant(address) || size == 0) {
        return; /* what no one can overwrite is no state: critical */
    }
    segment made = {.file = (size_t)(file - files),
                    .offset = offset,
                    .address = address,
                    .size = size,
                    .states = malloc(size)};
    if (made.states == NULL) {
        abort();
    }
    memset(made.states, PENDING, size);
    /* Behind the live ones until the checkpoint is complete. */
    segments = grown(segments, segment_count, sizeof(segment));
    segments[segment_count++] = made;
}

void oracle_complete(void)
{
    if (!writing) {
        return;
    }
    writing = 0;
    for (size_t k = first_segment; k < segment_count; k++) {
        segment made = segments[k];
        made.pending = made.size;
        for (size_t use = 0; use < use_count; use++) {
            decide(&made, uses[use].address, uses[use].size, CRITICAL);
        }
        segments[k] = made;
        if (made.pending > 0) {
            segments[k] = segments[live_count];
            segments[live_count++] = made;
        }
    }
}

void oracle_report(const char *folder)
{
    for (size_t f = 0; f < file_count; f++) {
        unsigned char *states = calloc(files[f].size + 1, 1);
        for (size_t k = 0; states != NULL && k < segment_count; k++) {
            if (segments[k].file == f) {
                memcpy(states + segments[k].offset, segments[k].states, segments[k].size);
            }
        }
        char *path = NULL;
        if (states == NULL || asprintf(&path, "%s/%s", folder, files[f].name) < 0) {
            abort();
        }
        for (char *at = path + strlen(folder) + 1; *at; at++) {
            *at = (char)(*at == '/' ? '+' : *at);
        }
        FILE *out = fopen(path, "wb");
        if (out == NULL || fwrite(states, 1, files[f].size, out) != files[f].size ||
            fclose(out) != 0) {
            fprintf(stderr, "oracle: cannot write %s\n", path);
            abort();
        }
        free(path);
        free(states);
    }
}
