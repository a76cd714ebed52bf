/* scr_wrap.c - wrappers of SCR's functions, which feed the table of hooks.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * One source for both ways of interposing: compiled as it stands the wrappers carry SCR's names
 * (LD_PRELOAD, linking before -lscr, dlopen); with SHIM_WRAP they are what -Wl,--wrap=NAME expects.
 * While the table has no client, each is a test and a jump. They tell right from wrong call order
 * no better than SCR does: what SCR refuses changes no state here. May use hooks.h, filter.h,
 * config.h, message.h, real.h. Tests: tests/shim/test_shim_order.py.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "filter.h"
#include "hooks.h"
#include "message.h"
#include "path.h"
#include "scr_api.h"

/* ---- The macro set -------------------------------------------------------------------------- */

#define PUBLIC __attribute__((visibility("default")))

#ifdef SHIM_WRAP

#define WRAPPER(name) __wrap_##name
#define REAL(name) __real_##name
#define DECLARE(type, name, ...)                                                                   \
    extern type REAL(name)(__VA_ARGS__);                                                           \
    PUBLIC type WRAPPER(name)(__VA_ARGS__)
#define FOUND(name) true

#else

#include "real.h"

#define WRAPPER(name) name
#define REAL(name) real_##name
#define DECLARE(type, name, ...)                                                                   \
    static type (*REAL(name))(__VA_ARGS__);                                                        \
    PUBLIC type WRAPPER(name)(__VA_ARGS__)
#define FOUND(name) (REAL(name) || find_real(#name, (void **)&REAL(name)))

/* Whoever calls SCR through the shim without any libscr gets SCR's failure, and the reason once.
 * The linker drops a -lscr behind the shim when it is told --as-needed, which some compilers are by
 * default. */
static bool find_real(const char *name, void **address)
{
    static bool said;
    *address = shim_real_find(name);
    if (*address || said)
        return *address != NULL;
    said = true;
    if (*scr_crit_shim_libscr())
        SHIM_ERROR("%s cannot be called: %s does not have it", name, scr_crit_shim_libscr());
    else
        SHIM_ERROR("%s cannot be called, there is no libscr (%s): set SCR_ROOT to SCR's install "
                   "prefix, or "
                   "link the program with -Wl,--no-as-needed -lscr",
                   name, scr_crit_shim_libscr_error());
    return false;
}

#endif

DECLARE(int, SCR_Init, void);
DECLARE(int, SCR_Finalize, void);
DECLARE(const char *, SCR_Config, const char *config);
DECLARE(int, SCR_Route_file, const char *name, char *file);
DECLARE(int, SCR_Start_restart, char *name);
DECLARE(int, SCR_Complete_restart, int valid);
DECLARE(int, SCR_Start_checkpoint, void);
DECLARE(int, SCR_Complete_checkpoint, int valid);
DECLARE(int, SCR_Start_output, const char *name, int flags);
DECLARE(int, SCR_Complete_output, int valid);

/* ---- State ---------------------------------------------------------------------------------- */

enum phase { IDLE, CHECKPOINT, OUTPUT, RESTART };

static enum phase phase;
static bool restart_failed; /* a client could not hand out a file of this restart */

/* libscr calls some of its functions through the PLT, and so through us (SCR_Configf calls
 * SCR_Config): such calls go straight on. */
static unsigned inside;

static bool passive(void)
{
    return shim_hooks_clients == 0 || inside > 0;
}

#define CALL_REAL(result, name, ...)                                                               \
    do {                                                                                           \
        inside++;                                                                                  \
        result = REAL(name)(__VA_ARGS__);                                                          \
        inside--;                                                                                  \
    } while (0)

/* A program that was linked with the shim and has it preloaded as well, or two copies preloaded,
 * shall not pack twice: the last copy before libscr does the work. */
static bool another_shim_follows(void)
{
    return dlsym(RTLD_NEXT, "scr_crit_hooks_register") != NULL;
}

/* ---- Session -------------------------------------------------------------------------------- */

