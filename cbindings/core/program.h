/* program.h - programs of runs (docs/format.md, section 1): build, validate, walk.
 *
 * A program tells which bytes of a file are critical. The builder writes one, the validator
 * establishes by arithmetic alone what it comes to, the cursor yields its maximal critical runs.
 * May use error.h. Tests: tests/c/test_program.c, tests/test_core_packed.py.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CRIT_PROGRAM_H
#define CRIT_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "scr_crit.h"

/* Deepest nesting of LOOP, and the longest file a program may describe. */
enum { CRIT_PROGRAM_DEPTH = 16 };
#define CRIT_PROGRAM_MAX_LENGTH ((uint64_t)INT64_MAX)

enum crit_operation {
    CRIT_OP_KEEP = 1,
    CRIT_OP_DROP = 2,
    CRIT_OP_LOOP = 3,
    CRIT_OP_RUNS = 4,
    CRIT_OP_BITMAP = 5
};

/* ---- Builder -------------------------------------------------------------------------------- */

/* A growing program. After a failed call it may only be freed. */
typedef struct crit_program {
    uint8_t *bytes; /* the program so far; owned; NULL while empty */
    size_t size;
    size_t capacity;
    size_t last_run; /* place of the KEEP or DROP that a further run may join; SIZE_MAX if none */
    unsigned depth;  /* loops that are open */
    struct {
        size_t body;     /* where the loop's body begins */
        size_t last_run; /* the enclosing level's */
    } open[CRIT_PROGRAM_DEPTH];
} crit_program;

void crit_program_init(crit_program *program);
void crit_program_free(crit_program *program);

/* Append a run; joins a run of the same kind right before it on the same level. length 0 adds
 * nothing. Fail with NOMEM, or FORMAT when the joined run exceeds CRIT_PROGRAM_MAX_LENGTH. */
int crit_program_keep(crit_program *program, uint64_t length);
int crit_program_drop(crit_program *program, uint64_t length);
int crit_program_run(crit_program *program, bool critical, uint64_t length);

/* What is appended between begin and end is repeated `count` times. A count of 0 takes the body out
 * again, a count of 1 leaves it as it is, a body that is a single run becomes one longer run.
 * begin fails with FORMAT when CRIT_PROGRAM_DEPTH loops are open, or NOMEM; end with FORMAT when
 * none is. */
int crit_program_loop_begin(crit_program *program);
int crit_program_loop_end(crit_program *program, uint64_t count);

/* Append operations of an existing program, which the caller has validated. Its loops count towards
 * the depth: facts.depth + program->depth must not exceed CRIT_PROGRAM_DEPTH, else FORMAT. */
int crit_program_append(crit_program *program, const uint8_t *bytes, size_t size, unsigned depth);

/* ---- Encoder of irregular runs (behind scr_crit_encode_runs) -------------------------------- */

/* Append sorted, disjoint, non-empty critical runs over `length` bytes, as run lengths or as a
 * bitmap, whichever is smaller. Fails with ARG, naming the index, when the runs are not so; NOMEM.
 */
int crit_program_encode_runs(crit_program *program, const uint64_t *starts, const uint64_t *stops,
                             size_t count, uint64_t length);

/* ---- Validator ------------------------------------------------------------------------------ */

/* What a program comes to. */
typedef struct crit_program_facts {
    uint64_t length;        /* bytes covered */
    uint64_t kept;          /* critical among them */
    uint64_t dropped_runs;  /* maximal uncritical runs */
    uint64_t critical_runs; /* maximal critical runs */
    uint64_t steps;         /* operations that walking it takes; saturates */
    uint32_t encodings;     /* scr_crit_encoding bits */
    unsigned depth;         /* deepest nesting of loops; 0 without loops */
} crit_program_facts;

/* Check all of a program, in time proportional to its size, whatever its loop counts. An empty
 * program covers 0 bytes.
 *   base    offset of the program in its file, for the error's offset
 *   facts   out, optional
 * Fails with FORMAT. The caller compares facts->length with what it expects. */
int crit_program_check(const uint8_t *bytes, size_t size, int64_t base, crit_program_facts *facts);

/* The same, and the program must cover exactly `expected_length` bytes. */
int crit_program_validate(const uint8_t *bytes, size_t size, int64_t base, uint64_t expected_length,
                          crit_program_facts *facts);

/* ---- Cursor --------------------------------------------------------------------------------- */

typedef struct crit_run {
    uint64_t start; /* first byte */
    uint64_t stop;  /* one past the last */
} crit_run;

/* Walks a validated program. Holds no memory of its own; the program must stay. Even if its bytes
 * changed after validation, the cursor stays within them and ends early with `damaged` set. */
typedef struct crit_cursor {
    struct {
        const uint8_t *body, *next, *end;
        uint64_t left; /* repetitions after the current one */
    } levels[CRIT_PROGRAM_DEPTH + 1];
    unsigned depth;
    int mode;            /* what the current operation is: see program_cursor.c */
    bool critical;       /* RUNS: kind of the next run */
    const uint8_t *data; /* RUNS, BITMAP: the operation's data */
    const uint8_t *data_end;
    uint64_t left; /* RUNS: runs left */
    uint64_t unit; /* BITMAP */
    uint64_t bit;
    uint64_t bits;
    uint64_t position; /* offset in the whole file of what comes next */
    bool damaged;
} crit_cursor;

void crit_cursor_open(crit_cursor *cursor, const uint8_t *bytes, size_t size);

/* Fetch the next maximal critical run. Returns false at the end; then cursor->position is the
 * length. */
bool crit_cursor_next(crit_cursor *cursor, crit_run *run);

#endif
