/*
 * message.c - see message.h. Needs the job for rank and host name. Tests: test_scr_local.py (the
 * wrong-order and outside-prefix tests read these lines).
 */
#include "message.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "job.h"

#define SECONDS_FOR_THE_LAUNCHER 10

/* The library is built from anywhere: only the file's own name belongs in a message. */
static const char *file_name_only(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void print_head(FILE *stream, const char *kind)
{
    fprintf(stream, "SCR %s%s%s: rank %d on %s: ", SCR_VERSION, kind[0] ? " " : "", kind, scrl.rank,
            scrl.host);
}

void scrl_dbg(int level, const char *format, ...)
{
    if (scrl.settings.debug < level) {
        return;
    }
    va_list arguments;
    print_head(stdout, "");
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    putchar('\n');
}

void scrl_report(const char *kind, const char *file, int line, const char *format, ...)
{
    va_list arguments;
    print_head(stdout, kind);
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    printf(" @ %s:%d\n", file_name_only(file), line);
}

_Noreturn void scrl_abort_at(const char *file, int line, const char *format, ...)
{
    va_list arguments;
    print_head(stderr, "ABORT");
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fprintf(stderr, " @ %s:%d\n", file_name_only(file), line);
    fflush(NULL);

    int initialized = 0;
    MPI_Initialized(&initialized);
    if (initialized) {
        MPI_Abort(MPI_COMM_WORLD, -1);
        /* Some MPIs come back from MPI_Abort and kill a moment later. To exit meanwhile would make
         * their launcher lose what was just said. */
        sleep(SECONDS_FOR_THE_LAUNCHER);
    }
    _exit(EXIT_FAILURE);
}
