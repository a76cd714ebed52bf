/*
 * driver.c - an MPI program that makes the SCR calls given as arguments, one after the other, for
 * test_scr_local.py. It uses the public interface only, so that it runs with any SCR v3.
 *
 *     driver LOG CALL...
 *
 * Compiled with -DFORTRAN it makes them through the Fortran entry points, as a Fortran program
 * would.
 *
 * Every rank writes one line a call to LOG.RANK: the call's name, what it returned, what it gave.
 * What the library prints goes to LOG.RANK.said: a launcher may lose what a job says as it ends.
 * In names %r is the rank. A call written as @N:CALL is made by rank N only.
 *
 *     init finalize version need exit have start_restart start_checkpoint
 *     config=TEXT current=NAME drop=NAME delete=NAME route=NAME chdir=DIRECTORY
 *     start_output=FLAGS,NAME
 *     complete_output=V complete_checkpoint=V complete_restart=V    V: 1, 0, or rN (0 on rank N)
 *     write=SIZE,NAME      routes, and writes SIZE bytes that depend on rank, size and name
 *     write_as=TEXT,SIZE,NAME    the same with bytes that depend on TEXT, size and name
 *     share=SIZE,NAME      routes, and every rank writes its part of one file
 *     read=SIZE,NAME       routes, reads and compares with what `write` wrote;
 *     read_as=TEXT,SIZE,NAME, read_share=SIZE,NAME    likewise
 *     die                  SIGKILL to itself
 *     barrier
 */
#define _POSIX_C_SOURCE 200809L

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <mpi.h>
#include <scr.h>

static int rank;
static FILE *log_file;

#define NAME_ROOM 2048

/* ------------------------------------------------------------------ the calls, C or Fortran */

#ifdef FORTRAN
/* As a Fortran compiler sees them: everything by address, lengths behind. */
void scr_init_(int *);
void scr_finalize_(int *);
void scr_config_(const char *, char *, int *, size_t, size_t);
void scr_need_checkpoint_(int *, int *);
void scr_should_exit_(int *, int *);
void scr_have_restart_(int *, char *, int *, size_t);
void scr_start_restart_(char *, int *, size_t);
void scr_complete_restart_(const int *, int *);
void scr_start_checkpoint_(int *);
void scr_complete_checkpoint_(const int *, int *);
void scr_start_output_(const char *, const int *, int *, size_t);
void scr_complete_output_(const int *, int *);
void scr_route_file_(const char *, char *, int *, size_t, size_t);
void scr_current_(const char *, int *, size_t);
void scr_drop_(const char *, int *, size_t);
void scr_delete_(const char *, int *, size_t);

/* A character(len=SCR_MAX_FILENAME) variable: blank-padded, no NUL. */
static char padded[SCR_MAX_FILENAME];

static char *pad(const char *text)
{
    size_t length = strlen(text);
    memset(padded, ' ', sizeof(padded));
    memcpy(padded, text, length);
    return padded;
}

static void unpad(const char *text, char *out)
{
    size_t length = SCR_MAX_FILENAME;
    while (length > 0 && text[length - 1] == ' ') {
        length--;
    }
    memcpy(out, text, length);
    out[length] = '\0';
}

static int call_have(int *flag, char *name)
{
    int error;
    scr_have_restart_(flag, pad(""), &error, SCR_MAX_FILENAME);
    unpad(padded, name);
    return error;
}

static int call_start_restart(char *name)
{
    int error;
    scr_start_restart_(pad(""), &error, SCR_MAX_FILENAME);
    unpad(padded, name);
    return error;
}

static int call_route(const char *name, char *file)
{
    int error;
    char path[SCR_MAX_FILENAME];
    scr_route_file_(pad(name), path, &error, SCR_MAX_FILENAME, sizeof(path));
    unpad(path, file);
    return error;
}

#define SIMPLE(name, entry)                                                                        \
    static int name(void)                                                                          \
    {                                                                                              \
        int error;                                                                                 \
        entry(&error);                                                                             \
        return error;                                                                              \
    }
#define WITH_INT(name, entry, type)                                                                \
    static int name(type value)                                                                    \
    {                                                                                              \
        int error;                                                                                 \
        entry(value, &error);                                                                      \
        return error;                                                                              \
    }
#define WITH_NAME(name, entry)                                                                     \
    static int name(const char *text)                                                              \
    {                                                                                              \
        int error;                                                                                 \
        entry(pad(text), &error, SCR_MAX_FILENAME);                                                \
        return error;                                                                              \
    }
SIMPLE(call_init, scr_init_)
SIMPLE(call_finalize, scr_finalize_)
SIMPLE(call_start_checkpoint, scr_start_checkpoint_)
WITH_INT(call_need, scr_need_checkpoint_, int *)
WITH_INT(call_exit, scr_should_exit_, int *)
WITH_INT(complete_restart_at, scr_complete_restart_, const int *)
WITH_INT(complete_checkpoint_at, scr_complete_checkpoint_, const int *)
WITH_INT(complete_output_at, scr_complete_output_, const int *)
WITH_NAME(call_current, scr_current_)
WITH_NAME(call_drop, scr_drop_)
WITH_NAME(call_delete, scr_delete_)

