/*
 * packed_ahead: each step ends by packing its result into a buffer, long before SCR is asked
 * whether to save; only the buffer is written.
 *
 * The file:
 *   step    int64       critical
 *   packed  double 800  refilled by each step before anyone reads it: the checkpoint side, which
 *                       follows copies only while a checkpoint is being written, must call it dead,
 *                       though it is the whole state. The restart side copies it back into the
 *                       field, which the next step reads: critical.
 * This is the reason why the restart side decides.
 */
#include "job.h"

enum { COUNT = 800 };

static int64_t step;
static double field[COUNT], packed[COUNT];

static void take_step(void)
{
    for (int k = 0; k < COUNT; k++) {
        field[k] = 0.5 * field[k] + k;
    }
    memcpy(packed, field, sizeof(field));
    step++;
}

static int save(const char *path)
{
    FILE *file = fopen(path, "wb");
    int good = file != NULL && fwrite(&step, sizeof(step), 1, file) == 1;
    good = good && fwrite(packed, sizeof(packed), 1, file) == 1;
    return fclose(file) == 0 && good;
}

static int restore(const char *path)
{
    FILE *file = fopen(path, "rb");
    int good = file != NULL && fread(&step, sizeof(step), 1, file) == 1;
    good = good && fread(packed, sizeof(packed), 1, file) == 1;
    memcpy(field, packed, sizeof(field));
    return fclose(file) == 0 && good;
}

int main(int argc, char **argv)
{
    job_start(&argc, &argv);
    job_run(&step, take_step, save, restore);
    job_digest(field, sizeof(field));
    return job_end();
}
