/*
 * conversion: what is stored is not what lies in memory.
 *
 * Every source is overwritten at the start of each step before it is read, so that only the way
 * into the file decides. The file:
 *   step      int64      critical
 *   single    float 64   critical: computed from doubles
 *   low       uint32 64  dead: the low halves of uint64, a copy of four bytes
 *   octet     uint8 64   dead: the low bytes of uint32
 *   negated   double 64  the last byte critical: its sign bit is computed; the other seven dead, as
 *                        they are what they were
 *   wide      uint64 64  low four bytes dead (zero-extended from uint32), the upper four critical
 * Restart side: what is computed from a byte of the file makes that byte critical: single, and the
 * last bytes of negated. The rest is copied to what is overwritten first, and dead; so are the
 * upper halves of wide, which are dropped.
 */
#include "job.h"

enum { COUNT = 64 };

static int64_t step;
static double sources[COUNT], signs[COUNT];
static uint64_t longs[COUNT];
static uint32_t words[COUNT], halves[COUNT];
static double sum;

typedef struct {
    float single[COUNT];
    uint32_t low[COUNT];
    uint8_t octet[COUNT];
    double negated[COUNT];
    uint64_t wide[COUNT];
} Stored;

static void take_step(void)
{
    step++;
    for (int k = 0; k < COUNT; k++) {
        sources[k] = (double)step / (k + 1);
        signs[k] = (double)step * k;
        longs[k] = (uint64_t)step << 33 | (uint64_t)k;
        words[k] = (uint32_t)(step * 1000 + k);
        halves[k] = (uint32_t)(step * 77 + k);
    }
    double total = 0.0;
    for (int k = 0; k < COUNT; k++) {
        total += sources[k] - signs[k] + (double)longs[k] + words[k] + halves[k];
    }
    sum = total;
}

static int save(const char *path)
{
    FILE *file = fopen(path, "wb");
    Stored *stored = malloc(sizeof(Stored));
    for (int k = 0; k < COUNT; k++) {
        stored->single[k] = (float)sources[k];
        stored->low[k] = (uint32_t)longs[k];
        stored->octet[k] = (uint8_t)words[k];
        stored->negated[k] = -signs[k];
        stored->wide[k] = halves[k];
    }
    int good = file != NULL && fwrite(&step, sizeof(step), 1, file) == 1;
    good = good && fwrite(stored->single, sizeof(stored->single), 1, file) == 1;
    good = good && fwrite(stored->low, sizeof(stored->low), 1, file) == 1;
    good = good && fwrite(stored->octet, sizeof(stored->octet), 1, file) == 1;
    good = good && fwrite(stored->negated, sizeof(stored->negated), 1, file) == 1;
    good = good && fwrite(stored->wide, sizeof(stored->wide), 1, file) == 1;
    free(stored);
    return fclose(file) == 0 && good;
}

static int restore(const char *path)
{
    FILE *file = fopen(path, "rb");
    Stored *stored = malloc(sizeof(Stored));
    int good = file != NULL && fread(&step, sizeof(step), 1, file) == 1;
    good = good && fread(stored->single, sizeof(stored->single), 1, file) == 1;
    good = good && fread(stored->low, sizeof(stored->low), 1, file) == 1;
    good = good && fread(stored->octet, sizeof(stored->octet), 1, file) == 1;
    good = good && fread(stored->negated, sizeof(stored->negated), 1, file) == 1;
    good = good && fread(stored->wide, sizeof(stored->wide), 1, file) == 1;
    for (int k = 0; k < COUNT; k++) {
        sources[k] = (double)stored->single[k];
        longs[k] = stored->low[k];
        words[k] = stored->octet[k];
        signs[k] = -stored->negated[k];
        halves[k] = (uint32_t)stored->wide[k];
    }
    free(stored);
    return fclose(file) == 0 && good;
}

int main(int argc, char **argv)
{
    job_start(&argc, &argv);
    job_run(&step, take_step, save, restore);
    job_digest(&sum, sizeof(sum));
    return job_end();
}