static int call_complete_restart(int valid)
{
    return complete_restart_at(&valid);
}

static int call_complete_checkpoint(int valid)
{
    return complete_checkpoint_at(&valid);
}

static int call_complete_output(int valid)
{
    return complete_output_at(&valid);
}

static int call_start_output(const char *name, int flags)
{
    int error;
    scr_start_output_(pad(name), &flags, &error, SCR_MAX_FILENAME);
    return error;
}

static const char *call_config(const char *text)
{
    static char value[SCR_MAX_FILENAME];
    int error;
    scr_config_(pad(text), value, &error, SCR_MAX_FILENAME, sizeof(value));
    if (error != SCR_SUCCESS) {
        return NULL;
    }
    char *copy = malloc(sizeof(value) + 1);
    unpad(value, copy);
    return copy;
}
#else
#define call_init SCR_Init
#define call_finalize SCR_Finalize
#define call_config SCR_Config
#define call_need SCR_Need_checkpoint
#define call_exit SCR_Should_exit
#define call_have SCR_Have_restart
#define call_start_restart SCR_Start_restart
#define call_complete_restart SCR_Complete_restart
#define call_start_checkpoint SCR_Start_checkpoint
#define call_complete_checkpoint SCR_Complete_checkpoint
#define call_start_output SCR_Start_output
#define call_complete_output SCR_Complete_output
#define call_route SCR_Route_file
#define call_current SCR_Current
#define call_drop SCR_Drop
#define call_delete SCR_Delete
#endif

/* ------------------------------------------------------------------ files */

/* Byte `i` of the content that belongs to `seed`. */
static unsigned char content(unsigned seed, size_t i)
{
    unsigned x = seed + (unsigned)i * 2654435761u;
    x ^= x >> 15;
    x *= 2246822519u;
    return (unsigned char)(x >> 13);
}

static unsigned seed_of(const char *text, size_t size)
{
    unsigned seed = (unsigned)size;
    for (; *text; text++) {
        seed = seed * 31 + (unsigned char)*text;
    }
    return seed;
}

static const char *write_at(const char *path, off_t offset, unsigned seed, size_t size, int flags)
{
    int file = open(path, O_WRONLY | O_CREAT | flags, 0666);
    if (file < 0) {
        return strerror(errno);
    }
    for (size_t i = 0; i < size; i++) {
        unsigned char byte = content(seed, i);
        if (pwrite(file, &byte, 1, offset + (off_t)i) != 1) {
            close(file);
            return strerror(errno);
        }
    }
    return close(file) == 0 ? "written" : strerror(errno);
}

/* Compares `size` bytes; `whole` asks that the file ends there. */
static const char *compare_at(const char *path, off_t offset, unsigned seed, size_t size, int whole)
{
    int file = open(path, O_RDONLY);
    if (file < 0) {
        return strerror(errno);
    }
    const char *verdict = "same";
    for (size_t i = 0; i < size; i++) {
        unsigned char byte = 0;
        if (pread(file, &byte, 1, offset + (off_t)i) != 1) {
            verdict = "short";
            break;
        }
        if (byte != content(seed, i)) {
            verdict = "different";
            break;
        }
    }
    struct stat status;
    if (whole && fstat(file, &status) == 0 && status.st_size > (off_t)size) {
        verdict = "long";
    }
    close(file);
    return verdict;
}

typedef struct {
    char seed_text[NAME_ROOM + 16];
    size_t size;
    char name[NAME_ROOM];
} file_request;

/* "SIZE,NAME" or, with a text, "TEXT,SIZE,NAME". */
static file_request parse_file(const char *argument, int with_text)
{
    file_request request;
    memset(&request, 0, sizeof(request));
    if (with_text) {
        size_t length = strcspn(argument, ",");
        memcpy(request.seed_text, argument, length);
        argument += length + 1;
    }
    request.size = strtoul(argument, NULL, 10);
    strcpy(request.name, strchr(argument, ',') + 1);
    if (!with_text) {
        snprintf(request.seed_text, sizeof(request.seed_text), "%d %s", rank, request.name);
    }
    return request;
}

static void do_file(const char *verb, const char *argument)
{
    int reading = strncmp(verb, "read", 4) == 0;
    int shared = strstr(verb, "share") != NULL;
    file_request request = parse_file(argument, strstr(verb, "_as") != NULL);
    unsigned seed = seed_of(request.seed_text, request.size);
    off_t offset = shared ? (off_t)request.size * rank : 0;
    char path[SCR_MAX_FILENAME] = "";
    int result = call_route(request.name, path);
    const char *outcome = "not routed";
    if (result == SCR_SUCCESS && reading) {
        outcome = compare_at(path, offset, seed, request.size, !shared);
    } else if (result == SCR_SUCCESS) {
        outcome = write_at(path, offset, seed, request.size, shared ? 0 : O_TRUNC);
    }
    fprintf(log_file, "%s\t%d\t%s\t%s\n", verb, result, outcome, path);
}

