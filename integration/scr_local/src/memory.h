/*
 * memory.h - allocation that ends the job when memory runs out, and strings made by a format.
 * Results are freed with free().
 */
#ifndef SCRL_MEMORY_H
#define SCRL_MEMORY_H

#include <stddef.h>

/* `size` zero bytes; never NULL, not even for size 0. */
void *scrl_alloc(size_t size);

/* realloc; never NULL. New bytes are not cleared. */
void *scrl_grow(void *block, size_t size);

char *scrl_strdup(const char *text);

char *scrl_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
