/* program_cursor.c - walk a validated program of runs; see program.h.
 *
 * Every load is bounded by the operation it belongs to, so that bytes which changed after
 * validation (a file overwritten while mapped) can make the walk wrong, never unsafe: the caller
 * compares the sums.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "bytes.h"
#include "program.h"

/* What the current operation is. */
enum cursor_mode { MODE_OPERATIONS, MODE_RUNS, MODE_BITMAP };

/* A stretch of one kind, not necessarily maximal. */
typedef struct piece {
    bool critical;
    uint64_t length;
} piece;

static bool stop_damaged(crit_cursor *cursor)
{
    cursor->damaged = true;
    cursor->depth = 0;
    cursor->mode = MODE_OPERATIONS;
    cursor->levels[0].next = cursor->levels[0].end;
    cursor->levels[0].left = 0;
    return false;
}

/* ---- Bitmaps --------------------------------------------------------------------------------- */

/* The 64 bits from `bit` on; zero where the data end. */
static uint64_t bits_from(const uint8_t *data, const uint8_t *data_end, uint64_t bit)
{
    const uint8_t *at = data + bit / 8;
    uint64_t word = 0;
    if (data_end - at >= 8) {
        word = crit_load_u64(at);
    } else {
        for (int i = 0; i < data_end - at; i++)
            word |= (uint64_t)at[i] << (8 * i);
    }
    return word >> (bit % 8);
}

/* How many of the bits [bit, bits) from the first on are alike; *kind tells which. */
static uint64_t alike_bits(const uint8_t *data, const uint8_t *data_end, uint64_t bit,
                           uint64_t bits, bool *kind)
{
    const uint64_t begin = bit;
    *kind = data[bit / 8] >> (bit % 8) & 1;
    while (bit < bits) {
        const uint64_t valid = 64 - bit % 8;
        const uint64_t word = bits_from(data, data_end, bit);
        const uint64_t other = *kind ? ~word : word;
        const uint64_t alike = other ? (uint64_t)__builtin_ctzll(other) : 64;
        bit += alike < valid ? alike : valid;
        if (alike < valid)
            break;
    }
    return (bit < bits ? bit : bits) - begin;
}

static piece next_bits(crit_cursor *cursor)
{
    piece next;
    const uint64_t alike =
        alike_bits(cursor->data, cursor->data_end, cursor->bit, cursor->bits, &next.critical);
    cursor->bit += alike;
    if (cursor->bit >= cursor->bits)
        cursor->mode = MODE_OPERATIONS;
    next.length = alike * cursor->unit;
    return next;
}

/* ---- Operations ------------------------------------------------------------------------------ */

/* An operation as it stands in the program. */
typedef struct operation {
    uint8_t code;
    bool critical;       /* KEEP, DROP, first of RUNS */
    uint64_t number;     /* length, count or unit */
    uint64_t bits;       /* BITMAP */
    const uint8_t *data; /* LOOP, RUNS, BITMAP */
    const uint8_t *data_end;
} operation;

static bool load_data(const uint8_t **at, const uint8_t *end, uint64_t size, operation *op)
{
    if (size > (uint64_t)(end - *at))
        return false;
    op->data = *at;
    op->data_end = *at + size;
    *at = op->data_end;
    return true;
}

static bool load_operation(const uint8_t **at, const uint8_t *end, operation *op)
{
    uint64_t size;
    op->code = *(*at)++;
    op->critical = false;
    switch (op->code) {
    case CRIT_OP_KEEP:
    case CRIT_OP_DROP:
        op->critical = op->code == CRIT_OP_KEEP;
        return crit_varint_load(at, end, &op->number) && op->number != 0;
    case CRIT_OP_RUNS:
        if (*at == end)
            return false;
        op->critical = *(*at)++ & 1;
        /* fall through */
    case CRIT_OP_LOOP:
        return crit_varint_load(at, end, &op->number) && crit_varint_load(at, end, &size) &&
               op->number != 0 && size != 0 && load_data(at, end, size, op);
    case CRIT_OP_BITMAP:
        return crit_varint_load(at, end, &op->number) && crit_varint_load(at, end, &op->bits) &&
               op->number != 0 && op->bits != 0 &&
               load_data(at, end, op->bits / 8 + (op->bits % 8 != 0), op);
    default:
        return false;
    }
}

/* Whether [at, end) is of one kind throughout, as a look at each operation tells; its length then.
 * The sum cannot wrap in a validated program. */
