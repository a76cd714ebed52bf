/* hooks.h - the table of file-list hooks, as seen by what feeds it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Clients register through scr_crit.h. The functions below hand one event to all of them. The table
 * knows nothing of SCR, files or plans; scr_wrap.c feeds it, another framework's wrappers can as
 * well. Tests: tests/shim/test_shim_hooks.py.
 */
#ifndef SHIM_HOOKS_H
#define SHIM_HOOKS_H

#include <stdbool.h>
#include <stddef.h>

#include "scr_crit.h"

/* Number of clients: while it is 0, whoever feeds the table need not bother. */
extern size_t shim_hooks_clients;

/* Add a client before all others. Returns as scr_crit_hooks_register. */
int shim_hooks_register_first(const scr_crit_hooks *hooks);

void shim_hooks_initialized(void);
void shim_hooks_output_started(const char *dataset, int flags);

/* Returns 0, or what the first client that failed returned; later clients do not see the file. */
int shim_hooks_output_routed(const char *name, char *path, size_t size);

/* Returns valid as the last client leaves it. */
int shim_hooks_output_completing(int valid);

void shim_hooks_output_completed(int status);
void shim_hooks_restart_started(const char *dataset);
int shim_hooks_restart_routed(const char *name, char *path, size_t size);
void shim_hooks_restart_completed(int valid);
void shim_hooks_finalizing(void);

#endif