/* ------------------------------------------------------------------ one call */

static void substitute_rank(const char *text, char *out)
{
    while (*text) {
        if (text[0] == '%' && text[1] == 'r') {
            out += sprintf(out, "%d", rank);
            text += 2;
        } else {
            *out++ = *text++;
        }
    }
    *out = '\0';
}

static int is(const char *verb, const char *name)
{
    return strcmp(verb, name) == 0;
}

static int valid_on_this_rank(const char *argument)
{
    return argument[0] == 'r' ? atoi(argument + 1) != rank : atoi(argument);
}

static void note(const char *verb, int result)
{
    fprintf(log_file, "%s\t%d\n", verb, result);
}

static int do_question(const char *verb)
{
    int flag = -1;
    int result;
    if (is(verb, "need")) {
        result = call_need(&flag);
    } else if (is(verb, "exit")) {
        result = call_exit(&flag);
    } else {
        return 0;
    }
    fprintf(log_file, "%s\t%d\t%d\n", verb, result, flag);
    return 1;
}

static int do_restart(const char *verb, const char *argument)
{
    char name[SCR_MAX_FILENAME] = "";
    int flag = -1;
    if (is(verb, "have")) {
        int result = call_have(&flag, name);
        fprintf(log_file, "have\t%d\t%d\t%s\n", result, flag, name);
    } else if (is(verb, "start_restart")) {
        int result = call_start_restart(name);
        fprintf(log_file, "start_restart\t%d\t%s\n", result, name);
    } else if (is(verb, "complete_restart")) {
        note(verb, call_complete_restart(valid_on_this_rank(argument)));
    } else {
        return 0;
    }
    return 1;
}

static int do_output(const char *verb, const char *argument)
{
    if (is(verb, "start_output")) {
        const char *name = strchr(argument, ',') + 1;
        note(verb, call_start_output(name, atoi(argument)));
    } else if (is(verb, "complete_output")) {
        note(verb, call_complete_output(valid_on_this_rank(argument)));
    } else if (is(verb, "start_checkpoint")) {
        note(verb, call_start_checkpoint());
    } else if (is(verb, "complete_checkpoint")) {
        note(verb, call_complete_checkpoint(valid_on_this_rank(argument)));
    } else {
        return 0;
    }
    return 1;
}

static int do_session(const char *verb, const char *argument)
{
    if (is(verb, "init")) {
        note(verb, call_init());
    } else if (is(verb, "finalize")) {
        note(verb, call_finalize());
    } else if (is(verb, "version")) {
        fprintf(log_file, "version\t0\t%s\n", SCR_Get_version());
    } else if (is(verb, "config")) {
        const char *value = call_config(argument);
        fprintf(log_file, "config\t0\t%s\n", value ? value : "(null)");
    } else if (is(verb, "current")) {
        note(verb, call_current(argument));
    } else if (is(verb, "drop")) {
        note(verb, call_drop(argument));
    } else if (is(verb, "delete")) {
        note(verb, call_delete(argument));
    } else {
        return 0;
    }
    return 1;
}

static int do_other(const char *verb, const char *argument)
{
    if (is(verb, "route")) {
        char path[SCR_MAX_FILENAME] = "";
        int result = call_route(argument, path);
        fprintf(log_file, "route\t%d\t%s\n", result, path);
    } else if (is(verb, "chdir")) {
        note(verb, chdir(argument));
    } else if (is(verb, "barrier")) {
        note(verb, MPI_Barrier(MPI_COMM_WORLD));
    } else if (is(verb, "die")) {
        kill(getpid(), SIGKILL);
    } else if (strncmp(verb, "write", 5) == 0 || strncmp(verb, "read", 4) == 0 ||
               is(verb, "share")) {
        do_file(verb, argument);
    } else {
        return 0;
    }
    return 1;
}

static void do_call(const char *call)
{
    if (call[0] == '@') {
        if (atoi(call + 1) != rank) {
            return;
        }
        call = strchr(call, ':') + 1;
    }
    char text[NAME_ROOM];
    substitute_rank(call, text);
    char *argument = strchr(text, '=');
    if (argument) {
        *argument++ = '\0';
    } else {
        argument = text + strlen(text);
    }
    if (!do_session(text, argument) && !do_restart(text, argument) && !do_output(text, argument) &&
        !do_question(text) && !do_other(text, argument)) {
        fprintf(stderr, "driver: unknown call `%s'\n", call);
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
    fflush(log_file);
}

static FILE *open_log(const char *stem, const char *suffix)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s.%d%s", stem, rank, suffix);
    FILE *file = fopen(path, "w");
    if (!file) {
        perror(path);
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
    return file;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    log_file = open_log(argv[1], "");
    dup2(fileno(open_log(argv[1], ".said")), STDOUT_FILENO);
    dup2(STDOUT_FILENO, STDERR_FILENO);
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int i = 2; i < argc; i++) {
        do_call(argv[i]);
    }
    fclose(log_file);
    MPI_Finalize();
    return 0;
}
