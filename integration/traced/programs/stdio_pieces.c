/*
 * stdio_pieces: fwrite of arrays smaller and larger than the buffer, which cuts them as it likes,
 * of single elements, of characters, and a printed number.
 *
 * The file:
 *   text    16 bytes     critical: the step, formatted by fprintf
 *   small   double 100   element i is dead where is_stale(i), else critical
 *   large   double 3000  the same; the buffer takes its head, write(2) its middle, the buffer its
 *                        tail
 *   single  double 37    the same, written one by one
 *   flags   char 61      the same, by putc; all critical on the restart side, where what getc
 *                        returns is compared with EOF
 */
#include "job.h"

enum { SMALL = 100, LARGE = 3000, SINGLE = 37, FLAGS = 61, ALL = SMALL + LARGE + SINGLE };

static int64_t step;
static double values[ALL]; /* small, large, single */
static unsigned char flags[FLAGS];
/* Index lists keep the compiler from making one loop of both, in which all would be read. */
static int stale[ALL], kept[ALL], stale_count, kept_count;

static int is_stale(int i)
{
    return i * i % 7 < 3;
}

static void take_step(void)
{
    for (int k = 0; k < stale_count; k++) {
        int i = stale[k];
        values[i] = (double)step + i;
        if (i < FLAGS) {
            flags[i] = (unsigned char)(step + i);
        }
    }
    for (int k = 0; k < kept_count; k++) {
        int i = kept[k];
        values[i] = 0.75 * values[i] + values[stale[k % stale_count]];
        if (i < FLAGS) {
            flags[i] = (unsigned char)(flags[i] * 3 + 1);
        }
    }
    step++;
}

static int save(const char *path)
{
    FILE *file = fopen(path, "wb");
    const double *single = values + SMALL + LARGE;
    int good = file != NULL && fprintf(file, "%15d\n", (int)step) == 16;
    good = good && fwrite(values, sizeof(double), SMALL, file) == SMALL;
    good = good && fwrite(values + SMALL, sizeof(double), LARGE, file) == LARGE;
    for (int k = 0; good && k < SINGLE; k++) {
        good = fwrite(single + k, sizeof(double), 1, file) == 1;
    }
    for (int k = 0; good && k < FLAGS; k++) {
        putc(flags[k], file); /* ferror tells: to compare what it returns would be a use */
    }
    good = good && !ferror(file);
    return fclose(file) == 0 && good;
}

static int restore(const char *path)
{
    char text[17] = "";
    FILE *file = fopen(path, "rb");
    double *single = values + SMALL + LARGE;
    int good = file != NULL && fread(text, 1, 16, file) == 16;
    step = atoi(text);
    good = good && fread(values, sizeof(double), SMALL, file) == SMALL;
    good = good && fread(values + SMALL, sizeof(double), LARGE, file) == LARGE;
    for (int k = 0; good && k < SINGLE; k++) {
        good = fread(single + k, sizeof(double), 1, file) == 1;
    }
    for (int k = 0; good && k < FLAGS; k++) {
        int got = getc(file);
        good = got != EOF;
        flags[k] = (unsigned char)got;
    }
    return fclose(file) == 0 && good;
}

int main(int argc, char **argv)
{
    job_start(&argc, &argv);
    /* Where an element of `large` or `single` lies in its array decides, not where in `values`. */
    const int begin[4] = {0, SMALL, SMALL + LARGE, ALL};
    for (int array = 0; array < 3; array++) {
        for (int i = begin[array]; i < begin[array + 1]; i++) {
            values[i] = i % 13;
            if (is_stale(i - begin[array])) {
                stale[stale_count++] = i;
            } else {
                kept[kept_count++] = i;
            }
        }
    }
    job_run(&step, take_step, save, restore);
    job_digest(values, sizeof(values));
    job_digest(flags, sizeof(flags));
    return job_end();
}