int WRAPPER(SCR_Init)(void)
{
    int status;
    if (!FOUND(SCR_Init))
        return SCR_API_FAILURE;
    CALL_REAL(status, SCR_Init);
    if (status != SCR_API_SUCCESS || inside > 0)
        return status;
    phase = IDLE;
    if (!another_shim_follows())
        shim_filter_start(scr_crit_shim_libscr());
    shim_hooks_initialized();
    return status;
}

int WRAPPER(SCR_Finalize)(void)
{
    int status;
    if (!FOUND(SCR_Finalize))
        return SCR_API_FAILURE;
    if (inside == 0 && phase == IDLE)
        shim_hooks_finalizing();
    CALL_REAL(status, SCR_Finalize);
    if (inside == 0)
        shim_filter_stop();
    return status;
}

const char *WRAPPER(SCR_Config)(const char *config)
{
    const char *value;
    if (!FOUND(SCR_Config))
        return NULL;
    if (inside == 0)
        shim_config_note(config);
    CALL_REAL(value, SCR_Config, config);
    return value;
}

/* Written out here: inside libscr.a the call from SCR_Configf to SCR_Config cannot be wrapped. */
PUBLIC const char *WRAPPER(SCR_Configf)(const char *format, ...);

const char *WRAPPER(SCR_Configf)(const char *format, ...)
{
    va_list arguments;
    char *text = NULL;
    va_start(arguments, format);
    int length = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (length < 0)
        return NULL;
    const char *value = WRAPPER(SCR_Config)(text);
    free(text);
    return value;
}

/* ---- Output --------------------------------------------------------------------------------- */

int WRAPPER(SCR_Start_output)(const char *name, int flags)
{
    int status;
    if (!FOUND(SCR_Start_output))
        return SCR_API_FAILURE;
    if (passive())
        return REAL(SCR_Start_output)(name, flags);
    CALL_REAL(status, SCR_Start_output, name, flags);
    if (status == SCR_API_SUCCESS) {
        phase = OUTPUT;
        shim_hooks_output_started(name, flags);
    }
    return status;
}

int WRAPPER(SCR_Start_checkpoint)(void)
{
    int status;
    if (!FOUND(SCR_Start_checkpoint))
        return SCR_API_FAILURE;
    if (passive())
        return REAL(SCR_Start_checkpoint)();
    CALL_REAL(status, SCR_Start_checkpoint);
    if (status == SCR_API_SUCCESS) {
        phase = CHECKPOINT;
        shim_hooks_output_started(NULL, SCR_API_FLAG_CHECKPOINT);
    }
    return status;
}

int WRAPPER(SCR_Complete_output)(int valid)
{
    int status;
    if (!FOUND(SCR_Complete_output))
        return SCR_API_FAILURE;
    if (passive() || phase != OUTPUT)
        return REAL(SCR_Complete_output)(valid);
    phase = IDLE;
    valid = shim_hooks_output_completing(valid);
    CALL_REAL(status, SCR_Complete_output, valid);
    shim_hooks_output_completed(status);
    return status;
}

int WRAPPER(SCR_Complete_checkpoint)(int valid)
{
    int status;
    if (!FOUND(SCR_Complete_checkpoint))
        return SCR_API_FAILURE;
    if (passive() || phase != CHECKPOINT)
        return REAL(SCR_Complete_checkpoint)(valid);
    phase = IDLE;
    valid = shim_hooks_output_completing(valid);
    CALL_REAL(status, SCR_Complete_checkpoint, valid);
    shim_hooks_output_completed(status);
    return status;
}

/* ---- Restart -------------------------------------------------------------------------------- */

int WRAPPER(SCR_Start_restart)(char *name)
{
    int status;
    char dataset[SCR_API_MAX_FILENAME] = "";
    if (!FOUND(SCR_Start_restart))
        return SCR_API_FAILURE;
    if (passive())
        return REAL(SCR_Start_restart)(name);
    char *into = name ? name : dataset;
    CALL_REAL(status, SCR_Start_restart, into);
    if (status == SCR_API_SUCCESS) {
        phase = RESTART;
        restart_failed = false;
        shim_hooks_restart_started(into);
    }
    return status;
}

