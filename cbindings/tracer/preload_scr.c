/* preload_scr.c - tells the tool what the program does with SCR.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Runs in the traced program; Valgrind puts these wrappers in front of SCR's functions, in whatever
 * object they are: a shared library, one that was loaded at run time, or the program itself, into
 * which libscr.a was linked. SCR's Fortran entries call the C functions. The SCR shim has functions
 * of the same names, which call libscr's: the outermost call is the program's, and it alone is
 * told.
 *
 * Uses no function of the C library. SCR is not called by two threads at once.
 * Source: SCR v3.1, commit 85e30b19, src/scr.h. Tests: tests/tracer/test_tracer_accesses.py.
 */
#include "requests.h"

#define SCR_SUCCESS 0
#define SCR_FLAG_CHECKPOINT 1

/* In any object ("Za" is Z-encoded "*"). */
#define WRAPPER(name) I_WRAP_SONAME_FNNAME_ZU(Za, name)

#define TELL(request, first, second)                                                               \
    VALGRIND_DO_CLIENT_REQUEST_STMT((request), (first), (second), 0, 0, 0)

static int depth; /* of calls of wrapped functions */

static int outermost(void)
{
    return depth == 0;
}

int WRAPPER(SCR_Start_output)(const char *name, int flags);
int WRAPPER(SCR_Start_output)(const char *name, int flags)
{
    OrigFn real;
    int status;
    VALGRIND_GET_ORIG_FN(real);
    depth++;
    CALL_FN_W_WW(status, real, name, flags);
    depth--;
    if (outermost() && status == SCR_SUCCESS)
        TELL(TRACE_OUTPUT_STARTED, name ? name : "", flags);
    return status;
}

int WRAPPER(SCR_Start_checkpoint)(void);
int WRAPPER(SCR_Start_checkpoint)(void)
{
    OrigFn real;
    int status;
    VALGRIND_GET_ORIG_FN(real);
    depth++;
    CALL_FN_W_v(status, real);
    depth--;
    if (outermost() && status == SCR_SUCCESS)
        TELL(TRACE_OUTPUT_STARTED, "", SCR_FLAG_CHECKPOINT);
    return status;
}

int WRAPPER(SCR_Start_restart)(char *name);
int WRAPPER(SCR_Start_restart)(char *name)
{
    OrigFn real;
    int status;
    VALGRIND_GET_ORIG_FN(real);
    depth++;
    CALL_FN_W_W(status, real, name);
    depth--;
    if (outermost() && status == SCR_SUCCESS)
        TELL(TRACE_RESTART_STARTED, name ? name : "", 0);
    return status;
}

int WRAPPER(SCR_Route_file)(const char *name, char *file);
int WRAPPER(SCR_Route_file)(const char *name, char *file)
{
    OrigFn real;
    int status;
    VALGRIND_GET_ORIG_FN(real);
    depth++;
    CALL_FN_W_WW(status, real, name, file);
    depth--;
    if (outermost() && status == SCR_SUCCESS && name && file)
        TELL(TRACE_ROUTED, name, file);
    return status;
}

int WRAPPER(SCR_Need_checkpoint)(int *flag);
int WRAPPER(SCR_Need_checkpoint)(int *flag)
{
    OrigFn real;
    int status;
    VALGRIND_GET_ORIG_FN(real);
    depth++;
    CALL_FN_W_W(status, real, flag);
    depth--;
    if (outermost() && flag)
        TELL(TRACE_CHECKPOINT_ASKED, status == SCR_SUCCESS && *flag, 0);
    return status;
}

/* What completes a dataset is told before SCR sees it: SCR reads and writes files of its own then.
 */
#define COMPLETING(name, request)                                                                  \
    int WRAPPER(name)(int valid);                                                                  \
    int WRAPPER(name)(int valid)                                                                   \
    {                                                                                              \
        OrigFn real;                                                                               \
        int status;                                                                                \
        VALGRIND_GET_ORIG_FN(real);                                                                \
        if (outermost())                                                                           \
            TELL(request, valid, 0);                                                               \
        depth++;                                                                                   \
        CALL_FN_W_W(status, real, valid);                                                          \
        depth--;                                                                                   \
        return status;                                                                             \
    }

COMPLETING(SCR_Complete_output, TRACE_OUTPUT_COMPLETING)
COMPLETING(SCR_Complete_checkpoint, TRACE_OUTPUT_COMPLETING)
COMPLETING(SCR_Complete_restart, TRACE_RESTART_COMPLETING)

int WRAPPER(SCR_Finalize)(void);
int WRAPPER(SCR_Finalize)(void)
{
    OrigFn real;
    int status;
    VALGRIND_GET_ORIG_FN(real);
    if (outermost())
        TELL(TRACE_FINALIZING, 0, 0);
    depth++;
    CALL_FN_W_v(status, real);
    depth--;
    return status;
}
