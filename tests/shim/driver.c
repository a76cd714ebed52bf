/* driver.c - an MPI program that does what a script says, for the shim's tests.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 *     driver SCRIPT
 *
 * A line of the script is a verb and its arguments, separated by tabs. Every rank executes it, or
 * those that a first word "@2" or "@1,3" names. In arguments {rank} and {size} are replaced. Each
 * rank reports on stdout as "RANK<tab>VERB<tab>...". The program knows nothing of the plugin.
 * conftest.py runs it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <mpi.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "calls.h"

enum { MAX_WORDS = 16, WORD_SIZE = 4096 };

static int rank, size;
static int valid = 1; /* of the current phase */
static char words[MAX_WORDS][WORD_SIZE];
static int word_count;

static void report(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void report(const char *format, ...)
{
    char text[2 * WORD_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    printf("%d\t%s\t%s\n", rank, words[0], text);
    fflush(stdout);
}

static long number(int index)
{
    return atol(words[index]);
}

/* ---- Content -------------------------------------------------------------------------------- */

/* conftest.py computes the same. */
static unsigned char content(long seed, size_t at)
{
    return (unsigned char)((size_t)seed + at * 31 + (at >> 8) * 17 + (at >> 16) * 3);
}

static int write_content(const char *path, int flags, long offset, size_t count, long seed)
{
    int file = open(path, O_WRONLY | flags, 0640);
    unsigned char *bytes = malloc(count + 1);
    int good = file >= 0 && bytes && (offset < 0 || lseek(file, offset, SEEK_SET) == offset);
    for (size_t i = 0; bytes && i < count; i++)
        bytes[i] = content(seed, i);
    for (size_t done = 0; good && done < count;) {
        ssize_t written = write(file, bytes + done, count - done);
        good = written > 0;
        done += good ? (size_t)written : 0;
    }
    int error = errno;
    if (file >= 0)
        good &= close(file) == 0;
    free(bytes);
    valid &= good;
    errno = good ? 0 : error;
    return good;
}

static int copy_file(const char *source, const char *target)
{
    char block[65536];
    size_t count;
    FILE *in = fopen(source, "rb"), *out = in ? fopen(target, "wb") : NULL;
    int good = in && out;
    while (good && (count = fread(block, 1, sizeof block, in)) > 0)
        good = fwrite(block, 1, count, out) == count;
    if (in)
        fclose(in);
    if (out)
        good &= fclose(out) == 0;
    return good;
}

/* ---- Verbs ---------------------------------------------------------------------------------- */

static int route(const char *name, char *path)
{
    path[0] = '\0';
    int status = call_route_file(name, path);
    report("%s\t%d\t%s", name, status, path);
    valid &= status == 0;
    return status;
}

static void routed_write(int flags, long offset, size_t count, long seed)
{
    char path[NAME_SIZE];
    if (route(words[1], path) == 0 && !write_content(path, flags, offset, count, seed))
        report("failed\t%s\t%s", words[1], strerror(errno));
}

static void routed_copy(void)
{
    char path[NAME_SIZE];
    if (route(words[1], path) == 0)
        valid &= copy_file(path, words[2]);
}

/* write to a neighbour, then rename: what careful programs do */
static void routed_rename(size_t count, long seed)
{
    char path[NAME_SIZE], neighbour[NAME_SIZE + 8];
    if (route(words[1], path) != 0)
        return;
    snprintf(neighbour, sizeof neighbour, "%s.new", path);
    write_content(neighbour, O_CREAT | O_TRUNC, -1, count, seed);
    valid &= rename(neighbour, path) == 0;
}

static void routed_companion(size_t count, long seed)
{
    char path[NAME_SIZE], neighbour[WORD_SIZE + NAME_SIZE];
    if (route(words[1], path) != 0)
        return;
    snprintf(neighbour, sizeof neighbour, "%s%s", path, words[2]);
    write_content(neighbour, O_CREAT | O_TRUNC, -1, count, seed);
}

static void routed_link(void)
{
    char path[NAME_SIZE];
    if (route(words[1], path) == 0)
        valid &= symlink(words[2], path) == 0;
}

static void routed_unlink(void)
{
    char path[NAME_SIZE];
    if (route(words[1], path) == 0)
        valid &= unlink(path) == 0;
}

static void routed_stat(void)
{
    char path[NAME_SIZE];
    struct stat found;
    if (route(words[1], path) == 0 && stat(path, &found) == 0)
        report("mode\t%o\t%ld", (unsigned)found.st_mode & 07777, (long)found.st_size);
}

static int given_valid(void)
{
    return strcmp(words[1], "auto") == 0 ? valid : (int)number(1);
}

static void start_restart(void)
{
    char name[NAME_SIZE] = "";
    int status = call_start_restart(name);
    valid = 1;
    report("%d\t%s", status, name);
}

static void have_restart(void)
{
    char name[NAME_SIZE] = "";
    int flag = 0, status = call_have_restart(&flag, name);
    report("%d\t%d\t%s", status, flag, flag ? name : "");
}

/* restart FOLDER NAME...: SCR's loop over checkpoints; copies what is read to
 * FOLDER/DATASET.RANK.INDEX */
static int try_restart(const char *dataset)
{
    for (int i = 2; i < word_count; i++) {
        char path[NAME_SIZE], target[2 * WORD_SIZE];
        snprintf(target, sizeof target, "%s/%s.%d.%d", words[1], dataset, rank, i - 2);
        if (route(words[i], path) == 0)
            valid &= copy_file(path, target);
    }
    int status = call_complete_restart(valid);
    report("completed\t%s\t%d\t%d", dataset, valid, status);
    return status;
}

static void restart_loop(void)
{
    char name[NAME_SIZE];
    for (;;) {
        int flag = 0;
        if (call_have_restart(&flag, name) != 0 || !flag)
            break;
        call_start_restart(name);
        valid = 1;
        if (try_restart(name) == 0) {
            report("from\t%s", name);
            return;
        }
    }
    report("none");
}

static void do_start(void)
{
    valid = 1;
    report("%d", call_start_output(strcmp(words[1], "-") == 0 ? NULL : words[1], (int)number(2)));
}

static void do_start_checkpoint(void)
{
    valid = 1;
    report("%d", call_start_checkpoint());
}

static void do_init(void)
{
    report("%d", call_init());
}

static void do_finalize(void)
{
    report("%d", call_finalize());
}

static void do_config(void)
{
    call_config(words[1]);
}

static void do_configf(void)
{
#ifndef FORTRAN_ENTRY
    SCR_Configf("%s=%s", words[1], words[2]);
#endif
}

static void do_query(void)
{
#ifndef FORTRAN_ENTRY
    const char *value = SCR_Config(words[1]);
    report("%s\t%s", words[1], value ? value : "(none)");
#endif
}

static void do_route(void)
{
    char path[NAME_SIZE];
    route(words[1], path);
}

static void do_route_null(void)
{
    char path[NAME_SIZE];
    int no_name = call_route_file(NULL, path);
    int no_buffer = call_route_file(words[1], NULL);
    report("%d\t%d", no_name, no_buffer);
}

static void do_write(void)
{
    routed_write(O_CREAT | O_TRUNC, -1, (size_t)number(2), number(3));
}

static void do_append(void)
{
    routed_write(O_CREAT | O_APPEND, -1, (size_t)number(2), number(3));
}

static void do_modify(void)
{
    routed_write(O_CREAT, number(2), (size_t)number(3), number(4));
}

static void do_write_path(void)
{
    if (!write_content(words[1], O_CREAT | O_TRUNC, -1, (size_t)number(2), number(3)))
        report("failed\t%s\t%s", words[1], strerror(errno));
}

static void do_rename(void)
{
    routed_rename((size_t)number(2), number(3));
}

static void do_companion(void)
{
    routed_companion((size_t)number(3), number(4));
}

static void do_complete(void)
{
    report("%d", call_complete_output(given_valid()));
}

static void do_complete_checkpoint(void)
{
    report("%d", call_complete_checkpoint(given_valid()));
}

static void do_complete_restart(void)
{
    report("%d", call_complete_restart(given_valid()));
}

static void do_chdir(void)
{
    if (chdir(words[1]) != 0)
        report("failed\t%s", strerror(errno));
}

static void do_unlink_path(void)
{
    report("%d", unlink(words[1]));
}

static void do_environment(void)
{
    setenv(words[1], words[2], 1);
}

/* wait_packed FOLDER...: until one of them has a file that begins as packed files do */
static int found_packed;

static int look_for_packed(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    (void)status, (void)place;
    char start[4] = "";
    FILE *file = kind == FTW_F ? fopen(path, "rb") : NULL;
    if (file) {
        found_packed |= fread(start, 1, 4, file) == 4 && memcmp(start, "\211SCR", 4) == 0 &&
                        !strstr(path, ".scr_crit.");
        fclose(file);
    }
    return 0;
}

static void do_wait_packed(void)
{
    for (found_packed = 0; !found_packed; usleep(1000))
        for (int i = 1; i < word_count; i++)
            nftw(words[i], look_for_packed, 16, FTW_PHYS);
}

static void do_barrier(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Keep the file just routed open for writing, as libraries do that were not closed. */
static void do_keep_open(void)
{
    char path[WORD_SIZE];
    if (route(words[1], path) == 0 && open(path, O_WRONLY) < 0)
        report("failed\t%s", strerror(errno));
}

/* Close what others opened below a folder, as daemons close all that they know nothing of, and take
 * the freed numbers for a file of our own. */
static void do_take_descriptors(void)
{
    char link[64], target[WORD_SIZE];
    int taken = 0;
    for (int number = 3; number < 1024; number++) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", number);
        ssize_t length = readlink(link, target, sizeof target - 1);
        target[length > 0 ? length : 0] = '\0';
        if (strncmp(target, words[1], strlen(words[1])) != 0)
            continue;
        close(number);
        int file = open(words[2], O_WRONLY | O_CREAT, 0600);
        taken += file == number && write(file, "precious", 8) == 8;
    }
    report("%d", taken);
}

static void do_limit_size(void)
{
    struct rlimit limit;
    int known = getrlimit(RLIMIT_FSIZE, &limit) == 0;
    limit.rlim_cur = number(1) ? (rlim_t)number(1) : limit.rlim_max;
    if (!known || setrlimit(RLIMIT_FSIZE, &limit) != 0)
        report("failed\t%s", strerror(errno));
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    (void)status, (void)kind, (void)place;
    return remove(path);
}

static void do_remove_tree(void)
{
    nftw(words[1], remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void do_kill(void)
{
    raise(SIGKILL);
}

static void do_exit(void)
{
    exit((int)number(1));
}

static const struct verb {
    const char *name;
    void (*action)(void);
} verbs[] = {
    {"init", do_init},
    {"finalize", do_finalize},
    {"config", do_config},
    {"configf", do_configf},
    {"query", do_query},
    {"start", do_start},
    {"start_checkpoint", do_start_checkpoint},
    {"route", do_route},
    {"route_null", do_route_null},
    {"write", do_write},
    {"append", do_append},
    {"modify", do_modify},
    {"write_path", do_write_path},
    {"rename", do_rename},
    {"companion", do_companion},
    {"link", routed_link},
    {"unlink", routed_unlink},
    {"unlink_path", do_unlink_path},
    {"stat", routed_stat},
    {"read", routed_copy},
    {"complete", do_complete},
    {"complete_checkpoint", do_complete_checkpoint},
    {"have_restart", have_restart},
    {"start_restart", start_restart},
    {"complete_restart", do_complete_restart},
    {"restart", restart_loop},
    {"chdir", do_chdir},
    {"environment", do_environment},
    {"barrier", do_barrier},
    {"wait_packed", do_wait_packed},
    {"keep_open", do_keep_open},
    {"take_descriptors", do_take_descriptors},
    {"limit_size", do_limit_size},
    {"remove_tree", do_remove_tree},
    {"kill", do_kill},
    {"exit", do_exit},
};

/* ---- The script ----------------------------------------------------------------------------- */

static void substitute(char *target, const char *text)
{
    size_t used = 0;
    while (*text && used + 16 < WORD_SIZE) {
        int length = 0;
        if (strncmp(text, "{rank}", 6) == 0)
            length = sprintf(target + used, "%d", rank);
        else if (strncmp(text, "{size}", 6) == 0)
            length = sprintf(target + used, "%d", size);
        text += length ? 6 : 1;
        if (!length)
            target[used++] = text[-1];
        used += (size_t)length;
    }
    target[used] = '\0';
}

static int is_for_me(const char *ranks)
{
    for (const char *at = ranks; *at; at += strcspn(at, ","), at += *at == ',')
        if (atoi(at) == rank)
            return 1;
    return 0;
}

static void split(char *line)
{
    word_count = 0;
    for (char *word; (word = strsep(&line, "\t")) && word_count < MAX_WORDS;)
        substitute(words[word_count++], word);
    for (int i = word_count; i < MAX_WORDS; i++)
        words[i][0] = '\0';
}

static void execute(void)
{
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        if (strcmp(verbs[i].name, words[0]) == 0) {
            verbs[i].action();
            return;
        }
    }
    fprintf(stderr, "driver: no verb %s\n", words[0]);
    MPI_Abort(MPI_COMM_WORLD, 3);
}

static void run_line(char *line)
{
    line[strcspn(line, "\n")] = '\0';
    if (*line == '@') {
        char *rest = strchr(line, '\t');
        *rest = '\0';
        if (!is_for_me(line + 1))
            return;
        line = rest + 1;
    }
    split(line);
    execute();
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    FILE *script = argc == 2 ? fopen(argv[1], "re") : NULL;
    if (!script)
        MPI_Abort(MPI_COMM_WORLD, 2);
    char *line = NULL;
    size_t room = 0;
    while (getline(&line, &room, script) >= 0)
        run_line(line);
    free(line);
    fclose(script);
    MPI_Finalize();
    return 0;
}
