/* settings.h - a list of KEY=VALUE settings, and SCR's syntax of them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Uses nothing of the shim. Tests: tests/shim/test_shim_config.py.
 */
#ifndef SHIM_SETTINGS_H
#define SHIM_SETTINGS_H

#include <stddef.h>

typedef struct shim_settings {
    struct shim_setting {
        char *key, *value;
    } * items;
    size_t count;
} shim_settings;

/* Set a key to a copy of the value; NULL removes it. Without memory the setting is lost. */
void shim_settings_set(shim_settings *settings, const char *key, const char *value);

/* Value of a key, owned by the list; NULL when it has none. */
const char *shim_settings_get(const shim_settings *settings, const char *key);

void shim_settings_free(shim_settings *settings);

/* Add what a configuration file says; a file that cannot be read adds nothing. Only a line's first
 * pair is taken: further ones describe SCR's own compound parameters. */
void shim_settings_read_file(shim_settings *settings, const char *path);

/* Add what a string for SCR_Config says; queries add nothing. */
void shim_settings_read_string(shim_settings *settings, const char *text);

/* A value with $NAME and ${NAME} replaced from the environment, to be freed by the caller; a
 * variable that is not set becomes nothing. NULL without memory. */
char *shim_settings_expand(const char *value);

#endif
