/*
 * lifetimes: heap arrays that are swapped, freed, grown, or used in some steps only.
 *
 * The file:
 *   step     int64      critical
 *   now      double 50  critical: the field as it stands
 *   next     double 50  dead: computed from `now`, then the two pointers are swapped
 *   scratch  double 50  dead: freed in the next step before anyone looks at it; the question that
 *                       follows, whether to save, shows that the program goes on
 *   rare     double 50  read in step 5 alone: critical after step 3, unused after step 6
 *   guard    double 50  unused: read only where argc is 99
 *   grown    double n   n = 1000 after step 3: step 4 begins with a realloc to 5000 elements, which
 *                       is n after step 6. Then even elements are overwritten (dead) and odd ones
 *                       read (critical) in each step.
 *   packed   double 80  a buffer that realloc grows while it is filled from `now` and `next`, in
 *                       turns: critical and dead
 */
#include "job.h"

enum { COUNT = 50, FEW = 1000, MANY = 5000, PACKED = 80 };

static int64_t step;
static double *now, *next, *scratch, *rare, *guard, *grown;
static int grown_count = FEW;

static double *make(int count, double first)
{
    double *array = malloc((size_t)count * sizeof(double));
    for (int k = 0; k < count; k++) {
        array[k] = first + k % 10;
    }
    return array;
}

static void grow(void)
{
    grown = realloc(grown, MANY * sizeof(double));
    for (int k = FEW; k < MANY; k++) {
        grown[k] = k;
    }
    grown_count = MANY;
}

static void take_step(int guarded)
{
    step++;
    if (step == 4) {
        grow();
    }
    free(scratch);
    scratch = make(COUNT, (double)step);
    for (int k = 0; k < COUNT; k++) {
        next[k] = 0.5 * now[k] + scratch[k];
    }
    double *swap = now;
    now = next;
    next = swap;
    if (step == 5) {
        for (int k = 0; k < COUNT; k++) {
            now[k] += rare[k];
        }
    }
    if (guarded) {
        job_digest(guard, COUNT * sizeof(double));
    }
    for (int k = 0; k < grown_count; k += 2) {
        grown[k] = (double)step + k;
    }
    for (int k = 1; k < grown_count; k += 2) {
        grown[k] = grown[k] * 0.5 + grown[k - 1];
    }
}

static int save_packed(FILE *file)
{
    double *packed = NULL;
    for (int k = 0; k < PACKED; k += 2) {
        packed = realloc(packed, (size_t)(k + 2) * sizeof(double));
        packed[k] = now[k / 2];
        packed[k + 1] = next[k / 2];
    }
    int good = fwrite(packed, sizeof(double), PACKED, file) == PACKED;
    free(packed);
    return good;
}

static int save(const char *path)
{
    FILE *file = fopen(path, "wb");
    double *const arrays[5] = {now, next, scratch, rare, guard};
    int good = file != NULL && fwrite(&step, sizeof(step), 1, file) == 1;
    for (int k = 0; good && k < 5; k++) {
        good = fwrite(arrays[k], sizeof(double), COUNT, file) == COUNT;
    }
    good = good && fwrite(grown, sizeof(double), (size_t)grown_count, file) == (size_t)grown_count;
    good = good && save_packed(file);
    return fclose(file) == 0 && good;
}

static int restore(const char *path)
{
    FILE *file = fopen(path, "rb");
    double *const arrays[5] = {now, next, scratch, rare, guard};
    int good = file != NULL && fread(&step, sizeof(step), 1, file) == 1;
    for (int k = 0; good && k < 5; k++) {
        good = fread(arrays[k], sizeof(double), COUNT, file) == COUNT;
    }
    if (step >= 4) {
        grow();
    }
    good = good && fread(grown, sizeof(double), (size_t)grown_count, file) == (size_t)grown_count;
    return fclose(file) == 0 && good;
}

int main(int argc, char **argv)
{
    const int guarded = argc == 99;
    job_start(&argc, &argv);
    now = make(COUNT, 1.0);
    next = make(COUNT, 2.0);
    scratch = make(COUNT, 3.0);
    rare = make(COUNT, 4.0);
    guard = make(COUNT, 5.0);
    grown = make(FEW, 6.0);
    if (job_restarting()) {
        job_restarted(restore(job_path("state")));
    }
    while (step < STEPS) {
        take_step(guarded);
        if (job_must_save()) {
            job_open(step);
            job_saved(save(job_path("state")));
        }
    }
    job_digest(now, COUNT * sizeof(double));
    job_digest(grown, (size_t)grown_count * sizeof(double));
    return job_end();
}
