/* program_encode.c - irregular runs as run lengths or as a bitmap, whichever is smaller; see
 * program.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "error.h"
#include "program.h"

/* Sorted runs, those that touch taken as one. */
typedef struct run_list {
    const uint64_t *starts, *stops;
    size_t count;
    uint64_t length;
} run_list;

/* What the two encodings would come to. */
typedef struct survey {
    uint64_t unit;  /* of the bitmap: divides every run and gap between first and last run */
    uint64_t first; /* first and last critical byte + 1 */
    uint64_t last;
    uint64_t lengths;   /* number of run lengths, uncritical ones included */
    uint64_t data_size; /* bytes of their varints */
} survey;

/* Fetch the maximal run that begins at *index, move *index behind it. Returns false at the end. */
static bool next_run(const run_list *runs, size_t *index, crit_run *run)
{
    if (*index == runs->count)
        return false;
    run->start = runs->starts[*index];
    do {
        run->stop = runs->stops[(*index)++];
    } while (*index < runs->count && runs->starts[*index] == run->stop);
    return true;
}

static int check_runs(const run_list *runs)
{
    uint64_t before = 0;
    if (runs->length == 0 || runs->length > CRIT_PROGRAM_MAX_LENGTH)
        return crit_fail(SCR_CRIT_ERR_ARG, CRIT_NO_OFFSET,
                         "runs cover %llu bytes, expected 1 to 2^63 - 1",
                         (unsigned long long)runs->length);
    for (size_t i = 0; i < runs->count; i++) {
        if (runs->starts[i] < before || runs->stops[i] <= runs->starts[i] ||
            runs->stops[i] > runs->length)
            return crit_fail(
                SCR_CRIT_ERR_ARG, CRIT_NO_OFFSET,
                "run %zu is [%llu, %llu), expected a non-empty one within [%llu, %llu)", i,
                (unsigned long long)runs->starts[i], (unsigned long long)runs->stops[i],
                (unsigned long long)before, (unsigned long long)runs->length);
        before = runs->stops[i];
    }
    return SCR_CRIT_OK;
}

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b != 0) {
        const uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static void count_length(survey *found, uint64_t length)
{
    if (length == 0)
        return;
    found->lengths++;
    found->data_size += crit_varint_size(length);
}

static survey survey_runs(const run_list *runs)
{
    survey found = {0};
    crit_run run;
    uint64_t before = 0;
    for (size_t index = 0; next_run(runs, &index, &run);) {
        if (found.unit == 0)
            found.first = run.start;
        else
            found.unit = common_divisor(run.start - before, found.unit);
        found.unit = common_divisor(run.stop - run.start, found.unit);
        count_length(&found, run.start - before);
        count_length(&found, run.stop - run.start);
        before = found.last = run.stop;
    }
    count_length(&found, runs->length - before);
    return found;
}

/* ---- The two encodings ----------------------------------------------------------------------- */

static uint64_t run_size(uint64_t length)
{
    return length == 0 ? 0 : 1 + crit_varint_size(length);
}

static uint64_t runs_size(const survey *found)
{
    return 2 + crit_varint_size(found->lengths) + crit_varint_size(found->data_size) +
           found->data_size;
}

static uint64_t bitmap_size(const survey *found, uint64_t length)
{
    if (found->unit == 0)
        return UINT64_MAX; /* nothing is critical */
    const uint64_t bits = (found->last - found->first) / found->unit;
    return run_size(found->first) + 1 + crit_varint_size(found->unit) + crit_varint_size(bits) +
           bits / 8 + (bits % 8 != 0) + run_size(length - found->last);
}

static uint8_t *put_length(uint8_t *at, uint64_t length)
{
    return length == 0 ? at : at + crit_varint_store(at, length);
}

static int append_runs(crit_program *program, const run_list *runs, const survey *found)
{
    const size_t size = (size_t)runs_size(found);
    uint8_t *bytes = malloc(size + CRIT_VARINT_MAX);
    if (bytes == NULL)
        return crit_fail_memory(size);
    uint8_t *at = bytes;
    uint64_t before = 0;
    crit_run run;
    *at++ = CRIT_OP_RUNS;
    *at++ = found->unit != 0 && found->first == 0;
    at += crit_varint_store(at, found->lengths);
    at += crit_varint_store(at, found->data_size);
    for (size_t index = 0; next_run(runs, &index, &run); before = run.stop) {
        at = put_length(at, run.start - before);
        at = put_length(at, run.stop - run.start);
    }
    put_length(at, runs->length - before);
    const int status = crit_program_append(program, bytes, size, 0);
    free(bytes);
    return status;
}

static void set_bits(uint8_t *data, uint64_t start, uint64_t stop)
{
    for (; start < stop && start % 8 != 0; start++)
        data[start / 8] |= (uint8_t)(1u << (start % 8));
    for (; stop - start >= 8; start += 8)
        data[start / 8] = 0xff;
    for (; start < stop; start++)
        data[start / 8] |= (uint8_t)(1u << (start % 8));
}

static int append_bits(crit_program *program, const run_list *runs, const survey *found)
{
    const uint64_t bits = (found->last - found->first) / found->unit;
    const size_t data_size = (size_t)(bits / 8 + (bits % 8 != 0));
    uint8_t *bytes = calloc(1, 1 + 2 * CRIT_VARINT_MAX + data_size);
    if (bytes == NULL)
        return crit_fail_memory(data_size);
    size_t head = 0;
    crit_run run;
    bytes[head++] = CRIT_OP_BITMAP;
    head += crit_varint_store(bytes + head, found->unit);
    head += crit_varint_store(bytes + head, bits);
    for (size_t index = 0; next_run(runs, &index, &run);)
        set_bits(bytes + head, (run.start - found->first) / found->unit,
                 (run.stop - found->first) / found->unit);
    const int status = crit_program_append(program, bytes, head + data_size, 0);
    free(bytes);
    return status;
}

static int append_bitmap(crit_program *program, const run_list *runs, const survey *found)
{
    int status = crit_program_drop(program, found->first);
    if (status == SCR_CRIT_OK)
        status = append_bits(program, runs, found);
    if (status == SCR_CRIT_OK)
        status = crit_program_drop(program, runs->length - found->last);
    return status;
}

/* ---- Entry points ---------------------------------------------------------------------------- */

int crit_program_encode_runs(crit_program *program, const uint64_t *starts, const uint64_t *stops,
                             size_t count, uint64_t length)
{
    const run_list runs = {starts, stops, count, length};
    const int status = check_runs(&runs);
    if (status != SCR_CRIT_OK)
        return status;
    const survey found = survey_runs(&runs);
    if (bitmap_size(&found, length) < runs_size(&found))
        return append_bitmap(program, &runs, &found);
    return append_runs(program, &runs, &found);
}

int scr_crit_encode_runs(const uint64_t *starts, const uint64_t *stops, size_t count,
                         uint64_t length, uint8_t *buffer, size_t capacity, size_t *size)
{
    if (size == NULL || (buffer == NULL && capacity != 0) ||
        ((starts == NULL || stops == NULL) && count != 0))
        return crit_fail(SCR_CRIT_ERR_ARG, CRIT_NO_OFFSET, "a required argument is NULL");
    crit_program program;
    crit_program_init(&program);
    const int status = crit_program_encode_runs(&program, starts, stops, count, length);
    if (status == SCR_CRIT_OK) {
        *size = program.size;
        if (program.size <= capacity)
            memcpy(buffer, program.bytes, program.size);
    }
    crit_program_free(&program);
    return status;
}
