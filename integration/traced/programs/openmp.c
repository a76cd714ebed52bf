/*
 * openmp: the arrays are worked on by three threads, which also pack the checkpoint's buffer.
 *
 * The file:
 *   step    int64         critical
 *   cells   double 3000   critical where k % 4 != 0, dead else (overwritten first, by some thread)
 *   packed  double 600    element k is filled from edges[k], which is overwritten first: dead after
 *                         step 3; unused after step 6, as nothing happens to the buffer any more
 */
#include "job.h"

enum { CELLS = 3000, EDGES = 600 };

static int64_t step;
static double cells[CELLS], edges[EDGES], buffer[EDGES];

static void take_step(void)
{
#pragma omp parallel for num_threads(3)
    for (int k = 0; k < CELLS; k += 4) {
        cells[k] = (double)step + k;
    }
#pragma omp parallel for num_threads(3)
    for (int k = 0; k < CELLS; k++) {
        if (k % 4 != 0) {
            cells[k] = 0.5 * cells[k] + cells[k - k % 4];
        }
    }
#pragma omp parallel for num_threads(3)
    for (int k = 0; k < EDGES; k++) {
        edges[k] = cells[k * 5];
    }
    step++;
}

static int save(const char *path)
{
    FILE *file = fopen(path, "wb");
#pragma omp parallel for num_threads(3) schedule(static, 7)
    for (int k = 0; k < EDGES; k++) {
        buffer[k] = edges[k];
    }
    int good = file != NULL && fwrite(&step, sizeof(step), 1, file) == 1;
    good = good && fwrite(cells, sizeof(cells), 1, file) == 1;
    good = good && fwrite(buffer, sizeof(buffer), 1, file) == 1;
    return fclose(file) == 0 && good;
}

static int restore(const char *path)
{
    FILE *file = fopen(path, "rb");
    int good = file != NULL && fread(&step, sizeof(step), 1, file) == 1;
    good = good && fread(cells, sizeof(cells), 1, file) == 1;
    good = good && fread(buffer, sizeof(buffer), 1, file) == 1;
#pragma omp parallel for num_threads(3)
    for (int k = 0; k < EDGES; k++) {
        edges[k] = buffer[k];
    }
    return fclose(file) == 0 && good;
}

int main(int argc, char **argv)
{
    job_start(&argc, &argv);
    for (int k = 0; k < CELLS; k++) {
        cells[k] = k % 9;
    }
    job_run(&step, take_step, save, restore);
    job_digest(cells, sizeof(cells));
    return job_end();
}
