/* memory.c - see memory.h. May use message.h only. */
#include "memory.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "message.h"

void *scrl_alloc(size_t size)
{
    void *block = calloc(1, size > 0 ? size : 1);
    if (!block) {
        scrl_abort("out of memory: %zu bytes asked for", size);
    }
    return block;
}

void *scrl_grow(void *block, size_t size)
{
    void *grown = realloc(block, size > 0 ? size : 1);
    if (!grown) {
        scrl_abort("out of memory: %zu bytes asked for", size);
    }
    return grown;
}

char *scrl_strdup(const char *text)
{
    size_t size = strlen(text) + 1;
    return memcpy(scrl_alloc(size), text, size);
}

char *scrl_format(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (length < 0) {
        scrl_abort("cannot format a string like `%s'", format);
    }
    char *text = scrl_alloc((size_t)length + 1);
    va_start(arguments, format);
    vsnprintf(text, (size_t)length + 1, format, arguments);
    va_end(arguments);
    return text;
}
