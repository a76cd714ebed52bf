/* plan_boxes.c - see plan_boxes.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Axis by axis, the slowest first: the axis is cut where a box begins or ends. Between two cuts
 * every index meets the same boxes, so that the bytes below it are one body, found by the same
 * method on the remaining axes, and repeated. Boxes with a step repeat a pattern of indices, as
 * long as the steps' least common multiple; indices that meet none of them are stepped over at
 * once. A body equal to the one before it only raises that one's count.
 *
 * Work is counted in looks, each at one box in one place, or as long as that.
 */
#include "plan_boxes.h"

#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "error.h"

/* The section's count adds one loop to what boxes need. */
enum { MAX_DEPTH = CRIT_PROGRAM_DEPTH - 1 };

/* A band made from a pattern of several sets. */
#define SEVERAL_SETS UINT32_MAX

/* A period that does not fit into its interval even once. */
#define LONGER UINT64_MAX

/* What the memory of a fill costs, in looks. */
enum { FILL_LOOKS = 16 };

struct compile {
    const crit_box_array *array;
    crit_box_axis *axes; /* normalised: stop is the last index + 1, a single index has step 1 */
    uint32_t *full_from; /* for each box the axis from which on it covers the array whole */
    uint64_t *volume;    /* bytes below one index of the axis before: volume[dims] is an element */
    uint64_t looks;      /* left */
};

/* Where a box begins on an axis. */
struct opening {
    uint64_t start;
    uint32_t box;
};

/* Boxes that meet all of what is being filled, by number, ascending. */
struct set {
    uint32_t *boxes;
    uint32_t count;
};

/* A body that is repeated. */
struct band {
    crit_program body;
    unsigned depth; /* of its loops */
    uint64_t count;
};

/* One axis being filled. */
struct fill {
    uint32_t axis;
    crit_program *out;
    unsigned depth;      /* of out's loops */
    struct band held;    /* not yet in out: a neighbour may join it; count 0 if there is none */
    struct set held_set; /* boxes it was made from, or SEVERAL_SETS */
    struct set interval; /* boxes that meet all of what lies between two cuts */
    struct set index;    /* scratch: boxes at one index */
    uint64_t *cuts;
    size_t cut_count;
    struct opening *openings; /* in the order of their starts, then of the boxes */
    uint32_t opened, opening_count;
};

static int fill_bytes(struct compile *compile, uint32_t axis, const struct set *set,
                      crit_program *out, unsigned *depth);

static int misfit(const char *words)
{
    return crit_fail(SCR_CRIT_ERR_MISFIT, CRIT_NO_OFFSET, "its boxes are no rule: %s", words);
}

static int spend(struct compile *compile, uint64_t looks)
{
    if (looks > compile->looks)
        return misfit("finding the runs would take too long");
    compile->looks -= looks;
    return SCR_CRIT_OK;
}

static const crit_box_axis *axis_of(const struct compile *compile, uint32_t box, uint32_t axis)
{
    return compile->axes + (size_t)box * compile->array->dims + axis;
}

/* ---- Bands ------------------------------------------------------------------------------------
 */

static bool same_body(const crit_program *a, const crit_program *b)
{
    return a->size == b->size && (a->size == 0 || memcmp(a->bytes, b->bytes, a->size) == 0);
}

static bool same_set(const struct set *a, const struct set *b)
{
    return a->count == b->count && memcmp(a->boxes, b->boxes, a->count * sizeof *a->boxes) == 0;
}

/* A body that is one run goes in as a run, so that it joins its neighbours. */
static int append_body(crit_program *out, const struct band *band)
{
    const uint8_t *at = band->body.bytes + 1;
    uint64_t length = 0;

    if (band->body.last_run != 0)
        return crit_program_append(out, band->body.bytes, band->body.size, band->depth);
    crit_varint_load(&at, band->body.bytes + band->body.size, &length);
    return crit_program_run(out, band->body.bytes[0] == CRIT_OP_KEEP, length);
}

