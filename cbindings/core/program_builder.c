/* program_builder.c - growing programs of runs; see program.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "error.h"
#include "program.h"

enum { FIRST_CAPACITY = 256 };
#define NO_RUN SIZE_MAX

void crit_program_init(crit_program *program)
{
    memset(program, 0, sizeof *program);
    program->last_run = NO_RUN;
}

void crit_program_free(crit_program *program)
{
    free(program->bytes);
    crit_program_init(program);
}

/* Make room for `size` more bytes. */
static int reserve(crit_program *program, size_t size)
{
    if (size <= program->capacity - program->size)
        return SCR_CRIT_OK;
    size_t capacity = program->capacity ? program->capacity : FIRST_CAPACITY;
    while (capacity - program->size < size) {
        if (capacity > SIZE_MAX / 2)
            return crit_fail_memory(SIZE_MAX);
        capacity *= 2;
    }
    uint8_t *bytes = realloc(program->bytes, capacity);
    if (bytes == NULL)
        return crit_fail_memory(capacity);
    program->bytes = bytes;
    program->capacity = capacity;
    return SCR_CRIT_OK;
}

/* Take the last run out again and return its length, if it is of this kind; else 0. */
static uint64_t take_last_run(crit_program *program, uint8_t operation)
{
    if (program->last_run == NO_RUN || program->bytes[program->last_run] != operation)
        return 0;
    const uint8_t *at = program->bytes + program->last_run + 1;
    uint64_t length = 0;
    crit_varint_load(&at, program->bytes + program->size, &length);
    program->size = program->last_run;
    return length;
}

int crit_program_run(crit_program *program, bool critical, uint64_t length)
{
    if (length == 0)
        return SCR_CRIT_OK;
    const uint8_t operation = critical ? CRIT_OP_KEEP : CRIT_OP_DROP;
    const uint64_t before = take_last_run(program, operation);
    if (length > CRIT_PROGRAM_MAX_LENGTH - before)
        return crit_fail(SCR_CRIT_ERR_FORMAT, CRIT_NO_OFFSET,
                         "a run of %llu and %llu bytes is longer than a file can be",
                         (unsigned long long)before, (unsigned long long)length);
    const int status = reserve(program, 1 + CRIT_VARINT_MAX);
    if (status != SCR_CRIT_OK)
        return status;
    program->last_run = program->size;
    program->bytes[program->size++] = operation;
    program->size += crit_varint_store(program->bytes + program->size, before + length);
    return SCR_CRIT_OK;
}

int crit_program_keep(crit_program *program, uint64_t length)
{
    return crit_program_run(program, true, length);
}

int crit_program_drop(crit_program *program, uint64_t length)
{
    return crit_program_run(program, false, length);
}

int crit_program_loop_begin(crit_program *program)
{
    if (program->depth == CRIT_PROGRAM_DEPTH)
        return crit_fail(SCR_CRIT_ERR_FORMAT, CRIT_NO_OFFSET, "loops nested more than %d deep",
                         CRIT_PROGRAM_DEPTH);
    program->open[program->depth].body = program->size;
    program->open[program->depth].last_run = program->last_run;
    program->depth++;
    program->last_run = NO_RUN;
    return SCR_CRIT_OK;
}

/* Put the head of a loop before its body, which is the program's tail from `body` on. */
static int enclose(crit_program *program, size_t body, uint64_t count)
{
    uint8_t head[1 + 2 * CRIT_VARINT_MAX];
    const size_t body_size = program->size - body;
    size_t head_size = 0;
    head[head_size++] = CRIT_OP_LOOP;
    head_size += crit_varint_store(head + head_size, count);
    head_size += crit_varint_store(head + head_size, body_size);
    const int status = reserve(program, head_size);
    if (status != SCR_CRIT_OK)
        return status;
    memmove(program->bytes + body + head_size, program->bytes + body, body_size);
    memcpy(program->bytes + body, head, head_size);
    program->size += head_size;
    program->last_run = NO_RUN;
    return SCR_CRIT_OK;
}

/* Replace a body that is a single run by `count` times that run, in the enclosing level. */
static int unroll_run(crit_program *program, size_t body, uint64_t count)
{
    const bool critical = program->bytes[body] == CRIT_OP_KEEP;
    const uint8_t *at = program->bytes + body + 1;
    uint64_t length = 0;
    uint64_t total;
    crit_varint_load(&at, program->bytes + program->size, &length);
    if (!crit_multiply(length, count, &total))
        total = UINT64_MAX; /* refused, in words, by crit_program_run */
    program->size = body;
    return crit_program_run(program, critical, total);
}

int crit_program_loop_end(crit_program *program, uint64_t count)
{
    if (program->depth == 0)
        return crit_fail(SCR_CRIT_ERR_FORMAT, CRIT_NO_OFFSET, "no loop is open");
    program->depth--;
    const size_t body = program->open[program->depth].body;
    const size_t last_in_body = program->last_run;
    program->last_run = program->open[program->depth].last_run;
    if (count == 0 || program->size == body) {
        program->size = body;
        return SCR_CRIT_OK;
    }
    /* The only run of a body lies at its beginning and reaches its end. */
    if (last_in_body == body)
        return unroll_run(program, body, count);
    if (count == 1) {
        program->last_run = last_in_body;
        return SCR_CRIT_OK;
    }
    return enclose(program, body, count);
}

int crit_program_append(crit_program *program, const uint8_t *bytes, size_t size, unsigned depth)
{
    if (size == 0)
        return SCR_CRIT_OK;
    if (depth > CRIT_PROGRAM_DEPTH - program->depth)
        return crit_fail(SCR_CRIT_ERR_FORMAT, CRIT_NO_OFFSET,
                         "loops nested %u deep inside %u more, at most %d are possible", depth,
                         program->depth, CRIT_PROGRAM_DEPTH);
    const int status = reserve(program, size);
    if (status != SCR_CRIT_OK)
        return status;
    memcpy(program->bytes + program->size, bytes, size);
    program->size += size;
    program->last_run = NO_RUN;
    return SCR_CRIT_OK;
}
