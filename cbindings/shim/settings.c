/* settings.c - KEY=VALUE settings in SCR's syntax.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Three readers, because SCR has three: configuration files (scr_config.c), the argument of
 * SCR_Config (scr.c), and the expansion of variables when a value is looked up (scr_param.c). They
 * differ in small ways, which are kept: SCR_PREFIX must mean the same folder to both libraries.
 * Tests: tests/shim/test_shim_config.py.
 */
#define _GNU_SOURCE
#include "settings.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The list ------------------------------------------------------------------------------- */

static struct shim_setting *find(const shim_settings *settings, const char *key)
{
    for (size_t i = 0; i < settings->count; i++)
        if (strcmp(settings->items[i].key, key) == 0)
            return &settings->items[i];
    return NULL;
}

static void remove_setting(shim_settings *settings, struct shim_setting *item)
{
    free(item->key);
    free(item->value);
    *item = settings->items[--settings->count];
}

static void add_setting(shim_settings *settings, const char *key, char *value)
{
    size_t size = (settings->count + 1) * sizeof *settings->items;
    struct shim_setting *grown = realloc(settings->items, size);
    char *name = strdup(key);
    if (grown)
        settings->items = grown;
    if (!grown || !name) {
        free(name);
        free(value);
        return;
    }
    settings->items[settings->count++] = (struct shim_setting){name, value};
}

void shim_settings_set(shim_settings *settings, const char *key, const char *value)
{
    struct shim_setting *item = find(settings, key);
    if (item)
        remove_setting(settings, item);
    char *copy = value ? strdup(value) : NULL;
    if (copy)
        add_setting(settings, key, copy);
}

const char *shim_settings_get(const shim_settings *settings, const char *key)
{
    struct shim_setting *item = find(settings, key);
    return item ? item->value : NULL;
}

void shim_settings_free(shim_settings *settings)
{
    while (settings->count)
        remove_setting(settings, &settings->items[settings->count - 1]);
    free(settings->items);
    settings->items = NULL;
}

/* ---- Text that grows ------------------------------------------------------------------------ */

typedef struct text {
    char *bytes;
    size_t length, capacity;
    bool failed;
} text;

static void append(text *out, const char *bytes, size_t count)
{
    if (out->failed)
        return;
    if (out->length + count + 1 > out->capacity) {
        size_t capacity = 2 * (out->length + count + 1);
        char *grown = realloc(out->bytes, capacity);
        if (!grown) {
            out->failed = true;
            return;
        }
        out->bytes = grown;
        out->capacity = capacity;
    }
    memcpy(out->bytes + out->length, bytes, count);
    out->length += count;
    out->bytes[out->length] = '\0';
}

static void append_variable(text *out, const char *name, size_t length)
{
    char *copy = strndup(name, length);
    const char *value = copy ? getenv(copy) : NULL;
    if (value)
        append(out, value, strlen(value));
    out->failed |= !copy;
    free(copy);
}

static char *finish(text *out)
{
    append(out, "", 0);
    if (out->failed) {
        free(out->bytes);
        return NULL;
    }
    return out->bytes;
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static size_t word_length(const char *at)
{
    size_t length = 0;
    while (is_word(at[length]))
        length++;
    return length;
}

/* Length of the variable reference at `at`, which starts with '$'; 0 if it is none. */
static size_t reference(const char *at, const char **name, size_t *name_length)
{
    bool braced = at[1] == '{';
    *name = at + 1 + braced;
    *name_length = word_length(*name);
    if (braced)
        return (*name)[*name_length] == '}' ? *name_length + 3 : 0;
    return *name_length ? *name_length + 1 : 0;
}

char *shim_settings_expand(const char *value)
{
    text out = {0};
    while (*value) {
        const char *name;
        size_t length, taken = *value == '$' ? reference(value, &name, &length) : 0;
        if (taken)
            append_variable(&out, name, length);
        else
            append(&out, value, 1);
        value += taken ? taken : 1;
    }
    return finish(&out);
}

/* ---- Configuration files -------------------------------------------------------------------- */

static char escaped(char c)
{
    static const char letters[] = "abfnrtv", values[] = "\a\b\f\n\r\t\v";
    const char *at = strchr(letters, c);
    return at && c ? values[at - letters] : c;
}

/* In files a variable's name is made of letters and '_' alone, and one that is not set spoils the
 * setting (scr_expand_value). SCR refuses braces there; here they are left to shim_settings_expand.
 */
static size_t file_variable(text *out, const char *at)
{
    size_t length = 0;
    while (isalpha((unsigned char)at[1 + length]) || at[1 + length] == '_')
        length++;
    char *name = strndup(at + 1, length);
    out->failed |= !name || !getenv(name);
    free(name);
    append_variable(out, at + 1, length);
    return length + 1;
}

static char *file_value(const char *raw)
{
    text out = {0};
    while (*raw) {
        if (*raw == '\\' && raw[1]) {
            char c = escaped(raw[1]);
            append(&out, &c, 1);
            raw += 2;
        } else if (*raw == '$' && raw[1] != '{') {
            raw += file_variable(&out, raw);
        } else {
            append(&out, raw++, 1);
        }
    }
    return finish(&out);
}

static char *skip_blanks(char *at)
{
    return at + strspn(at, " \t");
}

/* Cut the token at *at off the rest of the line; NULL when there is none. */
static char *take_token(char **at, char *ended_by)
{
    char *token = *at;
    size_t length = strcspn(token, " \t\n=");
    if (length == 0)
        return NULL;
    *ended_by = token[length];
    *at = token + length + (token[length] != '\0');
    token[length] = '\0';
    return token;
}

static void read_line(shim_settings *settings, char *line)
{
    char *at = skip_blanks(line);
    char ended_by = '\0';
    char *key = *at == '#' ? NULL : take_token(&at, &ended_by);
    if (!key)
        return;
    if (ended_by != '=') {
        at = skip_blanks(at);
        if (*at++ != '=')
            return;
    }
    at = skip_blanks(at);
    char *raw = take_token(&at, &ended_by);
    char *value = raw ? file_value(raw) : NULL;
    for (char *c = key; *c; c++)
        *c = (char)toupper((unsigned char)*c);
    if (value)
        shim_settings_set(settings, key, value);
    free(value);
}

void shim_settings_read_file(shim_settings *settings, const char *path)
{
    FILE *file = fopen(path, "re");
    if (!file)
        return;
    char *line = NULL;
    size_t size = 0;
    while (getline(&line, &size, file) >= 0)
        read_line(settings, line);
    free(line);
    fclose(file);
}

/* ---- The argument of SCR_Config ------------------------------------------------------------- */

void shim_settings_read_string(shim_settings *settings, const char *setting)
{
    const char *key = setting + strspn(setting, " ");
    size_t key_length = strcspn(key, " =");
    const char *equals = key + key_length + strspn(key + key_length, " ");
    if (key_length == 0 || *equals != '=')
        return;
    const char *raw = equals + 1 + strspn(equals + 1, " ");
    size_t length = strcspn(raw, " ");
    char *name = strndup(key, key_length);
    char *value = length ? strndup(raw, length) : NULL;
    if (name && (value || length == 0))
        shim_settings_set(settings, name, value);
    free(name);
    free(value);
}
