/*
 * two_files: each of two ranks writes two files, and a log beside them that SCR never hears of.
 *
 * field.RANK: step int64 (critical), rows double 4x25:
 *   row r of rank r is set before it is read: row 0 dead on rank 0, row 1 on rank 1, else critical
 *   row 2 critical on both
 *   row 3 is the neighbour's row 2, received by MPI in each step: dead on both
 * extra.RANK:
 *   quiet   double 30  overwritten first: dead; the second half is touched in step 5 for the last
 *                      time: unused after step 6
 *   logged  double 30  overwritten first too, but what was in it is also written to the log:
 *                      critical; dead on the restart side
 */
#include "job.h"

enum { ROWS = 4, COLS = 25, EXTRA = 30 };

static int64_t step;
static double rows[ROWS][COLS];
static double quiet[EXTRA], logged[EXTRA];
static double noise;

static void take_step(void)
{
    int ranks;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Sendrecv(rows[2], COLS, MPI_DOUBLE, (job_rank + 1) % ranks, 1, rows[3], COLS, MPI_DOUBLE,
                 (job_rank + ranks - 1) % ranks, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    step++;
    for (int j = 0; j < COLS; j++) {
        rows[job_rank][j] = (double)step + j;
    }
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < COLS; j++) {
            rows[i][j] = 0.5 * rows[i][j] + rows[3][j];
        }
    }
    const int upto = step <= 5 ? EXTRA : EXTRA / 2;
    for (int k = 0; k < upto; k++) {
        quiet[k] = (double)step * k;
    }
    for (int k = 0; k < EXTRA; k++) {
        logged[k] = (double)step + k;
    }
    for (int k = 0; k < EXTRA / 2; k++) {
        noise += quiet[k] + logged[k] + logged[k + EXTRA / 2];
    }
}

static int store(const char *path, const void *bytes, size_t size, const void *more,
                 size_t more_size)
{
    FILE *file = fopen(path, "wb");
    int good = file != NULL && fwrite(bytes, 1, size, file) == size &&
               fwrite(more, 1, more_size, file) == more_size;
    return fclose(file) == 0 && good;
}

static int save(void)
{
    int good = store(job_path("field"), &step, sizeof(step), rows, sizeof(rows));
    const char *path = job_path("extra");
    good = good && store(path, quiet, sizeof(quiet), logged, sizeof(logged));
    char log[SCR_MAX_FILENAME + 8];
    snprintf(log, sizeof(log), "%s.log", path);
    return good && store(log, logged, sizeof(logged), "\n", 1);
}

static int restore(void)
{
    FILE *file = fopen(job_path("field"), "rb");
    int good = file != NULL && fread(&step, sizeof(step), 1, file) == 1 &&
               fread(rows, sizeof(rows), 1, file) == 1;
    fclose(file);
    file = fopen(job_path("extra"), "rb");
    good = good && file != NULL && fread(quiet, sizeof(quiet), 1, file) == 1 &&
           fread(logged, sizeof(logged), 1, file) == 1;
    fclose(file);
    return good;
}

int main(int argc, char **argv)
{
    job_start(&argc, &argv);
    for (int k = 0; k < ROWS * COLS; k++) {
        rows[k / COLS][k % COLS] = job_rank + k;
    }
    if (job_restarting()) {
        job_restarted(restore());
    }
    while (step < STEPS) {
        take_step();
        if (job_must_save()) {
            job_open(step);
            job_saved(save());
        }
    }
    job_digest(rows[0], 3 * sizeof(rows[0]));
    return job_end();
}
