/* test_plan_boxes.c - from critical boxes to a program of runs (core/plan_boxes.h), held against a
 * mask that is filled element by element.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "check.h"
#include "plan_boxes.h"

enum { MOST_DIMS = 5, MOST_BOXES = 6, MOST_BYTES = 80000 };

static uint32_t seed = 12345;

/* A number below `limit`, the same in every run of the test. */
static uint64_t draw(uint64_t limit)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % limit;
}

static bool in_box(const crit_box_axis *axes, const uint64_t *index, uint32_t dims)
{
    for (uint32_t axis = 0; axis < dims; axis++)
        if (index[axis] < axes[axis].start || index[axis] >= axes[axis].stop ||
            (index[axis] - axes[axis].start) % axes[axis].step != 0)
            return false;
    return true;
}

/* One byte for every byte of the array: 1 where critical. */
static void fill_mask(const crit_box_array *array, uint64_t bytes, uint8_t *mask)
{
    uint64_t index[MOST_DIMS] = {0};

    memset(mask, 0, bytes);
    for (uint64_t at = 0; at < bytes; at += array->type_size) {
        for (uint32_t box = 0; box < array->boxes; box++)
            if (in_box(array->axes + box * array->dims, index, array->dims))
                memset(mask + at, 1, array->type_size);
        for (uint32_t axis = array->dims; axis-- > 0;) {
            if (++index[axis] < array->lengths[axis])
                break;
            index[axis] = 0;
        }
    }
}

static void check_program(const crit_program *program, uint64_t bytes, const uint8_t *mask)
{
    crit_program_facts facts;
    crit_cursor cursor;
    crit_run run;
    uint64_t at = 0;
    bool same = true;

    CHECK_STATUS(crit_program_validate(program->bytes, program->size, -1, bytes, &facts),
                 SCR_CRIT_OK);
    crit_cursor_open(&cursor, program->bytes, program->size);
    while (crit_cursor_next(&cursor, &run)) {
        for (; at < run.start; at++)
            same = same && mask[at] == 0;
        for (; at < run.stop; at++)
            same = same && mask[at] == 1;
    }
    for (; at < bytes; at++)
        same = same && mask[at] == 0;
    CHECK(same);
}

/* With all the looks that one array may take. */
static int append(crit_program *program, const crit_box_array *array, unsigned *depth)
{
    uint64_t looks = CRIT_BOXES_MAX_LOOKS;

    return crit_boxes_append(program, array, &looks, depth);
}

static void random_boxes_give_their_mask(void)
{
    static uint8_t mask[MOST_BYTES];

    for (int round = 0; round < 20000; round++) {
        uint64_t lengths[MOST_DIMS], bytes = 0;
        crit_box_axis axes[MOST_BOXES * MOST_DIMS];
        crit_box_array array = {.dims = (uint32_t)draw(MOST_DIMS + 1),
                                .boxes = (uint32_t)draw(MOST_BOXES + 1),
                                .lengths = lengths,
                                .axes = axes,
                                .type_size = 1 + draw(9)};
        bool stepped = draw(2);
        crit_program program;
        unsigned depth;

        for (uint32_t axis = 0; axis < array.dims; axis++)
            lengths[axis] = draw(array.dims < 3 ? 14 : 7);
        for (uint32_t i = 0; i < array.boxes * array.dims; i++) {
            uint64_t length = lengths[i % array.dims];
            axes[i].start = draw(4) ? draw(length + 1) : 0;
            axes[i].stop = draw(3) ? axes[i].start + draw(length - axes[i].start + 1) : length;
            axes[i].step = stepped ? 1 + draw(5) : 1;
        }
        CHECK_STATUS(crit_boxes_volume(&array, &bytes), SCR_CRIT_OK);
        CHECK(bytes <= MOST_BYTES);
        fill_mask(&array, bytes, mask);
        crit_program_init(&program);
        CHECK_STATUS(append(&program, &array, &depth), SCR_CRIT_OK);
        check_program(&program, bytes, mask);
        crit_program_free(&program);
    }
}

