/* in_use.h - whether somebody may still write to a file.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Uses nothing of the shim. Tests: tests/shim/test_shim_surroundings.py.
 */
#ifndef SHIM_IN_USE_H
#define SHIM_IN_USE_H

#include <stdbool.h>

/* Whether any process of this node has the file open for writing, or mapped shared and writable.
 * False where the file system cannot tell. */
bool shim_is_open_for_writing(const char *path);

#endif
