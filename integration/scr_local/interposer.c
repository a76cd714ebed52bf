/*
 * interposer.c - counts calls of SCR_Route_file on their way to the library, for
 * test_scr_local.py. Built as a shared library it is put in front by LD_PRELOAD; built with
 * -DWRAP it is linked with -Wl,--wrap=SCR_Route_file. The count goes to INTERPOSED.PID.
 */
#define _GNU_SOURCE

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int calls;

static void report(void)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s.%ld", getenv("INTERPOSED"), (long)getpid());
    FILE *file = fopen(path, "w");
    if (file) {
        fprintf(file, "%d\n", calls);
        fclose(file);
    }
}

static void count(void)
{
    if (calls++ == 0) {
        atexit(report);
    }
}

#ifdef WRAP
int __real_SCR_Route_file(const char *name, char *file);
int __wrap_SCR_Route_file(const char *name, char *file);

int __wrap_SCR_Route_file(const char *name, char *file)
{
    count();
    return __real_SCR_Route_file(name, file);
}
#else
int SCR_Route_file(const char *name, char *file);

int SCR_Route_file(const char *name, char *file)
{
    int (*next)(const char *, char *);
    *(void **)&next = dlsym(RTLD_NEXT, "SCR_Route_file");
    count();
    return next(name, file);
}
#endif
