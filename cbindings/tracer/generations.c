/* generations.c - checkpoints that were traced.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "generations.h"

#include "places.h"

typedef struct {
    UInt number;
    ULong base;
    ULong size;
} generation_file;

struct generation {
    XArray *files;    /* of generation_file, by base */
    spans *places;    /* place -> value, sorted */
    spans *positions; /* value -> position, sorted */
    spans *decided;   /* position -> outcome: verdicts that have not gone out */
    Bool counted;     /* undecided is right */
    ULong undecided;
};

static XArray *all; /* of generation * */

/* ---- One generation ---- */

generation *generation_new(void)
{
    if (!all)
        all = VG_(newXA)(VG_(malloc), "generations", VG_(free), sizeof(generation *));
    generation *made = VG_(calloc)("generation", 1, sizeof *made);
    made->files = VG_(newXA)(VG_(malloc), "generation.files", VG_(free), sizeof(generation_file));
    made->places = spans_new();
    made->positions = spans_new();
    made->decided = spans_new();
    VG_(addToXA)(all, &made);
    return made;
}

ULong generation_add_file(generation *made, UInt number, ULong size)
{
    ULong base = 1;
    Word n = VG_(sizeXA)(made->files);
    if (n > 0) {
        const generation_file *last = VG_(indexXA)(made->files, n - 1);
        base = last->base + last->size + 1; /* a gap: spans of two files never join */
    }
    generation_file added = {number, base, size};
    VG_(addToXA)(made->files, &added);
    return base;
}

void generation_add_position(generation *made, ULong value, ULong length, ULong position)
{
    spans_add(made->positions, value, length, position);
}

spans *generation_values(generation *made)
{
    spans_sort(made->positions);
    return spans_union(made->positions);
}

void generation_add_place(generation *made, ULong place, ULong length, ULong value)
{
    spans_add(made->places, place, length, value);
}

/* ---- Verdicts ---- */

void generation_decide(generation *made, ULong position, ULong length, run_state state,
                       run_reason reason)
{
    spans_add(made->decided, position, length, outcome_at(state, reason, position));
}

typedef struct {
    generation *of;
    run_state state;
    run_reason reason;
    spans *found;
} collector;

static void decide_position(void *closure, ULong value, ULong length, ULong same, ULong position)
{
    const collector *at = closure;
    (void)value, (void)same;
    generation_decide(at->of, position, length, at->state, at->reason);
}

void generation_decide_value(generation *made, ULong value, ULong length, run_state state,
                             run_reason reason)
{
    spans *values = spans_new();
    collector at = {made, state, reason, NULL};
    spans_add(values, value, length, value);
    spans_join(values, made->positions, decide_position, &at);
    spans_free(values);
}

static const generation_file *file_of(const generation *of, ULong position)
{
    Word low = 0, high = VG_(sizeXA)(of->files) - 1;
    while (low < high) {
        Word middle = (low + high + 1) / 2;
        const generation_file *file = VG_(indexXA)(of->files, middle);
        if (file->base <= position)
            low = middle;
        else
            high = middle - 1;
    }
    return VG_(indexXA)(of->files, low);
}

static void tell(generation *of)
{
    spans_sort(of->decided);
    spans *merged = spans_new();
    for (ULong i = 0; i < spans_count(of->decided); i++) {
        span s = spans_at(of->decided, i);
        spans_add(merged, s.start, s.length, s.to);
    }
    for (ULong i = 0; i < spans_count(merged); i++) {
        span s = spans_at(merged, i);
        const generation_file *file = file_of(of, s.start);
        trace_state(file->number, s.start - file->base, s.length, outcome_state(s.to),
                    outcome_reason(s.to));
    }
    spans_free(merged);
    spans_free(of->decided);
    of->decided = spans_new();
}

void generation_made(generation *made)
{
    spans_sort(made->positions);
    spans_sort(made->places);
    tell(made);
}

/* ---- All generations ---- */

static void each(void (*action)(generation *of, void *closure), void *closure)
{
    for (Word i = 0; all && i < VG_(sizeXA)(all); i++)
        action(*(generation **)VG_(indexXA)(all, i), closure);
}

