/*
 * fortran.c - SCR's Fortran interface, in libscrf: scr_init(ierror), scr_route_file(name, file,
 * ierror) and so on. Lower case with one underscore, the lengths of the character arguments last,
 * as gfortran and most other compilers have it; no Fortran compiler is needed to build this.
 *
 * Each routine calls the public C function by name, so that one put in front of it (a preloaded
 * library, or the linker's --wrap) serves Fortran programs too: nothing here may call the inside of
 * the library.
 */
#include <stdlib.h>
#include <string.h>

#pragma GCC visibility push(default)
#include "scr.h"

/*
 * Compilers differ in the type of a hidden length: int or size_t. Reading an int is right for both
 * where arguments are passed in registers or in little-endian slots.
 */
typedef int fortran_length;

#define BAD_STRING (!SCR_SUCCESS)

/* Fortran text, blanks at its end cut off, as C string. 0, or -1 when it does not fit. */
static int to_c(const char *text, fortran_length length, char *out, size_t size)
{
    while (length > 0 && text[length - 1] == ' ') {
        length--;
    }
    if (length < 0 || (size_t)length >= size) {
        return -1;
    }
    memcpy(out, text, (size_t)length);
    out[length] = '\0';
    return 0;
}

/* C string into Fortran text, filled up with blanks. 0, or -1 when it had to be cut. */
static int to_fortran(const char *text, char *out, fortran_length length)
{
    size_t room = length > 0 ? (size_t)length : 0;
    size_t size = strlen(text);
    size_t copied = size < room ? size : room;
    memcpy(out, text, copied);
    memset(out + copied, ' ', room - copied);
    return size <= room ? 0 : -1;
}

/* Calls `function` with the name as a C string. */
static int with_name(int (*function)(const char *), const char *name, fortran_length length)
{
    char text[SCR_MAX_FILENAME];
    return to_c(name, length, text, sizeof(text)) == 0 ? function(text) : BAD_STRING;
}

void scr_init_(int *ierror);
void scr_init_(int *ierror)
{
    *ierror = SCR_Init();
}

void scr_finalize_(int *ierror);
void scr_finalize_(int *ierror)
{
    *ierror = SCR_Finalize();
}

void scr_should_exit_(int *flag, int *ierror);
void scr_should_exit_(int *flag, int *ierror)
{
    *ierror = SCR_Should_exit(flag);
}

/* As in SCR, asking gives SCR_SUCCESS and the value; setting has no value to give and fails. */
void scr_config_(const char *config, char *value, int *ierror, fortran_length config_length,
                 fortran_length value_length);
void scr_config_(const char *config, char *value, int *ierror, fortran_length config_length,
                 fortran_length value_length)
{
    char text[SCR_MAX_FILENAME];
    *ierror = BAD_STRING;
    if (to_c(config, config_length, text, sizeof(text)) == 0) {
        const char *found = SCR_Config(text);
        if (found && to_fortran(found, value, value_length) == 0) {
            *ierror = SCR_SUCCESS;
        }
        free((void *)found); /* a copy made for the caller, see scr.h */
    }
}

void scr_have_restart_(int *flag, char *name, int *ierror, fortran_length name_length);
void scr_have_restart_(int *flag, char *name, int *ierror, fortran_length name_length)
{
    char text[SCR_MAX_FILENAME] = "";
    *ierror = SCR_Have_restart(flag, text);
    if (*flag && to_fortran(text, name, name_length) != 0) {
        *ierror = BAD_STRING;
    }
}

void scr_start_restart_(char *name, int *ierror, fortran_length name_length);
void scr_start_restart_(char *name, int *ierror, fortran_length name_length)
{
    char text[SCR_MAX_FILENAME] = "";
    *ierror = SCR_Start_restart(text);
    if (to_fortran(text, name, name_length) != 0) {
        *ierror = BAD_STRING;
    }
}

void scr_complete_restart_(const int *valid, int *ierror);
void scr_complete_restart_(const int *valid, int *ierror)
{
    *ierror = SCR_Complete_restart(*valid);
}

void scr_need_checkpoint_(int *flag, int *ierror);
void scr_need_checkpoint_(int *flag, int *ierror)
{
    *ierror = SCR_Need_checkpoint(flag);
}

void scr_start_checkpoint_(int *ierror);
void scr_start_checkpoint_(int *ierror)
{
    *ierror = SCR_Start_checkpoint();
}

void scr_complete_checkpoint_(const int *valid, int *ierror);
void scr_complete_checkpoint_(const int *valid, int *ierror)
{
    *ierror = SCR_Complete_checkpoint(*valid);
}

void scr_start_output_(const char *name, const int *flags, int *ierror, fortran_length name_length);
void scr_start_output_(const char *name, const int *flags, int *ierror, fortran_length name_length)
{
    char text[SCR_MAX_FILENAME];
    int fits = to_c(name, name_length, text, sizeof(text)) == 0;
    *ierror = fits ? SCR_Start_output(text, *flags) : BAD_STRING;
}

void scr_complete_output_(const int *valid, int *ierror);
void scr_complete_output_(const int *valid, int *ierror)
{
    *ierror = SCR_Complete_output(*valid);
}

void scr_route_file_(const char *name, char *file, int *ierror, fortran_length name_length,
                     fortran_length file_length);
void scr_route_file_(const char *name, char *file, int *ierror, fortran_length name_length,
                     fortran_length file_length)
{
    char text[SCR_MAX_FILENAME];
    char path[SCR_MAX_FILENAME] = "";
    if (to_c(name, name_length, text, sizeof(text)) != 0) {
        *ierror = BAD_STRING;
        return;
    }
    *ierror = SCR_Route_file(text, path);
    if (to_fortran(path, file, file_length) != 0) {
        *ierror = BAD_STRING;
    }
}

void scr_current_(const char *name, int *ierror, fortran_length name_length);
void scr_current_(const char *name, int *ierror, fortran_length name_length)
{
    *ierror = with_name(SCR_Current, name, name_length);
}

void scr_drop_(const char *name, int *ierror, fortran_length name_length);
void scr_drop_(const char *name, int *ierror, fortran_length name_length)
{
    *ierror = with_name(SCR_Drop, name, name_length);
}

void scr_delete_(const char *name, int *ierror, fortran_length name_length);
void scr_delete_(const char *name, int *ierror, fortran_length name_length)
{
    *ierror = with_name(SCR_Delete, name, name_length);
}

#pragma GCC visibility pop
