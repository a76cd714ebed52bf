/*
 * pack_loop stack|heap|static inside|early: two fields packed element by element into a buffer.
 *
 * The file: 18x18 pairs of doubles
 *   u(i,j)     critical (each step reads it first)
 *   flux(i,j)  overwritten before it is read: dead where the buffer is gone or refilled later,
 *              unused where nothing happens to the buffer any more after the last checkpoint
 *   step       int64, critical
 * `early` packs after SCR_Need_checkpoint said yes and before SCR_Start_output.
 */
#include "job.h"

enum { EDGE = 20, PACKED = 2 * (EDGE - 2) * (EDGE - 2) };

static int64_t step;
static double u[EDGE][EDGE], flux[EDGE][EDGE];
static double static_buffer[PACKED];

static void take_step(void)
{
    for (int i = 1; i < EDGE - 1; i++) {
        for (int j = 1; j < EDGE - 1; j++) {
            flux[i][j] = 0.25 * (u[i - 1][j] + u[i + 1][j] + u[i][j - 1] + u[i][j + 1]) - u[i][j];
        }
    }
    for (int i = 1; i < EDGE - 1; i++) {
        for (int j = 1; j < EDGE - 1; j++) {
            u[i][j] += 0.5 * flux[i][j];
        }
    }
    step++;
}

static void pack(double *restrict buffer)
{
    size_t n = 0;
    for (int i = 1; i < EDGE - 1; i++) {
        for (int j = 1; j < EDGE - 1; j++) {
            buffer[n++] = u[i][j];
            buffer[n++] = flux[i][j];
        }
    }
}

static void unpack(const double *restrict buffer)
{
    size_t n = 0;
    for (int i = 1; i < EDGE - 1; i++) {
        for (int j = 1; j < EDGE - 1; j++) {
            u[i][j] = buffer[n++];
            flux[i][j] = buffer[n++];
        }
    }
}

static void store(const double *buffer)
{
    FILE *file = fopen(job_path("state"), "wb");
    int good = file != NULL && fwrite(buffer, sizeof(double), PACKED, file) == PACKED;
    good = good && fwrite(&step, sizeof(step), 1, file) == 1;
    good = file != NULL && fclose(file) == 0 && good;
    job_saved(good);
}

static void load(double *buffer)
{
    FILE *file = fopen(job_path("state"), "rb");
    int good = file != NULL && fread(buffer, sizeof(double), PACKED, file) == PACKED;
    good = good && fread(&step, sizeof(step), 1, file) == 1;
    good = file != NULL && fclose(file) == 0 && good;
    unpack(buffer);
    job_restarted(good);
}

static void save(double *buffer, int early)
{
    if (early) {
        pack(buffer);
    }
    job_open(step);
    if (!early) {
        pack(buffer);
    }
    store(buffer);
}

static void save_from_stack(int early)
{
    double buffer[PACKED];
    save(buffer, early);
}

static void load_to_stack(void)
{
    double buffer[PACKED];
    load(buffer);
}

int main(int argc, char **argv)
{
    job_start(&argc, &argv);
    job_must(argc == 3, "usage: pack_loop stack|heap|static inside|early");
    const int stack = strcmp(argv[1], "stack") == 0, heap = strcmp(argv[1], "heap") == 0;
    const int early = strcmp(argv[2], "early") == 0;
    for (int i = 0; i < EDGE * EDGE; i++) {
        u[i / EDGE][i % EDGE] = i % 11;
    }
    if (job_restarting()) {
        if (stack) {
            load_to_stack();
        } else {
            double *buffer = heap ? malloc(PACKED * sizeof(double)) : static_buffer;
            load(buffer);
            free(heap ? buffer : NULL);
        }
    }
    while (step < STEPS) {
        take_step();
        if (!job_must_save()) {
            continue;
        }
        if (stack) {
            save_from_stack(early);
        } else {
            double *buffer = heap ? malloc(PACKED * sizeof(double)) : static_buffer;
            save(buffer, early);
            free(heap ? buffer : NULL);
        }
    }
    job_digest(u, sizeof(u));
    return job_end();
}
