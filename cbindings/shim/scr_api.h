/* scr_api.h - the C interface of SCR v3, as our own declarations.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The wrappers define these functions and the Python binding calls them, so that neither needs
 * SCR's own header to be built. The declarations between the cdef marks are read by
 * scr_critplugin/scr.py: keep them free of macros. Source: SCR v3.1, commit 85e30b19, src/scr.h.
 * Tests: tests/shim/test_shim_libscr.py.
 */
#ifndef SCR_API_H
#define SCR_API_H

#ifdef __cplusplus
extern "C" {
#endif

/* [cdef scr] */

enum scr_api_constant {
    SCR_API_SUCCESS = 0,
    SCR_API_FAILURE = 1, /* what SCR returns for every failure; not in its header */
    SCR_API_MAX_FILENAME = 1024,
    SCR_API_FLAG_NONE = 0,
    SCR_API_FLAG_CHECKPOINT = 1,
    SCR_API_FLAG_OUTPUT = 2
};

int SCR_Init(void);
int SCR_Finalize(void);

const char *SCR_Config(const char *config);
const char *SCR_Configf(const char *format, ...);

int SCR_Route_file(const char *name, char *file);

int SCR_Have_restart(int *flag, char *name);
int SCR_Start_restart(char *name);
int SCR_Complete_restart(int valid);

int SCR_Need_checkpoint(int *flag);
int SCR_Start_checkpoint(void);
int SCR_Complete_checkpoint(int valid);

int SCR_Start_output(const char *name, int flags);
int SCR_Complete_output(int valid);

int SCR_Current(const char *name);
int SCR_Drop(const char *name);
int SCR_Delete(const char *name);

char *SCR_Get_version(void);
int SCR_Should_exit(int *flag);

/* [end cdef] */

#ifdef __cplusplus
}
#endif
#endif
