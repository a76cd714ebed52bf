/* path.h - file names as text: absolute and simplified, and where a file lies under the prefix.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Names are simplified as SCR does it (spath_reduce): "." and ".." are resolved textually, symbolic
 * links are not followed. Uses nothing of the shim. Tests: tests/shim/test_shim_paths.py.
 */
#ifndef SHIM_PATH_H
#define SHIM_PATH_H

#include <stdbool.h>
#include <stddef.h>

/* Longest path this shim handles, its terminating 0 included. SCR's own limit is 1024, but its
 * Route_file may write more than that (SCR v3.1, spath_strcpy). */
enum { SHIM_PATH_SIZE = 8192 };

/* Absolute, simplified form of a name; relative names start at the working directory. False when it
 * does not fit or the working directory is gone. */
bool shim_path_absolute(const char *name, char *path, size_t size);

/* The part of an absolute, simplified path below `folder`; NULL when it is not below it. */
const char *shim_path_below(const char *folder, const char *path);

/* folder/name. False when it does not fit. */
bool shim_path_join(char *path, size_t size, const char *folder, const char *name);

/* The part behind the last slash, within `path`. */
const char *shim_path_base(const char *path);

/* The part before the last slash, copied. False when it does not fit. */
bool shim_path_folder(const char *path, char *folder, size_t size);

/* Make a folder and its parents, with mode 0777 less umask. Returns 0, or an errno. */
int shim_path_make_folders(const char *folder);

#endif
