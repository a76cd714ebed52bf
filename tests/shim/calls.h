/* calls.h - SCR's calls as the test driver makes them: in C, or through the Fortran entry points.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * With -DFORTRAN_ENTRY the functions that libscrf offers to Fortran programs are called as gfortran
 * would: strings without a terminating 0, their lengths behind all other arguments.
 */
#ifndef CALLS_H
#define CALLS_H

#include <string.h>

enum { NAME_SIZE = 1024 };

#ifdef FORTRAN_ENTRY

void scr_init_(int *);
void scr_finalize_(int *);
void scr_config_(char *, char *, int *, size_t, size_t);
void scr_have_restart_(int *, char *, int *, size_t);
void scr_start_restart_(char *, int *, size_t);
void scr_complete_restart_(int *, int *);
void scr_start_checkpoint_(int *);
void scr_complete_checkpoint_(int *, int *);
void scr_start_output_(char *, int *, int *, size_t);
void scr_complete_output_(int *, int *);
void scr_route_file_(char *, char *, int *, size_t, size_t);

/* A Fortran variable of NAME_SIZE characters, and back. */
static void to_fortran(char *fortran, const char *text)
{
    memset(fortran, ' ', NAME_SIZE);
    memcpy(fortran, text, strlen(text));
}

static void from_fortran(char *text, const char *fortran)
{
    int length = NAME_SIZE - 1;
    while (length > 0 && fortran[length - 1] == ' ')
        length--;
    memcpy(text, fortran, (size_t)length);
    text[length] = '\0';
}

static int call_init(void)
{
    int status;
    scr_init_(&status);
    return status;
}

static int call_finalize(void)
{
    int status;
    scr_finalize_(&status);
    return status;
}

static void call_config(const char *setting)
{
    int status;
    char text[NAME_SIZE], value[NAME_SIZE];
    to_fortran(text, setting);
    scr_config_(text, value, &status, NAME_SIZE, NAME_SIZE);
}

static int call_have_restart(int *flag, char *name)
{
    int status;
    char text[NAME_SIZE];
    to_fortran(text, "");
    scr_have_restart_(flag, text, &status, NAME_SIZE);
    from_fortran(name, text);
    return status;
}

static int call_start_restart(char *name)
{
    int status;
    char text[NAME_SIZE];
    scr_start_restart_(text, &status, NAME_SIZE);
    from_fortran(name, text);
    return status;
}

static int call_complete_restart(int valid)
{
    int status;
    scr_complete_restart_(&valid, &status);
    return status;
}

static int call_start_checkpoint(void)
{
    int status;
    scr_start_checkpoint_(&status);
    return status;
}

static int call_complete_checkpoint(int valid)
{
    int status;
    scr_complete_checkpoint_(&valid, &status);
    return status;
}

static int call_start_output(const char *name, int flags)
{
    int status;
    char text[NAME_SIZE];
    to_fortran(text, name ? name : "");
    scr_start_output_(text, &flags, &status, NAME_SIZE);
    return status;
}

static int call_complete_output(int valid)
{
    int status;
    scr_complete_output_(&valid, &status);
    return status;
}

static int call_route_file(const char *name, char *path)
{
    int status;
    char text[NAME_SIZE], routed[NAME_SIZE];
    to_fortran(text, name);
    scr_route_file_(text, routed, &status, NAME_SIZE, NAME_SIZE);
    from_fortran(path, routed);
    return status;
}

#else

#include <scr.h>

#define call_init SCR_Init
#define call_finalize SCR_Finalize
#define call_config (void)SCR_Config
#define call_have_restart SCR_Have_restart
#define call_start_restart SCR_Start_restart
#define call_complete_restart SCR_Complete_restart
#define call_start_checkpoint SCR_Start_checkpoint
#define call_complete_checkpoint SCR_Complete_checkpoint
#define call_start_output SCR_Start_output
#define call_complete_output SCR_Complete_output
#define call_route_file SCR_Route_file

#endif
#endif
