/* config.c - parameters from the places where SCR takes its own.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests: tests/shim/test_shim_config.py.
 */
#define _GNU_SOURCE
#include "config.h"

#include <stdlib.h>

#include "path.h"
#include "settings.h"

static shim_settings user, application, system_wide;
static shim_settings answers; /* expanded values that were handed out */

void shim_config_note(const char *setting)
{
    if (setting)
        shim_settings_read_string(&application, setting);
}

static const char *look_up(const char *name)
{
    const char *value = getenv(name);
    if (!value)
        value = shim_settings_get(&user, name);
    if (!value)
        value = shim_settings_get(&application, name);
    if (!value)
        value = shim_settings_get(&system_wide, name);
    return value;
}

const char *shim_config_get(const char *name)
{
    const char *raw = look_up(name);
    char *value = raw ? shim_settings_expand(raw) : NULL;
    shim_settings_set(&answers, name, value);
    free(value);
    return shim_settings_get(&answers, name);
}

/* SCR's prefix by the settings known so far (scr_get_prefix). */
static void find_prefix(char *prefix, size_t size)
{
    const char *value = shim_config_get("SCR_PREFIX");
    if (!shim_path_absolute(value ? value : ".", prefix, size))
        prefix[0] = '\0';
}

/* The user's file is found by the environment and the application alone: the others are not read
 * yet. */
static void read_user_file(void)
{
    const char *named = shim_config_get("SCR_CONF_FILE");
    char prefix[SHIM_PATH_SIZE], path[SHIM_PATH_SIZE];
    if (named) {
        shim_settings_read_file(&user, named);
        return;
    }
    find_prefix(prefix, sizeof prefix);
    if (prefix[0] && shim_path_join(path, sizeof path, prefix, ".scrconf"))
        shim_settings_read_file(&user, path);
}

void shim_config_read(const char *system_file, char *prefix, size_t size)
{
    shim_settings_free(&user);
    shim_settings_free(&system_wide);
    read_user_file();
    shim_settings_read_file(&system_wide, system_file);
    find_prefix(prefix, size);
}

void shim_config_forget(void)
{
    shim_settings_free(&user);
    shim_settings_free(&application);
    shim_settings_free(&system_wide);
    shim_settings_free(&answers);
}
