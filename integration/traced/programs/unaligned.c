/*
 * unaligned: packed records of 13 bytes, which straddle every boundary of 4, 8 and 64 KiB in turn.
 *
 * The file: step int64 (critical), then 20000 records of a block aligned to 64 KiB:
 *   value  double at byte 0   dead where record k has k % 3 == 0, else critical
 *   count  int32 at byte 8    dead where k % 2 == 0, else critical
 *   tag    char at byte 12    unused
 * Then wide, 200001 bytes from one byte behind a 64 KiB boundary, accessed 16 bytes at a time:
 * piece p is dead where p % 5 < 2, else critical; its last byte is unused.
 */
#define _POSIX_C_SOURCE 200809L
#include <emmintrin.h>

#include "job.h"

enum { COUNT = 20000, WIDE = 200001, PIECES = WIDE / 16, BOUNDARY = 65536 };

typedef struct __attribute__((packed)) {
    double value;
    int32_t count;
    char tag;
} Record;

static int64_t step;
static Record *records;
static unsigned char *wide;

static __m128i load(int piece)
{
    return _mm_loadu_si128((const __m128i *)(wide + 16 * piece));
}

static void store(int piece, __m128i value)
{
    _mm_storeu_si128((__m128i *)(wide + 16 * piece), value);
}

static void take_step(void)
{
    step++;
    for (int k = 0; k < COUNT; k++) {
        if (k % 3 == 0) {
            records[k].value = (double)step + k;
        }
        if (k % 2 == 0) {
            records[k].count = (int32_t)step * k;
        }
    }
    for (int k = 0; k < COUNT; k++) {
        if (k % 3 != 0) {
            records[k].value = 0.5 * records[k].value + records[k - k % 3].value;
        }
        if (k % 2 != 0) {
            records[k].count ^= records[k - 1].count;
        }
    }
    __m128i sum = _mm_set1_epi8((char)step);
    for (int p = 0; p < PIECES; p++) {
        if (p % 5 < 2) {
            store(p, _mm_set1_epi8((char)(step + p)));
        } else {
            sum = _mm_add_epi8(sum, load(p));
            store(p, sum);
        }
    }
}

static int save(const char *path)
{
    FILE *file = fopen(path, "wb");
    int good = file != NULL && fwrite(&step, sizeof(step), 1, file) == 1;
    good = good && fwrite(records, sizeof(Record), COUNT, file) == COUNT;
    good = good && fwrite(wide, 1, WIDE, file) == WIDE;
    return fclose(file) == 0 && good;
}

static int restore(const char *path)
{
    FILE *file = fopen(path, "rb");
    int good = file != NULL && fread(&step, sizeof(step), 1, file) == 1;
    good = good && fread(records, sizeof(Record), COUNT, file) == COUNT;
    good = good && fread(wide, 1, WIDE, file) == WIDE;
    return fclose(file) == 0 && good;
}

int main(int argc, char **argv)
{
    void *block = NULL, *second = NULL;
    job_start(&argc, &argv);
    job_must(posix_memalign(&block, BOUNDARY, COUNT * sizeof(Record)) == 0, "no memory");
    job_must(posix_memalign(&second, BOUNDARY, 1 + WIDE) == 0, "no memory");
    records = block;
    wide = (unsigned char *)second + 1;
    memset(records, 1, COUNT * sizeof(Record));
    memset(wide, 1, WIDE);
    job_run(&step, take_step, save, restore);
    for (int k = 0; k < COUNT; k++) {
        double value = records[k].value;
        job_digest(&value, sizeof(value));
    }
    job_digest(wide, WIDE - 1);
    return job_end();
}
