/* phases.c - does to SCR, and to an array of 256 bytes, what its arguments say, one after the
 * other.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 *     need                    SCR_Need_checkpoint
 *     start NAME FLAGS        SCR_Start_output          complete VALID     SCR_Complete_output
 *     checkpoint              SCR_Start_checkpoint      completed VALID    SCR_Complete_checkpoint
 *     restart                 SCR_Have_restart, SCR_Start_restart
 *     restarted VALID         SCR_Complete_restart
 *     create FILE             SCR_Route_file, open for writing         open FILE      for reading
 *     plain FILE              open for writing, not routed             close
 *     write OFFSET LENGTH     from the array to the open file
 *     read OFFSET LENGTH      from the open file to the array
 *     load OFFSET LENGTH      and use                   store OFFSET LENGTH
 *     pack OFFSET LENGTH      copy to the staging buffer, at the same offset
 *     packed OFFSET LENGTH    write from the staging buffer
 *     fork                    a child that stores to the whole array and calls exit
 *     fault                   SIGSEGV, which the program handles
 *     kill SIGNAL             itself
 *     finalize                SCR_Finalize, MPI_Finalize               exit STATUS
 *
 * With -DLOADED, SCR is loaded at run time from the library that PHASES_SCR names.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <mpi.h>
#include <scr.h>

static unsigned char array[256];
static unsigned char staging[256];
static volatile long sink;
static int file = -1;
static sigjmp_buf behind_fault;

#ifdef LOADED
static void *libscr;

static void *scr_function(const char *name)
{
    if (!libscr)
        libscr = dlopen(getenv("PHASES_SCR"), RTLD_NOW | RTLD_LOCAL);
    void *found = libscr ? dlsym(libscr, name) : NULL;
    if (!found) {
        fprintf(stderr, "%s\n", dlerror());
        exit(2);
    }
    return found;
}
#define SCR(name) ((__typeof__(&name))scr_function(#name))
#else
#define SCR(name) name
#endif

static void check(int good, const char *what)
{
    if (!good) {
        perror(what);
        exit(2);
    }
}

static void open_file(const char *name, int routed, int flags)
{
    char path[SCR_MAX_FILENAME];
    snprintf(path, sizeof path, "%s", name);
    if (routed)
        check(SCR(SCR_Route_file)(name, path) == SCR_SUCCESS, "SCR_Route_file");
    file = open(path, flags, 0600);
    check(file >= 0, path);
}

static void start_restart(void)
{
    int have = 0;
    char dataset[SCR_MAX_FILENAME];
    SCR(SCR_Have_restart)(&have, dataset);
    check(have, "SCR_Have_restart");
    check(SCR(SCR_Start_restart)(dataset) == SCR_SUCCESS, "SCR_Start_restart");
}

static void load(long offset, long length)
{
    for (long i = 0; i < length; i++)
        sink += *(volatile unsigned char *)(array + offset + i);
}

static void store(long offset, long length)
{
    for (long i = 0; i < length; i++)
        *(volatile unsigned char *)(array + offset + i) = (unsigned char)i;
}

static void fork_child(void)
{
    fflush(stdout);
    pid_t child = fork();
    check(child >= 0, "fork");
    if (child == 0) {
        store(0, sizeof array);
        _exit(0);
    }
    waitpid(child, NULL, 0);
}

static void handle_fault(int number)
{
    (void)number;
    siglongjmp(behind_fault, 1);
}

static void fault(void)
{
    signal(SIGSEGV, handle_fault);
    if (sigsetjmp(behind_fault, 1) == 0)
        sink += *(volatile int *)(sink & 1); /* nothing is mapped there */
}

static void finalize(void)
{
    SCR(SCR_Finalize)();
    MPI_Finalize();
}

static int is(const char *word, const char *command)
{
    return strcmp(word, command) == 0;
}

/* Commands without numbers; 0: it is none. */
static int without_numbers(const char *word)
{
    int flag = 0;
    if (is(word, "need"))
        SCR(SCR_Need_checkpoint)(&flag);
    else if (is(word, "checkpoint"))
        check(SCR(SCR_Start_checkpoint)() == SCR_SUCCESS, word);
    else if (is(word, "restart"))
        start_restart();
    else if (is(word, "close"))
        close(file);
    else if (is(word, "fork"))
        fork_child();
    else if (is(word, "fault"))
        fault();
    else if (is(word, "finalize"))
        finalize();
    else
        return 0;
    return 1;
}

/* Commands with one argument; 0: it is none. */
static int with_one(const char *word, const char *argument)
{
    const int number = atoi(argument);
    if (is(word, "complete"))
        SCR(SCR_Complete_output)(number);
    else if (is(word, "completed"))
        SCR(SCR_Complete_checkpoint)(number);
    else if (is(word, "restarted"))
        SCR(SCR_Complete_restart)(number);
    else if (is(word, "create"))
        open_file(argument, 1, O_CREAT | O_TRUNC | O_WRONLY);
    else if (is(word, "plain"))
        open_file(argument, 0, O_CREAT | O_TRUNC | O_WRONLY);
    else if (is(word, "open"))
        open_file(argument, 1, O_RDONLY);
    else if (is(word, "kill"))
        raise(number);
    else if (is(word, "exit"))
        exit(number);
    else
        return 0;
    return 1;
}

static void with_two(const char *word, const char *first, const char *second)
{
    const long offset = atol(first), length = atol(second);
    if (is(word, "start"))
        check(SCR(SCR_Start_output)(first, (int)length) == SCR_SUCCESS, word);
    else if (is(word, "write"))
        check(write(file, array + offset, (size_t)length) == length, word);
    else if (is(word, "packed"))
        check(write(file, staging + offset, (size_t)length) == length, word);
    else if (is(word, "read"))
        check(read(file, array + offset, (size_t)length) == length, word);
    else if (is(word, "load"))
        load(offset, length);
    else if (is(word, "store"))
        store(offset, length);
    else if (is(word, "pack"))
        memcpy(staging + offset, array + offset, (size_t)length);
    else
        check(0, word);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    SCR(SCR_Init)();
    memset(array, 1, sizeof array);
    for (int i = 1; i < argc;) {
        if (without_numbers(argv[i])) {
            i++;
        } else if (i + 1 < argc && with_one(argv[i], argv[i + 1])) {
            i += 2;
        } else {
            check(i + 2 < argc, argv[i]);
            with_two(argv[i], argv[i + 1], argv[i + 2]);
            i += 3;
        }
    }
    return 0;
}
