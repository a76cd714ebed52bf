/* filter.h - the first client of the hooks: packs checkpoints and expands them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * May use everything of the shim but scr_wrap.c and real.h. Tests: tests/shim/.
 */
#ifndef SHIM_FILTER_H
#define SHIM_FILTER_H

/* Read the parameters and, when the plugin is switched on, become the first client of the hooks.
 *   framework_library   path of the framework's library, to find its system-wide configuration; ""
 * if unknown */
void shim_filter_start(const char *framework_library);

/* Warn, once, of a packed file that the application gets to see outside of all phases. */
void shim_filter_look(const char *path);

/* Leave the hooks and forget everything. */
void shim_filter_stop(void);

#endif