/* The program of one box on an array of `dims` axes of length `length` each. */
static int one_box(uint32_t dims, uint64_t length, crit_box_axis axis, crit_program *program,
                   unsigned *depth)
{
    uint64_t lengths[CRIT_PROGRAM_DEPTH + 1];
    crit_box_axis axes[CRIT_PROGRAM_DEPTH + 1];

    for (uint32_t i = 0; i < dims; i++) {
        lengths[i] = length;
        axes[i] = axis;
    }
    crit_program_init(program);
    return append(program,
                  &(crit_box_array){
                      .dims = dims, .boxes = 1, .lengths = lengths, .axes = axes, .type_size = 8},
                  depth);
}

static void size_follows_the_boxes(void)
{
    crit_program_facts facts;
    crit_program program;
    unsigned depth;

    CHECK_STATUS(one_box(3, 1000000, (crit_box_axis){2, 999998, 1}, &program, &depth), SCR_CRIT_OK);
    CHECK(program.size < 100);
    CHECK_STATUS(crit_program_check(program.bytes, program.size, -1, &facts), SCR_CRIT_OK);
    CHECK_U64(facts.length, 8000000000000000000u);
    CHECK_U64(facts.kept, UINT64_C(999996) * 999996 * 999996 * 8);
    CHECK_U64(facts.depth, depth);
    crit_program_free(&program);
    CHECK_STATUS(one_box(2, 1000000, (crit_box_axis){1, 999999, 7}, &program, &depth), SCR_CRIT_OK);
    CHECK(program.size < 100);
    crit_program_free(&program);
}

static void uniform_arrays_are_one_run(void)
{
    crit_program program;
    unsigned depth;

    CHECK_STATUS(one_box(4, 100, (crit_box_axis){0, 100, 1}, &program, &depth), SCR_CRIT_OK);
    CHECK_U64(program.size, 6); /* KEEP and a varint of 5 bytes */
    crit_program_free(&program);
    CHECK_STATUS(one_box(4, 100, (crit_box_axis){5, 5, 1}, &program, &depth), SCR_CRIT_OK);
    CHECK_U64(program.size, 6);
    CHECK_U64(program.bytes[0], CRIT_OP_DROP);
    crit_program_free(&program);
    CHECK_STATUS(one_box(3, 0, (crit_box_axis){0, 0, 1}, &program, &depth), SCR_CRIT_OK);
    CHECK_U64(program.size, 0);
    crit_program_free(&program);
}

/* Boxes with few indices far apart: there is no work in what lies between. */
static void far_steps_are_stepped_over(void)
{
    const uint64_t length = UINT64_C(1) << 40;
    const crit_box_axis axes[] = {{0, length, length - 1}, {0, length - 1, length - 2}};
    uint64_t looks = 1000;
    crit_program program;
    crit_program_facts facts;
    unsigned depth;

    crit_program_init(&program);
    CHECK_STATUS(crit_boxes_append(
                     &program,
                     &(crit_box_array){
                         .dims = 1, .boxes = 2, .lengths = &length, .axes = axes, .type_size = 1},
                     &looks, &depth),
                 SCR_CRIT_OK);
    CHECK_STATUS(crit_program_validate(program.bytes, program.size, -1, length, &facts),
                 SCR_CRIT_OK);
    CHECK_U64(facts.kept, 3); /* 0, length - 2, length - 1 */
    crit_program_free(&program);
}