static int flush(struct fill *fill)
{
    struct band *held = &fill->held;
    bool loops = held->count > 1 && held->body.last_run != 0;
    unsigned depth = held->depth + (loops ? 1 : 0);
    int status;

    if (held->count == 0)
        return SCR_CRIT_OK;
    if (depth > MAX_DEPTH)
        return misfit("more than 15 nested loops");
    status = crit_program_loop_begin(fill->out);
    if (status == SCR_CRIT_OK)
        status = append_body(fill->out, held);
    if (status == SCR_CRIT_OK)
        status = crit_program_loop_end(fill->out, held->count);
    if (status == SCR_CRIT_OK && fill->out->size > CRIT_BOXES_MAX_PROGRAM)
        status = misfit("a program of more than 256 KiB");
    if (depth > fill->depth)
        fill->depth = depth;
    held->count = 0;
    crit_program_free(&held->body);
    return status;
}

/* Take over a band: join it to the held one, or hold it instead. */
static int take_band(struct fill *fill, struct band *band, const struct set *set)
{
    int status;

    if (fill->held.count > 0 && same_body(&fill->held.body, &band->body)) {
        fill->held.count += band->count;
        crit_program_free(&band->body);
        return SCR_CRIT_OK;
    }
    status = flush(fill);
    if (status != SCR_CRIT_OK) {
        crit_program_free(&band->body);
        return status;
    }
    fill->held = *band;
    fill->held_set.count = set == NULL ? SEVERAL_SETS : set->count;
    if (set != NULL)
        memcpy(fill->held_set.boxes, set->boxes, set->count * sizeof *set->boxes);
    return SCR_CRIT_OK;
}

/* `count` indices that meet the boxes of `set`. */
static int add_indices(struct compile *compile, struct fill *fill, const struct set *set,
                       uint64_t count)
{
    struct band band = {.count = count};
    int status = spend(compile, 1 + (uint64_t)set->count);

    if (status != SCR_CRIT_OK)
        return status;
    if (fill->held.count > 0 && same_set(&fill->held_set, set)) {
        fill->held.count += count;
        return SCR_CRIT_OK;
    }
    crit_program_init(&band.body);
    status = fill_bytes(compile, fill->axis + 1, set, &band.body, &band.depth);
    if (status != SCR_CRIT_OK) {
        crit_program_free(&band.body);
        return status;
    }
    return take_band(fill, &band, set);
}

/* ---- One axis ---------------------------------------------------------------------------------
 */

static void fill_free(struct fill *fill)
{
    crit_program_free(&fill->held.body);
    free(fill->held_set.boxes);
    free(fill->interval.boxes);
    free(fill->index.boxes);
    free(fill->cuts);
    free(fill->openings);
}

static int fill_init(struct fill *fill, uint32_t axis, uint32_t boxes, crit_program *out)
{
    size_t size = (boxes ? boxes : 1) * sizeof(uint32_t);
    size_t cuts_size = (2 * (size_t)boxes + 2) * sizeof *fill->cuts;
    size_t openings_size = (boxes ? boxes : 1) * sizeof *fill->openings;

    *fill = (struct fill){.axis = axis, .out = out};
    crit_program_init(&fill->held.body);
    fill->held_set.boxes = malloc(size);
    fill->interval.boxes = malloc(size);
    fill->index.boxes = malloc(size);
    fill->cuts = malloc(cuts_size);
    fill->openings = malloc(openings_size);
    if (fill->held_set.boxes && fill->interval.boxes && fill->index.boxes && fill->cuts &&
        fill->openings)
        return SCR_CRIT_OK;
    fill_free(fill);
    return crit_fail_memory(3 * size + cuts_size + openings_size);
}

static int compare_cuts(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

    return (left > right) - (left < right);
}

static int compare_openings(const void *a, const void *b)
{
    const struct opening *left = a, *right = b;

    if (left->start != right->start)
        return left->start > right->start ? 1 : -1;
    return (left->box > right->box) - (left->box < right->box);
}

