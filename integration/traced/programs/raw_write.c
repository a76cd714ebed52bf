/*
 * raw_write: static and heap arrays, each written from where it lies by write, writev, pwrite and
 * pwritev.
 *
 * The file, and what a checkpoint after step s needs of it:
 *   magic    8 bytes       critical: a constant (checkpoint side), compared (restart side)
 *   step     int64         critical
 *   grid     double 10x12  interior critical (each step reads it first); the four edges dead
 *                          (refilled from the interior before they are read); the corners unused
 *   work     double 50     dead (zeroed before it is added to)
 *   table    double 30     unused (saved, never looked at)
 *   history  double 40     entry k is written by step k + 1 and read at the end: k < s critical,
 *                          s <= k < STEPS dead, the rest unused
 */
#define _DEFAULT_SOURCE
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "job.h"

enum { ROWS = 10, COLS = 12, WORK = 50, TABLE = 30, HISTORY = 40 };

static const char MAGIC[8] = {'R', 'A', 'W', 'W', 'R', 'I', 'T', 'E'};
static int64_t step;
static double grid[ROWS][COLS];
static double *work;
static double table[TABLE];
static double *history;

static void fill_edges(void)
{
    for (int j = 1; j < COLS - 1; j++) {
        grid[0][j] = grid[ROWS - 2][j];
        grid[ROWS - 1][j] = grid[1][j];
    }
    for (int i = 1; i < ROWS - 1; i++) {
        grid[i][0] = grid[i][COLS - 2];
        grid[i][COLS - 1] = grid[i][1];
    }
}

static void take_step(void)
{
    fill_edges();
    memset(work, 0, WORK * sizeof(double));
    for (int i = 1; i < ROWS - 1; i++) {
        for (int j = 1; j < COLS - 1; j++) {
            grid[i][j] = 0.5 * grid[i][j] + 0.125 * (grid[i - 1][j] + grid[i + 1][j] +
                                                     grid[i][j - 1] + grid[i][j + 1]);
            work[(i * 10 + j) % WORK] += grid[i][j];
        }
    }
    double sum = 0.0;
    for (int k = 0; k < WORK; k++) {
        sum += work[k] * k;
    }
    history[step] = sum;
    step++;
}

static int save(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    struct iovec head[2] = {{(void *)MAGIC, sizeof(MAGIC)}, {&step, sizeof(step)}};
    struct iovec tail[2] = {{table, sizeof(table)}, {history, HISTORY * sizeof(double)}};
    const size_t half = sizeof(grid) / 2, work_bytes = WORK * sizeof(double);
    const off_t work_at = sizeof(MAGIC) + sizeof(step) + sizeof(grid);
    int good = fd >= 0 && writev(fd, head, 2) == 16;
    good = good && pwritev(fd, tail, 2, work_at + (off_t)work_bytes) > 0;
    good = good && write(fd, grid, half) == (ssize_t)half;
    good = good && write(fd, (char *)grid + half, half) == (ssize_t)half;
    good = good && pwrite(fd, work, work_bytes, work_at) == (ssize_t)work_bytes;
    return close(fd) == 0 && good;
}

static int restore(const char *path)
{
    char magic[sizeof(MAGIC)];
    int fd = open(path, O_RDONLY);
    struct iovec head[2] = {{magic, sizeof(magic)}, {&step, sizeof(step)}};
    struct iovec tail[3] = {
        {work, WORK * sizeof(double)}, {table, sizeof(table)}, {history, HISTORY * sizeof(double)}};
    int good = fd >= 0 && readv(fd, head, 2) == 16 && memcmp(magic, MAGIC, sizeof(MAGIC)) == 0;
    good = good && read(fd, grid, sizeof(grid)) == sizeof(grid);
    good = good && preadv(fd, tail, 3, 16 + sizeof(grid)) > 0;
    return close(fd) == 0 && good;
}

int main(int argc, char **argv)
{
    job_start(&argc, &argv);
    work = malloc(WORK * sizeof(double));
    history = malloc(HISTORY * sizeof(double));
    for (int i = 0; i < ROWS * COLS; i++) {
        grid[i / COLS][i % COLS] = i % 17;
    }
    memset(work, 0, WORK * sizeof(double));
    memset(history, 0, HISTORY * sizeof(double));
    job_run(&step, take_step, save, restore);
    job_digest(history, STEPS * sizeof(double));
    job_digest(grid[4], sizeof(grid[4]));
    return job_end();
}