int WRAPPER(SCR_Complete_restart)(int valid)
{
    int status;
    if (!FOUND(SCR_Complete_restart))
        return SCR_API_FAILURE;
    if (passive() || phase != RESTART)
        return REAL(SCR_Complete_restart)(valid);
    phase = IDLE;
    if (valid && restart_failed) {
        SHIM_ERROR("the application reports a valid restart, though SCR_Route_file failed for a "
                   "file that could "
                   "not be expanded: the restart is reported as invalid");
        valid = 0;
    }
    CALL_REAL(status, SCR_Complete_restart, valid);
    shim_hooks_restart_completed(valid);
    return status;
}

/* ---- Files ---------------------------------------------------------------------------------- */

/* Hand a path to the application, whose buffer has SCR_MAX_FILENAME bytes. */
static int hand_out(char *file, const char *path, int status)
{
    if (strlen(path) < SCR_API_MAX_FILENAME) {
        strcpy(file, path);
        return status;
    }
    SHIM_ERROR("SCR's path %s has %zu characters, at most %d are possible", path, strlen(path),
               SCR_API_MAX_FILENAME - 1);
    file[0] = '\0';
    return SCR_API_FAILURE;
}

static int route_through_hooks(const char *name, char *path, size_t size)
{
    if (phase != RESTART)
        return shim_hooks_output_routed(name, path, size);
    int failed = shim_hooks_restart_routed(name, path, size);
    restart_failed |= failed != 0;
    return failed;
}

/* SCR v3.1 writes paths of 1024 characters and more beyond the caller's buffer (spath_strcpy): it
 * gets a larger one. */
int WRAPPER(SCR_Route_file)(const char *name, char *file)
{
    int status;
    char path[SHIM_PATH_SIZE] = "";
    if (!FOUND(SCR_Route_file))
        return SCR_API_FAILURE;
    if (passive() || !file)
        return REAL(SCR_Route_file)(name, file);
    if (phase == IDLE) {
        CALL_REAL(status, SCR_Route_file, name, file);
        if (status == SCR_API_SUCCESS)
            shim_filter_look(file);
        return status;
    }
    CALL_REAL(status, SCR_Route_file, name, path);
    if (status != SCR_API_SUCCESS || strlen(path) >= SCR_API_MAX_FILENAME)
        return hand_out(file, path, status);
    if (route_through_hooks(name, path, SCR_API_MAX_FILENAME) != 0) {
        file[0] = '\0';
        return SCR_API_FAILURE;
    }
    return hand_out(file, path, SCR_API_SUCCESS);
}

/* ---- What needs no hook --------------------------------------------------------------------- */

#ifndef SHIM_WRAP
/* The Python binding opens the shim alone and finds all of SCR in it. */

#define FORWARD(type, failure, name, parameters, ...)                                              \
    DECLARE(type, name, __VA_ARGS__);                                                              \
    type WRAPPER(name)(__VA_ARGS__)                                                                \
    {                                                                                              \
        return FOUND(name) ? REAL(name) parameters : failure;                                      \
    }

FORWARD(int, SCR_API_FAILURE, SCR_Have_restart, (flag, name), int *flag, char *name)
FORWARD(int, SCR_API_FAILURE, SCR_Need_checkpoint, (flag), int *flag)
FORWARD(int, SCR_API_FAILURE, SCR_Should_exit, (flag), int *flag)
FORWARD(int, SCR_API_FAILURE, SCR_Current, (name), const char *name)
FORWARD(int, SCR_API_FAILURE, SCR_Drop, (name), const char *name)
FORWARD(int, SCR_API_FAILURE, SCR_Delete, (name), const char *name)
FORWARD(char *, NULL, SCR_Get_version, (), void)

#else

/* The linker bound SCR's functions: the library is the object that holds them. */

const char *scr_crit_shim_libscr(void)
{
    static char path[SHIM_PATH_SIZE];
    Dl_info where;
    if (!path[0] && dladdr((void *)REAL(SCR_Init), &where) && where.dli_fname)
        snprintf(path, sizeof path, "%s", where.dli_fname);
    return path;
}

const char *scr_crit_shim_libscr_error(void)
{
    return "";
}

#endif
