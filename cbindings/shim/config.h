/* config.h - parameters from the places where SCR takes its own, in SCR's order and syntax.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Environment, then the user's file ($SCR_CONF_FILE, else .scrconf under the prefix), then what the
 * application set through SCR_Config, then the system's file (SCR v3.1, scr_param.c and
 * scr_config.c). What a parameter's value means is the business of options.c. May use path.h and
 * settings.h. Tests: tests/shim/test_shim_config.py.
 */
#ifndef SHIM_CONFIG_H
#define SHIM_CONFIG_H

#include <stddef.h>

/* Remember what the application hands to SCR_Config: "KEY=VALUE", "KEY=" or (ignored) "KEY". */
void shim_config_note(const char *setting);

/* Read the configuration files.
 *   system_file   path of the system's file
 *   prefix        out: SCR's prefix, absolute and simplified; "" if the working directory is gone
 * A file that is not there is not a fault. */
void shim_config_read(const char *system_file, char *prefix, size_t size);

/* Value of a parameter, variables expanded; NULL when it is set nowhere. Owned by this module,
 * valid until the next call for the same name or shim_config_forget. */
const char *shim_config_get(const char *name);

/* Forget everything, as SCR does in SCR_Finalize. */
void shim_config_forget(void);

#endif