/* Looks that sorting takes. */
static uint64_t sorting(uint64_t count)
{
    uint64_t rounds = 1;

    for (uint64_t left = count; left > 1; left /= 2)
        rounds++;
    return count * rounds;
}

static int find_cuts(struct compile *compile, struct fill *fill, const struct set *set)
{
    size_t count = 0, unique = 0;
    int status = spend(compile, sorting(3 * (uint64_t)set->count));

    if (status != SCR_CRIT_OK)
        return status;
    fill->cuts[count++] = 0;
    fill->cuts[count++] = compile->array->lengths[fill->axis];
    for (uint32_t i = 0; i < set->count; i++) {
        const crit_box_axis *axis = axis_of(compile, set->boxes[i], fill->axis);
        fill->cuts[count++] = axis->start;
        fill->cuts[count++] = axis->stop;
        fill->openings[i] = (struct opening){axis->start, set->boxes[i]};
    }
    fill->opening_count = set->count;
    qsort(fill->cuts, count, sizeof *fill->cuts, compare_cuts);
    qsort(fill->openings, fill->opening_count, sizeof *fill->openings, compare_openings);
    for (size_t i = 1; i < count; i++)
        if (fill->cuts[i] != fill->cuts[unique])
            fill->cuts[++unique] = fill->cuts[i];
    fill->cut_count = unique + 1;
    return SCR_CRIT_OK;
}

/* Drop the boxes that end where the next interval begins, and take in those that begin there. Both
 * the set and the new ones are ascending: they are merged from behind. */
static void enter_interval(const struct compile *compile, struct fill *fill, uint64_t first)
{
    uint32_t *boxes = fill->interval.boxes;
    uint32_t old = 0, end = fill->opened, at;

    for (uint32_t i = 0; i < fill->interval.count; i++)
        if (axis_of(compile, boxes[i], fill->axis)->stop > first)
            boxes[old++] = boxes[i];
    while (end < fill->opening_count && fill->openings[end].start == first)
        end++;
    at = fill->interval.count = old + (end - fill->opened);
    for (uint32_t new = end; new > fill->opened;) {
        if (old > 0 && boxes[old - 1] > fill->openings[new - 1].box)
            boxes[--at] = boxes[--old];
        else
            boxes[--at] = fill->openings[--new].box;
    }
    fill->opened = end;
}

