/* checkpoint.c - see checkpoint.h. */
#define _POSIX_C_SOURCE 200809L

#include "checkpoint.h"

#include <errno.h>
#include <math.h>
#include <mpi.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scr.h"

static struct {
    const Kernel *kernel;
    int rank;
    int resumed_at; /* iteration of the checkpoint that was read; 0 for none */
    int checkpoint_at;
    int die_at; /* 0: never */
    bool ask;   /* SCR decides when a checkpoint is due */
} run;

__attribute__((format(printf, 1, 2), noreturn)) static void fail(const char *format, ...)
{
    char text[2 * SCR_MAX_FILENAME];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    fprintf(stderr, "%s: rank %d: %s\n", run.kernel->name, run.rank, text);
    MPI_Abort(MPI_COMM_WORLD, 1);
    abort();
}

/* ------------------------------------------------------------ command line */

__attribute__((noreturn)) static void show_usage(FILE *stream, int status)
{
    if (run.rank == 0) {
        fprintf(stream,
                "usage: %s [options]   (under mpiexec; every rank computes the same)\n"
                "  --checkpoint-at I   write the checkpoint at the top of iteration I\n"
                "                      (default %d, half of all; 0 = never)\n"
                "  --ask               write one whenever SCR_Need_checkpoint says so, too\n"
                "  --die-at I          raise SIGKILL at the top of iteration I, after its "
                "checkpoint\n",
                run.kernel->name, run.kernel->iterations / 2);
    }
    MPI_Finalize();
    exit(status);
}

static int number_or_usage(const char *name, const char *text)
{
    char *end = NULL;
    errno = 0;
    long number = text != NULL ? strtol(text, &end, 10) : 0;
    if (text == NULL || end == text || *end != '\0' || errno != 0 || number < 0 ||
        number > run.kernel->iterations) {
        if (run.rank == 0) {
            fprintf(stderr, "%s: %s: expected an iteration from 0 to %d, found '%s'\n",
                    run.kernel->name, name, run.kernel->iterations,
                    text != NULL ? text : "nothing");
        }
        show_usage(stderr, 2);
    }
    return (int)number;
}

static void parse_options(char **argv)
{
    run.checkpoint_at = run.kernel->iterations / 2;
    for (char **next = argv + 1; *next != NULL; next++) {
        const char *name = *next;
        if (strcmp(name, "--ask") == 0) {
            run.ask = true;
        } else if (strcmp(name, "--checkpoint-at") == 0) {
            run.checkpoint_at = number_or_usage(name, next[1]);
            next++;
        } else if (strcmp(name, "--die-at") == 0) {
            run.die_at = number_or_usage(name, next[1]);
            next++;
        } else if (strcmp(name, "--help") == 0) {
            show_usage(stdout, 0);
        } else {
            if (run.rank == 0) {
                fprintf(stderr, "%s: unknown option '%s'\n", run.kernel->name, name);
            }
            show_usage(stderr, 2);
        }
    }
}

void kernel_begin(const Kernel *kernel, int argc, char **argv)
{
    run.kernel = kernel;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &run.rank);
    parse_options(argv);
    if (SCR_Init() != SCR_SUCCESS) {
        fail(
            "SCR_Init failed; are SCR_PREFIX and its cache directory there, and SCR_ENABLE not 0?");
    }
}

/* -------------------------------------------------------------------- files */

static int next_iteration(void)
{
    int number;
    memcpy(&number, run.kernel->variable[0].address, sizeof(number));
    return number;
}

/* Asks SCR where this rank's file of a dataset is. */
static bool route(const char *dataset, char path[SCR_MAX_FILENAME])
{
    char name[SCR_MAX_FILENAME];
    int length = snprintf(name, sizeof(name), "%s/rank_%d", dataset, run.rank);
    return length > 0 && (size_t)length < sizeof(name) && SCR_Route_file(name, path) == SCR_SUCCESS;
}

static bool write_variables(FILE *file)
{
    for (int v = 0; v < run.kernel->variables; v++) {
        const Variable *variable = &run.kernel->variable[v];
        if (fwrite(variable->address, 1, variable->bytes, file) != variable->bytes) {
            return false;
        }
    }
    return true;
}

