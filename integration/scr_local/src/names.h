/*
 * names.h - a list of names in one block (each ends with NUL), ready to be sent between ranks.
 * Start from {0}; free with scrl_names_free.
 */
#ifndef SCRL_NAMES_H
#define SCRL_NAMES_H

#include <stddef.h>

typedef struct {
    char *bytes;
    size_t length;
    int count;
} scrl_names;

void scrl_names_add(scrl_names *names, const char *name);

/* The name behind `name` (NULL: the first one), or NULL at the end. */
const char *scrl_names_next(const scrl_names *names, const char *name);

void scrl_names_free(scrl_names *names);

#endif