static uint64_t greatest_common_divisor(uint64_t a, uint64_t b)
{
    while (b != 0) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Length of the pattern that the boxes' steps repeat; 1 without steps, LONGER beyond `limit`. */
static uint64_t find_period(const struct compile *compile, uint32_t axis, const struct set *set,
                            uint64_t limit)
{
    uint64_t period = 1;

    for (uint32_t i = 0; i < set->count; i++) {
        uint64_t step = axis_of(compile, set->boxes[i], axis)->step;
        uint64_t factor = step / greatest_common_divisor(period, step);

        if (!crit_multiply(period, factor, &period) || period > limit)
            return LONGER;
    }
    return period;
}

/* The first index from `at` on that any of the boxes meets, and into fill->index those that do; or
 * `stop` when none does before. */
static uint64_t next_met(const struct compile *compile, struct fill *fill,
                         const struct set *interval, uint64_t at, uint64_t stop)
{
    uint64_t met = stop;

    fill->index.count = 0;
    for (uint32_t i = 0; i < interval->count; i++) {
        const crit_box_axis *axis = axis_of(compile, interval->boxes[i], fill->axis);
        uint64_t past = (at - axis->start) % axis->step;
        uint64_t own =
            past == 0 ? at : at + (axis->step - past); /* below 2^64: both are of 63 bits */

        if (own < met) {
            met = own;
            fill->index.count = 0;
        }
        if (own == met && met < stop)
            fill->index.boxes[fill->index.count++] = interval->boxes[i];
    }
    return met;
}

/* Indices from first to stop, of which each may meet other boxes of the interval's set. */
static int add_stepped(struct compile *compile, struct fill *fill, const struct set *interval,
                       uint64_t first, uint64_t stop)
{
    uint32_t no_box = 0;
    const struct set none = {&no_box, 0};
    int status = SCR_CRIT_OK;

    while (first < stop && status == SCR_CRIT_OK) {
        uint64_t met = next_met(compile, fill, interval, first, stop);

        status = spend(compile, interval->count);
        if (status == SCR_CRIT_OK && met > first)
            status = add_indices(compile, fill, &none, met - first);
        if (status == SCR_CRIT_OK && met < stop)
            status = add_indices(compile, fill, &fill->index, 1);
        first = met + 1;
    }
    return status;
}

/* `count` repetitions of the pattern of `period` indices that begins at `first`. */
static int add_pattern(struct compile *compile, struct fill *fill, uint64_t first, uint64_t period,
                       uint64_t count)
{
    struct band band = {.count = count};
    struct fill pattern;
    int status;

    crit_program_init(&band.body);
    status = fill_init(&pattern, fill->axis, fill->interval.count, &band.body);
    if (status != SCR_CRIT_OK)
        return status;
    status = add_stepped(compile, &pattern, &fill->interval, first, first + period);
    if (status == SCR_CRIT_OK)
        status = flush(&pattern);
    band.depth = pattern.depth;
    fill_free(&pattern);
    if (status != SCR_CRIT_OK) {
        crit_program_free(&band.body);
        return status;
    }
    return take_band(fill, &band, NULL);
}

/* Indices from first to stop, where no box begins or ends between. */
static int add_interval(struct compile *compile, struct fill *fill, uint64_t first, uint64_t stop)
{
    uint64_t period, whole;
    int status = spend(compile, 1 + (uint64_t)fill->interval.count);

    enter_interval(compile, fill, first);
    if (status == SCR_CRIT_OK)
        status = spend(compile, fill->interval.count);
    if (status != SCR_CRIT_OK)
        return status;
    period = find_period(compile, fill->axis, &fill->interval, stop - first);
    if (period == 1)
        return add_indices(compile, fill, &fill->interval, stop - first);
    whole = (stop - first) / period;
    if (whole > 1) {
        status = add_pattern(compile, fill, first, period, whole);
        first += whole * period;
    }
    return status == SCR_CRIT_OK ? add_stepped(compile, fill, &fill->interval, first, stop)
                                 : status;
}

static int fill_axis(struct compile *compile, uint32_t axis, const struct set *set,
                     crit_program *out, unsigned *depth)
{
    struct fill fill;
    int status = fill_init(&fill, axis, set->count, out);

    if (status != SCR_CRIT_OK)
        return status;
    status = find_cuts(compile, &fill, set);
    for (size_t i = 0; i + 1 < fill.cut_count && status == SCR_CRIT_OK; i++)
        status = add_interval(compile, &fill, fill.cuts[i], fill.cuts[i + 1]);
    if (status == SCR_CRIT_OK)
        status = flush(&fill);
    *depth = fill.depth;
    fill_free(&fill);
    return status;
}

/* What lies below one index of the axis before: all dropped, all kept, or cut along this axis. */
static int fill_bytes(struct compile *compile, uint32_t axis, const struct set *set,
                      crit_program *out, unsigned *depth)
{
    int status = spend(compile, set->count);

    *depth = 0;
    if (status != SCR_CRIT_OK)
        return status;
    for (uint32_t i = 0; i < set->count; i++)
        if (compile->full_from[set->boxes[i]] <= axis)
            return crit_program_keep(out, compile->volume[axis]);
    if (set->count == 0)
        return crit_program_drop(out, compile->volume[axis]);
    status = spend(compile, FILL_LOOKS);
    return status == SCR_CRIT_OK ? fill_axis(compile, axis, set, out, depth) : status;
}

/* ---- The array --------------------------------------------------------------------------------
 */

/* volume[axis]: bytes of the axes from `axis` on; volume has dims + 1 elements, or is NULL. */
static int find_volumes(const crit_box_array *array, uint64_t *volume, uint64_t *bytes)
{
    uint64_t product = array->type_size;

    for (uint32_t axis = array->dims; axis-- > 0;) {
        if (volume != NULL)
            volume[axis + 1] = product;
        if (!crit_multiply(product, array->lengths[axis], &product) ||
            product > CRIT_PROGRAM_MAX_LENGTH)
            return crit_fail(SCR_CRIT_ERR_MISFIT, CRIT_NO_OFFSET,
                             "an array of more than 2^63 - 1 bytes");
    }
    if (volume != NULL)
        volume[0] = product;
    *bytes = product;
    return SCR_CRIT_OK;
}

int crit_boxes_volume(const crit_box_array *array, uint64_t *bytes)
{
    return find_volumes(array, NULL, bytes);
}

/* Copy a box in its canonical form. Returns false when it is empty. */
static bool normalise(const crit_box_array *array, uint32_t box, crit_box_axis *target)
{
    for (uint32_t axis = 0; axis < array->dims; axis++) {
        crit_box_axis bounds = array->axes[(size_t)box * array->dims + axis];
        uint64_t last;

        if (bounds.start == bounds.stop)
            return false;
        last = bounds.stop - 1 - (bounds.stop - 1 - bounds.start) % bounds.step;
        target[axis].start = bounds.start;
        target[axis].stop = last + 1;
        target[axis].step = last == bounds.start ? 1 : bounds.step;
    }
    return true;
}

static uint32_t find_full_from(const struct compile *compile, uint32_t box)
{
    uint32_t axis = compile->array->dims;

    for (; axis > 0; axis--) {
        const crit_box_axis *bounds = axis_of(compile, box, axis - 1);
        if (bounds->start != 0 || bounds->stop != compile->array->lengths[axis - 1] ||
            bounds->step != 1)
            break;
    }
    return axis;
}

static void normalise_all(struct compile *compile, struct set *all)
{
    const crit_box_array *array = compile->array;

    all->count = 0;
    for (uint32_t box = 0; box < array->boxes; box++) {
        if (normalise(array, box, compile->axes + (size_t)all->count * array->dims)) {
            compile->full_from[all->count] = find_full_from(compile, all->count);
            all->boxes[all->count] = all->count;
            all->count++;
        }
    }
}

int crit_boxes_append(crit_program *program, const crit_box_array *array, uint64_t *looks,
                      unsigned *depth)
{
    size_t axes_size = ((size_t)array->boxes * array->dims + 1) * sizeof(crit_box_axis);
    uint64_t allowed = *looks < CRIT_BOXES_MAX_LOOKS ? *looks : CRIT_BOXES_MAX_LOOKS;
    struct compile compile = {.array = array, .looks = allowed};
    struct set all = {.boxes = malloc(((size_t)array->boxes + 1) * sizeof *all.boxes)};
    uint64_t bytes = 0;
    int status;

    *depth = 0;
    compile.axes = malloc(axes_size);
    compile.full_from = malloc(((size_t)array->boxes + 1) * sizeof *compile.full_from);
    compile.volume = malloc(((size_t)array->dims + 1) * sizeof *compile.volume);
    if (!all.boxes || !compile.axes || !compile.full_from || !compile.volume)
        status = crit_fail_memory(axes_size);
    else
        status = find_volumes(array, compile.volume, &bytes);
    if (status == SCR_CRIT_OK && bytes > 0) {
        normalise_all(&compile, &all);
        status = fill_bytes(&compile, 0, &all, program, depth);
    }
    *looks -= allowed - compile.looks;
    free(all.boxes);
    free(compile.axes);
    free(compile.full_from);
    free(compile.volume);
    return status;
}