static bool write_file(const char *path)
{
    FILE *file = fopen(path, "wb");
    bool good = file != NULL && write_variables(file);
    if (file != NULL && fclose(file) != 0) {
        good = false;
    }
    if (!good) {
        fprintf(stderr, "%s: rank %d: %s: cannot write: %s\n", run.kernel->name, run.rank, path,
                strerror(errno));
    }
    return good;
}

static void read_variables(const char *path, FILE *file)
{
    for (int v = 0; v < run.kernel->variables; v++) {
        const Variable *variable = &run.kernel->variable[v];
        size_t found = fread(variable->address, 1, variable->bytes, file);
        if (found != variable->bytes) {
            fail("%s: variable %d has %zu bytes, expected %zu; another class's checkpoint?", path,
                 v, found, variable->bytes);
        }
    }
    if (fgetc(file) != EOF) {
        fail("%s: goes on behind the last variable; another class's checkpoint?", path);
    }
}

static void read_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        fail("%s: cannot read: %s", path, strerror(errno));
    }
    read_variables(path, file);
    fclose(file);
}

/* ---------------------------------------------------------------------- SCR */

static void save(void)
{
    char dataset[64], path[SCR_MAX_FILENAME];
    snprintf(dataset, sizeof(dataset), "%s.%d", run.kernel->name, next_iteration());
    if (SCR_Start_output(dataset, SCR_FLAG_CHECKPOINT) != SCR_SUCCESS) {
        fail("SCR would not start checkpoint %s", dataset);
    }
    int valid = route(dataset, path) && write_file(path);
    if (SCR_Complete_output(valid) != SCR_SUCCESS) {
        fail("checkpoint %s is not complete", dataset);
    }
}

bool kernel_resume(void)
{
    int have = 0;
    char dataset[SCR_MAX_FILENAME], path[SCR_MAX_FILENAME];
    if (SCR_Have_restart(&have, dataset) != SCR_SUCCESS) {
        fail("SCR_Have_restart failed");
    }
    if (!have) {
        return false;
    }
    if (SCR_Start_restart(dataset) != SCR_SUCCESS) {
        fail("SCR announced a restart and would not start it");
    }
    if (!route(dataset, path)) {
        fail("SCR has no file of this rank in %s", dataset);
    }
    read_file(path);
    if (SCR_Complete_restart(1) != SCR_SUCCESS) {
        fail("SCR could not complete the restart from %s", dataset);
    }
    run.resumed_at = next_iteration();
    if (run.resumed_at < 1 || run.resumed_at > run.kernel->iterations) {
        fail("%s: iteration %d, expected one from 1 to %d", path, run.resumed_at,
             run.kernel->iterations);
    }
    if (run.rank == 0) {
        printf("restarted from %s\n", dataset);
    }
    return true;
}

void kernel_checkpoint(void)
{
    int iteration = next_iteration(), asked_for = 0;
    if (run.ask && SCR_Need_checkpoint(&asked_for) != SCR_SUCCESS) {
        fail("SCR_Need_checkpoint failed");
    }
    /* What was just read need not be written again, and SCR has its name already. */
    if ((asked_for || iteration == run.checkpoint_at) && iteration != run.resumed_at) {
        save();
    }
    if (iteration == run.die_at) {
        raise(SIGKILL);
    }
}

/* ------------------------------------------------------------------ outcome */

bool kernel_check(const char *what, double found, double reference, double epsilon)
{
    double deviation = fabs((found - reference) / reference);
    if (run.rank == 0) {
        /* 17 digits: equal text means equal bits. */
        printf("%-14s %.16e  reference %.16e  deviation %.1e\n", what, found, reference, deviation);
    }
    /* Not the other way round: NaN is larger than nothing. */
    return deviation <= epsilon;
}

int kernel_end(bool verified)
{
    if (run.rank == 0) {
        printf("Verification %s\n", verified ? "successful" : "failed");
    }
    SCR_Finalize();
    MPI_Finalize();
    return verified ? 0 : 1;
}
