/* plan_exercise.h - an arbitrary plan opened, asked everything, and applied to files.
 *
 * Aborts when what the core says does not agree with itself. Used by fuzz_plan.c and
 * test_plan_hostile.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef PLAN_EXERCISE_H
#define PLAN_EXERCISE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bytes.h"
#include "plan.h"
#include "plan_array.h"
#include "plan_rows.h"
#include "program.h"
#include "scr_crit.h"

/* Longer walks are cut: a few bytes may rightly stand for billions of runs. */
enum { EXERCISE_WALKED = 1 << 14 };

static inline void exercise_demand(bool condition, const char *what)
{
    if (!condition) {
        fprintf(stderr, "plan: not so: %s (%s)\n", what, scr_crit_last_error());
        abort();
    }
}

static inline void exercise_walk(const crit_resolution *resolution, uint64_t size)
{
    crit_cursor cursor;
    crit_run run;
    uint64_t runs = 0, kept = 0, before = 0;

    crit_cursor_open(&cursor, resolution->program.bytes, resolution->program.size);
    while (runs < EXERCISE_WALKED && crit_cursor_next(&cursor, &run)) {
        exercise_demand(run.start < run.stop && run.stop <= size, "runs lie in the file");
        exercise_demand(runs == 0 || run.start > before, "runs are maximal, in order");
        kept += run.stop - run.start;
        before = run.stop;
        runs++;
    }
    if (runs == EXERCISE_WALKED)
        return;
    exercise_demand(!cursor.damaged && cursor.position == size,
                    "the walk ends where the file does");
    exercise_demand(kept == resolution->facts.kept, "the walk keeps what the facts say");
}

/* What an entry's sections come to together. */
typedef struct exercise_sum {
    bool known; /* all counts and lengths are fixed, and the sums are no more than a file's */
    uint64_t bytes, kept;
} exercise_sum;

/* Give a file in memory this size: a head that guards and counts may stand in, then zeros that take
 * no room. Returns false when a file here cannot be so long. */
static inline bool exercise_resize(int fd, uint64_t size)
{
    static const uint8_t head[] = {'M', 'A', 'G', 'I', 'C', 0, 1, 2, 2, 0, 0, 0, 0, 3};
    const size_t written = size < sizeof head ? (size_t)size : sizeof head;

    return size <= INT64_MAX && ftruncate(fd, (off_t)size) == 0 &&
           pwrite(fd, head, written, 0) == (ssize_t)written;
}

/* Apply an entry to a file of this size, which `fd` becomes. */
static inline void exercise_entry(const scr_crit_plan *plan, uint32_t entry, int fd, uint64_t size,
                                  const exercise_sum *sum)
{
    crit_resolution resolution;
    crit_source source;
    char path[64];

    if (!exercise_resize(fd, size))
        return;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    crit_resolution_init(&resolution);
    exercise_demand(crit_source_open(&source, path) == SCR_CRIT_OK, "a file in memory opens");
    if (crit_plan_resolve(plan, entry, &source, &resolution) == SCR_CRIT_OK) {
        const crit_plan_entry row = crit_plan_read_entry(plan, entry);

        exercise_demand(size >= row.min_bytes && size <= row.max_bytes, "the size is allowed");
        exercise_demand(resolution.facts.length == size, "the program covers the file");
        exercise_demand(!sum->known || sum->bytes == size, "the sections cover the file");
        exercise_demand(!sum->known || sum->kept == resolution.facts.kept,
                        "a file keeps what its sections keep");
        exercise_walk(&resolution, size);
    } else
        exercise_demand(scr_crit_last_error()[0] != '\0', "a refusal has words");
    crit_source_close(&source);
    crit_resolution_free(&resolution);
}

/* A section as plan files show it, added to the sum. */
static inline void exercise_section(const scr_crit_plan *plan, uint32_t entry, uint32_t index,
                                    exercise_sum *sum)
{
    const crit_plan_entry owner = crit_plan_read_entry(plan, entry);
    const crit_plan_section row = crit_plan_read_section(plan, owner.first_section + index);
    const crit_plan_number count = crit_plan_read_number(plan, row.first_number);
    scr_crit_section_info info;
    uint64_t bytes, kept;
    const int status = scr_crit_plan_section(plan, entry, index, &info);

    exercise_demand(status == SCR_CRIT_OK || status == SCR_CRIT_ERR_MISFIT,
                    "a section of a sound plan can be described, or its boxes are no rule");
    for (uint32_t i = 0; i <= row.dims; i++)
        if (crit_plan_read_number(plan, row.first_number + i).source != CRIT_PLAN_FIXED)
            sum->known = false;
    if (status != SCR_CRIT_OK) {
        sum->known = false;
        return;
    }
    exercise_demand(strlen(info.name) == row.name.size && strlen(info.rule) == row.rule.size,
                    "strings end where they say");
    exercise_demand(info.unit_kept <= info.unit_bytes, "no more is kept than there is");
    if (!sum->known || !crit_multiply(info.unit_bytes, (uint64_t)count.value, &bytes) ||
        !crit_multiply(info.unit_kept, (uint64_t)count.value, &kept) ||
        !crit_add(sum->bytes, bytes, &sum->bytes) || !crit_add(sum->kept, kept, &sum->kept) ||
        sum->bytes > INT64_MAX)
        sum->known = false;
}

/* Everything an open plan can be asked. */
static inline void exercise_open(const scr_crit_plan *plan)
{
    static const uint64_t sizes[] = {0, 1, 24, 16 + 24, 2296, 4096};
    scr_crit_plan_info info;
    scr_crit_entry_info entry;
    const char *key, *value;
    uint32_t found;
    int tied;
    const int fd = memfd_create("file", 0);

    exercise_demand(fd >= 0, "a file in memory can be made");
    exercise_demand(scr_crit_plan_describe(plan, &info) == SCR_CRIT_OK, "a plan is described");
    for (uint32_t i = 0; i < info.facts; i++)
        exercise_demand(scr_crit_plan_fact(plan, i, &key, &value) == SCR_CRIT_OK && *key != '\0',
                        "facts have keys");
    for (uint32_t e = 0; e < info.entries; e++) {
        exercise_sum sum = {.known = true};

        exercise_demand(scr_crit_plan_entry(plan, e, &entry) == SCR_CRIT_OK && *entry.pattern,
                        "entries have patterns");
        for (uint32_t s = 0; s < entry.sections; s++)
            exercise_section(plan, e, s, &sum);
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
            exercise_entry(plan, e, fd, sizes[i], &sum);
        exercise_entry(plan, e, fd, entry.min_bytes, &sum);
        if (sum.known)
            exercise_entry(plan, e, fd, sum.bytes, &sum);
    }
    close(fd);
    if (scr_crit_plan_match(plan, "ckpt.1/rank_007.dat", 7, NULL, &found, &tied) == SCR_CRIT_OK)
        exercise_demand(found < info.entries, "a match is one of the entries");
}

/* Try these bytes as a plan. Returns whether they are one. */
static inline bool exercise_plan(const uint8_t *data, size_t size)
{
    scr_crit_plan *plan = NULL;
    const bool sound = scr_crit_plan_open_memory(data, size, &plan) == SCR_CRIT_OK;

    if (sound)
        exercise_open(plan);
    else
        exercise_demand(scr_crit_last_offset() >= 0 && (uint64_t)scr_crit_last_offset() <= size,
                        "a malformed plan says where");
    scr_crit_plan_close(plan);
    return sound;
}

#endif
