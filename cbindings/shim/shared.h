/* shared.h - notice, without communication, that two ranks write one file.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A plan's pattern may tie a file to the rank whose number is in its name; that rank, its owner,
 * packs it. A program whose files carry other numbers (a reordered communicator, one file per group
 * of ranks) may let a guest, another rank, write that name, alone or together with the owner. A
 * guest leaves a mark beside the file before the application sees its path, and looks whether the
 * owner has packed already; the owner looks for marks after it has packed. Whoever comes second
 * sees the other: the marks stay until SCR's own Complete call, which no rank leaves before all
 * have entered it. May use path.h, stage.h. Tests: tests/shim/test_shim_shared.py.
 */
#ifndef SHIM_SHARED_H
#define SHIM_SHARED_H

#include <stdbool.h>

/* As a guest: mark a file. */
void shim_shared_mark(const char *path);
void shim_shared_unmark(const char *path);

/* As the owner: whether a guest has marked it. */
bool shim_shared_is_marked(const char *path);

#endif
