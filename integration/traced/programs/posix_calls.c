/*
 * posix_calls: a file made in odd ways. It is written under another name, which is renamed onto the
 * routed one before SCR_Complete_output.
 *
 * Every source array is overwritten by each step before it is read, so all bytes that the tool can
 * follow are dead. The file:
 *   patched   int64      critical: a placeholder first, then the step by lseek and write
 *   twice     double 20  dead: written first from `loser` (which is read in each step), then again
 *                        from `winner`
 *   duped     double 20  dead: through a duplicate of the descriptor
 *   gap       100 bytes  critical: a hole, never written
 *   mapped    double 20  dead: copied into a mapping of the file
 *   appended  double 20  dead: through a second descriptor with O_APPEND
 *   spliced   double 20  critical: sent there from another file by sendfile, the bytes never were
 *                        in this process's memory
 *   tail      52 bytes   critical: the file is extended by ftruncate
 * Restart side: a mapping of the whole file shows every byte; only the step is used, the rest dead.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include "job.h"

enum { COUNT = 20, BYTES = COUNT * sizeof(double), GAP = 100, TAIL = 52 };
enum { AT_TWICE = 8, AT_MAPPED = AT_TWICE + 2 * BYTES + GAP, SIZE = AT_MAPPED + 3 * BYTES + TAIL };

static int64_t step;
static double loser[COUNT], winner[COUNT], duped[COUNT], mapped[COUNT], appended[COUNT], sum;

static void take_step(void)
{
    step++;
    for (int k = 0; k < COUNT; k++) {
        loser[k] = 0.5 * loser[k] + (double)step;
        winner[k] = (double)step + k;
        duped[k] = (double)step * k;
        mapped[k] = (double)step - k;
        appended[k] = (double)step + 2 * k;
    }
    double total = 0.0;
    for (int k = 0; k < COUNT; k++) {
        total += winner[k] + duped[k] + mapped[k] + appended[k];
    }
    sum = total;
}

static int store_mapped(int fd)
{
    /* The page that holds it, up to AT_MAPPED + BYTES: extended for that, the rest follows. */
    if (ftruncate(fd, AT_MAPPED + BYTES) != 0) {
        return 0;
    }
    char *page = mmap(NULL, AT_MAPPED + BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED) {
        return 0;
    }
    memcpy(page + AT_MAPPED, mapped, BYTES);
    return munmap(page, AT_MAPPED + BYTES) == 0;
}

static int send_other(int fd, const char *path)
{
    char name[SCR_MAX_FILENAME + 8];
    snprintf(name, sizeof(name), "%s.part", path);
    static const double part[COUNT] = {1.0, 2.0, 3.0};
    int other = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);
    off_t from = 0;
    int good = other >= 0 && write(other, part, BYTES) == BYTES &&
               sendfile(fd, other, &from, BYTES) == BYTES;
    close(other);
    return unlink(name) == 0 && good;
}

static int save(const char *path)
{
    char temporary[SCR_MAX_FILENAME + 8];
    snprintf(temporary, sizeof(temporary), "%s.tmp", path);
    int fd = open(temporary, O_RDWR | O_CREAT | O_TRUNC, 0644);
    const int64_t placeholder = -1;
    int good = fd >= 0 && write(fd, &placeholder, sizeof(placeholder)) == sizeof(placeholder);
    good = good && write(fd, loser, BYTES) == BYTES;
    good = good && lseek(fd, AT_TWICE, SEEK_SET) == AT_TWICE && write(fd, winner, BYTES) == BYTES;
    int second = dup(fd);
    good = good && write(second, duped, BYTES) == BYTES;
    good = good && store_mapped(fd);
    int append = open(temporary, O_WRONLY | O_APPEND);
    good = good && append >= 0 && write(append, appended, BYTES) == BYTES && close(append) == 0;
    good = good && lseek(second, 0, SEEK_END) == SIZE - TAIL - BYTES && send_other(second, path);
    good = good && ftruncate(second, SIZE) == 0 && lseek(fd, 0, SEEK_SET) == 0;
    good = good && write(fd, &step, sizeof(step)) == sizeof(step);
    return close(fd) == 0 && close(second) == 0 && rename(temporary, path) == 0 && good;
}

static int restore(const char *path)
{
    int fd = open(path, O_RDONLY);
    int good = fd >= 0 && pread(fd, &step, sizeof(step), 0) == sizeof(step);
    good = good && pread(fd, winner, BYTES, AT_TWICE) == BYTES;
    good = good && pread(fd, duped, BYTES, AT_TWICE + BYTES) == BYTES;
    good = good && pread(fd, appended, BYTES, AT_MAPPED + BYTES) == BYTES;
    /* `mapped` is read through a mapping: the step decides, as it overwrites the copy. */
    char *page = mmap(NULL, SIZE, PROT_READ, MAP_PRIVATE, fd, 0);
    good = good && page != MAP_FAILED;
    memcpy(mapped, page + AT_MAPPED, BYTES);
    good = munmap(page, SIZE) == 0 && good;
    return close(fd) == 0 && good;
}

int main(int argc, char **argv)
{
    job_start(&argc, &argv);
    job_run(&step, take_step, save, restore);
    job_digest(&sum, sizeof(sum));
    return job_end();
}