static void collect_alias(void *closure, ULong place, ULong length, ULong value, ULong alias)
{
    (void)place;
    spans_add(((collector *)closure)->found, alias, length, value);
}

static void add_aliases(generation *of, void *closure)
{
    const spans *aliases = closure;
    if (spans_count(of->places) == 0)
        return;
    collector at = {.of = of, .found = spans_new()};
    spans_join(of->places, aliases, collect_alias, &at);
    for (ULong i = 0; i < spans_count(at.found); i++) {
        span s = spans_at(at.found, i);
        spans_add(of->places, s.start, s.length, s.to);
    }
    spans_sort(of->places);
    spans_free(at.found);
    of->counted = False;
}

void generations_add_aliases(const spans *aliases)
{
    if (spans_count(aliases) > 0)
        each(add_aliases, (void *)aliases);
}

/* Values by what became of a place of theirs: each state and reason once. */
enum { OUTCOMES = 4 * 8 };

typedef struct {
    spans *values[OUTCOMES];
} sorted_outcomes;

static void collect_outcome(void *closure, ULong place, ULong length, ULong value, ULong outcome)
{
    sorted_outcomes *at = closure;
    (void)place;
    UInt n = outcome_state(outcome) * 8 + outcome_reason(outcome) % 8;
    if (!at->values[n])
        at->values[n] = spans_new();
    spans_add(at->values[n], value, length, value);
}

/* Critical is final: other places of those values need not be waited for. */
static void drop_values(generation *of, const spans *values)
{
    spans *by_value = spans_turned(of->places), *rest = spans_new();
    spans_cut(by_value, values, NULL, NULL, rest);
    spans_free(of->places);
    of->places = spans_turned(rest);
    spans_free(rest);
    spans_free(by_value);
}

static void decide_values(generation *of, spans *values, UInt n)
{
    collector at = {of, (run_state)(n / 8), (run_reason)(n % 8), NULL};
    spans_sort(values);
    spans *each_once = spans_union(values);
    spans_join(each_once, of->positions, decide_position, &at);
    if (at.state == STATE_CRITICAL)
        drop_values(of, each_once);
    spans_free(each_once);
}

static void settle(generation *of, void *closure)
{
    const spans *settled = closure;
    if (spans_count(of->places) == 0)
        return;
    sorted_outcomes at = {{NULL}};
    spans *rest = spans_new();
    spans_cut(of->places, settled, collect_outcome, &at, rest);
    spans_free(of->places);
    of->places = rest;
    of->counted = False;
    for (UInt n = 0; n < OUTCOMES; n++) {
        if (at.values[n]) {
            decide_values(of, at.values[n], n);
            spans_free(at.values[n]);
        }
    }
    tell(of);
    if (spans_count(of->places) == 0) { /* nothing more can come */
        spans_free(of->positions);
        of->positions = spans_new();
    }
}

void generations_settle(const spans *settled)
{
    if (spans_count(settled) > 0)
        each(settle, (void *)settled);
}

static spans *values_left(const generation *of)
{
    spans *by_value = spans_turned(of->places), *left = spans_union(by_value);
    spans_free(by_value);
    return left;
}

static void add_length(void *closure, ULong value, ULong length, ULong same, ULong position)
{
    (void)value, (void)same, (void)position;
    *(ULong *)closure += length;
}

static void count_undecided(generation *of, void *closure)
{
    if (!of->counted) {
        spans *left = values_left(of);
        of->undecided = 0;
        spans_join(left, of->positions, add_length, &of->undecided);
        spans_free(left);
        of->counted = True;
    }
    *(ULong *)closure += of->undecided;
}

ULong generations_undecided(void)
{
    ULong bytes = 0;
    each(count_undecided, &bytes);
    return bytes;
}

static void finish(generation *of, void *closure)
{
    (void)closure;
    collector at = {of, STATE_UNUSED, REASON_NEVER, NULL};
    spans *left = values_left(of);
    spans_join(left, of->positions, decide_position, &at);
    spans_free(left);
    tell(of);
    spans_free(of->places);
    of->places = spans_new();
    of->counted = False;
}

void generations_finish(void)
{
    each(finish, NULL);
}
