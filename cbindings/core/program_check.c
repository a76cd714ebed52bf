/* program_check.c - what a program of runs comes to, by arithmetic; see program.h.
 *
 * A loop costs one look at its body, whatever its count: what the body comes to is multiplied.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "bytes.h"
#include "error.h"
#include "program.h"

/* Walking a program may take this many steps per kept byte and per byte of program. What the
 * builder makes stays far below; a hostile program could otherwise keep a reader busy for years. */
enum { STEPS_PER_BYTE = 64 };

/* A stretch of the file, as far as the sums need to know it. */
typedef struct span {
    uint64_t length;
    uint64_t kept;
    uint64_t runs[2]; /* maximal runs: uncritical, critical */
    uint64_t steps;
    bool first, last; /* kind of the first and last run */
} span;

typedef struct checker {
    const uint8_t *begin;
    int64_t base;
    uint32_t encodings;
    unsigned deepest;
} checker;

static int bad(const checker *check, const uint8_t *at, const char *what)
{
    const int64_t offset = (int64_t)(at - check->begin);
    return crit_fail(SCR_CRIT_ERR_FORMAT, check->base + offset,
                     "program of runs is malformed at its byte %lld: %s", (long long)offset, what);
}

/* ---- Sums ------------------------------------------------------------------------------------ */

static bool span_join(span *sum, const span *next)
{
    if (next->length == 0)
        return true;
    if (sum->length == 0) {
        const uint64_t steps = crit_add_capped(sum->steps, next->steps);
        *sum = *next;
        sum->steps = steps;
        return true;
    }
    if (next->length > CRIT_PROGRAM_MAX_LENGTH - sum->length)
        return false;
    sum->length += next->length;
    sum->kept += next->kept;
    sum->runs[0] += next->runs[0];
    sum->runs[1] += next->runs[1];
    if (sum->last == next->first)
        sum->runs[sum->last]--;
    sum->steps = crit_add_capped(sum->steps, next->steps);
    sum->last = next->last;
    return true;
}

static bool span_is_uniform(const span *body)
{
    return body->kept == 0 || body->kept == body->length;
}

/* `size`: of the body's program. The cursor looks at the body before it repeats it, and need not
 * repeat what is uniform. */
static bool span_repeat(span *body, uint64_t count, uint64_t size)
{
    uint64_t length;
    const uint64_t walks = span_is_uniform(body) ? 0 : crit_multiply_capped(body->steps, count);
    if (!crit_multiply(body->length, count, &length) || length > CRIT_PROGRAM_MAX_LENGTH)
        return false;
    body->length = length;
    body->kept *= count; /* no more than length; nor are the runs */
    body->runs[0] *= count;
    body->runs[1] *= count;
    if (body->first == body->last)
        body->runs[body->last] -= count - 1;
    body->steps = crit_add_capped(walks, size);
    return true;
}

static span span_of_run(bool critical, uint64_t length)
{
    span run = {.length = length, .steps = 1, .first = critical, .last = critical};
    run.kept = critical ? length : 0;
    run.runs[critical] = 1;
    return run;
}

/* ---- Operations ------------------------------------------------------------------------------ */

static int check_run(checker *check, uint8_t operation, const uint8_t **at, const uint8_t *end,
                     span *result)
{
    uint64_t length;
    const uint8_t *here = *at;
    check->encodings |= SCR_CRIT_ENC_PATTERN;
    if (!crit_varint_load(at, end, &length) || length == 0 || length > CRIT_PROGRAM_MAX_LENGTH)
        return bad(check, here, "length of a run is not a number from 1 to 2^63 - 1");
    *result = span_of_run(operation == CRIT_OP_KEEP, length);
    return SCR_CRIT_OK;
}

static int check_runs(checker *check, const uint8_t **at, const uint8_t *end, span *result)
{
    const uint8_t *here = *at;
    uint64_t count, size;
    check->encodings |= SCR_CRIT_ENC_RUNS;
    if (here == end || *here > 1)
        return bad(check, here, "kind of the first run is neither 0 nor 1");
    bool critical = *(*at)++;
    if (!crit_varint_load(at, end, &count) || !crit_varint_load(at, end, &size))
        return bad(check, here, "count or size of run lengths is malformed");
    if (size > (uint64_t)(end - *at) || count == 0 || count > size)
        return bad(check, here, "run lengths do not fit the bytes left for them");
    const uint8_t *data_end = *at + size;
    memset(result, 0, sizeof *result);
    for (uint64_t i = 0; i < count; i++, critical = !critical) {
        uint64_t length;
        here = *at;
        if (!crit_varint_load(at, data_end, &length) || length == 0 ||
            length > CRIT_PROGRAM_MAX_LENGTH)
            return bad(check, here, "length of a run is not a number from 1 to 2^63 - 1");
        const span run = span_of_run(critical, length);
        if (!span_join(result, &run))
            return bad(check, here, "runs are longer than a file can be");
    }
    if (*at != data_end)
        return bad(check, *at, "bytes are left behind the last run length");
    return SCR_CRIT_OK;
}

/* Count set bits and the maximal runs of set bits. */
static void count_bits(const uint8_t *data, uint64_t bits, uint64_t *set, uint64_t *set_runs)
{
    uint8_t before = 0;
    *set = *set_runs = 0;
    for (uint64_t i = 0; i < (bits + 7) / 8; i++) {
        const uint8_t byte = data[i];
        const uint8_t begins = (uint8_t)(byte & ~((unsigned)byte << 1 | before));
        *set += (uint64_t)__builtin_popcount(byte);
        *set_runs += (uint64_t)__builtin_popcount(begins);
        before = byte >> 7;
    }
}