/* As many boxes as a plan may have, each met where it lies alone. */
static void the_most_boxes_are_found(void)
{
    enum { BOXES = 4096 };
    static crit_box_axis axes[BOXES];
    const uint64_t length = 3 * BOXES;
    const crit_box_array array = {
        .dims = 1, .boxes = BOXES, .lengths = &length, .axes = axes, .type_size = 8};
    uint64_t looks = CRIT_BOXES_MAX_LOOKS / 4;
    crit_program program;
    crit_program_facts facts;
    unsigned depth;

    for (uint64_t i = 0; i < BOXES; i++)
        axes[i] = (crit_box_axis){3 * i, 3 * i + 1, 1};
    crit_program_init(&program);
    CHECK_STATUS(crit_boxes_append(&program, &array, &looks, &depth), SCR_CRIT_OK);
    CHECK_STATUS(crit_program_check(program.bytes, program.size, -1, &facts), SCR_CRIT_OK);
    CHECK_U64(facts.critical_runs, BOXES);
    crit_program_free(&program);
}

static void looks_are_counted(void)
{
    const uint64_t length = 100;
    const crit_box_axis axes[] = {{1, 90, 7}, {3, 80, 5}};
    const crit_box_array array = {
        .dims = 1, .boxes = 2, .lengths = &length, .axes = axes, .type_size = 1};
    uint64_t looks = 100000, taken, enough;
    crit_program program;
    unsigned depth;

    crit_program_init(&program);
    CHECK_STATUS(crit_boxes_append(&program, &array, &looks, &depth), SCR_CRIT_OK);
    crit_program_free(&program);
    taken = enough = 100000 - looks;
    CHECK_STATUS(crit_boxes_append(&program, &array, &enough, &depth), SCR_CRIT_OK);
    CHECK_U64(enough, 0);
    crit_program_free(&program);
    taken--;
    CHECK_STATUS(crit_boxes_append(&program, &array, &taken, &depth), SCR_CRIT_ERR_MISFIT);
    CHECK(strstr(scr_crit_last_error(), "too long") != NULL);
    crit_program_free(&program);
}

static void what_is_no_rule_is_refused(void)
{
    enum { BOXES = 4000, DIMS = 3 };
    static crit_box_axis axes[BOXES * DIMS];
    uint64_t lengths[DIMS] = {1 << 20, 1 << 20, 1 << 20}, bytes;
    crit_box_array array = {
        .dims = DIMS, .boxes = BOXES, .lengths = lengths, .axes = axes, .type_size = 1};
    crit_program program;
    unsigned depth;

    CHECK_STATUS(one_box(17, 4, (crit_box_axis){1, 3, 1}, &program, &depth), SCR_CRIT_ERR_MISFIT);
    crit_program_free(&program);
    CHECK_STATUS(one_box(16, 4, (crit_box_axis){1, 3, 1}, &program, &depth), SCR_CRIT_OK);
    CHECK_U64(depth, 15);
    crit_program_free(&program);
    CHECK_STATUS(one_box(4, UINT64_C(1) << 60, (crit_box_axis){1, 3, 1}, &program, &depth),
                 SCR_CRIT_ERR_MISFIT);
    crit_program_free(&program);
    for (uint32_t i = 0; i < BOXES * DIMS; i++) {
        axes[i].start = draw(1 << 19);
        axes[i].stop = axes[i].start + draw(1 << 19);
        axes[i].step = 1 + draw(1000);
    }
    CHECK_STATUS(crit_boxes_volume(&array, &bytes), SCR_CRIT_OK);
    crit_program_init(&program);
    CHECK_STATUS(append(&program, &array, &depth), SCR_CRIT_ERR_MISFIT);
    crit_program_free(&program);
    lengths[0] = INT64_MAX;
    CHECK_STATUS(crit_boxes_volume(&array, &bytes), SCR_CRIT_ERR_MISFIT);
}

int main(void)
{
    random_boxes_give_their_mask();
    size_follows_the_boxes();
    uniform_arrays_are_one_run();
    far_steps_are_stepped_over();
    the_most_boxes_are_found();
    looks_are_counted();
    what_is_no_rule_is_refused();
    return check_result();
}
