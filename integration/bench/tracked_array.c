/*
 * tracked_array.c - a program whose checkpoint is one large array: what tracing costs in memory.
 *
 * The array is written as it lies in memory. Then each step reads every other page and overwrites
 * the rest, so that half of the checkpoint is dead.
 *
 * Needs MEBIBYTES, the array's size. Built and run by tracer.py. May use ../npb_c/checkpoint.h.
 */
#include <string.h>

#include "checkpoint.h"

enum { PAGE = 4096, PAGES = MEBIBYTES * 256, STEPS = 2 };

static int step;
static unsigned char state[PAGES][PAGE];

static unsigned take_step(void)
{
    unsigned sum = 0;
    for (int page = 0; page < PAGES; page += 2) {
        for (int i = 0; i < PAGE; i++) {
            sum += state[page][i];
        }
        memset(state[page + 1], step, PAGE);
    }
    return sum;
}

int main(int argc, char **argv)
{
    static const Kernel kernel = {
        .name = "array",
        .iterations = STEPS,
        .variables = 2,
        .variable = {{&step, sizeof(step)}, {state, sizeof(state)}},
    };
    kernel_begin(&kernel, argc, argv);
    memset(state, 1, sizeof(state));
    step = 1;
    kernel_resume();
    unsigned sum = 0;
    for (; step <= STEPS; step++) {
        kernel_checkpoint();
        sum += take_step();
    }
    /* The half that is read was never changed; 2 steps, or as many as a restart had left. */
    unsigned once = (unsigned)PAGES / 2 * PAGE;
    return kernel_end(sum == once || sum == 2 * once);
}
