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
    XArray *files;  /* of generation_file, by base */
    spans *items;   /* place -> position, sorted */
    spans *decided; /* position -> outcome: verdicts that have not gone out */
    Bool several;   /* a position may have more than one item */
    Bool counted;   /* undecided is right */
    ULong undecided;
};

static XArray *all; /* of generation * */

generation *generation_new(void)
{
    if (!all)
        all = VG_(newXA)(VG_(malloc), "generations", VG_(free), sizeof(generation *));
    generation *made = VG_(calloc)("generation", 1, sizeof *made);
    made->files = VG_(newXA)(VG_(malloc), "generation.files", VG_(free), sizeof(generation_file));
    made->items = spans_new();
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

void generation_add_item(generation *made, ULong place, ULong length, ULong position)
{
    spans_add(made->items, place, length, position);
}

void generation_has_several(generation *made)
{
    made->several = True;
}

void generation_decide(generation *made, ULong position, ULong length, run_state state,
                       run_reason reason)
{
    ULong outcome = OUTCOME(state, reason);
    spans_add(made->decided, position, length, outcome + (position & (OUTCOME(0, 1) - 1)));
}

/* ---- Verdicts ---- */

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
    spans_sort(made->items);
    tell(made);
}

/* ---- All generations ---- */

static void each(void (*action)(generation *of, void *closure), void *closure)
{
    for (Word i = 0; all && i < VG_(sizeXA)(all); i++)
        action(*(generation **)VG_(indexXA)(all, i), closure);
}

typedef struct {
    generation *of;
    spans *found;
} collector;

static void collect_alias(void *closure, ULong place, ULong length, ULong position, ULong alias)
{
    (void)place;
    spans_add(((collector *)closure)->found, alias, length, position);
}

static void add_aliases(generation *of, void *closure)
{
    const spans *aliases = closure;
    if (spans_count(of->items) == 0)
        return;
    collector collected = {of, spans_new()};
    spans_join(of->items, aliases, collect_alias, &collected);
    for (ULong i = 0; i < spans_count(collected.found); i++) {
        span s = spans_at(collected.found, i);
        spans_add(of->items, s.start, s.length, s.to);
        of->several = True;
        of->counted = False;
    }
    spans_sort(of->items);
    spans_free(collected.found);
}

void generations_add_aliases(const spans *aliases)
{
    if (spans_count(aliases) > 0)
        each(add_aliases, (void *)aliases);
}

static void collect_outcome(void *closure, ULong place, ULong length, ULong position, ULong outcome)
{
    collector *collected = closure;
    (void)place;
    run_state state = outcome_state(outcome);
    generation_decide(collected->of, position, length, state, outcome_reason(outcome));
    if (state == STATE_CRITICAL && collected->of->several)
        spans_add(collected->found, position, length, position);
}

/* Critical is final: the other places of those positions need not be waited for. */
static void drop_positions(generation *of, spans *positions)
{
    spans_sort(positions);
    spans *covered = spans_union(positions);
    spans *by_position = spans_turned(of->items);
    spans *rest = spans_new();
    spans_cut(by_position, covered, NULL, NULL, rest);
    spans_free(of->items);
    of->items = spans_turned(rest);
    spans_free(rest);
    spans_free(by_position);
    spans_free(covered);
}

static void settle(generation *of, void *closure)
{
    const spans *settled = closure;
    if (spans_count(of->items) > 0) {
        collector collected = {of, spans_new()};
        spans *rest = spans_new();
        spans_cut(of->items, settled, collect_outcome, &collected, rest);
        spans_free(of->items);
        of->items = rest;
        of->counted = False;
        if (spans_count(collected.found) > 0)
            drop_positions(of, collected.found);
        spans_free(collected.found);
    }
    tell(of);
}

void generations_settle(const spans *settled)
{
    if (spans_count(settled) > 0)
        each(settle, (void *)settled);
}

static ULong total(const spans *list)
{
    ULong bytes = 0;
    for (ULong i = 0; i < spans_count(list); i++)
        bytes += spans_at(list, i).length;
    return bytes;
}

static void count_undecided(generation *of, void *closure)
{
    if (!of->counted) {
        if (of->several) {
            spans *by_position = spans_turned(of->items);
            spans *covered = spans_union(by_position);
            of->undecided = total(covered);
            spans_free(covered);
            spans_free(by_position);
        } else {
            of->undecided = total(of->items);
        }
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
    for (ULong i = 0; i < spans_count(of->items); i++) {
        span s = spans_at(of->items, i);
        generation_decide(of, s.to, s.length, STATE_UNUSED, REASON_NEVER);
    }
    tell(of);
    spans_free(of->items);
    of->items = spans_new();
    of->counted = False;
}

void generations_finish(void)
{
    each(finish, NULL);
}
