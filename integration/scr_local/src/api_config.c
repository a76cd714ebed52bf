/*
 * api_config.c - SCR_Config and SCR_Configf: reads "KEY", "KEY=", "KEY=VALUE [SUB=VALUE ...]" and
 * "KEY=VALUE SUB".
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "collective.h"
#include "memory.h"
#include "message.h"
#include "params.h"

/* One "KEY", "KEY=" or "KEY=VALUE" within the string. */
typedef struct {
    char *key;
    char *value; /* NULL: none given */
    int equals;
} item;

#define MAX_ITEMS 16

/* Cuts the next item off *at; 0 at the end of the string. */
static int next_item(char **at, item *result)
{
    char *text = *at + strspn(*at, " ");
    if (!*text) {
        return 0;
    }
    size_t length = strcspn(text, " =");
    char *behind = text + length + strspn(text + length, " ");
    *result = (item){.key = text, .equals = *behind == '='};
    *at = behind;
    if (result->equals) {
        char *value = behind + 1 + strspn(behind + 1, " ");
        size_t value_length = strcspn(value, " ");
        *at = value + value_length;
        if (value_length > 0) {
            result->value = value;
            if (**at) {
                *(*at)++ = '\0';
            }
        }
    }
    text[length] = '\0';
    return 1;
}

/* Splits `text` in place. A key without '=' can only be the last item. */
static int split(char *text, item items[MAX_ITEMS], const char *whole)
{
    int count = 0;
    char *at = text;
    item found;
    while (next_item(&at, &found)) {
        if (count == MAX_ITEMS || found.key[0] == '\0' || (count > 0 && !items[count - 1].equals)) {
            scrl_abort("Invalid configuration string '%s'", whole);
        }
        items[count++] = found;
    }
    return count;
}

static const char *ask(const item *items, int count, const char *whole)
{
    if (count > 2) {
        scrl_abort("Cannot get config options at same time as setting them. '%s'", whole);
    }
    if (count == 2) {
        return items[0].value ? scrl_param_child(items[0].key, items[0].value, items[1].key) : NULL;
    }
    if (scrl_param_values(items[0].key) > 1) {
        if (scrl.rank == 0) {
            scrl_err("Multiple values are set for '%s', so there is no one to return",
                     items[0].key);
        }
        return NULL;
    }
    return scrl_param(items[0].key);
}

static void set(const item *items, int count)
{
    if (scrl.state != SCRL_UNINIT) {
        scrl_abort("Called SCR_Config() to set a value after SCR_Init()");
    }
    if (count == 1 || !items[0].value) {
        scrl_param_set(items[0].key, items[0].value);
        return;
    }
    for (int i = 1; i < count; i++) {
        scrl_param_set_child(items[0].key, items[0].value, items[i].key, items[i].value);
    }
}

const char *SCR_Config(const char *config)
{
    if (scrl.disabled) {
        return NULL;
    }
    scrl_job_connect();
    if (!scrl_same_text(config)) {
        scrl_abort("SCR_Config string must be identical on all processes");
    }
    if (!config || !config[0]) {
        return NULL;
    }
    scrl_params_load();
    item items[MAX_ITEMS];
    char *text = scrl_strdup(config);
    int count = split(text, items, config);
    const char *result = NULL;
    if (count == 0) {
        scrl_abort("Could not extract key from config string. '%s'", config);
    } else if (!items[count - 1].equals) {
        result = ask(items, count, config);
    } else {
        set(items, count);
    }
    free(text);
    return result;
}

const char *SCR_Configf(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (length < 0) {
        return NULL;
    }
    char *text = scrl_alloc((size_t)length + 1);
    va_start(arguments, format);
    vsnprintf(text, (size_t)length + 1, format, arguments);
    va_end(arguments);
    const char *result = SCR_Config(text);
    free(text);
    return result;
}