static bool is_uniform(const uint8_t *at, const uint8_t *end, unsigned depth, piece *all)
{
    bool any = false;
    all->length = 0;
    while (at < end) {
        operation op;
        piece next;
        if (!load_operation(&at, end, &op))
            return false;
        next.critical = op.critical;
        next.length = op.number;
        if (op.code == CRIT_OP_RUNS) {
            const uint8_t *length = op.data;
            if (op.number != 1 || !crit_varint_load(&length, op.data_end, &next.length))
                return false;
        } else if (op.code == CRIT_OP_BITMAP) {
            if (alike_bits(op.data, op.data_end, 0, op.bits, &next.critical) != op.bits)
                return false;
            next.length = op.bits * op.number;
        } else if (op.code == CRIT_OP_LOOP) {
            if (depth == CRIT_PROGRAM_DEPTH || !is_uniform(op.data, op.data_end, depth + 1, &next))
                return false;
            next.length *= op.number;
        }
        if (any && next.critical != all->critical)
            return false;
        any = true;
        all->critical = next.critical;
        all->length += next.length;
    }
    return any;
}

/* Enter a loop, or take it as one piece when its body is uniform. */
static bool enter_loop(crit_cursor *cursor, const operation *op, piece *next)
{
    if (is_uniform(op->data, op->data_end, cursor->depth, next)) {
        next->length *= op->number;
        return true;
    }
    next->length = 0;
    if (cursor->depth == CRIT_PROGRAM_DEPTH)
        return stop_damaged(cursor);
    cursor->depth++;
    cursor->levels[cursor->depth].body = op->data;
    cursor->levels[cursor->depth].next = op->data;
    cursor->levels[cursor->depth].end = op->data_end;
    cursor->levels[cursor->depth].left = op->number - 1;
    return true;
}

/* Begin an operation that is no single run. */
static bool begin_compound(crit_cursor *cursor, piece *next)
{
    operation op;
    if (!load_operation(&cursor->levels[cursor->depth].next, cursor->levels[cursor->depth].end,
                        &op))
        return stop_damaged(cursor);
    if (op.code == CRIT_OP_LOOP)
        return enter_loop(cursor, &op, next);
    if (op.code == CRIT_OP_RUNS) {
        cursor->mode = MODE_RUNS;
        cursor->critical = op.critical;
        cursor->left = op.number;
    } else {
        cursor->mode = MODE_BITMAP;
        cursor->unit = op.number;
        cursor->bit = 0;
        cursor->bits = op.bits;
    }
    cursor->data = op.data;
    cursor->data_end = op.data_end;
    next->length = 0;
    return true;
}

/* Begin the next operation. Returns false at a damaged one; next->length is 0 when the operation is
 * one that must be entered first. */
static bool begin_operation(crit_cursor *cursor, piece *next)
{
    const uint8_t **at = &cursor->levels[cursor->depth].next;
    const uint8_t code = **at;
    if (code != CRIT_OP_KEEP && code != CRIT_OP_DROP)
        return begin_compound(cursor, next);
    (*at)++;
    next->critical = code == CRIT_OP_KEEP;
    if (!crit_varint_load(at, cursor->levels[cursor->depth].end, &next->length) ||
        next->length == 0)
        return stop_damaged(cursor);
    return true;
}

static bool next_length(crit_cursor *cursor, piece *next)
{
    next->critical = cursor->critical;
    cursor->critical = !cursor->critical;
    if (--cursor->left == 0)
        cursor->mode = MODE_OPERATIONS;
    if (!crit_varint_load(&cursor->data, cursor->data_end, &next->length) || next->length == 0)
        return stop_damaged(cursor);
    return true;
}

static bool next_piece(crit_cursor *cursor, piece *next)
{
    do {
        if (cursor->mode == MODE_RUNS)
            return next_length(cursor, next);
        if (cursor->mode == MODE_BITMAP) {
            *next = next_bits(cursor);
            return true;
        }
        while (cursor->levels[cursor->depth].next == cursor->levels[cursor->depth].end) {
            if (cursor->levels[cursor->depth].left > 0) {
                cursor->levels[cursor->depth].left--;
                cursor->levels[cursor->depth].next = cursor->levels[cursor->depth].body;
            } else if (cursor->depth > 0) {
                cursor->depth--;
            } else {
                return false;
            }
        }
        if (!begin_operation(cursor, next))
            return false;
    } while (next->length == 0);
    return true;
}

/* ---- Entry points ---------------------------------------------------------------------------- */

void crit_cursor_open(crit_cursor *cursor, const uint8_t *bytes, size_t size)
{
    memset(cursor, 0, sizeof *cursor);
    cursor->levels[0].body = bytes;
    cursor->levels[0].next = bytes;
    cursor->levels[0].end = size ? bytes + size : bytes;
}

bool crit_cursor_next(crit_cursor *cursor, crit_run *run)
{
    bool found = false;
    piece next;
    while (next_piece(cursor, &next)) {
        const uint64_t start = cursor->position;
        if (next.length > CRIT_PROGRAM_MAX_LENGTH - start) {
            stop_damaged(cursor);
            break;
        }
        cursor->position = start + next.length;
        if (next.critical && !found)
            run->start = start;
        if (next.critical)
            run->stop = cursor->position;
        else if (found)
            return true;
        found = found || next.critical;
    }
    return found;
}
