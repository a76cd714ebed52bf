/*
 * structs: an array of structures with dead fields, written in one piece, and a second one whose
 * members are handed by value to the function that writes them.
 *
 * Both arrays have 100 records of 40 bytes:
 *   x      double  critical
 *   mass   float   dead (set from x before it is read)
 *   alive  int32   critical
 *   tag    char    dead
 *   (pad)  7 bytes unused: no one ever touches it but as part of the whole record
 *   rate   double  dead
 *   spare  double  unused
 * In front: step, int64, critical. Only fields are accessed between checkpoints, never whole
 * records.
 */
#include "job.h"

enum { COUNT = 100 };

typedef struct {
    double x;
    float mass;
    int32_t alive;
    char tag;
    double rate;
    double spare;
} Particle;

static int64_t step;
static Particle direct[COUNT], by_value[COUNT];

static void move(Particle *p, int k)
{
    p->rate = p->x * 0.5 + k;
    p->mass = (float)p->rate;
    p->tag = (char)('a' + k % 26);
    p->alive = p->alive * 3 + p->tag;
    p->x += p->rate * 0.25 + p->mass;
}

static void take_step(void)
{
    for (int k = 0; k < COUNT; k++) {
        move(&direct[k], k);
        move(&by_value[k], k + 7);
    }
    step++;
}

__attribute__((noinline)) static int put(Particle particle, FILE *file)
{
    return fwrite(&particle, sizeof(particle), 1, file) == 1;
}

__attribute__((noinline)) static Particle get(FILE *file, int *good)
{
    Particle particle;
    *good = *good && fread(&particle, sizeof(particle), 1, file) == 1;
    return particle;
}

static int save(const char *path)
{
    FILE *file = fopen(path, "wb");
    int good = file != NULL && fwrite(&step, sizeof(step), 1, file) == 1;
    good = good && fwrite(direct, sizeof(Particle), COUNT, file) == COUNT;
    for (int k = 0; good && k < COUNT; k++) {
        good = put(by_value[k], file);
    }
    return fclose(file) == 0 && good;
}

static int restore(const char *path)
{
    FILE *file = fopen(path, "rb");
    int good = file != NULL && fread(&step, sizeof(step), 1, file) == 1;
    good = good && fread(direct, sizeof(Particle), COUNT, file) == COUNT;
    for (int k = 0; good && k < COUNT; k++) {
        by_value[k] = get(file, &good);
    }
    return fclose(file) == 0 && good;
}

int main(int argc, char **argv)
{
    job_start(&argc, &argv);
    for (int k = 0; k < COUNT; k++) {
        direct[k] = (Particle){.x = k, .alive = 1};
        by_value[k] = (Particle){.x = 2 * k, .alive = k};
    }
    job_run(&step, take_step, save, restore);
    for (int k = 0; k < COUNT; k++) {
        job_digest(&direct[k].x, sizeof(double));
        job_digest(&by_value[k].alive, sizeof(int32_t));
        job_digest(&by_value[k].x, sizeof(double));
    }
    return job_end();
}