static int check_bitmap(checker *check, const uint8_t **at, const uint8_t *end, span *result)
{
    const uint8_t *here = *at;
    uint64_t unit, bits, set, set_runs;
    check->encodings |= SCR_CRIT_ENC_BITMAP;
    if (!crit_varint_load(at, end, &unit) || !crit_varint_load(at, end, &bits) || unit == 0 ||
        bits == 0)
        return bad(check, here, "unit or size of a bitmap is not a number from 1 on");
    const uint8_t *data = *at;
    const uint64_t size = bits / 8 + (bits % 8 != 0);
    if (size > (uint64_t)(end - data))
        return bad(check, here, "bitmap does not fit the bytes left for it");
    memset(result, 0, sizeof *result);
    if (!crit_multiply(bits, unit, &result->length) || result->length > CRIT_PROGRAM_MAX_LENGTH)
        return bad(check, here, "bitmap covers more than a file can be long");
    if (bits % 8 != 0 && data[size - 1] >> (bits % 8) != 0)
        return bad(check, data + size - 1, "unused bits of a bitmap are set");
    count_bits(data, bits, &set, &set_runs);
    result->first = data[0] & 1;
    result->last = data[(bits - 1) / 8] >> ((bits - 1) % 8) & 1;
    result->kept = set * unit;
    result->runs[1] = set_runs;
    /* Uncritical runs lie between the critical ones, and before and after them. */
    result->runs[0] = set_runs + 1 - result->first - (set_runs != 0 && result->last);
    result->steps = size;
    *at = data + size;
    return SCR_CRIT_OK;
}

static int check_operations(checker *check, const uint8_t *at, const uint8_t *end, unsigned depth,
                            span *result);

static int check_loop(checker *check, const uint8_t **at, const uint8_t *end, unsigned depth,
                      span *result)
{
    const uint8_t *here = *at;
    uint64_t count, size;
    check->encodings |= SCR_CRIT_ENC_PATTERN;
    if (depth == CRIT_PROGRAM_DEPTH)
        return bad(check, here, "loops are nested more than 16 deep");
    if (!crit_varint_load(at, end, &count) || count < 2)
        return bad(check, here, "count of a loop is not a number from 2 on");
    if (!crit_varint_load(at, end, &size) || size == 0 || size > (uint64_t)(end - *at))
        return bad(check, here, "body of a loop does not fit the bytes left for it");
    if (check->deepest < depth + 1)
        check->deepest = depth + 1;
    const int status = check_operations(check, *at, *at + size, depth + 1, result);
    if (status != SCR_CRIT_OK)
        return status;
    if (!span_repeat(result, count, size))
        return bad(check, here, "loop covers more than a file can be long");
    *at += size;
    return SCR_CRIT_OK;
}

static int check_operation(checker *check, const uint8_t **at, const uint8_t *end, unsigned depth,
                           span *result)
{
    const uint8_t *here = *at;
    const uint8_t operation = *(*at)++;
    switch (operation) {
    case CRIT_OP_KEEP:
    case CRIT_OP_DROP:
        return check_run(check, operation, at, end, result);
    case CRIT_OP_LOOP:
        return check_loop(check, at, end, depth, result);
    case CRIT_OP_RUNS:
        return check_runs(check, at, end, result);
    case CRIT_OP_BITMAP:
        return check_bitmap(check, at, end, result);
    default:
        return bad(check, here, "unknown operation");
    }
}

static int check_operations(checker *check, const uint8_t *at, const uint8_t *end, unsigned depth,
                            span *result)
{
    memset(result, 0, sizeof *result);
    while (at < end) {
        span next;
        const uint8_t *here = at;
        const int status = check_operation(check, &at, end, depth, &next);
        if (status != SCR_CRIT_OK)
            return status;
        if (!span_join(result, &next))
            return bad(check, here, "program covers more than a file can be long");
    }
    return SCR_CRIT_OK;
}

/* ---- Entry points ---------------------------------------------------------------------------- */

static int check_steps(const checker *check, const span *all, size_t size)
{
    const uint64_t allowed = crit_multiply_capped(crit_add_capped(all->kept, size), STEPS_PER_BYTE);
    if (all->steps > allowed)
        return bad(check, check->begin, "walking it takes far more steps than it keeps bytes");
    return SCR_CRIT_OK;
}

int crit_program_check(const uint8_t *bytes, size_t size, int64_t base, crit_program_facts *facts)
{
    checker check = {.begin = bytes, .base = base};
    span all = {0};
    int status = SCR_CRIT_OK;
    if (size != 0)
        status = check_operations(&check, bytes, bytes + size, 0, &all);
    if (status == SCR_CRIT_OK)
        status = check_steps(&check, &all, size);
    if (status != SCR_CRIT_OK || facts == NULL)
        return status;
    facts->length = all.length;
    facts->kept = all.kept;
    facts->dropped_runs = all.runs[0];
    facts->critical_runs = all.runs[1];
    facts->steps = all.steps;
    facts->encodings = check.encodings;
    facts->depth = check.deepest;
    return SCR_CRIT_OK;
}

int crit_program_validate(const uint8_t *bytes, size_t size, int64_t base, uint64_t expected_length,
                          crit_program_facts *facts)
{
    crit_program_facts found;
    const int status = crit_program_check(bytes, size, base, &found);
    if (status != SCR_CRIT_OK)
        return status;
    if (found.length != expected_length)
        return crit_fail(SCR_CRIT_ERR_FORMAT, base,
                         "program of runs covers %llu bytes, expected %llu",
                         (unsigned long long)found.length, (unsigned long long)expected_length);
    if (facts != NULL)
        *facts = found;
    return SCR_CRIT_OK;
}
